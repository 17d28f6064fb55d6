"""Decompositions that always end in finite numbers: matrices may be singular, and need not be finite.

Leading axes are independent problems. A matrix with entries that are not finite is treated as zero: it comes from a
model that has lost its way, and whoever asked will find that nothing is to be had there.
"""

import numpy as np

from unbraid.kernels.arrays import Array

RELATIVE_RANK = 1e-14
"""Eigenvalues of a Gram matrix below this share of the largest count as zero."""

WELL_CONDITIONED = 1e10
"""Below this condition number the inverse is the pseudo-inverse for all purposes here."""


def inverse(A: Array) -> Array:
    """The inverse of each A (..., K, K); nan where one is exactly singular."""
    try:
        return np.asarray(np.linalg.inv(A), dtype=np.float64)
    except np.linalg.LinAlgError:
        if A.ndim == 2:
            return np.full_like(A, np.nan)
        return np.stack([inverse(one) for one in A])


def some_inverse(A: Array) -> Array:
    """The inverse of each symmetric A, and the pseudo-inverse of those that are exactly singular."""
    result = inverse(A)
    singular = np.isnan(result).all(axis=(-2, -1))
    if singular.any():
        result[singular] = spectral_pseudo_inverse(A[singular])
    return result


def pseudo_inverse(A: Array) -> Array:
    """The pseudo-inverse of symmetric positive semidefinite A, e.g. of the Gram matrix of factors."""
    result = inverse(A)
    size = np.abs(result)
    if A.max(initial=0.0) * size.max(initial=0.0) < WELL_CONDITIONED:  # all of them at once, nearly always
        return result
    condition = A.max(axis=(-2, -1)) * size.max(axis=(-2, -1))  # A is largest on its diagonal
    poor = ~(condition < WELL_CONDITIONED)
    if poor.any():
        result[poor] = spectral_pseudo_inverse(A[poor])
    return result


def last_of_inverse(A: Array, first: int) -> tuple[Array, Array]:
    """The last rows and columns of the inverse of a symmetric A (P, P), from the first-th on, and pivots (P,) of A.

    With A = L Lᵀ the last block of A⁻¹ is (L₂₂ L₂₂ᵀ)⁻¹, so L of all of A has to be found, but the inverse only of a
    part of it. Pivots are L_ii², what is left of A_ii with everything before it known; their product is the
    determinant. Where A is not positive definite, it is the pseudo-inverse, and pivots are eigenvalues, those that are
    not positive replaced by the smallest number there is.
    """
    from scipy.linalg.lapack import dpotrf, dpotri

    L, failed = dpotrf(A.T, lower=1)
    if not failed:
        inverse, failed = dpotri(L[first:, first:], lower=1)
    if failed:
        values = np.maximum(eigen(A)[0], np.finfo(float).tiny)
        return spectral_pseudo_inverse(A)[first:, first:], values
    return np.tril(inverse) + np.tril(inverse, -1).T, np.diagonal(L) ** 2


def spectral_pseudo_inverse(A: Array) -> Array:
    """The pseudo-inverse by eigenvalues; zero where A is not finite."""
    values, vectors = eigen(A)
    kept = values > RELATIVE_RANK * values.shape[-1] * values[..., -1:]
    reciprocal = np.divide(1.0, values, where=kept, out=np.zeros_like(values))
    return np.asarray((vectors * reciprocal[..., None, :]) @ vectors.mT, dtype=np.float64)


def eigen(A: Array) -> tuple[Array, Array]:
    """The eigenvalues (..., K), ascending, and eigenvectors (..., K, K) of symmetric A."""
    finite = finite_or_zero(A)
    try:
        values, vectors = np.linalg.eigh(finite)
    except np.linalg.LinAlgError:  # of one among many: each by itself, in another way
        rotated, values, _ = svd(finite)
        signs = np.sign(np.einsum("...ij,...ij->...j", rotated, finite @ rotated))
        order = np.argsort(signs * values, axis=-1)
        values = np.take_along_axis(signs * values, order, axis=-1)
        vectors = np.take_along_axis(rotated, order[..., None, :], axis=-1)
    return values, vectors


def svd(A: Array) -> tuple[Array, Array, Array]:
    """U (..., p, k), the singular values (..., k), descending, and Vᵀ (..., k, q) of A (..., p, q), k = min(p, q)."""
    finite = finite_or_zero(A)
    try:
        U, sizes, rows = np.linalg.svd(finite, full_matrices=False)
    except np.linalg.LinAlgError:  # the slower algorithm converges where the faster one does not
        from scipy.linalg import svd as scipy_svd

        parts = [
            scipy_svd(one, full_matrices=False, lapack_driver="gesvd") for one in finite.reshape(-1, *finite.shape[-2:])
        ]
        lead = finite.shape[:-2]
        U, sizes, rows = (np.stack(some).reshape(*lead, *some[0].shape) for some in zip(*parts, strict=True))
    return U, sizes, rows


def finite_or_zero(A: Array) -> Array:
    """A, with zeros for matrices that are not finite."""
    finite = np.isfinite(A).all(axis=(-2, -1), keepdims=True)
    return A if finite.all() else np.where(finite, A, 0.0)
