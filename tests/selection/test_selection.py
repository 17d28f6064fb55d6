"""Selection: the rule on made-up errors, the path it goes, and that it finds ranks that are known."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

import unbraid as ub
from unbraid.errors import DataError, SettingError
from unbraid.runtime.workers import ThisProcess, Workers
from unbraid.selection import Row, Settings
from unbraid.selection.path import Path
from unbraid.selection.rule import EXACT, as_good, clearly_better, exact, finer, simplest
from unbraid.selection.validation import FIT_STEPS, Scale, Validation, inside, quick
from unbraid.selection.words import reason, table
from unbraid.solvers.coupling import FixedCoupling
from unbraid.studies.comparison.cells import with_noise

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

    def __init__(self, error: Callable[[int, int], float], stop_at: int | None = None) -> None:
        self.error, self.stop_at = error, stop_at

    def rows(self, several: Sequence[Settings], workers: Workers, tick: Callable[[], None], init: Any = None) -> Any:
        found = []
        for one in several:
            if one.rank == self.stop_at:
                raise KeyboardInterrupt
            for _ in range(FOLDS + 1):
                tick()
            df = cast(ub.BSpline, one.basis).df
            made = row(one.rank, self.error(one.rank, df) * (1.0 + 0.001 * one.rank * WOBBLE), df)
            found.append(Row(one, made.unknowns, 1.0, cast(Any, FIT), FOLD, made.squares, made.inside))
        return found


class SoMany(ThisProcess):
    """So many workers: of a made-up validation there is nothing to compute."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self.jobs = jobs

    @property
    def count(self) -> int:
        return self.jobs


class FIT:
    """Stands in for a `Fit`."""

    model = None


def walked(error: Callable[[int, int], float], ends_early: bool = True, jobs: int = 1, **more: Any) -> Path:
    candidates = [settings(rank) for rank in range(1, 10)]
    path = Path(cast(Validation, MadeUp(error, more.get("stop_at"))), candidates, ends_early, more.get("callback"))
    with contextlib.suppress(KeyboardInterrupt):
        path.walk(SoMany(jobs))
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


# All of it.


@pytest.fixture(scope="module")
def noisy_problem() -> ub.Problem:
    problem, _ = ub.datasets.random_system(n=2, m=3, r=2, S=100, kind="sine", rng=3)
    return with_noise(problem, 0.02, np.random.default_rng(0))


@pytest.fixture(scope="module")
def selection(noisy_problem: ub.Problem) -> ub.Selection:
    return ub.select(noisy_problem, rng=0, starts=4)


def same(one: ub.Selection, other: ub.Selection) -> bool:
    """Bit for bit."""
    pairs = list(zip(one.rows, other.rows, strict=True))
    return one.recommended == other.recommended and all(
        a.settings == b.settings
        and np.array_equal(a.squares, b.squares)
        and np.array_equal(a.fit.model.W0, b.fit.model.W0)
        for a, b in pairs
    )


def test_the_true_rank_is_found_in_noise(selection: ub.Selection) -> None:
    assert selection.recommended.rank == 2
    assert [one.settings.rank for one in selection.rows] == [1, 2, 3, 4]
    assert 2e-4 < selection.chosen.error < 1e-3
    assert "more branches lower it by no more than one standard error" in selection.reason
    assert repr(selection).endswith(selection.reason)


def test_the_same_seed_gives_the_same_selection_whatever_the_jobs(
    noisy_problem: ub.Problem, selection: ub.Selection
) -> None:
    assert same(selection, ub.select(noisy_problem, rng=np.random.default_rng(0), starts=4, jobs=2))


def test_the_fit_has_the_recommended_settings_and_the_reason(selection: ub.Selection) -> None:
    fit = selection.fit(starts=4, rng=0)
    assert fit.model.rank == 2
    assert fit.notes[0] == selection.reason


def test_df_and_degree_are_chosen(noisy_problem: ub.Problem) -> None:
    found = ub.select(noisy_problem, ranks=[2], dfs=[4, 12], degrees=[2, 3], starts=2, rng=0)
    assert len(found.rows) == 4
    assert found.recommended.basis == ub.BSpline(12, 3)


def test_coupling_is_chosen_among_those_given(noisy_problem: ub.Problem) -> None:
    found = ub.select(noisy_problem, ranks=[2], couplings=[0.1, 1.0], starts=2, rng=0)
    assert {one.settings.coupling for one in found.rows} == {FixedCoupling(0.1), FixedCoupling(1.0)}
    assert found.recommended.coupling in {FixedCoupling(0.1), FixedCoupling(1.0)}


def test_constraints_and_methods_of_papers_can_be_selected_with() -> None:
    problem, _ = ub.datasets.monotone(S=60, rng=2)
    found = ub.select(problem, ranks=[2, 3], basis=ub.BSpline(8), constraint=ub.Increasing(), starts=2, rng=0)
    assert found.recommended.rank == 3
    assert all(branch.certified(ub.Increasing()) for branch in found.chosen.fit.model.branches)
    method = ub.methods.dejonghe2025(max_sweeps=40)
    assert ub.select(problem, ranks=[1, 3], method=method, starts=2, rng=0).recommended.rank == 3


@pytest.mark.parametrize("given", ["values", "slopes"])
def test_values_or_jacobians_alone_will_do(given: str) -> None:
    whole, _ = ub.datasets.random_system(n=2, m=3, r=2, S=120, rng=1)
    problem = ub.Problem(whole.X, whole.F) if given == "values" else ub.Problem(whole.X, J=whole.J)
    assert ub.select(problem, starts=4, rng=0).recommended.rank == 2


def test_ctrl_c_in_a_fit_returns_the_candidates_that_are_complete(
    noisy_problem: ub.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(progress: ub.Progress) -> None:
        if progress.done == 9:
            raise KeyboardInterrupt

    found = ub.select(noisy_problem, rng=0, starts=2, callback=stop)
    assert found.interrupted
    assert [one.settings.rank for one in found.rows] == [1]
    assert found.reason.startswith("Interrupted, so this is of 1 candidate only.")
    assert found.reason.endswith("No larger rank was tried.")
    fit = ub.decouple(noisy_problem, "auto", rng=0, starts=2, callback=stop)
    assert fit.status is ub.Status.INTERRUPTED
    assert fit.notes[0].startswith("Interrupted")

    def stop_at_once(progress: ub.Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ub.select(noisy_problem, rng=0, starts=2, callback=stop_at_once)


@pytest.mark.parametrize(
    ("n", "m", "r", "kind", "noise"),
    [(2, 2, 1, "sine", 0.02), (3, 3, 3, "cubic", 0.0), (2, 2, 3, "sine", 0.0), (3, 3, 4, "sine", 0.02)],
)
def test_auto_finds_the_rank(n: int, m: int, r: int, kind: Any, noise: float) -> None:
    """A few of those that benchmarks/auto_rank.py counts."""
    problem, _ = ub.datasets.random_system(n, m, r, 120, kind, rng=5)
    problem = with_noise(problem, noise, np.random.default_rng(5))
    fit = ub.decouple(problem, "auto", rng=0)
    assert fit.model.rank == r
    assert fit.notes[0].startswith(f"Rank {r} ")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ranks": 3}, "ranks must be several values to try, such as a list, got 3"),
        ({"ranks": []}, "ranks must have at least one value"),
        ({"ranks": [0]}, "rank must be a whole number of at least 1"),
        ({"dfs": [8.5]}, "df must be a whole number"),
        ({"dfs": [2]}, "raise df to 3 or lower the degree"),
        ({"dfs": [8], "basis": ub.Polynomial(3)}, "has no df to choose: leave out dfs"),
        ({"degrees": [2], "basis": ub.PiecewiseLinear(8)}, "has no degree to choose: leave out degrees"),
        ({"couplings": ["x"]}, "coupling must be a number"),
        ({"folds": 1}, "folds must be a whole number of at least 2"),
        ({"folds": 200}, "folds must be at most the number of samples, 100, got 200"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1"),
        ({"starts": 0}, "starts must be a whole number of at least 1"),
        ({"basis": ub.BSpline}, "add parentheses"),
        ({"method": ub.methods.default}, "method must come from ub.methods"),
        ({"constraint": [ub.Increasing(), None]}, "give the rank, 2, with these"),
        ({"constraint": [ub.Increasing(), None], "ranks": [3]}, "one entry for each of the 3 branches, got 2"),
    ],
)
def test_what_cannot_work_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        ub.select(PROBLEM, **settings)


def test_folds_that_leave_too_few_samples_are_refused() -> None:
    with pytest.raises(DataError, match="100 samples in 2 folds leave 50 to fit, too few for BSpline"):
        ub.select(PROBLEM, folds=2, basis=ub.BSpline(60))


@pytest.mark.parametrize("rank", ["Auto", "3", 2.5, None, True])
def test_ranks_that_are_none_are_refused_with_a_word_about_auto(rank: Any) -> None:
    with pytest.raises(SettingError, match='whole number of at least 1, or "auto" to have it chosen, got'):
        ub.decouple(PROBLEM, rank)


def test_auto_does_not_go_with_init() -> None:
    _, truth = ub.datasets.trig(rng=0)
    with pytest.raises(SettingError, match="init has a rank of its own"):
        ub.decouple(PROBLEM, "auto", init=truth)


def test_gaps_are_left_out_of_held_out_errors() -> None:
    problem, _ = ub.datasets.random_system(n=2, m=3, r=2, S=100, rng=0)
    assert problem.F is not None
    F, J = problem.F.copy(), np.array(problem.J)
    F[3, 0], F[7], J[20, 1, 2] = np.nan, np.nan, np.nan
    holes = ub.select(ub.Problem(problem.X, F, J, missing="mask"), ranks=[1, 2, 3], rng=0)
    assert holes.recommended.rank == 2
    assert np.isfinite([row.error for row in holes.rows]).all()


def test_samples_of_little_weight_count_little_in_held_out_errors() -> None:
    problem, _ = ub.datasets.random_system(n=1, m=3, r=2, S=120, rng=1)
    assert problem.F is not None
    wrong = problem.F.copy()
    wrong[:20] += 9.0 * np.std(problem.F)
    for weight in (0.0, 1e-9):
        weights = np.r_[np.full(20, weight), np.ones(100)]
        weighted = ub.select(ub.Problem(problem.X, wrong, problem.J, weights=weights), ranks=[1, 2, 3], rng=0)
        assert weighted.recommended.rank == 2
        assert weighted.chosen.error < 1e-6
