"""
A spring that hardens, from its vibration
=========================================

A mass on a spring is pushed by a random force, and its position is recorded. The spring
hardens: its force is k x + k₃ x³, an oscillator named after Duffing. Nobody measures the
spring. From force and position alone, what is its curve? Then a system of another kind,
two filters with a saturation between them.
"""

import matplotlib.pyplot as plt
import numpy as np

import unbraid as ub

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"

# %%
# A record, and a model from it
# -----------------------------
# 1,500 samples of force u and position y, with 1 % noise, and another record to test with.

record, truth = ub.dynamics.systems.duffing(T=1500, rng=0)
fresh, _ = ub.dynamics.systems.duffing(T=1500, rng=1)

fit = ub.dynamics.state_space(record, order=2, rank=1, basis=ub.Polynomial(3), starts=4)
linear = ub.dynamics.state_space(record, order=2, rank=0)
print(fit)

# %%
# The error of simulation is the noise, and the best linear model is off by half of the
# position's spread. What is left over a test record, of which the first 50 outputs set
# the initial state and nothing else is known but the force:

some = slice(200, 500)
start = fresh.y[:50]
simulated, straight = (one.model.run(fresh.u, start).y for one in (fit, linear))
for name, one in (("one branch", fit), ("linear", linear)):
    print(f"{name:10s} {one.error_on(fresh)}")

figure, panels = plt.subplots(2, 1, figsize=(9.0, 4.6), sharex=True, layout="constrained")
panels[0].plot(fresh.time[some], fresh.y[some], color="black", lw=3.0, alpha=0.3)
panels[0].plot(fresh.time[some], straight[some], color=ORANGE, lw=1.2)
panels[0].plot(fresh.time[some], simulated[some], color=BLUE, lw=1.2)
panels[0].set(ylabel="position")
panels[0].legend(
    ["measured", "linear model", "one branch"], frameon=False, ncols=3, loc="lower left"
)
panels[0].margins(y=0.25)
panels[1].plot(fresh.time[some], (straight - fresh.y)[some], color=ORANGE, lw=1.2)
panels[1].plot(fresh.time[some], (simulated - fresh.y)[some], color=BLUE, lw=1.2)
panels[1].set(xlabel="time", ylabel="simulated − measured")
for panel in panels:
    panel.spines[["top", "right"]].set_visible(False)
    panel.margins(x=0.0)
plt.show()

# %%
# The spring
# ----------
# The branch is a curve of one combination of states and force, W0 [x; u]. Which states
# a model has is its own affair, since y(t) is all that was seen of them; and a line can be
# in a branch or in the matrices. So the true curve is compared with a multiple of the
# found one and a line, along what both see over the test record.


def seen(model, run, u):
    """The input of the only branch over a simulation."""
    return (np.concatenate([run.states, u], axis=1) @ model.nonlinearity.W0.T)[:, 0]


def matched(fit, truth, record):
    """Inputs that both branches see, the true values there, and ours with a line."""
    run = fit.model.run(record.u, record.y[:50])
    u, ours = (
        seen(model, one, record.u)[50:]
        for model, one in ((truth, truth.run(record.u)), (fit.model, run))
    )
    place = np.polyfit(u, ours, 1)  # where on our axis a true input lies
    grid = np.linspace(u.min(), u.max(), 300)
    found = fit.model.nonlinearity.branches[0](np.polyval(place, grid))
    true = truth.nonlinearity.branches[0](grid)
    columns = np.column_stack([found, grid, np.ones_like(grid)])
    at = np.linalg.lstsq(columns, true)[0]
    return u, grid, true, columns @ at


u, grid, spring, found = matched(fit, truth, fresh)
print(f"worst difference: {100 * np.abs(found - spring).max() / np.ptp(spring):.2f} %")


def draw_curve(panel, fit, truth, record, name):
    u, grid, true, found = matched(fit, truth, record)
    panel.plot(grid, true, color="black", lw=5.0, alpha=0.25, label="true")
    panel.plot(grid, found, color=BLUE, lw=1.5, label="found")
    low = true.min() - 0.3 * np.ptp(true)
    count, edges = np.histogram(u, 50)
    height = 0.25 * np.ptp(true) * count / count.max()
    panel.bar(
        edges[:-1],
        height,
        np.diff(edges),
        low,
        align="edge",
        color=GREY,
        alpha=0.5,
        label="seen",
    )
    panel.set(xlabel=name, ylim=(low, true.max() + 0.08 * np.ptp(true)))
    panel.legend(frameon=False, loc="upper left")
    panel.spines[["top", "right"]].set_visible(False)


def draw_loud(panel, fits, truth, record, factors):
    """How simulations fare under inputs so many times as large, outside the range seen."""
    for (name, fit), look in zip(fits.items(), ("o-", "s--"), strict=True):
        errors = []
        for factor in factors:
            y = truth.simulate(factor * record.u)
            loud = ub.dynamics.Record(factor * record.u, y, record.dt)
            errors.append(fit.error_on(loud).percent[0])
        panel.plot(
            factors, errors, look, color=BLUE if look == "o-" else ORANGE, label=name
        )
    panel.set(
        yscale="log", xlabel="force, times that of training", ylabel="error, % of spread"
    )
    panel.legend(frameon=False, loc="upper left")
    panel.spines[["top", "right"]].set_visible(False)


ways = {"as polynomials (chosen)": fit}
ways["as lines"] = ub.dynamics.state_space(
    record, order=2, rank=1, basis=ub.Polynomial(3), continuation="linear", starts=2
)
figure, panels = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
draw_curve(panels[0], fit, truth, fresh, "position")
panels[0].set_title("force of the spring, but for a line", fontsize="medium")
draw_loud(panels[1], ways, truth, fresh, (0.5, 1.0, 1.25, 1.5, 2.0, 2.5))
panels[1].set_title("branches that go on", fontsize="medium")
plt.show()

# %%
# The curve is the spring's to a fraction of a percent; below it, how often the mass was
# where. On the right, both models under other forces than that of training, without
# noise. A branch beyond its range feeds what it gets wrong back into the states, so it
# matters how it goes on. That is chosen by simulating stretches of the record that are
# louder than all that was fitted to, and here it is as a polynomial; a branch that goes on
# as a line is too soft a spring.
#
# A saturation between two filters
# --------------------------------
# A Wiener–Hammerstein system: a filter, a curve, tanh(2 u), and another filter. Four
# states and one branch, and nothing tells the fit that filters come before and after.

record, truth = ub.dynamics.systems.wiener_hammerstein(T=1500, rng=0)
fresh, _ = ub.dynamics.systems.wiener_hammerstein(T=1500, rng=1)
fit = ub.dynamics.state_space(record, order=4, rank=1, basis=ub.BSpline(10), starts=4)
linear = ub.dynamics.state_space(record, order=4, rank=0)
for name, one in (("one branch", fit), ("linear", linear)):
    print(f"{name:10s} {one.error_on(fresh)}")
poles = {
    name: np.linalg.eigvals(one.linearised()[0])
    for name, one in (("found", fit.model), ("true", truth))
}
for name, values in poles.items():
    print(f"{name:5s} poles at rest", np.sort_complex(values).round(2))

some = slice(200, 300)
simulated, straight = (one.model.run(fresh.u, fresh.y[:50]).y for one in (fit, linear))
figure, panels = plt.subplots(
    1, 2, figsize=(9.0, 3.6), width_ratios=(1.4, 1.0), layout="constrained"
)
panels[0].plot(fresh.time[some], fresh.y[some], color="black", lw=4.0, alpha=0.25)
panels[0].plot(fresh.time[some], straight[some], color=ORANGE, lw=1.2)
panels[0].plot(fresh.time[some], simulated[some], color=BLUE, lw=1.2)
panels[0].legend(
    ["measured", "linear model", "one branch"], frameon=False, ncols=3, loc="lower left"
)
panels[0].margins(x=0.0, y=0.2)
panels[0].set(xlabel="sample", ylabel="output")
panels[0].spines[["top", "right"]].set_visible(False)
draw_curve(panels[1], fit, truth, fresh, "behind the first filter")
panels[1].set_title("saturation, but for a line", fontsize="medium")
plt.show()

# %%
# :doc:`/dynamics` goes on from here: several records, gaps, periods, how many states and
# branches, NARX models, and models in C and MATLAB.
