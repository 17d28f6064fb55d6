r"""Penalised B-splines: many knots, and penalties that decide how many of them count.

A branch of degree d minimises its misfit plus α Ω, with

    Ω = (L / 2π)^2d (1/L) ∫ g^(d)(u)² du = aᵀ Ω a

over its range of length L: a number that does not depend on the units of u, and is 1/2 for one wave of sin over the
range. The highest derivative there is, because slopes are what most is known of, and because what it leaves alone,
polynomials of degree d - 1, is how a branch goes on beyond its range: the continuation of least Ω
(`fitting.continuation` says how far). Knots are even, and then its matrix is the same for all branches; where inputs
have long tails and knots lie wider there (`kernels.knots`), derivatives are taken in units of the local distance of
knots.

α is given, or chosen from the data. In sweeps that is done by generalised cross-validation of the branch's slopes and
values alone (`kernels.cross_validation`). By Gauss–Newton it is done by restricted likelihood of the whole fit
(`fitting.smoothing`), and then there are two penalties more, each with a strength of its own: on the second derivative,
in the same units, so that strong noise leaves lines, and on the slope of the line nearest to the branch, so that
a branch which data do not support vanishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np

from unbraid.bases.base import Basis, Placement
from unbraid.bases.splines import BSpline, PlacedSpline, SplineBasis
from unbraid.errors import SettingError, check_number, check_whole
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.cross_validation import cross_validate, diagonalise
from unbraid.kernels.decompositions import inverse, svd
from unbraid.kernels.knots import breakpoints
from unbraid.kernels.restricted_likelihood import Penalties, stacked_roots

LEAST_DEGREE = 3
"""Of splines with a penalty on their highest derivative: below it, on a second derivative that jumps."""
PENALTIES, ROUGHNESS = 3, 2
"""How many penalties a branch has: on its line, its bend and its roughness; and which of them is the last."""
EVEN = 1e-9
"""Distances of knots that differ by less than this share of them are the same."""
SEARCHED_DF, CONSTRAINED_DF = 12, 20
"""Degrees of freedom that are enough to search with, and to polish; and where branches are constrained. Bounds keep a
fine basis from following noise, and in a coarse one a small branch may be spent on what large ones cannot follow."""
WAVES = 3.0
"""Over the range of a branch; so many hardly feel an α that has not been chosen yet."""


@dataclass(frozen=True)
class SmoothingSpline(SplineBasis):
    """B-splines with a penalty on roughness, for noisy data: there is no df to be chosen well.

    Parameters
    ----------
    df
        Degrees of freedom that the penalty starts from; more than enough is enough.
    degree
        Polynomial degree d of the branch g, at least 3; the penalty is on its d-th derivative.
    smoothing
        α, the weight of the penalty beside a branch's mean squared misfit, in the solver's balanced units. None: chosen
        for each branch by restricted likelihood of the whole fit; by sweeps without polish, by cross-validation.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> ub.decouple(problem, rank=3, basis=ub.SmoothingSpline(), starts=4, rng=0).basis
    SmoothingSpline(df=28, degree=5, smoothing=None)
    """

    df: int = 28
    degree: int = 5
    smoothing: float | None = None

    def __post_init__(self) -> None:
        check_whole("degree", self.degree, LEAST_DEGREE)
        check_whole("df", self.df, 1)
        if self.df < self.degree:
            raise SettingError(
                f"df must be at least the degree, got df={self.df} with degree={self.degree}: raise df, "
                "of which the penalty takes back what is too much, or lower the degree."
            )
        if self.smoothing is not None:
            check_number("smoothing", self.smoothing, 0.0)

    @property
    def smoothing_open(self) -> bool:
        return self.smoothing is None

    def for_samples(self, numbers: int, most: int) -> Basis:
        df = min(self.df, numbers // 2, most)
        if df >= LEAST_DEGREE:
            return replace(self, df=df, degree=min(self.degree, df))
        df = max(most, 1)
        return BSpline(df, degree=min(3, df))

    def searched(self, constrained: bool = False) -> Basis:
        if self.smoothing is not None:
            return self
        return BSpline(min(CONSTRAINED_DF if constrained else SEARCHED_DF, self.df))

    def untuned(self) -> Self:
        return replace(self, smoothing=weak_smoothing(self.degree)) if self.smoothing is None else self

    @property
    def continued_degree(self) -> int:
        return self.degree - 1

    def place(self, u: Array, evenness: float = 0.0) -> PlacedSmoothing:
        strength = None
        if self.smoothing is not None:
            strength = np.zeros((*u.shape[:-1], PENALTIES))
            strength[..., ROUGHNESS] = self.smoothing * u.shape[-1]
        return PlacedSmoothing(breakpoints(u, self.df - self.degree + 1, 1.0), self.degree, strength)

    def placement_from(self, arrays: dict[str, Array]) -> PlacedSmoothing:
        return PlacedSmoothing(arrays["breakpoints"], self.degree)


@dataclass(frozen=True)
class PlacedSmoothing(PlacedSpline):
    """Penalised splines on breakpoints (..., I + 1).

    Attributes
    ----------
    strength
        (..., 3), of the penalties on line, bend and roughness: α S, S being how many samples there are. None: to be
        chosen.
    """

    strength: Array | None = None

    def select(self, index: Any) -> Self:
        strength = None if self.strength is None else self.strength[index]
        return replace(super().select(index), strength=strength)

    def merged(self, which: BoolArray, other: Self) -> Self:
        strength = None
        if self.strength is not None and other.strength is not None:
            strength = np.where(which[:, None, None], other.strength, self.strength)
        return replace(super().merged(which, other), strength=strength)

    def joined(self, others: Sequence[Self]) -> Self:
        known = [one.strength for one in (self, *others) if one.strength is not None]
        strength = np.concatenate(known) if len(known) == 1 + len(others) else None
        return replace(super().joined(others), strength=strength)

    def moved(self, scale: Array, shift: Array) -> Self:
        return replace(super().moved(scale, shift), strength=self.strength)

    def loosened(self, samples: int) -> Self:
        if self.strength is None:
            return self
        strength = np.zeros_like(self.strength)
        strength[..., ROUGHNESS] = np.minimum(self.strength[..., ROUGHNESS], weak_smoothing(self.degree) * samples)
        return replace(self, strength=strength)

    def of_samples(self, placed_on: int, samples: int) -> Self:
        return self if self.strength is None else replace(self, strength=self.strength * (samples / placed_on))

    @property
    def penalty_open(self) -> bool:
        return self.strength is None

    def keeping(self, earlier: Placement) -> Self:
        return replace(self, strength=earlier.strength) if isinstance(earlier, PlacedSmoothing) else self

    def penalty_root(self) -> Array | None:
        return None if self.strength is None else stacked_roots(self.roots, self.strength)

    @property
    def roots(self) -> tuple[Array, Array, Array]:
        """R_p (k_p, K) or (..., k_p, K) of the penalties ‖R_p a‖²: the slope of the nearest line, bend, roughness."""
        gaps = np.diff(self.breakpoints)
        even = np.abs(gaps / gaps.mean(axis=-1, keepdims=True) - 1.0) < EVEN
        return even_roots(gaps.shape[-1], self.degree) if even.all() else penalty_roots(self)

    @property
    def rough_coordinates(self) -> RoughCoordinates:
        """Coordinates in which the penalty on roughness is one, of each branch."""
        roots, branches = self.roots, self.breakpoints.shape[:-1]
        if roots[0].ndim > 2:
            return RoughCoordinates.of(roots)
        return even_coordinates(self.breakpoints.shape[-1] - 1, self.degree).spread_over(branches)

    def chosen_penalty(self, N: Array, b: Array, square: Array, equations: float) -> Array | None:
        if self.strength is not None:
            return None
        root = self.roots[ROUGHNESS]
        if root.ndim == 2:
            return cross_validate(N, b, square, root, equations)[..., None, None] * (root.T @ root)
        alpha = np.empty(b.shape[:-1])
        for row in np.ndindex(root.shape[:-2]):
            alpha[row] = cross_validate(N[row], b[row], square[row], root[row], equations)
        return np.asarray(alpha[..., None, None] * (root.mT @ root)[..., None, :, :])


@dataclass(frozen=True)
class RoughCoordinates:
    """z with a = T z, the constant first, in which the penalty on roughness is one where it is not zero.

    However strong it is, nothing is lost to rounding in them. `T`, `inverse` (..., K, K), and the penalties on z.
    """

    T: Array
    inverse: Array
    penalties: Penalties

    @classmethod
    def of(cls, roots: Sequence[Array]) -> Self:
        """From the roots (..., k, K) of the three penalties."""
        rough = roots[ROUGHNESS]
        T = np.empty((*rough.shape[:-2], rough.shape[-1], rough.shape[-1]))
        for row in np.ndindex(T.shape[:-2]):
            T[row] = diagonalise(rough[row])[0]
        return cls(T, inverse(T), Penalties.of([root @ T for root in roots]))

    def spread_over(self, branches: tuple[int, ...]) -> Self:
        """The same for all branches."""
        T, inverse = (np.broadcast_to(one, (*branches, *one.shape)) for one in (self.T, self.inverse))
        roots, inverses = (
            tuple(np.broadcast_to(one, (*branches, *one.shape)) for one in several)
            for several in (self.penalties.roots, self.penalties.inverses)
        )
        return type(self)(T, inverse, Penalties(roots, inverses))


@cache
def even_coordinates(intervals: int, degree: int) -> RoughCoordinates:
    """The coordinates on so many even intervals."""
    return RoughCoordinates.of(even_roots(intervals, degree))


def weak_smoothing(degree: int) -> float:
    """An α that settles what data leave open, and does little else: of `WAVES` waves it takes a thousandth."""
    return 1e-3 * WAVES ** (-2 * degree)


@cache
def even_roots(intervals: int, degree: int) -> tuple[Array, Array, Array]:
    """The roots of the three penalties on so many even intervals."""
    return penalty_roots(PlacedSpline(np.linspace(0.0, 1.0, intervals + 1), degree))


def penalty_roots(placed: PlacedSpline) -> tuple[Array, Array, Array]:
    """The roots of the three penalties, (..., k_p, K) each, on breakpoints (..., I + 1).

    With t the number of an interval and the way through it, over I, derivatives are (I h)^k g^(k), h being the length
    of the interval, and means are over t: on even intervals that is u itself, in units of the range. Line and bend are
    computed by Gauss's rule on every interval, exactly for polynomials; the highest derivative is constant there.
    """
    degree, gaps = placed.degree, np.diff(placed.breakpoints)
    intervals = gaps.shape[-1]
    nodes, weights = np.polynomial.legendre.leggauss(degree + 1)
    way = 0.5 * (nodes + 1.0)
    u = (placed.breakpoints[..., :-1, None] + gaps[..., None] * way).reshape(*gaps.shape[:-1], -1)
    t, weight = (
        ((np.arange(intervals)[:, None] + way) / intervals).ravel(),
        np.tile(0.5 * weights / intervals, intervals),
    )
    length = np.repeat(intervals * gaps, len(nodes), axis=-1)[..., None] / (2.0 * np.pi)
    line = 12.0 / (2.0 * np.pi) * (weight * (t - 0.5)) @ placed.design(u)
    bend = np.sqrt(weight)[:, None] * length**2 * placed.design(u, 2)
    _, sizes, rows = svd(bend)
    kept = slice(0, intervals + degree - 2)  # lines have none
    middle = 0.5 * (placed.breakpoints[..., 1:] + placed.breakpoints[..., :-1])
    rough = placed.design(middle, degree) * (intervals * gaps[..., None] / (2.0 * np.pi)) ** degree / np.sqrt(intervals)
    return line[..., None, :], sizes[..., kept, None] * rows[..., kept, :], rough
