"""What goes round in the loop: batches of models, how good they are, how a start ended; and what a solver is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from unbraid.bases import Placement
from unbraid.data.sample_set import SampleSet
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.results.outcome import Event, Status, Trace
from unbraid.solvers.batch import Batch

if TYPE_CHECKING:
    from unbraid.solvers.translate import GivenModel

State = TypeVar("State", bound=Batch)


@dataclass(frozen=True)
class Iterates(Batch):
    """Models in a solver's units, one per start: W0 (B, r, m), W1 (B, n, r), a (B, r, K).

    `a` are coordinates of the branches in the basis as it is placed. There is no bias: where a model has one, it is the
    mean of the residuals, which `translate.finish_run` sets at the end. `reach` (B, r, 2) says how far branches go
    on as polynomials (`FittedBranch.reach`); None: not at all. Steps of solvers forget it.
    """

    W0: Array
    W1: Array
    placement: Placement
    a: Array
    reach: Array | None = None


class Measure(NamedTuple):
    """How good the iterates are, (B,) each: see `Trace`.

    `criterion` is what the best iterate is known by, and what has to come to rest: the objective, where it is None.
    """

    objective: Array
    jacobian_error: Array
    criterion: Array | None = None

    @property
    def judged_by(self) -> Array:
        """The criterion, or the objective where there is none."""
        return self.objective if self.criterion is None else self.criterion


@dataclass(frozen=True)
class Run:
    """One start and how it ended: its best iterate, not the last, as a batch of one.

    A run that is not `finished` was left after the search, because others were better or enough.
    """

    best: Iterates
    objective: float
    status: Status
    trace: Trace
    finished: bool = True


class Solver(Protocol[State]):
    """What the loop needs of a solver. States hold a batch of starts.

    Differences of objectives below `resolution` are rounding errors of its `measure`.
    """

    resolution: ClassVar[float]

    def step(self, state: State) -> tuple[State, list[tuple[int, Event]]]:
        """The next state, and the events with the position in the batch where each happened."""

    def measure(self, state: State) -> Measure:
        """How good the state is."""

    def may_converge(self, state: State) -> BoolArray | bool:
        """Whether a small change now means convergence: the objective has its final form, and a step was made."""

    def iterates(self, state: State) -> Iterates:
        """The models that the state stands for."""


class StartingSolver(Solver[State], Protocol[State]):
    """A solver that can start by itself, at random or at a given model, and finish what it found."""

    @property
    def samples(self) -> SampleSet:
        """The samples that it works on."""

    def random_start(self, rank: int, rngs: Sequence[np.random.Generator]) -> State:
        """One random start per generator."""

    def start_from(self, model: GivenModel, rng: np.random.Generator) -> State:
        """A single start at a given model."""

    def project_model(self, model: GivenModel) -> Iterates:
        """The model nearest to a given one in the basis and its constraints, as a batch of one."""

    def finish(self, run: Run) -> Run:
        """What the loop gave, as a complete model with its objective."""
