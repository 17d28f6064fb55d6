"""A network's layer, J of 36 × 4096 × 360 at rank 20: fits with and without compression, one BLAS thread on both sides.

python benchmarks/compression.py [starts] [sweeps] [polish]

Without compression only the search is run: Gauss–Newton steps on 80 thousand unknowns are no comparison.
"""

import sys
import time
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

import unbraid as ub
from unbraid.arrays import Array
from unbraid.compression import Compression
from unbraid.fit import errors_on
from unbraid.iterate import Run
from unbraid.methods import Method
from unbraid.polish import measured_anew, polish_runs
from unbraid.projection import Projection
from unbraid.samples import Samples
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.starts import run_starts
from unbraid.units import Units

S, N, M, R = 360, 36, 4096, 20


def network(hidden: int, noise: float, rng: np.random.Generator) -> ub.Problem:
    """A random two-layer tanh network on smooth inputs, its values and Jacobians with normal noise."""
    waves = np.cos(np.pi * np.outer(np.arange(1, 65), (np.arange(M) + 0.5) / M)) / np.sqrt(np.arange(1, 65))[:, None]
    X = rng.standard_normal((S, 64)) @ waves + 0.1 * rng.standard_normal((S, M))
    W0 = rng.standard_normal((hidden, M))
    W0 /= np.std(X @ W0.T, axis=0)[:, None]
    W1 = rng.standard_normal((N, hidden)) * np.geomspace(1.0, 0.2, hidden)
    H = np.tanh(X @ W0.T + 0.5 * rng.standard_normal(hidden))
    J = (W1 * (1.0 - H * H)[:, None, :]) @ W0
    return ub.Problem(X, noisy(H @ W1.T, noise, rng), noisy(J, noise, rng))


def noisy(array: Array, noise: float, rng: np.random.Generator) -> Array:
    """The array with noise of that share of its root mean square."""
    return np.asarray(array + noise * np.sqrt(np.mean(array**2)) * rng.standard_normal(array.shape))


def search(samples: Samples, method: Method, starts: int, began: float) -> list[Run]:
    """What `decouple` does: sweeps from random starts, and Gauss–Newton where the method has it; best first."""
    projection = Projection.onto([None] * R)
    solver = method.solver(samples, method.basis, projection)
    runs, _ = run_starts(solver, R, np.random.default_rng(0).spawn(starts), method.stopping)
    if method.polish is not None:
        runs, _ = polish_runs(newton(samples, method), runs, method.polish, began)
    return sorted(runs, key=lambda run: run.objective)


def newton(samples: Samples, method: Method) -> GaussNewton:
    """The solver that measures, and polishes."""
    projection = Projection.onto([None] * R)
    return GaussNewton(samples, method.basis, projection, method.coupling.final, method.offset, method.evenness)


def fit(problem: ub.Problem, method: Method, starts: int, compress: bool) -> None:
    """One fit, and what it took."""
    began = time.perf_counter()
    units = Units.balanced(problem)
    samples = Samples.of(problem, units)
    lost = ""
    if compress:
        one = Compression.of(samples, R)
        assert one is not None
        small = one.apply(samples)
        seconds = time.perf_counter() - began
        lost = f"; compressed in {seconds:.1f} s, lost {one.measured(samples, small):.2e} ≤ {one.lost:.2e}"
        best = search(small, method, starts, began)[0]
        best = replace(best, best=one.lifted(best.best))
    else:
        best = search(samples, method, starts, began)[0]
    [best] = measured_anew(newton(samples, method), [best])
    seconds, it = time.perf_counter() - began, best.best
    model = units.model(it.W0[0], it.W1[0], method.basis, it.placement.select(0), it.a[0])
    error = errors_on(problem, model)[0]
    how = "compressed" if compress else "all inputs"
    print(f"  {how}  {seconds:7.1f} s, objective {best.objective:.5e}, Error(J) {error:.5e}, {best.status.name}{lost}")


def main() -> None:
    """As many branches as the network has hidden units, and fewer."""
    starts, sweeps = (int(given) for given in (sys.argv[1:3] + ["2", "100"][len(sys.argv) - 1 :]))
    sweeping = ub.methods.default(polish=False, max_sweeps=sweeps)
    with threadpool_limits(1):
        for hidden, noise in ((R, 0.01), (R, 0.1), (2 * R, 0.01)):
            problem = network(hidden, noise, np.random.default_rng(0))
            print(f"{hidden} hidden units, noise {100 * noise:g} %, rank {R}, {starts} starts, {sweeps} sweeps")
            fit(problem, sweeping, starts, compress=False)
            fit(problem, sweeping, starts, compress=True)
            if sys.argv[3:] == ["polish"]:
                fit(problem, ub.methods.default(), starts, compress=True)


if __name__ == "__main__":
    main()
