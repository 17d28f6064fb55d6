"""What fits take of memory beyond the given arrays, beside what was planned before they began.

    python benchmarks/memory.py

A line is a problem: the peak as measured in a process of its own, the plan, and their ratio, which should not be below
one, nor far above.
"""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np

import unbraid as ub
from unbraid.fitting.memory_plan import Sizes, plan, readable
from unbraid.methods import Method
from unbraid.methods.base import Sweeps

SHAPES: list[dict[str, int | str]] = [
    {"S": 200, "n": 2, "m": 2, "rank": 3, "df": 12},
    {"S": 1000, "n": 10, "m": 10, "rank": 10, "df": 12},
    {"S": 20_000, "n": 10, "m": 10, "rank": 10, "df": 20},
    {"S": 100_000, "n": 4, "m": 4, "rank": 4, "df": 12},
    {"S": 300, "n": 20, "m": 100, "rank": 5, "df": 12},
    {"S": 300, "n": 20, "m": 100, "rank": 25, "df": 12},
    {"S": 100, "n": 10, "m": 400, "rank": 8, "df": 12},
    {"S": 300, "n": 1, "m": 30, "rank": 60, "df": 8},
    {"S": 2000, "n": 30, "m": 30, "rank": 2, "df": 40},
    {"S": 400, "n": 50, "m": 200, "rank": 3, "df": 12, "polish": 0},
    {"S": 150, "n": 3, "m": 3, "rank": 3, "df": 12, "sweeps": "filtered", "polish": 0},
    {"S": 5000, "n": 6, "m": 6, "rank": 8, "df": 4, "sweeps": "polynomial", "polish": 0},
]


def method_of(sweeps: Sweeps, polish: bool) -> Method:
    """A few sweeps and steps: what takes most comes early."""
    if sweeps == "filtered":
        return ub.methods.decuyper2022(max_sweeps=1, max_seconds=10.0)
    if sweeps == "polynomial":
        return ub.methods.hollander2017(max_sweeps=2, max_seconds=10.0)
    return ub.methods.default(max_sweeps=2, max_steps=5, polish=polish, max_seconds=10.0)


def fit(shape: dict[str, int | str]) -> None:
    """Measure in this process: print the bytes by which its peak grew."""
    import resource

    from unbraid.datasets import random_system

    S, n, m, rank = (int(shape[name]) for name in ("S", "n", "m", "rank"))
    small, _ = ub.datasets.trig(S=100, rng=0)
    ub.decouple(small, 2, starts=1, rng=0, method=ub.methods.default(max_sweeps=2, max_steps=2))  # imports
    problem, _ = random_system(n, m, rank, S, "sine", rng=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    method = method_of(str(shape.get("sweeps", "alternating")), bool(shape.get("polish", 1)))  # type: ignore[arg-type]
    basis = None if "sweeps" in shape else ub.BSpline(df=int(shape["df"]))
    ub.decouple(problem, rank, basis=basis, starts=4, rng=0, method=method, compress=False)
    print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))


def planned(shape: dict[str, int | str]) -> int:
    """What `plan` says of it."""
    S, n, m, rank, df = (int(shape[name]) for name in ("S", "n", "m", "rank", "df"))
    sweeps: Sweeps = str(shape.get("sweeps", "alternating"))  # type: ignore[assignment]
    polished = 4 * int(shape.get("polish", 1))
    sizes = Sizes(S=S, n=n, m=m, rank=rank, size=df, starts=4, sweeps=sweeps, polished=polished)
    sizes = sizes if polished else replace(sizes, subsample=None)
    return plan(sizes).peak


def main() -> None:
    """Print one line for each problem."""
    if len(sys.argv) > 1:
        fit(json.loads(sys.argv[1]))
        return
    for shape in SHAPES:
        done = subprocess.run([sys.executable, __file__, json.dumps(shape)], capture_output=True, text=True, check=True)
        measured, estimate = int(done.stdout), planned(shape)
        words = " ".join(f"{name}={value}" for name, value in shape.items())
        ratio = estimate / np.maximum(measured, 1)
        print(f"{words:70} measured {readable(measured):>9} planned {readable(estimate):>9} ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
