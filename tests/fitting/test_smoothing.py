"""Fits of penalised splines: how their strength is chosen, and what it does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection, targets
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.fitting.continuation import coefficient_covariances
from unbraid.fitting.smoothing import ROUNDS, STEPS, balance_noise, choose_strengths
from unbraid.kernels.cross_validation import GAMMA, trial_strengths
from unbraid.results.fit import errors_on
from unbraid.results.outcome import Status
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates
from unbraid.solvers.translate import in_solver_units
from unbraid.studies.comparison.cells import with_noise

METHODS = [
    ub.methods.default(polish=False, max_sweeps=30),
    ub.methods.dejonghe2025(max_sweeps=30),
    ub.methods.zniyed2021(max_sweeps=30),
    ub.methods.zniyed2021(max_sweeps=30, values=False),
    ub.methods.decuyper2022(max_sweeps=10),
    ub.methods.dreesen2015(max_sweeps=50),
    ub.methods.hollander2017(max_sweeps=10),
]


def noisy_trig(noise: float = 0.05, S: int = 100, seed: int = 0) -> tuple[ub.Problem, ub.Problem]:
    """Samples with noise, and fresh ones without."""
    whole, _ = ub.datasets.trig(S + 500, rng=seed)
    return with_noise(whole.take(slice(S)), noise, np.random.default_rng(seed)), whole.take(slice(S, None))


def test_the_chosen_strength_has_the_least_score_of_refits() -> None:
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, 120)
    G = np.cos(4 * u) + 0.2 * rng.standard_normal(120)
    R = np.sin(4 * u) / 4 + 0.05 * rng.standard_normal(120)
    placed = ub.SmoothingSpline(df=20).place(u)
    D = np.concatenate([placed.design(u, 1), np.sqrt(0.5) * placed.design(u)])
    y = np.concatenate([G, np.sqrt(0.5) * R])
    to = targets(placed, placed.at(u), G, R, 0.5)
    assert to.square is not None
    normal = placed.assembled(to.sums, 0.5)
    N, b = normal.gram[None, :, None, :], normal.right[None, :]
    chosen = placed.chosen_penalty(N, b, to.square, to.equations)
    assert chosen is not None
    chosen = chosen[0]
    unit = np.trace(D.T @ D)

    def score(alpha: float) -> float:
        hat = D @ np.linalg.solve(D.T @ D + alpha * placed.omega, D.T)
        return float(np.sum((y - hat @ y) ** 2) / (240 - GAMMA * np.trace(hat)) ** 2)

    best = np.trace(chosen) / np.trace(placed.omega)
    assert score(best) <= min(score(one * unit) for one in trial_strengths(placed.omega_root)[20:]) * (1 + 1e-4)


def test_without_penalty_it_is_a_spline_with_even_knots() -> None:
    problem, _ = ub.datasets.trig(rng=1)
    even = ub.methods.default(evenness=1.0, polish=False)
    smooth = ub.decouple(problem, 3, basis=ub.SmoothingSpline(10, 3, smoothing=0.0), method=even, starts=2, rng=0)
    plain = ub.decouple(problem, 3, basis=ub.BSpline(10), method=even, starts=2, rng=0)
    np.testing.assert_allclose(smooth.model(problem.X), plain.model(problem.X), atol=1e-8)


def test_much_smoothing_leaves_polynomials() -> None:
    problem, _ = noisy_trig()
    model = ub.decouple(problem, 3, basis=ub.SmoothingSpline(12, 3, smoothing=1e7), starts=2, rng=0).model
    for branch in model.branches:
        u = np.linspace(*branch.domain, 50)
        curvature = branch.derivative(u, 2)
        assert np.ptp(curvature) < 1e-3 * np.abs(curvature).max()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("basis", [ub.SmoothingSpline(14), ub.SmoothingSpline(14, smoothing=1e-8)], ids=repr)
def test_every_method_takes_it(method: ub.methods.Method, basis: ub.SmoothingSpline) -> None:
    problem, fresh = noisy_trig()
    fit = ub.decouple(problem, 3, basis=basis, method=method, starts=2, rng=0)
    assert fit.basis == basis
    assert np.isfinite(fit.model(fresh.X)).all()
    assert fit.output_errors is not None
    assert fit.output_errors.max() < 60.0


@pytest.mark.parametrize("given_data", ["FJ", "J", "F"])
def test_smoothing_is_chosen_from_any_data(given_data: str) -> None:
    problem, fresh = noisy_trig(S=150)
    problem = ub.Problem(problem.X, problem.F if "F" in given_data else None, problem.J if "J" in given_data else None)
    basis = ub.SmoothingSpline(20)
    smooth = ub.decouple(problem, 3, basis=basis, starts=4, rng=0).model
    rough = ub.decouple(problem, 3, basis=ub.BSpline(20), starts=4, rng=0).model
    assert fresh.J is not None
    errors = [np.mean((model.jacobian(fresh.X) - fresh.J) ** 2) for model in (smooth, rough)]
    assert errors[0] < errors[1]


def drawn(name: str, S: int, seed: int) -> ub.Problem:
    if name == "trig":
        return ub.datasets.trig(S, rng=seed)[0]
    if name == "sines":
        return ub.datasets.random_system(3, 3, 5, S, "sine", seed)[0]
    return ub.datasets.random_system(2, 3, 4, S, "cubic", seed)[0]


@few_or_many(3, 5)
@pytest.mark.parametrize(("name", "rank"), [("trig", 3), ("sines", 5), ("cubics", 4)])
def test_noise_harms_it_less_than_a_spline_of_as_many_degrees_of_freedom(name: str, rank: int, draws: int) -> None:
    """Medians over draws, 5 % noise, worst output on fresh points."""
    errors = []
    for seed in range(draws):
        whole = drawn(name, 600, seed)
        train = with_noise(whole.take(slice(100)), 0.05, np.random.default_rng([seed, 1]))
        fresh = whole.take(slice(100, None))
        models = [
            ub.decouple(train, rank, basis=basis, starts=3, rng=seed).model
            for basis in (ub.SmoothingSpline(20), ub.BSpline(20))
        ]
        errors.append([float(np.max(errors_on(fresh, model)[1])) for model in models])  # type: ignore[arg-type]
    smooth, rough = np.median(errors, axis=0)
    assert smooth < rough


@pytest.mark.parametrize("constraint", [ub.Increasing(), ub.Convex()], ids=repr)
def test_constraints_hold_with_smoothing(constraint: Constraint) -> None:
    problem, _ = ub.datasets.monotone(rng=0)
    noisy = with_noise(problem, 0.02, np.random.default_rng(0))
    fit = ub.decouple(noisy, 3, basis=ub.SmoothingSpline(16), constraint=constraint, starts=2, rng=0)
    assert all(branch.certified(constraint) for branch in fit.model.branches)


def a_point(problem: ub.Problem, basis: ub.SmoothingSpline) -> tuple[GaussNewton, Iterates]:
    samples = Samples.of(problem, Units.balanced(problem))
    solver = GaussNewton(samples, basis.untuned(), Projection.onto([None] * 3), 0.1, offset=True)
    model = ub.decouple(problem, 3, basis=basis, starts=2, rng=0).model
    W0 = (model.W0 * Units.balanced(problem).x_scale)[None]
    W1 = (model.W1 / Units.balanced(problem).f_scale[:, None])[None]
    placement = basis.untuned().place(W0 @ samples.X.T)
    a = np.random.default_rng(0).standard_normal((1, 3, basis.size))
    return solver, Iterates(W0, W1, placement, a)


def test_strengths_of_a_fit_do_not_depend_on_the_coefficients_it_has() -> None:
    """With directions given the model is linear: the choice belongs to the data."""
    problem, _ = noisy_trig()
    solver, it = a_point(problem, ub.SmoothingSpline(14))
    other = replace(it, a=np.random.default_rng(1).standard_normal(it.a.shape))
    np.testing.assert_allclose(choose_strengths(solver, it), choose_strengths(solver, other), rtol=1e-6)


def test_strengths_beyond_the_dense_limit_are_chosen_branch_by_branch() -> None:
    problem, _ = noisy_trig()
    basis = ub.SmoothingSpline(14)
    solver, it = a_point(problem, basis)
    at = solver.placed_anew(it)
    chosen = choose_strengths(replace(solver, dense_limit=0), at)
    assert chosen.shape == (1, 3)
    assert (chosen > 0.0).all()
    assert np.isfinite(chosen).all()


def test_covariances_are_those_of_a_penalised_regression() -> None:
    """Of slopes and values of one branch, whose design can be written down."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 2))
    f, J = np.sin(2 * X[:, :1]), np.stack([2 * np.cos(2 * X[:, 0]), np.zeros(60)], axis=-1)[:, None]
    problem = with_noise(ub.Problem(X, f, J), 0.05, rng)
    basis = ub.SmoothingSpline(9, smoothing=1e-4)
    samples = Samples.of(problem, Units.as_given(problem))
    solver = GaussNewton(samples, basis, Projection.onto([None]), 0.3, offset=False)
    W0, W1 = np.array([[[1.0, 0.0]]]), np.array([[[2.0]]])
    placement = basis.place(W0 @ samples.X.T)
    u, one = (W0 @ samples.X.T)[0, 0], placement.select((0, 0))
    rows = [2.0 * one.design(u, 1), np.sqrt(0.3) * 2.0 * one.design(u)]
    assert problem.J is not None
    assert problem.F is not None
    D, y = np.concatenate(rows), np.concatenate([problem.J[:, 0, 0], np.sqrt(0.3) * problem.F[:, 0]])
    penalty = 4.0 * 60 * 1e-4 * one.omega
    V = np.linalg.inv(D.T @ D + penalty)
    a = V @ D.T @ y
    left = np.sum((y - D @ a) ** 2) + np.sum(problem.J[:, 0, 1] ** 2)  # the second column of J is not modelled
    sigma = left / (60 * 3 - 2 - np.trace(V @ D.T @ D))
    [found] = coefficient_covariances(solver, Iterates(W0, W1, placement, a[None, None]))
    np.testing.assert_allclose(found, sigma * V, rtol=1e-6, atol=1e-9 * np.abs(sigma * V).max())


def test_an_open_coupling_weighs_values_and_jacobians_by_their_noise() -> None:
    problem, _ = ub.datasets.trig(S=150, rng=0)
    rng = np.random.default_rng(0)
    assert problem.J is not None
    assert problem.F is not None
    size = np.sqrt(np.mean(problem.J**2))
    couplings = []
    for on_values, on_slopes in ((0.01, 0.1), (0.1, 0.01)):
        F = problem.F + on_values * np.std(problem.F, axis=0) * rng.standard_normal(problem.F.shape)
        J = problem.J + on_slopes * size * rng.standard_normal(problem.J.shape)
        noisy = ub.Problem(problem.X, F, J)
        samples = Samples.of(noisy, Units.balanced(noisy))
        basis = ub.SmoothingSpline(20)
        solver = GaussNewton(samples, basis.untuned(), Projection.onto([None] * 3), 0.1, offset=True)
        model = ub.decouple(noisy, 3, basis=basis, starts=2, rng=0).model
        iterates = in_solver_units(model, Units.balanced(noisy))
        couplings.append(balance_noise(solver, iterates))
    assert couplings[0] > 100.0 * couplings[1]  # the noise says 10⁴


def test_a_time_limit_ends_the_choice_as_well() -> None:
    problem, _ = noisy_trig()
    method = ub.methods.default(max_seconds=1e-9)
    fit = ub.decouple(problem, 3, basis=ub.SmoothingSpline(14), method=method, starts=2, rng=0)
    assert fit.status is Status.OUT_OF_TIME


def test_the_choice_is_told_and_ctrl_c_in_it_keeps_the_fit() -> None:
    problem, _ = ub.datasets.trig(S=60, rng=0)
    seen: list[ub.Progress] = []
    whole = ub.decouple(problem, 3, basis=ub.SmoothingSpline(df=12), starts=2, rng=0, callback=seen.append)
    told = [one for one in seen if one.phase == "smooth"]
    assert seen[-len(told) :] == told
    assert [one.done for one in told] == sorted(one.done for one in told)
    assert {one.total for one in told} == {ROUNDS * STEPS}
    for at in (0, STEPS + 1):  # before the first choice; in the steps after the second

        def stop(progress: ub.Progress, at: int = at) -> None:
            if progress.phase == "smooth" and progress.done >= at:
                raise KeyboardInterrupt

        fit = ub.decouple(problem, 3, basis=ub.SmoothingSpline(df=12), starts=2, rng=0, callback=stop)
        assert fit.status is Status.INTERRUPTED
        assert fit.jacobian_error is not None
        assert whole.jacobian_error is not None
        assert fit.jacobian_error < 100.0 * whole.jacobian_error


def test_a_fit_is_the_same_after_saving(tmp_path: Path) -> None:
    problem, fresh = noisy_trig()
    model = ub.decouple(problem, 3, basis=ub.SmoothingSpline(14), starts=2, rng=0).model
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(ub.DecoupledModel.load(tmp_path / "model.npz")(fresh.X), model(fresh.X))
