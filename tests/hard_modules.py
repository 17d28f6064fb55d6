"""Networks and inputs as nobody wishes them, and what is done with them: by kind and seed."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

Ending = Literal["works", "refused", "theirs", "either"]
QUICK: dict[str, Any] = {"samples": 40, "coupling": 1.0, "starts": 1, "jobs": 1}
ACTIVATIONS: tuple[Callable[..., nn.Module], ...] = (nn.Tanh, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Softplus)
IN_PLACE: tuple[Callable[..., nn.Module], ...] = (nn.ReLU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Hardswish, nn.CELU)
M, WIDTH, N, COUNT = 3, 4, 2, 120


class TheirError(Exception):
    """What a user's own code raises."""


@dataclass
class Hard:
    """A network, a part of it, inputs, what else is asked, and how that has to end at each of the doors."""

    network: Any
    part: Any = "1:"
    X: Any = None
    ends: Ending = "works"
    points: Any = None
    sampled: Ending | None = None
    """At `from_function`; None: as at `compress`."""
    asked: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    trained: Ending | None = None


@dataclass
class Drawn:
    """What kinds are made of, from a seed."""

    seed: int

    def __post_init__(self) -> None:
        torch.manual_seed(self.seed)

    @property
    def dtype(self) -> torch.dtype:
        """By turns."""
        return (torch.float32, torch.float64)[self.seed % 2]

    def one_of(self, *kinds: Any) -> Any:
        """By turns."""
        return kinds[self.seed % len(kinds)]

    def inputs(self, *shape: int) -> torch.Tensor:
        """Inputs of a network."""
        return torch.randn(COUNT, *(shape or (M,)), dtype=self.dtype)

    def activation(self) -> nn.Module:
        """One of many."""
        return self.one_of(*ACTIVATIONS)()

    def in_place(self) -> nn.Module:
        """One that writes to what it is given."""
        return self.one_of(*IN_PLACE)(inplace=True)

    def chain(self, *middle: nn.Module) -> nn.Sequential:
        """M to N, with some modules in its middle."""
        inside = middle or (self.activation(),)
        return nn.Sequential(nn.Linear(M, WIDTH), *inside, nn.Linear(WIDTH, N)).to(self.dtype)

    def hard(self, network: Any = None, ends: Ending = "works", **more: Any) -> Hard:
        """Plain inputs for a network."""
        return Hard(self.chain() if network is None else network, X=more.pop("X", self.inputs()), ends=ends, **more)


class Own(nn.Module):  # type: ignore[misc]
    """A module with a forward of its own."""

    def __init__(self, forward: Callable[[Any], Any], **parts: Any) -> None:
        super().__init__()
        self.own = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Any) -> Any:
        return self.own(x)


class Keeps(nn.Module):  # type: ignore[misc]
    """A module that keeps what it was given last, and counts, in a buffer too."""

    seen: Any

    def __init__(self) -> None:
        super().__init__()
        self.last: Any = None
        self.calls = 0
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, x: Any) -> Any:
        self.last, self.calls, self.seen = x, self.calls + 1, self.seen + 1
        return torch.tanh(x)


class Residual(nn.Module):  # type: ignore[misc]
    """x + f(x), in place."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True), nn.Linear(width, width))

    def forward(self, x: Any) -> Any:
        out = self.inner(x)
        out += x
        return torch.relu_(out)


class ByCases(nn.Module):  # type: ignore[misc]
    """An `if` on a value, which a vectorised transform refuses."""

    def forward(self, x: Any) -> Any:
        return torch.tanh(x) if float(x.detach().abs().max()) >= 0.0 else x


def broken_weights(value: float, where: str) -> Callable[[Drawn], Hard]:
    def make(drawn: Drawn) -> Hard:
        network = drawn.chain()
        with torch.no_grad():
            network.get_parameter(where).view(-1)[drawn.seed % 2] = value
        return drawn.hard(network, "refused")

    return make


def own_step(forward: Callable[[Any], Any], ends: Ending, **more: Any) -> Callable[[Drawn], Hard]:
    return lambda drawn: drawn.hard(drawn.chain(nn.Tanh(), Own(forward)), ends, **more)


def through_numpy(x: Any) -> Any:
    return torch.as_tensor(np.tanh(x.detach().cpu().numpy()), dtype=x.dtype)


def partly_detached(x: Any) -> Any:
    return x + torch.sin(3.0 * x).detach()


def own_dropout(x: Any) -> Any:
    return nn.functional.dropout(x, 0.3, training=True)


def writes(x: Any) -> Any:
    x += 1.0
    x.tanh_()
    return x


def quantised(drawn: Drawn) -> Hard:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = torch.ao.quantization.quantize_dynamic(drawn.chain().float(), {nn.Linear}, dtype=torch.qint8)
    return drawn.hard(network, "refused", X=drawn.inputs().float())


def pruned(drawn: Drawn) -> Hard:
    network = drawn.chain()
    prune.l1_unstructured(network[-1], "weight", amount=0.4)
    prune.random_structured(network[0], "weight", amount=1, dim=0)
    if drawn.seed % 2:
        network(drawn.inputs())  # with a history
    return drawn.hard(network)


def parametrised(drawn: Drawn) -> Hard:
    network = drawn.chain()
    kinds = parametrizations.weight_norm, parametrizations.spectral_norm, parametrizations.orthogonal
    kinds[drawn.seed % 3](network[0])
    kinds[drawn.seed % 2](network[-1])
    return drawn.hard(network)


def with_old_weight_norm(drawn: Drawn) -> Hard:
    network = drawn.chain()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nn.utils.weight_norm(network[-1])
    if drawn.seed % 2 == 0:
        network(drawn.inputs())
    return drawn.hard(network)


def embedded(drawn: Drawn) -> Hard:
    network = nn.Sequential(nn.Embedding(9, 2), nn.Flatten(), nn.Linear(2 * M, WIDTH), nn.Tanh(), nn.Linear(WIDTH, N))
    indices = torch.randint(0, 9, (COUNT, M))
    part, ends = drawn.one_of(("2:", "works"), (":", "refused"), ("0", "refused"))
    return Hard(network.to(drawn.dtype), part, indices, ends, sampled="refused")


def normalised(drawn: Drawn) -> Hard:
    return drawn.hard(drawn.chain(nn.BatchNorm1d(WIDTH, track_running_stats=False), nn.Tanh()), "refused")


def normalised_before(drawn: Drawn) -> Hard:
    network = drawn.chain(nn.Tanh())
    network[0] = nn.Sequential(nn.BatchNorm1d(M, track_running_stats=False, dtype=drawn.dtype), network[0])
    return drawn.hard(network, "refused")


def lazy(drawn: Drawn) -> Hard:
    return drawn.hard(nn.Sequential(nn.LazyLinear(WIDTH), nn.Tanh(), nn.LazyLinear(N)).to(drawn.dtype), "refused")


def on_meta(drawn: Drawn) -> Hard:
    return drawn.hard(drawn.chain().to("meta"), "refused")


def scripted(drawn: Drawn) -> Hard:
    network = drawn.chain()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if drawn.seed % 2:
            return drawn.hard(torch.jit.script(network), "refused", sampled="works")
        return drawn.hard(torch.jit.trace(network, drawn.inputs()), "refused", sampled="works")


def scripted_part(drawn: Drawn) -> Hard:
    network = drawn.chain()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network[1] = torch.jit.script(network[1])
    return drawn.hard(network, "refused", sampled="works")


def of_mixed_types(drawn: Drawn) -> Hard:
    other = torch.float64 if drawn.dtype == torch.float32 else torch.float32
    if drawn.seed % 4 < 2:
        cast = Own(lambda x: x.to(other))
        network = nn.Sequential(nn.Linear(M, WIDTH, dtype=drawn.dtype), cast, nn.Tanh(), nn.Linear(4, N, dtype=other))
        if drawn.seed // 4 % 2:
            return drawn.hard(network, "refused", sampled="works")
        return drawn.hard(network, part="2:", sampled="works")
    network = nn.Sequential(nn.Linear(M, WIDTH, dtype=drawn.dtype), nn.Tanh(), nn.Linear(WIDTH, N, dtype=other))
    return drawn.hard(network, "refused")


def of_few_digits(drawn: Drawn) -> Hard:
    dtype, trained = ((torch.float16, "refused"), (torch.bfloat16, "works"))[drawn.seed % 2]  # Adam's steps are NaN
    return drawn.hard(drawn.chain().to(dtype), trained=trained)


def of_complex_numbers(drawn: Drawn) -> Hard:
    return drawn.hard(
        drawn.chain(nn.Tanh()).to(torch.complex64),
        "refused",
        X=drawn.inputs().to(torch.complex64),
        points=drawn.inputs(),
    )


def sparse(drawn: Drawn) -> Hard:
    x = drawn.inputs()
    return drawn.hard(X=x.to_sparse() if drawn.seed % 2 else x.to_sparse_csr(), ends="refused", points=x.to_sparse())


def ragged(drawn: Drawn) -> Hard:
    x = drawn.inputs()
    batches = drawn.one_of(
        [x[:60], x[60:, :2]],
        [(x[:60], torch.zeros(60)), (x[60:], torch.zeros(3))],
        [x[:60], torch.randn(60, M, 2), torch.randn(4)],
    )
    return drawn.hard(X=batches, ends="refused", points=batches)


def odd_loader(drawn: Drawn) -> Hard:
    x = drawn.inputs()
    given = drawn.one_of(
        [{"x": x[:60]}, {"x": x[60:]}],
        [],
        [[]],
        [None, None],
        [(x[:60], "labels")],
        [torch.tensor(1.0)] * 5,
        iter([x[:0], x[:0]]),
        {"x": x},
        {1, 2},
        42,
        object(),
    )
    return drawn.hard(X=given, ends="refused", points=given)


def loader_that_raises(drawn: Drawn) -> Hard:
    def batches() -> Iterator[Any]:
        yield drawn.inputs()[:20]
        raise TheirError("no more")

    return drawn.hard(X=batches(), ends="theirs", points=np.zeros((2, 0)), sampled="refused")


def lists(drawn: Drawn) -> Hard:
    x = drawn.inputs()
    given = drawn.one_of(x.tolist(), list(map(list, x.numpy())), list(x.numpy()), list(x))
    return drawn.hard(X=given, ends="refused", sampled="works")


def odd_array(drawn: Drawn) -> Hard:
    x = drawn.inputs()
    kinds: list[Any] = [
        x.numpy().astype(object),
        x.numpy().astype(str),
        np.array([None] * COUNT),
        x.numpy().astype([("a", float)]),
        x.to(torch.complex64),
        torch.full((COUNT, M), float("nan")),
        x.to("meta"),
        np.zeros((0, M)),
        np.zeros((COUNT, 0)),
        np.float64(3.0),
        x[:3],
        torch.zeros(COUNT, M),
        x[:, 0],
        np.full((COUNT, M), np.datetime64("2000-01-01")),
        x[None, None],
    ]
    given, numbers = kinds[drawn.seed % len(kinds)], drawn.seed % len(kinds) in (0, 10, 11)
    return drawn.hard(X=given, ends="refused", points=given, sampled="works" if numbers else "refused")


def kind_of_numbers(drawn: Drawn) -> Hard:
    x = drawn.inputs()
    given = drawn.one_of(
        x.half(),
        x.requires_grad_(),
        x.detach().numpy()[:, ::-1],
        np.asfortranarray(x.detach().numpy().astype(">f8")),
        x.detach().numpy().astype(np.longdouble),
    )
    return drawn.hard(X=given, points=x.detach().numpy().astype(float))


def whole_numbers(drawn: Drawn) -> Hard:
    return drawn.hard(X=torch.randint(-3, 4, (COUNT, M)), ends="refused", sampled="works")


def a_hook_that_raises(drawn: Drawn) -> Hard:
    network = drawn.chain()

    def hook(*_: Any) -> None:
        raise TheirError("a hook")

    (network[1].register_forward_hook if drawn.seed % 2 else network.register_forward_pre_hook)(hook)
    return drawn.hard(network, "theirs")


def a_hook_that_returns(drawn: Drawn) -> Hard:
    network = drawn.chain()
    network[1].register_forward_hook(lambda _, __, out: 2.0 * out)
    network[2].register_forward_pre_hook(lambda _, given: (given[0] + 1.0,))
    return drawn.hard(network)


def a_forward_that_raises(drawn: Drawn) -> Hard:
    forward = drawn.one_of(
        lambda x: x.keys(),
        lambda x: x.nothing,
        lambda x: 1 / 0,
        lambda x: next(iter([])),
        lambda x: (_ for _ in ()).throw(TheirError("mine")),
        lambda x: (_ for _ in ()).throw(NotImplementedError),
    )
    return drawn.hard(drawn.chain(Own(forward)), "theirs")


def odd_answer(drawn: Drawn) -> Hard:
    kinds: list[Callable[[Any], Any]] = [
        lambda x: (x, x),
        lambda x: {"out": x},
        lambda x: None,
        lambda x: x.argmax(1),
        lambda x: x.sum(),
        lambda x: x[:-1],
        lambda x: x.to(torch.complex64),
        lambda x: x.to_sparse(),
        lambda x: x > 0.0,
        lambda x: x.detach().numpy(),
        lambda x: x[:, :0],
        lambda x: [x],
        lambda x: "no",
        lambda x: x / 0.0,
        lambda x: (x * 1e30).exp(),
    ]
    network = nn.Sequential(*drawn.chain(), Own(kinds[drawn.seed % len(kinds)]))
    steps = drawn.seed % len(kinds) in (3, 8)  # whose derivatives are zero at most points
    return drawn.hard(network, "refused", sampled="either" if steps else None)


def empty(drawn: Drawn) -> Hard:
    network, part, ends = drawn.one_of(
        (nn.Sequential(), ":", "refused"),
        (nn.Identity(), "", "works"),
        (nn.Sequential(nn.Linear(M, WIDTH), nn.Sequential()), "1", "works"),
    )
    return drawn.hard(network.to(drawn.dtype), ends, part=part, sampled="works")


def constant(drawn: Drawn) -> Hard:
    network = drawn.chain()
    for one in network[2 * (drawn.seed % 2)].parameters():
        nn.init.zeros_(one)
    return drawn.hard(network, ("refused", "works")[drawn.seed % 2], sampled="works")


def of_any_size(drawn: Drawn) -> Hard:
    scale = (1e-12, 1e12, 1e-30, 1e30)[drawn.seed % 4]
    network = drawn.chain()
    with torch.no_grad():
        network[0].weight /= scale
        network[2].weight *= scale**0.5
    return drawn.hard(network, X=drawn.inputs() * scale)


def shared(drawn: Drawn) -> Hard:
    layer = nn.Linear(M, M)
    network = nn.Sequential(layer, nn.Tanh(), layer, nn.Tanh(), nn.Linear(M, N)).to(drawn.dtype)
    return drawn.hard(network, ("works", "refused")[drawn.seed % 2], part=("3:", "2:")[drawn.seed % 2], sampled="works")


def used_twice(drawn: Drawn) -> Hard:
    layer = nn.Sequential(nn.Linear(M, M), nn.Tanh())
    network = Own(lambda x: layer(layer(x)), layer=layer).to(drawn.dtype)
    return drawn.hard(network, "refused", part="layer", sampled="works")


def no_copy(drawn: Drawn) -> Hard:
    network = drawn.chain()
    network[1].lock = threading.Lock()
    return drawn.hard(network, "refused", sampled="works")


def no_gradient(drawn: Drawn) -> Hard:
    kinds: list[Callable[[Any], Any]] = [torch.no_grad()(torch.tanh), lambda x: x + x.detach(), torch.round, torch.sign]
    return drawn.hard(drawn.chain(nn.Tanh(), Own(kinds[drawn.seed % 4])), ("refused", "either")[drawn.seed % 4 // 2])


def random(drawn: Drawn) -> Hard:
    forward = drawn.one_of(
        own_dropout,
        lambda x: x + 0.1 * torch.randn_like(x),
        lambda x: x * torch.bernoulli(torch.full_like(x, 0.5)),
        lambda x: x + float(np.random.default_rng().standard_normal()),
    )
    return drawn.hard(drawn.chain(nn.Tanh(), Own(forward)), "refused")


def random_before(drawn: Drawn) -> Hard:
    network = nn.Sequential(Own(own_dropout), *drawn.chain())
    return drawn.hard(network, "refused", part="2:")


def memory(drawn: Drawn) -> Hard:
    state = {"calls": 0.0}

    def step(x: Any) -> Any:
        state["calls"] += 1.0
        return x * state["calls"]

    return drawn.hard(drawn.chain(nn.Tanh(), Own(step)), "refused")


def keeps(drawn: Drawn) -> Hard:
    return drawn.hard(drawn.chain(Keeps()))


def maps(drawn: Drawn) -> Hard:
    layers = [nn.Conv2d(2, 3, 1), drawn.in_place(), nn.Conv2d(3, 2, 1)]
    network = nn.Sequential(nn.Conv2d(2, 2, 3, padding=1), *layers, nn.Flatten(), nn.Linear(32, N)).to(drawn.dtype)
    part = drawn.one_of("1:4", "2:4", "1:3", "4:")
    return drawn.hard(network, part=part, X=drawn.inputs(2, 4, 4), points=np.zeros((5, 3)), sampled="refused")


def tokens(drawn: Drawn) -> Hard:
    body = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    network = nn.Sequential(nn.Linear(M, 4), body, nn.Linear(4, N)).to(drawn.dtype)
    part = ("1.linear1", "2:", "1.self_attn", "1.linear2")[drawn.seed % 4]
    ends: Ending = "works" if drawn.seed % 4 == 1 else "refused"  # the layer looks into its parts
    return drawn.hard(network.eval(), ends, part=part, X=drawn.inputs(5, M), points=np.zeros((5, 2)), sampled="refused")


def recurrent(drawn: Drawn) -> Hard:
    network = nn.Sequential(nn.Linear(M, 4), nn.GRU(4, 3, batch_first=True)).to(drawn.dtype)
    return drawn.hard(network, "refused", part="1:", X=drawn.inputs(5, M), points=drawn.inputs())


def many_branches(drawn: Drawn) -> Hard:
    return drawn.hard(ends="refused", asked={"rank": (1000, 10**6, 10**12)[drawn.seed % 3]}, sampled="works")


def odd_labels(drawn: Drawn) -> Hard:
    given = drawn.one_of(
        [1] * 5,
        ["a"] * COUNT,
        np.full(COUNT, 7),
        -np.ones(COUNT, int),
        np.array([None] * COUNT),
        [[1], [2, 3]],
        object(),
    )
    return drawn.hard(X=(drawn.inputs(), given), ends="refused", points=drawn.inputs(), sampled="works")


def labels(drawn: Drawn) -> Hard:
    given = drawn.one_of(
        torch.full((COUNT,), float("nan")),
        np.zeros((COUNT, 0)),
        torch.zeros(COUNT, dtype=torch.bool),
        np.random.default_rng(0).integers(0, 2, COUNT).astype(np.uint8),
        torch.zeros(COUNT, 2, 3),
        torch.zeros(COUNT, dtype=torch.complex64),
    )
    ends: Ending = "refused" if getattr(given, "dtype", None) is torch.complex64 else "works"
    return drawn.hard(X=(drawn.inputs(), given), ends=ends, points=drawn.inputs(), sampled="works")


def training_on(make: Callable[[Drawn], dict[str, Any]], ends: Ending) -> Callable[[Drawn], Hard]:
    return lambda drawn: drawn.hard(training=make(drawn), trained=ends)


def own_loss(drawn: Drawn) -> dict[str, Any]:
    def loss(found: Any, wanted: Any) -> Any:
        if drawn.seed % 2 or found.requires_grad:
            raise TheirError("a loss")
        return found.square().mean()

    return {"data": (drawn.inputs(), torch.zeros(COUNT)), "loss": loss}


def odd_loss(drawn: Drawn) -> dict[str, Any]:
    loss = drawn.one_of(
        lambda found, wanted: 1.0,
        lambda found, wanted: "no",
        lambda found: found.mean(),
        lambda found, wanted: found.mean() * float("nan"),
    )
    return {"data": (drawn.inputs(), torch.zeros(COUNT)), "loss": loss}


def odd_training(drawn: Drawn) -> dict[str, Any]:
    x = drawn.inputs()
    training: dict[str, Any] = drawn.one_of(
        {"data": x, "held_out": 3},
        {"data": [x[:60], x[60:, :2]]},
        {"data": (x, torch.zeros(COUNT, 5)), "loss": "task"},
        {"data": []},
        {"data": x[:0]},
        {"data": x[:1]},
        {"data": (x, ["a"] * COUNT), "loss": "task"},
        {"data": x.to_sparse()},
        {"data": x.to("meta")},
        {"data": x * float("nan")},
        {"data": x, "held_out": x[:, :2]},
        {"data": x, "held_out": []},
        {"data": {"x": x}},
        {"data": x, "callback": 3},
        {"data": x, "loss": "task"},
        {"data": 3},
        {"data": [None]},
        {"data": (x, torch.full((COUNT,), 9)), "loss": "task"},
    )
    return training


def trained_in_place(drawn: Drawn) -> Hard:
    network = nn.Sequential(drawn.in_place(), *drawn.chain(drawn.in_place()))
    return drawn.hard(network, part=("1:", "2:", ":", "2:3", "1")[drawn.seed % 5])


KINDS: dict[str, Callable[[Drawn], Hard]] = {
    "plain": lambda drawn: drawn.hard(),
    "NaN in the part": broken_weights(float("nan"), "2.weight"),
    "NaN before the part": broken_weights(float("nan"), "0.bias"),
    "infinite": broken_weights(-float("inf"), "2.bias"),
    "in place": lambda drawn: drawn.hard(drawn.chain(nn.Linear(WIDTH, WIDTH), drawn.in_place())),
    "begins in place": lambda drawn: drawn.hard(drawn.chain(drawn.in_place())),
    "begins in place before": trained_in_place,
    "in place by hand": own_step(writes, "refused"),
    "begins in place by hand": lambda drawn: drawn.hard(drawn.chain(Own(writes))),
    "a residual in place": lambda drawn: drawn.hard(drawn.chain(Residual(WIDTH))),
    "by cases": lambda drawn: drawn.hard(drawn.chain(ByCases())),
    "dropout": lambda drawn: drawn.hard(drawn.chain(nn.Tanh(), nn.Dropout(0.5), nn.AlphaDropout(0.2))),
    "batch norm": lambda drawn: drawn.hard(drawn.chain(nn.BatchNorm1d(WIDTH), nn.Tanh())),
    "batch norm of batches": normalised,
    "batch norm of batches before": normalised_before,
    "layer norm": lambda drawn: drawn.hard(drawn.chain(nn.LayerNorm(WIDTH), drawn.in_place())),
    "an embedding": embedded,
    "quantised": quantised,
    "pruned": pruned,
    "parametrised": parametrised,
    "weight norm by hooks": with_old_weight_norm,
    "lazy": lazy,
    "on the meta device": on_meta,
    "scripted": scripted,
    "scripted inside": scripted_part,
    "mixed types": of_mixed_types,
    "few digits": of_few_digits,
    "complex": of_complex_numbers,
    "sparse inputs": sparse,
    "ragged batches": ragged,
    "an odd loader": odd_loader,
    "a loader that raises": loader_that_raises,
    "lists": lists,
    "an odd array": odd_array,
    "numbers of a kind": kind_of_numbers,
    "whole numbers": whole_numbers,
    "a hook that raises": a_hook_that_raises,
    "a hook that returns": a_hook_that_returns,
    "a forward that raises": a_forward_that_raises,
    "an odd answer": odd_answer,
    "empty": empty,
    "constant": constant,
    "of any size": of_any_size,
    "shared": shared,
    "used twice": used_twice,
    "not to be copied": no_copy,
    "detached": own_step(partly_detached, "refused"),
    "through NumPy": own_step(through_numpy, "refused"),
    "no gradient": no_gradient,
    "random": random,
    "random before": random_before,
    "a memory": memory,
    "keeps": keeps,
    "maps": maps,
    "tokens": tokens,
    "recurrent": recurrent,
    "many branches": many_branches,
    "odd labels": odd_labels,
    "labels": labels,
    "a loss that raises": training_on(own_loss, "theirs"),
    "an odd loss": training_on(odd_loss, "refused"),
    "odd training": training_on(odd_training, "refused"),
}
