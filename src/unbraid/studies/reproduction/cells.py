"""The cells of the paper's experiments: one task a variant, degree or constraint, and df, with all its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unbraid import datasets
from unbraid.bases import BSpline
from unbraid.bases.constraints import Decreasing, Increasing
from unbraid.data.problem import Problem
from unbraid.decouple import decouple
from unbraid.kernels.arrays import Array
from unbraid.metrics import direction_angles
from unbraid.results.branch import Branch, FunctionBranch
from unbraid.results.fit import Fit, errors_on
from unbraid.results.model import DecoupledModel
from unbraid.studies.decouple_each import decouple_each
from unbraid.studies.reproduction.readings import VARIANTS, Readings, method_of
from unbraid.studies.tasks import Rows, Task

TRIG_DEGREES = (1, 2, 3)
TRIG_DFS = tuple(range(4, 29, 2))
MONOTONE_DEGREE = 4
MONOTONE_DFS = tuple(range(8, 21, 2))
INTERPOLANT_DEGREE = 10
"""Degree of the polynomials that the paper puts through the branches found for f_trig."""


def trig_tasks(runs: int, seed: int, readings: Readings, dfs: Sequence[int] = TRIG_DFS) -> list[Task]:
    """The tasks of the first experiment: f_trig over degrees and degrees of freedom."""
    return [
        Task(
            f"trig-{variant}-d{degree}-df{df}",
            trig_cell,
            {"variant": variant, "degree": degree, "df": df, "runs": runs, "seed": seed, **readings.settings()},
        )
        for variant in VARIANTS
        for degree in TRIG_DEGREES
        for df in dfs
    ]


def monotone_tasks(runs: int, seed: int, readings: Readings, dfs: Sequence[int] = MONOTONE_DFS) -> list[Task]:
    """The tasks of the second experiment: the monotone system with and without the constraint."""
    return [
        Task(
            f"monotone-{variant}-{'increasing' if constrained else 'free'}-df{df}",
            monotone_cell,
            {"variant": variant, "constrained": constrained, "df": df, "runs": runs, "seed": seed}
            | readings.settings(),
        )
        for variant in VARIANTS
        for constrained in (False, True)
        for df in dfs
    ]


def trig_cell(variant: str, degree: int, df: int, runs: int, seed: int, **readings: Any) -> Rows:
    """One row of errors for every run of a cell of the first experiment; every variant sees the same samples."""
    drawn = [datasets.trig(S=100, rng=np.random.default_rng([seed, 0, run])) for run in range(runs)]
    rngs = [np.random.default_rng([seed, 1, run]) for run in range(runs)]
    fits = fits_of(variant, Readings(**readings), [problem for problem, _ in drawn], BSpline(df, degree), None, rngs)
    return [
        {"variant": variant, "degree": degree, "df": df, "run": run}
        | named_errors("", problem, fit.model)
        | named_errors("poly_", problem, with_polynomials(fit.model, problem, INTERPOLANT_DEGREE))
        | direction_and_status(fit, truth)
        for run, (fit, (problem, truth)) in enumerate(zip(fits, drawn, strict=True))
    ]


def monotone_cell(variant: str, constrained: bool, df: int, runs: int, seed: int, **readings: Any) -> Rows:
    """One row of errors for every run of a cell of the second experiment; every variant sees the same samples."""
    taken = Readings(**readings)
    degree = MONOTONE_DEGREE if taken.degree_of == "function" else MONOTONE_DEGREE + 1
    drawn = [datasets.monotone(S=100, rng=np.random.default_rng([seed, 2, run]), box=taken.box) for run in range(runs)]
    rngs = [np.random.default_rng([seed, 3, run]) for run in range(runs)]
    basis, shape = BSpline(df, degree, of="slope"), Increasing() if constrained else None
    fits = fits_of(variant, taken, [problem for problem, _ in drawn], basis, shape, rngs)
    return [
        {"variant": variant, "constraint": "increasing" if constrained else "none", "df": df, "run": run}
        | named_errors("", problem, fit.model)
        | {"certified": all(certified_monotone(branch) for branch in fit.model.branches)}
        | direction_and_status(fit, truth)
        for run, (fit, (problem, truth)) in enumerate(zip(fits, drawn, strict=True))
    ]


def fits_of(
    variant: str,
    readings: Readings,
    problems: Sequence[Problem],
    basis: BSpline,
    constraint: Increasing | None,
    rngs: Sequence[np.random.Generator],
) -> list[Fit]:
    """One fit of a variant to each problem; sweeps from single starts go as one batch."""
    method = method_of(variant, readings)
    if method is not None:
        return decouple_each(problems, 3, basis=basis, method=method, constraint=constraint, rngs=rngs)
    return [
        decouple(problem, 3, basis=basis, constraint=constraint, rng=rng)
        for problem, rng in zip(problems, rngs, strict=True)
    ]


def certified_monotone(branch: Branch) -> bool:
    """Whether a branch is certified monotonic, up or down: the sign of its input is not determined."""
    return branch.certified(Increasing()) or branch.certified(Decreasing())


def named_errors(prefix: str, problem: Problem, model: DecoupledModel) -> dict[str, float]:
    """Error(J) and e_1, e_2, … of a model on the samples, by name."""
    jacobian_error, outputs = errors_on(problem, model)
    assert jacobian_error is not None
    assert outputs is not None
    return {f"{prefix}error_J": jacobian_error} | {f"{prefix}e{i + 1}": float(e) for i, e in enumerate(outputs)}


def direction_and_status(fit: Fit, truth: DecoupledModel) -> dict[str, Any]:
    """How far the directions of a fit are from the true ones, in degrees, and how the fit ended."""
    return {"angle": float(direction_angles(truth.W0, fit.model.W0).max()), "status": fit.status.name}


def with_polynomials(model: DecoupledModel, problem: Problem, degree: int) -> DecoupledModel:
    """The model with polynomials through its branches, by least squares at the samples, as the paper has it."""
    u = problem.X @ model.W0.T
    branches = [polynomial_through(branch, u[:, j], degree) for j, branch in enumerate(model.branches)]
    return model.changed(branches=branches)


def polynomial_through(branch: Branch, u: Array, degree: int) -> FunctionBranch:
    """The polynomial nearest to a branch at the inputs u."""
    polynomial = np.polynomial.Legendre.fit(u, branch(u), degree)
    return FunctionBranch(polynomial, polynomial.deriv(), f"polynomial of degree {degree}")
