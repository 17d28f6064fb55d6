"""Functions of torch tensors, and networks: Jacobians by `torch.func`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unbraid.data.functions.hosts import Function, Numbers, quiet, refuse_none
from unbraid.errors import DataError


@dataclass(frozen=True)
class TorchFunction:
    """A function of tensors of one type on one device (None: torch's default). Networks are in evaluation mode."""

    f: Function
    dtype: Any
    device: Any = None

    @property
    def takes(self) -> str:  # noqa: D102
        return f"torch tensors of {str(self.dtype).removeprefix('torch.')}"

    @property
    def resolution(self) -> float:
        """That of its type, which NumPy may not have."""
        return float(torch.finfo(self.dtype).eps) if self.dtype.is_floating_point else 0.0

    def __call__(self, x: Numbers) -> Numbers:  # noqa: D102
        with evaluation_mode(self.f):
            return as_numpy(self.as_tensor(self.f(self.tensor(x))))

    def jacobians(self, batched: bool) -> Callable[[Numbers], Numbers]:
        """By one vectorised transform of all points; by plain autograd point after point if f does not allow that."""

        def of_a_point(x: Any) -> Any:  # of a copy: f may write to what it is given
            return self.as_tensor(self.f((x[None] if batched else x).clone())).reshape(-1)

        def at_once(x: Any) -> Any:
            n, m = of_a_point(x[0]).numel(), x.shape[1]
            transform = torch.func.jacfwd if m <= n else torch.func.jacrev  # m passes forwards, or n backwards
            return torch.func.vmap(transform(of_a_point))(x)

        def one_by_one(x: Any) -> Any:
            return torch.stack([torch.autograd.functional.jacobian(of_a_point, one) for one in x])

        def jacobians(points: Numbers) -> Numbers:
            x = self.tensor(points)
            with evaluation_mode(self.f):
                try:
                    with quiet(), torch.no_grad():  # of the parameters; the transform has gradients of its own
                        found = at_once(x)
                        of_a_point(x[0])  # what modules keep of a call is now of a plain one, not of the transform
                        return as_numpy(found)
                except Exception:  # such as an `if` on a value, which has no one answer for many points
                    return as_numpy(one_by_one(x))

        return jacobians

    def tensor(self, x: Numbers) -> Any:
        """A new tensor of the function's type on its device."""
        return torch.tensor(np.asarray(x), dtype=self.dtype, device=self.device)

    def as_tensor(self, given: Any) -> Any:
        """What f returned as one tensor: lists are stacked, and numbers among them are as precise as f is."""
        if isinstance(given, list | tuple):
            return torch.stack([self.as_tensor(one) for one in given])
        refuse_none(given)
        if isinstance(given, float):
            return torch.tensor(given, dtype=self.dtype, device=self.device)
        return given if isinstance(given, torch.Tensor) else torch.as_tensor(given)


def hosts(f: Function) -> Iterator[TorchFunction]:
    """A function of tensors of the type and on the device of its parameters; float64, then float32, without any."""
    network = network_of(f)
    if network is not None:
        check_not_lazy(network)
        for parameter in (*network.parameters(), *network.buffers()):
            if parameter.is_floating_point():
                yield TorchFunction(f, parameter.dtype, parameter.device)
                return
    yield TorchFunction(f, torch.float64)
    yield TorchFunction(f, torch.float32)


def check_not_lazy(network: Any) -> None:
    """Refuse a network that does not know its shapes yet: the first call would decide on them."""
    for name, tensor in (*network.named_parameters(), *network.named_buffers()):
        if torch.nn.parameter.is_lazy(tensor):
            raise DataError(f"{name!r} of the network is lazy, without a shape: call the network on some inputs first.")


def network_of(f: Function) -> Any:
    """The network that f is, or is a method of; else None."""
    for thing in (f, getattr(f, "__self__", None)):
        if isinstance(thing, torch.nn.Module):
            return thing
    return None


@contextmanager
def evaluation_mode(f: Function) -> Iterator[None]:
    """Dropout and batch norm as they are used after training; all parts of the network are put back as they were.

    So are their attributes: pruning, weight norm by hooks and some modules of users keep tensors of each call.
    """
    network = network_of(f)
    if network is None:
        yield
        return
    before = [
        (part, part.training, {name: copy(own) if name == "_buffers" else own for name, own in vars(part).items()})
        for part in network.modules()
    ]
    mode = network.training
    switched = any(training for _, training, _ in before)
    if switched:
        network.eval()
    try:
        yield
    finally:
        if switched:
            network.train(mode)
        for part, training, attributes in before:
            own = vars(part)
            for name in own.keys() - attributes.keys():
                del own[name]
            own.update(attributes)
            part.training = training


def as_numpy(tensor: Any) -> Numbers:
    """A copy without history, of the same type where NumPy has it."""
    tensor = tensor.detach().cpu()
    return np.array((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy())
