"""Which inputs and branches matter, for the user."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unbraid.inference.importance.intervals import Shares
from unbraid.inference.importance.needs import FTest
from unbraid.inference.importance.shares import Together
from unbraid.kernels.arrays import Array

SURE, LIKELY = 0.01, 0.05
"""Probabilities below which something is needed, and from which on it is not."""
WORSE = 0.01
"""How much worse the held-out error may be without what is not needed."""
MUCH_WORSE = 0.25
"""Growth of the held-out error from which on something is needed, whatever the F test says."""
HARDLY = 1e-4
"""Share of every output below which something hardly matters, however sure it is that it does."""


@dataclass(frozen=True)
class Need:
    """Whether an input or a branch is needed.

    Attributes
    ----------
    name
        'x3', say, or 'branch 2'.
    test
        The approximate F test that it does nothing; None where it does nothing for certain.
    with_it, without
        (n,), the held-out error with it, in % of the spread of each output, and without it; to first order. Without
        values they are those of slopes. NaN where it would have taken too long.
    share
        The largest share that it has in an output.
    """

    name: str
    test: FTest | None
    with_it: Array
    without: Array
    share: float

    @property
    def p(self) -> float:
        """The probability of so large an effect by chance, where there is none."""
        return 1.0 if self.test is None else self.test.p

    @property
    def growth(self) -> float:
        """By what share the held-out error grows without it, each output in units of its own; NaN if unknown."""
        known = np.isfinite(self.with_it) & np.isfinite(self.without) & (self.with_it > 0.0)
        if not known.any():
            return float("nan")
        with np.errstate(over="ignore"):
            return float(np.sqrt(np.mean((self.without[known] / self.with_it[known]) ** 2))) - 1.0

    @property
    def verdict(self) -> str:
        """'needed', 'hardly matters', 'doubtful', 'not needed' or 'does nothing'."""
        if self.test is None:
            return "does nothing"
        if self.p < LIKELY and self.share < HARDLY:
            return "hardly matters"
        if (self.p < SURE and not self.growth <= 0.0) or self.growth > MUCH_WORSE:
            return "needed"
        return "not needed" if self.p >= LIKELY and not self.growth > WORSE else "doubtful"

    @property
    def words(self) -> str:
        """'x3 is needed (p 0.002; without it the held-out error grows by 12 %)'."""
        if self.test is None:
            return f"{self.name} does nothing"
        verb = "" if self.verdict == "hardly matters" else "is "
        chance = "p below 0.0001" if self.p < 1e-4 else f"p {self.p:.2g}"
        if self.verdict == "needed" and self.p >= SURE:  # what others could take over to first order, a straight line
            chance = "not by the F test alone"
        held_out = "" if np.isnan(self.growth) else f"; without it the held-out error {growing(self.growth)}"
        return f"{self.name} {verb}{self.verdict} ({chance}{held_out})"


def growing(growth: float) -> str:
    """'grows by 12 %', 'is 1,300 times as large', 'falls by 0.3 %'."""
    if growth >= 999.0:
        return "is over 1,000 times as large"
    if growth >= 1.0:
        return f"is {1.0 + growth:,.{1 if growth < 9.0 else 0}f} times as large"
    if abs(growth) < 5e-4:
        return "stays as it is"
    return f"{'grows' if growth > 0.0 else 'falls'} by {100.0 * abs(growth):.2g} %"


@dataclass(frozen=True, repr=False, eq=False)
class Importance:
    """What `importance` gives: shares of the variance of every output.

    Attributes
    ----------
    first_order, total
        (n, m), Sobol' indices: what of an output's variance each input makes by itself, and what of it would be gone
        if the input did not vary, together with what it makes with others. Inputs count as independent, each
        distributed as in the samples.
    slopes
        (n, m), the mean squares of ∂f_i/∂x_k times the variance of x_k, over their sum: of derivatives at the samples.
    branches
        (n, r), Cov(f_i, W1_ij g_j) / Var(f_i) over the samples; they sum to 1. Below 0 where other branches cancel it.
    low, high
        The ends of intervals of all these, as attributes of the same names; None where only a model is known.
    level
        The share of cases that intervals are meant to cover.
    input_needs, branch_needs
        Whether each of them is needed; None where only a model is known.
    outside
        The share of points with independent inputs that lie outside the range of a branch that was seen in training.
    inputs_together, branches_together
        Which inputs, and which branches, are correlated over the samples; strongest first.
    doubt
        Why intervals and tests mean little; None where there is no reason to doubt them.
    input_names, output_names
        What inputs and outputs are called.
    """

    first_order: Array
    total: Array
    slopes: Array
    branches: Array
    low: Shares | None
    high: Shares | None
    level: float
    input_needs: tuple[Need, ...] | None
    branch_needs: tuple[Need, ...] | None
    outside: float
    inputs_together: tuple[Together, ...]
    branches_together: tuple[Together, ...]
    doubt: str | None
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    @property
    def interactions(self) -> Array:
        """What each input makes only together with others, `total` less `first_order`, (n, m)."""
        return self.total - self.first_order

    @cached_property
    def overall(self) -> Array:
        """The mean over outputs of `total`, over its sum, (m,), which is one number an input."""
        return overall_importance(self.total)

    def __repr__(self) -> str:
        from unbraid.inference.importance.words import describe_importance

        return "\n".join(["Importance: shares of the variance of every output", *describe_importance(self)])


def overall_importance(total: Array) -> Array:
    """The mean (m,) over outputs of total indices (n, m), over its sum; equal ones where nothing varies."""
    mean = total.mean(axis=0)
    size = float(mean.sum())
    return np.asarray(mean / size) if size > 0.0 else np.full(len(mean), 1.0 / max(len(mean), 1))
