"""A decoupled model of a part of a network: samples, coordinates, λ and how many samples are enough.

Everything that is open is chosen by how well the network agrees with the original on inputs that are held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch

from unbraid import methods
from unbraid.bases import Basis, BSpline
from unbraid.bases.constraints import Constraint
from unbraid.data.functions.forms import Form, deed
from unbraid.data.functions.recognition import form_of_batches
from unbraid.data.functions.sampling import differentiable
from unbraid.data.functions.torch_functions import TorchFunction, evaluation_mode
from unbraid.data.problem import Problem
from unbraid.decouple import decouple
from unbraid.errors import DataError, SettingError, shown
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.networks.compressing.comparison import Comparison, compare
from unbraid.networks.compressing.coordinates import Coordinates, Outputs, principal_directions, spread_out_in
from unbraid.networks.compressing.layouts import Layout, OfMaps, OfSamples
from unbraid.networks.compressing.measures import Agreement, outputs_of
from unbraid.networks.compressing.parts import Part
from unbraid.networks.compressing.samples import Activations, Given, collect, look_like_classes
from unbraid.networks.conversion import TRAINABLE
from unbraid.networks.decoupled_module import DecoupledModule
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel
from unbraid.results.outcome import Status
from unbraid.runtime.interrupts import attempt

COUPLINGS = (1.0, 3.0, 10.0, 30.0)
"""λ that are tried while that gains: how much values weigh beside Jacobians."""
FIRST_SAMPLES, MOST_SAMPLES, GAIN = 360, 3000, 0.95
"""How many samples a fit begins with; they are doubled up to so many, while what is lost falls to this share."""
SPREAD, AMONG = 720, 8000
"""So many samples are spread out, being drawn from so many; further ones are drawn evenly."""
SPREAD_DIRECTIONS = 24
"""Directions in which they are."""
BLOCK_ENTRIES = 1 << 22
"""Entries of Jacobians that are computed at once."""
SAME = 1e-3
"""Outputs that differ by a smaller share are the same, in half precision too."""
FEW_SAMPLES = 256
"""Samples whose Jacobians tell which directions matter."""


@dataclass(frozen=True)
class Settings:
    """How parts are fitted, whichever they are: as `compress` was asked."""

    given: Given | None
    outputs: Outputs | None
    basis: Basis
    constraint: Constraint | None
    starts: int
    seed: int
    jobs: int | None
    told: Callable[[str], None]


@dataclass(frozen=True)
class Replacement:
    """A model of a part, the samples X (S, m) that it was fitted to, and how well the network agrees with it.

    `interrupted` says that Ctrl-C has ended the search for it, or for a better one.
    """

    X: Array
    fit: Fit
    coordinates: Coordinates
    agreement: Agreement
    coupling: float
    interrupted: bool

    @property
    def model(self) -> DecoupledModel:
        """The model of what the part is given, and gives."""
        return self.coordinates.model(self.fit.model)

    @property
    def samples(self) -> int:
        """How many samples it was fitted to."""
        return len(self.X)


@dataclass(frozen=True, eq=False)
class PartFitting:
    """How models of a part are fitted, and what they are compared with.

    Attributes
    ----------
    part
        Which it is.
    activations, order
        What the part is given, and the order in which samples are taken.
    function, values, slopes
        The part as a function of samples, with its values and Jacobians.
    comparison
        With the network in which the part is replaced.
    wanted
        Held-out outputs of the user's network, which differs from `comparison.network` once earlier parts are replaced.
    outputs
        What the part's outputs are.
    settings
        Those of every part.
    problems
        The latest problem, by its number of samples: it is fitted with several λ and ranks.
    """

    part: Part
    activations: Activations
    order: IndexArray
    function: OfSamples
    values: Form
    slopes: Form
    comparison: Comparison
    wanted: torch.Tensor
    outputs: Outputs
    settings: Settings
    problems: dict[int, tuple[Coordinates, Problem]] = field(default_factory=dict)

    @classmethod
    def of(cls, network: torch.nn.Module, original: torch.nn.Module, part: Part, X: object, settings: Settings) -> Self:
        """A part of a network that other parts of the original may have been replaced in, as it runs on X."""
        activations = collect(network, part, X, settings.given, np.random.default_rng(settings.seed))
        order = order_of_samples(activations.X, np.random.default_rng([settings.seed, 1]))
        function = OfSamples(part.of(network), activations.layout)
        host = TorchFunction(function, activations.dtype, activations.device)
        what = f"The part {part.name!r}" if part.children else "The network"
        values, slopes = differentiable(what, host, activations.X[order[:FIRST_SAMPLES]])
        if activations.given == "inputs":
            check_function(network, activations.inputs)
        comparison, outputs = compare(network, part, activations, settings.outputs)
        check_comparison(comparison, OfMaps(function, activations.layout))
        other = activations.given == "inputs" and network is not original
        return cls(
            part=part,
            activations=activations,
            order=order,
            function=function,
            values=values,
            slopes=slopes,
            comparison=comparison,
            wanted=outputs_of(original, activations.inputs) if other else comparison.wanted,
            outputs=outputs,
            settings=settings,
        )

    def misses_classes(self) -> bool:
        """Whether outputs are not taken for classes although labels that are no integers may mean some."""
        labels = self.activations.labels
        if labels is None or self.comparison.classes or not self.comparison.whole:
            return False
        return look_like_classes(labels, self.wanted.flatten(1).shape[1])

    def jacobians(self, rows: IndexArray) -> Iterator[Array]:
        """The Jacobians at some of the samples, in blocks (·, n, m)."""
        m, n = self.activations.layout.m, self.activations.layout.n
        length = max(1, BLOCK_ENTRIES // (m * n))
        for first in range(0, len(rows), length):
            some = rows[first : first + length]
            yield self.slopes(self.activations.X[some], some)

    def problem(self, samples: int) -> tuple[Coordinates, Problem]:
        """The first so many samples, in the coordinates that count."""
        if samples not in self.problems:
            rows = self.order[:samples]
            X = self.activations.X[rows]
            F = self.values(X, rows)
            with evaluation_mode(self.function):
                coordinates = Coordinates.of(self.activations.X, F, self.jacobians(rows[:FEW_SAMPLES]), self.outputs)
                problem = coordinates.problem(X, F, self.jacobians(rows))
            self.problems.clear()
            self.problems[samples] = coordinates, problem
        return self.problems[samples]

    def fit(self, rank: int, samples: int, coupling: float, init: Fit | None = None) -> Replacement:
        """A model of so many branches, from so many samples; from starts, or from a fit to the same samples."""
        coordinates, problem = self.problem(samples)
        fit = decouple(
            problem,
            rank,
            basis=self.settings.basis,
            constraint=self.settings.constraint,
            method=methods.default(coupling=coupling),
            starts=self.settings.starts,
            init=None if init is None else init.model,
            rng=self.settings.seed,
            jobs=self.settings.jobs,
        )
        network = self.comparison.replaced(self.module(coordinates.model(fit.model)))
        judged = self.comparison.agreement(network, self.wanted)
        found = Replacement(
            self.activations.X[self.order[:samples]],
            replace(fit, notes=(*fit.notes, directions_of(self.part.name))),
            coordinates,
            judged,
            coupling,
            fit.status is Status.INTERRUPTED,
        )
        self.settings.told(f"rank {rank}, {problem.S} samples, λ = {coupling:g}: {100 * judged.loss:.2f} % lost")
        return found

    def another(
        self, before: Replacement, rank: int, samples: int, coupling: float, init: Fit | None = None
    ) -> Replacement:
        """As `fit`; where Ctrl-C comes before there is one, that of before."""
        work = partial(self.fit, rank, samples, coupling, init)
        return attempt(work, lambda: replace(before, interrupted=True), safe=True)

    def module(self, model: DecoupledModel) -> DecoupledModule:
        """A model as a module in place of the part, of its type and on its device."""
        made = DecoupledModule(model, TRAINABLE, self.activations.layout, self.part.children)
        made.to(device=self.activations.device, dtype=self.activations.dtype)
        return made

    def best_coupling(self, rank: int, samples: int) -> Replacement:
        """The model with the λ that loses least: larger ones are tried, each from the last, until one loses more.

        Where outputs are classes, probabilities would prefer larger λ than decisions do.
        """
        first, *larger = COUPLINGS
        best = last = self.fit(rank, samples, first)
        for coupling in larger:
            if last.interrupted:
                break
            last = self.another(last, rank, samples, coupling, last.fit)
            if last.agreement.loss > best.agreement.loss:
                break
            best = last
        return replace(best, interrupted=last.interrupted)

    def with_more_samples(self, found: Replacement) -> Replacement:
        """The model from so many samples that more of them gain little."""
        most = min(MOST_SAMPLES, len(self.order))
        while 2 * found.samples <= most and not found.interrupted:
            more = self.another(found, found.fit.model.rank, 2 * found.samples, found.coupling)
            if more.interrupted or more.agreement.distance > GAIN * found.agreement.distance:
                return best_of([found, more])
            found = more
        return found


def check_function(network: torch.nn.Module, x: torch.Tensor) -> None:
    """Refuse a network that is no function of its inputs: one that is random, or looks at a whole batch."""
    outputs_of(network, x[:4])
    rows = OfSamples(network, Layout("vectors", tuple(x.shape[1:]), ()))
    form_of_batches("The network", TorchFunction(rows, x.dtype, x.device), x.reshape(len(x), -1).double().cpu().numpy())


def check_comparison(comparison: Comparison, alike: torch.nn.Module) -> None:
    """Refuse a network that gives no numbers, or in which no other module can take the part's place.

    `alike` does what the part does, and is another module: a network may look into the part, or hand it more.
    """
    x, wanted, cause = comparison.inputs, comparison.wanted, None
    if not wanted.isfinite().all():
        raise DataError("What the network gives is NaN or infinite for some inputs: look at them, and at its weights.")
    try:
        found = outputs_of(comparison.replaced(alike), x[:4])
    except DataError as error:
        did, cause = deed(error.__cause__ or error), error
    else:
        if torch.allclose(found, wanted[:4], rtol=SAME, atol=SAME * float(wanted.abs().max())):
            return
        did = "gave other outputs"
    raise SettingError(
        f"The network does not run with another module in place of the part: with one that gives the same, it {did}. "
        "It hands the part more than one tensor, or looks into it: give a module around the part."
    ) from cause


def directions_of(part: str) -> str:
    """What the inputs of the fit of a part are, as a note."""
    return (
        f"Inputs are directions of what {f'part {part!r}' if part else 'the network'} is given, each varying by one, "
        "those first along which the outputs change most; the model of a Compression is in what it is given itself."
    )


def best_of(found: Sequence[Replacement]) -> Replacement:
    """The one that agrees best; it says so if the search for others was interrupted."""
    best = min(found, key=lambda one: one.agreement.distance)
    return replace(best, interrupted=any(one.interrupted for one in found))


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
