r"""How a branch goes on beyond the range it was learned on.

At an end e of its domain [e_-, e_+] a branch g goes on as its Taylor polynomial,

    g(e + h) = p(h) = Σ_{k ≤ q} g^(k)(e) h^k / k!        for |h| ≤ ρ,
    g(e + h) = p(±ρ) + p'(±ρ) (h ∓ ρ)                    beyond,

with a degree q that belongs to the basis and a reach ρ that belongs to its placement. Shapes go on: where g is
certified to increase or to be convex, ρ ends where p would no longer be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import polynomial

from unbraid.arrays import Array
from unbraid.constraints import Constraint


@dataclass(frozen=True)
class Continuation:
    """The continuation beyond one end.

    Attributes
    ----------
    powers
        (q + 1,), p in powers of h.
    reach
        ρ.
    """

    powers: Array
    reach: float

    @classmethod
    def keeping(cls, powers: Array, reach: float, outwards: int, shapes: Sequence[Constraint]) -> Continuation:
        """The polynomial for as far as it keeps the shapes, in the direction `outwards` (1 or -1), and no further."""
        along = powers * float(outwards) ** np.arange(len(powers))
        for shape in shapes:
            bent = shape.sign * outwards**shape.order * polynomial.polyder(along, shape.order)
            reach = first_negative(bent, reach)
        return cls(powers, reach)

    def value(self, h: Array) -> Array:
        """g(e + h) - g(e), where h points outwards."""
        bent = np.clip(h, -self.reach, self.reach)
        with np.errstate(invalid="ignore"):  # a flat branch at infinity: 0 · inf
            return np.asarray(bent * polynomial.polyval(bent, self.powers[1:]) + self._slope(bent) * (h - bent))

    def derivative(self, h: Array, order: int) -> Array:
        """The first or second derivative at e + h."""
        if order == 1:
            return self._slope(np.clip(h, -self.reach, self.reach))
        curved = polynomial.polyval(np.clip(h, -self.reach, self.reach), polynomial.polyder(self.powers, 2))
        return np.where(np.abs(h) <= self.reach, curved, 0.0)

    def _slope(self, bent: Array) -> Array:
        return np.asarray(polynomial.polyval(bent, polynomial.polyder(self.powers)))


def first_negative(powers: Array, reach: float) -> float:
    """The first h in [0, reach] from which on a polynomial is negative; `reach` if there is none."""
    if len(powers) < 2 or not np.any(powers[1:]):
        return 0.0 if powers[0] < 0.0 else reach
    scaled = np.trim_zeros(powers * reach ** np.arange(len(powers)), "b")  # zeros of a polynomial in h / reach
    zeros = polynomial.polyroots(scaled) if len(scaled) > 1 else np.zeros(0)
    inside = np.sort([zero.real for zero in zeros if abs(zero.imag) < 1e-8 and 0.0 < zero.real < 1.0])
    edges = np.array([0.0, *inside, 1.0])
    negative = polynomial.polyval(0.5 * (edges[1:] + edges[:-1]), scaled) < 0.0
    return float(edges[np.argmax(negative)]) * reach if negative.any() else reach
