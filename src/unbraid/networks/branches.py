r"""What of a branch is trained, and how its pieces follow.

The coordinates a (K,) of a fitted branch are trained, in which the spline stays as smooth as it is. The powers of its
pieces are linear in them, those beyond its domain as well, as long as it goes on as a polynomial just as far:

    powers[p, i] = powers_0[p, i] + Σ_k M[p, i, k] (a - a_0)_k,

with the powers and coordinates of the model that a module was made from: until something is trained, the pieces are the
model's own to the last digit. Most entries of M are zero, and only the others are kept. Of a closed formula its free
parameters are trained; a spline of SciPy stays as it is, having no coordinates in which its pieces stay together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbraid.errors import SettingError
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.kernels.pieces import Pieces
from unbraid.results.branch import Branch, Continuation, FittedBranch, join_pieces
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.branches.piecewise import PiecewiseBranch

SAME_REACH = 1e-9
"""Reaches that differ by less than this share are the same."""


def coefficients_of(branch: Branch, j: int) -> Array:
    """What is trained of branch j: (K,)."""
    if isinstance(branch, FormulaBranch):
        return np.array([branch.formula.parameters[k] for k in branch.formula.form.free])
    if isinstance(branch, FittedBranch) and branch.polynomials() is not None:
        return branch.coordinates
    if branch.polynomials() is None:
        raise SettingError(
            f"Branch {j + 1}, {branch!r}, is neither made of polynomials nor one of the formulas of this library, so "
            "it cannot be part of a module: take a model that `decouple` has fitted to it."
        )
    return np.zeros(0)


def with_coefficients(branch: Branch, coefficients: Array) -> Branch:
    """The branch with other ones of its `coefficients_of`; itself where they are the same."""
    if np.array_equal(coefficients, coefficients_of(branch, 0)):
        return branch
    if isinstance(branch, FormulaBranch):
        return replace(branch, formula=branch.formula.with_free(coefficients))
    assert isinstance(branch, FittedBranch)
    low, high = branch.domain
    held = np.array([one.reach for one in branch.continuations])
    cut = held != branch.reach * (high - low)
    trained = replace(branch, coordinates=coefficients, reach=np.where(cut, held / (high - low), branch.reach))
    if np.allclose([one.reach for one in trained.continuations], held, rtol=SAME_REACH, atol=0.0):
        return trained
    return PiecewiseBranch(held_pieces(branch, coefficients), branch.domain)


def held_pieces(branch: FittedBranch, coordinates: Array) -> Pieces:
    """The polynomials of other coordinates, which go on beyond the domain for just as far as those of the branch."""
    parts, own = branch.placement.short_pieces(coordinates), branch.continuations
    assert parts is not None
    terms = branch.taylor(coordinates, len(own[0].powers) - 1)
    below, above = (Continuation(powers, one.reach) for powers, one in zip(terms, own, strict=True))
    return join_pieces(*parts, below, above)


def shares(branch: Branch) -> tuple[IndexArray, Array]:
    """M without its zeros: which coefficients a power depends on, and how much: (q + 1, P, B) each.

    Powers that depend on fewer than B have shares that are zero.
    """
    pieces = branch.polynomials()
    assert pieces is not None
    if not isinstance(branch, FittedBranch):
        return np.zeros((*pieces.powers.shape, 0), dtype=np.intp), np.zeros((*pieces.powers.shape, 0))
    units = np.eye(len(branch.coordinates))
    M = np.stack([held_pieces(branch, unit).powers for unit in units], axis=-1)
    most = int(np.count_nonzero(M, axis=-1).max())
    which = np.sort(np.argsort(M == 0.0, axis=-1, kind="stable")[..., :most], axis=-1)
    return which, np.take_along_axis(M, which, axis=-1)
