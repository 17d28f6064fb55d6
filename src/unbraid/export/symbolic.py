"""Models in SymPy: expressions that can be differentiated, simplified and printed there."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unbraid.errors import MissingDependencyError, SettingError, check_whole, install_hint
from unbraid.export.portable import Univariate, as_portable
from unbraid.kernels.arrays import Array
from unbraid.kernels.pieces import Pieces
from unbraid.results.branches.expressions import NUMBER, POWER, PRODUCT, SUM, VARIABLE, Expression
from unbraid.results.model import DecoupledModel

LARGEST_WHOLE = 1e6
"""Whole numbers up to here are whole in SymPy, too."""
LONGEST_SYMBOL = 60
"""Characters of the name of a symbol."""


def as_sympy(model: DecoupledModel, digits: int | None = None) -> Any:
    """A model as a SymPy matrix (n, 1) of expressions in symbols named after its inputs."""
    if digits is not None:
        check_whole("digits", digits, 1)
    sympy = imported_sympy()
    portable = as_portable(model)
    symbols = [sympy.Symbol(name, real=True) for name in symbol_names(portable.input_names)]
    functions = [one if isinstance(one, Pieces) else one.without_turns() for one in portable.functions]
    values = [
        univariate(sympy, function, weighted_sum(sympy, direction, symbols))
        for direction, function in zip(portable.W0, functions, strict=True)
    ]
    outputs = [
        weighted_sum(sympy, weights, values) + number(sympy, bias)
        for weights, bias in zip(portable.W1, portable.bias, strict=True)
    ]
    matrix = sympy.Matrix(portable.n, 1, outputs)
    return matrix if digits is None else matrix.xreplace(rounded(sympy, matrix, digits))


def imported_sympy() -> Any:
    """The package, or a sentence on how to get it."""
    try:
        import sympy
    except ImportError:
        raise MissingDependencyError(
            f"Expressions need SymPy, which is not installed: {install_hint('sympy')}."
        ) from None
    return sympy


def symbol_names(names: Sequence[str]) -> list[str]:
    """Names as words that Python takes for variables, each once.

    Examples
    --------
    >>> symbol_names(["speed", "load [N]", "2", "load (N)", "lambda", ""])
    ['speed', 'load_N', 'x3_2', 'load_N_2', 'lambda_', 'x6']
    """
    found: dict[str, None] = {}
    for i, name in enumerate(names):
        word = re.sub(r"\W+", "_", name).strip("_")[:LONGEST_SYMBOL]
        word = word if word.isidentifier() else f"x{i + 1}_{word}".rstrip("_")
        word = f"{word}_" if keyword.iskeyword(word) else word if word.isidentifier() else f"x{i + 1}"
        copies, own = 1, word
        while own in found:
            copies += 1
            own = f"{word}_{copies}"
        found[own] = None
    return list(found)


def number(sympy: Any, value: float) -> Any:
    """A number, whole where it is a small whole one."""
    value = float(value)
    return sympy.Integer(int(value)) if value.is_integer() and abs(value) < LARGEST_WHOLE else sympy.Float(value)


def weighted_sum(sympy: Any, weights: Array, parts: Sequence[Any]) -> Any:
    """Σ_i weights_i parts_i, without those whose weight is zero."""
    return sympy.Add(*(number(sympy, weight) * part for weight, part in zip(weights, parts, strict=True) if weight))


def univariate(sympy: Any, function: Univariate, u: Any) -> Any:
    """A function at an expression u; a number where u is one."""
    if not u.free_symbols:
        at = np.array([float(u)])
        return number_or_nan(sympy, float((function.value(at) if isinstance(function, Pieces) else function(at))[0]))
    if isinstance(function, Pieces):
        return piecewise(sympy, function, u)
    if function.form.h is None:
        return weighted_sum(sympy, np.array(function.parameters), [u**k for k in range(len(function.parameters))])
    return translated(sympy, function.expression, u)


def number_or_nan(sympy: Any, value: float) -> Any:
    """A number that need not be finite."""
    return number(sympy, value) if np.isfinite(value) else sympy.nan


def piecewise(sympy: Any, pieces: Pieces, u: Any) -> Any:
    """Polynomials in powers of u - middle between breaks."""
    with np.errstate(over="ignore", invalid="ignore"):
        powers = pieces.powers * pieces.rate ** np.arange(len(pieces.powers))[:, None]
    if not np.isfinite(powers).all():
        raise SettingError("The powers of a branch are beyond floating point: rescale its inputs.")
    conditions = [sympy.StrictLessThan(u, number(sympy, one), evaluate=False) for one in pieces.breaks]
    choices = []
    for own, middle, condition in zip(powers.T, pieces.middle, [*conditions, sympy.true], strict=True):
        away = u - number(sympy, middle)
        choices.append((weighted_sum(sympy, own, [away**p for p in range(len(own))]), condition))
    return sympy.Piecewise(*choices, evaluate=False)


def translated(sympy: Any, expression: Expression, u: Any) -> Any:
    """An expression of this library, at an expression u of SymPy."""
    if expression.kind == NUMBER:
        return number(sympy, expression.number)
    if expression.kind == VARIABLE:
        return u
    parts = [translated(sympy, part, u) for part in expression.parts]
    if expression.kind == SUM:
        return parts[0] + parts[1]
    if expression.kind == PRODUCT:
        return parts[0] * parts[1]
    if expression.kind == POWER:
        return parts[0] ** int(expression.number)
    return elementary(sympy)[expression.kind](parts[0])


def elementary(sympy: Any) -> dict[str, Callable[[Any], Any]]:
    """The elementary functions, by name."""
    return {
        "exp": sympy.exp,
        "log": sympy.log,
        "sqrt": sympy.sqrt,
        "sin": sympy.sin,
        "cos": sympy.cos,
        "tanh": sympy.tanh,
        "atan": sympy.atan,
        "logistic": lambda t: 1 / (1 + sympy.exp(-t)),
        "softplus": lambda t: sympy.log(1 + sympy.exp(t)),
        "abs": sympy.Abs,
        "sign": sympy.sign,
        "step": lambda t: sympy.Piecewise((1, t > 0), (0, True)),
        "rectifier": lambda t: sympy.Max(0, t),
        "saturation": lambda t: sympy.Max(-1, sympy.Min(1, t)),
    }


def rounded(sympy: Any, matrix: Any, digits: int) -> dict[Any, Any]:
    """For each number that is not whole the one of so many significant digits."""
    return {one: number(sympy, float(f"{float(one):.{digits}g}")) for one in matrix.atoms(sympy.Float)}
