"""The methods of papers with their authors' settings: 16 random starts, or two where a sweep is expensive.

Tables and figures have them in this order.
"""

from collections.abc import Callable

from unbraid import methods
from unbraid.bases import Basis, BSpline, PiecewiseLinear, Polynomial
from unbraid.decouple import decouple
from unbraid.methods import Method
from unbraid.studies.comparison.entries import Contender, Fitting, System


def fitting(method: Method, basis: Callable[[System], Basis], starts: int = 16) -> Fitting:
    """How to fit by a method, in the basis that a system calls for, from so many random starts."""
    return lambda problem, system, rng: decouple(
        problem, system.rank, basis=basis(system), method=method, starts=starts, rng=rng
    )


def polynomials(system: System) -> Polynomial:
    """Polynomials of the system's degree."""
    return Polynomial(system.degree)


def cubic_splines(system: System) -> BSpline:
    """Cubic splines of the system's degrees of freedom."""
    return BSpline(system.df)


def polygons(system: System) -> PiecewiseLinear:
    """Piecewise-linear functions of the system's degrees of freedom."""
    return PiecewiseLinear(system.df)


CONTENDERS = [
    Contender("dejonghe2025", "De Jonghe 2025", fitting(methods.dejonghe2025(), cubic_splines)),
    Contender("hollander2017", "Hollander 2017", fitting(methods.hollander2017(), polynomials)),
    Contender("dreesen2015", "Dreesen 2015", fitting(methods.dreesen2015(), polynomials)),
    Contender("zniyed2021", "Zniyed 2021", fitting(methods.zniyed2021(), polygons)),
    Contender("decuyper2022", "Decuyper 2022", fitting(methods.decuyper2022(), polynomials, starts=2)),
]
