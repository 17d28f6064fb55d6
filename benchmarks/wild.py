"""What wild samples do to fits: held-out errors with `loss="huber"`, and how often the default fit tells of them.

Usage: python benchmarks/wild.py [draws] [first seed, odd: report, even: tune] [basis: default or smoothing]

Random systems as in `regret_cases.of_system`, values and Jacobians with 1 or 5 % noise. 1 % of the samples are wild:
off by 10 to 10⁶ standard deviations of the output, log-uniform, with either sign, in one output; rows of Jacobians
likewise, in units of their root mean square. Held-out errors are roots of mean squares at fresh points, over those of
the squared-loss fit to the samples without the wild ones. "clean" is that of huber on these samples without wild ones.
"told" is in how many fits with squared loss a note told of wild samples; "accused" the same without wild ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

import unbraid as ub
from regret_cases import Fold, of_system
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.results.wild import WILD

Loss = Literal["squared", "huber"]
SHARE = 0.01
VARIANTS = ("F alone", "F of F and J", "J of F and J", "both", "J alone")
NOISES = (0.01, 0.05)


@dataclass(frozen=True)
class Draw:
    """Samples of a system, some of them wild, with the rank, and which are wild."""

    rank: int
    fold: Fold
    problem: ub.Problem
    wild: IndexArray

    @classmethod
    def of(cls, seed: int, variant: str, noise: float) -> Draw:
        """The draw of a seed."""
        values_only = variant == "F alone"
        sizes = (2, 5, 3, 300) if values_only else (3, 3, 4, 300)
        case = of_system(seed, sizes=sizes, noise=(noise, None if values_only else noise))
        given, rng = case.folds[0].problem, np.random.default_rng([seed, 1])
        wild = rng.choice(given.S, max(1, round(SHARE * given.S)), replace=False)
        F = None if given.F is None or variant == "J alone" else given.F.copy()
        J = None if given.J is None else given.J.copy()
        clean = ub.Problem(given.X, given.F if F is not None else None, given.J)
        if F is not None and given.F is not None and variant != "J of F and J":
            column = rng.integers(given.n, size=len(wild))
            F[wild, column] += offs(rng, len(wild)) * np.std(given.F, axis=0)[column]
        if J is not None and given.J is not None and variant != "F of F and J":
            row = rng.integers(given.n, size=len(wild))
            size = np.sqrt(np.mean(np.square(given.J), axis=(0, 2)))[row]
            J[wild, row] += offs(rng, len(wild))[:, None] * size[:, None] * rng.standard_normal((len(wild), given.m))
        fold = Fold(clean, case.folds[0].points, case.folds[0].values)
        return cls(case.rank, fold, ub.Problem(given.X, F, J), wild)

    def error(self, fit: ub.Fit) -> float:
        """The error at fresh points, up to constants where they are not known."""
        left = fit.model(self.fold.points) - self.fold.values
        if self.fold.problem.F is None:
            left -= left.mean(axis=0)
        return float(np.sqrt(np.mean(np.square(left / np.std(self.fold.values, axis=0)))))


def offs(rng: np.random.Generator, count: int) -> Array:
    """How far wild samples are off, in standard deviations."""
    return np.asarray(10.0 ** rng.uniform(1.0, 6.0, count) * rng.choice([-1.0, 1.0], count))


def ratios(draw: Draw, basis: ub.bases.Basis | None) -> tuple[float, float, float, bool, bool]:
    """Errors of robust fits with and without wild samples, and of the plain one; whether wild ones were told."""
    kept = draw.problem.take(np.delete(np.arange(draw.problem.S), draw.wild))
    losses: list[tuple[ub.Problem, Loss]] = [
        (kept, "squared"),
        (draw.problem, "huber"),
        (kept, "huber"),
        (draw.problem, "squared"),
    ]
    fits = [ub.decouple(one, draw.rank, basis=basis, starts=8, loss=loss, rng=0) for one, loss in losses]
    least, robust, clean, spoiled = map(draw.error, fits)
    accused, told = (any(note.startswith(WILD) for note in fit.notes) for fit in (fits[0], fits[3]))
    return robust / least, clean / least, spoiled / least, told, accused


def rows(draws: int, first: int, basis: ub.bases.Basis | None) -> Iterator[str]:
    """The lines of the table."""
    for variant in VARIANTS:
        for noise in NOISES:
            found = [ratios(Draw.of(first + 2 * k, variant, noise), basis) for k in range(draws)]
            robust, clean, spoiled, told, accused = np.array(found, dtype=float).T
            yield (
                f"{variant:14}{100 * noise:3.0f} %  {np.median(robust):8.3f}{robust.max():8.3f}"
                f"  {np.median(clean):8.3f}{clean.max():8.3f}  {np.median(spoiled):10.1f}"
                f"  {told.sum():4.0f}  {accused.sum():4.0f}  of {draws}"
            )


def main() -> None:
    """Print the table."""
    given = [*sys.argv[1:], *("20", "1", "default")[len(sys.argv) - 1 :]]
    basis = ub.SmoothingSpline() if given[2] == "smoothing" else None
    print("wild, noise            huber   worst     clean   worst     squared  told  accused")
    for row in rows(int(given[0]), int(given[1]), basis):
        print(row, flush=True)


if __name__ == "__main__":
    main()
