"""The second stage, from the search to the minimiser: which starts are worth Gauss–Newton steps, and when enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from unbraid.data.in_memory import Samples
from unbraid.fitting.search import batches
from unbraid.fitting.session import Found, ProgressSpan, Session, cut_of, session_elsewhere, time_of_day
from unbraid.kernels.decompositions import finite_or_zero
from unbraid.methods.base import Polish
from unbraid.metrics import direction_angles
from unbraid.results.outcome import Status, Trace
from unbraid.runtime.interrupts import attempt
from unbraid.runtime.process import single_blas_thread
from unbraid.runtime.progress import Progress
from unbraid.runtime.workers import Shared
from unbraid.solvers.gauss_newton import GaussNewton, GaussNewtonState
from unbraid.solvers.iterates import Iterates, Run
from unbraid.solvers.loop import HEADING_FOR_ZERO, LOST, ROUGHLY, TO_THE_END, Rules, Stopping

EXACT_OBJECTIVE = 1e-24
"""A relative objective below this is an exact solution: nothing better is to be found."""
AGREEMENT, AS_GOOD, AS_GOOD_ROUGHLY = 1e-3, 1e-2, 5e-2
"""Two polished starts whose objectives differ by less than this share of themselves have found the same minimum; where
valleys are flat, by less than the second share, or the third where the race was a rough one: then another one is not
worth the search."""
IN_A_VALLEY = 50
"""Steps of a rough race after which a start that gains little is in a valley; sooner, it is at a minimum."""
SAME_ANGLE, SAME_OBJECTIVE = 2.0, 0.05
"""Starts this close, in degrees and in share of the objective, are on their way to the same minimum, or at it but
for the places of their knots."""
MEETING_ANGLE = 0.1
"""Starts that ended this close, in degrees, are at a minimum."""
SETTLING_ROUNDS, SETTLING_STEPS = 1, 20
"""How often directions move once knots were placed on those a start ended with, and steps after each placement."""
FALLING = 1e-2
"""Share of the objective that a step gains where it is plainly not over."""
SETTLING = (SETTLING_ROUNDS + 1) * SETTLING_STEPS
"""Steps of a start while its knots settle, at most."""
FURTHER_STEPS = 100
"""Steps that the winner of a rough race gets after it, at most."""
ROUND = 2
"""Groups that do not look at each other, so that they can be polished at the same time; then comes the question whether
that is enough."""
Groups = Sequence[Sequence[int]]
"""The numbers of the runs that are polished as one batch, batch by batch."""
POLISH_ENTRIES = 1 << 20
"""Entries of the features (starts, S, r, m + K) of one batch: 8 MB of float64."""


@dataclass(frozen=True)
class PolishStarts:
    """Stage: Gauss–Newton steps for the promising distinct runs, until one is exact or two agree.

    All runs come back, polished or not. Those of a group race each other, and the best of earlier rounds
    (`solvers.loop`). Of like starts one is polished first, and one more, to confirm; the others come last.
    """

    solver: GaussNewton
    settings: Polish
    race: Rules = TO_THE_END
    at_least: int = 0

    def __call__(self, session: Session, found: Found) -> Found:
        """Round after round, of several groups each, which workers polish at the same time."""
        order = polishing_order(found.runs)[: self.settings.candidates]
        groups = [order[part.start : part.stop] for part in batches(len(order), self.group_size(found))]
        found = replace(found, runs=tuple(replace(run, finished=False) for run in found.runs))
        spread = session.workers is not None and isinstance(self.solver.samples, Samples)  # others stay where they are
        shared = Shared(self.solver)
        for some in batches(len(groups), ROUND):
            if spread and len(some) > 1:
                found = session.run(partial(self.polish_by_workers, groups, some, shared), found)
            else:
                found = self.polish_here(groups, some, session, found)
            if found.cut is not None or self.is_enough(found):
                break
        return found

    def is_enough(self, found: Found) -> bool:
        """Whether there are as many as there should be, and one is exact, or another one agrees with the best."""
        finished = [run for run in found.runs if run.finished]
        return len(finished) >= self.at_least and is_enough(finished, rough=self.race == ROUGHLY)

    def group_size(self, found: Found) -> int:
        """How many runs are polished as one batch."""
        samples = self.solver.samples
        entries = samples.size * found.best.best.W0.shape[1] * (samples.m + self.solver.basis.size)
        return max(1, min(self.settings.at_once, int(POLISH_ENTRIES // entries)))

    def stopping(self, found: Found) -> Stopping:
        """How starts of a group end: they race each other, and the best of the rounds before."""
        before = [run.objective for run in found.runs if run.finished]
        return replace(self.settings.stopping, race=self.race, rival=min(before, default=np.inf))

    def span(self, groups: Groups, k: int, found: Found) -> ProgressSpan:
        """The progress that the k-th group makes."""
        first, best = sum(map(len, groups[:k])), min(run.objective for run in found.runs)
        return ProgressSpan("polish", range(first, first + len(groups[k])), sum(map(len, groups)), best=best)

    def polish_here(self, groups: Groups, some: range, session: Session, found: Found) -> Found:
        """Polish a round, one group after another."""
        stopping = self.stopping(found)
        for k in some:
            if found.cut is None:
                found = session.run(partial(self.polish_group, groups, k, stopping), found)
        return found

    def polish_group(self, groups: Groups, k: int, stopping: Stopping, session: Session, found: Found) -> Found:
        """Polish one group."""
        bests, span = [found.runs[i].best for i in groups[k]], self.span(groups, k, found)
        return enter_polished(found, groups[k], polish_batch(session, self.solver, bests, stopping, span))

    def polish_by_workers(
        self, groups: Groups, some: range, solver: Shared[GaussNewton], session: Session, found: Found
    ) -> Found:
        """Polish a round, a group a worker."""
        began, stopping, total = time_of_day(session.began), self.stopping(found), sum(map(len, groups))
        pieces = [([found.runs[i].best for i in groups[k]], stopping, self.span(groups, k, found), began) for k in some]

        def progress(results: dict[int, list[Run]]) -> Progress:
            done, steps = self.span(groups, some.start, found).batch.start, stopping.max_sweeps + SETTLING
            done += sum(map(len, results.values()))
            return Progress("polish", done * steps, total * steps, total - done)

        results = session.map_until_interrupted(polish_elsewhere, pieces, solver, progress)
        for k in sorted(results):
            found = enter_polished(found, groups[some.start + k], results[k])
        return found if len(results) == len(pieces) else replace(found, cut=Status.INTERRUPTED)


@dataclass(frozen=True)
class ContinueBest:
    """Stage: the winner of a rough race goes on while it gains, on knots that follow its directions.

    What the race left to be gained would cost smoothing steps several times as much. A second start that came to a
    valley nearly as low goes on beside it, as it may end lower. Where another start ended in the same directions, it is
    a minimum and no valley, and the race left nothing.
    """

    solver: GaussNewton
    stopping: Stopping

    def __call__(self, session: Session, found: Found) -> Found:
        """The best run after more steps, of what is left of its budget; as it was where those gain nothing."""
        best, starts = found.best, len(found.runs)
        spent = best.trace.sweeps - (best.trace.search or 0)
        most = min(FURTHER_STEPS, self.stopping.max_sweeps - spent)
        if best.status is not Status.FLAT or best.objective < HEADING_FOR_ZERO or most < 1 or is_met(best, found.runs):
            return found
        going = [best, *runners_up(best, found.runs)[:1]]
        further = replace(self.stopping, race=TO_THE_END, max_sweeps=most)
        after = self.stopping.max_sweeps + SETTLING - most  # every start of a polish counts for as many
        total = starts + len(going)
        span = ProgressSpan("polish", range(starts, total), total, after=after, best=best.objective)
        begin = partial(self.solver.start, Iterates.join([run.best for run in going]))
        ended = session.loop(self.solver, begin, further, span)
        measured = [on_fresh_knots(self.solver, run) for run in ended]
        before, run = min(zip(going, measured, strict=True), key=lambda pair: pair[1].objective)
        if not run.objective < best.objective:
            return replace(found, cut=cut_of(ended))
        status = before.status if run.status is Status.OUT_OF_SWEEPS else run.status  # only these steps ran out
        whole = replace(run, status=status, trace=join_traces(before, run), finished=True)
        return found.narrow(whole, found.level, cut_of(ended))


@dataclass(frozen=True)
class FinishBest:
    """Stage: the best run of a rough race, polished to its end."""

    solver: GaussNewton
    stopping: Stopping

    def __call__(self, session: Session, found: Found) -> Found:
        """The run as it would have ended alone."""
        alone = replace(self.stopping, race=TO_THE_END)
        [run] = polish_batch(session, self.solver, [found.best.best], alone, ProgressSpan("polish"))
        return found.narrow(continue_run(found.best, run), found.level, cut_of([run]))


def enter_polished(found: Found, which: Sequence[int], polished: Sequence[Run]) -> Found:
    """What was found with some of its runs polished."""
    runs = list(found.runs)
    for i, run in zip(which, polished, strict=True):
        runs[i] = continue_run(runs[i], run)
    return replace(found, runs=tuple(runs), cut=found.cut or cut_of(polished))


def polish_batch(
    session: Session, solver: GaussNewton, bests: Sequence[Iterates], stopping: Stopping, span: ProgressSpan
) -> list[Run]:
    """Polish and settle models as one batch."""
    begin = partial(solver.start, Iterates.join(bests))
    runs = session.loop(solver, begin, stopping, replace(span, after=SETTLING))
    if cut_of(runs) is not None:
        return runs
    arrived = [k for k, run in enumerate(runs) if run.status not in LOST]
    least = min((runs[k].objective for k in arrived), default=np.inf)
    if not arrived or (stopping.race == ROUGHLY and least > HEADING_FOR_ZERO):
        measured = [on_fresh_knots(solver, run) for run in runs]
        least = min((measured[k].objective for k in arrived), default=stopping.rival)
        return [run if k in arrived else behind(run, least) for k, run in enumerate(measured)]
    ahead = [k for k in arrived if runs[k].objective <= (1.0 + SAME_OBJECTIVE) * least]  # settling may change as much
    there = replace(span, batch=span.batch[: len(ahead)], over=len(runs) - len(ahead))
    settled = dict(zip(ahead, settle(session, solver, [runs[k] for k in ahead], stopping, there), strict=True))
    least = min(run.objective for run in settled.values())
    return [settled[k] if k in settled else behind(on_fresh_knots(solver, run), least) for k, run in enumerate(runs)]


def on_fresh_knots(solver: GaussNewton, run: Run) -> Run:
    """A run measured on knots that are placed on its last directions, so that runs can be compared."""
    return measure_run(solver, replace(run, best=solver.placed_anew(run.best)))


def behind(run: Run, least: float) -> Run:
    """A run that lost a race, and whose knots did not settle: it is not to look better than the best that won."""
    return replace(run, objective=max(run.objective, float(np.nextafter(least, np.inf))))


def polish_elsewhere(
    solver: GaussNewton, bests: Sequence[Iterates], stopping: Stopping, span: ProgressSpan, began: float
) -> list[Run]:
    """Polish and settle models wherever there is a worker; `began` is a time of day."""
    with single_blas_thread():
        return polish_batch(session_elsewhere(began), solver, bests, stopping, span)


def settle(
    session: Session, solver: GaussNewton, runs: Sequence[Run], polished: Stopping, span: ProgressSpan
) -> list[Run]:
    """Make knots and directions of polished runs belong to each other, and knots span just their inputs.

    Knots were placed last when directions had not yet come to rest. They are placed anew, all unknowns get a few
    more steps, and so on for some rounds; in the last one directions stay, so that knots end on the final inputs.
    Only then can runs be compared: on knots that do not fit its inputs a run can look better than it is. Ctrl-C leaves
    the runs as they are by then.
    """
    stopping = Stopping(max_sweeps=SETTLING_STEPS, tolerance=1e-6, max_seconds=polished.max_seconds)
    settled = list(runs)
    for k in range(SETTLING_ROUNDS + 1):
        last = k == SETTLING_ROUNDS
        final = replace(solver, directions_fixed=last, place_knots_at=frozenset())
        begin = partial(start_anew, final, Iterates.join([run.best for run in settled]))
        before, after = polished.max_sweeps + k * SETTLING_STEPS, SETTLING - (k + 1) * SETTLING_STEPS
        there = replace(span, before=before, after=after)
        ended = attempt(partial(session.loop, final, begin, stopping, there), list[Run])
        if not ended:
            return [replace(run, status=Status.INTERRUPTED) for run in settled]
        settled = [settle_run(*pair, not last) for pair in zip(settled, ended, strict=True)]
        if any(run.status is Status.INTERRUPTED for run in ended):
            break
    return settled


def start_anew(solver: GaussNewton, iterates: Iterates) -> GaussNewtonState:
    """Begin at given models, their knots placed anew."""
    return solver.start(solver.placed_anew(iterates))


def measure_anew(solver: GaussNewton, runs: Sequence[Run]) -> list[Run]:
    """Runs of a search on other data, with the objective they have on the solver's; what they did is no part of it."""
    nothing = Trace(np.zeros(0), np.zeros(0), ())
    return [replace(measure_run(solver, run), trace=nothing) for run in runs]


def measure_run(solver: GaussNewton, run: Run) -> Run:
    """A run with the objective that it has on the solver's samples."""
    return replace(run, objective=float(solver.objective(run.best)[0]))


@dataclass(frozen=True)
class MeasureAnew:
    """Stage: runs of a search with the objective that they have for the solver.

    It differs where the search saw other data than the solver's, and where a penalty counts, which sweeps do not see.
    In a default fit with Jacobians and without gaps neither is the case, and the runs stay as they are.
    """

    solver: GaussNewton
    same_data: bool = False

    def __call__(self, session: Session, found: Found) -> Found:
        """The same runs, measured where that makes a difference."""
        if self.same_data and found.best.best.placement.penalty_root() is None:
            return found
        return replace(found, runs=tuple(measure_anew(self.solver, found.runs)))


def settle_run(before: Run, after: Run, all_free: bool) -> Run:
    """A run and a round of its settling as one; a round of all unknowns that converges makes up for spent steps.

    Ctrl-C may come when knots have been placed and the other unknowns have not followed: the better one is kept.
    """
    if after.status is Status.INTERRUPTED:
        better = min(before, after, key=lambda run: run.objective)
        return replace(better, status=Status.INTERRUPTED, trace=join_traces(before, after))
    spent = before.status is Status.OUT_OF_SWEEPS and all_free and after.status.converged
    status = after.status if spent or is_still_falling(after) else before.status
    return replace(after, status=status, trace=join_traces(before, after))


def is_still_falling(run: Run) -> bool:
    """Whether the steps ran out while each of them still gained: then nothing has converged, whatever was before."""
    last = run.trace.objective[-2:]
    falls = len(last) == 2 and bool(last[0] - last[1] > FALLING * last[1] and last[1] > EXACT_OBJECTIVE)
    return run.status is Status.OUT_OF_SWEEPS and falls


def polishing_order(runs: Sequence[Run]) -> list[int]:
    """The numbers of runs in the order in which to polish them: by objective, one of each group of like ones first.

    But for the second place: a start like another one shows at once whether they end in the same minimum.
    """
    firsts: list[int] = []
    others: list[int] = []
    for i in sorted(range(len(runs)), key=lambda i: runs[i].objective):
        group = others if any(are_alike(runs[i], runs[k]) for k in firsts) else firsts
        group.append(i)
    return [*firsts[:1], *others[:1], *firsts[1:], *others[1:]] if others else firsts


def are_alike(one: Run, other: Run) -> bool:
    """Whether two starts seem to be on their way to the same minimum."""
    near = abs(one.objective - other.objective) <= SAME_OBJECTIVE * max(one.objective, other.objective)
    return near and angle_between(one, other) < SAME_ANGLE


def angle_between(one: Run, other: Run) -> float:
    """The largest angle between directions of two runs, in degrees; what is not finite has no direction."""
    return float(direction_angles(*(finite_or_zero(run.best.W0[0]) for run in (one, other))).max())


def is_enough(runs: Sequence[Run], rough: bool) -> bool:
    """Whether one run is exact, or another one agrees with the best."""
    best, *others = sorted(runs, key=lambda run: run.objective)
    return best.objective < EXACT_OBJECTIVE or any(confirms(one, best, rough) for one in others)


def confirms(run: Run, best: Run, rough: bool) -> bool:
    """Whether a run has found the same minimum as the best, or was on its way there.

    By the objective, by that and directions, or, where it left a race for being on its way there, by directions.
    """
    if run.status is Status.JOINED and angle_between(run, best) < SAME_ANGLE:
        return True
    share = AGREEMENT
    if in_a_valley(run, rough) and in_a_valley(best, rough):
        share = AS_GOOD_ROUGHLY if rough else AS_GOOD
    return run.objective <= (1.0 + share) * best.objective or are_alike(best, run)


def is_met(best: Run, runs: Sequence[Run]) -> bool:
    """Whether another polished run ended where the best one did; in a valley they come close, but do not meet."""
    return any(run.finished and run is not best and angle_between(run, best) < MEETING_ANGLE for run in runs)


def runners_up(best: Run, runs: Sequence[Run]) -> list[Run]:
    """Other polished runs that came to a valley nearly as low as the best one, in the order of their objectives."""
    near = (1.0 + SAME_OBJECTIVE) * best.objective
    others = [run for run in runs if run is not best and run.finished and run.status is Status.FLAT]
    return sorted((run for run in others if run.objective <= near), key=lambda run: run.objective)


def in_a_valley(run: Run, rough: bool) -> bool:
    """Whether a polished run ended in a flat valley."""
    steps = run.trace.sweeps - (run.trace.search or 0)
    return run.status in (Status.FLAT, Status.JOINED) and (not rough or steps >= IN_A_VALLEY)


def continue_run(search: Run, polished: Run) -> Run:
    """A run and its polish as one; a polish that gained nothing is forgotten, unless others of its group did better."""
    if polished.objective > search.objective and polished.status not in LOST:
        return replace(search, status=polished.status, finished=True)
    trace = replace(join_traces(search, polished), search=search.trace.sweeps)
    return replace(polished, trace=trace, finished=True)


def join_traces(first: Run, second: Run) -> Trace:
    """What happened in two runs, one after the other."""
    before, after = first.trace, second.trace
    return Trace(
        np.concatenate([before.objective, after.objective]),
        np.concatenate([before.jacobian_error, after.jacobian_error]),
        before.events + tuple(replace(event, sweep=event.sweep + before.sweeps) for event in after.events),
        before.search,
    )
