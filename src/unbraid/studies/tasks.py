"""Many independent pieces of work: in processes or on a cluster, with progress, and kept on disk as they are done.

A finished task is one small file, written whole or not at all. Killed at any moment and started again, the same
tasks are read back where they are there and computed where they are not. Nothing depends on who does the work,
nor on which task ends first.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from unbraid.runtime.files import make_folder, replacing
from unbraid.runtime.process import single_blas_thread
from unbraid.runtime.workers import do_here, workers_for

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Task:
    """One piece of work: `function(**settings)` gives rows of numbers and texts.

    Parameters
    ----------
    name
        Readable, unique among the tasks, and fit for a file's name.
    function
        A function of a module, so that another process can find it.
    settings
        Its arguments: numbers and texts. Other settings are another task, whatever the name.
    made_of
        Text of whatever else its rows depend on, and that may change: the source of a plug-in, say.
    """

    name: str
    function: Callable[..., Rows]
    settings: dict[str, Any]
    made_of: str = ""

    @property
    def file_name(self) -> str:
        """Where its rows are kept: the name, and a digest of everything that the rows depend on."""
        parts = [self.function.__module__, self.function.__qualname__, self.settings, *filter(None, [self.made_of])]
        whole = json.dumps(parts, sort_keys=True)
        return f"{self.name}-{hashlib.sha256(whole.encode()).hexdigest()[:12]}.json"


class Done(NamedTuple):
    """What a progress callback is told: tasks done (those found on disk among them), in all, and seconds left.

    `seconds_left` is None as long as nothing was computed.
    """

    done: int
    total: int
    seconds_left: float | None


def run_tasks(
    tasks: Sequence[Task],
    folder: Path | None,
    jobs: int = 1,
    callback: Callable[[Done], object] | None = None,
    client: Any = None,
) -> list[Rows]:
    """The rows of every task, in the order of the tasks; with a folder, kept there and read back from there.

    The work is done in so many processes, or, where a client is given, by the workers of its cluster. Ctrl-C leaves
    finished tasks in the folder and is passed on.
    """
    kept = {} if folder is None else {i: rows for i, task in enumerate(tasks) if (rows := read_rows(folder, task))}
    todo = [i for i in range(len(tasks)) if i not in kept]
    began, computed = time.perf_counter(), 0

    def enter(k: int, rows: Rows) -> None:
        nonlocal computed
        if folder is not None:
            write_rows(folder, tasks[todo[k]], rows)
        kept[todo[k]] = rows
        computed += 1
        if callback is not None:
            left = (len(tasks) - len(kept)) * (time.perf_counter() - began) / computed
            callback(Done(len(kept), len(tasks), left))

    if callback is not None:
        callback(Done(len(kept), len(tasks), None))
    pieces = [(tasks[i],) for i in todo]
    workers = workers_for(min(jobs, max(1, len(todo))), client if todo else None)
    if workers is None:
        for k, piece in enumerate(pieces):
            enter(k, do_here(execute, piece))
    else:
        with workers:
            workers.each(execute, pieces, enter)
    return [kept[i] for i in range(len(tasks))]


def execute(task: Task) -> Rows:
    """The rows of one task, computed on one core."""
    with single_blas_thread():
        return task.function(**task.settings)


def read_rows(folder: Path, task: Task) -> Rows | None:
    """The rows that an earlier run has kept, or None; a file that cannot be read counts as not there."""
    try:
        rows = json.loads((folder / task.file_name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else None


def write_rows(folder: Path, task: Task, rows: Rows) -> None:
    """Write the rows of a finished task to its file."""
    with replacing(make_folder(folder) / task.file_name) as file:
        file.write(json.dumps(rows).encode())
