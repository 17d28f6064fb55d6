"""
A surrogate that is guaranteed to be monotone
=============================================

A pump drives water through 40 m of pipe and a valve. Given the pressure, the opening of
the valve and the temperature, a small simulation solves for the flow. It is to be
replaced by something fast in a controller, and the controller relies on a fact of
physics: more pressure, a wider valve or warmer (thinner) water never mean less flow. The
surrogate must obey it, everywhere, and not only where someone has looked.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq

import unbraid as ub

DIAMETER, LENGTH, DENSITY = 0.05, 40.0, 998.0


def log_flow(x):
    """Log flow in l/s, from the log of the pressure in bar, the opening, and degrees C."""
    pressure, opening, celsius = np.exp(x[0]), x[1], x[2]
    viscosity = 1.79e-6 / (1.0 + 0.0337 * celsius + 0.000221 * celsius**2)
    valve = 1.0 + 6.0 * np.exp(-4.0 * (opening - 0.6))

    def excess(speed):
        friction = 0.3164 / (speed * DIAMETER / viscosity) ** 0.25  # Blasius
        losses = friction * LENGTH / DIAMETER + valve
        return losses * 0.5 * DENSITY * speed**2 / 1e5 - pressure

    speed = brentq(excess, 1e-6, 50.0, xtol=1e-14, rtol=1e-14)
    return [np.log(1e3 * np.pi * DIAMETER**2 / 4.0 * speed)]


# %%
# Logarithms turn products into sums, and sums are what decoupling can represent: a flow
# of the form √p · h(opening) needs two branches after taking logs, and many before. The
# logarithm is increasing, so nothing is lost for the guarantee.
#
# 120 runs of the simulation, Jacobians by differences:

low, high = np.array([np.log(0.5), 0.2, 5.0]), np.array([np.log(4.0), 1.0, 60.0])
rng = np.random.default_rng(0)
problem = ub.Problem.from_function(log_flow, rng.uniform(low, high, (120, 3)))
fresh = rng.uniform(low, high, (1000, 3))
exact = np.array([log_flow(x) for x in fresh])

models = {}
settings = {"constraint": ub.Increasing(), "starts": 8, "rng": 0}
for rank in (1, 2, 3):
    fit = ub.decouple(problem, rank, basis=ub.BSpline(df=6, of="slope"), **settings)
    models[rank] = fit.model
    off = np.abs(np.exp(fit.model(fresh) - exact) - 1.0)
    certified = all(branch.certified(ub.Increasing()) for branch in fit.model.branches)
    print(
        f"rank {rank}: flow off by {100 * off.max():.2f} % at most, certified {certified}"
    )

# %%
# Increasing branches are not yet an increasing function
# ------------------------------------------------------
# The derivative of the surrogate by input k is Σ_j W1_j g'_j W0_jk. If all g'_j are
# nonnegative, and the products W1_j W0_jk as well, it is done. Otherwise look closer.
# With ``of="slope"`` the coefficients ``c[1:]`` of a branch are those of its slope, and a
# slope lies between the least and the largest of them: on the whole range by the nature
# of B-splines, and beyond it because a branch continues with the slope of its end. So a
# few sums bound every derivative of the surrogate from below, for all inputs whatever:


def least_slopes(model):
    weights = model.W1[0, :, None] * model.W0  # (r, m)
    slopes = np.array([branch.coefficients[1:] for branch in model.branches])
    ends = slopes.min(axis=1)[:, None] * weights, slopes.max(axis=1)[:, None] * weights
    return np.minimum(*ends).sum(axis=0)


names = ["log pressure", "opening", "temperature"]
model = models[3]
certified = least_slopes(model)
seen, true = model.jacobian(fresh)[:, 0].min(axis=0), problem.J[:, 0].min(axis=0)
print(f"{'slope by':14s}{'guaranteed':>12s}{'seen':>12s}{'simulation':>12s}")
for row in zip(names, certified, seen, true, strict=True):
    print("{:14s}{:12.5f}{:12.5f}{:12.5f}".format(*row))

# %%
# All three bounds are positive: the surrogate increases in all inputs, and that is proved
# by a dozen multiplications. The least slopes seen at 1,000 points show how much the
# bound gives away.

figure, panels = plt.subplots(1, 3, figsize=(9.6, 3.4), layout="constrained", sharey=True)
middle = (low + high) / 2.0
for k, panel in enumerate(panels):
    line = np.tile(middle, (100, 1))
    line[:, k] = np.linspace(
        low[k] - 0.15 * (high[k] - low[k]), high[k] + 0.15 * (high[k] - low[k]), 100
    )
    inside = (line[:, k] >= low[k]) & (line[:, k] <= high[k])
    shown = np.exp(line[:, k]) if k == 0 else line[:, k]
    panel.plot(
        shown, np.exp(model(line)[:, 0]), ":", color="#0072B2", label="surrogate, continued"
    )
    simulated = [np.exp(log_flow(x)[0]) for x in line[inside]]
    panel.plot(shown[inside], simulated, color="#E69F00", linewidth=5, label="simulation")
    panel.plot(
        shown[inside],
        np.exp(model(line[inside])[:, 0]),
        color="#0072B2",
        label="surrogate, rank 3",
    )
    panel.set_xlabel(["pressure, bar", "opening of the valve", "temperature, °C"][k])
    panel.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("flow, l/s")
panels[0].legend(frameon=False, fontsize="small")
plt.show()

# %%
# When the data do not allow it
# -----------------------------
# The bound is a statement about the model that was found, and may fail. Take 40
# measurements with 3 % noise, values only:

few = ub.Problem(problem.X[:40], problem.F[:40] + 0.03 * rng.standard_normal((40, 1)))
fit = ub.decouple(few, 2, basis=ub.BSpline(df=5, of="slope"), **settings)
off = np.abs(np.exp(fit.model(fresh) - exact) - 1.0)
print(f"flow off by {100 * off.max():.0f} % at most")
print("guaranteed slopes", least_slopes(fit.model).round(3))
print("least slopes seen", fit.model.jacobian(fresh)[:, 0].min(axis=0).round(3))

# %%
# Its branches are certified increasing, as asked for. The function they add up to is not
# increasing, because the weights have mixed signs: in temperature it is seen to decrease.
# A certificate that can fail is one that means something. Here more data are needed, or
# Jacobians.
