"""What a fit chose, in words: degrees of freedom, noise, and branches that were left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unbraid as ub
from idle_branches import IDLE, KEPT, five_branches, noisy, three_branches
from unbraid.results.alignment import align
from unbraid.results.carrying import carrying, superfluous
from unbraid.results.notes import Shown, notes_on_branches, notes_on_errors, notes_on_unknowns


def shown(fit: ub.Fit, error: float = 5.0) -> Shown:
    return Shown(fit.model, fit.jacobian_error, np.array([error, 5.0]), fit.smoothing)


def test_a_model_knows_which_branches_carry_something() -> None:
    model = five_branches().model
    assert superfluous(model) == IDLE
    np.testing.assert_array_equal(carrying(model), KEPT)
    constant = ub.DecoupledModel(model.W0, 0.0 * model.W1, model.branches)
    assert superfluous(constant) == []


def test_levels_of_noise_are_numbers_and_words() -> None:
    fit = three_branches()
    assert fit.value_noise is not None
    assert fit.slope_noise is not None
    assert fit.value_noise == pytest.approx([5.0, 5.0], rel=0.3)
    assert fit.slope_noise == pytest.approx(5.0, rel=0.3)
    values = f"{fit.value_noise[0]:.2g}, {fit.value_noise[1]:.2g} % of the spread of values"
    assert fit.noise == f"noise or misfit {values} and {fit.slope_noise:.2g} % of the size of slopes"
    exact = replace(fit, output_errors=np.array([1e-6, np.nan]), jacobian_error=1e-14)
    assert exact.noise == "noise below 0.01 %"
    none = replace(fit, smoothing=None)
    assert none.value_noise is None
    assert none.slope_noise is None
    assert "chosen" not in repr(none)


def test_starts_are_said_to_agree_on_what_they_were_compared_in() -> None:
    assert five_branches().agreement == "3: 1 agrees on all 5 directions, also those left out later"
    assert three_branches().agreement.endswith("on the directions")


def test_branches_that_were_left_out_are_named() -> None:
    [note] = notes_on_branches(shown(five_branches()))
    assert note == (
        "Branches 2 and 4 carry nothing: the data support 3 of 5 branches, and the others were left out. "
        "rank=3 is enough."
    )


def test_no_df_is_advised_where_the_basis_chooses_its_smoothing() -> None:
    problem, few = noisy(), noisy().take(slice(10))
    plain = ub.decouple(problem, 3, basis=ub.BSpline(12), starts=2, rng=0)
    for fit, help_, fewer in (
        (three_branches(), "where that is not noise, try a larger rank, or more starts.", "use fewer branches or more"),
        (five_branches(), "where that is not noise, try more samples or more starts.", "use fewer branches or more"),
        (plain, "try a larger rank or df, or more starts.", "use a smaller df, fewer branches, or more"),
    ):
        [error] = notes_on_errors(problem, shown(replace(fit, jacobian_error=None), 80.0)._replace(jacobian_error=None))
        [unknowns] = notes_on_unknowns(few, 50, shown(fit))
        assert error.endswith(help_)
        assert fewer in unknowns
        assert ("50 degrees of freedom in use" in unknowns) == (fit.smoothing is not None)


def test_a_truth_of_fewer_branches_is_laid_under_those_that_carry_something() -> None:
    _, truth = ub.datasets.trig(S=100, rng=1)
    laid, alone = align(five_branches().model, truth), align(three_branches().model, truth)
    assert [one.found for one in laid] == [KEPT[one.found] for one in alone]
    assert [one.angle for one in laid] == [one.angle for one in alone]
