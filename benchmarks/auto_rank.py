"""Does `rank="auto"` find the true rank? Random systems with a known one, without noise and with.

    python benchmarks/auto_rank.py [draws]

A row is one kind of data and one way to choose, a fit whose rank is "auto" or cross-validation by `select`: in how many
of the systems the rank was right, too small, too large; and the CPU seconds that it took. A draw is 20 systems of 1 to
5 branches, half of them cubics, which the splines contain, and half sines, which they do not. Wrong ones are listed.
"""

import sys
import time
from itertools import product

import numpy as np

import unbraid as ub
from unbraid.datasets import Kind
from unbraid.studies.comparison.cells import with_noise

SHAPES = (
    *((n, m, 1) for n, m in ((2, 2), (1, 3), (3, 1), (4, 4))),
    *((n, m, 2) for n, m in ((2, 2), (3, 2), (1, 3), (2, 4))),
    *((n, m, 3) for n, m in ((2, 2), (3, 3), (2, 4), (4, 3))),
    *((n, m, 4) for n, m in ((3, 3), (3, 2), (2, 4), (4, 4))),
    *((n, m, 5) for n, m in ((3, 3), (4, 4), (5, 3), (2, 5))),
)
SAMPLES = (100, 150, 200, 250, 300)
KINDS: tuple[Kind, Kind] = ("cubic", "sine")
DATA = (("F and J", 0.0), ("F and J", 0.02), ("F", 0.0), ("F", 0.02))


def system(index: int, given: str, noise: float, draw: int) -> tuple[ub.Problem, str]:
    """One of the 20, and what to call it."""
    n, m, r = SHAPES[index]
    S, kind = SAMPLES[index % len(SAMPLES)], KINDS[index % 2]
    problem, _ = ub.datasets.random_system(n, m, r, S, kind, rng=np.random.default_rng([draw, index]))
    noisy = with_noise(problem, noise, np.random.default_rng([draw, index, 1]))
    name = f"n, m, r, S = {n}, {m}, {r}, {S}, {kind}"
    return (noisy if given == "F and J" else ub.Problem(noisy.X, noisy.F)), name


def by_support(problem: ub.Problem, seed: int) -> tuple[int, str]:
    """The rank of a fit without settings, and its reason."""
    fit = ub.decouple(problem, "auto", rng=seed)
    return fit.model.rank, fit.notes[0]


def by_selection(problem: ub.Problem, seed: int) -> tuple[int, str]:
    """The rank that cross-validation recommends, and its reason."""
    selection = ub.select(problem, rng=seed)
    return selection.recommended.rank, selection.reason


WAYS = {'decouple(…, "auto")': by_support, "select": by_selection}


def main() -> None:
    """One row per kind of data and way."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    print("| data | noise | | right | too small | too large | median CPU s | most |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for (given, noise), (way, find) in product(DATA, WAYS.items()):
        off, seconds = [], []
        for draw, index in np.ndindex(draws, len(SHAPES)):
            problem, name = system(index, given, noise, draw)
            began = time.process_time()
            found, reason = find(problem, 1000 + draw)
            seconds.append(time.process_time() - began)
            off.append(found - SHAPES[index][2])
            if off[-1]:
                wrong = f"{way}: {given}, noise {noise:.0%}, {name}, draw {draw}: {found}. {reason}"
                print(wrong, file=sys.stderr, flush=True)
        counts = [sum(np.sign(one) == sign for one in off) for sign in (0, -1, 1)]
        print(
            f"| {given} | {noise:.0%} | {way} | {counts[0]} of {len(off)} | {counts[1]} | {counts[2]} "
            f"| {np.median(seconds):.1f} | {max(seconds):.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
