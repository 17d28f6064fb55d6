"""Modules as models again: exactly what they were, and what training has made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import unbraid as ub
from registry import random_feasible
from torch_models import BRANCHES, FITTED, assert_near, double, every_branch, fitted, mixed_model, model_with, points
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch
from unbraid.results.branches.piecewise import PiecewiseBranch


def values(module: Any, X: Array) -> Array:
    found: Array = module(torch.tensor(X, dtype=module.W0.dtype)).detach().numpy()
    return found


def assert_the_same(there: ub.DecoupledModel, here: ub.DecoupledModel) -> None:
    for one, other in ((there.W0, here.W0), (there.W1, here.W1), (there.bias, here.bias)):
        np.testing.assert_array_equal(one, other)
    assert there.branches == here.branches or all(a is b for a, b in zip(there.branches, here.branches, strict=True))
    assert (there.input_names, there.output_names, there.encoding) == (
        here.input_names,
        here.output_names,
        here.encoding,
    )


@every_branch
def test_what_was_not_trained_comes_back_exactly(name: str) -> None:
    model = model_with(name).changed(input_names=("a", "b", "c"), output_names=("y", "z"))
    module = double(model)
    assert_the_same(ub.networks.model(module), model)
    assert_the_same(ub.networks.model(module.to(torch.float32)), model)


def train(module: Any, X: Array, F: Array, steps: int = 30) -> tuple[float, float]:
    """The losses before and after some steps."""
    x, f = torch.tensor(X), torch.tensor(F)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.003)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = torch.nn.functional.mse_loss(module(x), f)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses[0], losses[-1]


@pytest.mark.parametrize("name", [*FITTED, "sine", "tanh", "softplus", "cubic polynomial", "absolute value", "cube"])
def test_training_lowers_a_loss_and_the_model_is_what_the_module_is(name: str) -> None:
    model = model_with(name)
    X, module = points(model, 0.3), double(model)
    before, after = train(module, X, 1.02 * model(X) + 0.05)
    assert after < before
    trained = ub.networks.model(module)
    far = points(model, 2.0)
    assert_near(trained(far), values(module, far), 1e-13)
    J = torch.func.vmap(torch.func.jacrev(module))(torch.tensor(far)).detach().numpy()
    assert_near(trained.jacobian(far), J, 1e-12)
    (branch,), (earlier,) = trained.branches, model.branches
    assert branch.domain == earlier.domain
    if isinstance(branch, FittedBranch) and isinstance(earlier, FittedBranch):
        assert branch.basis is earlier.basis
        assert branch.placement is earlier.placement


def test_only_what_is_trained_changes() -> None:
    model = mixed_model()
    X, module = points(model, 0.3), double(model, trainable=("W1",))
    train(module, X, 1.1 * model(X), steps=3)
    trained = ub.networks.model(module)
    assert not np.array_equal(trained.W1, model.W1)
    assert_the_same(trained.changed(W1=model.W1), model)


def test_splines_of_scipy_stay_as_they_are() -> None:
    model = model_with("spline 2 of SciPy")
    module = double(model)
    assert module.coefficients.shape == (0,)
    X = points(model, 0.3)
    before, after = train(module, X, 1.1 * model(X))
    assert after < before
    assert ub.networks.model(module).branches[0] is model.branches[0]


def test_splines_stay_smooth_when_they_are_trained() -> None:
    branch = BRANCHES[repr(ub.BSpline(12))]
    model = ub.DecoupledModel([[1.0]], [[1.0]], [branch])
    module = double(model)
    X = points(model, 0.3)
    train(module, X, np.sin(3.0 * X))
    b = branch.knots[:, None]
    for of in (values, slopes):
        below, above = (of(module, b + step) for step in (-1e-9, 1e-9))
        np.testing.assert_allclose(below, above, atol=1e-5 * float(np.abs(above).max()))


def slopes(module: Any, X: Array) -> Array:
    x = torch.tensor(X, requires_grad=True)
    found: Array = torch.autograd.grad(module(x).sum(), x)[0].numpy()
    return found


def test_a_reach_that_its_shape_has_cut_is_held() -> None:
    """An increasing branch goes on as a polynomial only for as long as that increases; training does not change it."""
    cut = 0
    for seed in range(12):
        branch = fitted(ub.BSpline(9), seed, 0.5, ub.Increasing())
        low, high = branch.domain
        held = np.array([one.reach for one in branch.continuations])
        cut += int(np.any((held > 0.0) & (held < branch.reach * (high - low))))
        model = ub.DecoupledModel([[1.0]], [[1.0]], [branch])
        module = double(model)
        with torch.no_grad():
            module.coefficients *= 1.0 + 0.1 * torch.rand(len(module.coefficients), dtype=torch.float64)
        X = points(model, 2.0)
        assert_near(ub.networks.model(module)(X), values(module, X), 1e-13)
    assert cut


def test_a_branch_that_its_basis_would_let_go_on_differently_has_none_any_more() -> None:
    """Here training has made an increasing branch of one that was not: it would go on as a line earlier."""
    kinds = set()
    for seed in range(8):
        branch = fitted(ub.BSpline(9), seed, 0.5)
        model = ub.DecoupledModel([[1.0]], [[1.0]], [branch])
        module = double(model)
        increasing = random_feasible(branch.placement, ub.Increasing(), np.random.default_rng(seed))
        with torch.no_grad():
            module.coefficients.copy_(torch.tensor(increasing))
        trained, X = ub.networks.model(module), points(model, 2.0)
        assert_near(trained(X), values(module, X), 1e-13)
        assert trained.branches[0].domain == branch.domain
        kinds.add(type(trained.branches[0]))
    assert PiecewiseBranch in kinds


def test_a_model_trained_in_single_precision() -> None:
    model = mixed_model()
    module = double(model).to(torch.float32)
    with torch.no_grad():
        module.W0[0] += 0.125
    trained = ub.networks.model(module)
    np.testing.assert_array_equal(trained.W0[1:], model.W0[1:])
    np.testing.assert_allclose(trained.W0[0], model.W0[0] + 0.125, rtol=1e-6)
    assert trained.branches == model.branches


def test_a_trained_model_can_be_saved(tmp_path: Any) -> None:
    model = model_with(repr(ub.BSpline(12)))
    module = double(model)
    X = points(model)
    train(module, X, model(X) + 1.0, steps=5)
    ub.networks.model(module).save(tmp_path / "trained.npz")
    assert_near(ub.DecoupledModel.load(tmp_path / "trained.npz")(X), values(module, X), 1e-13)


def test_training_that_diverged_is_refused() -> None:
    module = double(mixed_model())
    with torch.no_grad():
        module.coefficients[2] = torch.nan
    with pytest.raises(ub.UnbraidError, match="coefficients of the module has entries that are NaN or infinite"):
        ub.networks.model(module)
