"""Many problems of one shape at once: one start each, as one batch. For studies of many draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.problem import Problem
from unbraid.errors import DataError, SettingError
from unbraid.fitting.case import Case
from unbraid.fitting.request import Request
from unbraid.fitting.session import Found, ProgressSpan, Session
from unbraid.methods import AlternatingMethod
from unbraid.results.fit import Fit
from unbraid.runtime.process import single_blas_thread


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
    requests = [Request(rank=rank, basis=basis, constraint=constraint, method=method, starts=1) for _ in problems]
    for problem, request in zip(problems, requests, strict=True):
        request.check(problem)
    cases = [Case.of(*pair) for pair in zip(problems, requests, strict=True)]
    samples = Samples.stacked([Samples.of(case.problem, case.units) for case in cases])
    solver = method.solver(samples, basis, Projection.onto(requests[0].constraints, method.offset))
    session = Session()
    with single_blas_thread():
        begin = partial(solver.random_start, rank, [rng.spawn(1)[0] for rng in rngs])
        runs = session.loop(solver, begin, method.stopping, ProgressSpan("search", range(len(problems)), len(problems)))
        fits = [case.conclude(Found((run,))) for case, run in zip(cases, runs, strict=True)]
    return [replace(fit, seconds=session.seconds()) for fit in fits]
