"""Algorithm 3 of CMTF-BSD (docs/method.md): the branches' functions nearest to given slopes G and values R.

For every branch j,  min over c_j of ‖G_j - B_j c_j‖² + λ ‖R_j - B̃_j c_j‖², with c_j in a cone if the
branch is constrained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from unbraid.bases import NormalEquations, Placement
from unbraid.bases.constraints import Constraint, NonNegative
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.quadratics import minimise, minimise_nonnegative

TIE_BREAK = 1e-13
"""Relative ridge on roughness; decides only coefficients that the data do not determine."""


class Targets(NamedTuple):
    """Slopes G and values R to come near to, as sums over samples: those of two blocks add up.

    `sums` are the placement's `normal_sums`, `values` (starts, r) the sum of R, `weight` that of the samples' weights;
    `square` (starts, r), the sum of G² + λ R², and `equations`, how many these are, belong to penalties whose strength
    is open.
    """

    sums: Any
    values: Array
    weight: float
    square: Array | None
    equations: int


def targets(
    placement: Placement, at: Any, G: Array, R: Array | None, coupling: float, weight: Array | None = None
) -> Targets:
    """The sums of slopes G and values R, (starts, r, S), over prepared samples of weights (S,)."""
    S = G.shape[-1]
    values = np.zeros(G.shape[:-1]) if R is None else R.sum(axis=-1) if weight is None else R @ weight
    square = None
    if placement.penalty_open:
        one = np.ones(S) if weight is None else weight
        square = (G * G) @ one + (0.0 if R is None else coupling * ((R * R) @ one))
    sums = placement.normal_sums(at, G, R, coupling, weight)
    total = float(S) if weight is None else float(weight.sum())
    return Targets(sums, values, total, square, S if R is None else 2 * S)


@dataclass(frozen=True)
class Projection:
    """Least squares per branch, with the branches grouped by their constraint."""

    constraints: tuple[Constraint | None, ...]
    groups: tuple[tuple[Constraint | None, tuple[int, ...]], ...]

    @classmethod
    def onto(cls, constraints: Sequence[Constraint | None], offset: bool = False) -> Self:
        """The projection for one constraint (or None) per branch.

        With a free output `offset` any branch can be shifted up afterwards, so `NonNegative` is not asked for here.
        """
        if offset:
            constraints = [None if isinstance(one, NonNegative) else one for one in constraints]
        members: dict[Constraint | None, list[int]] = {}
        for branch, constraint in enumerate(constraints):
            members.setdefault(constraint, []).append(branch)
        return cls(tuple(constraints), tuple((c, tuple(branches)) for c, branches in members.items()))

    def __call__(
        self, placement: Placement, at: Any, G: Array, R: Array | None, coupling: float, weight: Array | None = None
    ) -> Array:
        """Coordinates (starts, r, K) of the nearest functions; G and R are (starts, r, S), weights of samples (S,)."""
        to = targets(placement, at, G, R, coupling, weight)
        return self.nearest(placement, to, 0.0 if R is None else coupling)

    def nearest(self, placement: Placement, to: Targets, coupling: float) -> Array:
        """Coordinates (starts, r, K) of the nearest functions, from sums over all samples; λ is 0 without values."""
        penalty, normal = placement.penalty(), placement.assembled(to.sums, coupling)
        if penalty is None and to.square is not None:
            N, b = normal.gram[..., None, :, None, :], normal.right[..., None, :]
            chosen = placement.chosen_penalty(N, b, to.square, to.equations)
            penalty = None if chosen is None else chosen[..., 0, :, :]
        return self.solve(placement, normal, to.weight, to.values / to.weight, penalty)

    def solve(
        self, placement: Placement, normal: NormalEquations, weight: float, mean_value: Array, penalty: Array | None
    ) -> Array:
        """Coordinates (starts, r, K) that solve the normal equations of every branch under its constraint.

        `weight` is that of all samples, `mean_value` (starts, r) the mean of R, `penalty` P (starts, r, K, K) or None.
        """
        a = np.empty_like(normal.right)
        for constraint, branches in self.groups:
            some = (slice(None), slice(None) if len(self.groups) == 1 else list(branches))
            part = NormalEquations(*(array[some] for array in normal))
            own = None if penalty is None else penalty[some]
            a[some] = solve_group(placement.select(some), part, weight, mean_value[some], own, constraint)
        return a

    def solve_together(self, placement: Placement, N: Array, b: Array) -> Array:
        """Coordinates a (starts, r, K) of least ½ aᵀ N a - bᵀ a over all branches at once, under their constraints.

        N is (starts, r, K, r, K), positive definite, b (starts, r, K).
        """
        B, r, K = b.shape
        bounded = self.bounded(K)
        if not bounded.any():
            return minimise(N.reshape(B, r * K, r * K), b.reshape(B, r * K)).reshape(B, r, K)
        T = self.shape_matrices(placement, B, r, K)
        A = np.einsum("brkz,brklm,blmw->brzlw", T, N, T, optimize=True).reshape(B, r * K, r * K)
        right = (T.mT @ b[..., None]).reshape(B, r * K)
        z = minimise_nonnegative(A, right, ~bounded.ravel()).reshape(B, r, K)
        return np.asarray((T @ z[..., None])[..., 0], dtype=np.float64)

    def shape_matrices(self, placement: Placement, B: int, r: int, K: int) -> Array:
        """The matrices T (B, r, K, K) with a = T z, z being the coordinates in which constraints read z ≥ 0."""
        T = np.broadcast_to(np.eye(K), (B, r, K, K)).copy()
        for constraint, branches in self.groups:
            if constraint is not None:
                some = (slice(None), list(branches))
                sign = np.where(np.arange(K) < constraint.order, 1.0, float(constraint.sign))
                T[some] = placement.select(some).integration_matrix(constraint.order) * sign
        return T

    def feasible(self, placement: Placement, z: Array) -> Array:
        """Coordinates a (starts, r, K) of functions that obey the constraints, from any numbers z of that shape."""
        return self.from_shape_coordinates(placement, np.where(self.bounded(z.shape[-1]), np.abs(z), z))

    def bounded(self, size: int) -> BoolArray:
        """Which of the coordinates z (r, K) a constraint keeps from being negative."""
        orders = [size if constraint is None else constraint.order for constraint in self.constraints]
        return np.arange(size) >= np.array(orders)[:, None]

    def shape_coordinates(self, placement: Placement, a: Array) -> Array:
        """The coordinates z (starts, r, K) in which constraints read z ≥ 0, less rounding errors below zero."""
        z = a.copy()
        for constraint, branches in self.groups:
            if constraint is not None:
                some = (slice(None), list(branches))
                shape = placement.select(some).differentiate(a[some], constraint.order)
                shape[..., constraint.order :] = np.maximum(constraint.sign * shape[..., constraint.order :], 0.0)
                z[some] = shape
        return z

    def from_shape_coordinates(self, placement: Placement, z: Array) -> Array:
        """The inverse of `shape_coordinates`, for z ≥ 0 exactly feasible."""
        a = z.copy()
        for constraint, branches in self.groups:
            if constraint is not None:
                some = (slice(None), list(branches))
                shape = z[some]
                shape[..., constraint.order :] *= constraint.sign
                a[some] = placement.select(some).integrate(shape, constraint.order)
        return a

    def leaky(self, u: Array) -> tuple[Array, Array]:
        """Slopes and values, (starts, r, S), that stand in for a branch without any slope.

        The paper replaces g' by the LeakyReLU with "negative slope -0.5": g' = max(u, -u/2) ≥ 0, so that g
        increases. Decreasing and concave branches take its negative.
        """
        sign = np.array([1.0 if c is None else c.sign for c in self.constraints])[:, None]
        return sign * np.maximum(u, -0.5 * u), sign * np.where(u > 0.0, 0.5, -0.25) * u * u

    def replace_constant(
        self, placement: Placement, a: Array, stand_in: Callable[[], Targets], coupling: float
    ) -> tuple[Array, BoolArray]:
        """Put the projection of the `leaky` stand-in where a branch came out constant; say where that was."""
        constant: BoolArray = placement.is_constant(a)
        if not constant.any():
            return a, constant
        return np.where(constant[..., None], self.nearest(placement, stand_in(), coupling), a), constant


def solve_group(
    placement: Placement,
    normal: NormalEquations,
    weight: float,
    mean_value: Array,
    penalty: Array | None,
    constraint: Constraint | None,
) -> Array:
    """Coordinates that solve the normal equations, which are overwritten, of branches that share one constraint."""
    gram, right, mean = normal.gram, normal.right, normal.total / weight
    size = right.shape[-1]
    level = np.einsum("...kk->...", gram)[..., None, None] / size
    gram += (TIE_BREAK * level) * placement.roughness()
    if constraint is None or constraint.order > 0:
        # A constant costs nothing in the slopes. Its best value is known, mean(g) = mean(R), and saying
        # so in a term of the size of the others keeps the system well conditioned for small λ and for λ = 0.
        pin = mean * (level[..., 0] / np.sum(mean * mean, axis=-1, keepdims=True))
        gram += pin[..., :, None] * mean[..., None, :]
        right += pin * mean_value[..., None]
    if penalty is not None:
        gram += penalty
    if constraint is None:
        return minimise(gram, right)
    order, free = constraint.order, np.arange(size) < constraint.order
    sign = np.where(free, 1.0, float(constraint.sign))
    T = placement.integration_matrix(order) * sign
    z = minimise_nonnegative(T.mT @ gram @ T, (T.mT @ right[..., None])[..., 0], free)
    return placement.integrate(sign * z, order)
