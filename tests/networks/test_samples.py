"""What parts of networks are given: samples from data of all kinds, and inputs that are held out."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import unbraid as ub
from unbraid.kernels.arrays import Array
from unbraid.networks.compressing import samples
from unbraid.networks.compressing.parts import find_part
from unbraid.networks.compressing.samples import (
    Activations,
    Given,
    Remembered,
    are_classes,
    collect,
    look_like_classes,
)

COUNT = 100


def chain() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def inputs(count: int = COUNT) -> Any:
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(1))


def collected(data: object, network: Any = None, part: Any = "1:", given: Given | None = None) -> Activations:
    network = chain() if network is None else network
    return collect(network, find_part(network, part), data, given, np.random.default_rng(0))


def entered(network: Any, x: Any) -> Array:
    """What "1:" of a chain is given."""
    with torch.no_grad():
        found: Array = network[0](x).double().numpy()
    return found


def sorted_rows(rows: Array) -> Array:
    return np.asarray(rows[np.lexsort(rows.T)])


def test_samples_are_what_the_part_is_given_of_all_inputs_that_are_not_held_out() -> None:
    network = chain()
    found = collected(inputs(), network)
    assert found.given == "inputs"
    assert found.layout.places == "vectors"
    assert found.X.dtype == np.float64
    assert found.X.shape == (80, 4)
    assert (found.inputs.shape, found.labels) == ((20, 3), None)
    everything = np.concatenate([found.X, entered(network, found.inputs)])
    np.testing.assert_allclose(sorted_rows(everything), sorted_rows(entered(network, inputs())), rtol=1e-5)


X, Y = inputs(), torch.arange(COUNT)
KINDS = {
    "tensor": X,
    "array": X.numpy(),
    "array of doubles": X.double().numpy(),
    "loader": DataLoader(TensorDataset(X), batch_size=7),
    "shuffling loader": DataLoader(TensorDataset(X), batch_size=7, shuffle=True),
    "list": list(X.split(9)),
    "list of arrays": [one.numpy() for one in X.split(9)],
}
LABELLED = {
    "tensors": (X, Y),
    "arrays": (X.numpy(), Y.numpy()),
    "a list of labels": (X, Y.tolist()),
    "loader": DataLoader(TensorDataset(X, Y), batch_size=7),
    "shuffling loader": DataLoader(TensorDataset(X, Y), batch_size=7, shuffle=True),
    "list": list(zip(X.split(9), Y.split(9), strict=True)),
    "list of lists": [[one.numpy(), y.numpy()] for one, y in zip(X.split(9), Y.split(9), strict=True)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_all_kinds_are_the_same_samples(kind: str) -> None:
    network = chain()
    found = collected(KINDS[kind], network)
    assert found.labels is None
    assert found.inputs.dtype == torch.float32
    everything = np.concatenate([found.X, entered(network, found.inputs)])
    np.testing.assert_allclose(sorted_rows(everything), sorted_rows(entered(network, X)), rtol=1e-5)


@pytest.mark.parametrize("kind", LABELLED)
def test_labels_stay_with_their_inputs(kind: str) -> None:
    found = collected(LABELLED[kind])
    assert found.labels is not None
    assert are_classes(found.labels)
    assert torch.equal(found.inputs, X[found.labels])
    assert len(found.inputs) == len(found.labels) == 20


@pytest.mark.parametrize("kind", [*KINDS, *LABELLED])
def test_what_is_held_out_is_never_among_the_samples(kind: str) -> None:
    network = chain()
    found = collected({**KINDS, **LABELLED}[kind], network)
    held = entered(network, found.inputs)
    assert np.linalg.norm(found.X[:, None] - held[None], axis=-1).min() > 1e-4


def test_of_maps_whole_inputs_are_held_out() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 2, 1))
    maps = torch.randn(50, 3, 2, 3)
    found = collected(maps, network)
    assert found.layout.places == "pixels"
    assert (found.X.shape, found.inputs.shape) == ((40 * 6, 4), (10, 3, 2, 3))
    with torch.no_grad():
        held = network[0](found.inputs).movedim(1, -1).reshape(-1, 4).double().numpy()
    assert np.linalg.norm(found.X[:, None] - held[None], axis=-1).min() > 1e-6


def test_much_data_are_not_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MOST_SAMPLES", 50)
    monkeypatch.setattr(samples, "MOST_HELD", 10)
    for data in (X, list(X.split(9))):
        found = collected(data)
        assert (len(found.X), len(found.inputs)) == (50, 10)
    read: list[int] = []

    def endless() -> Iterator[Any]:
        while True:
            read.append(1)
            yield torch.randn(10, 3)

    found = collected(endless())
    assert (len(found.X), len(found.inputs)) == (50, 10)
    assert len(read) == 6


@pytest.mark.parametrize(
    ("labels", "answer"),
    [(Y.float(), False), (Y[:, None], True), (torch.stack([Y, Y], dim=1), False), (Y > 50, True)],
    ids=["floating", "in a column", "in two columns", "yes or no"],
)
def test_whole_labels_are_classes_where_there_is_one_a_sample(labels: torch.Tensor, answer: bool) -> None:
    found = collected((X, labels)).labels
    assert found is not None
    assert are_classes(found) is answer


def test_activations_are_recognised_where_they_are_no_inputs() -> None:
    given = torch.randn(50, 4)
    found = collected(given)
    assert found.given == "activations"
    np.testing.assert_array_equal(
        sorted_rows(np.concatenate([found.X, found.inputs.double().numpy()])), sorted_rows(given.double().numpy())
    )


def test_what_is_said_of_data_counts() -> None:
    network = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))
    rows = sorted_rows(X.double().numpy())
    said: tuple[Given | None, ...] = (None, "inputs", "activations")
    for given in said:
        found = collected(X, network, given=given)
        assert found.given == (given or "inputs")
        everything = np.concatenate([found.X, found.inputs.double().numpy()])
        assert np.array_equal(sorted_rows(everything), rows) == (given == "activations")
    with pytest.raises(ub.UnbraidError, match=r'given must be "inputs" .* or "activations" .*, got \'outputs\''):
        collected(X, network, given="outputs")  # type: ignore[arg-type]


def test_whole_numbers_may_be_inputs() -> None:
    network = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 2))
    found = collected(torch.randint(0, 7, (60, 5)), network)
    assert found.layout.places == "tokens"
    assert (found.X.shape, found.inputs.shape, found.inputs.dtype) == ((48 * 5, 4), (12, 5), torch.int64)


def test_samples_come_in_the_type_of_the_network() -> None:
    found = collected(X.numpy(), chain().double())
    assert found.inputs.dtype == torch.float64


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            torch.randn(20, 9),
            r"Samples of shape \(9,\) are neither inputs of the network \(.*\) nor of its part \(.*\)",
        ),
        (torch.randn(20), r"Samples of shape \(\) are neither"),
        ([], "X has no samples"),
        (DataLoader(TensorDataset(torch.zeros(0, 3))), "X has no samples"),
        (torch.zeros(0, 3), "X has no samples"),
        (torch.randn(5, 3), "X has 5 samples, of which 1 are held out: too few, give some hundreds"),
        (torch.ones(20, 3, dtype=torch.int64), "Whole numbers are taken for indices: give floats if they are none"),
        ((X, np.array(["a"] * 100)), r"Labels must be numbers in one array or tensor, got an array of <U1 \(np.unique"),
        ((X, [[1], [2, 3]]), "Labels must be numbers in one array or tensor, got a list"),
        ([((X, X), Y)], "Inputs must be numbers in one array or tensor, got a tuple"),
        (torch.full((20, 3), float("nan")), "is NaN or infinite for some samples"),
        (
            DataLoader([torch.zeros(3), torch.zeros(2)] * 9, batch_size=4),
            r"The loader raised RuntimeError \(stack expects",
        ),
        ([[1.0, 2.0, 3.0]] * 20, r"Inputs must be numbers in one array .* got a float: give np\.array\(X\)"),
        ([X[:50], X[50:, :2]], r"The network takes no inputs of shape \(2,\)"),
        (X.to_sparse(), "Inputs must be dense numbers"),
        (X.to("meta"), "Inputs must be dense numbers .* on the meta device"),
        (7, r"X must be an array, a tensor, \(X, y\), or a loader of batches, got 7"),
        ("data.csv", r"X must be an array, .*, got 'data.csv'"),
        ((X, Y[:-1]), "X and y must have one row a sample each, got 100 and 99"),
    ],
)
def test_data_that_cannot_be_used_are_refused(data: Any, message: str) -> None:
    with pytest.raises(ub.UnbraidError, match=message):
        collected(data)


def test_of_a_network_of_several_inputs_its_parts_are_to_be_given() -> None:
    class Two(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(7, 2)

        def forward(self, u: Any, v: Any) -> Any:
            return self.head(torch.cat([u, v], 1))

    with pytest.raises(ub.UnbraidError, match="takes 2 inputs, and X is one: give X as what the part is given"):
        collected(inputs(), Two(), "head")
    assert collected(torch.randn(50, 7), Two(), "head").given == "activations"


@pytest.mark.parametrize(
    ("labels", "alike"),
    [
        (torch.tensor([0.0, 2.0, 1.0]), True),
        (torch.tensor([[1, 0, 0], [0, 0, 1]]), True),
        (torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), True),
        (torch.tensor([0.0, 3.0]), False),
        (torch.tensor([0.5, 1.0]), False),
        (torch.tensor([[1.0, 1.0, 0.0]]), False),
        (torch.tensor([[1.0, 0.0]]), False),
        (torch.tensor([0, 2, 1]), False),
    ],
)
def test_labels_that_say_classes_in_another_way_are_known(labels: torch.Tensor, alike: bool) -> None:
    assert look_like_classes(labels, 3) == alike


def test_one_activation_that_is_infinite_is_found() -> None:
    some = X.clone()
    some[17, 1] = torch.inf
    with pytest.raises(ub.UnbraidError, match="NaN or infinite"):
        collected(some)


class Uses(nn.Module):  # type: ignore[misc]
    """A network that calls its layer in some way."""

    def __init__(self, how: Any) -> None:
        super().__init__()
        self.layer, self.other, self.how = nn.Linear(3, 3), nn.Bilinear(3, 3, 3), how

    def forward(self, x: Any) -> Any:
        return self.how(self, x)


def test_a_part_that_is_used_twice_or_never_is_refused() -> None:
    with pytest.raises(ub.UnbraidError, match="The part 'layer' is used 2 times as the network runs once"):
        collected(X, Uses(lambda self, x: self.layer(self.layer(x))), "layer")
    with pytest.raises(ub.UnbraidError, match="The part 'layer' is used 0 times"):
        collected(X, Uses(lambda _, x: x), "layer")


def test_a_part_of_two_arguments_is_refused() -> None:
    with pytest.raises(ub.UnbraidError, match="The part 'other' is called with 2 arguments: only parts of one tensor"):
        collected(X, Uses(lambda self, x: self.other(x, x)), "other", "inputs")


def with_state() -> nn.Sequential:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 4), nn.BatchNorm1d(4))
    network(inputs())  # averages that are not those of the beginning
    network[1].eval()  # a mode of its own
    return network


@pytest.mark.parametrize("fails", [False, True])
def test_a_network_stays_as_it_is(fails: bool) -> None:
    network = with_state()
    before, modes = copy.deepcopy(network.state_dict()), [one.training for one in network.modules()]
    data = torch.full((20, 3), float("nan")) if fails else X
    try:
        collected(data, network, "1:")
    except ub.UnbraidError:
        assert fails
    assert [one.training for one in network.modules()] == modes
    assert all(torch.equal(one, before[name]) for name, one in network.state_dict().items())
    assert not any(one._forward_pre_hooks or one._forward_hooks for one in network.modules())
    assert all(one.grad is None for one in network.parameters())


def test_dropout_and_batch_norm_are_those_after_training() -> None:
    network = with_state()
    first, again = (collected(X, network, "3:") for _ in range(2))
    np.testing.assert_array_equal(first.X, again.X)
    with torch.no_grad():
        expected = network.eval()[:3](X).double().numpy()
        held = network[:3](first.inputs).double().numpy()
    np.testing.assert_allclose(sorted_rows(np.concatenate([first.X, held])), sorted_rows(expected), rtol=1e-5)


def test_what_is_remembered_comes_again_and_no_more_is_read_than_was_asked_for() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for k in range(5):
            read.append(k)
            yield k

    several = Remembered(numbers())
    assert [k for k, _ in zip(several, range(2), strict=False)] == [0, 1]
    assert len(read) <= 3
    assert list(several) == list(several) == read == [0, 1, 2, 3, 4]
