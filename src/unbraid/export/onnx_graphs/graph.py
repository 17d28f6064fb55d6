r"""Models as graphs of ONNX: X (S, m) goes in, f (S, n) comes out, and J (S, n, m) where it is asked for.

    U = X W0ᵀ,        f = R W1ᵀ + bias,        J = (W1 diag(G)) W0,

with R and G the values and slopes of the branches at U, (S, r). All branches that are piecewise polynomials are
evaluated at once: their pieces are found by halving (`tables`), middles, rates and powers are looked up, and Horner's
scheme is run; each formula has nodes of its own. In single precision the model is `centred` first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from unbraid.export.files import Options
from unbraid.export.onnx_graphs.centred import centred
from unbraid.export.onnx_graphs.expressions import write_expression
from unbraid.export.onnx_graphs.nodes import Graph, check_onnx
from unbraid.export.portable import Portable, as_portable
from unbraid.export.tables import tabulate
from unbraid.kernels.pieces import Pieces
from unbraid.results.branches.expressions import Expression
from unbraid.results.branches.forms import Formula
from unbraid.results.model import DecoupledModel


class Evaluated(NamedTuple):
    """The names of values and slopes of some branches; slopes are none where they are not asked for."""

    values: str
    slopes: str | None


def write(model: DecoupledModel, options: Options) -> dict[str, bytes]:
    """The contents of an `.onnx` file."""
    check_onnx()
    portable, graph = pieces_first(as_portable(model)), Graph(options.dtype)
    X = "X"
    if not graph.double:
        portable, x0 = centred(portable)
        X = graph.node("Sub", X, graph.numbers(x0))
    W0, W1 = graph.numbers(portable.W0.T), graph.numbers(portable.W1.T)
    U = graph.node("MatMul", X, W0)
    R, G = branch_nodes(graph, portable, U, options.jacobian)
    outputs: dict[str, list[str | int]] = {"f": ["S", portable.n]}
    graph.node("Add", graph.node("MatMul", R, W1), graph.numbers(portable.bias))
    graph.rename_last("f")
    if G is not None:
        spread = graph.node("Mul", graph.node("Unsqueeze", G, graph.axes([1])), graph.numbers(portable.W1))
        graph.node("MatMul", spread, graph.numbers(portable.W0))
        graph.rename_last("J")
        outputs["J"] = ["S", portable.n, portable.m]
    names = {"input_names": json.dumps(portable.input_names), "output_names": json.dumps(portable.output_names)}
    proto = graph.finished(options.name, {"X": ["S", portable.m]}, outputs, names)
    return {".onnx": proto.SerializeToString(deterministic=True)}


def pieces_first(model: Portable) -> Portable:
    """The same model with its piecewise polynomials before its formulas."""
    order = sorted(range(model.rank), key=lambda j: isinstance(model.functions[j], Formula))
    functions, domains = (tuple(some[j] for j in order) for some in (model.functions, model.domains))
    return replace(model, W0=model.W0[order], W1=model.W1[:, order], functions=functions, domains=domains)  # type: ignore[arg-type]


def branch_nodes(graph: Graph, model: Portable, U: str, slopes: bool) -> Evaluated:
    """All branches at U (S, r), piecewise polynomials first: (S, r). What is not a number stays none."""
    pieces = [one for one in model.functions if isinstance(one, Pieces)]
    formulas = [one for one in model.functions if isinstance(one, Formula)]
    parts = [pieces_nodes(graph, pieces, columns(graph, U, 0, len(pieces)), slopes)] if pieces else []
    for j, formula in enumerate(formulas, start=len(pieces)):
        parts.append(formula_nodes(graph, formula, columns(graph, U, j, j + 1), slopes))
    unknown = graph.node("IsNaN", U)

    def joined(names: Sequence[str]) -> str:
        return graph.node("Where", unknown, U, graph.node("Concat", *names, axis=1))

    values = joined([part.values for part in parts])
    return Evaluated(values, joined([part.slopes for part in parts if part.slopes is not None]) if slopes else None)


def columns(graph: Graph, U: str, first: int, end: int) -> str:
    """Some columns of U."""
    return graph.node("Slice", U, *(graph.axes([one]) for one in (first, end, 1)))


def pieces_nodes(graph: Graph, functions: Sequence[Pieces], u: str, slopes: bool) -> Evaluated:
    """Piecewise polynomials at u (S, r)."""
    table = tabulate(functions)
    breaks, place = graph.numbers(table.breaks.ravel()), graph.places(table.start)
    for up, down in table.turns:
        reached = graph.node("GreaterOrEqual", u, graph.node("Gather", breaks, place))
        place = graph.node("Add", place, graph.node("Where", reached, graph.places(up), graph.places(down)))
    middle, rate, *powers = (
        graph.node("Gather", graph.numbers(one.ravel()), place) for one in (table.middle, table.rate, *table.powers)
    )
    t = graph.node("Mul", graph.node("Sub", u, middle), rate)
    value, slope = powers.pop(), None
    while powers:
        if slopes:
            slope = value if slope is None else graph.node("Add", graph.node("Mul", slope, t), value)
        value = graph.node("Add", graph.node("Mul", value, t), powers.pop())
    value = with_limits(graph, t, value, [one.value_at for one in functions])
    if slope is not None:
        slope = with_limits(graph, t, graph.node("Mul", slope, rate), [one.slope_at for one in functions])
    return Evaluated(value, slope)


def with_limits(graph: Graph, t: str, value: str, functions: Sequence[Callable[[float], float]]) -> str:
    """Values, and where t is infinite the limits of the functions: sums of infinities have none."""
    for end, other in ((-np.inf, "detect_positive"), (np.inf, "detect_negative")):
        limit = graph.constant(np.array([one(end) for one in functions], graph.dtype))
        value = graph.node("Where", graph.node("IsInf", t, **{other: 0}), limit, value)
    return value


def formula_nodes(graph: Graph, formula: Formula, u: str, slopes: bool) -> Evaluated:
    """A formula at u (S, 1)."""

    def written(expression: Expression) -> str:
        value = write_expression(graph, expression, u)
        return value if not is_constant(expression) else graph.node("Expand", value, graph.node("Shape", u))

    return Evaluated(written(formula.expression), written(formula.slope) if slopes else None)


def is_constant(expression: Expression) -> bool:
    """Whether a formula does not see its variable."""
    return expression.kind != "variable" and all(is_constant(part) for part in expression.parts)
