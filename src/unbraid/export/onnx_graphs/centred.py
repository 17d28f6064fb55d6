r"""Models about the middle of what they were learned on, which in single precision keep the digits that matter.

An input of 1000 ± 1 has seven digits as a float, and four of them say 1000. With a point x0 in the middle of the data,

    f(x) = W1 h(W0 (x - x0)) + bias',        h_j(v) = g_j(v + w_jᵀ x0) - g_j(c_j),        bias' = bias + W1 g(c),

differences are taken before anything is rounded, and no branch has a constant that another one has to take away again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbraid.export.portable import Portable, Univariate
from unbraid.kernels.arrays import Array
from unbraid.kernels.pieces import Pieces

LEAST = 1e-3
"""Directions of less than this share of the longest one say nothing about where the middle is."""


def centred(model: Portable) -> tuple[Portable, Array]:
    """The model as a function of x - x0, and x0 (m,), which has no more digits than single precision has."""
    x0 = middle_of(model).astype(np.float32).astype(np.float64)
    shifts = model.W0 @ x0
    functions, constants = [], np.zeros(model.rank)
    for j, (function, domain) in enumerate(zip(model.functions, model.domains, strict=True)):
        moved = shifted(function, shifts[j])
        if isinstance(moved, Pieces):
            constants[j] = moved.value_at(0.5 * (domain[0] + domain[1]) - shifts[j])
            powers = moved.powers.copy()
            powers[0] -= constants[j]
            moved = replace(moved, powers=powers)
        functions.append(moved)
    domains = tuple((low - by, high - by) for (low, high), by in zip(model.domains, shifts.tolist(), strict=True))
    bias = model.bias + model.W1 @ constants
    return replace(model, functions=tuple(functions), domains=domains, bias=bias), x0


def middle_of(model: Portable) -> Array:
    """The shortest x0 (m,) at which branches are in the middles of their domains, as nearly as may be."""
    low, high = np.array(model.domains).T
    known = np.isfinite(low) & np.isfinite(high) & (high > low)
    if not known.any():
        return np.zeros(model.m)
    length, middle = (high - low)[known], 0.5 * (high + low)[known]
    found = np.linalg.lstsq(model.W0[known] / length[:, None], middle / length, rcond=LEAST)[0]
    return np.asarray(found)


def shifted(function: Univariate, by: float) -> Univariate:
    """The function g(v + by) of v."""
    if isinstance(function, Pieces):
        return replace(function, breaks=function.breaks - by, middle=function.middle - by)
    with np.errstate(over="ignore"):  # what is beyond floating point is refused when it is written
        return function.shifted(-by)
