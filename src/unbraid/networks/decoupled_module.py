"""A decoupled model as a `torch.nn.Module`: f(x) = W1 g(W0 x) + bias with parameters that can be trained."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from unbraid.data.checks import read_only
from unbraid.errors import DataError, FileError
from unbraid.kernels.arrays import Array
from unbraid.networks.branches import coefficients_of, with_coefficients
from unbraid.networks.closed_forms import evaluate_formula
from unbraid.networks.compressing.layouts import Layout
from unbraid.networks.conversion import TRAINABLE
from unbraid.networks.piecewise import PiecewiseBranches
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.files.json_text import json_bytes, read_json
from unbraid.results.files.reading import read_model
from unbraid.results.model import DecoupledModel


class DecoupledModule(torch.nn.Module):  # type: ignore[misc]
    """f(x) = W1 g(W0 x) + bias as a layer; `ub.networks.module` makes it, `ub.networks.model` makes a model of it.

    Its `state_dict` says all that it is: beside the numbers, the model that it was made from (`ub.networks.restore`).

    Attributes
    ----------
    W0, W1, bias
        (r, m), (n, r), (n,).
    coefficients
        (K,), what is trained of the branches, one after another: coordinates in their bases, free parameters of
        formulas.
    layout
        How samples lie in what it is given in place of a part of a network; None: along the last axis.
    stands_for
        The names of the modules of a `Sequential` that it is in place of; none: of one module, or of a whole network.
    """

    def __init__(
        self,
        model: DecoupledModel,
        trainable: Collection[str],
        layout: Layout | None = None,
        stands_for: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.layout, self.stands_for = layout, tuple(stands_for)
        start = self.tabulate(model)
        for name, values in (("W0", model.W0), ("W1", model.W1), ("bias", model.bias), ("coefficients", start)):
            tensor = torch.tensor(values)
            if name in trainable:
                self.register_parameter(name, torch.nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)

    def tabulate(self, model: DecoupledModel) -> Array:
        """Take over what of a model is never trained; its coefficients (K,)."""
        own = [coefficients_of(branch, j) for j, branch in enumerate(model.branches)]
        self._model, self._ends = model, np.cumsum([0, *map(len, own)]).tolist()
        start = np.concatenate(own)
        self.register_buffer("start", torch.tensor(start), persistent=False)
        self._formulas = {j: one.formula for j, one in enumerate(model.branches) if isinstance(one, FormulaBranch)}
        made_of_pieces = [j for j in range(model.rank) if j not in self._formulas]
        order = np.argsort([*made_of_pieces, *self._formulas])
        self.register_buffer("columns", torch.tensor(made_of_pieces, dtype=torch.int64), persistent=False)
        self.register_buffer("order", torch.tensor(order), persistent=False)
        self.pieces: Any = None
        if made_of_pieces:
            first = [self._ends[j] for j in made_of_pieces]
            self.pieces = PiecewiseBranches([model.branches[j] for j in made_of_pieces], first)
        return start

    def get_extra_state(self) -> torch.Tensor:
        """All but the numbers that a `state_dict` has anyway: a line of JSON, and the model as in a file, in bytes."""
        layout = None if self.layout is None else asdict(self.layout)
        line = json.dumps({"layout": layout, "stands_for": self.stands_for})
        return torch.frombuffer(bytearray(f"{line}\n".encode() + json_bytes(self._model)), dtype=torch.uint8)

    def set_extra_state(self, state: torch.Tensor) -> None:
        """Become what has given this state, whose numbers are there already."""
        if torch.equal(state.cpu(), self.get_extra_state()):
            return
        other = from_extra_state(state)
        sizes = [(one.W0.shape, one.W1.shape, one.coefficients.shape) for one in (self, other)]
        if sizes[0] == sizes[1]:  # else torch says what differs
            self.layout, self.stands_for = other.layout, other.stands_for
            self.tabulate(other._model)
            self.to(device=self.W0.device, dtype=self.W0.dtype)

    def forward(self, x: Any) -> Any:
        """The values at x (..., m): (..., n); in place of a part, what the part gives."""
        return self.of_samples(x) if self.layout is None else self.layout.through(self.of_samples, x)

    def of_samples(self, x: Any) -> Any:
        """The values at x (..., m): (..., n)."""
        return self.branches(x @ self.W0.T) @ self.W1.T + self.bias

    def branches(self, u: Any) -> Any:
        """The values of the branches at their inputs u (..., r): (..., r)."""
        if not self._formulas:
            return self.pieces(u, self.coefficients - self.start)
        values = [] if self.pieces is None else [self.pieces(u[..., self.columns], self.coefficients - self.start)]
        for j, formula in self._formulas.items():
            free = self.coefficients[self._ends[j] : self._ends[j + 1]]
            values.append(evaluate_formula(formula, u[..., j : j + 1], free))
        return torch.cat(values, -1)[..., self.order]

    def as_model(self) -> DecoupledModel:
        """The model that the module is now."""
        model = self._model
        parts = {name: kept(name, getattr(model, name), getattr(self, name)) for name in ("W0", "W1", "bias")}
        start = np.concatenate([coefficients_of(branch, j) for j, branch in enumerate(model.branches)])
        coefficients = kept("coefficients", start, self.coefficients)
        own = [coefficients[begin:end] for begin, end in pairwise(self._ends)]
        branches = [with_coefficients(branch, read_only(one)) for branch, one in zip(model.branches, own, strict=True)]
        return model.changed(**parts, branches=branches)

    def extra_repr(self) -> str:
        """What it is made of."""
        return f"m={self._model.m}, r={self._model.rank}, n={self._model.n}"


def from_extra_state(state: torch.Tensor) -> DecoupledModule:
    """A module from its `get_extra_state`: what it was made from."""
    line, _, model = bytes(state.cpu().numpy()).partition(b"\n")
    try:
        about = json.loads(line)
        layout = about["layout"]
        if layout is not None:
            layout = Layout(layout["places"], tuple(layout["entering"]), tuple(layout["leaving"]))
        stands_for = [str(name) for name in about["stands_for"]]
    except (ValueError, KeyError, TypeError) as error:
        raise FileError("The state is none of a module of ub.networks, or is damaged.") from error
    return DecoupledModule(read_model(read_json("The state", model)), TRAINABLE, layout, stands_for)


def kept(name: str, before: Array, tensor: Any) -> Array:
    """The numbers of a tensor; those that have not been trained with all the digits that they had before."""
    now = tensor.detach().cpu()
    same = (torch.tensor(before).to(now.dtype) == now).numpy()
    after = np.where(same, before, now.to(torch.float64).numpy())
    if not np.isfinite(after).all():
        raise DataError(f"{name} of the module has entries that are NaN or infinite: train with smaller steps.")
    return after
