"""A network's layer, J of 36 × 4096 × 360 at rank 20: fits with and without compression, one BLAS thread on both sides.

python benchmarks/compression.py [starts] [sweeps]

Fits are sweeps only: Gauss–Newton steps on the 83 thousand unknowns that all inputs make are no comparison. Random
starts differ, because they are drawn in other dimensions: with enough starts and sweeps both find the same minimum.
"""

import sys

import numpy as np
from threadpoolctl import threadpool_limits

import unbraid as ub
from unbraid.kernels.arrays import Array

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


def main(starts: int, sweeps: int) -> None:
    """With little noise and with much."""
    method = ub.methods.default(polish=False, max_sweeps=sweeps, tolerance=0.0)
    for noise in (0.01, 0.1):
        problem = network(R, noise, np.random.default_rng(0))
        print(f"noise {100 * noise:g} %, rank {R}, {starts} starts, {sweeps} sweeps each")
        fits = [ub.decouple(problem, R, method=method, starts=starts, rng=0, compress=one) for one in (False, None)]
        for name, fit in zip(("all entries", "compressed"), fits, strict=True):
            print(f"  {name}  {fit.seconds:7.1f} s, objective {fit.objective:.5e}, Error(J) {fit.jacobian_error:.5e}")
        whole, small = fits
        times, more = whole.seconds / small.seconds, small.objective / whole.objective - 1.0
        print(f"  {times:.0f} times faster, objective {more:+.2%}")
        print(f"  {small.notes[0]}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main(*(int(given) for given in (sys.argv[1:3] + ["4", "60"][len(sys.argv) - 1 :])))
