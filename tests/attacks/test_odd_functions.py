"""Functions as users have them: samples, or a sentence; no errors or warnings of others, and nothing hangs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import unbraid as ub
from draws import check_sentence, few_or_many
from odd_functions import odd_case

QUICK: dict[str, Any] = {
    "derivatives": "forward",
    "budget": 24,
    "first": 4,
    "starts": 1,
    "rng": 0,
    "basis": ub.Polynomial(2),
}


def attack(seed: int) -> None:
    """Samples of a function at given points, and at points of a box."""
    kind, f, X, settings = odd_case(seed)
    few_calls = settings["derivatives"] in (None, "forward", "central")
    box = [[0.0, 1.0]] * min(X.shape[1], 6)
    samples: list[Callable[[], None]] = [
        lambda: check_samples(ub.Problem.from_function(f, X, **settings)),
        lambda: check_sampling(ub.sample(f, box, 1, **QUICK | (settings if few_calls else {}))),
    ]
    for sample in samples:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                sample()
            except ub.UnbraidError as refused:
                check_sentence(str(refused))
            except Exception as error:
                raise AssertionError(f"seed {seed}, {kind}") from error
        for one in caught:
            assert kind == "warns" or "left out, because f has no answer" in str(one.message), f"seed {seed}: {one}"
            check_sentence("." if kind == "warns" else str(one.message))


def check_samples(problem: ub.Problem) -> None:
    """All known, and some."""
    assert problem.S > 0
    assert problem.complete


def check_sampling(found: ub.Sampling) -> None:
    """A finite model, and sentences."""
    assert np.isfinite(found.fit.model(found.problem.X)).all()
    for said in (found.reason, *found.notes):
        check_sentence(said)
    assert not found.enough or found.curve[-1].fresh >= 32


@few_or_many(12, 100)
def test_odd_functions_end_in_samples_or_a_sentence(draws: int) -> None:
    for seed in range(0, 100, 100 // draws):
        attack(seed)


def test_every_kind_of_function_is_drawn() -> None:
    assert len({odd_case(seed)[0] for seed in range(100)}) == 100
