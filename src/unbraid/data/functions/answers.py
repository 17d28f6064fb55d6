"""Answers of a function brought into one shape, or refused with the reason."""

from __future__ import annotations

import numpy as np

from unbraid.data.functions.hosts import AnswerError, Numbers
from unbraid.kernels.arrays import Shape


def as_point(answer: Numbers, shape: Shape | None) -> Numbers:
    """The answer to a point as this shape, or as (n,) if there is none yet; axes of length 1 do not matter."""
    long = longer_axes(answer.shape)
    if answer.size == 0 or (shape is None and len(long) > 1):
        raise AnswerError(f"returned shape {answer.shape} for a point")
    if shape is None:
        return answer.reshape(-1)
    if long != longer_axes(shape):
        swapped = " (its axes look swapped)" if len(long) == 2 and long[::-1] == longer_axes(shape) else ""
        raise AnswerError(f"returned shape {answer.shape} for a point where {shape} is needed{swapped}")
    return answer.reshape(shape)


def as_batch(answer: Numbers, count: int, shape: Shape | None) -> Numbers:
    """The answer to a batch as (count, *shape). For a single point, functions may well have dropped the first axis."""
    if count == 1:
        return as_point(answer, shape)[None]
    if answer.ndim == 0 or len(answer) != count:
        swapped = " (are samples last?)" if answer.ndim > 1 and answer.shape[-1] == count else ""
        raise AnswerError(f"returned shape {answer.shape} for a batch of {count} points{swapped}")
    first = as_point(answer[0], shape)
    return answer.reshape(count, *first.shape)


def longer_axes(shape: Shape) -> Shape:
    """The lengths of all axes but those of length 1."""
    return tuple(length for length in shape if length != 1)


def same(one: Numbers, other: Numbers, tolerance: float) -> bool:
    """Whether two arrays of values, a row a point, agree up to this share of each output's size."""
    if one.shape != other.shape:
        return False
    scale = np.max(np.abs(np.where(np.isfinite(one), one, 0.0)), axis=0)
    return bool(np.isclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True).all())
