"""What every exported model is made of, whatever language it goes to: two matrices, a bias, and r functions.

A function is a piecewise polynomial on the whole line (`kernels.pieces`), its continuations being pieces like others,
or a closed formula (`results.branches`).
"""

from __future__ import annotations

from dataclasses import dataclass

from unbraid.errors import SettingError
from unbraid.kernels.arrays import Array
from unbraid.kernels.pieces import Pieces
from unbraid.results.branch import Branch
from unbraid.results.branches.forms import Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.model import DecoupledModel

Univariate = Pieces | Formula
"""What a branch is outside of unbraid."""


@dataclass(frozen=True, eq=False)
class Portable:
    """f(x) = W1 g(W0 x) + bias with functions g that any language can say.

    Attributes
    ----------
    W0, W1, bias
        (r, m), (n, r), (n,).
    functions
        The r functions, without limits to their inputs.
    domains
        The ranges of inputs seen in training.
    input_names, output_names
        m and n texts, a stranger's as likely as not: "x1", "x2", … and "f1", "f2", … where there are none.
    """

    W0: Array
    W1: Array
    bias: Array
    functions: tuple[Univariate, ...]
    domains: tuple[tuple[float, float], ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    @property
    def m(self) -> int:
        """How many inputs there are."""
        return int(self.W0.shape[1])

    @property
    def n(self) -> int:
        """How many outputs there are."""
        return int(self.W1.shape[0])

    @property
    def rank(self) -> int:
        """How many functions there are."""
        return len(self.functions)


def as_portable(model: DecoupledModel) -> Portable:
    """A model with all that is particular to unbraid taken off; refused where a branch is made of something else."""
    inputs = model.input_names or tuple(f"x{i + 1}" for i in range(model.m))
    outputs = model.output_names or tuple(f"f{i + 1}" for i in range(model.n))
    functions = tuple(as_univariate(branch, j) for j, branch in enumerate(model.branches))
    domains = tuple(branch.domain for branch in model.branches)
    return Portable(model.W0, model.W1, model.bias, functions, domains, inputs, outputs)


def as_univariate(branch: Branch, j: int) -> Univariate:
    """Branch j as polynomials or a formula."""
    if isinstance(branch, FormulaBranch):
        return branch.formula
    pieces = branch.polynomials()
    if pieces is None:
        raise SettingError(
            f"Branch {j + 1}, {branch!r}, is neither made of polynomials nor one of the formulas of this library, so "
            "it cannot be exported: export a model that `decouple` has fitted to it."
        )
    return pieces
