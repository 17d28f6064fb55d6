r"""Closed formulas of one variable: built from a few elementary functions, differentiated, evaluated with NumPy.

An expression is a number, the variable u, a sum, a product, a whole power, or one of `FUNCTIONS` of an expression.
Every language that a model can be written in knows these few things and no others, so a new form needs no new code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from unbraid.kernels.arrays import Array

NUMBER, VARIABLE, SUM, PRODUCT, POWER = "number", "variable", "sum", "product", "power"
"""The kinds of expressions that are no function."""


@dataclass(frozen=True)
class Expression:
    """A formula of one variable.

    Attributes
    ----------
    kind
        "number", "variable", "sum", "product", "power", or a name in `FUNCTIONS`.
    parts
        What it is made of: two or more terms or factors, the base of a power, the argument of a function.
    number
        The number that it is, or the whole exponent of a power.
    """

    kind: str
    parts: tuple[Expression, ...] = ()
    number: float = 0.0

    def __add__(self, other: Expression | float) -> Expression:
        terms = [one for one in (self, as_expression(other)) if one != ZERO]
        return ZERO if not terms else reduce(lambda a, b: Expression(SUM, (a, b)), terms)

    def __sub__(self, other: Expression | float) -> Expression:
        return self + -1.0 * as_expression(other)

    def __mul__(self, other: Expression | float) -> Expression:
        factors = [self, as_expression(other)]
        if ZERO in factors:
            return ZERO
        if all(one.kind == NUMBER for one in factors):
            return as_expression(factors[0].number * factors[1].number)
        factors = [one for one in factors if one != ONE]
        return ONE if not factors else reduce(lambda a, b: Expression(PRODUCT, (a, b)), factors)

    def __radd__(self, other: float) -> Expression:
        return as_expression(other) + self

    def __rmul__(self, other: float) -> Expression:
        return as_expression(other) * self

    def __rsub__(self, other: float) -> Expression:
        return as_expression(other) - self

    def __pow__(self, exponent: int) -> Expression:
        return ONE if exponent == 0 else self if exponent == 1 else Expression(POWER, (self,), float(exponent))

    def derivative(self) -> Expression:
        """d/du of the expression."""
        if self.kind in (NUMBER, VARIABLE):
            return ONE if self.kind == VARIABLE else ZERO
        if self.kind == SUM:
            return reduce(Expression.__add__, (part.derivative() for part in self.parts))
        if self.kind == PRODUCT:
            left, right = self.parts
            return left.derivative() * right + left * right.derivative()
        (inner,) = self.parts
        exponent = int(self.number)
        outer = exponent * inner ** (exponent - 1) if self.kind == POWER else FUNCTIONS[self.kind].derivative(inner)
        return outer * inner.derivative()

    def at(self, inner: Expression) -> Expression:
        """The expression with another one in place of its variable."""
        if self.kind == VARIABLE:
            return inner
        return Expression(self.kind, tuple(part.at(inner) for part in self.parts), self.number)

    def evaluate(self, u: Array) -> Array:
        """Its values at u, of the shape of u; NaN where it is not defined, and where u is NaN."""
        with np.errstate(all="ignore"):
            return np.where(np.isnan(u), np.nan, self._evaluate(u))

    def _evaluate(self, u: Array) -> Array:
        """The same, or a single number where it is constant."""
        if self.kind == NUMBER:
            return np.asarray(self.number)
        if self.kind == VARIABLE:
            return u
        parts = [part._evaluate(u) for part in self.parts]
        if self.kind == SUM:
            return np.asarray(parts[0] + parts[1])
        if self.kind == PRODUCT:
            return np.asarray(parts[0] * parts[1])
        if self.kind == POWER:
            return np.asarray(whole_power(parts[0], int(self.number)))
        return np.asarray(FUNCTIONS[self.kind].values(parts[0]))


def as_expression(number: Expression | float) -> Expression:
    """A number as an expression; an expression as it is."""
    return number if isinstance(number, Expression) else Expression(NUMBER, number=float(number))


def whole_power(base: Array, exponent: int) -> Array:
    """The power by products alone, as every language can form it."""
    result = reduce(np.multiply, [base] * abs(exponent))
    return np.asarray(result if exponent > 0 else 1.0 / result)


ZERO, ONE = as_expression(0.0), as_expression(1.0)
U = Expression(VARIABLE)
"""The variable."""


def apply(function: str, inner: Expression) -> Expression:
    """A function of `FUNCTIONS` of an expression."""
    return Expression(function, (inner,))


def logistic(t: Array) -> Array:
    """1 / (1 + exp(-t)), without overflow."""
    return np.asarray(0.5 * np.tanh(0.5 * t) + 0.5)


def softplus(t: Array) -> Array:
    """log(1 + exp t), without overflow."""
    return np.asarray(np.maximum(t, 0.0) + np.log1p(np.exp(-np.abs(t))))


def step(t: Array) -> Array:
    """1 where t > 0, else 0; NaN stays NaN."""
    return np.where(np.isnan(t), t, np.greater(t, 0.0))


class Function(NamedTuple):
    """An elementary function: its values, and its derivative as an expression."""

    values: Callable[[Array], Array]
    derivative: Callable[[Expression], Expression]


FUNCTIONS = {
    "exp": Function(np.exp, lambda t: apply("exp", t)),
    "log": Function(np.log, lambda t: t**-1),
    "sqrt": Function(np.sqrt, lambda t: 0.5 * apply("sqrt", t) ** -1),
    "sin": Function(np.sin, lambda t: apply("cos", t)),
    "cos": Function(np.cos, lambda t: -1.0 * apply("sin", t)),
    "tanh": Function(np.tanh, lambda t: 1.0 - apply("tanh", t) ** 2),
    "atan": Function(np.arctan, lambda t: (1.0 + t**2) ** -1),
    "logistic": Function(logistic, lambda t: apply("logistic", t) * apply("logistic", -1.0 * t)),
    "softplus": Function(softplus, lambda t: apply("logistic", t)),
    "abs": Function(np.abs, lambda t: apply("sign", t)),
    "sign": Function(np.sign, lambda _: ZERO),
    "step": Function(step, lambda _: ZERO),
    "rectifier": Function(lambda t: np.maximum(t, 0.0), lambda t: apply("step", t)),
    "saturation": Function(lambda t: np.clip(t, -1.0, 1.0), lambda t: apply("step", 1.0 - apply("abs", t))),
}
"""The elementary functions, by name."""
