"""What can move is named, and nothing else is: random systems with and without a freedom, exact and noisy."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from unbraid.inference.freedoms import find_freedoms
from unbraid.inference.neighbourhood import neighbourhood_of
from unbraid.results.advice import on_freedom
from unbraid.results.worth.freedom import Freedom, Kind
from uniqueness import NAMES, example, system


@pytest.mark.parametrize("noise", [0.0, 0.01])
@few_or_many(4, 16)
def test_most_verdicts_on_random_systems_are_right(draws: int, noise: float) -> None:
    right = named = free = 0
    for number in range(0, 2 * draws, 2):
        kind, problem, rank = system(number, noise)
        found = ub.diagnose(ub.decouple(problem, rank, starts=4, rng=0))
        right += found.unique is (kind == "none")
        free += kind != "none"
        named += kind != "none" and NAMES[kind] in {one.kind for one in found.freedoms}
    assert right >= 0.75 * draws
    assert named >= 0.5 * free


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_straight_branch_means_nothing_and_the_canonical_form_is_unique(noise: float) -> None:
    problem = example(noise, slopes=False)
    fit = ub.decouple(problem, 3, starts=8, rng=0)
    found = ub.diagnose(fit)
    [line] = found.straight
    assert found.unique is False
    assert found.unique_canonical
    assert [(one.kind, one.branches) for one in found.freedoms] == [("straight", (line,))]
    said = f"in canonical form; the direction of branch {line + 1}, which is a straight line, means nothing"
    assert said in repr(found)
    assert any("canonical form" in one for one in found.advice)
    form = found.canonical
    assert form is not None
    truth = np.array([[2.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]) / np.array([[np.sqrt(5.0)], [1.0]])
    assert ub.metrics.direction_angles(truth, form.W0).max() < 1.0
    assert form.L[1, 3] == pytest.approx(-1.0, abs=0.02)


def test_starts_agree_where_only_a_straight_branch_differs() -> None:
    fit = ub.decouple(example(0.0, slopes=False), 3, starts=8, rng=0)
    assert fit.agreeing >= 4


def test_a_straight_branch_whose_mix_of_outputs_is_its_own_is_determined() -> None:
    """With three outputs and inputs nothing can take up the lines: the direction means something."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (200, 3))
    W0, W1 = np.linalg.qr(rng.standard_normal((3, 3)))[0], np.linalg.qr(rng.standard_normal((3, 3)))[0]
    u = X @ W0.T
    F = np.stack([np.sin(2.0 * u[:, 0]), np.exp(u[:, 1]), u[:, 2]], axis=1) @ W1.T
    fit = ub.decouple(ub.Problem(X, F + 0.005 * rng.standard_normal(F.shape)), 3, starts=8, rng=0)
    found = find_freedoms(neighbourhood_of(fit, ub.Problem(X, F)))
    assert found is not None
    assert len(found.straight) == 1
    assert found.freedoms == ()


def test_too_many_unknowns_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = ub.datasets.trig(rng=0)
    fit = ub.decouple(problem, 3, starts=1, rng=0)
    monkeypatch.setattr("unbraid.inference.freedoms.DENSE_LIMIT", 10)
    assert find_freedoms(neighbourhood_of(fit, problem)) is None


@pytest.mark.parametrize(
    ("kind", "degrees", "share", "said"),
    [
        ("straight", (12.0,), 0.2, "Branch 1 is a straight line, and its direction can move, by 12 degrees within one"),
        ("straight", (60.0,), 0.2, "by any angle within the noise"),
        ("lines", (0.0, 0.1), np.inf, "can trade straight lines, in 1 way, without any change at the samples."),
        ("parallel", (0.0, 0.1), 0.3, "can be mixed, in 1 way, by 30 % of the outputs' spread within one standard err"),
        ("rotating", (5.0, 60.0), 0.3, "can rotate, in 1 way, by 5 and over 45 degrees within one standard error"),
        ("open", (2.0,), 0.3, "Branch 1 can change, in 1 way, by 2 degrees within one standard error"),
    ],
)
def test_a_freedom_says_what_moves_and_how_far(kind: Kind, degrees: tuple[float, ...], share: float, said: str) -> None:
    freedom = Freedom(kind, tuple(range(len(degrees))), 1, degrees, share)
    assert said in freedom.words
    assert on_freedom(freedom, "").startswith(freedom.words)
    assert freedom.in_canonical_form == (kind not in ("straight", "lines"))
