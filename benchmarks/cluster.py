"""One and two workers of a Dask cluster on this machine: the time of a sweep, S = 10⁶, n = m = r = 10, df = 20.

python benchmarks/cluster.py [S] [sweeps]

Both clusters hold the same blocks, loaded before; each worker is a process with one thread, BLAS too. The two are timed
in turn.
"""

import sys
import time
from contextlib import ExitStack

import numpy as np

import unbraid as ub
from unbraid.coupling import FixedCoupling
from unbraid.problem import Problem
from unbraid.projection import Projection
from unbraid.samples import sample_set
from unbraid.solvers.alternating import AlternatingProjection, State
from unbraid.units import Units

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


def main(S: int, sweeps: int) -> None:
    """Times in turn."""
    import distributed

    r = 10
    with ExitStack() as stack:
        solvers: dict[int, AlternatingProjection] = {}
        states: dict[int, State] = {}
        for workers in (1, 2):
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=None
                )
            )
            client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
            problem = lazy_problem(S, r).on(client)
            samples = sample_set(problem, Units.balanced(problem))
            free = Projection.onto([None] * r)
            solver = AlternatingProjection(samples, ub.BSpline(20), free, FixedCoupling(0.1), True, True, True, 0.5)
            state, _ = solver.step(solver.random_start(r, [np.random.default_rng(0)]))
            solver.measure(state)
            solvers[workers], states[workers] = solver, state
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(sweeps):
            for workers, solver in solvers.items():
                began = time.perf_counter()
                states[workers], _ = solver.step(states[workers])
                objective = float(solver.measure(states[workers]).objective[0])
                times[workers].append(time.perf_counter() - began)
        for workers, seconds in times.items():
            print(
                f"{workers} worker{'s' * (workers > 1)}: {np.median(seconds):.3f} s a sweep, least {min(seconds):.3f}"
            )
        ratio, least = np.median(times[1]) / np.median(times[2]), min(times[1]) / min(times[2])
        print(f"ratio {ratio:.2f}, of the least {least:.2f}; objective {objective:.6g}")


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6, int(sys.argv[2]) if len(sys.argv) > 2 else 10)
