"""Closed forms that were found for branches, for the user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from unbraid.results.branches.forms import Formula
from unbraid.results.branches.words import formula_text
from unbraid.results.model import DecoupledModel

SHOWN = 3
"""Candidates of a branch that are printed."""


@dataclass(frozen=True)
class Candidate:
    """A closed form for a branch.

    Attributes
    ----------
    formula
        The form and its parameters; call it with an array.
    within
        Whether it describes the branch within what data leave open: the model with it in place of the curve,
        re-optimised, is no worse than the fit, on the samples and on samples left out. Of a model without data: within
        0.3 % of its spread.
    largest, mean
        How far it is from the curve where samples lie, in % of the curve's spread: at most, and root mean square. Where
        it was measured in place of the curve, all parameters re-optimised: how far the outputs are from the fit's.
    held_out
        By how much the expected error on new points differs from the fit's, in percentage points of the worst output,
        with this form beside those of other branches; None where it is not within, or there is no fit with its data.
    score
        Schwarz's criterion: candidates are in its order, less being better, those that are within first, and before
        them the one that the model has.
    domain
        The range of u that samples have.
    """

    formula: Formula
    within: bool
    largest: float
    mean: float
    held_out: float | None
    score: float
    domain: tuple[float, float] = (-inf, inf)

    @property
    def words(self) -> str:
        """'1.43 sin(3.69 u + 1.57) + 0.2', with four digits."""
        return formula_text(self.formula, domain=self.domain)


@dataclass(frozen=True)
class BranchFormulas:
    """The closed forms that come near a branch, the best first.

    Attributes
    ----------
    branch
        The number of the branch, from 0.
    candidates
        In the order of their scores: the simpler form comes first unless data speak for the other.
    unseen
        Why no form was looked for: the branch carries nothing, or has no range to be seen on. None where one was.
    """

    branch: int
    candidates: tuple[Candidate, ...]
    unseen: str | None = None

    @property
    def best(self) -> Candidate | None:
        """The first form that describes the branch within its uncertainty; None where it stays a curve."""
        return next((one for one in self.candidates if one.within), None)

    def chosen(self, threshold: float | None) -> Candidate | None:
        """The form to put in place of the curve: the best, or the first that is as near as the threshold, in %."""
        if self.best is not None or threshold is None:
            return self.best
        return next((one for one in self.candidates if one.mean <= threshold), None)


@dataclass(frozen=True, repr=False)
class Formulas:
    """What `ub.formulas` found: one `BranchFormulas` a branch, in the order of the model's branches.

    Attributes
    ----------
    branches
        What was found for each branch.
    from_data
        Whether data judged the forms; if not, the curves alone did.
    model
        The model with the best forms in place of its curves, re-optimised on the data where there are any; formulas of
        the candidates are those of its u.
    doubt
        That the model does not follow the samples, so that its forms are not theirs. None where there is no sign of it.
    """

    branches: tuple[BranchFormulas, ...]
    from_data: bool
    model: DecoupledModel
    doubt: str | None = None

    def __len__(self) -> int:
        return len(self.branches)

    def __iter__(self) -> Iterator[BranchFormulas]:
        return iter(self.branches)

    def __getitem__(self, branch: int) -> BranchFormulas:
        return self.branches[branch]

    def __repr__(self) -> str:
        lines = ["Formulas of branches, in u = w0·x; how far from the curves, in % of their standard deviation"]
        for one in self.branches:
            lines += describe(one)
        if self.doubt is not None:
            lines.append(f"But {self.doubt}")
        if not self.from_data:
            lines.append("Without data: a form describes a curve if it is within 0.3 % of it.")
        return "\n".join(lines)


def describe(found: BranchFormulas) -> list[str]:
    """The lines about one branch."""
    name = f"g{found.branch + 1}"
    if found.unseen is not None:
        return [f"  {name}  {found.unseen}"]
    if not found.candidates:
        return [f"  {name}  stays a curve; no form comes near"]
    if found.best is None:
        nearest = min(found.candidates, key=lambda one: one.mean)
        near = f"nearest: {nearest.words}, {nearest.mean:.2g} % off, {nearest.largest:.2g} % at most"
        return [f"  {name}  stays a curve; {near}"]
    within = [one for one in found.candidates if one.within]
    lines = []
    for i, one in enumerate(within[:SHOWN]):
        change = "" if one.held_out is None else f"; error on new points {one.held_out:+.2g} percentage points"
        place = name if i == 0 else "or".rjust(len(name))
        off = f"{one.mean:.2g} % off, {one.largest:.2g} % at most"
        lines.append(f"  {place}  {one.words}   ({one.formula.form.name}; {off}{change})")
    if len(within) > SHOWN:
        lines.append(f"      and {len(within) - SHOWN} more")
    return lines
