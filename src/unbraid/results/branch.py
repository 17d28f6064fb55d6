r"""One univariate function of a decoupled model, and how it goes on beyond the range it was learned on.

At an end e of its domain [e_-, e_+] a fitted branch g goes on as its Taylor polynomial p there,

    g(e + h) = p(h) = Σ_{k ≤ q} g^(k)(e) h^k / k!        for |h| ≤ ρ,
    g(e + h) = p(±ρ) + p'(±ρ) (h ∓ ρ)                    beyond,

with a degree q that belongs to the basis and a reach ρ that belongs to the branch: `fitting.continuation` says how far
the data support p. With ρ = 0 the branch goes on linearly at once. Shapes go on: where g is certified to increase or to
be convex, ρ ends where p would no longer be.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numpy.polynomial import polynomial

from unbraid.bases import Basis, Placement
from unbraid.bases.constraints import CONSTRAINTS, Constraint, describe
from unbraid.errors import SettingError, shown
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.kernels.pieces import Pieces
from unbraid.results.branches.scipy_pieces import as_ppoly

if TYPE_CHECKING:
    from scipy.interpolate import PPoly


class Branch(ABC):
    """A univariate function g with its derivative and the range of inputs it was learned on."""

    @property
    @abstractmethod
    def domain(self) -> tuple[float, float]:
        """The range (lo, hi) of u seen in training."""

    @property
    def knots(self) -> Array:
        """The points, ends included, at which its pieces meet; none where it has no pieces."""
        return np.zeros(0)

    @property
    def pieces(self) -> Pieces | None:
        """The branch as polynomials between breaks, by which it is evaluated; None where it is no such thing."""
        return None

    def polynomials(self) -> Pieces | None:
        """The branch as polynomials between breaks that are as accurate as it is itself; None where there are none.

        Pieces may be shorter than those that it is made of.
        """
        return self.pieces

    @abstractmethod
    def __call__(self, u: npt.ArrayLike) -> Array:
        """g(u), of the shape of u."""

    @abstractmethod
    def derivative(self, u: npt.ArrayLike, order: int = 1) -> Array:
        """The first or second derivative of g at u, of the shape of u."""

    @abstractmethod
    def certified(self, constraint: Constraint) -> bool:
        """Whether the constraint is guaranteed on the whole domain, decided from coefficients."""

    def to_scipy(self) -> PPoly[np.float64]:
        """The same function as a `scipy.interpolate.PPoly`, also beyond its domain: for roots, integrals and the like.

        Raises
        ------
        SettingError
            Where it is not made of polynomials: it is given by a formula, or in a basis of other functions.

        Examples
        --------
        >>> import unbraid as ub
        >>> problem, truth = ub.datasets.trig(S=100, rng=0)
        >>> g = ub.decouple(problem, rank=3, rng=0).model.branches[0]
        >>> p = g.to_scipy()
        >>> bool(abs(p(0.5) - g(0.5)) < 1e-12), bool(abs(p.derivative()(9.0) - g.derivative(9.0)) < 1e-12)
        (True, True)
        """
        pieces = self.polynomials()
        if pieces is None:
            raise SettingError(f"{self!r} is not made of polynomials, so SciPy has no PPoly of it.")
        return as_ppoly(pieces)


class ParametricBranch(Branch):
    """A branch with unknowns that data can move: `coordinates` (K,)."""

    coordinates: Array

    @abstractmethod
    def design(self, u: Array, derivative: int = 0) -> Array:
        """D (S, K), what small changes of the coordinates do to the values, or slopes, of the branch at u (S,)."""

    @abstractmethod
    def shifted(self, by: float, coordinates: Array) -> ParametricBranch:
        """The branch of other coordinates, on a domain that lies so much higher."""


@dataclass(frozen=True, repr=False)
class FittedBranch(ParametricBranch):
    """A branch in a placed basis. Outside its domain it goes on as its `continuations` say.

    Attributes
    ----------
    basis
        The specification, e.g. `BSpline(df=12)`.
    placement
        The basis placed on the training inputs (no leading axes).
    coordinates
        (K,), the function in the placement's own coordinates; `coefficients` has the paper's.
    reach
        (2,), how far below and above its domain, in shares of its length, the branch goes on as a polynomial, of the
        basis's `continued_degree`; zeros: it goes on linearly.
    """

    basis: Basis
    placement: Placement
    coordinates: Array
    reach: Array = field(default_factory=lambda: np.zeros(2))

    @property
    def domain(self) -> tuple[float, float]:
        low, high = self.placement.domain()
        return float(low), float(high)

    @property
    def knots(self) -> Array:
        return self.placement.knots()

    @property
    def coefficients(self) -> Array:
        """The paper's coefficients c, with c[0] the constant: (K,)."""
        return self.basis.paper_coefficients(self.placement, self.coordinates)

    @cached_property
    def pieces(self) -> Pieces | None:
        """The branch as polynomials, its continuations among them, between breaks; None where it is no such thing."""
        powers = self.placement.pieces(self.coordinates)
        return None if powers is None else join_pieces(self.knots, powers, *self.continuations)

    def polynomials(self) -> Pieces | None:
        parts = self.placement.short_pieces(self.coordinates)
        return None if parts is None else join_pieces(*parts, *self.continuations)

    def __call__(self, u: npt.ArrayLike) -> Array:
        points = np.asarray(u, dtype=np.float64)
        if self.pieces is not None:
            return self.pieces.value(points.ravel()).reshape(points.shape)
        at, beyond = self._inside(points)
        value = self.placement.evaluate(self.coordinates, at)
        for outside, continuation in self._outside(beyond):
            value[outside] += continuation.value(beyond[outside])
        return value.reshape(points.shape)

    def derivative(self, u: npt.ArrayLike, order: int = 1) -> Array:
        if order not in (1, 2):
            raise SettingError(f"order must be 1 or 2, got {shown(order)}.")
        points = np.asarray(u, dtype=np.float64)
        if self.pieces is not None:
            derived = self.pieces.slope if order == 1 else self.pieces.bend
            return derived(points.ravel()).reshape(points.shape)
        at, beyond = self._inside(points)
        result = self.placement.evaluate(self.coordinates, at, order)
        for outside, continuation in self._outside(beyond):
            result[outside] = continuation.derivative(beyond[outside], order)
        result[np.isnan(beyond)] = np.nan  # a piece of degree 0 does not see u
        return result.reshape(points.shape)

    def design(self, u: Array, derivative: int = 0) -> Array:
        """D (S, K) with D a the values, or slopes, of the branch at u (S,), a being its coordinates.

        Beyond its domain, how far the branch goes on as a polynomial is taken as it is.
        """
        at, beyond = self._inside(np.asarray(u, dtype=np.float64))
        result = self.placement.design_at(at, derivative)
        if not beyond.any():
            return result
        ends = self.placement.at(np.array(self.domain))
        degree = max(len(one.powers) for one in self.continuations) - 1
        taylor = [self.placement.design_at(ends, k) for k in range(degree + 1)]
        for side, (outside, continuation) in enumerate(self._sides(beyond)):
            if outside.size:
                shares = continuation.shares(beyond[outside], derivative)
                result[outside] = sum(shares[:, k, None] * one[side] for k, one in enumerate(taylor[: shares.shape[1]]))
        return result

    def shifted(self, by: float, coordinates: Array) -> FittedBranch:
        placement = self.placement.moved(np.array(1.0), np.array(by))
        return FittedBranch(self.basis, placement, coordinates, self.reach)

    @cached_property
    def continuations(self) -> tuple[Continuation, Continuation]:
        """How the branch goes on below its domain, and above: with as many terms as floating point can hold."""
        low, high = self.domain
        reaches = np.asarray(self.reach) * (high - low)
        degree = self.basis.continued_degree if reaches.any() else 1
        terms = self.taylor(self.coordinates, degree)
        shapes = [shape() for shape in CONSTRAINTS if shape.order > 0] if degree > 1 else []
        kept = [shape for shape in shapes if shape.holds(self.placement, self.coordinates)]
        (below, above), (down, up) = terms, map(float, reaches)
        return Continuation.keeping(below, down, -1, kept), Continuation.keeping(above, up, 1, kept)

    def taylor(self, coordinates: Array, degree: int) -> Array:
        """The terms g^(k)(e) / k!, k = 0 … degree, at both ends e of the domain, of a function: (2, degree + 1).

        Those that are beyond floating point, and all that follow, are zero.
        """
        ends = self.placement.at(np.array(self.domain))
        with np.errstate(over="ignore", invalid="ignore"):  # of domains as small as 1e-100
            taylor = [self.placement.evaluate(coordinates, ends, k) / math.factorial(k) for k in range(degree + 1)]
        terms = np.stack(taylor, axis=-1)
        return np.where(np.logical_and.accumulate(np.isfinite(terms), axis=-1), terms, 0.0)

    def certified(self, constraint: Constraint) -> bool:
        if not isinstance(constraint, Constraint):
            raise SettingError(f"constraint must be one such as ub.Increasing(), got {describe(constraint)}.")
        return constraint.holds(self.placement, self.coordinates)

    def _inside(self, points: Array) -> tuple[object, Array]:
        """The nearest points of the domain, prepared, and how far each given point lies beyond it."""
        flat = points.ravel()
        inside = np.clip(flat, *self.domain)
        return self.placement.at(inside), flat - inside

    def _outside(self, beyond: Array) -> Iterator[tuple[IndexArray, Continuation]]:
        """The points below the domain with the continuation there, then those above, where there are any."""
        return ((outside, continuation) for outside, continuation in self._sides(beyond) if outside.size)

    def _sides(self, beyond: Array) -> Iterator[tuple[IndexArray, Continuation]]:
        """The points below the domain with the continuation there, then those above."""
        for side, outside in enumerate((np.flatnonzero(beyond < 0.0), np.flatnonzero(beyond > 0.0))):
            yield outside, self.continuations[side]

    def __repr__(self) -> str:
        low, high = self.domain
        return f"FittedBranch({self.basis!r} on [{low:.4g}, {high:.4g}])"


@dataclass(frozen=True)
class FunctionBranch(Branch):
    """A branch given by formulas: the truth of a data set, say.

    Attributes
    ----------
    value, slope
        Functions of an array, elementwise.
    formula
        What to print.
    domain
        The range of inputs of interest.
    """

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    formula: str
    domain: tuple[float, float] = (-np.inf, np.inf)

    def __call__(self, u: npt.ArrayLike) -> Array:
        return self.value(np.asarray(u, dtype=np.float64))

    def derivative(self, u: npt.ArrayLike, order: int = 1) -> Array:
        if order != 1:
            raise SettingError(f"A branch given by a formula has its first derivative only, got order={order!r}.")
        return self.slope(np.asarray(u, dtype=np.float64))

    def certified(self, constraint: Constraint) -> bool:
        """Always False: a formula has no coefficients to decide from."""
        return False

    def __repr__(self) -> str:
        return f"FunctionBranch({self.formula})"


@dataclass(frozen=True)
class Continuation:
    """How a branch goes on beyond an end e of its domain: as a polynomial p up to a reach ρ, then as a line.

    Attributes
    ----------
    powers
        (q + 1,), the coefficients of p(h) in powers of h, the distance from e.
    reach
        ρ, the distance from e up to which p is followed.
    """

    powers: Array
    reach: float

    @classmethod
    def keeping(cls, powers: Array, reach: float, outwards: int, shapes: Sequence[Constraint]) -> Continuation:
        """Follow p for as far as it keeps the shapes in the direction `outwards` (1 or -1), at most for `reach`."""
        along = powers * float(outwards) ** np.arange(len(powers))
        for shape in shapes:
            bent = shape.sign * outwards**shape.order * polynomial.polyder(along, shape.order)
            reach = first_negative(bent, reach)
        return cls(powers, reach)

    def value(self, h: Array) -> Array:
        """g(e + h) - g(e) at distances h, which point outwards, of their shape."""
        bent = np.clip(h, -self.reach, self.reach)
        with np.errstate(invalid="ignore"):  # a flat branch at infinity: 0 · inf
            return np.asarray(bent * polynomial.polyval(bent, self.powers[1:]) + self._slope(bent) * (h - bent))

    def derivative(self, h: Array, order: int) -> Array:
        """The first or second derivative of g at e + h, of the shape of h."""
        if order == 1:
            return self._slope(np.clip(h, -self.reach, self.reach))
        curved = polynomial.polyval(np.clip(h, -self.reach, self.reach), polynomial.polyder(self.powers, 2))
        return np.where(np.abs(h) <= self.reach, curved, 0.0)

    def shares(self, h: Array, derivative: int = 0) -> Array:
        """What g^(k)(e), k = 0 … q, add to the value of g at e + h (S,), or to its slope: (S, q + 1)."""
        bent = np.clip(h, -self.reach, self.reach)
        k = np.arange(len(self.powers))
        factorials = np.array([math.factorial(one) for one in k], dtype=float)
        powers = np.power.outer(bent, k) / factorials
        slopes = np.concatenate([np.zeros((len(h), 1)), powers[:, :-1]], axis=1)
        return slopes if derivative else powers + slopes * (h - bent)[:, None]

    def pieces(self, end: float, outwards: int) -> Iterator[tuple[float, float, float, Array]]:
        """Where each of its pieces begins, from `end` in the direction `outwards`, its middle, rate and powers."""
        if self.reach > 0.0:
            yield end, end, 1.0 / self.reach, self.powers * self.reach ** np.arange(len(self.powers))
        bent = np.array(outwards * self.reach)
        line = np.array([polynomial.polyval(bent, self.powers), self._slope(bent)])
        yield end + float(bent), end + float(bent), 1.0, line

    def _slope(self, bent: Array) -> Array:
        """The slope of p at distances within the reach, of their shape."""
        return np.asarray(polynomial.polyval(bent, polynomial.polyder(self.powers)))


def join_pieces(knots: Array, powers: Array, below: Continuation, above: Continuation) -> Pieces:
    """Polynomials between knots (I + 1,), with powers (q + 1, I) of t from -1 to 1, and how they go on, as one."""
    lower = list(below.pieces(float(knots[0]), -1))[::-1]
    upper = list(above.pieces(float(knots[-1]), 1))
    outer, lines = [*lower, *upper], len(lower)
    inside = slice(lines, lines + powers.shape[1])
    every = np.zeros((len(powers), powers.shape[1] + len(outer)))
    middle, rate = np.empty(every.shape[1]), np.empty(every.shape[1])
    middle[inside], rate[inside] = 0.5 * (knots[1:] + knots[:-1]), 2.0 / np.diff(knots)
    every[:, inside] = powers
    places = [*range(lines), *range(inside.stop, every.shape[1])]
    for place, (_, own_middle, own_rate, own) in zip(places, outer, strict=True):
        middle[place], rate[place], every[: len(own), place] = own_middle, own_rate, own
    ends = np.nextafter([begin for begin, *_ in upper], np.inf)  # what an end belongs to is what is inside of it
    return Pieces(np.concatenate([[begin for begin, *_ in lower], knots[1:-1], ends]), middle, rate, every)


def first_negative(powers: Array, reach: float) -> float:
    """The first h in [0, reach] from which on a polynomial, given by its powers, is negative; `reach` if none is."""
    if len(powers) < 2 or not np.any(powers[1:]):
        return 0.0 if powers[0] < 0.0 else reach
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.trim_zeros(powers * reach ** np.arange(len(powers)), "b")  # of a polynomial in h / reach
    if not scaled.size or not np.isfinite(scaled).all():
        return 0.0  # too flat or too steep to tell
    zeros = polynomial.polyroots(scaled) if len(scaled) > 1 else np.zeros(0)
    inside = np.sort([zero.real for zero in zeros if abs(zero.imag) < 1e-8 and 0.0 < zero.real < 1.0])
    edges = np.array([0.0, *inside, 1.0])
    negative = polynomial.polyval(0.5 * (edges[1:] + edges[:-1]), scaled) < 0.0
    return float(edges[np.argmax(negative)]) * reach if negative.any() else reach
