"""The stage where a basis leaves its smoothing open: how much to smooth, what λ, and how many branches are needed.

The best run of the search and the polish, which were in a basis of few degrees of freedom, goes on as penalised
splines, in steps that choose strengths and λ as they go (`solvers.smoothing_steps`); with twice as many knots where
branches use all they have and much is left over. Then the branch that matters least is left out, and so on for as long
as there is hope, and what counts is the model on that path of the best score

    log(misfit / E) - (E_F / E) log λ - 2 γ log(1 - edf / E),

E being how many numbers are fitted, E_F how many of them are values, and edf the degrees of freedom of the whole fit,
directions among them. It is the logarithm of generalised cross-validation, in which a degree of freedom counts γ-fold.
With γ = 2, of the ranks of a model whose every branch is smoothed already, it chose the right one where γ = 1 and 1.4
kept branches of noise. Where the run has a better score as it came, all its unknowns counted, it stays as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.smoothing import PENALTIES, PlacedSmoothing
from unbraid.data.sample_set import SampleSet
from unbraid.fitting.levels import Levels
from unbraid.fitting.polish import EXACT_OBJECTIVE, FinishBest, join_traces, start_anew
from unbraid.fitting.session import Found, ProgressSpan, Session, Stage, cut_of
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.kernels.gauge import row_lengths
from unbraid.results.outcome import Status
from unbraid.results.smoothing import Smoothing
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates, Run
from unbraid.solvers.loop import AGAINST_A_RIVAL, ALONE, Stopping
from unbraid.solvers.smoothing_steps import SmoothingState, SmoothingSteps
from unbraid.solvers.surroundings import Surroundings, count_equations

STEPS, STEPS_ON_A_PATH = 120, 30
"""Steps while strengths are chosen, at most; and on a path of ranks, where no rest means branches too many."""
STEPS_WITHOUT_ONE, STEPS_TO_FOLLOW = 40, 10
"""The same after a branch was left out; and steps before these, in which the others follow and strengths stay."""
STEPS_OF_CURVES = 8
"""Steps before all of these, in which rough curves become smooth and all else stays."""
CROWDED = 2.0
"""Curves of a search that had fewer numbers than this for each unknown may follow noise."""
LOOSE = 12.0
"""So may those of one that had fewer than this, where they are so rough that penalties outweigh all data."""
LAST_STEPS = 20
"""Steps at the end, in which directions and strengths stay."""
AT_REST, RESOLVED = 0.05, 1e-6
"""Strengths have been chosen where minus twice the logarithm of the likelihood changes by less than this, or by less
than so much for each number that is fitted."""
FIRST_STRENGTH = 2e-3
"""Strengths that the choice begins with, a sample: all penalties act at once."""
GAMMA = 2.0
"""γ, what a degree of freedom counts where a branch is left out."""
SLIGHT = 0.02
"""Of two models whose scores, logarithms of variances, differ by less than this, the one of fewer branches is kept."""
SATURATED, FOLLOWED = 0.85, 1e-8
"""A branch that uses more than this share of its freedom may want more knots, unless what is left over, in balanced
units, is less than this."""
MOST_UNKNOWNS = 1200
"""Unknowns beyond which there are no further knots."""
PLENTY = 0.75
"""Share of the equations that unknowns without penalties have to leave over to be believed."""
HOPEFUL = 0.1
"""To leave a branch out is tried where the score is not expected to grow by more than this."""
TWINS = 3.0
"""Two branches whose directions differ by less than this, in degrees, may share what belongs to one."""
GIVEN_UP, LOSSES = 1.0, 2
"""Where the score has grown, or is above the best by the first, e times the variance, so many times in a row, there is
no hope; once may be that the others have not yet followed."""


class Open(NamedTuple):
    """What is to be chosen from the data beside strengths: the basis and its number of knots, λ, and the rank."""

    basis: bool
    coupling: bool
    rank: bool


@dataclass(frozen=True)
class ChooseSmoothing:
    """Stage: the best run with smoothing chosen for each branch, and whatever else is open.

    `solver` is that of the polish, and `polish` are the stopping rules that it had. A run that is exact already, or not
    finite, stays as it is, in the basis of the search; one that no penalties suit is polished to its end.
    """

    levels: Levels
    solver: GaussNewton
    basis: Basis
    open: Open
    polish: Stopping

    def __call__(self, session: Session, found: Found) -> Found:
        """Strengths, knots, then branch after branch, then the last steps; Ctrl-C leaves the run as it is by then."""
        if not found.best.objective < np.inf or self.is_exact(found):
            return found
        polished, (stage, found) = found, self.choose(self.smooth, session, found)
        if found.cut is None and self.may_follow_noise(polished):
            smoother = self.choose(self.smooth_curves_first, session, polished)
            stage, found = better_choice(smoother, (stage, found))
        if found.cut is None and found.basis is not None:
            found = session.run(stage.settle, found)
        if found.cut is not None:
            return found
        if found.smoothing is None or not np.isfinite(found.smoothing.freedom).all():
            return self.without_penalties(session, polished)
        if not self.open.basis or found.smoothing.score <= self.plain(polished).score:
            return found
        finished = self.without_penalties(session, polished)  # too rough for these penalties, or knots
        return finished if finished.cut is not None else replace(finished, smoothing=self.plain(finished))

    def plain(self, found: Found) -> Smoothing:
        """What stands for a choice where the best run stays without penalties."""
        return without_smoothing(self.steps_at(found.level), found.best.best)

    def without_penalties(self, session: Session, found: Found) -> Found:
        """The best run in the basis of the search, polished to its end."""
        return session.run(FinishBest(self.levels.solver_at(self.solver, found.level), self.polish), found)

    def choose(self, smooth: Stage, session: Session, found: Found) -> Choice:
        """Strengths by one way to begin, then knots, then branches; what was found stays where that fails."""
        found = session.run(smooth, found)
        if found.basis is None:
            return self, found
        stage, found, standing = self.refine(session, found)
        return stage, stage.leave_out(session, found, standing) if found.cut is None and self.open.rank else found

    def is_exact(self, found: Found) -> bool:
        """Whether the best run has found an exact solution: that of fewer numbers than unknowns may be any function."""
        numbers = count_equations(self.levels.solver_at(self.solver, found.level).samples)
        return found.best.objective < EXACT_OBJECTIVE and count_freedom(found.best.best).sum() < numbers

    def steps_at(self, level: int) -> SmoothingSteps:
        """The solver on the samples of a level."""
        solver = replace(self.levels.solver_at(self.solver, level), basis=self.basis.untuned())
        return SmoothingSteps(solver, self.open.coupling)

    def refine(self, session: Session, found: Found) -> tuple[ChooseSmoothing, Found, Standing]:
        """The stage, what it found, and where that stands, with twice as many knots while branches use all in vain.

        λ stays then: what is left of slopes around jumps falls with every knot, although nothing tells where between
        two samples they jump, and values would be given up for it.
        """
        stage, standing, most = self, self.standing(found), self.steps_at(found.level).solver.samples.size // 2
        while found.cut is None and stage.open.basis and 2 * stage.basis.size <= most and standing.wants_knots():
            finer = stage.with_basis(stage.basis.of_size(2 * stage.basis.size), standing.coupling)
            tried = session.run(finer.smooth, found)
            if tried.cut is not None:
                return stage, replace(found, cut=tried.cut), standing
            there = finer.standing(tried)
            if not there.score < standing.score - SLIGHT:
                break
            stage, found, standing = finer, tried, there
        return stage, found, standing

    def with_basis(self, basis: Basis, coupling: float | None) -> ChooseSmoothing:
        """The stage with another basis, and a λ that stays, where there is one."""
        if coupling is None:
            return replace(self, basis=basis)
        return replace(
            self, basis=basis, solver=replace(self.solver, coupling=coupling), open=self.open._replace(coupling=False)
        )

    def first(self, found: Found) -> Iterates:
        """The best run in the basis, with the strengths that the choice begins with."""
        steps = self.steps_at(found.level)
        return with_first_strengths(steps.solver.placed_anew(found.best.best), steps)

    def may_follow_noise(self, found: Found) -> bool:
        """Whether the curves of the best run may follow noise.

        A search that had few numbers for each unknown may have gone through all of them, along any direction.
        """
        solver = self.steps_at(found.level).solver
        each = count_equations(solver.samples) / count_freedom(found.best.best).sum()
        return each < CROWDED or (each < LOOSE and float(solver.objective(self.first(found))[0]) > 1.0)

    def smooth(self, session: Session, found: Found) -> Found:
        """The best run in the basis, with strengths chosen from the data."""
        steps = self.steps_at(found.level)
        return self.smooth_from(lambda: steps.start(self.first(found)), session, found)

    def smooth_curves_first(self, session: Session, found: Found) -> Found:
        """The same, with curves that penalties have made smooth before anything else moves."""
        steps = self.steps_at(found.level)
        return self.smooth_from(
            lambda: steps.start(with_smooth_curves(self.first(found), steps), STEPS_TO_FOLLOW), session, found
        )

    def smooth_from(self, begin: Callable[[], SmoothingState], session: Session, found: Found) -> Found:
        """The best run with strengths chosen from the data, in steps that begin at a state."""
        steps, run = self.steps_at(found.level), found.best
        most = STEPS if self.open.rank else STEPS_ON_A_PATH
        after = self.drive(session, steps, begin, run, ProgressSpan("smooth", after=LAST_STEPS), most)
        if not np.isfinite(after.objective):
            return found
        return replace(found.narrow(after, found.level, cut_of([after])), basis=self.basis)

    def leave_out(self, session: Session, found: Found, standing: Standing) -> Found:
        """What was found, or with fewer branches where the score is better: not every one on the way has to be."""
        found, standing = self.leave_twins_out(session, found, standing)
        if found.cut is not None:
            return found
        best, score, rival, in_vain = found, standing.score, standing.criterion, 0
        while standing.hopeful and in_vain < LOSSES:
            reached = math.inf if standing.leaves_nothing else rival  # what is exact need not be as likely
            found = session.run(partial(self.leave_branch_out, standing.least(), reached), found)
            if found.cut is not None:
                return replace(best, cut=found.cut)
            before, standing = standing, self.standing(found)
            exact = before.leaves_nothing and standing.leaves_nothing
            if standing.score < score + SLIGHT or exact:
                best, score, rival = found, min(standing.score, score), standing.criterion
            worse = standing.score > min(before.score + SLIGHT, score + GIVEN_UP)
            in_vain = in_vain + 1 if worse and not exact else 0
        return best

    def leave_twins_out(self, session: Session, found: Found, standing: Standing) -> tuple[Found, Standing]:
        """What was found, or, where that leaves nothing over, with one branch for two of nearly one direction."""
        while standing.leaves_nothing and standing.twins:
            for j in standing.twins:
                tried = session.run(partial(self.leave_branch_out, j, math.inf), found)
                if tried.cut is not None:
                    return replace(found, cut=tried.cut), standing
                there = self.standing(tried)
                if there.leaves_nothing:
                    break
            else:
                return found, standing
            found, standing = tried, there
        return found, standing

    def standing(self, found: Found) -> Standing:
        """Where the best run stands."""
        return Standing.of(self.steps_at(found.level), found.best.best)

    def leave_branch_out(self, j: int, rival: float, session: Session, found: Found) -> Found:
        """The best run without a branch, the others following; as it was where that is cut short.

        It ends early where it would not come to be as likely as a rival.
        """
        steps, run = self.steps_at(found.level), found.best
        fewer = with_first_strengths(without_branch(run.best, j), steps)
        span = ProgressSpan("smooth", before=STEPS, after=LAST_STEPS)
        after = self.drive(
            session, steps, lambda: steps.start(fewer, STEPS_TO_FOLLOW), run, span, STEPS_WITHOUT_ONE, rival
        )
        cut = cut_of([after])
        return replace(found, cut=cut) if cut is not None else replace(found, runs=(after,))

    def drive(
        self,
        session: Session,
        steps: SmoothingSteps,
        begin: Callable[[], SmoothingState],
        run: Run,
        span: ProgressSpan,
        most: int,
        rival: float | None = None,
    ) -> Run:
        """A run after steps that choose strengths; where these come to rest, what ran out before does not matter."""
        tolerance = max(AT_REST / count_equations(steps.solver.samples), RESOLVED)
        stopping = Stopping(max_sweeps=most, tolerance=tolerance, max_seconds=self.polish.max_seconds, race=ALONE)
        if rival is not None:
            stopping = replace(stopping, race=AGAINST_A_RIVAL, rival=rival)
        [after] = session.loop(steps, begin, stopping, span)
        objective = float(steps.solver.objective(after.best)[0])
        status = run.status if after.status is Status.OUTRUN else after.status
        return replace(after, objective=objective, status=status, trace=join_traces(run, after))

    def settle(self, session: Session, found: Found) -> Found:
        """The last steps: directions and strengths stay, so that knots end on the final inputs."""
        steps, run = self.steps_at(found.level), found.best
        coupling = steps.balanced(steps.solver.linearised(run.best))
        final = replace(steps.solver, coupling=coupling, directions_fixed=True, place_knots_at=frozenset())
        stopping = Stopping(max_sweeps=LAST_STEPS, tolerance=1e-5, max_seconds=self.polish.max_seconds)
        span = ProgressSpan("smooth", before=STEPS)
        [after] = session.loop(final, partial(start_anew, final, run.best), stopping, span)
        cut = cut_of([after])
        after = replace(after, status=run.status if cut is None else cut, trace=join_traces(run, after))
        if not np.isfinite(after.objective):
            return found
        return replace(found, runs=(after,), cut=cut, smoothing=Standing.of(steps, after.best).smoothing)


Choice = tuple[ChooseSmoothing, Found]
"""What was chosen, by a stage that may have got more knots."""


def better_choice(smoother: Choice, other: Choice) -> Choice:
    """The choice of the better score, the smoother one where that differs little; the other where it was cut short."""
    (stage, found), (others_stage, others) = smoother, other
    if found.cut is not None or found.basis is None:
        return others_stage, replace(others, cut=found.cut)
    if others.basis is None or stage.standing(found).score < others_stage.standing(others).score + SLIGHT:
        return smoother
    return other


@dataclass(frozen=True)
class Standing:
    """Where a smoothed model stands: its surroundings, what data it is measured on, and its score.

    `left_over` is the mean square of what is left of values, or of Jacobians, whichever is more. `twins` are the two
    branches whose directions are closest, where these hardly differ; else it is empty.
    """

    around: Surroundings
    branches: int
    equations: int
    coupling: float | None
    score: float
    criterion: float
    left_over: float
    twins: tuple[int, ...]

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, steps: SmoothingSteps, iterates: Iterates) -> Standing:
        """The standing of a model at the λ that belongs to it."""
        at = steps.solver.linearised(iterates)
        coupling = steps.balanced(at)
        solver, data = replace(steps.solver, coupling=coupling), steps.solver.samples
        around = Surroundings.of(solver, solver.linearised(iterates))
        branches, both = iterates.W0.shape[1], data.has_jacobians and data.has_values
        score = score_at(data, coupling, around.misfit, float(around.freedom(branches).sum()))
        pairs = zip(at.misfits(), (data.entries.jacobians, data.entries.values), strict=True)
        left_over = max(float(one[0]) / max(entries, 1) for one, entries in pairs)
        return cls(
            around,
            branches,
            count_equations(data),
            coupling if both else None,
            score,
            steps.criterion(around, coupling),
            left_over,
            twins_in(iterates, around.alive),
        )

    @property
    def smoothing(self) -> Smoothing:
        """What was chosen, for the user."""
        freedom = self.around.freedom(self.branches)
        return Smoothing(freedom, self.coupling, 1.0 - float(freedom.sum()) / self.equations, self.score)

    def wants_knots(self) -> bool:
        """Whether a branch uses nearly all freedom it has, much is left over all the same, and data are enough."""
        alive = len(self.around.alive)
        unknowns = sum(len(part.N) for part in self.around.parts)
        if not alive or self.left_over < FOLLOWED or 2 * unknowns > MOST_UNKNOWNS or self.equations < 8 * unknowns:
            return False
        return float(self.around.freedom(self.branches).max()) > SATURATED * unknowns / alive

    @property
    def leaves_nothing(self) -> bool:
        """Whether what is left over is less than matters: then fewer branches are better, whatever the score is."""
        return self.left_over < FOLLOWED

    @property
    def hopeful(self) -> bool:
        """Whether the least branch may be one too many: not where it is the only one, nor where nothing is finite."""
        expected = self.expected()
        if expected - self.score <= HOPEFUL:
            return True
        return self.leaves_nothing and len(self.around.alive) > 1 and self.spare()

    def spare(self) -> bool:
        """Whether what is left over would still be less than matters without the least branch, to first order."""
        return float(self.around.misfit + self.around.losses().min()) / self.equations < FOLLOWED

    def least(self) -> int:
        """The number of the branch whose loss costs least."""
        return int(self.around.alive[np.argmin(self.around.losses())])

    @np.errstate(all="ignore")
    def expected(self) -> float:
        """The score without the least branch, to first order; infinite where there is only one."""
        if len(self.around.alive) < 2:
            return np.inf
        freedom, losses = self.around.freedom(self.branches), self.around.losses()
        total, own = float(freedom.sum()), float(freedom[self.least()])
        before = score_of(self.around.misfit, total, self.equations)
        return self.score - before + score_of(self.around.misfit + losses.min(), total - own, self.equations)


def twins_in(iterates: Iterates, alive: IndexArray) -> tuple[int, ...]:
    """The numbers of the two branches of a batch of one whose directions are closest, if they are within `TWINS`."""
    W0 = iterates.W0[0, alive]
    unit = W0 / np.maximum(row_lengths(W0), np.finfo(float).tiny)[:, None]
    cosines = np.triu(np.abs(unit @ unit.T), 1)
    if len(alive) < 2 or not cosines.max() > np.cos(np.deg2rad(TWINS)):
        return ()
    return tuple(int(alive[k]) for k in np.unravel_index(np.argmax(cosines), cosines.shape))


@np.errstate(all="ignore")
def without_smoothing(steps: SmoothingSteps, iterates: Iterates) -> Smoothing:
    """What stands for a choice where a model stays without penalties: all of its unknowns are free, λ is as it was.

    Nothing is believed of it where there are few numbers for each unknown: least squares then follows their noise.
    """
    at, data = steps.solver.linearised(iterates), steps.solver.samples
    coupling, both = steps.balanced(at), data.has_jacobians and data.has_values
    freedom = count_freedom(iterates)
    jacobian, values = (float(one[0]) for one in at.misfits())
    score = score_at(data, coupling, jacobian + coupling * values, float(freedom.sum()))
    left = 1.0 - float(freedom.sum()) / count_equations(data)
    return Smoothing(freedom, steps.solver.coupling if both else None, left, score if left > PLENTY else math.inf)


def count_freedom(iterates: Iterates) -> Array:
    """The unknowns of each branch (r,) without penalties: turns of w1 and w0, and coefficients but for the constant."""
    (n, r), m, K = iterates.W1.shape[1:], iterates.W0.shape[-1], iterates.a.shape[-1]
    return np.full(r, float(n - 1 + m - 1 + K - 1))


def score_at(data: SampleSet, coupling: float, misfit: float, freedom: float) -> float:
    """The score of a model of the samples whose misfit was measured at a λ."""
    equations = count_equations(data)
    score = score_of(misfit, freedom, equations)
    both = data.has_jacobians and data.has_values
    return score - data.entries.values / equations * math.log(coupling) if both else score


def score_of(misfit: float, freedom: float, equations: int) -> float:
    """log(misfit / E) - 2 γ log(1 - edf / E), infinite where there is too much freedom for it."""
    left = 1.0 - freedom / equations
    if not (left > 0.0 and np.isfinite(misfit)):
        return math.inf
    return math.log(max(misfit, 1e-300) / equations) - 2.0 * GAMMA * math.log(left)


def without_branch(iterates: Iterates, j: int) -> Iterates:
    """The same models with branch j zero, which Gauss–Newton steps leave as it is."""
    W1, a = iterates.W1.copy(), iterates.a.copy()
    W1[..., j], a[:, j] = 0.0, 0.0
    return replace(iterates, W1=W1, a=a)


def with_smooth_curves(iterates: Iterates, steps: SmoothingSteps) -> Iterates:
    """Models with the curves that penalties leave of theirs, all else staying: rough ones would turn directions far.

    That is a linear problem; there are several steps because each is damped, the first ones more.
    """
    fixed = replace(steps.solver, directions_fixed=True, weights_fixed=True, place_knots_at=frozenset())
    with np.errstate(all="ignore"):
        state = fixed.start(iterates)
        for _ in range(STEPS_OF_CURVES):
            state, _ = fixed.step(state)
    return state.iterates


def with_first_strengths(iterates: Iterates, steps: SmoothingSteps) -> Iterates:
    """Models with the strengths that the choice begins with: others may be far off, and make branches vanish."""
    assert isinstance(iterates.placement, PlacedSmoothing)
    strength = np.full((*iterates.W0.shape[:2], PENALTIES), FIRST_STRENGTH * steps.solver.samples.size)
    return replace(iterates, placement=replace(iterates.placement, strength=strength))
