"""State-space models: x⁺ = A x + B u + W_x g(W0 [x; u]), y = C x + D u + W_y g(·), with constants."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from unbraid.data.checks import as_names, check_finite, counted, numbers, read_only
from unbraid.dynamics.models.base import DynamicModel
from unbraid.dynamics.models.feedback import Feedback
from unbraid.dynamics.models.function import ModelFunction, ObserverFunction
from unbraid.dynamics.models.initial import FIRST, equilibrium, find_past
from unbraid.dynamics.models.trajectory import follow
from unbraid.dynamics.record import sampling_time
from unbraid.errors import DataError, shown
from unbraid.kernels.arrays import Array
from unbraid.results.model import DecoupledModel


class StateSpaceModel(DynamicModel):
    """x⁺ = A x + B u + f_x(x, u), y = C x + D u + f_y(x, u), where [f_x; f_y] = W1 g(W0 [x; u]) + bias is decoupled.

    Parameters
    ----------
    A, B, C, D
        (nx, nx), (nx, nu), (ny, nx), (ny, nu).
    nonlinearity
        A `DecoupledModel` of [x; u] with nx + ny outputs: W_x and W_y stacked.
    dt
        The sampling time.
    K
        (nx, ny), by which a predictor corrects its state, x⁺ = … + K (y - ŷ); zero if None.
    spread
        (nx,), the standard deviation of the states in training; one if None.
    noise
        (ny,), the error of the simulation in training; zero if None.
    rest_input
        (nu,), the input of a system at rest; zero if None.
    rest
        (nx,), its state then; if None, the equilibrium under `rest_input`, or zero where none is found.
    input_names, output_names
        nu and ny names, or None.
    """

    input_lags = (0,)

    def __init__(
        self,
        A: npt.ArrayLike,
        B: npt.ArrayLike,
        C: npt.ArrayLike,
        D: npt.ArrayLike,
        nonlinearity: DecoupledModel,
        *,
        dt: float = 1.0,
        K: npt.ArrayLike | None = None,
        spread: npt.ArrayLike | None = None,
        noise: npt.ArrayLike | None = None,
        rest_input: npt.ArrayLike | None = None,
        rest: npt.ArrayLike | None = None,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
    ) -> None:
        self.A, self.B, self.C, self.D = (matrix(name, one) for name, one in zip("ABCD", (A, B, C, D), strict=True))
        nx, nu, ny = len(self.A), self.B.shape[1], len(self.C)
        for name, shape in (("A", (nx, nx)), ("B", (nx, nu)), ("C", (ny, nx)), ("D", (ny, nu))):
            if getattr(self, name).shape != shape:
                raise DataError(f"{name} must be {shape}, got shape {getattr(self, name).shape}.")
        if not isinstance(nonlinearity, DecoupledModel) or (nonlinearity.m, nonlinearity.n) != (nx + nu, nx + ny):
            raise DataError(
                f"nonlinearity must be a DecoupledModel of [x; u] with {nx + nu} inputs and {nx + ny} outputs, x⁺ and "
                f"y, got {shown(nonlinearity)}."
            )
        self.nonlinearity, self.dt = nonlinearity, sampling_time(dt, None, 0)
        self.K = read_only(np.zeros((nx, ny)) if K is None else matrix("K", K))
        if self.K.shape != (nx, ny):
            raise DataError(f"K must be {(nx, ny)}, got shape {self.K.shape}.")
        self.spread = positive("spread", spread, np.ones(nx))
        self.noise = positive("noise", noise, np.zeros(ny), zero=True)
        self.rest_input = vector("rest_input", rest_input, np.zeros(nu))
        self.input_names = as_names("input_names", input_names, None, nu)
        self.output_names = as_names("output_names", output_names, None, ny)
        if rest is None:
            rest = equilibrium(self.function, self.feedback, self.rest_input, np.zeros(nx), self.spread)
        self.rest = vector("rest", rest, np.zeros(nx))

    def changed(self, **parts: Any) -> StateSpaceModel:
        """The same model with other ones of its parts, by the names of the constructor."""
        kept = {name: getattr(self, name) for name in PARTS}
        return StateSpaceModel(**{**kept, **parts})

    @property
    def order(self) -> int:
        """How many states there are, nx."""
        return len(self.A)

    @property
    def nu(self) -> int:
        """How many inputs there are."""
        return int(self.B.shape[1])

    @property
    def feedback(self) -> Feedback:
        """The states come back after one moment."""
        nx, ny = len(self.A), len(self.C)
        return Feedback(nx, (1,), ny, nx + ny)

    @property
    def function(self) -> ModelFunction:
        """[x⁺; y] as a function of [x; u]."""
        return ModelFunction(np.block([[self.A, self.B], [self.C, self.D]]), self.nonlinearity)

    @property
    def lead(self) -> int:
        """None: the first sample can be simulated."""
        return 0

    def from_outside(self, u: Array) -> Array:
        """The inputs themselves."""
        return u

    def past_at_rest(self) -> Array:
        """The state at rest."""
        return self.rest[None]

    def past_guess(self, u: Array, y: Array) -> Array:
        """The equilibrium under the mean of the inputs, where there is one not too far out; else the state at rest."""
        found = equilibrium(self.function, self.feedback, u.mean(axis=0), self.rest, self.spread)
        near = found is not None and np.all(np.abs(found - self.rest) <= FAR * self.spread)
        return (found if near and found is not None else self.rest)[None]

    def states_of(self, phi: Array) -> Array:
        """The states x (T, nx)."""
        return phi[:, : self.order]

    def step(self, x: npt.ArrayLike, u: npt.ArrayLike) -> tuple[Array, Array]:
        """The next state and the output, x⁺ and y, at a state x (nx,) and an input u (nu,)."""
        f = self.function.values(self.point(x, u)[None]).f[0]
        return f[: self.order], f[self.order :]

    def point(self, x: npt.ArrayLike | None, u: npt.ArrayLike | None) -> Array:
        """The φ = [x; u] of a state (nx,) and an input (nu,), those at rest if None; or a sentence why not."""
        return np.concatenate([vector("x", x, self.rest), vector("u", u, self.rest_input)])

    def predicted(self, u: Array, y: Array) -> Array:
        """One step ahead, with the state corrected by K (y - ŷ).

        It begins at rest. After 1, 2, 4, … and `FIRST` outputs all that are known by then set the initial state anew.
        """
        observer, result = ObserverFunction(self.function, self.K), np.full_like(y, np.nan)
        for begin, end in pairwise((0, *(2**k for k in range(FIRST.bit_length())), FIRST, max(len(u), FIRST + 1))):
            if begin < len(u):
                past = find_past(self, u[:begin], y[:begin]) if begin else self.past_at_rest()
                signals = np.concatenate([u, y], axis=1)[:end]
                found = follow(observer, self.feedback, signals, past, self.spread).f[begin:, -self.ny :]
                result[begin : begin + len(found)] = found
        return result

    def linearised(self, x: npt.ArrayLike | None = None, u: npt.ArrayLike | None = None) -> tuple[Array, ...]:
        """A, B, C, D of small changes about a state and an input, those at rest if None."""
        function, nx = self.function, self.order
        M = function.slopes(function.values(self.point(x, u)[None]), nx + self.nu)[0]
        return M[:nx, :nx], M[:nx, nx:], M[nx:, :nx], M[nx:, nx:]

    def __repr__(self) -> str:
        branches = counted(self.rank, "branch", "branches")
        return (
            f"StateSpaceModel(order={self.order}, {counted(self.nu, 'input')}, {counted(self.ny, 'output')}, "
            f"{branches}, {self.numbers} numbers)"
        )


PARTS = (
    "A",
    "B",
    "C",
    "D",
    "nonlinearity",
    "dt",
    "K",
    "spread",
    "noise",
    "rest_input",
    "rest",
    "input_names",
    "output_names",
)
"""What a model is made of."""
FAR = 5.0
"""Standard deviations of the states up to which an equilibrium is a sensible guess."""


def matrix(name: str, given: npt.ArrayLike) -> Array:
    """A matrix of finite numbers, read-only."""
    array = np.atleast_2d(numbers(name, given))
    if array.ndim != 2:
        raise DataError(f"{name} must be a matrix, got shape {np.shape(given)}.")
    check_finite(name, array, "repair it")
    return read_only(array)


def vector(name: str, given: npt.ArrayLike | None, default: Array) -> Array:
    """A vector of finite numbers, as long as its default, which it is where None was given; read-only."""
    array = default if given is None else numbers(name, np.atleast_1d(np.asarray(given)))
    if array.shape != default.shape:
        raise DataError(f"{name} must be {default.shape}, got shape {array.shape}.")
    check_finite(name, array, "repair it")
    return read_only(array)


def positive(name: str, given: npt.ArrayLike | None, default: Array, *, zero: bool = False) -> Array:
    """A vector likewise, of numbers above 0, or at least 0."""
    array = vector(name, given, default)
    if not np.all(array >= 0.0 if zero else array > 0.0):
        raise DataError(f"{name} must be {'at least' if zero else 'above'} 0, got {array.min():.3g} among others.")
    return array
