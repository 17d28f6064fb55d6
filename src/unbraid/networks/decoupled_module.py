"""A decoupled model as a `torch.nn.Module`: f(x) = W1 g(W0 x) + bias with parameters that can be trained."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from unbraid.data.checks import read_only
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array
from unbraid.networks.branches import coefficients_of, with_coefficients
from unbraid.networks.closed_forms import evaluate_formula
from unbraid.networks.piecewise import PiecewiseBranches
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.model import DecoupledModel


class DecoupledModule(torch.nn.Module):  # type: ignore[misc]
    """f(x) = W1 g(W0 x) + bias as a layer; `ub.networks.module` makes it, `ub.networks.model` makes a model of it.

    Attributes
    ----------
    W0, W1, bias
        (r, m), (n, r), (n,).
    coefficients
        (K,), what is trained of the branches, one after another: coordinates in their bases, free parameters of
        formulas.
    """

    def __init__(self, model: DecoupledModel, trainable: Collection[str]) -> None:
        super().__init__()
        own = [coefficients_of(branch, j) for j, branch in enumerate(model.branches)]
        self._model, self._ends = model, np.cumsum([0, *map(len, own)]).tolist()
        start = np.concatenate(own)
        for name, values in (("W0", model.W0), ("W1", model.W1), ("bias", model.bias), ("coefficients", start)):
            tensor = torch.tensor(values)
            if name in trainable:
                self.register_parameter(name, torch.nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)
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

    def forward(self, x: Any) -> Any:
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


def kept(name: str, before: Array, tensor: Any) -> Array:
    """The numbers of a tensor; those that have not been trained with all the digits that they had before."""
    now = tensor.detach().cpu()
    same = (torch.tensor(before).to(now.dtype) == now).numpy()
    after = np.where(same, before, now.to(torch.float64).numpy())
    if not np.isfinite(after).all():
        raise DataError(f"{name} of the module has entries that are NaN or infinite: train with smaller steps.")
    return after
