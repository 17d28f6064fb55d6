r"""A fitted model to first order: what small changes θ of its unknowns do to values, slopes, branches and weights.

Unknowns of branch j are turns of w1_j, turns of w0_j, and coefficients,

    δw1_j = outer_j θ₁,        δw0_j = inner_j θ₀,        δa_j = curves_j θ_a,

then come the constants of the outputs. Lengths of w1_j and w0_j do not change: that of w0_j is a gauge, and that of
w1_j is one beside a_j; the constant of a branch is not among its coefficients where outputs have constants. Branches
turn around the centre c of the samples, their knots moving along, as they do for the solver:

    δf(x)   = Σ_j δw1_j g_j(u_j) + w1_j (g_j'(u_j) (x - c)·δw0_j + B_j(u_j) δa_j) + δb,
    δJ(x)   = Σ_j (δw1_j g_j' + w1_j (g_j'' (x - c)·δw0_j + B_j' δa_j)) w0_jᵀ + w1_j g_j' δw0_jᵀ.

All is in the user's units. Of branches whose column of W1 is zero nothing is an unknown.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.bases.smoothing import PlacedSmoothing
from unbraid.kernels.arrays import Array, even_blocks
from unbraid.kernels.gauge import row_lengths
from unbraid.kernels.ranges import beyond_ends
from unbraid.results.branch import FittedBranch, ParametricBranch
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.carrying import carrying
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.objective import Objective
from unbraid.solvers.local_models import turning_frames

AT_BOUND = 1e-12
"""Coordinates below this share of the largest are at their bounds, and do not move."""
MEAN_BLOCK = 1024
"""Samples at which branches are evaluated at once for means over them."""


class Moves(NamedTuple):
    """How the unknowns of one branch move it: outer (n, n - 1), inner (m, m - 1), curves (K, k)."""

    branch: int
    outer: Array
    inner: Array
    curves: Array

    @property
    def size(self) -> int:
        """How many unknowns the branch has."""
        return sum(part.shape[1] for part in self[1:])


class BranchPoints(NamedTuple):
    """A branch at some points: values, slopes and bends (S,), values and slopes by its coordinates (S, K)."""

    values: Array
    slopes: Array
    bends: Array
    design: Array
    slope_design: Array


@dataclass(frozen=True, eq=False)
class Tangent:
    """A model with the ways in which it can move; U unknowns.

    Attributes
    ----------
    model
        The model.
    center
        (m,), around which directions turn.
    moves
        Of every branch that carries something.
    offset
        Whether constants of outputs are the last n unknowns.
    """

    model: DecoupledModel
    center: Array
    moves: tuple[Moves, ...]
    offset: bool

    @classmethod
    def of(cls, model: DecoupledModel, objective: Objective, constraints: Sequence[Constraint | None]) -> Self:
        """The ways in which a fitted model can move without leaving its constraints at once."""
        units, alive = objective.units, carrying(model)
        V, w1 = model.W0 * units.x_scale, (model.W1 / units.f_scale[:, None]).T
        frames_in, frames_out = turning_frames(V)[..., 1:], turning_frames(w1)[..., 1:]
        lengths_in, lengths_out = row_lengths(V), row_lengths(w1)
        moves = []
        for j in map(int, alive):
            inner = frames_in[j] * (lengths_in[j] / units.x_scale)[:, None]
            outer = frames_out[j] * (lengths_out[j] * units.f_scale)[:, None]
            branch = model.branches[j]
            assert isinstance(branch, ParametricBranch)
            constraint = constraints[j] if j < len(constraints) else None
            moves.append(Moves(j, outer, inner, curve_moves(branch, constraint, objective.offset)))
        return cls(model, units.center, tuple(moves), objective.offset)

    @cached_property
    def places(self) -> list[slice]:
        """Where the unknowns of each of the `moves` are."""
        ends = np.cumsum([0, *(one.size for one in self.moves)])
        return [slice(int(low), int(high)) for low, high in itertools.pairwise(ends)]

    @property
    def size(self) -> int:
        """How many unknowns there are, U."""
        return sum(one.size for one in self.moves) + (self.model.n if self.offset else 0)

    def parts(self, k: int) -> tuple[slice, slice, slice]:
        """Where turns of w1, turns of w0 and coefficients of the k-th of the `moves` are."""
        first, one = self.places[k].start, self.moves[k]
        turned = first + one.outer.shape[1]
        bent = turned + one.inner.shape[1]
        return slice(first, turned), slice(turned, bent), slice(bent, self.places[k].stop)

    def at(self, X: Array) -> list[BranchPoints]:
        """The branches of the `moves` at points X (S, m)."""
        found = []
        for one in self.moves:
            branch = self.model.branches[one.branch]
            assert isinstance(branch, ParametricBranch)
            u = X @ self.model.W0[one.branch]
            below, above = beyond_ends(u, *branch.domain)
            found.append(points_of(branch, np.where(below | above, u, np.clip(u, *branch.domain))))
        return found

    def values(self, X: Array, at: Sequence[BranchPoints] | None = None) -> Array:
        """∂f/∂θ at points X (S, m), where branches are as they are or as told: (S, n, U)."""
        model = self.model
        rows = np.zeros((len(X), model.n, self.size))
        for k, (one, here) in enumerate(zip(self.moves, self.at(X) if at is None else at, strict=True)):
            w1, (outer, inner, curves) = model.W1[:, one.branch], self.parts(k)
            turned = (X - self.center) @ one.inner
            rows[..., outer] = here.values[:, None, None] * one.outer
            rows[..., inner] = w1[:, None] * (here.slopes[:, None] * turned)[:, None]
            rows[..., curves] = w1[:, None] * (here.design @ one.curves)[:, None]
        if self.offset:
            rows[..., self.size - model.n :] = np.eye(model.n)
        return rows

    def mean_values(self, X: Array, weights: Array) -> Array:
        """The weighted mean of ∂f/∂θ over points X (S, m), weights (S,) of sum 1: (n, U).

        Each branch is summed over samples before it is spread over outputs, so that no array has S n U entries.
        """
        model, mean = self.model, np.zeros((self.model.n, self.size))
        for block in even_blocks(len(X), MEAN_BLOCK):
            centred, w = X[block] - self.center, weights[block]
            for k, (one, here) in enumerate(zip(self.moves, self.at(X[block]), strict=True)):
                w1, (outer, inner, curves) = model.W1[:, one.branch], self.parts(k)
                mean[:, outer] += (w @ here.values) * one.outer
                mean[:, inner] += np.outer(w1, ((w * here.slopes) @ centred) @ one.inner)
                mean[:, curves] += np.outer(w1, (w @ here.design) @ one.curves)
        if self.offset:
            mean[:, self.size - model.n :] = np.eye(model.n) * weights.sum()
        return mean

    def slopes(self, X: Array, at: Sequence[BranchPoints] | None = None) -> Array:
        """∂J/∂θ at points X (S, m), where branches are as they are or as told: (S, n, m, U)."""
        model = self.model
        rows = np.zeros((len(X), model.n, model.m, self.size))
        for k, (one, here) in enumerate(zip(self.moves, self.at(X) if at is None else at, strict=True)):
            w1, w0, (outer, inner, curves) = model.W1[:, one.branch], model.W0[one.branch], self.parts(k)
            turned, slope = (X - self.center) @ one.inner, here.slopes[:, None, None, None]
            along = (w1[:, None] * w0)[..., None]  # (n, m, 1)
            rows[..., outer] = slope * (one.outer[:, None, :] * w0[:, None])
            rows[..., inner] = (here.bends[:, None] * turned)[:, None, None] * along
            rows[..., inner] += slope * (w1[:, None, None] * one.inner)
            rows[..., curves] = (here.slope_design @ one.curves)[:, None, None] * along
        return rows

    def moved(self, theta: Array) -> DecoupledModel:
        """The model after finite changes θ (U,), rows of W0 turning around the centre; for few, small ones.

        Branches keep their knots in units that turn along: u becomes the new w0·x less what the centre has moved by.
        """
        model = self.model
        W0, W1, bias, branches = model.W0.copy(), model.W1.copy(), model.bias.copy(), list(model.branches)
        for k, one in enumerate(self.moves):
            outer, inner, curves = self.parts(k)
            j, turn = one.branch, one.inner @ theta[inner]
            W0[j] += turn
            W1[:, j] += one.outer @ theta[outer]
            branch = branches[j]
            assert isinstance(branch, ParametricBranch)
            branches[j] = branch.shifted(float(self.center @ turn), branch.coordinates + one.curves @ theta[curves])
        if self.offset:
            bias += theta[self.size - model.n :]
        return model.changed(W0=W0, W1=W1, branches=branches, bias=bias)


def count_unknowns(model: DecoupledModel, offset: bool) -> int:
    """How many unknowns the tangent of a model has, at most: to be asked before it is made, where inputs are many."""
    alive = [model.branches[j] for j in carrying(model)]
    sizes = [len(branch.coordinates) for branch in alive if isinstance(branch, ParametricBranch)]
    return sum(model.n - 1 + model.m - 1 + size for size in sizes) + model.n * offset


def points_of(branch: ParametricBranch, u: Array) -> BranchPoints:
    """A branch at u (S,)."""
    design, slope_design = branch.design(u), branch.design(u, 1)
    return BranchPoints(branch(u), branch.derivative(u), branch.derivative(u, 2), design, slope_design)


def curve_moves(branch: ParametricBranch, constraint: Constraint | None, offset: bool) -> Array:
    """The ways (K, k) in which the coefficients of a branch can move.

    In coordinates in which nothing is lost to rounding where penalties are strong; without the constant where outputs
    have theirs, and without what is at the bounds of its constraint.
    """
    if isinstance(branch, FormulaBranch):
        every = np.arange(len(branch.coordinates))
        return np.eye(len(every))[:, every != branch.constant] if offset else np.eye(len(every))
    assert isinstance(branch, FittedBranch)
    placement, a = branch.placement, branch.coordinates
    K, projection = len(a), Projection.onto((constraint,), offset)
    bounded = projection.bounded(K)[0]
    if bounded.any():
        batch = placement.select((None, None))
        z = projection.shape_coordinates(batch, a[None, None])[0, 0]
        free = ~bounded | (z > AT_BOUND * np.abs(z).max(initial=0.0))
        free[0] &= not offset
        return np.asarray(projection.shape_matrices(batch, 1, 1, K)[0, 0][:, free])
    if not offset:
        return np.eye(K)
    if isinstance(placement, PlacedSmoothing):
        return np.asarray(placement.rough_coordinates.T[:, 1:])
    constant = placement.plus(np.zeros(K), np.array(1.0))
    return np.asarray(turning_frames(constant[None])[0][:, 1:])
