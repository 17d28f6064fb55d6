"""The bare decomposition in TensorLy, and a sweep of unbraid that does more: time per sweep, one BLAS thread.

python benchmarks/decompositions.py [largest S]

n = m = r = 10, S = 10⁴, 10⁵, 10⁶, arrays in memory. TensorLy's `parafac` decomposes the Jacobians, each time in the
faster of two layouts, without looking at errors; its `coupled_matrix_tensor_3d_factorization` also sees the values, in
the one layout it takes. A sweep of unbraid (`sweep`) sees both, and fits r splines of df = 20 to the factors, places
their knots and measures the error; `sweep, J` does so for Jacobians alone. Times are those of one sweep more: the
difference of runs of one and of three sweeps, halved. Errors are of J after three sweeps from random starts, and say
only that all of them work on the same thing.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from tensorly.decomposition import coupled_matrix_tensor_3d_factorization, parafac
from threadpoolctl import threadpool_limits

import unbraid as ub
from unbraid.bases.projection import Projection
from unbraid.data.streamed import sample_set
from unbraid.data.units import Units
from unbraid.kernels.arrays import Array
from unbraid.solvers.alternating import AlternatingProjection
from unbraid.solvers.coupling import FixedCoupling

SIZE, DF = 10, 20


def system(S: int) -> ub.Problem:
    """Waves without noise."""
    rng = np.random.default_rng(0)
    W0, W1 = rng.standard_normal((SIZE, SIZE)) / np.sqrt(SIZE), rng.standard_normal((SIZE, SIZE))
    X = rng.uniform(-1.0, 1.0, (S, SIZE))
    u = 3.0 * X @ W0.T
    return ub.Problem(X, np.sin(u) @ W1.T, (W1 * (3.0 * np.cos(u))[:, None, :]) @ W0)


def per_sweep(run: Callable[[int], Any], repeats: int) -> float:
    """Seconds of one sweep, the median of differences."""
    differences = []
    for _ in range(repeats):
        times = []
        for sweeps in (1, 3):
            began = time.perf_counter()
            run(sweeps)
            times.append(time.perf_counter() - began)
        differences.append((times[1] - times[0]) / 2.0)
    return float(np.median(differences))


def ours(problem: ub.Problem) -> Callable[[int], float]:
    """Sweeps of unbraid from a random start, and the error of J."""
    samples, free = sample_set(problem, Units.as_given(problem)), Projection.onto([None] * SIZE)
    solver = AlternatingProjection(samples, ub.BSpline(DF), free, FixedCoupling(0.1), True, True, True, 0.5)

    def run(sweeps: int) -> float:
        state = solver.random_start(SIZE, [np.random.default_rng(0)])
        for _ in range(sweeps):
            state, _ = solver.step(state)
            measure = solver.measure(state)
        return float(measure.jacobian_error[0])

    return run


def bare(J: Array) -> Callable[[int], Any]:
    """Sweeps of TensorLy's CP decomposition of J, its axes in any order."""

    def run(sweeps: int) -> Any:
        return parafac(J, SIZE, n_iter_max=sweeps, init="random", tol=0, random_state=0)

    return run


def coupled(J: Array, F: Array) -> Callable[[int], Any]:
    """Sweeps of TensorLy's coupled factorisation of J (n, m, S) and F (n, S)."""

    def run(sweeps: int) -> Any:
        return coupled_matrix_tensor_3d_factorization(J, F, SIZE, init="random", n_iter_max=sweeps, tol=0.0)

    return run


def error(J: Array, decomposed: Any) -> float:
    """‖J - Ĵ‖² / ‖J‖² of a CP tensor."""
    weights, (A, B, C) = decomposed
    square = float(np.sum(J * J))
    inner = float(np.sum(np.einsum("ijk,kr->ijr", J, C, optimize=True) * (A * weights)[:, None, :] * B[None]))
    gram = (A.T @ A) * (B.T @ B) * (C.T @ C) * np.outer(weights, weights)
    return (square - 2.0 * inner + float(gram.sum())) / square


def main(largest: float) -> None:
    """Print the times of all sizes up to the largest."""
    print(f"{'S':>8}  {'method':24}  {'ms a sweep':>10}  {'of ours':>7}  Error(J) after 3")
    for S in [S for S in (10**4, 10**5, 10**6) if largest >= S]:
        problem = system(S)
        assert problem.J is not None
        assert problem.F is not None
        repeats = max(3, 10**5 // S) if S < 10**6 else 1
        both, alone = ours(problem), ours(ub.Problem(problem.X, J=problem.J))
        last = np.ascontiguousarray(np.moveaxis(problem.J, 0, -1))
        layouts = {"samples first": problem.J, "samples last": last}
        rows: list[tuple[str, float, float]] = [("sweep", per_sweep(both, repeats), both(3))]
        rows.append(("sweep, J", per_sweep(alone, repeats), alone(3)))
        times = {name: per_sweep(bare(J), repeats) for name, J in layouts.items()}
        best = min(times, key=lambda name: times[name])
        rows.append((f"parafac, {best}", times[best], error(layouts[best], bare(layouts[best])(3))))
        pair = coupled(last, np.ascontiguousarray(problem.F.T))
        rows.append(("coupled factorisation", per_sweep(pair, repeats), error(last, pair(3)[0])))
        for name, seconds, error_of in rows:
            print(f"{S:8d}  {name:24}  {1e3 * seconds:10.1f}  {seconds / rows[0][1]:7.2f}  {error_of:.3g}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 1e6)
