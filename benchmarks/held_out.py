"""The expected error on new points beside real ones: the fit's own against ten-fold refits and fresh samples.

    python benchmarks/held_out.py [draws]

For each of twenty problems a default fit: its error on the samples (worst output, in %), the error that it expects on
new points (`fit.held_out`: samples left out one at a time, without fitting again), the error of ten-fold refits, and
that on 5,000 fresh points; the ratios of the expected error to the last two, and what it took of the fit's time. With
`draws` also surrogates: rank-12 models of 6 inputs on 100 points with Jacobians, of functions that are not decoupled
and of such as are; errors of points inside and outside the ranges seen, expected and on fresh points.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import unbraid as ub
from unbraid.inference.leave_one_out import expected_errors

FRESH, FOLDS = 5000, 10


def noisy(problem: Any, level: float, seed: int, jacobians: bool = True) -> Any:
    """The problem with noise of a level of the outputs' spread, and of the Jacobians' size."""
    rng = np.random.default_rng([seed, 1])
    F = problem.F + level * problem.F.std(axis=0) * rng.standard_normal(problem.F.shape)
    J = problem.J + level * np.sqrt(np.mean(problem.J**2)) * rng.standard_normal(problem.J.shape)
    return ub.Problem(problem.X, F, J) if jacobians else ub.Problem(problem.X, F)


def random_system(n: int, m: int, r: int, S: int, kind: Any, level: float, jacobians: bool) -> Callable[[int], Any]:
    """A maker of samples of a random system, with fresh ones, noise on both."""

    def make(seed: int) -> tuple[Any, Any, int]:
        problem, _ = ub.datasets.random_system(n, m, r, S + FRESH, kind, rng=seed)
        both = noisy(problem, level, seed, jacobians)
        return both.take(slice(0, S)), both.take(slice(S, None)), r

    return make


PROBLEMS = [
    random_system(n, m, r, S, kind, level, jacobians)
    for (n, m, r, S) in ((2, 2, 3, 100), (3, 3, 4, 150), (1, 4, 2, 200), (2, 6, 4, 300), (3, 5, 3, 120))
    for kind, level, jacobians in (
        ("sine", 0.05, True),
        ("cubic", 0.01, True),
        ("sine", 0.05, False),
        ("sine", 0.2, False),
    )
]


def worst(problem: Any, model: ub.DecoupledModel) -> float:
    """The largest error of an output, in %."""
    return float(ub.metrics.output_errors(problem.F, model(problem.X)).max())


def refitted(problem: Any, rank: int, seed: int) -> float:
    """The error of samples that were held out of ten refits, in % (worst output)."""
    fold = np.random.default_rng(seed).permutation(problem.S) % FOLDS
    F = np.empty_like(problem.F)
    for k in range(FOLDS):
        model = ub.decouple(problem.take(np.flatnonzero(fold != k)), rank, rng=seed).model
        F[fold == k] = model(problem.X[fold == k])
    return float(ub.metrics.output_errors(problem.F, F).max())


def compare() -> None:
    """The table of the twenty problems."""
    heads = {"problem": 8, "samples": 9, "expected": 10, "refits": 9, "fresh": 9, "to refits": 11, "to fresh": 10}
    print("".join(f"{name:>{width}}" for name, width in heads.items()) + "    time")
    rows = []
    for k, make in enumerate(PROBLEMS):
        problem, fresh, rank = make(k)
        fit: Any = ub.decouple(problem, rank, rng=k)
        began = time.process_time()
        expected: Any = expected_errors(fit.model, problem, fit.minimised, fit.constraints)
        spent = (time.process_time() - began) / fit.seconds
        mine = float(expected.output_errors.max())
        row = mine, refitted(problem, rank, k), worst(fresh, fit.model)
        rows.append((mine / row[1], mine / row[2], spent))
        print(f"{k:8}{worst(problem, fit.model):9.3g}{mine:10.3g}{row[1]:9.3g}{row[2]:9.3g}", end="")
        print(f"{rows[-1][0]:11.3f}{rows[-1][1]:10.3f}{100 * spent:7.1f}%", flush=True)
    off = [np.abs(np.log([row[i] for row in rows])) for i in (0, 1)]
    for name, one in zip(("refits", "fresh"), off, strict=True):
        print(
            f"off {name} by {100 * np.expm1(np.median(one)):.1f} % (median), {100 * np.expm1(one.max()):.0f} % (worst)"
        )
    times = [row[2] for row in rows]
    print(f"time {100 * np.median(times):.1f} % of the fit's (median), {100 * max(times):.1f} % (worst)")


def undecoupled(seed: int) -> Any:
    """Three outputs, each a small network plus a quadratic form times an exponential: no decoupled function."""
    rng = np.random.default_rng(seed)
    A, B, c = rng.standard_normal((8, 6)) / 2.0, rng.standard_normal((3, 8)), rng.standard_normal(8)
    Q = rng.standard_normal((3, 6, 6)) / 12.0

    def f(x: Any) -> Any:
        return np.tanh(x @ A.T + c) @ B.T + np.einsum("sk,ikl,sl->si", x, Q, x) * np.exp(-0.1 * x[:, :1])

    return ub.Problem.from_function(f, rng.uniform(-1.0, 1.0, (100 + FRESH, 6)))


def sines(seed: int) -> Any:
    """A random system of twelve sines: the model can be exact, so that all error is outside the ranges seen."""
    return ub.datasets.random_system(3, 6, 12, 100 + FRESH, "sine", rng=seed)[0]


def surrogate(make: Callable[[int], Any], draws: int) -> None:
    """A table of one kind of functions."""
    print(f"\n{make.__name__}")
    heads = {"draw": 8, "samples": 9, "expected": 10, "fresh": 9, "ratio": 8, "outside": 9, "(fresh)": 9}
    print("".join(f"{name:>{width}}" for name, width in heads.items()) + "  inside (fresh) outside (fresh)")
    for seed in range(draws):
        both = make(seed)
        problem, fresh = both.take(slice(0, 100)), both.take(slice(100, None))
        fit: Any = ub.decouple(problem, 12, rng=seed)
        held, found = fit.held_out, fit.error_on(fresh)
        mine, true = float(held.output_errors.max()), float(found.output_errors.max())
        print(f"{seed:8}{worst(problem, fit.model):9.3g}{mine:10.3g}{true:9.3g}{mine / true:8.2f}", end="")
        print(f"{100 * held.outside:8.1f}%{100 * found.outside / found.samples:8.1f}%", end="")
        for one in (held.inside_errors, found.inside_errors, held.outside_errors, found.outside_errors):
            print(f"{float(np.nanmax(one)):8.3g}", end="")
        print(flush=True)


if __name__ == "__main__":
    compare()
    for kind in (undecoupled, sines) if len(sys.argv) > 1 else ():
        surrogate(kind, int(sys.argv[1]))
