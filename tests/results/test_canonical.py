"""The canonical form is the same function, without lines in its branches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from model_files import a_model
from unbraid.errors import DataError, SettingError
from unbraid.results.branch import FunctionBranch
from unbraid.results.canonical import Remainder, nearest_line

BASES = [ub.BSpline(6), ub.PiecewiseLinear(4), ub.Polynomial(3), ub.NaturalCubic(5)]
seeds = st.integers(0, 2**31)


@given(seed=seeds, over_samples=st.booleans())
def test_it_is_the_same_function_inside_and_outside_the_range(seed: int, over_samples: bool) -> None:
    model = a_model(BASES, seed=seed)
    rng = np.random.default_rng(seed)
    form = model.canonical(rng.standard_normal((30, 2)) if over_samples else None)
    X = 4.0 * rng.standard_normal((40, 2))
    size = np.abs(model(X)).max()
    np.testing.assert_allclose(form(X), model(X), atol=1e-10 * size)
    np.testing.assert_allclose(form(X[0]), model(X[0]), atol=1e-10 * size)
    J = model.jacobian(X)
    np.testing.assert_allclose(form.jacobian(X), J, atol=1e-10 * np.abs(J).max())
    np.testing.assert_allclose(form.jacobian(X[0]), J[0], atol=1e-10 * np.abs(J).max())


@given(seed=seeds, weighted=st.booleans())
def test_branches_have_no_line_and_the_gauge_is_fixed(seed: int, weighted: bool) -> None:
    model = a_model(BASES, seed=seed)
    rng = np.random.default_rng(seed)
    X, weights = rng.standard_normal((60, 2)), rng.uniform(0.5, 2.0, 60)
    form = model.canonical(X, weights=weights if weighted else None)
    for w0, w1, g in zip(form.W0, form.W1.T, form.branches, strict=True):
        constant, slope, rest, spread = nearest_line(X @ w0, g(X @ w0), weights if weighted else None)
        assert abs(constant) < 1e-9
        assert abs(slope) < 1e-9
        assert rest == pytest.approx(1.0)
        assert spread == pytest.approx(1.0)
        assert np.linalg.norm(w0) == pytest.approx(1.0)
        assert w0[np.argmax(np.abs(w0))] > 0.0
        assert w1[np.argmax(np.abs(w1))] > 0.0


@given(seed=seeds)
def test_it_does_not_know_of_order_scale_constants_and_lines_that_moved(seed: int) -> None:
    """The same function, told in another way: the second branch a line that took up some of the first one's."""
    rng = np.random.default_rng(seed)
    model = a_model([ub.BSpline(6), ub.Polynomial(1), ub.NaturalCubic(5)], n=1, seed=seed)
    X, w, c = rng.standard_normal((50, 2)), model.W0, float(rng.uniform(0.5, 2.0))
    line = model.branches[1]
    slope = float(line.derivative(0.0))
    turned = w[1] * slope * model.W1[0, 1] + c * w[0] * model.W1[0, 0]
    branches = [
        model.branches[2],
        FunctionBranch(lambda u: u + 3.0, np.ones_like, "u + 3"),
        FunctionBranch(
            lambda u: model.branches[0](-u / 2.0) + c * u / 2.0,
            lambda u: -model.branches[0].derivative(-u / 2.0) / 2.0 + c / 2.0,
            "the first, less a line",
        ),
    ]
    W1 = np.array([[model.W1[0, 2], 1.0, model.W1[0, 0]]])
    bias = model.bias + model.W1[:, 1] * line(0.0) - 3.0
    other = ub.DecoupledModel(np.array([w[2], turned, -2.0 * w[0]]), W1, branches, bias)
    np.testing.assert_allclose(other(X), model(X), atol=1e-9)
    one, two = model.canonical(X), other.canonical(X)
    assert one.rank == two.rank == 2
    assert (one.straight, two.straight) == ((1,), (1,))
    for name in ("L", "W0", "W1", "bias"):
        np.testing.assert_allclose(getattr(two, name), getattr(one, name), rtol=1e-6, atol=1e-8)


def test_a_straight_branch_is_no_branch() -> None:
    model = a_model([ub.BSpline(6), ub.Polynomial(1)])
    form = model.canonical()
    assert form.straight == (1,)
    assert form.which == (0,)
    assert repr(form) == "CanonicalModel(m=2 inputs, 1 bent branch, 1 straight one in L, n=3 outputs)"
    every = model.canonical(straight=[0, 1])
    assert every.rank == 0
    assert every(np.zeros((4, 2))).shape == (4, 3)
    assert every.jacobian(np.zeros(2)).shape == (3, 2)


def test_branches_that_carry_nothing_are_gone() -> None:
    model = a_model([ub.BSpline(6), ub.BSpline(6)])
    W1, W0 = model.W1.copy(), model.W0.copy()
    W1[:, 0] = 0.0
    assert model.changed(W1=W1).canonical().which == (1,)
    W0[0] = 0.0
    still = model.changed(W0=W0)
    X = np.random.default_rng(0).standard_normal((10, 2))
    np.testing.assert_allclose(still.canonical()(X), still(X), atol=1e-12)
    np.testing.assert_allclose(still.canonical(X)(X), still(X), atol=1e-12)


def test_a_remainder_has_derivatives_a_domain_and_knots() -> None:
    g = a_model([ub.BSpline(6)]).branches[0]
    rest = Remainder(g, 0.3, 1.5, -2.0, -0.5)
    u = np.linspace(-1.0, 1.0, 9)
    np.testing.assert_allclose(rest(u), (g(-0.5 * u) - 0.3 + 0.75 * u) / -2.0)
    for order in (1, 2):
        low, high = (rest(u + h) if order == 1 else rest.derivative(u + h) for h in (-1e-6, 1e-6))
        np.testing.assert_allclose(rest.derivative(u, order), (high - low) / 2e-6, atol=1e-5)
    assert rest.domain == (-2.0 * g.domain[1], -2.0 * g.domain[0])
    np.testing.assert_allclose(rest.knots, np.sort(-2.0 * g.knots))
    assert not rest.certified(ub.Increasing())


def test_what_is_wrong_is_told() -> None:
    model = a_model([ub.BSpline(6)])
    _, truth = ub.datasets.trig(rng=0)
    with pytest.raises(DataError, match=r"Branch 1 has no finite domain .*: pass samples as X"):
        truth.canonical()
    with pytest.raises(DataError, match=r"weights must be \(S,\), one a row of X, got shape \(3,\) for 2 points"):
        model.canonical(np.zeros((2, 2)), weights=np.ones(3))
    with pytest.raises(DataError, match="for no X"):
        model.canonical(weights=np.ones(3))
    with pytest.raises(SettingError, match=r"numbers of branches, from 0 to 0, got \[1\]"):
        model.canonical(straight=[1])
    with pytest.raises(DataError, match=r"X must be \(S, 2\) or a single point"):
        model.canonical()(np.zeros((3, 4)))
