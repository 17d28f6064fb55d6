"""The search where only values are given: rough Jacobians and few degrees of freedom, then the basis as asked for.

Slopes from values are 10 to 80 % off, and what follows them closely follows their errors. So starts are searched and
polished with few degrees of freedom first, half of them on the slopes of local linear fits and half on those of a
smooth surrogate; the best that differ are then polished with more, and so on up to the basis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from unbraid.bases import Basis, BSpline
from unbraid.data.estimates import local_slopes, surrogate_slopes
from unbraid.data.in_memory import Samples
from unbraid.data.sample_set import SampleSet
from unbraid.fitting.polish import SAME_ANGLE, measured_anew, polish_runs
from unbraid.fitting.search import search_starts
from unbraid.kernels.arrays import Array
from unbraid.methods import Method
from unbraid.metrics import direction_angles
from unbraid.results.outcome import Status
from unbraid.runtime.journal import NOTHING_KEPT, Journal
from unbraid.runtime.progress import Callback
from unbraid.runtime.workers import Workers
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Run

LADDER: tuple[Basis, ...] = (BSpline(df=6), BSpline(df=12))
"""The basis of the search, and those on the way to the one that was asked for: as far as they are smaller."""
NEIGHBOURS = 3
"""Neighbours per unknown of a local linear fit."""
LIFTED = 2
"""How many fits go on to the next basis."""


def search_values(
    solver: GaussNewton,
    method: Method,
    rank: int,
    rngs: Sequence[np.random.Generator],
    began: float,
    callback: Callback | None,
    journal: Journal = NOTHING_KEPT,
    workers: Workers | None = None,
) -> tuple[list[Run], list[Run], Status | None]:
    """Fits of values in the solver's basis to go on from, the coarse fits of all starts, and what cut them short."""
    cut = None
    assert method.polish is not None
    first, *further = [basis for basis in LADDER if basis.size < solver.basis.size] or [solver.basis]
    coarse = replace(solver, basis=first)
    runs: list[Run] = []
    for k, slopes in enumerate(SLOPES):
        some = rngs[k :: len(SLOPES)]
        if some and cut is None:
            search = partial(search_slopes, coarse, method, slopes, rank, some, callback, journal, workers)
            found, cut = journal.unit(search)
            runs += found
    runs = journal.unit(partial(measured_anew, coarse, runs))
    if cut is None:
        runs, cut = polish_runs(coarse, runs, method.polish, began, callback, journal, workers)
    runs = best = sorted(runs, key=lambda run: run.objective)
    for basis in further:
        if cut is None:
            finer = replace(solver, basis=basis)
            best = journal.unit(partial(lifted, finer, best))
            best, cut = polish_runs(finer, best, method.polish, began, callback, journal, workers)
            best = sorted(best, key=lambda run: run.objective)
    return journal.unit(partial(lifted, solver, best)), runs, cut


def search_slopes(
    solver: GaussNewton,
    method: Method,
    slopes: Callable[[Array, Array], Array],
    rank: int,
    rngs: Sequence[np.random.Generator],
    callback: Callback | None,
    journal: Journal,
    workers: Workers | None,
) -> tuple[list[Run], Status | None]:
    """The method's sweeps on slopes from the values, and what cut them short."""
    search = method.solver(with_slopes(solver.samples, method, slopes), solver.basis, solver.projection)
    return search_starts(search, rank, rngs, method.stopping, callback, journal, workers)


def neighbouring_slopes(X: Array, F: Array) -> Array:
    """Slopes of local linear fits, each to the nearest samples."""
    return local_slopes(X, F, NEIGHBOURS * (X.shape[1] + 1))


SLOPES: tuple[Callable[[Array, Array], Array], ...] = (neighbouring_slopes, surrogate_slopes)
"""Where first Jacobians come from; starts take turns."""


def with_slopes(
    samples: SampleSet, method: Method, slopes: Callable[[Array, Array], Array] = neighbouring_slopes
) -> Samples:
    """The samples with Jacobians from the values."""
    assert isinstance(samples, Samples)
    samples = samples.as_filled(method.weighted)
    return samples.with_jacobians(slopes(samples.X, samples.values))


def lifted(solver: GaussNewton, runs: Sequence[Run]) -> list[Run]:
    """The best runs of different directions, best first, in the solver's basis."""
    kept: list[Run] = []
    for run in runs:
        if all(direction_angles(run.best.W0[0], one.best.W0[0]).max() > SAME_ANGLE for one in kept):
            kept.append(run)
        if len(kept) == LIFTED:
            break
    return measured_anew(solver, [replace(run, best=solver.placed_anew(run.best)) for run in kept])
