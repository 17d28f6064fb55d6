"""Whether values and Jacobians of samples are those of one function, and if not, what the mistake may be.

Where a model fits both up to their sizes, sizes tell: F ≈ a + c_F F̂ and J ≈ c_J Ĵ, output by output, and
q = c_J / c_F is 1 unless one of the two is too large, -1 where a sign is wrong.

Where it does not, samples are compared with their neighbours (`data.looking.neighbours`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unbraid.data.looking.neighbours import (
    CONTRADICTION,
    KnownSamples,
    Neighbours,
    describe_disorder,
    describe_factor,
    describe_mending,
    describe_output_signs,
    describe_units,
    describe_zeros,
    told,
)
from unbraid.data.problem import Problem
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.results.model import DecoupledModel
from unbraid.results.wild import WILD

FITTED = 0.1
"""The share of the variance that a model may leave and still tell sizes."""
SIZE_ODDS, SIZE_ERRORS = 1.04, 5.0
"""Sizes that differ by less than this factor, or by fewer standard errors, are the same."""


def describe_contradiction(problem: Problem, model: DecoupledModel) -> str | None:
    """The sentence to be said where values and Jacobians are not those of one function; None where they may be."""
    samples = KnownSamples.of(problem)
    if samples is None:
        return None
    if (unfilled := describe_zeros(samples.F, samples.J)) or not samples.J.any():
        return unfilled
    X, F, J = samples
    varying = samples.varying
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # infinite sums tell nothing, and accuse nobody
        sizes = compare_sizes(F[:, varying], model(X)[:, varying], J[:, varying], model.jacobian(X)[:, varying])
        near = Neighbours.of(X, F, J)
        if (signs := describe_output_signs(near)) is not None:
            return signs
        if sizes.fitted:
            return describe_mending(near) or describe_sizes(sizes, np.flatnonzero(varying)) or describe_units(near)
        return describe_mending(near) or describe_units(near) or describe_factor(near) or describe_disorder(near, J)


class RelativeSizes(NamedTuple):
    """How large Jacobians are beside values, as a model shows it.

    Attributes
    ----------
    q
        (n,), the size of Jacobians over that of values.
    doubt
        (n,), how far its logarithm may be off: a model that leaves a share of the variance, by the root of that.
    fitted
        Whether the model fits both, up to their sizes.
    """

    q: Array
    doubt: Array
    fitted: bool


def compare_sizes(F: Array, F_hat: Array, J: Array, J_hat: Array) -> RelativeSizes:
    """How large Jacobians are beside values, as a model shows it that has one size for both."""
    values, modelled = F - F.mean(axis=0), F_hat - F_hat.mean(axis=0)
    tiny = np.finfo(float).tiny
    c_values = np.sum(values * modelled, axis=0) / np.maximum(np.sum(modelled**2, axis=0), tiny)
    c_slopes = np.sum(J * J_hat, axis=(0, 2)) / np.maximum(np.sum(J_hat**2, axis=(0, 2)), tiny)
    left = np.sum((values - c_values * modelled) ** 2, axis=0) / np.maximum(np.sum(values**2, axis=0), tiny)
    left_slopes = np.sum((J - c_slopes[:, None] * J_hat) ** 2, axis=(0, 2)) / np.maximum(
        np.sum(J**2, axis=(0, 2)), tiny
    )
    fitted = bool(max(left.max(), left_slopes.max()) < FITTED and np.abs(c_values).min() > tiny)
    q = c_slopes / c_values if fitted else np.ones(len(left))
    chance = SIZE_ERRORS * np.sqrt((left + left_slopes) / len(F))
    return RelativeSizes(q, np.maximum(chance, np.sqrt(np.maximum(left, left_slopes))), fitted)


def describe_sizes(sizes: RelativeSizes, outputs: IndexArray) -> str | None:
    """The sentence where Jacobians have another size, or sign, than values say."""
    off = np.abs(np.log(np.abs(sizes.q))) > np.maximum(np.log(SIZE_ODDS), sizes.doubt)
    wrong = off | (sizes.q < 0.0)
    if not wrong.any():
        return None
    q = sizes.q[wrong]
    same = wrong.all() and np.ptp(q) < 0.05 * np.abs(q).max()
    where = "" if same else f" in output {', '.join(str(i + 1) for i in outputs[wrong][:6])}"
    sure = f"By a model that fits both, that is known to within {100.0 * np.expm1(sizes.doubt[wrong].max()):.2g} %. "
    if np.all(np.abs(q + 1.0) < 0.05):
        return told("J has the wrong sign", where)
    times = f"{np.median(q):.3g}" if same or len(q) == 1 else f"between {q.min():.3g} and {q.max():.3g}"
    return told(f"J is {times} times the Jacobian of the values: a factor is missing, or units differ", where, sure)


def with_contradiction_first(notes: Sequence[str]) -> tuple[str, ...]:
    """Notes in their order, but for those that put all others in doubt."""
    return tuple(sorted(notes, key=lambda note: not puts_all_in_doubt(note)))


def puts_all_in_doubt(note: str) -> bool:
    """Whether a note tells of wild samples, or of values and Jacobians that contradict each other."""
    return note.startswith((CONTRADICTION, WILD))
