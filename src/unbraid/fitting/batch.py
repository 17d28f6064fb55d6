"""Many problems of one shape at once: one start each, as one batch. For studies of many draws."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.problem import Problem
from unbraid.data.units import Units
from unbraid.decouple import as_fit, check_settings
from unbraid.errors import DataError, SettingError
from unbraid.methods import AlternatingMethod
from unbraid.results.fit import Fit
from unbraid.runtime.process import single_blas_thread
from unbraid.solvers.loop import iterate
from unbraid.solvers.translate import solved_for


def decouple_each(
    problems: Sequence[Problem],
    rank: int,
    *,
    basis: Basis,
    method: AlternatingMethod,
    rngs: Sequence[np.random.Generator],
    constraint: Constraint | Sequence[Constraint | None] | None = None,
) -> list[Fit]:
    """What `decouple(problem, rank, starts=1, rng=rng, …)` gives for each problem, up to rounding, but faster.

    Where samples are few most of a sweep's time goes into calling, and a batch shares the calls. Problems have the same
    S, m and n, values and Jacobians; the method makes sweeps only.
    """
    if method.polish is not None:
        raise SettingError("decouple_each is for methods of sweeps only: use decouple for a method with a polish.")
    shapes = {(one.X.shape, None if one.F is None else one.F.shape, one.J is None) for one in problems}
    if len(shapes) != 1 or len(rngs) != len(problems):
        raise DataError("decouple_each needs problems of one shape, and one generator for each.")
    began = time.perf_counter()
    constraints = check_settings(problems[0], rank, basis, constraint, 1, None, method)
    units = [Units.balanced(one) if method.scaled else Units.as_given(one) for one in problems]
    samples = Samples.stacked([Samples.of(one, unit) for one, unit in zip(problems, units, strict=True)])
    solver = method.solver(samples, basis, Projection.onto(solved_for(constraints, method.offset)))
    with single_blas_thread():
        start = partial(solver.random_start, rank, [rng.spawn(1)[0] for rng in rngs])
        runs = iterate(solver, start, len(problems), method.stopping, began)
        return [
            as_fit(problem, rank, method, basis, constraints, unit, run, [run], None, began)
            for problem, unit, run in zip(problems, units, runs, strict=True)
        ]
