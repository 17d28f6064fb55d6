"""What a network costs, and how well another agrees with it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch

from unbraid.data.functions.torch_functions import evaluation_mode
from unbraid.networks.compressing.parts import count_numbers
from unbraid.networks.compressing.refusals import check_output, run
from unbraid.networks.decoupled_module import DecoupledModule

REPEATED, LEAST = 5, 0.02
"""Latency is the least of so many measurements, each of so many seconds at least."""
BATCHES = (1, 256)
"""How many inputs come at once where latency is measured."""


@dataclass(frozen=True)
class Agreement:
    """How well a network does what the original does on held-out inputs.

    Attributes
    ----------
    classes
        The share of inputs for which the largest output is the same; None where outputs are no classes.
    off
        The root mean square difference of the outputs, over their spread; of logits less what they share.
    right
        The share of inputs whose decision is their label; None without labels.
    distance
        Kullback and Leibler's between what softmax makes of the outputs, on the mean, or `off`². It has less noise than
        shares, and says whether more samples gain.
    """

    classes: float | None
    off: float
    right: float | None
    distance: float

    @property
    def loss(self) -> float:
        """What is lost: the share of decisions that differ, or of the outputs' variance that is not explained."""
        return self.off**2 if self.classes is None else 1.0 - self.classes


def agreement(found: torch.Tensor, wanted: torch.Tensor, classes: bool, labels: torch.Tensor | None) -> Agreement:
    """How well outputs (S, n) agree with those of the original."""
    found, wanted = found.flatten(1).double(), wanted.flatten(1).double()
    same = float((found.argmax(1) == wanted.argmax(1)).double().mean()) if classes else None
    right = None
    if labels is not None and classes:
        right = float((found.argmax(1) == labels.to(found.device)).double().mean())
    off, spread = found - wanted, wanted - wanted.mean(0)
    if classes:
        off, spread = (one - one.mean(1, keepdim=True) for one in (off, spread))
    relative = float((off.square().sum() / spread.square().sum().clamp(min=1e-300)).sqrt())
    distance = float(divergence(found, wanted)) if classes else relative**2
    return Agreement(same, relative, right, distance)


def divergence(found: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Kullback and Leibler's divergence of softmax(found) from softmax(wanted), mean over samples."""
    log_found, log_wanted = torch.log_softmax(found, 1), torch.log_softmax(wanted, 1)
    return (log_wanted.exp() * (log_wanted - log_found)).sum(1).mean()


def outputs_of(network: torch.nn.Module, X: torch.Tensor, batch: int = 512) -> torch.Tensor:
    """The outputs of a network, as it is used after training."""
    with evaluation_mode(network), torch.no_grad():
        return torch.cat([check_output("The network", run(network, some), len(some)) for some in X.split(batch)])


def multiplications(network: torch.nn.Module, X: torch.Tensor) -> int:
    """How many multiplications of weights one input takes: of linear maps, convolutions, and decoupled modules."""
    total = 0
    handles = []

    def count(module: Any, _: Any, out: Any) -> None:
        nonlocal total
        if isinstance(module, DecoupledModule):
            r, m = module.W0.shape
            total += out.numel() // len(module.bias) * (r * m + module.W1.numel() + r * terms(module))
        elif isinstance(module, torch.nn.Linear):
            total += out[..., 0].numel() * module.weight.numel()
        else:
            total += out.numel() * module.weight[0].numel()

    kinds = (DecoupledModule, torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
    for module in network.modules():
        if isinstance(module, kinds):
            handles.append(module.register_forward_hook(count))
    try:
        outputs_of(network, X[:1])
    finally:
        for handle in handles:
            handle.remove()
    return total


def terms(module: DecoupledModule) -> int:
    """How many multiplications a branch takes: one a power of its pieces."""
    return 4 if module.pieces is None else int(module.pieces.powers.shape[-1])


def latency(network: torch.nn.Module, X: torch.Tensor, batch: int) -> float:
    """Seconds for a batch, the least of several measurements."""
    some = X[torch.arange(batch) % len(X)]  # a copy, to which modules may write
    with evaluation_mode(network), torch.no_grad():
        network(some)
        best = float("inf")
        for _ in range(REPEATED):
            times, taken, began = 0, 0.0, time.perf_counter()
            while taken < LEAST:
                network(some)
                if some.is_cuda:
                    torch.cuda.synchronize()
                times, taken = times + 1, time.perf_counter() - began
            best = min(best, taken / times)
    return best


@dataclass(frozen=True)
class Cost:
    """Numbers and multiplications of a network, and seconds by how many inputs come at once."""

    numbers: int
    multiplications: int
    seconds: dict[int, float]

    @classmethod
    def of(cls, network: torch.nn.Module, X: torch.Tensor) -> Cost:
        """What a network costs on inputs X."""
        seconds = {batch: latency(network, X, batch) for batch in BATCHES}
        return cls(count_numbers(network), multiplications(network, X), seconds)
