r"""Lay the branches of a found model on those of a known one.

A decoupling fixes each branch up to the order of the branches, the sign and length of its direction, and the
scale and constant of its values. Where the found direction v matches the true direction w,

    v · x ≈ s (w · x)   with   s = sign(v · w) ‖v‖ / ‖w‖,   so   g(u) ≈ a ĝ(s u) + b,

with a and b by least squares over the range on which both branches are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unbraid.errors import DataError, shown
from unbraid.kernels.arrays import Array
from unbraid.metrics import angles_between
from unbraid.results.branch import Branch
from unbraid.results.carrying import carrying, some_branches
from unbraid.results.model import DecoupledModel

COMPARED_POINTS = 256
"""Points along u at which values are compared."""


@dataclass(frozen=True)
class AlignedBranch:
    """A found branch in the input and the scale of the true branch it belongs to.

    Attributes
    ----------
    found
        Which branch of the found model it is.
    branch
        That branch.
    angle
        The angle between the two directions, in degrees.
    input_scale
        s, in u_found = s · u_true.
    scale, constant
        a and b, in g(u) ≈ a ĝ(s u) + b.
    """

    found: int
    branch: Branch
    angle: float
    input_scale: float
    scale: float
    constant: float

    @property
    def domain(self) -> tuple[float, float]:
        """The range seen in training, in the true branch's input."""
        low, high = sorted(end / self.input_scale for end in self.branch.domain)
        return low, high

    def __call__(self, u: npt.ArrayLike) -> Array:
        """The found branch in the true one's input and scale, a ĝ(s u) + b."""
        return self.scale * self.branch(self.input_scale * np.asarray(u, dtype=np.float64)) + self.constant

    @property
    def knots(self) -> Array:
        """The found branch's knots, in the true branch's input."""
        return np.sort(self.branch.knots / self.input_scale)

    def derivative(self, u: npt.ArrayLike) -> Array:
        """The slope of the found branch in the true one's input and scale, a s ĝ'(s u)."""
        slope = self.branch.derivative(self.input_scale * np.asarray(u, dtype=np.float64))
        return self.scale * self.input_scale * slope


def align(model: DecoupledModel, truth: DecoupledModel) -> tuple[AlignedBranch, ...]:
    """For each branch of `truth`, the found branch whose direction is matched to it, laid on it.

    Directions are matched one to one, as in `unbraid.metrics.direction_angles`. Of a model with more branches, some of
    which carry nothing, the others are matched.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.random_system(n=2, m=2, r=2, rng=0)
    >>> other = ub.DecoupledModel(truth.W0[::-1], truth.W1[:, ::-1], truth.branches[::-1])
    >>> [one.found for one in align(other, truth)]
    [1, 0]
    """
    from scipy.optimize import linear_sum_assignment

    every = carrying(model) if model.rank > truth.rank else np.arange(model.rank)
    if (len(every), model.m) != truth.W0.shape:
        raise DataError(
            f"Only models with as many branches and inputs can be laid on each other, got {shown(model)} and {truth!r}."
        )
    angles = angles_between(truth.W0, model.W0[every])
    _, matched = linear_sum_assignment(angles)
    return tuple(lay_branch(model, truth, j, int(every[k]), float(angles[j, k])) for j, k in enumerate(matched))


def lay_truth(model: DecoupledModel, truth: DecoupledModel) -> dict[int, AlignedBranch]:
    """The true branches laid on the found ones, by the numbers of these, from 0.

    Where the true ones are fewer, they are laid on those of the model that carry something. This is the other way round
    than `align`: numbers, inputs and scales are those of the found model.
    """
    found = np.arange(model.rank) if truth.rank == model.rank else carrying(model)
    return dict(zip(map(int, found), align(truth, some_branches(model, found)), strict=True))


def lay_branch(model: DecoupledModel, truth: DecoupledModel, j: int, k: int, angle: float) -> AlignedBranch:
    """Branch k of the model laid on branch j of the truth."""
    v, w, branch = model.W0[k], truth.W0[j], model.branches[k]
    length = float(np.linalg.norm(v) / (np.linalg.norm(w) or 1.0)) or 1.0
    input_scale = -length if v @ w < 0.0 else length
    ends = sorted(end / input_scale for end in branch.domain)
    low, high = max(ends[0], truth.branches[j].domain[0]), min(ends[1], truth.branches[j].domain[1])
    if not low < high:
        low, high = ends
    if not np.isfinite([low, high]).all():
        raise DataError(f"Branch {k + 1} of {model!r} has no finite domain to compare values on.")
    u = np.linspace(low, high, COMPARED_POINTS)
    scale, constant = fit_line(branch(input_scale * u), truth.branches[j](u))
    return AlignedBranch(k, branch, angle, input_scale, scale, constant)


def fit_line(x: Array, y: Array) -> tuple[float, float]:
    """The a and b that make ‖a x + b - y‖ smallest; a = 0 where x is constant."""
    centred = x - x.mean()
    spread = float(centred @ centred)
    a = float(centred @ y) / spread if spread > 0.0 else 0.0
    return a, float(y.mean() - a * x.mean())
