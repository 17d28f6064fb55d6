r"""The closed forms that a branch can have: g(u) = a h(b u + c) + d with an elementary h, or a low polynomial.

Such a shape may have a line beside it, a h(b u + c) + d + e u. Where two parameters say the same, one of them is fixed:
for t², say, b = 1, as a b² is all that counts; for exp, c, at any number, as exp(c) goes into a. How simple a form is,
is how few are free. ``tanh`` and ``logistic`` are one form in two spellings: logistic(t) = ½ tanh(½ t) + ½.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unbraid.errors import SettingError, shown
from unbraid.kernels.arrays import Array
from unbraid.results.branches.expressions import ZERO, Expression, U, apply

A, B, C, D, E = range(5)
"""Where the parameters of g(u) = a h(b u + c) + d + e u are; e is there only in forms with a line."""
LINE = " and line"
"""How the names of such forms end."""


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
        Which of its parameters are free: of a shape those of (a, b, c, d, e), of a polynomial the coefficients of u^k.
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
        return self.size if self.h is None else 5 if self.has_line else 4

    @cached_property
    def derivatives(self) -> tuple[Expression, Expression, Expression]:
        """h, h' and h'' of a shape."""
        assert self.h is not None
        slope = self.h.derivative()
        return self.h, slope, slope.derivative()

    @property
    def constant(self) -> int:
        """Where the parameter is that is added to it."""
        return 0 if self.h is None else D

    @property
    def has_line(self) -> bool:
        """Whether a line goes beside its shape."""
        return self.h is not None and E in self.free

    @property
    def shape(self) -> str:
        """Its name without that of the line."""
        return self.name.removesuffix(LINE)


def shape(name: str, h: Expression, free: Sequence[int] = (A, B, C, D)) -> Form:
    """The form a h(b u + c) + d."""
    return Form(name, h, tuple(free))


def powers(name: str, degree: int) -> Form:
    """Polynomials of a degree."""
    return Form(name, None, tuple(range(degree + 1)))


HOMOGENEOUS = (A, C, D)
"""Free parameters where b goes into a, up to its sign."""
WITHOUT_LINE = ("square", "cube", "fourth power", "rectifier", "logistic", "dead zone")
"""Shapes that are another form when a line goes beside them: a polynomial, or one in the list."""
BASIC = (
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
FORMS = {form.name: form for form in BASIC} | {
    form.name + LINE: Form(form.name + LINE, form.h, (*form.free, E))
    for form in BASIC
    if form.h is not None and form.name not in WITHOUT_LINE
}
"""The forms by name."""


@dataclass(frozen=True)
class Formula:
    """A form with its parameters.

    Attributes
    ----------
    form
        The form.
    parameters
        (a, b, c, d), or (a, b, c, d, e), of a shape, the coefficients of 1, u, u², … of a polynomial.

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
        a, b, c, d, *line = self.parameters
        return a * self.form.h.at(b * U + c) + d + sum(line) * U

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
            k = np.arange(self.form.size)
            return np.asarray(np.power.outer(u, k) if derivative == 0 else k * np.power.outer(u, np.maximum(k - 1, 0)))
        a, b, c, *_ = self.parameters
        h, slope, bend = (one.evaluate(b * u + c) for one in self.form.derivatives)
        one, zero = np.ones_like(u), np.zeros_like(u)
        columns = [
            {A: h, B: a * u * slope, C: a * slope, D: one, E: u},
            {A: b * slope, B: a * (slope + b * u * bend), C: a * b * bend, D: zero, E: one},
        ][derivative]
        return np.stack([columns[k] for k in self.form.free], axis=-1)

    def with_slope(self, u: Array) -> tuple[Array, Array]:
        """G and g' at u, without forming their expressions."""
        if self.form.h is None:
            return self.design(u) @ self.parameters, self.design(u, 1) @ self.parameters
        a, b, c, d, *line = self.parameters
        h, slope, _ = self.form.derivatives
        return a * h.evaluate(b * u + c) + d + sum(line) * u, a * b * slope.evaluate(b * u + c) + sum(line)

    def with_free(self, values: Array) -> Formula:
        """The formula with other values (size,) of its free parameters."""
        parameters = list(self.parameters)
        for place, value in zip(self.form.free, values, strict=True):
            parameters[place] = float(value)
        return Formula(self.form, tuple(parameters))

    def without_turns(self) -> Formula:
        """The same function, a sine with b > 0 and c from -π/4 to 3π/4: near 0 for sines, near π/2 for cosines."""
        if self.form.shape != "sine":
            return self
        a, b, c, *rest = self.parameters
        a, b, c = (a, b, c) if b > 0.0 else (-a, -b, -c)
        half_turns = round((c - 0.25 * np.pi) / np.pi)
        return Formula(self.form, (-a if half_turns % 2 else a, b, c - np.pi * half_turns, *rest))

    def shifted(self, by: float) -> Formula:
        """The formula of g(u - by)."""
        if self.form.h is None:
            moved = list(self.parameters)
            for low in range(len(moved) - 1):
                for k in reversed(range(low, len(moved) - 1)):
                    moved[k] -= by * moved[k + 1]
            return Formula(self.form, tuple(moved))
        a, b, c, d, *line = self.parameters
        return Formula(self.form, (a, b, c - b * by, d - sum(line) * by, *line))
