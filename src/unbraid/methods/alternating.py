"""Alternating projections: CMTF-BSD, the method it grew out of, and unbraid's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unbraid.bases import Basis, BSpline, PiecewiseLinear, SmoothingSpline
from unbraid.bases.projection import Projection
from unbraid.data.sample_set import SampleSet
from unbraid.errors import check_number
from unbraid.methods.base import Method, Polish
from unbraid.solvers.alternating import AlternatingProjection
from unbraid.solvers.coupling import Coupling, FixedCoupling, as_coupling
from unbraid.solvers.loop import Stopping

SEARCH_SWEEPS = 40
"""Sweeps before the polish: enough to tell promising starts from others."""


@dataclass(frozen=True, kw_only=True)
class AlternatingMethod(Method):
    """Alternating projections, as `unbraid.solvers.alternating` composes them.

    Attributes
    ----------
    anchored
        Take the minimisers nearest to the last iterate in the G and R steps, not those of least norm.
    normalised
        Keep the rows of W0 at length one.
    """

    weighted: ClassVar[bool] = True
    coupled: ClassVar[bool] = True
    compressible: ClassVar[bool] = True
    anchored: bool
    normalised: bool

    def solver(self, samples: SampleSet, basis: Basis, projection: Projection) -> AlternatingProjection:
        """Alternating projections on the samples, with the settings of this method."""
        return AlternatingProjection(
            samples, basis, projection, self.coupling, self.anchored, self.normalised, self.offset, self.evenness
        )


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


def zniyed2021(
    basis: Basis | None = None,
    *,
    values: bool = True,
    coupling: float | Coupling = 0.01,
    max_sweeps: int = 150,
    tolerance: float = 5e-5,
    target: float | None = 0.005**2,
    scaled: bool = True,
    max_seconds: float | None = None,
) -> AlternatingMethod:
    """The projection method of Zniyed, Usevich, Miron and Brie (2021), which CMTF-BSD grew out of.

    Parameters
    ----------
    basis
        Any; the authors have piecewise-linear functions, the default, and powers (`Polynomial`).
    values
        Fit values beside Jacobians. Without, they only set the output offset.
    coupling
        λ, where values are fitted.
    max_sweeps, tolerance, target, max_seconds
        Stopping rules, see `Stopping`; by default the authors': 150 sweeps, a relative error of 0.005 (squared, as
        objectives are), a change of 5e-5.
    scaled
        Balance the units of inputs and outputs inside.

    Notes
    -----
    Sweeps are those of `dejonghe2025` without the normalisation of W0.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> ub.decouple(problem, rank=3, method=ub.methods.zniyed2021(), starts=2, rng=0).basis
    PiecewiseLinear(df=12)
    """
    return AlternatingMethod(
        name="zniyed2021",
        coupling=as_coupling(coupling),
        stopping=Stopping(max_sweeps, tolerance, target, max_seconds),
        basis=PiecewiseLinear(df=12) if basis is None else basis,
        anchored=False,
        normalised=False,
        offset=not values,
        scaled=scaled,
        values=values,
    )


def default(
    coupling: float | Coupling | None = None,
    max_sweeps: int | None = None,
    tolerance: float = 1e-6,
    *,
    evenness: float = 0.5,
    polish: bool = True,
    max_steps: int = 300,
    max_seconds: float | None = None,
) -> AlternatingMethod:
    """What `decouple` uses without a method: short runs of CMTF-BSD, Gauss–Newton on the promising ones, smoothing.

    Parameters
    ----------
    coupling
        λ, a number or a `GrowingCoupling`. None: 0.1, and where a `SmoothingSpline` chooses its smoothing from the
        data, as it does by default, λ as well in the end, by how far values and Jacobians are off the model.
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
        Time limit for everything, looked at after every sweep and step, none of which is begun that would, as long as
        the last, end further beyond the limit than is left of it; where a selection makes several fits, as with
        ``rank="auto"``, for each of them. None: no limit.

    Notes
    -----
    The sweeps have the anchored step and a free output offset, in balanced units. Branches are penalised splines,
    `SmoothingSpline()`, of fewer knots where samples are few; search and polish are in `BSpline(12)`, and the best
    start goes on from there. Without polish that is the basis throughout.
    """
    check_number("evenness", evenness, 0.0, 1.0)
    sweeps = max_sweeps if max_sweeps is not None else SEARCH_SWEEPS if polish else 300
    return AlternatingMethod(
        name="default",
        coupling=FixedCoupling(0.1, open=True) if coupling is None else as_coupling(coupling),
        stopping=Stopping(sweeps, tolerance, max_seconds=max_seconds),
        basis=SmoothingSpline() if polish else BSpline(df=12, degree=3),
        anchored=True,
        normalised=True,
        offset=True,
        scaled=True,
        evenness=evenness,
        polish=Polish.with_budget(max_steps, max_seconds) if polish else None,
    )
