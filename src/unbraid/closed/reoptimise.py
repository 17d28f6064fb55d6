r"""All unknowns of a model, parameters of formulas among them, re-optimised on the data, and what that is worth.

Levenberg and Marquardt's steps (V + μ diag V) θ = Aᵀ ρ - P a in the unknowns of `inference.tangent`; penalties of
curves stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unbraid.inference.importance.without import held_out_error
from unbraid.inference.leave_one_out import chosen_samples, leave_out
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.inference.steps import descent, objective_of
from unbraid.inference.tangent import Tangent
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.objective import Objective

STEPS, STILL, ENOUGH = 100, 1e-10, 3
"""Steps at most, and the share of the objective that so many steps in a row gain less than at the end."""
FIRST, LARGEST = 1e-3, 1e8
"""The damping μ to begin with, and the one from which on nothing is to be gained."""
CHANCE = 1e-3
"""The chance that a model with true forms is taken for a worse one, by an F test and on samples that are left out."""
RESOLUTION = 1e-7
"""Share of the size of numbers that counts as nothing: rounding, and what solvers leave."""


@dataclass(frozen=True, eq=False)
class Reference:
    """A fit, against which models with formulas are measured.

    Attributes
    ----------
    around
        The fit and its samples.
    fitted
        Whether it is known how the model was fitted. If not, its smoothing and the degrees of freedom of its curves are
        not known either, and nothing can be said of samples left out.
    """

    around: Neighbourhood
    fitted: bool = True

    @cached_property
    def left(self) -> float:
        """The sum of squares that the fit leaves."""
        return float(self.squares(self.around.residuals()).sum())

    @cached_property
    def floor(self) -> float:
        """A sum of squares that counts as nothing."""
        problem, parts = self.around.problem, []
        if problem.F is not None:
            known = np.maximum(np.count_nonzero(~np.isnan(problem.F), axis=0), 1)
            parts.append(problem.F - np.nansum(problem.F, axis=0) / known)
        if problem.J is not None:
            parts.append(problem.J.reshape(problem.S, -1))
        return RESOLUTION**2 * float(self.squares(np.concatenate(parts, axis=1)).sum())

    @cached_property
    def freedom(self) -> float:
        """The degrees of freedom that the fit uses."""
        return float(self.around.freedom.sum())

    @cached_property
    def left_out(self) -> Array:
        """The squares that the fit leaves of samples that are left out one at a time."""
        return self.squares_left_out(self.around)

    @cached_property
    def held_out(self) -> float:
        """The held-out error of the worst output, in %."""
        return float(np.max(held_out_error(self.around)))

    def squares(self, rows: Array, which: IndexArray | slice = slice(None)) -> Array:
        """The weighted squares of numbers (S, q) of samples, (S,); NaN counts for nothing."""
        return np.asarray(np.nansum((rows * self.around.scales(rows, which)) ** 2, axis=1))

    def squares_left_out(self, there: Neighbourhood) -> Array:
        """What a model leaves of samples when each is left out, as squares; when none is, if the fit is not known."""
        if not self.fitted:
            return self.squares(there.residuals())
        nowhere = np.zeros(there.problem.S, dtype=bool)
        left = leave_out(there, chosen_samples(self.around, nowhere), nowhere)
        return self.squares(left.residual, left.which)

    def moved_by(self, there: Neighbourhood, j: int) -> tuple[float, float]:
        """How far outputs of a model are from the fit's, mean and largest, in % of the spread of what branch j adds."""
        fit, X, unit = self.around.tangent.model, self.around.problem.X, self.around.objective.units.f_scale
        both = np.outer(fit.branches[j](X @ fit.W0[j]), fit.W1[:, j]), there.tangent.model(X) - fit(X)
        own, off = (np.linalg.norm((one - one.mean(axis=0)) / unit, axis=1) for one in both)
        size = 100.0 / max(float(np.sqrt(np.mean(own**2))), np.finfo(float).tiny)
        return size * float(np.sqrt(np.mean(off**2))), size * float(off.max())

    def score(self, there: Neighbourhood, size: int) -> float:
        """Schwarz's criterion of a model with a form of so many free parameters."""
        N = np.count_nonzero(~np.isnan(self.around.residuals()))
        return N * float(np.log((self.left_by(there) + self.floor) / N)) + size * float(np.log(N))

    def left_by(self, there: Neighbourhood) -> float:
        """The sum of squares that a model leaves of the same samples; infinite where it has no value at one."""
        if not (np.isfinite(defined_objective(there)) and np.isfinite(there.data_matrix).all()):
            return np.inf
        return float(self.squares(there.residuals()).sum())

    def allows(self, there: Neighbourhood) -> bool:
        """Whether a model is no worse than the fit but for chance, on the samples and on those that are left out."""
        from scipy.special import fdtrc, ndtri

        left = self.left_by(there)
        if not np.isfinite(left):
            return False
        least = min(left, self.left)
        more = max(self.freedom - float(there.freedom.sum()), 1.0)
        spare = max(np.count_nonzero(~np.isnan(self.around.residuals())) - self.freedom, 1.0)
        if not fdtrc(more, spare, (left - least) / more / ((least + self.floor) / spare)) > CHANCE:
            return False
        grown = self.squares_left_out(there) - self.left_out
        uncertain = -ndtri(CHANCE) * float(grown.std()) / np.sqrt(len(grown))
        return bool(grown.mean() <= uncertain + self.floor / self.around.problem.S)


def reoptimise(
    around: Neighbourhood, model: DecoupledModel, steps: int = STEPS, still: float = STILL, *, fitted: bool = True
) -> Neighbourhood:
    """The neighbourhood of a model after its steps, on the samples of another one; curves stay if not fitted here."""
    with np.errstate(all="ignore"):
        here = replace(around, tangent=tangent_of(model, around.objective, fitted))
        value, damping, idle = defined_objective(here), FIRST, 0
        for _ in range(steps):
            V, b = here.data_matrix + here.penalty, descent(here)
            moved, lower = None, np.inf
            while not lower < value and damping <= LARGEST:
                moved, lower = after_step(here, V, b, damping, fitted)
                damping *= 0.1 if lower < value else 6.0
            if moved is None or not lower < value:
                break
            idle = idle + 1 if value - lower < still * value else 0
            here, value, damping = moved, lower, max(damping, 1e-12)
            if idle == ENOUGH:
                break
        return here if fitted else replace(here, tangent=Tangent.of(here.tangent.model, here.objective, ()))


def tangent_of(model: DecoupledModel, objective: Objective, fitted: bool) -> Tangent:
    """The ways in which a model can move, without those of curves whose smoothing is not known."""
    every = Tangent.of(model, objective, ())
    if fitted:
        return every
    held = [not isinstance(model.branches[one.branch], FormulaBranch) for one in every.moves]
    moves = [
        one._replace(curves=one.curves[:, :0]) if stays else one for one, stays in zip(every.moves, held, strict=True)
    ]
    return replace(every, moves=tuple(moves))


def after_step(
    here: Neighbourhood, V: Array, b: Array, damping: float, fitted: bool
) -> tuple[Neighbourhood | None, float]:
    """The neighbourhood after a step with some damping, and its objective; infinite where there is no such step."""
    size = np.sqrt(np.maximum(np.diag(V), 0.0))
    size = np.where(size > 0.0, size, 1.0)
    scaled = V / np.outer(size, size)
    scaled[np.diag_indices_from(scaled)] += damping + 1e-13
    theta = np.linalg.solve(scaled, b / size) / size
    if not np.isfinite(theta).all():
        return None, np.inf
    there = replace(here, tangent=tangent_of(here.tangent.moved(theta), here.objective, fitted))
    return there, defined_objective(there)


def defined_objective(around: Neighbourhood) -> float:
    """What is minimised; infinite where a formula has no value at a sample."""
    model, X = around.tangent.model, around.problem.X
    defined = all(np.isfinite(branch(X @ w0)).all() for branch, w0 in zip(model.branches, model.W0, strict=True))
    return objective_of(around) if defined else np.inf
