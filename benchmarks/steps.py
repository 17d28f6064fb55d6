"""What a Gauss–Newton step costs: against a sweep, and against the size of the problem.

    python benchmarks/steps.py [picture.png]

One BLAS thread throughout. Prints the default `decouple` against 300 sweeps of `dejonghe2025` from the same number
of starts, and the time of a step over that of a sweep at n = m = r = 10, S = 2000, df = 20; then the time of a step
and of a sweep against S, r and df, as a table with the exponents of fitted powers, and as a picture where asked for.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

import unbraid as ub
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.runtime.process import single_blas_thread
from unbraid.solvers.alternating import AlternatingProjection
from unbraid.solvers.coupling import as_coupling
from unbraid.solvers.gauss_newton import GaussNewton

USUAL = {"S": 2000, "r": 10, "df": 20}
RANGES: dict[str, Sequence[int]] = {
    "S": (500, 1000, 2000, 4000, 8000, 16000, 32000),
    "r": (2, 4, 8, 12, 16, 24),
    "df": (6, 10, 14, 20, 28, 40),
}


def fastest(action: Callable[[], object], repetitions: int) -> float:
    """Seconds of the fastest of some calls."""
    seconds = []
    for _ in range(repetitions):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def sweep_and_step(S: int, r: int, df: int) -> tuple[float, float]:
    """Seconds of one sweep and of one Gauss–Newton step, n = m = 10."""
    problem, _ = ub.datasets.random_system(10, 10, r, S, "sine", rng=0)
    samples, basis, free = Samples.of(problem, Units.balanced(problem)), ub.BSpline(df), Projection.onto([None] * r)
    sweeps = AlternatingProjection(samples, basis, free, as_coupling(0.1), True, True, True, 0.5)
    steps = GaussNewton(samples, basis, free, 0.1, True, 0.5)
    with single_blas_thread():
        swept = sweeps.random_start(r, [np.random.default_rng(0)])
        for _ in range(10):
            swept, _ = sweeps.step(swept)
        stepped = replace(steps.start(sweeps.iterates(swept)), damping=np.ones(1))  # so that the step is not taken back
        sweep = fastest(lambda: sweeps.measure(sweeps.step(swept)[0]), 15)
        step = fastest(lambda: steps.measure(steps.step(stepped)[0]), 7)
    return sweep, step


def default_against_sweeps(draws: int) -> None:
    """The whole default fit on f_trig, df = 12, beside 300 sweeps from as many starts."""
    ours, theirs = [], []
    ub.decouple(ub.datasets.trig(S=100, rng=0)[0], 3, rng=0)  # so that nothing is timed for the first time
    for draw in range(draws):
        problem, _ = ub.datasets.trig(S=100, rng=draw)
        basis, sweeps = ub.BSpline(12), ub.methods.dejonghe2025(tolerance=0.0)
        ours.append(ub.decouple(problem, 3, basis=basis, rng=draw).seconds)
        theirs.append(ub.decouple(problem, 3, basis=basis, method=sweeps, rng=draw).seconds)
    ratio = np.array(ours) / np.array(theirs)
    print(
        f"f_trig, df = 12, 16 starts, {draws} draws: default {np.mean(ours):.2f} s, "
        f"300 sweeps {np.mean(theirs):.2f} s, ratio {np.median(ratio):.2f} (median), {ratio.max():.2f} (largest)"
    )


def costs() -> dict[str, list[tuple[int, float, float]]]:
    """(size, sweep, step) along each of S, r and df, the others being as usual."""
    result: dict[str, list[tuple[int, float, float]]] = {}
    for name, sizes in RANGES.items():
        result[name] = [(size, *sweep_and_step(**(USUAL | {name: size}))) for size in sizes]
        x, sweep, step = np.log(np.array(result[name])[-4:].T)
        powers = [np.polyfit(x, y, 1)[0] for y in (sweep, step)]
        print(f"| {name} | sweep, ms | step, ms | step / sweep |\n|---|---|---|---|")
        for size, a, b in result[name]:
            print(f"| {size} | {1e3 * a:.2f} | {1e3 * b:.1f} | {b / a:.1f} |")
        print(f"| power at the last four | {powers[0]:.2f} | {powers[1]:.2f} | |\n", flush=True)
    return result


def draw(measured: dict[str, list[tuple[int, float, float]]], path: str) -> None:
    """The same as a picture: three panels with logarithmic axes, and a line of slope one."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    figure, panels = plt.subplots(1, 3, figsize=(10.0, 3.4), sharey=True, layout="constrained")
    for axes, (name, rows) in zip(panels, measured.items(), strict=True):
        size, sweep, step = np.array(rows).T
        axes.loglog(size, 1e3 * step, "o-", color="#0072B2", label="Gauss–Newton step")
        axes.loglog(size, 1e3 * sweep, "s-", color="#D55E00", label="sweep")
        axes.loglog(size, 1e3 * step[-1] * size / size[-1], ":", color="0.4", label=f"proportional to {name}")
        others = ", ".join(f"{key} = {value}" for key, value in USUAL.items() if key != name)
        axes.set(xlabel=name, title=others)
        axes.xaxis.set_major_locator(FixedLocator(list(size)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    panels[0].set_ylabel("milliseconds, n = m = 10")
    figure.savefig(path, dpi=150)
    print(f"Picture: {path}")


def main() -> None:
    """Print both comparisons and the table, and draw the picture where one is asked for."""
    default_against_sweeps(10)
    sweep, step = sweep_and_step(**USUAL)
    print(
        f"n = m = r = 10, S = 2000, df = 20: sweep {1e3 * sweep:.2f} ms, step {1e3 * step:.1f} ms: {step / sweep:.1f}\n"
    )
    measured = costs()
    if len(sys.argv) > 1:
        draw(measured, sys.argv[1])


if __name__ == "__main__":
    main()
