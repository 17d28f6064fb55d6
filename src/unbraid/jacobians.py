"""Jacobians from values alone, by local regression."""

from __future__ import annotations

import numpy as np

from unbraid.arrays import Array, blocks
from unbraid.kernels.quadratics import pseudo_inverse


def local_slopes(X: Array, F: Array, neighbours: int) -> Array:
    """Rough Jacobians (S, n, m) from values alone: at each point the slopes of a linear fit to its neighbours.

    X (S, m) in units in which distances mean something. Directions in which the neighbours do not differ get
    the slope zero.
    """
    from scipy.spatial import KDTree

    S, m = X.shape
    n, k = F.shape[1], min(neighbours, S)
    J = np.empty((S, n, m))
    tree = KDTree(X)
    for part in blocks(S, k * (m + n)):
        _, near = tree.query(X[part], k)
        near = near.reshape(-1, k)
        dX, dF = X[near], F[near]
        dX -= dX.mean(axis=1, keepdims=True)
        dF -= dF.mean(axis=1, keepdims=True)
        J[part] = (pseudo_inverse(dX.mT @ dX) @ (dX.mT @ dF)).mT
    return J
