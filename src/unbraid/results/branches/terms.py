r"""A model as sums of terms that people write: what belongs to one number is folded into one.

Output i is Σ_j W1_ij g_j(w_j · x) + bias_i. With g_j(u) = a h(b u + c) + d + e u a branch adds

    (W1_ij a) h(b w_j · x + c)        and        W1_ij d        to the constant,

a polynomial adds a power of w_j · x for each of its own, and a line, also that beside a shape, to one sum of inputs. A
curve that is no formula stays g_j(w_j · x). What is nothing at the digits shown is left out: a term that over the range
of its branch varies by less than half a unit in the last digit of the largest one, and coefficients of inputs that are
as small beside others, which only who knows the sizes of inputs can tell; without them, 1 / 100 of that counts as
nothing. Of a term that is left out its mean stays in the constant.

What is written is compared with the model over the range of its branches, see `output_terms`. A polynomial whose powers
of u nearly cancel there is written in powers of u - c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch
from unbraid.results.branches.forms import FORMS, HOMOGENEOUS, Form, Formula
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
SEEN, MOST_DIGITS = 100, 15
"""Inputs at which a formula is compared with its model, and digits of its numbers at most."""
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
    """The outputs of a model as sums of terms, their numbers rounded to so many significant digits.

    Where an output written so would be off by more than one unit of the last digit, measured over the range of the
    branches, less is left out, and numbers have as many digits as they need.
    """
    X, outputs = typical_inputs(model, sizes), []
    F, parts_of = model(X), cache(partial(all_parts, model, sizes))
    for i in range(model.n):
        largest_error = 10.0 ** (1 - digits) * float(np.std(F[:, i])) if len(X) else np.inf
        for extra in range(max(MOST_DIGITS - digits, 0) + 1):
            exact = output_as_terms(model, i, parts_of(digits + extra), Rounding(digits + extra, sizes))
            written = rounded_output(exact, model, X, digits, largest_error * 10.0**-extra if extra else np.inf)
            error = float(np.sqrt(np.mean((values_of(written, model, X) - F[:, i]) ** 2))) if len(X) else 0.0
            if not error > largest_error:
                break
        outputs.append(written)
    return outputs


def all_parts(model: DecoupledModel, sizes: Array | None, digits: int) -> list[tuple[int, Part]]:
    """The parts of all branches, each with the number of its branch."""
    rounding = Rounding(digits, sizes)
    return [
        (j, part)
        for j, branch in enumerate(model.branches)
        for part in branch_parts(branch, j, rounding.inputs(model.W0[j]), rounding)
    ]


def output_as_terms(model: DecoupledModel, i: int, parts: list[tuple[int, Part]], rounding: Rounding) -> Output:
    """Output i, without what counts as nothing."""
    weights = [float(model.W1[i, j]) for j, _ in parts]
    spans = [abs(weight) * part.span if weight else 0.0 for weight, (_, part) in zip(weights, parts, strict=True)]
    largest = max((span for span in spans if isfinite(span)), default=0.0)
    terms, slopes, constant = [], np.zeros(model.m), float(model.bias[i])
    for weight, (_, part), span in zip(weights, parts, spans, strict=True):
        kept = span > rounding.share * largest
        if kept and part.term is not None:
            terms.append(settled(replace(part.term, factor=weight * part.term.factor)))
        constant += weight * (part.rest.constant + (0.0 if kept else part.level))
        slopes = slopes + weight * part.rest.coefficients * kept
    return Output(terms, Affine(rounding.inputs(slopes), constant if abs(constant) > rounding.share * largest else 0.0))


def typical_inputs(model: DecoupledModel, sizes: Array | None) -> Array:
    """Inputs (P, m), of such sizes, where u lie in the domains of the branches; none where a domain is infinite."""
    low, high = np.array([branch.domain for branch in model.branches], dtype=float).reshape(-1, 2).T
    nowhere = np.zeros((0, model.m))
    if not (np.isfinite(low).all() and np.isfinite(high).all() and np.isfinite(model.W0).all()):
        return nowhere
    try:
        middle = np.linalg.pinv(model.W0) @ (0.5 * (low + high))
    except np.linalg.LinAlgError:  # of numbers beyond floating point
        return nowhere
    reach = np.min(0.5 * (high - low)[:, None] / np.abs(model.W0), axis=0, initial=np.inf)
    reach = reach if sizes is None else np.minimum(reach, 3.0 * sizes)
    rng = np.random.default_rng(0)
    ways = rng.standard_normal((SEEN, model.m)) * np.where(np.isfinite(reach), reach, 0.0)
    along, here = ways @ model.W0.T, model.W0 @ middle
    room = np.where(along > 0.0, high - here, here - low) / np.abs(along)
    X = middle + ways * np.clip(room, 0.0, None).min(axis=1, initial=1.0)[:, None]
    return np.asarray(X[np.isfinite(X).all(axis=1) & np.isfinite(model(X)).all(axis=1)])


def values_of(output: Output, model: DecoupledModel, X: Array) -> Array:
    """What an output is at inputs X (S, m): (S,)."""
    total = X @ output.rest.coefficients + output.rest.constant
    for term in output.terms:
        total = total + term.factor * shape_of(term, model, X @ term.argument.coefficients + term.argument.constant)
    return np.asarray(total)


def shape_of(term: Term, model: DecoupledModel, t: Array) -> Array:
    """The function of a term at its arguments."""
    if term.function == CURVE:
        return model.branches[term.number](t)
    if term.function == POWER:
        return np.asarray(t**term.number)
    h = FORMS[term.function].h if term.function != COSINE else None
    return np.cos(t) if h is None else h.evaluate(t)


def rounded_output(output: Output, model: DecoupledModel, X: Array, digits: int, error: float) -> Output:
    """An output with rounded numbers, none of which changes it by more than an error at inputs X."""
    return Output(
        [rounded_term(term, model, X, digits, error) for term in output.terms],
        rounded_affine(output.rest, X, np.ones(len(X)), digits, error),
    )


def rounded_term(term: Term, model: DecoupledModel, X: Array, digits: int, error: float) -> Term:
    """A term of it."""
    t = X @ term.argument.coefficients + term.argument.constant
    step = 1e-6 * np.ptp(t) if len(t) else 0.0
    slope = term.factor * (shape_of(term, model, t + step) - shape_of(term, model, t - step)) / (2.0 * step)
    [factor] = rounded(np.array([term.factor]), shape_of(term, model, t)[:, None], digits, error)
    return replace(term, factor=float(factor), argument=rounded_affine(term.argument, X, slope, digits, error))


def rounded_affine(affine: Affine, X: Array, slope: Array, digits: int, error: float) -> Affine:
    """A sum of inputs of which an output is a function with such a slope (P,) at inputs X."""
    effects = X * slope[:, None] if isfinite(error) else X
    [constant] = rounded(np.array([affine.constant]), slope[:, None], digits, error)
    return Affine(rounded(affine.coefficients, effects, digits, error), float(constant))


def rounded(numbers: Array, effects: Array, digits: int, error: float = np.inf) -> Array:
    """Numbers (K,) to so many digits, or more if rounding, times effects (P, K), would be more than an error."""
    needed = np.zeros(len(numbers))
    if len(effects) and isfinite(error):
        places = np.floor(np.log10(np.abs(numbers)))  # of the first digits
        needed = np.nan_to_num(np.ceil(places + 1.0 + np.log10(0.5 * np.nanmax(np.abs(effects), axis=0) / error)))
    many = np.clip(needed, digits, max(digits, MOST_DIGITS)).astype(int)
    return np.array([to_digits(number, k) for number, k in zip(numbers.tolist(), many.tolist(), strict=True)])


def to_digits(number: float, digits: int) -> float:
    """A number rounded to so many significant digits."""
    return float(f"{number:.{digits - 1}e}") if number else 0.0


def branch_parts(branch: Branch, j: int, w: Array, rounding: Rounding) -> Iterator[Part]:
    """What branch j, which looks along w, adds for each unit of its weight."""
    none = Affine(np.zeros(len(w)))
    if not isinstance(branch, FormulaBranch):
        yield Part(Term(1.0, CURVE, Affine(w), j), none, *span_and_level(branch.domain, branch))
        return
    form, parameters = branch.formula.form, branch.formula.without_turns().parameters
    if form.h is None:
        center = center_of(branch)
        if center != 0.0:
            parameters = branch.formula.shifted(-center).parameters
            branch = FormulaBranch(Formula(form, parameters), (branch.domain[0] - center, branch.domain[1] - center))
        yield Part(None, Affine(none.coefficients, parameters[0]), 0.0, 0.0)
        for k in np.flatnonzero(parameters[1:])[::-1].tolist():
            seen = span_and_level(branch.domain, Formula(form, one_power(parameters, k + 1)))
            if len(parameters) == 2:
                yield Part(None, Affine(parameters[1] * w), *seen)
            else:
                yield Part(Term(parameters[k + 1], POWER, Affine(w, -center), k + 1), none, *seen)
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


def center_of(branch: FormulaBranch) -> float:
    """The c for which a polynomial is written in powers of u - c: 0, unless its powers of u lose a digit to each other.

    It is where the last power but one vanishes, if that is in the domain, else the middle of the domain.
    """
    (low, high), parameters = branch.domain, branch.formula.parameters
    if len(parameters) <= 2 or not (isfinite(low) and isfinite(high) and low < high) or parameters[-1] == 0.0:
        return 0.0
    sizes = np.abs(parameters[1:]) * max(abs(low), abs(high)) ** np.arange(1.0, len(parameters))
    if not sizes.sum() > 10.0 * span_and_level(branch.domain, branch)[0]:
        return 0.0
    vertex = -parameters[-2] / ((len(parameters) - 1) * parameters[-1])
    center = vertex if low < vertex < high else 0.5 * (low + high)
    return round(center, 4 - int(np.floor(np.log10(high - low))))


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
