"""Jacobians reduced to their leading directions: what is kept, what is lost, and models lifted back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from registry import seeds
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.reductions import total
from unbraid.data.sample_set import SampleSet
from unbraid.data.streamed import Streamed
from unbraid.data.units import Scaling, Units
from unbraid.fitting import compression
from unbraid.fitting.compression import ROOM, ROUNDING, Compression
from unbraid.fitting.polish import PolishStarts, measure_anew
from unbraid.fitting.search import SearchStarts
from unbraid.fitting.session import Session
from unbraid.kernels.arrays import Array
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates

BASIS = ub.BSpline(df=6)
limits = pytest.mark.parametrize("limit", [10_000, 0], ids=["Gram matrices", "products"])


def system(seed: int, r: int = 2, noise: float = 0.0, weighted: bool = False, S: int = 60) -> ub.Problem:
    """A system of r branches with more inputs and outputs than that, and normal noise on J and F."""
    rng = np.random.default_rng(seed)
    exact, _ = ub.datasets.random_system(n=13, m=29, r=r, S=S, kind="cubic", rng=rng)
    assert exact.F is not None
    assert exact.J is not None
    J = exact.J + noise * np.sqrt(np.mean(exact.J**2)) * rng.standard_normal(exact.J.shape)
    F = exact.F + noise * np.std(exact.F) * rng.standard_normal(exact.F.shape)
    weights = rng.uniform(0.1, 3.0, S) if weighted else None
    units = 10.0 ** rng.uniform(-1, 1, 29)
    return ub.Problem(exact.X * units, F, J / units, weights)


def as_samples(problem: ub.Problem) -> Samples:
    return Samples.of(problem, Units.balanced(problem))


def compressed(samples: SampleSet, rank: int) -> Compression:
    found = Compression.of(samples, rank)
    assert found is not None
    return found


def whole_jacobian(samples: Samples) -> Array:
    """J (S, n, m) as the equations see it, times the roots of the weights of the samples."""
    J = samples.jacobian(slice(None)).reshape(len(samples.X), -1, samples.X.shape[1])
    return J if samples.rows is None else J * np.sqrt(samples.rows)[:, None, None]


def on_the_left(one: Compression, J: Array) -> Array:
    return J if one.U is None else one.U @ (one.U.T @ J)


def on_the_right(one: Compression, J: Array) -> Array:
    return J if one.V is None else (J @ one.V) @ one.V.T


def square(J: Array) -> float:
    return float(np.sum(J * J))


def some_models(samples: Samples, rank: int, seed: int, starts: int = 3) -> Iterates:
    """Random models of the samples, with functions placed on their inputs."""
    rng = np.random.default_rng(seed)
    m = samples.X.shape[1]
    W0 = rng.standard_normal((starts, rank, m))
    placement = BASIS.place(W0 @ samples.X.T)
    W1 = rng.standard_normal((starts, samples.weight.size // m, rank))
    return Iterates(W0, W1, placement, rng.standard_normal((starts, rank, BASIS.size)))


def newton(samples: Samples, rank: int, coupling: float = 0.1) -> GaussNewton:
    return GaussNewton(samples, BASIS, Projection.onto([None] * rank), coupling, offset=True)


@limits
@given(seed=seeds, r=st.integers(1, 3), noise=st.sampled_from([0.0, 1e-2, 1.0]), weighted=st.booleans())
def test_what_is_lost_is_at_most_the_bound_and_what_is_measured(
    limit: int, seed: int, r: int, noise: float, weighted: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "GRAM_LIMIT", limit)
        patch.setattr(compression, "OVERSAMPLING", 4)
        samples = as_samples(system(seed, r + 1, noise, weighted))
        one = compressed(samples, r)
    J = whole_jacobian(samples)
    lost = square(J - on_the_left(one, on_the_right(one, J))) / square(J)
    assert lost <= one.lost
    assert one.measure_loss(samples, one.apply(samples)) == pytest.approx(lost, rel=1e-9, abs=ROUNDING)
    for directions in (one.U, one.V):
        if directions is not None:
            np.testing.assert_allclose(directions.T @ directions, np.eye(directions.shape[1]), atol=1e-13)


@limits
@given(seed=seeds, r=st.integers(1, 3), weighted=st.booleans())
def test_an_exact_system_loses_nothing(limit: int, seed: int, r: int, weighted: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "GRAM_LIMIT", limit)
        patch.setattr(compression, "OVERSAMPLING", 4)
        samples = as_samples(system(seed, r, weighted=weighted))
        one = compressed(samples, r)
    J = whole_jacobian(samples)
    assert square(J - on_the_left(one, on_the_right(one, J))) < 1e-16 * square(J)
    assert one.lost < 1e-11


@given(seed=seeds, noise=st.sampled_from([1e-3, 0.1, 1.0]), weighted=st.booleans())
def test_gram_matrices_keep_what_singular_values_of_the_unfoldings_say(seed: int, noise: float, weighted: bool) -> None:
    """The slow twin: singular value decompositions of J (n, S·m) and (m, S·n)."""
    samples = as_samples(system(seed, 3, noise, weighted))
    one, J = compressed(samples, 2), whole_jacobian(samples)
    left = np.linalg.svd(np.moveaxis(J, 1, 0).reshape(13, -1), compute_uv=False)
    right = np.linalg.svd(np.moveaxis(J, 2, 0).reshape(29, -1), compute_uv=False)
    assert one.U is not None
    assert one.V is not None
    p, q = one.U.shape[1], one.V.shape[1]
    assert square(J - on_the_left(one, J)) == pytest.approx(np.sum(left[p:] ** 2), rel=1e-8)
    assert square(J - on_the_right(one, J)) == pytest.approx(np.sum(right[q:] ** 2), rel=1e-8)
    tails = np.sum(left[p:] ** 2) + np.sum(right[q:] ** 2)
    assert one.lost == pytest.approx(min(tails / square(J), 1.0), rel=1e-8)


@given(seed=seeds, noise=st.sampled_from([1e-3, 0.1]))
def test_products_with_a_random_matrix_keep_nearly_as_much(seed: int, noise: float) -> None:
    samples = as_samples(system(seed, 2, noise))
    exact, J = compressed(samples, 2), whole_jacobian(samples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "GRAM_LIMIT", 20)
        random = compressed(samples, 2)
    best = square(J - on_the_right(exact, J))
    assert best <= square(J - on_the_right(random, J)) * (1.0 + 1e-9)
    assert square(J - on_the_right(random, J)) < 1.25 * best


@given(seed=seeds, r=st.integers(1, 3), noise=st.sampled_from([0.0, 0.1]), weighted=st.booleans())
def test_a_lifted_model_misses_what_it_missed_and_what_was_lost(
    seed: int, r: int, noise: float, weighted: bool
) -> None:
    """‖J - Ĵ‖² = ‖J' - Ĵ'‖² + ‖J‖² - ‖J'‖², and likewise for values with a free offset: any model, good or bad."""
    samples = as_samples(system(seed, r + 1, noise, weighted))
    one = compressed(samples, r)
    small = one.apply(samples)
    assert small.F is not None
    assert samples.F is not None
    models = some_models(small, r, seed)
    there = newton(small, r).linearised(models).misfits()
    here = newton(samples, r).linearised(one.lift(models)).misfits()
    rests = [float(samples.jacobian_norm) - float(small.jacobian_norm)]
    rests += [spread(samples.F, samples.rows) - spread(small.F, small.rows)]
    for full, part, rest in zip(here, there, rests, strict=True):
        np.testing.assert_allclose(full, part + rest, rtol=1e-9)


def spread(F: Array, rows: Array | None) -> float:
    """The weighted sum of squares of what an offset leaves of values."""
    weights = np.ones(len(F)) if rows is None else rows
    residual = F - np.average(F, axis=0, weights=weights)
    return float(weights @ np.sum(residual**2, axis=1))


@pytest.mark.parametrize(("seed", "limit"), [(0, 10_000), (1, 0), (2, 20)])
def test_an_exact_system_is_recovered_through_compression(
    seed: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Search and polish on the compressed samples, lifted, measured on all of them."""
    monkeypatch.setattr(compression, "GRAM_LIMIT", limit)
    problem = system(seed, r=2, S=100)
    samples, method = as_samples(problem), ub.methods.default()
    assert method.polish is not None
    one = compressed(samples, 2)
    small = one.apply(samples)
    solver = method.solver(small, BASIS, Projection.onto([None] * 2))
    search = SearchStarts(solver, 2, np.random.default_rng(seed).spawn(6), method.stopping)
    best = Session().run_all([search, PolishStarts(newton(small, 2), method.polish)]).best
    [lifted] = measure_anew(newton(samples, 2), [replace(best, best=one.lift(best.best))])
    assert lifted.objective < 1e-20


@dataclass(frozen=True, eq=False)
class InBlocks(Samples):
    """The same samples, looked at in blocks of other sizes, in another order."""

    def sum(self, function: Any, *arguments: Any, width: int) -> Any:
        cuts = [0, 3, 4, 25, len(self.X)]
        parts = [slice(*pair) for pair in pairwise(cuts)]
        return total(function(self.part(part), *arguments) for part in parts[::-1])


@limits
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_blocks_may_have_any_size_and_order(limit: int, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "GRAM_LIMIT", limit)
    monkeypatch.setattr(compression, "OVERSAMPLING", 4)
    samples = as_samples(system(3, 3, 0.1, weighted))
    blocks = InBlocks(samples.X, samples.F, samples.J, samples.weight, samples.rows)
    one, other = compressed(samples, 2), compressed(blocks, 2)
    assert one.lost == pytest.approx(other.lost, rel=1e-9)
    J = whole_jacobian(samples)
    np.testing.assert_allclose(on_the_left(one, J), on_the_left(other, J), atol=1e-9)
    np.testing.assert_allclose(on_the_right(one, J), on_the_right(other, J), atol=1e-9)
    whole, put_together = one.apply(samples), one.apply(blocks)
    assert put_together.jacobian_norm == pytest.approx(whole.jacobian_norm, rel=1e-12)
    order = np.concatenate([np.arange(25, 60), np.arange(4, 25), [3], np.arange(3)])
    for mine, theirs in ((whole.X, put_together.X), (whole.F, put_together.F), (whole.J, put_together.J)):
        assert mine is not None
        assert theirs is not None
        np.testing.assert_allclose(mine[order], theirs, rtol=1e-12, atol=1e-12 * np.abs(mine).max())
    if weighted:
        assert whole.rows is not None
        assert put_together.rows is not None
        np.testing.assert_array_equal(whole.rows[order], put_together.rows)


def test_streamed_samples_are_compressed_like_those_in_memory() -> None:
    problem = system(4, 3, 0.1, weighted=True, S=700)
    units = Units.balanced(problem)
    streamed, samples = Streamed(problem, Scaling.of(problem, units)), Samples.of(problem, units)
    one, other = compressed(samples, 2), compressed(streamed, 2)
    assert other.lost == pytest.approx(one.lost, rel=1e-9)
    mine, theirs = one.apply(samples), one.apply(streamed)
    for name in ("X", "F", "J", "rows"):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-12, atol=1e-12)
    assert other.measure_loss(streamed, other.apply(streamed)) == pytest.approx(
        one.measure_loss(samples, mine), rel=1e-9
    )
    gaps = with_gaps(problem, "J")
    assert Compression.of(Streamed(gaps, Scaling.of(gaps, units)), 2) is None


def test_the_compressed_samples_have_a_few_directions_per_branch() -> None:
    one = compressed(as_samples(system(0, 2)), 2)
    small = one.apply(as_samples(system(0, 2)))
    assert small.X.shape == (60, 2 * ROOM)
    assert small.F is not None
    assert small.F.shape == (60, 2 * ROOM)
    assert small.J is not None
    assert small.J.shape == (60, (2 * ROOM) ** 2)


def test_a_side_that_would_hardly_shrink_stays_as_it_is() -> None:
    """n = 13 outputs against 12 directions."""
    problem, _ = ub.datasets.random_system(n=13, m=80, r=6, S=40, rng=0)
    one = compressed(as_samples(problem), 6)
    assert one.U is None
    assert one.V is not None
    assert one.V.shape == (80, 12)
    small = one.apply(as_samples(problem))
    np.testing.assert_array_equal(np.asarray(small.F), np.asarray(as_samples(problem).F))
    models = some_models(small, 6, 0)
    assert one.lift(models).W1 is models.W1


def with_gaps(problem: ub.Problem, name: str) -> ub.Problem:
    assert problem.F is not None
    assert problem.J is not None
    arrays = {"F": problem.F.copy(), "J": problem.J.copy()}
    arrays[name].flat[5] = np.nan
    return ub.Problem(problem.X, arrays["F"], arrays["J"], missing="mask")


NOT_COMPRESSED = {
    "too many branches": (as_samples(system(0)), 4),
    "values only": (as_samples(ub.Problem(system(0).X, system(0).F)), 1),
    "gaps in J": (as_samples(with_gaps(system(0), "J")), 1),
    "gaps in F": (as_samples(with_gaps(system(0), "F")), 1),
    "J is zero": (as_samples(ub.Problem(system(0).X, J=np.zeros((60, 13, 29)))), 1),
}


@pytest.mark.parametrize("why", NOT_COMPRESSED)
def test_there_is_no_compression_where_it_does_not_pay_or_cannot_be_made(why: str) -> None:
    samples, rank = NOT_COMPRESSED[why]
    assert Compression.of(samples, rank) is None


def test_jacobians_alone_are_compressed_and_nothing_is_written_to() -> None:
    problem = system(0)
    samples = as_samples(ub.Problem(problem.X, J=problem.J))
    for array in (samples.X, samples.J, samples.weight):
        assert array is not None
        array.flags.writeable = False
    small = compressed(samples, 2).apply(samples)
    assert small.F is None
    assert compressed(samples, 2).measure_loss(samples, small) < 1e-12
