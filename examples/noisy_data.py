"""
Noisy measurements, no Jacobians
================================

Often there are only measured values: no function to call, no Jacobians, and noise. Then
decoupling is a method of regression, a relative of projection pursuit. When is it a good
one? Two kinds of data tell, one that it is made for and one that it is not.
"""

import warnings
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LinearRegression

import unbraid as ub

# %%
# The first kind: six inputs, but the output depends on three combinations of them only,
# through a sine each. 300 samples with 10 % noise.


def measured(seed):
    rng = np.random.default_rng(100 + seed)
    clean, truth = ub.datasets.random_system(n=1, m=6, r=3, S=300, kind="sine", rng=seed)
    noise = 0.1 * clean.F.std() * rng.standard_normal(clean.F.shape)
    fresh = rng.uniform(-1.5, 1.5, (1000, 6))
    return ub.Problem(clean.X, clean.F + noise), truth, fresh


@cache
def fitted(seed):
    return ub.decouple(measured(seed)[0], rank=3, basis=ub.SmoothingSpline(), rng=0)


problem, truth, fresh = measured(0)
fit = fitted(0)
print(fit)

# %%
# The error at the samples is about that of the noise, 10 %, as it should be. The curves
# that were found, and the true ones under them:

ub.plots.branches(fit, truth)
plt.show()

# %%
# Branch 3 makes up about 1 % of the variance of the output, no more than the noise, and is
# found less well than the others.
#
# What counts is the error on fresh points, without noise. Beside it a Gaussian process
# with a length scale for each input, and a linear model. The system above and another:

# length scales of inputs that do nothing grow without bound
warnings.simplefilter("ignore", ConvergenceWarning)


def rivals(X):
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1]), (1e-2, 1e3)) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    return {"Gaussian process": process, "linear model": LinearRegression()}


def errors(problem, points, values, models):
    predicted = {name: model(points)[:, 0] for name, model in models.items()}
    for name, rival in rivals(problem.X).items():
        predicted[name] = rival.fit(problem.X, problem.F[:, 0]).predict(points)
    return {
        name: ub.metrics.output_errors(values, value).item()
        for name, value in predicted.items()
    }


for seed in (0, 1):
    problem, truth, fresh = measured(seed)
    of_sines = errors(problem, fresh, truth(fresh)[:, 0], {"unbraid": fitted(seed).model})
    line = ", ".join(f"{name} {error:.1f} %" for name, error in of_sines.items())
    print(f"system {seed}: {line}")

# %%
# A Gaussian process has to learn a function of six inputs from 300 points. Decoupling has
# to find three directions and three curves.
#
# Where it does not fit
# ---------------------
# The second kind is Friedman's function, a classic test of regression methods: 10 sin(π
# x₁ x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅, with five more inputs that do nothing, and noise
# of variance 1. Its first term is no curve of one combination of x₁ and x₂, so several
# branches have to share it.

problem = ub.Problem(*make_friedman1(300, n_features=10, noise=1.0, random_state=0))
points, values = make_friedman1(1000, n_features=10, noise=0.0, random_state=1)
models = {}
for rank in (3, 5):
    fit = ub.decouple(problem, rank, basis=ub.SmoothingSpline(), starts=8, rng=0)
    models[f"unbraid, rank {rank}"] = fit.model
of_friedman = errors(problem, points, values, models)
for name, error in of_friedman.items():
    print(f"{name:16s} {error:5.1f} %")

# %%
# More branches help, but the Gaussian process wins clearly: the function is smooth in
# five inputs, and which five a Gaussian process finds out by its length scales. Decoupling
# spends its branches on imitating a product.

figure, panels = plt.subplots(1, 2, figsize=(9.0, 2.8), layout="constrained")
for panel, title, found in (
    (panels[0], "three directions in six inputs (system 1)", of_sines),
    (panels[1], "Friedman's function", of_friedman),
):
    colours = ["#0072B2" if "unbraid" in name else "#999999" for name in found]
    bars = panel.barh(list(found), list(found.values()), color=colours)
    panel.bar_label(bars, fmt="%.1f", padding=3)
    panel.invert_yaxis()
    panel.set_title(title, fontsize="medium")
    panel.set(xlabel="error on fresh points, %", xlim=(0, 1.15 * max(found.values())))
    panel.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# So try both, and hold samples out: ``ub.select`` does that for ranks and degrees of
# freedom, and :doc:`/choosing` has measurements on more systems. If Jacobians can be had,
# take them: they are worth many samples.
