"""
A basis of your own
===================

Branches are made of splines or polynomials, unless you have something else in mind. Say a
branch should be made of tanh steps,

    g(u) = a₀ + a₁ t + Σ_k a_(k+1) tanh((t − t_k) / w),

t being u scaled to [−1, 1] and t_k evenly spaced. Then the whole model W1 g(W0 x) + bias
can be written as an ordinary network with one layer of tanh units, which any inference
engine runs.

A basis that is stretched to the range of a branch's inputs needs little more than its
functions of t and their first two derivatives. Starts and branches are leading axes of t.
"""

from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import unbraid as ub
from unbraid.bases import BASES, RangeBasis


@dataclass(frozen=True)
class TanhSteps(RangeBasis):
    """So many steps, beside a constant and a line."""

    steps: int = 10

    @property
    def size(self):
        return self.steps + 2

    def of_size(self, size):
        return replace(self, steps=size - 2)

    def functions(self, t, derivative=0):
        t, width = t[..., None], 2.0 / self.steps
        one, zero = np.ones_like(t), np.zeros_like(t)
        step = np.tanh((t - np.linspace(-1, 1, self.steps)) / width)
        slope = (1 - step**2) / width
        curvature = -2 * step * slope / width
        parts = [(one, t, step), (zero, one, slope), (zero, zero, curvature)]
        return np.concatenate(parts[derivative], axis=-1)


# %%
# It works like any other: sweeps, Gauss–Newton steps, starts, selection. (Only shape
# constraints need more: coordinates in which they say "≥ 0", as those of splines do.)

problem, truth = ub.datasets.trig(S=100, rng=0)
fit = ub.decouple(problem, rank=3, basis=TanhSteps(10), rng=0)
print(fit)
ub.plots.branches(fit, truth)
plt.show()

# %%
# Is it a good basis? Beside cubic splines with as many coefficients, errors of the worse
# output on 1,000 fresh points:

fresh = np.random.default_rng(1).uniform(-1.5, 1.5, (1000, 2))
for size in (9, 13, 17, 21):
    models = [
        ub.decouple(problem, rank=3, basis=basis, starts=4, rng=0).model
        for basis in (TanhSteps(size - 2), ub.BSpline(df=size - 1))
    ]
    worst = [ub.metrics.output_errors(truth(fresh), model(fresh)).max() for model in models]
    print(f"{size} coefficients: tanh {worst[0]:.2f} %, cubic splines {worst[1]:.2f} %")

# %%
# Saving works once files may hold the basis:

BASES["TanhSteps"] = TanhSteps
with TemporaryDirectory() as folder:
    fit.model.save(f"{folder}/tanh.npz")
    loaded = ub.DecoupledModel.load(f"{folder}/tanh.npz")
print("the same after loading:", np.array_equal(loaded(problem.X), fit.model(problem.X)))

# %%
# And here is the network: f(x) = A tanh(B x + b) + C x + c, with three times ten units,
# the same function within the ranges of the samples (beyond them a branch is linear):

model, steps = fit.model, fit.basis.steps
low, high = np.array([branch.domain for branch in model.branches]).T
a = np.stack([branch.coordinates for branch in model.branches])
T = 2 * model.W0 / (high - low)[:, None]  # t = T x + t0
t0 = -(high + low) / (high - low)
B = np.repeat(T, steps, axis=0) * steps / 2
b = (t0[:, None] - np.linspace(-1, 1, steps)).ravel() * steps / 2
A = (model.W1[:, :, None] * a[:, 2:]).reshape(model.n, -1)
C, c = model.W1 @ (a[:, 1:2] * T), model.W1 @ (a[:, 0] + a[:, 1] * t0) + model.bias

network = np.tanh(problem.X @ B.T + b) @ A.T + problem.X @ C.T + c
off = np.abs(network - model(problem.X)).max()
print(f"{len(b)} units; differs from the model by {off:.1e} at most")
