r"""Branches as SciPy's piecewise polynomials, for those who go on with them there.

A piece of `Pieces` is Σ_p P_p t^p with t = (u - middle) rate. SciPy's has powers of u - x, x being where the piece
begins, so with t = τ + (u - x) rate, τ = (x - middle) rate,

    c_k = rate^k Σ_{p ≥ k} P_p binom(p, k) τ^(p - k).

The lines at both ends, which have no end, begin one length of all pieces away: SciPy lets them go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unbraid.errors import SettingError
from unbraid.kernels.arrays import Array
from unbraid.kernels.pieces import Pieces, about

if TYPE_CHECKING:
    from scipy.interpolate import PPoly


def as_ppoly(pieces: Pieces) -> PPoly[np.float64]:
    """The same function as a `scipy.interpolate.PPoly` that extrapolates."""
    from scipy.interpolate import PPoly

    breaks = pieces.breaks
    length = float(breaks[-1] - breaks[0]) or 1.0
    x = np.concatenate([[breaks[0] - length], breaks, [breaks[-1] + length]])
    with np.errstate(over="ignore", invalid="ignore"):  # of domains as small as 1e-100
        c = about_starts(pieces, x[:-1])
    if not np.isfinite(c).all():
        raise SettingError("The powers of this branch are beyond floating point: rescale its inputs.")
    return PPoly(c[::-1], x, extrapolate=True)


def about_starts(pieces: Pieces, x: Array) -> Array:
    """The coefficients (q + 1, P) of the pieces in powers of u - x, lowest first; x (P,) is where they begin."""
    tau = (x - pieces.middle) * pieces.rate
    return about(pieces.powers, tau) * pieces.rate ** np.arange(len(pieces.powers))[:, None]
