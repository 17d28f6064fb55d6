"""The linear steps of a sweep, and whole sweeps, against slow, obvious twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg

import unbraid as ub
from registry import seeds
from twin import cmtf_bsd
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.kernels import factors
from unbraid.kernels.arrays import Array
from unbraid.solvers.alternating import AlternatingProjection, SweepState
from unbraid.solvers.coupling import FixedCoupling
from unbraid.solvers.evaluated import outputs_at
from unbraid.solvers.translate import GivenModel


def assert_close(ours: Array, theirs: Array) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


# The linear steps of a sweep.


@st.composite
def factorisations(draw: st.DrawFn) -> tuple[dict[str, Array], Array]:
    """X-free data of a sweep: J (S, n·m) with weight, and the factors; and J·weight as (S, n, m)."""
    n, m, r, S = (draw(st.integers(1, k)) for k in (4, 4, 5, 9))
    rng = np.random.default_rng(draw(seeds))
    data = {
        "J": rng.standard_normal((S, n * m)),
        "weight": rng.uniform(0.5, 2.0, n * m),
        "F": rng.standard_normal((S, n)),
        "W0": rng.standard_normal((r, m)),
        "W1": rng.standard_normal((n, r)),
        "G": rng.standard_normal((S, r)),
        "R": rng.standard_normal((S, r)),
    }
    return data, (data["J"] * data["weight"]).reshape(S, n, m)


def model_jacobian(W1: Array, W0: Array, G: Array) -> Array:
    product: Array = np.einsum("ib,bk,sb->sik", W1, W0, G)
    return product


@given(factorisations())
def test_khatri_rao_rebuilds_the_jacobians(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    KR = factors.khatri_rao(data["W1"], data["W0"])
    np.testing.assert_array_equal(KR, linalg.khatri_rao(data["W1"], data["W0"].T))
    expected = model_jacobian(data["W1"], data["W0"], data["G"]).reshape(len(J), -1)
    np.testing.assert_allclose(data["G"] @ KR.T, expected, rtol=1e-12, atol=1e-12)


@given(factorisations())
def test_products_and_contractions_are_the_sums_they_stand_for(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    T = factors.jacobian_products(data["J"], data["weight"], data["G"])
    expected = np.einsum("sik,sb->ikb", J, data["G"])
    assert_close(T, expected.reshape(T.shape))
    inputs = factors.contract_inputs(T, data["W0"])
    assert_close(inputs, np.einsum("ikb,bk->ib", expected, data["W0"]))
    outputs = factors.contract_outputs(T, data["W1"])
    assert_close(outputs, np.einsum("ikb,ib->kb", expected, data["W1"]))


def well_conditioned(A: Array) -> bool:
    values = np.linalg.svd(A, compute_uv=False)
    kept = values[values > 1e-10 * values[0]]
    return bool(kept[-1] > 1e-3 * values[0])


@given(factorisations(), st.sampled_from([0.0, 0.01, 1.0, 100.0]))
def test_outer_step_is_least_squares_on_the_unfolding(given: tuple[dict[str, Array], Array], coupling: float) -> None:
    data, J = given
    W0, G, R, F, root = data["W0"], data["G"], data["R"], data["F"], np.sqrt(coupling)
    S, n, m = J.shape
    A = np.vstack([linalg.khatri_rao(G, W0.T), root * R])
    if not well_conditioned(A):
        return
    b = np.vstack([J.transpose(0, 2, 1).reshape(S * m, n), root * F])
    T = factors.jacobian_products(data["J"], data["weight"], G)
    gram = (G.T @ G) * (W0 @ W0.T)
    W1 = factors.outer_step(factors.contract_inputs(T, W0), gram, coupling * F.T @ R, coupling * R.T @ R)
    expected = np.linalg.lstsq(A, b, rcond=1e-8)[0].T
    np.testing.assert_allclose(W1, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@given(factorisations())
def test_inner_step_is_least_squares_on_the_unfolding(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    W1, G = data["W1"], data["G"]
    S, n, m = J.shape
    A = linalg.khatri_rao(G, W1)
    if not well_conditioned(A):
        return
    T = factors.jacobian_products(data["J"], data["weight"], G)
    expected = np.linalg.lstsq(A, J.reshape(S * n, m), rcond=1e-8)[0]
    W0 = factors.inner_step(T, W1, G.T @ G)
    np.testing.assert_allclose(W0, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@given(factorisations())
def test_slopes_step_is_least_squares_on_the_unfolding(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    A = linalg.khatri_rao(data["W1"], data["W0"].T)
    if not well_conditioned(A):
        return
    G = factors.least_norm_slopes(data["J"], data["weight"], data["W1"], data["W0"])
    expected = np.linalg.lstsq(A, J.reshape(len(J), -1).T, rcond=1e-8)[0].T
    np.testing.assert_allclose(G, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@given(factorisations())
def test_values_step_is_least_squares(given: tuple[dict[str, Array], Array]) -> None:
    data, _ = given
    if not well_conditioned(data["W1"]):
        return
    R = factors.least_norm_values(data["F"], factors.pseudo_inverse_of(data["W1"]))
    expected = np.linalg.lstsq(data["W1"], data["F"].T, rcond=1e-8)[0].T
    np.testing.assert_allclose(R, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@given(factorisations())
def test_nearest_values_are_the_minimiser_nearest_to_the_given(given: tuple[dict[str, Array], Array]) -> None:
    """Twin: least squares for the difference, whose solution of least norm is the shortest way."""
    data, _ = given
    F, W1, R = data["F"], data["W1"], data["R"]
    if not well_conditioned(W1):
        return
    nearest = factors.nearest_values(F, W1, factors.pseudo_inverse_of(W1), R)
    expected = R + np.linalg.lstsq(W1, (F - R @ W1.T).T, rcond=1e-8)[0].T
    np.testing.assert_allclose(nearest, expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    least = factors.least_norm_values(F, factors.pseudo_inverse_of(W1))
    np.testing.assert_allclose(nearest @ W1.T, least @ W1.T, rtol=0, atol=1e-7 * np.abs(F).max())
    assert np.linalg.norm(nearest - R) <= np.linalg.norm(least - R) * (1.0 + 1e-9)


@given(factorisations())
def test_nearest_slopes_are_the_minimiser_nearest_to_the_given(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    W1, W0, G = data["W1"], data["W0"], data["G"]
    A, flat = linalg.khatri_rao(W1, W0.T), J.reshape(len(J), -1)
    if not well_conditioned(A):
        return
    nearest = factors.nearest_slopes(data["J"], data["weight"], W1, W0, G)
    expected = np.linalg.lstsq(A, flat.T, rcond=1e-8)[0].T
    if A.shape[0] < A.shape[1]:
        expected = G + np.linalg.lstsq(A, (flat - G @ A.T).T, rcond=1e-8)[0].T
    np.testing.assert_allclose(nearest, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@given(factorisations())
def test_misfits_are_the_sums_of_squared_residuals(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    W1, W0, G, R, F = (data[name] for name in ("W1", "W0", "G", "R", "F"))
    T = factors.jacobian_products(data["J"], data["weight"], G)
    norm, gram = float(np.sum(J**2)), (G.T @ G) * (W0 @ W0.T)
    model = model_jacobian(W1, W0, G)
    misfit = factors.misfit(factors.contract_inputs(T, W0), gram, W1, norm)
    np.testing.assert_allclose(misfit, np.sum((J - model) ** 2), rtol=1e-10, atol=1e-12 * (norm + np.sum(model**2)))
    square, there = np.sum(F**2), R @ W1.T
    misfit = factors.misfit(F.T @ R, R.T @ R, W1, square)
    np.testing.assert_allclose(misfit, np.sum((F - there) ** 2), rtol=1e-10, atol=1e-12 * (square + np.sum(there**2)))


@given(factorisations())
def test_folding_units_in_is_scaling_the_jacobians(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    scaled, ones = J.reshape(len(J), -1), np.ones(data["weight"].size)
    W1, W0, G = data["W1"], data["W0"], data["G"]
    for ours, theirs in (
        (factors.jacobian_products(data["J"], data["weight"], G), factors.jacobian_products(scaled, ones, G)),
        (
            factors.least_norm_slopes(data["J"], data["weight"], W1, W0),
            factors.least_norm_slopes(scaled, ones, W1, W0),
        ),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * np.abs(theirs).max())


@given(seed=seeds)
def test_linear_steps_take_starts_as_a_leading_axis(seed: int) -> None:
    rng = np.random.default_rng(seed)
    S, n, m, r, B = 12, 2, 3, 4, 5
    J, weight, F = rng.standard_normal((S, n * m)), rng.uniform(0.5, 2.0, n * m), rng.standard_normal((S, n))
    W0, W1 = rng.standard_normal((B, r, m)), rng.standard_normal((B, n, r))
    G, R = rng.standard_normal((2, B, S, r))
    T, slopes = factors.jacobian_products(J, weight, G), factors.nearest_slopes(J, weight, W1, W0, G)
    inner, values = factors.inner_step(T, W1, G.mT @ G), factors.nearest_values(F, W1, factors.pseudo_inverse_of(W1), R)
    for b in range(B):
        one = factors.jacobian_products(J, weight, G[b])
        assert_close(T[b], one)
        assert_close(slopes[b], factors.nearest_slopes(J, weight, W1[b], W0[b], G[b]))
        assert_close(inner[b], factors.inner_step(one, W1[b], G[b].T @ G[b]))
        assert_close(values[b], factors.nearest_values(F, W1[b], factors.pseudo_inverse_of(W1[b]), R[b]))


# Whole sweeps against the plain twin.


def swept(solver: AlternatingProjection, state: SweepState, sweeps: int) -> SweepState:
    for _ in range(sweeps):
        state, events = solver.step(state)
        assert not events
    return state


@pytest.mark.parametrize("sweeps", [1, 10])
@pytest.mark.parametrize("constraint", [None, ub.Increasing()], ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_sweeps_are_those_of_the_plain_twin(sweeps: int, constraint: Constraint | None, seed: int) -> None:
    problem, truth = (ub.datasets.trig if constraint is None else ub.datasets.monotone)(rng=seed)
    assert problem.F is not None
    assert problem.J is not None
    df, degree, coupling = 12, 3, 0.01
    solver = AlternatingProjection(
        Samples.of(problem, Units.as_given(problem)),
        ub.BSpline(df=df, degree=degree),
        Projection.onto([constraint] * 3),
        FixedCoupling(coupling),
        anchored=False,
        normalised=True,
        offset=False,
    )
    rng = np.random.default_rng(seed)
    if constraint is None:
        start = solver.random_start(3, [rng])
    else:  # begin near the truth, where no branch falls: the twin has no stand-in for those
        W0 = truth.W0 + 0.1 * rng.standard_normal((3, 3))
        u = problem.X @ W0.T
        G = np.stack([branch.derivative(u[:, j]) for j, branch in enumerate(truth.branches)], axis=-1)
        R = np.stack([branch(u[:, j]) for j, branch in enumerate(truth.branches)], axis=-1)
        start = solver.start_from(GivenModel(W0, truth.W1, lambda X: (G, R)), rng)
    here = outputs_at(solver.samples.gathered(), start.iterates)
    begin = start.iterates.W0[0], here.slopes[0], here.values[0]
    ours = swept(solver, start, sweeps)
    theirs = cmtf_bsd(
        problem.X, problem.F, problem.J, begin, df, degree, coupling, sweeps, increasing=constraint is not None
    )
    there = outputs_at(solver.samples.gathered(), ours.iterates)
    found = ours.iterates.W1, ours.iterates.W0, there.slopes, there.values
    for name, mine, plain in zip(["W1", "W0", "G", "R"], found, theirs, strict=True):
        np.testing.assert_allclose(mine[0], plain, rtol=0, atol=1e-8 * np.abs(plain).max(), err_msg=name)
    measure = solver.measure(ours)
    J_hat = model_jacobian(theirs[0], theirs[1], theirs[2])
    np.testing.assert_allclose(
        measure.jacobian_error, ub.metrics.jacobian_error(problem.J, J_hat), rtol=1e-6, atol=1e-12
    )
