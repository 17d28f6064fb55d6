"""Standard deviations that pictures measure in."""

from __future__ import annotations

import numpy as np

from unbraid.data.problem import Problem
from unbraid.data.units import positive, spreads
from unbraid.kernels.arrays import Array
from unbraid.results.model import DecoupledModel


def input_spreads(samples: Problem) -> Array:
    """The standard deviation of every input, (m,); 1 where it is constant."""
    return positive(spreads(samples.X, samples.weights), otherwise=1.0, noise=np.abs(samples.X).max(axis=0))


def output_spreads(samples: Problem, model: DecoupledModel) -> Array:
    """The standard deviation of every output, (n,), of the model's where no value is known; 1 where it is constant."""
    F = model(samples.X)
    if samples.F is not None:
        F = np.where(np.isnan(samples.F).all(axis=0), F, samples.F)
    return positive(spreads(F, samples.weights), otherwise=1.0, noise=np.fmax.reduce(np.abs(F), axis=0))
