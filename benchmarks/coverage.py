"""How often intervals cover the truth: bands of branches, and predictions of new observations.

    python benchmarks/coverage.py [data sets] [system …]

Four systems: values and Jacobians; values alone; penalised splines asked for, with values alone and stronger noise;
increasing branches. Each data set is a draw of samples and noise, fitted without settings but for what the system
names. Of bands at 95 %: the share of points over the ranges of branches, evenly spread, at which the true branch in the
model's gauge (unit rows of W0, values at the samples of mean zero and standard deviation one) lies inside, on the mean;
of their slopes likewise; of intervals of the function itself and of new observations with noise, at fresh points within
the range seen. Then the level of noise that was found over the true one, how many
fits had reasons to doubt, and how many branches the data did not support, of which there are no bands.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import unbraid as ub
from unbraid.results.alignment import lay_truth
from unbraid.results.worth.fresh import beyond_training

FRESH, POINTS = 400, 81


HEADS = ("bands", "slopes", "function", "new", "noise", "doubt", "left out", "s")


class System(NamedTuple):
    """A system: how samples are drawn, the level of noise, whether there are Jacobians, and settings."""

    draw: Callable[[int], tuple[Any, ub.DecoupledModel]]
    rank: int
    level: float
    jacobians: bool
    settings: dict[str, Any]


def both(seed: int) -> tuple[Any, ub.DecoupledModel]:
    """f_trig of the paper."""
    return ub.datasets.trig(S=150 + FRESH, rng=seed)


def alone(seed: int) -> tuple[Any, ub.DecoupledModel]:
    """A system of three sines, the same in all data sets, at other points."""
    _, truth = ub.datasets.random_system(2, 4, 3, 10, "sine", rng=5)
    return sampled(truth, seed, 250)


def smoothed(seed: int) -> tuple[Any, ub.DecoupledModel]:
    """Another one of two sines, to be found in strong noise."""
    _, truth = ub.datasets.random_system(2, 3, 2, 10, "sine", rng=7)
    return sampled(truth, seed, 300)


def monotone(seed: int) -> tuple[Any, ub.DecoupledModel]:
    """The monotone system of the paper."""
    return ub.datasets.monotone(S=150 + FRESH, rng=seed)


def sampled(truth: ub.DecoupledModel, seed: int, S: int) -> tuple[Any, ub.DecoupledModel]:
    """Samples of a model, evenly drawn."""
    X = np.random.default_rng(seed).uniform(-1.5, 1.5, (S + FRESH, truth.m))
    return ub.Problem(X, truth(X), truth.jacobian(X)), truth


SYSTEMS = {
    "values and Jacobians": System(both, 3, 0.05, True, {}),
    "values alone": System(alone, 3, 0.05, False, {}),
    "SmoothingSpline": System(smoothed, 2, 0.15, False, {"basis": ub.SmoothingSpline()}),
    "Increasing": System(monotone, 3, 0.01, True, {"constraint": ub.Increasing()}),
}


def measure(system: System, seed: int) -> dict[str, float]:
    """One data set."""
    problem, truth = system.draw(seed)
    S, rng = problem.S - FRESH, np.random.default_rng([seed, 1])
    sizes = system.level * problem.F[:S].std(axis=0), system.level * np.sqrt(np.mean(problem.J[:S] ** 2))
    F = problem.F + sizes[0] * rng.standard_normal(problem.F.shape)
    J = problem.J + sizes[1] * rng.standard_normal(problem.J.shape)
    given = ub.Problem(problem.X[:S], F[:S], J[:S] if system.jacobians else None)
    fit = ub.decouple(given, system.rank, rng=seed, **system.settings)
    sure = fit.uncertainty()
    X = problem.X[S:]
    inside = ~beyond_training(fit.model, X)
    values, new = sure.values(X[inside]), sure.values(X[inside], new=True)
    covered = {
        "function": share_inside(values, problem.F[S:][inside]),
        "new": share_inside(new, F[S:][inside]),
        "noise": float(np.mean(sure.noise / sizes[0])),
        "doubt": float(sure.doubt is not None),
    }
    bands, slopes = [], []
    for j, true in lay_truth(fit.model, truth).items():
        if not fit.model.W1[:, j].any():
            continue  # the data did not support it
        band = sure.branch(j, np.linspace(*fit.model.branches[j].domain, POINTS))
        own = true(given.X @ true_direction(truth, true, fit.model.W0[j]))
        center, spread = own.mean(), own.std()
        bands.append(share_inside(band, (true(band.u) - center) / spread))
        slopes.append(share_inside(sure.slope(j, band.u), true.derivative(band.u) / spread))
    covered["left out"] = fit.model.rank - len(bands)
    return {"bands": float(np.mean(bands)), "slopes": float(np.mean(slopes)), **covered}


def true_direction(truth: ub.DecoupledModel, aligned: Any, found: Any) -> Any:
    """The true direction of a branch with length one and the sign of the found one."""
    w0 = truth.W0[aligned.found] / np.linalg.norm(truth.W0[aligned.found])
    return w0 * np.sign(w0 @ found)


def share_inside(interval: Any, true: Any) -> float:
    """The share of true values within an interval."""
    return float(np.mean((interval.low <= true) & (true <= interval.high)))


def main() -> None:
    """The table."""
    words = sys.argv[1:]
    sets = int(words.pop(0)) if words and words[0].isdigit() else 200
    print(f"{'':22}" + "".join(f"{name:>10}" for name in HEADS))
    for name, system in SYSTEMS.items():
        if words and name not in words:
            continue
        began = time.perf_counter()
        found = [measure(system, seed) for seed in range(sets)]
        means = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
        shown = "".join(f"{100 * means[key]:9.1f}%" for key in ("bands", "slopes", "function", "new"))
        rest = f"{means['noise']:10.3f}{100 * means['doubt']:9.0f}%{means['left out']:10.2f}"
        rest += f"{time.perf_counter() - began:10.0f}"
        print(f"{name:22}{shown}{rest}", flush=True)


if __name__ == "__main__":
    main()
