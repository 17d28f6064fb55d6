"""Inputs and outputs in the units that count for a part: directions, metrics of outputs, spread-out samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from torch_models import fitted, model_of
from unbraid.kernels.arrays import Array
from unbraid.networks.compressing import coordinates as module
from unbraid.networks.compressing.coordinates import (
    Coordinates,
    Outputs,
    metric,
    moved,
    principal_directions,
    spread_out_in,
)
from unbraid.networks.compressing.part_fitting import order_of_samples
from unbraid.results.branch import Branch
from unbraid.results.branches.piecewise import PiecewiseBranch

KINDS: tuple[Outputs, ...] = ("values", "logits", "softmax")
every_kind = pytest.mark.parametrize("outputs", KINDS)
S, M, N = 200, 6, 4


@pytest.fixture(autouse=True)
def few_directions_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEWEST", 1)
    monkeypatch.setattr(module, "LEFT_OUT", 1e-9)


def data(seed: int = 0) -> tuple[Array, Array, Array]:
    """Activations that hang together, outputs and Jacobians of a function of three directions."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((S, M)) @ rng.standard_normal((M, M)) + 3.0
    A, B = rng.standard_normal((N, 3)), 0.2 * rng.standard_normal((3, M))
    u = X @ B.T
    return X, np.tanh(u) @ A.T, np.einsum("nr,sr,rm->snm", A, 1.0 - np.tanh(u) ** 2, B)


def made(outputs: Outputs = "values") -> Coordinates:
    X, F, J = data()
    return Coordinates.of(X, F, [J[:50], J[50:]], outputs)


def model_in(coordinates: Coordinates, seed: int = 0) -> ub.DecoupledModel:
    branches: list[Branch] = [fitted(ub.BSpline(6), seed), fitted(ub.BSpline(8), seed + 1, 0.5)]
    return model_of(branches, m=len(coordinates.inner), n=len(coordinates.out))


@every_kind
def test_every_direction_varies_by_one_and_by_itself(outputs: Outputs) -> None:
    X, _, _ = data()
    z = made(outputs).inputs(X)
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(z.T @ z / S, np.eye(z.shape[1]), atol=1e-9)


@every_kind
def test_as_many_directions_are_kept_as_matter(outputs: Outputs) -> None:
    coordinates = made(outputs)
    assert coordinates.inner.shape == (3, M)  # the function has three
    np.testing.assert_allclose(coordinates.inner @ coordinates.outer, np.eye(3), atol=1e-9)


def test_what_matters_little_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    X, F, J = data()
    coordinates = made()
    G = coordinates.out @ J @ coordinates.outer
    shares = np.einsum("sik,sik->k", G, G) / np.sum(G**2)
    monkeypatch.setattr(module, "LEFT_OUT", 1.01 * float(shares[2]))
    assert len(made().inner) == 2
    monkeypatch.setattr(module, "LEFT_OUT", 0.99 * float(shares[2]))
    assert len(made().inner) == 3
    np.testing.assert_allclose(np.abs(Coordinates.of(X, F, [J], "values").inner), np.abs(coordinates.inner))


def test_a_few_directions_are_kept_whatever_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for fewest in (5, 20):
        monkeypatch.setattr(module, "FEWEST", fewest)
        assert made().inner.shape == (min(fewest, M), M)


@every_kind
def test_jacobians_follow_the_chain_rule_and_the_first_directions_matter_most(outputs: Outputs) -> None:
    X, F, J = data()
    coordinates = made(outputs)
    problem = coordinates.problem(X, F, [J[:30], J[30:]])
    assert problem.J is not None
    assert problem.F is not None
    np.testing.assert_allclose(problem.J, coordinates.out @ J @ coordinates.outer, atol=1e-12)
    np.testing.assert_allclose(problem.F, F @ coordinates.out.T, atol=1e-12)
    np.testing.assert_allclose(problem.X, coordinates.inputs(X), atol=1e-12)
    H = np.einsum("sik,sil->kl", problem.J, problem.J)
    np.testing.assert_allclose(H, np.diag(np.diag(H)), atol=1e-8 * H.max())
    assert (np.diff(np.diag(H)) <= 0.0).all()
    assert problem.input_names is not None
    assert list(problem.input_names) == ["direction 1", "direction 2", "direction 3"]


def test_blocks_of_jacobians_do_not_matter() -> None:
    X, F, J = data()
    one, other = Coordinates.of(X, F, [J], "values"), made()
    np.testing.assert_allclose(np.abs(one.inner @ other.outer), np.eye(3), atol=1e-9)


@every_kind
def test_a_model_has_the_values_that_it_has_in_the_coordinates(outputs: Outputs) -> None:
    coordinates = made(outputs)
    found, X = model_in(coordinates), 2.0 * data()[0]
    model = coordinates.model(found)
    assert (model.m, model.n) == (M, N)
    np.testing.assert_allclose(model(X), found(coordinates.inputs(X)) @ coordinates.back.T, atol=1e-9)
    expected = coordinates.back @ found.jacobian(coordinates.inputs(X)) @ coordinates.inner
    np.testing.assert_allclose(model.jacobian(X), expected, atol=1e-9)


@every_kind
def test_a_model_and_its_reduced_one_are_inverse_to_each_other(outputs: Outputs) -> None:
    coordinates = made(outputs)
    found, z = model_in(coordinates), np.random.default_rng(1).uniform(-3.0, 3.0, (50, 3))
    again = coordinates.reduced(coordinates.model(found))
    np.testing.assert_allclose(again.W0, found.W0, atol=1e-9)
    np.testing.assert_allclose(again(z) @ coordinates.back.T, found(z) @ coordinates.back.T, atol=1e-9)
    for branch, same in zip(found.branches, again.branches, strict=True):
        np.testing.assert_allclose(same.domain, branch.domain, atol=1e-9)
    model = coordinates.model(found)
    X = coordinates.center + z @ coordinates.outer.T
    np.testing.assert_allclose(coordinates.model(again)(X), model(X), atol=1e-9)


def test_branches_that_are_pieces_alone_move_as_well() -> None:
    branch = fitted(ub.BSpline(6), 0, 0.5)
    assert branch.pieces is not None
    pieces, u = PiecewiseBranch(branch.pieces, branch.domain), np.linspace(-5.0, 5.0, 101)
    for one in (branch, pieces):
        up = moved(one, 0.7)
        np.testing.assert_allclose(up(u + 0.7), one(u), atol=1e-12)
        np.testing.assert_allclose(up.domain, np.array(one.domain) + 0.7)
    coordinates = made()
    model = model_of([branch], m=M, n=N).changed(branches=[pieces])
    X = coordinates.center + np.random.default_rng(1).standard_normal((50, 3)) @ coordinates.outer.T
    np.testing.assert_allclose(coordinates.reduced(model)(coordinates.inputs(X)), model(X), atol=1e-9)


@every_kind
def test_the_metric_and_its_inverse_leave_out_what_logits_share(outputs: Outputs) -> None:
    out, back = metric(data()[1], outputs)
    projector = np.eye(N) - (0.0 if outputs == "values" else 1.0 / N)
    np.testing.assert_allclose(out @ back, projector, atol=1e-9)
    np.testing.assert_allclose(back @ out, projector, atol=1e-9)
    if outputs != "values":
        np.testing.assert_allclose(out @ np.ones(N), 0.0, atol=1e-9)
        F = data()[1]
        shared = np.random.default_rng(0).standard_normal((S, 1))
        np.testing.assert_allclose((F + shared) @ out.T, F @ out.T, atol=1e-9)


def test_logits_are_compared_without_their_mean() -> None:
    F = data()[1]
    np.testing.assert_allclose(F @ metric(F, "logits")[0].T, F - F.mean(axis=1, keepdims=True), atol=1e-12)


def test_the_metric_of_softmax_is_the_loss_of_probabilities_to_second_order() -> None:
    F = 0.5 * data()[1]
    L = metric(F, "softmax")[0]
    step = 1e-3 * np.random.default_rng(0).standard_normal(N)

    def log_softmax(f: Array) -> Array:
        return np.asarray(f - np.log(np.exp(f).sum(axis=1, keepdims=True)))

    p = np.exp(log_softmax(F))
    divergence = (p * (log_softmax(F) - log_softmax(F + step))).sum(axis=1).mean()
    assert divergence == pytest.approx(0.5 * np.sum((L @ step) ** 2), rel=0.01)


def test_the_metric_of_softmax_copes_with_certain_classes() -> None:
    F = 1e3 * np.eye(N)[np.random.default_rng(0).integers(0, N, S)]
    for logits in (F, F + 1e4):
        out, back = metric(logits, "softmax")
        assert np.isfinite(out).all()
        np.testing.assert_allclose(out @ back, np.eye(N) - 1.0 / N, atol=1e-6)


@every_kind
def test_one_output_is_itself(outputs: Outputs) -> None:
    for one in metric(np.random.default_rng(0).standard_normal((10, 1)), outputs):
        np.testing.assert_array_equal(one, [[1.0]])


@pytest.mark.parametrize("count", [5, 12, 40])
def test_directions_are_those_of_the_covariance(count: int) -> None:
    X = np.random.default_rng(0).standard_normal((count, 12)) * np.geomspace(1.0, 0.1, 12)
    X -= X.mean(axis=0)
    size, V = principal_directions(X)
    kept = min(count - 1, 12)
    assert V.shape == (12, kept)
    np.testing.assert_allclose(V.T @ V, np.eye(kept), atol=1e-9)
    covariance = X.T @ X / count
    np.testing.assert_allclose(size**2, np.linalg.eigvalsh(covariance)[-kept:], rtol=1e-9)
    np.testing.assert_allclose((V * size**2) @ V.T, covariance, atol=1e-12)


def test_of_fewer_points_than_inputs_the_first_tell_the_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_POINTS", 10)
    X = np.random.default_rng(0).standard_normal((15, 40))
    size, V = principal_directions(X)
    np.testing.assert_allclose((V * size**2) @ V.T, X[:10].T @ X[:10] / 10, atol=1e-12)


def test_directions_that_do_not_vary_are_left_out() -> None:
    X = np.random.default_rng(0).standard_normal((50, 4)) * [1.0, 0.0, 2.0, 1e-7]
    assert principal_directions(X - X.mean(axis=0))[1].shape == (4, 2)
    for shape in ((50, 4), (3, 4)):
        with pytest.raises(ub.UnbraidError, match="is the same for all samples"):
            principal_directions(np.zeros(shape))


def test_a_part_that_does_nothing_has_one_direction() -> None:
    X, F, J = data()
    assert Coordinates.of(X, 0.0 * F, [0.0 * J], "values").inner.shape == (1, M)


@given(count=st.integers(1, 40), copies=st.integers(1, 30), seed=st.integers(0, 10))
def test_spread_out_samples_are_distinct_and_the_first_are_a_choice_as_well(count: int, copies: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((30, 3))
    Z[:copies] = Z[0]
    chosen = spread_out_in(Z, count, np.random.default_rng(seed))
    assert len(chosen) == len(set(chosen.tolist())) == min(count, 30)
    assert set(chosen.tolist()) <= set(range(30))
    for k in (1, count // 2, count):
        np.testing.assert_array_equal(spread_out_in(Z, k, np.random.default_rng(seed)), chosen[:k])
    if len(chosen) >= 31 - copies:  # as many as there are different points: each of them is there
        assert len(np.unique(Z[chosen[: 31 - copies]], axis=0)) == 31 - copies


def test_spread_out_samples_reach_what_is_rare() -> None:
    Z = np.concatenate([0.01 * np.random.default_rng(0).standard_normal((500, 2)), [[5.0, 0.0], [0.0, 5.0]]])
    assert {500, 501} <= set(spread_out_in(Z, 5, np.random.default_rng(0)).tolist())


def test_the_order_of_samples_has_each_of_them_once() -> None:
    X = np.random.default_rng(0).standard_normal((900, 3))
    order = order_of_samples(X, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(order), np.arange(900))
    np.testing.assert_array_equal(order, order_of_samples(X, np.random.default_rng(1)))
