"""Batches of starts: every field goes along, whatever it is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import unbraid as ub
from unbraid.kernels.arrays import Array
from unbraid.solvers.batch import Batch
from unbraid.solvers.iterates import Iterates


@dataclass(frozen=True)
class Starts(Batch):
    """One field of each kind."""

    models: Iterates
    objective: Array
    names: tuple[str, ...]
    nothing: Array | None
    sweep: int


def starts(names: str, seed: int) -> Starts:
    """Random starts of these names."""
    rng, B = np.random.default_rng(seed), len(names)
    W0, W1, a = rng.normal(size=(B, 3, 2)), rng.normal(size=(B, 4, 3)), rng.normal(size=(B, 3, 8))
    placement = ub.BSpline(df=7).place(rng.normal(size=(B, 3, 30)))
    return Starts(Iterates(W0, W1, placement, a), rng.normal(size=B), tuple(names), None, 5)


def assert_same(one: Starts, other: Starts) -> None:
    """All fields agree, to the last bit."""
    assert (one.names, one.nothing, one.sweep) == (other.names, other.nothing, other.sweep)
    np.testing.assert_array_equal(one.objective, other.objective)
    for name in ("W0", "W1", "a"):
        np.testing.assert_array_equal(getattr(one.models, name), getattr(other.models, name))
    np.testing.assert_array_equal(one.models.placement.knots(), other.models.placement.knots())


def test_joined_batches_come_apart_again() -> None:
    one, other = starts("abc", 0), starts("de", 1)
    both = Starts.join([one, other])
    assert both.names == tuple("abcde")
    assert_same(both.take(np.arange(3)), one)
    assert_same(both.take(np.array([3, 4])), other)


def test_starts_are_taken_in_the_order_asked_for() -> None:
    one = starts("abc", 0)
    assert_same(one.take(np.array([2, 0])), Starts.join([one.take(np.array([2])), one.take(np.array([0]))]))


def test_merged_batches_have_each_start_from_one_of_them() -> None:
    one, other = starts("abc", 0), starts("ABC", 1)
    mixed = one.merge(np.array([False, True, False]), other)
    assert mixed.names == ("a", "B", "c")
    assert_same(mixed, Starts.join([one.take(np.array([0])), other.take(np.array([1])), one.take(np.array([2]))]))
