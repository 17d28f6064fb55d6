"""Sums over blocks of samples, whatever the blocks, and pictures and reports of samples in blocks."""

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from sample_blocks import M, N, chunkings, lazy, moments_of_block, samples
from unbraid.data.checks import Flaws, not_finite
from unbraid.data.reductions import extremes, inputs, mean, outputs, variance
from unbraid.data.units import Units
from unbraid.results.fit import errors_on


@given(data=st.data(), weighted=st.booleans(), gaps=st.booleans(), seed=st.integers(0, 99))
def test_a_sum_over_any_chunks_is_the_sum_over_arrays(data: Any, weighted: bool, gaps: bool, seed: int) -> None:
    arrays = samples(weighted, gaps, seed)
    whole, parts = ub.Problem(**arrays), ub.Problem(**lazy(arrays, chunkings(data)))
    for one, other in zip(parts.sum(moments_of_block, 2.0), whole.sum(moments_of_block, 2.0), strict=True):
        if other is None:
            assert one is None
        else:
            np.testing.assert_allclose(one, other, rtol=1e-13)
    assert parts.complete == whole.complete
    assert parts.known.entries == whole.known.entries
    ours, theirs = Units.balanced(parts), Units.balanced(whole)
    for name in ("center", "x_scale", "f_scale"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-11)
    model = ub.datasets.random_system(n=N, m=M, r=2, S=20, rng=0)[1]
    for error, expected in zip(errors_on(parts, model), errors_on(whole, model), strict=True):
        np.testing.assert_allclose(error, expected, rtol=1e-10)  # type: ignore[arg-type]


@given(weighted=st.booleans(), gaps=st.booleans(), seed=st.integers(0, 99))
def test_means_variances_and_extremes_are_those_of_numpy(weighted: bool, gaps: bool, seed: int) -> None:
    problem = ub.Problem(**samples(weighted, gaps, seed))
    values = np.ma.masked_invalid(np.asarray(problem.F))
    center = mean(problem, outputs)
    np.testing.assert_allclose(center, np.ma.average(values, axis=0, weights=problem.weights), rtol=1e-14)
    spread = np.ma.average((values - center) ** 2, axis=0, weights=problem.weights)
    np.testing.assert_allclose(variance(problem, center, outputs), spread, rtol=1e-12)
    np.testing.assert_array_equal(extremes(problem, inputs), [problem.X.min(axis=0), problem.X.max(axis=0)])
    counts = slice(None) if problem.weights is None else problem.weights > 0.0
    once = mean(problem, inputs, counted_once=True)
    np.testing.assert_allclose(once, problem.X[counts].mean(axis=0), rtol=1e-14)


@given(bad=st.lists(st.booleans(), min_size=2, max_size=30), cut=st.integers(1, 28))
def test_flaws_of_parts_add_up_to_those_of_the_whole(bad: list[bool], cut: int) -> None:
    rows = np.array(bad)[:, None]
    cut = min(cut, len(bad) - 1)
    assert Flaws.of(rows[:cut]) + Flaws.of(rows[cut:]) == Flaws.of(rows)


def test_flaws_are_looked_for_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.kernels.arrays.TEMPORARY_ENTRIES", 4)
    array = np.ones((9, 2))
    array[7, 1] = np.inf
    assert Flaws.among(array, not_finite) == Flaws(9, 1, (7, 1))


# After a fit.


@pytest.mark.usefixtures("no_formulas", "no_layout")
def test_diagnostics_pictures_and_reports_take_dask_arrays(tmp_path: Path) -> None:
    problem, _ = ub.datasets.trig(S=200, rng=0)
    fit = ub.decouple(problem, rank=3, starts=2, rng=0)
    chunks = ub.Problem(da.from_array(problem.X, chunks=(60, 2)), problem.F, problem.J)
    ours, theirs = ub.diagnose(fit, chunks), ub.diagnose(fit)
    np.testing.assert_allclose(ours.importance, theirs.importance, rtol=1e-8)
    assert ours.thinned is None
    ub.plots.branches(fit, problem=chunks)
    ub.plots.weights(fit, problem=chunks)
    assert "samples" not in ub.plots.residuals(fit, chunks).get_xlabel()
    fit.without_problem().report(tmp_path / "report.html", problem=chunks)
    assert "values and Jacobians, in 4 blocks" in (tmp_path / "report.html").read_text()


@pytest.mark.usefixtures("no_formulas", "no_layout")
def test_what_looks_at_some_of_the_samples_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = ub.datasets.trig(S=400, rng=0)
    fit = ub.decouple(problem, rank=3, starts=2, rng=0)
    monkeypatch.setattr("unbraid.data.problem.THIN_SAMPLES", 150)
    assert "150 of 400, spread evenly" in repr(ub.diagnose(fit))
    assert ub.plots.residuals(fit).get_xlabel().endswith("(150 of 400 samples)")
    fit.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Errors are of all 400 samples; figures, misses and shares are of 150 of them, spread evenly." in page
    assert ub.select(problem, [3], starts=1, rng=0).reason.endswith("This was found on 150 of 400 samples.")


def test_reports_name_samples_as_the_user_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, truth = ub.datasets.trig(S=400, rng=0)
    monkeypatch.setattr("unbraid.data.problem.THIN_SAMPLES", 150)
    index = problem.thinning()
    assert index is not None
    F = np.array(problem.F)
    F[index[-2]] += 100.0
    other = ub.Problem(problem.X, F, problem.J)
    ub.decouple(problem, rank=3, starts=1, rng=0).report(tmp_path / "report.html", problem=other)
    assert f"at sample {index[-2]}" in (tmp_path / "report.html").read_text()
    assert truth.rank == 3
