"""Pictures of what inputs and branches do to the outputs."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import unbraid as ub
from pictures import trig
from unbraid import plots
from unbraid.errors import DataError, MissingDependencyError
from unbraid.plots import panels


@pytest.fixture(scope="module")
def noisy() -> ub.Fit:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, (150, 2)), rng.integers(0, 2, 150)])
    F = (X[:, 0] + 0.5 * X[:, 1]) ** 2 + X[:, 2] + 0.1 * rng.standard_normal(150)
    names = ["speed", "load", "gear"]
    problem = ub.Problem(X, F[:, None], input_names=names, output_names=["power"])
    return ub.decouple(problem, 2, basis=ub.BSpline(5), starts=2, rng=0)


def test_an_effect_is_the_mean_over_the_samples_with_the_input_set(noisy: ub.Fit) -> None:
    drawn = plots.effects(noisy)
    assert [panel.get_xlabel() for panel in drawn] == ["speed", "load", "gear"]
    [line] = [one for one in drawn[1].get_lines() if one.get_label() == "power"]
    t, effect = np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)
    assert noisy.problem is not None
    assert noisy.problem.F is not None
    X = noisy.problem.X
    means = np.array([noisy.model(np.column_stack([X[:, 0], np.full(len(X), one), X[:, 2]])).mean() for one in t])
    means -= np.interp(X[:, 1], t, means).mean()
    np.testing.assert_allclose(effect, means / noisy.problem.F.std(), atol=1e-9)
    assert drawn[0].collections, "there is a band"
    assert len(next(one for one in drawn[2].get_lines() if one.get_label() == "power").get_xdata()) == 2


def test_bars_are_the_shares_of_inputs_then_of_branches(noisy: ub.Fit) -> None:
    found = ub.importance(noisy, needs=False)
    [panel] = plots.importance(found)
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert names == ["speed", "load", "gear", "branch 1", "branch 2"]
    total, first, branches = (np.array([bar.get_width() for bar in group]) for group in panel.containers[:3])
    np.testing.assert_allclose(total, 100.0 * found.total[0])
    np.testing.assert_allclose(first, 100.0 * found.first_order[0])
    np.testing.assert_allclose(branches, 100.0 * found.branches[0])
    assert len(panel.containers) == 5, "two of them are intervals"


def test_given_axes_are_drawn_on(noisy: ub.Fit) -> None:
    axes = Figure().subplots(1, 3)
    assert list(plots.effects(noisy, axes=axes)) == list(axes)
    assert plots.importance(noisy, axes=axes[0])[0] is axes[0]
    with pytest.raises(DataError, match="must hold 3 axes, one for each input that is drawn, got 2"):
        plots.effects(noisy, axes=axes[:2])


def test_of_large_models_is_drawn_what_matters_most() -> None:
    problem, truth = ub.datasets.random_system(n=14, m=14, r=14, S=60, rng=0)
    for drawn in (plots.effects(truth, problem=problem), plots.importance(truth, problem=problem)):
        assert len(drawn) == 12
        drawn[0].get_figure(root=True).canvas.draw()


def test_models_need_samples_and_matplotlib_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fit, truth = trig()
    for draw in (plots.effects, plots.importance):
        assert len(draw(truth, problem=fit.problem)) == 2
        with pytest.raises(DataError, match="pass problem="):
            draw(truth)
        with pytest.raises(DataError, match=r"draws a Fit.*, got a list"):
            draw([1, 2])  # type: ignore[arg-type]
    monkeypatch.setattr(panels, "find_spec", lambda name: None)
    for draw in (plots.effects, plots.importance):
        with pytest.raises(MissingDependencyError):
            draw(fit)
