"""Derivatives of expensive functions, with as few calls as there can be.

    forward:  (f(x + h e_k) − f(x)) / h,             one call an input, beside that of the value;
    central:  (f(x + h e_k) − f(x − h e_k)) / 2h,    two.

They differ from the derivative by h f''/2 and h² f'''/6, and by a rounding error of about ε |f| / h: for a function
that varies as slowly as its samples spread, the best h is √ε of the spread, or ∛ε, and the error about as large, or its
square. One-sided steps go towards the middle of the samples: no point lies beyond them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unbraid.data.functions.forms import Form
from unbraid.data.functions.scales import binary_spreads, sizes
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, BoolArray, blocks

Side = Literal["forward", "central"]
ORDER: dict[Side, int] = {"forward": 1, "central": 2}
"""Of the error in h; and calls for each input."""
CHECKED, FURTHER, APART = 3, 64.0, 0.05
"""At so many samples differences are compared with those of steps so many times as long; and how far these may be
apart, as a share of slopes."""
MOST_OFFSET = 1e6
"""How far from zero, in units of their spread, outputs count: longer steps would be too long for the others."""
FLAT = 0.95
"""An output that varies, and moves at less than the rest of the samples, is rounded."""
LEAST_JUDGED = 8
"""Samples from which on that can be told."""


def calls_a_point(side: Side | None, m: int) -> int:
    """How many points f is asked for to know its value, and its Jacobian, at one: 1, m + 1 or 2m + 1."""
    return 1 if side is None else 1 + ORDER[side] * m


@dataclass(frozen=True)
class FewCalls:
    """Jacobians of f by forward or central differences, `steps` (m,) apart, towards the `middle` (m,) of samples.

    `scale` (m,) is how far samples spread; `own_steps` says that steps were not given but follow from it.
    """

    f: Form
    side: Side
    steps: Array
    scale: Array
    middle: Array
    own_steps: bool

    @classmethod
    def at(cls, X: Array, F: Array, f: Form, side: Side, step: float | None) -> FewCalls:
        """Differences at samples X with values F; steps are this share of each input's spread.

        None: what suits the precision. Far from zero numbers are further apart, those of inputs and those of outputs.
        """
        scale, varies = binary_spreads(X), varying(F, f.resolution)
        offset = np.max(np.abs(F).max(axis=0)[varies] / np.std(F, axis=0)[varies], initial=1.0)
        far = np.maximum(min(offset, MOST_OFFSET), sizes(X) / scale)
        share = (f.resolution * far) ** (1.0 / (1 + ORDER[side])) if step is None else np.full(len(scale), step)
        steps = scale * np.exp2(np.round(np.log2(share)))
        return cls(f, side, steps, scale, 0.5 * (X.min(axis=0) + X.max(axis=0)), step is None)

    def __call__(self, X: Array, F: Array, chunk: int) -> Array:
        """The Jacobians (S, n, m) at points X (S, m) with values F (S, n)."""
        S, m = X.shape
        away = np.where(self.middle < X, -self.steps, self.steps)
        sides = np.array([1.0] if self.side == "forward" else [1.0, -1.0])
        count = S * m * len(sides)
        values = np.empty((count, F.shape[1]))
        for part in blocks(count, m):  # of many inputs no more points at a time than memory holds
            rows, rest = np.divmod(np.arange(count)[part], m * len(sides))
            inputs, which = np.divmod(rest, len(sides))
            points = X[rows]
            points[np.arange(len(rows)), inputs] += sides[which] * away[rows, inputs]
            values[part] = self.f.in_chunks(points, rows, chunk, beside=True)
        values = values.reshape(S, m, len(sides), -1)
        back = values[:, :, 1] if self.side == "central" else F[:, None]
        steps = (X + away) - (X - away if self.side == "central" else X)  # as they are after rounding
        J = np.asarray(((values[:, :, 0] - back) / steps[:, :, None]).mT)
        if self.own_steps:
            self.refuse_noise(X, F, J)
        self.refuse_rounding(F, J)
        return J

    def refuse_noise(self, X: Array, F: Array, J: Array) -> None:
        """Refuse differences that are others over steps that are longer, and still short; one kink is no noise.

        All inputs move at once, towards the middle: a call a sample, or two.
        """
        rows = np.unique(np.linspace(0, len(X) - 1, CHECKED).astype(int))
        v = np.where(self.middle < X[rows], -self.steps, self.steps)
        silent = replace(self.f, told=lambda points: None, failures={})
        there = silent(X[rows] + FURTHER * v, rows, beside=True)
        back = silent(X[rows] - FURTHER * v, rows, beside=True) if self.side == "central" else F[rows]
        change = (there - back) / (FURTHER if self.side == "forward" else 2.0 * FURTHER)
        unit = np.maximum(np.std(F, axis=0) * np.max(self.steps / self.scale), np.fmax.reduce(np.abs(change), axis=0))
        apart = np.abs((J[rows] @ v[:, :, None])[:, :, 0] - change) > APART * unit
        wrong = apart & varying(F, self.f.resolution)
        if np.count_nonzero(wrong.any(axis=1)) > len(rows) // CHECKED:
            at, output = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            raise DataError(
                f"The {self.side} differences of f are no derivatives: at X[{rows[at]}] those of output {output} are "
                f"other ones over steps that are {FURTHER:.0f} times as long, so f is noisy or jumps. {ADVICE}"
            )

    def refuse_rounding(self, F: Array, J: Array) -> None:
        """Refuse outputs that vary from sample to sample, and do not move at all over steps."""
        still = np.mean((J == 0.0).all(axis=2), axis=0) * varying(F, self.f.resolution)
        if len(F) >= LEAST_JUDGED and still.max() > FLAT:
            raise DataError(
                f"The {self.side} differences of f are no derivatives: output {np.argmax(still)} varies, and does not "
                f"move over steps of {self.steps.max():.2g} and less, so f is rounded. {ADVICE}"
            )


def varying(F: Array, resolution: float) -> BoolArray:
    """Which outputs vary by more than rounding, (n,)."""
    return np.asarray(np.std(F, axis=0) > 1e3 * resolution * np.abs(F).max(axis=0))


ADVICE = (
    'Give a longer step=, say 1e-3 of an input\'s spread, use derivatives="differences", which finds one out with more '
    "calls, or values alone, derivatives=None."
)
