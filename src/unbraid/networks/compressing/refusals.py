"""How networks are called, and what is said where they fail."""

from __future__ import annotations

from typing import Any

import torch

from unbraid.data.functions.forms import deed
from unbraid.data.functions.torch_functions import check_not_lazy
from unbraid.errors import DataError, SettingError, UnbraidError

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


def check_output(found: Any, count: int) -> torch.Tensor:
    """What a network gives for so many samples; refused if it is not one tensor of real numbers, a row a sample."""
    if not isinstance(found, torch.Tensor) or found.layout is not torch.strided or found.is_complex():
        kind = f"a tensor of {found.layout}, {found.dtype}" if isinstance(found, torch.Tensor) else type(found).__name__
        raise SettingError(f"The network must give one tensor of real numbers, got {kind}: compress a module inside.")
    if found.ndim == 0 or len(found) != count or not found.numel():
        raise SettingError(
            f"The network must give one row a sample, got shape {tuple(found.shape)} for {count} samples: compress a "
            "module inside."
        )
    return found


def check_network(network: torch.nn.Module) -> None:
    """Refuse a network without numbers, or with such that nothing can be computed with."""
    check_not_lazy(network)
    for name, tensor in (*network.named_parameters(), *network.named_buffers()):
        if tensor.is_meta:
            raise SettingError(f"{name!r} of the network is on the meta device, without numbers: load them before.")
    for name, parameter in network.named_parameters():
        if not parameter.isfinite().all():
            raise SettingError(
                f"{name!r} of the network has entries that are NaN or infinite: load numbers that are finite, or train "
                "it with smaller steps."
            )


def check_modules(part: torch.nn.Module, name: str) -> None:
    """Refuse a part of modules that have no derivatives, or that cannot be replaced."""
    for one in part.modules():
        if isinstance(one, torch.jit.ScriptModule):
            raise SettingError(
                f"The part {name!r} has a scripted {one.original_name}, which cannot be replaced: compress the network "
                "before torch.jit."
            )
        if type(one).__module__.startswith(QUANTISED):
            raise SettingError(
                f"The part {name!r} has a quantised {type(one).__name__}, which has no derivatives: compress the "
                "network before it is quantised."
            )
