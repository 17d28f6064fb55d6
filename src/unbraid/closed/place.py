r"""What the data say of a form in place of a curve, all else following to first order.

With ρ what the model leaves of the samples, A the rows of ∂/∂θ of all unknowns but the coefficients of branch j
(`inference.tangent`), C the roots of the penalties of other branches, and E the linear map from a function δ of u_j to
the rows of values w1_j δ(u_j) and slopes w1_j δ'(u_j) w0_jᵀ, a form h_p in place of the curve g_j leaves

    min_θ ‖ρ + E g_j - E h_p - A θ‖² + ‖C (a + θ)‖²  =  ‖M (ρ + E g_j - E h_p)‖²,

M being the projection that takes away what θ can follow. This is minimised over the parameters p by Levenberg and
Marquardt's steps. Forms are compared by N log(RSS / N) + (free parameters) log N, Schwarz's criterion: a simpler form
comes first unless data speak for the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from unbraid.closed.reoptimise import RESOLUTION
from unbraid.closed.starts import Curve
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.inference.steps import branch_weight, penalised
from unbraid.kernels.arrays import Array
from unbraid.results.branches.forms import Formula

ENTRIES, SAMPLES, FEWEST = 4_000_000, 1000, 40
"""Entries of the rows that are looked at, samples at most, and samples whatever the entries are."""
STEPS, STILL, ROUGHLY = 60, 1e-9, (12, 1e-2)
"""Levenberg and Marquardt's steps, the share of what is left below which one is the last, and both for a first try."""
UNKNOWN = 3e-3
"""Share of a curve's spread that is taken for its uncertainty where there are no data."""
FOLLOWED = 1e-18
"""Share of the squares of a function below which other unknowns follow it altogether."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The map M E from a function of one branch's input to rows, without what other unknowns can follow; N rows.

    Attributes
    ----------
    by_value, by_slope
        (S, p), what a value and a slope of the function at a sample add to the rows of the sample.
    basis
        (N, ·), orthonormal columns: what other unknowns can follow. Rows beyond S p see nothing of the function.
    """

    by_value: Array
    by_slope: Array
    basis: Array

    def __call__(self, values: Array, slopes: Array) -> Array:
        """M E of functions with values and slopes (S, ...) at the samples: (N, ...); zeros where rounding is left."""
        extra = (..., *[None] * (values.ndim - 1))
        rows = self.by_value[extra] * values[:, None] + self.by_slope[extra] * slopes[:, None]
        flat = rows.reshape(-1, *values.shape[1:])
        every = np.concatenate([flat, np.zeros((len(self.basis) - len(flat), *values.shape[1:]))])
        left = self.without(every)
        size, before = np.sum(left**2, axis=0), np.sum(every**2, axis=0)
        return np.where(size > FOLLOWED * before, left, 0.0)

    def without(self, rows: Array) -> Array:
        """M of rows (N, ...)."""
        return np.asarray(rows - self.basis @ (self.basis.T @ rows))


@dataclass(frozen=True, eq=False)
class Place:
    """The place of a branch in a model, to be taken by a form.

    Attributes
    ----------
    u
        (S,), the inputs of the branch at the samples.
    curve
        The branch that is there, at some points.
    rows
        What a function there does to the N rows.
    target
        (N,), what such a function is to explain, M (ρ + E g).
    left
        What the curve that is there leaves of it, a sum of squares.
    floor
        A sum of squares that counts as nothing.
    freedom
        Degrees of freedom that the curve uses.
    numbers, spare
        How many numbers the samples have, and how many of them are left over to tell noise from.
    """

    u: Array
    curve: Curve
    rows: Rows
    target: Array
    left: float
    floor: float
    freedom: float
    numbers: int
    spare: float

    @classmethod
    def of(cls, around: Neighbourhood, k: int) -> Self:
        """The place of the k-th of the moving branches."""
        some = looked_at(around)
        tangent, one = some.tangent, some.tangent.moves[k]
        branch, u = tangent.model.branches[one.branch], some.problem.X @ tangent.model.W0[one.branch]
        residual = some.residuals()
        by_value, by_slope, A, left = in_fewer_rows(*effects(some, k, some.scales(residual)), *some.rows())
        roots, offsets = penalties(some, k)
        own = tangent.parts(k)[2]
        others = np.delete(np.concatenate([A, roots]), np.r_[own], axis=1)
        rows = Rows(by_value, by_slope, orthonormal(others))
        rest = rows.without(np.concatenate([left, offsets]))
        numbers = int(np.count_nonzero(~np.isnan(residual)))
        target = rest + rows(branch(u), branch.derivative(u))
        return cls(
            u=u,
            curve=Curve.of(branch, u),
            rows=rows,
            target=target,
            left=float(rest @ rest),
            floor=RESOLUTION**2 * float(target @ target),
            freedom=float(some.freedom[own].sum()),
            numbers=numbers,
            spare=max(numbers - float(some.freedom.sum()), 1.0),
        )

    @classmethod
    def of_curve(cls, curve: Curve, freedom: float) -> Self:
        """The place of a branch of which nothing but the curve is known."""
        points = len(curve.u)
        ones = np.ones((points, 1))
        rows = Rows(ones, np.zeros_like(ones), ones / np.sqrt(points))
        target = rows(curve.g, np.zeros(points))
        unknown = UNKNOWN**2 * float(target @ target)
        return cls(curve.u, curve, rows, target, 0.0, unknown, freedom, points, float(points))

    @property
    def range(self) -> tuple[float, float]:
        """The range of the inputs."""
        return float(self.u.min()), float(self.u.max())

    def levelled(self, formula: Formula) -> Formula:
        """The formula with the constant that brings it nearest to the curve: data leave it open."""
        off = float(self.curve.weights @ (self.curve.g - formula(self.curve.u)))
        parameters = list(formula.parameters)
        parameters[formula.form.constant] += off
        return Formula(formula.form, tuple(parameters))

    def deviations(self, formula: Formula) -> tuple[float, float]:
        """How far a formula is from the curve, root mean square and at most, in % of the curve's spread."""
        off = np.abs(formula(self.curve.u) - self.curve.g)
        size = 100.0 / max(self.curve.spread, np.finfo(float).tiny)
        return size * float(np.sqrt(self.curve.weights @ off**2)), size * float(off.max())

    def residual(self, formula: Formula) -> Array:
        """What a formula leaves, (N,)."""
        return self.target - self.rows(*formula.with_slope(self.u))

    def score(self, left: float, size: float) -> float:
        """Schwarz's criterion of what a form of so many free parameters leaves."""
        N = self.numbers
        return N * float(np.log((left + self.floor) / N)) + size * float(np.log(N))

    def improve(self, formula: Formula, steps: int = STEPS, still: float = STILL) -> tuple[Formula, float]:
        """Levenberg and Marquardt's steps on what a formula leaves, until one gains less than a share of that."""
        rest, damping = self.residual(formula), 1e-3
        left = float(rest @ rest)
        for _ in range(steps):
            D = self.rows(formula.design(self.u), formula.design(self.u, 1))
            if not np.isfinite(D).all():
                break
            lengths = np.sqrt(np.sum(D**2, axis=0))
            lengths = np.where(lengths > 0.0, lengths, 1.0)
            N, b = (D / lengths).T @ (D / lengths), (D / lengths).T @ rest
            at, better = np.array([formula.parameters[place] for place in formula.form.free]), None
            while damping < 1e8:
                step = np.linalg.solve(N + damping * np.eye(len(N)), b) / lengths
                tried = formula.with_free(at + step)
                with np.errstate(all="ignore"):
                    there = self.residual(tried)
                    lower = float(there @ there)
                if np.isfinite(lower) and lower < left:
                    better = tried
                    break
                damping *= 8.0
            if better is None:
                break
            gained = left - lower
            formula, rest, left, damping = better, there, lower, max(damping / 10.0, 1e-12)
            if gained < still * left + 1e-3 * self.floor:
                break
        return formula, left


def looked_at(around: Neighbourhood) -> Neighbourhood:
    """The same with fewer samples where they are many, or their rows are."""
    most = min(SAMPLES, max(FEWEST, ENTRIES // (around.numbers * max(around.tangent.size, 1))))
    return around.thinned(most)


def effects(around: Neighbourhood, k: int, scale: Array) -> tuple[Array, Array]:
    """What a value and a slope of a function in place of the k-th moving branch add to rows of a scale: (S, q) each."""
    problem, one = around.problem, around.tangent.moves[k]
    w1, w0, n = around.tangent.model.W1[:, one.branch], around.tangent.model.W0[one.branch], problem.n
    by_value, by_slope = np.zeros_like(scale), np.zeros_like(scale)
    if problem.F is not None:
        by_value[:, :n] = w1
    if problem.J is not None:
        by_slope[:, -n * problem.m :] = np.outer(w1, w0).ravel()
    return by_value * scale, by_slope * scale


def in_fewer_rows(by_value: Array, by_slope: Array, A: Array, residual: Array) -> tuple[Array, Array, Array, Array]:
    r"""The same least squares in 2 S + U + 1 rows instead of S q: effects (S, q), A (S, q, U), and residuals (S, q).

    With the effects on a sample E_s = Z_s R_s (q, 2), the rows Z_sᵀ see all of a function. The others,
    1 - Z_s Z_sᵀ, see none of it, and a triangle has the same sums of squares.
    """
    (S, q), U = by_value.shape, A.shape[-1]
    if q <= 2 or S * (q - 2) <= U:
        return by_value, by_slope, A.reshape(-1, U), residual.ravel()
    Z, R = np.linalg.qr(np.stack([by_value, by_slope], axis=-1))
    rows = np.concatenate([A, residual[..., None]], axis=-1)
    seeing = Z.mT @ rows
    rows -= Z @ seeing
    rows = np.concatenate([seeing.reshape(-1, U + 1), np.linalg.qr(rows.reshape(-1, U + 1), mode="r")])
    return R[..., 0], R[..., 1], rows[:, :-1], rows[:, -1]


def penalties(around: Neighbourhood, but: int) -> tuple[Array, Array]:
    """The rows of the roots of penalties of all branches but one, and what they leave now, C a with its sign turned."""
    rows, offsets = [np.zeros((0, around.tangent.size))], [np.zeros(0)]
    for k, root, a in penalised(around.tangent):
        if k != but:
            weight = np.sqrt(branch_weight(around, k) / around.standing_for)
            block = np.zeros((len(root), around.tangent.size))
            block[:, around.tangent.parts(k)[2]] = weight * root @ around.tangent.moves[k].curves
            rows.append(block)
            offsets.append(-weight * (root @ a))
    return np.concatenate(rows), np.concatenate(offsets)


def orthonormal(rows: Array) -> Array:
    """An orthonormal basis (N, ·) of the columns of rows (N, U); columns that are others' combinations are dropped."""
    lengths = np.sqrt(np.sum(rows**2, axis=0))
    kept = rows[:, lengths > 0.0] / lengths[lengths > 0.0]
    if not kept.size:
        return np.zeros((len(rows), 0))
    U, sizes, _ = np.linalg.svd(kept, full_matrices=False)
    return np.asarray(U[:, sizes > 1e-10 * sizes[0]])
