"""NARX models: y_t = f(y_{t-1}, …, u_t, u_{t-1}, …), with f a line and a decoupled function."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np
import numpy.typing as npt

from unbraid.data.checks import as_names, counted
from unbraid.dynamics.models.base import DynamicModel
from unbraid.dynamics.models.feedback import Feedback
from unbraid.dynamics.models.function import ModelFunction
from unbraid.dynamics.models.initial import equilibrium
from unbraid.dynamics.models.state_space import matrix, positive, vector
from unbraid.dynamics.record import known_means, sampling_time
from unbraid.errors import DataError, SettingError, check_whole, shown
from unbraid.kernels.arrays import Array
from unbraid.results.model import DecoupledModel


class NarxModel(DynamicModel):
    """y_t = L φ_t + W1 g(W0 φ_t) + bias, φ_t = [y_{t - a} for a in output_lags; u_{t - b} for b in input_lags].

    Parameters
    ----------
    L
        (ny, mφ), the linear part.
    nonlinearity
        A `DecoupledModel` of φ with ny outputs.
    input_lags, output_lags
        Which moments before t are in φ: 0 is t itself, for inputs.
    nu
        How many inputs u there are.
    dt, spread, noise, rest_input, input_names, output_names
        As of a state-space model; `spread` is that of the outputs.
    """

    def __init__(
        self,
        L: npt.ArrayLike,
        nonlinearity: DecoupledModel,
        *,
        input_lags: Sequence[int],
        output_lags: Sequence[int],
        nu: int = 1,
        dt: float = 1.0,
        spread: npt.ArrayLike | None = None,
        noise: npt.ArrayLike | None = None,
        rest_input: npt.ArrayLike | None = None,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
    ) -> None:
        check_whole("nu", nu, 1)
        self.L = matrix("L", L)
        self.input_lags = as_lags("input_lags", input_lags, 0)
        self.output_lags = as_lags("output_lags", output_lags, 1)
        ny, width = len(self.L), len(self.L) * len(self.output_lags) + nu * len(self.input_lags)
        if self.L.shape[1] != width:
            shape = self.L.shape
            raise DataError(f"L must be ({ny}, {width}) for these lags and {counted(nu, 'input')}, got shape {shape}.")
        if not isinstance(nonlinearity, DecoupledModel) or (nonlinearity.m, nonlinearity.n) != (width, ny):
            raise DataError(
                f"nonlinearity must be a DecoupledModel with {counted(width, 'input')}, the entries of φ, and "
                f"{counted(ny, 'output')}, got {shown(nonlinearity)}."
            )
        self.nonlinearity, self.dt, self._nu = nonlinearity, sampling_time(dt, None, 0), int(nu)
        self.spread = positive("spread", spread, np.ones(ny))
        self.noise = positive("noise", noise, np.zeros(ny), zero=True)
        self.rest_input = vector("rest_input", rest_input, np.zeros(nu))
        self.input_names = as_names("input_names", input_names, None, nu)
        self.output_names = as_names("output_names", output_names, None, ny)

    @property
    def nu(self) -> int:
        """How many inputs there are."""
        return self._nu

    @property
    def feedback(self) -> Feedback:
        """All outputs come back, after the output lags."""
        ny = len(self.L)
        return Feedback(ny, self.output_lags, ny, ny)

    @property
    def function(self) -> ModelFunction:
        """y_t as a function of φ_t."""
        return ModelFunction(self.L, self.nonlinearity)

    @property
    def lead(self) -> int:
        """The longest lag: so many samples come before the first that can be simulated."""
        return max(*self.output_lags, *self.input_lags)

    def from_outside(self, u: Array) -> Array:
        """The inputs of several moments, (T - lead, nu len(input_lags))."""
        return lagged(u, self.input_lags, self.lead)

    def past_at_rest(self) -> Array:
        """The equilibrium under the input at rest, or zero where there is none."""
        v = np.tile(self.rest_input, len(self.input_lags))
        found = equilibrium(self.function, self.feedback, v, np.zeros(len(self.L)), self.spread)
        return np.tile(np.zeros(len(self.L)) if found is None else found, (self.feedback.longest, 1))

    def past_guess(self, u: Array, y: Array) -> Array:
        """The outputs just before the first that is simulated; where one is not known, the one before, or the mean."""
        some = y[: self.lead].copy()
        for t in range(len(some)):
            some[t] = np.where(np.isnan(some[t]), some[t - 1] if t else np.nan_to_num(known_means(y)), some[t])
        return some[-self.feedback.longest :]

    @np.errstate(all="ignore")
    def predicted(self, u: Array, y: Array) -> Array:
        """One step ahead: f of measured outputs, of predicted ones in gaps, and of those at rest before."""
        lead = self.lead
        v = self.from_outside(np.concatenate([np.tile(self.rest_input, (lead, 1)), u]))
        filled = np.concatenate([np.tile(self.past_at_rest()[-1], (lead, 1)), y])
        result = np.full_like(filled, np.nan)
        ready = ~np.isnan(lagged(filled, self.output_lags, lead)).any(axis=1)
        phi = np.concatenate([lagged(filled, self.output_lags, lead), v], axis=1)
        result[lead:][ready] = self.function.values(phi[ready]).f
        for t in np.flatnonzero(~ready) + lead:  # behind a gap, what was predicted stands for what was measured
            before = t - np.array(self.output_lags)
            filled[before] = np.where(np.isnan(filled[before]), result[before], filled[before])
            past = filled[before].ravel()
            result[t] = self.function.values(np.concatenate([past, v[t - lead]])[None]).f[0]
        return result[lead:]

    def __repr__(self) -> str:
        branches = counted(self.rank, "branch", "branches")
        return (
            f"NarxModel(input_lags={self.input_lags}, output_lags={self.output_lags}, {counted(self.nu, 'input')}, "
            f"{counted(self.ny, 'output')}, {branches}, {self.numbers} numbers)"
        )


def as_lags(name: str, given: Sequence[int], least: int) -> tuple[int, ...]:
    """Lags as increasing whole numbers, or a sentence why they are not."""
    lags = tuple(given) if isinstance(given, Sequence | np.ndarray) else ()
    whole = all(isinstance(lag, Integral) and not isinstance(lag, bool) for lag in lags)
    if not lags or not whole or min(lags) < least or len(set(lags)) < len(lags):
        raise SettingError(
            f"{name} must be whole numbers of at least {least}, each once, such as (1, 2), got {shown(given)}."
        )
    return tuple(sorted(map(int, lags)))


def lagged(signal: Array, lags: Sequence[int], lead: int) -> Array:
    """Rows [s_{t - lag} for each lag] for t = lead … T - 1, of a signal (T, k): (T - lead, k len(lags))."""
    T = max(len(signal), lead)
    return np.concatenate([signal[lead - lag : T - lag] for lag in lags], axis=1)
