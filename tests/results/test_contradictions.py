"""Values and Jacobians that are not those of one function: told in the first note, with the likely mistake."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from unbraid.data.looking.neighbours import CONTRADICTION
from unbraid.kernels.arrays import Array
from unbraid.results.contradictions import describe_contradiction, with_contradiction_first

Mistake = Callable[[Array, np.random.Generator], Array]


def swapped(J: Array, axis: int) -> Array:
    """With the first two inputs, or outputs, in each other's place."""
    order = np.arange(J.shape[axis])
    order[:2] = 1, 0
    return J.take(order, axis=axis)


def in_other_units(J: Array, rng: np.random.Generator) -> Array:
    """With one input in degrees, millimetres, kilometres or feet."""
    factors = np.ones(J.shape[2])
    factors[rng.integers(J.shape[2])] = rng.choice([57.3, 1000.0, 0.001, 0.3048])
    return J * factors


MISTAKES: dict[str, tuple[Mistake, str]] = {
    "sign": (lambda J, rng: -J, "wrong sign|-"),
    "transposed": (lambda J, rng: J.mT, "transposed"),
    "shuffled": (lambda J, rng: rng.permutation(J), "samples are in another order"),
    "inputs swapped": (lambda J, rng: swapped(J, 2), "inputs of J are in another order"),
    "outputs swapped": (lambda J, rng: swapped(J, 1), "outputs of J are in another order"),
    "units": (in_other_units, "units"),
    "factor 2": (lambda J, rng: 2.0 * J, "J is (2|1.9.?) times"),
    "factor 1.1": (lambda J, rng: 1.1 * J, "J is (1.1|1.09|1.08) times"),
}


def a_case(seed: int, square: bool = False) -> tuple[ub.Problem, ub.DecoupledModel]:
    """A system and samples of it with 5 % noise."""
    rng = np.random.default_rng(seed)
    n, m, r = (int(rng.integers(low, high)) for low, high in ((2, 4), (2, 5), (1, 4)))
    kind: Any = rng.choice(["sine", "cubic"])
    clean, truth = ub.datasets.random_system(m if square else n, m, r, int(rng.choice([60, 100, 200])), kind, rng=seed)
    F, J = np.array(clean.F), np.array(clean.J)
    F += 0.05 * F.std(axis=0) * rng.standard_normal(F.shape)
    J += 0.05 * np.sqrt(np.mean(J**2, axis=(0, 2), keepdims=True)) * rng.standard_normal(J.shape)
    return ub.Problem(clean.X, F, J), truth


def with_mistake(problem: ub.Problem, mistake: str, seed: int) -> ub.Problem:
    return ub.Problem(problem.X, problem.F, MISTAKES[mistake][0](np.array(problem.J), np.random.default_rng(seed)))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_and_named(mistake: str) -> None:
    """Held against the true model. An input that hardly matters may be in any units: not all can be told."""
    told, named = 0, 0
    for seed in range(30):
        problem, truth = a_case(seed, square=True)
        said = describe_contradiction(with_mistake(problem, mistake, seed), truth)
        told += said is not None
        named += said is not None and bool(re.search(MISTAKES[mistake][1], said))
    assert told >= 27
    assert named >= 20


def test_samples_of_one_function_are_not_accused() -> None:
    for seed in range(100, 200):
        problem, truth = a_case(seed)
        assert describe_contradiction(problem, truth) is None


@pytest.mark.parametrize("noise", [0.05, 0.3])
@pytest.mark.parametrize("m", [1, 3])
def test_noise_is_no_contradiction(m: int, noise: float) -> None:
    """Neither of values nor of Jacobians, in no density of samples, though a model of one branch explains little."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        clean, truth = ub.datasets.random_system(3, m, 3, 200, "sine", rng=seed)
        F, J = np.array(clean.F), np.array(clean.J)
        F += noise * F.std(axis=0) * rng.standard_normal(F.shape)
        J += noise * np.sqrt(np.mean(J**2)) * rng.standard_normal(J.shape)
        poor = ub.DecoupledModel(truth.W0[:1], truth.W1[:, :1], truth.branches[:1])
        assert describe_contradiction(ub.Problem(clean.X, F, J), poor) is None


def test_units_of_a_single_input_are_a_factor() -> None:
    clean, truth = ub.datasets.random_system(2, 1, 2, 100, "sine", rng=0)
    wrong = ub.Problem(clean.X, clean.F, 0.001 * np.array(clean.J))
    poor = ub.DecoupledModel(truth.W0[:1], truth.W1[:, :1], truth.branches[:1])
    assert re.search(r"J is (0\.001|0\.0009\d?) times", describe_contradiction(wrong, poor) or "")


@few_or_many(4, 16)
def test_fits_tell_of_mistakes(draws: int) -> None:
    """The first note, in nearly all cases: of an input that hardly matters nothing can be told."""
    names = list(MISTAKES)
    told = 0
    for seed in range(draws):
        problem, truth = a_case(1000 + seed, square=True)
        wrong = with_mistake(problem, names[seed % len(names)], seed)
        notes = ub.decouple(wrong, truth.rank, starts=4, rng=0).notes
        told += bool(notes) and notes[0].startswith(CONTRADICTION)
    assert told >= 0.975 * draws - 1e-9 - (draws < 50)


@few_or_many(4, 16)
def test_fits_accuse_nobody(draws: int) -> None:
    for seed in range(draws):
        problem, truth = a_case(2000 + seed)
        fit = ub.decouple(problem, max(1, truth.rank - seed % 2), starts=2, rng=0)
        assert not any(note.startswith(CONTRADICTION) for note in fit.notes), seed


def test_the_note_comes_first() -> None:
    assert with_contradiction_first(("a", CONTRADICTION, "b")) == (CONTRADICTION, "a", "b")


def test_jacobians_that_were_not_filled_in_are_told() -> None:
    problem, truth = a_case(0)
    J = np.array(problem.J)
    said = describe_contradiction(ub.Problem(problem.X, problem.F, np.zeros_like(J)), truth)
    assert said is not None
    assert "J is zero throughout, where F varies" in said
    J[len(J) // 2 :] = 0.0
    said = describe_contradiction(ub.Problem(problem.X, problem.F, J), truth)
    assert said is not None
    assert "J is zero at the last 50 % of the samples" in said


def test_jacobians_of_a_function_that_saturates_may_be_zero() -> None:
    X = np.sort(np.random.default_rng(0).uniform(-2.0, 2.0, (100, 1)), axis=0)
    problem = ub.Problem(X, np.clip(X, -0.5, 0.5), (np.abs(X) < 0.5).astype(float)[:, :, None])
    fit = ub.decouple(problem, 1, starts=2, rng=0)
    assert not any(note.startswith(CONTRADICTION) for note in fit.notes)


@pytest.mark.parametrize("given", ["F", "J"])
def test_one_of_both_contradicts_nothing(given: str) -> None:
    problem, truth = a_case(0)
    alone = ub.Problem(problem.X, **{given: getattr(problem, given)})
    assert describe_contradiction(alone, truth) is None


def test_few_constant_or_unknown_samples_say_nothing() -> None:
    problem, truth = a_case(0)
    F, J = np.array(problem.F), np.array(problem.J)
    assert describe_contradiction(ub.Problem(problem.X[:5], F[:5], -J[:5]), truth) is None
    assert describe_contradiction(ub.Problem(problem.X, np.ones_like(F), J), truth) is None
    F[:-5] = np.nan
    assert describe_contradiction(ub.Problem(problem.X, F, -J, missing="mask"), truth) is None


@few_or_many(2, 10)
def test_a_steep_function_at_too_small_a_rank_is_not_accused(draws: int) -> None:
    """Neighbours too far apart for its slopes say nothing of the order, nor of the units, of J."""
    functions = (lambda x: [np.exp(x[0] + x[1] * x[2])], lambda x: [x[0] * x[1] + np.sin(3.0 * x[2]), x[0] * x[2]])
    for seed in range(draws):
        X = np.random.default_rng(seed).uniform(-2.0, 2.0, (150, 3))
        for f in functions:
            fit = ub.decouple(ub.Problem.from_function(f, X), 1, starts=4, rng=0)
            assert not any(note.startswith(CONTRADICTION) for note in fit.notes)
