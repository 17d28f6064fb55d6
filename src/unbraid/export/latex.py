r"""Models as mathematics in LaTeX: a fragment with `align*` of amsmath, to be put into a paper.

What the terms are is said by `results.branches.terms`. Branches that are no formulas are curves g_j(u), and follow as
polynomials in u - u_i between points u_i.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from unbraid.errors import SettingError
from unbraid.export.files import Options
from unbraid.export.portable import as_portable
from unbraid.kernels.arrays import Array
from unbraid.kernels.pieces import Pieces
from unbraid.results.branches.scipy_pieces import about_starts
from unbraid.results.branches.terms import Output, output_terms, to_digits
from unbraid.results.branches.words import Notation, curves
from unbraid.results.model import DecoupledModel
from unbraid.runtime.text import clean_name

DIGITS = 4
"""Significant digits of numbers."""
WIDTH = 60
"""Letters of a formula from which on it goes on in the next line."""
MARKUP = re.compile(r"\\[a-z]+|[{}\\,^_]")
"""What is not seen of a formula."""
ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)
DEFINITIONS = {
    "logistic": r"\operatorname{logistic}(t) &= \frac{1}{1 + e^{-t}}",
    "softplus": r"\operatorname{softplus}(t) &= \log(1 + e^{t})",
    "saturation": r"\operatorname{clip}(t) &= \max(-1, \min(1, t))",
    "dead zone": r"\operatorname{deadzone}(t) &= t - \max(-1, \min(1, t))",
}
"""Functions that not everybody knows by these names."""


class LatexNotation(Notation):
    """How formulas are written in LaTeX."""

    minus, space = "-", r"\,"
    functions = {  # noqa: RUF012 - of every notation its own
        "absolute value": r"\left|{}\right|",
        "rectifier": r"\max\left(0, {}\right)",
        "square root": r"\sqrt{{{}}}",
        "logarithm": r"\log\left({}\right)",
        "exponential": r"\exp\left({}\right)",
        "sine": r"\sin\left({}\right)",
        "cosine": r"\cos\left({}\right)",
        "tanh": r"\tanh\left({}\right)",
        "logistic": r"\operatorname{{logistic}}\left({}\right)",
        "arctangent": r"\arctan\left({}\right)",
        "Gaussian": r"\exp\left(-{}^{{2}}\right)",
        "softplus": r"\operatorname{{softplus}}\left({}\right)",
        "saturation": r"\operatorname{{clip}}\left({}\right)",
        "dead zone": r"\operatorname{{deadzone}}\left({}\right)",
    }

    def name(self, text: str) -> str:
        """A name as upright text, in which nothing is a command."""
        return rf"\text{{{clean_name(text).translate(ESCAPES)}}}"

    def indexed(self, letter: str, i: int) -> str:
        """A letter with a number, counted from 1."""
        return f"{letter}_{{{i + 1}}}"

    def scientific(self, mantissa: str, exponent: int) -> str:
        """A number with a power of ten."""
        return rf"{mantissa} \cdot 10^{{{exponent}}}"

    def bracketed(self, inner: str) -> str:
        """Something in brackets that are as large as it is."""
        return rf"\left({inner}\right)"

    def raised(self, base: str, exponent: int) -> str:
        """A power of what is a letter or in brackets."""
        return f"{base}^{{{exponent}}}"

    def divided(self, number: str, base: str) -> str:
        """A fraction."""
        inner = base.removeprefix(r"\left(").removesuffix(r"\right)") if base.startswith(r"\left(") else base
        return rf"\frac{{{number}}}{{{inner}}}"

    def output(self, i: int) -> str:
        """An output, as a function of x where it has no name."""
        return super().output(i) + ("(x)" if self.output_names is None else "")


def write(model: DecoupledModel, options: Options) -> Mapping[str, bytes]:
    """The fragment of a model."""
    return {".tex": latex_text(model, DIGITS).encode(errors="replace")}


def latex_text(model: DecoupledModel, digits: int) -> str:
    """The formulas of a model, its curves, and what is not known by its name."""
    functions = as_portable(model).functions
    notation = LatexNotation(model.input_names, model.output_names, digits)
    outputs = output_terms(model, digits)
    rows = [f"{notation.output(i)} &= {broken(notation, one)}" for i, one in enumerate(outputs)]
    for j in curves(outputs):
        pieces = functions[j]
        assert isinstance(pieces, Pieces)
        rows.append(f"{notation.indexed('g', j)}(u) &= {cases(notation, pieces)}")
    used = {term.function for output in outputs for term in output.terms}
    rows += [text for name, text in DEFINITIONS.items() if name in used]
    body = " \\\\\n".join(rows)
    return f"% needs \\usepackage{{amsmath}}\n\\begin{{align*}}\n{body}\n\\end{{align*}}\n"


def broken(notation: Notation, output: Output) -> str:
    """An output as a sum that goes on in the next line where it is long."""
    lines: list[str] = []
    parts = notation.parts(output)
    begin, length = 0, 0
    for k, (_, part) in enumerate(parts):
        own = len(MARKUP.sub("", part))
        if k > begin and length + own > WIDTH:
            lines.append(continued(notation, parts[begin:k], bool(lines)))
            begin, length = k, 0
        length += own
    lines.append(continued(notation, parts[begin:], bool(lines)))
    return " \\\\\n  &\\quad ".join(lines)


def continued(notation: Notation, parts: list[tuple[bool, str]], later: bool) -> str:
    """Parts of a sum on one line, which in a later line begins with a sign."""
    text = notation.sum(parts)
    if not later:
        return text
    negative = parts[0][0]
    return f"{{}} {notation.minus} {text.removeprefix(notation.minus)}" if negative else f"{{}} + {text}"


def cases(notation: Notation, pieces: Pieces) -> str:
    """Polynomials between breaks, each in powers of u minus where it begins, the first minus where it ends."""
    breaks = pieces.breaks
    starts = np.concatenate([breaks[:1], breaks])
    with np.errstate(over="ignore", invalid="ignore"):
        powers = about_starts(pieces, starts)
    if not np.isfinite(powers).all():
        raise SettingError("The powers of a branch are beyond floating point: rescale its inputs.")
    whole = float(breaks[-1] - breaks[0]) or 1.0
    lengths = np.concatenate([[whole], np.diff(breaks), [whole]])
    rows = []
    for i in np.flatnonzero(lengths > 0.0):
        low, high = (notation.number(breaks[k]) if 0 <= k < len(breaks) else None for k in (i - 1, i))
        where = f"u < {high}" if low is None else rf"{low} \le u" + (f" < {high}" if high is not None else "")
        rows.append(f"  {notation.sum(local_parts(notation, powers[:, i], starts[i], lengths[i]))} & {where}")
    return "\\begin{cases}\n" + " \\\\\n".join(rows) + "\n\\end{cases}"


def local_parts(notation: Notation, powers: Array, start: float, length: float) -> Iterable[tuple[bool, str]]:
    """The terms of a polynomial in powers of u - start, without those that are nothing over its length."""
    shift = [] if start == 0.0 else [(start > 0.0, notation.number(abs(start)))]
    away = notation.bracketed(notation.sum([(False, "u"), *shift])) if shift else "u"
    powers = np.array([to_digits(float(one), notation.digits) for one in powers])
    sizes = np.abs(powers) * length ** np.arange(len(powers))
    for k in np.flatnonzero(sizes > 0.5 * 10.0**-notation.digits * sizes.max(initial=0.0)):
        if k == 0:
            yield powers[0] < 0.0, notation.number(abs(powers[0]))
        else:
            yield notation.product(powers[k], away if k == 1 else notation.raised(away, int(k)))
