"""What a selection is asked: which settings to try on which samples, checked once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.data.problem import Problem
from unbraid.errors import DataError, SettingError, check_whole, shown
from unbraid.fitting.request import Request, check_problem, check_shared, count_unknowns
from unbraid.methods import Method
from unbraid.selection.validation import Settings
from unbraid.solvers.coupling import Coupling, as_coupling


@dataclass(frozen=True)
class Grid:
    """The values to try, as `select` was given them; None: the default of each."""

    ranks: Iterable[int] | None = None
    dfs: Iterable[int] | None = None
    degrees: Iterable[int] | None = None
    couplings: Iterable[float | Coupling] | None = None


@dataclass(frozen=True)
class Question:
    """Which settings to compare, and how.

    Attributes
    ----------
    ranks
        Ranks to try; None: from 1 upwards, until more bring nothing.
    bases, couplings
        What to try with each of them.
    request
        What all fits have in common; its rank is "auto".
    folds
        In how many parts samples are held out.
    """

    ranks: list[int] | None
    bases: list[Basis]
    couplings: list[Coupling]
    request: Request
    folds: int

    @classmethod
    def of(cls, grid: Grid, request: Request, folds: int = 5) -> Question:
        """The question that a grid of values and a request make up."""
        couplings = [request.method_used.coupling]
        if grid.couplings is not None:
            couplings = [as_coupling(one) for one in as_list("couplings", grid.couplings)]
        ranks = None if grid.ranks is None else as_list("ranks", grid.ranks)
        basis = request.basis_searched if request.basis is None else request.basis
        return cls(ranks, bases_to_try(basis, grid.dfs, grid.degrees), couplings, request, folds)

    @property
    def method(self) -> Method:
        """The method of all fits."""
        return self.request.method_used

    @property
    def constraint(self) -> Constraint | Sequence[Constraint | None] | None:
        """The constraint of all fits."""
        return self.request.constraint

    def settings(self) -> dict[str, object]:
        """What tells this selection from others on the same samples, by name."""
        return {
            "ranks": self.ranks,
            "bases": self.bases,
            "couplings": self.couplings,
            "constraint": self.constraint,
            "method": self.method,
            "folds": self.folds,
            "starts": self.request.starts,
        }

    def check(self, problem: Problem) -> None:
        """Refuse what cannot work with this problem, with advice."""
        check_problem(problem)
        if self.ranks is None:
            check_shared(self.constraint)
        for rank, basis in itertools.product(self.ranks or [1], self.bases):
            replace(self.request, rank=rank, basis=basis).check(problem)

    def candidates(self, problem: Problem) -> list[Settings]:
        """All settings to try on the samples that count, by rank."""
        check_folds(problem, self.folds, self.bases)
        ranks: Iterable[int] = range(1, most_branches(problem, self.folds, self.bases) + 1)
        if self.ranks is not None:
            ranks = sorted(set(self.ranks))
        return [Settings(*one) for one in itertools.product(ranks, self.bases, dict.fromkeys(self.couplings))]


def as_list(name: str, given: Iterable[Any]) -> list[Any]:
    """Values to try as a list of at least one; a sentence that names the argument for anything else."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SettingError(f"{name} must be several values to try, such as a list, got {shown(given)}.")
    values = list(given)
    if not values:
        raise SettingError(f"{name} must have at least one value to try, got none: leave it out for the default.")
    return values


def bases_to_try(basis: Basis, dfs: Iterable[int] | None, degrees: Iterable[int] | None) -> list[Basis]:
    """The basis with every df and every degree that is to be tried."""
    if not isinstance(basis, Basis):
        return [basis]  # refused later, with advice
    changes: list[dict[str, Any]] = [{}]
    for name, values in (("df", dfs), ("degree", degrees)):
        if values is None:
            continue
        if name not in {one.name for one in fields(basis)}:  # type: ignore[arg-type]
            plural = "dfs" if name == "df" else "degrees"
            raise SettingError(f"{basis!r} has no {name} to choose: leave out {plural}, or give another basis.")
        several = as_list("dfs" if name == "df" else "degrees", values)
        changes = [{**change, name: value} for change in changes for value in several]
    return list(dict.fromkeys(replace(basis, **change) for change in changes))  # type: ignore[type-var]


def check_folds(problem: Problem, folds: int, bases: Sequence[Basis]) -> None:
    """Refuse folds that leave too few samples to fit."""
    check_whole("folds", folds, 2)
    if folds > problem.S:
        raise SettingError(f"folds must be at most the number of samples, {problem.S}, got {folds}.")
    left = problem.S - -(-problem.S // folds)
    for basis in bases:
        if basis.size > left:
            raise DataError(
                f"{problem.S} samples in {folds} folds leave {left} to fit, too few for {basis!r}, which has "
                f"{basis.size} coefficients per branch: use a smaller one, more folds, or more samples."
            )


def most_branches(problem: Problem, folds: int, bases: Sequence[Basis]) -> int:
    """The largest rank that the samples can determine with each of the bases: half as many unknowns as numbers."""
    numbers = sum(array.size for array in (problem.F, problem.J) if array is not None) * (folds - 1) / folds
    return max(1, int(numbers / 2 / max(count_unknowns(problem, 1, basis) for basis in bases)))
