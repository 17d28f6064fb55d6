r"""How far the branches of a dynamic model go on as polynomials beyond what they saw, and then as lines.

At an end e of its domain a branch departs from its tangent by b(h) = Σ_{k ≥ 2} g^(k)(e) h^k / k!, which is linear in its
coefficients, so their covariance tells how well the data know it. The polynomial is followed while the standard
deviation of b is at most `DOUBT` of b, and at most for `FARTHEST` of the length of the domain. Errors of simulation hang
together over time, which the covariance takes into account by their correlation time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Literal

import numpy as np

from unbraid.bases import Basis
from unbraid.dynamics.models.feedback import Course, Feedback
from unbraid.dynamics.simulating.steps import Point
from unbraid.kernels.arrays import Array
from unbraid.kernels.quadratics import balanced_inverse

Continuing = Literal["auto", "linear", "polynomial"]
FARTHEST, DOUBT, PLACES = 1.0, 0.1, 64
"""Lengths of the domain up to which a polynomial is followed; the relative standard deviation of its bend up to which it
is believed; and at how many places that is looked at: a power of two, so that files hold reaches exactly."""
MOST_LAGS = 200
"""Of the correlation of errors."""


def reaches(
    continuation: Continuing, basis: Basis | None, point: Point, feedback: Feedback, courses: Sequence[Course]
) -> Array:
    """How far below and above its domain each branch goes on as a polynomial, in lengths of the domain: (r, 2)."""
    rank = point.model.rank
    if continuation == "linear" or basis is None or basis.continued_degree < 2:
        return np.zeros((rank, 2))
    if continuation == "polynomial":
        return np.full((rank, 2), FARTHEST)
    return known_reaches(basis, point, error_variance(point, feedback, courses))


def error_variance(point: Point, feedback: Feedback, courses: Sequence[Course]) -> float:
    """The variance of errors times their correlation time: what a sum of squares is to be divided by."""
    ny, squares, count, time = feedback.observed, 0.0, 0.0, 1.0
    for course, one in zip(courses, point.trajectories, strict=True):
        error = course.weight * (one.values.f[:, -ny:] - course.y)
        squares += float(np.sum(error**2))
        count += float(np.count_nonzero(course.weight))
        for column in error.T:
            spectrum = np.abs(np.fft.rfft(column, 2 * len(column))) ** 2
            correlation = np.fft.irfft(spectrum)[: min(MOST_LAGS, len(column))]
            if correlation[0] > 0.0:
                positive = correlation / correlation[0]
                end = int(np.argmax(positive < 0.0)) or len(positive)
                time = max(time, 2.0 * float(positive[:end].sum()) - 1.0)
    return time * squares / max(count, 1.0)


@np.errstate(all="ignore")
def known_reaches(basis: Basis, point: Point, variance: float) -> Array:
    """How far the data know the polynomials at the ends of each branch, (r, 2)."""
    model = point.model
    assert model.placement is not None
    (r, K), first = model.a.shape, len(point.equations.N) - model.a.size
    share = np.linspace(0.0, FARTHEST, PLACES + 1)[1:]
    result = np.zeros((r, 2))
    for j in range(r):
        own = slice(first + j * K, first + (j + 1) * K)
        covariance = variance * balanced_inverse(point.equations.N[own, own], 1e-12)
        placement = model.placement.select(j)
        ends = placement.domain()
        for side, sign in enumerate((-1.0, 1.0)):
            h = sign * share * (ends[1] - ends[0])
            bends = sum(
                placement.design(ends[side : side + 1], k) * (h**k / factorial(k))[:, None]
                for k in range(2, basis.continued_degree + 1)
            )
            doubt = np.sqrt(np.abs(np.sum((bends @ covariance) * bends, axis=-1)))
            known = doubt <= DOUBT * np.abs(bends @ model.a[j])
            result[j, side] = share[int(np.argmin(known)) - 1] if not known.all() and known[0] else 0.0
            if known.all():
                result[j, side] = FARTHEST
    return result
