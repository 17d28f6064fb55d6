"""How fast the error falls with df: the default solver on f_trig, d = 1 … 5, beside the rate of splines of that degree.

    python benchmarks/approximation.py [picture.png] [draws]

Splines of degree d on intervals of length h approximate a smooth function to O(h^(d + 1)) and its slope to O(h^d);
with df degrees of freedom there are df - d + 1 intervals. 400 samples, so that they do not limit what a df can do.
Errors at these samples: of values, root mean square over both outputs, in %; of slopes, 100 √Error(J).
"""

import sys

import numpy as np

import unbraid as ub

DFS = (8, 10, 12, 14, 17, 20, 24, 28, 34, 40)
DEGREES = (1, 2, 3, 4, 5)
COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#0072B2", "#CC79A7")


def errors_of(degree: int, df: int, draws: int) -> tuple[float, float]:
    """The median errors of values and slopes over some draws."""
    found = []
    for draw in range(draws):
        problem, _ = ub.datasets.trig(S=400, rng=draw)
        fit = ub.decouple(problem, 3, basis=ub.BSpline(df, degree), rng=draw)
        assert fit.output_errors is not None
        assert fit.jacobian_error is not None
        found.append((np.sqrt(np.mean(fit.output_errors**2)), 100.0 * np.sqrt(fit.jacobian_error)))
    values, slopes = np.median(found, axis=0)
    return float(values), float(slopes)


def draw(errors: dict[int, list[tuple[float, float]]], path: str) -> None:
    """Errors over the number of intervals, with the theoretical rates as dashed lines."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(10.0, 4.6), layout="constrained", sharey=True)
    for column, (axes, what) in enumerate(zip(panels, ("values", "slopes"), strict=True)):
        for degree, colour in zip(DEGREES, COLOURS, strict=True):
            intervals = np.array([df - degree + 1.0 for df in DFS])
            measured = np.array(errors[degree])[:, column]
            axes.loglog(intervals, measured, "o-", color=colour, label=f"d = {degree}")
            middle, order = len(DFS) // 2, degree + 1.0 - column
            rate = measured[middle] * (intervals[middle] / intervals[3:]) ** order
            axes.loglog(intervals[3:], rate, "--", color=colour, linewidth=0.9)
        axes.plot([], [], "--", color="0.4", label=f"rate of splines, {('h^(d + 1)', 'h^d')[column]}")
        ticks = [4, 6, 8, 10, 15, 20, 30, 40]
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set(xlabel="intervals, df − d + 1", ylabel=f"error of the {what}, %", title=f"f_trig, {what}")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)


def main() -> None:
    """The table, and the picture where asked for."""
    draws = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print("| d | " + " | ".join(f"df {df}" for df in DFS) + " | order of values, slopes | theory |")
    print("|---" * (len(DFS) + 3) + "|")
    errors: dict[int, list[tuple[float, float]]] = {}
    for degree in DEGREES:
        errors[degree] = [errors_of(degree, df, draws) for df in DFS]
        intervals = np.log([df - degree + 1.0 for df in DFS[3:]])
        orders = [-np.polyfit(intervals, column, 1)[0] for column in np.log(errors[degree][3:]).T]
        row = " | ".join(f"{values:.2g}, {slopes:.2g}" for values, slopes in errors[degree])
        print(f"| {degree} | {row} | {orders[0]:.1f}, {orders[1]:.1f} | {degree + 1}, {degree} |", flush=True)
    if len(sys.argv) > 1:
        draw(errors, sys.argv[1])


if __name__ == "__main__":
    main()
