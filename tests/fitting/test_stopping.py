"""How a fit ends and what is told of it: stopping rules, events, progress and Ctrl-C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unbraid as ub
from clocks import Clock
from unbraid.fitting import search as starts_module
from unbraid.fitting.polish import SETTLING
from unbraid.kernels.gauge import revive, row_lengths, vanished
from unbraid.methods import AlternatingMethod
from unbraid.results.outcome import EventKind
from unbraid.runtime.progress import Progress
from unbraid.solvers.alternating import AlternatingProjection

POLISH_STEPS = 300
SHORT = ub.methods.dejonghe2025(max_sweeps=25, tolerance=0.0)


def stopped(method: AlternatingMethod) -> ub.Fit:
    problem, _ = ub.datasets.trig(rng=0)
    return ub.decouple(problem, 3, method=method, starts=2, rng=0)


def test_all_sweeps_are_made_with_tolerance_zero() -> None:
    fit = stopped(ub.methods.dejonghe2025(max_sweeps=17, tolerance=0.0))
    assert fit.status is ub.Status.OUT_OF_SWEEPS
    assert [start.sweeps for start in fit.starts] == [17, 17]


def test_a_loose_tolerance_converges_early() -> None:
    fit = stopped(ub.methods.dejonghe2025(tolerance=1e-2))
    assert fit.status is ub.Status.CONVERGED
    assert fit.status.converged
    assert fit.trace.sweeps < 300


def test_a_target_ends_a_start() -> None:
    fit = stopped(ub.methods.dejonghe2025(target=0.05))
    assert fit.status is ub.Status.TARGET_REACHED
    assert fit.objective <= 0.05
    assert (fit.trace.objective[:-1] > 0.05).all()


def test_the_time_limit_ends_all_starts() -> None:
    fit = stopped(ub.methods.dejonghe2025(max_sweeps=10**6, tolerance=0.0, max_seconds=0.05))
    assert fit.status is ub.Status.OUT_OF_TIME
    assert {start.status for start in fit.starts} == {ub.Status.OUT_OF_TIME}


def test_the_time_limit_holds_for_the_polish_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the polish takes a second, the search no time."""
    problem, _ = ub.datasets.random_system(3, 3, 7, 100, "sine", rng=0)
    clock, steps = Clock(monkeypatch), iter(range(10**6))

    def slow(progress: Progress) -> None:
        if progress.phase == "polish":
            next(steps)
            clock.advance(1.0)

    fit = ub.decouple(problem, 7, rng=0, method=ub.methods.default(max_sweeps=1, max_seconds=5.5), callback=slow)
    assert fit.status is ub.Status.OUT_OF_TIME
    assert 6 <= next(steps) <= 12, "each of the rounds in which knots settle makes a step before it looks"


@pytest.mark.parametrize(("limit", "steps"), [(13.0, 3), (9.0, 2), (11.0, 3)])
def test_no_step_is_begun_that_would_end_further_beyond_the_limit(
    limit: float, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sweeps of four seconds each: the fit ends with the one that ends nearest to the limit."""
    problem, _ = ub.datasets.trig(S=40, rng=0)
    clock, made = Clock(monkeypatch), iter(range(10**6))
    step = AlternatingProjection.step

    def slow(self: AlternatingProjection, state: Any) -> Any:
        next(made)
        clock.advance(4.0)
        return step(self, state)

    monkeypatch.setattr(AlternatingProjection, "step", slow)
    fit = ub.decouple(problem, 2, rng=0, starts=1, method=ub.methods.dejonghe2025(max_seconds=limit))
    assert fit.status is ub.Status.OUT_OF_TIME
    assert next(made) == steps


def test_a_growing_coupling_is_in_the_trace() -> None:
    schedule = ub.GrowingCoupling(start=0.01, factor=10.0, every=5, limit=1.0)
    fit = stopped(ub.methods.dejonghe2025(schedule, max_sweeps=40, tolerance=1e-1))
    raised = [event for event in fit.trace.events if event.kind is EventKind.COUPLING_RAISED]
    assert [(event.sweep, event.value) for event in raised] == [(6, 0.1), (11, 1.0)]
    assert fit.trace.sweeps > 11, "no start converges before λ is final"


@pytest.mark.parametrize("schedule", [ub.GrowingCoupling(0.1, factor=1.0), ub.GrowingCoupling(0.0, factor=2.0)])
def test_a_coupling_that_never_grows_is_a_fixed_one(schedule: ub.GrowingCoupling) -> None:
    """It never comes to its limit, and waits for nothing."""
    fits = [stopped(ub.methods.dejonghe2025(one, max_sweeps=100, tolerance=1e-1)) for one in (schedule, schedule.start)]
    assert fits[0].status is fits[1].status
    assert fits[0].trace.sweeps == fits[1].trace.sweeps
    assert fits[0].objective == fits[1].objective


# --- events --------------------------------------------------------------------------------------------


def test_a_vanished_direction_is_revived() -> None:
    rng = np.random.default_rng(0)
    W0, W1 = rng.standard_normal((2, 3, 2)), rng.standard_normal((2, 4, 3))
    W0[1, 2] = 0.0
    dead = vanished(row_lengths(W0))
    assert dead.tolist() == [[False] * 3, [False, False, True]]
    alive, outer = revive(W0, W1, dead, np.random.default_rng(0).spawn(2))
    assert row_lengths(alive)[1, 2] == pytest.approx(1.0)
    assert not outer[1, :, 2].any()
    np.testing.assert_array_equal(alive[0], W0[0])


def test_a_replaced_branch_is_in_the_trace() -> None:
    kinds = set()
    for seed in range(40):
        problem, _ = ub.datasets.monotone(rng=seed)
        fit = ub.decouple(problem, 3, constraint=ub.Increasing(), method=SHORT, starts=1, rng=seed)
        kinds |= {event.kind for event in fit.trace.events}
        assert all(branch.certified(ub.Increasing()) for branch in fit.model.branches)
    assert EventKind.REPLACED in kinds


# --- progress and interruption ----------------------------------------------------------------------------


def test_progress_is_told_after_every_sweep() -> None:
    seen: list[Progress] = []
    problem, _ = ub.datasets.trig(rng=0)
    ub.decouple(problem, 3, method=SHORT, starts=3, rng=0, callback=seen.append)
    assert len(seen) == 25
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].done == seen[-1].total == 75
    assert seen[-1].best <= seen[0].best


def test_progress_tells_the_search_from_the_polish_and_smoothing() -> None:
    seen: list[Progress] = []
    problem, _ = ub.datasets.trig(rng=0)
    ub.decouple(problem, 3, starts=3, rng=0, callback=seen.append)
    phases = [progress.phase for progress in seen]
    assert list(dict.fromkeys(phases)) == ["search", "polish", "smooth"]
    assert phases == sorted(phases, key=["search", "polish", "smooth"].index)
    assert seen[-1].best <= min(progress.best for progress in seen if progress.phase == "search")


def test_ctrl_c_in_the_polish_gives_the_best_so_far() -> None:
    problem, _ = ub.datasets.trig(rng=0)

    def interrupt(progress: Progress) -> None:
        if progress.phase == "polish" and progress.done > 12:
            raise KeyboardInterrupt

    fit = ub.decouple(problem, 3, starts=3, rng=0, callback=interrupt)
    assert fit.status is ub.Status.INTERRUPTED
    assert fit.objective < 1e-3


def test_ctrl_c_while_knots_settle_ends_the_fit() -> None:
    """The steps after the last placement of knots count as polishing."""
    problem, _ = ub.datasets.trig(rng=0)
    after: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        if progress.phase == "polish" and progress.done > 3 * POLISH_STEPS + 2 * SETTLING + 6:
            after.append(progress)
            raise KeyboardInterrupt

    fit = ub.decouple(problem, 3, basis=ub.BSpline(12), starts=3, rng=0, callback=interrupt)
    assert len(after) == 1
    assert fit.status is ub.Status.INTERRUPTED
    assert fit.objective < 1e-3


def test_progress_of_a_polish_never_goes_back_nor_beyond_its_total() -> None:
    seen: list[Progress] = []
    problem, _ = ub.datasets.random_system(n=2, m=2, r=4, S=60, kind="sine", rng=1)
    ub.decouple(problem, 4, starts=8, rng=0, callback=seen.append)
    done = [one.done for one in seen if one.phase == "polish"]
    assert done == sorted(done)
    assert done[-1] > 4 * POLISH_STEPS
    assert all(one.done <= one.total for one in seen)


def interrupt_after(sweeps: int) -> object:
    calls = iter(range(10**6))

    def callback(_: Progress) -> None:
        if next(calls) == sweeps:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("batch", [1, 4])
def test_ctrl_c_gives_the_best_so_far_and_says_so(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts_module, "SEARCH_ENTRIES", batch * 300)
    problem, _ = ub.datasets.trig(rng=0)
    callback = interrupt_after(30)
    fit = ub.decouple(problem, 3, method=SHORT, starts=8, rng=0, callback=callback)  # type: ignore[arg-type]
    assert fit.status is ub.Status.INTERRUPTED
    ended = [start.status for start in fit.starts]
    assert ub.Status.OUT_OF_SWEEPS in ended, "the first batch had ended"
    assert ended.count(ub.Status.INTERRUPTED) == batch, "the second batch was at work"
    assert len(ended) == 2 * batch
    assert np.isfinite(fit.model(problem.X)).all()


def test_ctrl_c_before_the_first_sweep_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(AlternatingProjection, "step", interrupted)
    problem, _ = ub.datasets.trig(rng=0)
    with pytest.raises(KeyboardInterrupt):
        ub.decouple(problem, 3, starts=1, rng=0)


def test_a_start_that_leaves_the_numbers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = AlternatingProjection.measure

    def spoiled(self: AlternatingProjection, state: object) -> object:
        result = measure(self, state)  # type: ignore[arg-type]
        if state.sweep == 5:  # type: ignore[attr-defined]
            result.objective[0] = np.nan
        return result

    monkeypatch.setattr(AlternatingProjection, "measure", spoiled)
    problem, _ = ub.datasets.trig(rng=0)
    fit = ub.decouple(problem, 3, method=SHORT, starts=2, rng=0)
    ended = sorted((start.status.name, start.sweeps) for start in fit.starts)
    assert ended == [("NOT_FINITE", 5), ("OUT_OF_SWEEPS", 25)]
    assert all(np.isfinite(start.objective) for start in fit.starts)
