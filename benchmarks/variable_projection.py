r"""Is it better to eliminate the coefficients? Variable projection against Gauss–Newton on everything, in the polish.

    python benchmarks/variable_projection.py [draws]

Given W0 and W1 all coefficients a are one linear least squares problem, so only directions need to be searched for.
Kaufman's form of that is a Gauss–Newton step on (W1, W0, a) whose damping spares a, that is, a damped step with the
Schur complement of a, followed by the best a at the new directions.

A row is a system and a solver, with the same draws and seeds for every solver: in how many draws it succeeds (Error(J)
< 1e-20 where the truth is in the spline space, else an objective within 2 % of the best of all solvers and of
Gauss–Newton from the truth), and medians of the objective, of CPU seconds per fit and of the steps of the best start.
On scheduled knots no start counts as converged before the last placement, so that inexact fits take at least 36 steps;
with moving knots, placed anew at every step, there is nothing to wait for. Of exact fits the best start is the one with
the smallest rounding errors, so that their steps are as good as those of any start that was exact.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

import unbraid as ub
from unbraid.fitting import fit_rank
from unbraid.kernels import quadratics
from unbraid.kernels.arrays import Array, BoolArray, blocks
from unbraid.kernels.gauge import row_lengths
from unbraid.methods.alternating import SEARCH_SWEEPS
from unbraid.solvers.gauss_newton import MOST_DAMPING, GaussNewton, GaussNewtonState
from unbraid.solvers.iterates import Iterates
from unbraid.solvers.linearised import Linearised, together
from unbraid.solvers.local_models import turning_frames

SPARED = 1e-12
"""Relative damping of the coefficients, for the constants that an output offset leaves open."""


@dataclass(frozen=True)
class VariableProjection(GaussNewton):
    """Steps on W1 and W0 alone, with the best coefficients at each; for branches without constraints."""

    def start(self, iterates: Iterates) -> GaussNewtonState:
        """Begin at given directions."""
        return super().start(self.eliminated(iterates))

    def placed_anew(self, iterates: Iterates) -> Iterates:
        """Knots placed on today's u, and the best coefficients on them."""
        return self.eliminated(super().placed_anew(iterates))

    def refitted(self, iterates: Iterates) -> Iterates:
        """What a step goes to, from where it leads to first order."""
        return self.eliminated(iterates)

    def eliminated(self, iterates: Iterates) -> Iterates:
        """The same directions and knots with the best coefficients, solved for by their change, which rounds less."""
        at = self.linearised(iterates)
        B, r, K = iterates.a.shape
        A, b = coefficient_matrix(at), at.descent()[..., -K:].reshape(B, r * K)
        s = quadratics.unit_diagonal(A)
        A *= s[:, :, None] * s[:, None, :]
        np.einsum("bpp->bp", A)[...] += SPARED
        change = quadratics.minimise(A, b * s) * s
        return Iterates(iterates.W0, iterates.W1, iterates.placement, iterates.a + change.reshape(B, r, K))

    def _trial(self, state: GaussNewtonState) -> tuple[Iterates, Array]:
        it, model = state.iterates, state.model
        (B, n, r), m = it.W1.shape, it.W0.shape[-1]
        counts = model.diagonal > 1e-14 * model.diagonal.max(axis=-1, keepdims=True)
        scale = np.where(counts, 1.0 / np.sqrt(np.where(counts, model.diagonal, 1.0)), 0.0).reshape(B, r, -1)
        scale[..., n + m :] *= np.sqrt(np.maximum(state.damping / SPARED, 1.0))[:, None, None]
        if self.directions_fixed:
            scale[..., n : n + m] = 0.0
        flat = model.minimiser(state.damping, scale.reshape(B, -1), None)
        promised = np.sum(flat * (2.0 * model.descent - model.product(flat)), axis=-1)
        delta = flat.reshape(B, r, -1)
        W0 = it.W0 + (turning_frames(it.W0) @ delta[..., n : n + m, None])[..., 0]
        W0 *= (row_lengths(it.W0) / row_lengths(W0))[..., None]
        there = Iterates(W0, it.W1 + delta[..., :n].mT, it.placement, it.a + delta[..., n + m :])
        return self.refitted(there), promised


@dataclass(frozen=True)
class MovingVariableProjection(VariableProjection):
    """Knots are placed anew at every step, the coefficients being solved for anyway."""

    def refitted(self, iterates: Iterates) -> Iterates:
        """What a step goes to, from where it leads to first order."""
        return self.eliminated(iterates) if self.directions_fixed else self.placed_anew(iterates)

    def settled(self, state: GaussNewtonState) -> BoolArray:
        """Whether a step was made: there is no schedule to wait for."""
        return at_rest(state)


@dataclass(frozen=True)
class MovingGaussNewton(GaussNewton):
    """Knots are placed anew at every step without solving for the coefficients: what moving them gains by itself."""

    def settled(self, state: GaussNewtonState) -> BoolArray:
        """Whether a step was made: there is no schedule to wait for."""
        return at_rest(state)

    def _trial(self, state: GaussNewtonState) -> tuple[Iterates, Array]:
        there, promised = super()._trial(state)
        return there if self.directions_fixed else self.placed_anew(there), promised


def at_rest(state: GaussNewtonState) -> BoolArray:
    """Whether the last step was not taken back, or none can be made."""
    return state.moved | (state.damping >= MOST_DAMPING)


def coefficient_matrix(at: Linearised) -> Array:
    """The coefficients' part of the Gauss–Newton matrix, (B, r K, r K)."""
    placement, samples = at.iterates.placement, at.samples.gathered()
    u = at.iterates.W0 @ samples.X.T
    (B, r, S), K = u.shape, at.iterates.a.shape[-1]
    slopes, values, mean = np.zeros((B, r * K, r * K)), np.zeros((B, r * K, r * K)), np.zeros((B, r * K))
    for part in blocks(S, 4 * r * K):
        if samples.J is not None:
            add_grams(slopes, together(placement.design(u[..., part], 1).swapaxes(1, 2)))
        if samples.F is not None:
            design = together(placement.design(u[..., part]).swapaxes(1, 2))
            add_grams(values, design)
            mean += design.sum(axis=1) / S
    if at.offset:
        values -= S * mean[:, :, None] * mean[:, None, :]
    W0, W1 = at.iterates.W0, at.iterates.W1
    M1, M0 = W1.mT @ W1, W0 @ W0.mT
    result = slopes.reshape(B, r, K, r, K) * (M1 * M0)[:, :, None, :, None]
    result += values.reshape(B, r, K, r, K) * (at.coupling * M1)[:, :, None, :, None]
    return result.reshape(B, r * K, r * K)


def add_grams(total: Array, designs: Array) -> None:
    """Add DᵀD of each design D, in place; one at a time, so that BLAS knows that it is symmetric."""
    for sums, D in zip(total, designs, strict=True):
        sums += D.T @ D


SOLVERS: dict[str, type[GaussNewton]] = {
    "Gauss–Newton": GaussNewton,
    "Gauss–Newton, moving knots": MovingGaussNewton,
    "variable projection": VariableProjection,
    "variable projection, moving knots": MovingVariableProjection,
}


@dataclass(frozen=True)
class System:
    """What a row is about; `exact`: the truth is in the spline space."""

    name: str
    rank: int
    draw: Callable[[int], tuple[ub.Problem, ub.DecoupledModel | None]]
    df: int = 12
    exact: bool = False
    sweeps: int = SEARCH_SWEEPS
    starts: int = 16

    def fit(self, problem: ub.Problem, seed: int, solver: type[GaussNewton]) -> ub.Fit:
        """A fit whose polish is done by the given solver."""
        method = ub.methods.default(max_sweeps=self.sweeps, tolerance=0.0)
        with patch.object(fit_rank, "GaussNewton", solver):
            return ub.decouple(
                problem, self.rank, basis=ub.BSpline(self.df), method=method, starts=self.starts, rng=seed
            )


def random(n: int, m: int, r: int, S: int, kind: str, df: int = 12) -> System:
    """A random system."""

    def draw(seed: int) -> tuple[ub.Problem, ub.DecoupledModel]:
        return ub.datasets.random_system(n, m, r, S, "cubic" if kind == "cubic" else "sine", seed)

    return System(f"{kind}, {n}, {m}, {r}, {S}", r, draw, df, exact=kind == "cubic")


def decuyper(seed: int) -> tuple[ub.Problem, ub.DecoupledModel]:
    """Decuyper's toy."""
    return ub.datasets.decuyper(rng=seed)


def dreesen(seed: int) -> tuple[ub.Problem, None]:
    """Dreesen's second example."""
    return ub.datasets.dreesen_b(rng=seed)


def trig(seed: int) -> tuple[ub.Problem, ub.DecoupledModel]:
    """The paper's f_trig."""
    return ub.datasets.trig(rng=seed)


SYSTEMS = (
    System("Decuyper", 3, decuyper, exact=True),
    System("Dreesen b", 4, dreesen, exact=True),
    random(2, 2, 3, 100, "cubic", 8),
    random(3, 3, 5, 200, "cubic", 8),
    random(3, 3, 7, 300, "cubic", 8),
    System("f_trig, df 12", 3, trig),
    System("f_trig, df 20", 3, trig, df=20),
    random(5, 5, 8, 300, "sine"),
    random(10, 10, 10, 500, "sine"),
    System("Decuyper, 1 sweep", 3, decuyper, exact=True, sweeps=1),
    System("Decuyper, 1 sweep, 3 starts", 3, decuyper, exact=True, sweeps=1, starts=3),
    System("f_trig, df 12, 1 sweep", 3, trig, sweeps=1),
)


def compare(system: System, draws: int) -> None:
    """Print the rows of one system."""
    fits: dict[str, list[ub.Fit]] = {name: [] for name in SOLVERS}
    seconds: dict[str, list[float]] = {name: [] for name in SOLVERS}
    lowest = np.full(draws, np.inf)
    for draw in range(draws):
        problem, truth = system.draw(draw)
        if not system.exact:
            lowest[draw] = ub.decouple(problem, system.rank, basis=ub.BSpline(system.df), init=truth).objective
        for name, solver in SOLVERS.items():
            began = time.process_time()
            fits[name].append(system.fit(problem, 1000 + draw, solver))
            seconds[name].append(time.process_time() - began)
            lowest[draw] = min(lowest[draw], fits[name][-1].objective)
    for name, found in fits.items():
        objectives = np.array([fit.objective for fit in found])
        errors = np.array([fit.jacobian_error for fit in found], dtype=np.float64)
        good = int(np.sum(errors < 1e-20 if system.exact else objectives <= 1.02 * lowest))
        steps = np.median([fit.trace.sweeps - system.sweeps for fit in found])
        print(
            f"| {system.name} | {name} | {good} of {draws} | {np.median(objectives):.2e} "
            f"| {np.median(seconds[name]):.2f} | {steps:.0f} |",
            flush=True,
        )


def main() -> None:
    """Print the table, one row a system and solver."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print("| system | polish | succeeds | objective | CPU s per fit | steps |\n|---|---|---|---|---|---|")
    for system in SYSTEMS:
        compare(system, draws)


if __name__ == "__main__":
    main()
