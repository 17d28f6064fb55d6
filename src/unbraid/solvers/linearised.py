r"""Models at the samples, to first order: residuals, the gradient, and products with the Gauss–Newton matrix.

With u = W0 x, G = g'(u) and R = g(u), both (S, r), the objective is

    Σ_s ‖J_s - W1 diag(G_s) W0‖² + λ ‖F - R W1ᵀ - offset‖² + penalties.

A change (δw1, δw0, δa) of a branch changes its slopes and values by

    δG_j = g''_j (x · δw0_j) + B'_j δa_j = φ_j · (δw0_j, δa_j),        φ_j = [x g''_j, B'_j],
    δR_j = g'_j  (x · δw0_j) + B_j  δa_j = ψ_j · (δw0_j, δa_j),        ψ_j = [x g'_j,  B_j],

and everything else is small matrices: with M1 = W1ᵀ W1, M0 = W0 W0ᵀ, A1 = W1ᵀ δW1, A0 = W0 δW0ᵀ, what the change of Ĵ
means for the slopes is δG (M1 ∘ M0) + G (A1 ∘ M0 + M1 ∘ A0)ᵀ, (S, r), without Ĵ itself ever being built. The matrix as
an array is made of Gram matrices of φ, ψ, G and R (`kernels.gauss_newton`). An output offset takes the mean of
the values, so R, δR and residuals of values are centred then.

Functions that begin with `block_` look at one block of samples, and nearly all give what it adds to a sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from unbraid.bases import Placement
from unbraid.data.in_memory import Samples
from unbraid.data.sample_set import SampleSet
from unbraid.kernels import factors
from unbraid.kernels import gauss_newton as kernel
from unbraid.kernels.arrays import Array, blocks, even_blocks, feature_block_length
from unbraid.solvers.batch import Batch
from unbraid.solvers.evaluated import BranchOutputs, Evaluated
from unbraid.solvers.iterates import Iterates


class Means(NamedTuple):
    """What an output offset takes: the mean of R (B, 1, r) and that of F - F̂ (B, 1, n); zeros without one."""

    values: Array
    residual: Array


@dataclass(frozen=True)
class Linearised(Batch):
    """A batch of models on given samples, at one λ; `offset`: an output offset takes the mean of the values.

    Unknowns are ordered (r, q): branch by branch w1 (n), w0 (m), a (K), q = n + m + K in all. Where u has left the
    knots, the last pieces of branches go on.
    """

    samples: SampleSet
    coupling: float
    offset: bool
    iterates: Iterates

    @cached_property
    def evaluated(self) -> Evaluated:
        """The models at the samples."""
        return Evaluated.on(self.samples, self.iterates)

    @property
    def _rank(self) -> int:
        return int(self.iterates.W0.shape[-2])

    @cached_property
    def _means(self) -> Means:
        """What the output offset takes of values and residuals."""
        if not self.offset or not self.samples.has_values:
            return Means(np.zeros(()), np.zeros(()))
        sums = self.samples.sum(block_totals, self.evaluated, width=self._rank)
        return Means(sums.values / self.samples.size, sums.residual / self.samples.known_weight)

    def misfits(self) -> tuple[Array, Array]:
        """‖J - Ĵ‖² and ‖F - F̂‖², (B,) each, from residuals, so exact to their own last digits."""
        return self._misfits

    @cached_property
    def _misfits(self) -> tuple[Array, Array]:
        return self.samples.sum(block_misfits, self.evaluated, self._means, width=self._rank)

    @cached_property
    def penalty(self) -> kernel.Penalty | None:
        """The penalty that the basis adds to the objective, or None."""
        root = self.iterates.placement.penalty_root()
        return None if root is None else kernel.Penalty.at(root, self.iterates.a, self.iterates.W1)

    def penalty_value(self) -> Array:
        """What the penalty adds to the objective, (B,)."""
        return np.zeros(len(self.iterates.W0)) if self.penalty is None else self.penalty.value()

    def with_penalty(self, placement: Placement) -> Linearised:
        """The same models with another penalty: nothing of what has been summed over samples is summed again."""
        other = replace(self, iterates=replace(self.iterates, placement=placement))
        return self._keeping(other, "evaluated", "_means", "_misfits", "data_descent", "data_matrix")

    def with_coupling(self, coupling: float) -> Linearised:
        """The same models at another λ: they are not evaluated again."""
        return self._keeping(replace(self, coupling=coupling), "evaluated", "_means", "_misfits", "penalty")

    def _keeping(self, other: Linearised, *kept: str) -> Linearised:
        """Another one, with some of what has been computed here already."""
        vars(other).update({name: vars(self)[name] for name in kept if name in vars(self)})
        return other

    def descent(self) -> Array:
        """Minus half the gradient of the objective, (B, r, q)."""
        result = self.data_descent.copy()
        return result if self.penalty is None else add_penalty(result, self.penalty.descent())

    @cached_property
    def data_descent(self) -> Array:
        """Minus half the gradient of the misfit alone, (B, r, q)."""
        W0, W1, n = self.iterates.W0, self.iterates.W1, self.iterates.W1.shape[-2]
        sums = self.samples.sum(block_descent, self.evaluated, self.coupling, self._means, width=self._rank)
        result = np.concatenate([np.zeros((*W0.shape[:2], n + W0.shape[-1])), sums.a], axis=-1)
        result[..., n : n + W0.shape[-1]] += sums.w0
        if sums.T is not None:
            result[..., :n] += factors.contract_inputs(sums.T, W0).mT
            result[..., n : n + W0.shape[-1]] += factors.contract_outputs(sums.T, W1).mT
        if sums.FR is not None:
            result[..., :n] += sums.FR.mT
        return result

    def product(self, change: Array) -> Array:
        """The Gauss–Newton matrix times changes (B, r, q) of the unknowns."""
        W0, W1 = self.iterates.W0, self.iterates.W1
        n, m = W1.shape[-2], W0.shape[-1]
        dW1, dW0 = change[..., :n].mT, change[..., n : n + m]
        means = self._means, self._mean_change(change)
        sums = self.samples.sum(block_product, self.evaluated, self.coupling, *means, change, width=self._rank)
        M1, M0, A1, A0 = W1.mT @ W1, W0 @ W0.mT, W1.mT @ dW1, W0 @ dW0.mT
        result = np.concatenate([np.zeros((*W0.shape[:2], n + m)), sums.a], axis=-1)
        result[..., n : n + m] += sums.w0
        if sums.GG is not None and sums.GG_change is not None:
            result[..., :n] += (dW1 @ (sums.GG * M0) + W1 @ (sums.GG_change * M0 + sums.GG * A0.mT)).mT
            result[..., n : n + m] += (A1 * sums.GG + M1 * sums.GG_change.mT) @ W0 + (M1 * sums.GG) @ dW0
        if sums.RR is not None and sums.RR_change is not None:
            result[..., :n] += self.coupling * (dW1 @ sums.RR + W1 @ sums.RR_change).mT
        if self.penalty is None:
            return result
        return add_penalty(result, self.penalty.product(change[..., :n], change[..., n + m :]))

    def _mean_change(self, change: Array) -> Array:
        """The mean of δR over samples, (B, 1, r), where an output offset takes it: linear in the change."""
        if not self.offset or not self.samples.has_values:
            return np.zeros(())
        n = self.iterates.W1.shape[-2]
        return np.asarray(np.sum(self._mean_features * change[..., n:], axis=-1)[:, None, :])

    @cached_property
    def _mean_features(self) -> Array:
        """The mean of ψ over samples, (B, r, m + K)."""
        return self.samples.sum(block_features, self.evaluated, width=self._rank) / self.samples.size

    def normal_matrix(self) -> Array:
        """The Gauss–Newton matrix (B, r, q, r, q).

        Entries that are not known count in it as if they were fitted exactly, which keeps its structure: it is that of
        a function which lies above the objective and touches it here, so steps still lead down, in smaller strides.
        """
        N = self.data_matrix.copy()
        if self.penalty is not None:
            every = np.arange(N.shape[1])
            own = N[:, every, :, every, :].swapaxes(0, 1)
            self.penalty.add_to(own)
            N[:, every, :, every, :] = own.swapaxes(0, 1)
        return N

    @cached_property
    def data_matrix(self) -> Array:
        """The Gauss–Newton matrix of the misfit alone, (B, r, q, r, q)."""
        return kernel.normal_matrix(self.iterates.W0, self.iterates.W1, self._moments(one_by_one=False))

    def branch_matrices(self) -> Array:
        """The blocks of the Gauss–Newton matrix of each branch with itself, (B·r, 1, q, 1, q)."""
        W0 = self.iterates.W0
        N = self.data_branch_matrices()
        if self.penalty is not None:
            self.penalty.add_to(N.reshape(*W0.shape[:2], *N.shape[-3::2]))
        return N

    def data_branch_matrices(self) -> Array:
        """The blocks of the Gauss–Newton matrix of the misfit alone, (B·r, 1, q, 1, q)."""
        W0, W1 = self.iterates.W0, self.iterates.W1
        n, m = W1.shape[-2], W0.shape[-1]
        return kernel.normal_matrix(W0.reshape(-1, 1, m), W1.mT.reshape(-1, n, 1), self._moments(one_by_one=True))

    def _moments(self, one_by_one: bool) -> kernel.Moments:
        """The sums over samples that the matrices are made of; values are centred where an offset takes their mean."""
        sums = self.samples.sum(block_moments, self.evaluated, self._means, one_by_one, width=self._rank)
        squares, mixed, branches = sums.values
        if self.offset:
            centring = sums.features @ sums.features.mT
            centring /= self.samples.size
            squares = np.subtract(squares, centring, out=centring)  # these may be large
        return kernel.Moments(*sums.slopes, squares, mixed, branches, self.coupling)


def add_penalty(result: Array, more: tuple[Array, Array]) -> Array:
    """A gradient or product (B, r, q) plus what the penalty adds to it in w1 (B, r, n) and a (B, r, K), in place."""
    result[..., : more[0].shape[-1]] += more[0]
    result[..., -more[1].shape[-1] :] += more[1]
    return result


def block_residuals(block: Samples, at: BranchOutputs, means: Means) -> Array:
    """F - F̂ at the samples of a block, (B, S, n), with the output offset."""
    return block.values - at.values @ at.iterates.W1.mT - means.residual


class Totals(NamedTuple):
    """Sums of R (B, 1, r) and of F - F̂, over what is known (B, 1, n); both weighted."""

    values: Array
    residual: Array


def block_totals(block: Samples, at: BranchOutputs) -> Totals:
    """The sums that an output offset is made of."""
    residual = block.values - at.values @ at.iterates.W1.mT
    sums = block.weighted(at.values).sum(axis=-2, keepdims=True)
    return Totals(sums, block.weighted_values(residual).sum(axis=-2, keepdims=True))


def block_misfits(block: Samples, at: BranchOutputs, means: Means) -> tuple[Array, Array]:
    """‖J - Ĵ‖² and ‖F - F̂‖² over the samples of a block, (B,) each."""
    it = at.iterates
    jacobian, values = np.zeros(len(it.W0)), np.zeros(len(it.W0))
    if block.J is not None:
        slopes, directions = at.slopes, factors.khatri_rao(it.W1, it.W0).mT
        for part in blocks(block.size, directions.shape[-1]):
            residual = block.jacobian(part) - slopes[:, part] @ directions
            jacobian += np.sum(residual * block.weighted_jacobian(residual, part), axis=(-2, -1))
    if block.F is not None:
        residual = block_residuals(block, at, means)
        values += np.sum(residual * block.weighted_values(residual), axis=(-2, -1))
    return jacobian, values


class DescentSums(NamedTuple):
    """Minus half the gradient: its parts through u (B, r, m) and in a (B, r, K), and what W1 and W0 as they stand make
    theirs of, residualᵀ G of Jacobians (B, n·m, r) and λ residualᵀ R of values (B, n, r).
    """

    w0: Array
    a: Array
    T: Array | None
    FR: Array | None


def block_descent(block: Samples, at: BranchOutputs, coupling: float, means: Means) -> DescentSums:
    """What a block adds to minus half the gradient."""
    it = at.iterates
    to_slopes = to_values = T = FR = None
    if block.J is not None:
        directions = factors.khatri_rao(it.W1, it.W0)
        to_slopes, T = np.empty_like(at.slopes), np.zeros((len(it.W0), *directions.shape[-2:]))
        for part in blocks(block.size, len(directions[0])):
            G = at.slopes[:, part]
            residual = block.weighted_jacobian(block.jacobian(part) - G @ directions.mT, part)
            to_slopes[:, part] = residual @ directions
            T += residual.mT @ G
    if block.F is not None:
        residual = coupling * block.weighted_values(block_residuals(block, at, means))
        to_values = residual @ it.W1
        FR = residual.mT @ (at.values - means.values)
    return DescentSums(*pull_back(block, at, to_slopes, to_values), T, FR)


def pull_back(
    block: Samples, at: BranchOutputs, to_slopes: Array | None, to_values: Array | None
) -> tuple[Array, Array]:
    """Σ_s φ to_slopes + ψ to_values for every branch, (B, S, r) each: its parts in w0 (B, r, m) and a (B, r, K)."""
    along = np.zeros_like(at.slopes)
    if to_slopes is not None:
        along += to_slopes * at.curvature
    if to_values is not None:
        along += to_values * at.slopes
    slopes = np.zeros_like(at.slopes) if to_slopes is None else to_slopes
    values = None if to_values is None else to_values.mT
    return along.mT @ block.X, at.iterates.placement.adjoint(at.inputs.prepared, slopes.mT, values)


class ProductSums(NamedTuple):
    """The Gauss–Newton matrix times a change: its parts through u and in a, and what W1 and W0 as they stand make
    theirs of, GG = Gᵀ G and RR = Rᵀ R (B, r, r), and δGᵀ G and δRᵀ R.
    """

    w0: Array
    a: Array
    GG: Array | None
    GG_change: Array | None
    RR: Array | None
    RR_change: Array | None


def block_product(
    block: Samples, at: BranchOutputs, coupling: float, means: Means, mean_change: Array, change: Array
) -> ProductSums:
    """What a block adds to the product with changes (B, r, q); an offset takes `mean_change` (B, 1, r) of δR."""
    W0, W1, placement = at.iterates.W0, at.iterates.W1, at.iterates.placement
    n, m = W1.shape[-2], W0.shape[-1]
    dW1, dW0, da = change[..., :n].mT, change[..., n : n + m], change[..., n + m :]
    du = block.X @ dW0.mT
    dvalues, dslopes = placement.value_and_slope(da, at.inputs.prepared)
    M1, M0, A1, A0 = W1.mT @ W1, W0 @ W0.mT, W1.mT @ dW1, W0 @ dW0.mT
    to_slopes = to_values = GG = dGG = RR = dRR = None
    if block.J is not None:
        G, dG = at.slopes, du * at.curvature + dslopes.mT
        wG = block.weighted(G)
        to_slopes = block.weighted(dG @ (M1 * M0) + G @ (A1 * M0 + M1 * A0).mT)
        GG, dGG = G.mT @ wG, dG.mT @ wG
    if block.F is not None:
        R, dR = at.values - means.values, du * at.slopes + dvalues.mT - mean_change
        to_values = coupling * block.weighted(dR @ M1 + R @ A1.mT)
        wR = block.weighted(R)
        RR, dRR = R.mT @ wR, dR.mT @ wR
    return ProductSums(*pull_back(block, at, to_slopes, to_values), GG, dGG, RR, dRR)


def block_features(block: Samples, at: BranchOutputs) -> Array:
    """The weighted sum of ψ over the samples of a block, (B, r, m + K)."""
    one = np.broadcast_to(block.weighted(np.ones((block.size, 1))), at.values.shape)
    along = (one * at.slopes).mT @ block.X
    in_a = at.iterates.placement.adjoint(at.inputs.prepared, np.zeros_like(at.inputs.u), one.mT)
    return np.concatenate([along, in_a], axis=-1)


class MomentSums(NamedTuple):
    """⟨φ, φ⟩, ⟨φ, g'⟩, ⟨g', g'⟩ of slopes, ⟨ψ, ψ⟩, ⟨ψ, g⟩, ⟨g, g⟩ of centred values, and the sum of ψ (…, f, 1)."""

    slopes: kernel.Sums
    values: kernel.Sums
    features: Array


def block_moments(block: Samples, at: BranchOutputs, means: Means, one_by_one: bool) -> MomentSums:
    """The moments of a block; with all branches together, or one by one."""
    arrange = by_branch if one_by_one else together
    u, placement, X = at.inputs.u, at.iterates.placement, block.X
    r, f = u.shape[1], X.shape[-1] + at.iterates.a.shape[-1]
    roots = None if block.rows is None else np.sqrt(block.rows)[:, None]
    G, R = (arrange(block.rooted(one)[..., None]) for one in (at.slopes, at.values - means.values))
    lead, branches, p = len(G), G.shape[-1], f * G.shape[-1]
    slopes, values = kernel.no_sums(lead, p, branches), kernel.no_sums(lead, p, branches)
    features = np.zeros((lead, p, 1))
    bend = None if block.J is None else at.curvature
    K, parts = f - X.shape[-1], even_blocks(block.size, feature_block_length(r * f))
    for part in parts:
        there = at.inputs.prepared if len(parts) == 1 else placement.at(u[..., part])
        if bend is not None:
            slopes_of = partial(placement.write_design, at=there, derivative=1)
            phi = arrange(kernel.features(X[part], bend[:, part], K, slopes_of))
            kernel.add_sums(slopes, times_roots(phi, roots, part), G[:, part])
        if block.F is not None:
            values_of = partial(placement.write_design, at=there)
            psi = arrange(kernel.features(X[part], at.slopes[:, part], K, values_of))
            psi = times_roots(psi, roots, part)
            kernel.add_sums(values, psi, R[:, part])
            features += times_roots(psi, roots, part).sum(axis=-2)[..., None]
    return MomentSums(slopes, values, features)


def times_roots(by_sample: Array, roots: Array | None, part: slice) -> Array:
    """Numbers (..., S, ·) of a part of the samples times the roots (S, 1) of the samples' weights, or as they are."""
    return by_sample if roots is None else by_sample * roots[part]


def together(A: Array) -> Array:
    """(B, S, r, ·) with the branches side by side: (B, S, r ·)."""
    return A.reshape(*A.shape[:2], -1)


def by_branch(A: Array) -> Array:
    """(B, S, r, ·) with every branch as a batch entry of its own: (B r, S, ·)."""
    return A.swapaxes(1, 2).reshape(-1, A.shape[1], A.shape[-1])
