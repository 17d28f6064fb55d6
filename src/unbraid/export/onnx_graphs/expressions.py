r"""Closed formulas as nodes of ONNX.

What onnxruntime has, or earlier versions of it had, in single precision only is composed: the cosine of t,
1 - 2 sin²(t/2), the arctangent φ of t from its single-precision value φ_0,

    φ = φ_0 + arctan δ,   δ = (t cos φ_0 - sin φ_0) / (cos φ_0 + t sin φ_0),   arctan δ = δ for |δ| < 1e-6,

and log(1 + z) = z log(w) / (w - 1), w being 1 + z as it is rounded, which has all its digits for small z as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from unbraid.export.onnx_graphs.nodes import Graph
from unbraid.results.branches.expressions import NUMBER, POWER, PRODUCT, SUM, VARIABLE, Expression

FARTHEST = 1e300
"""Beyond it, an arctangent is what it is at infinity."""


def write_expression(graph: Graph, expression: Expression, u: str) -> str:
    """The value of an expression at u, a single number where it is constant."""
    if expression.kind == NUMBER:
        return graph.numbers(expression.number)
    if expression.kind == VARIABLE:
        return u
    parts = [write_expression(graph, part, u) for part in expression.parts]
    if expression.kind in (SUM, PRODUCT):
        return graph.node("Add" if expression.kind == SUM else "Mul", *parts)
    if expression.kind == POWER:
        return whole_power(graph, parts[0], int(expression.number))
    return OPERATORS[expression.kind](graph, parts[0])


def whole_power(graph: Graph, base: str, exponent: int) -> str:
    """The power by products alone."""
    product = reduce(lambda a, b: graph.node("Mul", a, b), [base] * abs(exponent))
    return product if exponent > 0 else graph.node("Reciprocal", product)


def operator(name: str) -> Callable[[Graph, str], str]:
    """A function that ONNX has."""
    return lambda graph, t: graph.node(name, t)


def cosine(graph: Graph, t: str) -> str:
    """The cosine of t, in double precision from the sine of one half of t."""
    if not graph.double:
        return graph.node("Cos", t)
    half = graph.node("Sin", graph.node("Mul", t, graph.numbers(0.5)))
    square = graph.node("Mul", half, half)
    return graph.node("Sub", graph.numbers(1.0), graph.node("Add", square, square))


def arctangent(graph: Graph, t: str) -> str:
    """The arctangent of t, in double precision by one correction."""
    if not graph.double:
        return graph.node("Atan", t)
    t = graph.node("Clip", t, graph.numbers(-FARTHEST), graph.numbers(FARTHEST))
    rough = graph.node("Atan", graph.node("Cast", t, to=graph.kind_of(np.float32)))
    angle = graph.node("Cast", rough, to=graph.kind)
    sin, cos = graph.node("Sin", angle), cosine(graph, angle)
    above = graph.node("Sub", graph.node("Mul", t, cos), sin)
    below = graph.node("Add", cos, graph.node("Mul", t, sin))
    return graph.node("Add", angle, graph.node("Div", above, below))


def logistic(graph: Graph, t: str) -> str:
    """½ tanh(½ t) + ½."""
    half = graph.numbers(0.5)
    return graph.node("Add", graph.node("Mul", graph.node("Tanh", graph.node("Mul", t, half)), half), half)


def softplus(graph: Graph, t: str) -> str:
    """max(t, 0) + log(1 + exp(-|t|))."""
    z = graph.node("Exp", graph.node("Neg", graph.node("Abs", t)))
    one = graph.numbers(1.0)
    w = graph.node("Add", z, one)
    added = graph.node("Sub", w, one)
    logarithm = graph.node("Div", graph.node("Mul", z, graph.node("Log", w)), added)
    lost = graph.node("Equal", w, one)
    return graph.node("Add", graph.node("Relu", t), graph.node("Where", lost, z, logarithm))


def step(graph: Graph, t: str) -> str:
    """1 where t > 0, else 0; NaN stays NaN."""
    positive = graph.node("Cast", graph.node("Greater", t, graph.numbers(0.0)), to=graph.kind)
    return graph.node("Where", graph.node("IsNaN", t), t, positive)


def saturation(graph: Graph, t: str) -> str:
    """t, kept between -1 and 1."""
    return graph.node("Clip", t, graph.numbers(-1.0), graph.numbers(1.0))


OPERATORS: dict[str, Callable[[Graph, str], str]] = {
    "exp": operator("Exp"),
    "log": operator("Log"),
    "sqrt": operator("Sqrt"),
    "sin": operator("Sin"),
    "cos": cosine,
    "tanh": operator("Tanh"),
    "atan": arctangent,
    "logistic": logistic,
    "softplus": softplus,
    "abs": operator("Abs"),
    "sign": operator("Sign"),
    "step": step,
    "rectifier": operator("Relu"),
    "saturation": saturation,
}
"""How each of the elementary functions is written."""
