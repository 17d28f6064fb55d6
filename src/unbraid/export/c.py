r"""Models as C99: one file and its header, without dependencies, allocation or state, and C++ as well.

A piecewise polynomial is a table with a row a piece, (middle, rate, c_0, …, c_q), which a search by halves finds; a
formula is an expression. Both are evaluated as unbraid does it, in the same order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from string import Template

import numpy as np

from unbraid.export.comments import domain_text, heading, names_listed
from unbraid.export.files import Options
from unbraid.export.numerals import double, row_text, single
from unbraid.export.portable import Portable, Univariate, as_portable
from unbraid.export.spelling import PIECE_SLOPES, PIECES, Language, is_constant, needs_of
from unbraid.kernels.arrays import Array
from unbraid.kernels.pieces import Pieces
from unbraid.results.branches.expressions import POWER, Expression
from unbraid.results.model import DecoupledModel

SEARCH = """\
/* How many of the breaks are at most u; none where u is not a number. */
static int find_piece(const $real *breaks, int count, $real u)
{
    int found = 0;
    while (count > 0) {
        int half = (count + 1) / 2;
        found += half * (u >= breaks[found + half - 1]);
        count -= half;
    }
    return found;
}

/* Whether t is infinite: 0 t is not 0 then, and the highest power that is there decides. */
static int is_far($real t)
{
    return t > $largest || t < -$largest;
}

/* The highest power p > 0 whose coefficient is not 0; 0 if there is none. */
static int leading(const $real *c, int degree)
{
    while (degree > 0 && c[degree] == 0.0$f)
        degree--;
    return degree;
}

/* c[0] + c[1] t + ... of the piece of u, with t = (u - middle) rate and rows (middle, rate, c[0], c[1], ...). */
static $real piecewise(const $real *breaks, int count, const $real *rows, int degree, $real u)
{
    const $real *row = rows + find_piece(breaks, count, u) * (degree + 3);
    const $real *c = row + 2;
    $real t = (u - row[0]) * row[1], value;
    int p;
    if (is_far(t)) {
        degree = leading(c, degree);
        value = c[degree];
        for (p = degree; p > 0; p--)
            value *= t;
        return value;
    }
    value = c[degree];
    for (p = degree - 1; p >= 0; p--)
        value = value * t + c[p];
    return value;
}
"""
SEARCH_SLOPES = """\
/* Its derivative with respect to u. */
static $real piecewise_slope(const $real *breaks, int count, const $real *rows, int degree, $real u)
{
    const $real *row = rows + find_piece(breaks, count, u) * (degree + 3);
    const $real *c = row + 2;
    $real t = (u - row[0]) * row[1], value, slope = 0.0$f;
    int p;
    if (is_far(t)) {
        degree = leading(c, degree);
        slope = ($real)degree * c[degree];
        for (p = degree - 1; p > 0; p--)
            slope *= t;
        return slope * row[1];
    }
    value = c[degree];
    for (p = degree - 1; p >= 0; p--) {
        slope = slope * t + value;
        value = value * t + c[p];
    }
    return slope * row[1];
}
"""
HELPERS = {
    PIECES: SEARCH,
    PIECE_SLOPES: SEARCH_SLOPES,
    POWER: """\
static $real power($real t, int exponent)
{
    $real product = t;
    int k;
    for (k = exponent < 0 ? -exponent : exponent; k > 1; k--)
        product *= t;
    return exponent < 0 ? 1.0$f / product : product;
}
""",
    "logistic": """\
static $real logistic($real t)
{
    return 0.5$f * tanh$f(0.5$f * t) + 0.5$f;
}
""",
    "softplus": """\
static $real softplus($real t)
{
    return (t < 0.0$f ? 0.0$f : t) + log1p$f(exp$f(-fabs$f(t)));
}
""",
    "sign": """\
static $real sign($real t)
{
    return t > 0.0$f ? 1.0$f : t < 0.0$f ? -1.0$f : t;
}
""",
    "step": """\
static $real step($real t)
{
    return t > 0.0$f ? 1.0$f : t <= 0.0$f ? 0.0$f : t;
}
""",
    "rectifier": """\
static $real rectifier($real t)
{
    return t < 0.0$f ? 0.0$f : t;
}
""",
    "saturation": """\
static $real saturation($real t)
{
    return t < -1.0$f ? -1.0$f : t > 1.0$f ? 1.0$f : t;
}
""",
}
"""What C lacks, each written out where a formula needs it."""
LIBRARY = ("exp", "log", "sqrt", "sin", "cos", "tanh", "atan", "abs")
"""What libm has; its names for float end in f."""
DECLARATIONS = """\
#ifdef __cplusplus
extern "C" {
#endif

/* The values f of the model at x. */
void ${name}_values(const $real x[$m], $real f[$n]);

/* Its derivatives at x: J[i][k] is that of f[i] with respect to x[k]. */
void ${name}_jacobian(const $real x[$m], $real J[$n][$m]);

#ifdef __cplusplus
}
#endif
"""
MATRICES = """\
static const $real W0[$r][$m] = $W0;
static const $real W1[$n][$r] = $W1;
"""
BIAS = """\
static const $real bias[$n] = $bias;
"""
DIRECTIONS = """\
/* The inputs u = W0 x of the functions g. */
static void directions(const $real x[$m], $real u[$r])
{
    int j, k;
    for (j = 0; j < $r; j++) {
        u[j] = 0.0$f;
        for (k = 0; k < $m; k++)
            u[j] += W0[j][k] * x[k];
    }
}
"""
VALUES = """\
void $called(const $real x[$m], $real f[$n])
{
    $real u[$r], g[$r];
    int i, j;
    directions(x, u);
$values
    for (i = 0; i < $n; i++) {
        f[i] = 0.0$f;
        for (j = 0; j < $r; j++)
            f[i] += W1[i][j] * g[j];
        f[i] += bias[i];
    }
}
"""
JACOBIAN = """\
void $called(const $real x[$m], $real J[$n][$m])
{
    $real u[$r], slope[$r];
    int i, j, k;
    directions(x, u);
$slopes
    for (i = 0; i < $n; i++) {
        for (k = 0; k < $m; k++)
            J[i][k] = 0.0$f;
        for (j = 0; j < $r; j++) {
            const $real weight = W1[i][j] * slope[j];
            for (k = 0; k < $m; k++)
                J[i][k] += weight * W0[j][k];
        }
    }
}
"""
BIAS_ALONE = """\
void $called(const $real x[$m], $real f[$n])
{
    int i;
    (void)x;
    for (i = 0; i < $n; i++)
        f[i] = bias[i];
}
"""
NO_SLOPES = """\
void $called(const $real x[$m], $real J[$n][$m])
{
    int i, k;
    (void)x;
    for (i = 0; i < $n; i++)
        for (k = 0; k < $m; k++)
            J[i][k] = 0.0$f;
}
"""
"""A model without branches is a constant; C has no arrays without entries."""


def write(model: DecoupledModel, options: Options) -> dict[str, bytes]:
    """The file and its header."""
    return FunctionProgram(as_portable(model), options).files()


class Program(ABC):
    """A program in C around W1 g(W0 x) + bias: what is written in the same way, whatever the program does with it.

    Parameters
    ----------
    model
        The matrices and functions.
    options
        The name that functions begin with, and the type of their numbers.
    """

    slopes = True
    """Whether the program needs the slopes of the functions g: compilers warn of what is not used."""
    promise: str
    """What can be said of the program beside its language."""

    def __init__(self, model: Portable, options: Options) -> None:
        self.model, self.name = model, options.name
        self.f = "f" if options.dtype == "float32" else ""
        spellings = {one: one + self.f for one in LIBRARY} | {"abs": "fabs" + self.f}
        self.language = Language(self.number, " * ", spellings, lambda base, exponent: f"power({base}, {exponent})")
        self.words: dict[str, object] = {
            "real": "float" if self.f else "double",
            "largest": "FLT_MAX" if self.f else "DBL_MAX",
            "f": self.f,
            "name": self.name,
            "m": model.m,
            "n": model.n,
            "r": model.rank,
        }

    @abstractmethod
    def about(self) -> list[str]:
        """What the program computes, and what wrote it: the first lines of both files."""

    @abstractmethod
    def signals(self) -> list[str]:
        """What inputs and outputs are called, for the header."""

    @abstractmethod
    def calls(self) -> str:
        """What a program that uses it calls."""

    @abstractmethod
    def declarations(self) -> str:
        """What others may call."""

    @abstractmethod
    def body(self) -> str:
        """The matrices, and the functions that others call."""

    def files(self) -> dict[str, bytes]:
        """The file and its header, by their endings."""
        return {".c": self.source().encode("ascii"), ".h": self.header().encode("ascii")}

    def header(self) -> str:
        """The header, with what people need to know."""
        guard = f"{self.name.upper()}_H"
        return "\n".join(
            [
                comment([*self.about(), "", *self.signals()]),
                f"#ifndef {guard}\n#define {guard}\n",
                self.declarations(),
                f"#endif /* {guard} */\n",
            ]
        )

    def source(self) -> str:
        """The file."""
        functions = self.model.functions
        needs = needs_of(functions, self.slopes)
        needs_library = bool(needs & {*LIBRARY, "logistic", "softplus"})
        link = " -lm" if needs_library else ""
        lines = [
            *self.about(),
            "",
            f"C99, also C++; {self.promise}. To compile and use it:",
            "  cc -O2 -c FILE.c",
            f"  cc program.c FILE.o{link}",
            f"where program.c includes the header beside this file and calls {self.calls()}.",
        ]
        includes = ["#include <float.h>\n"] * (PIECES in needs) + ["#include <math.h>\n"] * needs_library
        parts = [
            comment(lines),
            "".join(includes),
            self.declarations(),
            *(self.filled(text) for kind, text in HELPERS.items() if kind in needs),
            *(self.function(j, one) for j, one in enumerate(functions)),
            self.body(),
        ]
        return "\n".join(part for part in parts if part)

    def function(self, j: int, function: Univariate) -> str:
        """One of the functions g and, where it is needed, its slope."""
        said = f"/* Function {j + 1}, {domain_text(self.model.domains[j])}. */\n"
        if not isinstance(function, Pieces):
            value, slope = self.formula(function.expression), self.formula(function.slope)
            return said + self.pair(j, value, slope)
        rows = np.column_stack([function.middle, function.rate, function.powers.T])
        lines = ",\n    ".join(map(self.numbers, rows))
        count, degree = len(function.breaks), len(function.powers) - 1
        tables = (
            f"static const {self.words['real']} g{j + 1}_breaks[{count}] = {self.table(function.breaks)};\n"
            f"static const {self.words['real']} g{j + 1}_rows[{rows.size}] = {{\n    {lines}\n}};\n\n"
        )
        arguments = f"g{j + 1}_breaks, {count}, g{j + 1}_rows, {degree}, u"
        return said + tables + self.pair(j, f"piecewise({arguments})", f"piecewise_slope({arguments})")

    def pair(self, j: int, value: str, slope: str) -> str:
        """The C functions of a function: its value and, where it is needed, its slope."""
        text = "static $real $called($real u)\n{\n    return $result;\n}\n"
        results = {f"g{j + 1}": value} | ({f"g{j + 1}_slope": slope} if self.slopes else {})
        return "\n".join(self.filled(text, called=called, result=result) for called, result in results.items())

    def formula(self, expression: Expression) -> str:
        """An expression; one that does not see u is still not a number where u is none."""
        text = self.language.spell(expression)
        return f"u != u ? u : {text}" if is_constant(expression) else text

    def matrices(self) -> str:
        """The matrices of the model, and W0 x."""
        model = self.model
        bias = self.filled(BIAS, bias=self.table(model.bias))
        if not model.rank:
            return bias
        tables = self.filled(MATRICES, W0=self.table(model.W0), W1=self.table(model.W1))
        return tables + bias + "\n" + self.filled(DIRECTIONS)

    def values(self, called: str) -> str:
        """The function of this name, f = W1 g(W0 x) + bias."""
        lines = "\n".join(f"    g[{j}] = g{j + 1}(u[{j}]);" for j in range(self.model.rank))
        return self.filled(VALUES if self.model.rank else BIAS_ALONE, called=called, values=lines)

    def jacobian(self, called: str) -> str:
        """The function of this name, J = W1 diag(g') W0."""
        lines = "\n".join(f"    slope[{j}] = g{j + 1}_slope(u[{j}]);" for j in range(self.model.rank))
        return self.filled(JACOBIAN if self.model.rank else NO_SLOPES, called=called, slopes=lines)

    def filled(self, text: str, **words: object) -> str:
        """A template with this program's words."""
        return Template(text).substitute(self.words, **words)

    def table(self, numbers: Array) -> str:
        """Numbers in braces, nested as the array is."""
        if numbers.ndim > 1:
            return "{\n    " + ",\n    ".join(self.table(row) for row in numbers) + "\n}"
        return "{" + self.numbers(numbers) + "}"

    def numbers(self, row: Array) -> str:
        """Numbers with commas."""
        return row_text(row, self.number, "\n    ")

    def number(self, number: float) -> str:
        """A number that C reads as just this one."""
        return single(number) + "f" if self.f else double(number)


class FunctionProgram(Program):
    """A model in C: its values and its Jacobian."""

    promise = "without allocation or state, so that threads may share it"

    def about(self) -> list[str]:
        """What the program computes, and what wrote it."""
        return heading(self.model)

    def signals(self) -> list[str]:
        """What x and f are called."""
        model = self.model
        return [
            f"Inputs, of {self.name}_values and {self.name}_jacobian:",
            *names_listed([f"x[{k}]" for k in range(model.m)], model.input_names),
            "Outputs:",
            *names_listed([f"f[{i}]" for i in range(model.n)], model.output_names),
        ]

    def calls(self) -> str:
        """What a program that uses it calls."""
        return f"{self.name}_values(x, f)"

    def declarations(self) -> str:
        """The two functions."""
        return self.filled(DECLARATIONS)

    def body(self) -> str:
        """The matrices, and the two functions."""
        values, jacobian = self.values(f"{self.name}_values"), self.jacobian(f"{self.name}_jacobian")
        return "\n".join([self.matrices(), values, jacobian])


def comment(lines: Iterable[str]) -> str:
    """Lines as a comment."""
    first, *others = lines
    return "\n".join([f"/* {first}", *(f" * {line}".rstrip() for line in others), " */\n"])
