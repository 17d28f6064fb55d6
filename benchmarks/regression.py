r"""Values alone, with noise, on fresh points: against projection pursuit, a neural network and a Gaussian process.

    python benchmarks/regression.py [seed]

Ten random systems, normal noise of 1 % of each output's standard deviation on the training values, 1000 fresh points
without noise. An error is the root mean square over the standard deviation of an output, in %, of the worst output;
below it are the seconds that the fit took.

- unbraid: smoothing splines and the true rank, from values; and from the same noisy values with exact Jacobians, which
  say nothing about constants: these keep the error of the mean of the values' noise, the floor in the last column.
- ppr: R's projection pursuit regression with the three smoothers it has, outputs together and one by one, keeping the
  true rank of terms at once or on the way down from 2 or 4 more. Needs `Rscript`.
- MLP: scikit-learn's, two hidden layers of 64, by Adam and by L-BFGS, each with two weight decays.
- GP: scikit-learn's Gaussian process, a squared-exponential kernel with one length per input, and noise; its
  parameters by maximum likelihood from three starts, for each output.

Of ppr and MLP the variant counts that is best on the fresh points, which favours them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

import unbraid as ub
from unbraid.datasets import Kind
from unbraid.kernels.arrays import Array
from unbraid.runtime.process import single_blas_thread

NOISE, FRESH = 0.01, 1000
SYSTEMS: tuple[tuple[int, int, int, int, Kind], ...] = (
    (1, 4, 2, 200, "sine"),
    (1, 5, 3, 250, "sine"),
    (2, 4, 3, 200, "sine"),
    (3, 4, 4, 200, "sine"),
    (1, 6, 3, 300, "cubic"),
    (2, 6, 4, 500, "sine"),
    (1, 8, 2, 300, "sine"),
    (3, 5, 3, 250, "cubic"),
    (2, 8, 3, 400, "sine"),
    (1, 10, 4, 600, "sine"),
)
"""n, m, r, S and the kind of branches, fixed before anything was measured."""


@dataclass(frozen=True)
class Regression:
    """A system, sampled: noisy values F and exact Jacobians J to learn from, fresh values without noise.

    `floor` is the error of the worst output, in %, of the true function plus the mean of the noise.
    """

    rank: int
    X: Array
    F: Array
    J: Array
    new_points: Array
    new_values: Array
    floor: float


class Outcome(NamedTuple):
    """Of the best variant of a contender: the error on fresh points in %, how long it took, and which it was."""

    error: float
    seconds: float
    variant: str = ""


class Variant(NamedTuple):
    """What one variant of a contender says about the fresh points."""

    name: str
    seconds: float
    predicted: Array


def drawn(n: int, m: int, r: int, S: int, kind: Kind, seed: int) -> Regression:
    """A random system and its samples."""
    rng = np.random.default_rng(seed)
    whole, _ = ub.datasets.random_system(n, m, r, S + FRESH, kind, rng)
    assert whole.F is not None
    assert whole.J is not None
    noise = NOISE * np.std(whole.F[:S], axis=0) * rng.standard_normal((S, n))
    floor = float(ub.metrics.output_errors(whole.F[S:], whole.F[S:] + noise.mean(axis=0)).max())
    return Regression(r, whole.X[:S], whole.F[:S] + noise, whole.J[:S], whole.X[S:], whole.F[S:], floor)


def from_values(task: Regression) -> Iterator[Variant]:
    """unbraid, as it comes."""
    fit = ub.decouple(ub.Problem(task.X, task.F), task.rank, basis=ub.SmoothingSpline(), rng=0)
    yield Variant("", fit.seconds, fit.model(task.new_points))


def from_jacobians(task: Regression) -> Iterator[Variant]:
    """Unbraid with exact Jacobians beside the noisy values."""
    fit = ub.decouple(ub.Problem(task.X, task.F, task.J), task.rank, basis=ub.SmoothingSpline(), rng=0)
    yield Variant("", fit.seconds, fit.model(task.new_points))


PPR = """
read <- function(name) as.matrix(read.csv(paste0(name, ".csv"), header = FALSE))
x <- read("X"); y <- read("F"); fresh <- read("fresh"); r <- %d; tried <- 0
for (smoother in c("supsmu", "spline", "gcvspline"))
  for (df in if (smoother == "spline") c(5, 8, 12) else 5)
    for (more in c(0, 2, 4))
      for (outputs in if (ncol(y) > 1) list(list(seq_len(ncol(y))), as.list(seq_len(ncol(y)))) else list(list(1))) {
        began <- proc.time()[["elapsed"]]
        predicted <- try(do.call(cbind, lapply(outputs, function(k) predict(
          ppr(x, y[, k], nterms = r, max.terms = r + more, sm.method = smoother, df = df, optlevel = 3), fresh))))
        if (inherits(predicted, "try-error")) next
        tried <- tried + 1
        seconds <- proc.time()[["elapsed"]] - began
        each <- if (length(outputs) > 1) "each" else ""
        name <- paste(smoother, if (smoother == "spline") df else "", "+", more, each)
        write.table(predicted, paste0("predicted", tried, ".csv"), sep = ",", row.names = FALSE, col.names = FALSE)
        cat(name, seconds, sep = "|"); cat("\\n")
      }
"""


def projection_pursuit(task: Regression) -> Iterator[Variant]:
    """R's ppr, all variants in one process."""
    with tempfile.TemporaryDirectory() as folder:
        for name, array in (("X", task.X), ("F", task.F), ("fresh", task.new_points)):
            np.savetxt(Path(folder) / f"{name}.csv", array, delimiter=",", fmt="%.17g")
        script = Path(folder) / "ppr.R"
        script.write_text(PPR % task.rank, encoding="ascii")
        done = subprocess.run(["Rscript", str(script)], cwd=folder, capture_output=True, text=True, check=True)
        for k, line in enumerate(done.stdout.splitlines(), 1):
            name, seconds = line.rsplit("|", 1)
            predicted = np.loadtxt(Path(folder) / f"predicted{k}.csv", delimiter=",", ndmin=2)
            yield Variant(" ".join(name.split()), float(seconds), predicted.reshape(task.new_values.shape))


def network(task: Regression) -> Iterator[Variant]:
    """A 64 × 64 network on standardised inputs and outputs."""
    from sklearn.neural_network import MLPRegressor

    x_mean, x_scale, f_mean, f_scale = standardising(task)
    F = (task.F - f_mean) / f_scale
    for solver, iterations in (("adam", 4000), ("lbfgs", 4000)):
        for decay in (1e-4, 1e-3):
            began = time.perf_counter()
            model = MLPRegressor(
                hidden_layer_sizes=(64, 64),
                solver=solver,
                alpha=decay,
                max_iter=iterations,
                tol=1e-6,
                n_iter_no_change=50,
                max_fun=10**6,
                random_state=0,
            )
            model.fit((task.X - x_mean) / x_scale, F if F.shape[1] > 1 else F[:, 0])
            seconds = time.perf_counter() - began
            predicted = model.predict((task.new_points - x_mean) / x_scale).reshape(task.new_values.shape)
            yield Variant(f"{solver} {decay:g}", seconds, predicted * f_scale + f_mean)


def gaussian_process(task: Regression) -> Iterator[Variant]:
    """A Gaussian process for each output, one length per input."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    x_mean, x_scale, f_mean, f_scale = standardising(task)
    began, columns = time.perf_counter(), []
    for column in ((task.F - f_mean) / f_scale).T:
        lengths = RBF(np.full(task.X.shape[1], 2.0), (1e-2, 1e3))
        kernel = ConstantKernel(1.0, (1e-3, 1e5)) * lengths + WhiteKernel(1e-3, (1e-8, 1.0))
        model = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0)
        model.fit((task.X - x_mean) / x_scale, column)
        columns.append(model.predict((task.new_points - x_mean) / x_scale))
    predicted = np.stack(columns, axis=-1) * f_scale + f_mean
    yield Variant("", time.perf_counter() - began, predicted)


def standardising(task: Regression) -> tuple[Array, Array, Array, Array]:
    """Means and standard deviations of inputs and outputs."""
    return task.X.mean(axis=0), task.X.std(axis=0), task.F.mean(axis=0), task.F.std(axis=0)


Contender = Callable[[Regression], Iterator[Variant]]
CONTENDERS: dict[str, Contender] = {
    "unbraid": from_values,
    "ppr": projection_pursuit,
    "MLP": network,
    "GP": gaussian_process,
    "unbraid, exact J": from_jacobians,
}


def available() -> dict[str, Contender]:
    """The contenders that can be had here; says which cannot."""
    missing = []
    if shutil.which("Rscript") is None:
        missing.append(("ppr", "Rscript"))
    if find_spec("sklearn") is None:
        missing += [("MLP", "scikit-learn"), ("GP", "scikit-learn")]
    for name, what in missing:
        print(f"{name} is left out: {what} is not installed.")
    return {name: one for name, one in CONTENDERS.items() if name not in dict(missing)}


def best(contender: Contender, task: Regression) -> Outcome:
    """The variant of least error on the fresh points."""
    with warnings.catch_warnings(), single_blas_thread():
        warnings.simplefilter("ignore")  # scikit-learn's about budgets and bounds
        outcomes = [
            Outcome(float(ub.metrics.output_errors(task.new_values, predicted).max()), seconds, name)
            for name, seconds, predicted in contender(task)
        ]
    return min(outcomes)


def main() -> None:
    """The table, a row a system, and below it how often unbraid is best."""
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    contenders = available()
    print(f"| n, m, r, S | {' | '.join(contenders)} | floor |\n|---|---{'|---' * len(contenders)}|")
    errors = []
    for k, (n, m, r, S, kind) in enumerate(SYSTEMS):
        task = drawn(n, m, r, S, kind, first + k)
        outcomes = [best(one, task) for one in contenders.values()]
        errors.append([one.error for one in outcomes])
        cells = [f"{e:.2g} ({s:.1f} s{', ' * bool(v)}{v})" for e, s, v in outcomes]
        print(f"| {n}, {m}, {r}, {S}, {kind} | {' | '.join(cells)} | {task.floor:.2g} |", flush=True)
    names, table = list(contenders), np.array(errors)
    for name in names[1:]:
        ratio = table[:, names.index(name)] / table[:, 0]
        print(f"error of {name} over that of unbraid: {' '.join(f'{one:.2g}' for one in ratio)}")


if __name__ == "__main__":
    main()
