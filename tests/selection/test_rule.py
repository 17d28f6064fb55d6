"""The rule of selection on made-up errors, the path it goes, its words and its measure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

import unbraid as ub
from unbraid.fitting.session import Session
from unbraid.selection.path import Path
from unbraid.selection.rule import EXACT, as_good, clearly_better, exact, finer, simplest
from unbraid.selection.validation import FIT_STEPS, Row, Scale, Settings, Validation, inside, quick
from unbraid.selection.words import reason, table
from unbraid.solvers.coupling import FixedCoupling

FOLDS, PER_FOLD = 5, 4
FOLD = np.arange(FOLDS * PER_FOLD) % FOLDS
PROBLEM, _ = ub.datasets.random_system(n=2, m=2, r=2, S=100, rng=0)
WOBBLE = np.array([1.0, -1.0, 0.5, -0.5, 0.0])


def settings(rank: int, df: int = 12, coupling: float = 0.1) -> Settings:
    return Settings(rank, ub.BSpline(df), FixedCoupling(coupling))


def row(rank: int, errors: npt.ArrayLike, df: int = 12, outside: Sequence[int] = ()) -> Row:
    """A candidate with given errors in the folds."""
    each = np.broadcast_to(np.asarray(errors, dtype=float), FOLDS)
    counts = np.ones(len(FOLD), dtype=bool)
    counts[list(outside)] = False
    unknowns = rank * (PROBLEM.n + PROBLEM.m - 1 + df)
    return Row(settings(rank, df), unknowns, 1.0, cast(Any, None), FOLD, each[FOLD], counts)


# The rule.


def test_a_candidate_is_as_good_as_itself() -> None:
    assert as_good(row(1, 1.0), row(1, 1.0))


def test_within_one_standard_error_of_the_difference_is_as_good() -> None:
    one, noise = np.full(FOLDS, 1.0), 0.1 * WOBBLE
    error = float(np.std(noise, ddof=1) / np.sqrt(FOLDS))
    assert as_good(row(1, one + noise + 0.9 * error), row(2, one))
    assert not as_good(row(1, one + noise + 1.1 * error), row(2, one))


def test_what_is_hard_about_a_fold_cancels() -> None:
    """Folds differ by a factor of 100, and the first candidate is 1 % worse in each of them."""
    hard = np.array([1.0, 100.0, 10.0, 3.0, 30.0])
    assert not as_good(row(1, 1.01 * hard), row(2, hard))
    assert row(1, hard).standard_error > 0.01 * row(1, hard).error


def test_errors_that_count_as_exact_do_not_differ() -> None:
    assert as_good(row(1, 1e-9), row(2, 1e-30))
    assert exact(row(1, 1e-9))
    assert not exact(row(1, [1e-9, 1e-9, 1e-9, 1e-9, 1e-7]))
    assert not as_good(row(1, 1e-3), row(2, 1e-30))


def test_samples_beyond_the_range_of_either_candidate_do_not_count() -> None:
    squares = np.ones(len(FOLD))
    squares[0] = 1e6
    wild = Row(settings(1), 1, 1.0, cast(Any, None), FOLD, squares, np.ones(len(FOLD), dtype=bool))
    assert not as_good(wild, row(2, 0.5))
    assert as_good(wild, row(2, 1.0, outside=[0]))
    assert wild.error > 1e4
    tame = Row(settings(1), 1, 1.0, cast(Any, None), FOLD, squares, FOLD > 0)
    assert tame.errors[0] > 1.0  # a fold without any sample inside counts with all of its samples


def test_the_fewest_unknowns_win_among_equals() -> None:
    rows = [row(2, 1.0), row(3, 0.5, df=20), row(3, 0.5 + 0.01 * WOBBLE), row(4, 0.5 - 0.01 * WOBBLE)]
    assert simplest(rows, rows[3]) is rows[2]


def test_a_finer_basis_has_as_many_unknowns_as_more_branches() -> None:
    for rank, more in ((1, 2), (2, 3), (3, 5), (19, 20)):
        kept, new = row(rank, 1.0), row(more, 0.5)
        other = finer(PROBLEM, kept, new)
        assert other.rank == rank
        assert rank * (PROBLEM.n + PROBLEM.m - 2 + other.basis.size) >= new.unknowns
        assert other.basis.size > kept.settings.basis.size


def test_clearly_better_is_a_matter_of_factors() -> None:
    assert clearly_better(row(2, 0.1), row(1, 1.0))
    assert not clearly_better(row(2, 0.5), row(1, 1.0))
    assert not clearly_better(row(2, 1e-30), row(1, EXACT))


# The path, with errors made up for every rank and df.


class MadeUp:
    """Stands in for a `Validation`."""

    folds, least_training, problem = FOLDS, 80, PROBLEM


class MadeUpPath(Path):
    """A path on which nothing is computed."""

    def __init__(self, *given: Any, error: Callable[[int, int], float], stop_at: int | None = None) -> None:
        super().__init__(*given)
        self.error, self.stop_at = error, stop_at

    def cross_validate(self, several: Sequence[Settings], init: Any = None) -> list[Row]:
        found = []
        for one in several:
            if one.rank == self.stop_at:
                raise KeyboardInterrupt
            for _ in range(FOLDS + 1):
                self._count()
            df = cast(ub.BSpline, one.basis).df
            made = row(one.rank, self.error(one.rank, df) * (1.0 + 0.001 * one.rank * WOBBLE), df)
            found.append(Row(one, made.unknowns, 1.0, cast(Any, FIT), FOLD, made.squares, made.inside))
        return found


class SoMany:
    """So many workers: on a made-up path there is nothing to compute."""

    def __init__(self, jobs: int) -> None:
        self.count = jobs


class FIT:
    """Stands in for a `Fit`."""

    model = None


def walked(error: Callable[[int, int], float], ends_early: bool = True, jobs: int = 1, **more: Any) -> Path:
    candidates = [settings(rank) for rank in range(1, 10)]
    session = Session(callback=more.get("callback"), workers=cast(Any, SoMany(jobs)))
    given = cast(Validation, MadeUp()), candidates, ends_early, session
    path = MadeUpPath(*given, error=error, stop_at=more.get("stop_at"))
    with contextlib.suppress(KeyboardInterrupt):
        path.walk()
    return path


def ranks(path: Path) -> list[int]:
    return [one.settings.rank for one in path.rows]


def noisy(rank: int, df: int) -> float:
    """True rank 3, noise beyond it."""
    return {1: 0.5, 2: 0.1}.get(rank, 4e-4 * (1.0 + 0.02 * (rank - 3)))


def basis_limited(rank: int, df: int) -> float:
    """True rank 2, no noise: a finer basis helps a lot, more branches a little."""
    return 0.5 if rank == 1 else 1e-4 * (12 / df) ** 6 * 0.7 ** (rank - 2)


@pytest.mark.parametrize("jobs", [1, 2, 3, 7])
def test_a_path_ends_when_two_ranks_in_a_row_bring_nothing_whatever_the_jobs(jobs: int) -> None:
    path = walked(noisy, jobs=jobs)
    assert ranks(path) == [1, 2, 3, 4, 5]
    assert path.best.settings.rank == 3
    assert path.finer == []


def test_a_rank_that_brings_nothing_does_not_hide_the_next_one() -> None:
    assert walked(lambda rank, df: 0.5 if rank < 3 else 1e-3).best.settings.rank == 3
    assert walked(lambda rank, df: 0.5 if rank < 4 else 1e-3).best.settings.rank == 1


def test_branches_that_gain_less_than_a_finer_basis_do_not_count() -> None:
    path = walked(basis_limited)
    assert path.best.settings.rank == 2
    assert [one.settings.rank for one in path.finer] == [2, 2]
    words = reason(path.rows, path.best, path.finer, True)
    assert "the error that is left is that of the basis" in words
    assert "BSpline(df=" in words


def test_slow_gains_that_no_basis_makes_do_count() -> None:
    path = walked(lambda rank, df: 0.8**rank)
    assert path.best.settings.rank == 9
    assert "more than half as many unknowns" in reason(path.rows, path.best, path.finer, True)


def test_a_path_ends_where_nothing_is_left_to_explain() -> None:
    path = walked(lambda rank, df: 0.1 if rank < 2 else 1e-30)
    assert ranks(path) == [1, 2]
    assert "0.01 % or better" in reason(path.rows, path.best, path.finer, True)


def test_given_ranks_are_all_tried() -> None:
    path = walked(lambda rank, df: 0.1 if rank < 2 else 1e-30, ends_early=False)
    assert ranks(path) == list(range(1, 10))
    assert simplest(path.rows, path.best).settings.rank == 2


def test_ctrl_c_leaves_what_is_complete() -> None:
    path = walked(noisy, stop_at=3)
    assert ranks(path) == [1, 2]
    assert path.best.settings.rank == 2
    unjudged = walked(noisy)
    unjudged.judged, unjudged.kept = [1], unjudged.rows[0]
    assert unjudged.best.settings.rank == 3


def test_progress_counts_fits_and_never_goes_back() -> None:
    seen: list[ub.Progress] = []
    walked(basis_limited, callback=seen.append)
    done = [one.done for one in seen]
    assert done == sorted(done)
    assert set(done) == set(range(max(done) + 1))
    assert all(one.done <= one.total for one in seen)
    assert {one.phase for one in seen} == {"select"}
    best = [one.best for one in seen]
    assert best == sorted(best, reverse=True)


def test_progress_names_the_rank_before_its_first_fit() -> None:
    seen: list[ub.Progress] = []
    path = walked(noisy, callback=seen.append)
    assert seen[0].rank == 1
    assert seen[0].done == 0
    named = [one.rank for one in seen]
    assert named == sorted(named)
    assert set(named) == set(ranks(path))
    first = [next(one.done for one in seen if one.rank == rank) for rank in ranks(path)]
    last = [max(one.done for one in seen if one.rank == rank) for rank in ranks(path)]
    assert first[1:] == last[:-1], "told of before a fit of it is made"


# Words.


def test_the_table_shows_what_differs_and_marks_the_recommended_row() -> None:
    rows = [row(1, 0.5, df=8), row(1, 0.4, df=12), row(2, 0.1, df=8), row(2, 0.01, df=12)]
    lines = table(rows, rows[3].settings).splitlines()
    assert lines[0].split() == ["rank", "df", "unknowns", "held-out", "error", "standard", "error", "seconds"]
    assert [line.startswith("→") for line in lines] == [False, False, False, False, True]
    assert len({len(line) for line in lines}) == 1
    assert "df" not in table(rows[:1], rows[0].settings)


def test_reasons_name_what_candidates_differ_in() -> None:
    rows = [row(1, 0.5, df=8), row(2, 0.01, df=8), row(2, 0.1, df=6)]
    words = reason(rows, rows[1], [], False)
    assert words.startswith("Rank 2 with df = 8 has a held-out error of 1.0e-02, 50 times below that of rank 1.")
    assert "No larger rank was tried." in words
    assert "largest basis" in words
    assert "more branches lower it by no more" in reason([rows[0], rows[2]], rows[0], [], False)


# The measure.


def test_the_measure_is_zero_for_the_truth_and_one_for_a_constant() -> None:
    problem, _ = ub.datasets.scale(S=400, rng=0)
    flat = ub.DecoupledModel(np.eye(2), np.zeros((2, 2)), [ub.datasets.trig(rng=0)[1].branches[0]] * 2)
    assert problem.F is not None
    mean = flat.through(problem.X, problem.F)
    assert Scale.of(problem).squares(problem, mean, np.arange(problem.S)).mean() == pytest.approx(1.0)
    other, truth = ub.datasets.trig(rng=0)
    assert Scale.of(other).squares(other, truth, np.arange(other.S)).max() < 1e-25


def test_the_measure_does_not_depend_on_units() -> None:
    problem, _ = ub.datasets.trig(S=50, rng=0)
    _, other = ub.datasets.random_system(n=2, m=2, r=3, rng=1)
    assert problem.F is not None
    assert problem.J is not None
    x, f = np.array([10.0, 0.1]), np.array([3.0, 1e-3])
    scaled = ub.Problem(problem.X * x, problem.F * f, problem.J * f[:, None] / x)
    changed = ub.DecoupledModel(other.W0 / x, other.W1 * f[:, None], other.branches)
    expected, found = (
        Scale.of(problem).squares(problem, other, np.arange(problem.S)),
        Scale.of(scaled).squares(scaled, changed, np.arange(scaled.S)),
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_samples_beyond_the_range_of_a_branch_are_recognised() -> None:
    _, model = ub.datasets.random_system(n=1, m=1, r=1, rng=0)
    low, high = model.branches[0].domain
    u = np.array([low - 0.1, low, 0.0, high, high + 0.1])
    assert inside(model, (u / model.W0[0, 0])[:, None]).tolist() == [False, True, True, True, False]


def test_quick_fits_have_fewer_steps_and_methods_of_papers_stay() -> None:
    short = quick(ub.methods.default(), FIT_STEPS)
    assert short.polish is not None
    assert short.polish.stopping.max_sweeps == FIT_STEPS
    paper = ub.methods.dejonghe2025()
    assert quick(paper, FIT_STEPS) is paper
