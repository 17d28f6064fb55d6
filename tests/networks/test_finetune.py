"""Compressed networks trained on: to agree with the original, or for a task, and written as ONNX."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import unbraid as ub
from unbraid.networks.compressing.finetuning import prepare
from unbraid.networks.compressing.result import GAINED_NOTHING, Compression
from unbraid.networks.compressing.samples import Examples

QUICK: dict[str, Any] = {"samples": 60, "coupling": 1.0, "starts": 1, "jobs": 1}


def inputs(count: int = 300) -> Any:
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(1))


def network(outputs: int = 3) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, outputs))


@cache
def made(outputs: int, rank: int, constrained: bool) -> Compression:
    constraint = ub.Increasing() if constrained else None
    return ub.networks.compress(network(outputs), "1:", inputs(), rank=rank, constraint=constraint, **QUICK)


def compressed(outputs: int = 3, rank: int = 2, constrained: bool = False) -> Compression:
    """A fresh one; its fit is made only once."""
    kept = made(outputs, rank, constrained)
    result = copy.copy(kept)
    result.network, result.losses = copy.deepcopy(kept.network), []
    return result


def disturbed(result: Compression) -> Compression:
    """One that has something to gain."""
    with torch.no_grad():
        for parameter in result.modules[0].parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return result


def state(module: nn.Module) -> dict[str, Any]:
    return copy.deepcopy(module.state_dict())


def same_state(module: nn.Module, before: dict[str, Any]) -> bool:
    return all(torch.equal(one, before[name]) for name, one in module.state_dict().items())


def held_loss(result: Compression, held: Any) -> float:
    """The mean square difference from the original, in units of the outputs' variance."""
    with torch.no_grad():
        off = (result.network(held) - result.original(held)).square().mean()
    return float(off) / float(result.comparison.wanted.double().var(0).mean())


def classes() -> Any:
    return (inputs() @ torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0], [0.0, 0.0, 1.0], [1.0, -1.0, 0.0]])).argmax(1)


@pytest.mark.parametrize("rate", [1e-3, 1.0])
@pytest.mark.parametrize("what", ["all", "module"])
def test_the_loss_on_what_is_held_out_never_ends_above_where_it_began(rate: float, what: Any) -> None:
    result, held = compressed(), torch.randn(50, 4)
    before = held_loss(result, held)
    assert result.finetune(inputs(), epochs=3, rate=rate, what=what, held_out=held) is result
    assert result.losses[0] == pytest.approx(before, rel=1e-4)
    assert 2 <= len(result.losses) <= 4
    assert held_loss(result, held) == pytest.approx(min(result.losses), rel=1e-4)
    assert held_loss(result, held) <= before * (1.0 + 1e-6)


def test_training_gains() -> None:
    result = disturbed(compressed())
    before = result.agreement().off
    result.finetune(inputs(), epochs=8, rate=1e-2)
    assert min(result.losses) < 0.5 * result.losses[0]
    assert result.agreement().off < before


def test_training_that_gains_nothing_says_so() -> None:
    result, before = compressed(), compressed().notes
    result.finetune(inputs(), epochs=1, rate=100.0)
    assert result.notes == (*before, GAINED_NOTHING)
    disturbed(result).finetune(inputs(), epochs=8, rate=1e-2)
    assert result.notes == before


def test_module_leaves_all_other_numbers_as_they_were() -> None:
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Dropout(0.3), nn.Linear(5, 8), nn.Tanh())
    whole.append(nn.Linear(8, 2))
    whole(inputs())
    result = disturbed(ub.networks.compress(whole, "3:", inputs(), rank=2, **QUICK))
    before, parts, kept = state(result.network), {"3"}, state(whole)
    result.finetune(inputs(), epochs=2, rate=1e-2, what="module", patience=5)
    after = result.network.state_dict()
    changed = {name for name, one in after.items() if not torch.equal(one, before[name])}
    assert changed
    assert {name.partition(".")[0] for name in changed} <= parts
    assert result.network.training
    result.finetune(inputs(), epochs=2, rate=1e-3, what="all", patience=5)
    assert same_state(whole, kept)


def test_all_trains_all() -> None:
    result = disturbed(compressed())
    before = state(result.network)
    result.finetune(inputs(), epochs=2, rate=1e-3)
    assert min(result.losses) < result.losses[0]
    assert all(not torch.equal(one, before[name]) for name, one in result.network.named_parameters())


@pytest.mark.parametrize("training", [True, False])
def test_the_original_and_modes_stay_as_they_are(training: bool) -> None:
    result = compressed()
    result.original.train(training)
    result.network.train(training)
    before = state(result.original)
    result.finetune(inputs(), epochs=1)
    assert same_state(result.original, before)
    assert all(one.training == training for one in result.original.modules())
    assert result.network.training == training
    assert all(one.grad is None for one in result.original.parameters())


def test_a_task_is_learned_from_labels() -> None:
    result = compressed()
    result.finetune((inputs(), classes()), epochs=15, loss="task", rate=2e-2)
    assert min(result.losses) < 0.7 * result.losses[0]
    with torch.no_grad():
        right = (result.network(inputs()).argmax(1) == classes()).double().mean()
    assert right > 0.6


@pytest.mark.parametrize("data", [(inputs()[:, :3], classes()), (inputs(), classes()[:7])], ids=["width", "length"])
def test_what_cannot_be_trained_on_is_refused(data: Any) -> None:
    result = compressed()
    with pytest.raises(ub.UnbraidError):
        result.finetune(data, loss="task")
    assert not result.losses


@pytest.mark.parametrize("shape", [(300, 3), (300, 3, 1)])
def test_a_task_may_have_values(shape: tuple[int, ...]) -> None:
    result = compressed()
    y = torch.sin(inputs()[:, :3]).reshape(shape).numpy().astype(np.float64)
    result.finetune((inputs().numpy(), y), epochs=4, loss="task", rate=1e-2)
    assert min(result.losses) < result.losses[0]


@pytest.mark.parametrize("loss", ["distil", "task"])
def test_whole_numbers_of_one_output_are_values(loss: Any) -> None:
    result = compressed(1)
    counts = inputs().sum(1).round().long()
    result.finetune((inputs(), counts), epochs=2, loss=loss, rate=1e-3)
    assert result.losses[0] > 1e-6  # cross entropy, or a divergence, of one class is nothing


def test_distillation_of_classes_is_a_divergence() -> None:
    result, held = compressed(), torch.randn(40, 4)
    result.finetune((inputs(), classes()), epochs=1, held_out=(held, torch.zeros(40, dtype=torch.int64)))
    before = made(3, 2, False).network
    with torch.no_grad():
        expected = nn.functional.kl_div(
            before(held).log_softmax(1), result.original(held).softmax(1), reduction="batchmean"
        )
    assert result.losses[0] == pytest.approx(float(expected), rel=1e-3)


def test_what_compress_has_held_out_is_not_trained_on() -> None:
    result = compressed()
    seen: list[bytes] = []
    held = {bytes(row.numpy()) for row in result.comparison.inputs}
    forward = result.network.forward

    def watched(x: Any) -> Any:
        if torch.is_grad_enabled():
            seen.extend(bytes(row.numpy()) for row in x)
        return forward(x)

    result.network.forward = watched
    result.finetune(inputs(), epochs=1)
    assert len(set(seen)) > 100
    assert not held & set(seen)


def test_a_table_may_be_of_other_data() -> None:
    table = compressed().table(inputs()[:50])
    assert len(table.rows) == 2
    assert table.rows[0][0] == "original"


def test_a_loss_may_be_any_function_of_outputs_and_labels() -> None:
    result = compressed()
    seen: list[Any] = []

    def loss(found: Any, y: Any) -> Any:
        seen.append((found.shape, y.shape))
        return (found - y).abs().mean()

    result.finetune((inputs(), inputs()[:, :3]), epochs=3, loss=loss, rate=1e-2)
    assert min(result.losses) < result.losses[0]
    assert seen
    assert all(found == y and found[1] == 3 for found, y in seen)
    without = compressed()
    without.finetune(inputs(), epochs=1, loss=lambda found, y: found.square().mean() if y is None else None)
    assert len(without.losses) == 2


X, Y = inputs(), classes()
KINDS: dict[str, Any] = {
    "tensor": X,
    "array": X.numpy(),
    "pair": (X, Y),
    "pair of arrays": (X.double().numpy(), Y.numpy()),
    "loader": DataLoader(TensorDataset(X, Y), batch_size=50),
    "loader without labels": DataLoader(TensorDataset(X), batch_size=50, shuffle=True, drop_last=True),
    "list": list(X.split(50)),
    "list of pairs": list(zip(X.split(50), Y.split(50), strict=True)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_all_kinds_train(kind: str) -> None:
    result = compressed()
    before = state(result.network)
    result.finetune(KINDS[kind], epochs=1, rate=1e-3)
    assert len(result.losses) == 2
    assert np.isfinite(result.losses).all()
    assert same_state(result.network, before) == (result.losses[1] >= result.losses[0])


@pytest.mark.parametrize("kind", ["tensor", "pair", "loader", "loader without labels"])
def test_what_is_held_out_is_not_trained_on(kind: str) -> None:
    data = prepare(KINDS[kind], None, np.random.default_rng(0), Examples(X[:5], None))
    held = torch.cat([one.x for one in data.held])
    assert len(held) == 30
    for _ in range(2):
        seen = torch.cat([one[0] for one in data])
        assert len(seen) == (250 if kind == "loader without labels" else 270)
        assert float(torch.cdist(seen, held).min()) > 1e-3


def test_what_is_given_to_be_held_out_leaves_all_for_training() -> None:
    for kind in ("pair", "loader", "list"):
        data = prepare(KINDS[kind], (X[:7], Y[:7]), np.random.default_rng(0), None)
        assert sum(len(one.x) for one in data.held) == 7
        assert sum(len(one if kind == "list" else one[0]) for one in data) == 300


@pytest.mark.parametrize("count", [143, 144])  # of which 129, and 130, are trained on
def test_no_batch_is_so_short_that_batch_norm_fails(count: int) -> None:
    whole = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 2))
    whole(X)
    result = ub.networks.compress(whole, "2", X, rank=1, **QUICK)
    result.finetune(X[:count], epochs=1)
    result.finetune(DataLoader(TensorDataset(X[:count]), batch_size=64), epochs=1)


def test_the_same_seed_gives_the_same_training() -> None:
    first, same, other = (compressed().finetune(inputs(), epochs=1, rate=1e-3, rng=seed) for seed in (1, 1, 2))
    assert first.losses == same.losses != other.losses
    assert same_state(first.network, state(same.network))


def test_training_can_go_on() -> None:
    result = compressed()
    result.finetune(inputs(), epochs=2)
    best = min(result.losses)
    result.finetune(inputs(), epochs=2)
    assert len(result.losses) == 6
    assert result.losses[3] == pytest.approx(best, rel=1e-5)
    assert [row[0] for row in result.table().rows] == ["original", "replaced", "trained"]


def test_the_best_state_is_kept_where_training_diverges() -> None:
    result = compressed()
    before = state(result.network)
    result.finetune(inputs(), epochs=2, rate=10.0)
    assert min(result.losses) == result.losses[0]
    assert same_state(result.network, before)


def test_the_best_state_is_kept_where_a_loss_is_no_number() -> None:
    result = compressed()
    before, calls = state(result.network), [0]

    def loss(found: Any, _: Any) -> Any:
        calls[0] += 1
        return found.square().mean() * (float("nan") if calls[0] > 4 else 1.0)

    with pytest.raises(ub.UnbraidError, match="The loss is NaN or infinite: train with smaller steps, such as rate="):
        result.finetune(inputs(), epochs=3, loss=loss)
    assert same_state(result.network, before)


def test_a_state_that_is_nan_on_held_out_data_is_not_taken_for_the_best() -> None:
    result = compressed()
    held = torch.randn(20, 4)

    def loss(found: Any, _: Any) -> Any:
        return found.square().mean() if torch.is_grad_enabled() else found.square().mean() * losses.pop()

    losses = [1e-9, float("nan"), 1.0]
    result.finetune(inputs(), epochs=2, loss=loss, held_out=held)
    assert result.losses[2] < 1e-6
    assert np.isnan(result.losses[1])
    assert all(bool(one.isfinite().all()) for one in result.network.state_dict().values())


def test_patience_ends_training() -> None:
    result = compressed()
    result.finetune(inputs(), epochs=50, rate=3.0, patience=1)
    assert len(result.losses) < 20


def test_all_epochs_are_gone_through_unless_patience_is_given() -> None:
    """Most is gained at the end, where the rate falls to zero: here nothing is for the first epochs."""
    result, other = compressed(), compressed()
    result.finetune(inputs(), epochs=12, rate=0.03)
    other.finetune(inputs(), epochs=12, rate=0.03, patience=0)
    assert len(result.losses) == 13
    assert min(result.losses) <= min(other.losses)
    with pytest.raises(ub.UnbraidError, match="patience must be a whole number"):
        result.finetune(inputs(), patience=-1)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (
            lambda found, wanted: found,
            r"loss must give a tensor of one number, a mean over the batch, got shape \(30, 3\)",
        ),
        (lambda found, wanted: None, "loss must give a tensor of one number, .* got None"),
        (lambda found, wanted: found.mean().detach(), "loss has no gradient"),
    ],
)
def test_losses_that_cannot_be_trained_with_are_refused(loss: Any, said: str) -> None:
    result = compressed()
    before = state(result.network)
    with pytest.raises(ub.UnbraidError, match=said):
        result.finetune((inputs(), torch.zeros(300)), loss=loss)
    assert same_state(result.network, before)


def test_a_network_comes_back_from_its_saved_state(tmp_path: Path) -> None:
    result = disturbed(compressed())
    result.finetune(inputs(), epochs=1)
    torch.save(result.network.state_dict(), tmp_path / "small.pt")
    again = ub.networks.restore(network(), torch.load(tmp_path / "small.pt"))  # with weights_only, torch's default
    with torch.no_grad():
        assert torch.equal(again(inputs()), result.network(inputs()))
    assert repr(again) == repr(result.network)
    model, other = ub.networks.model(again[1]), result.model
    np.testing.assert_array_equal(model(np.eye(5)), other(np.eye(5)))


def test_maps_several_parts_and_whole_networks_come_back_too() -> None:
    torch.manual_seed(0)
    conv = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 3, 1), nn.Tanh(), nn.Flatten(), nn.Linear(48, 2))
    for whole, part, x in (
        (conv.double(), ["1:3", "4"], torch.randn(60, 2, 4, 4).double()),
        (network(), ":", inputs()),
        (network(), "", inputs()),
    ):
        result = ub.networks.compress(whole, part, x, rank=1, **QUICK)
        again = ub.networks.restore(whole, result.network.state_dict())
        with torch.no_grad():
            assert torch.equal(again(x), result.network(x))


def test_a_state_that_does_not_fit_is_refused() -> None:
    saved = compressed().network.state_dict()
    for other, given, said in (
        (nn.Linear(4, 3), saved, "state does not fit the network, .* give a network of the kind that was compressed"),
        (nn.Sequential(nn.Linear(9, 5), *network()[1:]), saved, "state does not fit the network"),
        (network(), network().state_dict(), r"state has no module of ub\.networks"),
        (network(), 3, "state must be the state_dict of a compressed network, got 3"),
        (3, saved, r"network must be a torch\.nn\.Module, got 3"),
        (network(), {**saved, "1._extra_state": torch.zeros(3, dtype=torch.uint8)}, "damaged"),
        (network(), {**saved, "1._extra_state": saved["1._extra_state"][:-20]}, "damaged"),
    ):
        with pytest.raises(ub.UnbraidError, match=said):
            ub.networks.restore(other, given)


def test_ctrl_c_returns_the_best_so_far() -> None:
    result, told = disturbed(compressed()), []

    def callback(epoch: int, loss: float) -> None:
        told.append((epoch, loss))
        if epoch == 2:
            raise KeyboardInterrupt

    assert result.finetune(inputs(), epochs=9, rate=1e-3, callback=callback) is result
    assert [epoch for epoch, _ in told] == [1, 2]
    assert result.losses[1:] == [loss for _, loss in told]
    held = [one.x for one in prepare(inputs(), None, np.random.default_rng(0), None).held]
    assert held_loss(result, torch.cat(held)) == pytest.approx(min(result.losses), rel=1e-3)
    assert min(result.losses) == result.losses[2]  # that of the epoch at whose end it came


def test_the_model_has_the_values_of_the_trained_module() -> None:
    result = disturbed(compressed())
    result.finetune(inputs(), epochs=3, rate=1e-2)
    assert min(result.losses) < result.losses[0]
    assert isinstance(result.network, nn.Sequential)
    x = torch.randn(40, 5)
    with torch.no_grad():
        found = result.network[1](x).numpy()
    np.testing.assert_allclose(found, result.model(x.numpy()), rtol=1e-4, atol=1e-4)
    assert np.abs(result.model.W0 - result.replacements[0].model.W0).max() > 1e-4


def test_the_fit_of_a_trained_part_has_the_errors_of_now() -> None:
    result = compressed()
    before = result.fit
    result.finetune(inputs(), epochs=2, rate=1e-2)
    after = result.fit
    assert after.notes[0].startswith("The model was trained on after the fit")
    assert after.jacobian_error != before.jacobian_error
    problem = after.problem
    assert problem is not None
    assert problem.F is not None
    off = np.linalg.norm(after.model(problem.X) - problem.F) / np.linalg.norm(problem.F - problem.F.mean(axis=0))
    assert off < 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constraints_hold_on_all_branches_after_training(dtype: Any) -> None:
    constraint, result = ub.Increasing(), compressed(constrained=True)
    result.network, result.original = result.network.to(dtype), copy.deepcopy(result.original).to(dtype)
    before = [branch.coordinates for branch in result.replacements[0].fit.model.branches]  # type: ignore[attr-defined]
    target = torch.stack([-inputs()[:, 0], (3.0 * inputs()[:, 1]).sin(), inputs()[:, 2] ** 2], 1)
    result.finetune((inputs(), target), epochs=6, loss="task", rate=3e-2)
    assert min(result.losses) < result.losses[0]
    branches = result.models[0].branches
    assert all(branch.certified(constraint) for branch in branches)
    for branch, old in zip(branches, before, strict=True):
        u = np.linspace(branch.domain[0] - 1.0, branch.domain[1] + 1.0, 1001)
        assert branch.derivative(u).min() >= -1e-6 * np.abs(branch.derivative(u)).max()
        assert not np.array_equal(getattr(branch, "coordinates", old[:0]), old)
    assert result.fit.jacobian_error is not None  # branches may have become pieces alone


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"loss": "task"}, r'loss="task" needs labels: give \(X, y\)'),
        ({"loss": "mse"}, r'loss must be "distil", "task" or a function of \(outputs, labels\), got \'mse\''),
        ({"what": "head"}, 'what must be "all" or "module", got \'head\''),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, got 0"),
        ({"epochs": 2.5}, "epochs must be a whole number of at least 1, got 2.5"),
        ({"rate": -1.0}, "rate must be a finite number of at least 0, got -1.0"),
        ({"patience": -1}, "patience must be a whole number of at least 0, got -1"),
        ({"rng": "seed"}, "rng must be None, a whole number"),
        ({"data": 7}, r"Training needs arrays \(X, y\), or a loader of batches, got 7"),
        ({"data": (X, Y[:-1])}, "X and y must have one row a sample each, got 300 and 299"),
        ({"data": []}, "Epoch 1 has no batches"),
        ({"data": (one for one in X.split(50)), "epochs": 2}, "Epoch 2 has no batches: give data that can be gone"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(setting: dict[str, Any], message: str) -> None:
    result = compressed()
    with pytest.raises(ub.UnbraidError, match=message):
        result.finetune(**{"data": inputs(), "epochs": 1, **setting})


def test_a_list_without_data_to_hold_out_is_judged_by_what_compress_has_held_out() -> None:
    result = compressed()
    result.finetune(KINDS["list"], epochs=1)
    assert result.losses[0] == pytest.approx(made(3, 2, False).agreement().off ** 2, rel=0.1)


@pytest.mark.filterwarnings("ignore")  # of torch and of onnxscript, about each other
def test_onnx_of_a_trained_network_gives_the_same_for_batches_of_any_length(tmp_path: Path) -> None:
    result, path = disturbed(compressed()), tmp_path / "network.onnx"
    result.finetune(inputs(), epochs=1, rate=1e-2)
    assert result.export(path) == path
    said = path.read_bytes()
    assert b"stack_trace" not in said  # nor any other path of this machine
    assert b".py" not in said
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for count in (1, 7):
        x = torch.randn(count, 4)
        (found,) = session.run(["y"], {"x": x.numpy()})
        with torch.no_grad():
            torch.testing.assert_close(torch.tensor(found), result.network(x), rtol=1e-4, atol=1e-4)


def test_a_network_that_torch_cannot_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def export(*_: Any, **__: Any) -> None:
        raise RuntimeError("data-dependent control flow")

    monkeypatch.setattr("torch.onnx.export", export)
    with pytest.raises(ub.UnbraidError, match="PyTorch cannot write this network as ONNX"):
        compressed().export(tmp_path / "network.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore")
def test_onnx_of_pixels_and_in_the_mode_after_training(tmp_path: Path) -> None:
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Conv2d(4, 3, 1), nn.Tanh(), nn.Dropout())
    maps = torch.randn(50, 2, 4, 4)
    whole(maps)
    result = ub.networks.compress(whole, "2:4", maps, rank=2, **QUICK)
    session = onnxruntime.InferenceSession(result.export(tmp_path / "maps.onnx"), providers=["CPUExecutionProvider"])
    assert result.network.training
    for count in (1, 7):
        (found,) = session.run(["y"], {"x": maps[:count].numpy()})
        with torch.no_grad():
            wanted = copy.deepcopy(result.network).eval()(maps[:count])
        torch.testing.assert_close(torch.tensor(found), wanted, rtol=1e-4, atol=1e-4)


@pytest.fixture(autouse=True)
def seeds_are_put_back() -> Iterator[None]:
    before = torch.get_rng_state()
    torch.manual_seed(5)
    yield
    torch.set_rng_state(before)
