"""A basis of one's own that only says what its functions are."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pytest

import unbraid as ub
from registry import CONSTRAINTS
from unbraid.bases import RangeBasis
from unbraid.bases.constraints import Constraint
from unbraid.kernels.arrays import Array


@dataclass(frozen=True)
class Waves(RangeBasis):
    """A constant, a line, and sines."""

    count: int = 6

    @property
    def size(self) -> int:
        return self.count + 2

    def of_size(self, size: int) -> Self:
        return replace(self, count=size - 2)

    def functions(self, t: Array, derivative: int = 0) -> Array:
        k = np.arange(1.0, self.count + 1.0)
        wave = k**derivative * np.sin(k * (t[..., None] + 1.0) + 0.5 * np.pi * derivative)
        line = [np.ones_like(t), t] if derivative == 0 else [np.zeros_like(t), np.full_like(t, 2.0 - derivative)]
        return np.concatenate([np.stack(line, axis=-1), wave], axis=-1)


def test_its_functions_are_enough_for_a_fit() -> None:
    problem, truth = ub.datasets.trig(S=100, rng=0)
    fit = ub.decouple(problem, 3, basis=Waves(10), starts=4, rng=0)
    assert fit.output_errors is not None
    assert fit.output_errors.max() < 5.0
    X = np.random.default_rng(1).uniform(-1.5, 1.5, (200, 2))
    assert ub.metrics.output_errors(truth(X), fit.model(X)).max() < 10.0


def test_lines_are_not_rough_and_everything_else_is() -> None:
    penalty = Waves(5).roughness()
    assert np.abs(penalty[:2]).max() == 0.0
    assert np.linalg.eigvalsh(penalty[2:, 2:]).min() > 0.0


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
def test_no_shape_is_certified_and_none_can_be_asked_for(constraint: Constraint) -> None:
    basis = Waves(3)
    placement = basis.place(np.array([-1.0, 2.0]))
    for a in (np.ones(5), -np.ones(5), np.zeros(5)):
        assert not constraint.holds(placement, a)
    problem, _ = ub.datasets.trig(S=20, rng=0)
    with pytest.raises(ub.UnbraidError, match="use BSpline"):
        ub.decouple(problem, 3, basis=basis, constraint=constraint)
