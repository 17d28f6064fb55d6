"""Selection as a whole: that it finds the rank, what it can be asked, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unbraid as ub
from unbraid.errors import DataError, SettingError
from unbraid.solvers.coupling import FixedCoupling
from unbraid.studies.comparison.cells import with_noise

PROBLEM, _ = ub.datasets.random_system(n=2, m=2, r=2, S=100, rng=0)


@pytest.fixture(scope="module")
def noisy_problem() -> ub.Problem:
    problem, _ = ub.datasets.random_system(n=2, m=3, r=2, S=100, kind="sine", rng=3)
    return with_noise(problem, 0.02, np.random.default_rng(0))


@pytest.fixture(scope="module")
def selection(noisy_problem: ub.Problem) -> ub.Selection:
    return ub.select(noisy_problem, rng=0, starts=2)


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
    assert same(selection, ub.select(noisy_problem, rng=np.random.default_rng(0), starts=2, jobs=2))


def test_the_fit_has_the_recommended_settings_and_the_reason(selection: ub.Selection) -> None:
    fit = selection.fit(starts=2, rng=0)
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
    found = ub.select(problem, ranks=[2, 3], basis=ub.BSpline(6), constraint=ub.Increasing(), starts=2, rng=0)
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
    [
        (2, 2, 1, "sine", 0.02),
        (3, 3, 3, "cubic", 0.0),
        (2, 2, 3, "sine", 0.0),
        pytest.param(3, 3, 4, "sine", 0.02, marks=pytest.mark.verify),
    ],
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
    holes = ub.select(ub.Problem(problem.X, F, J, missing="mask"), ranks=[1, 2, 3], starts=4, rng=0)
    assert holes.recommended.rank == 2
    assert np.isfinite([row.error for row in holes.rows]).all()


def test_samples_of_little_weight_count_little_in_held_out_errors() -> None:
    problem, _ = ub.datasets.random_system(n=1, m=3, r=2, S=120, rng=1)
    assert problem.F is not None
    wrong = problem.F.copy()
    wrong[:20] += 9.0 * np.std(problem.F)
    for weight in (0.0, 1e-13):  # so little that what is left counts as exact
        weights = np.r_[np.full(20, weight), np.ones(100)]
        weighted = ub.select(ub.Problem(problem.X, wrong, problem.J, weights=weights), ranks=[1, 2, 3], starts=4, rng=0)
        assert weighted.recommended.rank == 2
        assert weighted.chosen.error < 1e-6


def test_a_fit_whose_rank_is_found_is_made_as_it_was_asked_for() -> None:
    """What a selection does not choose, such as `compress`, is that of the request in all of its fits."""
    problem, _ = ub.datasets.random_system(n=12, m=12, r=1, S=60, rng=0)
    reduced = "Jacobians were reduced"
    fit = ub.decouple(problem, "auto", compress=False, starts=2, rng=0)
    assert fit.model.rank == 1
    assert not any(reduced in note for note in fit.notes)
    assert any(reduced in note for note in ub.decouple(problem, "auto", starts=2, rng=0).notes)


def test_the_fit_of_a_selection_remembers_its_seed() -> None:
    problem, _ = ub.datasets.random_system(n=2, m=3, r=1, S=60, rng=0)
    fit = ub.select(problem, ranks=[1], starts=1, rng=0).fit(starts=1, rng=3)
    assert fit.asked is not None
    assert (fit.asked.rank, fit.asked.starts, fit.asked.seed) == (1, 1, 3)
