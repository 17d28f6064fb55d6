"""The picture of the README: f_trig, taken apart from noisy samples, from its inputs to its outputs.

python docs/picture.py [decoupling.png]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Line

import unbraid as ub
from unbraid.plots.palette import BLUE, ORANGE, QUIET, RED
from unbraid.results.alignment import align

NOISE = 0.05  # on values and Jacobians, as a share of the spread of each entry
INPUTS, LEFT, RIGHT, OUTPUTS = 0.06, 0.345, 0.655, 0.94  # across: inputs, the sides of branches, outputs
BRANCHES, ENDS = (0.765, 0.485, 0.205), (0.625, 0.345)  # upwards: branches; inputs, and outputs likewise
HEIGHT, PORT = 0.235, 0.045  # of a branch; from its middle to where a line ends


def main(path):
    """Fit the samples, and draw the model and the truth."""
    problem, truth = noisy_trig()
    model = ub.decouple(problem, rank=3, basis=ub.SmoothingSpline(), rng=0).model
    figure = Figure(figsize=(10.0, 5.0))
    canvas = figure.add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(0, 1))
    canvas.axis("off")
    for number, (row, match, true) in enumerate(zip(BRANCHES, align(model, truth), truth.branches, strict=True), 1):
        for k, (end, port) in enumerate(zip(ENDS, (row + PORT, row - PORT), strict=True)):
            draw_weight(canvas, (INPUTS, end), (LEFT, port), model.W0[match.found, k], abs(model.W0).max())
            draw_weight(canvas, (OUTPUTS, end), (RIGHT, port), model.W1[k, match.found], abs(model.W1).max())
        panel = figure.add_axes((LEFT, row - HEIGHT / 2, RIGHT - LEFT, HEIGHT), xticks=[], yticks=[])
        panel.text(0.015, 0.94, f"$g_{number}$", transform=panel.transAxes, va="top", fontsize=12)
        draw_branch(panel, problem, model, match, true)
    name_parts(canvas)
    figure.legend(*panel.get_legend_handles_labels(), loc="lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=150)


def noisy_trig():
    """100 samples of the paper's f_trig with noise on values and Jacobians, and the true model."""
    clean, truth = ub.datasets.trig(S=100, rng=0)
    rng = np.random.default_rng(1)
    F, J = (a + NOISE * a.std(axis=0) * rng.standard_normal(a.shape) for a in (clean.F, clean.J))
    return ub.Problem(clean.X, F, J), truth


def draw_weight(canvas, end, port, weight, largest):
    """A line from an input or output to the side of a branch, as thick as its weight is large, the number on it."""
    middle = (end[0] + port[0]) / 2
    line = Line([end, (middle, end[1]), (middle, port[1]), port], [Line.MOVETO, *[Line.CURVE4] * 3])
    look = {"edgecolor": BLUE} if weight > 0 else {"edgecolor": RED, "linestyle": (0, (2.5, 1))}
    width = 0.6 + 5.0 * abs(weight) / largest
    canvas.add_patch(PathPatch(line, facecolor="none", linewidth=width, alpha=0.7, **look))
    text, at = f"{weight:+.2f}".replace("-", "−"), port[0] + 0.2 * (end[0] - port[0])
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}
    canvas.text(at, port[1], text, ha="center", va="center", fontsize=8.5, bbox=box)


def draw_branch(panel, problem, model, match, true):
    """A found curve, the true one laid on it, and samples: the curve plus what the model misses along its outputs."""
    branch, w0, w1 = model.branches[match.found], model.W0[match.found], model.W1[:, match.found]
    inputs, curve = problem.X @ w0, np.linspace(*branch.domain, 300)
    missed = (problem.F - model(problem.X)) @ w1 / (w1 @ w1)
    panel.plot(inputs, branch(inputs) + missed, "o", color=QUIET, markersize=2.6, alpha=0.55, label="samples", zorder=2)
    panel.plot(curve, branch(curve), color=BLUE, linewidth=1.8, label="found", zorder=3)
    truth = (true(curve / match.input_scale) - match.constant) / match.scale
    panel.plot(curve, truth, color=ORANGE, linewidth=5, alpha=0.8, label="true", zorder=1)
    panel.margins(0.04, 0.12)


def name_parts(canvas):
    """Inputs and outputs as circles, and above all parts their names."""
    for letter, at in (("x", INPUTS), ("f", OUTPUTS)):
        for k, end in enumerate(ENDS, 1):
            canvas.plot(at, end, "o", color="white", markeredgecolor="black", markersize=26, zorder=5)
            canvas.text(at, end, f"${letter}_{k}$", ha="center", va="center", fontsize=13, zorder=6)
    names = ("inputs", "$W_0$", "branches $g$", "$W_1$", "outputs")
    places = (INPUTS, (INPUTS + LEFT) / 2, (LEFT + RIGHT) / 2, (RIGHT + OUTPUTS) / 2, OUTPUTS)
    for name, at in zip(names, places, strict=True):
        canvas.text(at, 0.94, name, ha="center", va="center", fontsize=13)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("decoupling.png"))
