"""How networks are called, and what is said where they fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from unbraid.data.functions.forms import deed
from unbraid.data.functions.torch_functions import check_not_lazy
from unbraid.errors import DataError, SettingError, UnbraidError

if TYPE_CHECKING:
    from unbraid.networks.compressing.parts import Part

QUANTISED = "torch.ao.nn."
"""Where the modules of PyTorch are that compute with few digits, or prepare for it."""


def run(network: torch.nn.Module, x: torch.Tensor) -> Any:
    """What a network gives for inputs, which stay as they are though modules may work in place."""
    try:
        return network(x.clone())
    except UnbraidError:
        raise
    except Exception as error:
        raise DataError(f"The network takes no inputs of shape {tuple(x.shape[1:])}: it {deed(error)}.") from error


def check_output(what: str, found: Any, count: int, axes: int = 1) -> torch.Tensor:
    """What was given for so many samples; refused if it is not one tensor of real numbers, a row a sample."""
    if not isinstance(found, torch.Tensor):
        got = f"a {type(found).__name__}"
    elif found.layout is not torch.strided or found.is_complex():
        got = f"one of {found.layout}, {found.dtype}"
    elif found.ndim < axes or len(found) != count or not found.numel():
        got = f"one of shape {tuple(found.shape)} for {count} samples"
    else:
        return found
    raise SettingError(
        f"{what} must give a tensor of real numbers with one row a sample, got {got}: give another part, such as a "
        "module inside."
    )


def check_network(network: torch.nn.Module, parts: Sequence[Part]) -> None:
    """Refuse a network without finite numbers, and parts that have no derivatives, or that cannot be replaced."""
    check_not_lazy(network)
    for name, tensor in (*network.named_parameters(), *network.named_buffers()):
        if tensor.is_meta:
            raise SettingError(f"{name!r} of the network is on the meta device, without numbers: load them before.")
        if isinstance(tensor, torch.nn.Parameter) and not tensor.isfinite().all():
            raise SettingError(
                f"{name!r} of the network has entries that are NaN or infinite: load numbers that are finite, or train "
                "it with smaller steps."
            )
    for part in parts:
        for one in part.of(network).modules():
            if isinstance(one, torch.jit.ScriptModule):
                has = f"scripted {one.original_name}, which cannot be replaced: compress the network before torch.jit"
            elif type(one).__module__.startswith(QUANTISED):
                has = f"quantised {type(one).__name__}, which has no derivatives: compress the network before that"
            else:
                continue
            raise SettingError(f"The part {part.name!r} has a {has}.")
