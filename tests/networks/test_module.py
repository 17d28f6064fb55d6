"""Models as modules of PyTorch: the same function, its derivatives, and all that modules can do."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import unbraid as ub
from torch_models import BRANCHES, assert_near, double, every_branch, fitted, mixed_model, model_of, model_with, points
from unbraid.kernels.arrays import Array
from unbraid.networks.closed_forms import FUNCTIONS as IN_TORCH
from unbraid.results.branch import Branch, FunctionBranch
from unbraid.results.branches.expressions import FUNCTIONS


def values(module: Any, X: Array) -> Array:
    found: Array = module(torch.tensor(X, dtype=module.W0.dtype)).detach().numpy()
    return found


def alone(branch: Branch) -> ub.DecoupledModel:
    """f(x) = g(x)."""
    return ub.DecoupledModel([[1.0]], [[1.0]], [branch])


@every_branch
@pytest.mark.parametrize("far", [0.0, 2.0])
def test_every_kind_of_branch_has_its_values_and_jacobians(name: str, far: float) -> None:
    model = model_with(name)
    X, module = points(model, far), double(model)
    assert_near(values(module, X), model(X), 1e-14)
    J = torch.func.vmap(torch.func.jacrev(module))(torch.tensor(X))
    assert_near(J.detach().numpy(), model.jacobian(X), 1e-13)


@every_branch
def test_single_precision_is_as_good_as_it_can_be(name: str) -> None:
    model = model_with(name)
    X = points(model, 0.5).astype(np.float32).astype(np.float64)
    module = double(model).to(torch.float32)
    found = values(module, X)
    assert found.dtype == np.float32
    assert_near(found, model(X), 1e-4 if "reciprocal" in name else 1e-5)  # which has a pole among the points


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # of torch itself, where it is imported
@every_branch
def test_second_derivatives_are_those_of_the_branch(name: str) -> None:
    branch = BRANCHES[name]
    module, u = double(alone(branch)), points(alone(branch), 1.0)[:, 0]
    second = torch.func.vmap(torch.func.hessian(lambda x: module(x)[0]))(torch.tensor(u[:, None]))
    assert_near(second.detach().numpy().ravel(), branch.derivative(u, 2), 1e-12)


def test_branches_of_all_kinds_in_one_module() -> None:
    model = mixed_model()
    X, module = points(model), double(model)
    assert_near(values(module, X), model(X), 1e-14)
    x = torch.tensor(X, requires_grad=True)
    (gradient,) = torch.autograd.grad(module(x)[:, 1].sum(), x)
    assert_near(gradient.numpy(), model.jacobian(X)[:, 1], 1e-13)


def test_inputs_may_have_any_leading_axes() -> None:
    model = mixed_model()
    module, X = double(model), points(model)[:24]
    expected = values(module, X)
    np.testing.assert_allclose(values(module, X.reshape(2, 3, 4, 3)), expected.reshape(2, 3, 4, 2), rtol=1e-13)
    np.testing.assert_allclose(values(module, X[0]), expected[0], rtol=1e-13)
    assert values(module, X[:0]).shape == (0, 2)
    np.testing.assert_allclose(torch.func.vmap(module)(torch.tensor(X)).detach().numpy(), expected, rtol=1e-13)


@pytest.mark.parametrize("name", [repr(ub.PiecewiseLinear(8)), repr(ub.BSpline(12)), "spline 4 of SciPy"])
def test_gradients_at_breaks_are_those_of_the_piece_that_begins_there(name: str) -> None:
    branch = BRANCHES[name]
    pieces = branch.polynomials()
    assert pieces is not None
    x = torch.tensor(pieces.breaks[:, None], requires_grad=True)
    (slopes,) = torch.autograd.grad(double(alone(branch))(x).sum(), x)
    np.testing.assert_allclose(slopes[:, 0].numpy(), branch.derivative(pieces.breaks), rtol=1e-12)


def test_what_is_not_a_number_stays_none() -> None:
    for name in BRANCHES:
        found = values(double(model_with(name)), np.array([[0.1, np.nan, 0.2], [0.1, 0.3, 0.2]]))
        assert np.isnan(found[0]).all()
        assert not np.isnan(found[1]).any()


def test_parameters_are_what_is_trainable_and_the_rest_are_buffers() -> None:
    everything = ["W0", "W1", "bias", "coefficients"]
    module = double(mixed_model())
    assert [name for name, _ in module.named_parameters()] == everything
    part = double(mixed_model(), trainable=("bias", "W1"))
    assert [name for name, _ in part.named_parameters()] == ["W1", "bias"]
    assert list(module.state_dict()) == [*everything, "_extra_state"]
    assert sorted(part.state_dict()) == [*everything[:2], "_extra_state", *everything[2:]]
    assert [name for name, _ in double(mixed_model(), trainable=()).named_parameters()] == []
    with pytest.raises(ub.UnbraidError, match="trainable must have some of W0, W1, bias, coefficients"):
        ub.networks.module(mixed_model(), trainable=("W0", "knots"))


def changed_module(model: ub.DecoupledModel) -> Any:
    module = double(model)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    return module


def test_states_copies_and_pickles_are_the_same_module() -> None:
    model = mixed_model()
    X, module = points(model), changed_module(model)
    expected = values(module, X)
    again = double(model, trainable=("W0",))
    again.load_state_dict(module.state_dict())
    saved = io.BytesIO()
    torch.save(module.state_dict(), saved)
    saved.seek(0)
    read = double(model)
    read.load_state_dict(torch.load(saved, weights_only=True))
    for other in (again, read, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        np.testing.assert_array_equal(values(other, X), expected)
        np.testing.assert_array_equal(ub.networks.model(other)(X), ub.networks.model(module)(X))


def test_a_state_brings_its_branches_along() -> None:
    """The same numbers mean another function where knots lie elsewhere."""
    one, other = (model_of([fitted(ub.BSpline(9), seed, 0.125)]) for seed in (0, 1))
    module = double(other)
    parameters = dict(module.named_parameters())
    module.load_state_dict(double(one).state_dict())
    assert_near(values(module, points(one)), one(points(one)), 1e-14)
    assert all(again is parameters[name] for name, again in module.named_parameters())
    np.testing.assert_array_equal(ub.networks.model(module)(points(one)), one(points(one)))


def test_its_type_is_that_of_other_layers_or_as_asked() -> None:
    model = mixed_model()
    assert ub.networks.module(model).W0.dtype == torch.float32
    assert ub.networks.module(model, dtype=torch.float64).pieces.powers.dtype == torch.float64
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert ub.networks.module(model).W0.dtype == torch.float64
    finally:
        torch.set_default_dtype(before)
    for wrong in (torch.int64, "float32", np.float32):
        with pytest.raises(
            ub.UnbraidError, match=r"dtype must be a floating point type such as torch\.float64, or None"
        ):
            ub.networks.module(model, dtype=wrong)


def test_it_is_a_layer_like_others() -> None:
    module = ub.networks.module(mixed_model())
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), module, torch.nn.Linear(2, 1))
    network(torch.ones(5, 4)).sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in network.parameters())
    assert "DecoupledModule(\n  m=3, r=7, n=2" in repr(module)
    assert isinstance(module, ub.networks.DecoupledModule)


@pytest.mark.filterwarnings("ignore")  # of torch and of onnxscript, about each other
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_torch_exports_it_to_onnx(dtype: Any, tmp_path: Path) -> None:
    model, path = model_of([*mixed_model().branches, BRANCHES["softplus"]]), tmp_path / "model.onnx"
    module = double(model).to(dtype)
    x = torch.tensor(points(model), dtype=dtype)
    shapes = ({0: torch.export.Dim("S")},)
    torch.onnx.export(module, (x[:3],), path, dynamo=True, dynamic_shapes=shapes, input_names=["X"], verbose=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for count in (1, len(x)):
        (found,) = session.run(None, {"X": x[:count].numpy()})
        assert_near(found, module(x[:count]).detach().numpy(), 1e-14 if dtype == torch.float64 else 1e-6)


def test_wide_models_of_large_bases() -> None:
    model = model_of([fitted(ub.BSpline(80), seed) for seed in range(30)], m=20, n=4)
    X = np.random.default_rng(0).uniform(-0.3, 0.3, (100, 20))
    assert_near(values(double(model), X), model(X), 1e-14)


def test_every_elementary_function_is_there() -> None:
    assert list(IN_TORCH) == list(FUNCTIONS)
    t = np.array([-30.0, -1.5, -0.5, 0.0, 0.3, 1.0, 2.0, 25.0, np.nan])
    with np.errstate(all="ignore"):
        for name, function in FUNCTIONS.items():
            found = IN_TORCH[name](torch.tensor(t)).numpy()
            np.testing.assert_allclose(found, function.values(t), rtol=1e-12, atol=1e-15, err_msg=name)


def test_a_branch_that_is_any_function_is_refused() -> None:
    with pytest.raises(ub.UnbraidError, match=r"Branch 1, FunctionBranch\(sin u\), .* cannot be part of a module"):
        double(alone(FunctionBranch(np.sin, np.cos, "sin u")))


def test_anything_else_is_refused() -> None:
    with pytest.raises(ub.UnbraidError, match="model must be a DecoupledModel"):
        ub.networks.module(torch.nn.Linear(2, 2))
    with pytest.raises(ub.UnbraidError, match=r"module must be what ub\.networks\.module has made"):
        ub.networks.model(torch.nn.Linear(2, 2))


def test_without_torch_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for use in (
        lambda: double(mixed_model()),
        lambda: ub.networks.DecoupledModule,
        lambda: ub.networks.Compression,
    ):
        with pytest.raises(ub.UnbraidError, match=r"need PyTorch, which is not installed: .*\[torch\]"):
            use()


def test_names_of_the_room_are_listed() -> None:
    assert dir(ub.networks) == ["Compression", "DecoupledModule", "compress", "model", "module", "restore"]
    with pytest.raises(AttributeError, match="no attribute 'Linear'"):
        _ = ub.networks.Linear  # type: ignore[attr-defined]
