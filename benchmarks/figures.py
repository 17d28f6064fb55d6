"""The two tables of docs/method.md: what the anchored step and the constraint do, over 30 draws.

    python benchmarks/figures.py

On f_trig: in how many draws both outputs are below 1 %, and median errors, for several λ and both steps. On the
monotone system: median Error(J) and certified runs with and without the constraint.
"""

from collections.abc import Callable

import numpy as np

import unbraid as ub

DRAWS = 30


def trig_row(title: str, method: ub.methods.AlternatingMethod) -> None:
    """Median errors and successes on f_trig."""
    errors = []
    for draw in range(DRAWS):
        problem, _ = ub.datasets.trig(S=100, rng=draw)
        fit = ub.decouple(problem, 3, basis=ub.BSpline(20), method=method, starts=1, rng=1000 + draw)
        assert fit.output_errors is not None
        errors.append(fit.output_errors)
    e1, e2 = np.median(errors, axis=0)
    print(f"| {title} | {np.sum(np.max(errors, axis=1) < 1.0)} of {DRAWS} | {e1:.2f} / {e2:.2f} |")


def monotone_row(df: int) -> None:
    """Median Error(J) and certificates on the monotone system, free and increasing."""
    cells = []
    for constraint in (None, ub.Increasing()):
        errors, either = [], 0
        for draw in range(DRAWS):
            problem, _ = ub.datasets.monotone(S=100, rng=draw)
            fit = ub.decouple(
                problem,
                3,
                basis=ub.BSpline(df, 4, of="slope"),
                method=ub.methods.dejonghe2025(0.1),
                constraint=constraint,
                starts=1,
                rng=1000 + draw,
            )
            errors.append(fit.jacobian_error)
            either += all(g.certified(ub.Increasing()) or g.certified(ub.Decreasing()) for g in fit.model.branches)
        cells += [f"{np.median(np.array(errors, dtype=float)):.1e}", f"{either} of {DRAWS}"]
    print(f"| {df} | {' | '.join(cells)} |")


def main() -> None:
    """Print both tables."""
    printed: Callable[..., ub.methods.AlternatingMethod] = ub.methods.dejonghe2025
    print("| | both outputs under 1 % | median e1 / e2 in % |\n|---|---|---|")
    for coupling in (1e-4, 0.01, 0.1, 1.0):
        trig_row(f"as printed, λ = {coupling:g}", printed(coupling))
    for coupling in (0.1, 1.0):
        trig_row(f"anchored, λ = {coupling:g}", printed(coupling, anchored=True))
    trig_row("as printed, λ = 1e-4, not scaled", printed(1e-4, scaled=False))
    print("\n| df | free: Error(J) | certified | increasing: Error(J) | certified |\n|---|---|---|---|---|")
    for df in (8, 14, 20):
        monotone_row(df)


if __name__ == "__main__":
    main()
