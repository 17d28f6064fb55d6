"""What it brings to go on as polynomials beyond the range of the samples: errors on fresh points, against lines.

    python benchmarks/continuation.py [--tune]

For every case of `regret_cases.py` and a few bases, the error of `ub.decouple(problem, rank, basis=…)` on fresh points,
and that of the same model with its branches continued linearly: over all points, and over those outside the range of a
branch. Seeds are odd; with `--tune`, the even ones, on which `fitting/continuation.py` was tuned. A few minutes.

Prints, for every family and basis, how many cases there are, the geometric means of both ratios (1: no difference;
ratios below 0.01 count as that) and the worst ratio over all points with its case.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

import unbraid as ub
from regret_cases import Fold, families, listed
from unbraid.kernels.arrays import Array

BASES = {"BSpline(8)": ub.BSpline(8), "BSpline(12)": ub.BSpline(12), "SmoothingSpline()": ub.SmoothingSpline()}
LEFT_OUT = ("many", "diabetes")
"""Cases that take long, or have no truth."""
FOLDS, STARTS, FLOOR = 2, 8, 0.01


def straightened(model: ub.DecoupledModel) -> ub.DecoupledModel:
    """The same model, its branches continued linearly."""
    branches = [replace(branch, reach=np.zeros(2)) for branch in model.branches]  # type: ignore[type-var]
    return ub.DecoupledModel(model.W0, model.W1, branches, model.bias)


def squares(fold: Fold, model: ub.DecoupledModel) -> Array:
    """Sums of squared errors over all points, and over those outside the range of a branch: (2, n)."""
    u, ends = fold.points @ model.W0.T, np.array([branch.domain for branch in model.branches])
    outside = np.any((u < ends[:, 0]) | (u > ends[:, 1]), axis=1)
    off = (model(fold.points) - fold.values) ** 2
    return np.stack([off.sum(axis=0), off[outside].sum(axis=0)])


def ratios(folds: tuple[Fold, ...], rank: int, basis: ub.bases.Basis) -> Array:
    """Errors of the worst output, all points and those outside: continued over straight, (2,)."""
    outputs = folds[0].values.shape[1]
    continued, straight, size = np.zeros((2, outputs)), np.zeros((2, outputs)), np.zeros(outputs)
    for fold in folds[:FOLDS]:
        model = ub.decouple(fold.problem, rank, basis=basis, starts=STARTS, rng=0).model
        continued, straight = continued + squares(fold, model), straight + squares(fold, straightened(model))
        size = size + np.sum((fold.values - fold.values.mean(axis=0)) ** 2, axis=0)
    worst, before = (np.sqrt(np.max(one / size, axis=1)) for one in (continued, straight))
    return np.asarray(np.divide(worst, before, where=before > 0.0, out=np.ones(2)))


def main() -> None:
    """Fit and print, family by family."""
    cases = [case for case in listed(reported="--tune" not in sys.argv) if not case[1].startswith(LEFT_OUT)]
    print(f"{'family':18}{'basis':20}{'cases':>6}{'all':>8}{'outside':>9}{'worst':>8}")
    for family, drawn in families().items():
        for label, basis in BASES.items():
            found = {}
            for _, name, seed in (case for case in cases if case[0] == family):
                case = drawn[name](seed)
                if basis.size <= case.folds[0].problem.S:
                    found[f"{name} ({seed})"] = ratios(case.folds, case.rank, basis)
            if found:
                means = np.exp(np.mean(np.log(np.maximum(list(found.values()), FLOOR)), axis=0))
                worst = max(found, key=lambda name: found[name][0])
                print(
                    f"{family:18}{label:20}{len(found):6}{means[0]:8.3f}{means[1]:9.3f}{found[worst][0]:8.3f}  {worst}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
