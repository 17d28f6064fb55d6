"""Samples that are exact copies of others: one observation of larger weight, at every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from command_lines import run
from unbraid.kernels.arrays import IndexArray, first_copies
from unbraid.results.fit import Fit
from unbraid.selection.select import folds_of

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (60, 2))
F = np.sin(2.0 * X[:, :1] + X[:, 1:]) + 0.3 * RNG.standard_normal((60, 1))
J = np.cos(2.0 * X[:, :1] + X[:, 1:])[:, :, None] * [2.0, 1.0] + 0.3 * RNG.standard_normal((60, 1, 2))


def copied(times: int | IndexArray, with_J: bool = False) -> ub.Problem:
    """The samples so many times each."""
    return ub.Problem(X.repeat(times, axis=0), F.repeat(times, axis=0), J.repeat(times, axis=0) if with_J else None)


def assert_same(one: Fit, other: Fit) -> None:
    """The same model, found in the same way, and worth the same."""
    np.testing.assert_array_equal(one.model(X), other.model(X))
    assert one.held_out is not None
    assert one.held_out.worst == getattr(other.held_out, "worst", None)


# What counts as what


@pytest.mark.parametrize("columns", [1, 3])
def test_copies_are_found_as_by_comparing_all_rows(columns: int) -> None:
    rng = np.random.default_rng(columns)
    rows, others = rng.integers(-2, 2, (200, columns)).astype(float), rng.integers(0, 2, (200, 2)) / 3.0
    which = np.flatnonzero(rng.uniform(size=200) < 0.8)
    whole = np.hstack([rows, others])[which]
    slow = [which[next(j for j in range(len(whole)) if np.array_equal(whole[j], row))] for row in whole]
    np.testing.assert_array_equal(first_copies([-rows, others], which), slow)  # -0 is 0


def test_other_values_at_the_same_point_are_no_copies() -> None:
    problem = ub.Problem(np.zeros((5, 1)), [1.0, 2.0, 1.0, np.nan, 2.0], weights=[0, 3, 1, 1, 2], missing="mask")
    counting = problem.counting()
    np.testing.assert_array_equal(np.asarray(counting.F), [[2.0], [1.0]])
    np.testing.assert_array_equal(np.asarray(counting.weights), [5.0, 1.0])
    np.testing.assert_array_equal(problem.which_count(), [1, 2])


def test_samples_that_all_have_as_many_copies_have_no_weights() -> None:
    assert copied(3).counting().weights is None
    assert ub.Problem(X, F).counting().S == 60


def test_gaps_in_the_same_places_are_alike() -> None:
    values = np.where(np.arange(4)[:, None] % 2, np.nan, [[1.0, 2.0]])
    values[:, 1] = 2.0
    assert ub.Problem(np.ones((4, 1)), values, missing="mask").counting().S == 2


# Every door gives the fit of the distinct samples


@pytest.mark.parametrize("settings", [{"rank": "auto"}, {"rank": 2}, {"rank": 1, "loss": "huber"}])
@pytest.mark.parametrize("with_J", [False, True])
def test_copies_do_not_change_a_fit(settings: dict[str, Any], with_J: bool) -> None:
    alone, fourfold = (ub.decouple(copied(times, with_J), **settings, starts=2, rng=0) for times in (1, 4))
    assert_same(alone, fourfold)
    assert alone.model.rank == fourfold.model.rank
    assert any("180 of 240 samples are exact copies" in note for note in fourfold.notes)
    assert not any("exact cop" in note for note in alone.notes)


def test_copies_are_weights_and_counted_once_in_what_is_known() -> None:
    times = np.arange(60) % 3 + 1
    weighted = ub.decouple(ub.Problem(X, F, weights=times), 1, starts=2, rng=0)
    repeated = ub.decouple(copied(times), 1, starts=2, rng=0)
    assert_same(weighted, repeated)
    assert weighted.uncertainty().left == repeated.uncertainty().left < 60.0
    np.testing.assert_array_equal(weighted.uncertainty().W0, repeated.uncertainty().W0)


def test_the_command_line_and_a_selection_count_copies_once(tmp_path: Path) -> None:
    errors = []
    for times in (1, 3):
        problem, path = copied(times), tmp_path / f"{times}.npz"
        np.savez(path, X=problem.X, F=np.asarray(problem.F))
        result = run(f"fit {path} --rank 1 --starts 2 --json -o {tmp_path / 'model.npz'}")
        errors.append(json.loads(result.stdout)["held_out"]["output_errors"])
    assert errors[0] == errors[1]
    assert ub.select(copied(3), [1, 2], starts=1, rng=0).rows[0].error == pytest.approx(
        ub.select(copied(1), [1, 2], starts=1, rng=0).rows[0].error
    )


def test_methods_that_know_no_weights_get_all_copies_and_hold_them_out_together() -> None:
    times = np.arange(60) % 3 + 1
    problem, which = copied(times, with_J=True), np.arange(60).repeat(times)
    method = ub.methods.decuyper2022(max_sweeps=3)
    assert np.isfinite(ub.decouple(problem, 1, method=method, starts=1, rng=0).model.W0).all()
    fold = folds_of(problem, 5, np.random.default_rng(0))
    assert len(set(zip(which, fold, strict=True))) == 60
    assert set(fold) == set(range(5))


def test_copies_in_files_are_told_of(tmp_path: Path) -> None:
    given = []
    for name, array in (("X", copied(4).X), ("F", np.asarray(copied(4).F))):
        np.save(tmp_path / f"{name}.npy", array)
        given.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    fit = ub.decouple(ub.Problem(*given), 1, starts=1, rng=0)
    assert any("In files and Dask arrays copies are not merged" in note for note in fit.notes)


@pytest.mark.parametrize("distinct", [1, 4])
def test_many_copies_of_few_samples_end_in_a_finite_model(distinct: int) -> None:
    problem = copied(10).take(slice(10 * distinct))
    for basis in (None, ub.BSpline(df=8)):
        fit = ub.decouple(problem, 1, basis=basis, starts=2, rng=0)
        assert np.isfinite(fit.model(problem.X)).all()
        assert fit.held_out is None
        assert any("points in X are the same" in note for note in fit.notes) == (distinct == 1)
