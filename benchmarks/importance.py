"""Sobol' indices through a fit, against the analytic ones of functions that sensitivity analysis is tested with.

Usage: python benchmarks/importance.py [seeds] [samples] [first seed]

Values (and in a second row values and Jacobians) at Latin hypercube points, a default fit of a given rank, and
`ub.importance` of it: the worst error of a first-order and of a total index over all inputs, worst and median of the
seeds. The functions are the Ishigami function (a = 7, b = 0.1), whose x3⁴ sin x1 takes several branches, and two
g-functions of six inputs, which are products of six kinks: no rank is exact for these, and the error that is left on
fresh points is in the table ("fresh", in % of the standard deviation). More of it needs more branches: what a fit
leaves is missing in the variance that indices are shares of. Jacobians of kinks jump, and take more branches than
values do. Ranks were chosen on seeds 0 to 2, by these errors; the default is to report on others.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

import unbraid as ub
from unbraid.kernels.arrays import Array

FRESH = 10_000
ISHIGAMI = (7.0, 0.1)
KINKS = {"g": (0.0, 0.5, 3.0, 9.0, 99.0, 99.0), "g, other": (1.0, 2.0, 0.2, 5.0, 20.0, 0.8)}
RANKS = {"g": (10, 12), "g, other": (20, 24)}
"""Of fits to values, and to values and Jacobians."""


@dataclass(frozen=True)
class Case:
    """A function on a cube, its Jacobian, its indices (2, m), and the rank of fits from values, and with Jacobians."""

    name: str
    low: float
    high: float
    values: Callable[[Array], Array]
    slopes: Callable[[Array], Array]
    indices: Array
    ranks: tuple[int, int]

    @property
    def m(self) -> int:
        """How many inputs there are."""
        return int(self.indices.shape[1])

    def points(self, count: int, seed: int) -> Array:
        """Points of a Latin hypercube, (count, m)."""
        unit = np.asarray(qmc.LatinHypercube(self.m, rng=seed).random(count))
        return self.low + (self.high - self.low) * unit


def ishigami() -> Case:
    """The function sin x1 + a sin² x2 + b x3⁴ sin x1 on [-π, π]³."""
    a, b = ISHIGAMI

    def values(X: Array) -> Array:
        return np.asarray(np.sin(X[:, 0]) * (1.0 + b * X[:, 2] ** 4) + a * np.sin(X[:, 1]) ** 2)

    def slopes(X: Array) -> Array:
        along = np.cos(X[:, 0]) * (1.0 + b * X[:, 2] ** 4), a * np.sin(2.0 * X[:, 1])
        return np.stack([*along, 4.0 * b * X[:, 2] ** 3 * np.sin(X[:, 0])], axis=1)

    one = 0.5 * (1.0 + b * np.pi**4 / 5.0) ** 2
    two, both = a**2 / 8.0, b**2 * np.pi**8 * 8.0 / 225.0
    indices = np.array([[one, two, 0.0], [one + both, two, both]]) / (one + two + both)
    return Case("Ishigami", -np.pi, np.pi, values, slopes, indices, (7, 9))


def kinks(name: str) -> Case:
    """The function Π_k (|4 x_k - 2| + a_k) / (1 + a_k) on [0, 1]⁶."""
    a = np.array(KINKS[name])

    def factors(X: Array) -> Array:
        return np.asarray((np.abs(4.0 * X - 2.0) + a) / (1.0 + a))

    def slopes(X: Array) -> Array:
        each = factors(X)
        return np.asarray(np.prod(each, axis=1)[:, None] / each * 4.0 * np.sign(4.0 * X - 2.0) / (1.0 + a))

    own = 1.0 / 3.0 / (1.0 + a) ** 2
    whole = np.prod(1.0 + own)
    indices = np.stack([own, own * whole / (1.0 + own)]) / (whole - 1.0)
    return Case(name, 0.0, 1.0, lambda X: np.asarray(np.prod(factors(X), axis=1)), slopes, indices, RANKS[name])


def measure(case: Case, with_slopes: bool, samples: int, seed: int) -> tuple[float, float, float, float]:
    """The worst errors of first-order and total indices, that on fresh points in %, and the seconds of `importance`."""
    X = case.points(samples, seed)
    problem = ub.Problem(X, case.values(X)[:, None], case.slopes(X)[:, None] if with_slopes else None)
    fit = ub.decouple(problem, case.ranks[with_slopes], rng=seed)
    began = time.perf_counter()
    found = ub.importance(fit, needs=False)
    seconds = time.perf_counter() - began
    first, total = np.abs(np.stack([found.first_order[0], found.total[0]]) - case.indices).max(axis=1)
    fresh = case.points(FRESH, seed + 1000)
    F = case.values(fresh)
    error = 100.0 * float(np.std(F - fit.model(fresh)[:, 0]) / np.std(F))
    return float(first), float(total), error, seconds


def main() -> None:
    """Print a table."""
    seeds, samples, first_seed = (int(one) for one in (*sys.argv[1:], *("3", "1000", "100")[len(sys.argv) - 1 :]))
    print(f"{samples} samples, {seeds} seeds from {first_seed} on\n")
    print("| function | data | rank | worst first order | worst total | median of the worse | fresh % | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for case in (ishigami(), *(kinks(name) for name in KINKS)):
        for with_slopes in (False, True):
            found = np.array(
                [measure(case, with_slopes, samples, seed) for seed in range(first_seed, first_seed + seeds)]
            )
            first, total, fresh, seconds = found.max(axis=0)
            middle = float(np.median(found[:, :2].max(axis=1)))
            data = "F and J" if with_slopes else "F"
            print(
                f"| {case.name} | {data} | {case.ranks[with_slopes]} | {first:.4f} | {total:.4f} | {middle:.4f} "
                f"| {fresh:.1f} | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
