"""Large problems on memory maps: the time of a sweep against the products it cannot avoid, and memory beyond the map.

python benchmarks/large.py sweeps [largest S]     n = m = r = 10, df = 20: S = 10⁴, 10⁵, 10⁶
python benchmarks/large.py fit [S]                n = m = r = 4: a full default fit, S = 10⁷

Every size runs in a process of its own, with one BLAS thread. A sweep passes over J twice, each time for a product
with an (n·m, r) matrix; both products are timed on the same map, in the same blocks, right before and after each sweep.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import unbraid as ub
from unbraid.bases.projection import Projection
from unbraid.data.problem import Problem
from unbraid.data.streamed import sample_set
from unbraid.data.units import Units
from unbraid.kernels.arrays import Array, block_length
from unbraid.solvers.alternating import AlternatingProjection
from unbraid.solvers.coupling import FixedCoupling

CHUNK = 50_000
NOISE = 0.01


def written(folder: Path, S: int, n: int, m: int, r: int) -> None:
    """X, F and J of r waves with 1 % noise, as .npy files, a chunk at a time."""
    rng = np.random.default_rng(0)
    W0, W1 = rng.standard_normal((r, m)) / np.sqrt(m), rng.standard_normal((n, r))
    phase = rng.uniform(0.0, 6.0, r)
    shapes = {"X": (S, m), "F": (S, n), "J": (S, n, m)}
    new_map = np.lib.format.open_memmap
    maps = {name: new_map(folder / f"{name}.npy", "w+", float, shape) for name, shape in shapes.items()}
    for start in range(0, S, CHUNK):
        part = slice(start, min(start + CHUNK, S))
        X = rng.uniform(-1.0, 1.0, (part.stop - start, m))
        u = 3.0 * X @ W0.T + phase
        maps["X"][part] = X
        F, J = np.sin(u) @ W1.T, (W1 * (3.0 * np.cos(u))[:, None, :]) @ W0
        maps["F"][part] = F + NOISE * np.std(F) * rng.standard_normal(F.shape)
        maps["J"][part] = J + NOISE * np.std(J) * rng.standard_normal(J.shape)
    for one in maps.values():
        one.flush()


def mapped(folder: Path) -> Problem:
    """The problem of the files."""
    return Problem(**{name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in "XFJ"})


def resident() -> tuple[float, float]:
    """Memory of this process in MB beside files: today's, and what it was at most, both without mapped pages."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    anonymous = int(status["RssAnon"].split()[0]) / 1e3
    return anonymous, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


class Peak:
    """The most anonymous memory, in MB, while work goes on, looked at every few milliseconds."""

    def __init__(self) -> None:
        import threading

        self.most, self.over = resident()[0], threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self) -> None:
        """Look until told to stop."""
        while not self.over.wait(0.005):
            self.most = max(self.most, resident()[0])

    def ended(self) -> float:
        """The most there was."""
        self.over.set()
        self.thread.join()
        return self.most


def timed(function: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def products(J: Array, G: Array, D: Array, length: int) -> None:
    """Both products over J, block by block."""
    total = np.zeros((G.shape[1], D.shape[0]))
    for start in range(0, len(J), length):
        block = J[start : start + length]
        G[start : start + length] = block @ D
    for start in range(0, len(J), length):
        total += G[start : start + length].T @ J[start : start + length]


def sweeps(folder: Path, repeats: int) -> dict[str, float]:
    """Times of sweeps and of the products, in ns a sample, medians; and the peak of memory beyond the map, in MB."""
    n = m = r = 10
    before = resident()[0]
    watching = Peak()
    problem = mapped(folder)
    assert problem.J is not None
    samples, free = sample_set(problem, Units.balanced(problem)), Projection.onto([None] * r)
    solver = AlternatingProjection(samples, ub.BSpline(20), free, FixedCoupling(0.1), True, True, True, 0.5)
    state, _ = solver.step(solver.random_start(r, [np.random.default_rng(0)]))
    for _ in range(2):
        state, _ = solver.step(state)
    solver.measure(state)
    peak = watching.ended() - before
    J, rng = problem.J.reshape(problem.S, n * m), np.random.default_rng(0)
    D, G = rng.standard_normal((n * m, r)), np.zeros((problem.S, r))
    ours, theirs = [], []
    for _ in range(repeats):
        theirs.append(timed(lambda: products(J, G, D, block_length(r))))
        began = time.perf_counter()
        state, _ = solver.step(state)
        solver.measure(state)
        ours.append(time.perf_counter() - began)
    per_sample = 1e9 / problem.S
    return {
        "S": problem.S,
        "sweep": float(np.median(ours)) * per_sample,
        "products": float(np.median(theirs)) * per_sample,
        "ratio": float(np.median(ours) / np.median(theirs)),
        "least ratio": float(np.min(ours) / np.min(theirs)),
        "peak MB": peak,
        "objective": float(solver.measure(state).objective[0]),
    }


def fit(folder: Path) -> dict[str, float]:
    """A full default fit."""
    before = resident()[0]
    watching = Peak()
    problem = mapped(folder)
    found = ub.decouple(problem, 4, rng=0)
    assert found.output_errors is not None
    assert found.jacobian_error is not None
    return {
        "S": problem.S,
        "seconds": found.seconds,
        "peak MB": watching.ended() - before,
        "Error(J)": found.jacobian_error,
        "worst e_i %": float(found.output_errors.max()),
    }


@contextmanager
def files(S: int, size: int) -> Iterator[Path]:
    """A folder with the files of a problem of that size."""
    with tempfile.TemporaryDirectory() as name:
        written(Path(name), S, size, size, size)
        yield Path(name)


def main(kind: str, largest: float) -> None:
    """One process for each size, so that its peak is its own."""
    sizes = [S for S in (10**4, 10**5, 10**6) if largest >= S] if kind == "sweeps" else [int(largest)]
    rows = []
    for S in sizes:
        with files(S, 10 if kind == "sweeps" else 4) as folder:
            done = subprocess.run(
                [sys.executable, __file__, "in", kind, str(folder), str(max(5, 200_000 // S))],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        if done.returncode:
            raise SystemExit(done.stderr)
        rows.append(json.loads(done.stdout))
    print("  ".join(f"{name:>11}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{value:11.4g}" for value in row.values()))


if __name__ == "__main__":
    if sys.argv[1] == "in":
        where, times = Path(sys.argv[3]), int(sys.argv[4])
        with threadpool_limits(1):
            print(json.dumps(sweeps(where, times) if sys.argv[2] == "sweeps" else fit(where)))
    else:
        kind = sys.argv[1]
        main(kind, float(sys.argv[2]) if len(sys.argv) > 2 else {"sweeps": 1e6, "fit": 1e7}[kind])
