r"""First parameters of forms for a curve: a coarse search over where a form may lie, then a few steps.

Of a form a h(b u + c) + d the numbers a and d enter linearly, so for every (b, c) on a grid the best of them come from
a straight-line fit of the curve to h. The grid is in z, which goes from -1 to 1 where the points lie: b z + c, with
centres -c / b within the points or a little beside them, and widths from a fraction of the range to several of it. Of
logarithms, roots and reciprocals only such b u + c are tried that are positive at all points.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from unbraid.kernels.arrays import Array, spread_out
from unbraid.results.branch import Branch
from unbraid.results.branches.forms import B, Form, Formula

WIDTHS = np.geomspace(0.3, 24.0, 24)
"""Steepnesses b, of z, that are tried."""
CENTRES = np.linspace(-1.6, 1.6, 25)
"""Centres, in z, that are tried: a little beyond the points on both sides."""
BESIDE = np.geomspace(1e-3, 20.0, 30)
"""Distances, in z, of a pole or a branch point from the points."""
KINKED = ("absolute value", "rectifier", "saturation", "dead zone")
"""Forms with kinks, which curves follow only roughly."""
KINKS = np.linspace(-1.05, 1.05, 22)
"""Places, in z, of kinks of which a form has two."""
DIFFERENT = 0.1
"""Guesses differ somewhere by this share of the curve's spread at least."""
POINTS = 120
"""Points of a curve at which forms are first tried."""
POSITIVE = ("square root", "reciprocal", "logarithm")
"""Forms whose argument has one sign."""


class Curve(NamedTuple):
    """A curve at points: inputs u (P,), values g (P,) and weights (P,), which add up to one."""

    u: Array
    g: Array
    weights: Array

    @classmethod
    def of(cls, branch: Branch, u: Array) -> Self:
        """A branch at some of the inputs u (S,) that samples have."""
        return cls.at(u, branch(u))

    @classmethod
    def at(cls, u: Array, g: Array) -> Self:
        """Values g at some of the inputs u, (S,) each."""
        order = np.argsort(u, kind="stable")
        some = order[spread_out(len(order), min(len(order), POINTS))]
        return cls(u[some], g[some], np.full(len(some), 1.0 / len(some)))

    @property
    def spread(self) -> float:
        """The root mean square of g about its mean."""
        return float(np.sqrt(self.weights @ (self.g - self.weights @ self.g) ** 2))

    @property
    def frame(self) -> tuple[float, float]:
        """The middle and half of the length of the range of u: z = (u - middle) / half."""
        low, high = float(self.u.min()), float(self.u.max())
        return 0.5 * (low + high), 0.5 * (high - low) or 1.0


def grid(form: Form) -> tuple[Array, Array]:
    """The (b, c) of b z + c that are tried, (G,) each."""
    if form.shape in POSITIVE:
        beside = np.concatenate([1.0 + BESIDE, 1.0 + BESIDE])
        return np.repeat([1.0, -1.0], len(BESIDE)), beside
    if form.shape in ("square", "cube", "fourth power", "absolute value"):
        return np.ones(33), np.linspace(-4.0, 4.0, 33)
    if form.shape == "rectifier":
        return np.repeat([1.0, -1.0], 31), np.tile(np.linspace(-0.95, 0.95, 31), 2)
    if form.shape == "exponential":
        return np.concatenate([WIDTHS, -WIDTHS]), np.zeros(2 * len(WIDTHS))
    if form.shape == "sine":
        b, c = np.meshgrid(np.geomspace(0.4, 24.0, 40), np.linspace(0.0, np.pi, 8, endpoint=False))
        return b.ravel(), c.ravel()
    if form.shape in ("saturation", "dead zone"):
        low, high = (KINKS[i] for i in np.triu_indices(len(KINKS), 1))
        return 2.0 / (high - low), -(high + low) / (high - low)
    b, centre = np.meshgrid(WIDTHS, CENTRES)
    signs = (1.0, -1.0) if form.shape == "softplus" else (1.0,)
    return np.concatenate([s * b.ravel() for s in signs]), np.concatenate([-s * (b * centre).ravel() for s in signs])


def first_guesses(form: Form, curve: Curve) -> list[Formula]:
    """The best formulas of a form for a curve, a few that differ from each other; more where there are kinks."""
    count = 4 if form.shape in KINKED else 2
    if form.h is None:
        return [fitted_polynomial(form, curve)]
    middle, half = curve.frame
    b, c = grid(form)
    with np.errstate(all="ignore"):
        H = form.h.evaluate(b[:, None] * ((curve.u - middle) / half) + c[:, None])
        lines = np.stack([np.ones_like(curve.u), (curve.u - middle) / half][: 1 + form.has_line], axis=1)
        a, rest, left = straight_fits(H, lines, curve)
    fits = a[:, None] * H + rest @ lines.T
    found: list[Formula] = []
    chosen: list[int] = []
    for i in map(int, np.argsort(np.where(np.isfinite(left), left, np.inf))):
        if not np.isfinite(left[i]) or len(found) == count:
            break
        if any(np.abs(fits[i] - fits[j]).max() < DIFFERENT * curve.spread for j in chosen):
            continue
        chosen.append(i)
        d, *line = rest[i]
        slope = sum(line) / half
        parameters = (a[i], b[i] / half, c[i] - b[i] * middle / half, d - slope * middle, *[slope][: len(line)])
        found.append(in_units(form, parameters))
    return found


def straight_fits(H: Array, lines: Array, curve: Curve) -> tuple[Array, Array, Array]:
    """The a (G,) and d (G, k) with a h + lines d nearest to the curve, and what is left, a mean square (G,).

    Rows of h are H (G, P), and lines (P, k) are 1, or 1 and z.
    """
    root = np.sqrt(curve.weights)
    Q, R = np.linalg.qr(lines * root[:, None])
    H, g = H * root, curve.g * root
    along, own = H @ Q, Q.T @ g
    off, rest = H - along @ Q.T, g - Q @ own
    a = (off @ rest) / np.maximum(np.sum(off**2, axis=1), np.finfo(float).tiny)
    left = np.sum((rest - a[:, None] * off) ** 2, axis=1)
    return a, (own - a[:, None] * along) @ np.linalg.pinv(R).T, left


def fitted_polynomial(form: Form, curve: Curve) -> Formula:
    """The polynomial nearest to a curve."""
    middle, half = curve.frame
    z = (curve.u - middle) / half
    root = np.sqrt(curve.weights)
    design = np.vander(z, form.size, increasing=True)
    found = np.linalg.lstsq(design * root[:, None], curve.g * root, rcond=None)[0]
    in_u = np.polynomial.Polynomial(found)(np.polynomial.Polynomial([-middle / half, 1.0 / half])).coef
    return Formula(form, tuple(map(float, np.pad(in_u, (0, form.size - len(in_u))))))


def in_units(form: Form, parameters: tuple[float, ...]) -> Formula:
    """A formula with b = ±1 where its form fixes it; c, where it is fixed, stays, which keeps numbers small."""
    a, b, c, d, *line = map(float, parameters)
    if B in form.free:
        return Formula(form, (a, b, c, d, *line))
    size = abs(b)
    assert form.h is not None
    ratio = form.h.evaluate(np.array([size * 1.5, size * 3.0])) / form.h.evaluate(np.array([1.5, 3.0]))
    if np.isclose(ratio[0], ratio[1]):  # h(s t) = ratio h(t)
        return Formula(form, (a * float(ratio[0]), b / size, c / size, d, *line))
    shift = form.h.evaluate(np.array([size * 1.5])) - form.h.evaluate(np.array([1.5]))  # log(s t) = log s + log t
    return Formula(form, (a, b / size, c / size, d + a * float(shift[0]), *line))
