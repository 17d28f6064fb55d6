r"""A model as sums of terms that people write: what belongs to one number is folded into one.

Output i is Σ_j W1_ij g_j(w_j · x) + bias_i. With g_j(u) = a h(b u + c) + d + e u a branch adds

    (W1_ij a) h(b w_j · x + c)        and        W1_ij d        to the constant,

a polynomial adds a power of w_j · x for each of its own, and a line, also that beside a shape, to one sum of inputs. A
curve that is no formula stays g_j(w_j · x). What is nothing at the digits shown is left out: a term that over the range
of its branch varies by less than half a unit in the last digit of the largest one, and coefficients of inputs that are
as small beside others, which only who knows the sizes of inputs can tell; without them, 1 / 100 of that counts as
nothing. Of a term that is left out its mean stays in the constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch
from unbraid.results.branches.forms import HOMOGENEOUS, Form, Formula
from unbraid.results.branches.formula import FormulaBranch

if TYPE_CHECKING:
    from unbraid.results.model import DecoupledModel

POWER, CURVE = "power", "curve"
"""The functions that are no form: a whole power, and a branch that is no formula."""
EXPONENTS = {"square": 2, "cube": 3, "fourth power": 4}
"""Forms that are whole powers."""
COSINE = "cosine"
"""A sine whose angle is a right one."""
EVEN, ODD = (
    {"absolute value", "Gaussian", COSINE},
    {"sine", "tanh", "arctangent", "saturation", "dead zone", "reciprocal"},
)
"""Functions whose argument can change its sign, ODD ones together with the factor; powers are one or the other."""
LARGEST_SHIFT = 20.0
"""A shift in an exponential up to which it goes into the factor."""
GRID = 65
"""Points of a domain over which it is seen how much a term varies."""
UNKNOWN_SIZES = 0.01
"""Where sizes of inputs are not known, coefficients are nothing from so much smaller a share on."""


@dataclass(frozen=True, eq=False)
class Affine:
    """Σ_i coefficients_i x_i + constant."""

    coefficients: Array
    constant: float = 0.0

    def scaled(self, by: float) -> Affine:
        """The same times a number."""
        return Affine(by * self.coefficients, by * self.constant)

    @property
    def single(self) -> int | None:
        """The input that it is a multiple of, if there is one."""
        used = np.flatnonzero(self.coefficients)
        return int(used[0]) if len(used) == 1 and self.constant == 0.0 else None


@dataclass(frozen=True, eq=False)
class Term:
    """factor · function(argument).

    Attributes
    ----------
    factor, function, argument
        A number; the name of a form, POWER or CURVE; what it is a function of.
    number
        The exponent of a power, or which branch a curve is.
    """

    factor: float
    function: str
    argument: Affine
    number: int = 0


@dataclass(frozen=True, eq=False)
class Output:
    """An output: terms, a sum of inputs with a constant."""

    terms: list[Term]
    rest: Affine


class Part(NamedTuple):
    """What a branch adds to an output for each unit of its weight.

    A term or a sum of inputs, a constant, how much the former varies over the domain, and its level there, which stays
    where it is left out.
    """

    term: Term | None
    rest: Affine
    span: float
    level: float


@dataclass(frozen=True)
class Rounding:
    """What counts as nothing.

    Attributes
    ----------
    digits
        How many significant digits are shown.
    sizes
        (m,), the sizes of the inputs, their standard deviations, say; None where they are not known.
    """

    digits: int
    sizes: Array | None = None

    @property
    def share(self) -> float:
        """The share of the largest number that is nothing beside it."""
        return 0.5 * 10.0**-self.digits

    def inputs(self, coefficients: Array) -> Array:
        """Coefficients of inputs with zeros for those that are nothing beside the others."""
        sizes = np.ones(len(coefficients)) if self.sizes is None else self.sizes
        share = self.share * (UNKNOWN_SIZES if self.sizes is None else 1.0)
        weight = np.abs(coefficients) * sizes
        return np.where(weight > share * weight.max(initial=0.0), coefficients, 0.0)


@np.errstate(all="ignore")
def output_terms(model: DecoupledModel, digits: int, sizes: Array | None = None) -> list[Output]:
    """The outputs of a model as sums of terms, for numbers of so many significant digits."""
    rounding = Rounding(digits, sizes)
    parts = [
        (j, part)
        for j, branch in enumerate(model.branches)
        for part in branch_parts(branch, j, rounding.inputs(model.W0[j]), rounding)
    ]
    outputs = []
    for weights, bias in zip(model.W1, model.bias, strict=True):
        spans = [abs(weights[j]) * part.span if weights[j] else 0.0 for j, part in parts]
        largest = max((span for span in spans if isfinite(span)), default=0.0)
        kept = [span > rounding.share * largest for span in spans]
        terms = [
            replace(part.term, factor=weights[j] * part.term.factor)
            for (j, part), keep in zip(parts, kept, strict=True)
            if keep and part.term is not None
        ]
        slopes, constant = np.zeros(model.m), float(bias)
        for (j, part), keep in zip(parts, kept, strict=True):
            constant += weights[j] * (part.rest.constant + (0.0 if keep else part.level))
            slopes = slopes + weights[j] * part.rest.coefficients * keep
        constant = constant if abs(constant) > rounding.share * largest else 0.0
        outputs.append(Output([settled(term) for term in terms], Affine(rounding.inputs(slopes), constant)))
    return outputs


def branch_parts(branch: Branch, j: int, w: Array, rounding: Rounding) -> Iterator[Part]:
    """What branch j, which looks along w, adds for each unit of its weight."""
    none = Affine(np.zeros(len(w)))
    if not isinstance(branch, FormulaBranch):
        yield Part(Term(1.0, CURVE, Affine(w), j), none, *span_and_level(branch.domain, branch))
        return
    form, parameters = branch.formula.form, branch.formula.without_turns().parameters
    if form.h is None:
        yield Part(None, Affine(none.coefficients, parameters[0]), 0.0, 0.0)
        for k in np.flatnonzero(parameters[1:])[::-1].tolist():
            seen = span_and_level(branch.domain, Formula(form, one_power(parameters, k + 1)))
            if len(parameters) == 2:
                yield Part(None, Affine(parameters[1] * w), *seen)
            else:
                yield Part(Term(parameters[k + 1], POWER, Affine(w), k + 1), none, *seen)
        return
    a, b, c, d, *line = parameters
    for e in line:
        yield Part(None, Affine(e * w), *span_and_level(branch.domain, partial(np.multiply, e)))
    if a == 0.0:
        yield Part(None, Affine(none.coefficients, d), 0.0, 0.0)
        return
    if form.shape == "exponential" and abs(c) < LARGEST_SHIFT:  # a exp(b u + c) = (a exp(c)) exp(b u)
        a, c = a * float(np.exp(c)), 0.0
    seen = span_and_level(branch.domain, Formula(form, (a, b, c, *[0.0] * (form.count - 3))))
    c = c if abs(c) > rounding.share * unit_of(form, abs(b), branch.domain) else 0.0
    function = POWER if form.shape in EXPONENTS else form.shape
    if form.shape == "sine" and abs(c - 0.5 * np.pi) < rounding.share:  # angles are from -π/4 to 3π/4
        function, c = COSINE, 0.0
    yield Part(Term(a, function, Affine(b * w, c), EXPONENTS.get(form.shape, 0)), Affine(none.coefficients, d), *seen)


def one_power(parameters: tuple[float, ...], k: int) -> tuple[float, ...]:
    """The parameters of a polynomial with zeros for all powers but one."""
    return tuple(one if place == k else 0.0 for place, one in enumerate(parameters))


def span_and_level(domain: tuple[float, float], function: Callable[[Array], Array]) -> tuple[float, float]:
    """How much a function varies over a domain, and its mean; infinite and 0 where that is not known."""
    low, high = domain
    if not isfinite(low) or not isfinite(high):
        return np.inf, 0.0
    values = function(np.linspace(low, high, GRID))
    finite = values[np.isfinite(values)]
    return (float(np.ptp(finite)), float(finite.mean())) if finite.size else (np.inf, 0.0)


def unit_of(form: Form, b: float, domain: tuple[float, float]) -> float:
    """What a shift c of the argument b u + c is measured by: the length of its range, or 1 where that is less."""
    length = b * (domain[1] - domain[0])
    if not isfinite(length):
        return 1.0
    return length if form.free == HOMOGENEOUS else min(1.0, length)


def settled(term: Term) -> Term:
    """A term as people write it: its first coefficient positive where that is free, a power of one input its own."""
    factor, argument = term.factor, term.argument
    single = argument.single
    if single is not None and (term.function == POWER or term.function == "reciprocal"):
        exponent = term.number if term.function == POWER else -1
        unit = np.zeros(len(argument.coefficients))
        unit[single] = 1.0
        return replace(
            term, factor=factor * float(argument.coefficients[single] ** float(exponent)), argument=Affine(unit)
        )
    used = np.flatnonzero(argument.coefficients)
    odd = term.function in ODD or (term.function == POWER and term.number % 2 == 1)
    even = term.function in EVEN or (term.function == POWER and not odd)
    if used.size and argument.coefficients[used[0]] < 0.0 and (odd or even):
        factor, argument = (-factor if odd else factor), argument.scaled(-1.0)
    return replace(term, factor=factor, argument=argument)
