"""Methods by the papers they come from: compositions of the same parts.

A method is what `decouple(..., method=...)` takes: a factor sweep, a projection, a gauge and a
coupling, with a default basis and stopping rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from unbraid.bases import Basis, BSpline
from unbraid.coupling import Coupling, as_coupling
from unbraid.errors import check_number
from unbraid.polish import Polish
from unbraid.stopping import Stopping


@dataclass(frozen=True)
class AlternatingMethod:
    """Alternating projections, as `unbraid.solvers.alternating` composes them.

    Attributes
    ----------
    name
        What to call it in results.
    coupling
        λ, fixed or growing.
    stopping
        When to stop.
    basis
        The default basis.
    anchored
        Take the minimisers nearest to the last iterate in the G and R steps, not those of least norm.
    normalised
        Keep the rows of W0 at length one.
    offset
        Let the model have a free output offset.
    scaled
        Work in balanced units, so that the user's do not matter.
    evenness
        Knots at quantiles of a branch's inputs (0), evenly over their range (1), or in between.
    polish
        Gauss–Newton steps from the ends of the sweeps, or None.
    """

    name: str
    coupling: Coupling
    stopping: Stopping
    basis: Basis
    anchored: bool
    normalised: bool
    offset: bool
    scaled: bool
    evenness: float = 0.0
    polish: Polish | None = None


def dejonghe2025(
    coupling: float | Coupling = 0.01,
    max_sweeps: int = 300,
    tolerance: float = 1e-6,
    *,
    anchored: bool = False,
    scaled: bool = True,
    target: float | None = None,
    max_seconds: float | None = None,
) -> AlternatingMethod:
    """CMTF-BSD of De Jonghe and Ishteva, Algorithms 1 to 3, as printed.

    Parameters
    ----------
    coupling
        λ, a number or a `GrowingCoupling`; it multiplies the squared norm.
    max_sweeps, tolerance, target, max_seconds
        Stopping rules, see `Stopping`. ``tolerance=0`` uses all sweeps.
    anchored
        The R (and G) step nearest to the last iterate, instead of the printed one of least norm. Better
        where there are fewer outputs than branches: then larger λ helps instead of harming.
    scaled
        Balance the units of inputs and outputs inside. Off, λ and the result depend on the user's units.

    Notes
    -----
    Departs from the print in four ways that only matter when things go wrong: the best iterate is
    returned rather than the last; a row of W0 that vanishes gets a new random direction; the
    LeakyReLU that replaces a branch without slope is projected onto the basis, so that the model
    is a spline throughout; and units are balanced unless `scaled` is off.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> fit = ub.decouple(problem, rank=3, method=ub.methods.dejonghe2025(), starts=4, rng=0)
    >>> fit.model
    DecoupledModel(m=2 inputs, r=3 branches, n=2 outputs)
    """
    return AlternatingMethod(
        name="dejonghe2025",
        coupling=as_coupling(coupling),
        stopping=Stopping(max_sweeps, tolerance, target, max_seconds),
        basis=BSpline(df=12, degree=3),
        anchored=anchored,
        normalised=True,
        offset=False,
        scaled=scaled,
    )


def default(
    coupling: float | Coupling = 0.1,
    max_sweeps: int | None = None,
    tolerance: float = 1e-6,
    *,
    evenness: float = 0.5,
    polish: bool = True,
    max_steps: int = 300,
    max_seconds: float | None = None,
) -> AlternatingMethod:
    """What `decouple` uses without a method: short runs of CMTF-BSD, then Gauss–Newton on the promising ones.

    Parameters
    ----------
    coupling
        λ, a number or a `GrowingCoupling`.
    max_sweeps, tolerance
        Stopping rules of the sweeps. `max_sweeps` is 40 by default, or 300 without polish.
    evenness
        Where knots go: at quantiles of a branch's inputs (0, as the paper has it), evenly over their range (1), or
        in between: at quantiles of a mixture of the two distributions.
    polish
        Whether Gauss–Newton steps follow.
    max_steps
        How many steps each polished start gets at most, before up to 40 more in which its knots settle.
    max_seconds
        Time limit for everything, looked at after every sweep and step. None: no limit.

    Notes
    -----
    The sweeps have the anchored step and a free output offset, in balanced units.
    """
    check_number("evenness", evenness, 0.0, 1.0)
    sweeps = max_sweeps if max_sweeps is not None else SEARCH_SWEEPS if polish else 300
    return AlternatingMethod(
        name="default",
        coupling=as_coupling(coupling),
        stopping=Stopping(sweeps, tolerance, max_seconds=max_seconds),
        basis=BSpline(df=12, degree=3),
        anchored=True,
        normalised=True,
        offset=True,
        scaled=True,
        evenness=evenness,
        polish=Polish.with_budget(max_steps, max_seconds) if polish else None,
    )


SEARCH_SWEEPS = 40
"""Sweeps before the polish: enough to tell promising starts from others."""
