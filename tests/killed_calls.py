"""Samples an expensive function in a process that is killed in the middle of a call. As a program:

    python killed_calls.py CACHE LOG JOBS LAST

Every call that comes to its end is a line of LOG, the bytes of its point; the process is killed by the LAST-th, before
it ends. With LAST 0 it comes to its end, and the problem's arrays are written to CACHE.done.npz.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np

import unbraid as ub
from unbraid.kernels.arrays import Array

RNG = np.random.default_rng(0)
W0, W1, X = RNG.standard_normal((3, 4)), RNG.standard_normal((2, 3)), RNG.uniform(-1, 1, (20, 4))
CALLS = len(X) * 5


def exact(x: Array) -> Array:
    return np.asarray(W1 @ np.sin(W0 @ x))


LOCK, COUNT = threading.Lock(), [0]


def logged(x: Array) -> Array:
    with LOCK:
        COUNT[0] += 1
        if COUNT[0] == int(sys.argv[4]):
            os.kill(os.getpid(), signal.SIGKILL)
        answer = exact(x)
        with Path(sys.argv[2]).open("a", encoding="ascii") as file:
            file.write(x.tobytes().hex() + "\n")
    return answer


def main(cache: str, jobs: int) -> None:
    problem = ub.Problem.from_function(logged, X, derivatives="forward", jobs=jobs, cache=cache)
    assert problem.F is not None
    assert problem.J is not None
    np.savez(f"{cache}.done.npz", F=problem.F, J=problem.J)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[3]))
