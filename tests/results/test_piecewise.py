"""Branches from SciPy's splines: the same function, its continuation, and its shape."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import interpolate

import unbraid as ub
from unbraid.errors import DataError, SettingError
from unbraid.kernels.arrays import Array

KNOTS = np.linspace(-2.0, 2.0, 9)
AROUND = np.linspace(-5.0, 5.0, 301)
MAKERS: dict[str, Any] = {
    "CubicSpline": interpolate.CubicSpline,
    "Pchip": interpolate.PchipInterpolator,
    "Akima": interpolate.Akima1DInterpolator,
    "quintic": lambda u, g: interpolate.make_interp_spline(u, g, k=5),
    "univariate": lambda u, g: interpolate.UnivariateSpline(u, g, s=0.0),
    "linear": lambda u, g: interpolate.make_interp_spline(u, g, k=1),
}


def as_model(function: Any) -> ub.DecoupledModel:
    return ub.DecoupledModel.from_parts([[1.0]], [[1.0]], None, [function])


@pytest.mark.parametrize("kind", MAKERS)
@given(seed=st.integers(0, 2**31))
def test_a_spline_of_scipy_is_the_same_branch(kind: str, seed: int) -> None:
    spline = MAKERS[kind](KNOTS, np.random.default_rng(seed).standard_normal(9))
    branch = as_model(spline).branches[0]
    wanted = spline(AROUND)
    known = np.isfinite(wanted)
    size = np.abs(wanted[known]).max()
    np.testing.assert_allclose(branch(AROUND)[known], wanted[known], rtol=0.0, atol=1e-11 * size)
    assert branch.domain == (-2.0, 2.0)
    inside = AROUND[np.abs(AROUND) < 1.99]
    np.testing.assert_allclose(branch.derivative(inside), spline.derivative()(inside), rtol=0.0, atol=1e-9 * size)


def test_where_scipy_gives_nan_a_branch_goes_on_along_its_tangent() -> None:
    spline = interpolate.Akima1DInterpolator(KNOTS, np.tanh(KNOTS))
    branch = as_model(spline).branches[0]
    slope = float(spline.derivative()(2.0))
    np.testing.assert_allclose(branch(np.array([3.0, 4.0])), np.tanh(2.0) + slope * np.array([1.0, 2.0]))
    np.testing.assert_allclose(branch.derivative(np.array([3.0, np.inf])), slope)


def test_a_branch_goes_to_scipy_and_back() -> None:
    problem, _ = ub.datasets.trig(S=60, rng=0)
    model = ub.decouple(problem, 3, starts=4, rng=0).model
    back = ub.DecoupledModel.from_parts(model.W0, model.W1, model.bias, [one.to_scipy() for one in model.branches])
    X = np.random.default_rng(0).uniform(-3.0, 3.0, (500, 2))
    np.testing.assert_allclose(back(X), model(X), rtol=0.0, atol=1e-11 * np.abs(model(X)).max())


def shapes(g: Array) -> list[bool]:
    branch = as_model(interpolate.CubicSpline(KNOTS, g)).branches[0]
    every = (ub.NonNegative(), ub.Increasing(), ub.Decreasing(), ub.Convex(), ub.Concave())
    return [branch.certified(one) for one in every]


def test_shapes_are_certified_from_coefficients() -> None:
    assert shapes(np.exp(KNOTS)) == [True, True, False, True, False]
    assert shapes(-np.exp(KNOTS)) == [False, False, True, False, True]
    assert shapes(KNOTS**2) == [True, False, False, True, False]
    assert shapes(np.sin(2.0 * KNOTS)) == [False] * 5


@given(seed=st.integers(0, 2**31))
def test_no_shape_is_certified_that_a_grid_refutes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    g = np.cumsum(np.cumsum(np.abs(rng.standard_normal(9)))) if rng.random() < 0.5 else rng.standard_normal(9)
    branch = as_model(interpolate.PchipInterpolator(KNOTS, g)).branches[0]
    u = np.linspace(-2.0, 2.0, 2001)
    slack = 1e-7 * np.abs(g).max()
    if branch.certified(ub.NonNegative()):
        assert branch(u).min() >= -slack
    if branch.certified(ub.Increasing()):
        assert np.diff(branch(u)).min() >= -slack
    if branch.certified(ub.Convex()):
        assert np.diff(branch.derivative(u)).min() >= -slack


def test_a_jump_downwards_is_not_increasing() -> None:
    steps = interpolate.PPoly(np.array([[1.0, 1.0], [0.0, 0.5]]), [0.0, 1.0, 2.0])  # u, then u - 0.5
    assert not as_model(steps).branches[0].certified(ub.Increasing())
    kink = interpolate.PPoly(np.array([[2.0, 1.0], [0.0, 2.0]]), [0.0, 1.0, 2.0])  # slope 2, then 1
    assert [as_model(kink).branches[0].certified(one()) for one in (ub.Increasing, ub.Convex, ub.Concave)] == [
        True,
        False,
        True,
    ]


def test_what_is_no_spline_of_one_variable_is_refused_with_advice() -> None:
    with pytest.raises(SettingError, match=r"functions\[0\] must be a branch or a spline .* CubicSpline\(u, g\(u\)\)"):
        as_model(np.sin)
    with pytest.raises(SettingError, match="periodic"):
        as_model(interpolate.CubicSpline(KNOTS, np.cos(np.pi * KNOTS), bc_type="periodic"))
    with pytest.raises(DataError, match="one real value"):
        as_model(interpolate.CubicSpline(KNOTS, np.stack([KNOTS, KNOTS], axis=1)))
