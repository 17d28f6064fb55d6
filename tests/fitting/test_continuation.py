"""How far branches of a fit go on as polynomials: as far as the data support it, or as was asked."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

import unbraid as ub
from unbraid.bases import Basis
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.fitting.continuation import (
    DOUBT,
    HEIGHTS,
    REACH,
    RISK,
    coefficient_covariances,
    outputs_share,
    supported_reaches,
)
from unbraid.fitting.request import Continuing, Request
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates
from unbraid.studies.comparison.cells import with_noise

CURVED: list[Basis] = [ub.BSpline(12), ub.BSpline(8, 4), ub.Polynomial(5), ub.SmoothingSpline(14)]
FEW_STEPS = ub.methods.default(max_sweeps=20, max_steps=20)
STRAIGHT: list[Basis] = [ub.PiecewiseLinear(8), ub.NaturalCubic(8), ub.BSpline(5, 1), ub.Polynomial(1)]


def reaches(fit: ub.Fit) -> Array:
    """(r, 2)."""
    return np.array([branch.reach for branch in fit.model.branches if isinstance(branch, FittedBranch)])


def trig(noise: float = 0.0, S: int = 120) -> ub.Problem:
    problem, _ = ub.datasets.trig(S, rng=0)
    return with_noise(problem, noise, np.random.default_rng(0)) if noise else problem


def fitted(problem: ub.Problem, basis: Basis, **settings: Any) -> ub.Fit:
    return ub.decouple(problem, 3, basis=basis, starts=2, rng=0, **settings)


@pytest.mark.parametrize("basis", [*CURVED, *STRAIGHT], ids=repr)
def test_choices_do_what_they_say(basis: Basis) -> None:
    problem = trig(0.01)
    found = {choice: reaches(fitted(problem, basis, continuation=choice)) for choice in get_args(Continuing)}
    assert not found["linear"].any()
    assert np.all((found["auto"] >= 0.0) & (found["auto"] <= REACH))
    assert np.all(found["polynomial"] == (REACH if basis in CURVED else 0.0))


def test_a_choice_changes_nothing_inside_the_range() -> None:
    problem = trig(0.01)
    one, other = (fitted(problem, ub.BSpline(12), continuation=choice) for choice in ("linear", "polynomial"))
    np.testing.assert_allclose(one.model(problem.X), other.model(problem.X), rtol=0, atol=1e-12)
    assert one.objective == other.objective


@pytest.mark.parametrize("basis", [ub.BSpline(8), ub.BSpline(3), ub.Polynomial(3), ub.SmoothingSpline()], ids=repr)
def test_polynomials_are_found_beyond_the_range(basis: Basis) -> None:
    """Cubic branches, from exact samples: exact also where no sample was, within the reach."""
    problem, truth = ub.datasets.random_system(2, 2, 2, 600, "cubic", 0)
    fit = ub.decouple(problem.take(slice(100)), 2, basis=basis, starts=8, rng=0)
    assert np.all(reaches(fit) == REACH)
    X = problem.X
    u = X @ fit.model.W0.T
    ends = np.array([branch.domain for branch in fit.model.branches])
    assert np.any((u < ends[:, 0]) | (u > ends[:, 1]))
    np.testing.assert_allclose(fit.model(X), truth(X), rtol=0, atol=1e-5 * np.abs(truth(X)).max())


@pytest.mark.parametrize("basis", [ub.BSpline(12), ub.Polynomial(5), ub.SmoothingSpline(14)], ids=repr)
def test_noise_shrinks_the_reach(basis: Basis) -> None:
    problem, _ = ub.datasets.random_system(2, 2, 2, 120, "cubic", 0)
    noisy = [with_noise(problem, noise, np.random.default_rng(0)) for noise in (1e-5, 0.05, 0.5)]
    shares = [reaches(ub.decouple(one, 2, basis=basis, starts=4, rng=0)).mean() for one in noisy]
    assert shares[0] > 0.1
    assert shares[0] >= shares[1] >= shares[2]
    assert shares[2] < 0.5 * shares[0]


def test_it_extrapolates_better_where_functions_are_smooth() -> None:
    whole, _ = ub.datasets.trig(1200, rng=1)
    problem, fresh = whole.take(slice(100)), whole.take(slice(100, None))
    assert fresh.F is not None
    errors = []
    for choice in ("linear", "auto"):
        model = fitted(problem, ub.BSpline(16), continuation=choice).model
        u, ends = fresh.X @ model.W0.T, np.array([branch.domain for branch in model.branches])
        outside = np.any((u < ends[:, 0]) | (u > ends[:, 1]), axis=1)
        errors.append(np.sqrt(np.mean((model(fresh.X) - fresh.F)[outside] ** 2)))
    assert errors[1] < 0.5 * errors[0]


def test_long_tails_are_not_followed() -> None:
    """Inputs of which some are far out: a step seen by few samples is no polynomial."""
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy((200, 2))
    W0, W1 = np.array([[1.0, 0.5], [-0.4, 1.0]]), rng.standard_normal((2, 2))
    G = 1.0 / np.cosh(np.clip(X @ W0.T, -300, 300)) ** 2
    problem = ub.Problem(X, np.tanh(X @ W0.T) @ W1.T, np.einsum("ij,sj,jk->sik", W1, G, W0))
    noisy, far = with_noise(problem, 0.01, rng), {}
    for choice in get_args(Continuing):
        fit = ub.decouple(noisy, 2, basis=ub.BSpline(12), starts=4, rng=0, continuation=choice)
        far[choice] = np.abs(fit.model(1.5 * X)).max()
    assert far["auto"] < 1.1 * far["linear"]
    assert far["linear"] <= far["polynomial"]


@pytest.mark.parametrize("given_data", ["J", "F"])
def test_slopes_or_values_alone_will_do(given_data: str) -> None:
    problem = trig()
    one = ub.Problem(problem.X, problem.F if given_data == "F" else None, problem.J if given_data == "J" else None)
    assert np.all(np.isfinite(fitted(one, ub.BSpline(12)).model(3.0 * problem.X)))


def test_methods_of_papers_and_fits_cut_short_go_on_linearly() -> None:
    problem = trig()
    assert not reaches(fitted(problem, ub.BSpline(12), method=ub.methods.dejonghe2025(max_sweeps=20))).any()
    assert not reaches(fitted(problem, ub.BSpline(12), polish=False)).any()
    assert reaches(fitted(problem, ub.BSpline(12), method=ub.methods.dejonghe2025(max_sweeps=20), polish=True)).any()
    cut = fitted(problem, ub.BSpline(12), method=ub.methods.default(max_seconds=1e-9))
    assert cut.status is ub.Status.OUT_OF_TIME
    assert not reaches(cut).any()

    def interrupt(progress: ub.Progress) -> None:
        if progress.phase == "polish":
            raise KeyboardInterrupt

    stopped = fitted(problem, ub.BSpline(12), callback=interrupt, continuation="polynomial")
    assert stopped.status is ub.Status.INTERRUPTED
    assert not reaches(stopped).any()


@pytest.mark.parametrize("constraint", [ub.Increasing(), ub.Convex()], ids=repr)
def test_certified_shapes_go_on(constraint: ub.bases.constraints.Constraint) -> None:
    problem, _ = ub.datasets.monotone(rng=0)
    fit = fitted(problem, ub.BSpline(10), constraint=constraint, continuation="polynomial")
    for branch in fit.model.branches:
        low, high = branch.domain
        slopes = branch.derivative(np.linspace(low - (high - low), high + (high - low), 600))
        numbers = slopes if constraint.order == 1 else np.diff(slopes)
        assert numbers.min() >= -1e-9 * np.abs(slopes).max()


@pytest.mark.parametrize("basis", CURVED, ids=repr)
@pytest.mark.parametrize("kind", ["one point", "constant", "tiny", "few", "far"])
def test_odd_samples_are_no_trouble(basis: Basis, kind: str) -> None:
    problem = trig(S=40)
    X, F, J = problem.X, problem.F, problem.J
    assert F is not None
    assert J is not None
    odd = {
        "one point": ub.Problem(0.0 * X + 1.0, 0.0 * F + F[0], 0.0 * J + J[0]),
        "constant": ub.Problem(X, 0.0 * F + 1.0, 0.0 * J),
        "tiny": ub.Problem(1e-120 * X, F, 1e120 * J),
        "few": ub.Problem(X[:15], F[:15]),
        "far": ub.Problem(X + 1e9, F, J),
    }[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for choice in get_args(Continuing):
            fit = ub.decouple(odd, 2, basis=basis, method=FEW_STEPS, starts=2, rng=0, continuation=choice)
            assert np.isfinite(fit.model(odd.X[:5] * 1.5)).all()


def a_point(basis: Basis, noise: float = 0.05) -> tuple[GaussNewton, Iterates]:
    problem = trig(noise)
    samples = Samples.of(problem, Units.balanced(problem))
    solver = GaussNewton(samples, basis, Projection.onto([None] * 3), 0.1, offset=True)
    rng = np.random.default_rng(0)
    W0, W1 = rng.standard_normal((1, 3, 2)), rng.standard_normal((1, 2, 3))
    state = solver.start(Iterates(W0, W1, basis.place(W0 @ samples.X.T), 0.1 * rng.standard_normal((1, 3, basis.size))))
    for _ in range(5):
        state, _ = solver.step(state)
    return solver, state.iterates


def test_covariances_without_penalty_are_those_of_least_squares() -> None:
    """Of Jacobians and centred values, whose design can be written down."""
    basis = ub.BSpline(6)
    solver, it = a_point(basis)
    samples = solver.samples
    assert isinstance(samples, Samples)
    u, K = it.W0[0] @ samples.X.T, basis.size
    B, slopes = it.placement.select(0).design(u), it.placement.select(0).design(u, 1)
    B = B - B.mean(axis=1, keepdims=True)
    of_values = np.einsum("nr,rsk->snrk", it.W1[0], B).reshape(-1, 3 * K)
    of_slopes = np.einsum("nr,rm,rsk->snmrk", it.W1[0], it.W0[0], slopes).reshape(-1, 3 * K)
    N = of_slopes.T @ of_slopes + solver.coupling * of_values.T @ of_values
    jacobian, values = (float(one[0]) for one in solver.linearised(it).misfits())
    left = of_slopes.shape[0] + of_values.shape[0] - 3 * (2 + 2 - 1) - 3 * (K - 1)
    expected = (jacobian + solver.coupling * values) / left * np.linalg.pinv(N, rcond=1e-11)
    found = coefficient_covariances(solver, it)
    for j in range(3):
        D = it.placement.select((0, j)).design(np.linspace(-0.5, 0.5, 9), 1)  # constants are left open
        block = expected.reshape(3, K, 3, K)[j, :, j]
        np.testing.assert_allclose(D @ found[j] @ D.T, D @ block @ D.T, rtol=1e-2, atol=1e-3 * np.abs(block).max())


def units(basis: Basis, it: Iterates, j: int, share: float) -> list[FittedBranch]:
    """Branch j with each coefficient alone, with a reach: (K,)."""
    placement = it.placement.select((0, j))
    return [FittedBranch(basis, placement, unit, np.full(2, share)) for unit in np.eye(basis.size)]


def departures(curved: list[FittedBranch], straight: list[FittedBranch], side: int, beyond: list[float]) -> Array:
    """By how much each coefficient moves a branch from its tangent, so far beyond an end: (how many, K)."""
    low, high = curved[0].domain
    u = (low, high)[side] + (-1.0, 1.0)[side] * np.array(beyond) * (high - low)
    return np.stack([one(u) - other(u) for one, other in zip(curved, straight, strict=True)], axis=-1)


@pytest.mark.parametrize("noise", [1e-3, 0.1])
def test_reaches_are_the_largest_within_both_bounds(noise: float) -> None:
    """By branches that are built and evaluated, one coefficient at a time."""
    basis = ub.BSpline(6)
    solver, it = a_point(basis, noise)
    found, covariances = supported_reaches(solver, it)[0], coefficient_covariances(solver, it)
    shares = np.linspace(0.0, REACH, HEIGHTS + 1)
    curved = {(j, share): units(basis, it, j, share) for j in range(3) for share in (0.0, *shares[1:])}
    for j, side in np.ndindex(3, 2):
        placement, covariance = it.placement.select((0, j)), covariances[j]
        low, high = placement.domain()
        inside = np.linspace(float(low), float(high), HEIGHTS + 1)
        heights = np.ptp(placement.evaluate(it.a[0, j], placement.at(inside)))
        risk, doubt, size, supported = 0.0, 0.0, 0.0, 0.0
        for share in shares[1:]:
            near, far = departures(curved[j, share], curved[j, 0.0], side, [share, REACH])
            doubt, size = doubt + float(near @ covariance @ near), size + float(near @ it.a[0, j]) ** 2
            risk = max(risk, float(far @ covariance @ far))
            if doubt <= DOUBT[1] ** 2 * size and risk <= (RISK[1] * heights * outputs_share(solver, it)) ** 2:
                supported = share
        assert found[j, side] == supported


def test_beyond_the_dense_limit_branches_are_looked_at_one_by_one() -> None:
    solver, it = a_point(ub.BSpline(6))
    alone = coefficient_covariances(replace(solver, dense_limit=0), it)
    assert alone.shape == (3, 7, 7)
    assert np.isfinite(alone).all()
    assert supported_reaches(replace(solver, dense_limit=0), it).shape == (1, 3, 2)


def test_branches_that_cancel_each_other_cover_more_than_the_outputs() -> None:
    solver, it = a_point(ub.BSpline(6))
    twice = replace(
        it, W0=it.W0[:, [0, 0]], W1=np.ones((1, 2, 2)), placement=it.placement.select((slice(None), [0, 0]))
    )
    opposed = replace(twice, a=np.stack([it.a[:, 0], -0.9 * it.a[:, 0]], axis=1))
    assert outputs_share(solver, opposed) == pytest.approx(0.1 / np.sqrt(1.81))
    assert outputs_share(solver, replace(twice, a=it.a[:, [0, 0]])) == 1.0


def test_batches_keep_reaches_where_all_have_them() -> None:
    _, it = a_point(ub.BSpline(6))
    known = replace(it, reach=np.full((1, 3, 2), 0.125))
    joined = Iterates.join([known, known])
    assert joined.reach is not None
    assert joined.take(np.array([1])).reach is not None
    assert Iterates.join([known, it]).reach is None
    assert known.merge(np.array([True]), it).reach is None
    assert it.merge(np.array([True]), known).reach is None


@pytest.mark.parametrize("given", ["cubic", None, 1, ["linear"]])
def test_other_continuations_are_refused(given: Any) -> None:
    with pytest.raises(ub.UnbraidError, match="continuation must be 'auto', 'linear' or 'polynomial', got"):
        ub.decouple(trig(S=40), 2, continuation=given)


def test_it_tells_one_fit_from_another() -> None:
    assert Request(rank=2, continuation="linear").settings()["continuation"] == "linear"
