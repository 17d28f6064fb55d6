"""Tasks: kept when done, computed when not, and the same whatever the number of processes."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import unbraid as ub
from unbraid.runtime.interrupts import attempt
from unbraid.studies.tasks import Done, Rows, Task, run_tasks

CALLS: list[int] = []


def square(number: int) -> Rows:
    CALLS.append(number)
    return [{"number": number, "square": number**2, "third": number / 3.0}]


def refuse(number: int) -> Rows:
    raise ub.UnbraidError(f"no {number}")


def die(number: int) -> Rows:
    os._exit(number + 1)


def tasks(count: int = 5, **settings: Any) -> list[Task]:
    return [Task(f"square-{k}", square, {"number": k, **settings}) for k in range(count)]


def test_rows_come_in_the_order_of_the_tasks_whatever_the_jobs() -> None:
    expected = [[{"number": k, "square": k * k, "third": k / 3.0}] for k in range(5)]
    assert run_tasks(tasks(), None) == expected
    assert run_tasks(tasks(), None, jobs=2) == expected


def test_finished_tasks_are_read_back_and_not_computed_again(tmp_path: Path) -> None:
    first = run_tasks(tasks(3), tmp_path)
    CALLS.clear()
    assert run_tasks(tasks(5), tmp_path)[:3] == first
    assert CALLS == [3, 4]


def test_other_settings_are_another_task(tmp_path: Path) -> None:
    one, other = Task("a", square, {"number": 1}), Task("a", square, {"number": 2})
    run_tasks([one], tmp_path)
    assert run_tasks([other], tmp_path)[0][0]["square"] == 4


@pytest.mark.parametrize("damage", ["", "[", '{"a": 1}', "[1]"])
def test_a_damaged_file_is_computed_again(tmp_path: Path, damage: str) -> None:
    (task,) = tasks(1)
    run_tasks([task], tmp_path)
    (tmp_path / task.file_name).write_text(damage)
    assert run_tasks([task], tmp_path) == [[{"number": 0, "square": 0, "third": 0.0}]]
    assert json.loads((tmp_path / task.file_name).read_text())[0]["square"] == 0


def test_progress_counts_what_was_found_and_tells_the_time_left(tmp_path: Path) -> None:
    run_tasks(tasks(2), tmp_path)
    seen: list[Done] = []
    run_tasks(tasks(4), tmp_path, callback=seen.append)
    assert [one.done for one in seen] == [2, 3, 4]
    assert {one.total for one in seen} == {4}
    assert seen[0].seconds_left is None
    assert seen[-1].seconds_left == 0.0


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_is_passed_on_and_finished_tasks_are_kept(tmp_path: Path, jobs: int) -> None:
    bad = [*tasks(2), *(Task(f"refuse-{k}", refuse, {"number": k}) for k in (7, 8))]
    with pytest.raises(ub.UnbraidError, match=r"no [78]"):
        run_tasks(bad, tmp_path, jobs)
    if jobs == 1:
        assert len(list(tmp_path.iterdir())) == 2


def test_a_process_that_is_ended_from_outside_is_told_in_a_sentence() -> None:
    with pytest.raises(ub.UnbraidError, match=r"ended from outside, perhaps for want of memory: lower `jobs`"):
        run_tasks([Task(f"die-{k}", die, {"number": k}) for k in range(2)], None, jobs=2)


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ub.UnbraidError, match="cannot be written"):
        run_tasks(tasks(1), tmp_path / "file" / "cells")


def goes_on(**_: object) -> list[dict[str, object]]:
    """What a fit does: Ctrl-C ends it, and it returns the best so far."""

    def work() -> list[dict[str, object]]:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5.0)
        return [{"status": "FINISHED"}]

    return attempt(work, lambda: [{"status": "INTERRUPTED"}])


def test_ctrl_c_in_a_task_that_goes_on_is_passed_on_and_the_task_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_tasks([Task("one", goes_on, {})], tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
