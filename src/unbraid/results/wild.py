"""Samples that do not belong to the others: which they are, by their values and by what a model leaves of them.

Of each sample and output four sizes are looked at: how far the value is from the median of the values, how far the row
of the Jacobian is from the median row (in units of the inputs' spread), and the same two as a model leaves them. A wild
value shows in the first where least squares has bent to it, and in the last two where it has not.

How large a size may be is told by the others. Of a lognormal quantity log q(p) is linear in the normal quantile z(p):

    log limit = log q(0.9) + slope (z(1 - ε / S) - z(0.9)),    slope = (log q(0.9) - log q(0.5)) / z(0.9),

which is 15 standard deviations of 1,000 normal values, and far more where tails are long. Sizes beyond the limit are
wild if a gap lies between them and all others, a factor of which there is little chance in a tail that falls like a
power: with q(1 - t) ~ t^-h the k-th largest is more than g times the next one with a chance of g^(-k/h). What a model
leaves is wild only if it is not small beside the spread of the values as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple, Self

import numpy as np

from unbraid.data.checks import counted
from unbraid.data.problem import Problem
from unbraid.kernels.arrays import Array, IndexArray, blocks
from unbraid.results.evaluation import jacobian_blocks
from unbraid.results.model import DecoupledModel

WILD = "Wild values in "
"""How the note begins."""
COMMAND_LINE = " (command line: --loss huber)"
"""The part of the note that is for the command line."""
MOST_SAMPLES, FEWEST_SAMPLES = 8192, 12
"""How many samples tell what is usual, and how few say nothing."""
UPPER, CHANCE = 0.9, 1e-2
"""The quantile from which tails are continued, and the chance that one of lognormal sizes is beyond the limit."""
STEEPEST = 2.0
"""The largest slope that is believed: that of a lognormal quantity of two powers of e a standard deviation."""
FAR_FROM_CONSTANT = 30.0
"""So many times the size of a constant a value is far from it."""
FALL, GAP_CHANCE, HEAVIEST = (UPPER, 0.95, 0.98), 1.0 / 200.0, 1.3
"""Quantiles that tell how a tail falls, the chance of a gap behind the largest, and the largest h believed."""
GAP, GAP_LEFT = 2.0, 4.0
"""The least factor between wild sizes and others, of values and of what a model leaves."""
BESIDE_SPREAD = 0.5
"""What a model leaves is small beside the spread of the values up to this share of it."""
ROUNDING = 1e-9
"""Sizes below this share of the numbers themselves are rounding."""
KEPT = 64
"""How many of the largest sizes of each output are kept of a pass over all samples."""
NAMED = 5
"""How many samples a note names."""


def quantiles(sizes: Array, *shares: float) -> Array:
    """Quantiles of what is known of each column of sizes (S, c), in rows; 0 where nothing is."""
    found = np.empty((len(shares), sizes.shape[1]))
    for part in blocks(sizes.shape[1], 4 * len(sizes)):
        ordered = np.sort(np.ascontiguousarray(sizes[:, part].T))  # NaN last
        known = len(sizes) - np.count_nonzero(np.isnan(ordered), axis=1)
        place = np.rint(np.outer(shares, np.maximum(known - 1, 0))).astype(np.intp)
        found[:, part] = np.where(known > 0, ordered[np.arange(len(ordered)), place], 0.0)
    return found


@dataclass(frozen=True)
class Middle:
    """What is usual of some samples: medians of F (n,) and J (n, m), and the spread of the inputs (m,).

    `rounding` (c,) has sizes of values and of rows of Jacobians that are nothing but rounding.
    """

    F: Array | None
    J: Array | None
    x_scale: Array
    rounding: Array

    @classmethod
    def of(cls, some: Problem) -> Self:
        """What is usual of samples in memory."""
        x_scale = quantiles(np.abs(some.X - quantiles(some.X, 0.5)), 0.75)[0]
        x_scale = np.where(x_scale > 0.0, x_scale, np.std(some.X, axis=0))
        x_scale = np.where(x_scale > 0.0, x_scale, 1.0)
        rounding = []
        F = J = None
        if some.F is not None:
            F = quantiles(some.F, 0.5)[0]
            rounding.append(ROUNDING * np.abs(F))
        if some.J is not None:
            J = quantiles(some.J.reshape(some.S, -1), 0.5).reshape(some.n, some.m)
            rounding.append(ROUNDING * np.sqrt(np.sum((J * x_scale) ** 2, axis=1)))
        return cls(F, J, x_scale, np.concatenate(rounding) + np.finfo(float).tiny)


def sizes_of(block: Problem, middle: Middle, model: DecoupledModel | None) -> Array:
    """How far samples are from a model, or from what is usual: (S, c), the n outputs of F, then those of J, if any.

    Entries are NaN where nothing is known or a sample does not count; samples of little weight are allowed to be
    farther away, in proportion to the standard deviations that such weights stand for.
    """
    sizes = []
    if block.F is not None and middle.F is not None:
        sizes.append(np.abs(block.F - (middle.F if model is None else model(block.X))))
    if block.J is not None and middle.J is not None:
        usual = jacobian_blocks(model, block.X) if model is not None else repeated(middle.J, block)
        sizes.append(np.concatenate([row_sizes(block.J[part] - J, middle.x_scale) for part, J in usual]))
    found = np.concatenate(sizes, axis=1)
    if block.weights is not None and (heavy := block.weights[block.weights > 0.0]).size:
        lightness = np.sqrt(np.minimum(1.0, block.weights / np.median(heavy)))
        found *= np.where(block.weights > 0.0, lightness, np.nan)[:, None]
    return found


def repeated(J: Array, block: Problem) -> Iterator[tuple[slice, Array]]:
    """One Jacobian (n, m) beside the samples of a block, some at a time."""
    return ((part, J) for part in blocks(block.S, 4 * block.n * block.m))


def row_sizes(differences: Array, x_scale: Array) -> Array:
    """How large rows of differences of Jacobians (·, n, m) are: (·, n); NaN: nothing is known."""
    rows = differences * x_scale
    squares = np.einsum("sik,sik->si", rows, rows)
    if np.isnan(squares).any():
        known = ~np.isnan(rows)
        squares = np.where(known.any(axis=2), np.sum(np.where(known, rows, 0.0) ** 2, axis=2), np.nan)
    return np.asarray(np.sqrt(squares))


@dataclass(frozen=True)
class Outermost:
    """The largest sizes (k, c) of each column of some samples, with their numbers; those of others can be added."""

    sizes: Array
    rows: IndexArray
    count: int

    @classmethod
    def of(cls, sizes: Array) -> Self:
        """The largest of sizes (S, c), largest first."""
        sizes = np.where(np.isnan(sizes), 0.0, sizes)
        rows = np.argsort(-sizes, axis=0, kind="stable")[:KEPT]
        return cls(np.take_along_axis(sizes, rows, axis=0), rows, len(sizes))

    def __add__(self, other: Outermost) -> Outermost:
        sizes = np.concatenate([self.sizes, other.sizes])
        rows = np.concatenate([self.rows, other.rows + self.count])
        order = np.argsort(-sizes, axis=0, kind="stable")[:KEPT]
        sizes, rows = np.take_along_axis(sizes, order, axis=0), np.take_along_axis(rows, order, axis=0)
        return Outermost(sizes, rows, self.count + other.count)


def block_outermost(block: Problem, middle: Middle, model: DecoupledModel | None) -> Outermost:
    """The largest sizes of a block of samples."""
    return Outermost.of(sizes_of(block, middle, model))


class Tails(NamedTuple):
    """How tails fall: sizes beyond which there may be wild ones, and h of q(1 - t) ~ t^-h, (c,) each; the least gap."""

    limits: Array
    heaviness: Array
    gap: float

    def gaps(self, most: int) -> Array:
        """The factors (most, c) by which the k-th largest of sizes stands out from the next one, k = 1, 2, …."""
        k = np.arange(1.0, most + 1.0)[:, None]
        return np.maximum((GAP_CHANCE / k**2) ** (-self.heaviness / k), self.gap)


def tails_of(sizes: Array, rounding: Array, samples: int, gap: float) -> Tails:
    """The tails of sizes (S, c) that are some of so many samples, with the least gap that is one.

    Where most sizes are rounding, as of an output that mostly is constant, the others tell, if there are several.
    """
    half, *outer = quantiles(sizes, 0.5, *FALL)
    count = np.full(len(half), float(len(sizes)))
    for k in np.flatnonzero(half <= rounding):
        varying = sizes[sizes[:, k] > rounding[k], k]
        if len(varying) >= FEWEST_SAMPLES:
            half[k], outer[0][k], outer[1][k], outer[2][k] = quantiles(varying[:, None], 0.5, *FALL)[:, 0]
            count[k] = len(varying)
    half, upper, *farther = (np.maximum(one, rounding) for one in (half, *outer))
    normal = NormalDist()
    far, near = normal.inv_cdf(1.0 - CHANCE / samples), normal.inv_cdf(UPPER)
    doubt = 1.0 / np.sqrt(count)
    slope = np.log(upper / half) / near
    falls = zip((upper, *farther), farther, FALL, FALL[1:], strict=False)
    heaviness = np.min([np.log(q / p) / np.log((1.0 - a) / (1.0 - b)) for p, q, a, b in falls], axis=0)
    limits = upper * np.exp(np.minimum(slope * (1.0 + 2.0 * doubt), STEEPEST) * (far - near))
    return Tails(limits, np.minimum(heaviness + doubt, HEAVIEST), gap)


def constant_limits(sizes: Array, rounding: Array) -> Array:
    """How far (c,) values may be from a constant that all share but for a few: some times its size, if it has any.

    Sizes beyond which nothing is known of what is usual; 0 for columns that vary.
    """
    constant = np.count_nonzero(sizes > rounding, axis=0) < FEWEST_SAMPLES
    size = (rounding - np.finfo(float).tiny) / ROUNDING
    return np.where(constant, np.where(size > 0.0, FAR_FROM_CONSTANT * size, np.inf), 0.0)


def descending(sizes: Array) -> Array:
    """The largest of sizes (S, c), an eighth of them, in falling order."""
    return np.asarray(-np.sort(-np.where(np.isnan(sizes), 0.0, sizes), axis=0)[: max(KEPT, len(sizes) // 8)])


def lower_ends(ordered: Array, tails: Tails) -> Array:
    """The least wild of sizes (k, c) in falling order: beyond the limits and above a gap; infinite where none is."""
    stands_out = (ordered[:-1] > tails.limits) & (ordered[:-1] > tails.gaps(len(ordered) - 1) * ordered[1:])
    return np.asarray(np.min(np.where(stands_out, ordered[:-1], np.inf), axis=0))


@dataclass(frozen=True)
class Wild:
    """Samples that do not belong: their numbers, the farthest first, and columns of sizes, outputs of F, then of J."""

    samples: IndexArray
    columns: IndexArray

    @classmethod
    def none(cls) -> Self:
        """No such samples."""
        return cls(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp))


def find_wild(problem: Problem, model: DecoupledModel) -> Wild:
    """The samples that do not belong to the others, by their values and by what a model leaves of them."""
    if problem.S < FEWEST_SAMPLES:
        return Wild.none()
    some = problem.thinned(MOST_SAMPLES)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # what is not finite accuses nobody
        middle = Middle.of(some)
        given = sizes_of(some, middle, None)
        spread = np.maximum(quantiles(given, 0.75)[0], middle.rounding)
        farness: dict[int, float] = {}
        columns: set[int] = set()
        constant = constant_limits(given, middle.rounding)
        for one, gap, least in ((None, GAP, constant), (model, GAP_LEFT, BESIDE_SPREAD * spread)):
            sizes = given if one is None else sizes_of(some, middle, one)
            tails = tails_of(sizes, np.maximum(middle.rounding, 1e-6 * spread), problem.S, gap)
            tails = tails._replace(limits=np.maximum(tails.limits, least))
            if some is problem and not (sizes > tails.limits).any():
                continue
            outer = Outermost.of(sizes) if some is problem else problem.sum(block_outermost, middle, one)
            level = np.minimum(lower_ends(descending(sizes), tails), lower_ends(outer.sizes, tails))
            for place, column in np.argwhere(outer.sizes >= level):
                sample = int(outer.rows[place, column])
                far = float(outer.sizes[place, column] / tails.limits[column])
                farness[sample] = max(farness.get(sample, 0.0), far)
                columns.add(int(column))
    samples = sorted(farness, key=lambda sample: -farness[sample])
    return Wild(np.array(samples, dtype=np.intp), np.array(sorted(columns), dtype=np.intp))


def list_samples(samples: Sequence[int] | IndexArray) -> str:
    """'sample 3', or 'samples 3, 17, …', the first few of them, with what they are counted from."""
    listed = ", ".join(str(one) for one in samples[:NAMED])
    more = ", …" if len(samples) > NAMED else ""
    return f"{'sample' if len(samples) == 1 else 'samples'} {listed}{more}, counted from 0"


LISTED = re.compile(r"(\(samples? )(\d+(?:, \d+)*)")
"""Where a note lists samples."""


def names_samples(note: str) -> bool:
    """Whether a note of this library lists samples by their numbers."""
    return LISTED.search(note) is not None


def renumbered(note: str, rows: IndexArray) -> str:
    """A note of this library with other numbers for the samples that it lists: rows[k] for k."""

    def other(match: re.Match[str]) -> str:
        return match[1] + ", ".join(str(rows[int(one)]) for one in match[2].split(", "))

    return LISTED.sub(other, note)


def kinds_of(problem: Problem, columns: IndexArray) -> tuple[str, IndexArray]:
    """Which of F and J some columns of sizes are of, in words, and of which outputs."""
    with_values = problem.F is not None
    kinds = [name for name, here in (("F", columns < problem.n), ("J", columns >= problem.n)) if here.any()]
    return " and ".join(kinds) if with_values else "J", np.unique(columns % problem.n)


def describe_wild(problem: Problem, wild: Wild, outputs: str) -> str:
    """The note: which samples do not belong, in `outputs`, and what to do."""
    count = len(wild.samples)
    many = f"{count} or more" if count >= KEPT else f"{count}"
    are, them = ("is", "it") if count == 1 else ("are", "them")
    return (
        f"{WILD}{kinds_of(problem, wild.columns)[0]}: {many} of {counted(problem.S, 'sample')} "
        f"({list_samples(wild.samples)}; {outputs}) {are} far from what the others make "
        f'likely, and least squares bends to {them}. Look at {them}, or use loss="huber"{COMMAND_LINE}.'
    )
