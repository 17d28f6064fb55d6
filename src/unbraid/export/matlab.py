r"""Models as a function of MATLAB and Octave, [f, J] = name(X), without toolboxes and without a loop over samples."""

from __future__ import annotations

import re

from unbraid.errors import SettingError
from unbraid.export.comments import domain_text, heading, names_listed
from unbraid.export.files import Options
from unbraid.export.numerals import double, row_text
from unbraid.export.portable import Portable, Univariate, as_portable
from unbraid.export.spelling import CONSTANT, PIECES, Language, is_constant, needs_of
from unbraid.kernels.arrays import Array
from unbraid.kernels.pieces import Pieces
from unbraid.results.branches.expressions import Expression
from unbraid.results.model import DecoupledModel

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        "break case catch classdef continue do else elseif end end_try_catch end_unwind_protect endclassdef endfor "
        "endfunction endif endmethods endparfor endproperties endswitch endwhile for function global if methods "
        "otherwise parfor persistent properties return spmd switch try until unwind_protect unwind_protect_cleanup "
        "while",
    )
)
"""Names that MATLAB and Octave keep for themselves."""
SEARCH = """\
function [value, slope] = piecewise(u, breaks, middle, rate, powers)
% Polynomials in t = (u - middle) rate between breaks, and their slopes; the lowest power is in the first row.
    piece = ones(size(u));
    for k = 1:numel(breaks)
        piece = piece + (u >= breaks(k));
    end
    rate = reshape(rate(piece), size(u));
    t = (u - reshape(middle(piece), size(u))) .* rate;
    far = isinf(t);
    near = t;
    near(far) = 0;
    value = zeros(size(u));
    slope = zeros(size(u));
    for p = size(powers, 1):-1:1
        slope = slope .* near + value;
        value = value .* near + reshape(powers(p, piece), size(u));
    end
    if any(far)  % the highest power that is there decides
        c = reshape(powers(1, piece), size(u));
        value(far) = c(far);
        slope(far) = 0;
        for p = 2:size(powers, 1)
            c = reshape(powers(p, piece), size(u));
            there = far & c ~= 0;
            value(there) = c(there) .* t(there) .^ (p - 1);
            slope(there) = (p - 1) * c(there) .* t(there) .^ (p - 2);
        end
    end
    slope = slope .* rate;
end
"""
HELPERS = {
    PIECES: SEARCH,
    CONSTANT: """\
function y = constant(u, number)
    y = number * ones(size(u));
    y(isnan(u)) = NaN;
end
""",
    "log": """\
function y = real_log(t)
    t(t < 0) = NaN;
    y = log(t);
end
""",
    "sqrt": """\
function y = real_sqrt(t)
    t(t < 0) = NaN;
    y = sqrt(t);
end
""",
    "logistic": """\
function y = logistic(t)
    y = 0.5 * tanh(0.5 * t) + 0.5;
end
""",
    "softplus": """\
function y = softplus(t)
    y = t;
    y(t < 0) = 0;
    y = y + log1p(exp(-abs(t)));
end
""",
    "step": """\
function y = step(t)
    y = double(t > 0);
    y(isnan(t)) = NaN;
end
""",
    "rectifier": """\
function y = rectifier(t)
    y = t;
    y(t < 0) = 0;
end
""",
    "saturation": """\
function y = saturation(t)
    y = t;
    y(t < -1) = -1;
    y(t > 1) = 1;
end
""",
}
"""What MATLAB lacks, or takes further than to real numbers, each written out where a formula needs it."""
SPELLINGS = {"log": "real_log", "sqrt": "real_sqrt"}


MATLAB = Language(double, " .* ", SPELLINGS, lambda base, exponent: f"{base} .^ {exponent}")


def write(model: DecoupledModel, options: Options) -> dict[str, bytes]:
    """The function's file."""
    return as_file(function_file(as_portable(model), options.name), options.name)


def as_file(text: str, name: str) -> dict[str, bytes]:
    """The file of a function, refused where its name means something else."""
    check_free(name, words_of(text, name))
    return {".m": text.encode("ascii")}


def check_free(name: str, words: set[str]) -> None:
    """Refuse a name that MATLAB or Octave keep for themselves, or that a file uses for something else."""
    if name in KEYWORDS | words:
        raise SettingError(f"{name!r} cannot be the name of an exported function: it has another meaning there.")


def words_of(text: str, name: str) -> set[str]:
    """The words of a file, without its comments and the function's own name, which stands in its first line."""
    code = [line for line in text.replace(f"= {name}(", "= (", 1).splitlines() if not line.startswith("%")]
    return set(re.findall(r"[A-Za-z]\w*", "\n".join(code)))


def function_file(model: Portable, name: str) -> str:
    """The text of the file."""
    lines = [
        *heading(model),
        "",
        f"f = {name}(X) has the values (S, {model.n}) at points X (S, {model.m}), a row a point;",
        f"[f, J] = {name}(X) also has the derivatives J (S, {model.n}, {model.m}). No toolboxes; also for Octave.",
        "",
        "Inputs:",
        *names_listed([f"X(.,{k + 1})" for k in range(model.m)], model.input_names),
        "Outputs:",
        *names_listed([f"f(.,{i + 1})" for i in range(model.n)], model.output_names),
    ]
    return "\n".join([main_function(model, name, lines), *branch_functions(model)])


def branch_functions(model: Portable) -> list[str]:
    """The functions g, and what they need."""
    needs = needs_of(model.functions)
    functions = [function_text(j, one, model.domains[j]) for j, one in enumerate(model.functions)]
    return functions + [text for kind, text in HELPERS.items() if kind in needs]


def main_function(model: Portable, name: str, lines: list[str]) -> str:
    """The function that others call."""
    branches = range(1, model.rank + 1)
    return "\n".join(
        [
            f"function [f, J] = {name}(X)",
            *(f"% {line}".rstrip() for line in lines),
            f"    W0 = {matrix(model.W0)};",
            f"    W1 = {matrix(model.W1)};",
            f"    bias = {matrix(model.bias[None])};",
            "    U = X * W0.';",
            "    G = zeros(size(U));",
            "    if nargout < 2",
            *(f"        G(:, {j}) = g{j}(U(:, {j}));" for j in branches),
            "    else",
            "        slopes = zeros(size(U));",
            *(f"        [G(:, {j}), slopes(:, {j})] = g{j}(U(:, {j}));" for j in branches),
            f"        J = zeros(size(X, 1), {model.n}, {model.m});",
            f"        for k = 1:{model.m}",
            "            J(:, :, k) = (slopes .* W0(:, k).') * W1.';",
            "        end",
            "    end",
            "    f = G * W1.' + bias;",
            "end\n",
        ]
    )


def function_text(j: int, function: Univariate, domain: tuple[float, float]) -> str:
    """Function j and its slope."""
    first = f"function [value, slope] = g{j + 1}(u)\n% Function {j + 1}, {domain_text(domain)}.\n"
    if not isinstance(function, Pieces):
        value, slope = formula_text(function.expression), formula_text(function.slope)
        return f"{first}    value = {value};\n    slope = {slope};\nend\n"
    rows = [("breaks", function.breaks[None]), ("middle", function.middle[None]), ("rate", function.rate[None])]
    tables = [f"    {name} = {matrix(array)};\n" for name, array in [*rows, ("powers", function.powers)]]
    return first + "".join(tables) + "    [value, slope] = piecewise(u, breaks, middle, rate, powers);\nend\n"


def formula_text(expression: Expression) -> str:
    """An expression of u."""
    text = MATLAB.spell(expression)
    return f"constant(u, {text})" if is_constant(expression) else text


def matrix(array: Array) -> str:
    """A matrix in brackets, a row a line, continued where it is long; one without entries still has its size."""
    if not array.size:
        return f"zeros({array.shape[0]}, {array.shape[1]})"
    rows = [row_text(row, double, " ...\n         ") for row in array]
    return "[" + "\n        ".join(rows) + "]"
