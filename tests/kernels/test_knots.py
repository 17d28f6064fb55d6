"""Where breakpoints go: laws of their placement, whatever the inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from registry import EPS, distinct_inputs, inputs, seeds
from unbraid.kernels import knots
from unbraid.kernels.arrays import Array

evennesses = st.sampled_from([0.0, 0.1, 0.5, 1.0])


@given(u=inputs(), intervals=st.integers(1, 25), evenness=evennesses)
def test_breakpoints_strictly_increase(u: Array, intervals: int, evenness: float) -> None:
    breakpoints = knots.breakpoints(u, intervals, evenness)
    assert breakpoints.shape == (intervals + 1,)
    assert np.all(np.diff(breakpoints) > 0.0)


@given(
    u=hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e9, 1e9, allow_subnormal=False)),
    intervals=st.integers(1, 25),
    evenness=evennesses,
)
@example(u=np.array([1.0, 1.0 + EPS, 1.0 + 1e-11]), intervals=12, evenness=0.0)
@example(u=np.array([0.0]), intervals=3, evenness=0.5)
def test_breakpoints_strictly_increase_whatever_the_floats(u: Array, intervals: int, evenness: float) -> None:
    assert np.all(np.diff(knots.breakpoints(u, intervals, evenness)) > 0.0)


@given(u=inputs(), intervals=st.integers(1, 25), evenness=evennesses)
def test_breakpoints_begin_and_end_with_the_inputs(u: Array, intervals: int, evenness: float) -> None:
    breakpoints = knots.breakpoints(u, intervals, evenness)
    if np.ptp(u) > 1e-9 * np.abs(u).max():
        assert (breakpoints[0], breakpoints[-1]) == (u.min(), u.max())
    else:
        assert breakpoints[0] < u.min() <= u.max() < breakpoints[-1]


@given(u=distinct_inputs(size=80), intervals=st.integers(1, 12))
def test_breakpoints_of_distinct_values_are_quantiles(u: Array, intervals: int) -> None:
    expected = np.quantile(u, np.linspace(0.0, 1.0, intervals + 1))
    np.testing.assert_allclose(knots.breakpoints(u, intervals), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("values", [2, 3, 4, 5, 6])
@given(seed=seeds, intervals=st.integers(1, 20))
def test_breakpoints_of_few_values_are_quantiles_of_those(values: int, seed: int, intervals: int) -> None:
    rng = np.random.default_rng(seed)
    distinct = np.sort(rng.choice(np.arange(-20.0, 21.0), values, replace=False))
    u = rng.permutation(np.concatenate([distinct, np.repeat(distinct[0], 200)]))
    breakpoints = knots.breakpoints(u, intervals)
    assert np.all(np.diff(breakpoints) > 0.0)
    if intervals > 1:
        expected = np.quantile(distinct, np.linspace(0.0, 1.0, intervals + 1))
        np.testing.assert_allclose(breakpoints, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("constant", [0.0, 1.0, -3e-5, 1e9])
def test_breakpoints_of_a_constant_surround_it(constant: float) -> None:
    breakpoints = knots.breakpoints(np.full(30, constant), 6)
    assert np.all(np.diff(breakpoints) > 0.0)
    np.testing.assert_allclose(breakpoints.mean(), constant, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.ptp(breakpoints), abs(constant) or 1.0, rtol=1e-6)


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_breakpoints_survive_a_point_mass_among_very_many_samples(share: float) -> None:
    rng = np.random.default_rng(0)
    u = np.where(rng.random(2_000_000) < share, 0.0, rng.uniform(-1.0, 1.0, 2_000_000))
    breakpoints = knots.breakpoints(u, 20)
    assert np.all(np.diff(breakpoints) > 1e-3)
    assert (breakpoints[0], breakpoints[-1]) == (u.min(), u.max())


@given(u=distinct_inputs(size=80), intervals=st.integers(1, 12), evenness=st.floats(0.05, 1.0))
def test_breakpoints_are_quantiles_of_the_mixture(u: Array, intervals: int, evenness: float) -> None:
    """The slow twin: the mixture's distribution function, inverted by interpolation, one level after another."""
    ordered = np.sort(u)
    assume(not knots.has_long_tails(ordered))
    along = (ordered - ordered[0]) / (ordered[-1] - ordered[0])
    rank = (1.0 - evenness) * np.linspace(0.0, 1.0, len(u)) + evenness * along
    expected = [np.interp(level, rank, ordered) for level in np.linspace(0.0, 1.0, intervals + 1)]
    np.testing.assert_allclose(knots.breakpoints(u, intervals, evenness), expected, rtol=0, atol=1e-10)


@given(u=distinct_inputs(size=80), intervals=st.integers(1, 12))
def test_full_evenness_is_even(u: Array, intervals: int) -> None:
    assume(not knots.has_long_tails(np.sort(u)))
    expected = np.linspace(u.min(), u.max(), intervals + 1)
    np.testing.assert_allclose(knots.breakpoints(u, intervals, 1.0), expected, rtol=0, atol=1e-12)


@given(seed=seeds, evenness=evennesses)
def test_breakpoints_do_not_depend_on_the_batch(seed: int, evenness: float) -> None:
    u = np.random.default_rng(seed).standard_normal((3, 2, 50))
    together = knots.breakpoints(u, 9, evenness)
    for row in np.ndindex(3, 2):
        np.testing.assert_array_equal(together[row], knots.breakpoints(u[row], 9, evenness))


# Long tails.


@given(seed=seeds, center=st.floats(-5, 5), half=st.floats(0.1, 10))
def test_the_scale_of_tails_is_increasing_smooth_and_has_an_inverse(seed: int, center: float, half: float) -> None:
    u = np.sort(center + half * np.random.default_rng(seed).standard_cauchy(200))
    scale = knots.TailScale(center, half)
    t = scale.of(u)
    assert np.all(np.diff(t) >= 0.0)
    np.testing.assert_allclose(scale.back(t), u, rtol=1e-9, atol=1e-9)
    inside = np.abs(u - center) <= half
    np.testing.assert_array_equal(t[inside], ((u - center) / half)[inside])
    ends = center + half * np.array([-1.0, 1.0])
    np.testing.assert_allclose(scale.of(ends + 1e-6 * half) - scale.of(ends - 1e-6 * half), 2e-6, rtol=1e-4)


@pytest.mark.parametrize("draw", ["lognormal", "standard_cauchy"])
@pytest.mark.parametrize("evenness", [0.5, 1.0])
def test_knots_follow_the_bulk_of_long_tails_and_reach_their_ends(draw: str, evenness: float) -> None:
    for seed in range(20):
        u = getattr(np.random.default_rng(seed), draw)(size=300)
        found = knots.breakpoints(u, 24, evenness)
        low, high = np.quantile(u, [0.1, 0.9])
        assert np.count_nonzero((found > low) & (found < high)) >= 7
        assert (found[0], found[-1]) == (u.min(), u.max())
        assert np.all(np.diff(found) > 0.0)


@pytest.mark.parametrize("draw", ["uniform", "standard_normal"])
def test_ordinary_inputs_have_no_long_tails(draw: str) -> None:
    long = [knots.has_long_tails(np.sort(getattr(np.random.default_rng(k), draw)(size=500))) for k in range(200)]
    assert np.mean(long) < 0.1


def test_without_evenness_tails_change_nothing() -> None:
    u = np.random.default_rng(0).standard_cauchy(300)
    np.testing.assert_allclose(knots.breakpoints(u, 10), np.quantile(u, np.linspace(0, 1, 11)))
