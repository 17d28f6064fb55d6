"""What a sweep of CMTF-BSD takes against the plain twin, in one run, one BLAS thread on both sides.

    python benchmarks/sweeps.py

Prints, for many starts of a small problem and one start of a larger one: milliseconds per sweep and start of both, the
ratio, the Error(J) that was reached, and the peak of memory beside the samples, in units of J.
"""

import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

import unbraid as ub
from twin import cmtf_bsd
from unbraid.kernels.arrays import Array

CASES = {
    "n=m=2, r=3, S=100, df=12, 32 starts": (2, 2, 3, 100, 12, 32, 300, 30),
    "n=m=r=10, S=10⁴, df=20, 1 start": (10, 10, 10, 10_000, 20, 1, 20, 4),
}


def random_start(X: Array, r: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Random W0, G and R."""
    S, m = X.shape
    return rng.standard_normal((r, m)), rng.standard_normal((S, r)), rng.standard_normal((S, r))


def compare(n: int, m: int, r: int, S: int, df: int, starts: int, sweeps: int, twin_sweeps: int) -> None:
    """Time both, in turns, and print milliseconds per sweep and start."""
    problem, _ = ub.datasets.trig(S, rng=0) if n == 2 else ub.datasets.random_system(n, m, r, S, "sine", rng=0)
    assert problem.F is not None
    assert problem.J is not None
    method = ub.methods.dejonghe2025(max_sweeps=sweeps, tolerance=0.0)
    basis = ub.BSpline(df=df)
    ours, theirs = [], []
    for repeat in range(5):
        began = time.perf_counter()
        fit = ub.decouple(problem, r, basis=basis, method=method, starts=starts, rng=repeat)
        ours.append((time.perf_counter() - began) / (sweeps * starts) * 1e3)
        start = random_start(problem.X, r, np.random.default_rng(repeat))
        began = time.perf_counter()
        cmtf_bsd(problem.X, problem.F, problem.J, start, df, 3, 0.01, twin_sweeps)
        theirs.append((time.perf_counter() - began) / twin_sweeps * 1e3)
    tracemalloc.start()
    ub.decouple(problem, r, basis=basis, method=ub.methods.dejonghe2025(max_sweeps=3), starts=starts, rng=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"  unbraid      {np.median(ours):9.4f} ms per sweep and start, Error(J) {fit.jacobian_error:.1e}")
    print(f"  plain twin   {np.median(theirs):9.4f} ms per sweep")
    print(f"  ratio        {np.median(theirs) / np.median(ours):9.1f}")
    print(f"  peak memory  {peak / problem.J.nbytes:9.2f} times J beside J itself")


def main() -> None:
    """Compare on both problems."""
    with threadpool_limits(1):
        for title, case in CASES.items():
            print(title)
            compare(*case)


if __name__ == "__main__":
    main()
