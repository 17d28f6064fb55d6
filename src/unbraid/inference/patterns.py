r"""Is what a fit leaves noise? Residuals of neighbouring samples tell: noise knows nothing of its neighbours.

Samples are put in order along every branch's input, every input and every output's prediction, and each is paired with
its nearest neighbour among all inputs. With residuals e of one number along an order of S samples,

    z = Σ e_t e_{t+1} / Σ e² · √S

is about standard normal where they are noise (a fit makes it a little negative), and large where the model cannot
follow what the samples show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.kernels.arrays import Array, IndexArray, spread_out

PLAIN = 5.0
"""z from which on residuals are plainly no noise, whichever of the many orders shows it."""
PAIRED = 1.5
"""The standard deviation of z where samples are paired with their nearest neighbours, of which some are mutual."""
MOST_SAMPLES, MOST_NUMBERS, MOST_INPUTS = 4000, 60, 30
"""Of which residuals are looked at, at most."""
FEWEST = 20
"""Samples from which on something can be told."""


class Pattern(NamedTuple):
    """What residuals show most plainly: z, of which number of a sample, and along what order."""

    z: float
    number: int
    along: str


def find_pattern(around: Neighbourhood) -> Pattern:
    """The order along which the residuals of neighbours are most alike."""
    problem = around.problem
    S = problem.S
    if S < FEWEST:
        return Pattern(0.0, 0, "")
    some = np.arange(S) if S <= MOST_SAMPLES else np.sort(spread_out(S, MOST_SAMPLES))
    residual = around.residuals(some)
    which = np.arange(residual.shape[1])
    if len(which) > MOST_NUMBERS:
        which = np.sort(spread_out(len(which), MOST_NUMBERS))
    e = standardised(residual[:, which])
    X = problem.X[some]
    best = Pattern(0.0, 0, "")
    for along, order in orders(around, X):
        z = neighbours_alike(e[order][:-1], e[order][1:])
        best = max(best, Pattern(float(z.max()), int(which[np.argmax(z)]), along))
    z = neighbours_alike(e, e[nearest(X, around.objective.units.x_scale)]) / PAIRED
    return max(best, Pattern(float(z.max()), int(which[np.argmax(z)]), "among neighbours"))


def describe_pattern(around: Neighbourhood) -> str | None:
    """Why intervals would mean little, where residuals are plainly no noise; else None."""
    found = find_pattern(around)
    if found.z < PLAIN:
        return None
    problem = around.problem
    n = problem.n if problem.F is not None else 0
    names = problem.output_names or tuple(f"output {i + 1}" for i in range(problem.n))
    of = names[found.number] if found.number < n else f"the slopes of {names[(found.number - n) // problem.m]}"
    return (
        f"What the model leaves of {of} is no noise: residuals are alike {found.along} (z = {found.z:.0f}). It is what "
        "these branches cannot follow, so intervals, which know of noise alone, are too narrow where that is more than "
        "the noise."
    )


def standardised(residual: Array) -> Array:
    """Residuals (S, q) with mean zero and mean square one, zero where unknown or where nothing is left."""
    known = np.maximum(np.count_nonzero(~np.isnan(residual), axis=0), 1)
    with np.errstate(all="ignore"):
        e = residual - np.nansum(residual, axis=0) / known
        e = e / np.sqrt(np.nansum(e**2, axis=0) / known)
    return np.where(np.isfinite(e), e, 0.0)


def neighbours_alike(one: Array, other: Array) -> Array:
    """Z (q,) of products of residuals (S, q) with their neighbours'."""
    return np.asarray(np.sum(one * other, axis=0) / np.sqrt(max(len(one), 1)))


def orders(around: Neighbourhood, X: Array) -> list[tuple[str, IndexArray]]:
    """Names and orders (S,) of the samples along branches' inputs, inputs and predictions."""
    problem, model = around.problem, around.tangent.model
    found = [
        (f"along the input of branch {one.branch + 1}", X @ model.W0[one.branch])
        for one in around.tangent.moves[:MOST_INPUTS]
    ]
    inputs = problem.input_names or tuple(f"input {k + 1}" for k in range(problem.m))
    found += [(f"along {name}", X[:, k]) for k, name in list(enumerate(inputs))[:MOST_INPUTS]]
    outputs = problem.output_names or tuple(f"output {i + 1}" for i in range(problem.n))
    F = model(X)
    found += [(f"along the predicted {name}", F[:, i]) for i, name in list(enumerate(outputs))[:MOST_INPUTS]]
    return [(name, np.argsort(values, kind="stable")) for name, values in found]


def nearest(X: Array, scale: Array) -> IndexArray:
    """The nearest other sample of each (S,), inputs in units of their spread."""
    from scipy.spatial import cKDTree

    points = X / scale
    index = np.asarray(cKDTree(points).query(points, k=2)[1])
    own = np.arange(len(X))
    return np.asarray(np.where(index[:, 0] == own, index[:, 1], index[:, 0]))
