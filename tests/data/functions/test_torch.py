"""Problems from networks and functions of torch tensors."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

import unbraid as ub
from hard_modules import Keeps
from plain_functions import some_left_out
from unbraid.data.functions.torch_functions import TorchFunction
from unbraid.kernels.arrays import Array

X = np.random.default_rng(0).uniform(-1.5, 1.5, (30, 3))


def network(inputs: int = 3, outputs: int = 2, dtype: Any = torch.float64) -> Any:
    torch.manual_seed(0)
    layers = torch.nn.Linear(inputs, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs)
    return torch.nn.Sequential(*layers).to(dtype)


def by_autograd(f: Any, points: Array, dtype: Any = torch.float64) -> tuple[Array, Array]:
    """The slow, obvious twin: values and Jacobians of a function of a point, one after the other."""
    tensors = [torch.tensor(x, dtype=dtype) for x in points]
    F = [f(x).detach().reshape(-1) for x in tensors]
    J = [torch.autograd.functional.jacobian(lambda x: f(x).reshape(-1), x) for x in tensors]
    return torch.stack(F).double().numpy(), torch.stack(J).double().numpy()


def arrays(problem: ub.Problem) -> tuple[Array, Array]:
    assert problem.F is not None
    assert problem.J is not None
    return problem.F, problem.J


@pytest.mark.parametrize("outputs", [1, 2, 3, 7])
@pytest.mark.parametrize("chunk", [None, 7])
def test_a_network_gives_its_values_and_exact_jacobians(outputs: int, chunk: int | None) -> None:
    """With fewer outputs than inputs backwards, else forwards."""
    net = network(outputs=outputs)
    F, J = arrays(ub.Problem.from_function(net, X, chunk=chunk))
    expected = by_autograd(net, X)
    np.testing.assert_allclose(F, expected[0], rtol=1e-12)
    np.testing.assert_allclose(J, expected[1], rtol=1e-10, atol=1e-12)
    assert {str(F.dtype), str(J.dtype)} == {"float64"}


def test_a_network_in_single_precision_gets_inputs_of_its_type() -> None:
    net = network(dtype=torch.float32)
    seen = set()
    net.register_forward_pre_hook(lambda module, args: seen.add(args[0].dtype))
    F, J = arrays(ub.Problem.from_function(net, X))
    assert seen == {torch.float32}
    expected = by_autograd(net, X, torch.float32)
    np.testing.assert_allclose(F, expected[0], atol=1e-6)
    np.testing.assert_allclose(J, expected[1], atol=1e-6)
    assert {str(F.dtype), str(J.dtype)} == {"float64"}
    assert all(parameter.dtype == torch.float32 for parameter in net.parameters())


def test_half_precision_is_the_users_choice() -> None:
    assert ub.Problem.from_function(network(dtype=torch.bfloat16), X).n == 2


def test_a_network_is_left_as_it_was() -> None:
    """Weights, gradients, and the mode of every part; batch norm's averages too."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    )
    net.train()
    net[1].eval()
    net[4].weight.grad = torch.ones(2, 8)
    before, modes = copy.deepcopy(net.state_dict()), [part.training for part in net.modules()]
    F, _ = arrays(ub.Problem.from_function(net, X))
    assert [part.training for part in net.modules()] == modes
    for name, value in net.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0.0, atol=0.0)
    assert [parameter.grad is None for parameter in net.parameters()] == [True, True, True, True, False, True]
    torch.testing.assert_close(net[4].weight.grad, torch.ones(2, 8))
    with torch.no_grad():
        np.testing.assert_allclose(F, net.eval()(torch.tensor(X, dtype=torch.float32)).numpy(), atol=1e-6)


def test_what_modules_keep_of_a_call_is_put_back_and_never_of_a_transform() -> None:
    kept = Keeps()
    ub.Problem.from_function(kept, X)
    assert (kept.calls, kept.last, int(kept.seen)) == (0, None, 0)
    ub.Problem.from_function(lambda x: kept(x), X)
    assert kept.calls
    copy.deepcopy(kept)


def test_networks_that_work_in_place_give_what_others_give() -> None:
    answers = []
    for in_place in (True, False):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.ELU(inplace=in_place), torch.nn.Linear(3, 4), torch.nn.SiLU(inplace=in_place)
        )
        problem = ub.Problem.from_function(net.double(), X)
        assert problem.F is not None
        assert problem.J is not None
        answers.append((problem.F, problem.J))
    (F, J), (others, slopes) = answers
    np.testing.assert_array_equal(F, others)
    np.testing.assert_allclose(J, slopes, rtol=1e-12)


def test_a_lazy_network_is_refused_and_stays_lazy() -> None:
    net = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.Tanh())
    with pytest.raises(ub.UnbraidError, match=r"'0\.weight' of the network is lazy, without a shape: call the network"):
        ub.Problem.from_function(net, X)
    assert torch.nn.parameter.is_lazy(net[0].weight)


def test_a_network_that_fails_is_left_as_it_was() -> None:
    net = network(inputs=4).train()
    with pytest.raises(ub.UnbraidError, match=r"\(torch tensors of float64\), it raised RuntimeError \(mat1"):
        ub.Problem.from_function(net, X)
    assert all(part.training for part in net.modules())


def test_a_method_of_a_network_is_in_evaluation_mode_too() -> None:
    class Encoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5))

        def encode(self, x: Any) -> Any:
            return self.layers(x)

    assert ub.Problem.from_function(Encoder().encode, X).n == 4


def test_a_function_around_a_network_with_dropout_is_refused_with_advice() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 32), torch.nn.Dropout(0.5))
    with pytest.raises(ub.UnbraidError, match=r"different values when called again .* Call \.eval\(\)"):
        ub.Problem.from_function(lambda x: net(x), X)


def test_a_function_around_a_network_with_batch_norm_is_refused_with_advice() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8))
    with pytest.raises(ub.UnbraidError, match=r"depends on the other points of the batch\. Call \.eval\(\)"):
        ub.Problem.from_function(lambda x: net(x), X)


W = torch.tensor(np.random.default_rng(1).standard_normal((3, 2)))


def forked(x: Any) -> Any:
    """Of a point; its `if` cannot be vectorised."""
    return torch.sin(x @ W) if x[0] > 0.0 else torch.exp(x @ W)


FUNCTIONS: dict[str, Any] = {
    "of both": lambda x: torch.sin(x @ W),
    "of a point": lambda x: torch.stack([torch.sin(x[0] * x[1]), x[2] ** 2]),
    "a list of numbers": lambda x: [torch.sin(x[0] * x[1]), x[2] ** 2],
    "one number": lambda x: (x**2).sum(),
    "of a batch": lambda x: torch.cat([x[:, :1] ** 2, x[:, 1:2] * x[:, 2:]], dim=1),
    "squeezed": lambda x: torch.sin(x[:, :2] @ W[:2]).squeeze(),
    "with an if": forked,
    "makes a tensor itself": lambda x: torch.sin(torch.as_tensor(x) @ W),
    "weights first": lambda x: torch.sin(W.T @ x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("derivatives", ["auto", "torch"])
@pytest.mark.parametrize("S", [1, 3, 30])
def test_functions_of_tensors_are_recognised(name: str, derivatives: Any, S: int) -> None:
    f = FUNCTIONS[name]

    def of_a_point(x: Any) -> Any:
        given = f(x[None] if name in ("of a batch", "squeezed") else x)
        return torch.stack(given) if isinstance(given, list) else given

    F, J = arrays(ub.Problem.from_function(f, X[:S], derivatives=derivatives))
    expected = by_autograd(of_a_point, X[:S])
    np.testing.assert_allclose(F, expected[0], rtol=1e-12)
    np.testing.assert_allclose(J, expected[1], rtol=1e-10, atol=1e-12)


def test_a_function_around_a_network_in_single_precision_gets_single_precision() -> None:
    net = network(dtype=torch.float32)
    F, J = arrays(ub.Problem.from_function(lambda x: net(x), X))
    expected = by_autograd(net, X, torch.float32)
    np.testing.assert_allclose(F, expected[0], atol=1e-6)
    np.testing.assert_allclose(J, expected[1], atol=1e-6)


def test_a_function_that_works_with_anything_is_differentiated_as_asked() -> None:
    _, J = arrays(ub.Problem.from_function(lambda x: x**2, X, derivatives="torch"))
    np.testing.assert_array_equal(J, 2.0 * X[:, :, None] * np.eye(3))


def test_differences_of_a_network_are_possible_too() -> None:
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
        net = network(dtype=dtype)
        J = arrays(ub.Problem.from_function(net, X, derivatives="differences"))[1]
        np.testing.assert_allclose(J, by_autograd(net, X, dtype)[1], atol=tolerance)


def test_a_function_that_takes_tensors_to_numpy_gets_differences() -> None:
    net = network(dtype=torch.float32)

    def f(x: Array) -> Array:
        return np.asarray(net(torch.from_numpy(x).float()).detach().numpy())

    J = arrays(ub.Problem.from_function(f, X))[1]
    np.testing.assert_allclose(J, by_autograd(net, X, torch.float32)[1], atol=1e-4)
    answers_in_tensors = ub.Problem.from_function(lambda x: net(torch.from_numpy(x).float()), X)
    np.testing.assert_allclose(arrays(answers_in_tensors)[1], J, atol=1e-4)


def test_a_jacobian_of_the_users_may_be_of_tensors() -> None:
    jacobian = torch.func.jacrev(FUNCTIONS["of both"])
    J = arrays(ub.Problem.from_function(FUNCTIONS["of both"], X, jacobian))[1]
    np.testing.assert_allclose(J, by_autograd(FUNCTIONS["of both"], X)[1], atol=1e-12)


def test_a_function_that_is_cut_off_from_its_gradient_is_refused() -> None:
    """Backwards, torch says that the derivative of this is zero."""
    f = torch.no_grad()(lambda x: torch.sin(x @ W))
    with pytest.raises(ub.UnbraidError, match=r"automatic differentiation does not fit .* \(no_grad, detach"):
        ub.Problem.from_function(f, X)


def test_a_function_that_rounds_is_refused() -> None:
    """The derivative of torch.round is zero, but that is not how its values change."""
    with pytest.raises(ub.UnbraidError, match=r"automatic differentiation does not fit .* rounding"):
        ub.Problem.from_function(lambda x: torch.round(torch.sin(x @ W), decimals=4), X)


@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize("of_a_point", [True, False])
def test_a_numpy_function_cannot_be_differentiated_by_a_framework(framework: Any, of_a_point: bool) -> None:
    """Said before any work, of the function, not of a sample; and without NumPy's warning of what it did to tensors."""

    def f(x: Array) -> Any:
        return [np.sin(x[0]), np.exp(x[1])] if of_a_point else np.stack([np.sin(x[:, 0]), x[:, 1]], axis=1)

    says = (
        rf'f cannot be differentiated by {framework}: it raised .* with {framework} alone.* derivatives="differences"'
    )
    with pytest.raises(ub.UnbraidError, match=says) as caught:
        ub.Problem.from_function(f, X, derivatives=framework)
    assert "sample" not in str(caught.value)


def test_numbers_among_tensors_keep_their_precision() -> None:
    """They are cut off from the gradient, which is noticed only if they are not rounded to float32."""
    F, _ = arrays(ub.Problem.from_function(lambda x: [0.1, x[0]], X, derivatives="torch"))
    np.testing.assert_array_equal(F[:, 0], 0.1)
    with pytest.raises(ub.UnbraidError, match=r"output 0 changes .* of 0 by its Jacobian"):
        ub.Problem.from_function(lambda x: [float(x[0]) ** 2, x[1]], X, derivatives="torch")


@pytest.mark.parametrize("where", [0, 5, 29])
def test_a_function_that_wants_tensors_at_some_samples_only_gets_them(where: int) -> None:
    points = -np.abs(X)
    points[where] *= -1.0

    def f(x: Any) -> Any:
        return torch.sin(x[:2]) if x[0] > 0 else 2 * x[:2]

    F, J = arrays(ub.Problem.from_function(f, points))
    expected = by_autograd(f, points)
    np.testing.assert_allclose(F, expected[0], rtol=1e-12)
    np.testing.assert_allclose(J, expected[1], rtol=1e-12)


def test_a_numpy_function_that_fails_at_a_sample_is_not_blamed_on_tensors() -> None:
    def f(x: Array) -> Any:
        return x @ "ndarray" if x[0] == X[5, 0] else np.sin(x[:1])  # type: ignore[operator]

    some_left_out(f, X, r"f raised .* at X\[5\] = ")


def test_a_function_with_gradients_inside_works() -> None:
    """A force from an energy."""

    def force(x: Any) -> Any:
        x = x if x.requires_grad else x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad((x**4).sum(), x, create_graph=True)
        return -gradient

    F, J = arrays(ub.Problem.from_function(force, X))
    np.testing.assert_allclose(F, -4.0 * X**3)
    np.testing.assert_allclose(J, -12.0 * X[:, :, None] ** 2 * np.eye(3), atol=1e-10)


def test_failures_are_reported_with_their_point() -> None:
    points = np.abs(X)
    points[5] = [0.0, 0.5, 0.25]
    some_left_out(torch.log, points, r"f gave -inf at X\[5\] = \[0\.  , 0\.5 , 0\.25\]")
    some_left_out(torch.sqrt, points, r"The Jacobian of f gave inf at X\[5\] = \[0\.  , 0\.5 , 0\.25\]")

    def strict(x: Any) -> Any:
        if (x[..., 0] == 0.0).any():
            raise ValueError("zero")
        return x**2

    some_left_out(strict, points, r"f raised ValueError \(zero\) at X\[5\]", derivatives="torch")


def test_a_later_round_names_samples_by_their_numbers_among_all() -> None:
    def f(x: Any) -> Any:  # whose slope is NaN at the edge of the box
        edge = (x[..., :1] < 0.02).to(x)
        return torch.sin(x.sum(-1, keepdim=True)) + 0.0 * (1.0 - edge + 0.0 * x[..., :1]).sqrt()

    quick: dict[str, Any] = {"budget": 32, "starts": 1, "rng": 0, "basis": ub.Polynomial(2)}
    [note] = ub.sample(f, [[0, 1]] * 2, 1, derivatives="auto", **quick).notes
    assert "there: 20 (from 0). The first: The Jacobian of f gave nan at X[20] = " in note


def test_the_complex_step_is_refused() -> None:
    with pytest.raises(ub.UnbraidError, match=r'is for NumPy functions, f takes torch tensors of float64: use "auto"'):
        ub.Problem.from_function(network(), X, derivatives="complex-step")


def test_a_network_that_is_no_object_yet_is_refused() -> None:
    with pytest.raises(ub.UnbraidError, match="got the class Tanh: add parentheses"):
        ub.Problem.from_function(torch.nn.Tanh, X)


def test_several_tensors_in_place_of_one_are_refused() -> None:
    with pytest.raises(ub.UnbraidError, match="f must map a point"):
        ub.Problem.from_function(torch.nn.LSTM(3, 2), X)


def test_points_may_be_a_tensor() -> None:
    np.testing.assert_array_equal(ub.Problem.from_function(network(), torch.tensor(X)).X, X)


def test_points_that_require_gradients_get_advice() -> None:
    with pytest.raises(ub.UnbraidError, match=r"X must be an array of numbers, got a tensor .*: pass X\.detach\(\)"):
        ub.Problem.from_function(network(), torch.tensor(X, requires_grad=True))
    with pytest.raises(
        ub.UnbraidError, match=r"F must be an array of numbers, got a tensor .*: pass F\.detach\(\)"
    ) as caught:
        ub.Problem(X, torch.tensor(X, requires_grad=True))
    assert "rows" not in str(caught.value)
    with pytest.raises(ub.UnbraidError, match=r"F must be .*[^.]\.$"):
        ub.Problem(X, [torch.tensor(x, requires_grad=True) for x in X])


def test_inputs_go_to_the_device_of_the_parameters() -> None:
    """The meta device stands for any other: tensors there have no numbers."""
    net = network().to("meta")
    host = TorchFunction(net, torch.float64, torch.device("meta"))
    assert host.tensor(X).device.type == "meta"
    with pytest.raises(ub.UnbraidError, match="meta"):
        ub.Problem.from_function(net, X)


def test_numpy_functions_do_not_import_torch() -> None:
    code = (
        "import sys, numpy as np, unbraid as ub; "
        "ub.Problem.from_function(np.sin, np.ones((5, 2))); "
        "print('torch' in sys.modules, 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_framework_that_is_not_installed_is_named(framework: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.data.functions.hosts.find_spec", lambda name: None)
    with pytest.raises(ub.UnbraidError, match=rf'pip install -e "\.\[{framework}\]"'):
        ub.Problem.from_function(np.sin, X, derivatives=framework)
