"""From the search to the minimiser: which starts are worth Gauss–Newton steps, and when enough have had them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from unbraid.fitting.search import observer, on_this_clock, parts, time_of_day
from unbraid.methods.base import Polish
from unbraid.metrics import direction_angles
from unbraid.results.outcome import Status, Trace
from unbraid.runtime.journal import NOTHING_KEPT, Journal
from unbraid.runtime.process import single_blas_thread
from unbraid.runtime.progress import Callback, Progress
from unbraid.runtime.workers import Workers
from unbraid.solvers.gauss_newton import GaussNewton, GaussNewtonState
from unbraid.solvers.iterates import Iterates, Run
from unbraid.solvers.loop import Observe, Stopping, iterate

EXACT = 1e-24
"""A relative objective below this is an exact solution: nothing better is to be found."""
AGREEMENT = 1e-3
"""Two polished starts whose objectives differ by less than this share of themselves have found the same minimum."""
SAME_ANGLE, SAME_OBJECTIVE = 2.0, 0.05
"""Starts this close, in degrees and in share of the objective, are on their way to the same minimum, or at it but
for the places of their knots."""
SETTLING_ROUNDS, SETTLING_STEPS = 1, 20
"""How often knots are placed on the directions a start ended with, and steps it gets after each placement."""
FALLING = 1e-2
"""Share of the objective that a step gains where it is plainly not over."""
BATCH_ENTRIES = 1 << 20
"""Entries of the features (starts, S, r, m + K) of one batch: 8 MB of float64."""


def polish_runs(
    solver: GaussNewton,
    runs: Sequence[Run],
    settings: Polish,
    began: float,
    callback: Callback | None = None,
    journal: Journal = NOTHING_KEPT,
    workers: Workers | None = None,
) -> tuple[list[Run], Status | None]:
    """Polish the promising distinct runs until one is exact or two agree; all runs come back, polished or not.

    `began` is when the clock of the time limit started. Returns also what cut the work short, if anything did.
    Second members of the groups of like starts come last: they are polished only to confirm. Where workers are given,
    they do it.
    """
    order = promising(runs)[: settings.candidates]
    entries = solver.samples.size * runs[0].best.W0.shape[1] * (solver.samples.m + solver.basis.size)
    at_once = max(1, min(settings.at_once, BATCH_ENTRIES // entries))
    result = [replace(run, finished=False) for run in runs]
    bests, stopping = [runs[i].best for i in order], settings.stopping
    how = (solver, bests, at_once, stopping, began, callback, journal)
    ahead = None if workers is None else polished_ahead(*how, workers)
    for first in range(0, len(order), at_once):
        chunk = order[first : first + at_once]
        here, earlier = range(first, first + len(chunk)), [run.objective for run in result]
        watch = partial(observer, callback, "polish", here, len(order), earlier=earlier)
        try:
            if ahead is None:
                polished = polish_some(solver, bests[first : first + at_once], stopping, began, watch, journal)
            else:
                polished = next(ahead)
        except KeyboardInterrupt:
            return result, Status.INTERRUPTED
        for i, run in zip(chunk, polished, strict=True):
            result[i] = continued(runs[i], run)
        cut = {run.status for run in polished} & {Status.INTERRUPTED, Status.OUT_OF_TIME}
        if cut:
            return result, cut.pop()
        if enough([result[i] for i in order[: first + at_once]]):
            break
    return result, None


def polish_some(
    solver: GaussNewton,
    bests: Sequence[Iterates],
    stopping: Stopping,
    began: float,
    watch: Callable[..., Observe | None],
    journal: Journal,
) -> list[Run]:
    """Some starts, polished and settled as one batch."""
    start = partial(solver.start, Iterates.join(bests))
    observe = watch(stopping=stopping, after=(SETTLING_ROUNDS + 1) * SETTLING_STEPS)
    polished = iterate(solver, start, len(bests), stopping, began, observe, journal)
    return settle(solver, polished, stopping, began, watch, journal)


def polished_ahead(
    solver: GaussNewton,
    bests: Sequence[Iterates],
    at_once: int,
    stopping: Stopping,
    began: float,
    callback: Callback | None,
    journal: Journal,
    workers: Workers,
) -> Iterator[list[Run]]:
    """Group after group of `at_once` starts, polished by workers.

    As many groups as keep all of them busy are polished at the same time, though the first may turn out to be enough.
    """
    count: int = journal.unit(lambda: workers.count)  # another run may find others
    steps = stopping.max_sweeps + (SETTLING_ROUNDS + 1) * SETTLING_STEPS
    done = 0

    def tick(size: int) -> None:
        nonlocal done
        done = min(done + size, len(bests))
        if callback is not None:
            callback(Progress("polish", done * steps, len(bests) * steps, len(bests) - done))

    for several in parts(bests, max(1, count // at_once) * at_once):
        size = min(at_once, -(-len(several) // count))
        chunks = [(some, stopping, time_of_day(began)) for some in parts(several, size)]
        found = journal.unit(partial(workers.map, polish_there, chunks, partial(tick, size), (solver,)))
        yield from map(list, parts([run for some in found for run in some], at_once))


def polish_there(solver: GaussNewton, bests: Sequence[Iterates], stopping: Stopping, began: float) -> list[Run]:
    """As `polish_some`, wherever this is; `began` is a time of day."""
    with single_blas_thread():
        return polish_some(solver, bests, stopping, on_this_clock(began), unobserved, NOTHING_KEPT)


def unobserved(**_: object) -> None:
    """Nobody is told."""


def measured_anew(solver: GaussNewton, runs: Sequence[Run]) -> list[Run]:
    """Runs of a search on other data, with the objective they have on the solver's; what they did is no part of it."""
    nothing = Trace(np.zeros(0), np.zeros(0), ())
    return [replace(run, objective=float(solver.objective(run.best)[0]), trace=nothing) for run in runs]


def settle(
    solver: GaussNewton,
    runs: Sequence[Run],
    polished: Stopping,
    began: float,
    watch: Callable[..., Observe | None],
    journal: Journal,
) -> list[Run]:
    """Polished runs whose knots and directions belong to each other, and whose knots span just their inputs.

    Knots were placed last when directions had not yet come to rest. They are placed anew, all unknowns get a few
    more steps, and so on for some rounds; in the last one directions stay, so that knots end on the final inputs.
    Only then can runs be compared: on knots that do not fit its inputs a run can look better than it is. Ctrl-C leaves
    the runs as they are by then.
    """
    settled = list(runs)
    stopping = Stopping(max_sweeps=SETTLING_STEPS, tolerance=1e-6, max_seconds=polished.max_seconds)
    for k in range(SETTLING_ROUNDS + 1):
        last = k == SETTLING_ROUNDS
        before, after = polished.max_sweeps + k * SETTLING_STEPS, (SETTLING_ROUNDS - k) * SETTLING_STEPS
        try:
            final = replace(solver, directions_fixed=last, place_knots_at=frozenset())
            start = partial(start_anew, final, Iterates.join([run.best for run in settled]))
            observe = watch(stopping=stopping, before=before, after=after)
            ended = iterate(final, start, len(settled), stopping, began, observe, journal)
        except KeyboardInterrupt:
            return [replace(run, status=Status.INTERRUPTED) for run in settled]
        settled = [settled_in(*pair, all_free=not last) for pair in zip(settled, ended, strict=True)]
        if any(run.status is Status.INTERRUPTED for run in ended):
            break
    return settled


def start_anew(solver: GaussNewton, iterates: Iterates) -> GaussNewtonState:
    """Begin at given models, their knots placed anew."""
    return solver.start(solver.placed_anew(iterates))


def settled_in(before: Run, after: Run, all_free: bool) -> Run:
    """A run and a round of its settling as one; a round of all unknowns that converges makes up for spent steps.

    Ctrl-C may come when knots have been placed and the other unknowns have not followed: the better one is kept.
    """
    if after.status is Status.INTERRUPTED:
        better = min(before, after, key=lambda run: run.objective)
        return replace(better, status=Status.INTERRUPTED, trace=joined_traces(before, after))
    spent = before.status is Status.OUT_OF_SWEEPS and all_free and after.status.converged
    status = after.status if spent or still_falling(after) else before.status
    return replace(after, status=status, trace=joined_traces(before, after))


def still_falling(run: Run) -> bool:
    """Whether the steps ran out while each of them still gained: then nothing has converged, whatever was before."""
    last = run.trace.objective[-2:]
    falls = len(last) == 2 and bool(last[0] - last[1] > FALLING * last[1] and last[1] > EXACT)
    return run.status is Status.OUT_OF_SWEEPS and falls


def promising(runs: Sequence[Run]) -> list[int]:
    """Runs by objective, one of each group of like ones first, then the others."""
    firsts: list[int] = []
    others: list[int] = []
    for i in sorted(range(len(runs)), key=lambda i: runs[i].objective):
        group = others if any(alike(runs[i], runs[k]) for k in firsts) else firsts
        group.append(i)
    return [*firsts[:1], *others[:1], *firsts[1:], *others[1:]] if others else firsts


def alike(one: Run, other: Run) -> bool:
    """Whether two starts seem to be on their way to the same minimum."""
    near = abs(one.objective - other.objective) <= SAME_OBJECTIVE * max(one.objective, other.objective)
    return near and float(direction_angles(one.best.W0[0], other.best.W0[0]).max()) < SAME_ANGLE


def enough(runs: Sequence[Run]) -> bool:
    """Whether one run is exact, or the best two agree: in the objective, or about in that and in the directions."""
    best, *others = sorted(runs, key=lambda run: run.objective)[:2]
    if best.objective < EXACT or not others:
        return best.objective < EXACT
    return others[0].objective <= (1.0 + AGREEMENT) * best.objective or alike(best, others[0])


def continued(search: Run, polished: Run) -> Run:
    """A run and its polish as one; a polish that gained nothing is forgotten."""
    if polished.objective > search.objective:
        return replace(search, status=polished.status, finished=True)
    trace = replace(joined_traces(search, polished), search=search.trace.sweeps)
    return replace(polished, trace=trace, finished=True)


def joined_traces(first: Run, second: Run) -> Trace:
    """What happened in two runs, one after the other."""
    before, after = first.trace, second.trace
    return Trace(
        np.concatenate([before.objective, after.objective]),
        np.concatenate([before.jacobian_error, after.jacobian_error]),
        before.events + tuple(replace(event, sweep=event.sweep + before.sweeps) for event in after.events),
        before.search,
    )
