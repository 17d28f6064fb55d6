"""The quadratic model of a step, dense and by products, free and bounded; conjugate gradients beside dense solves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from clocks import Clock
from registry import seeds
from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.kernels import conjugate_gradients, quadratics
from unbraid.kernels.arrays import Array
from unbraid.runtime.deadline import until
from unbraid.solvers import local_models
from unbraid.solvers.gauss_newton import Attempt, GaussNewton, GaussNewtonState
from unbraid.solvers.iterates import Iterates
from unbraid.solvers.linearised import Linearised
from unbraid.solvers.local_models import turning_frames

BASES: list[Basis] = [
    ub.BSpline(df=7),
    ub.BSpline(df=6, degree=2),
    ub.PiecewiseLinear(df=5),
    ub.NaturalCubic(df=6),
    ub.Polynomial(degree=4),
    ub.SmoothingSpline(df=7, smoothing=1e-5),
]


def both_states(
    given: str, basis: Basis, constraint: Constraint | None, offset: bool, damping: float = 1e-3
) -> tuple[tuple[GaussNewton, GaussNewtonState], tuple[GaussNewton, GaussNewtonState]]:
    """The dense solver and the one by products, at the same random models, a batch of two."""
    rng = np.random.default_rng(0)
    whole, _ = ub.datasets.random_system(n=2, m=3, r=3, S=80, kind="sine", rng=0)
    problem = ub.Problem(whole.X, whole.F if "F" in given else None, whole.J if "J" in given else None)
    samples, projection = Samples.of(problem, Units.balanced(problem)), Projection.onto([constraint, None, constraint])
    W0 = rng.standard_normal((2, 3, 3))
    W0 /= np.linalg.norm(W0, axis=-1, keepdims=True)
    placement = basis.place(W0 @ samples.X.T)
    a = projection.feasible(placement, rng.standard_normal((2, 3, basis.size)))
    it = Iterates(W0, rng.standard_normal((2, 2, 3)), placement, a)
    dense = GaussNewton(samples, basis, projection, 0.3, offset)
    by_products = replace(dense, dense_limit=0)
    one, other = ((solver, replace(solver.start(it), damping=np.full(2, damping))) for solver in (dense, by_products))
    return one, other


@pytest.mark.parametrize("basis", BASES, ids=repr)
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("given", ["F", "J", "FJ"])
def test_products_are_those_of_the_normal_matrix(basis: Basis, offset: bool, given: str) -> None:
    (_, dense), (_, by_products) = both_states(given, basis, None, offset)
    z = np.random.default_rng(1).standard_normal(dense.model.descent.shape)
    expected = dense.model.product(z)
    np.testing.assert_allclose(by_products.model.product(z), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    size = np.abs(dense.model.diagonal).max()
    np.testing.assert_allclose(by_products.model.diagonal, dense.model.diagonal, rtol=0, atol=1e-13 * size)
    np.testing.assert_array_equal(by_products.model.descent, dense.model.descent)


@pytest.mark.parametrize("constraint", [None, ub.Increasing(), ub.Concave(), ub.NonNegative()], ids=repr)
@pytest.mark.parametrize("damping", [1.0, 1e-2])
def test_steps_by_conjugate_gradients_are_the_dense_ones(
    constraint: Constraint | None, damping: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_models, "STEP_TOLERANCE", 1e-5)
    (dense, one), (by_products, other) = both_states("FJ", ub.BSpline(df=7), constraint, offset=False, damping=damping)
    (expected, promised), (found, also_promised) = dense._trial(one), by_products._trial(other)
    np.testing.assert_allclose(also_promised, promised, rtol=1e-4)
    for name in ("W0", "W1", "a"):
        exact = getattr(expected, name)
        np.testing.assert_allclose(getattr(found, name), exact, rtol=0, atol=1e-2 * np.abs(exact).max())


def test_steps_by_conjugate_gradients_promise_what_dense_ones_do() -> None:
    """They are not brought to their end, which costs next to nothing of what is gained."""
    (dense, one), (by_products, other) = both_states("FJ", ub.BSpline(df=7), None, offset=False, damping=1e-2)
    np.testing.assert_allclose(by_products._trial(other)[1], dense._trial(one)[1], rtol=1e-3)


@pytest.mark.parametrize("constraint", [None, ub.Increasing()], ids=repr)
def test_a_step_that_is_late_ends_early_and_still_leads_down(
    constraint: Constraint | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    _, (solver, state) = both_states("FJ", ub.BSpline(df=7), constraint, offset=False, damping=1.0)
    products = iter(range(10**6))
    product = Linearised.product

    def slow(self: Linearised, change: Array) -> Array:
        next(products)
        clock.advance(1.0)
        return product(self, change)

    monkeypatch.setattr(Linearised, "product", slow)
    with until(clock.now + 2.5):
        tried = solver.attempt(state)
    assert next(products) < 8
    assert tried.better.all()


@pytest.mark.parametrize("kind", [0, 1], ids=["dense", "products"])
def test_a_step_that_some_starts_take_back_is_that_of_each_alone(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    solver, state = both_states("FJ", ub.BSpline(df=7), None, offset=True)[kind]
    attempt = GaussNewton.attempt
    for better in ([True, False], [False, True]):

        def spoiled(self: GaussNewton, now: GaussNewtonState, better: list[bool] = better) -> Attempt:
            return attempt(self, now)._replace(better=np.array(better)[-len(now.objective) :])

        monkeypatch.setattr(GaussNewton, "attempt", spoiled)
        both, _ = solver.step(state)
        monkeypatch.setattr(GaussNewton, "attempt", attempt)
        for k, taken in enumerate(better):
            alone = state.take(np.array([k]))
            expected = solver.step(alone)[0] if taken else alone
            found = both.take(np.array([k]))
            np.testing.assert_allclose(found.iterates.W0, expected.iterates.W0, rtol=0, atol=1e-8)
            np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-8)
            np.testing.assert_allclose(
                found.model.descent, expected.model.descent, rtol=0, atol=1e-7 * np.abs(expected.model.descent).max()
            )
            np.testing.assert_allclose(found.model.diagonal, expected.model.diagonal, rtol=1e-6)
        assert both.moved.tolist() == better
        assert both.steps == state.steps + 1


def test_some_of_the_starts_have_the_same_products() -> None:
    _, (_, state) = both_states("FJ", ub.BSpline(df=7), ub.Increasing(), offset=True)
    z = np.random.default_rng(1).standard_normal(state.model.descent.shape)
    second = state.take(np.array([1]))
    np.testing.assert_allclose(second.model.product(z[1:]), state.model.product(z)[1:], rtol=1e-12, atol=1e-12)


def test_a_fit_by_conjugate_gradients_reaches_the_same_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = ub.datasets.trig(rng=0)
    dense = ub.decouple(problem, 3, basis=ub.BSpline(12), starts=4, rng=0)
    monkeypatch.setattr("unbraid.fitting.fit_rank.GaussNewton", partial(GaussNewton, dense_limit=0))
    by_products = ub.decouple(problem, 3, basis=ub.BSpline(12), starts=4, rng=0)
    assert by_products.objective == pytest.approx(dense.objective, rel=1e-2)


def test_thousands_of_unknowns_are_recovered_exactly() -> None:
    """r (n + m + df + 1) = 24 · 141 = 3,384: above the limit of the dense solver, by default."""
    problem, truth = ub.datasets.random_system(n=65, m=65, r=24, S=100, kind="cubic", rng=0)
    rng = np.random.default_rng(0)
    near = ub.DecoupledModel(truth.W0 + 0.03 * rng.standard_normal((24, 65)), truth.W1, truth.branches)
    fit = ub.decouple(problem, 24, basis=ub.BSpline(df=10), init=near)
    assert fit.jacobian_error is not None
    assert fit.jacobian_error < 1e-20


def test_frames_are_orthonormal_and_begin_with_the_row() -> None:
    W0 = np.random.default_rng(0).standard_normal((4, 3, 5))
    H = turning_frames(W0)
    np.testing.assert_allclose(H @ H.mT, np.broadcast_to(np.eye(5), H.shape), atol=1e-14)
    unit = W0 / np.linalg.norm(W0, axis=-1, keepdims=True)
    np.testing.assert_allclose(np.abs(np.sum(H[..., 0] * unit, axis=-1)), 1.0)


# Conjugate gradients.


def quadratic(seed: int, size: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((2, size + 5, size))
    return factor.mT @ factor + 0.1 * np.eye(size), rng.standard_normal((2, size))


@given(seed=seeds, size=st.integers(1, 30))
def test_conjugate_gradients_solve(seed: int, size: int) -> None:
    A, b = quadratic(seed, size)
    held = np.random.default_rng(seed).random((2, size)) < 0.3
    inverse_diagonal = 1.0 / np.diagonal(A, axis1=-2, axis2=-1)
    x = conjugate_gradients.minimise_free(
        lambda v: (A @ v[..., None])[..., 0], b, lambda v: inverse_diagonal * v, ~held, 1e-12, 50 * size
    )
    for row in range(2):
        free = ~held[row]
        expected = np.linalg.solve(A[row][np.ix_(free, free)], b[row, free])
        np.testing.assert_allclose(x[row, free], expected, rtol=1e-6, atol=1e-8)
    assert not x[held].any()


@given(seed=seeds, size=st.integers(1, 30))
def test_bounded_conjugate_gradients_are_block_pivoting(seed: int, size: int) -> None:
    A, b = quadratic(seed, size)
    x = np.abs(np.random.default_rng(seed).standard_normal((2, size)))
    free = np.arange(size) % 3 == 0
    lower = np.where(free, -np.inf, -x)
    found = conjugate_gradients.minimise_bounded(
        lambda v: (A @ v[..., None])[..., 0], b, lambda v: v, lower, 1e-11, 50 * size
    )
    shift = np.where(free, 0.0, x)  # y = found + shift ≥ 0
    expected = quadratics.minimise_nonnegative(A, b + (A @ shift[..., None])[..., 0], free) - shift
    assert (found >= lower).all()
    value = [np.sum(y * (0.5 * (A @ y[..., None])[..., 0] - b), axis=-1) for y in (found, expected)]
    np.testing.assert_allclose(value[0], value[1], rtol=1e-6, atol=1e-8)
