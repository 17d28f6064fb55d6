"""Any network, part and inputs: a result with the user's network as it was, or a sentence."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

import unbraid as ub
from draws import check_sentence, few_or_many
from hard_modules import KINDS, QUICK, Drawn, Hard, TheirError

ALL = 150
SECONDS = 300
"""What nobody waits for, on any machine."""
POOR = ("labels", "constant", "empty", "few digits")
"""Kinds of which a fit of two branches may be poor."""


def drawn_case(k: int) -> tuple[str, Hard]:
    """Kinds by turns, each with other seeds."""
    names = list(KINDS)
    name = names[k % len(names)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about what is made here
        return name, KINDS[name](Drawn(k % len(names) + 7 * (k // len(names))))


def state_of(network: Any) -> dict[str, Any]:
    """What a network has: tensors with their types, modes, attributes, hooks."""
    if not isinstance(network, nn.Module):
        return {}
    state: dict[str, Any] = {"type": type(network)}
    for name, part in network.named_modules():
        state[f"{name} mode"] = part.training, len(part._forward_hooks), len(part._forward_pre_hooks)
        own = {key: value for key, value in vars(part).items() if not key.startswith("_")}
        for key, value in [*own.items(), *part._parameters.items(), *part._buffers.items()]:
            known = isinstance(value, torch.Tensor) and not torch.nn.parameter.is_lazy(value) and not value.is_meta
            state[f"{name}.{key}"] = type(value), value.detach().clone() if known else None
            if isinstance(value, int | float):
                state[f"{name}.{key}"] = value
    return state


def check_same(after: dict[str, Any], before: dict[str, Any]) -> None:
    """Nothing of a network has changed."""
    assert after.keys() == before.keys()
    for name, value in before.items():
        if isinstance(value, tuple) and isinstance(value[-1], torch.Tensor):
            assert after[name][0] is value[0], name
            torch.testing.assert_close(after[name][1], value[1], rtol=0.0, atol=0.0, equal_nan=True)
        else:
            assert after[name] == value, name


@contextmanager
def no_hang() -> Iterator[None]:
    """Inside, what takes minutes ends in an error."""

    def tell(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, tell)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def ending(work: Callable[[], object]) -> str:
    """How it ends: it works, or in a sentence, or in the user's own error."""
    try:
        with warnings.catch_warnings(), no_hang():
            warnings.simplefilter("error")
            work()
    except ub.UnbraidError as refused:
        check_sentence(str(refused))
        return "refused"
    except TheirError:
        return "theirs"
    return "works"


def sample(hard: Hard) -> None:
    points = hard.X if hard.points is None else hard.points
    ub.Problem.from_function(hard.network, points.detach() if isinstance(points, torch.Tensor) else points)


def train(hard: Hard, found: list[Any]) -> None:
    result = ub.networks.compress(hard.network, hard.part, hard.X, **{"rank": 2, **QUICK, **hard.asked})
    found.append(result)
    assert repr(result)
    result.finetune(**{"data": hard.X, "epochs": 2, **hard.training})


def check_result(name: str, hard: Hard, result: Any) -> None:
    """It agrees with the original, and comes back from its saved state."""
    assert name in POOR or result.agreement().off < 0.9
    again = ub.networks.restore(hard.network, result.network.state_dict())
    assert list(again.state_dict()) == list(result.network.state_dict())
    if result._runs_whole:
        x = result.comparison.inputs[:5]
        with torch.no_grad():
            torch.testing.assert_close(again.eval()(x.clone()), result.network.eval()(x.clone()), rtol=0.0, atol=0.0)


def attack(k: int) -> None:
    name, hard = drawn_case(k)
    given = hard.X.detach().clone() if isinstance(hard.X, torch.Tensor) and hard.X.layout is torch.strided else None
    before, found = state_of(hard.network), list[Any]()
    sampled = ending(lambda: sample(hard))
    check_same(state_of(hard.network), before)
    trained = ending(lambda: train(hard, found))
    check_same(state_of(hard.network), before)
    wanted = hard.ends if hard.trained is None else hard.trained
    for got, expected in ((sampled, hard.sampled or hard.ends), (trained, wanted)):
        assert expected in (got, "either") or (expected, got) == ("theirs", "refused"), (got, expected)
    if trained == "works":
        check_result(name, hard, found[0])
    if given is not None and not given.is_meta:
        torch.testing.assert_close(hard.X.detach(), given, rtol=0.0, atol=0.0, equal_nan=True)


@few_or_many(15, ALL)
def test_networks_of_all_kinds_end_in_a_result_or_a_sentence(draws: int) -> None:
    failed = {}
    for k in range(0, ALL, ALL // draws):
        try:
            attack(k)
        except Exception as error:
            failed[f"{k}, {drawn_case(k)[0]}"] = f"{type(error).__name__}: {error}"
    assert not failed
