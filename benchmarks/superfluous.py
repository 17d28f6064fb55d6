"""What branches too many cost: errors on fresh points at two and four branches above the true rank, and two tables.

    python benchmarks/superfluous.py [draws]

Random systems of `regret_cases.py` with odd seeds, with values and Jacobians and with values alone, 1 and 5 % noise:
the error of the worst output, in % and over that at the true rank, and how many branches the fit kept. Then R² of
diabetes (five folds, beside linear regression) and of Friedman 1 (400 samples, noise 1, on 4,000 fresh ones) by rank.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import unbraid as ub
from regret_cases import Case, of_system, of_table
from unbraid.kernels.arrays import Array

KINDS: dict[str, tuple[tuple[int, int, int, int], bool]] = {
    "F and J": ((3, 3, 4, 150), True),
    "F": ((2, 5, 3, 250), False),
}
MORE = (0, 2, 4)


def errors(case: Case, rank: int) -> tuple[float, int]:
    """The error of the worst output on fresh points in %, and how many branches were kept."""
    [fold] = case.folds
    fit = ub.decouple(fold.problem, rank, rng=0)
    square = np.mean((fit.model(fold.points) - fold.values) ** 2, axis=0)
    kept = rank if fit.smoothing is None else fit.smoothing.supported
    return 100.0 * float(np.sqrt(square / fold.values.var(axis=0)).max()), kept


def explained(truth: Array, found: Array) -> float:
    """R²."""
    return 1.0 - float(np.sum((found - truth) ** 2) / np.sum((truth - truth.mean(axis=0)) ** 2))


def diabetes(rank: int) -> tuple[float, float]:
    """R² of held-out parts in five folds: of a fit, and of linear regression."""
    parts = []
    for fold in of_table(1, "diabetes", rank).folds:
        assert fold.problem.F is not None
        design = np.hstack([fold.problem.X, np.ones((fold.problem.S, 1))])
        slopes = np.linalg.lstsq(design, fold.problem.F)[0]
        linear = np.hstack([fold.points, np.ones((len(fold.points), 1))]) @ slopes
        parts.append((fold.values, ub.decouple(fold.problem, rank, rng=0).model(fold.points), linear))
    truth, found, linear = (np.concatenate(one) for one in zip(*parts, strict=True))
    return explained(truth, found), explained(truth, linear)


def friedman(rank: int, seed: int) -> float:
    """R² on fresh noisy samples."""
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(400, noise=1.0, random_state=seed)
    points, values = make_friedman1(4000, noise=1.0, random_state=1000 + seed)
    return explained(values[:, None], ub.decouple(ub.Problem(X, y[:, None]), rank, rng=0).model(points))


def main() -> None:
    """Print all of it."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    ratios: list[float] = []
    print("data      noise  seed  error %, (ratio), branches kept of those asked for; seconds")
    for kind, (sizes, slopes) in KINDS.items():
        for noise in (0.01, 0.05):
            for seed in range(1, 2 * draws, 2):
                began, cells, first = time.perf_counter(), [], 0.0
                for more in MORE:
                    case = of_system(seed, sizes=sizes, noise=(noise, noise if slopes else None))
                    error, kept = errors(case, case.rank + more)
                    first = first or error
                    ratios += [error / first] * (more > 0)
                    cells.append(f"{error:7.3f} ({error / first:4.2f}) {kept} of {case.rank + more}")
                seconds = time.perf_counter() - began
                print(f"{kind:9}{noise:6.0%}{seed:6}  {'   '.join(cells)}  {seconds:6.1f}", flush=True)
    print(f"ratio to the true rank: median {np.median(ratios):.2f}, worst {max(ratios):.2f}\n")
    for rank in (1, 2, 4):
        print("diabetes, r = {}: R² {:.3f}, linear regression {:.3f}".format(rank, *diabetes(rank)), flush=True)
    for rank in (1, 2, 4, 6):
        every = [friedman(rank, seed) for seed in range(1, 2 * draws, 2)]
        print(f"Friedman 1, r = {rank}: R² {', '.join(f'{one:.3f}' for one in every)}", flush=True)


if __name__ == "__main__":
    main()
