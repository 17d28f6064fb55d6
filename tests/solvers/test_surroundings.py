"""A fit to second order in all its unknowns, against a regression whose every column is written down."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unbraid as ub
from unbraid.bases.projection import Projection
from unbraid.bases.smoothing import PlacedSmoothing
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.kernels.arrays import Array
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates
from unbraid.solvers.surroundings import Surroundings
from unbraid.studies.comparison.cells import with_noise

S, LAMBDA = 60, 0.3
STRENGTHS = np.array([0.3, 2.0, 50.0])


def one_branch() -> tuple[GaussNewton, Iterates]:
    """A branch of two inputs and one output, as given, with noise, at the penalised minimum in its coefficients."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (S, 2))
    f, J = np.sin(2 * X[:, :1]), np.stack([2 * np.cos(2 * X[:, 0]), np.zeros(S)], axis=-1)[:, None]
    problem = with_noise(ub.Problem(X, f, J), 0.05, rng)
    basis = ub.SmoothingSpline(9, smoothing=1e-4)
    samples = Samples.of(problem, Units.as_given(problem))
    solver = GaussNewton(samples, basis, Projection.onto([None]), LAMBDA, offset=False)
    W0, W1 = np.array([[[1.0, 0.0]]]), np.array([[[2.0]]])
    placement = replace(basis.place(W0 @ samples.X.T), strength=STRENGTHS[None, None])
    a = rng.standard_normal((1, 1, basis.size))
    return solver, Iterates(W0, W1, placement, a)


def columns(solver: GaussNewton, it: Iterates) -> Array:
    """The derivatives of all J and √λ F: with respect to a turn of w0, and to the coefficients."""
    samples = solver.samples
    assert isinstance(samples, Samples)
    u, one = samples.X[:, 0], it.placement.select((0, 0))
    slope, bend = (one.design(u, k) @ it.a[0, 0] for k in (1, 2))
    turn = [2.0 * bend * samples.X[:, 1], 2.0 * slope, np.sqrt(LAMBDA) * 2.0 * slope * samples.X[:, 1]]
    coefficients = [2.0 * one.design(u, 1), np.zeros((S, it.a.shape[-1])), np.sqrt(LAMBDA) * 2.0 * one.design(u)]
    return np.hstack([np.concatenate(turn)[:, None], np.concatenate(coefficients)])


def test_freedom_and_covariances_are_those_of_a_penalised_regression() -> None:
    solver, it = one_branch()
    D, K = columns(solver, it), it.a.shape[-1]
    root = it.placement.select((0, 0)).penalty_root()
    assert root is not None
    V = D.T @ D
    V[1:, 1:] += 4.0 * root.T @ root  # ‖w1‖² = 4
    inverse = np.linalg.inv(V)
    around = Surroundings.of(solver, solver.linearised(it))
    assert around.freedom(1)[0] == pytest.approx(np.trace(inverse @ D.T @ D), rel=1e-6)
    jacobian, values = (float(one[0]) for one in solver.linearised(it).misfits())
    variance = (jacobian + LAMBDA * values) / (3 * S - np.trace(inverse @ D.T @ D))
    assert around.variance == pytest.approx(variance, rel=1e-6)
    wanted = variance * inverse[1:, 1:]
    assert around.covariances(1).shape == (1, K, K)
    np.testing.assert_allclose(around.covariances(1)[0], wanted, rtol=1e-5, atol=1e-8 * np.abs(wanted).max())


def fitted(noise: float = 0.05) -> tuple[GaussNewton, Iterates]:
    """A model of three branches somewhere near a fit, and its solver."""
    problem = with_noise(ub.datasets.trig(S=120, rng=0)[0], noise, np.random.default_rng(0))
    basis = ub.SmoothingSpline(12)
    samples = Samples.of(problem, Units.balanced(problem))
    solver = GaussNewton(samples, basis.untuned(), Projection.onto([None] * 3), 0.5, offset=True)
    rng = np.random.default_rng(1)
    W0, W1 = rng.standard_normal((1, 3, 2)), rng.standard_normal((1, 2, 3))
    placement = basis.untuned().place(W0 @ samples.X.T)
    strength = np.full((1, 3, 3), 0.1)
    return solver, Iterates(W0, W1, replace(placement, strength=strength), rng.standard_normal((1, 3, basis.size)))


def with_strengths(it: Iterates, size: float) -> Iterates:
    """The same model with all strengths of one size."""
    assert isinstance(it.placement, PlacedSmoothing)
    return replace(it, placement=replace(it.placement, strength=np.full((1, it.W0.shape[1], 3), size)))


def test_without_penalties_all_unknowns_are_free() -> None:
    solver, it = fitted()
    around = Surroundings.of(solver, solver.linearised(with_strengths(it, 1e-12)))
    n, m, K = 2, 2, it.a.shape[-1]
    np.testing.assert_allclose(around.freedom(3), np.full(3, n - 1 + m - 1 + K - 1), rtol=1e-3)


def test_a_loss_is_what_the_quadratic_model_loses_without_a_branch() -> None:
    """By solving for all others with the coefficients of one held at zero."""
    solver, it = fitted()
    around = Surroundings.of(solver, solver.linearised(it))
    [part] = around.parts
    V = part.N.copy()
    C = part.penalties.stacked(around.strengths)
    every = np.arange(len(V))[part.others :].reshape(part.a.shape)
    V[every[:, :, None], every[:, None, :]] += C.mT @ C
    for j, places in enumerate(every):
        others = np.setdiff1d(np.arange(len(V)), places)
        change = np.zeros(len(V))
        change[places] = -part.a[j]
        change[others] = -np.linalg.solve(V[np.ix_(others, others)], V[np.ix_(others, places)] @ change[places])
        assert around.losses()[j] == pytest.approx(change @ V @ change, rel=1e-3)


def test_branches_of_zero_take_no_part() -> None:
    solver, it = fitted()
    W1, a = it.W1.copy(), it.a.copy()
    W1[..., 1], a[:, 1] = 0.0, 0.0
    around = Surroundings.of(solver, solver.linearised(replace(it, W1=W1, a=a)))
    assert list(around.alive) == [0, 2]
    assert around.freedom(3)[1] == 0.0
    assert not around.covariances(3)[1].any()
    strength = np.full((1, 3, 3), 0.1)
    updated = around.updated_strengths(strength)
    np.testing.assert_array_equal(updated[:, 1], strength[:, 1])
    assert np.all(updated > 0.0)


def test_beyond_the_dense_limit_branches_are_looked_at_one_by_one() -> None:
    solver, it = fitted()
    at = solver.linearised(it)
    whole, single = Surroundings.of(solver, at), Surroundings.of(replace(solver, dense_limit=0), at)
    assert len(single.parts) == 3
    assert np.all(single.freedom(3) >= whole.freedom(3) - 1e-6)  # with the others given more can be known
    assert np.isfinite(single.updated_strengths(np.full((1, 3, 3), 0.1))).all()
    assert np.isfinite(single.deviance())


def test_another_penalty_sums_nothing_again() -> None:
    solver, it = fitted()
    at = solver.linearised(it)
    at.normal_matrix(), at.descent()
    stronger = with_strengths(it, 3.0)
    quick, slow = at.with_penalty(stronger.placement), solver.linearised(stronger)
    assert quick.data_matrix is at.data_matrix
    np.testing.assert_array_equal(quick.normal_matrix(), slow.normal_matrix())
    np.testing.assert_array_equal(quick.descent(), slow.descent())
