"""The solver as a whole: laws of the fit, its results, and settings that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.fitting import search as starts_module
from unbraid.kernels.gauge import row_lengths, unit_rows
from unbraid.solvers.alternating import AlternatingProjection
from unbraid.solvers.coupling import FixedCoupling
from unbraid.solvers.translate import GivenModel

seeds = st.integers(0, 2**31)
SHORT = ub.methods.dejonghe2025(max_sweeps=25, tolerance=0.0)


def same_fit(one: ub.Fit, other: ub.Fit) -> bool:
    """Bit for bit."""
    return (
        np.array_equal(one.model.W0, other.model.W0)
        and np.array_equal(one.model.W1, other.model.W1)
        and np.array_equal(one.model.bias, other.model.bias)
        and one.objective == other.objective
        and [start.objective for start in one.starts] == [start.objective for start in other.starts]
    )


def solver_for(problem: ub.Problem, *, anchored: bool = True, offset: bool = False) -> AlternatingProjection:
    samples = Samples.of(problem, Units.balanced(problem))
    return AlternatingProjection(
        samples, ub.BSpline(df=8), Projection.onto((None,) * 3), FixedCoupling(0.1), anchored, True, offset
    )


def test_the_same_seed_gives_the_same_fit() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    fits = [ub.decouple(problem, 3, method=SHORT, starts=3, rng=7) for _ in range(2)]
    assert same_fit(*fits)
    assert not same_fit(fits[0], ub.decouple(problem, 3, method=SHORT, starts=3, rng=8))


@pytest.mark.parametrize(
    "basis", [ub.BSpline(df=9), ub.PiecewiseLinear(df=6), ub.NaturalCubic(df=7), ub.Polynomial(degree=5)], ids=repr
)
@pytest.mark.parametrize("anchored", [False, True])
def test_the_fit_does_not_depend_on_how_starts_are_batched(
    basis: ub.BSpline, anchored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, _ = ub.datasets.trig(rng=1)
    method = ub.methods.dejonghe2025(max_sweeps=40, tolerance=1e-3, anchored=anchored)
    together = ub.decouple(problem, 3, basis=basis, method=method, starts=7, rng=0)
    for batch in (1, 3):
        monkeypatch.setattr(starts_module, "SEARCH_ENTRIES", batch * 3 * problem.S)
        assert same_fit(together, ub.decouple(problem, 3, basis=basis, method=method, starts=7, rng=0))


def test_constrained_fits_do_not_depend_on_how_starts_are_batched(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = ub.datasets.monotone(rng=1)
    together = ub.decouple(problem, 3, method=SHORT, constraint=(ub.Increasing(), None, ub.Convex()), starts=5, rng=0)
    monkeypatch.setattr(starts_module, "SEARCH_ENTRIES", 1)
    alone = ub.decouple(problem, 3, method=SHORT, constraint=(ub.Increasing(), None, ub.Convex()), starts=5, rng=0)
    assert same_fit(together, alone)


@given(seed=seeds)
def test_the_order_of_samples_does_not_matter(seed: int) -> None:
    problem, _ = ub.datasets.trig(S=60, rng=seed)
    assert problem.F is not None
    assert problem.J is not None
    order = np.random.default_rng(seed).permutation(problem.S)
    shuffled = ub.Problem(problem.X[order], problem.F[order], problem.J[order])
    method = ub.methods.dejonghe2025(max_sweeps=10, tolerance=0.0)
    fits = [ub.decouple(p, 3, basis=ub.BSpline(df=6), method=method, starts=1, rng=0) for p in (problem, shuffled)]
    np.testing.assert_allclose(fits[0].model(problem.X), fits[1].model(problem.X), rtol=0, atol=1e-6)


@given(seed=seeds, x_scale=st.floats(1e-6, 1e6), f_scale=st.floats(1e-6, 1e6), shift=st.floats(-100, 100))
def test_units_do_not_matter(seed: int, x_scale: float, f_scale: float, shift: float) -> None:
    """Inputs in other units, outputs in other units: the same model in those."""
    problem, _ = ub.datasets.trig(S=60, rng=seed)
    assert problem.F is not None
    assert problem.J is not None
    units_x, units_f = np.array([x_scale, 1.0]), np.array([1.0, f_scale])
    other = ub.Problem(
        problem.X * units_x + shift * units_x, problem.F * units_f, problem.J * units_f[:, None] / units_x
    )
    method = ub.methods.dejonghe2025(max_sweeps=8, tolerance=0.0)
    fits = [ub.decouple(p, 3, basis=ub.BSpline(df=6), method=method, starts=1, rng=0) for p in (problem, other)]
    np.testing.assert_allclose(fits[0].model(problem.X), fits[1].model(other.X) / units_f, rtol=0, atol=1e-5)


@given(seed=seeds)
def test_the_gauge_does_not_change_the_model(seed: int) -> None:
    """Scaling a row of W0 and the matching column of W1 leaves the factorisation as it is."""
    rng = np.random.default_rng(seed)
    W0, W1, G = rng.standard_normal((3, 2)), rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    unit, scaled = unit_rows(W0, W1, row_lengths(W0))
    np.testing.assert_allclose(row_lengths(unit), 1.0)
    np.testing.assert_allclose(
        np.einsum("ib,sb,bk->sik", scaled, G, unit), np.einsum("ib,sb,bk->sik", W1, G, W0), atol=1e-12
    )


@given(seed=seeds)
def test_a_sweep_does_not_depend_on_the_scale_of_the_branches(seed: int) -> None:
    """G, R scaled per branch: W1 takes the scale up, and the next iterate is the same model.

    With as many outputs as branches: where there are fewer, the norm that the R step makes least is not
    free of scale.
    """
    problem, _ = ub.datasets.monotone(S=60, rng=seed)
    solver = solver_for(problem, anchored=False)
    rng = np.random.default_rng(seed)
    W0, G, R = rng.standard_normal((3, 3)), rng.standard_normal((60, 3)), rng.standard_normal((60, 3))
    scale = rng.uniform(0.1, 10.0, 3)
    W1 = rng.standard_normal((3, 3))
    one, _ = solver.step(solver.start_from(GivenModel(W0, W1, lambda X: (G, R)), rng))
    two, _ = solver.step(solver.start_from(GivenModel(W0, W1, lambda X: (G * scale, R * scale)), rng))
    np.testing.assert_allclose(one.iterates.W0, two.iterates.W0, atol=1e-5)
    np.testing.assert_allclose(solver.measure(one).objective, solver.measure(two).objective, rtol=1e-5)


def test_rows_of_w0_have_unit_length_in_the_users_units() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    fit = ub.decouple(problem, 3, method=SHORT, starts=1, rng=0)
    np.testing.assert_allclose(np.linalg.norm(fit.model.W0, axis=1), 1.0)


def test_the_reported_objective_is_that_of_the_model() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    assert problem.F is not None
    assert problem.J is not None
    method = ub.methods.dejonghe2025(coupling=0.3, max_sweeps=30, scaled=False)
    fit = ub.decouple(problem, 3, method=method, starts=2, rng=0)
    J_part = np.sum((problem.J - fit.model.jacobian(problem.X)) ** 2)
    F_part = np.sum((problem.F - fit.model(problem.X)) ** 2)
    expected = (J_part + 0.3 * F_part) / np.sum(problem.J**2)
    assert fit.objective == pytest.approx(expected, rel=1e-8)
    assert fit.jacobian_error == pytest.approx(ub.metrics.jacobian_error(problem.J, fit.model.jacobian(problem.X)))


def test_the_best_iterate_is_returned_and_not_the_last() -> None:
    problem, _ = ub.datasets.trig(rng=3)
    fit = ub.decouple(problem, 3, basis=ub.BSpline(df=20), method=ub.methods.dejonghe2025(0.1, tolerance=0.0), rng=3)
    assert fit.trace.objective.argmin() < fit.trace.sweeps - 1, "the example no longer shows the difference"
    assert fit.objective == fit.trace.objective.min()


def test_an_output_offset_beyond_the_range_of_w1_is_found_by_default() -> None:
    problem, _ = ub.datasets.random_system(n=3, m=2, r=2, S=150, rng=0)
    assert problem.F is not None
    shifted = ub.Problem(problem.X, problem.F + np.array([10.0, -20.0, 30.0]), problem.J)
    free = ub.decouple(shifted, 2, rng=0)
    printed = ub.decouple(shifted, 2, method=ub.methods.dejonghe2025(), rng=0)
    assert free.output_errors is not None
    assert printed.output_errors is not None
    assert free.output_errors.max() < 1.0
    assert printed.output_errors.max() > 10.0
    assert not printed.model.bias.any()


def test_jacobians_alone_give_a_model_up_to_constants() -> None:
    problem, _ = ub.datasets.random_system(n=3, m=3, r=2, S=100, rng=0)
    fit = ub.decouple(ub.Problem(problem.X, J=problem.J), 2, rng=0)
    assert fit.jacobian_error is not None
    assert fit.jacobian_error < 1e-4
    assert fit.output_errors is None
    assert "constants" in fit.status.advice
    assert problem.F is not None
    difference = problem.F - fit.model(problem.X)
    centred = difference - difference.mean(axis=0)
    assert np.abs(centred).max() < 0.05 * np.abs(problem.F - problem.F.mean(axis=0)).max()


def test_init_starts_from_a_given_model() -> None:
    problem, truth = ub.datasets.trig(rng=0)
    fit = ub.decouple(problem, 3, basis=ub.BSpline(df=20), init=truth, rng=0)
    assert len(fit.starts) == 1
    assert fit.output_errors is not None
    assert fit.output_errors.max() < 0.5
    again = ub.decouple(problem, 3, basis=ub.BSpline(df=16), init=fit.model, rng=0)
    assert again.trace.objective[0] < 1e-3


@pytest.mark.parametrize("constraint", [ub.Increasing(), ub.Decreasing(), ub.Convex(), ub.Concave(), ub.NonNegative()])
def test_every_constraint_holds_in_the_fitted_model(constraint: ub.Increasing) -> None:
    problem, _ = ub.datasets.trig(rng=2)
    fit = ub.decouple(problem, 3, basis=ub.BSpline(df=10), constraint=constraint, method=SHORT, starts=3, rng=0)
    for branch in fit.model.branches:
        assert branch.certified(constraint)


def test_constraints_per_branch_hold_for_their_branch() -> None:
    problem, _ = ub.datasets.trig(rng=2)
    fit = ub.decouple(problem, 3, constraint=[ub.Increasing(), None, ub.Concave()], method=SHORT, starts=3, rng=0)
    assert fit.model.branches[0].certified(ub.Increasing())
    assert fit.model.branches[2].certified(ub.Concave())
    assert fit.constraints == (ub.Increasing(), None, ub.Concave())


# --- results ---------------------------------------------------------------------------------------------


def test_starts_tell_whether_the_solution_is_replicable() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    fit = ub.decouple(problem, 3, basis=ub.BSpline(df=16), starts=6, rng=0)
    objectives = [start.objective for start in fit.starts]
    assert objectives == sorted(objectives)
    assert fit.starts[0].angle == pytest.approx(0.0, abs=1e-5)
    assert 1 <= fit.agreeing <= 6


def test_the_repr_of_a_fit_says_what_matters() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    text = repr(ub.decouple(problem, 3, method=SHORT, starts=2, rng=0))
    for expected in ("rank 3", "Error(J)", "output errors", "OUT_OF_SWEEPS", "starts  2: ", "dejonghe2025"):
        assert expected in text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 0}, "rank must be a whole number"),
        ({"rank": 2.5}, "rank must be a whole number"),
        ({"rank": 10**9}, "rank must be at most"),
        ({"polish": "yes"}, "polish must be True, False or None"),
        ({"starts": 0}, "starts must be"),
        ({"basis": "cubic"}, "basis must be a basis"),
        ({"method": "dejonghe2025"}, "method must come from ub.methods"),
        ({"method": ub.methods.dejonghe2025}, "method must come from ub.methods"),
        ({"rng": -1}, "rng must be"),
        ({"rng": "a"}, "rng must be"),
        ({"basis": ub.BSpline(df=200)}, "too few"),
        ({"init": "model"}, "init must be"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, object], message: str) -> None:
    problem, _ = ub.datasets.trig(rng=0)
    with pytest.raises(ub.UnbraidError, match=message):
        ub.decouple(problem, **({"rank": 3} | settings))  # type: ignore[arg-type]


def test_an_init_of_another_size_is_refused() -> None:
    problem, truth = ub.datasets.trig(rng=0)
    with pytest.raises(ub.UnbraidError, match="init must have rank 2"):
        ub.decouple(problem, 2, init=truth)


def test_a_problem_is_needed() -> None:
    with pytest.raises(ub.UnbraidError, match=r"must be an unbraid\.Problem, got ndarray"):
        ub.decouple(np.ones((5, 2)), 2)  # type: ignore[arg-type]
    with pytest.raises(ub.UnbraidError, match=r"must be an unbraid\.Problem, got ndarray"):
        ub.decouple(np.ones((5, 2)), np.ones((5, 1)))  # type: ignore[arg-type]


def test_an_output_that_does_not_vary_is_met_or_not() -> None:
    """Its spread is rounding, whatever the numbers."""
    F = np.full((60, 1), 0.1) / 3.0
    assert ub.metrics.output_errors(F, F * (1.0 + 1e-15)) == 0.0
    assert np.isinf(ub.metrics.output_errors(F, F + 1e-3))
    fit = ub.decouple(ub.Problem(np.tile([[1.3, 0.7]], (60, 1)), F), 1, starts=1, rng=0)
    assert fit.output_errors is not None
    assert fit.output_errors.max() == 0.0


def test_values_alone_are_refused_with_advice_where_only_sweeps_are_made() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    for settings in ({"method": ub.methods.dejonghe2025()}, {"polish": False}):
        with pytest.raises(ub.UnbraidError, match="from_function"):
            ub.decouple(ub.Problem(problem.X, problem.F), 3, **settings)


def test_nonnegative_without_values_is_refused() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    with pytest.raises(ub.UnbraidError, match="NonNegative needs values"):
        ub.decouple(ub.Problem(problem.X, J=problem.J), 3, constraint=ub.NonNegative())


@pytest.mark.parametrize("bad", [{"coupling": -1.0}, {"coupling": "big"}, {"max_sweeps": 0}, {"tolerance": -1.0},
                                 {"target": -1.0}, {"max_seconds": 0.0}])  # fmt: skip
def test_bad_method_settings_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ub.UnbraidError, match=next(iter(bad))):
        ub.methods.dejonghe2025(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["max_seconds", "max_steps", "coupling"])
def test_settings_of_methods_are_told_where_they_belong(name: str) -> None:
    problem, _ = ub.datasets.trig(S=40, rng=0)
    with pytest.raises(ub.UnbraidError, match=rf"method=ub\.methods\.default\({name}=60\)"):
        ub.decouple(problem, 3, **{name: 60})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="patience"):
        ub.decouple(problem, 3, patience=60)  # type: ignore[call-arg]
