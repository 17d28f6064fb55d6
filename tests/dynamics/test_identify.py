"""Identification: a dynamic model from records, in one call."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from dynamic_models import random_narx
from simulated_candidates import duffing_records
from unbraid.bases.constraints import Constraint
from unbraid.dynamics import DynamicFit, NarxModel, Record, SimulationStatus, StateSpaceModel
from unbraid.dynamics.fit import runs_on
from unbraid.dynamics.identifying.result import size_of
from unbraid.dynamics.identifying.search import drive
from unbraid.dynamics.identifying.stages import Identification
from unbraid.errors import UnbraidError
from unbraid.results.branch import FittedBranch

CUBE = ub.Polynomial(3)
LAGS: dict[str, Any] = {"input_lags": (0, 1, 2), "output_lags": (1, 2)}
QUICK: dict[str, Any] = {"basis": CUBE, "continuation": "linear", "starts": 2}


def duffing(T: int = 600, noise: float = 0.01, seed: int = 0) -> Record:
    return duffing_records((T,), noise, seed)[0]


def quick(records: Record | list[Record], narx: bool = False, **settings: Any) -> DynamicFit:
    """A fit of one branch from two starts."""
    identify: Any = ub.dynamics.narx if narx else ub.dynamics.state_space
    fit: DynamicFit = identify(records, **{**QUICK, **(LAGS if narx else {"order": 2}), "rank": 1, **settings})
    return fit


def found(records: Record | list[Record], narx: bool = False, **settings: Any) -> DynamicFit:
    """The fit of the first few starts that come down to the noise: where two of them lead is a matter of luck."""
    fits = (quick(records, narx, rng=seed, **settings) for seed in range(6))
    good: DynamicFit = next(fit for fit in fits if fit.simulation_error.percent.max() < 2.0)
    return good


@cache
def duffing_fit(narx: bool = False) -> DynamicFit:
    return found(duffing(), narx)


both_kinds = pytest.mark.parametrize("narx", [False, True], ids=["state space", "NARX"])


# What is found


@both_kinds
def test_fresh_inputs_are_simulated_to_the_noise(narx: bool) -> None:
    """One per cent of the outputs is noise."""
    fit = duffing_fit(narx)
    assert fit.simulation_error.percent[0] < 1.2
    assert fit.error_on(duffing(1000, 0.0, seed=50)).percent[0] < 1.0
    assert fit.error_on(duffing(1000, 0.01, seed=51)).percent[0] < 1.7
    assert fit.linear_error.percent[0] > 10.0


@pytest.mark.verify
def test_most_draws_are_identified_to_the_noise() -> None:
    """With the basis and the continuation that are chosen where nothing is said."""
    good = 0
    for seed in range(5):
        fit = ub.dynamics.state_space(duffing(800, seed=3 * seed), 2, 1, rng=seed)
        good += fit.error_on(duffing(800, 0.0, seed=100 + seed)).percent[0] < 1.5
    assert good >= 4


@pytest.mark.verify
def test_most_draws_of_two_inputs_and_two_outputs_are_identified_well() -> None:
    good = 0
    for seed in range(3):
        record, truth = ub.dynamics.systems.two_by_two(T=1200, rng=seed)
        fit = ub.dynamics.state_space(record, 3, 2, basis=ub.BSpline(8), rng=seed)
        u = ub.dynamics.systems.low_pass(np.random.default_rng(100 + seed), 800, 2, 0.8)
        good += fit.error_on(Record(u, truth.simulate(u))).percent.max() < 5.0
    assert good >= 2


def test_two_inputs_and_two_outputs() -> None:
    record, _ = ub.dynamics.systems.two_by_two(T=400, rng=0)
    fit = ub.dynamics.state_space(record, 3, 2, **{**QUICK, "basis": ub.BSpline(3)})
    assert fit.model.nonlinearity.W1.shape == (5, 2)
    assert fit.simulation_error.percent.shape == fit.model.noise.shape == (2,)
    assert np.all(fit.simulation_error.percent < fit.linear_error.percent)


def test_the_noise_of_a_model_is_that_of_each_output() -> None:
    """One output has a hundredth of the noise of the other, relatively."""
    record, _ = ub.dynamics.systems.two_by_two(T=400, rng=0, noise=0.0)
    noise = np.array([0.3, 0.003]) * record.y.std(axis=0)
    noisy = Record(record.u, record.y + noise * np.random.default_rng(1).standard_normal((400, 2)))
    fit = ub.dynamics.state_space(noisy, 3, 2, **{**QUICK, "basis": ub.BSpline(3)})
    np.testing.assert_allclose(fit.model.noise, fit.simulation_error.rmse, rtol=1e-3)
    assert fit.linear is not None
    np.testing.assert_allclose(fit.linear.noise, fit.linear_error.rmse, rtol=1e-3)


def test_records_of_different_lengths_with_gaps() -> None:
    records = duffing_records((400, 250, 120))
    y = records[0].y.copy()
    y[100:110], y[300] = np.nan, np.nan
    fit = found([Record(records[0].u, y, records[0].dt), *records[1:]])
    assert fit.simulation_error.percent[0] < 1.2
    assert fit.simulation_error.samples == 400 + 250 + 120 - 11
    assert [len(run.y) for run in fit.simulations] == [400, 250, 120]


@pytest.mark.parametrize("narx", [False, True])
def test_a_fit_keeps_the_best_linear_model(narx: bool) -> None:
    fit = duffing_fit(narx)
    assert fit.linear is not None
    assert not fit.linear.nonlinearity.rank
    off = ub.dynamics.fit.simulation_error(ub.dynamics.fit.runs_on(fit.linear, [one.record for one in fit.runs]))
    np.testing.assert_allclose(off.rmse, fit.linear_error.rmse, rtol=0.3)


def test_no_branches_give_the_best_linear_model() -> None:
    for fit in (ub.dynamics.state_space(duffing(300), 2, 0), ub.dynamics.narx(duffing(300), 0, **LAGS)):
        assert fit.model.rank == 0
        assert fit.basis is None
        assert fit.simulation_error.percent[0] == pytest.approx(fit.linear_error.percent[0], rel=0.02)


def test_a_wild_beginning_does_not_count() -> None:
    record = duffing(250)
    y = record.y.copy()
    y[:100] += 30.0
    plain, wild = (
        ub.dynamics.state_space(Record(record.u, one, record.dt, burn_in=100), 2, 1, **QUICK) for one in (record.y, y)
    )
    assert wild.simulation_error.samples == 150
    np.testing.assert_array_equal(wild.simulation_error.rmse, plain.simulation_error.rmse)


@pytest.mark.verify
def test_order_and_rank_come_with_their_reasons() -> None:
    fit = ub.dynamics.state_space(duffing(300), "auto", "auto", **{**QUICK, "starts": 1})
    assert isinstance(fit.model, StateSpaceModel)
    size = f"Order {fit.model.order} and {fit.model.rank} branch"
    assert any(note.startswith("Errors of linear models on held-out stretches are") for note in fit.notes)
    assert any(note.startswith(size) and "errors on held-out stretches" in note for note in fit.notes)


@pytest.mark.verify
def test_the_rank_of_a_narx_model_is_found() -> None:
    fit = ub.dynamics.narx(duffing(200), **LAGS, **{**QUICK, "starts": 1})
    assert fit.model.rank >= 1
    assert any("branch" in note and "held-out stretches" in note for note in fit.notes)
    assert fit.simulation_error.percent[0] < 0.5 * fit.linear_error.percent[0]


# Inputs and records of which little is learned


@both_kinds
@pytest.mark.parametrize("level", [0.0, -1e9])
def test_an_input_that_does_not_vary_changes_nothing(narx: bool, level: float) -> None:
    record = duffing(150)
    beside = Record(np.column_stack([np.full(150, level), record.u]), record.y, record.dt)
    fit, plain = quick(beside, narx), quick(record, narx)
    np.testing.assert_allclose(fit.simulation_error.rmse, plain.simulation_error.rmse, rtol=0.1)
    np.testing.assert_allclose(fit.linear_error.rmse, plain.linear_error.rmse, rtol=0.01)
    other = np.column_stack([np.full(150, level + 1.0), record.u])  # of which nothing was learned
    np.testing.assert_array_equal(fit.model.simulate(other, record.y[:20]), fit.model.simulate(beside.u, record.y[:20]))
    assert "u1 does not vary in any record: nothing is learned of it" in fit.notes[0]
    assert not any("does not vary" in note for note in plain.notes)


def test_inputs_that_are_copies_or_combinations_of_others_do_no_harm() -> None:
    record = duffing(300)
    for more in (record.u, 1e-6 * record.u + 5.0, np.column_stack([record.u**2, record.u - 3.0 * record.u**2])):
        fit = found(Record(np.column_stack([record.u, more]), record.y, record.dt))
        assert fit.simulation_error.percent[0] < 1.2


def test_copies_of_an_input_take_nothing_away_from_short_records() -> None:
    record = duffing(60, seed=1)
    plain = ub.dynamics.state_space(record, 2, 0)
    copies = ub.dynamics.state_space(Record(np.tile(record.u, 6), record.y, record.dt), 2, 0)
    np.testing.assert_allclose(copies.simulation_error.percent, plain.simulation_error.percent, rtol=0.01)


def test_an_input_may_vary_in_one_record_alone() -> None:
    first, second = duffing_records((200, 150))
    also = np.random.default_rng(0).standard_normal(200)
    records = [
        Record(np.column_stack([first.u, also]), first.y, first.dt),
        Record(np.column_stack([second.u, np.full(150, 2.0)]), second.y, second.dt),
    ]
    assert found(records).simulation_error.percent[0] < 1.4


@pytest.mark.parametrize(("T", "at"), [(1, 0), (1, 1), (3, 0), (25, 1)])
def test_a_further_record_may_be_short(T: int, at: int) -> None:
    """It has hardly more to tell than what its own initial state is."""
    record = duffing(150)
    records = [record]
    records.insert(at, record.take(slice(60, 60 + T)))
    for rank in (0, 1):
        fit, alone = quick(records, rank=rank), quick(record, rank=rank)
        assert fit.simulation_error.samples == 150 + T
        assert fit.linear_error.percent[0] < 1.5 * alone.linear_error.percent[0]


# The linear model is a candidate


def is_linear_instead(fit: DynamicFit) -> bool:
    """Whether the linear model was given back, and a note tells so."""
    assert size_of(fit.simulation_error) <= size_of(fit.linear_error)
    assert any("The linear model is given back" in note for note in fit.notes) == (fit.model.rank == 0)
    assert (fit.linear is fit.model) == (fit.model.rank == 0)
    return fit.model.rank == 0


@both_kinds
def test_where_no_start_leads_anywhere_the_linear_model_is_given_back(
    narx: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Identification, "fit_branches", lambda *_: None)
    fit = quick(duffing(100), narx)
    assert is_linear_instead(fit)
    assert (fit.basis, fit.constraints, fit.starts) == (None, (), ())
    assert np.isfinite(fit.prediction_error.percent).all()


@pytest.mark.parametrize("size", [10.0, 1e9], ids=["worse", "lost"])
@pytest.mark.parametrize("kind", ["state space", "decouple"])
def test_branches_that_end_worse_than_lines_are_not_given_back(
    kind: str, size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = Identification.choose_basis

    def spoilt(*arguments: Any) -> Any:
        chosen = choose(*arguments)
        model = chosen.point.model
        return chosen._replace(
            point=replace(chosen.point, model=replace(model, W1=size * model.W1, bias=model.bias + 3.0))
        )

    def undriven(session: Any, solver: Any, points: Any, stopping: Any, span: Any) -> Any:
        """No step mends branches."""
        mends = span.phase != "all samples" or solver.basis is None
        return drive(session, solver, points, stopping if mends else replace(stopping, max_sweeps=1), span)

    monkeypatch.setattr(Identification, "choose_basis", spoilt)
    monkeypatch.setattr("unbraid.dynamics.identifying.stages.drive", undriven)
    record, truth = ub.dynamics.systems.duffing(T=150, rng=0)
    if kind == "state space":
        fit = quick(record)
    else:
        parts = truth.A, truth.B, truth.C, truth.D
        fit = ub.dynamics.decouple(*parts, lambda p: truth.nonlinearity(np.atleast_2d(p)), record, 1, **QUICK)
    assert is_linear_instead(fit)


def test_a_record_that_explodes_has_a_linear_model_all_the_same() -> None:
    u = np.random.default_rng(0).standard_normal(60)
    for fit in (
        ub.dynamics.narx(Record(u, 1.5 ** np.arange(60.0)), 0, **LAGS),
        ub.dynamics.state_space(Record(u, 1.5 ** np.arange(60.0)), 1, 0),
    ):
        assert fit.simulation_error.percent[0] <= 100.0 + 1e-6


def test_the_last_steps_begin_with_the_initial_states_that_were_found() -> None:
    rng = np.random.default_rng(0)
    u, y, x = rng.standard_normal(100), np.zeros(100), 50.0
    for t in range(100):
        y[t], x = x, 0.9 * x + u[t]
    assert ub.dynamics.state_space(Record(u, y), 1, 0).objectives[0] < 1e-12


# What was asked for


def test_the_same_seed_gives_the_same_model() -> None:
    one, again, other = (ub.dynamics.state_space(duffing(150), 2, 1, rng=seed, **QUICK) for seed in (0, 0, 1))
    np.testing.assert_array_equal(again.model.function.L, one.model.function.L)
    np.testing.assert_array_equal(again.simulations[0].y, one.simulations[0].y)
    assert np.any(other.model.nonlinearity.W0 != one.model.nonlinearity.W0)


@pytest.mark.parametrize("basis", [ub.BSpline(7), ub.Polynomial(4), ub.SmoothingSpline(10, degree=3, smoothing=1e-6)])
def test_branches_are_made_of_the_basis_that_was_given(basis: Any) -> None:
    fit = found(duffing(300), basis=basis)
    assert fit.basis == basis
    (branch,) = fit.model.nonlinearity.branches
    assert isinstance(branch, FittedBranch)
    assert branch.basis == basis


def test_an_open_smoothing_is_chosen() -> None:
    fit = found(duffing(200), basis=ub.SmoothingSpline(6, degree=3))
    assert isinstance(fit.basis, ub.SmoothingSpline)
    assert fit.basis.smoothing is not None


@pytest.mark.parametrize("constraint", [ub.Increasing(), ub.Convex(), ub.NonNegative()])
def test_constraints_are_certified_and_hold_beyond_the_range(constraint: Constraint) -> None:
    """Also of a shape that the truth does not have. Beyond the range nothing keeps a branch from becoming negative."""
    fit = ub.dynamics.state_space(duffing(300), 2, 1, constraint=constraint, basis=ub.BSpline(5), starts=2)
    (branch,) = fit.model.nonlinearity.branches
    assert fit.constraints == (constraint,)
    assert branch.certified(constraint)
    low, high = branch.domain
    beyond = 0.0 if constraint.order == 0 else high - low
    u = np.linspace(low - beyond, high + beyond, 400)
    shape = np.diff(branch(u), constraint.order)
    assert shape.min() >= -1e-9 * np.abs(branch(u)).max()


def test_each_branch_may_have_its_own_constraint() -> None:
    constraints = [None, ub.Increasing()]
    fit = ub.dynamics.state_space(duffing(300), 2, 2, constraint=constraints, basis=ub.BSpline(4), starts=1)
    assert fit.constraints == (None, ub.Increasing())
    assert fit.model.nonlinearity.branches[1].certified(ub.Increasing())


def curvature_beyond(branch: Any) -> float:
    """How much a branch bends just beyond its range, beside how much it does inside."""
    low, high = branch.domain
    step = 0.03 * (high - low)
    beyond, inside = high + step * np.arange(1, 4), np.linspace(low, high, 60)
    return float(np.abs(np.diff(branch(beyond), 2))[0] / np.abs(np.diff(branch(inside), 2)).max())


def test_branches_go_on_as_asked() -> None:
    settings: dict[str, Any] = {"basis": CUBE, "starts": 2}
    line = ub.dynamics.state_space(duffing(300), 2, 1, continuation="linear", **settings)
    cube = ub.dynamics.state_space(duffing(300), 2, 1, continuation="polynomial", **settings)
    assert curvature_beyond(line.model.nonlinearity.branches[0]) < 1e-6
    assert curvature_beyond(cube.model.nonlinearity.branches[0]) > 0.1


def test_polynomial_means_the_same_in_static_and_dynamic_fits(tmp_path: Path) -> None:
    """Also in a file."""
    cube = ub.dynamics.state_space(duffing(300), 2, 1, basis=CUBE, starts=2, continuation="polynomial").model
    problem = ub.datasets.trig(S=60, rng=0)[0]
    static = ub.decouple(problem, 1, basis=CUBE, starts=1, continuation="polynomial").model.branches[0]
    cube.save(tmp_path / "cube.npz")
    for model in (cube, ub.dynamics.load(tmp_path / "cube.npz")):
        [branch] = model.nonlinearity.branches
        low, high = branch.domain
        np.testing.assert_allclose(branch.reach, static.reach)  # type: ignore[attr-defined]
        length = high - low
        assert [one.reach for one in branch.continuations] == pytest.approx([length / 8.0] * 2)  # type: ignore[attr-defined]


def test_names_and_sampling_time_come_along() -> None:
    plain = duffing(200)
    record = Record(plain.u, plain.y, 0.25, input_names=["force"], output_names=["position"])
    fit = ub.dynamics.state_space(record, 2, 1, **QUICK)
    assert (fit.model.dt, fit.model.input_names, fit.model.output_names) == (0.25, ("force",), ("position",))
    assert fit.model.nonlinearity.input_names == ("x1", "x2", "force")


# From a given model


def test_the_rank_of_a_given_model_is_found() -> None:
    """As many branches as its nonlinearity needs on the records; none where it is a line."""
    truth = ub.dynamics.systems.duffing(T=20, rng=0)[1]
    parts = truth.A, truth.B, truth.C, truth.D

    def spring(points: Any) -> Any:
        cube = points[:, 0] ** 3
        return np.stack([-0.01 * cube, -0.1 * cube, 0.0 * cube], axis=1)

    fit = ub.dynamics.decouple(*parts, spring, duffing(300), **{**QUICK, "starts": 1})
    assert fit.model.rank == 1
    assert fit.simulation_error.percent[0] < 2.0
    assert fit.notes[0].startswith("1 branch: errors on held-out stretches")
    assert fit.asked is not None
    assert (fit.asked.function, fit.asked.settings["rank"]) == ("decouple", "auto")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rank": 0}, "rank must be a whole number of at least 1, got 0"),
        ({"rank": "some"}, "rank must be a whole number"),
        ({"f": 3}, "f must be a function of points"),
        ({"f": lambda p: p[:, :2]}, r"to \[f_x; f_y\] \(S, 3\), got shape \(S, 2\): give zeros for f_y"),
        ({"f": lambda p: "text"}, "f must map a point"),
        ({"f": lambda p: np.full((len(p), 3), np.nan)}, "beyond sample 0 of a record: f gave nan at"),
        ({"f": lambda p: 9.0 + 1e9 * p**3}, r"cannot be followed beyond sample \d of a record: it diverges"),
        ({"B": np.ones((3, 1))}, r"B must be \(2, 1\), as A and the records have it, got shape \(3, 1\)"),
        ({"C": np.ones((2, 2))}, r"C must be \(1, 2\)"),
    ],
)
def test_a_given_model_that_fits_no_record_is_refused(wrong: dict[str, Any], said: str) -> None:
    truth = ub.dynamics.systems.duffing(T=20, rng=0)[1]
    given = {**{name: getattr(truth, name) for name in "ABCD"}, "f": lambda p: 0.0 * p, "rank": 1, **wrong}
    with pytest.raises(UnbraidError, match=said):
        ub.dynamics.decouple(**given, records=duffing(100))


# Units


@both_kinds
def test_units_do_not_matter(narx: bool) -> None:
    """Scaled and shifted signals have the same errors in per cent, and the model is in their units."""
    record = duffing()
    other = Record(1e4 * record.u + 3e5, 1e-3 * record.y - 7.0, record.dt)
    fit = found(other, narx)
    np.testing.assert_allclose(fit.simulation_error.percent, duffing_fit(narx).simulation_error.percent, rtol=0.05)
    y = fit.model.simulate(other.u, other.y[:40])
    assert np.sqrt(np.mean((y - other.y)[40:] ** 2)) < 0.02 * other.y.std()


@both_kinds
@pytest.mark.parametrize("power", [-940, 900])
def test_sizes_do_not_matter(narx: bool, power: int) -> None:
    """Up to where numbers end: their squares may be far beyond. By powers of two all stays the same to the last bit."""
    plain, size = duffing(120), 2.0**power
    expected = quick(plain, narx)
    for u in (plain.u, size * plain.u):
        record = Record(u, size * plain.y, plain.dt)
        fit = quick(record, narx)
        np.testing.assert_array_equal(fit.simulation_error.percent, expected.simulation_error.percent)
        np.testing.assert_allclose(fit.prediction_error.percent, expected.prediction_error.percent, rtol=1e-6)
        np.testing.assert_allclose(
            fit.model.simulate(u, record.y[:20]) / size, expected.model.simulate(plain.u, plain.y[:20]), rtol=1e-6
        )
        np.testing.assert_allclose(fit.error_on(record).percent, expected.error_on(plain).percent, rtol=1e-6)


@pytest.mark.parametrize("sizes", [(1.0, 1e305), (1.0, 1e-310), (1e-310, 1.0), (1e200, 1e-200)])
def test_signals_beyond_floating_point_are_refused_in_a_sentence(sizes: tuple[float, float]) -> None:
    record = duffing(100)
    with pytest.raises(UnbraidError, match=r"The signals of the records have sizes.* in other units"):
        ub.dynamics.state_space(Record(sizes[0] * record.u, sizes[1] * record.y), 2, 1)


def test_inputs_are_not_written_to() -> None:
    u, y = np.array(duffing(200).u), np.array(duffing(200).y)
    before = u.copy(), y.copy()
    for array in (u, y):
        array.flags.writeable = False
    ub.dynamics.state_space(Record(u, y), 2, 1, **QUICK)
    np.testing.assert_array_equal(u, before[0])
    np.testing.assert_array_equal(y, before[1])


# What is refused


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "order 0": ({"order": 0}, "order must be"),
    "order of text": ({"order": "two"}, "order must be"),
    "negative rank": ({"rank": -1}, "rank must be"),
    "rank of text": ({"rank": "many"}, "rank must be"),
    "no starts": ({"starts": 0}, "starts must be"),
    "a basis by its name": ({"basis": "spline"}, "basis must be one such as"),
    "a continuation that is none": ({"continuation": "cubic"}, "continuation must be one of"),
    "a constraint that is none": ({"constraint": "up"}, "constraint must be"),
    "two constraints for one branch": ({"constraint": [None, ub.Convex()]}, "constraint"),
    "constraints without a rank": (
        {"constraint": [ub.Convex()], "rank": "auto"},
        'With rank="auto" give one constraint',
    ),
    "polynomials that are constrained": ({"constraint": ub.Convex(), "basis": ub.Polynomial(3)}, "Polynomial"),
    "negative seconds": ({"max_seconds": -1.0}, "max_seconds must be"),
    "no seconds": ({"max_seconds": 0.0}, "max_seconds must be above 0"),
    "a seed of text": ({"rng": "seven"}, "rng must be"),
    "a callback that is none": ({"callback": 3}, "callback must be"),
    "more unknowns than samples": ({"order": 30, "rank": 5}, "lower the order or the rank, or give longer records"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_settings_are_refused_in_a_sentence(case: str) -> None:
    settings, words = WRONG[case]
    with pytest.raises(UnbraidError, match=words) as refused:
        ub.dynamics.state_space(duffing(200), **{"order": 2, "rank": 1, **settings})
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    ("lags", "words"),
    [
        ({"input_lags": (0,), "output_lags": (0, 1)}, "output_lags must be whole numbers of at least 1"),
        ({"input_lags": (), "output_lags": (1,)}, "input_lags must be"),
        ({"input_lags": (0.5,), "output_lags": (1,)}, "input_lags must be"),
        ({"input_lags": (1, 1), "output_lags": (1,)}, "each once"),
        ({"input_lags": 2, "output_lags": (1,)}, "input_lags must be"),
        ({"input_lags": (0,), "output_lags": (150,)}, "too few"),
    ],
)
def test_wrong_lags_are_refused_in_a_sentence(lags: dict[str, Any], words: str) -> None:
    with pytest.raises(UnbraidError, match=words):
        ub.dynamics.narx(duffing(200), 1, **lags)


# The result


@both_kinds
def test_errors_on_other_records(narx: bool) -> None:
    fit, fresh = duffing_fit(narx), duffing(500, seed=77)
    at_rest, found = fit.error_on(fresh, first=0), fit.error_on(fresh)
    assert (at_rest.samples, found.samples) == (500, 450)
    assert max(at_rest.percent[0], found.percent[0]) < 2.5
    several = fit.error_on([fresh, duffing(300, seed=78)])
    assert several.samples == 450 + 270
    y = fit.model.simulate(fresh.u, fresh.y[:50])
    assert found.rmse[0] == pytest.approx(np.sqrt(np.mean((y - fresh.y)[50:] ** 2)))


@pytest.mark.parametrize("first", [-1, True, 2.5, "a", np.nan, 500, 10**9])
def test_a_count_of_first_outputs_that_leaves_nothing_is_refused(first: Any) -> None:
    with pytest.raises(UnbraidError, match=r"first(=| must be a whole number of at least 0, got ).*\.$"):
        duffing_fit().error_on(duffing(500, seed=77), first=first)


def test_long_lags_have_as_many_first_outputs() -> None:
    model = random_narx((0, 12), (1,), nu=1, ny=1)
    fresh = Record(duffing(60).u, duffing(60).y, model.dt)
    assert runs_on(model, fresh)[0].skip == 12
    with pytest.raises(UnbraidError, match="12 first outputs would set the state, but the record has only 12 samples"):
        runs_on(model, fresh.take(slice(0, 12)))


@both_kinds
def test_prediction_errors_count_behind_what_sets_the_state(narx: bool) -> None:
    fit = duffing_fit(narx)
    [record] = fit.records
    off = fit.model.predict(record.u, record.y) - record.y
    assert fit.prediction_error.rmse[0] == pytest.approx(np.sqrt(np.mean(off[50:] ** 2)))
    assert fit.prediction_error.samples == len(record) - 50


def test_errors_inside_and_outside_the_range_seen_are_told_apart() -> None:
    fit, fresh = duffing_fit(), duffing(500, seed=77)
    loud = Record(2.0 * fresh.u, fresh.y, fresh.dt)
    error = fit.error_on(loud)
    assert error.status is SimulationStatus.LEFT_RANGE
    assert 0.0 < error.outside_share < 1.0
    run = fit.model.run(loud.u, loud.y[:50])
    off, outside = (run.y - loud.y)[50:], run.outside[50:]
    assert error.outside[0] == pytest.approx(np.sqrt(np.mean(off[outside] ** 2)))
    assert error.inside[0] == pytest.approx(np.sqrt(np.mean(off[~outside] ** 2)))
    assert "outside the range seen" in repr(error)


def test_records_of_which_little_is_known_have_an_error_all_the_same() -> None:
    fit, fresh = duffing_fit(), duffing(200, seed=77)
    y = fresh.y.copy()
    y[20:] = np.nan
    assert fit.error_on(Record(fresh.u, y, fresh.dt)).samples == 0
    assert np.isnan(fit.error_on(Record(fresh.u, y, fresh.dt)).rmse).all()


@both_kinds
def test_a_fit_tells_what_it_is(narx: bool) -> None:
    fit = duffing_fit(narx)
    text = repr(fit)
    assert isinstance(fit.model, NarxModel if narx else StateSpaceModel)
    for words in ("Fit of a dynamic model: simulation error", "one step", "the best without branches", repr(CUBE)):
        assert words in text
    assert fit.status.name in text
    assert list(fit.starts) == sorted(fit.starts)
    assert len(fit.starts) >= 2
    assert fit.records[0].u is not None
    assert len(fit.simulations[0].y) == 600
    np.testing.assert_allclose(
        fit.simulation_error.rmse,
        np.sqrt(np.mean((fit.simulations[0].y - fit.records[0].y)[2 * narx :] ** 2, axis=0)),
    )
