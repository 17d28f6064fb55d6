"""What `decouple` was asked for: its arguments, checked once, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Literal, get_args

from unbraid.bases import Basis, BSpline
from unbraid.bases.constraints import Constraint, NonNegative, per_branch
from unbraid.data.checks import counted
from unbraid.data.magnitudes import Magnitudes
from unbraid.data.problem import Problem
from unbraid.errors import DataError, SettingError, check_whole, shown
from unbraid.methods import Method, default
from unbraid.methods.base import Polish
from unbraid.results.model import DecoupledModel

MOST_BRANCHES = 100_000
"""The largest rank that is taken seriously."""
LOSSES = ("squared", "huber")
"""What is accepted as a loss."""
RANKS = 'a whole number of at least 1, or "auto" to have it chosen'
"""What is accepted as a rank."""
Continuing = Literal["auto", "linear", "polynomial"]
"""How branches go on beyond the range of their inputs."""


DEFAULT, UNPOLISHED = default(), default(polish=False)
"""The methods of a request that names none."""

NUMBERS_PER_UNKNOWN = 3
"""How many numbers there are to be for each unknown of a search."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of one call of `decouple`, as they were given; kept with the fit, so that it can be asked again.

    Attributes
    ----------
    rank, basis, constraint, method, polish, starts, init, continuation, compress, max_memory, loss
        As given to `decouple`.
    seed
        `rng` where it was a number; None where it was not, so that only the same generator repeats the fit.
    basis_open
        Whether `basis` was none of the caller's: then the data may ask for more knots, or for another one.
    """

    rank: int | Literal["auto"]
    basis: Basis | None = None
    constraint: Constraint | Sequence[Constraint | None] | None = None
    method: Method | None = None
    polish: bool | None = None
    starts: int = 16
    init: DecoupledModel | None = None
    continuation: Continuing = "auto"
    seed: int | None = None
    compress: bool | None = None
    max_memory: int | float | str | None = None
    loss: Literal["squared", "huber"] = "squared"
    basis_open: bool = False

    def __post_init__(self) -> None:
        whole = isinstance(self.rank, Integral) and not isinstance(self.rank, bool) and self.rank >= 1
        if not whole and not (isinstance(self.rank, str) and self.rank == "auto"):
            raise SettingError(f"rank must be {RANKS}, got {shown(self.rank)}.")
        if whole and self.rank_used > MOST_BRANCHES:
            raise SettingError(f"rank must be at most {MOST_BRANCHES}, got {shown(self.rank)}.")
        if self.method is not None and not isinstance(self.method, Method):
            given = f"the function {self.method.__name__}: call it" if callable(self.method) else shown(self.method)
            raise SettingError(f"method must come from ub.methods, such as ub.methods.default(), got {given}.")
        if self.polish is not None and not isinstance(self.polish, bool):
            raise SettingError(f"polish must be True, False or None, got {shown(self.polish)}.")
        if not (isinstance(self.loss, str) and self.loss in LOSSES):
            raise SettingError(
                f'loss must be "squared", or "huber" where some samples are wild, got {shown(self.loss)}.'
            )
        check_whole("starts", self.starts, 1)
        basis = self.basis_used
        if not isinstance(basis, Basis):
            given = f"the class {basis.__name__}: add parentheses" if isinstance(basis, type) else shown(basis)
            raise SettingError(f"basis must be a basis such as ub.BSpline(df=12), got {given}.")
        if self.init is not None and not isinstance(self.init, DecoupledModel):
            raise SettingError(f"init must be a DecoupledModel, such as fit.model, got a {type(self.init).__name__}.")
        if self.init is not None and self.rank == "auto":
            raise SettingError('init has a rank of its own: give that rank instead of rank="auto", or leave out init.')
        if not isinstance(self.continuation, str) or self.continuation not in get_args(Continuing):
            raise SettingError(
                f"continuation must be 'auto', 'linear' or 'polynomial', got {shown(self.continuation)}."
            )
        self._check_compress()

    def _check_compress(self) -> None:
        """Refuse a wish to compress where the method or a given model does not go with it."""
        if self.compress is not None and not isinstance(self.compress, bool):
            raise SettingError(
                f"compress must be True, False or None, to compress where it pays, got {shown(self.compress)}."
            )
        if self.compress and self.compression_used is False:
            cause = "init is a model of all inputs and outputs"
            if not self.method_used.compressible:
                cause = f"{self.method_used.name} weighs entries of J"
            raise SettingError(f"compress=True is not possible here, because {cause}: leave out compress.")

    @cached_property
    def method_used(self) -> Method:
        """The method that was asked for, or the default one, polished or not."""
        if self.method is None:
            return UNPOLISHED if self.polish is False else DEFAULT
        return replace(self.method, polish=Polish()) if self.polish else self.method

    @property
    def basis_used(self) -> Basis:
        """The basis that was asked for, or the method's own."""
        return self.method_used.basis if self.basis is None else self.basis

    @property
    def basis_searched(self) -> Basis:
        """The basis of the search, and of the polish where there is one."""
        if self.method_used.polish is None:
            return self.basis_used
        asked = self.constraint if isinstance(self.constraint, Sequence) else [self.constraint]
        return self.basis_used.searched(constrained=any(one is not None for one in asked))

    def basis_searched_on(self, problem: Problem) -> Basis:
        """The basis of the search where a problem's numbers are to be several times as many as unknowns.

        Curves of more would go through all numbers, along any direction. It is smaller only where it is none of the
        caller's.
        """
        basis = self.basis_searched
        if not (self.basis_open and isinstance(basis, BSpline)):
            return basis
        most = problem.known.entries // (NUMBERS_PER_UNKNOWN * self.rank_used) - (problem.n + problem.m - 2)
        return replace(basis, df=min(basis.df, max(most, basis.degree)))

    @property
    def chooses_smoothing(self) -> bool:
        """Whether smoothing is chosen from the data, after the polish."""
        return self.method_used.polish is not None and self.basis_used.smoothing_open

    def for_problem(self, problem: Problem) -> Request:
        """What was asked for with a basis that is not too large for the samples, where none was asked for."""
        if self.basis is not None or not isinstance(problem, Problem):
            return self
        heard = problem.S if problem.J is None else 2 * problem.S  # values and slopes of every branch
        return replace(self, basis=self.basis_used.for_samples(heard, problem.S - 1), basis_open=True)

    @property
    def compression_used(self) -> bool | None:
        """Whether Jacobians are compressed; None: where it pays."""
        return self.compress if self.method_used.compressible and self.init is None else False

    @property
    def rank_used(self) -> int:
        """The rank where it was given as a number."""
        assert not isinstance(self.rank, str)
        return int(self.rank)

    @property
    def constraints(self) -> tuple[Constraint | None, ...]:
        """The constraints, one per branch."""
        return per_branch(self.constraint, self.rank_used, self.basis_used)

    @property
    def has_init(self) -> bool:
        """Whether there was a model to start from."""
        return self.init is not None

    def in_sizes(self, sizes: Magnitudes) -> Request:
        """What was asked for, of samples that have been brought to ordinary sizes."""
        if self.init is None or sizes.ordinary:
            return self
        return replace(self, init=self.init.rescaled(-sizes.x, -sizes.f))

    def check(self, problem: Problem) -> None:
        """Refuse what cannot work with this problem, with advice; where the rank is open, with a single branch."""
        check_problem(problem)
        if self.rank == "auto":
            check_shared(self.constraint)
            return replace(self, rank=1).check(problem)
        method, basis, constraints = self.method_used, self.basis_used, self.constraints
        check_samples(problem, method)
        if self.loss != "squared" and method.polish is None and not method.weighted:
            raise SettingError(
                f'loss="huber" gives samples weights, which the sweeps of {method.name} do not know: add polish=True, '
                "whose Gauss–Newton steps do, or leave out the method."
            )
        if basis.size > problem.S:
            turned = problem.m > problem.S and problem.input_names is None  # columns with names are no samples
            layout = " If X has its samples last, use Problem.from_paper_layout." if turned else ""
            raise DataError(
                f"{counted(problem.S, 'sample is', 'samples are')} too few for {basis!r}, which has {basis.size} "
                f"coefficients per branch: lower its size, or give at least {basis.size} samples.{layout}"
            )
        if problem.F is None and any(isinstance(one, NonNegative) for one in constraints):
            raise SettingError(
                "NonNegative needs values F: Jacobians alone leave the branches' constants open, "
                "so any branch can be made nonnegative by adding one."
            )
        init, rank = self.init, self.rank_used
        if init is not None and (init.rank, init.m, init.n) != (rank, problem.m, problem.n):
            raise SettingError(
                f"init must have rank {rank}, {problem.m} inputs and {problem.n} outputs, got {shown(init)}."
            )

    def settings(self) -> dict[str, object]:
        """What tells this fit from others on the same samples, by name."""
        return {
            "rank": self.rank,
            "basis": self.basis_used,
            "basis_open": self.basis_open or self.basis is None,
            "constraint": self.constraint,
            "method": self.method_used,
            "starts": self.starts,
            "init": self.init,
            "continuation": self.continuation,
            "compress": self.compression_used,
            "loss": self.loss,
        }


def seed_of(rng: object) -> int | None:
    """The seed that `rng` is, if it is a whole number; None where only the same generator repeats a fit."""
    return int(rng) if isinstance(rng, Integral) else None


def count_unknowns(problem: Problem, rank: int, basis: Basis) -> int:
    """How many numbers a model has, beside its bias and what scaling leaves open."""
    return rank * (problem.n + problem.m - 1 + basis.size - 1)


def check_problem(problem: object) -> None:
    """Refuse what is no problem."""
    if not isinstance(problem, Problem):
        raise SettingError(f"problem must be an unbraid.Problem, got {type(problem).__name__}: use Problem(X, F, J).")


def check_shared(constraint: object) -> None:
    """Refuse a list of constraints, one per branch, where the rank is open."""
    if constraint is not None and not isinstance(constraint, Constraint | type) and isinstance(constraint, Sequence):
        raise SettingError(
            f"The rank is to be found, so constraint must be one for all branches, got {len(constraint)}: "
            f"give the rank, {len(constraint)}, with these."
        )


def check_samples(problem: Problem, method: Method) -> None:
    """Refuse samples that the sweeps of a method cannot use where no polish follows."""
    if method.polish is not None:
        return
    if problem.J is None:
        raise DataError(
            "This problem has values F only, and the sweeps of this method work on Jacobians: give J (S, n, m) as "
            "well, or let Problem.from_function(f, X) compute it, or fit the values with polish=True."
        )
    if not (problem.complete and (problem.weights is None or method.weighted)):
        lacking = "gaps" if not problem.complete else "weights"
        raise DataError(
            f"This problem has {lacking}, which the sweeps of {method.name} do not know: add polish=True, whose "
            "Gauss–Newton steps do, or leave out the method."
        )
