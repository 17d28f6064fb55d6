"""What the law suites run over: a new basis, constraint or kind of input joins by joining a list."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import interpolate

from unbraid.bases import (
    Basis,
    BSpline,
    NaturalCubic,
    PiecewiseLinear,
    Placement,
    Polynomial,
    SmoothingSpline,
    constraints,
)
from unbraid.bases.constraints import Constraint
from unbraid.bases.natural import PlacedNatural
from unbraid.bases.splines import PlacedSpline, SplineBasis
from unbraid.kernels.arrays import Array

SPLINES: tuple[SplineBasis, ...] = (
    BSpline(df=1, degree=1),
    BSpline(df=7, degree=1, of="slope"),
    BSpline(df=5, degree=2),
    BSpline(df=3, degree=3, of="slope"),
    BSpline(df=12, degree=3),
    BSpline(df=9, degree=4, of="slope"),
    BSpline(df=11, degree=5),
    PiecewiseLinear(df=8),
)
POLYNOMIALS: tuple[Polynomial, ...] = (Polynomial(1), Polynomial(3), Polynomial(8))
NATURALS: tuple[NaturalCubic, ...] = (NaturalCubic(1), NaturalCubic(2), NaturalCubic(8))
UNSMOOTHED: tuple[SmoothingSpline, ...] = (SmoothingSpline(3, 3, 0.0), SmoothingSpline(11, smoothing=0.0))
"""With no penalty they obey the laws of least squares; bases/test_smoothing_splines.py has those of the penalty."""
BASES: tuple[Basis, ...] = (*SPLINES, *POLYNOMIALS, *NATURALS, *UNSMOOTHED)
CARRIERS: tuple[Basis, ...] = tuple(basis for basis in BASES if basis.refusal() is None)
"""Those that carry constraints."""
CONSTRAINTS: tuple[Constraint, ...] = tuple(one() for one in constraints.CONSTRAINTS)

every_basis = pytest.mark.parametrize("basis", BASES, ids=repr)
every_spline = pytest.mark.parametrize("basis", SPLINES, ids=repr)
every_polynomial = pytest.mark.parametrize("basis", POLYNOMIALS, ids=repr)

EPS = float(np.finfo(float).eps)
seeds = st.integers(0, 2**32 - 1)

KINDS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "uniform": lambda rng, size: rng.uniform(-1.0, 1.0, size),
    "normal": lambda rng, size: rng.standard_normal(size),
    "heavy-tailed": lambda rng, size: np.clip(rng.standard_cauchy(size), -1e4, 1e4),
    "rounded": lambda rng, size: np.round(rng.standard_normal(size), 1),
    "few values": lambda rng, size: rng.choice(rng.standard_normal(rng.integers(2, 7)), size),
    "point mass": lambda rng, size: np.where(rng.random(size) < 0.7, 0.25, rng.uniform(-1.0, 1.0, size)),
    "constant": lambda rng, size: np.full(size, rng.standard_normal()),
}


@st.composite
def inputs(draw: st.DrawFn, size: int = 60) -> Array:
    """Branch inputs u (size,) of every kind, scale and offset."""
    rng = np.random.default_rng(draw(seeds))
    u = KINDS[draw(st.sampled_from(sorted(KINDS)))](rng, size)
    return 10.0 ** draw(st.integers(-6, 6)) * (u + draw(st.sampled_from([0.0, 1.0, -30.0, 1e3, -1e6])))


@st.composite
def distinct_inputs(draw: st.DrawFn, size: int = 60) -> Array:
    """Branch inputs u (size,) without repetitions, near zero, of order one."""
    rng = np.random.default_rng(draw(seeds))
    return KINDS[draw(st.sampled_from(["uniform", "normal"]))](rng, size)


def random_a(basis: Basis, seed: int, *lead: int) -> Array:
    """Random coordinates (*lead, size) of functions of a basis."""
    return np.random.default_rng(seed).standard_normal((*lead, basis.size))


def grid(placement: Placement, points: int = 301) -> Array:
    """Equidistant points over the whole domain of a placement without leading axes."""
    low, high = placement.domain()
    return np.linspace(low, high, points)


def pieces(placement: Placement) -> Array:
    """Where the polynomial pieces of a placement without leading axes begin and end."""
    if isinstance(placement, PlacedNatural):
        placement = placement.spline
    return placement.breakpoints if isinstance(placement, PlacedSpline) else placement.domain()


def dither(placement: Placement, u: Array, derivative: int = 0) -> float:
    """How much the entries of a design change when u changes in its last digits."""
    if isinstance(placement, PlacedNatural):  # its entries are sums of those of the cubic spline, and may cancel
        placement = placement.spline
    b = pieces(placement)  # narrow ones fall between the points of a grid
    points = np.concatenate([grid(placement), *(b[:-1] + share * np.diff(b) for share in np.linspace(0.0, 1.0, 9))])
    steepest = np.abs(placement.design(points, derivative + 1)).max()
    return 4.0 * EPS * float(np.abs(u).max()) * float(steepest)


def knots(placement: PlacedSpline) -> Array:
    """The clamped knot vector, with both ends d + 1 times."""
    b, d = placement.breakpoints, placement.degree
    return np.concatenate([np.repeat(b[0], d), b, np.repeat(b[-1], d)])


def oracle(placement: PlacedSpline, a: Array | None = None) -> "interpolate.BSpline[np.float64]":
    """SciPy's spline with coordinates a, or all basis functions at once."""
    tau = knots(placement)
    return interpolate.BSpline(tau, np.eye(len(tau) - placement.degree - 1) if a is None else a, placement.degree)


def random_feasible(placed: Placement, constraint: Constraint, rng: np.random.Generator) -> Array:
    """Coordinates of a random function in the cone, some of whose constraints are active."""
    K = len(placed.roughness())
    z = rng.exponential(size=K) * (rng.random(K) < rng.choice([0.3, 0.7, 1.0]))
    z *= constraint.sign
    z[: constraint.order] = rng.standard_normal(constraint.order)
    return placed.integrate(z, constraint.order)
