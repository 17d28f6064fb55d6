"""The memory a fit needs, told before it starts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from unbraid.bases.constraints import Constraint
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.errors import MemoryPlanError
from unbraid.fitting import memory_plan as module
from unbraid.fitting import polish
from unbraid.fitting.compression import Compression
from unbraid.fitting.memory_plan import Sizes, as_bytes, plan, readable
from unbraid.fitting.request import Request

LARGE = Sizes(S=1000, n=10, m=300, rank=10, size=12)


def peak_of(call: Callable[[], object]) -> int:
    """Bytes that NumPy and Python had allocated at most during a call, beyond what there was before."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


SHAPES: dict[str, dict[str, Any]] = {
    "ten by ten": {"S": 1000, "n": 10, "m": 10, "rank": 10, "size": 12},
    "many inputs": {"S": 150, "n": 20, "m": 100, "rank": 5, "size": 12},
    "many samples": {"S": 30_000, "n": 3, "m": 3, "rank": 3, "size": 12},
    "many unknowns": {"S": 60, "n": 8, "m": 150, "rank": 18, "size": 12},
    "many coefficients": {"S": 1000, "n": 2, "m": 2, "rank": 4, "size": 60},
    "compressed": {"S": 300, "n": 20, "m": 600, "rank": 5, "size": 12, "compressed": (10, 10)},
    "search only": {"S": 400, "n": 50, "m": 200, "rank": 3, "size": 12, "polished": 0},
    "filtered": {"S": 300, "n": 3, "m": 3, "rank": 3, "size": 12, "sweeps": "filtered", "polished": 0},
    "polynomials": {"S": 5000, "n": 6, "m": 6, "rank": 8, "size": 4, "sweeps": "polynomial", "polished": 0},
}


def small_fit(constraint: Constraint | None = None) -> None:
    """What imports what fits import."""
    problem, _ = ub.datasets.trig(S=50, rng=0)
    ub.decouple(
        problem, 1, constraint=constraint, starts=1, rng=0, method=ub.methods.default(max_sweeps=1, max_steps=1)
    )


def request(**asked: Any) -> Request:
    """A request with everything else left to the library."""
    nothing = dict.fromkeys(("basis", "constraint", "method", "polish", "init", "compress", "max_memory"))
    others: dict[str, Any] = {"rank": 1, "starts": 4, "continuation": "auto", "loss": "squared", "seed": 0}
    return Request(**{**nothing, **others, **asked})


@pytest.mark.parametrize("name", SHAPES)
def test_a_fit_takes_no_more_than_planned_and_not_much_less(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polish, "SETTLING_STEPS", 1)
    sizes = Sizes(**SHAPES[name], starts=4)
    sizes = sizes if sizes.polished else replace(sizes, subsample=None)
    problem, _ = ub.datasets.random_system(sizes.n, sizes.m, sizes.rank, sizes.S, "sine", rng=0)
    method = ub.methods.default(max_sweeps=2, max_steps=4, polish=sizes.polished > 0)
    others = {"filtered": ub.methods.decuyper2022(max_sweeps=1), "polynomial": ub.methods.hollander2017(max_sweeps=2)}
    basis = None if sizes.sweeps in others else ub.BSpline(df=sizes.size)
    used = others.get(sizes.sweeps, method)
    small_fit()
    compress = sizes.compressed is not None
    peak = peak_of(
        lambda: ub.decouple(problem, sizes.rank, basis=basis, method=used, starts=4, rng=0, compress=compress)
    )
    assert peak <= plan(sizes).peak <= 3.0 * peak


CONSTRAINED: dict[str, tuple[dict[str, Any], Constraint]] = {
    "sweeps that pivot": ({"S": 100, "n": 2, "m": 2, "rank": 8, "size": 60, "polished": 0}, ub.Increasing()),
    "what was found freely follows": ({"S": 60, "n": 2, "m": 2, "rank": 6, "size": 30}, ub.Convex()),
    "two kinds": ({"S": 100, "n": 10, "m": 10, "rank": 8, "size": 12}, ub.Decreasing()),
}


@pytest.mark.parametrize("name", CONSTRAINED)
def test_a_constrained_fit_takes_no_more_than_planned_and_not_much_less(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polish, "SETTLING_STEPS", 1)
    shape, constraint = CONSTRAINED[name]
    sizes = Sizes(**shape, starts=16, constrained=True)
    sizes = sizes if sizes.polished else replace(sizes, subsample=None)
    problem, _ = ub.datasets.random_system(sizes.n, sizes.m, sizes.rank, sizes.S, "sine", rng=0)
    method = ub.methods.default(max_sweeps=1, max_steps=1, polish=sizes.polished > 0)
    every = [constraint] * sizes.rank if name != "two kinds" else [constraint, ub.Concave()] * (sizes.rank // 2)
    small_fit(constraint)
    peak = peak_of(
        lambda: ub.decouple(
            problem, sizes.rank, basis=ub.BSpline(df=sizes.size), constraint=every, method=method, rng=0, jobs=1
        )
    )
    assert peak <= plan(sizes).peak <= 4.0 * peak


@pytest.mark.parametrize(("constraint", "counts"), [(None, False), (ub.NonNegative(), False), (ub.Convex(), True)])
def test_constraints_count_where_they_bound_coefficients(constraint: Constraint | None, counts: bool) -> None:
    """An offset that is free takes up what a branch has to be raised to be nonnegative."""
    problem, _ = ub.datasets.trig(S=50, rng=0)
    assert Sizes.of(problem, request(constraint=constraint), 2).constrained == counts


def test_fewer_samples_than_inputs_take_no_more_than_planned() -> None:
    """Their fit has as many inputs as there are samples; the plan does not grow with the square of all inputs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4000))
    problem = ub.Problem(X, np.tanh(X[:, :1]))
    small_fit()
    peak = peak_of(lambda: ub.decouple(problem, 1, starts=4, rng=0, jobs=1))
    assert peak <= plan(Sizes.of(problem, request(), 1)).peak <= 4.0 * peak


def test_compression_takes_no_more_than_planned() -> None:
    problem, _ = ub.datasets.random_system(n=36, m=1500, r=5, S=200, rng=0)
    samples = Samples.of(problem, Units.balanced(problem))
    sizes = Sizes(S=200, n=36, m=1500, rank=5, size=12, compressed=(10, 10))

    def compress() -> None:
        one = Compression.of(samples, 5)
        assert one is not None
        assert one.apply(samples).X.shape == (200, 10)

    peak = peak_of(compress)
    small = next(need.size for need in plan(sizes).needs if need.name == "compressed Jacobians")
    assert peak <= plan(sizes).of("compress") + small <= 3.0 * peak


counts = st.integers(1, 10**7)


@given(S=counts, n=st.integers(1, 5000), m=st.integers(1, 5000), rank=st.integers(1, 200), size=st.integers(1, 200))
def test_more_samples_outputs_inputs_or_starts_never_need_less_in_a_search(
    S: int, n: int, m: int, rank: int, size: int
) -> None:
    """In a polish they can: beyond the dense limit no normal matrix is built."""
    sizes = Sizes(S=S, n=n, m=m, rank=rank, size=size, polished=0, kind="memory map")
    least = plan(sizes).of("search")
    assert plan(replace(sizes, n=n + 1)).of("search") >= least
    assert plan(replace(sizes, m=m + 1)).of("search") >= least
    assert plan(replace(sizes, starts=sizes.starts + 1)).of("search") >= least


@given(S=st.integers(10**6, 10**9))
def test_samples_beyond_the_subsample_cost_nothing(S: int) -> None:
    sizes = Sizes(S=S, n=4, m=4, rank=4, size=12, kind="memory map")
    assert plan(sizes).peak == plan(replace(sizes, S=10**6)).peak
    assert plan(sizes).peak < 10**9


def test_compression_makes_a_wide_problem_affordable() -> None:
    wide = Sizes(S=360, n=36, m=4096, rank=20, size=12)
    assert plan(wide).peak > 16e9
    assert plan(replace(wide, compressed=(36, 40))).peak < 1e9


def test_a_plan_that_fits_is_not_refused() -> None:
    plan(LARGE).check(plan(LARGE).peak)
    plan(LARGE).check(None)


def test_a_plan_that_does_not_fit_says_what_takes_most_the_limit_and_what_to_do() -> None:
    with pytest.raises(MemoryPlanError) as caught:
        plan(LARGE).check(10_000_000)
    said = str(caught.value)
    assert said.startswith(f"This fit needs about {readable(plan(LARGE).peak)} of memory beyond the given arrays (")
    assert f"{readable(plan(LARGE).at_peak()[0].size)} for matrices of each branch" in said
    assert "may take 10.0 MB: lower the rank" in said
    assert said.endswith("or raise max_memory where there is more.")
    assert isinstance(caught.value, ub.UnbraidError)
    assert isinstance(caught.value, MemoryError)


@pytest.mark.parametrize("name", SHAPES)
def test_every_refusal_gives_advice(name: str) -> None:
    with pytest.raises(MemoryPlanError, match=r"may take 1\.00 kB: [a-z]"):
        plan(Sizes(**SHAPES[name])).check(1000)


def test_dask_chunks_count_where_they_are_worked_on() -> None:
    sizes = Sizes(S=10**6, n=10, m=10, rank=10, size=20, kind="Dask", block=50_000, workers=2)
    chunks = next(need for need in plan(sizes).needs if need.name == "chunks of the arrays")
    assert chunks.size >= 2 * 50_000 * 120 * 8
    with pytest.raises(MemoryPlanError, match="use smaller chunks"):
        plan(sizes).check(10**7)


def test_a_plan_is_a_table_of_all_its_needs() -> None:
    text = repr(plan(LARGE))
    assert text.startswith(f"About {readable(plan(LARGE).peak)} beyond the given arrays:\n")
    assert [need.name for need in plan(LARGE).needs if need.name not in text] == []
    assert len(text.splitlines()) == 1 + len(plan(LARGE).needs)


@pytest.mark.parametrize(
    ("given_text", "size"),
    [
        (1, 1),
        (2_000_000, 2_000_000),
        ("2 GB", 2_000_000_000),
        ("2GiB", 2 * 2**30),
        (" 500 mb ", 500_000_000),
        ("0.5 kB", 500),
        ("1.5 TB", 1_500_000_000_000),
        (".25 MiB", 2**18),
        ("12 B", 12),
    ],
)
def test_sizes_are_bytes_or_text(given_text: int | str, size: int) -> None:
    assert as_bytes(given_text) == size


@pytest.mark.parametrize("wrong", [0, -5, True, 2.5, "", "GB", "2", "2 PB", "two GB", "-1 GB", "0 GB", "1e3 MB", [2]])
def test_other_sizes_are_refused(wrong: Any) -> None:
    with pytest.raises(ub.UnbraidError, match=r"max_memory must be .* such as '2 GB'") as caught:
        as_bytes(wrong)
    assert repr(wrong) in str(caught.value)


def test_numpy_integers_are_numbers_of_bytes() -> None:
    assert as_bytes(np.int64(3)) == 3  # type: ignore[arg-type]


def test_without_a_size_the_limit_is_what_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "available_memory", lambda: 123)
    assert as_bytes(None) == 123


@pytest.mark.parametrize(
    ("size", "text"),
    [(12, "12 bytes"), (1000, "1.00 kB"), (999_900, "1.00 MB"), (12_345_678, "12.3 MB"), (123 * 10**9, "123 GB")],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert readable(size) == text


@pytest.mark.parametrize("rank", [2, "auto"])
def test_a_fit_that_will_not_fit_is_refused_before_it_starts(rank: int) -> None:
    problem, _ = ub.datasets.trig(S=100, rng=0)

    def never(progress: ub.Progress) -> None:
        raise AssertionError("it has started")

    with pytest.raises(MemoryPlanError, match=r"may take 10\.0 kB"):
        ub.decouple(problem, rank, max_memory="10 kB", callback=never, rng=0)


def test_a_rank_beyond_all_reason_is_told_to_be_lower() -> None:
    with pytest.raises(MemoryPlanError, match=r"GB for products of branches, .*: lower the rank"):
        plan(Sizes(S=60, n=1, m=2, rank=100_000, size=12)).check(10**10)


def test_whole_numbers_may_be_written_as_floats() -> None:
    assert as_bytes(2e9) == 2_000_000_000
    with pytest.raises(ub.UnbraidError, match="number of bytes"):
        as_bytes(1.5)
