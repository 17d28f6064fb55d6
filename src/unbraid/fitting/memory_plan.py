"""What a fit needs of memory beyond the arrays it is given, told before it starts.

A fit holds some things all along and others in one of its phases; its peak is the first and the largest sum of the
second. Every line of `needs` is one of these things, as a count of numbers of 8 bytes: S samples, n outputs, m inputs,
r branches of K coefficients, q = n + m + K unknowns a branch. Factors in front are how many arrays of that size
are alive at once, as measured (`benchmarks/memory.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal, NamedTuple, Self

from unbraid.bases.projection import Projection
from unbraid.data.in_memory import KEPT_ENTRIES
from unbraid.data.problem import Problem
from unbraid.data.streamed import IN_MEMORY_ENTRIES
from unbraid.errors import MemoryPlanError, SettingError, shown
from unbraid.fitting.compression import GRAM_LIMIT, OVERSAMPLING, sizes_kept, spans_inputs
from unbraid.fitting.levels import SEARCH_SAMPLES
from unbraid.fitting.polish import POLISH_ENTRIES
from unbraid.fitting.request import Request
from unbraid.fitting.search import SEARCH_ENTRIES
from unbraid.kernels.arrays import TEMPORARY_ENTRIES, block_length, feature_block_length
from unbraid.methods.base import Sweeps
from unbraid.runtime.memory import available_memory
from unbraid.solvers.gauss_newton import DENSE_LIMIT, DENSE_STEPS

Storage = Literal["memory", "memory map", "Dask"]
Phase = Literal["always", "compress", "search", "polish", "all samples", "smooth"]
PHASES: tuple[Phase, ...] = ("compress", "search", "polish", "all samples", "smooth")

ALWAYS = 500_000
"""Numbers that every fit may hold: traces, tables, what the first call of a function imports."""
BRANCH_ARRAYS = 16
"""Arrays (starts, r, samples) of branches at the samples: inputs, their places between knots, slopes, values."""
FEATURE_ARRAYS = 4
"""Arrays (starts, samples, r, m + K) of the features of a block."""
DENSE_COPIES, MORE_DENSE_COPIES, SMOOTH_COPIES, BRANCH_COPIES = 4, 6, 6, 8
"""Copies of the normal matrix of all unknowns while a step is made, for every start and once, and once more where it
chooses smoothing; of those of branches."""
CONSTRAINED_COPIES = 9
"""Copies of the normal matrix of a branch while a sweep projects it onto its constraint, by pivoting."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What a fit is asked to do.

    Attributes
    ----------
    S, n, m
        Samples, outputs, inputs.
    rank, size
        Branches, and coefficients of each.
    smoothed
        Coefficients of each where smoothing is chosen, after the polish; 0: it is not.
    values, jacobians
        What is given.
    kind
        Where the samples lie.
    block
        Samples in a chunk of a Dask array.
    workers
        Chunks that are worked on in this process at a time.
    starts
        Random starts.
    sweeps
        What kind of sweeps the method makes.
    polished
        How many starts get Gauss–Newton steps at once at most; 0: none do.
    dense_limit
        Unknowns up to which a normal matrix is built.
    subsample
        So many samples at most are searched and polished; None: all.
    compressed
        (p, q), outputs and inputs after compression; None: it is not compressed.
    constrained
        Whether branches have constraints that bound their coefficients.
    inputs
        How many inputs were given, where a fit has fewer, in a basis of what the samples span; 0: it has all.
    """

    S: int
    n: int
    m: int
    rank: int
    size: int
    smoothed: int = 0
    values: bool = True
    jacobians: bool = True
    kind: Storage = "memory"
    block: int = 0
    workers: int = 1
    starts: int = 16
    sweeps: Sweeps = "alternating"
    polished: int = 2
    dense_limit: int = DENSE_LIMIT
    subsample: int | None = SEARCH_SAMPLES
    compressed: tuple[int, int] | None = None
    constrained: bool = False
    inputs: int = 0

    @classmethod
    def of(cls, problem: Problem, request: Request, rank: int) -> Self:
        """The sizes of a fit of `rank` branches."""
        method, compress, small = request.method_used, request.compression_used, None
        if compress is not False and problem.J is not None and problem.complete:
            small = sizes_kept(problem.n, problem.m, problem.S, rank, compress is True)
        lengths = getattr(problem.home, "lengths", (0,))
        spanned, size = spans_inputs(problem), request.basis_searched.size
        asked = request.constraint if isinstance(request.constraint, Sequence) else [request.constraint]
        return cls(
            S=problem.S,
            n=problem.n,
            m=problem.S if spanned else problem.m,
            rank=rank,
            size=size,
            smoothed=request.basis_used.size if request.chooses_smoothing else 0,
            values=problem.F is not None,
            jacobians=problem.J is not None,
            kind="memory" if problem.in_memory else "memory map" if problem.home is None else "Dask",
            block=max(lengths),
            starts=request.starts,
            sweeps=method.sweeps,
            polished=0 if method.polish is None else method.polish.at_once,
            subsample=SEARCH_SAMPLES if method.polish is not None else None,
            compressed=None if small is None else (small[0][1], small[1][1]),
            constrained=bool(Projection.onto(asked, method.offset).bounded(size).any()),
            inputs=problem.m if spanned else 0,
        )

    @property
    def per_sample(self) -> int:
        """How many numbers are given for each sample."""
        return self.m + (self.n if self.values else 0) + (self.n * self.m if self.jacobians else 0)

    @property
    def searched(self) -> int:
        """How many samples the search and the polish see."""
        return self.S if self.subsample is None else min(self.S, self.subsample)

    @property
    def sides(self) -> tuple[int, int]:
        """How many outputs and inputs the search and the polish see."""
        return (self.n, self.m) if self.compressed is None else self.compressed


class Need(NamedTuple):
    """One thing that takes memory: when, how many bytes, and what makes it smaller."""

    phase: Phase
    name: str
    size: int
    advice: str


@dataclass(frozen=True, repr=False)
class Plan:
    """What a fit needs; printed, a table.

    Examples
    --------
    >>> plan(Sizes(S=10**6, n=4, m=4, rank=4, size=12, kind="memory map")).peak < 10**9
    True
    """

    needs: tuple[Need, ...]

    @property
    def peak(self) -> int:
        """The most bytes that the fit needs at the same time."""
        return self.of("always") + max(map(self.of, PHASES))

    def of(self, phase: str) -> int:
        """The bytes that a phase of the fit needs."""
        return sum(need.size for need in self.needs if need.phase == phase)

    def at_peak(self) -> list[Need]:
        """What takes memory when the most is needed, largest first."""
        worst = max(PHASES, key=self.of)
        there = [need for need in self.needs if need.phase in ("always", worst)]
        return sorted(there, key=lambda need: -need.size)

    def check(self, limit: int | None) -> None:
        """Raise a `MemoryPlanError` with advice where the fit needs more bytes than the limit; None is no limit."""
        if limit is None or self.peak <= limit:
            return
        largest = self.at_peak()[:3]
        what = ", ".join(f"{readable(need.size)} for {need.name}" for need in largest)
        advice = dict.fromkeys(piece for need in largest for piece in need.advice.split(", ") if piece)
        raise MemoryPlanError(
            f"This fit needs about {readable(self.peak)} of memory beyond the given arrays ({what}), and may take "
            f"{readable(limit)}: {', '.join([*advice, 'or raise max_memory where there is more'])}."
        )

    def __repr__(self) -> str:
        lines = [f"About {readable(self.peak)} beyond the given arrays:"]
        for need in sorted(self.needs, key=lambda need: -need.size):
            lines.append(f"  {need.phase:13}{need.name:34}{readable(need.size):>9}")
        return "\n".join(lines)


def check_plan(problem: Problem, request: Request) -> None:
    """Refuse a fit that will not fit into memory, with advice; where the rank is open, if not even one branch does."""
    rank = 1 if isinstance(request.rank, str) else request.rank_used
    plan(Sizes.of(problem, request, rank)).check(as_bytes(request.max_memory))


def plan(sizes: Sizes) -> Plan:
    """The plan of a fit of given sizes: everything that takes memory."""
    return Plan(tuple(need for need in needs(sizes) if need.size > 0))


def needs(sizes: Sizes) -> Iterator[Need]:
    """Everything that takes memory in a fit of given sizes, one by one."""
    yield Need("always", "what every fit takes", 8 * ALWAYS, "")
    yield from of_samples(sizes)
    if sizes.compressed is not None:
        yield from of_compression(sizes)
    yield from of_search(sizes)
    if sizes.polished > 0:
        yield from of_polish(sizes)


def of_samples(sizes: Sizes) -> Iterator[Need]:
    """What the samples take in other units or places."""
    if sizes.inputs:
        yield Need("always", "a basis of the inputs", 8 * 5 * sizes.S * sizes.inputs, "give fewer inputs or samples")
    inputs, fewer = sizes.S * (sizes.m + sizes.n), "give fewer samples"
    if sizes.searched < sizes.S:
        yield Need("always", "a subsample", 8 * 2 * sizes.searched * sizes.per_sample, fewer)
    elif inputs <= IN_MEMORY_ENTRIES:
        yield Need("always", "samples in the solver's units", 8 * 3 * inputs, fewer)
    if sizes.sweeps == "filtered" or (sizes.sweeps == "polynomial" and sizes.kind != "memory"):
        everything = sizes.searched * sizes.per_sample
        yield Need("always", "all samples in memory", 8 * everything, f"{fewer}, use the default method")
    if sizes.kind == "Dask":
        length = sizes.block if sizes.block else block_length(sizes.rank)
        size = 8 * 2 * sizes.workers * length * sizes.per_sample
        yield Need("always", "chunks of the arrays", size, "use smaller chunks (rechunk), fewer threads")


def of_compression(sizes: Sizes) -> Iterator[Need]:
    """What it takes to compress Jacobians, and the compressed ones."""
    assert sizes.compressed is not None
    p, q = sizes.compressed
    sides = [
        (full, min(full, GRAM_LIMIT, kept + OVERSAMPLING)) for full, kept in ((sizes.n, p), (sizes.m, q)) if kept < full
    ]
    products = sum(full * (full if full <= GRAM_LIMIT else columns) for full, columns in sides)
    yield Need("compress", "products that span subspaces", 8 * 6 * products, "")
    yield Need("compress", "Jacobians of a block", 8 * 4 * of_block(sizes.S, sizes.n * sizes.m), "")
    small = sizes.S * (p + q + p * q)
    yield Need("always", "compressed Jacobians", 8 * 2 * small, "lower the rank, give fewer samples")


def of_search(sizes: Sizes) -> Iterator[Need]:
    """What sweeps from random starts take."""
    (n, m), r, K, S = sizes.sides, sizes.rank, sizes.size, sizes.searched
    batch = min(sizes.starts, max(1, SEARCH_ENTRIES // (r * S)))
    fewer = "lower the rank"
    yield Need("search", "branches at samples", 8 * BRANCH_ARRAYS * at_samples(sizes, batch, S), fewer)
    if sizes.jacobians:
        yield Need("search", "products with Jacobians", 8 * 5 * batch * r * n * m, f"{fewer}, start fewer times")
    copies = 4 * batch
    if sizes.constrained:  # with a polish only half of the starts see the constraints
        copies = CONSTRAINED_COPIES * (-(-batch // 2) if sizes.polished else batch)
    yield Need("search", "normal equations of branches", 8 * copies * r * K * K, f"{fewer}, use a smaller basis")
    yield Need("search", "products of branches", 8 * 2 * batch * r * r, fewer)
    if sizes.sweeps == "filtered":
        yield Need("search", "equations of all values", 8 * 4 * (r * S) ** 2, "give fewer samples")
        yield Need("search", "residuals of all Jacobians", 8 * 8 * 3 * S * n * m, "give fewer samples")
    if sizes.sweeps == "polynomial":
        yield Need(
            "search", "equations of all coefficients", 8 * 4 * batch * (r * K) ** 2, f"{fewer}, lower the degree"
        )


def of_polish(sizes: Sizes) -> Iterator[Need]:
    """What Gauss–Newton steps take: of some starts at once, then of the best one on all samples where affordable."""
    S, K, r = sizes.searched, sizes.size, sizes.rank
    batch = min(sizes.starts, sizes.polished, max(1, POLISH_ENTRIES // (S * r * (sizes.sides[1] + K))))
    yield from of_steps("polish", sizes, sizes.sides, batch)
    smaller = sizes.searched < sizes.S or sizes.compressed is not None
    if smaller and r * (sizes.n + sizes.m + K) <= sizes.dense_limit:
        yield from of_steps("all samples", sizes, (sizes.n, sizes.m), 1)
    if sizes.smoothed:
        affordable = r * (sizes.n + sizes.m + K) <= sizes.dense_limit
        sides = (sizes.n, sizes.m) if affordable else sizes.sides
        yield from of_steps("smooth", replace(sizes, size=sizes.smoothed), sides, 1)


def of_steps(phase: Phase, sizes: Sizes, sides: tuple[int, int], batch: int) -> Iterator[Need]:
    """What Gauss–Newton steps of `batch` starts at once take, in one phase of the fit."""
    (n, m), r, K, S = sides, sizes.rank, sizes.size, sizes.searched if phase == "polish" else sizes.S
    q = n + m + K
    smaller = "lower the rank, use a smaller basis"
    if r * q <= (sizes.dense_limit if phase == "smooth" else min(DENSE_STEPS, sizes.dense_limit)):
        copies = DENSE_COPIES * batch + MORE_DENSE_COPIES + SMOOTH_COPIES * (phase == "smooth")
        yield Need(phase, "normal matrix", 8 * copies * (r * q) ** 2, smaller)
    else:
        yield Need(phase, "matrices of each branch", 8 * BRANCH_COPIES * batch * r * q * q, f"{smaller}, polish=False")
    yield Need(phase, "frames of directions", 8 * 2 * batch * r * m * m, "lower the rank, polish=False")
    yield Need(phase, "branches at samples", 8 * BRANCH_ARRAYS * at_samples(sizes, batch, S), "lower the rank")
    features = r * (m + K)
    block = features * min(S, feature_block_length(features))
    yield Need(phase, "features of a block", 8 * FEATURE_ARRAYS * batch * block, "lower the rank")
    if sizes.jacobians:
        yield Need(phase, "products with Jacobians", 8 * 3 * batch * r * n * m, "lower the rank")
        yield Need(phase, "Jacobians of a block", 8 * 3 * batch * of_block(S, n * m), "")


def at_samples(sizes: Sizes, batch: int, samples: int) -> int:
    """Entries of (starts, r, samples), of all samples where they are remembered, else of a block."""
    entries = batch * sizes.rank * samples
    return entries if entries <= KEPT_ENTRIES else min(entries, batch * sizes.rank * block_length(sizes.rank))


def of_block(samples: int, per_sample: int) -> int:
    """Entries of a block of samples with so many entries each."""
    return min(samples * per_sample, max(TEMPORARY_ENTRIES, per_sample))


def as_bytes(max_memory: int | float | str | None) -> int | None:
    """Bytes from what was given as `max_memory`; None: what this machine has available, if it tells."""
    if max_memory is None:
        return available_memory()
    wrong = SettingError(
        f"max_memory must be a number of bytes, text such as '2 GB' or '500 MB', or None, got {shown(max_memory)}."
    )
    if isinstance(max_memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?i?b)\s*", max_memory, re.IGNORECASE)
        if found is None:
            raise wrong
        number, unit = float(found[1]), found[2].lower()
        base = 1024 if "i" in unit else 1000
        size = int(number * base ** " kmgt".index(unit[0] if unit[0] in "kmgt" else " "))
    elif isinstance(max_memory, Real) and not isinstance(max_memory, bool) and float(max_memory).is_integer():
        size = int(max_memory)
    else:
        raise wrong
    if size < 1:
        raise wrong
    return size


def readable(size: int) -> str:
    """A number of bytes for people to read, such as '1.23 GB'."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= 0.9995 * scale:
            return f"{size / scale:#.3g}".rstrip(".") + f" {unit}"
    return f"{size} bytes"
