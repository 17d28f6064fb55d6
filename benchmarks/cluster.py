"""One and two workers of a Dask cluster on this machine: the time of a sweep, S = 10⁶, n = m = r = 10, df = 20.

python benchmarks/cluster.py [S] [sweeps]

Clusters of one and of two workers in turn, twice, each holding the same blocks before the clock starts; a worker is a
process with one thread, BLAS too.
"""

import sys
import time

import numpy as np

import unbraid as ub
from unbraid.bases.projection import Projection
from unbraid.data.problem import Problem
from unbraid.data.streamed import sample_set
from unbraid.data.units import Units
from unbraid.solvers.alternating import AlternatingProjection
from unbraid.solvers.coupling import FixedCoupling

BLOCKS = 8


def lazy_problem(S: int, size: int) -> Problem:
    """Samples of waves that workers compute themselves."""
    import dask.array as da

    rng = np.random.default_rng(0)
    W0, W1 = rng.standard_normal((size, size)) / np.sqrt(size), rng.standard_normal((size, size))
    X = da.random.default_rng(0).uniform(-1.0, 1.0, (S, size), chunks=(-(-S // BLOCKS), size))
    u = 3.0 * X @ W0.T
    J = (W1[None] * (3.0 * da.cos(u))[:, None, :]) @ W0
    return Problem(X, da.sin(u) @ W1.T, J)


def timed(workers: int, S: int, sweeps: int) -> list[float]:
    """Seconds of sweeps on a cluster of so many workers, once it holds the samples."""
    import distributed

    r = 10
    local = distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=None
    )
    with local as cluster, distributed.Client(cluster, set_as_default=False) as client:
        problem = lazy_problem(S, r).on(client)
        samples, free = sample_set(problem, Units.balanced(problem)), Projection.onto([None] * r)
        solver = AlternatingProjection(samples, ub.BSpline(20), free, FixedCoupling(0.1), True, True, True, 0.5)
        state, _ = solver.step(solver.random_start(r, [np.random.default_rng(0)]))
        solver.measure(state)
        times = []
        for _ in range(sweeps):
            began = time.perf_counter()
            state, _ = solver.step(state)
            solver.measure(state)
            times.append(time.perf_counter() - began)
    return times


def main(S: int, sweeps: int) -> None:
    """Time clusters of one and of two workers in turn, twice."""
    times: dict[int, list[float]] = {1: [], 2: []}
    for workers in (1, 2, 1, 2):
        times[workers] += timed(workers, S, sweeps)
    for workers, seconds in times.items():
        print(f"{workers} at work: {np.median(seconds):.3f} s a sweep, least {min(seconds):.3f}")
    print(f"ratio {np.median(times[1]) / np.median(times[2]):.2f}, of the least {min(times[1]) / min(times[2]):.2f}")


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6, int(sys.argv[2]) if len(sys.argv) > 2 else 8)
