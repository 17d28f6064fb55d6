r"""Penalised B-splines: many evenly spaced knots, and a penalty on roughness that decides how many of them count.

A branch of degree d minimises its mean squared misfit plus α Ω, with

    Ω = (L / 2π)^2d (1/L) ∫ g^(d)(u)² du = aᵀ Ω a

over its range of length L: a number that does not depend on the units of u, and is 1/2 for one wave of sin over the
range. On evenly spaced knots its matrix is the same for all branches. The highest derivative there is, because slopes
are what most is known of, and because what it leaves alone, polynomials of degree d - 1, is how a branch goes on beyond
its range (the continuation of least Ω), for an eighth of it or as far as noise lets it be known
(`fitting.smoothing`), and from there linearly.

α is given, or chosen for each branch by generalised cross-validation (`kernels.cross_validation`): in sweeps, of the
branch's slopes and values alone; by Gauss–Newton, of the whole fit with given directions (`fitting.smoothing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np

from unbraid.bases.base import Placement
from unbraid.bases.splines import PlacedSpline, SplineBasis
from unbraid.errors import SettingError, check_number, check_whole
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.cross_validation import cross_validate
from unbraid.kernels.knots import breakpoints

REACH = 0.125
"""How far beyond its domain, in shares of its length, a branch goes on as a polynomial at most."""
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
        for each branch by generalised cross-validation.

    Notes
    -----
    Beyond the range of its inputs a branch goes on as a polynomial of degree d - 1 for up to an eighth of that range,
    as far as noise lets the polynomial be known and certified shapes go on, and then linearly; other bases continue
    linearly at once.

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
        check_whole("degree", self.degree, 3)
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

    def untuned(self) -> Self:
        return replace(self, smoothing=weak_smoothing(self.degree)) if self.smoothing is None else self

    @property
    def continued_degree(self) -> int:
        return self.degree - 1

    def place(self, u: Array, evenness: float = 0.0) -> PlacedSmoothing:
        strength = None if self.smoothing is None else np.full(u.shape[:-1], self.smoothing * u.shape[-1])
        return PlacedSmoothing(breakpoints(u, self.df - self.degree + 1, 1.0), self.degree, strength)

    def placement_from(self, arrays: dict[str, Array]) -> PlacedSmoothing:
        breakpoints, continued = arrays["breakpoints"], arrays["continued"]
        beyond = np.array([breakpoints[0] - continued[0], continued[1] - breakpoints[-1]])
        return PlacedSmoothing(breakpoints, self.degree, reach=np.clip(beyond / np.ptp(breakpoints), 0.0, REACH))


@dataclass(frozen=True)
class PlacedSmoothing(PlacedSpline):
    """Penalised splines on breakpoints (..., I + 1).

    Attributes
    ----------
    strength
        (...), α S, S being how many samples there are, or None: to be chosen.
    reach
        (..., 2), the `reaches`; None: the eighth of the domain that is the most.
    """

    strength: Array | None = None
    reach: Array | None = None

    def arrays(self) -> dict[str, Array]:
        length = np.ptp(self.breakpoints, axis=-1, keepdims=True)
        return {**super().arrays(), "continued": self.domain() + self.reaches() * length * np.array([-1.0, 1.0])}

    def reaches(self) -> Array:
        return np.full_like(self.domain(), REACH) if self.reach is None else self.reach

    def select(self, index: Any) -> Self:
        return self._beside(super().select(index), lambda one: one[index])

    def merged(self, which: BoolArray, other: Self) -> Self:
        strength = None
        if self.strength is not None and other.strength is not None:
            strength = np.where(which[:, None], other.strength, self.strength)
        return replace(super().merged(which, other), strength=strength)

    def joined(self, others: Sequence[Self]) -> Self:
        known = [one.strength for one in (self, *others) if one.strength is not None]
        strength = np.concatenate(known) if len(known) == 1 + len(others) else None
        return replace(super().joined(others), strength=strength)

    def moved(self, scale: Array, shift: Array) -> Self:
        return self._beside(super().moved(scale, shift), lambda one: one)

    def _beside(self, placed: Self, taken: Callable[[Array], Array]) -> Self:
        """A placement that has new knots only, with what `taken` makes of strength and reach of this one."""
        strength, reach = (None if one is None else taken(one) for one in (self.strength, self.reach))
        return replace(placed, strength=strength, reach=reach)

    def loosened(self, samples: int) -> Self:
        if self.strength is None:
            return self
        return replace(self, strength=np.minimum(self.strength, weak_smoothing(self.degree) * samples))

    def of_samples(self, placed_on: int, samples: int) -> Self:
        return self if self.strength is None else replace(self, strength=self.strength * (samples / placed_on))

    @property
    def penalty_open(self) -> bool:
        return self.strength is None

    def keeping(self, earlier: Placement) -> Self:
        return replace(self, strength=earlier.strength) if isinstance(earlier, PlacedSmoothing) else self

    def penalty_root(self) -> Array | None:
        return None if self.strength is None else np.sqrt(self.strength)[..., None, None] * self.omega_root

    @property
    def omega(self) -> Array:
        """The matrix of the roughness Ω, (K, K)."""
        return roughness(self.breakpoints.shape[-1] - 1, self.degree)

    @property
    def omega_root(self) -> Array:
        """C (I, K) with Ω = Cᵀ C."""
        return roughness_root(self.breakpoints.shape[-1] - 1, self.degree)

    def chosen_penalty(self, N: Array, b: Array, square: Array, equations: float) -> Array | None:
        if self.strength is not None:
            return None
        return cross_validate(N, b, square, self.omega_root, equations)[..., None, None] * self.omega


def weak_smoothing(degree: int) -> float:
    """An α that settles what data leave open, and does little else: of `WAVES` waves it takes a thousandth."""
    return 1e-3 * WAVES ** (-2 * degree)


@cache
def roughness(intervals: int, degree: int) -> Array:
    """The matrix of Ω, (K, K), on so many even intervals."""
    root = roughness_root(intervals, degree)
    return np.asarray(root.T @ root)


@cache
def roughness_root(intervals: int, degree: int) -> Array:
    """C (I, K) with Ω = Cᵀ C on I even intervals, exactly: the d-th derivative is constant between knots."""
    knots = np.linspace(0.0, 1.0, intervals + 1)
    B = PlacedSpline(knots, degree).design(0.5 * (knots[1:] + knots[:-1]), degree)
    return np.asarray(B / np.sqrt(intervals) / (2.0 * np.pi) ** degree, dtype=np.float64)
