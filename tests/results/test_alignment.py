"""A found model that differs only by what a decoupling leaves open is laid exactly on the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from unbraid.errors import DataError
from unbraid.results.alignment import align
from unbraid.results.branch import FittedBranch


def disguised(truth: ub.DecoupledModel, rng: np.random.Generator) -> tuple[ub.DecoupledModel, list[int]]:
    """The same function with branches reordered, and directions, values and constants rescaled."""
    r = truth.rank
    order = [int(k) for k in rng.permutation(r)]
    W0, W1, branches, bias = truth.W0[order].copy(), truth.W1[:, order].copy(), [], truth.bias.copy()
    for k, j in enumerate(order):
        old = truth.branches[j]
        assert isinstance(old, FittedBranch)
        s, a, b = rng.uniform(0.2, 5.0) * rng.choice([-1.0, 1.0]), rng.uniform(0.2, 5.0), rng.normal()
        coordinates = a * old.coordinates
        coordinates[0] += b  # the constant Legendre polynomial
        if s < 0.0:  # odd Legendre polynomials change sign with u, on a symmetric range
            coordinates[1::2] *= -1.0
        placement = old.placement.moved(np.array(abs(s)), np.array(0.0))
        branches.append(FittedBranch(old.basis, placement, coordinates))
        W0[k] *= s
        bias -= W1[:, k] * b / a
        W1[:, k] /= a
    return ub.DecoupledModel(W0, W1, branches, bias), order


@given(seed=st.integers(0, 10_000))
def test_what_a_decoupling_leaves_open_is_undone(seed: int) -> None:
    problem, truth = ub.datasets.random_system(n=2, m=3, r=4, S=20, rng=seed)
    found, order = disguised(truth, np.random.default_rng(seed + 1))
    np.testing.assert_allclose(found(problem.X), truth(problem.X), atol=1e-9)
    for j, one in enumerate(align(found, truth)):
        low, high = truth.branches[j].domain
        u = np.linspace(1.2 * low, 1.2 * high, 50)
        expected = truth.branches[j](u)
        assert order[one.found] == j
        assert one.angle < 1e-6
        assert one.domain == pytest.approx((low, high))
        np.testing.assert_allclose(one(u), expected, atol=1e-9 * np.abs(expected).max())


def test_a_constant_branch_is_laid_on_the_mean() -> None:
    basis = ub.Polynomial(1)
    place = basis.place(np.array([-1.0, 1.0]))
    flat = ub.DecoupledModel([[1.0]], [[1.0]], [FittedBranch(basis, place, np.array([5.0, 0.0]))])
    line = ub.DecoupledModel([[1.0]], [[1.0]], [FittedBranch(basis, place, np.array([2.0, 1.0]))])
    np.testing.assert_allclose(align(flat, line)[0](np.array([-1.0, 1.0])), 2.0)


def test_models_of_different_size_are_refused() -> None:
    _, two = ub.datasets.random_system(n=2, m=2, r=2, rng=0)
    _, three = ub.datasets.random_system(n=2, m=2, r=3, rng=0)
    with pytest.raises(DataError, match="as many branches and inputs"):
        align(two, three)


def test_formulas_without_a_range_are_refused() -> None:
    _, truth = ub.datasets.trig(S=5, rng=0)
    with pytest.raises(DataError, match="no finite domain"):
        align(truth, truth)
