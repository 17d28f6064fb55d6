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
from unbraid.bases.smoothing import ROUGHNESS
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.fitting import smoothing
from unbraid.fitting.smoothing import LAST_STEPS, STEPS
from unbraid.kernels.cross_validation import GAMMA, trial_strengths
from unbraid.results.fit import errors_on
from unbraid.results.outcome import Status
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates
from unbraid.solvers.smoothing_steps import SmoothingSteps
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
    unit, root = np.trace(D.T @ D), placed.roots[ROUGHNESS]
    omega = root.T @ root

    def score(alpha: float) -> float:
        hat = D @ np.linalg.solve(D.T @ D + alpha * omega, D.T)
        return float(np.sum((y - hat @ y) ** 2) / (240 - GAMMA * np.trace(hat)) ** 2)

    best = np.trace(chosen) / np.trace(omega)
    assert score(best) <= min(score(one * unit) for one in trial_strengths(root)[20:]) * (1 + 1e-4)


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


def test_a_time_limit_ends_the_choice_as_well() -> None:
    problem, _ = noisy_trig()
    method = ub.methods.default(max_seconds=1e-9)
    fit = ub.decouple(problem, 3, basis=ub.SmoothingSpline(14), method=method, starts=2, rng=0)
    assert fit.status is Status.OUT_OF_TIME


def test_the_choice_is_told_and_ctrl_c_in_it_keeps_the_fit() -> None:
    problem, _ = noisy_trig(0.01)
    seen: list[ub.Progress] = []
    whole = ub.decouple(problem, 3, basis=ub.SmoothingSpline(df=12), starts=2, rng=0, callback=seen.append)
    told = [one for one in seen if one.phase == "smooth"]
    assert seen[-len(told) :] == told
    assert [one.done for one in told] == sorted(one.done for one in told)
    assert {one.total for one in told} == {STEPS + LAST_STEPS}
    for at in (1, 10, STEPS + 1):  # in the first step, later, and in the last steps

        def stop(progress: ub.Progress, at: int = at) -> None:
            if progress.phase == "smooth" and progress.done >= at:
                raise KeyboardInterrupt

        fit = ub.decouple(problem, 3, basis=ub.SmoothingSpline(df=12), starts=2, rng=0, callback=stop)
        assert fit.status is Status.INTERRUPTED
        assert fit.jacobian_error is not None
        assert whole.jacobian_error is not None
        assert fit.jacobian_error < 100.0 * whole.jacobian_error


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
        smoothing = ub.decouple(ub.Problem(problem.X, F, J), 3, starts=2, rng=0).smoothing
        assert smoothing is not None
        assert smoothing.coupling is not None
        couplings.append(smoothing.coupling)
    assert couplings[0] > 100.0 * couplings[1]  # the noise says 10⁴


def test_a_coupling_that_is_given_stays() -> None:
    problem, _ = noisy_trig()
    smoothing = ub.decouple(problem, 3, method=ub.methods.default(coupling=7.0), starts=2, rng=0).smoothing
    assert smoothing is not None
    assert smoothing.coupling == 7.0


# What was chosen.


@few_or_many(3, 8)
@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_noise_and_freedom_are_found(noise: float, draws: int) -> None:
    found, used = [], []
    for seed in range(draws):
        problem, _ = noisy_trig(noise, S=150, seed=seed)
        fit = ub.decouple(problem, 3, starts=4, rng=0)
        assert fit.smoothing is not None
        assert fit.output_errors is not None
        found += list(fit.smoothing.noise(fit.output_errors) / (100.0 * noise))
        used.append(fit.smoothing.freedom.sum())
    assert 0.8 < np.median(found) < 1.25
    assert 15.0 < np.median(used) < 60.0  # of 87 unknowns that splines of 28 degrees of freedom have


@few_or_many(1, 4)
@pytest.mark.parametrize("more", [1, 3])
def test_superfluous_branches_vanish_and_are_told(more: int, draws: int) -> None:
    ratios = []
    for seed in range(draws):
        problem, fresh = noisy_trig(0.05, S=120, seed=seed)
        exact, larger = (ub.decouple(problem, rank, starts=4, rng=0) for rank in (3, 3 + more))
        errors = [float(np.max(errors_on(fresh, fit.model)[1])) for fit in (exact, larger)]  # type: ignore[arg-type]
        ratios.append(errors[1] / errors[0])
        assert larger.smoothing is not None
        empty = larger.smoothing.freedom == 0.0
        assert larger.model.rank == 3 + more
        assert np.all(larger.model.W1[:, empty] == 0.0)
        assert any("nothing: the data support" in note for note in larger.notes) == empty.any()
    assert np.median(ratios) < 1.3


def test_exact_fits_stay_exact_and_have_nothing_to_choose() -> None:
    for seed in range(3):
        problem, _ = ub.datasets.random_system(2, 3, 3, 120, "cubic", seed)
        fit = ub.decouple(problem, 3, rng=0)
        assert fit.jacobian_error is not None
        assert fit.jacobian_error < 1e-20
        assert fit.smoothing is None


def test_few_exact_values_are_believed() -> None:
    """As many degrees of freedom as half of the numbers or more: what is left tells that they are well used."""
    whole, _ = ub.datasets.trig(560, rng=1)
    problem = ub.Problem(whole.X[:60], whole.F[:60])  # type: ignore[index]
    fit = ub.decouple(problem, "auto", starts=8, rng=0)
    assert fit.model.rank == 3
    _, errors = errors_on(whole.take(slice(60, None)), fit.model)
    assert np.max(errors) < 2.0  # type: ignore[arg-type]  # BSpline(12): some 4 %


def wavy(S: int, seed: int = 0) -> ub.Problem:
    """Two branches, of which one is a sine of many periods."""
    X = np.random.default_rng(seed).uniform(-1, 1, (S, 2))
    u = 10.0 * X @ [1.0, 1.0]
    F = np.stack([np.sin(u), X @ [0.5, -1.0]], axis=-1)
    J = np.stack([10.0 * np.cos(u)[:, None] * [1.0, 1.0], np.broadcast_to([0.5, -1.0], (S, 2))], axis=1)
    return ub.Problem(X, F, J)


def test_knots_double_where_a_branch_uses_all_that_it_has() -> None:
    problem, fresh = wavy(400), wavy(500, seed=1)
    fits = [ub.decouple(problem, 2, basis=basis, starts=4, rng=0) for basis in (None, ub.SmoothingSpline())]
    errors = [np.max(errors_on(fresh, fit.model)[1]) for fit in fits]  # type: ignore[arg-type]
    assert [fit.basis.size for fit in fits] == [58, 29]
    assert errors[0] < 0.2 * errors[1]


def test_knots_do_not_double_for_nothing() -> None:
    """Where little is left over, where noise is followed already, or where samples are few."""
    exact, _ = ub.datasets.trig(rng=0)
    for problem in (exact, noisy_trig(0.05)[0], wavy(60)):
        assert ub.decouple(problem, 3 if problem.S > 60 else 2, starts=4, rng=0).basis.size <= 29


def test_what_stays_without_penalties_has_a_score_and_a_given_basis_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the splines of the search are the better ones; here they are made to be."""
    problem, _ = noisy_trig(0.05)
    plain = smoothing.without_smoothing
    monkeypatch.setattr(smoothing, "without_smoothing", lambda *given: replace(plain(*given), score=-100.0))
    fit = ub.decouple(problem, 3, starts=4, rng=0)
    assert fit.basis == ub.BSpline(12)
    assert fit.smoothing is not None
    np.testing.assert_array_equal(fit.smoothing.freedom, 1 + 1 + 12)
    assert fit.smoothing.score == -100.0
    assert "chosen  14.0, 14.0, 14.0 degrees of freedom; λ 0.1; noise" in str(fit)
    assert ub.decouple(problem, 3, basis=ub.SmoothingSpline(), starts=4, rng=0).basis == ub.SmoothingSpline()


def test_unknowns_without_penalties_are_believed_where_numbers_are_plenty() -> None:
    problem, _ = noisy_trig(0.05)
    for S, believed in ((100, True), (20, False)):
        some = problem.take(slice(S))
        samples = Samples.of(some, Units.balanced(some))
        solver = GaussNewton(samples, ub.BSpline(12), Projection.onto([None] * 3), 0.1, offset=True)
        rng = np.random.default_rng(0)
        W0, W1 = rng.standard_normal((1, 3, 2)), rng.standard_normal((1, 2, 3))
        it = Iterates(W0, W1, solver.basis.place(W0 @ samples.X.T), rng.standard_normal((1, 3, 13)))
        found = smoothing.without_smoothing(SmoothingSteps(solver, coupling_open=True), it)
        assert np.isfinite(found.score) == believed
        assert found.left == pytest.approx(1.0 - 3 * 14 / (S * 6))


def test_strong_noise_on_values_leaves_lines() -> None:
    """Where only noise is to be seen beside a line, that is what is found."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((150, 4))
        y = X @ [1.0, 2.0, 0.0, -1.0] + 2.0 * rng.standard_normal(150)
        fit = ub.decouple(ub.Problem(X, y[:, None]), 2, rng=0)
        assert fit.smoothing is not None
        assert fit.smoothing.freedom.sum() < 16.0
        fresh = rng.standard_normal((1000, 4))
        slopes = np.linalg.lstsq(np.hstack([X, np.ones((150, 1))]), y)[0]
        truth = fresh @ [1.0, 2.0, 0.0, -1.0]
        linear = np.mean((fresh @ slopes[:4] + slopes[4] - truth) ** 2)
        assert np.mean((fit.model(fresh)[:, 0] - truth) ** 2) < 6.0 * linear + 0.1


@pytest.mark.parametrize("S", [2, 3, 5, 8, 12, 20])
def test_few_samples_are_no_obstacle(S: int) -> None:
    problem, _ = noisy_trig(S=S)
    for given_data in (problem, ub.Problem(problem.X, problem.F)):
        fit = ub.decouple(given_data, 1, starts=2, rng=0)
        assert np.isfinite(fit.model(problem.X)).all()


def test_a_fit_is_the_same_after_saving(tmp_path: Path) -> None:
    problem, fresh = noisy_trig()
    model = ub.decouple(problem, 3, basis=ub.SmoothingSpline(14), starts=2, rng=0).model
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(ub.DecoupledModel.load(tmp_path / "model.npz")(fresh.X), model(fresh.X))
