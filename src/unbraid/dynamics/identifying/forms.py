r"""The two forms of dynamic models, and the units they are identified in.

A form says how records become courses (`models.feedback`), what a solver's model means in the user's units, and which
class it becomes. Signals are centred and divided by their standard deviations, so that with φ = (φ_user - c) / s

    f_user = f_c + f_s (L φ + W1 g(W0 φ) + bias).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unbraid.dynamics.models.base import DynamicModel
from unbraid.dynamics.models.feedback import Course, Feedback
from unbraid.dynamics.models.narx import NarxModel, lagged
from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.dynamics.record import Record, known_means, known_spread, moving_spread
from unbraid.kernels.arrays import Array
from unbraid.results.model import DecoupledModel


@dataclass(frozen=True)
class Units:
    """Centres and scales of u and y, (nu,) and (ny,) each.

    The scale of an input that does not vary is infinite: it is zero while a model is identified.
    """

    u_center: Array
    u_scale: Array
    y_center: Array
    y_scale: Array

    @classmethod
    def of(cls, records: Sequence[Record]) -> Units:
        """The mean and the standard deviation over all records, of what is known."""
        u = np.concatenate([record.u for record in records])
        y = np.concatenate([record.y[record.burn_in :] for record in records])
        return cls(u.mean(axis=0), moving_spread(u, np.inf), known_means(y), known_spread(y, 1.0))


class Scales(NamedTuple):
    """Centre and scale of φ (mφ,), and of f (n,)."""

    center: Array
    scale: Array
    f_center: Array
    f_scale: Array


@dataclass(frozen=True)
class Form(ABC):
    """A form of dynamic models, for so many inputs and outputs."""

    nu: int
    ny: int

    @property
    @abstractmethod
    def feedback(self) -> Feedback:
        """Which outputs of f come back."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many entries φ has."""

    @abstractmethod
    def course(self, units: Units, record: Record, some: slice = slice(None)) -> Course:
        """A stretch of a record as a course."""

    @abstractmethod
    def scales(self, units: Units) -> Scales:
        """The units of φ and f."""

    @abstractmethod
    def model(self, L: Array, nonlinearity: DecoupledModel, spread: Array, signals: dict[str, Any]) -> DynamicModel:
        """The model of these parts, in the user's units; `signals` are names and sampling time."""

    @abstractmethod
    def input_names(self, inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
        """What the entries of φ are called."""

    @abstractmethod
    def output_names(self, outputs: Sequence[str]) -> list[str]:
        """What the entries of f are called."""


def balanced(units: Units, record: Record, some: slice) -> tuple[Array, Array, Array]:
    """A stretch of u and y in balanced units, 0 where y is not known, and the weights (T, ny) of errors."""
    u, y = (record.u - units.u_center) / units.u_scale, (record.y - units.y_center) / units.y_scale
    weight = np.isfinite(y).astype(np.float64)
    weight[: record.burn_in] = 0.0
    return u[some], y[some], weight[some]


@dataclass(frozen=True)
class StateSpaceForm(Form):
    """x⁺ = A x + B u + …, y = C x + D u + …, with so many states."""

    order: int

    @property
    def feedback(self) -> Feedback:
        """The states come back after one moment, and the outputs do not."""
        return Feedback(self.order, (1,), self.ny, self.order + self.ny)

    @property
    def width(self) -> int:
        """States and inputs."""
        return self.order + self.nu

    def course(self, units: Units, record: Record, some: slice = slice(None)) -> Course:
        """A stretch of a record as it is, from a state of zero."""
        u, y, weight = balanced(units, record, some)
        return Course(u, np.nan_to_num(y), weight, np.zeros((1, self.order)))

    def scales(self, units: Units) -> Scales:
        """States have no units of their own."""
        zero, one = np.zeros(self.order), np.ones(self.order)
        return Scales(
            np.concatenate([zero, units.u_center]),
            np.concatenate([one, units.u_scale]),
            np.concatenate([zero, units.y_center]),
            np.concatenate([one, units.y_scale]),
        )

    def model(self, L: Array, nonlinearity: DecoupledModel, spread: Array, signals: dict[str, Any]) -> DynamicModel:
        """A, B, C and D are the blocks of L."""
        nx = self.order
        return StateSpaceModel(
            L[:nx, :nx], L[:nx, nx:], L[nx:, :nx], L[nx:, nx:], nonlinearity, spread=spread, **signals
        )

    def input_names(self, inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
        """'x1', 'x2' and so on, and the inputs."""
        return [*(f"x{i + 1}" for i in range(self.order)), *inputs]

    def output_names(self, outputs: Sequence[str]) -> list[str]:
        """'x1 next', 'x2 next' and so on, and the outputs."""
        return [*(f"x{i + 1} next" for i in range(self.order)), *outputs]


@dataclass(frozen=True)
class NarxForm(Form):
    """y_t = f(y of some moments before; u of some moments)."""

    input_lags: tuple[int, ...]
    output_lags: tuple[int, ...]

    @property
    def lead(self) -> int:
        """Samples before the first that can be simulated."""
        return max(*self.input_lags, *self.output_lags)

    @property
    def feedback(self) -> Feedback:
        """All outputs come back, after the output lags."""
        return Feedback(self.ny, self.output_lags, self.ny, self.ny)

    @property
    def width(self) -> int:
        """Outputs and inputs, of every lag."""
        return self.ny * len(self.output_lags) + self.nu * len(self.input_lags)

    def course(self, units: Units, record: Record, some: slice = slice(None)) -> Course:
        """A stretch of a record, the first outputs of which are the past."""
        u, y, weight = balanced(units, record, some)
        y = np.nan_to_num(y)
        past = y[: self.lead][-self.feedback.longest :]
        return Course(lagged(u, self.input_lags, self.lead), y[self.lead :], weight[self.lead :], past)

    def scales(self, units: Units) -> Scales:
        """Those of the signals, lag by lag."""

        def tiled(y: Array, u: Array) -> Array:
            return np.concatenate([np.tile(y, len(self.output_lags)), np.tile(u, len(self.input_lags))])

        return Scales(
            tiled(units.y_center, units.u_center), tiled(units.y_scale, units.u_scale), units.y_center, units.y_scale
        )

    def model(self, L: Array, nonlinearity: DecoupledModel, spread: Array, signals: dict[str, Any]) -> DynamicModel:
        """Its lags come with it."""
        lags: dict[str, Any] = {"input_lags": self.input_lags, "output_lags": self.output_lags}
        return NarxModel(L, nonlinearity, nu=self.nu, spread=spread, **lags, **signals)

    def input_names(self, inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
        """'y(t-1)', 'u(t)' and so on."""
        past = [f"{name}(t-{lag})" for lag in self.output_lags for name in outputs]
        return past + [f"{name}(t-{lag})" if lag else f"{name}(t)" for lag in self.input_lags for name in inputs]

    def output_names(self, outputs: Sequence[str]) -> list[str]:
        """The outputs themselves."""
        return list(outputs)
