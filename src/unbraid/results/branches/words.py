"""The formulas of a model as text: f₁ = 0.64 sin(2 x₁ + 0.3 x₂) + 1.2 g₂(0.5 x₁ − x₂) + 0.1.

What the terms are, `results.branches.terms` says; a `Notation` says how they are written, and other languages have
their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import isfinite, isinf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from unbraid.errors import check_whole
from unbraid.results.branch import Branch, FunctionBranch
from unbraid.results.branches.forms import FORMS, Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.branches.terms import CURVE, EXPONENTS, POWER, Affine, Output, Term, output_terms, to_digits
from unbraid.runtime.text import clean_name, printable

if TYPE_CHECKING:
    from unbraid.results.model import DecoupledModel

SMALLEST, LARGEST = 1e-3, 1e6
"""Numbers from the one to the other have no power of ten."""
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MINUS = "−"


class Notation:
    """How formulas are written: here as plain text.

    Parameters
    ----------
    input_names, output_names
        Names of inputs and outputs, or None: x₁, x₂, … and f₁, f₂, … then.
    digits
        How many significant digits numbers have.
    """

    minus, space = MINUS, " "
    functions = {  # noqa: RUF012 - of every notation its own
        "absolute value": "|{}|",
        "rectifier": "max(0, {})",
        "square root": "sqrt({})",
        "logarithm": "log({})",
        "exponential": "exp({})",
        "sine": "sin({})",
        "cosine": "cos({})",
        "tanh": "tanh({})",
        "logistic": "logistic({})",
        "arctangent": "atan({})",
        "Gaussian": "exp(−{}²)",
        "softplus": "softplus({})",
        "saturation": "clip({}, −1, 1)",
        "dead zone": "deadzone({})",
    }

    def __init__(
        self, input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None, digits: int = 3
    ) -> None:
        self.input_names, self.output_names, self.digits = input_names, output_names, digits

    # What differs from one notation to another

    def name(self, text: str) -> str:
        """A name, in quotes where it is no word."""
        return clean_name(text) if re.fullmatch(r"\w+", text) else f'"{clean_name(text)}"'

    def indexed(self, letter: str, i: int) -> str:
        """A letter with a number, counted from 1."""
        return letter + str(i + 1).translate(SUBSCRIPTS)

    def scientific(self, mantissa: str, exponent: int) -> str:
        """A number with a power of ten."""
        return f"{mantissa}·10{str(exponent).translate(SUPERSCRIPTS)}"

    def bracketed(self, inner: str) -> str:
        """Something in brackets."""
        return f"({inner})"

    def raised(self, base: str, exponent: int) -> str:
        """A power of what is a letter or in brackets."""
        return base + str(exponent).translate(SUPERSCRIPTS)

    def divided(self, number: str, base: str) -> str:
        """A number divided by what is a letter or in brackets."""
        return f"{number} / {base}"

    # What is common to all

    def number(self, value: float) -> str:
        """A number, its sign with it."""
        return self.all_digits(to_digits(float(value), self.digits))

    def all_digits(self, value: float) -> str:
        """A number with all digits that it has."""
        size = abs(float(value))
        mantissa, _, exponent = np.format_float_scientific(size, trim="-").partition("e")
        if not isfinite(size):
            text = self.name("inf" if isinf(size) else "nan")
        elif size == 0.0 or SMALLEST <= size < LARGEST:
            text = np.format_float_positional(size, trim="-")
        else:
            text = self.scientific(mantissa, int(exponent))
        return (self.minus if value < 0.0 else "") + text

    def input(self, i: int) -> str:
        """The name of an input."""
        return self.indexed("x", i) if self.input_names is None else self.name(self.input_names[i])

    def output(self, i: int) -> str:
        """The name of an output."""
        return self.indexed("f", i) if self.output_names is None else self.name(self.output_names[i])

    def product(self, factor: float, body: str) -> tuple[bool, str]:
        """Whether a number times something is negative, and its size: the number is not written where it is 1."""
        size = self.all_digits(abs(factor))
        return factor < 0.0, body if size == "1" else f"{size}{self.space}{body}"

    def sum(self, parts: Iterable[tuple[bool, str]]) -> str:
        """Parts, each with whether it is negative, with signs between them."""
        text = ""
        for negative, part in parts:
            sign = self.minus if negative else "+"
            text += f" {sign} {part}" if text else (self.minus if negative else "") + part
        return text or "0"

    def affine_parts(self, affine: Affine) -> list[tuple[bool, str]]:
        """The parts of a sum of inputs."""
        used = np.flatnonzero(affine.coefficients)
        parts = [self.product(float(affine.coefficients[i]), self.input(int(i))) for i in used]
        constant = affine.constant
        return parts if constant == 0.0 else [*parts, (constant < 0.0, self.all_digits(abs(constant)))]

    def term(self, term: Term) -> tuple[bool, str]:
        """Whether a term is negative, and the rest of it."""
        parts = self.affine_parts(term.argument)
        inner = self.sum(parts)
        is_name = term.argument.single is not None and inner == self.input(term.argument.single)
        base = inner if is_name else self.bracketed(inner)
        if term.function == "reciprocal":
            return term.factor < 0.0, self.divided(self.all_digits(abs(term.factor)), base)
        if term.function == POWER:
            return self.product(term.factor, base if term.number == 1 else self.raised(base, term.number))
        if term.function == CURVE:
            return self.product(term.factor, self.indexed("g", term.number) + self.bracketed(inner))
        argument = base if term.function == "Gaussian" else inner
        return self.product(term.factor, self.functions[term.function].format(argument))

    def parts(self, output: Output) -> list[tuple[bool, str]]:
        """The parts of an output: its terms, then inputs, then the constant."""
        return [*map(self.term, output.terms), *self.affine_parts(output.rest)]


def formula_lines(model: DecoupledModel, digits: int = 3, sizes: npt.ArrayLike | None = None) -> list[str]:
    """The outputs of a model as formulas, a line each, and a line on each curve in them that is no formula.

    Parameters
    ----------
    model
        The model.
    digits
        How many significant digits numbers have, more where the output needs them; what is nothing then is left out.
    sizes
        (m,), the sizes of the inputs, their standard deviations, say: inputs that add nothing are left out by them.
        None: not known, and only inputs with much smaller coefficients than others are left out.
    """
    check_whole("digits", digits, 1)
    notation = Notation(model.input_names, model.output_names, digits)
    outputs = output_terms(model, digits, None if sizes is None else np.asarray(sizes, dtype=np.float64))
    lines = [f"{notation.output(i)} = {notation.sum(notation.parts(one))}" for i, one in enumerate(outputs)]
    return lines + [f"{notation.indexed('g', j)}: {curve_text(model.branches[j], notation)}" for j in curves(outputs)]


def curves(outputs: Iterable[Output]) -> list[int]:
    """The branches that are curves in some outputs, in their order."""
    return sorted({term.number for output in outputs for term in output.terms if term.function == CURVE})


def curve_text(branch: Branch, notation: Notation) -> str:
    """A branch that is none of the formulas, in a few words."""
    if isinstance(branch, FunctionBranch):
        return printable(branch.formula)
    low, high = map(notation.number, branch.domain)
    return f"a curve on [{low}, {high}]"


def form_text(form: str) -> str:
    """A form with letters for its parameters, in their order.

    Examples
    --------
    >>> form_text("sine"), form_text("reciprocal"), form_text("cubic polynomial")
    ('a sin(b u + c) + d', 'a / (b u + c) + d', 'a + b u + c u² + d u³')
    """
    found, notation = FORMS[form], Notation()
    if found.h is None:
        powers = ["", " u", *(f" {notation.raised('u', k)}" for k in range(2, found.count))]
        return " + ".join(letter + power for letter, power in zip("abcdef", powers[: found.count], strict=False))
    inner, shape, rest = "b u + c", found.shape, " + d + e u" if found.has_line else " + d"
    if shape == "reciprocal":
        return f"a / ({inner}){rest}"
    if shape in EXPONENTS:
        return f"a {notation.raised(f'({inner})', EXPONENTS[shape])}{rest}"
    return f"a {notation.functions[shape].format(f'({inner})' if shape == 'Gaussian' else inner)}{rest}"


def formula_text(formula: Formula, digits: int = 4, domain: tuple[float, float] = (-np.inf, np.inf)) -> str:
    """A formula of u as text, with numbers that are exact enough on a domain.

    Examples
    --------
    >>> formula_text(Formula.of("sine", (1.43, 3.69, 1.57, -0.2)))
    '1.43 sin(3.69 u + 1.57) − 0.2'
    """
    from unbraid.results.model import DecoupledModel

    model = DecoupledModel([[1.0]], [[1.0]], [FormulaBranch(formula, domain)], input_names=["u"])
    return formula_lines(model, digits)[0].partition(" = ")[2]
