"""What is known of samples, and what is wrong with them: counted in one pass over blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unbraid.data.checks import MASK, Flaws, Missing, not_finite, refuse_infinite, refuse_not_finite
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, IndexArray

if TYPE_CHECKING:
    from unbraid.data.problem import Problem
    from unbraid.data.sample_arrays import SampleArrays


class Known(NamedTuple):
    """How many entries of each output are known: (n,) of F, and (n,) of J; None where there is no such array."""

    values: IndexArray | None
    slopes: IndexArray | None

    @property
    def entries(self) -> int:
        """How many entries are known in all."""
        return sum(int(counts.sum()) for counts in self if counts is not None)


class Census(NamedTuple):
    """Entries that cannot be used, of X, F, J and weights; weights below and above 0; and what is known."""

    X: Flaws
    F: Flaws | None
    J: Flaws | None
    weights: Flaws | None
    negative: Flaws | None
    counting: int
    known: Known


def count_known(block: Problem) -> Known:
    """Count the entries of F and J of a block that are not NaN, output by output."""
    F, J = block.F, block.J
    return Known(
        None if F is None else np.count_nonzero(~np.isnan(F), axis=0),
        None if J is None else np.count_nonzero(~np.isnan(J), axis=(0, 2)),
    )


def all_known(problem: SampleArrays) -> Known:
    """How many entries there are of each output: those that are known where nothing is missing."""
    return Known(
        None if problem.F is None else np.full(problem.n, problem.S),
        None if problem.J is None else np.full(problem.n, problem.S * problem.m),
    )


def census(block: Problem, missing: Missing) -> Census:
    """The census of a block; NaN in F and J is a flaw unless it stands for what is missing."""
    bad = not_finite if missing == "error" else np.isinf
    w = block.weights
    return Census(
        Flaws.of(not_finite(block.X)),
        None if block.F is None else Flaws.of(bad(block.F)),
        None if block.J is None else Flaws.of(bad(block.J)),
        None if w is None else Flaws.of(not_finite(w)),
        None if w is None else Flaws.of(w < 0.0),
        block.S if w is None else int(np.count_nonzero(w > 0.0)),
        all_known(block) if missing == "error" else count_known(block),
    )


def check_entries(problem: Problem, missing: Missing) -> Known:
    """Count what is known of a problem's samples, and raise a sentence where they cannot be used."""
    found = problem.sum(census, missing)
    refuse_not_finite("X", found.X)
    for name, flaws, counts in (("F", found.F, found.known.values), ("J", found.J, found.known.slopes)):
        if flaws is None or counts is None:
            continue
        if missing == "error":
            advice = f"remove those samples or repair them, or {MASK} where NaN stands for what is not known"
            refuse_not_finite(name, flaws, advice)
        else:
            refuse_infinite(name, flaws)
            if not counts.any():
                raise DataError(f"{name} holds nothing but NaN: pass {name}=None.")
    unknown = np.flatnonzero(sum(counts for counts in found.known if counts is not None) == 0)
    if unknown.size:
        raise DataError(f"Output {unknown[0]} is missing throughout, in F and J: leave it out.")
    if found.weights is not None and found.negative is not None and problem.weights is not None:
        check_weights(problem.weights, found.weights, found.negative, found.counting)
    return found.known


def check_weights(weights: Array, flaws: Flaws, negative: Flaws, counting: int) -> None:
    """Refuse weights that are not numbers ≥ 0, with one above 0."""
    refuse_not_finite("weights", flaws)
    if negative.first is not None:
        first = negative.first[0]
        raise DataError(f"weights must be ≥ 0, got {float(np.asarray(weights[first])):g} at weights[{first}].")
    if counting == 0:
        raise DataError("weights are all zero: at least one sample has to count.")
