"""Diagnostics of fits that left branches out: what is said is said of the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import unbraid as ub
from idle_branches import IDLE, KEPT, five_branches, noisy, three_branches
from unbraid.judging.uniqueness import Flat
from unbraid.results.worth.fresh import beyond_training


def test_a_branch_that_carries_nothing_spoils_no_other_diagnostic() -> None:
    found, alone = ub.diagnose(five_branches()), ub.diagnose(three_branches())
    assert found.superfluous == tuple(IDLE)
    assert (found.flat, found.generic, found.parallel) == (alone.flat, alone.generic, ())
    np.testing.assert_allclose(found.importance[KEPT], alone.importance)
    np.testing.assert_array_equal(found.importance[IDLE], 0.0)


def test_what_was_left_out_is_told_and_nothing_else_is_advised() -> None:
    [advice] = ub.diagnose(five_branches()).advice
    assert advice == "Branches 2 and 4 carry nothing, and their directions mean nothing: rank 3 is enough."


def test_what_was_chosen_is_printed_branch_by_branch() -> None:
    fit = five_branches()
    assert fit.smoothing is not None
    said = repr(ub.diagnose(fit))
    one, other, last = (f"{fit.smoothing.freedom[j]:.1f}" for j in KEPT)
    assert f"freedom     {one}, 0, {other}, 0, {last} degrees\n" in said
    assert f"chosen      λ {fit.smoothing.coupling:.3g}; {fit.noise}\n" in said
    assert "of rank 5, of which 3 carry something" in said
    assert "(of all 5 branches, before 2 of them were left out)" in said


def test_nothing_is_printed_where_nothing_was_chosen() -> None:
    problem, _ = ub.datasets.trig(S=100, rng=0)
    said = repr(ub.diagnose(ub.decouple(problem, 3, basis=ub.BSpline(12), starts=2, rng=0)))
    assert "chosen" not in said
    assert "freedom" not in said


def test_the_range_of_a_branch_that_carries_nothing_does_not_count() -> None:
    problem = noisy()
    narrow = five_branches().model  # its fourth direction is three times as long as the range of its branch
    assert not beyond_training(narrow, problem.X).any()
    assert beyond_training(narrow, 3.0 * problem.X).any()


def test_a_smaller_df_is_advised_only_where_one_was_chosen() -> None:
    open_ = replace(ub.diagnose(three_branches()), flat=Flat(2, 0))
    assert open_.smooth
    [free], [fixed] = open_.advice, replace(open_, smooth=False).advice
    assert free.endswith("Use a smaller rank or more samples.")
    assert fixed.endswith("Use a smaller rank, a smaller df, or more samples.")
