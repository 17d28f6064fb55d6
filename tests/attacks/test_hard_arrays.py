"""Samples of any size and shape, with any settings: a finite model with a truthful status, or a sentence."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from draws import check_sentence
from hard_arrays import hard_case

FOUND: tuple[int, ...] = (10, 18, 39, 66, 161, 171, 228, 2373, 2577, 2642, 2962, 3147, 3212, 3935, 3970, 21366)
FOUND += (30_286, 31_386, 40_455, 41_720, 42_454, 42_671, 53_642, 53_692, 54_521)
"""Seeds that found something once."""
FEW, MANY = range(30_000, 30_120), range(40_000, 40_400)
ASIDES = 60, 200, 400
"""Every so many seeds a report is written, two ranks are compared, and a rank is chosen."""


def attack(seed: int) -> ub.Fit | None:
    """The fit of a seed; None where the samples or the settings were refused in a sentence."""
    given, asked = hard_case(seed)
    rank = asked.pop("rank")
    try:
        problem = ub.Problem(**given)
        fit = ub.decouple(problem, rank, **asked)
        if seed % 5 == 0:
            assert repr(ub.diagnose(fit, problem))
        look_closer(seed, fit, problem, asked)
    except ub.UnbraidError as refused:
        check_sentence(str(refused))
        return None
    check_fit(fit, problem)
    return fit


def look_closer(seed: int, fit: ub.Fit, problem: ub.Problem, asked: dict[str, Any]) -> None:
    """What else is done with a fit: a file and a report, another fit that begins with it, a choice of the rank."""
    report, compared, chosen = (seed % every == 1 for every in ASIDES)
    free = {name: setting for name, setting in asked.items() if not isinstance(setting, list)}  # one a branch
    if seed % 10 == 2:
        check_fit(ub.decouple(problem, fit.model.rank, **(asked | {"init": fit.model})), problem)
    if report:
        with TemporaryDirectory() as folder:
            fit.model.save(Path(folder, "model.npz"))
            ub.DecoupledModel.load(Path(folder, "model.npz"))
            fit.report(Path(folder, "fit.html"))
    if compared:
        free = {name: setting for name, setting in free.items() if name not in ("polish", "compress")}
        assert repr(ub.select(problem, (1, 3), folds=2, **free))
    if chosen:
        check_fit(ub.decouple(problem, "auto", **free), problem)


def check_fit(fit: ub.Fit, problem: ub.Problem) -> None:
    """Finite throughout, with errors wherever there is something to compare with."""
    assert np.isfinite(fit.model(problem.X)).all()
    assert np.isfinite(fit.model.jacobian(problem.X)).all()
    assert np.isfinite(fit.objective) or fit.status is ub.Status.NOT_FINITE
    assert repr(fit)
    if fit.output_errors is not None and np.isnan(fit.output_errors).any():
        assert any(note.startswith("No value of output") for note in fit.notes)


def run(seeds: Iterable[int]) -> int:
    """How many of the seeds ended in a fit; none may end in anything but that or a sentence, nor warn."""
    fits = 0
    for seed in seeds:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                fits += attack(seed) is not None
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
    return fits


@pytest.mark.parametrize("part", range(5))
def test_hard_samples_end_in_a_fit_or_a_sentence(part: int) -> None:
    assert run([*FOUND[part::5], *FEW[part::5]]) > 5


@pytest.mark.verify
@pytest.mark.parametrize("part", range(4))
def test_hundreds_of_hard_samples_end_in_a_fit_or_a_sentence(part: int) -> None:
    assert run(MANY[part::4]) > 20


@pytest.mark.parametrize("scale", [1e-280, 1e-150, 1e-80, 1e80, 1e150, 1e280])
def test_samples_of_any_size_are_fitted_as_well_as_others(scale: float) -> None:
    """Units change nothing, however far they are from the usual ones."""
    problem, _ = ub.datasets.trig(S=60, rng=0)
    assert problem.F is not None
    assert problem.J is not None
    for x, f in ((scale, 1.0), (1.0, scale), (scale, scale)):
        given = ub.Problem(problem.X * x, problem.F * f, problem.J * (f / x))
        fit = ub.decouple(given, 3, starts=4, rng=0)
        assert fit.output_errors is not None
        assert fit.output_errors.max() < 2.0
        np.testing.assert_allclose(fit.model(given.X) / f, problem.F, rtol=0, atol=0.2)
        assert ub.diagnose(fit, given).unique


def test_a_report_about_huge_numbers_is_written(tmp_path: Path) -> None:
    problem, _ = ub.datasets.trig(S=40, rng=0)
    assert problem.F is not None
    fit = ub.decouple(ub.Problem(problem.X * 1e100, problem.F * 1e-100), 2, starts=1, rng=0)
    fit.report(tmp_path / "huge.html")
    assert "divided by powers of two" in (tmp_path / "huge.html").read_text(encoding="utf-8")


def test_a_model_to_start_from_is_in_the_units_of_the_samples() -> None:
    problem, _ = ub.datasets.trig(S=60, rng=0)
    assert problem.F is not None
    assert problem.J is not None
    huge = ub.Problem(problem.X * 1e150, problem.F * 1e100, problem.J * 1e-50)
    again = ub.decouple(huge, 3, init=ub.decouple(huge, 3, starts=4, rng=0).model)
    assert again.output_errors is not None
    assert again.output_errors.max() < 2.0


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"X": 5e-324, "F": 1.0}, "X, which reaches .* is too close to the ends"),
        ({"X": 1.0, "F": 1e308}, "F, which reaches .* is too close to the ends"),
        ({"X": 1e-200, "F": 1e200}, "slopes of that size cannot be represented"),
        ({"X": 1.0, "F": 1.0, "J": 1e200}, "J reaches .* more than F and X make likely"),
        ({"X": 1.0, "F": 1.0, "J": 1e-200}, "J reaches .* less than F and X make likely"),
    ],
)
def test_what_cannot_be_represented_is_named(sizes: dict[str, float], said: str) -> None:
    problem, _ = ub.datasets.trig(S=40, rng=0)
    with np.errstate(all="ignore"):
        given = {name: np.clip(getattr(problem, name) * size, -1.7e308, 1.7e308) for name, size in sizes.items()}
    with pytest.raises(ub.UnbraidError, match=said):
        ub.decouple(ub.Problem(**given), 2, starts=1, rng=0)
