"""Samples through sums over blocks: wherever they lie and however they are cut, solvers see the same."""

import pickle
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import unbraid as ub
from registry import BASES
from unbraid.bases import Basis
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.sample_set import SampleSet
from unbraid.data.streamed import Streamed, sample_set
from unbraid.data.units import Scaling, Units
from unbraid.fitting import levels
from unbraid.kernels.arrays import Array
from unbraid.reading import numpy_files, read_problem
from unbraid.results.outcome import Status
from unbraid.solvers.alternating import AlternatingProjection, SweepState
from unbraid.solvers.coupling import FixedCoupling
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates
from unbraid.solvers.translate import GivenModel

S = 150
FIRST = {type(basis): basis for basis in reversed(BASES)}
LAST = {type(basis): basis for basis in BASES}
ENDS = tuple(dict.fromkeys([ub.BSpline(), *FIRST.values(), *LAST.values()]))
"""The default, and of each kind of basis the first and the last, which are small and large."""


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.kernels.arrays.BRANCH_ENTRIES", 70)
    monkeypatch.setattr("unbraid.kernels.arrays.LEAST_BLOCK", 20)


def a_problem(kind: str, n: int = 2, m: int = 3) -> ub.Problem:
    """A system, with weights or gaps where the kind says so; F or J alone, or both."""
    given, *more = kind.split()
    whole, _ = ub.datasets.random_system(n, m, 3, S, "sine", rng=1)
    rng = np.random.default_rng(2)
    F, J = np.array(whole.F) + 5.0, np.array(whole.J)
    if "gaps" in more:
        F[rng.random(F.shape) < 0.1], J[rng.random(J.shape) < 0.1] = np.nan, np.nan
    weights = rng.uniform(0.5, 2.0, S) if "weights" in more else None
    X = 3.0 + 2.0 * whole.X
    return ub.Problem(X, F if "F" in given else None, J if "J" in given else None, weights, "mask" if more else "error")


def both(problem: ub.Problem) -> tuple[Samples, Streamed]:
    units = Units.balanced(problem)
    return Samples.of(problem, units), Streamed(problem, Scaling.of(problem, units))


def a_model(data: SampleSet, basis: Basis, rank: int = 3) -> Iterates:
    rng = np.random.default_rng(0)
    W0 = rng.standard_normal((2, rank, data.m))
    W0 /= np.linalg.norm(W0, axis=-1, keepdims=True)
    a = rng.standard_normal((2, rank, basis.size))
    return Iterates(W0, rng.standard_normal((2, data.n, rank)), basis.place(data.inputs_for_knots(W0), 0.5), a)


def close(ours: Array, theirs: Array, share: float = 1e-10) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=share * np.abs(theirs).max())


KINDS = ["F", "J", "FJ weights", "FJ weights gaps"]


@pytest.mark.parametrize("basis", ENDS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [False, True])
def test_gauss_newton_sees_the_same_in_blocks_as_in_one(
    basis: Basis, kind: str, offset: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_memory, streamed = both(a_problem(kind))
    it = a_model(in_memory, basis)
    change = np.random.default_rng(3).standard_normal((2, 3, in_memory.n + in_memory.m + basis.size))

    def looked_at(data: SampleSet) -> list[Array]:
        solver = GaussNewton(data, basis, Projection.onto([None] * 3), 0.3, offset, 0.5)
        at, anew = solver.linearised(it), solver.placed_anew(it)
        misfits = np.stack(at.misfits())
        return [misfits, at.descent(), at.normal_matrix(), at.branch_matrices(), at.product(change), anew.a, anew.W1]

    blocks = [looked_at(in_memory), looked_at(streamed)]
    assert len(in_memory.blocks(3)) > 5
    monkeypatch.setattr("unbraid.kernels.arrays.BRANCH_ENTRIES", 1 << 20)
    whole = looked_at(Samples.of(a_problem(kind), Units.balanced(a_problem(kind))))
    for some in blocks:
        for ours, theirs in zip(some, whole, strict=True):
            close(ours, theirs)


@pytest.mark.parametrize("basis", ENDS, ids=repr)
@pytest.mark.parametrize("kind", ["FJ weights", "J"])
@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize(("n", "rank"), [(2, 3), (4, 3), (2, 7)])
def test_sweeps_are_the_same_in_blocks_as_in_one(
    basis: Basis, kind: str, anchored: bool, n: int, rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = a_problem(kind, n)

    def swept(data: SampleSet) -> tuple[SweepState, Array]:
        free = Projection.onto([None] * rank)
        solver = AlternatingProjection(data, basis, free, FixedCoupling(0.3), anchored, True, True, 0.5)
        state = solver.random_start(rank, [np.random.default_rng(k) for k in range(2)])
        for _ in range(4 if rank == 3 else 1):  # where much is open, steps are ill-conditioned and rounding soon shows
            state, _ = solver.step(state)
        return state, solver.measure(state).objective

    some = [swept(data) for data in both(problem)]
    monkeypatch.setattr("unbraid.kernels.arrays.BRANCH_ENTRIES", 1 << 20)
    whole, objective = swept(both(problem)[0])
    for state, measured in some:
        close(measured, objective, 1e-7)
        close(state.iterates.W0, whole.iterates.W0, 1e-6)
        close(state.iterates.W1, whole.iterates.W1, 1e-6)
        close(state.T, whole.T, 1e-6)
        close(state.gram, whole.gram, 1e-6)


def test_starting_from_a_model_is_the_same_in_blocks() -> None:
    problem, truth = ub.datasets.trig(S=S, rng=0)
    basis, units = ub.BSpline(8), Units.balanced(problem)
    found = []
    for data in both(problem):
        solver = AlternatingProjection(data, basis, Projection.onto([None] * 3), FixedCoupling(0.1), True, True, True)
        found.append(solver.project_model(GivenModel.of(truth, units)).a)
    close(found[0], found[1])


def test_remembering_branches_at_samples_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = ub.datasets.trig(S=S, rng=0)
    kept = ub.decouple(problem, 3, starts=2, rng=0)
    monkeypatch.setattr("unbraid.data.in_memory.KEPT_ENTRIES", 0)
    np.testing.assert_array_equal(ub.decouple(problem, 3, starts=2, rng=0).model.W0, kept.model.W0)


@pytest.mark.parametrize("kind", [0, 1], ids=["in memory", "streamed"])
def test_what_is_kept_of_states_holds_nothing_over_all_samples(kind: int) -> None:
    sizes = []
    for size in (200, 2000):
        problem, _ = ub.datasets.random_system(3, 3, 3, size, rng=0)
        data = both(problem)[kind]
        sweeps = AlternatingProjection(
            data, ub.BSpline(8), Projection.onto([None] * 3), FixedCoupling(0.1), True, True, True
        )
        state = sweeps.random_start(3, [np.random.default_rng(0)])
        polish = GaussNewton(data, ub.BSpline(8), Projection.onto([None] * 3), 0.1, True, dense_limit=0)
        step = polish.start(sweeps.iterates(state))
        model = replace(step.model, linearised=None)  # type: ignore[call-arg]
        sizes.append(len(pickle.dumps((replace(state, samples=None), replace(step, model=model)))))  # type: ignore[arg-type]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.01)


# Where knots go.


def test_knots_of_many_samples_come_from_some_of_them_and_the_ends_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.data.sample_set.KNOT_SAMPLES", 50)
    problem = a_problem("FJ")
    for data in both(problem):
        W0 = np.random.default_rng(0).standard_normal((1, 2, 3))
        u = data.inputs_for_knots(W0)
        everything = W0 @ data.gathered().X.T
        assert u.shape[-1] == 52
        np.testing.assert_allclose(u.min(axis=-1), everything.min(axis=-1), rtol=1e-12)
        np.testing.assert_allclose(u.max(axis=-1), everything.max(axis=-1), rtol=1e-12)


def test_the_strength_of_a_penalty_does_not_depend_on_how_knots_were_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = a_problem("FJ")
    solver = GaussNewton(both(problem)[0], ub.SmoothingSpline(8, smoothing=0.1), Projection.onto([None] * 3), 0.1, True)
    it = a_model(solver.samples, solver.basis)
    strengths = []
    for most in (1000, 50):
        monkeypatch.setattr("unbraid.data.sample_set.KNOT_SAMPLES", most)
        fresh = replace(solver, samples=both(problem)[0])
        moved = fresh.placed_anew(replace(it, placement=ub.BSpline(8, 5).place(fresh.samples.inputs_for_knots(it.W0))))
        strengths.append(moved.placement.strength)  # type: ignore[attr-defined]
    np.testing.assert_allclose(strengths[1], strengths[0], rtol=1e-12)


# Files.


@pytest.mark.parametrize("kind", ["float32", "samples last"])
def test_large_npy_files_are_mapped_and_fitted_as_they_lie(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_files, "MAPPED", 1000)
    whole, _ = ub.datasets.trig(S=S, rng=0)
    for name in "XFJ":
        array = np.asarray(getattr(whole, name))
        np.save(tmp_path / f"{name}.npy", array.astype(np.float32) if kind == "float32" else np.moveaxis(array, 0, -1))
    problem = read_problem(tmp_path, layout="samples-last" if kind == "samples last" else None).problem
    assert not problem.in_memory
    assert isinstance(sample_set(problem, Units.balanced(problem)), Streamed)
    ours, theirs = (ub.decouple(one, 3, starts=2, rng=0) for one in (problem, whole))
    assert ours.jacobian_error == pytest.approx(theirs.jacobian_error, rel=1e-3)


# Whole fits.


@pytest.mark.parametrize("kind", ["FJ", "FJ weights", "J", "F"])
def test_a_fit_of_streamed_samples_is_that_of_samples_in_memory(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = a_problem(kind)
    monkeypatch.setattr(levels, "SEARCH_SAMPLES", 100)
    whole = ub.decouple(problem, 3, starts=4, rng=0)
    monkeypatch.setattr("unbraid.data.streamed.IN_MEMORY_ENTRIES", 0)
    assert isinstance(sample_set(problem, Units.balanced(problem)), Streamed)
    streamed = ub.decouple(problem, 3, starts=4, rng=0)
    scale = np.std(whole.model(problem.X), axis=0)
    np.testing.assert_allclose(streamed.model(problem.X) / scale, whole.model(problem.X) / scale, atol=1e-5)
    assert any("100 of 150 samples" in note for note in streamed.notes)


def test_a_search_on_some_samples_ends_at_the_minimiser_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = a_problem("FJ")
    on_all = ub.decouple(problem, 3, rng=0)
    monkeypatch.setattr(levels, "SEARCH_SAMPLES", 75)
    on_some = ub.decouple(problem, 3, rng=0)
    assert on_some.objective == pytest.approx(on_all.objective, rel=1e-3)
    assert on_some.status.converged


def test_ctrl_c_on_the_way_to_all_samples_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = a_problem("FJ")
    monkeypatch.setattr(levels, "SEARCH_SAMPLES", 75)

    def interrupt(progress: ub.Progress) -> None:
        if progress.phase == "all samples":
            raise KeyboardInterrupt

    cut, whole = (ub.decouple(problem, 3, basis=ub.BSpline(12), rng=0, callback=one) for one in (interrupt, None))
    assert cut.status is Status.INTERRUPTED
    assert cut.objective < 2.0 * whole.objective


def test_a_sweep_over_a_memory_map_takes_memory_for_a_block_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbraid.kernels.arrays.BRANCH_ENTRIES", 1 << 13)
    monkeypatch.setattr("unbraid.data.streamed.IN_MEMORY_ENTRIES", 0)
    rng = np.random.default_rng(0)
    for name, shape in (("X", (60_000, 6)), ("F", (60_000, 6)), ("J", (60_000, 6, 6))):  # 23 MB
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape))
    problem = ub.Problem(**{name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "XFJ"})
    method = ub.methods.default(polish=False, max_sweeps=2)
    tracemalloc.start()
    try:
        fit = ub.decouple(problem, 4, method=method, starts=1, rng=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert fit.trace.sweeps == 2
    assert peak < 13e6
