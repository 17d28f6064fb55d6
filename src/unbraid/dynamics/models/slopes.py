"""What a dynamic model does to small changes, at the moments of its simulations and on their average."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unbraid.dynamics.models.base import DynamicModel, Simulation
from unbraid.kernels.arrays import Array


def slopes_along(model: DynamicModel, phi: Array) -> Array:
    """∂f/∂φ (T, n, mφ) at φ (T, mφ): the linear model of small changes at each moment."""
    function = model.function
    return function.slopes(function.values(phi), phi.shape[1])


def average_slopes(model: DynamicModel, phi: Array) -> Array:
    """The mean (n, mφ) of ∂f/∂φ over φ (T, mφ): of Gaussian signals, the best linear approximation of f (BLA)."""
    values = model.function.values(phi)
    mean = values._replace(G=values.G.mean(axis=1, keepdims=True))
    return np.asarray(model.function.slopes(mean, phi.shape[1])[0])


def visited(simulations: Sequence[Simulation]) -> Array | None:
    """φ (T, mφ) of all simulations that tell it, one after another; None where none does."""
    known = [one.phi for one in simulations if one.phi is not None and len(one.phi)]
    return np.concatenate(known) if known else None
