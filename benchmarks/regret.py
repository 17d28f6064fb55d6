"""How far a call without settings is from the best settings: its error on fresh points over the best of a grid.

    python benchmarks/regret.py [folder] [--tune]

For every case of `regret_cases.py`, data as people have them: `ub.decouple(problem, rank)`, and the same rank with
every basis and λ of a grid. An error is that of the worst output on fresh points; the regret of a setting is its error
over the least of the grid. That least is found on the fresh points themselves, which nobody can: a regret of 1 is as
good as tuning by an oracle. Seeds of the cases that are reported are odd; with `--tune`, the even ones, on which
settings may be chosen. What was computed is kept in the folder (`build/regret`) and not computed again: empty it of
the cells named `default` when the default has changed. An hour or two on two cores.

Prints the regret of the default for each case, with the best setting and its error; then, for the default and every
setting of the grid, the median, the ninth decile and the worst.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import unbraid as ub
from regret_cases import Case, Fold, families, listed
from unbraid.studies.tasks import Rows, Task, run_tasks

DFS, COUPLINGS = (4, 6, 8, 12, 20), (0.01, 0.1, 1.0, 10.0, 100.0)
DEFAULT, GRID = "default", "grid"


def settings_for(fold: Fold) -> Iterator[tuple[str, dict[str, Any]]]:
    """The default, and the grid; without Jacobians λ means nothing."""
    yield DEFAULT, {}
    bases: dict[str, ub.bases.Basis] = {f"BSpline({df})": ub.BSpline(df) for df in DFS}
    bases["SmoothingSpline()"] = ub.SmoothingSpline()
    for name, basis in bases.items():
        if fold.problem.J is None:
            yield name, {"basis": basis}
            continue
        for coupling in COUPLINGS:
            yield f"{name}, λ = {coupling:g}", {"basis": basis, "method": ub.methods.default(coupling)}


def fit_case(case: Case, name: str) -> dict[str, Any]:
    """The error of the worst output in %, seconds and statuses, with the settings of a name; refused: infinite."""
    squares, seconds, statuses = np.zeros(1), 0.0, set()
    for fold in case.folds:
        began = time.perf_counter()
        try:
            fit = ub.decouple(fold.problem, case.rank, **dict(settings_for(fold))[name], rng=0)
        except ub.UnbraidError as refused:
            return {"setting": name, "error": float("inf"), "seconds": 0.0, "status": type(refused).__name__}
        seconds += time.perf_counter() - began
        squares = squares + np.sum((fit.model(fold.points) - fold.values) ** 2, axis=0)
        statuses.add(fit.status.name)
    every = np.concatenate([fold.values for fold in case.folds])
    error = 100.0 * float(np.sqrt(squares / np.sum((every - every.mean(axis=0)) ** 2, axis=0)).max())
    return {"setting": name, "error": error, "seconds": seconds, "status": " ".join(sorted(statuses))}


def run_case(family: str, name: str, seed: int, which: str) -> Rows:
    """The rows of one case: of the default, or of the grid."""
    case = families()[family][name](seed)
    names = [setting for setting, _ in settings_for(case.folds[0])]
    return [fit_case(case, setting) for setting in names if (setting == DEFAULT) == (which == DEFAULT)]


def task_of(family: str, name: str, seed: int, which: str) -> Task:
    """One case as a task, with a name that a file can have."""
    readable = "-".join(f"{which} {family} {name} {seed}".replace("%", "percent").replace(",", "").split())
    return Task(readable, run_case, {"family": family, "name": name, "seed": seed, "which": which})


def main() -> None:
    """Compute what is not there yet, and print."""
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    folder = Path(words[0] if words else "build/regret")
    cases = list(listed(reported="--tune" not in sys.argv))
    tasks = [task_of(*case, which) for which in (DEFAULT, GRID) for case in cases]
    rows = run_tasks(tasks, folder, jobs=2)
    defaults, grids = [one[0] for one in rows[: len(cases)]], rows[len(cases) :]
    regrets: dict[str, list[float]] = {}
    print(f"{'case':44}{'default %':>10}{'best %':>9}{'regret':>8}{'seconds':>9}  best setting")
    for (family, name, seed), default, grid in zip(cases, defaults, grids, strict=True):
        best = min(grid, key=lambda row: row["error"])
        for row in (default, *grid):
            regrets.setdefault(row["setting"], []).append(row["error"] / best["error"])
        said = f"{family}: {name} ({seed})"
        print(
            f"{said:44}{default['error']:10.3g}{best['error']:9.3g}{default['error'] / best['error']:8.2f}"
            f"{default['seconds']:9.1f}  {best['setting']}"
        )
    print(f"\n{'setting':32}{'cases':>6}{'median':>9}{'9 of 10':>9}{'worst':>9}")
    for setting, every in regrets.items():
        print(f"{setting:32}{len(every):6}{np.median(every):9.2f}{np.quantile(every, 0.9):9.2f}{max(every):9.2f}")


if __name__ == "__main__":
    main()
