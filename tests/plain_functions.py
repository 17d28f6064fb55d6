"""A function of two inputs and three outputs, written in several ways, and its Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unbraid as ub
from unbraid.kernels.arrays import Array

X = np.random.default_rng(0).uniform(-1.5, 1.5, (40, 2))


def of_a_point(x: Array) -> list[float]:
    return [float(np.sin(x[0] + 2 * x[1])), float(x[0] * x[1]), float(np.exp(x[0]))]


def of_a_batch(x: Array) -> Array:
    return np.stack([np.sin(x[:, 0] + 2 * x[:, 1]), x[:, 0] * x[:, 1], np.exp(x[:, 0])], axis=1)


def of_both(x: Array) -> Array:
    return np.stack([np.sin(x[..., 0] + 2 * x[..., 1]), x[..., 0] * x[..., 1], np.exp(x[..., 0])], axis=-1)


def exact_jacobian(x: Array) -> Array:
    c = np.cos(x[0] + 2 * x[1])
    return np.array([[c, 2 * c], [x[1], x[0]], [np.exp(x[0]), 0.0]])


def exact_jacobians(x: Array) -> Array:
    return np.stack([exact_jacobian(one) for one in x])


def arrays(problem: ub.Problem) -> tuple[Array, Array]:
    assert problem.F is not None
    assert problem.J is not None
    return problem.F, problem.J


def refused(f: Any, points: Any = X, says: str = "", **settings: Any) -> str:
    with pytest.raises(ub.UnbraidError, match=says) as caught:
        ub.Problem.from_function(f, points, **settings)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


def some_left_out(f: Any, points: Any, says: str, **settings: Any) -> ub.Problem:
    """The problem of a function that fails at some points, of which it warns."""
    with pytest.warns(UserWarning, match=says) as caught:
        problem = ub.Problem.from_function(f, points, **settings)
    [message] = [str(one.message) for one in caught]
    assert message.isprintable()
    assert problem.complete
    return problem


def matrix(size: int) -> Array:
    return np.random.default_rng(size).standard_normal((size, size))
