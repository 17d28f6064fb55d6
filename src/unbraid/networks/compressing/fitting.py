"""A decoupled model of a part of a network: samples, coordinates, λ and how many samples are enough.

Everything that is open is chosen by how well the network agrees with the original on inputs that are held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from unbraid import methods
from unbraid.bases import Basis, BSpline
from unbraid.bases.constraints import Constraint
from unbraid.data.functions.torch_functions import TorchFunction, evaluation_mode
from unbraid.data.problem import Problem
from unbraid.decouple import decouple
from unbraid.errors import DataError, SettingError, shown
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.networks.compressing.coordinates import Coordinates, Outputs, principal_directions, spread_out_in
from unbraid.networks.compressing.layouts import OfMaps, OfSamples
from unbraid.networks.compressing.measures import Agreement, agreement, outputs_of
from unbraid.networks.compressing.parts import Part, device_and_type
from unbraid.networks.compressing.samples import Activations, batches_of
from unbraid.networks.conversion import module
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel

COUPLINGS = (1.0, 3.0)
"""λ that are tried: how much values weigh beside Jacobians."""
FIRST_SAMPLES, MOST_SAMPLES, GAIN = 360, 3000, 0.95
"""How many samples a fit begins with; they are doubled up to so many, while what is lost falls to this share."""
SPREAD, AMONG = 720, 8000
"""So many samples are spread out, being drawn from so many; further ones are drawn evenly."""
SPREAD_DIRECTIONS = 24
"""Directions in which they are."""
BLOCK_ENTRIES = 1 << 22
"""Entries of Jacobians that are computed at once."""
FEW_SAMPLES = 256
"""Samples whose Jacobians tell which directions matter."""


@dataclass(frozen=True)
class Judge:
    """How well a network agrees with the original: on inputs that are held out, with a part replaced.

    `network` runs on them; where samples were given as activations, it is the part itself.
    """

    network: torch.nn.Module
    part: Part
    inputs: torch.Tensor
    labels: torch.Tensor | None
    classes: bool

    @cached_property
    def wanted(self) -> torch.Tensor:
        """The outputs of the original."""
        return outputs_of(self.network, self.inputs)

    def agreement(self, network: torch.nn.Module, wanted: torch.Tensor | None = None) -> Agreement:
        """That of another network; `wanted` are the outputs of the original, where they are not those of this one."""
        wanted = self.wanted if wanted is None else wanted
        return agreement(outputs_of(network, self.inputs), wanted, self.classes, self.labels)

    def on(self, data: object) -> Judge:
        """The same on other inputs, with labels or without."""
        several = list(batches_of(data, self.network, np.random.default_rng(0)))
        if not several:
            raise DataError("There are no inputs to compare networks on.")
        y = [one.y for one in several if one.y is not None]
        labels = torch.cat(y) if len(y) == len(several) else None
        return replace(self, inputs=torch.cat([one.x for one in several]), labels=labels)

    def ends_with_part(self) -> bool:
        """Whether what the part gives is what the network does."""
        caught: list[torch.Tensor] = []
        last = self.part.ends_with(self.network)
        handle = last.register_forward_hook(lambda _, __, out: caught.append(out))
        try:
            out = outputs_of(self.network, self.inputs[:4])
        finally:
            handle.remove()
        return bool(caught and caught[-1].shape == out.shape and torch.equal(caught[-1], out))

    def replaced(self, by: torch.nn.Module) -> torch.nn.Module:
        """The network with another module in place of the part."""
        return self.part.replaced(self.network, by)


@dataclass(frozen=True)
class Replacement:
    """A model of a part, the samples X (S, m) that it was fitted to, and how well the network agrees with it."""

    X: Array
    fit: Fit
    coordinates: Coordinates
    agreement: Agreement
    coupling: float

    @property
    def model(self) -> DecoupledModel:
        """The model of what the part is given, and gives."""
        return self.coordinates.model(self.fit.model)

    @property
    def samples(self) -> int:
        """How many samples it was fitted to."""
        return len(self.X)


@dataclass(frozen=True)
class PartFitting:
    """How models of a part are fitted: settings of `compress`, and samples in the order in which they are taken."""

    name: str
    activations: Activations
    function: OfSamples
    judge: Judge
    order: IndexArray
    outputs: Outputs
    basis: Basis
    constraint: Constraint | None
    starts: int
    seed: int
    jobs: int | None
    told: Callable[[str], None]
    wanted: torch.Tensor

    @property
    def host(self) -> TorchFunction:
        """The part as NumPy sees it."""
        device, dtype = device_and_type(self.function)
        return TorchFunction(self.function, dtype, device)

    def jacobians(self, X: Array) -> Iterator[Array]:
        """The Jacobians at samples (S, m), in blocks (·, n, m)."""
        m, n = self.activations.layout.m, self.activations.layout.n
        compute = self.host.jacobians(True)
        length = max(1, BLOCK_ENTRIES // (m * n))
        for first in range(0, len(X), length):
            yield np.asarray(compute(X[first : first + length]), dtype=np.float64)

    def problem(self, samples: int) -> tuple[Coordinates, Problem]:
        """The first so many samples, in the coordinates that count."""
        X = self.activations.X[self.order[:samples]]
        F = np.asarray(self.host(X), dtype=np.float64)
        with evaluation_mode(self.function):
            coordinates = Coordinates.of(self.activations.X, F, self.jacobians(X[:FEW_SAMPLES]), self.outputs)
            return coordinates, coordinates.problem(X, F, self.jacobians(X))

    def fit(self, rank: int, samples: int, coupling: float) -> Replacement:
        """A model of so many branches, from so many samples."""
        coordinates, problem = self.problem(samples)
        fit = decouple(
            problem,
            rank,
            basis=self.basis,
            constraint=self.constraint,
            method=methods.default(coupling=coupling),
            starts=self.starts,
            rng=self.seed,
            jobs=self.jobs,
        )
        judged = self.judge.agreement(self.judge.replaced(self.module(coordinates.model(fit.model))), self.wanted)
        found = Replacement(self.activations.X[self.order[:samples]], fit, coordinates, judged, coupling)
        self.told(f"rank {rank}, {problem.S} samples, λ = {coupling:g}: {100 * judged.loss:.2f} % lost")
        return found

    def module(self, model: DecoupledModel) -> OfMaps:
        """A model as a module in place of the part."""
        device, dtype = device_and_type(self.function)
        return OfMaps(module(model).to(device=device, dtype=dtype), self.activations.layout)

    def best_coupling(self, rank: int, samples: int) -> Replacement:
        """The model with the λ that agrees best."""
        return min((self.fit(rank, samples, one) for one in COUPLINGS), key=lambda one: one.agreement.distance)

    def enough(self, found: Replacement) -> Replacement:
        """The model from so many samples that more of them gain little."""
        most = min(MOST_SAMPLES, len(self.order))
        while 2 * found.samples <= most:
            more = self.fit(found.fit.model.rank, 2 * found.samples, found.coupling)
            if more.agreement.distance > GAIN * found.agreement.distance:
                return min(found, more, key=lambda one: one.agreement.distance)
            found = more
        return found


def order_of_samples(X: Array, rng: np.random.Generator) -> IndexArray:
    """Samples in the order in which they are taken: first some that are spread out, then others at random."""
    among = rng.permutation(len(X))
    some = among[:AMONG]
    centred = X[some] - X[some].mean(axis=0)
    size, V = principal_directions(centred)
    leading = slice(-SPREAD_DIRECTIONS, None)
    first = some[spread_out_in((centred @ V[:, leading]) / size[leading], SPREAD, rng)]
    others = among[~np.isin(among, first)]
    return np.concatenate([first, others])


def default_basis(basis: Any) -> Basis:
    """What branches are made of: B-splines of six coefficients, if nothing else is asked for."""
    if basis is not None and not isinstance(basis, Basis):
        raise SettingError(f"basis must be a basis such as ub.BSpline(df=12), got {shown(basis)}.")
    return BSpline(6) if basis is None else basis
