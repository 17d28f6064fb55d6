"""What can be changed about a model without the data noticing, for the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unbraid.data.checks import counted

Kind = Literal["straight", "lines", "parallel", "rotating", "open"]
FREELY = 45.0
"""Degrees from which on a direction turns freely: so large an angle is no first-order matter any more."""


@dataclass(frozen=True)
class Freedom:
    """A way, or some ways, in which a model can move while its misfit stays within the noise.

    Attributes
    ----------
    kind
        "straight": a branch is a line, and can look elsewhere; "lines": branches trade lines; both change nothing in
        the canonical form. "parallel": branches along one direction can mix their curves; "rotating": parabolas that go
        into outputs in the same mix can rotate; "open": anything else that the samples do not settle.
    branches
        Those that move, from 0.
    ways
        How many independent combinations of their unknowns can move.
    degrees
        How far the direction of each of them turns, inputs in units of their spread, one standard error of the
        combination that is known least.
    share
        How far their parts of the outputs move, one standard error of that combination, as a share of the outputs'
        spread; infinite where not even exact data would notice.
    """

    kind: Kind
    branches: tuple[int, ...]
    ways: int
    degrees: tuple[float, ...]
    share: float

    @property
    def in_canonical_form(self) -> bool:
        """Whether it is one in the canonical form as well."""
        return self.kind not in ("straight", "lines")

    @property
    def size(self) -> str:
        """How far it goes, in words: 'by 12 and 20 degrees', 'by 20 % of the outputs' spread'."""
        if not np.isfinite(self.share):
            return "without any change at the samples"
        if max(self.degrees) < 1.0:
            return f"by {100.0 * self.share:.2g} % of the outputs' spread within one standard error"
        if min(self.degrees) >= FREELY:
            return "by any angle within the noise"
        angles = listed([f"over {FREELY:g}" if angle >= FREELY else f"{angle:.2g}" for angle in self.degrees])
        return f"by {angles} degrees within one standard error"

    @property
    def words(self) -> str:
        """What can move and how far, in a sentence."""
        who = named(self.branches)
        one = len(self.branches) == 1
        if self.kind == "straight":
            lines, its = ("is a straight line", "its direction") if one else ("are straight lines", "their directions")
            return (
                f"{who} {lines}, and {its} can move, {self.size}, as lines of other branches take up the difference: "
                f"{its} mean{'s' if one else ''} nothing."
            )
        if self.kind == "lines":
            return f"{who} can trade straight lines, in {counted(self.ways, 'way')}, {self.size}."
        if self.kind == "parallel":
            return (
                f"{who} are curves of one input, and can be mixed, in {counted(self.ways, 'way')}, {self.size}: other "
                "mixes are as good."
            )
        if self.kind == "rotating":
            return (
                f"{who} are parabolas that go into outputs in one mix, and can rotate, in {counted(self.ways, 'way')}, "
                f"{self.size}: other directions are as good."
            )
        return f"{who} can change, in {counted(self.ways, 'way')}, {self.size}: other directions or curves are as good."


def named(branches: Sequence[int]) -> str:
    """'Branch 3', 'Branches 1, 2 and 4', of numbers from 0."""
    numbers = [str(j + 1) for j in branches]
    return f"Branch {numbers[0]}" if len(numbers) == 1 else f"Branches {listed(numbers)}"


def listed(parts: Sequence[str]) -> str:
    """'a, b and c'."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
