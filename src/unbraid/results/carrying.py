"""Which branches of a model carry something: the others were left out of a fit, and only their numbers are there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unbraid.kernels.arrays import IndexArray
from unbraid.results.branch import FittedBranch
from unbraid.results.model import DecoupledModel
from unbraid.results.smoothing import Smoothing


def carrying(model: DecoupledModel) -> IndexArray:
    """The numbers, from 0, of the branches that go into any output; all of them where the model is a constant."""
    some: IndexArray = np.flatnonzero(np.any(model.W1 != 0.0, axis=0))
    return some if some.size else np.arange(model.rank)


def superfluous(model: DecoupledModel) -> list[int]:
    """The numbers, from 0, of the branches that carry nothing: their column of W1 is zero, their direction is idle."""
    return [int(j) for j in np.setdiff1d(np.arange(model.rank), carrying(model))]


def left_out(model: DecoupledModel, smoothing: Smoothing | None) -> list[int]:
    """Those of them that a fit left out because the data do not support them: none where nothing was chosen."""
    return [] if smoothing is None else superfluous(model)


def some_branches(model: DecoupledModel, chosen: IndexArray) -> DecoupledModel:
    """A model of some branches of another."""
    return model.changed(W0=model.W0[chosen], W1=model.W1[:, chosen], branches=[model.branches[j] for j in chosen])


def chooses_smoothing(model: DecoupledModel) -> bool:
    """Whether its basis chose its smoothing from the data, so that a df more or less would change next to nothing."""
    return any(isinstance(branch, FittedBranch) and branch.basis.smoothing_open for branch in model.branches)


def name_superfluous(which: Sequence[int]) -> str:
    """'Branch 2 carries nothing', 'Branches 2, 4 and 5 carry nothing'; `which` count from 0."""
    numbers = [str(j + 1) for j in which]
    if len(numbers) == 1:
        return f"Branch {numbers[0]} carries nothing"
    return f"Branches {', '.join(numbers[:-1])} and {numbers[-1]} carry nothing"
