"""Parts of networks: which one a name means, and networks in which they are replaced."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

import unbraid as ub
from unbraid.networks.compressing.parts import Part, check_apart, count_numbers, device_and_type, find_part


class Network(nn.Module):  # type: ignore[misc]
    """A body, a head, and something that is no module."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 2))
        self.factor = 2.0

    def forward(self, x: Any) -> Any:
        return self.factor * self.head(self.body(x))


def chain() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))


def state(network: nn.Module) -> dict[str, Any]:
    return copy.deepcopy(network.state_dict())


def assert_same_state(network: nn.Module, before: dict[str, Any]) -> None:
    assert list(network.state_dict()) == list(before)
    assert all(torch.equal(one, before[name]) for name, one in network.state_dict().items())


@pytest.mark.parametrize("name", ["head", "body", "head.0", "body.1"])
def test_a_name_means_the_module_of_that_name(name: str) -> None:
    network = Network()
    part = find_part(network, name)
    assert part.name == name
    assert part.of(network) is network.get_submodule(name)
    assert part.first_module(network) is part.last_module(network) is network.get_submodule(name)


@pytest.mark.parametrize("name", ["", ":"])
def test_an_empty_name_means_the_whole_network(name: str) -> None:
    network, other = Network(), nn.Linear(3, 2)
    part = find_part(network, name)
    assert part.of(network) is part.first_module(network) is part.last_module(network) is network
    assert part.replaced(network, other) is other


@pytest.mark.parametrize(
    ("given", "which"),
    [
        ("2:", range(2, 5)),
        (":-1", range(4)),
        ("1:3", range(1, 3)),
        (":", range(5)),
        ("-2:", range(3, 5)),
        (slice(1, 3), range(1, 3)),
        (slice(None, -1), range(4)),
        (slice(2, None, 1), range(2, 5)),
        (slice(-2, None), range(3, 5)),
        (3, [3]),
        (-1, [4]),
        ("0", [0]),
        ("-1", [4]),
        ("3:4", [3]),
    ],
)
def test_slices_and_numbers_count_the_modules_of_a_sequential(given: Any, which: Any) -> None:
    network = chain()
    part = find_part(network, given)
    assert part.children == tuple(map(str, which))
    found = part.of(network)
    modules = list(found) if isinstance(found, nn.Sequential) else [found]
    assert len(modules) == len(part.children)
    assert all(one is network[k] for one, k in zip(modules, which, strict=True))
    assert part.first_module(network) is modules[0]
    assert part.last_module(network) is modules[-1]


@pytest.mark.parametrize(
    ("given", "children"), [("head.1:3", "12"), ("head.:-1", "0123"), ("head.2:", "234"), ("body.:", "01")]
)
def test_slices_of_a_sequential_inside(given: str, children: str) -> None:
    part = find_part(Network(), given)
    assert part.children == tuple(children)
    assert part.owner == given.partition(".")[0]


def test_modules_of_a_sequential_may_have_names() -> None:
    network = nn.Sequential()
    for name in ("first", "middle", "last"):
        network.add_module(name, nn.Linear(2, 2))
    assert find_part(network, "1:").children == ("middle", "last")
    assert find_part(network, -1).children == ("last",)
    assert find_part(network, "middle").of(network) is network.middle


@pytest.mark.parametrize("given", ["head", "head.1:3", "head.2:", "body.0", "head.:"])
def test_a_part_replaced_by_itself_gives_the_same_network(given: str) -> None:
    network, x = Network(), torch.randn(7, 3)
    part = find_part(network, given)
    assert torch.equal(part.replaced(network, copy.deepcopy(part.of(network)))(x), network(x))


@pytest.mark.parametrize("given", ["head", "head.1:3", "body.0"])
def test_what_is_replaced_shares_nothing_with_the_network_and_leaves_it_as_it_is(given: str) -> None:
    network = Network()
    before, modules, x = state(network), dict(network.named_modules()), torch.randn(4, 3)
    expected = network(x)
    part = find_part(network, given)
    result = part.replaced(network, copy.deepcopy(part.of(network)))
    own = {id(one) for one in (*network.parameters(), *network.buffers(), *network.modules())}
    assert not own & {id(one) for one in (*result.parameters(), *result.buffers(), *result.modules())}
    with torch.no_grad():
        for parameter in result.parameters():
            parameter += 1.0
    assert_same_state(network, before)
    assert dict(network.named_modules()) == modules
    assert torch.equal(network(x), expected)
    assert result.factor == network.factor


def test_names_of_later_modules_stay_valid() -> None:
    network = chain()
    first, later = find_part(network, "0:2"), find_part(network, "-2:")
    result = first.replaced(network, nn.Linear(3, 4))
    assert list(result._modules) == ["0", "2", "3", "4"]
    assert torch.equal(later.of(result)[1].weight, network[4].weight)
    again = later.replaced(result, nn.Linear(5, 2))
    assert list(again._modules) == ["0", "2", "3"]
    assert again(torch.ones(2, 3)).shape == (2, 2)


@pytest.mark.parametrize("given", ["tail", "head.9", "factor", "head.0.weight", "head..0", "--3", "-:", "²", "body:"])
def test_a_name_that_is_none_is_quoted_with_those_that_there_are(given: str) -> None:
    with pytest.raises(ub.UnbraidError) as caught:
        find_part(Network(), given)
    assert repr(given) in str(caught.value)
    assert "one of body, body.0, body.1, head, head.0" in str(caught.value)


def test_a_number_beyond_a_sequential_is_no_part() -> None:
    for given in (5, -6):
        with pytest.raises(ub.UnbraidError, match=rf"has no part {given}: give one of 0, 1, 2, 3, 4, or"):
            find_part(chain(), given)


def test_names_of_large_networks_are_cut_off() -> None:
    with pytest.raises(ub.UnbraidError, match=r"give one of 0, 1, .*, 11, …, or"):
        find_part(nn.Sequential(*(nn.Tanh() for _ in range(30))), "head")
    with pytest.raises(ub.UnbraidError, match="no module: it has none"):
        find_part(nn.Linear(2, 2), "head")


def test_slices_need_a_sequential() -> None:
    with pytest.raises(
        ub.UnbraidError, match=r"The network is a Network, and '1:' needs a Sequential: .* body, body.0"
    ):
        find_part(Network(), "1:")
    with pytest.raises(ub.UnbraidError, match=r"The module 'head.0' is a Linear, and 'head.0.1:' needs a Sequential"):
        find_part(Network(), "head.0.1:")
    with pytest.raises(ub.UnbraidError, match=r"The module 'tail' is not there, and 'tail.1:' needs a Sequential"):
        find_part(Network(), "tail.1:")


@pytest.mark.parametrize("given", ["3:2", "9:", slice(2, 2), "head.4:4"])
def test_a_slice_without_modules_is_refused(given: Any) -> None:
    network = Network() if given == "head.4:4" else chain()
    with pytest.raises(ub.UnbraidError, match=r"The part '.*' has no modules: there are 5, counted from 0"):
        find_part(network, given)


def test_a_slice_with_a_step_is_refused() -> None:
    with pytest.raises(ub.UnbraidError, match=r"without step, got slice\(0, 4, 2\)"):
        find_part(chain(), slice(0, 4, 2))


@pytest.mark.parametrize("given", [None, 1.5, True, b"head"])
def test_anything_else_is_no_part(given: Any) -> None:
    with pytest.raises(ub.UnbraidError, match='part must be a module, its name, or a slice such as "2:", got'):
        find_part(chain(), given)


def test_anything_but_a_module_is_no_network() -> None:
    with pytest.raises(ub.UnbraidError, match=r"network must be a torch\.nn\.Module, got <function"):
        find_part(lambda x: x, "")


def test_parts_with_modules_in_common_are_refused() -> None:
    network = Network()
    for one, other in (("head.0:2", "head.1:"), ("head", "head.0"), ("body.0", "body"), ("", "head"), ("body", "body")):
        with pytest.raises(ub.UnbraidError, match="have modules in common"):
            check_apart([find_part(network, one), find_part(network, other)])
    check_apart([find_part(network, one) for one in ("head.0:2", "head.2:", "body")])


def test_numbers_are_counted_once() -> None:
    layer = nn.Linear(3, 3)
    assert count_numbers(nn.Sequential(layer, layer)) == 12
    layer.weight.requires_grad_(False)
    assert count_numbers(layer) == 12
    assert count_numbers(nn.Tanh()) == 0


def test_a_network_computes_in_the_type_of_its_first_numbers() -> None:
    assert device_and_type(chain().double()) == (torch.device("cpu"), torch.float64)
    assert device_and_type(nn.Tanh()) == (torch.device("cpu"), torch.float32)


def test_a_slice_of_a_sequential_is_found_by_its_modules() -> None:
    inner = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    network = nn.Sequential(nn.Linear(5, 3), inner, nn.Linear(2, 2))
    assert find_part(network, network[1:]) == Part("1:3", "", ("1", "2"))
    assert find_part(network, inner[1:]) == Part("1.1:3", "1", ("1", "2"))
    assert find_part(network, inner) == Part("1", "", ("1",))
    with pytest.raises(ub.UnbraidError, match="none of the network's modules"):
        find_part(network, nn.Sequential(nn.Linear(5, 3)))


def test_a_part_may_be_the_module_itself() -> None:
    network = Network()
    assert find_part(network, network.head) == find_part(network, "head")
    assert find_part(network, network.head[2]) == find_part(network, "head.2")
    assert find_part(network, network) == find_part(network, "")
    with pytest.raises(ub.UnbraidError, match="The Linear that was given as part is none of the network's modules"):
        find_part(network, nn.Linear(4, 5))
