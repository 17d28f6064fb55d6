"""Functions that hang or end their process, in a module that other processes import at once."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from unbraid.kernels.arrays import Array

Answer = Callable[[Any], Any]
HANGS = 0.3
"""Seconds that a call may take where a function hangs."""


def smooth(x: Array) -> Array:
    """Two outputs of a point or of a batch."""
    s = x.sum(axis=-1)
    return np.stack([np.tanh(s), np.sin(x[..., 0])], axis=-1)


def where(bad: Callable[[Array], bool], then: Answer, otherwise: Answer = smooth) -> Answer:
    """Something else in a region; of points one by one."""

    def f(x: Array) -> Any:
        if x.ndim != 1:
            raise TypeError("one point at a time")
        return then(x) if bad(x) else otherwise(x)

    return f


def corner(x: Array) -> bool:
    return bool(x[0] > 0.8)


def forever(x: Array) -> Array:
    """Never come back, without taking a core from others."""
    while True:
        time.sleep(0.05)


def ending(x: Array) -> Array:
    os._exit(1)


def locked() -> Answer:
    """A function that no other process can be sent."""
    lock = threading.Lock()

    def f(x: Array) -> Array:
        with lock:
            return smooth(x)

    return f


STUCK: dict[str, Callable[[], Answer]] = {
    "hangs everywhere": lambda: forever,
    "hangs in a region": lambda: where(corner, forever),
    "ends its process": lambda: where(corner, ending),
    "cannot be sent": locked,
}
