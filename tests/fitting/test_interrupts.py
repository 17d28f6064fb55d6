"""Ctrl-C at any moment, and again and again: what was found is returned."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from interrupted_fits import CtrlC, undisturbed
from killed_fits import BOTH, VALUES, bits, fitted
from unbraid.fitting import fit_rank as fit_module
from unbraid.fitting.case import Case
from unbraid.fitting.checkpoints.checkpoint import Checkpoint
from unbraid.fitting.search import SearchStarts
from unbraid.results.model import DecoupledModel
from unbraid.runtime.interrupts import attempt, keeping_interrupts_back, listening
from unbraid.selection import supported as supported_module
from unbraid.solvers.alternating import AlternatingProjection
from unbraid.solvers.loop import Loop

pytestmark = pytest.mark.usefixtures("python_hears_ctrl_c")


@pytest.fixture
def python_hears_ctrl_c() -> Iterator[None]:
    """As it does but where a shell has started it in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def interrupting(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Let Ctrl-C come when a function has begun."""
    function = getattr(owner, name)

    def interrupted(*given: Any, **settings: Any) -> Any:
        ctrl_c()
        return function(*given, **settings)

    monkeypatch.setattr(owner, name, interrupted)


PLACES: dict[str, tuple[Any, str]] = {
    "the end of a search": (AlternatingProjection, "finish"),
    "the conclusion": (Case, "conclude"),
    "the last words": (fit_module, "with_contradiction_first"),
    "what the first one left": (Loop, "interrupted"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("first", [1, 12, 10**6])
def test_a_fit_is_returned_wherever_ctrl_c_comes(place: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it comes for a second time: the first one came after so many sweeps, or never."""
    interrupting(monkeypatch, *PLACES[place])
    fit = fitted("default", callback=CtrlC(first))
    if place != "what the first one left" or first < 10**6:
        assert fit.status is ub.Status.INTERRUPTED
    assert np.isfinite(fit.model(np.zeros((1, 2)))).all()


def test_a_fit_to_values_is_returned_wherever_ctrl_c_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupting(monkeypatch, AlternatingProjection, "finish")
    fit = ub.decouple(VALUES, 3, starts=2, rng=0)
    assert fit.status is ub.Status.INTERRUPTED


def test_ctrl_c_in_a_checkpoint_leaves_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupting(monkeypatch, Checkpoint, "_enter")
    path = tmp_path / "fit.checkpoint"
    with pytest.raises(KeyboardInterrupt):  # before there was anything
        fitted("default", path)
    monkeypatch.undo()
    assert bits(fitted("default", path)) == undisturbed("default")
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_after_the_selection_of_a_rank_keeps_its_quick_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupting(monkeypatch, supported_module, "fit_with_loss")
    fit = ub.decouple(BOTH, "auto", starts=2, rng=0)
    assert fit.status is ub.Status.INTERRUPTED
    assert fit.model.rank == 3


def test_ctrl_c_while_nothing_is_found_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupting(monkeypatch, SearchStarts, "search_batch")
    with pytest.raises(KeyboardInterrupt):
        fitted("default")


def test_what_is_kept_back_comes_at_the_end(tmp_path: Path) -> None:
    def save() -> None:
        ctrl_c()
        fitted("dejonghe2025").model.save(tmp_path / "model.npz")

    with pytest.raises(KeyboardInterrupt), keeping_interrupts_back():
        save()
    assert DecoupledModel.load(tmp_path / "model.npz").rank == 3


def test_who_presses_again_and_again_does_not_wait() -> None:
    pressed = 0

    def press() -> None:
        nonlocal pressed
        for pressed in range(1, 10):  # noqa: B007
            ctrl_c()

    with pytest.raises(KeyboardInterrupt), keeping_interrupts_back():
        press()
    assert pressed == 4


def counting(heard: list[int]) -> Callable[[int, Any], None]:
    """A handler of the user's, which raises nothing."""
    return lambda number, frame: heard.append(number)


def test_a_handler_of_the_users_is_called_and_comes_back() -> None:
    heard: list[int] = []
    mine = counting(heard)
    signal.signal(signal.SIGINT, mine)
    try:
        with listening():
            attempt(ctrl_c, lambda: None)
            assert len(heard) == 1
            ctrl_c()
            assert len(heard) == 1
        assert heard == [signal.SIGINT] * 2
    finally:
        assert signal.signal(signal.SIGINT, signal.default_int_handler) is mine
