"""Whether Jacobians are those of the values, as neighbouring samples show it, and if not, what the mistake may be.

Of a smooth function

    f(x') - f(x)  ≈  ½ (J(x) + J(x')) (x' - x),

and how much of the differences on the left the right side explains, R², tells whether J is that of F; and, with J
negated, transposed, its axes in another order or its columns in other units, what would make it so. Neighbours are
so far apart that values differ by more than noise. Jacobians that explain hardly more than the same ones in a random
order are not those of these samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from unbraid.data.problem import Problem
from unbraid.kernels.arrays import Array, BoolArray, IndexArray

CONTRADICTION = "F and J contradict each other"
"""How the note begins."""
MOST_SAMPLES, FEWEST_SAMPLES = 2000, 12
"""How many samples are looked at, and how few say nothing."""
ENOUGH_SAMPLES = 100
"""How many samples tell of their order without a model."""
MOST_ENTRIES = 1 << 16
"""How many entries of Jacobians are looked at, of samples and of pairs of neighbours."""
MOST_NEIGHBOURS = 8
"""How many neighbours of a sample are looked at."""
GAINED = 0.7
"""A mended J leaves at most this share of what J leaves unexplained of the differences between neighbours."""
MENDED = 0.8
"""It leaves at most this share of these differences: less bad is not good."""
FACTOR = 1.6
"""Units of J that differ by less than this factor may be the same: neighbours are not near enough to tell."""
FAR_FACTOR, MOST_LEFT = 2.5, 0.5
"""A factor that neighbours at any distance can tell, and what Jacobians may leave unexplained where they have it."""
LIKE_NEIGHBOURS = 0.85
"""Jacobians that explain this share of the differences between neighbours are not doubted."""
ORDERED, PLAINLY_ORDERED = 0.55, 0.85
"""Jacobians leave at most this share of what they leave unexplained in a random order; where no model has failed to fit
them, the second is enough."""
NOISES, NEGLIGIBLE = 1.7, 0.01
"""Jacobians may leave so many times the noise unexplained, and this share of the variance."""
NOISE_NEIGHBOURS = 10
"""Of how many neighbours differences tell of noise, as they go to zero with the distance but for that."""
BENT, STRAIGHT = 0.7, 0.2
"""Slopes at the ends of a pair that differ by more than this share of themselves tell little of what is between; and
the share of pairs without such slopes that is enough to leave out the others."""
RANDOM_ORDERS = 8
"""How many random orders Jacobians are compared with."""
UNLIKE, BEYOND_NOISE, STILL_NEAR = 0.05, 4.0, 0.3
"""Values of neighbours differ by this share of the variance, by so many times what nearest ones differ by, which may be
noise; more than the last is not asked for."""
STILL_VARYING = 0.3
"""Values that vary by this share of their spread, and more, cannot have Jacobians that are zero."""
UNITS_LEFT = 0.25
"""What Jacobians may leave unexplained in the units that are said to be theirs."""
PAIRS_PER_INPUT = 20
"""Differences of values that have to be known for every input whose units are asked for."""
FEW_AXES, MANY_AXES = 5, 12
"""Axes of which all orders are tried, and all exchanges of two; of more than these, none."""


class KnownSamples(NamedTuple):
    """Samples of which all is known: X (S, m), F (S, n), J (S, n, m)."""

    X: Array
    F: Array
    J: Array

    @classmethod
    def of(cls, problem: Problem) -> KnownSamples | None:
        """Some of those of a problem; None where there are too few, or no values that vary."""
        if problem.F is None or problem.J is None:
            return None
        most = min(MOST_SAMPLES, MOST_ENTRIES // (problem.n * problem.m))
        if most < FEWEST_SAMPLES:
            return None
        some = problem.thinned(most)
        F, J = np.asarray(some.F), np.asarray(some.J)
        known = np.isfinite(F).all(axis=1) & np.isfinite(J).all(axis=(1, 2))
        samples = cls(some.X[known], F[known], J[known])
        return samples if len(samples.X) >= FEWEST_SAMPLES and samples.varying.any() else None

    @property
    def varying(self) -> BoolArray:
        """Which outputs vary, (n,)."""
        return np.asarray(np.std(self.F, axis=0) > 1e-12 * np.abs(self.F).max(axis=0))


def describe_by_neighbours(problem: Problem) -> str | None:
    """The sentence where neighbours show that values and Jacobians are not those of one function, by plain mistakes."""
    samples = KnownSamples.of(problem)
    if samples is None:
        return None
    if (unfilled := describe_zeros(samples.F, samples.J)) or not samples.J.any():
        return unfilled
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        near = Neighbours.of(*samples)
        found = describe_output_signs(near) or describe_mending(near) or describe_units(near) or describe_factor(near)
        if found is not None or len(samples.X) < ENOUGH_SAMPLES:
            return found
        return describe_disorder(near, samples.J, PLAINLY_ORDERED)


def describe_zeros(F: Array, J: Array) -> str | None:
    """The sentence where J is zero at all samples, or at all of the first or last ones, and F varies there."""
    nonzero = np.flatnonzero(J.any(axis=(1, 2)))
    first, last = (nonzero[0], len(J) - 1 - nonzero[-1]) if nonzero.size else (len(J), 0)
    for count, which, part in ((first, "first", F[:first]), (last, "last", F[len(F) - last :])):
        if count >= FEWEST_SAMPLES and np.any(np.std(part, axis=0) > STILL_VARYING * np.std(F, axis=0)):
            where = "throughout" if count == len(J) else f"at the {which} {100.0 * count / len(J):.0f} % of the samples"
            return told(f"J is zero {where}, where F varies: it may not have been filled in", "")
    return None


class Neighbours(NamedTuple):
    """Differences between neighbours: Δx (p, m), ΔF (p, n) in units of its spread, and means of J (p, n, m).

    `pairs` (p, 2) has their numbers, `noise` is the share of noise in the variance of values.
    """

    pairs: IndexArray
    noise: float
    steps: Array
    rises: Array
    slopes: Array
    spread: Array

    @classmethod
    def of(cls, X: Array, F: Array, J: Array) -> Neighbours:
        """Samples and others near to them, at most twice as many as inputs; distances are in units of spread."""
        x_scale, spread = (np.where(one > 0.0, one, 1.0) for one in (np.std(X, axis=0), np.std(F, axis=0)))
        pairs, noise = pairs_beyond_noise(X / x_scale, F / spread), share_of_noise(X / x_scale, F / spread)
        pairs = pairs[:: 1 + len(pairs) * J[0].size // MOST_ENTRIES]
        pairs = straight_pairs(pairs, X, J / spread[:, None])
        one, other = pairs.T
        return cls(pairs, noise, X[other] - X[one], (F[other] - F[one]) / spread, 0.5 * (J[one] + J[other]), spread)

    def with_slopes(self, J: Array) -> Array:
        """Means of other Jacobians (S, n, m) over the same pairs."""
        return np.asarray(0.5 * (J[self.pairs[:, 0]] + J[self.pairs[:, 1]]))

    def expected(self, slopes: Array) -> Array:
        """The differences of values that slopes make likely, (p, n)."""
        return np.asarray(np.einsum("pik,pk->pi", slopes, self.steps) / self.spread)

    def left(self, slopes: Array) -> float:
        """1 - R²: the share of the differences of values that slopes leave unexplained."""
        total = max(float(np.sum(self.rises**2)), np.finfo(float).tiny)
        return float(np.sum((self.rises - self.expected(slopes)) ** 2)) / total

    def told(self, cause: str, left: float, where: str = "") -> str:
        """The note on a likely cause, with what mended Jacobians leave unexplained, and the given ones."""
        sure = f"So mended, J explains {percent(left)} of how F changes from a sample to its neighbours"
        return told(cause, where, f"{sure}; as it is, {percent(self.left(self.slopes))}. ")

    def left_at_any_size(self, slopes: Array) -> float:
        """The same of slopes times the best positive factor: slopes that are too steep for such steps may be right."""
        expected = self.expected(slopes)
        size = float(np.sum(expected**2)) * float(np.sum(self.rises**2))
        return 1.0 - max(float(np.sum(expected * self.rises)), 0.0) ** 2 / max(size, np.finfo(float).tiny)

    @property
    def unlike(self) -> float:
        """How unlike the values of neighbours are: 0 if they are the same, 1 if they have no relation."""
        return float(np.mean(self.rises**2)) / 2.0


def pairs_beyond_noise(X: Array, F: Array) -> IndexArray:
    """Pairs (p, 2) of samples as near to each other as they can be if their values are to differ by more than noise."""
    from scipy.spatial import KDTree

    tree, first = KDTree(X), 1
    count = min(2 * X.shape[1], len(X) - 1, MOST_NEIGHBOURS)
    near = np.asarray(tree.query(X, range(2, count + 2))[1])
    wanted = float(np.clip(BEYOND_NOISE * np.mean((F[near[:, 0]] - F) ** 2) / 2.0, UNLIKE, STILL_NEAR))
    while np.mean((F[near] - F[:, None]) ** 2) / 2.0 < wanted and 2 * first + count <= len(X) // 3:
        first *= 2
        near = np.asarray(tree.query(X, range(first + 1, first + count + 1))[1])
    pairs = np.stack([np.repeat(np.arange(len(X)), count), near.ravel()], axis=1)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def straight_pairs(pairs: IndexArray, X: Array, J: Array) -> IndexArray:
    """Those of some pairs (p, 2) between which slopes do not change too much for a straight line, if they are several.

    Where they do, as in long tails, ½ (J(x) + J(x')) (x' - x) may be many times the difference of values.
    """
    one, other = pairs.T
    steps = X[other] - X[one]
    ends = [np.einsum("pik,pk->pi", J[end], steps) for end in (one, other)]
    size = np.sqrt(np.sum(ends[0] ** 2 + ends[1] ** 2, axis=1))
    straight = np.sqrt(np.sum((ends[0] - ends[1]) ** 2, axis=1)) <= BENT * size
    return pairs[straight] if np.count_nonzero(straight) >= STRAIGHT * len(pairs) else pairs


def share_of_noise(X: Array, F: Array) -> float:
    """How much values of variance 1 would differ at distance zero, by a line through the differences of near ones."""
    from scipy.spatial import KDTree

    distances, near = KDTree(X).query(X, range(2, min(NOISE_NEIGHBOURS, len(X) - 1) + 2))
    squares = np.mean(distances**2, axis=0)
    unlike = np.mean((F[near] - F[:, None]) ** 2, axis=(0, 2)) / 2.0
    from_mean = squares - squares.mean()
    slope = float(from_mean @ unlike) / max(float(from_mean @ from_mean), np.finfo(float).tiny)
    return float(np.clip(unlike.mean() - slope * squares.mean(), 0.0, unlike[0]))


def describe_mending(near: Neighbours) -> str | None:
    """The sentence where neighbours show that Jacobians would be those of the values if they were mended."""
    found = ((near.left(slopes), near.left_at_any_size(slopes), cause) for cause, slopes in mended(near))
    left, at_any_size, cause = min(found, default=(np.inf, np.inf, ""))
    better = left < min(GAINED * near.left(near.slopes), MENDED)
    return near.told(cause, left) if better and at_any_size < GAINED * near.left_at_any_size(near.slopes) else None


def describe_disorder(near: Neighbours, J: Array, ordered: float = ORDERED) -> str | None:
    """The sentence where Jacobians do not explain how values change between neighbours, and noise does not either.

    `ordered` is the share that they may leave of what they leave unexplained in a random order.
    """
    left = near.left(near.slopes)
    if 1.0 - left > LIKE_NEIGHBOURS or left * near.unlike < NOISES * near.noise + NEGLIGIBLE:
        return None
    rng = np.random.default_rng(0)
    by_chance = np.mean([near.left(near.with_slopes(rng.permutation(J))) for _ in range(RANDOM_ORDERS)])
    if left <= ordered * by_chance:
        return None
    return told(
        "J does not explain how F changes from a sample to its neighbours: its samples are in another order, or the "
        "function varies faster than the samples show",
        "",
    )


def mended(near: Neighbours) -> Iterator[tuple[str, Array]]:
    """Jacobians as they might have been meant, with what was done to them instead."""
    J = near.slopes
    _, n, m = J.shape
    yield "J has the wrong sign", -J
    if n == m:
        yield "J is transposed: it has ∂f_k/∂x_i where ∂f_i/∂x_k is expected", J.mT
    for order in orders(m):
        yield (
            f"The inputs of J are in another order than those of X: by X they would be {one_based(order)}",
            J[:, :, order],
        )
    for order in orders(n):
        yield (
            f"The outputs of J are in another order than those of F: by F they would be {one_based(order)}",
            J[:, order],
        )


def describe_units(near: Neighbours) -> str | None:
    """The sentence where Jacobians explain much more in other units, input by input, than with one factor for all."""
    m = near.steps.shape[1]
    if m > MANY_AXES or near.rises.size < PAIRS_PER_INPUT * m:
        return None
    parts = (near.slopes * near.steps[:, None] / near.spread[:, None]).reshape(-1, m)
    rises = near.rises.ravel()
    if not np.isfinite(parts).all():
        return None
    together = parts.sum(axis=1)
    factor = float(together @ rises) / max(float(together @ together), np.finfo(float).tiny)
    factors = np.linalg.lstsq(parts, rises)[0]
    left_together, left = (float(np.sum((rises - one) ** 2)) for one in (factor * together, parts @ factors))
    apart = (np.abs(np.log(np.maximum(np.abs(factors), 1e-300))) > np.log(FACTOR)) | (factors < 0.0)
    total = float(rises @ rises)
    if not apart.any() or not total or left > min(GAINED * left_together, UNITS_LEFT * total):
        return None
    sizes = ", ".join(f"{1.0 / one:.2g}" if one else "infinitely many" for one in factors[:6])
    cause = f"J is not in the units of X and F: by input, it seems to be {sizes} times what it should"
    return near.told(cause, left / total)


def describe_output_signs(near: Neighbours) -> str | None:
    """The sentence where the slopes of some outputs, but not of all, explain most with the other sign."""
    expected = near.expected(near.slopes)
    tiny = np.finfo(float).tiny
    together, own = np.sum(expected * near.rises, axis=0), np.sum(expected**2, axis=0)
    explained = together**2 / np.maximum(own * np.sum(near.rises**2, axis=0), tiny)
    wrong = (together < 0.0) & (explained > 1.0 - MOST_LEFT)
    if not wrong.any() or wrong.all():
        return None
    left = near.left(near.slopes * np.where(wrong, -1.0, 1.0)[:, None])
    return near.told("J has the wrong sign", left, f" in output {one_based(np.flatnonzero(wrong)[:6].tolist())}")


def describe_factor(near: Neighbours) -> str | None:
    """The sentence where Jacobians explain most with a factor that is far from 1."""
    expected = near.expected(near.slopes)
    factor = float(np.sum(expected * near.rises)) / max(float(np.sum(expected**2)), np.finfo(float).tiny)
    left = near.left(factor * near.slopes)
    if 1.0 / FAR_FACTOR < factor < FAR_FACTOR or left >= MOST_LEFT or not factor:
        return None
    cause = f"J is {1.0 / factor:.2g} times the Jacobian of the values: a factor is missing, or units differ"
    return near.told(cause, left)


def orders(count: int) -> Iterator[list[int]]:
    """Other orders of so many axes: all if they are few, all exchanges of two if they are more, none of many."""
    if count <= FEW_AXES:
        yield from (list(order) for order in permutations(range(count)) if list(order) != list(range(count)))
        return
    for one, other in combinations(range(count if count <= MANY_AXES else 0), 2):
        order = list(range(count))
        order[one], order[other] = other, one
        yield order


def one_based(order: list[int]) -> str:
    """Positions as a reader counts them."""
    return ", ".join(str(one + 1) for one in order)


def percent(left: float) -> str:
    """What is explained, in words, where this share is left."""
    return f"{100.0 * (1.0 - left):.0f} %" if left < 1.0 else "nothing"


def told(cause: str, where: str, sure: str = "") -> str:
    """The note: what contradicts what, the likely cause, how sure that is, and what to do."""
    return f"{CONTRADICTION}{where}. {cause}. {sure}Mend that, or leave one of them out."
