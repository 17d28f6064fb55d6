"""What a sum over samples costs beside its work.

    python benchmarks/overhead.py

Prints the median milliseconds of a chunk of Dask arrays that are summed here, and of a sum on a cluster of two workers,
where the work itself is next to nothing.
"""

import time
from collections.abc import Callable

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import unbraid as ub
from unbraid.data.reductions import first_moments, inputs

CHUNKS, REPEATS = 8, 50


def milliseconds(work: Callable[[], object]) -> float:
    """The median time of a call."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - began))
    return float(np.median(times))


def main() -> None:
    """Time both kinds of sums with 50 kB of arguments, as a sweep has them."""
    chunks = ub.Problem(da.ones((8000, 2), chunks=(8000 // CHUNKS, 2)), np.ones(8000))
    arguments = inputs, (), False
    here = milliseconds(lambda: chunks.sum(first_moments, *arguments)) / CHUNKS
    print(f"Dask arrays, here        {here:6.1f} ms a chunk")
    local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with local, Client(local, set_as_default=False) as client:
        held = chunks.on(client)
        large = np.ones(6000)
        print(f"a cluster of two workers {milliseconds(lambda: held.sum(nothing, large)):6.1f} ms a sum")


def nothing(block: ub.Problem, given: object) -> int:
    """No work at all."""
    return 0


if __name__ == "__main__":
    main()
