"""A table as people keep it, in two commands, beside the regressors of scikit-learn on the same rows.

    python benchmarks/kept_tables.py [draws]

1,000 rows with 8 inputs, of which two are collinear, one is constant and one is text, 2 % of all cells empty, and 3 %
noise on two outputs: `unbraid fit … --missing drop --categories --rank auto`, then `unbraid predict` on 1,000 fresh
rows without noise. Others get the rows without gaps, texts as indicators, and scaled inputs. A row is a draw: the error
of the worst output on fresh rows, in % of its spread, and seconds.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROWS, GAPS, NOISE = 1000, 0.02, 0.03
KINDS = {"red": 0.0, "green": 0.6, "blue": -0.8}
NUMBERS = [f"x{k + 1}" for k in range(7)]


def draw(rng: np.random.Generator, noise: float, gaps: float, path: Path) -> tuple[Any, Any]:
    """Write a table; its inputs as numbers, texts as indicators, and the outputs without noise."""
    A = rng.uniform(-1, 1, (ROWS, 5))
    kind = rng.choice(list(KINDS), ROWS, p=[0.5, 0.3, 0.2])
    X = np.column_stack([A, 2 * A[:, 0] - A[:, 1], np.full(ROWS, 3.0)])
    shift = np.array([KINDS[one] for one in kind])
    u, v, w = A[:, 0] + 0.5 * A[:, 2] + shift, A[:, 1] - A[:, 3], 0.7 * A[:, 4] + 0.4 * A[:, 0]
    F = np.column_stack([np.sin(2 * u) + v**2, np.exp(0.6 * w) + 0.5 * np.tanh(2 * v) + 0.3 * np.sin(2 * u)])
    given = F + noise * F.std(axis=0) * rng.standard_normal(F.shape)
    cells = [
        [*map(repr, map(float, x)), str(k), *map(repr, map(float, f))] for x, k, f in zip(X, kind, given, strict=True)
    ]
    empty = rng.random((ROWS, len(cells[0]))) < gaps
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*NUMBERS, "kind", "y1", "y2"])
        writer.writerows(
            ["" if gap else cell for cell, gap in zip(*row, strict=True)] for row in zip(cells, empty, strict=True)
        )
    whole = ~empty.any(axis=1)
    indicators = np.stack([kind == one for one in KINDS], axis=1)
    return np.hstack([X, indicators])[whole], (given if noise else F)[whole]


def others(seed: int) -> dict[str, Any]:
    """Regressors of scikit-learn."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel() * RBF(np.ones(len(NUMBERS) + len(KINDS))) + WhiteKernel(0.01)
    return {
        "boosting": MultiOutputRegressor(HistGradientBoostingRegressor(random_state=seed)),
        "MLP": make_pipeline(
            StandardScaler(), MLPRegressor(hidden_layer_sizes=(64, 64), max_iter=2000, random_state=seed)
        ),
        "GP": make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)),
    }


def worst(truth: Any, found: Any) -> float:
    """The error of the worst output, in % of its spread."""
    return float((100.0 * np.sqrt(np.mean((found - truth) ** 2, axis=0)) / truth.std(axis=0)).max())


def main() -> None:
    """All draws."""
    print("| draw | unbraid | s | boosting | MLP | GP |\n|---|---|---|---|---|---|")
    for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
        rng = np.random.default_rng(seed)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            X, F = draw(rng, NOISE, GAPS, folder / "table.csv")
            fresh, truth = draw(rng, 0.0, 0.0, folder / "new.csv")
            began = time.perf_counter()
            fit = "fit table.csv --outputs y1,y2 --missing drop --categories --rank auto -o model.npz"
            for line in (fit, "predict model.npz new.csv -o values.npz"):
                subprocess.run(
                    [sys.executable, "-m", "unbraid", *line.split()], cwd=folder, check=True, capture_output=True
                )
            seconds = time.perf_counter() - began
            with np.load(folder / "values.npz") as file:
                errors = [worst(truth, file["F"])]
        errors += [worst(truth, one.fit(X, F).predict(fresh)) for one in others(seed).values()]
        own, *rest = (f"{error:.2f}" for error in errors)
        print(f"| {seed} | {own} | {seconds:.1f} | {' | '.join(rest)} |", flush=True)


if __name__ == "__main__":
    main()
