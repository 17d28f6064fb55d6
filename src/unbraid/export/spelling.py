"""Closed formulas in the words of a language: the tree of an expression as a line of a program.

Sums and products are formed in the order of the tree, so that they round as unbraid's own do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from unbraid.export.portable import Univariate
from unbraid.kernels.pieces import Pieces
from unbraid.results.branches.expressions import NUMBER, POWER, PRODUCT, SUM, VARIABLE, Expression

TERM, FACTOR, RAISED, ATOM = range(4)
"""How strongly a text holds together: a sum, a product, a power, a name or a call."""

PIECES, PIECE_SLOPES, CONSTANT = "pieces", "slopes of pieces", "constant"
"""What programs need beside the kinds of expressions: a search for pieces, their slopes, numbers that are NaN where u
is."""


@dataclass(frozen=True)
class Language:
    """What languages say differently.

    Attributes
    ----------
    number
        A number's digits.
    times
        The sign between factors, with its blanks.
    functions
        What the elementary functions are called, where not by their own name.
    power
        A whole power, of the text of its base, which holds together.
    """

    number: Callable[[float], str]
    times: str
    functions: Mapping[str, str]
    power: Callable[[str, int], str]

    def spell(self, expression: Expression) -> str:
        """The expression as a text; its variable is u."""
        return self._spell(expression)[0]

    def _spell(self, expression: Expression) -> tuple[str, int]:
        """The text, and how strongly it holds together."""
        kind, parts = expression.kind, expression.parts
        if kind == VARIABLE:
            return "u", ATOM
        if kind == NUMBER:
            return self.number(expression.number), FACTOR if expression.number < 0.0 else ATOM
        if kind == SUM:
            left, right = self._spell(parts[0])[0], self._within(parts[1], FACTOR)
            return f"{left} - {right[1:]}" if right.startswith("-") else f"{left} + {right}", TERM
        if kind == PRODUCT:
            return self._within(parts[0], FACTOR) + self.times + self._within(parts[1], RAISED), FACTOR
        if kind == POWER:
            return self.power(self._within(parts[0], ATOM), int(expression.number)), RAISED
        return f"{self.functions.get(kind, kind)}({self.spell(parts[0])})", ATOM

    def _within(self, expression: Expression, strength: int) -> str:
        """The text, in brackets where it does not hold together so strongly."""
        text, own = self._spell(expression)
        return text if own >= strength else f"({text})"


def kinds_in(expression: Expression) -> Iterator[str]:
    """The kinds of an expression and all that it is made of."""
    yield expression.kind
    for part in expression.parts:
        yield from kinds_in(part)


def is_constant(expression: Expression) -> bool:
    """Whether an expression does not see its variable."""
    return VARIABLE not in kinds_in(expression)


def needs_of(functions: Sequence[Univariate], slopes: bool = True) -> set[str]:
    """What a program needs to evaluate functions, and their slopes: kinds of expressions, `PIECES` and its siblings."""
    formulas = [
        part
        for one in functions
        if not isinstance(one, Pieces)
        for part in ((one.expression, one.slope) if slopes else (one.expression,))
    ]
    needs = {kind for one in formulas for kind in kinds_in(one)}
    if any(map(is_constant, formulas)):
        needs.add(CONSTANT)
    if any(isinstance(one, Pieces) for one in functions):
        needs |= {PIECES, PIECE_SLOPES} if slopes else {PIECES}
    return needs
