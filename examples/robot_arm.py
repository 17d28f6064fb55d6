"""
A robot arm: what decouples and what does not
=============================================

Two links in a vertical plane, joint angles q₁ and q₂. The textbook formulas of such an
arm are sums and products of sines and cosines of q₁ and of q₁ + q₂. Which of them are
*decoupled* functions, W1 g(W0 x), how many branches do they need, and what happens if
they are not?
"""

import matplotlib.pyplot as plt
import numpy as np

import unbraid as ub

plt.style.use("seaborn-v0_8-colorblind")
rng = np.random.default_rng(0)
L1, L2 = 1.0, 0.8  # lengths of the links, m
M1, M2 = 3.0, 2.0  # their masses, kg, uniform along the links
G = 9.81


def gravity(q):  # the torques that hold the arm still
    first, both = np.cos(q[:, 0]), np.cos(q[:, 0] + q[:, 1])
    elbow = M2 * G * L2 / 2 * both
    return np.stack([(M1 / 2 + M2) * G * L1 * first + elbow, elbow], axis=1)


def hand(q):  # where the hand is
    both = q[:, 0] + q[:, 1]
    x = L1 * np.cos(q[:, 0]) + L2 * np.cos(both)
    y = L1 * np.sin(q[:, 0]) + L2 * np.sin(both)
    return np.stack([x, y], axis=1)


def inertia(z):  # the torques that accelerate it, at rest: M(q2) a, inputs q2, a1, a2
    q2, a1, a2 = z.T
    mixed = M2 * L1 * L2 / 2 * np.cos(q2)
    elbow = M2 * L2**2 / 3
    shoulder = M1 * L1**2 / 3 + M2 * L1**2 + elbow
    first = (shoulder + 2 * mixed) * a1 + (elbow + mixed) * a2
    return np.stack([first, (elbow + mixed) * a1 + elbow * a2], axis=1)


def errors_by_rank(f, box, ranks, df, starts):
    """Fits to 300 samples, and errors of the worse output on 1,000 fresh ones."""
    problem = ub.Problem.from_function(f, rng.uniform(-box, box, (300, len(box))))
    fresh = rng.uniform(-box, box, (1000, len(box)))
    fits, errors = {}, {}
    for r in ranks:
        fits[r] = ub.decouple(problem, r, basis=ub.BSpline(df=df), starts=starts, rng=0)
        errors[r] = ub.metrics.output_errors(f(fresh), fits[r].model(fresh)).max()
        print(f"rank {r}: {errors[r]:8.3f} %")
    return problem, fits, errors


# %%
# Gravity: two branches
# ---------------------
# The torque against gravity is a sum of cos q₁ and cos(q₁ + q₂), so two branches should
# do, and they should look along (1, 0) and (1, 1).

angles = np.array([np.pi / 2, np.pi / 2])
problem, fits, by_gravity = errors_by_rank(gravity, angles, [1, 2, 3], df=16, starts=4)
W0 = fits[2].model.W0
print("directions:", *np.round(W0 / np.abs(W0).max(axis=1, keepdims=True), 4).tolist())
print(ub.diagnose(fits[2], problem))

# %%
# Found, and unique: nobody told it of q₁ + q₂. The third branch has nothing to do.
#
# The hand: four branches, in two pairs
# -------------------------------------
# The position has cosines in one output and sines in the other. Both outputs see the two
# angles q₁ and q₁ + q₂, but different curves of them, and a branch is *one* curve: it
# takes four.

problem, fits, by_hand = errors_by_rank(hand, angles, [1, 2, 3, 4], df=16, starts=4)
W0 = fits[4].model.W0
print("directions:", *np.round(W0 / np.abs(W0).max(axis=1, keepdims=True), 3).tolist())
print(*ub.diagnose(fits[4], problem).advice, sep="\n")

# %%
# The directions come in two pairs, as they should. The curves of a pair are not
# determined by themselves: of cos and sin of the same angle any two mixtures serve as
# well, and `diagnose` says so. Read the pair, not its members.
#
# Inertia: no decoupled function, and yet
# ---------------------------------------
# The torque of acceleration has products, cos(q₂) a₁ and cos(q₂) (2 a₁ + a₂). A product
# of a cosine and a line is no finite sum of curves of single directions. It is a *limit*
# of such sums, though:
#
#     cos(q) a  =  lim (sin(q + εa) − sin(q − εa)) / 2ε   for ε → 0,
#
# two branches a product, nearly parallel, large, and of opposite sign. Two products, four
# branches:

box = np.array([np.pi / 2, 4.0, 4.0])
problem, fits, by_inertia = errors_by_rank(inertia, box, [1, 2, 3, 4], df=12, starts=4)
found = fits[4]
with np.printoptions(precision=3, suppress=True):
    print("W0", found.model.W0, "W1", found.model.W1, sep="\n")
print(ub.diagnose(found, problem))

# %%
# That is what the solver has found by itself. All four directions lie within a few
# degrees of the q₂ axis, and each branch by itself has many times the variance of what
# they sum up to ("shares"). As a surrogate it is good: errors on fresh points are below
# 0.2 %. But these branches are the two arms of a difference quotient; they mean nothing
# one by one, and small errors in them become large in the sum. Large shares and nearly
# parallel directions are the sign to look for.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.7), layout="constrained")
for name, errors, look in (
    ("gravity", by_gravity, "o-"),
    ("hand", by_hand, "s-"),
    ("inertia", by_inertia, "^-"),
):
    left.plot(list(errors), list(errors.values()), look, label=name)
left.set(yscale="log", xlabel="rank", ylabel="error on fresh points, %", xticks=range(1, 5))
left.legend(frameon=False)
for j, branch in enumerate(found.model.branches):
    u = np.linspace(*branch.domain, 300)
    right.plot(u, found.model.W1[0, j] * branch(u), label=f"branch {j + 1}")
low, high = problem.F[:, 0].min(), problem.F[:, 0].max()
right.axhspan(low, high, color="grey", alpha=0.25, linewidth=0, label="range of the torque")
right.set(xlabel="u", ylabel="part of the shoulder's torque, N m")
right.legend(frameon=False, fontsize="small")
for panel in (left, right):
    panel.spines[["top", "right"]].set_visible(False)
plt.show()
