"""Derivatives of NumPy functions: how exact they are, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from unbraid.data.functions.differences import Differences
from unbraid.data.functions.recognition import form_of
from unbraid.data.functions.scales import binary_spreads
from unbraid.kernels.arrays import Array

RNG = np.random.default_rng(0)
U = RNG.uniform(-1.5, 1.5, (200, 1))
Curve = Callable[[Any], Any]

CURVES: dict[str, tuple[Curve, Curve]] = {
    "sin x": (np.sin, np.cos),
    "sin 10x": (lambda u: np.sin(10 * u), lambda u: 10 * np.cos(10 * u)),
    "sin 1000x": (lambda u: np.sin(1000 * u), lambda u: 1000 * np.cos(1000 * u)),
    "exp x": (np.exp, np.exp),
    "exp 5x": (lambda u: np.exp(5 * u), lambda u: 5 * np.exp(5 * u)),
    "1 / (1 + 25x²)": (lambda u: 1 / (1 + 25 * u**2), lambda u: -50 * u / (1 + 25 * u**2) ** 2),
    "1 / (x - 1.6)": (lambda u: 1 / (u - 1.6), lambda u: -1 / (u - 1.6) ** 2),
    "log(x + 1.501)": (lambda u: np.log(u + 1.501), lambda u: 1 / (u + 1.501)),
    "x^20": (lambda u: u**20, lambda u: 20 * u**19),
    "linear": (lambda u: 3 * u, lambda u: 3 + 0 * u),
    "tanh 20x + 100": (lambda u: np.tanh(20 * u) + 100, lambda u: 20 / np.cosh(20 * u) ** 2),
}


def error(f: Any, X: Array, J: Array, **settings: Any) -> float:
    """The largest error, for each entry of the Jacobian as a share of its largest value."""
    found = ub.Problem.from_function(f, X, **settings).J
    assert found is not None
    size = np.abs(J).max(axis=0)
    return float((np.abs(found - J) / np.where(size > 0.0, size, 1.0)).max())


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1.0, 1e6, 1e200])
@pytest.mark.parametrize("name", CURVES)
def test_differences_are_exact_to_1e_8_whatever_the_scale(name: str, scale: float) -> None:
    f, slope = CURVES[name]
    X = U * scale
    assert error(lambda x: f(x / scale), X, (slope(X / scale) / scale)[:, :, None]) < 1e-8


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_differences_are_exact_for_inputs_far_from_zero(offset: float) -> None:
    """Whether f varies as fast as the samples do, or as slowly as their distance from zero."""
    X = offset + np.round(1e-3 * U, 7)
    assert error(lambda x: np.sin(1e3 * (x - offset)), X, 1e3 * np.cos(1e3 * (X - offset))[:, :, None]) < 1e-8
    assert error(lambda x: np.sin(x / offset), X, (np.cos(X / offset) / offset)[:, :, None]) < 1e-8


def test_differences_are_exact_for_inputs_of_very_different_scales() -> None:
    scale = np.array([1e-6, 1.0, 1e6])
    A = RNG.standard_normal((4, 3)) / scale
    X = RNG.standard_normal((100, 3)) * scale
    assert error(lambda x: np.sin(x @ A.T), X, np.cos(X @ A.T)[:, :, None] * A) < 1e-8


@pytest.mark.parametrize("constant", [0.0, 3.0, -1e5, 1e-5])
def test_inputs_that_do_not_vary_have_derivatives(constant: float) -> None:
    size = abs(constant) or 1.0
    X = np.column_stack([U[:, 0], np.full(len(U), constant)])
    x, y = X[:, 0], X[:, 1] / size
    J = np.stack([np.exp(x + y), np.exp(x + y) / size], axis=1)[:, None, :]
    assert error(lambda x: np.exp(x[..., 0] + x[..., 1] / size), X, J) < 1e-8


def test_an_outlier_among_the_samples_does_no_harm() -> None:
    X = RNG.standard_normal((100, 1))
    X[5] = 1e6
    assert error(np.sin, X, np.cos(X)[:, :, None]) < 1e-8


@pytest.mark.parametrize("S", [1, 2])
def test_one_or_two_samples_are_enough(S: int) -> None:
    X = np.array([[0.7], [-0.7]])[:S]
    assert error(lambda x: x**2 + x**3, X, (2 * X + 3 * X**2)[:, :, None]) < 1e-8


def test_a_function_in_single_precision_gets_steps_that_suit_it() -> None:
    f = lambda x: np.sin(3 * x.astype(np.float32))  # noqa: E731
    assert error(f, U, 3 * np.cos(3 * U)[:, :, None]) < 2e-5


def test_noise_is_met_with_longer_steps_and_too_much_of_it_is_refused() -> None:
    J = np.cos(U)[:, :, None]
    assert error(lambda x: np.sin(x) + 1e-6 * np.sin(1e17 * x), U, J) < 1e-4
    with pytest.raises(ub.UnbraidError, match=r"with respect to input 0 cannot be found by differences: .* f is noisy"):
        ub.Problem.from_function(lambda x: np.sin(x) + 0.1 * np.sin(1e17 * x), U)


ROUNDINGS: dict[str, tuple[Curve, float]] = {
    "6 decimals": (lambda v: np.round(v, 6), 1e-3),
    "5 decimals": (lambda v: np.round(v, 5), 1e-3),
    "4 decimals": (lambda v: np.round(v, 4), 5e-3),
    "3 decimals": (lambda v: np.round(v, 3), 1e-2),
    "2 decimals": (lambda v: np.round(v, 2), 5e-2),
    "6 digits": (lambda v: np.vectorize(lambda one: float(f"{one:.6g}"))(v), 1e-3),
    "float32 inside": (lambda v: v.astype(np.float32).astype(np.float64), 1e-4),
    "cut off": (lambda v: np.trunc(1e5 * v) / 1e5, 1e-3),
}


@pytest.mark.parametrize("name", ROUNDINGS)
@pytest.mark.parametrize("seed", range(3))
def test_rounding_is_met_with_longer_steps(name: str, seed: int) -> None:
    """Over short steps a rounded function does not move, and then it jumps."""
    rounded, tolerance = ROUNDINGS[name]
    X = np.random.default_rng(seed).uniform(-2, 2, (200, 2))
    A = np.array([[0.6, 0.6], [-1.0, 1.0]])
    assert error(lambda x: rounded(np.sin(x @ A.T)), X, np.cos(X @ A.T)[:, :, None] * A) < tolerance
    assert error(lambda x: rounded(np.sin(50 * x[..., :1])), X, np.stack([50 * np.cos(50 * X[:, :1]), 0 * U], -1)) < 0.1


def test_rounded_inputs_are_met_with_longer_steps() -> None:
    assert error(lambda x: np.sin(np.round(x, 3)), U, np.cos(U)[:, :, None]) < 5e-3


JUMPS: dict[str, Curve] = {
    "sign": np.sign,
    "floor 3x": lambda x: np.floor(3 * x),
    "one decimal": lambda x: np.round(np.sin(x), 1),
    "a switch": lambda x: np.where(x > 1.2, 1.0, 0.0),
    "a table": lambda x: np.array([0.0, 3.0, 1.0, 2.0, 7.0])[np.clip(np.round(x + 2), 0, 4).astype(int)],
}


@pytest.mark.parametrize("name", JUMPS)
@pytest.mark.parametrize("S", [20, 200])
def test_functions_that_only_jump_are_refused(name: str, S: int) -> None:
    with pytest.raises(ub.UnbraidError, match=r"by differences: whatever the step, .* rounded or has jumps\."):
        ub.Problem.from_function(JUMPS[name], U[:S])


def test_a_jump_outside_of_the_samples_is_no_matter() -> None:
    X = np.abs(U) + 0.1
    assert error(lambda x: np.where(x > 0.0, 1.0, 0.0), X, np.zeros((200, 1, 1))) == 0.0


@pytest.mark.parametrize("height", [1.0, 1e-3])
def test_a_jump_close_to_a_sample_is_named_and_far_from_all_it_does_no_harm(height: float) -> None:
    f = lambda x: np.sin(x) + height * np.sign(x)  # noqa: E731
    X = U[np.abs(U) > 0.1][:, None]
    assert error(f, X, np.cos(X)[:, :, None]) < 1e-8
    X[7] = 1e-4
    with pytest.raises(ub.UnbraidError, match=rf"beside X\[7\], .* output 0 jumps by {height:g}\. Remove such"):
        ub.Problem.from_function(f, X)


def test_a_pole_close_to_a_sample_is_reported() -> None:
    X = np.linspace(-1.5, 1.5, 3001)[:, None]
    says = r"jumps by|f gave (inf|-inf) at .* beside X\[(1499|150[0-2])\]"
    with pytest.raises((ub.UnbraidError, UserWarning), match=says):
        ub.Problem.from_function(lambda x: 1 / (x - 1e-4), X)


PIECES: dict[str, tuple[Curve, Curve]] = {
    "|x|": (np.abs, np.sign),
    "max(0, x)": (lambda x: np.maximum(0, x), lambda x: np.where(x > 0, 1.0, 0.0)),
    "a steep hinge": (lambda x: np.maximum(0, 1e3 * (x - 1.2)), lambda x: np.where(x > 1.2, 1e3, 0.0)),
    "clipped": (lambda x: np.clip(x, -1, 0.5), lambda x: np.where((x > -1) & (x < 0.5), 1.0, 0.0)),
    "saturated": (lambda x: np.tanh(40 * (x - 1)), lambda x: 40 / np.cosh(40 * (x - 1)) ** 2),
    "flat, then a root": (lambda x: np.maximum(x - 0.1, 0) ** 0.5, lambda x: 0.5 * np.maximum(x - 0.1, 0) ** -0.5),
    "constant": (lambda x: 0 * x + 3, lambda x: 0 * x),
}


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("name", PIECES)
def test_flat_pieces_without_jumps_are_not_taken_for_rounding(name: str, offset: float) -> None:
    f, slope = PIECES[name]
    kinks = np.array([0.0, 0.1, 0.5, 1.0, -1.0, 1.2])
    X = U[(np.abs(U - kinks) > 0.02).all(axis=1)]
    X = offset + np.round(X, 6)
    with np.errstate(divide="ignore"):
        J = np.where(np.isfinite(slope(X - offset)), slope(X - offset), 0.0)
    assert error(lambda x: f(x - offset), X, J[:, :, None]) < 1e-7


def test_a_relu_network_has_the_derivatives_of_its_pieces() -> None:
    W, b, V = RNG.standard_normal((2, 16)), RNG.standard_normal(16), RNG.standard_normal((16, 3))
    X = RNG.uniform(-2, 2, (2000, 2))
    X = X[(np.abs(X @ W + b) > 0.02).all(axis=1)]
    J = np.einsum("mh,sh,hn->snm", W, X @ W + b > 0.0, V)
    assert error(lambda x: np.maximum(x @ W + b, 0.0) @ V, X, J) < 1e-8
    on_kinks = np.stack([np.full(50, -b[0] / W[0, 0]), np.zeros(50)], axis=1)
    assert ub.Problem.from_function(lambda x: np.maximum(x @ W + b, 0.0) @ V, np.vstack([X, on_kinks])).n == 3


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
def test_differences_are_those_of_the_formula(m: int, n: int, seed: int) -> None:
    """The slow, obvious twin: one entry after the other, from single points."""
    rng = np.random.default_rng(seed)
    A, X, steps = rng.standard_normal((n, m)), rng.standard_normal((5, m)), rng.uniform(0.01, 0.1, m)
    form, _ = form_of("f", lambda x: np.sin(x @ A.T), X)
    J = Differences(form, steps, np.ones((n, m)))(X, np.arange(5))
    for s, i, k in np.ndindex(5, n, m):

        def along(t: float, s: int = s, i: int = i, k: int = k) -> float:
            x = X[s].copy()
            x[k] += t
            return float(np.sin(A[i] @ x))

        h = float(steps[k])
        slope = (-along(2 * h) + 8 * along(h) - 8 * along(-h) + along(-2 * h)) / (12 * h)
        np.testing.assert_allclose(J[s, i, k], slope, atol=1e-12)


def test_spreads_are_powers_of_two_near_the_spread() -> None:
    X = RNG.standard_normal((1000, 4)) * [1.0, 1e-6, 1e6, 0.0] + [0.0, 5.0, 0.0, 0.0]
    ratio = binary_spreads(X) / [1.0, 1e-6, 1e6, 1.0]
    assert ((ratio > 0.6) & (ratio < 1.7)).all()
    np.testing.assert_array_equal(np.log2(binary_spreads(X)) % 1.0, 0.0)
    np.testing.assert_array_equal(binary_spreads(np.array([[0.1], [0.1 + 1e-17], [0.1]])), [0.125])


# The complex step.


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1.0, 1e6, 1e200])
@pytest.mark.parametrize("name", CURVES)
def test_the_complex_step_is_exact(name: str, scale: float) -> None:
    f, slope = CURVES[name]
    X = U * scale
    assert error(lambda x: f(x / scale), X, (slope(X / scale) / scale)[:, :, None], derivatives="complex-step") < 1e-12


@pytest.mark.parametrize("of_a_point", [True, False])
def test_the_complex_step_takes_functions_of_a_point_and_of_a_batch(of_a_point: bool) -> None:
    A = RNG.standard_normal((2, 3))
    X = RNG.standard_normal((20, 3))

    def f(x: Array) -> Array:
        if of_a_point and x.ndim > 1:
            raise ValueError
        return np.asarray(np.sin(x @ A.T))

    assert error(f, X, np.cos(X @ A.T)[:, :, None] * A, derivatives="complex-step") < 1e-12


@pytest.mark.parametrize(
    "f",
    [
        np.abs,
        np.real,
        lambda x: x.real**2,
        lambda x: np.abs(x) ** 2,
        lambda x: np.linalg.norm(x),
        lambda x: x * np.conj(x),
    ],
)
def test_functions_that_are_not_analytic_are_refused_by_the_complex_step(f: Any) -> None:
    def real(x: Array) -> Any:
        values = f(x)
        return values if np.iscomplexobj(x) else np.real(values)

    with pytest.raises(ub.UnbraidError, match=r'not analytic: abs.*Use derivatives="differences"'):
        ub.Problem.from_function(real, U, derivatives="complex-step")


def test_functions_that_do_not_take_complex_numbers_are_refused_by_the_complex_step() -> None:
    """It is not the sample that is to blame, also where only some samples lead there."""
    sometimes = lambda x: math.sin(x[0]) if x[0] > 1.0 else x[0]  # noqa: E731
    for f in (lambda x: math.sin(x[0]), lambda x: np.array([x[0], 1.0], dtype=np.float64), np.cbrt, sometimes):
        says = (
            r'f does not take complex numbers, it raised (TypeError|ComplexWarning) .*: use derivatives="differences"'
        )
        with pytest.raises(ub.UnbraidError, match=says) as caught:
            ub.Problem.from_function(f, U, derivatives="complex-step")
        assert "sample" not in str(caught.value)
    with pytest.warns(UserWarning, match=r"1 of 200 samples is left out, .*: f raised ZeroDivisionError .* at X\[3\]"):
        ub.Problem.from_function(
            lambda x: 1 / 0 if np.iscomplexobj(x) and x[0].real == U[3, 0] else x[0], U, derivatives="complex-step"
        )
