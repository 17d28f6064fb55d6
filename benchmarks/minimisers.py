"""Does the default solver reach the minimiser? Its objective against that of a fit started at the truth.

    python benchmarks/minimisers.py [trig | monotone | frontier] [draws]

A row is a cell: in how many draws the objective is within the tolerance of, or below, that of the fit
started at the true model; medians of what was found; seconds per fit.
"""

import sys
import time

import numpy as np

import unbraid as ub

FRONTIER = ((3, 3, 7, 300), (1, 4, 4, 300), (4, 4, 10, 400), (10, 10, 12, 300), (20, 20, 20, 300))


def trig(draws: int) -> None:
    """f_trig, every degree and df of the paper that has slopes to differentiate, and a quintic."""
    print("| d, df | within 2 % | median e1 / e2 in % | from the truth | s per fit |\n|---|---|---|---|---|")
    for degree, df in [(d, df) for d in (1, 2, 3) for df in range(8, 29, 2)] + [(5, 20)]:
        within, seconds, found, given = 0, 0.0, [], []
        for draw in range(draws):
            problem, truth = ub.datasets.trig(S=100, rng=draw)
            fit = ub.decouple(problem, 3, basis=ub.BSpline(df, degree), rng=1000 + draw)
            reference = ub.decouple(problem, 3, basis=ub.BSpline(df, degree), init=truth)
            within += fit.objective <= 1.02 * reference.objective
            seconds += fit.seconds / draws
            assert fit.output_errors is not None
            assert reference.output_errors is not None
            found.append(fit.output_errors)
            given.append(reference.output_errors)
        medians = [" / ".join(f"{e:.2g}" for e in np.median(rows, axis=0)) for rows in (found, given)]
        print(f"| {degree}, {df} | {within} of {draws} | {medians[0]} | {medians[1]} | {seconds:.2f} |", flush=True)


def monotone(draws: int) -> None:
    """The monotone system with Increasing(), beside CMTF-BSD as printed."""
    print("| df | certified | within 5 % | median Error(J) | CMTF-BSD | s per fit |\n|---|---|---|---|---|---|")
    for df in (8, 14, 20):
        certified, within, seconds, ours, printed = 0, 0, 0.0, [], []
        for draw in range(draws):
            problem, truth = ub.datasets.monotone(S=100, rng=draw)
            basis, shape = ub.BSpline(df, 4, of="slope"), ub.Increasing()
            fit = ub.decouple(problem, 3, basis=basis, constraint=shape, rng=1000 + draw)
            reference = ub.decouple(problem, 3, basis=basis, constraint=shape, init=truth)
            sweeps = ub.methods.dejonghe2025(0.1)
            plain = ub.decouple(problem, 3, basis=basis, constraint=shape, method=sweeps, starts=1, rng=1000 + draw)
            certified += all(g.certified(shape) for g in fit.model.branches)
            within += fit.objective <= 1.05 * reference.objective
            seconds += fit.seconds / draws
            ours.append(fit.jacobian_error or 0.0)
            printed.append(plain.jacobian_error or 0.0)
        print(
            f"| {df} | {certified} of {draws} | {within} of {draws} | {np.median(ours):.1e} | {np.median(printed):.1e} "
            f"| {seconds:.2f} |",
            flush=True,
        )


def frontier(draws: int) -> None:
    """Random cubic systems at the edge of what can be decoupled."""
    print("| n, m, r, S | exact (Error(J) < 1e-20) | s per fit |\n|---|---|---|")
    for n, m, r, S in FRONTIER:
        exact, began = 0, time.perf_counter()
        for draw in range(draws):
            problem, _ = ub.datasets.random_system(n, m, r, S, "cubic", rng=draw)
            fit = ub.decouple(problem, r, basis=ub.BSpline(8), rng=1000 + draw)
            exact += (fit.jacobian_error or 0.0) < 1e-20
        seconds = (time.perf_counter() - began) / draws
        print(f"| {n}, {m}, {r}, {S} | {exact} of {draws} | {seconds:.1f} |", flush=True)


def main() -> None:
    """The tables that were asked for, or all."""
    tables = {"trig": (trig, 30), "monotone": (monotone, 30), "frontier": (frontier, 10)}
    asked = sys.argv[1:2] or list(tables)
    for name in asked:
        table, draws = tables[name]
        table(int(sys.argv[2]) if len(sys.argv) > 2 else draws)
        print()


if __name__ == "__main__":
    main()
