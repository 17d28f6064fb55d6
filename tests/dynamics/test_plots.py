"""Pictures of dynamic models: axes in, axes out, and what they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import unbraid as ub
from dynamic_fits import duffing_fit, narx_fit, two_by_two_fit
from pictures import as_svg, line
from unbraid.dynamics import DynamicFit
from unbraid.dynamics.models.linear import poles_of
from unbraid.dynamics.models.slopes import average_slopes, slopes_along, visited
from unbraid.dynamics.models.spectra import spectrum_of
from unbraid.errors import DataError
from unbraid.plots import dynamics
from unbraid.plots.dynamics.simulated import spans, thinned

SINGLE: dict[str, Callable[..., Axes]] = {
    "spectra": dynamics.spectra,
    "poles": dynamics.poles,
    "frequency_response": dynamics.frequency_response,
    "course": dynamics.course,
}
FITS = {"state space": duffing_fit, "two by two": two_by_two_fit, "NARX": narx_fit}
every_picture = pytest.mark.parametrize("draw", [getattr(dynamics, name) for name in dynamics.__all__])
every_fit = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


@every_picture
@every_fit
def test_every_picture_of_every_kind_of_model_can_be_drawn(
    draw: Callable[..., Any], fit: Callable[[], DynamicFit]
) -> None:
    """Whatever matplotlib has to warn of is an error here."""
    panels = np.atleast_1d(np.asarray(draw(fit()), dtype=object))
    assert len(as_svg(panels[0])) < 200_000
    assert all(panel.has_data() for panel in panels)


@pytest.mark.parametrize("draw", SINGLE.values(), ids=SINGLE)
def test_given_axes_are_drawn_on_and_returned(draw: Callable[..., Axes]) -> None:
    axis = Figure().subplots()
    assert draw(duffing_fit(), ax=axis) is axis


@every_picture
def test_what_is_no_fit_is_refused(draw: Callable[..., Any]) -> None:
    with pytest.raises(DataError, match="draws a DynamicFit"):
        draw(duffing_fit().model)


def test_courses_show_what_was_measured_what_is_simulated_and_gaps() -> None:
    fit = duffing_fit()
    upper, lower = dynamics.simulated(fit, stretch=slice(250, 450))
    t, measured = line(upper, "measured")
    np.testing.assert_array_equal(measured, fit.records[0].y[250:450, 0])
    np.testing.assert_allclose(t, 0.1 * np.arange(250, 450))
    np.testing.assert_array_equal(line(upper, "simulated")[1], fit.simulations[0].y[250:450, 0])
    left = line(lower, "measured − simulated")[1]
    np.testing.assert_allclose(left, fit.records[0].y[250:450, 0] - fit.simulations[0].y[250:450, 0])
    assert "not measured" in [text.get_text() for text in upper.get_legend().get_texts()]


def test_another_record_is_simulated_from_its_first_outputs() -> None:
    record, _ = ub.dynamics.systems.duffing(T=300, rng=7)
    upper, lower = dynamics.simulated(duffing_fit(), record)
    assert "does not count" in [text.get_text() for text in upper.get_legend().get_texts()]
    left = line(lower, "measured − simulated")[1]
    assert np.isnan(left[:30]).all()
    assert np.abs(left[30:]).max() < 0.1


@pytest.mark.parametrize("given", [{"record": 1}, {"output": 1}, {"output": -1}])
def test_what_the_fit_does_not_have_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(DataError, match="must be"):
        dynamics.simulated(duffing_fit(), **given)  # type: ignore[arg-type]


def test_a_thinned_course_loses_no_peak() -> None:
    rng = np.random.default_rng(0)
    t, y = np.arange(10_000.0), rng.standard_normal(10_000)
    y[5000], y[7000:7100] = 50.0, np.nan
    course = thinned(t, y)
    assert len(course.t) <= 800
    assert np.nanmax(course.y) == 50.0
    assert np.nanmin(course.y) == np.nanmin(y)
    assert np.isnan(course.y).any(), "a gap of more than a bin stays one"
    assert (np.diff(course.t) > 0.0).all()


def test_spans_that_touch_in_the_picture_are_one() -> None:
    where = np.zeros(8000, dtype=bool)
    where[[10, 15, 4000]] = True
    assert spans(np.arange(8000.0), where) == [(9.5, 15.5), (3999.5, 4000.5)]


def test_the_spectrum_of_white_noise_is_flat_and_gaps_do_not_change_it() -> None:
    noise = 3.0 * np.random.default_rng(0).standard_normal(40_000)
    whole = spectrum_of([noise], 0.1)
    assert whole is not None
    expected = 3.0 * np.sqrt(2.0 * 0.1)
    assert np.sqrt(np.mean(whole.amplitude**2)) == pytest.approx(expected, rel=0.03)
    noise[::3000] = np.nan
    some = spectrum_of([noise], 0.1)
    assert some is not None
    assert np.sqrt(np.mean(some.amplitude**2)) == pytest.approx(expected, rel=0.03)
    assert spectrum_of([np.full(100, np.nan)], 0.1) is None


def test_spectra_have_a_line_for_the_linear_model_where_it_was_kept() -> None:
    names = [text.get_text() for text in dynamics.spectra(duffing_fit()).get_legend().get_texts()]  # type: ignore[union-attr]
    assert names == ["position", "left by the best linear model", "left by the model"]
    alone = dynamics.spectra(replace(duffing_fit(), linear=None))
    assert len(alone.get_lines()) == 2


def test_the_average_of_slopes_is_that_of_all_moments() -> None:
    fit = two_by_two_fit()
    phi = visited(fit.simulations)
    assert phi is not None
    np.testing.assert_allclose(average_slopes(fit.model, phi), slopes_along(fit.model, phi).mean(axis=0))


def test_poles_are_drawn_on_average_and_at_single_moments() -> None:
    fit = narx_fit()
    panel = dynamics.poles(fit)
    phi = visited(fit.simulations)
    assert phi is not None
    x, y = line(panel, "on average")
    expected = poles_of(average_slopes(fit.model, phi), fit.model.feedback)
    np.testing.assert_allclose(np.sort_complex(x + 1j * y), np.sort_complex(expected))
    assert len(line(panel, "single moments")[0]) > 300


def test_narx_models_have_poles_and_a_frequency_response() -> None:
    """y(t) = a y(t-1) + b y(t-2) + c u(t) + d u(t-1), whose response is known."""
    model = narx_fit().model
    a, b, c, d = model.function.L[0]
    np.testing.assert_allclose(np.sort_complex(model.poles), np.sort_complex(np.roots([1.0, -a, -b])))
    f = np.array([0.0, 0.3, 1.0])
    z = np.exp(2j * np.pi * f * model.dt)
    expected = (c + d / z) / (1.0 - a / z - b / z**2)
    np.testing.assert_allclose(model.frequency_response(f)[:, 0, 0], expected)
