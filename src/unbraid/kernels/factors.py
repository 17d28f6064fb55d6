r"""The linear steps of a coupled factorisation: Algorithm 1 of CMTF-BSD (docs/method.md), lines 4 to 9.

Shapes: W0 (..., r, m), W1 (..., n, r), G and R (..., S, r), F (S, n). J is (S, n·m), one row a
sample, in the user's units and memory; `weight` (n·m,) turns it into the solver's units without
a copy: J·weight is what the equations call J. J, weight and F may have the leading axis of the starts as well:
then every start has samples of its own.

One product T = Jᵀ G serves the W1 and the W0 step, and the measure of the sweep before, so a sweep
passes over J twice.
"""

import numpy as np

from unbraid.kernels.arrays import EPS, Array
from unbraid.kernels.decompositions import pseudo_inverse


def jacobian_products(J: Array, weight: Array, G: Array) -> Array:
    """T[i·m + k, b] = Σ_s J[s, i, k] G[s, b], in the solver's units: (..., n·m, r)."""
    return (G.mT @ J).mT * weight[..., None]


def khatri_rao(W1: Array, W0: Array) -> Array:
    """Row i·m + k, column b: W1[i, b] W0[b, k], (..., n·m, r), so that J = G khatri_raoᵀ."""
    product = W1[..., :, None, :] * W0.mT[..., None, :, :]
    return product.reshape(*product.shape[:-3], -1, product.shape[-1])


def contract_outputs(T: Array, W1: Array) -> Array:
    """Σ_i T[i, k, b] W1[i, b]: (..., m, r)."""
    n = W1.shape[-2]
    contracted: Array = np.sum(T.reshape(*T.shape[:-2], n, -1, T.shape[-1]) * W1[..., :, None, :], axis=-3)
    return contracted


def contract_inputs(T: Array, W0: Array) -> Array:
    """Σ_k T[i, k, b] W0[b, k]: (..., n, r)."""
    m = W0.shape[-1]
    contracted: Array = np.sum(T.reshape(*T.shape[:-2], -1, m, T.shape[-1]) * W0.mT[..., None, :, :], axis=-2)
    return contracted


def outer_step(CT: Array, gram: Array, FR: Array | float, RR: Array | float) -> Array:
    """W1 = argmin ‖J - [[W1, W0ᵀ, G]]‖² + λ ‖F - R W1ᵀ‖².

    CT = contract_inputs(T, W0), gram = GᵀG ∘ W0 W0ᵀ, FR = λ Fᵀ R, RR = λ Rᵀ R.
    """
    return (CT + FR) @ pseudo_inverse(gram + RR)


def inner_step(T: Array, W1: Array, GG: Array) -> Array:
    """W0 = argmin ‖J - [[W1, W0ᵀ, G]]‖², with GG = Gᵀ G."""
    return (contract_outputs(T, W1) @ pseudo_inverse(GG * (W1.mT @ W1))).mT


def slopes_operator(weight: Array, W1: Array, W0: Array) -> Array:
    """The matrix (..., r, n·m) that makes of a Jacobian the slopes of `least_norm_slopes`."""
    inverse = pseudo_inverse((W1.mT @ W1) * (W0 @ W0.mT))
    return (weight[..., None] * khatri_rao(W1, W0) @ inverse).mT


def least_norm_slopes(J: Array, weight: Array, W1: Array, W0: Array) -> Array:
    """G = argmin ‖J - [[W1, W0ᵀ, G]]‖², of least norm where there are several (n·m < r)."""
    return (slopes_operator(weight, W1, W0) @ J.mT).mT


def slopes_are_open(W1: Array, W0: Array) -> bool:
    """Whether there are fewer entries of a Jacobian than branches: n·m < r."""
    return bool(W1.shape[-2] * W0.shape[-1] < W0.shape[-2])


def undetermined_slopes(W1: Array, W0: Array) -> Array:
    """The projection (..., r, r) onto what Jacobians leave open of the slopes at a sample."""
    gram = (W1.mT @ W1) * (W0 @ W0.mT)
    return np.eye(gram.shape[-1]) - pseudo_inverse(gram) @ gram


def nearest_slopes(J: Array, weight: Array, W1: Array, W0: Array, G: Array) -> Array:
    """The minimiser of ‖J - [[W1, W0ᵀ, G]]‖² nearest to G, which differs only where n·m < r."""
    slopes = least_norm_slopes(J, weight, W1, W0)
    return slopes + (undetermined_slopes(W1, W0) @ G.mT).mT if slopes_are_open(W1, W0) else slopes


def pseudo_inverse_of(W1: Array) -> Array:
    """The pseudo-inverse of W1 (..., n, r), from the smaller of its two Gram matrices: (..., r, n)."""
    if W1.shape[-2] < W1.shape[-1]:
        return W1.mT @ pseudo_inverse(W1 @ W1.mT)
    return pseudo_inverse(W1.mT @ W1) @ W1.mT


def values_are_open(W1: Array) -> bool:
    """Whether there are fewer outputs than branches: n < r."""
    return bool(W1.shape[-2] < W1.shape[-1])


def least_norm_values(F: Array, inverse: Array) -> Array:
    """R = argmin ‖F - R W1ᵀ‖², of least norm where there are several (n < r); `inverse` is that of W1."""
    return (inverse @ F.mT).mT


def nearest_values(F: Array, W1: Array, inverse: Array, R: Array) -> Array:
    """The minimiser of ‖F - R W1ᵀ‖ nearest to R; `inverse` is that of W1.

    Algorithm 1, line 9, departs from the paper: its minimum-norm solution pulls R towards the row
    space of W1 when n < r, and the values get worse as λ grows.
    """
    return R + (inverse @ (F.mT - W1 @ R.mT)).mT


def misfit(product: Array, gram: Array, W1: Array, norm: Array | float) -> Array:
    """‖J - [[W1, W0ᵀ, G]]‖² from ‖J‖² and what `outer_step` takes, or ‖F - R W1ᵀ‖² from ‖F‖², Fᵀ R and Rᵀ R: (...).

    Exact to rounding of ‖J‖² or ‖F‖², and never below that: a misfit that cannot be told from none is not none.
    """
    inner = np.sum(product * W1, axis=(-2, -1))
    square = np.sum(gram * (W1.mT @ W1), axis=(-2, -1))
    result: Array = np.maximum(norm - 2.0 * inner + square, EPS * norm)
    return result
