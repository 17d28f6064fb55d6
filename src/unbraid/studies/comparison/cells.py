"""The cells of a comparison: one task a system, a noise level and a contender, with all its draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from unbraid.data.problem import Problem
from unbraid.errors import TaskError
from unbraid.kernels.arrays import Array
from unbraid.metrics import direction_angles
from unbraid.results.fit import errors_on
from unbraid.studies.comparison.entries import contenders, source_of, systems
from unbraid.studies.tasks import Rows, Task

TRAINING, FRESH = 100, 1000
NOISES = (0.0, 0.01, 0.05)
SUCCESS = 1.0
"""A run succeeds if every output's error on fresh points is below this, in %, or below the noise, if that is larger."""


def comparison_tasks(
    system_names: Sequence[str], contender_names: Sequence[str], noises: Sequence[float], runs: int, seed: int
) -> list[Task]:
    """One task for every combination of a system, a noise level and a contender."""
    return [
        Task(
            f"{system}-{noise:g}-{contender}",
            comparison_cell,
            {"system": system, "noise": noise, "contender": contender, "runs": runs, "seed": seed},
            source_of("systems", system) + source_of("contenders", contender),
        )
        for system in system_names
        for noise in noises
        for contender in contender_names
    ]


def comparison_cell(system: str, noise: float, contender: str, runs: int, seed: int) -> Rows:
    """One row of errors for every draw of a system; every contender sees the same samples and the same noise."""
    chosen, method = systems()[system], contenders()[contender]
    rows = []
    for run in range(runs):
        with blaming(f"The system {system!r} cannot be drawn"):
            whole, truth = chosen.draw(TRAINING + FRESH, np.random.default_rng([seed, 0, run]))
            train, fresh = whole.take(slice(TRAINING)), whole.take(slice(TRAINING, None))
            noisy = with_noise(train, noise, np.random.default_rng([seed, 1, run]))
        with blaming(f"The method {contender!r} failed on the system {system!r}, noise {noise:g}, draw {run}"):
            fit = method.fit(noisy, chosen, np.random.default_rng([seed, 2, run]))
        jacobian_error, outputs = errors_on(fresh, fit.model)
        assert jacobian_error is not None
        assert outputs is not None
        angle = None if truth is None else float(direction_angles(truth.W0, fit.model.W0).max())
        worst = float(outputs.max())
        rows.append(
            {
                "system": system,
                "noise": noise,
                "contender": contender,
                "run": run,
                "fresh_error": worst,
                "fresh_error_J": jacobian_error,
                "success": worst < max(SUCCESS, 100.0 * noise),
                "angle": angle,
                "seconds": fit.seconds,
                "status": fit.status.name,
            }
        )
    return rows


@contextmanager
def blaming(whose: str) -> Iterator[None]:
    """Turn any error into a `TaskError` that says whose it is: systems and methods may be anybody's."""
    try:
        yield
    except Exception as error:
        said = f"{type(error).__name__}: {error}".rstrip(".: ")
        raise TaskError(f"{whose}: {said}. What was finished is kept: repair it, or leave it out.") from error


def with_noise(problem: Problem, noise: float, rng: np.random.Generator) -> Problem:
    """The problem with normal noise on F and J, as a share of each output's spread and of the size of its slopes."""
    if noise == 0.0:
        return problem
    assert problem.F is not None
    assert problem.J is not None
    spread = np.std(problem.F, axis=0)
    size = np.sqrt(np.mean(problem.J**2, axis=(0, 2)))
    F: Array = problem.F + noise * spread * rng.standard_normal(problem.F.shape)
    J: Array = problem.J + noise * size[:, None] * rng.standard_normal(problem.J.shape)
    return Problem(problem.X, F, J)
