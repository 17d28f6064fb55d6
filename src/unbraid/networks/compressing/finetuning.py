"""A network with decoupled modules, trained on: to agree with the original, or for its task."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from unbraid.bases.projection import Projection
from unbraid.data.functions.forms import deed
from unbraid.data.functions.torch_functions import evaluation_mode
from unbraid.errors import DataError, SettingError, UnbraidError, shown
from unbraid.networks.compressing.measures import divergence
from unbraid.networks.compressing.parts import device_and_type
from unbraid.networks.compressing.refusals import run
from unbraid.networks.compressing.samples import (
    BATCH,
    Examples,
    as_batch,
    as_batches,
    as_pair,
    check_classes,
    placed,
    read,
)
from unbraid.networks.decoupled_module import DecoupledModule
from unbraid.results.branch import FittedBranch

Loss = Literal["distil", "task"] | Callable[[Any, Any], Any]
Trained = Literal["all", "module"]
STEP, HELD_OUT, MOST_HELD = 128, 0.1, 5_000
"""Samples of a step, where data are arrays; the share of all that is held out, and how many at most."""
RATE = 1e-3
"""The first learning rate of Adam, which falls to zero along a cosine after the first epoch."""
RELATIVE = 3.0
"""Times the rate and a parameter's root mean square: the first learning rate of what decoupled modules are made of."""


@dataclass(frozen=True)
class Data:
    """Batches to train on, anew for every epoch, and some that are held out."""

    batches: Callable[[], Iterable[Any]]
    held: list[Examples]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches())


def prepare(data: object, held_out: object, rng: np.random.Generator, otherwise: Examples | None) -> Data:
    """Data for training: arrays and data sets are split, of other loaders `otherwise` is held out."""
    pair = as_pair(data)
    if pair is not None:
        order = torch.as_tensor(rng.permutation(len(pair.x)))
        count = min(MOST_HELD, max(1, int(HELD_OUT * len(order)))) if held_out is None else 0
        held = [pair.some(some) for some in order[:count].split(BATCH)]
        rest = order[count:]

        def shuffled() -> Iterator[Examples]:
            for some in rest[torch.as_tensor(rng.permutation(len(rest)))].split(STEP):
                if len(some) > 1 or len(rest) == 1:  # of one batch norm makes nothing
                    yield pair.some(some)

        return Data(shuffled, held if held_out is None else list(as_batches("held_out", held_out)))
    if not isinstance(data, Iterable):
        raise DataError(f"Training needs arrays (X, y), or a loader of batches, got {shown(data)}.")
    loader: Any = data
    if held_out is not None:
        return Data(lambda: read(loader), list(as_batches("held_out", held_out)))
    if isinstance(loader, torch.utils.data.DataLoader) and draws_evenly(loader):
        size = len(loader.dataset)
        count = min(MOST_HELD, max(1, int(HELD_OUT * size)))
        generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
        held, kept = torch.utils.data.random_split(loader.dataset, [count, size - count], generator)
        own = {
            "batch_size": loader.batch_size or STEP,
            "collate_fn": loader.collate_fn,
            "num_workers": loader.num_workers,
        }
        alone = len(kept) % own["batch_size"] == 1 < len(kept)  # of a last one batch norm makes nothing
        last = {"drop_last": loader.drop_last or alone}
        training = torch.utils.data.DataLoader(kept, shuffle=True, generator=generator, **own, **last)
        return Data(lambda: read(training), list(as_batches("data", torch.utils.data.DataLoader(held, **own))))
    if otherwise is None:
        raise DataError("Nothing is held out of this loader, for compress was given activations: give held_out=(X, y).")
    return Data(lambda: read(loader), [otherwise])


def draws_evenly(loader: Any) -> bool:
    """Whether a loader goes through a data set that has a length, in its order or at random, with no sampler else."""
    kinds = (torch.utils.data.RandomSampler, torch.utils.data.SequentialSampler)
    return hasattr(loader.dataset, "__len__") and isinstance(getattr(loader, "sampler", None), kinds)


@dataclass(frozen=True)
class Objective:
    """What training minimises, for a network and the original one."""

    original: torch.nn.Module
    loss: Loss
    classes: bool
    scale: float

    def __call__(self, network: torch.nn.Module, batch: Examples) -> torch.Tensor:
        """The mean loss of a batch."""
        found = run(network, batch.x)
        if callable(self.loss):
            return one_number(self.loss(found, batch.y))
        if self.loss == "task":
            if batch.y is None:
                raise DataError('loss="task" needs labels: give (X, y), or a loader of (x, y); or loss="distil".')
            if self.classes:
                check_classes(batch.y, found.shape[1])
                return torch.nn.functional.cross_entropy(found, batch.y)
            wanted = batch.y.reshape(len(found), -1).to(found)
            return torch.nn.functional.mse_loss(found.flatten(1), wanted) / self.scale
        with evaluation_mode(self.original), torch.no_grad():
            wanted = run(self.original, batch.x)
        if self.classes:
            return divergence(found.flatten(1), wanted.flatten(1))
        return torch.nn.functional.mse_loss(found, wanted) / self.scale


def one_number(loss: object) -> torch.Tensor:
    """What a loss has given; refused if it is no single number."""
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or loss.is_complex():
        given = f"shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else shown(loss)
        raise SettingError(f"loss must give a tensor of one number, a mean over the batch, got {given}.")
    return loss.reshape(())


class Feasible:
    """Keeps coordinates a = T z of branches within constraints: entries of z that must not be negative become 0."""

    def __init__(self, module: DecoupledModule, constraints: tuple[Any, ...]) -> None:
        self.module, self.cones = module, []
        for j, (branch, constraint) in enumerate(zip(module._model.branches, constraints, strict=True)):
            if constraint is not None and isinstance(branch, FittedBranch):
                K, projection = len(branch.coordinates), Projection.onto((constraint,))
                T = projection.shape_matrices(branch.placement.select((None, None)), 1, 1, K)[0, 0]
                bounded = torch.as_tensor(projection.bounded(K)[0])
                inverse = torch.as_tensor(np.linalg.inv(T))
                self.cones.append((slice(module._ends[j], module._ends[j + 1]), torch.as_tensor(T), inverse, bounded))

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def keep(self) -> None:
        """Move coordinates that have left."""
        for where, T, inverse, bounded in self.cones:
            a = self.module.coefficients[where]
            z = inverse @ a.double().cpu()
            if bool((z[bounded] < 0.0).any()):
                z[bounded] = z[bounded].clamp(min=0.0)
                a.copy_((T @ z).to(a))


def train(
    network: torch.nn.Module,
    objective: Objective,
    data: Data,
    feasible: list[Feasible],
    *,
    epochs: int,
    what: Trained,
    rate: float,
    patience: int | None,
    callback: Callable[[int, float], None] | None,
    without: torch.Tensor | None = None,
) -> list[float]:
    """Train a network in place; the losses on what is held out, before and after each epoch. The best state is kept.

    Inputs that are among those of `without` are not trained on.
    """
    device, dtype = device_and_type(network)
    left_out = set() if without is None else set(map(bytes, as_rows(without)))

    def ready(given: Any) -> Examples:
        x, y = placed(as_batch(given), device, dtype)
        return Examples(x, None if y is None else y.to(device, dtype if y.is_floating_point() else torch.long))

    def held() -> float:
        with evaluation_mode(network), torch.no_grad():
            several = [ready(one) for one in data.held]
            total = sum(float(objective(network, one)) * len(one.x) for one in several)
            return total / max(sum(len(one.x) for one in several), 1)

    optimiser = torch.optim.Adam(parameter_groups(network, what, rate))
    rates = [group["lr"] for group in optimiser.param_groups]
    if not any(len(one.x) for one in data.held):
        raise DataError("Nothing is held out, by which training could tell when to stop: give held_out some samples.")
    try:
        losses = [held()]
    except UnbraidError:
        raise
    except Exception as error:
        raise DataError(f"These data and this loss do not suit the network: it {deed(error)}.") from error
    before_training = best = copy.deepcopy(network.state_dict())
    modes = {module: module.training for module in network.modules()}
    waited = steps = 0
    try:
        for epoch in range(epochs):
            network.train(what == "all")
            before, steps = steps, 0
            for given in data:
                batch = leave_out(ready(given), left_out)
                if not len(batch.x):
                    continue
                done = epoch + min(steps / before, 1.0) if before else epoch  # how long the first is nobody knows
                for group, first in zip(optimiser.param_groups, rates, strict=True):
                    group["lr"] = first * 0.5 * (1.0 + math.cos(math.pi * done / epochs))
                steps += 1
                optimiser.zero_grad()
                loss = objective(network, batch)
                if not loss.requires_grad:
                    raise SettingError("loss has no gradient: compute it from the outputs with torch, without detach.")
                loss.backward()
                if not torch.isfinite(loss):
                    raise DataError("The loss is NaN or infinite: train with smaller steps, such as rate=1e-4.")
                optimiser.step()
                for one in feasible:
                    one.keep()
            if not steps:
                raise DataError(f"Epoch {epoch + 1} has no batches: give data that can be gone through again.")
            losses.append(held())
            if losses[-1] < min(losses[:-1]):
                best, waited = copy.deepcopy(network.state_dict()), 0
            else:
                waited += 1
            if callback is not None:
                callback(epoch + 1, losses[-1])
            if patience is not None and waited > patience:
                break
    except KeyboardInterrupt:
        pass  # with the best so far
    except BaseException:
        best = before_training
        raise
    finally:
        network.load_state_dict(best)
        network.zero_grad()
        for module, mode in modes.items():
            module.training = mode
    return losses


def parameter_groups(network: torch.nn.Module, what: Trained, rate: float) -> list[dict[str, Any]]:
    """The parameters to train, with their first learning rates.

    Those of a decoupled module are in the units of what was fitted, weights of tens beside others of hundredths, and
    Adam's steps are all of one size: so their rates are relative to the size of each.
    """
    groups: list[dict[str, Any]] = []
    known: set[int] = set()
    for module in network.modules():
        own = [one for one in module.parameters(recurse=False) if id(one) not in known]  # some are shared
        known.update(map(id, own))
        if isinstance(module, DecoupledModule):
            sizes = [float(one.detach().double().square().mean().sqrt()) if one.numel() else 0.0 for one in own]
            groups += [
                {"params": [one], "lr": rate * (RELATIVE * size or 1.0)} for one, size in zip(own, sizes, strict=True)
            ]
        elif own and what == "all":
            groups.append({"params": own, "lr": rate})
    return groups


def as_rows(x: torch.Tensor) -> Any:
    """Inputs as rows of bytes, by which they are known."""
    return x.detach().flatten(1).cpu().contiguous().view(torch.uint8).numpy()


def leave_out(batch: Examples, known: set[bytes]) -> Examples:
    """A batch without inputs that are known; of a single one that is left batch norm makes nothing, so none is."""
    if not known:
        return batch
    kept = [k for k, row in enumerate(as_rows(batch.x)) if bytes(row) not in known]
    if len(kept) == len(batch.x):
        return batch
    return batch.some(kept if len(kept) > 1 else [])


def check_loss(loss: object) -> None:
    """Raise an error where a loss is none."""
    if not callable(loss) and loss not in ("distil", "task"):
        raise SettingError(f'loss must be "distil", "task" or a function of (outputs, labels), got {shown(loss)}.')
