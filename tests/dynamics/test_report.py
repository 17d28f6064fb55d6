"""The page about a dynamic model: complete, self-contained, and true."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from dynamic_fits import duffing_fit, found, narx_fit, two_by_two_fit
from report_pages import HOSTILE, Page
from unbraid.dynamics import DynamicFit, Record, SimulationStatus
from unbraid.errors import FileError
from unbraid.report.dynamic import write_report
from unbraid.report.dynamic.subject import DynamicSubject
from unbraid.report.dynamic.words import badges, linear_words, python_code
from unbraid.results.outcome import Status

FITS = {"state space": duffing_fit, "two by two": two_by_two_fit, "NARX": narx_fit}


def written(fit: DynamicFit, folder: Path, **settings: object) -> str:
    write_report(fit, folder / "page.html", **settings)  # type: ignore[arg-type]
    return (folder / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_the_page_has_all_parts_and_needs_nothing_else(fit: Callable[[], DynamicFit], tmp_path: Path) -> None:
    text = written(fit(), tmp_path)
    page = Page(text)
    sections = ["errors", "simulated", "spectra", "diagram", "branches", "linear", "matrices", "course", "repeat"]
    assert [attributes["id"] for tag, attributes in page.tags if tag == "section"] == sections
    outside = [value for name in ("src", "href") for value in page.having(name) if not value.startswith("#")]
    assert outside == []
    ids = page.having("id")
    assert len(ids) == len(set(ids))
    used = {value[1:] for value in page.having("href")} | set(re.findall(r"url\(#([^)]+)\)", text))
    assert used <= set(ids)
    assert len(text) < 500_000


def test_numbers_on_the_page_are_those_of_the_fit(tmp_path: Path) -> None:
    page = Page(written(duffing_fit(), tmp_path)).text
    assert page.count("0.99 %") >= 2
    assert "One curve in a state-space model of order 2 reproduces the output in simulation to 0.99 %." in page
    assert "The best linear model of the same size (BLA) is off by 59 %" in page
    assert "2 of 3 starts came as low" in page
    assert "Order 2 was chosen" in page
    assert 'model = ub.dynamics.load("model.npz")' in page
    assert "fit = ub.dynamics.state_space(record, order=2, rank=1, starts=3, rng=0)" in page


def test_noise_and_further_records_are_told(tmp_path: Path) -> None:
    record, _ = ub.dynamics.systems.duffing(T=700, rng=9)
    fit = replace(duffing_fit(), noise=duffing_fit().simulation_error.rmse)
    page = Page(written(fit, tmp_path, test=record, command="unbraid identify …")).text
    assert "As low as the noise" in page
    assert "On a record that the fit did not see, the error is" in page
    assert "A record that the fit did not see: the 200 samples about where it misses most" in page
    assert "unbraid identify …" in page


def test_a_transient_in_a_further_record_is_told() -> None:
    record, _ = ub.dynamics.systems.duffing(T=200, rng=9)
    u, y = np.tile(record.u, (4, 1)), np.tile(record.y, (4, 1)) + 0.5 * (0.9 ** np.arange(800))[:, None]
    subject = DynamicSubject.of(duffing_fit(), [record, Record(u, y, record.dt, period=200)])
    assert "A transient is left out, 1 period of 4" in linear_words(subject)


def test_names_are_names_and_no_markup(tmp_path: Path) -> None:
    record, truth = ub.dynamics.systems.two_by_two(T=400, rng=0)
    named = Record(record.u, record.y, input_names=HOSTILE[:2], output_names=HOSTILE[2:4])
    text = written(found(truth, named), tmp_path)
    assert "<script>alert" not in text
    assert text.count("<script>") == 1
    Page(text)


def test_a_simulation_that_diverged_is_no_reproduction(tmp_path: Path) -> None:
    fit = duffing_fit()
    y = fit.simulations[0].y.copy()
    y[700:] = np.nan
    lost = replace(fit.simulations[0], y=y, status=SimulationStatus.DIVERGED)
    error = replace(fit.simulation_error, rmse=np.array([np.inf]), percent=np.array([np.inf]), status=lost.status)
    page = Page(written(replace(fit, simulations=(lost,), simulation_error=error), tmp_path)).text
    assert "leaves all bounds in simulation" in page
    assert "A simulation diverged" in page
    text = repr(replace(fit, simulation_error=error, starts=(np.inf, np.inf)))
    assert "simulation error diverged" in text
    assert "2, 0 within 1 % of the best" in text
    assert "inf" not in text
    assert repr(error).startswith("RecordError(rmse diverged; ")


@pytest.mark.parametrize(("times", "said"), [(1.0, "As low as the noise"), (3.0, "More than noise is left")])
def test_an_error_is_compared_with_the_noise_of_what_was_fitted_to(times: float, said: str, tmp_path: Path) -> None:
    """Of averages over periods: eight of them have a third of the noise of one."""
    rng = np.random.default_rng(0)
    u = np.tile(ub.dynamics.systems.low_pass(rng, 150, 1, 0.3), (9, 1))
    y = 0.5 * np.convolve(u[:, 0], 0.8 ** np.arange(40))[: len(u)]
    missed = np.sqrt(times**2 - 1.0) * 0.05 / np.sqrt(8) * np.tile(rng.standard_normal(150), 9)
    fit = ub.dynamics.state_space(
        Record(u, y + missed + 0.05 * rng.standard_normal(len(u)), burn_in=150, period=150), order=1, rank=0
    )
    assert fit.noise == pytest.approx(0.05 / np.sqrt(8), rel=0.1)
    assert said in Page(written(fit, tmp_path)).text


REPEATED: dict[str, tuple[str, dict[str, Any]]] = {
    "state space": ("state_space", {"order": 2, "rank": 1, "starts": 3, "rng": 5, "continuation": "linear"}),
    "rank open": ("state_space", {"order": 1, "starts": 2, "constraint": ub.Increasing(), "basis": ub.BSpline(4)}),
    "NARX": ("narx", {"rank": 1, "input_lags": (0, 1), "output_lags": (1, 2), "starts": 1, "basis": ub.Polynomial(3)}),
}


@pytest.mark.parametrize(("function", "settings"), REPEATED.values(), ids=REPEATED)
def test_the_code_on_the_page_repeats_the_fit_exactly(
    function: str, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    u = np.tile(ub.dynamics.systems.low_pass(rng, 100, 1, 0.2), (3, 1))
    y = ub.dynamics.systems.duffing(T=20, rng=0)[1].simulate(u) + 0.01 * rng.standard_normal((300, 1))
    dt = 0.1 + 1e-9 / 3.0
    record = Record(u, y, dt, burn_in=40, period=100, input_names=["f'o'rce"])
    fit = getattr(ub.dynamics, function)(record, **settings)
    code = python_code(DynamicSubject.of(fit, ()))
    signals: dict[str, Any] = {"u": u, "y": y}
    exec(code, signals)
    assert signals["fit"].asked == fit.asked
    assert signals["model"].dt == dt
    np.testing.assert_array_equal(signals["fit"].objectives, fit.objectives)
    np.testing.assert_array_equal(signals["model"].function.L, fit.model.function.L)


def test_code_for_several_records_and_for_no_seed() -> None:
    record, _ = ub.dynamics.systems.duffing(T=200, rng=0)
    records = [record, Record(record.u, record.y, record.dt, burn_in=20)]
    fit = ub.dynamics.state_space(records, 1, 0, rng=np.random.default_rng(3))
    code = python_code(DynamicSubject.of(fit, ()))
    assert (
        "records = [\nub.dynamics.Record(u1, y1, dt=0.1),\nub.dynamics.Record(u2, y2, dt=0.1, burn_in=20),\n]" in code
    )
    assert "# the seed of this fit is not known" in code
    compile(code, "page", "exec")


def test_the_badge_of_the_status_is_the_status(tmp_path: Path) -> None:
    for status, kind in ((Status.FLAT, "good"), (Status.CONVERGED, "good"), (Status.OUT_OF_SWEEPS, "bad")):
        first = next(badges(DynamicSubject.of(replace(duffing_fit(), status=status), ())))
        assert first == (kind, status.name.replace("_", " ").capitalize())


def test_a_model_without_branches_has_a_page(tmp_path: Path) -> None:
    record, _ = ub.dynamics.systems.duffing(T=600, rng=0)
    fit = ub.dynamics.state_space(record, order=2, rank=0)
    page = Page(written(fit, tmp_path))
    assert "No curves in a state-space model" in page.text
    assert "diagram" not in page.having("id")


def test_fits_write_their_pages_and_refuse_other_endings(tmp_path: Path) -> None:
    duffing_fit().report(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000
    with pytest.raises(FileError, match="HTML is what is written"):
        duffing_fit().report(tmp_path / "page.pdf")
