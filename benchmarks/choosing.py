"""What df, λ, basis and constraint do to errors on fresh points: the numbers of docs/choosing.md.

Usage: python benchmarks/choosing.py [DRAWS]

Every number is the median over draws of the error of the worst output on 1,000 fresh points, in %, after a fit to 100
samples with noise on values and Jacobians. Fresh points lie partly outside the range of the samples.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import unbraid as ub
from unbraid.bases import Basis
from unbraid.results.fit import errors_on
from unbraid.studies.comparison.cells import FRESH, NOISES, TRAINING, with_noise
from unbraid.studies.comparison.entries import systems

SYSTEMS = ("trig", "sine_3_3_5", "cubic_2_3_4")
BASES: tuple[Basis, ...] = (
    ub.BSpline(6),
    ub.BSpline(8),
    ub.BSpline(12),
    ub.BSpline(20),
    ub.BSpline(28),
    ub.NaturalCubic(12),
    ub.PiecewiseLinear(20),
    ub.SmoothingSpline(),
)
Settings = Callable[[ub.Problem, int, int], ub.DecoupledModel]


def errors(system: str, noise: float, draws: int, settings: dict[str, Settings]) -> list[float]:
    """The median error with each of the settings, all on the same samples and noise."""
    chosen, found = systems()[system], []
    for draw in range(draws):
        whole, _ = chosen.draw(TRAINING + FRESH, np.random.default_rng([draw, 0]))
        train = with_noise(whole.take(slice(TRAINING)), noise, np.random.default_rng([draw, 1]))
        fresh = whole.take(slice(TRAINING, None))
        outputs = [errors_on(fresh, fit(train, chosen.rank, draw))[1] for fit in settings.values()]
        found.append([float(np.max(output)) for output in outputs if output is not None])
    return [float(one) for one in np.median(found, axis=0)]


def table(title: str, system_names: tuple[str, ...], draws: int, settings: dict[str, Settings]) -> None:
    """Print a Markdown table, a row a system and noise; the best of each row is bold."""
    print(f"\n{title}\n\n| | {' | '.join(settings)} |\n|{'---|' * (1 + len(settings))}")
    for name in system_names:
        for noise in NOISES:
            row = errors(name, noise, draws, settings)
            cells = [f"**{one:.2g}**" if one == min(row) else f"{one:.2g}" for one in row]
            print(f"| {systems()[name].title}, {100 * noise:g} % | {' | '.join(cells)} |", flush=True)


def with_basis(basis: Basis) -> Settings:
    """The default solver with a basis."""
    return lambda problem, rank, seed: ub.decouple(problem, rank, basis=basis, rng=seed).model


def with_coupling(coupling: float | None) -> Settings:
    """Smoothing splines at one λ, or at that which the residuals suggest."""
    method = ub.methods.default(coupling=coupling)
    return lambda problem, rank, seed: (
        ub.decouple(problem, rank, basis=ub.SmoothingSpline(), method=method, rng=seed).model
    )


def with_constraint(basis: Basis, constrained: bool) -> Settings:
    """Branches that increase, or free ones."""
    constraint = ub.Increasing() if constrained else None
    return lambda problem, rank, seed: ub.decouple(problem, rank, basis=basis, constraint=constraint, rng=seed).model


def from_values(basis: Basis) -> Settings:
    """A fit that does not see the Jacobians."""
    return lambda problem, rank, seed: ub.decouple(ub.Problem(problem.X, problem.F), rank, basis=basis, rng=seed).model


def main() -> None:
    """Print all tables."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    table("Basis", SYSTEMS, draws, {repr(basis): with_basis(basis) for basis in BASES})
    table(
        "λ, with SmoothingSpline()",
        SYSTEMS,
        draws,
        {str(coupling or "open"): with_coupling(coupling) for coupling in (None, 0.001, 0.01, 0.1, 1, 10)},
    )
    constrained: dict[str, Settings] = {}
    for basis in (ub.BSpline(14, 4), ub.SmoothingSpline()):
        constrained[f"{basis!r}, free"] = with_constraint(basis, constrained=False)
        constrained[f"{basis!r}, increasing"] = with_constraint(basis, constrained=True)
    table("A constraint that is true", ("monotone",), draws, constrained)
    values = (ub.BSpline(6), ub.BSpline(12), ub.SmoothingSpline())
    table("Values alone", ("trig", "sine_3_3_5"), draws, {repr(basis): from_values(basis) for basis in values})


if __name__ == "__main__":
    main()
