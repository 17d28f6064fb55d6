r"""The closed forms that a branch can have: g(u) = a h(b u + c) + d with an elementary h, or a low polynomial.

Where two of the four parameters say the same, one of them is fixed: for t², say, b = 1, as a b² is all that counts; for
exp, c = 0, as exp(c) goes into a. Their simplicity is how many are free. ``tanh`` and ``logistic`` are one form in two
spellings: logistic(t) = ½ tanh(½ t) + ½.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unbraid.errors import SettingError, shown
from unbraid.kernels.arrays import Array
from unbraid.results.branches.expressions import ONE, ZERO, Expression, U, apply, as_expression

A, B, C, D = range(4)
"""Where the parameters of g(u) = a h(b u + c) + d are."""


@dataclass(frozen=True)
class Form:
    """A family of closed forms.

    Attributes
    ----------
    name
        What people call it.
    h
        The elementary function of a shape, an expression of t; None for polynomials.
    free
        Which of its parameters are free: of a shape those of (a, b, c, d), of a polynomial the coefficients of u^k.
    """

    name: str
    h: Expression | None
    free: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many parameters are free: the fewer, the simpler."""
        return len(self.free)

    @property
    def count(self) -> int:
        """How many parameters it has, fixed ones among them."""
        return 4 if self.h is not None else self.size


def shape(name: str, h: Expression, free: Sequence[int] = (A, B, C, D)) -> Form:
    """The form a h(b u + c) + d."""
    return Form(name, h, tuple(free))


def powers(name: str, degree: int) -> Form:
    """Polynomials of a degree."""
    return Form(name, None, tuple(range(degree + 1)))


HOMOGENEOUS = (A, C, D)
"""Free parameters where b goes into a, up to its sign."""
FORMS = {
    form.name: form
    for form in (
        powers("constant", 0),
        powers("line", 1),
        shape("square", U**2, HOMOGENEOUS),
        shape("cube", U**3, HOMOGENEOUS),
        shape("fourth power", U**4, HOMOGENEOUS),
        shape("absolute value", apply("abs", U), HOMOGENEOUS),
        shape("rectifier", apply("rectifier", U), HOMOGENEOUS),
        shape("square root", apply("sqrt", U), HOMOGENEOUS),
        shape("reciprocal", U**-1, HOMOGENEOUS),
        shape("logarithm", apply("log", U), HOMOGENEOUS),
        shape("exponential", apply("exp", U), (A, B, D)),
        shape("sine", apply("sin", U)),
        shape("tanh", apply("tanh", U)),
        shape("logistic", apply("logistic", U)),
        shape("arctangent", apply("atan", U)),
        shape("Gaussian", apply("exp", -1.0 * U**2)),
        shape("softplus", apply("softplus", U)),
        shape("saturation", apply("saturation", U)),
        shape("dead zone", U - apply("saturation", U)),
        powers("cubic polynomial", 3),
        powers("quartic polynomial", 4),
        powers("quintic polynomial", 5),
    )
}
"""The forms by name, the simplest first."""


@dataclass(frozen=True)
class Formula:
    """A form with its parameters.

    Attributes
    ----------
    form
        The form.
    parameters
        (a, b, c, d) of a shape, the coefficients of 1, u, u², … of a polynomial.

    Examples
    --------
    >>> import numpy as np
    >>> Formula.of("sine", (2.0, 1.0, 0.0, 0.5))(np.array([0.0, np.pi / 2]))
    array([0.5, 2.5])
    """

    form: Form
    parameters: tuple[float, ...]

    @classmethod
    def of(cls, form: str, parameters: Sequence[float]) -> Formula:
        """The formula of a form's name; refused if there is no such form, or it has another number of parameters."""
        if form not in FORMS:
            raise SettingError(f"form must be one of {', '.join(FORMS)}, got {shown(form)}.")
        numbers = tuple(map(float, parameters))
        if len(numbers) != FORMS[form].count or not np.isfinite(numbers).all():
            raise SettingError(f"A {form} has {FORMS[form].count} finite parameters, got {shown(numbers)}.")
        return cls(FORMS[form], numbers)

    @cached_property
    def expression(self) -> Expression:
        """g(u)."""
        if self.form.h is None:
            total = ZERO
            for coefficient in reversed(self.parameters):  # Horner's scheme
                total = total * U + coefficient
            return total
        a, b, c, d = self.parameters
        return a * self.form.h.at(b * U + c) + d

    @cached_property
    def slope(self) -> Expression:
        """g'(u)."""
        return self.expression.derivative()

    @cached_property
    def bend(self) -> Expression:
        """g''(u)."""
        return self.slope.derivative()

    def __call__(self, u: Array) -> Array:
        """g(u), of the shape of u."""
        return self.expression.evaluate(u)

    def design(self, u: Array, derivative: int = 0) -> Array:
        """∂g/∂p of the free parameters p at u (S,), or of the slope g': (S, size)."""
        if self.form.h is None:
            columns = [derived(U**k, derivative).evaluate(u) for k in self.form.free]
            return np.stack(columns, axis=-1)
        a, b, c, _ = self.parameters
        h, inner = self.form.h, b * U + c
        by_inner = h.derivative().at(inner)
        parts = {A: h.at(inner), B: a * U * by_inner, C: a * by_inner, D: ONE}
        return np.stack([derived(parts[k], derivative).evaluate(u) for k in self.form.free], axis=-1)

    def with_free(self, values: Array) -> Formula:
        """The formula with other values (size,) of its free parameters."""
        parameters = list(self.parameters)
        for place, value in zip(self.form.free, values, strict=True):
            parameters[place] = float(value)
        return Formula(self.form, tuple(parameters))

    def without_turns(self) -> Formula:
        """The same formula, a sine without whole turns in its argument: of those, few digits leave nothing."""
        if self.form.name != "sine":
            return self
        a, b, c, d = self.parameters
        return Formula(self.form, (a, b, c - 2.0 * np.pi * round(c / (2.0 * np.pi)), d))

    def shifted(self, by: float) -> Formula:
        """The formula of g(u - by)."""
        if self.form.h is None:
            moved = np.polynomial.Polynomial(self.parameters)(np.polynomial.Polynomial([-by, 1.0]))
            coefficients = np.zeros(len(self.parameters))
            coefficients[: len(moved.coef)] = moved.coef
            return Formula(self.form, tuple(map(float, coefficients)))
        a, b, c, d = self.parameters
        if C not in self.form.free:  # exp(b (u - s)) = exp(-b s) exp(b u)
            return Formula(self.form, (a * float(np.exp(-b * by)), b, c, d))
        return Formula(self.form, (a, b, c - b * by, d))


def derived(expression: Expression, order: int) -> Expression:
    """An expression, differentiated so many times."""
    for _ in range(order):
        expression = expression.derivative()
    return as_expression(expression)
