"""A Jacobian that came from elsewhere, held against a difference quotient at a few samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unbraid.data.functions.differences import UNSETTLED, settled_step
from unbraid.data.functions.forms import Form
from unbraid.data.functions.scales import binary_spreads
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, IndexArray

CHECKED = 3
"""Samples at which a Jacobian is checked."""
Slopes = Callable[[Array, IndexArray], Array]
"""Jacobians (k, n, m) at points (k, m), which are the samples with these numbers (k,)."""


@dataclass(frozen=True)
class ClaimedJacobian:
    """Jacobians that are said to be those of f.

    `name` is what messages call them, `tolerance` how far they may be from a difference quotient, as a share of the
    slopes, and `advice` what to do where they are further away.
    """

    name: str
    jacobian: Slopes
    tolerance: float
    advice: str


def check_agreement(claim: ClaimedJacobian, f: Form, X: Array, F: Array) -> None:
    """Refuse Jacobians J with J v far from the derivative of f along v, for one v in which all inputs take part.

    One sample in three may disagree: it may lie on a kink, where there is no derivative. Where differences do not
    settle, nothing is said.
    """
    rows = np.unique(np.linspace(0, len(X) - 1, CHECKED).astype(int))
    v = binary_spreads(X) * np.random.default_rng(0).choice([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0], X.shape[1])
    J, advice = claim.jacobian(X[rows], rows), claim.advice
    _, error, quotient, _ = settled_step(f, X, F, rows, v)
    if error > UNSETTLED:
        return
    unit = np.maximum(np.std(F, axis=0), np.abs(quotient).max(axis=0))
    allowed = (claim.tolerance + 10.0 * error) * np.where(unit > 0.0, unit, 1.0)
    excess = np.abs(J @ v - quotient) / allowed
    wrong = (excess > 1.0).any(axis=1)
    if np.count_nonzero(wrong) <= len(rows) // CHECKED:
        return
    at, output = np.unravel_index(int(np.argmax(excess)), excess.shape)
    if J.shape[1] == J.shape[2] and (np.abs(J.mT @ v - quotient) <= allowed).all():
        advice = "It looks transposed: J[i, k] must be ∂f_i/∂x_k."
    direction = np.array2string(v, precision=3, threshold=6, separator=", ")
    raise DataError(
        f"{claim.name} does not fit the values of {f.name}: along v = {direction} output {output} changes at "
        f"X[{rows[at]}] at a rate of {quotient[at, output]:.6g} by its values, and of "
        f"{float(J[at, output] @ v):.6g} by its Jacobian. {advice}"
    )
