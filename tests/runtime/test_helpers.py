"""Helper processes: who does a piece makes no difference, and nothing is lost with one of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from unbraid.errors import SettingError
from unbraid.runtime import helpers
from unbraid.runtime.helpers import IDLE, Helpers, cores, helpers_for
from unbraid.runtime.workers import Shared
from unbraid.studies.comparison.cells import with_noise


def done(function: Any, pieces: list[Any], shared: Shared[Any] | None = None, **more: Any) -> dict[int, Any]:
    """The results of pieces, by their numbers."""
    found: dict[int, Any] = {}
    with Helpers(2) as workers:
        workers.each(function, pieces, found.__setitem__, shared, **more)
    return found


def test_pieces_are_shared_out_and_helpers_kept() -> None:
    assert done(divmod, [(k, 3) for k in range(6)]) == {k: divmod(k, 3) for k in range(6)}
    [before] = [helper.process.pid for helper in IDLE]
    assert done(np.add, [(1,), (2,)], Shared(5)) == {0: 6, 1: 7}
    assert [helper.process.pid for helper in IDLE] == [before]


def test_an_error_in_a_piece_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        done(divmod, [(1, 1), (1, 0), (2, 1), (3, 1)])
    assert done(divmod, [(1, 1), (1, 1)]) == {0: (1, 0), 1: (1, 0)}


def test_what_cannot_be_sent_is_done_here() -> None:
    assert done(lambda k: k + 1, [(k,) for k in range(4)]) == {k: k + 1 for k in range(4)}


def test_what_is_not_wanted_any_more_is_laid_down() -> None:
    done(time.sleep, [(0.0,), (0.0,), (0.0,)])  # the helper is there
    found: dict[int, Any] = {}
    began = time.monotonic()
    with Helpers(2) as workers:
        workers.each(time.sleep, [(0.2,), (600.0,)], found.__setitem__, enough=lambda: 0 in found)
    assert list(found) == [0]
    assert time.monotonic() - began < 300.0
    assert done(divmod, [(3, 2), (4, 2)]) == {0: (1, 1), 1: (2, 0)}


def end_helper(parent: int) -> int:
    """The number of the process; a helper ends."""
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def test_the_piece_of_a_helper_that_is_gone_is_done_here() -> None:
    here = os.getpid()
    assert done(end_helper, [(here,) for _ in range(4)]) == dict.fromkeys(range(4), here)
    assert all(helper.there for helper in IDLE)


def test_helpers_are_for_work_that_is_long_and_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "DEMAND", helpers.Demand())
    monkeypatch.setattr(helpers, "cores", lambda: 2)
    assert helpers_for(1, None, 1e12) is None
    assert helpers_for(None, None, 0.0) is None
    assert isinstance(helpers_for(3, None, 0.0), Helpers)
    with pytest.raises(SettingError, match="jobs must be"):
        helpers_for(0, None, 1e12)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(helpers_for(None, None, 1e12)))
    thread.start()
    thread.join()
    assert found == [None]
    assert isinstance(helpers_for(None, None, 1e12), Helpers)


def test_helpers_begin_when_several_fits_together_are_long() -> None:
    demand = helpers.Demand()
    some = helpers.LONG / 3
    assert [demand.gains(some) for _ in range(5)] == [False, False, False, True, True]
    assert not demand.gains(helpers.SMALL)


@pytest.mark.parametrize(
    ("files", "granted"),
    [
        ({"cpu.max": "150000 100000"}, 1),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({}, None),
    ],
)
def test_limits_of_control_groups_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], granted: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(helpers, "CONTROL", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert cores() == (8 if granted is None else granted)


def no_system() -> ub.Problem:
    """Samples of what is no decoupled function, so that starts end in different places."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (150, 4))
    return ub.Problem.from_function(
        lambda x: np.stack([np.exp(x[:, 0] * x[:, 1]) + x[:, 2] * x[:, 3], x[:, 0] / (1.0 + x[:, 2])], axis=1), X
    )


def same(one: ub.Fit, other: ub.Fit) -> bool:
    """Whether two fits are the same to the last bit, all starts included."""
    X = np.random.default_rng(1).uniform(-0.2, 1.2, (50, one.model.m))
    starts = [[(start.objective, start.status) for start in fit.starts] for fit in (one, other)]
    return bool(np.array_equal(one.model(X), other.model(X))) and starts[0] == starts[1] and one.notes == other.notes


@pytest.mark.parametrize("basis", [None, ub.BSpline(8)])
def test_the_result_does_not_depend_on_jobs(basis: ub.BSpline | None) -> None:
    fits = [ub.decouple(no_system(), 3, basis=basis, starts=8, rng=0, jobs=jobs) for jobs in (1, 2, 3)]
    assert same(fits[0], fits[1])
    assert same(fits[0], fits[2])


@pytest.mark.parametrize("basis", [None, ub.BSpline(8)])
def test_a_rank_that_is_found_does_not_depend_on_jobs(basis: ub.BSpline | None) -> None:
    problem = with_noise(ub.datasets.random_system(2, 3, 2, 80, rng=0)[0], 0.02, np.random.default_rng(0))
    fits = [ub.decouple(problem, "auto", basis=basis, starts=3, rng=0, jobs=jobs) for jobs in (1, 3)]
    assert fits[0].model.rank == 2
    assert same(*fits)


def test_a_search_in_several_batches_does_not_depend_on_jobs() -> None:
    problem, _ = ub.datasets.random_system(2, 3, 3, 12_000, rng=0)
    fits = [ub.decouple(problem, 3, basis=ub.BSpline(6), starts=8, rng=0, jobs=jobs) for jobs in (1, 2)]
    assert same(*fits)


@pytest.mark.parametrize("starts", [1, 3, 5])
def test_an_odd_number_of_starts_does_not_depend_on_jobs(starts: int) -> None:
    problem, _ = ub.datasets.random_system(2, 2, 1, 60, "sine", rng=0)
    assert same(*(ub.decouple(problem, 1, starts=starts, rng=0, jobs=jobs) for jobs in (1, 2)))


def test_values_alone_do_not_depend_on_jobs() -> None:
    problem = ub.Problem(no_system().X, no_system().F)
    assert same(*(ub.decouple(problem, 2, starts=8, rng=0, jobs=jobs) for jobs in (1, 2)))


def test_a_selection_does_not_depend_on_jobs() -> None:
    one, other = (ub.select(no_system(), range(1, 3), starts=2, rng=0, jobs=jobs) for jobs in (1, 2))
    assert [row.error for row in one.rows] == [row.error for row in other.rows]
    assert one.reason == other.reason


def test_an_estimator_has_jobs_as_others_have() -> None:
    problem = no_system()
    models = [
        ub.DecouplingRegressor(2, starts=4, random_state=0, n_jobs=n).fit(problem.X, problem.F) for n in (1, 2, -1)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict(problem.X), models[0].predict(problem.X))


SCRIPT = """
import numpy as np, unbraid as ub

class Mine(ub.BSpline):
    pass

X = np.random.default_rng(0).uniform(0, 1, (60, 3))
problem = ub.Problem.from_function(lambda x: np.sin(x @ np.ones(3))[:, None] + x[:, :1] * x[:, 1:2], X)
print(ub.decouple(problem, 2, starts=8, rng=0, jobs=2).status.name)
print(ub.decouple(problem, 2, basis=Mine(6), starts=8, rng=0, jobs=2).status.name)
"""


def test_a_script_needs_no_guard_and_may_have_classes_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.split()) == 2
    assert ran.stderr == ""


def test_ctrl_c_keeps_what_there_is_by_then() -> None:
    def interrupt(progress: ub.Progress) -> None:
        if progress.phase == "polish" and progress.done > 0:
            raise KeyboardInterrupt

    fit = ub.decouple(no_system(), 3, starts=8, rng=0, jobs=2, callback=interrupt)
    assert fit.status is ub.Status.INTERRUPTED
    assert len(fit.starts) == 8
    assert fit.objective < 0.1
