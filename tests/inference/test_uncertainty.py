"""Standard errors, bands and intervals: their laws, and how often they cover the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from two_branches import SETTINGS, fitted, samples
from unbraid.inference.gauge import Gauged
from unbraid.inference.linearised import LinearisedUncertainty


def sure_of(kind: str = "both", **settings: Any) -> tuple[ub.Problem, Any, LinearisedUncertainty]:
    """A problem, a quick fit of it, and its uncertainty."""
    problem = samples(kind)
    fit, _ = fitted(problem, **settings)
    sure = fit.uncertainty()
    assert isinstance(sure, LinearisedUncertainty)
    return problem, fit, sure


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_what_a_user_sees_changes_as_the_gauge_says(settings: dict[str, Any]) -> None:
    """Against models that were moved and brought back into the gauge."""
    problem, fit, sure = sure_of(**settings)
    tangent, X = sure.tangent, problem.X
    assert sure.around is not None
    theta = 1e-5 * np.random.default_rng(0).standard_normal(tangent.size)
    theta /= np.sqrt(np.maximum(np.diagonal(sure.around.data_matrix), 1e-9))
    moved, gauged = tangent.moved(theta), Gauged.of(tangent, X, np.ones(len(X)))
    length = np.linalg.norm(moved.W0, axis=1)
    W0 = moved.W0 / length[:, None]
    R = np.stack([g(u) for g, u in zip(moved.branches, moved.W0 @ X.T, strict=True)])
    own = np.stack([g(u) for g, u in zip(fit.model.branches, fit.model.W0 @ X.T, strict=True)])
    scale = R.std(axis=1) / own.std(axis=1)
    shift = R.mean(axis=1) - own.mean(axis=1) * scale
    off = {
        "W0": W0 - fit.model.W0 - gauged.W0 @ theta,
        "W1": moved.W1 * scale - fit.model.W1 - gauged.W1 @ theta,
        "bias": moved.bias + moved.W1 @ shift - fit.model.bias - gauged.bias @ theta,
    }
    sizes = {"W0": gauged.W0 @ theta, "W1": gauged.W1 @ theta, "bias": gauged.bias @ theta}
    for name, difference in off.items():
        assert np.abs(difference).max() < 1e-2 * np.abs(sizes[name]).max() + 1e-12, name
    for k, one in enumerate(tangent.moves):
        j = one.branch
        low, high = fit.model.branches[j].domain
        u = np.linspace(low, high, 41)[2:-2]
        curve = (moved.branches[j](u * length[j]) - shift[j]) / scale[j]
        change = curve - fit.model.branches[j](u)
        expected = gauged.curve(k, u) @ theta
        assert np.quantile(np.abs(change - expected), 0.9) < 1e-2 * np.abs(expected).max() + 1e-12


@few_or_many(4, 20)
def test_intervals_cover_about_what_they_say(draws: int) -> None:
    """Of one data set some more or less; the mean over many is that of benchmarks/coverage.py."""
    function, new, noise = np.mean([covered(seed) for seed in range(draws)], axis=0)
    assert function > 0.85
    assert 0.92 < new < 0.98
    assert noise == pytest.approx(1.0, abs=0.1)


def covered(seed: int) -> tuple[float, float, float]:
    """The share of a function, and of new observations, that intervals cover, and the noise found over the true one."""
    exact, truth = ub.datasets.trig(S=150, rng=seed)
    rng = np.random.default_rng(seed)
    assert exact.F is not None
    assert exact.J is not None
    F = exact.F + 0.05 * exact.F.std(axis=0) * rng.standard_normal(exact.F.shape)
    J = exact.J + 0.05 * np.sqrt(np.mean(exact.J**2)) * rng.standard_normal(exact.J.shape)
    sure = ub.decouple(ub.Problem(exact.X, F, J), 3, rng=seed).uncertainty()
    X = rng.uniform(-1.3, 1.3, (300, 2))
    values = sure.values(X)
    fresh = truth(X) + 0.05 * exact.F.std(axis=0) * rng.standard_normal((300, 2))
    new = sure.values(X, new=True)
    assert sure.noise is not None
    return (
        float(np.mean((values.low < truth(X)) & (truth(X) < values.high))),
        float(np.mean((new.low < fresh) & (fresh < new.high))),
        float(np.mean(sure.noise / (0.05 * exact.F.std(axis=0)))),
    )


def test_a_misfit_is_called_one() -> None:
    """Two branches cannot follow three, and what they leave is no noise."""
    problem, _ = ub.datasets.trig(S=300, rng=0)
    sure = ub.decouple(problem, 1, rng=0, starts=4).uncertainty()
    assert not sure.reliable
    assert sure.doubt is not None
    assert "no noise" in sure.doubt
    assert "doubt" in repr(sure)


def test_standard_errors_fall_with_the_noise_and_with_samples() -> None:
    truth = ub.datasets.trig(S=5, rng=0)[1]
    stds = {}
    for S, level in ((100, 0.1), (400, 0.1), (400, 0.01)):
        rng = np.random.default_rng(S)
        X = rng.uniform(-1.5, 1.5, (S, 2))
        F = truth(X) + level * truth(X).std(axis=0) * rng.standard_normal((S, 2))
        stds[S, level] = float(np.mean(ub.decouple(ub.Problem(X, F), 3, rng=0).uncertainty().values(X).std))
    assert stds[100, 0.1] > 1.3 * stds[400, 0.1] > 5.0 * stds[400, 0.01]


def test_shapes_and_what_is_not_known() -> None:
    problem, fit, sure = sure_of()
    X = problem.X[:5]
    assert sure.W0.shape == fit.model.W0.shape
    assert sure.W1.shape == fit.model.W1.shape
    assert sure.bias.shape == (2,)
    assert sure.angles.shape == (2,)
    assert sure.jacobian(X).low.shape == (5, 2, 3)
    assert sure.slope_noise is not None
    assert sure.slope_noise.shape == (2, 3)
    assert (sure.values(X, level=0.99).high > sure.values(X).high).all()
    assert (sure.values(X, new=True).std > sure.values(X).std).all()
    assert sure.branch(0).u.shape == sure.slope(1).std.shape
    for wrong, words in (((2,), "counted from 0 to 1"), ((0, None, 1.5), "between 0 and 1")):
        with pytest.raises(ub.UnbraidError, match=words):
            sure.branch(*wrong)
    _, _, slopes = sure_of("slopes")
    assert np.isnan(slopes.values(X).std).all()  # constants are open
    assert np.isfinite(slopes.jacobian(X).std).all()
    with pytest.raises(ub.UnbraidError, match="'linearised' or 'bootstrap'"):
        fit.uncertainty("guess")


def test_points_outside_the_range_seen_are_named() -> None:
    problem, fit, sure = sure_of()
    inside, far = problem.X[:4], problem.X[:4] + 100.0
    for predicted in (sure.values, sure.jacobian):
        assert not predicted(inside).outside.any()
        assert predicted(np.concatenate([inside, far])).outside.tolist() == [False] * 4 + [True] * 4
    assert fit.error_on(problem).outside == np.count_nonzero(sure.values(problem.X).outside)


def test_outputs_of_different_noise_have_different_intervals() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (300, 2))
    u = X @ [1.0, 0.7]
    exact = np.stack([np.sin(2 * u), np.cos(2 * u)], axis=1)
    sure = ub.decouple(ub.Problem(X, exact + [0.2, 0.01] * rng.standard_normal((300, 2))), 2, rng=0).uncertainty()
    assert sure.noise == pytest.approx([0.2, 0.01], rel=0.25)
    std = sure.values(X).std.mean(axis=0)
    assert std[0] > 3.0 * std[1]


def test_a_bootstrap_finds_about_the_same() -> None:
    problem, fit, linear = sure_of("both", basis=ub.Polynomial(7))  # of lower degree they cannot follow
    seen: list[ub.Progress] = []
    sure = fit.uncertainty("bootstrap", draws=24, rng=0, jobs=1, callback=seen.append)
    ratio = sure.values(problem.X).std / linear.values(problem.X).std
    assert 0.6 < np.median(ratio) < 1.6
    assert seen[-1].phase == "bootstrap"
    assert (seen[-1].done, seen[-1].total) == (24, 24)
    assert sure.method == "bootstrap of 24 fits"
    for name in ("W0", "W1", "bias", "angles"):
        assert 0.3 < np.median(getattr(sure, name) / getattr(linear, name)) < 3.0
    assert np.median(sure.branch(0).std / linear.branch(0).std) == pytest.approx(1.0, abs=0.6)
    few = [fit.uncertainty("bootstrap", draws=10, rng=0, jobs=jobs) for jobs in (1, 2)]
    assert np.array_equal(few[0].W0, few[1].W0)
    with pytest.raises(ub.UnbraidError, match="draws"):
        fit.uncertainty("bootstrap", draws=3)
