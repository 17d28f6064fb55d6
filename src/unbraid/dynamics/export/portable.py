r"""What every exported dynamic model is made of, whatever language it goes to: a function of a state and an input.

    f = L φ + W1 g(W0 φ) + bias,    φ some of x and u,    y the last entries of f,    x⁺ the first of f, and a shifted x

The state x has what is fed back, z_{t-1}, z_{t-2}, … up to the longest lag, and then u_{t-1}, u_{t-2}, … likewise. Of a
state-space model that is z_{t-1} alone, which is its own state; of a NARX model, outputs and inputs of some moments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unbraid.data.checks import counted
from unbraid.dynamics.models.base import DynamicModel
from unbraid.dynamics.models.narx import NarxModel
from unbraid.export.portable import Portable, as_portable
from unbraid.kernels.arrays import Array
from unbraid.version import __version__


@dataclass(frozen=True, eq=False)
class PortableRecursion:
    """A dynamic model with functions g that any language can say.

    Attributes
    ----------
    function
        W1 g(W0 φ) + bias.
    L
        (n, mφ).
    rest
        (S,), the state x of a system at rest.
    fed
        q: the first so many entries of f are fed back.
    fed_lags, input_lags
        After how many moments entries of f and of u are in φ, in this order; 0 is the moment itself, for u.
    dt
        The sampling time.
    input_names, output_names
        nu and ny texts, a stranger's as likely as not: "u1", "u2", … and "y1", "y2", … where there are none.
    states_alone
        Whether x is the state of a state-space model, and not lagged signals.
    """

    function: Portable
    L: Array
    rest: Array
    fed: int
    fed_lags: tuple[int, ...]
    input_lags: tuple[int, ...]
    dt: float
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    states_alone: bool

    @property
    def nu(self) -> int:
        """How many inputs there are."""
        return len(self.input_names)

    @property
    def ny(self) -> int:
        """How many outputs there are."""
        return len(self.output_names)

    @property
    def states(self) -> int:
        """How many entries x has, S."""
        return len(self.rest)

    @property
    def kept_outputs(self) -> int:
        """How many entries of x are fed back; those behind them are inputs of earlier moments."""
        return self.fed * max(self.fed_lags)

    @property
    def places(self) -> tuple[int, ...]:
        """Where in [x; u], from 0, the entries of φ are."""
        fed = [(lag - 1) * self.fed + i for lag in self.fed_lags for i in range(self.fed)]
        begins = [self.kept_outputs + (lag - 1) * self.nu if lag else self.states for lag in self.input_lags]
        return (*fed, *(begin + i for begin in begins for i in range(self.nu)))

    def about(self) -> list[str]:
        """What the model computes, and what wrote it: the first lines of every file."""
        functions = counted(self.function.rank, "univariate function") + " g"
        sizes = f"{counted(self.nu, 'input')} u, {functions}, {counted(self.ny, 'output')} y"
        if self.states_alone:
            kind = f"A state-space model: {counted(self.states, 'state')} x, {sizes}."
            formula = "[x of the next moment; y] = L [x; u] + W1 g(W0 [x; u]) + bias"
        else:
            kind = f"A NARX model: {sizes}."
            formula = (
                f"y = L phi + W1 g(W0 phi) + bias, phi = [{lagged('y', self.fed_lags)}, {lagged('u', self.input_lags)}]"
            )
        return [kind, f"{formula}, every {self.dt:.6g}.", f"Written by unbraid {__version__}."]

    def state_text(self) -> str:
        """What x has."""
        if self.states_alone:
            return "x is its state"
        earlier = max(self.input_lags)
        inputs = f", then u of the last {earlier}" if earlier else ""
        return f"x has y of the last {counted(max(self.fed_lags), 'moment')}{inputs}, the latest first"


def lagged(name: str, lags: tuple[int, ...]) -> str:
    """A signal at some moments before t, such as "y(t-1), y(t-2)"."""
    return ", ".join(f"{name}(t-{lag})" if lag else f"{name}(t)" for lag in lags)


def as_recursion(model: DynamicModel) -> PortableRecursion:
    """A dynamic model with all that is particular to unbraid taken off; refused where a branch cannot be exported."""
    input_lags = model.input_lags if isinstance(model, NarxModel) else (0,)
    rest = np.concatenate([model.past_at_rest().ravel(), np.tile(model.rest_input, max(input_lags))])
    return PortableRecursion(
        function=as_portable(model.nonlinearity),
        L=model.function.L,
        rest=rest,
        fed=model.feedback.fed,
        fed_lags=model.feedback.lags,
        input_lags=input_lags,
        dt=model.dt,
        input_names=model.input_names or tuple(f"u{k + 1}" for k in range(model.nu)),
        output_names=model.output_names or tuple(f"y{i + 1}" for i in range(model.ny)),
        states_alone=not isinstance(model, NarxModel),
    )
