"""Functions as users have them, one for every seed: of any kind, with any answer, failing here and there."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
import pandas as pd
import scipy.sparse
import torch

from stuck_functions import HANGS, STUCK, Answer, corner, locked, smooth, where
from unbraid.kernels.arrays import Array

Rng = np.random.Generator


def left(x: Array) -> bool:
    return bool(x[0] < 0.2)


def raising(error: BaseException) -> Answer:
    def f(x: Any) -> Any:
        raise error

    return f


class UnprintableError(Exception):
    """An error that cannot be written down."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class TwoArgumentsError(Exception):
    """An error that cannot be pickled."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"\x1b[31m{one}" + "x" * 1000 + f"\n{other}")


class Counter:
    """Answers that depend on how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Array) -> float:
        self.calls += 1
        return float(x[0]) + self.calls

    def failing(self, x: Array) -> float:
        self.calls += 1
        if self.calls % 5 == 0:
            raise OSError("licence server busy")
        return float(x[0])


def mutating(x: Array) -> Array:
    x += 1.0
    return np.array([x[0] ** 2])


def slow(x: Array) -> Array:
    time.sleep(0.001)
    return smooth(x)


def returning(x: Array) -> Array:
    x *= 2.0
    return x


def buffered() -> Answer:
    buffer = np.zeros(1)

    def f(x: Array) -> Array:
        buffer[0] = np.sin(x[0])
        return buffer

    return f


def warning(x: Array) -> Array:
    warnings.warn("did not converge", RuntimeWarning, stacklevel=1)
    return smooth(x)


def noisy(rng: Rng, size: float) -> Answer:
    return lambda x: smooth(x) + size * rng.standard_normal(2)


def two_faced(x: Array) -> Any:
    """The mean over a point, and over a batch."""
    return np.atleast_1d(x.mean())


def strict(x: Array) -> Array:
    with np.errstate(all="raise"):
        return np.log(x - 0.3)


def deep(x: Array) -> Array:
    return deep(x)


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2))


Kind = Callable[[Rng], Answer]
KINDS: dict[str, Kind] = {
    # What they take.
    "of a point": lambda rng: (
        lambda x: [float(np.tanh(x.sum())), float(x[0])] if x.ndim == 1 else raising(ValueError())(x)
    ),
    "of a batch": lambda rng: lambda x: smooth(x[:, :]),
    "of both": lambda rng: smooth,
    "of two arguments": lambda rng: cast(Any, np.hypot),
    "of no argument": lambda rng: cast(Any, time.time),
    "a ufunc": lambda rng: np.sin,
    "a partial": lambda rng: functools.partial(np.multiply, 2.0),
    "a sum": lambda rng: np.sum,
    "of two meanings": lambda rng: two_faced,
    "samples last": lambda rng: lambda x: smooth(x[:, :]).T,
    "of rows that depend on one another": lambda rng: lambda x: x[:, :1] - x[:, :1].mean(),
    # What they return.
    "a number": lambda rng: lambda x: float(np.sin(np.ravel(x)[0])),
    "a constant": lambda rng: lambda x: 3.7,
    "a constant whole number": lambda rng: lambda x: 3,
    "zero": lambda rng: lambda x: np.zeros(2),
    "its input": lambda rng: lambda x: x,
    "its input, changed": lambda rng: returning,
    "mutating": lambda rng: mutating,
    "the same array again": lambda rng: buffered(),
    "a list of arrays": lambda rng: lambda x: [np.sin(x[0]), np.array([x[0]])[0], np.float32(1.0)],
    "a tuple": lambda rng: lambda x: (x[0], x[0] ** 2),
    "a column": lambda rng: lambda x: np.array([[x[0]], [x[0] ** 3]]),
    "a ragged list": lambda rng: lambda x: [x[0], [x[0], 1.0]],
    "whole numbers": lambda rng: lambda x: np.round(10.0 * x[:1]).astype(int),
    "truths": lambda rng: lambda x: x[:1] > 0.5,
    "objects": lambda rng: lambda x: np.array([x[0], x[0] ** 2], dtype=object),
    "objects that are no numbers": lambda rng: lambda x: np.array([x[0], object()], dtype=object),
    "fractions": lambda rng: lambda x: [Fraction(1, 3) * Fraction(float(x[0])), Decimal(str(x[0]))],
    "huge whole numbers": lambda rng: lambda x: [10**400],
    "complex": lambda rng: lambda x: x[:1] * 1j,
    "complex, in fact real": lambda rng: lambda x: x[:1] + 0j,
    "text": lambda rng: lambda x: "a",
    "numbers as text": lambda rng: lambda x: [str(x[0])],
    "bytes": lambda rng: lambda x: b"\x00",
    "None": lambda rng: lambda x: None,
    "None here and there": lambda rng: where(corner, lambda x: None),
    "a generator": lambda rng: lambda x: (one for one in x),
    "a dictionary": lambda rng: lambda x: {"y": x[0]},
    "a function": lambda rng: lambda x: np.sin,
    "nothing": lambda rng: lambda x: [],
    "dates": lambda rng: lambda x: np.datetime64("2020-01-01"),
    "records": lambda rng: lambda x: np.zeros(1, dtype=[("a", float)]),
    "a series": lambda rng: lambda x: pd.Series({"a": float(x[0]), "b": 1.0}),
    "a frame": lambda rng: lambda x: pd.DataFrame(smooth(x[:, :])),
    "masked": lambda rng: lambda x: np.ma.masked_greater(x[:1], 0.5),
    "sparse": lambda rng: lambda x: scipy.sparse.csr_array(x[None, :1]),
    "other bytes": lambda rng: lambda x: smooth(x).astype(">f8"),
    "float16": lambda rng: lambda x: smooth(x).astype(np.float16),
    "float32": lambda rng: lambda x: smooth(x).astype(np.float32),
    "longdouble": lambda rng: lambda x: smooth(x).astype(np.longdouble),
    "many outputs": lambda rng: lambda x: np.sin(np.arange(1, 41) * x.sum(axis=-1)[..., None] / 40.0),
    # Of which size and shape.
    "huge": lambda rng: lambda x: 1e200 * smooth(x),
    "too large": lambda rng: lambda x: 1e308 * (1.0 + smooth(x)),
    "tiny": lambda rng: lambda x: 1e-200 * smooth(x),
    "below all digits": lambda rng: lambda x: 5e-324 * np.round(9.0 * smooth(x)),
    "of two sizes": lambda rng: lambda x: smooth(x) * [1e-150, 1e150],
    "far from zero": lambda rng: lambda x: 1e12 + smooth(x),
    "a pole": lambda rng: lambda x: 1.0 / (x[..., :1] - 0.5),
    "a pole on samples": lambda rng: lambda x: 1.0 / np.round(4.0 * x[..., :1] - 2.0),
    "a step": lambda rng: lambda x: np.sign(x[..., :1] - 0.5),
    "stairs": lambda rng: lambda x: np.floor(7.0 * x[..., :1]),
    "a kink": lambda rng: lambda x: np.abs(x[..., :1] - 0.5),
    "a root": lambda rng: lambda x: np.sqrt(x[..., :1] - 0.25),
    "a cliff of exponentials": lambda rng: lambda x: np.exp(1000.0 * x[..., :1]),
    "a fast wave": lambda rng: lambda x: np.sin(1e5 * x[..., :1]),
    # Where they fail.
    "NaN here and there": lambda rng: where(corner, lambda x: np.full(2, np.nan)),
    "one output is NaN": lambda rng: lambda x: smooth(x) * [1.0, np.nan],
    "NaN nearly everywhere": lambda rng: where(lambda x: not corner(x), lambda x: np.full(2, np.nan)),
    "NaN everywhere": lambda rng: lambda x: np.full(2, np.nan),
    "infinite in a region": lambda rng: where(left, lambda x: np.full(2, -np.inf)),
    "raises in a region": lambda rng: where(left, raising(ZeroDivisionError("division by zero"))),
    "raises in a region of batches": lambda rng: (
        lambda x: smooth(x) if (x[:, 0] > 0.1).all() else raising(KeyError("a"))(x)
    ),
    "raises nearly everywhere": lambda rng: where(lambda x: not corner(x), raising(ValueError("no"))),
    "raises everywhere": lambda rng: raising(ValueError("no")),
    "raises now and then": lambda rng: Counter().failing,
    "raises without a word": lambda rng: where(corner, raising(AssertionError())),
    "raises what has no text": lambda rng: where(corner, raising(UnprintableError())),
    "raises lines of any letters": lambda rng: where(corner, raising(TwoArgumentsError(1, 2))),
    "raises StopIteration": lambda rng: where(corner, raising(StopIteration())),
    "runs out of memory": lambda rng: where(corner, raising(MemoryError())),
    "runs out of stack": lambda rng: where(corner, deep),
    "raises where NumPy would warn": lambda rng: strict,
    "another length in a region": lambda rng: where(corner, lambda x: np.zeros(3)),
    "warns": lambda rng: warning,
    "is only defined on whole numbers": lambda rng: lambda x: [1, 2, 3][x[0]],
    # What they remember.
    "random": lambda rng: noisy(rng, 0.1),
    "a little random": lambda rng: noisy(rng, 1e-9),
    "counts": lambda rng: Counter(),
    "holds a lock": lambda rng: locked(),
    "slow": lambda rng: slow,
    # Frameworks.
    "torch": lambda rng: lambda x: torch.tanh(x.sum(-1, keepdim=True)),
    "torch in single precision": lambda rng: lambda x: torch.tanh(x.float()),
    "torch without gradients": lambda rng: lambda x: torch.tanh(torch.as_tensor(x)).detach(),
    "a network": lambda rng: network(),
    "jax": lambda rng: lambda x: jnp.tanh(x),
    "jax through NumPy": lambda rng: lambda x: jnp.asarray(np.tanh(np.asarray(x))),
}
KINDS |= {name: lambda rng, make=make: make() for name, make in STUCK.items()}  # type: ignore[misc]
SIDES = [None, None, "auto", "auto", "forward", "central", "differences", "complex-step"]


def odd_case(seed: int) -> tuple[str, Answer, Array, dict[str, Any]]:
    """The name of a kind, a function of it, points from 0 to 1, and settings: every kind is one of the first seeds."""
    rng = np.random.default_rng(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    X = rng.uniform(0.0, 1.0, (int(rng.choice([1, 5, 12, 30])), int(rng.choice([1, 1, 2, 3, 6, 50]))))
    settings: dict[str, Any] = {"derivatives": SIDES[rng.integers(len(SIDES))], "jobs": int(rng.choice([1, 1, 2]))}
    if kind in STUCK:
        settings |= {"timeout": HANGS, "derivatives": None}
    return kind, KINDS[kind](rng), X, settings
