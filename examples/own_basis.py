"""
A basis of your own
===================

Branches are made of splines or polynomials, unless you have something else in mind. Say a
branch should be made of tanh steps,

    g(u) = a₀ + a₁ t + Σ_k a_(k+1) tanh((t − t_k) / w),

t being u scaled to [−1, 1] and t_k evenly spaced. Then the whole model W1 g(W0 x) + bias
can be written as an ordinary network with one layer of tanh units, which any inference
engine runs.

A basis is two classes. The *specification* holds no data. *Placing* it on branch inputs u
fixes what depends on them, here their range, for all starts and branches at once: these
are leading axes of every array. The placement knows its functions and how to fit them.
"""

from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import unbraid as ub
from unbraid.bases import BASES, Basis, NormalEquations, Placement


@dataclass(frozen=True)
class TanhSteps(Basis):
    """So many steps, beside a constant and a line."""

    steps: int = 10

    @property
    def size(self):
        return self.steps + 2

    def of_size(self, size):
        return replace(self, steps=size - 2)

    def place(self, u, evenness=0.0):
        return PlacedSteps(np.stack([u.min(axis=-1), u.max(axis=-1)], axis=-1), self.steps)

    def placement_from(self, arrays):
        return PlacedSteps(arrays["range"], self.steps)

    def paper_coefficients(self, placement, a):
        return a

    def refusal(self):
        return "its coefficients are not kept nonnegative; use BSpline"


# %%
# Now the placement. The mathematics is in ``design``: the functions and their first two
# derivatives at u.


@dataclass(frozen=True)
class PlacedSteps(Placement):
    """Steps on ranges (..., 2)."""

    range: np.ndarray
    steps: int

    def design(self, u, derivative=0):
        low, high = self.range[..., :1], self.range[..., 1:]
        t = ((2 * u - low - high) / (high - low))[..., None]
        one, zero, width = np.ones_like(t), np.zeros_like(t), 2.0 / self.steps
        step = np.tanh((t - np.linspace(-1, 1, self.steps)) / width)
        slope = (1 - step**2) / width
        parts = [
            (one, t, step),
            (zero, one, slope),
            (zero, zero, -2 * step * slope / width),
        ][derivative]
        return np.concatenate(parts, axis=-1) * (2 / (high - low)[..., None]) ** derivative

    def at(self, u):
        return u

    def evaluate(self, a, at, derivative=0):
        return (self.design(at, derivative) @ a[..., None])[..., 0]

    def normal_equations(self, at, G, R, coupling, weight=None):
        w = np.ones(at.shape[-1]) if weight is None else weight
        values, slopes = self.design(at), self.design(at, 1)
        gram = slopes.mT @ (w[:, None] * slopes)
        if R is not None:
            gram += coupling * values.mT @ (w[:, None] * values)
        right = self.adjoint(at, w * G, None if R is None else coupling * w * R)
        return NormalEquations(gram, right, total=w @ values)

    def adjoint(self, at, G, R):
        right = (self.design(at, 1).mT @ G[..., None])[..., 0]
        return right if R is None else right + (self.design(at).mT @ R[..., None])[..., 0]

    def roughness(self):
        return np.diag([0.0, 0.0] + [1.0] * self.steps)  # a line is smooth

    def plus(self, a, constant):
        return np.concatenate([a[..., :1] + constant[..., None], a[..., 1:]], axis=-1)

    def is_constant(self, a):
        return np.all(a[..., 1:] == 0.0, axis=-1)

    def shape_coefficients(
        self, a, order
    ):  # all steps go up: the branch increases, and that is all we can certify
        known = a[..., 1:] if order == 1 else -np.ones_like(a)
        return known, np.zeros_like(known)

    # The rest is bookkeeping of the ranges.

    def domain(self):
        return self.range

    def arrays(self):
        return {"range": self.range}

    def select(self, index):
        return replace(self, range=self.range[index])

    def merged(self, which, other):
        return replace(self, range=np.where(which[:, None, None], other.range, self.range))

    def joined(self, others):
        return replace(
            self, range=np.concatenate([self.range, *(other.range for other in others)])
        )

    def moved(self, scale, shift):
        return replace(self, range=self.range * scale[..., None] + shift[..., None])


# %%
# It works like any other: sweeps, Gauss–Newton steps, starts, selection.

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
