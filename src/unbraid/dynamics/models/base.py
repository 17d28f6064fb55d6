"""What dynamic models of all kinds can do: simulate and predict, say where they leave what they have seen."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unbraid.data.checks import check_finite, counted, numbers
from unbraid.dynamics.models.feedback import Feedback
from unbraid.dynamics.models.function import ModelFunction
from unbraid.dynamics.models.initial import find_past
from unbraid.dynamics.models.linear import poles_of, response_of
from unbraid.dynamics.models.trajectory import follow
from unbraid.dynamics.record import signal
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.results.model import DecoupledModel
from unbraid.results.outcome import Member
from unbraid.results.worth.fresh import beyond_training


class SimulationStatus(Member):
    """How a simulation ended, and what to do about it."""

    FINISHED = "The simulation came to its end."
    LEFT_RANGE = (
        "The simulation came to its end, but left the range that was seen in training, where branches are continued: "
        "identify with a record of larger amplitude, or look at `continuation`."
    )
    DIVERGED = (
        "The simulation left all bounds and was ended: outputs are NaN from there on. The input is larger than what "
        'the model was identified with, or the model is unstable; try continuation="linear", or a constraint.'
    )

    @property
    def advice(self) -> str:
        """What it means and what to do, in a sentence."""
        return self.value


class DivergenceWarning(RuntimeWarning):
    """A simulation left all bounds."""


@dataclass(frozen=True, repr=False)
class Simulation:
    """A simulated course.

    Attributes
    ----------
    y
        (T, ny); NaN from where the simulation diverged on.
    status
        How it ended.
    outside
        (T,), where an input of a branch was outside the range seen in training.
    states
        (T, nx), the states of a state-space model, NaN likewise; else None.
    phi
        (·, mφ), what the function was asked at, moment by moment from the first that was simulated; None where that is
        not known.
    """

    y: Array
    status: SimulationStatus
    outside: BoolArray
    states: Array | None = None
    phi: Array | None = None

    @property
    def diverged_at(self) -> int | None:
        """The first sample that could not be simulated; None where all could."""
        if self.status is not SimulationStatus.DIVERGED:
            return None
        return int(np.flatnonzero(np.append(True, ~np.isnan(self.y[:, 0])))[-1])

    def __repr__(self) -> str:
        share = (
            f"{100 * self.outside.mean():.2g} % outside the range seen"
            if self.outside.any()
            else "inside the range seen"
        )
        where = "" if self.diverged_at is None else f" at sample {self.diverged_at}"
        return f"Simulation({counted(len(self.y), 'sample')}, {share}, {self.status.name}{where})"


class DynamicModel(ABC):
    """A model of a dynamic system: f(φ) = L φ + W1 g(W0 φ) + bias, some outputs of which come back as inputs.

    Attributes
    ----------
    nonlinearity
        W1 g(W0 φ) + bias, a `DecoupledModel` of φ: its branches are the curves.
    dt
        The sampling time.
    spread
        (q,), the standard deviation in training of what is fed back.
    noise
        (ny,), the error of the simulation in training.
    rest_input
        (nu,), the input of a system at rest.
    input_lags
        After how many moments inputs go into f: 0, and in a NARX model as many as it has.
    input_names, output_names
        Of u and y; None where they have none.
    """

    nonlinearity: DecoupledModel
    dt: float
    spread: Array
    noise: Array
    rest_input: Array
    input_lags: tuple[int, ...]
    input_names: tuple[str, ...] | None
    output_names: tuple[str, ...] | None

    @property
    @abstractmethod
    def feedback(self) -> Feedback:
        """Which outputs of f come back."""

    @property
    @abstractmethod
    def function(self) -> ModelFunction:
        """The function f."""

    @property
    @abstractmethod
    def nu(self) -> int:
        """How many inputs u there are."""

    @property
    def ny(self) -> int:
        """How many outputs y there are."""
        return self.feedback.observed

    @property
    def rank(self) -> int:
        """How many branches there are, r."""
        return self.nonlinearity.rank

    @property
    @abstractmethod
    def lead(self) -> int:
        """How many samples at the beginning of a record are needed before the first can be simulated."""

    @abstractmethod
    def from_outside(self, u: Array) -> Array:
        """The part v (T - lead, p) of φ that is not fed back, from u (T, nu)."""

    @abstractmethod
    def past_at_rest(self) -> Array:
        """The past (longest, q) of a system at rest."""

    @abstractmethod
    def past_guess(self, u: Array, y: Array) -> Array:
        """A first guess at the past (longest, q) from the first inputs and measured outputs, (some, nu), (some, ny)."""

    @property
    def numbers(self) -> int:
        """How many numbers the model has: matrices, constants, coefficients of branches."""
        model = self.nonlinearity
        coefficients = sum(getattr(branch, "coordinates", np.zeros(0)).size for branch in model.branches)
        return int(self.function.L.size + model.W0.size + model.W1.size + model.bias.size + coefficients)

    def run(self, u: npt.ArrayLike, y_start: npt.ArrayLike | None = None) -> Simulation:
        """Simulate, and say how that went: like `simulate`, which gives the outputs alone."""
        if y_start is not None:
            advice = "give the outputs before the first gap; `fit.error_on(record)` leaves gaps out"
            check_finite("y_start", self.outputs("y_start", y_start), advice)
        return self.begun(u, y_start)

    def begun(self, u: npt.ArrayLike, y_start: npt.ArrayLike | None) -> Simulation:
        """The simulation from rest or from first outputs, which may have gaps, as those of a record may."""
        inputs = self.inputs(u)
        lead, T = self.lead, len(inputs)
        if y_start is None:
            past, known = self.past_at_rest(), np.zeros((0, self.ny))
            inputs = np.concatenate([np.tile(self.rest_input, (lead, 1)), inputs])
        else:
            known = self.outputs("y_start", y_start)
            if len(known) > T:
                raise DataError(f"y_start has {len(known)} samples, more than u, which has {T}.")
            if len(known) < max(lead, 1):
                raise DataError(f"y_start must have {counted(max(lead, 1), 'sample')} at least, got {len(known)}.")
            past = find_past(self, inputs[: len(known)], known)
        return self.simulation_from(inputs, past, known[:lead])

    def simulation_from(self, inputs: Array, past: Array, first: Array) -> Simulation:
        """The simulation under u (lead + T, nu) from a past; outputs `first` (·, ny) stand before it."""
        done = follow(self.function, self.feedback, self.from_outside(inputs), past, self.spread)
        total = len(inputs) - self.lead
        y, phi = (extended(array, total, np.nan) for array in (done.f[:, -self.ny :], done.phi))
        outside = extended(outside_ranges(self.nonlinearity, done.phi), total, False)
        status = (
            SimulationStatus.DIVERGED
            if len(done.f) < total
            else SimulationStatus.LEFT_RANGE
            if outside.any()
            else SimulationStatus.FINISHED
        )
        before = np.zeros(len(first), dtype=bool)
        return Simulation(
            np.concatenate([first, y]), status, np.concatenate([before, outside]), self.states_of(phi), done.phi
        )

    @property
    def poles(self) -> npt.NDArray[np.complex128]:
        """The poles of the linear part, complex: of a state-space model the eigenvalues of A."""
        return poles_of(self.function.L, self.feedback)

    def frequency_response(self, frequency: npt.ArrayLike) -> npt.NDArray[np.complex128]:
        """The frequency response of the linear part at frequencies (F,) in 1 / the unit of dt: (F, ny, nu), complex."""
        given = numbers("frequency", np.atleast_1d(np.asarray(frequency)))
        if given.ndim != 1:
            raise DataError(f"frequency must be (F,), got shape {given.shape}.")
        check_finite("frequency", given, "give finite ones")
        return response_of(self.function.L, self.feedback, self.input_lags, given * self.dt)

    def states_of(self, phi: Array) -> Array | None:
        """The states among φ (T, mφ), where there are any."""
        return None

    def simulate(self, u: npt.ArrayLike, y_start: npt.ArrayLike | None = None) -> Array:
        """The outputs (T, ny) under inputs u (T, nu); (T,) where u was (T,) and there is one output.

        Parameters
        ----------
        u
            The inputs.
        y_start
            The first measured outputs (some, ny), all known, from which the initial state is found; None: at rest.

        Returns
        -------
        Array
            Outputs; NaN from where the simulation leaves all bounds, of which a `DivergenceWarning` tells. `run` says
            more.
        """
        simulation = self.run(u, y_start)
        if simulation.status is SimulationStatus.DIVERGED:
            warnings.warn(
                f"At sample {simulation.diverged_at}: {simulation.status.advice}", DivergenceWarning, stacklevel=2
            )
        return self.as_given(simulation.y, u)

    def predict(self, u: npt.ArrayLike, y: npt.ArrayLike) -> Array:
        """One step ahead: the outputs (T, ny) that are expected at each moment, given u up to it and y before it.

        Gaps in y, NaN, are bridged by what was predicted there. The system is at rest before the record, so that the
        first predictions are rough: all outputs until then are to tell its state.
        """
        inputs, outputs = self.inputs(u), self.outputs("y", y)
        if len(inputs) != len(outputs):
            raise DataError(f"u and y must be of the same length, got {len(inputs)} and {len(outputs)}.")
        return self.as_given(self.predicted(inputs, outputs), u)

    @abstractmethod
    def predicted(self, u: Array, y: Array) -> Array:
        """One step ahead, for arrays (T, nu) and (T, ny)."""

    def as_given(self, y: Array, u: npt.ArrayLike) -> Array:
        """Outputs (T, ny) as (T,), where u was given so and there is one of them."""
        return y[:, 0] if np.ndim(u) == 1 and self.ny == 1 else y

    def inputs(self, u: npt.ArrayLike) -> Array:
        """The inputs as an array (T, nu), or a sentence why not."""
        array = signal("u", u)
        if array.shape[1] != self.nu:
            raise DataError(f"u must be (T, {self.nu}), got shape {np.shape(u)}.")
        check_finite("u", array, "an input has to be known at every moment")
        return array

    def outputs(self, name: str, y: npt.ArrayLike) -> Array:
        """The outputs as an array (T, ny), or a sentence why not."""
        array = signal(name, y)
        if array.shape[1] != self.ny:
            raise DataError(f"{name} must be (T, {self.ny}), got shape {np.shape(y)}.")
        if np.isinf(array).any():
            raise DataError(f"{name} has entries that are infinite: put NaN where an output is not known.")
        return array

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a `.npz` file of just this name; read it with `ub.dynamics.load`."""
        from unbraid.dynamics.models.files import save_model

        save_model(self, path)

    def export(
        self, path: str | PathLike[str], *, name: str | None = None, dtype: Literal["float64", "float32"] = "float64"
    ) -> tuple[Path, ...]:
        """Write the model in another language, so that it runs without unbraid; the ending of `path` says which.

        Parameters
        ----------
        path
            ``.c`` (and ``.h`` beside it): C99 without dependencies, a function that goes one moment ahead. ``.m``: a
            function for MATLAB and Octave that simulates a record.
        name
            What functions are called; None: after the file.
        dtype
            The type of the numbers in C: "float64" or "float32".

        Returns
        -------
        tuple of Path
            The files that were written.
        """
        from unbraid.dynamics.export import export_dynamic

        return export_dynamic(self, path, name=name, dtype=dtype)


def extended(array: npt.NDArray[Any], length: int, value: float) -> npt.NDArray[Any]:
    """An array with so many rows, those that it does not have being a value."""
    missing = np.full((length - len(array), *array.shape[1:]), value, dtype=array.dtype)
    return np.concatenate([array, missing])


def outside_ranges(model: DecoupledModel, phi: Array) -> BoolArray:
    """Where (T,) an input of a branch at φ (T, mφ) is outside the range seen in training."""
    return beyond_training(model, phi) if model.rank else np.zeros(len(phi), dtype=bool)
