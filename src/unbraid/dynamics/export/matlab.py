"""Dynamic models as a function of MATLAB and Octave, [y, x] = name(u, x), that simulates a record."""

from __future__ import annotations

import numpy as np

from unbraid.dynamics.export.portable import PortableRecursion, as_recursion
from unbraid.dynamics.models.base import DynamicModel
from unbraid.export.comments import names_listed
from unbraid.export.files import Options
from unbraid.export.matlab import as_file, branch_functions, matrix
from unbraid.export.numerals import row_text


def write(model: DynamicModel, options: Options) -> dict[str, bytes]:
    """The function's file."""
    recursion = as_recursion(model)
    text = "\n".join([main_function(recursion, options.name), *branch_functions(recursion.function)])
    return as_file(text, options.name)


def about(model: PortableRecursion, name: str) -> list[str]:
    """What people need to know."""
    nu, ny = model.nu, model.ny
    return [
        *model.about(),
        "",
        f"y = {name}(u) has the outputs (T, {ny}) under inputs u (T, {nu}), a row a moment, from rest;",
        f"[y, x] = {name}(u, x) begins with a state x, and also has the one behind the last moment, to go on from;",
        f"{model.state_text()}. No toolboxes; also for Octave.",
        "",
        "Inputs:",
        *names_listed([f"u(.,{k + 1})" for k in range(nu)], model.input_names),
        "Outputs:",
        *names_listed([f"y(.,{i + 1})" for i in range(ny)], model.output_names),
    ]


def main_function(model: PortableRecursion, name: str) -> str:
    """The function that others call."""
    function = model.function
    branches = range(1, function.rank + 1)
    return "\n".join(
        [
            f"function [y, x] = {name}(u, x)",
            *(f"% {line}".rstrip() for line in about(model, name)),
            f"    L = {matrix(model.L)};",
            f"    W0 = {matrix(function.W0)};",
            f"    W1 = {matrix(function.W1)};",
            f"    bias = {matrix(function.bias[:, None])};",
            "    if nargin < 2",
            f"        x = {matrix(model.rest[:, None])};",
            "    end",
            "    x = x(:);",
            *(["    u = u(:);"] if model.nu == 1 else []),
            f"    y = zeros(size(u, 1), {model.ny});",
            f"    g = zeros({function.rank}, 1);",
            "    for t = 1:size(u, 1)",
            "        inputs = u(t, :).';",
            *gathered(model),
            "        v = W0 * phi;",
            *(f"        g({j}) = g{j}(v({j}));" for j in branches),
            "        f = L * phi + W1 * g + bias;",
            f"        y(t, :) = f({function.n - model.ny + 1}:{function.n});",
            f"        x = {next_state(model)};",
            "    end",
            "end\n",
        ]
    )


def gathered(model: PortableRecursion) -> list[str]:
    """Lines that put φ together from the state and the inputs of this moment."""
    lines = ["        phi = [x; inputs];"]
    if model.places != tuple(range(model.states + model.nu)):
        places = row_text(1 + np.array(model.places), str, " ...\n            ")
        lines.append(f"        phi = phi([{places}]);")
    return lines


def next_state(model: PortableRecursion) -> str:
    """The state of the next moment: what is there moves on, and f and u come before it."""
    kept, q, nu, states = model.kept_outputs, model.fed, model.nu, model.states
    parts = [f"f(1:{q})", *part_of_state(1, kept - q)]
    if states > kept:
        parts += ["inputs", *part_of_state(kept + 1, states - nu)]
    return f"[{'; '.join(parts)}]" if len(parts) > 1 else parts[0]


def part_of_state(first: int, last: int) -> list[str]:
    """Entries of x, where there are any."""
    return [f"x({first}:{last})"] if first <= last else []
