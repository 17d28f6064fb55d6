"""The function of a dynamic model, f(φ) = L φ + W1 g(W0 φ) + bias, branches of any kind; and that of its observer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from unbraid.kernels.arrays import Array
from unbraid.results.evaluation import branch_slopes, branch_values
from unbraid.results.model import DecoupledModel


class Outputs(NamedTuple):
    """What a function gives at φ (T, mφ): f (T, n), and what its slopes there are made of."""

    f: Array
    G: Array


class FedBack(Protocol):
    """What a trajectory needs of a function whose outputs come back as inputs."""

    def values(self, phi: Array) -> Any:
        """The outputs f (T, n) at φ (T, mφ), and whatever slopes are made of."""

    def slopes(self, outputs: Any, width: int) -> Array:
        """∂f/∂φ for the first entries of φ, (T, n, width)."""


def combined_slopes(L: Array, W0: Array, W1: Array, G: Array) -> Array:
    """L + W1 diag(g') W0, (T, n, m), from branches' slopes G (r, T); L and W0 may be cut to some entries of φ."""
    shape = (G.shape[1], *L.shape)
    if not len(W0):
        return np.broadcast_to(L, shape)
    outer = (W1[:, None, :] * W0.T[None]).reshape(-1, len(W0))
    return np.asarray((G.T @ outer.T).reshape(shape) + L)


@dataclass(frozen=True)
class ModelFunction:
    """The function of a model.

    Attributes
    ----------
    L
        (n, mφ), the linear part.
    nonlinearity
        Of φ, with n outputs; the constants are its bias.
    """

    L: Array
    nonlinearity: DecoupledModel

    def values(self, phi: Array) -> Outputs:
        """The outputs at φ (T, mφ)."""
        model = self.nonlinearity
        u = model.W0 @ phi.T
        R, G = branch_values(model.branches, u), branch_slopes(model.branches, u)
        return Outputs(phi @ self.L.T + R.T @ model.W1.T + model.bias, G)

    def slopes(self, outputs: Outputs, width: int) -> Array:
        """∂f/∂φ for the first entries of φ, (T, n, width)."""
        model = self.nonlinearity
        return combined_slopes(self.L[:, :width], model.W0[:, :width], model.W1, outputs.G)


@dataclass(frozen=True)
class ObserverFunction:
    """A state-space model that is corrected by what was measured: x⁺ = f_x(x, u) + K (y - f_y(x, u)).

    φ is [x; u; y], with y not a number where nothing was measured, and nothing is corrected.
    """

    function: ModelFunction
    K: Array

    def values(self, phi: Array) -> Outputs:
        """The outputs [x⁺; ŷ] at φ (T, nx + nu + ny)."""
        ny = self.K.shape[1]
        f, G = self.function.values(phi[:, :-ny])
        f[:, :-ny] += np.nan_to_num(phi[:, -ny:] - f[:, -ny:]) @ self.K.T
        return Outputs(f, np.vstack([G, ~np.isnan(phi[:, -ny:].T)]))

    def slopes(self, outputs: Outputs, width: int) -> Array:
        """∂[x⁺; ŷ]/∂x, (T, nx + ny, nx)."""
        ny = self.K.shape[1]
        M = np.array(self.function.slopes(Outputs(outputs.f, outputs.G[:-ny]), width))
        M[:, :-ny] -= (self.K * outputs.G[-ny:].T[:, None, :]) @ M[:, -ny:]
        return M
