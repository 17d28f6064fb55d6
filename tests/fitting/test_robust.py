"""Wild samples: a note names them, and `loss="huber"` keeps them from spoiling the fit."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from command_lines import run
from interrupted_fits import CtrlC, killed
from killed_fits import bits, short
from unbraid.errors import SettingError
from unbraid.fitting.robust import hampel, keep_enough, screen, weighted
from unbraid.kernels.arrays import Array
from unbraid.results.outcome import Status
from unbraid.results.wild import WILD, Outermost, Tails, descending, find_wild, lower_ends, renumbered

QUICK: dict[str, Any] = {"starts": 3, "rng": 0}
Rng = np.random.Generator


def draw(seed: int, S: int = 150, noise: float = 0.01) -> tuple[ub.Problem, ub.DecoupledModel]:
    """Samples of f_trig with noise on values and Jacobians."""
    problem, truth = ub.datasets.trig(S=S, rng=seed)
    rng, F, J = np.random.default_rng(seed), np.asarray(problem.F), np.asarray(problem.J)
    F = F + noise * np.std(F, axis=0) * rng.standard_normal(F.shape)
    return ub.Problem(problem.X, F, J + noise * np.sqrt(np.mean(J**2)) * rng.standard_normal(J.shape)), truth


def with_wild(problem: ub.Problem, samples: list[int], size: float = 1e6, kind: str = "F") -> ub.Problem:
    """The problem with samples that are off by so many standard deviations in the first output, of F, J or both."""
    F, J = (None if array is None else np.array(array) for array in (problem.F, problem.J))
    if F is not None and kind != "J":
        F[samples, 0] += size * np.std(F[:, 0])
    if J is not None and kind != "F":
        J[samples, 0] += size * np.std(J[:, 0])
    return ub.Problem(problem.X, F, J, problem.weights, "error" if problem.complete else "mask")


def held_out(fit: ub.Fit, truth: ub.DecoupledModel) -> float:
    """The error at fresh points, up to constants where values are not known."""
    X = np.random.default_rng(99).uniform(-1.0, 1.0, (500, truth.m))
    left = fit.model(X) - truth(X)
    return float(np.sqrt(np.mean(np.square(left - (left.mean(axis=0) if fit.problem.F is None else 0.0)))))  # type: ignore[union-attr]


def parts_of(problem: ub.Problem, data: str) -> ub.Problem:
    """The problem with some of its arrays: 'F', 'J' or 'FJ', with gaps ('?') or weights ('w')."""
    F, J = (np.array(one) if name in data else None for name, one in (("F", problem.F), ("J", problem.J)))
    if "?" in data and F is not None:
        F[::7, 1] = np.nan
    weights = np.random.default_rng(0).uniform(0.5, 2.0, problem.S) if "w" in data else None
    return ub.Problem(problem.X, F, J, weights, "mask" if "?" in data else "error")


@pytest.mark.parametrize(
    ("data", "kind"), [("FJ", "F"), ("FJ", "J"), ("FJ", "both"), ("J", "J"), ("F", "F"), ("FJ?w", "F"), ("FJw", "both")]
)
def test_a_robust_fit_is_as_good_as_without_the_wild_samples(data: str, kind: str) -> None:
    """Usually; so over draws, and with room."""
    ratios = []
    for seed in range(2):
        problem, truth = draw(seed)
        problem = parts_of(problem, data)
        wild = with_wild(problem, [3, 77], 1e3 if seed else 1e6, kind)
        rest = wild.take(np.delete(np.arange(problem.S), [3, 77]))
        plain, robust = ub.decouple(rest, 3, **QUICK), ub.decouple(wild, 3, loss="huber", **QUICK)
        assert robust.problem is not None
        np.testing.assert_array_equal(robust.problem.X, wild.X)
        assert robust.asked is not None
        assert robust.asked.loss == "huber"
        assert "(samples 3, 77" in robust.notes[0] or "(samples 77, 3" in robust.notes[0]
        assert not any(note.startswith(WILD) for note in robust.notes)
        ratios.append(held_out(robust, truth) / held_out(plain, truth))
    assert np.median(ratios) < 1.3


def test_errors_leave_out_samples_without_weight() -> None:
    problem, _ = draw(0)
    fit = ub.decouple(with_wild(problem, [5]), 3, loss="huber", **QUICK)
    assert fit.output_errors is not None
    assert fit.output_errors.max() < 5.0
    assert "1 of 150 samples (sample 5," in fit.notes[0]
    assert "Errors leave out" in fit.notes[0]
    assert len(fit.starts) == QUICK["starts"]


def test_without_wild_samples_nothing_changes() -> None:
    """Least squares on samples with normal noise is what it was, but for a few samples at its edges."""
    problem, truth = draw(1, noise=0.05)
    plain, robust = ub.decouple(problem, 3, **QUICK), ub.decouple(problem, 3, loss="huber", **QUICK)
    assert held_out(robust, truth) < 1.1 * held_out(plain, truth)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
@pytest.mark.parametrize("data", ["FJ", "F"])
def test_a_wild_value_does_not_pass_unnoticed(size: float, data: str) -> None:
    """Although the whole fit is spoiled by it."""
    problem, _ = draw(3)
    fit = ub.decouple(with_wild(parts_of(problem, data), [41], size), 3, starts=2, rng=0)
    assert fit.notes[0].startswith(f"{WILD}F: 1 of 150 samples (sample 41, counted from 0; output 1) is far")
    assert 'loss="huber"' in fit.notes[0]
    assert "--loss huber" in fit.notes[0]


def test_a_wild_jacobian_is_told_by_its_name() -> None:
    problem, _ = draw(4)
    fit = ub.decouple(with_wild(problem, [7, 8], kind="J"), 3, starts=2, rng=0)
    assert re.match(rf"{WILD}J: 2 of 150 samples \(samples (7, 8|8, 7), counted from 0; output 1\) are", fit.notes[0])


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.3, 3.0])
def test_samples_with_normal_noise_are_not_accused(noise: float) -> None:
    for seed in range(3):
        problem, truth = draw(seed, noise=noise)
        assert not find_wild(problem, truth).samples.size
        assert not find_wild(parts_of(problem, "F?"), truth).samples.size


@pytest.mark.parametrize(
    "tail", [lambda z: np.exp(2.0 * z), lambda z: z**3, lambda z: np.maximum(z - 1.5, 0.0), np.zeros_like]
)
def test_long_tails_are_not_accused(tail: Any) -> None:
    """Exponentials and powers have values that are far from most others; rare events are no mistakes."""
    problem, truth = draw(0, S=400)
    for seed in range(5):
        F = tail(np.random.default_rng(seed).standard_normal((400, 1)))
        assert not find_wild(ub.Problem(problem.X, np.hstack([F, F])), exact(truth, F)).samples.size


def test_several_wild_values_do_not_hide_each_other() -> None:
    """Each is 25 times the next one, which the largest of a long tail might be, but hardly the two largest."""
    tails = Tails(np.array([10.0]), np.array([0.8]), 2.0)
    assert lower_ends(np.array([[250.0], [10.5], [10.0]]), tails) == np.inf
    assert lower_ends(np.array([[6250.0], [250.0], [10.0], [9.0]]), tails) == 250.0


@pytest.mark.parametrize("heaviness", [0.3, 0.8, 1.3])
def test_tails_that_fall_like_powers_have_few_gaps(heaviness: float) -> None:
    """Sizes t^-h, t uniform: one of π²/6 · 200 such samples has one."""
    rng, tails = np.random.default_rng(0), Tails(np.zeros(2000), np.full(2000, heaviness), 1.0)
    ordered = descending(rng.uniform(size=(300, 2000)) ** -heaviness)
    assert 0.004 < np.isfinite(lower_ends(ordered, tails)).mean() < 0.014


def exact(model: ub.DecoupledModel, F: Array) -> Any:
    """Stands in for a model that gives these values."""
    return lambda X: np.hstack([F, F])


def test_sample_numbers_are_the_users() -> None:
    """Samples of weight zero take no part, but count in the numbers."""
    problem, _ = draw(0)
    weights = np.ones(problem.S)
    weights[:10] = 0.0
    wild = with_wild(ub.Problem(problem.X, problem.F, problem.J, weights), [2, 41])  # of which one does not count
    assert "(sample 41," in ub.decouple(wild, 3, starts=2, rng=0).notes[0]
    assert (
        renumbered("x (samples 0, 2, …, counted from 0)", np.array([5, 6, 7])) == "x (samples 5, 7, …, counted from 0)"
    )


def test_the_regressor_warns_in_its_own_words() -> None:
    problem, _ = draw(0)
    F = np.array(problem.F)
    F[[90, 20]] += 1e5
    quick: dict[str, Any] = {"rank": 3, "basis": ub.BSpline(8), "starts": 2, "random_state": 0}
    regressor = ub.DecouplingRegressor(**quick)
    with pytest.warns(UserWarning, match=r"Wild values in y: .*samples (90, 20|20, 90),.*loss=\"huber\"\.$"):
        regressor.fit(problem.X, F, jac=problem.J)
    robust = ub.DecouplingRegressor(**quick, loss="huber").fit(problem.X, F, jac=problem.J)
    assert re.search(r"\(samples (90, 20|20, 90),", robust.fit_.notes[0])


def test_memory_maps_and_dask_arrays_get_the_same_weights(tmp_path: Path) -> None:
    da = pytest.importorskip("dask.array")
    problem = with_wild(draw(0, S=90)[0], [3, 77])
    arrays = {name: np.asarray(getattr(problem, name)) for name in "XFJ"}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    mapped = ub.Problem(**{name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "XFJ"})
    lazy = ub.Problem(**{name: da.from_array(array, chunks=(40, *array.shape[1:])) for name, array in arrays.items()})
    few = ub.methods.default(max_sweeps=4, max_steps=4)
    quick: dict[str, Any] = {"method": few, "basis": ub.BSpline(8), "starts": 2, "rng": 0}
    expected, truth = ub.decouple(problem, 3, loss="huber", **quick), draw(0)[1]
    for elsewhere in (mapped, lazy):
        assert np.allclose(screen(elsewhere), screen(problem))
        assert sorted(find_wild(elsewhere, expected.model).samples) == [3, 77]
        fit = ub.decouple(elsewhere, 3, loss="huber", **quick)
        assert fit.problem is not None
        np.testing.assert_array_equal(fit.problem.X, elsewhere.X)
        assert held_out(fit, truth) < 1.5 * held_out(expected, truth)


def test_weights_found_multiply_those_given() -> None:
    problem = parts_of(draw(0)[0], "FJw")
    weights = np.where(np.arange(problem.S) % 3, 1.0, 0.0)
    some = weighted(problem, weights)
    assert np.count_nonzero(weights) == some.S
    assert np.array_equal(some.weights, problem.weights[weights > 0.0])  # type: ignore[index, arg-type]
    assert weighted(problem, np.ones(problem.S)) is problem


def test_weights_of_distances() -> None:
    d = np.array([0.0, 4.0, 8.0, 14.0, 20.0, 1e300, np.inf, np.nan])
    assert np.allclose(hampel(d), [1.0, 1.0, 0.5, 4.0 / 14.0 / 2.0, 0.0, 0.0, 0.0, 0.0])
    assert np.all(keep_enough(hampel(d), 6) > 0.0)
    assert np.count_nonzero(keep_enough(hampel(d), 2)) == 4


def test_the_largest_sizes_of_blocks_are_those_of_all() -> None:
    sizes = np.random.default_rng(0).exponential(size=(500, 3))
    sizes[::5, 1] = np.nan
    together = Outermost.of(sizes)
    added = Outermost.of(sizes[:130]) + Outermost.of(sizes[130:150]) + Outermost.of(sizes[150:])
    assert np.array_equal(added.sizes, together.sizes)
    assert np.array_equal(added.rows, together.rows)
    assert added.count == 500


SETTINGS: dict[str, Any] = {
    "method": short(ub.methods.default()),
    "basis": ub.SmoothingSpline(df=10),
    "starts": 2,
    "rng": 0,
    "loss": "huber",
}


def fit_with_checkpoint(problem: ub.Problem, path: Path, callback: Any) -> ub.Fit:
    return ub.decouple(problem, 3, callback=callback, checkpoint=path, **SETTINGS)


def test_killed_and_called_again_it_ends_at_the_same_fit(tmp_path: Path, written_after_each_sweep: None) -> None:
    problem = with_wild(draw(0, S=60)[0], [3], 20.0)
    calls: list[object] = []
    expected = bits(ub.decouple(problem, 3, callback=calls.append, **SETTINGS))
    for after in (len(calls) // 2,):
        path = tmp_path / f"{after}.checkpoint"
        assert killed(partial(fit_with_checkpoint, problem, path), after)
        assert bits(ub.decouple(problem, 3, checkpoint=path, **SETTINGS)) == expected
    with pytest.raises(SettingError, match="loss"):
        ub.decouple(problem, 3, checkpoint=path, **{**SETTINGS, "loss": "squared"})


def test_ctrl_c_in_any_round_returns_the_best_so_far() -> None:
    problem = with_wild(draw(0, S=60)[0], [3], 20.0)
    calls: list[object] = []
    ub.decouple(problem, 3, callback=calls.append, **SETTINGS)
    for first in (3, len(calls) // 2, len(calls) - 4):
        fit = ub.decouple(problem, 3, callback=CtrlC(first), **SETTINGS)
        assert fit.status is Status.INTERRUPTED
        assert fit.problem is not None
        np.testing.assert_array_equal(fit.problem.X, problem.X)


def test_the_time_limit_is_of_all_rounds_together() -> None:
    problem = with_wild(draw(0, S=60)[0], [3], 20.0)
    limited = replace(SETTINGS["method"], stopping=replace(SETTINGS["method"].stopping, max_seconds=1e-9))
    assert ub.decouple(problem, 3, **{**SETTINGS, "method": limited}).status is Status.OUT_OF_TIME


def test_a_rank_is_found_among_wild_samples() -> None:
    problem, _ = ub.datasets.random_system(n=2, m=3, r=2, S=100, rng=0)
    fit = ub.decouple(with_wild(problem, [10, 30]), "auto", loss="huber", starts=4, rng=0)
    assert fit.model.rank == 2
    assert fit.output_errors is not None
    assert fit.output_errors.max() < 1.0


@pytest.mark.parametrize("loss", ["absolute", None, 1.0, ["huber"]])
def test_other_losses_are_refused(loss: Any) -> None:
    with pytest.raises(SettingError, match='loss must be "squared", or "huber"'):
        ub.decouple(draw(0)[0], 3, loss=loss)


def test_methods_that_know_no_weights_are_refused() -> None:
    with pytest.raises(SettingError, match="polish=True"):
        ub.decouple(draw(0)[0], 3, method=ub.methods.dreesen2015(), loss="huber")


def test_the_command_line_has_the_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    problem = with_wild(draw(0)[0], [12])
    np.savez("data.npz", X=problem.X, F=np.asarray(problem.F), J=np.asarray(problem.J))
    told = run("fit data.npz --rank 3 --starts 2 -o model.npz")
    robust = run("fit data.npz --rank 3 --starts 2 --loss huber -o model.npz")
    assert told.exit_code == robust.exit_code == 0
    assert WILD in " ".join(told.output.split())
    assert "got no weight" in " ".join(robust.output.split())
