"""Models at points: one, few or many of them, of any type, give what the branches' bases say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unbraid as ub
from unbraid.bases import Basis
from unbraid.kernels.arrays import Array, block_length
from unbraid.results.branch import FittedBranch

BASES: list[Basis] = [
    ub.SmoothingSpline(14),
    ub.BSpline(9),
    ub.BSpline(6, 1),
    ub.BSpline(4, 4),
    ub.PiecewiseLinear(5),
    ub.NaturalCubic(6),
    ub.Polynomial(4),
]


def fitted(basis: Basis, continuation: Any = "polynomial") -> ub.DecoupledModel:
    problem, _ = ub.datasets.trig(S=80, rng=0)
    return ub.decouple(problem, 3, basis=basis, starts=2, continuation=continuation, rng=0).model


def by_the_basis(branch: FittedBranch, u: Array, order: int = 0) -> Array:
    """A branch by its placed basis and its continuations, without pieces: the slow way."""
    inside = np.clip(u, *branch.domain)
    result = branch.placement.evaluate(branch.coordinates, branch.placement.at(inside), order)
    for k, continuation in enumerate(branch.continuations):
        outside = u < branch.domain[0] if k == 0 else u > branch.domain[1]
        h = (u - inside)[outside]
        if order == 0:
            result[outside] += continuation.value(h)
        else:
            result[outside] = continuation.derivative(h, order)
    return result


def points_around(branch: FittedBranch) -> Array:
    """Inside, at the ends and at knots, and far outside."""
    low, high = branch.domain
    around = np.linspace(low - 2.0 * (high - low), high + 2.1 * (high - low), 1001)  # where no second derivative jumps
    return np.concatenate([around, [low, high, 1e9 * low, 1e9 * high], branch.knots])


@pytest.mark.parametrize("basis", BASES, ids=repr)
@pytest.mark.parametrize("continuation", ["polynomial", "linear"])
def test_pieces_are_the_function_that_the_basis_says(basis: Basis, continuation: str) -> None:
    for branch in fitted(basis, continuation).branches:
        assert isinstance(branch, FittedBranch)
        u = points_around(branch)
        for order, found in enumerate([branch(u), branch.derivative(u), branch.derivative(u, 2)]):
            expected = by_the_basis(branch, u, order)
            scale = np.abs(expected[:1001]).max() + np.abs(expected)
            assert np.all(np.abs(found - expected) <= 1e-12 * scale)


@pytest.mark.parametrize("basis", BASES[:-1], ids=repr)
def test_one_number_is_what_many_are(basis: Basis) -> None:
    """To the last bit: how many points there are does not matter to a branch."""
    for branch in fitted(basis).branches:
        assert isinstance(branch, FittedBranch)
        assert branch.pieces is not None
        u = np.append(points_around(branch), [np.inf, -np.inf])
        np.testing.assert_array_equal([branch.pieces.value_at(one) for one in u.tolist()], branch(u))
        np.testing.assert_array_equal([branch.pieces.slope_at(one) for one in u.tolist()], branch.derivative(u))
        assert np.isnan([branch.pieces.value_at(np.nan), branch.pieces.slope_at(np.nan)]).all()


def test_breaks_too_close_for_even_cells_are_found_as_well() -> None:
    """Knots in long tails: most lie in a small part of the range."""
    X = np.random.default_rng(0).standard_cauchy((300, 1))
    problem = ub.Problem(X, np.tanh(X), 1.0 / np.cosh(np.clip(X, -300, 300))[:, :, None] ** 2)
    [branch] = ub.decouple(problem, 1, starts=2, rng=0).model.branches
    assert isinstance(branch, FittedBranch)
    assert branch.pieces is not None
    assert branch.pieces._cells is None
    u = np.concatenate([X[:, 0], branch.knots, [np.nan]])
    np.testing.assert_array_equal(branch(u), [branch.pieces.value_at(one) for one in u.tolist()])


@pytest.mark.parametrize("basis", [*BASES[:2], BASES[-1]], ids=repr)
def test_one_few_and_many_points_agree(basis: Basis) -> None:
    model = fitted(basis)
    X = np.random.default_rng(0).uniform(-2, 2, (2 * block_length(3) + 7, 2))
    F, J = model(X), model.jacobian(X)
    u = X @ model.W0.T
    R = np.stack([g(u[:, j]) for j, g in enumerate(model.branches)], axis=-1)
    G = np.stack([g.derivative(u[:, j]) for j, g in enumerate(model.branches)], axis=-1)
    np.testing.assert_allclose(F, R @ model.W1.T + model.bias, rtol=0, atol=1e-12 * np.abs(F).max())
    np.testing.assert_allclose(J, (model.W1 * G[:, None, :]) @ model.W0, rtol=0, atol=1e-12 * np.abs(J).max())
    for some in (0, 5, slice(3, 6), slice(4, 40)):
        np.testing.assert_allclose(model(X[some]), F[some], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(model.jacobian(X[some]), J[some], rtol=1e-11, atol=1e-11)
    assert model(X[:0]).shape == (0, 2)
    assert model.jacobian(X[:0]).shape == (0, 2, 2)


def test_results_go_where_they_are_wanted() -> None:
    model = fitted(ub.BSpline(8))
    X = np.random.default_rng(0).uniform(-2, 2, (500, 2))
    wide = np.full((500, 4), np.nan)
    assert model(X, out=wide[:, ::2]).base is wide
    np.testing.assert_array_equal(wide[:, ::2], model(X))
    assert np.isnan(wide[:, 1::2]).all()
    one = np.empty(2)
    assert model(X[0], out=one) is one
    np.testing.assert_array_equal(one, model(X[0]))
    slopes = np.empty((500, 2, 2), dtype=np.float32)
    assert model.jacobian(X, out=slopes) is slopes
    np.testing.assert_array_equal(slopes, model.jacobian(X).astype(np.float32))


def test_single_precision_on_request() -> None:
    """Points are taken as they are; all is computed in double precision."""
    model = fitted(ub.BSpline(8))
    X = np.random.default_rng(0).uniform(-2, 2, (500, 2)).astype(np.float32)
    assert model(X).dtype == np.float64
    single = model(X, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, model(X.astype(np.float64)).astype(np.float32))
    assert model(X[0], dtype=np.float32).dtype == np.float32
    assert model.jacobian(X[0], dtype="f4").shape == (2, 2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"out": np.empty((3, 2))}, r"shape \(4, 2\), got one of float64 and shape \(3, 2\)"),
        ({"out": np.empty((4, 2), dtype=int)}, "got one of int64"),
        ({"out": [[0.0] * 2] * 4}, "out must be an array"),
        ({"out": np.broadcast_to(0.0, (4, 2))}, "cannot be written to"),
        ({"dtype": int}, "dtype must be one of floating point"),
        ({"dtype": np.float32, "out": np.empty((4, 2))}, "out or dtype, not both"),
    ],
)
def test_what_cannot_hold_results_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ub.UnbraidError, match=said):
        fitted(ub.BSpline(8))(np.zeros((4, 2)), **given)
