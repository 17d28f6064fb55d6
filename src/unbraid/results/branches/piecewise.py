r"""Branches that are piecewise polynomials and nothing else: from SciPy's splines, or from anything that becomes one.

Shapes are certified piece by piece: on [0, 1] a polynomial Σ_k b_k binom(q, k) t^k (1 - t)^(q - k) is nonnegative if
its Bernstein coefficients b_k are. A function increases if all its pieces do and no jump between them is downwards; it
is
convex if all its pieces are, it has no jumps, and slopes do not fall from one piece to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial import polynomial

from unbraid.bases.constraints import Constraint
from unbraid.errors import DataError, SettingError, shown
from unbraid.kernels.arrays import Array
from unbraid.kernels.pieces import Pieces, about
from unbraid.results.branch import Branch

ROUNDING = 1e-10
"""Share of the largest coefficient by which one may be below zero, or a jump above it, by rounding."""


@dataclass(frozen=True, repr=False, eq=False)
class PiecewiseBranch(Branch):
    """A branch made of polynomials between breaks.

    Attributes
    ----------
    function
        The polynomials; the first and the last go on for ever.
    meant_for
        The range (lo, hi) of u that it is meant for, its domain.
    """

    function: Pieces
    meant_for: tuple[float, float]

    @property
    def pieces(self) -> Pieces:
        return self.function

    @property
    def domain(self) -> tuple[float, float]:
        return self.meant_for

    @property
    def knots(self) -> Array:
        low, high = self.domain
        inner = self.pieces.breaks[(self.pieces.breaks > low) & (self.pieces.breaks < high)]
        return np.unique(np.concatenate([[low], inner, [high]]))

    def __call__(self, u: npt.ArrayLike) -> Array:
        points = np.asarray(u, dtype=np.float64)
        return self.pieces.value(points.ravel()).reshape(points.shape)

    def derivative(self, u: npt.ArrayLike, order: int = 1) -> Array:
        if order not in (1, 2):
            raise SettingError(f"order must be 1 or 2, got {shown(order)}.")
        points = np.asarray(u, dtype=np.float64)
        derived = self.pieces.slope if order == 1 else self.pieces.bend
        return derived(points.ravel()).reshape(points.shape)

    def certified(self, constraint: Constraint) -> bool:
        lengths = np.diff(self.knots)
        derived = [constraint.sign * self._on_unit_intervals()]
        for _ in range(constraint.order):
            derived.append(polynomial.polyder(derived[-1]) / lengths)
        *lower, last = derived
        return not_negative(bernstein_coefficients(last)) and not_jumping(lower)

    def _on_unit_intervals(self) -> Array:
        """The polynomials (q + 1, I) between knots in powers of t, which goes from 0 to 1 on each."""
        pieces, knots = self.pieces, self.knots
        which = pieces.find(0.5 * (knots[1:] + knots[:-1]))
        powers, rate = pieces.powers[:, which], pieces.rate[which]
        starts = (knots[:-1] - pieces.middle[which]) * rate
        return about(powers, starts) * (rate * np.diff(knots)) ** np.arange(len(powers))[:, None]

    def __repr__(self) -> str:
        low, high = self.domain
        return f"PiecewiseBranch({len(self.pieces.middle)} pieces, [{low:.4g}, {high:.4g}])"


def bernstein_coefficients(powers: Array) -> Array:
    """b_k = Σ_{j ≤ k} binom(k, j) / binom(q, j) p_j of polynomials Σ_j p_j t^j on [0, 1], (q + 1, I)."""
    q = len(powers) - 1
    matrix = [[comb(k, j) / comb(q, j) for j in range(q + 1)] for k in range(q + 1)]
    return np.asarray(np.array(matrix) @ powers)


def not_negative(numbers: Array) -> bool:
    """Whether no number is below zero by more than rounding."""
    return bool((numbers >= -ROUNDING * np.abs(numbers).max(initial=0.0)).all())


def not_jumping(derived: Sequence[Array]) -> bool:
    """Whether the last of a function and its derivatives, in powers of t on unit intervals, has no jumps downwards.

    Nor may those before it have any at all, beyond rounding.
    """
    for k, powers in enumerate(derived):
        jumps = powers[0, 1:] - powers.sum(axis=0)[:-1]
        largest = ROUNDING * np.abs(powers).max(initial=0.0)
        if (jumps < -largest).any() or (k < len(derived) - 1 and (jumps > largest).any()):
            return False
    return True


def as_branch(function: Any, j: int) -> Branch:
    """A branch as it is, a spline of SciPy as a `PiecewiseBranch`; anything else is refused."""
    found = function if isinstance(function, Branch) else from_spline(function, j)
    if found is None:
        raise SettingError(
            f"functions[{j}] must be a branch or a spline of scipy.interpolate, such as CubicSpline(u, g), got "
            f"{shown(function)}; of a function g, CubicSpline(u, g(u)) on a grid u is one."
        )
    return found


def from_spline(spline: Any, j: int) -> PiecewiseBranch | None:
    """A spline of SciPy as a branch: any that has a PPoly of one variable; None where it has none."""
    from scipy.interpolate import BPoly, BSpline, PPoly, UnivariateSpline

    if isinstance(spline, UnivariateSpline):
        fitted: Any = spline
        t, c, k = fitted._eval_args
        spline = BSpline(t, c, k, extrapolate=int(fitted.ext) == 0)
    if isinstance(spline, BSpline):
        spline = PPoly.from_spline((spline.t, spline.c, spline.k), extrapolate=spline.extrapolate)
    if isinstance(spline, BPoly):
        spline = PPoly.from_bernstein_basis(spline)
    if not isinstance(spline, PPoly):
        return None
    if spline.extrapolate == "periodic":
        raise SettingError(f"functions[{j}] is periodic, and branches are not: give it over the range that is needed.")
    if spline.c.ndim != 2 or np.iscomplexobj(spline.c):
        raise DataError(f"functions[{j}] must have one real value, its coefficients have shape {spline.c.shape}.")
    return from_powers(np.asarray(spline.x, float), np.asarray(spline.c, float)[::-1], bool(spline.extrapolate))


def from_powers(x: Array, c: Array, extrapolate: bool) -> PiecewiseBranch:
    """Polynomials (q + 1, I) in powers of u - x_i between breaks x (I + 1,), lowest power first, as a branch.

    Beyond the ends the first and the last go on, as SciPy's do, or, where SciPy gives NaN, their tangents.
    """
    own = np.diff(x) > 0.0  # knots of splines may stand together
    x, c = np.append(x[:-1][own], x[-1]), c[:, own]
    lengths = np.diff(x)
    powers = np.zeros((max(2, len(c)), len(lengths) + 2))
    powers[: len(c), 1:-1] = c * lengths ** np.arange(len(c))[:, None]
    middle, rate = np.concatenate([x[:1], x[:-1], x[-1:]]), np.concatenate([[1.0], 1.0 / lengths, [1.0]])
    if extrapolate:
        middle[-1] = x[-2]
        for outer, inner in ((0, 1), (-1, -2)):
            powers[:, outer], rate[outer] = powers[:, inner], rate[inner]
    else:
        slope = np.arange(1.0, len(powers))
        powers[:2, 0] = powers[0, 1], powers[1, 1] * rate[1]
        powers[:2, -1] = powers[:, -2].sum(), (slope * powers[1:, -2]).sum() * rate[-2]
    return PiecewiseBranch(Pieces(x, middle, rate, powers), (float(x[0]), float(x[-1])))
