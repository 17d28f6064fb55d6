"""Parts of networks replaced by a few curves."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torch.utils.data import DataLoader, TensorDataset

import unbraid as ub
from hard_modules import Own, own_dropout, partly_detached, through_numpy
from unbraid.networks.compressing.measures import agreement, divergence, multiplications
from unbraid.networks.compressing.parts import count_numbers
from unbraid.networks.compressing.result import Compression

QUICK: dict[str, Any] = {"samples": 80, "coupling": 1.0, "starts": 2, "jobs": 1}


def inputs(count: int = 400, *shape: int) -> Any:
    return torch.randn(count, *(shape or (5,)), generator=torch.Generator().manual_seed(1))


def decoupled_network(outputs: int = 3) -> nn.Sequential:
    """One whose part "1:" is a decoupled function of rank 2."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 2), nn.Tanh(), nn.Linear(2, outputs))


@cache
def compressed() -> Compression:
    return ub.networks.compress(decoupled_network(), "1:", inputs(), rank=2, **QUICK)


def outputs_off(result: Compression) -> float:
    return result.agreement().off


def test_a_decoupled_part_is_found_again() -> None:
    result = compressed()
    assert outputs_off(result) < 0.005
    x = inputs(50)
    with torch.no_grad():
        wanted, found = result.original(x), result.network(x)
    assert float((wanted - found).abs().max()) < 0.05 * float(wanted.std())


def test_the_network_that_was_given_stays_as_it_is() -> None:
    network = decoupled_network()
    network[1].eval()
    before, modes = copy.deepcopy(network.state_dict()), [one.training for one in network.modules()]
    result = ub.networks.compress(network, "1:", inputs(), rank=1, **QUICK)
    assert result.original is network
    assert [one.training for one in network.modules()] == modes
    assert all(torch.equal(one, before[name]) for name, one in network.state_dict().items())
    assert not {id(one) for one in network.modules()} & {id(one) for one in result.network.modules()}
    assert isinstance(result.network, nn.Sequential)
    assert result.network[0].weight is not network[0].weight
    assert torch.equal(result.network[0].weight, network[0].weight)


def test_the_model_has_the_values_of_the_module_that_stands_in_the_network() -> None:
    result = compressed()
    assert isinstance(result.network, nn.Sequential)
    x = torch.randn(30, 6)
    with torch.no_grad():
        found = result.network[1](x).numpy()
    np.testing.assert_allclose(found, result.model(x.numpy()), rtol=1e-4, atol=1e-5)
    assert result.modules == (result.network[1],)
    assert isinstance(result.modules[0], ub.networks.DecoupledModule)
    assert result.model.rank == 2


def test_the_same_seed_gives_the_same_result_and_another_another() -> None:
    first, same, other = (
        ub.networks.compress(decoupled_network(), "1:", inputs(), rank=1, rng=seed, **QUICK) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.model.W0, same.model.W0)
    x = inputs(20)
    with torch.no_grad():
        assert torch.equal(first.network(x), same.network(x))
        assert not torch.equal(first.network(x), other.network(x))
    assert not torch.equal(first.comparison.inputs, other.comparison.inputs)


def test_auto_finds_a_small_rank_and_says_what_it_tried() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 30), nn.Tanh(), nn.Linear(30, 3))
    with torch.no_grad():  # two units, many times over
        network[1].weight[2:] = network[1].weight[:2].repeat(14, 1)
        network[1].bias[2:] = network[1].bias[:2].repeat(14)
    result = ub.networks.compress(network, "1:", inputs(), rank="auto", **QUICK)
    assert result.model.rank == 2
    assert result.agreement().loss <= 0.01
    assert [one.rank for one in result.path] == [1, 2]
    assert result.path[0].agreement.loss > 0.01
    loose = ub.networks.compress(network, "1:", inputs(), rank="auto", tolerance=0.9, **QUICK)
    assert loose.model.rank == 1


def test_auto_that_cannot_reach_the_tolerance_has_no_more_numbers_than_the_part() -> None:
    result = ub.networks.compress(decoupled_network(), "1:", inputs(), rank="auto", tolerance=1e-12, **QUICK)
    assert count_numbers(result.modules[0]) <= 23
    assert result.model.rank == 1


def test_a_budget_is_a_share_of_the_parts_numbers() -> None:
    network = nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 3))
    whole = count_numbers(network[1:])
    result = ub.networks.compress(network, "1:", inputs(), budget=0.13, **QUICK)
    assert result.model.rank == 3
    assert count_numbers(result.modules[0]) <= 0.13 * whole < count_numbers(result.modules[0]) + 6 + 3 + 7
    assert result.path[0].numbers == count_numbers(result.modules[0])
    with pytest.raises(ub.UnbraidError, match=r"budget=0\.01 leaves 4 numbers, and one branch takes 19: raise it to"):
        ub.networks.compress(network, "1:", inputs(), budget=0.01, **QUICK)


def test_open_settings_are_chosen_by_held_out_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    from unbraid.networks.compressing import part_fitting, ranks

    monkeypatch.setattr(ranks, "FIRST_SAMPLES", 40)
    monkeypatch.setattr(part_fitting, "MOST_SAMPLES", 160)
    told: list[str] = []
    result = ub.networks.compress(
        decoupled_network(), "1:", inputs(), rank=1, starts=1, jobs=1, callback=lambda one: told.append(one)
    )
    couplings = [f"rank 1, 40 samples, λ = {coupling:g}" for coupling in part_fitting.COUPLINGS]
    fits, coupling = [one.partition(":")[0] for one in told], result.replacements[0].coupling
    tried = sum(one.startswith("rank 1, 40 samples") for one in fits)
    assert fits[:tried] == couplings[:tried]
    assert coupling in part_fitting.COUPLINGS[max(0, tried - 2) : tried], (
        "the last, or the one before, from which it was worse"
    )
    assert fits[tried] == f"rank 1, 80 samples, λ = {coupling:g}"
    assert all(one.endswith("% lost") for one in told)
    assert result.replacements[0].samples in (40, 80, 160)
    assert len(result.path) == 1


@pytest.mark.parametrize("kind", ["tensors", "shuffling loader", "generator"])
def test_several_parts_are_fitted_one_after_another_with_the_same_inputs_held_out(kind: str) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Linear(5, 4), nn.Sequential(nn.Linear(4, 2), nn.Tanh(), nn.Linear(2, 4)), nn.Linear(4, 2), nn.Tanh()
    )
    network.append(nn.Linear(2, 3))
    X = inputs()
    data: Any = {
        "tensors": X,
        "shuffling loader": DataLoader(TensorDataset(X), batch_size=50, shuffle=True),
        "generator": (one for one in X.split(50)),
    }[kind]
    result = ub.networks.compress(network, ["1", "-3:"], data, rank=[2, 1], **QUICK)
    assert [one.rank for one in result.models] == [2, 1]
    assert [one.part for one in result.path] == ["1", "-3:"]
    assert len(result.fits) == 2
    assert list(result.network._modules) == ["0", "1", "2"]
    assert result.agreement().off < 0.5
    held = result.comparison.inputs
    with torch.no_grad():
        for k, replacement in enumerate(result.replacements):
            seen = nn.Sequential(*list(result.network)[: k + 1])(held).double().numpy()
            assert np.linalg.norm(replacement.X[:, None] - seen[None], axis=-1).min() > 1e-4
    assert "1 by 2 branches, -3: by 1 branches" in repr(result)


def test_one_rank_serves_several_parts() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 3), nn.Tanh())
    result = ub.networks.compress(network, ["0:2", "2:"], inputs(), rank=1, **QUICK)
    assert [one.rank for one in result.models] == [1, 1]
    assert torch.isfinite(result.network(inputs(3))).all()


def test_the_whole_network_may_be_the_part() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 2), nn.Tanh(), nn.Linear(2, 3))
    result = ub.networks.compress(network, "", inputs(), rank=2, **QUICK)
    assert outputs_off(result) < 0.01
    assert "all by 2 branches" in repr(result)


def test_pixels_are_samples_and_maps_of_other_sizes_go_through() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 2, 1), nn.Tanh(), nn.Conv2d(2, 3, 1), nn.AdaptiveAvgPool2d(1)
    )
    network.append(nn.Flatten())
    result = ub.networks.compress(network, "1:4", inputs(60, 2, 5, 5), rank=2, **QUICK)
    assert result.replacements[0].X.shape == (80, 4)
    x = inputs(7, 2, 8, 6)
    with torch.no_grad():
        wanted, found = network(x), result.network(x)
    assert found.shape == (7, 3)
    assert float((wanted - found).abs().max()) < 0.02 * float(wanted.abs().max())


def test_tokens_are_samples() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1), nn.Tanh(), nn.Linear(1, 2))
    result = ub.networks.compress(network, "1:", inputs(50, 6, 3), rank=1, **QUICK)
    assert outputs_off(result) < 0.01
    assert result.network(inputs(2, 9, 3)).shape == (2, 9, 2)


class Residual(nn.Module):  # type: ignore[misc]
    """x + f(x)."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 2), nn.Tanh(), nn.Linear(2, 4))

    def forward(self, x: Any) -> Any:
        return x + self.inner(x)


def test_a_residual_block_is_a_part_and_so_is_what_is_inside() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 4), Residual(), nn.Linear(4, 2))
    inside = ub.networks.compress(network, "1.inner", inputs(), rank=2, **QUICK)
    assert outputs_off(inside) < 0.01
    assert isinstance(inside.network, nn.Sequential)
    assert isinstance(inside.network[1], Residual)
    block = ub.networks.compress(network, "1", inputs(), rank=4, **QUICK)
    assert outputs_off(block) < 0.1


def test_batch_norm_and_dropout_of_a_part_are_those_after_training() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2), nn.BatchNorm1d(2), nn.Tanh()
    )
    network.append(nn.Linear(2, 3))
    network(inputs())
    before = copy.deepcopy(network.state_dict())
    result = ub.networks.compress(network, "1:", inputs(), rank=2, **QUICK)
    assert outputs_off(result) < 0.01
    assert network.training
    assert all(one.training for one in network.modules())
    assert all(torch.equal(one, before[name]) for name, one in network.state_dict().items())


def test_classes_are_told_by_labels_of_whole_numbers() -> None:
    network, X = decoupled_network(), inputs()
    y = network(X).argmax(1)
    result = ub.networks.compress(network, "1:", (X, y), rank=2, **QUICK)
    assert result.comparison.classes
    np.testing.assert_allclose(result.model.W1.sum(axis=0), 0.0, atol=1e-5)  # what all logits share is left out
    found = result.agreement()
    assert found.classes is not None
    assert found.classes > 0.95
    assert found.right == found.classes
    assert found.loss == 1.0 - found.classes
    assert "same class" in repr(result.table())
    assert "of decisions differ" in repr(result)
    values = ub.networks.compress(network, "1:", (X, y), rank=2, outputs="values", **QUICK)
    assert abs(values.model.W1.sum(axis=0)).max() > 1e-3
    assert not ub.networks.compress(network, "1:", (X, y.float()), rank=1, **QUICK).comparison.classes


def test_parts_inside_have_values_also_where_labels_are_classes() -> None:
    network, X = decoupled_network(), inputs()
    result = ub.networks.compress(network, "1:3", (X, network(X).argmax(1)), rank=2, **QUICK)
    assert result.comparison.classes
    assert outputs_off(result) < 0.01


@pytest.mark.parametrize("outputs", ["logits", "softmax"])
def test_outputs_can_be_said_to_be_logits(outputs: Any) -> None:
    result = ub.networks.compress(decoupled_network(), "1:", inputs(), rank=2, outputs=outputs, **QUICK)
    assert result.comparison.classes
    assert result.agreement().right is None
    assert outputs_off(result) < 0.02
    np.testing.assert_allclose(result.model.W1.sum(axis=0), 0.0, atol=1e-4)


def test_one_output_is_no_class() -> None:
    network = decoupled_network(1)
    result = ub.networks.compress(network, "1:", inputs(), rank=1, outputs="logits", **QUICK)
    assert not result.comparison.classes
    assert result.agreement().loss > 0.0


def test_activations_of_the_part_may_be_given_instead_of_inputs(tmp_path: Path) -> None:
    network = decoupled_network()
    with torch.no_grad():
        activations = network[0](inputs())
    result = ub.networks.compress(network, "1:", activations, rank=2, **QUICK)
    assert outputs_off(result) < 0.01
    assert [one.part for one in result.path] == ["1:"]
    assert "1: by 2 branches" in repr(result)
    assert [row[1] for row in result.table().rows] == ["23", "35"]  # of the part
    x = inputs(30)
    with torch.no_grad():
        assert float((network(x) - result.network(x)).abs().max()) < 0.05
    with pytest.raises(ub.UnbraidError, match="export needs inputs of the network"):
        result.export(tmp_path / "model.onnx")
    with pytest.raises(ub.UnbraidError, match=r"Nothing is held out of this loader.*give held_out="):
        result.finetune(list(inputs().split(50)), epochs=1)
    with pytest.raises(ub.UnbraidError, match="Several parts need inputs of the network"):
        ub.networks.compress(network, ["1", "2:"], activations, rank=1, **QUICK)


def test_the_table_has_what_networks_cost_and_how_they_agree() -> None:
    result = compressed()
    table = result.table()
    assert table.heads == ("network", "numbers", "multiplications", "ms for 1", "ms for 256", "outputs off")
    assert [row[:3] for row in table.rows] == [("original", "59", "48"), ("replaced", "71", "56")]
    assert table.rows[0][-1] == "0 %"
    assert repr(table).splitlines()[0].split() == [word for head in table.heads for word in head.split()]
    assert len({len(line) for line in repr(table).splitlines()}) == 1


def test_sizes_have_the_ranks_that_were_tried() -> None:
    table = compressed().sizes()
    assert table.heads == ("part", "rank", "numbers", "samples", "lost")
    assert table.rows == (("1:", "2", "35", "80", "0.00 %"),)


def test_the_result_says_in_one_line_what_it_is() -> None:
    expected = (
        "Compression(1: by 2 branches: 35 numbers instead of 23; on 80 held-out inputs 0.00 % of variance are lost)"
    )
    assert repr(compressed()).splitlines()[0] == expected


def test_notes_say_what_figures_do_not() -> None:
    result = compressed()
    grown, few = result.notes
    assert grown.startswith("What replaces part '1:' has 35 numbers, no fewer than the 23 of before")
    assert few.startswith("Only 80 inputs are held out")
    assert [line.split("note")[1].strip() for line in repr(result).splitlines()[1:]] == [grown, few]


def test_classes_that_no_integers_tell_are_noted() -> None:
    X = inputs(1000)
    network = wide_network()
    y = network(X).argmax(1)
    result = ub.networks.compress(network, "1:", (X, y.double()), rank=2, **QUICK)
    assert [note[:43] for note in result.notes] == ["Labels are numbers, but no integers, so out"]
    assert not result.comparison.classes


def test_one_input_may_come_without_a_batch() -> None:
    X = inputs(200)
    network = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))
    result = ub.networks.compress(network, "1:", X, rank=2, **QUICK)
    with torch.no_grad():
        torch.testing.assert_close(result.network(X[0]), result.network(X[:1])[0])


def wide_network() -> nn.Sequential:
    """One whose part "1:" has more numbers than two branches, and is far from a function of one."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 3))


def test_there_is_no_note_where_nothing_is_to_say() -> None:
    result = ub.networks.compress(wide_network(), "1:", inputs(1000), rank=2, **QUICK)
    assert result.notes == ()
    assert len(repr(result).splitlines()) == 1


def test_a_tolerance_that_no_rank_reaches_is_noted() -> None:
    result = ub.networks.compress(wide_network(), "1:", inputs(1000), "auto", tolerance=1e-9, **QUICK)
    assert [note.partition(" was found")[0] for note in result.notes] == ["No rank with fewer numbers than part '1:'"]


def test_the_fit_says_what_its_inputs_are() -> None:
    fit = compressed().fit
    assert fit.notes[-1].startswith("Inputs are directions of what part '1:' is given")
    assert fit.model.input_names == tuple(f"direction {k + 1}" for k in range(5))


@pytest.mark.usefixtures("no_formulas")
def test_the_fit_has_a_report(tmp_path: Path) -> None:
    result = compressed()
    assert result.fit is result.replacements[0].fit
    assert result.fit.model.m == 5 or result.fit.model.m == 6
    path = tmp_path / "report.html"
    result.fit.report(path)
    assert "direction 1" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constraints_hold_on_all_branches(dtype: Any) -> None:
    constraint = ub.Increasing()
    network = decoupled_network().to(dtype)
    result = ub.networks.compress(network, "1:", inputs(), rank=2, constraint=constraint, **QUICK)
    assert outputs_off(result) < 0.05
    for branch in result.models[0].branches:
        assert branch.certified(constraint)
    assert result.modules[0].W0.dtype == dtype


def test_a_basis_may_be_asked_for() -> None:
    basis = ub.Polynomial(3)
    result = ub.networks.compress(decoupled_network(), "1:", inputs(), rank=1, basis=basis, **QUICK)
    assert result.fit.basis == basis
    assert count_numbers(result.modules[0]) == result.path[0].numbers


def test_rank_and_budget_are_not_given_both() -> None:
    with pytest.raises(ub.UnbraidError, match=r"Give rank \(a number, or 'auto'\) or budget.*not both"):
        ub.networks.compress(decoupled_network(), "1:", inputs(), rank=2, budget=0.5, **QUICK)


def test_without_rank_and_budget_the_rank_is_chosen() -> None:
    chosen = ub.networks.compress(decoupled_network(), "1:", inputs(), **QUICK)
    assert (
        chosen.fit.model.rank == ub.networks.compress(decoupled_network(), "1:", inputs(), "auto", **QUICK).model.rank
    )


def labels() -> Any:
    with torch.no_grad():
        return decoupled_network()(inputs()).argmax(1)


def test_classes_may_lie_in_a_column() -> None:
    flat, column = (
        ub.networks.compress(decoupled_network(), "1:", (inputs(), y), rank=2, **QUICK)
        for y in (labels(), labels()[:, None])
    )
    assert flat.agreement() == column.agreement()
    assert flat.agreement().right == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("off", [1, -1])
def test_labels_that_no_output_stands_for_are_refused(off: int) -> None:
    with pytest.raises(ub.UnbraidError, match="Labels must be classes from 0 to 2, as the network has 3 outputs"):
        ub.networks.compress(decoupled_network(), "1:", (inputs(), labels() + off), rank=1, **QUICK)


def test_labels_of_a_test_set_count_though_there_were_none_before() -> None:
    table = compressed().table((inputs(), labels()))
    assert {"same class", "right"} <= set(table.heads)


def test_a_test_set_of_another_width_is_refused() -> None:
    with pytest.raises(ub.UnbraidError, match=r"The network takes no inputs of shape \(4,\)"):
        compressed().table(inputs()[:, :4])


def test_what_loses_just_the_tolerance_is_within_it() -> None:
    """1 - 0.99 is a little more than 0.01."""
    from unbraid.networks.compressing.ranks import ROUNDING

    assert 1.0 - 0.99 > 0.01
    assert 0.01 + ROUNDING >= 1.0 - 0.99


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"rank": 0}, 'rank must be a whole number, at least 1, or "auto", got 0'),
        ({"rank": 1.5}, "rank must be a whole number, .*, got 1.5"),
        ({"rank": "best"}, "rank must be a whole number, .*, got 'best'"),
        ({"rank": True}, "rank must be a whole number, .*, got True"),
        ({"rank": [1, 2]}, r"one for all parts, or one a part: there are 1, got \[1, 2\]"),
        ({"part": []}, "there are 0"),
        ({"part": ["1", "1:"]}, "The parts '1' and '1:' have modules in common"),
        ({"part": "head"}, "The network has no part 'head': give one of 0, 1, 2, 3"),
        ({"rank": None, "budget": -0.5}, "budget must be a finite number of at least 0, got -0.5"),
        ({"tolerance": "1 %"}, "tolerance must be a finite number of at least 0, got '1 %'"),
        ({"rank": "auto", "tolerance": None}, "tolerance must be a finite number of at least 0, got None"),
        ({"samples": 3}, "samples must be a whole number of at least 10, got 3"),
        ({"outputs": "classes"}, 'outputs must be "values", "logits" or "softmax", got \'classes\''),
        ({"coupling": -1.0}, "coupling must be a finite number of at least 0, got -1.0"),
        ({"coupling": float("nan")}, "coupling must be a finite number of at least 0, got nan"),
        ({"starts": 0}, "starts must be a whole number of at least 1, got 0"),
        ({"basis": "cubic"}, r"basis must be a basis such as ub.BSpline\(df=12\), got 'cubic'"),
        ({"basis": "cubic", "rank": "auto"}, r"basis must be a basis such as ub.BSpline\(df=12\), got 'cubic'"),
        ({"constraint": ub.Increasing}, r"got the class Increasing: add parentheses, Increasing\(\)"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1, got 0"),
        ({"given": "outputs"}, "given must be .*, got 'outputs'"),
        ({"rng": -1}, "rng must be None, a whole number of at least 0 or a NumPy Generator, got -1"),
        ({"callback": "print"}, "callback must be a function of a sentence, or None, got 'print'"),
        ({"network": "resnet"}, r"network must be a torch\.nn\.Module, got 'resnet'"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(setting: dict[str, Any], message: str) -> None:
    asked = {"network": decoupled_network(), "part": "1:", "X": inputs(), "rank": 1, **QUICK, **setting}
    with pytest.raises(ub.errors.SettingError, match=message):
        ub.networks.compress(**asked)


def test_a_setting_may_be_a_number_of_numpy() -> None:
    setting = {**QUICK, "samples": np.int64(40), "coupling": np.float32(1.0), "starts": np.int64(1)}
    rank: Any = np.int64(1)
    assert ub.networks.compress(decoupled_network(), "1:", inputs(), rank=rank, **setting).model.rank == 1


def test_without_torch_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ub.UnbraidError, match="need PyTorch"):
        ub.networks.compress(None, "", None, rank=1)


def test_agreement_of_logits_is_that_of_differences_between_them() -> None:
    wanted = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    same = agreement(wanted + 5.0, wanted, True, wanted.argmax(1))
    assert (same.classes, same.right) == (1.0, 1.0)
    assert same.off < 1e-6
    assert same.distance < 1e-6
    assert agreement(wanted + 5.0, wanted, False, None).off > 1.0
    assert agreement(wanted.mean(0).expand(50, 3), wanted, False, None).loss == pytest.approx(1.0)
    turned = agreement(wanted.roll(1, 1), wanted, True, None)
    assert turned.classes == 0.0
    assert turned.loss == 1.0


def test_divergence_is_that_of_torch() -> None:
    found, wanted = torch.randn(2, 20, 4, generator=torch.Generator().manual_seed(0))
    expected = nn.functional.kl_div(found.log_softmax(1), wanted.softmax(1), reduction="batchmean")
    torch.testing.assert_close(divergence(found, wanted), expected)


def test_multiplications_are_counted_at_every_place() -> None:
    network = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(12, 5))
    assert multiplications(network, torch.randn(4, 2, 4, 4)) == 4 * 3 * 2 * 9 + 60
    assert multiplications(nn.Linear(3, 5), torch.randn(4, 7, 3)) == 7 * 15


@pytest.fixture(autouse=True)
def seeds_are_put_back() -> Iterator[None]:
    state = torch.get_rng_state()
    yield
    torch.set_rng_state(state)


# Ctrl-C


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (partly_detached, "The Jacobian .* does not fit the values of The part '1:': .* detach"),
        (through_numpy, "a detour through NumPy|cannot be differentiated"),
        (own_dropout, "The part '1:' gives different values when called again"),
    ],
)
def test_a_part_that_is_random_or_cut_off_from_its_gradient_is_refused(step: Any, said: str) -> None:
    told: list[str] = []
    network = decoupled_network().insert(2, Own(step))
    with pytest.raises(ub.UnbraidError, match=said):
        ub.networks.compress(network, "1:", inputs(), rank=2, callback=told.append, **QUICK)
    assert not told


def test_a_network_that_is_random_elsewhere_or_looks_at_the_batch_is_refused() -> None:
    random = decoupled_network().insert(0, Own(own_dropout))
    batch = decoupled_network().insert(0, nn.BatchNorm1d(5, track_running_stats=False))
    for network, said in ((random, "The network gives different values"), (batch, "batch norm, which needs running")):
        with pytest.raises(ub.UnbraidError, match=said):
            ub.networks.compress(network, "2:", inputs(), rank=2, **QUICK)


@pytest.mark.parametrize("part", ["1:", ":", "2"])
def test_modules_that_work_in_place_are_those_that_do_not(part: str) -> None:
    results = []
    for in_place in (False, True):
        torch.manual_seed(0)
        layers = nn.Linear(5, 6), nn.ELU(inplace=in_place), nn.Linear(6, 4), nn.SiLU(inplace=in_place), nn.Linear(4, 2)
        network = nn.Sequential(nn.ELU(inplace=in_place), *layers)
        batches = [inputs()[:150].clone(), inputs()[150:].clone()]
        result = ub.networks.compress(network, part, batches, rank=2, **QUICK)
        result.finetune(batches, epochs=1)
        assert torch.equal(torch.cat(batches), inputs())
        results.append(result)
    one, other = results
    assert outputs_off(one) == pytest.approx(outputs_off(other), rel=1e-3)
    np.testing.assert_allclose(one.losses, other.losses, rtol=1e-3)


def test_a_pruned_network_is_compressed_and_stays_as_it_is() -> None:
    network = decoupled_network()
    prune.l1_unstructured(network[3], "weight", amount=0.4)
    network(inputs())  # with a history, which copy.deepcopy refuses
    weight = network[3].weight
    problem = ub.Problem.from_function(network, inputs().numpy())
    ub.Problem.from_function(lambda x: network(x), inputs().numpy())
    copy.deepcopy(network)
    result = ub.networks.compress(network, "1:", inputs(), rank=2, **QUICK)
    assert problem.J is not None
    assert type(network[3].weight) is type(weight)
    assert outputs_off(result) < 0.01
    result.finetune(inputs(), epochs=1)
    assert not any("weight" in name for name, _ in result.network[1].named_parameters())


def test_what_cannot_be_copied_or_replaced_is_refused_before_any_fit() -> None:
    locked = decoupled_network()
    locked[0].lock = threading.Lock()
    peeking = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    for network, part, x, said in (
        (locked, "1:", inputs(), "The network cannot be copied: .*cannot pickle"),
        (peeking, "linear1", inputs(200, 5, 4), "does not run with another module in place of the part"),
    ):
        told: list[str] = []
        with pytest.raises(ub.UnbraidError, match=said):
            ub.networks.compress(network, part, x, rank=2, callback=told.append, **QUICK)
        assert not told


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_named(value: float) -> None:
    network = decoupled_network()
    with torch.no_grad():
        network[3].weight[0, 1] = value
    with pytest.raises(ub.UnbraidError, match=r"'3\.weight' of the network has entries that are NaN or infinite: load"):
        ub.networks.compress(network, "1:", inputs(), rank=2, **QUICK)


def test_more_branches_than_samples_tell_of_are_refused() -> None:
    with pytest.raises(ub.UnbraidError, match=r"rank=1000 has .* unknown numbers, and 80 samples tell of 1,680: give"):
        ub.networks.compress(decoupled_network(), "1:", inputs(), rank=1000, **QUICK)


def test_a_part_of_activations_alone_has_the_type_of_what_it_is_given() -> None:
    result = ub.networks.compress(decoupled_network().double(), "2", inputs().double(), rank=2, **QUICK)
    assert result.modules[0].W0.dtype == torch.float64
    assert outputs_off(result) < 0.05


@pytest.fixture
def ctrl_c_in_fit(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ctrl-C in the k-th fit, as soon as it tells of something."""

    def arrange(k: int) -> list[int]:
        ranks: list[int] = []

        def heard(_: object) -> None:
            raise KeyboardInterrupt

        def decouple(problem: Any, rank: int, **settings: Any) -> ub.Fit:
            ranks.append(rank)
            return ub.decouple(problem, rank, callback=heard if len(ranks) == k else None, **settings)

        monkeypatch.setattr("unbraid.networks.compressing.part_fitting.decouple", decouple)
        return ranks

    return arrange


OPEN: dict[str, Any] = {"starts": 2, "jobs": 1}


@pytest.mark.parametrize(
    ("asked", "at", "ranks"),
    [
        ({"rank": 2, **OPEN}, 1, [2]),  # of two λ
        ({"rank": 2, **OPEN, "coupling": 1.0, "samples": None}, 1, [2]),  # samples would be doubled
        ({"rank": "auto", "tolerance": 1e-12, **QUICK}, 2, [1, 2]),  # higher ranks would follow
        ({"rank": "auto", "tolerance": 1e-2, **QUICK}, 1, [1]),
    ],
)
def test_ctrl_c_in_a_fit_ends_the_search_with_the_best_so_far(
    ctrl_c_in_fit: Any, asked: dict[str, Any], at: int, ranks: list[int]
) -> None:
    tried = ctrl_c_in_fit(at)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))
    result = ub.networks.compress(network, "1:", inputs(), **asked)
    assert tried == ranks
    assert result.interrupted
    assert "the search was interrupted" in repr(result)
    assert np.isfinite(outputs_off(result))


def test_parts_that_were_not_reached_stay_as_they_were(ctrl_c_in_fit: Any) -> None:
    ctrl_c_in_fit(1)
    network = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    result = ub.networks.compress(network, ["1:3", "3:"], inputs(), rank=2, **QUICK)
    assert result.interrupted
    assert [one.name for one in result.parts] == ["1:3"]
    assert isinstance(result.network, nn.Sequential)
    assert torch.equal(result.network[-1].weight, network[-1].weight)


def test_a_search_that_nobody_interrupted_says_nothing_of_it() -> None:
    assert not compressed().interrupted
    assert "interrupted" not in repr(compressed())


def test_values_may_count_nothing_beside_jacobians() -> None:
    result = ub.networks.compress(decoupled_network(), "1:", inputs(), rank=2, **{**QUICK, "coupling": 0.0})
    assert outputs_off(result) < 0.05
