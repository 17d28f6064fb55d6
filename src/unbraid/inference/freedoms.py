r"""Which part of a fitted model is known, and what can still move while the misfit stays within the noise.

The part of branch j in the outputs is c_j(x) = w1_j g_j(w0_j·x), up to a constant, and in the canonical form, up to a
line in w0_j·x. Unknowns θ (`inference.tangent`) that have the covariance σ² V⁻¹, V = Aᵀ A + τ P, are θ = Q z with
independent z of variance one, and move the parts, each relative to its own size at the samples, by

    M z,        M_j = (∂c_j / ∂θ) Q / ‖c_j‖.

A singular value of M is how far a combination of unknowns moves branches, relative to them, one standard error: noise
alone gives some thousandths. Where it is above `FREE` the data do not determine these branches: a *freedom*. Penalties
count by little, τ = `TRUSTED`, for a roughness that prefers one of many equal models does not make it the true one. A
combination that even exact data would leave open has an eigenvalue of V that is rounding.

A branch is straight where its remainder, without the line nearest to it, is below what the noise makes of as many
degrees of freedom as it uses. It is taken for a line then, and may turn as a line can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from unbraid.inference.linearised import noise_of
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.kernels.arrays import Array, spread_out
from unbraid.kernels.quadratics import unit_diagonal
from unbraid.metrics import angles_between
from unbraid.results.branch import FittedBranch
from unbraid.results.canonical import nearest_line
from unbraid.results.worth.freedom import Freedom, Kind
from unbraid.solvers.gauss_newton import DENSE_LIMIT

FREE = 0.15
"""Share of its own size by which a branch may move, one standard error, and still be known."""
TRUSTED = 0.01
"""τ, how much of the penalties counts as knowledge."""
FLAT, OPEN = 1e-12, 1e-24
"""Eigenvalues of V, of unit diagonal, that are rounding, and what stands for them."""
EXACT = 1e-6
"""Noise, as a share of the outputs, that is taken for granted: data are not known better, nor fits converged."""
ABOVE_NOISE = 9.0
"""Squares of a remainder, over those that noise makes of one degree of freedom, up to which it is noise."""
PARALLEL, PARABOLA = 5.0, 0.15
"""Degrees within which directions or mixes are the same; share of a remainder within which it is a parabola."""
UNBOUNDED = 1e3
"""Times its own size by which a branch moves where nothing but rounding holds it."""
INVOLVED = 0.1
"""Share of the largest move of a branch, in one combination, from which on others are part of it."""
MOST_SAMPLES = 2000
"""Samples, spread evenly, at which parts are looked at."""
WORK, FEWEST = 1e9, 50
"""Multiplications that are spent on the level of noise, and samples that it is taken from whatever that costs."""


@dataclass(frozen=True)
class Known:
    """What the data know of a fit: branches that are straight, from 0, and what can move."""

    straight: tuple[int, ...]
    freedoms: tuple[Freedom, ...]


class Mode(NamedTuple):
    """A combination of unknowns: how far it moves the part of each branch, turns directions, and moves outputs.

    `share` is that of the outputs' spread; `exact`: not even exact data would notice.
    """

    moves: Array
    degrees: Array
    share: float
    exact: bool


@np.errstate(all="ignore")  # of what is not finite nothing is told
def find_freedoms(around: Neighbourhood) -> Known | None:
    """What can move about a fitted model; None where there are too many unknowns to tell."""
    if not 0 < around.tangent.size <= DENSE_LIMIT or around.problem.S < 2:
        return None
    if not np.isfinite(around.data_matrix).all():
        return None
    most = int(max(FEWEST, WORK / (around.numbers * around.tangent.size**2)))
    some = np.sort(spread_out(around.problem.S, min(most, around.problem.S)))
    noise = np.sqrt(np.maximum(noise_of(around, some).variances, EXACT**2))
    if not np.isfinite(noise).all():
        return None
    lines = straight_branches(around, noise)
    around = with_lines(around, lines)
    sigma = max(float(np.sqrt(np.mean(noise**2))), EXACT)
    parts = Parts.of(around, sigma)
    if not np.isfinite(parts.root).all():
        return None
    bent = [k for k, one in enumerate(around.tangent.moves) if one.branch not in lines]
    free, space = parts.modes(bent, canonical=True, beside=None)
    others, _ = parts.modes(range(len(around.tangent.moves)), canonical=False, beside=space)
    found = [(kind_of(parts, mode), mode) for mode in free]
    turning = [k for k, one in enumerate(around.tangent.moves) if one.branch in lines]
    for mode in others:
        kind: Kind = "straight" if any(mode.moves[k] >= INVOLVED * mode.moves.max() for k in turning) else "lines"
        found.append((kind, only(mode, turning) if kind == "straight" else mode))
    return Known(lines, tuple(gathered(parts, found)))


def straight_branches(around: Neighbourhood, noise: Array) -> tuple[int, ...]:
    """The branches, from 0, whose remainder is within the noise of each kind of numbers, values and slopes."""
    tangent, units, problem = around.tangent, around.objective.units, around.problem
    weights, n = problem.weights, problem.n
    found = []
    for k, one in enumerate(tangent.moves):
        j, branch = one.branch, tangent.model.branches[one.branch]
        u = problem.X @ tangent.model.W0[j]
        _, slope, rest, spread = nearest_line(u, branch(u), weights)
        mix = (tangent.model.W1[:, j] / units.f_scale) ** 2
        squares = 0.0
        if problem.F is not None:
            squares += around.objective.coupling * rest**2 * float(np.sum(mix / noise[:n] ** 2))
        if problem.J is not None:
            steep = float(np.average((branch.derivative(u) - slope) ** 2, weights=weights))
            along = float(np.sum((tangent.model.W0[j] * units.x_scale) ** 2))
            squares += steep * along * float(np.sum(mix / noise[-n:] ** 2))
        freedom = float(np.sum(around.freedom[tangent.parts(k)[2]]))
        made = ABOVE_NOISE * (1.0 + max(freedom, 0.0))
        if squares * problem.S * around.standing_for <= made or rest <= EXACT * EXACT * spread:
            found.append(j)
    return tuple(found)


def with_lines(around: Neighbourhood, lines: Sequence[int]) -> Neighbourhood:
    """The same with branches that are straight as lines, exactly."""
    if not lines:
        return around
    model = around.tangent.model
    branches = list(model.branches)
    for j in lines:
        branch = branches[j]
        assert isinstance(branch, FittedBranch)
        u = around.problem.X @ model.W0[j]
        constant, slope, _, _ = nearest_line(u, branch(u), around.problem.weights)
        points = np.linspace(*branch.domain, 8 * len(branch.coordinates))
        a = np.asarray(np.linalg.lstsq(branch.design(points), constant + slope * points)[0], dtype=np.float64)
        branches[j] = FittedBranch(branch.basis, branch.placement, a, branch.reach)
    return replace(around, tangent=replace(around.tangent, model=model.changed(branches=branches)))


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of the branches in the outputs, in the units of the objective, at some samples X (S, m)."""

    around: Neighbourhood
    X: Array
    root: Array
    spread: Array

    @classmethod
    def of(cls, around: Neighbourhood, sigma: float) -> Parts:
        """Those of a neighbourhood, for noise of standard deviation σ."""
        problem = around.problem
        X = problem.X if problem.S <= MOST_SAMPLES else problem.X[np.sort(spread_out(problem.S, MOST_SAMPLES))]
        V = around.data_matrix + TRUSTED * around.penalty
        scale = unit_diagonal(V)
        values, vectors = np.linalg.eigh(V * scale[:, None] * scale)
        sizes = sigma / np.sqrt(np.where(values <= FLAT, OPEN, values))
        spread = np.std(around.tangent.model(X) / around.objective.units.f_scale, axis=0)
        return cls(around, X, scale[:, None] * vectors * sizes, np.where(spread > 0.0, spread, 1.0))

    def part(self, k: int, canonical: bool) -> tuple[Array, Array, float]:
        """What z does to the part of the k-th of the moves: along w1 (·, Z), turns of w1 (n, Z), its size.

        Rows are those of the samples but for a rotation, so that there are no more of them than unknowns.
        """
        tangent, units = self.around.tangent, self.around.objective.units
        one, (outer, inner, curves) = tangent.moves[k], tangent.parts(k)
        branch = tangent.model.branches[one.branch]
        assert isinstance(branch, FittedBranch)
        u = self.X @ tangent.model.W0[one.branch]
        values, slopes = branch(u), branch.derivative(u)
        line = np.stack([np.ones(len(u)), u], axis=1)
        if canonical:
            slopes = slopes - nearest_line(u, values, None)[1]
        frame = np.linalg.qr(line if canonical else line[:, :1])[0]
        rest = without(frame, values)
        length = float(np.linalg.norm(tangent.model.W1[:, one.branch] / units.f_scale))
        turned = slopes[:, None] * ((self.X - tangent.center) @ one.inner)
        bent = branch.design(u) @ one.curves
        short = np.linalg.qr(without(frame, np.concatenate([turned, bent], axis=1)), mode="r")
        along = short @ self.root[inner.start : curves.stop]
        size = float(np.linalg.norm(rest))
        return length * along, size * (one.outer / units.f_scale[:, None]) @ self.root[outer], length * size

    def modes(self, which: Iterable[int], canonical: bool, beside: Array | None) -> tuple[list[Mode], Array | None]:
        """Combinations that move some of the branches by more than `FREE`, beside those of a space (·, Z) of z.

        Also the space of z that these and the others span.
        """
        every = [(k, self.part(k, canonical)) for k in which]
        some = [(k, part) for k, part in every if part[2] > 0.0]
        if not some:
            return [], beside
        which, parts = [k for k, _ in some], [part for _, part in some]
        M = np.concatenate([np.concatenate([along, turns]) / size for along, turns, size in parts])
        if beside is not None:
            M = M - (M @ beside.T) @ beside
        _, sizes, vectors = np.linalg.svd(M, full_matrices=False)
        free = vectors[sizes > FREE]
        found = [self.mode(which, parts, z) for z in free]
        return found, free if beside is None else np.concatenate([beside, free])

    def mode(self, which: Sequence[int], parts: Sequence[tuple[Array, Array, float]], z: Array) -> Mode:
        """One combination z (Z,), by what it does."""
        tangent, units = self.around.tangent, self.around.objective.units
        moves, degrees = np.zeros(len(tangent.moves)), np.zeros(len(tangent.moves))
        outputs, relative = np.zeros(len(units.f_scale)), 0.0
        for k, (along, turns, size) in zip(which, parts, strict=True):
            one = tangent.moves[k]
            mix = tangent.model.W1[:, one.branch] / units.f_scale
            change, turn = along @ z, turns @ z
            moves[k] = np.sqrt(np.sum(change**2) + np.sum(turn**2))
            relative = max(relative, float(moves[k]) / size)
            outputs += (mix / np.linalg.norm(mix)) ** 2 * np.sum(change**2) / len(self.X) + turn**2 / len(self.X)
            w0 = tangent.model.W0[one.branch] * units.x_scale
            turned = (one.inner * units.x_scale[:, None]) @ (self.root[tangent.parts(k)[1]] @ z)
            degrees[k] = np.rad2deg(np.linalg.norm(turned) / np.linalg.norm(w0))
        return Mode(moves, degrees, float(np.max(np.sqrt(outputs) / self.spread)), relative > UNBOUNDED)


def without(frame: Array, values: Array) -> Array:
    """Values (S, ...) without what lies in an orthonormal frame (S, ·)."""
    return np.asarray(values - frame @ (frame.T @ values))


def only(mode: Mode, which: Sequence[int]) -> Mode:
    """The same mode, of some branches alone."""
    kept = np.isin(np.arange(len(mode.moves)), which)
    return mode._replace(moves=np.where(kept, mode.moves, 0.0), degrees=np.where(kept, mode.degrees, 0.0))


def involved(mode: Mode) -> list[int]:
    """The places of the branches that a mode moves."""
    return [int(k) for k in np.flatnonzero(mode.moves >= max(INVOLVED * mode.moves.max(), np.finfo(float).tiny))]


def kind_of(parts: Parts, mode: Mode) -> Kind:
    """Why a mode that moves bent branches is free."""
    tangent, units = parts.around.tangent, parts.around.objective.units
    places = involved(mode)
    branches = [tangent.moves[k].branch for k in places]
    if len(branches) < 2:
        return "open"
    inputs = angles_between(*2 * [tangent.model.W0[branches] * units.x_scale])
    outputs = angles_between(*2 * [(tangent.model.W1[:, branches] / units.f_scale[:, None]).T])
    pairs = ~np.eye(len(branches), dtype=bool)
    if np.all(np.min(np.where(pairs, inputs, 180.0), axis=1) <= PARALLEL):
        return "parallel"
    if np.all(outputs[pairs] <= PARALLEL) and all(is_parabola(parts, j) for j in branches):
        return "rotating"
    return "open"


def is_parabola(parts: Parts, j: int) -> bool:
    """Whether branch j is a parabola at the samples, nearly."""
    u = parts.X @ parts.around.tangent.model.W0[j]
    powers = np.stack([np.ones(len(u)), u, u**2], axis=1)
    rest = parts.around.tangent.model.branches[j](u)
    bent, more = (np.linalg.norm(without(np.linalg.qr(powers[:, :count])[0], rest)) for count in (2, 3))
    return bool(more <= PARABOLA * bent)


def gathered(parts: Parts, found: Sequence[tuple[Kind, Mode]]) -> Iterator[Freedom]:
    """Modes of one kind that move the same branches, or some of them, as one freedom."""
    tangent = parts.around.tangent
    groups: list[tuple[Kind, set[int], list[Mode]]] = []
    for kind, mode in found:
        places, modes = set(involved(mode)), [mode]
        for group in [one for one in groups if one[0] == kind and one[1] & places]:
            places, modes = places | group[1], modes + group[2]
            groups.remove(group)
        groups.append((kind, places, modes))
    for kind, places, modes in groups:
        order = sorted(places)
        degrees = tuple(float(max(mode.degrees[k] for mode in modes)) for k in order)
        share = np.inf if any(mode.exact for mode in modes) else max(mode.share for mode in modes)
        yield Freedom(kind, tuple(tangent.moves[k].branch for k in order), len(modes), degrees, share)
