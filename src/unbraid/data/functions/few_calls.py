"""Derivatives of expensive functions, with as few calls as there can be.

    forward:  (f(x + h e_k) − f(x)) / h,             one call an input, beside that of the value;
    central:  (f(x + h e_k) − f(x − h e_k)) / 2h,    two.

They differ from the derivative by h f''/2 and h² f'''/6, and by a rounding error of about ε |f| / h: for a function
that varies as slowly as its samples spread, the best h is √ε of the spread, or ∛ε, and the error about as large, or its
square. One-sided steps go towards the middle of the samples: no point lies beyond them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from unbraid.data.functions.forms import Form
from unbraid.data.functions.scales import binary_spreads, sizes
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array

Side = Literal["forward", "central"]
ORDER: dict[Side, int] = {"forward": 1, "central": 2}
"""Of the error in h; and calls for each input."""
STEEP = 1e4
"""A derivative that is so many times as large as outputs vary over the spread of an input is none, if it is so..."""
OFTEN = 0.05
"""...at more than this share of the samples: noise, over a short step."""
FLAT = 0.95
"""An output that varies, and moves at less than the rest of the samples, is rounded."""
LEAST_JUDGED = 8
"""Samples from which on such things can be told."""


def calls_a_point(side: Side | None, m: int) -> int:
    """How many points f is asked for to know its value, and its Jacobian, at one: 1, m + 1 or 2m + 1."""
    return 1 if side is None else 1 + ORDER[side] * m


@dataclass(frozen=True)
class FewCalls:
    """Jacobians of f by forward or central differences, `steps` (m,) apart, towards the `middle` (m,)."""

    f: Form
    side: Side
    steps: Array
    middle: Array

    @classmethod
    def at(cls, X: Array, f: Form, side: Side, step: float | None) -> FewCalls:
        """Differences at samples X; steps are this share of each input's spread, None: what suits the precision."""
        scale = binary_spreads(X)
        far = np.maximum(1.0, sizes(X) / scale)  # from zero: there numbers are further apart
        share = (f.resolution * far) ** (1.0 / (1 + ORDER[side])) if step is None else np.full(len(scale), step)
        steps = scale * np.exp2(np.round(np.log2(share)))
        return cls(f, side, steps, 0.5 * (X.min(axis=0) + X.max(axis=0)))

    def __call__(self, X: Array, F: Array, chunk: int) -> Array:
        """The Jacobians (S, n, m) at points X (S, m) with values F (S, n)."""
        S, m = X.shape
        signs = np.where(self.middle < X, -1.0, 1.0)
        away = np.eye(m) * (signs * self.steps)[:, None]
        sides = (1.0,) if self.side == "forward" else (1.0, -1.0)
        points = np.stack([X[:, None] + side * away for side in sides], axis=2)  # (S, m, 1 or 2, m)
        rows = np.repeat(np.arange(S), m * len(sides))
        values = self.f.in_chunks(points.reshape(-1, m), rows, chunk, beside=True).reshape(S, m, len(sides), -1)
        if self.side == "forward":
            points, values = (
                np.concatenate([there, np.broadcast_to(here[:, None, None], there.shape)], axis=2)
                for there, here in ((points, X), (values, F))
            )
        steps = np.diagonal(points[:, :, 0] - points[:, :, 1], axis1=1, axis2=2)  # as they are after rounding
        J = np.asarray(((values[:, :, 0] - values[:, :, 1]) / steps[:, :, None]).mT)
        refuse_noise(J, X, F, self)
        return J


def refuse_noise(J: Array, X: Array, F: Array, used: FewCalls) -> None:
    """Refuse derivatives that are those of noise, or of rounding: over a short step nothing else is left of them."""
    spread = np.std(F, axis=0)
    varies = spread > 1e3 * used.f.resolution * np.abs(F).max(axis=0)
    if len(X) < LEAST_JUDGED or not varies.any():
        return
    relative = np.abs(J[:, varies]) * np.std(X, axis=0) / spread[varies][:, None]
    output = np.flatnonzero(varies)
    steep = np.mean(relative > STEEP, axis=0)
    still = np.mean((J[:, varies] == 0.0).all(axis=2), axis=0)
    if steep.max() > OFTEN:
        i, k = np.unravel_index(int(np.argmax(steep)), steep.shape)
        raise DataError(
            f"The {used.side} differences of f with respect to input {k} are no derivatives: over a step of "
            f"{used.steps[k]:.2g} output {output[i]} moves far more than over the distance of samples, so f is noisy "
            f"or jumps. {ADVICE}"
        )
    if still.max() > FLAT:
        raise DataError(
            f"The {used.side} differences of f are no derivatives: output {output[np.argmax(still)]} varies, and does "
            f"not move over steps of {used.steps.max():.2g} and less, so f is rounded. {ADVICE}"
        )


ADVICE = (
    'Give a longer step=, say 1e-3 of an input\'s spread, use derivatives="differences", which finds one out with more '
    "calls, or values alone, derivatives=None."
)
