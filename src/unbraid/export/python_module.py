"""Models as a Python module that needs NumPy alone, and computes what unbraid computes, in the same order."""

from __future__ import annotations

from unbraid.export.comments import domain_text, heading, names_listed
from unbraid.export.files import Options
from unbraid.export.numerals import double, row_text
from unbraid.export.portable import Portable, Univariate, as_portable
from unbraid.export.spelling import CONSTANT, PIECES, Language, is_constant, needs_of
from unbraid.kernels.arrays import Array
from unbraid.kernels.pieces import Pieces
from unbraid.results.branches.expressions import Expression
from unbraid.results.model import DecoupledModel

BODY = '''\
BLOCK = 8192
"""Points that are evaluated at a time, so that what is needed on the way stays in the cache."""


def values(X):
    """The values at X ({S}, {m}): ({S}, {n}); at a single point ({m},): ({n},)."""
    points = as_points(X)
    F = np.empty((len(points), {n}))
    for start in range(0, len(points), BLOCK):
        with np.errstate(all="ignore"):  # where a function has no value there is NaN
            inputs = W0 @ points[start : start + BLOCK].T
            G = np.array([value(u) for (value, _), u in zip(FUNCTIONS, inputs)])
            F[start : start + BLOCK] = G.T @ W1.T + BIAS
    return F.reshape(np.shape(X)[:-1] + ({n},))


def jacobian(X):
    """The derivatives at X ({S}, {m}): ({S}, {n}, {m}); at a single point ({m},): ({n}, {m})."""
    points = as_points(X)
    J = np.empty((len(points), {n}, {m}))
    for start in range(0, len(points), BLOCK):
        with np.errstate(all="ignore"):
            inputs = W0 @ points[start : start + BLOCK].T
            slopes = np.array([slope(u) for (_, slope), u in zip(FUNCTIONS, inputs)])
            J[start : start + BLOCK] = (W1 * slopes.T[:, None, :]) @ W0
    return J.reshape(np.shape(X)[:-1] + ({n}, {m}))


def as_points(X):
    """X as an array ({S}, {m})."""
    points = np.atleast_2d(np.asarray(X, dtype=np.float64))
    if points.ndim > 2 or points.shape[1] != {m}:
        raise ValueError(f"X must be ({S}, {m}) or ({m},), got shape {{np.shape(X)}}")
    return points
'''
SEARCH = '''\
def piecewise(u, breaks, middle, rate, powers):
    """Polynomials in t = (u - middle) rate between breaks, at u (S,); powers has the lowest first."""
    piece, t, near = locate(u, breaks, middle, rate)
    value = powers[-1].take(piece)
    for p in range(len(powers) - 2, -1, -1):
        value = value * near + powers[p].take(piece)
    for s in np.flatnonzero(np.isinf(t)):  # the highest power that is there decides
        p = highest(powers[:, piece[s]])
        value[s] = powers[p, piece[s]] * t[s] ** p
    return value


def piecewise_slope(u, breaks, middle, rate, powers):
    """Their derivatives with respect to u."""
    piece, t, near = locate(u, breaks, middle, rate)
    value, slope = powers[-1].take(piece), np.zeros(len(u))
    for p in range(len(powers) - 2, -1, -1):
        slope = slope * near + value
        value = value * near + powers[p].take(piece)
    for s in np.flatnonzero(np.isinf(t)):
        p = highest(powers[:, piece[s]])
        slope[s] = p * powers[p, piece[s]] * t[s] ** (p - 1) if p > 0 else 0.0
    return slope * rate.take(piece)


def locate(u, breaks, middle, rate):
    """The pieces that u (S,) lie in, the first where u is not a number; t; and t with 0 where it is infinite."""
    piece = np.where(np.isnan(u), 0, np.searchsorted(breaks, u, side="right"))
    t = (u - middle.take(piece)) * rate.take(piece)
    return piece, t, np.where(np.isinf(t), 0.0, t)


def highest(powers):
    """The highest power whose coefficient is not 0, or 0."""
    return np.flatnonzero(powers).max(initial=0)
'''
HELPERS = {
    PIECES: SEARCH,
    CONSTANT: '''\
def constant(u, number):
    """A number, but not where u is none."""
    return np.where(np.isnan(u), np.nan, number)
''',
    "logistic": '''\
def logistic(t):
    """1 / (1 + exp(-t))."""
    return 0.5 * np.tanh(0.5 * t) + 0.5
''',
    "softplus": '''\
def softplus(t):
    """log(1 + exp(t))."""
    return np.maximum(t, 0.0) + np.log1p(np.exp(-np.abs(t)))
''',
    "step": '''\
def step(t):
    """1 where t > 0, else 0."""
    return np.where(np.isnan(t), t, np.greater(t, 0.0))
''',
    "rectifier": '''\
def rectifier(t):
    """t where t > 0, else 0."""
    return np.maximum(t, 0.0)
''',
    "saturation": '''\
def saturation(t):
    """t between -1 and 1."""
    return np.clip(t, -1.0, 1.0)
''',
}
"""What NumPy lacks, each written out where a formula needs it."""
NUMPY = {one: f"np.{one}" for one in ("exp", "log", "sqrt", "sin", "cos", "tanh", "abs", "sign")} | {
    "atan": "np.arctan"
}
"""What NumPy has, by the names of `FUNCTIONS`."""
PYTHON = Language(double, " * ", NUMPY, lambda base, exponent: f"{base}**{exponent}")


def write(model: DecoupledModel, options: Options) -> dict[str, bytes]:
    """The module."""
    return {".py": module_text(as_portable(model)).encode("ascii")}


def module_text(model: Portable) -> str:
    """The text of the module."""
    lines = [
        *heading(model),
        "",
        "values(X) and jacobian(X) take points (S, m), or a single one (m,), and need NumPy alone.",
        "",
        "Inputs:",
        *names_listed([f"x{k + 1}" for k in range(model.m)], model.input_names),
        "Outputs:",
        *names_listed([f"f{i + 1}" for i in range(model.n)], model.output_names),
    ]
    needs = needs_of(model.functions)
    pairs = ", ".join(f"(g{j + 1}, g{j + 1}_slope)" for j in range(model.rank))
    matrices = [f"W0 = {table(model.W0)}", f"W1 = {table(model.W1)}", f"BIAS = {table(model.bias)}"]
    parts = [
        BODY.format(S="S", m=model.m, n=model.n),
        *(text for kind, text in HELPERS.items() if kind in needs),
        *(function_text(j, one, model.domains[j]) for j, one in enumerate(model.functions)),
        f"FUNCTIONS = [{pairs}]\n",
    ]
    start = '"""' + "\n".join(lines) + '\n"""\n\nimport numpy as np\n\n' + "\n".join(matrices) + "\n\n\n"
    return start + "\n\n".join(parts)


def function_text(j: int, function: Univariate, domain: tuple[float, float]) -> str:
    """Function j and its slope."""
    called = f"g{j + 1}"
    told = f"Function {j + 1}, {domain_text(domain)}."
    if isinstance(function, Pieces):
        tables = ("breaks", "middle", "rate", "powers")
        rows = ",\n".join(f'    "{one}": {table(getattr(function, one))}' for one in tables)
        before = f"{called.upper()} = {{\n{rows},\n}}\n\n\n"
        value, slope = (f"return {one}(u, **{called.upper()})" for one in ("piecewise", "piecewise_slope"))
    else:
        before = ""
        value, slope = (f"return {formula_text(one)}" for one in (function.expression, function.slope))
    return (
        f'{before}def {called}(u):\n    """{told}"""\n    {value}\n\n\n'
        f'def {called}_slope(u):\n    """Its slope."""\n    {slope}\n'
    )


def formula_text(expression: Expression) -> str:
    """An expression of u."""
    text = PYTHON.spell(expression)
    return f"constant(u, {text})" if is_constant(expression) else text


def table(numbers: Array) -> str:
    """An array of NumPy."""
    return f"np.array({nested(numbers)})"


def nested(numbers: Array) -> str:
    """Numbers in brackets, nested as the array is."""
    if numbers.ndim > 1:
        return "[" + ",\n    ".join(map(nested, numbers)) + "]"
    return "[" + row_text(numbers, double, "\n    ") + "]"
