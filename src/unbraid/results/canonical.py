r"""The canonical form of a model: all that is linear in one matrix, and branches that are bent and nothing else.

    f(x) = L x + W1 g(W0 x) + bias.

A branch is split into the line that is nearest to it over some inputs u, and its remainder,

    g_j(u) = α_j + β_j u + g̃_j(u),        Σ_s g̃_j(u_s) = 0,        Σ_s u_s g̃_j(u_s) = 0,

and the lines go to L = Σ_j β_j w1_j w0_jᵀ and to the bias. Lines can wander between branches, and a branch that is
nothing but a line can look elsewhere: where branches 2 and 3 have the same mix of outputs, w1 (exp(x3) - x4) is
exp(x3) - c x3 along x3 and c x3 - x4 along (c, -1) for every c. L does not know of that: it is the same for all c, and
the straight branch is no branch any more.

What is left open is settled so that two fits can be laid side by side: rows of W0 have length one, and their largest
entry is positive; remainders have standard deviation one over the inputs, and the largest entry of each column of W1 is
positive; the branches that matter most come first.

Why models are not kept in this form: shapes (`Increasing`, say) are shapes of a branch with its line, and so are the
curves, slopes and formulas of papers, files and reports. The canonical form is what to compare fits in, and what
`diagnose` and the agreement of starts are judged in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from unbraid.bases.constraints import Constraint
from unbraid.data.checks import counted, numbers, read_only
from unbraid.errors import DataError, SettingError
from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch
from unbraid.results.evaluation import branch_slopes, branch_values

if TYPE_CHECKING:
    from unbraid.results.model import DecoupledModel

STRAIGHT = 1e-9
"""A remainder that is at most this share of the spread of its branch is nothing: a branch with it is a line."""
EVEN_POINTS = 1024
"""Points of a domain over which a branch is split where no samples are given."""


@dataclass(frozen=True, repr=False)
class Remainder(Branch):
    """What is left of a branch without a line: (g(s u) - constant - slope s u) / size.

    Attributes
    ----------
    branch
        g.
    constant, slope
        The line, in the input of g.
    size
        What the remainder is measured in, of either sign.
    input_scale
        s, the input of g over that of the remainder.
    """

    branch: Branch
    constant: float
    slope: float
    size: float = 1.0
    input_scale: float = 1.0

    @property
    def domain(self) -> tuple[float, float]:
        """The range (lo, hi) of u seen in training."""
        low, high = sorted(end / self.input_scale for end in self.branch.domain)
        return low, high

    @property
    def knots(self) -> Array:
        """The points, ends included, at which its pieces meet."""
        return np.sort(self.branch.knots / self.input_scale)

    def __call__(self, u: npt.ArrayLike) -> Array:
        """The remainder at u, of its shape."""
        v = self.input_scale * np.asarray(u, dtype=np.float64)
        return np.asarray((self.branch(v) - (self.constant + self.slope * v)) / self.size)

    def derivative(self, u: npt.ArrayLike, order: int = 1) -> Array:
        """The first or second derivative of the remainder at u, of its shape."""
        derived = self.branch.derivative(self.input_scale * np.asarray(u, dtype=np.float64), order)
        return np.asarray((derived - (self.slope if order == 1 else 0.0)) * self.input_scale**order / self.size)

    def certified(self, constraint: Constraint) -> bool:
        """Always False: a shape belongs to the branch with its line, `branch.certified`."""
        return False

    def __repr__(self) -> str:
        return f"Remainder({self.branch!r} less a line)"


class Split(NamedTuple):
    """Branches in lines and remainders: constants, slopes, sizes of remainders and spreads of branches, (r,) each."""

    constants: Array
    slopes: Array
    sizes: Array
    spreads: Array


@dataclass(frozen=True, repr=False, eq=False)
class CanonicalModel:
    """f(x) = L x + W1 g(W0 x) + bias, with branches g that have no linear part: what `model.canonical` gives.

    Attributes
    ----------
    L
        (n, m), all that is linear.
    W0
        (q, m), rows of length one; q is at most the rank of the model.
    W1
        (n, q).
    branches
        The q remainders, most important first.
    bias
        (n,).
    which
        (q,), the number, from 0, of each branch in the model.
    straight
        The numbers, from 0, of those branches of the model that were lines and are part of L now.
    """

    L: Array
    W0: Array
    W1: Array
    branches: tuple[Remainder, ...]
    bias: Array
    which: tuple[int, ...]
    straight: tuple[int, ...]

    @property
    def m(self) -> int:
        """How many inputs the model has."""
        return int(self.L.shape[1])

    @property
    def n(self) -> int:
        """How many outputs the model has."""
        return len(self.L)

    @property
    def rank(self) -> int:
        """How many branches are left, q."""
        return len(self.branches)

    def __call__(self, X: npt.ArrayLike) -> Array:
        """The values at X (S, m): (S, n). A single point (m,) gives (n,)."""
        points = self._points(X)
        u = self.W0 @ points.reshape(-1, self.m).T
        R = branch_values(self.branches, u).reshape(u.shape)
        return np.asarray((R.T @ self.W1.T).reshape(*points.shape[:-1], self.n) + points @ self.L.T + self.bias)

    def jacobian(self, X: npt.ArrayLike) -> Array:
        """J(x) = L + W1 diag(g'(W0 x)) W0 at X (S, m): (S, n, m). A single point (m,) gives (n, m)."""
        points = self._points(X)
        u = self.W0 @ points.reshape(-1, self.m).T
        G = branch_slopes(self.branches, u).reshape(u.shape)
        bent = (self.W1 * G.T[:, None, :]) @ self.W0
        return np.asarray(bent.reshape(*points.shape[:-1], self.n, self.m) + self.L)

    def _points(self, X: npt.ArrayLike) -> Array:
        points = numbers("X", X)
        if points.ndim > 2 or points.shape[-1] != self.m:
            raise DataError(f"X must be (S, {self.m}) or a single point ({self.m},), got shape {points.shape}.")
        return points

    def __repr__(self) -> str:
        branches = counted(self.rank, "bent branch", "bent branches")
        gone = f", {counted(len(self.straight), 'straight one')} in L" if self.straight else ""
        return f"CanonicalModel(m={counted(self.m, 'input')}, {branches}{gone}, n={counted(self.n, 'output')})"


def canonical_form(
    model: DecoupledModel,
    X: Array | None = None,
    weights: Array | None = None,
    straight: Sequence[int] | None = None,
) -> CanonicalModel:
    """The canonical form of a model, split over samples or evenly over domains; `DecoupledModel.canonical` says more.

    `straight`: the branches, from 0, that are lines; where it is None, those whose remainder is nothing.
    """
    split = split_branches(model, X, weights)
    if straight is None:
        straight = [int(j) for j in np.flatnonzero(split.sizes <= STRAIGHT * split.spreads)]
    elif any(not 0 <= j < model.rank for j in straight):
        raise SettingError(f"straight must be numbers of branches, from 0 to {model.rank - 1}, got {list(straight)}.")
    carries = np.any(model.W1 != 0.0, axis=0) & np.any(model.W0 != 0.0, axis=1)
    bent = [j for j in range(model.rank) if carries[j] and j not in straight]
    L = (model.W1 * split.slopes) @ model.W0
    bias = model.bias + model.W1 @ split.constants
    lengths = np.linalg.norm(model.W0[bent], axis=1)
    signs = largest_signs(model.W0[bent])
    W1 = model.W1[:, bent] * split.sizes[bent]
    ups = largest_signs(W1.T)
    W0, W1 = model.W0[bent] * (signs / lengths)[:, None], W1 * ups
    order = np.argsort(-importance_of(W1, model, X), kind="stable")
    branches = [
        Remainder(model.branches[j], split.constants[j], split.slopes[j], up * split.sizes[j], sign * length)
        for j, sign, length, up in zip(bent, map(float, signs), map(float, lengths), map(float, ups), strict=True)
    ]
    return CanonicalModel(
        L=read_only(L),
        W0=read_only(W0[order]),
        W1=read_only(W1[:, order]),
        branches=tuple(branches[k] for k in order),
        bias=read_only(bias),
        which=tuple(bent[k] for k in order),
        straight=tuple(j for j in sorted(straight) if carries[j]),
    )


def split_branches(model: DecoupledModel, X: Array | None, weights: Array | None) -> Split:
    """The line of every branch and the size of what is left of it, over samples or evenly over its domain."""
    u = None if X is None else X @ model.W0.T
    found = []
    for j, branch in enumerate(model.branches):
        if not model.W0[j].any():  # a branch of no input is a constant
            inputs = np.zeros(1)
        elif u is None:
            if not np.isfinite(branch.domain).all():
                raise DataError(f"Branch {j + 1} has no finite domain to take its line over: pass samples as X.")
            low, high = branch.domain
            inputs = low + (high - low) * (np.arange(EVEN_POINTS) + 0.5) / EVEN_POINTS
        else:
            inputs = u[:, j]
        found.append(nearest_line(inputs, branch(inputs), weights if len(inputs) > 1 and u is not None else None))
    return Split(*np.array(found).reshape(-1, 4).T)


def nearest_line(u: Array, values: Array, weights: Array | None) -> tuple[float, float, float, float]:
    """Constant and slope of the line nearest to values at u (S,), and the standard deviations of rest and values."""
    share = np.full(len(u), 1.0 / len(u)) if weights is None else weights / weights.sum()
    middle, mean = float(share @ u), float(share @ values)
    (du, wide), (dv, high) = (in_own_size(one) for one in (u - middle, values - mean))
    spread = float(share @ du**2)
    slope = float(share @ (du * dv)) / spread if spread > 0.0 else 0.0
    rest = dv - slope * du
    rest -= share @ rest
    sizes = [high * float(np.sqrt(share @ one**2)) for one in (rest, dv)]
    slope *= high / wide
    return mean - slope * middle, slope, sizes[0], sizes[1]


def in_own_size(values: Array) -> tuple[Array, float]:
    """Values as numbers that can be squared, and the power of two that they are measured in."""
    power = int(np.frexp(np.abs(values).max(initial=0.0))[1])
    return np.ldexp(values, -power), float(np.ldexp(1.0, power))


def largest_signs(rows: Array) -> Array:
    """The signs of the entries of largest size of rows (q, ·), the first of them where several are as large: (q,)."""
    if not rows.size:
        return np.ones(len(rows))
    sizes = np.abs(rows)
    first = np.argmax(sizes >= (1.0 - 1e-9) * sizes.max(axis=1, keepdims=True), axis=1)
    entries = rows[np.arange(len(rows)), first]
    return np.where(entries < 0.0, -1.0, 1.0)


def importance_of(W1: Array, model: DecoupledModel, X: Array | None) -> Array:
    """How much remainders of size one with columns W1 (n, q) matter: the mean share of outputs' variances, (q,)."""
    spread = np.sum(W1**2, axis=1) if X is None else np.var(model(X), axis=0)
    return np.asarray(np.mean(W1**2 / np.where(spread > 0.0, spread, 1.0)[:, None], axis=0))
