"""How samples lie in what parts of networks are given: vectors, pixels, tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import unbraid as ub
from unbraid.networks.compressing.layouts import Layout, OfMaps, OfSamples, layout_of

SIZES = st.integers(1, 5)


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def pointwise(inputs: int = 3, outputs: int = 5) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(inputs, 4, 1), nn.Tanh(), nn.Conv2d(4, outputs, 1)).double()


def tokenwise(inputs: int = 3, outputs: int = 5) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, 4), nn.GELU(), nn.Linear(4, outputs)).double()


def drawn(*shape: int) -> Any:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def assert_is_the_part(part: nn.Module, x: Any, layout: Layout) -> None:
    again = OfMaps(OfSamples(part, layout), layout)(x)
    assert again.shape == part(x).shape
    torch.testing.assert_close(again, part(x), rtol=1e-12, atol=1e-13)


def test_vectors_are_samples() -> None:
    layout = layout_of(tokenwise(), drawn(9, 3))
    assert layout == Layout("vectors", (3,), (5,))
    assert (layout.m, layout.n, layout.count(drawn(9, 3))) == (3, 5, 1)


def test_pixels_of_pointwise_convolutions_are_samples() -> None:
    x = drawn(6, 3, 2, 4)
    layout = layout_of(pointwise(), x)
    assert layout == Layout("pixels", (3, 2, 4), (5, 2, 4))
    assert (layout.m, layout.n, layout.count(x)) == (3, 5, 8)
    assert torch.equal(layout.rows(x)[8 + 4 + 1], x[1, :, 1, 1])


def test_pixel_by_pixel_the_result_is_the_same() -> None:
    x, part = drawn(2, 3, 2, 4), pointwise()
    rows = OfSamples(part, layout_of(part, x))(x.movedim(1, -1).reshape(-1, 3))
    expected = torch.stack([part(x)[i, :, j, k] for i in range(2) for j in range(2) for k in range(4)])
    torch.testing.assert_close(rows, expected, rtol=1e-12, atol=1e-13)


def test_tokens_of_linear_maps_are_samples() -> None:
    x = drawn(6, 7, 3)
    layout = layout_of(tokenwise(), x)
    assert layout == Layout("tokens", (7, 3), (7, 5))
    assert (layout.m, layout.n, layout.count(x)) == (3, 5, 7)
    assert torch.equal(layout.rows(x)[7 + 2], x[1, 2])


@pytest.mark.parametrize(
    ("part", "shape", "leaving"),
    [
        (nn.Conv2d(3, 3, 3, padding=1), (3, 4, 4), (3, 4, 4)),
        (nn.Sequential(nn.Conv2d(3, 3, 1), nn.AvgPool2d(2)), (3, 4, 4), (3, 2, 2)),
        (nn.Sequential(nn.Conv2d(3, 3, 1), nn.GroupNorm(1, 3)), (3, 4, 4), (3, 4, 4)),
        (nn.Sequential(nn.Flatten(), nn.Linear(12, 4)), (3, 2, 2), (4,)),
        (nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), (3, 4, 4), (3,)),
        (nn.Conv1d(3, 3, 3, padding=1), (3, 5), (3, 5)),
        (nn.Sequential(nn.Linear(3, 4), nn.Flatten()), (5, 3), (20,)),
        (nn.Unflatten(1, (2, 3)), (6,), (2, 3)),
    ],
)
def test_all_else_is_flattened(part: nn.Module, shape: tuple[int, ...], leaving: tuple[int, ...]) -> None:
    part, x = part.double().eval(), drawn(5, *shape)
    layout = layout_of(part, x)
    assert layout == Layout("vectors", shape, leaving)
    assert (layout.m, layout.n, layout.count(x)) == (x[0].numel(), part(x)[0].numel(), 1)
    assert_is_the_part(part, x, layout)


def test_batch_norm_after_training_goes_pixel_by_pixel() -> None:
    part = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU()).double()
    part(drawn(20, 3, 2, 2))
    assert layout_of(part.eval(), drawn(6, 3, 2, 2)).places == "pixels"


def test_attention_does_not_go_token_by_token() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).double()
    assert layout_of(layer, drawn(3, 5, 4)).places == "vectors"


@given(count=SIZES, inputs=SIZES, outputs=SIZES, height=SIZES, width=SIZES)
def test_of_maps_and_of_samples_are_inverse_to_each_other_for_pixels(
    count: int, inputs: int, outputs: int, height: int, width: int
) -> None:
    part = pointwise(inputs, outputs)
    layout = Layout("pixels", (inputs, height, width), (outputs, height, width))
    assert_is_the_part(part, drawn(count, inputs, height, width), layout)
    assert_is_the_part(part, drawn(count, inputs, height + 1, width), layout)  # maps of another size as well


@given(count=SIZES, inputs=SIZES, outputs=SIZES, tokens=SIZES)
def test_of_maps_and_of_samples_are_inverse_to_each_other_for_tokens(
    count: int, inputs: int, outputs: int, tokens: int
) -> None:
    part, layout = tokenwise(inputs, outputs), Layout("tokens", (tokens, inputs), (tokens, outputs))
    assert_is_the_part(part, drawn(count, tokens, inputs), layout)
    assert_is_the_part(part, drawn(count, tokens + 2, inputs), layout)


@given(count=SIZES, entering=st.lists(SIZES, min_size=1, max_size=3), leaving=st.lists(SIZES, min_size=1, max_size=3))
def test_of_maps_and_of_samples_are_inverse_to_each_other_for_vectors(
    count: int, entering: list[int], leaving: list[int]
) -> None:
    m, n = (int(torch.tensor(one).prod()) for one in (entering, leaving))
    part = nn.Sequential(nn.Flatten(), nn.Linear(m, n), nn.Unflatten(1, tuple(leaving))).double()
    assert_is_the_part(part, drawn(count, *entering), Layout("vectors", tuple(entering), tuple(leaving)))


def test_a_part_must_give_one_row_a_sample() -> None:
    class Pair(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x, x

    with pytest.raises(ub.UnbraidError, match=r"must give a tensor of real numbers with one row a sample, got a tuple"):
        layout_of(Pair(), drawn(5, 3))
    with pytest.raises(ub.UnbraidError, match=r"got one of shape \(12,\) for 4 samples"):
        layout_of(nn.Flatten(0), drawn(5, 3))
    with pytest.raises(ub.UnbraidError, match=r"got one of shape \(1, 4\) for 4 samples"):
        layout_of(nn.Unflatten(0, (1, 4)), drawn(4))
