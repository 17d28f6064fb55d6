"""How often values and Jacobians that contradict each other are told, and how often only noisy ones are accused.

Usage: python benchmarks/contradictions.py [cases] [first seed] [starts]

Random systems of 1 to 4 outputs, 1 to 5 inputs and 1 to 4 branches, 40 to 300 samples, uniform or normal, each fitted
as by default. The first table has one row per mistake: in how many of the fits it was told in the first note, with the
cause named; and how many were CONVERGED and said nothing. Cases take turns between no noise, 1 % and 5 %. Of the ones
not told stderr has how far J is from the true one, as a share of it. The second table is about consistent samples with
5 % noise, fitted with the true rank, one branch less and a single one: how many were accused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import unbraid as ub
from unbraid.data.looking.neighbours import CONTRADICTION
from unbraid.kernels.arrays import Array

NOISES = (0.0, 0.01, 0.05)
Rng = np.random.Generator


def draw_branch(rng: Rng) -> Callable[[Array], tuple[Array, Array]]:
    """A smooth function of one variable, with its slopes."""
    a, b = rng.uniform(0.8, 2.2), rng.uniform(-1.0, 1.0)
    c = rng.standard_normal(3)
    kinds: list[Callable[[Array], tuple[Array, Array]]] = [
        lambda u: (np.sin(a * u + 3 * b), a * np.cos(a * u + 3 * b)),
        lambda u: (c[0] * u + c[1] * u**2 + c[2] * u**3 / 2, c[0] + 2 * c[1] * u + 1.5 * c[2] * u**2),
        lambda u: (np.tanh(a * u + b), a / np.cosh(a * u + b) ** 2),
        lambda u: (np.exp(-((u - b) ** 2)), -2 * (u - b) * np.exp(-((u - b) ** 2))),
        lambda u: (np.logaddexp(0.0, 2 * a * (u - b)) / a, 2 / (1 + np.exp(-2 * a * (u - b)))),
        lambda u: (np.exp(0.6 * a * u), 0.6 * a * np.exp(0.6 * a * u)),
    ]
    return kinds[rng.integers(len(kinds))]


@dataclass(frozen=True)
class System:
    """Samples of a random system, without noise."""

    X: Array
    F: Array
    J: Array
    rank: int

    @classmethod
    def draw(cls, rng: Rng, n: int, m: int) -> System:
        """A system with n outputs and m inputs."""
        rank, S = int(rng.integers(1, 5)), int(rng.integers(40, 301))
        X = rng.uniform(-1.5, 1.5, (S, m)) if rng.random() < 0.5 else rng.standard_normal((S, m))
        W0 = rng.standard_normal((rank, m))
        W0 /= np.linalg.norm(W0, axis=1, keepdims=True)
        W1 = rng.standard_normal((n, rank))
        g, slopes = np.stack([draw_branch(rng)(u) for u in (X @ W0.T).T]).transpose(1, 2, 0)
        return cls(X, g @ W1.T, np.einsum("ij,sj,jk->sik", W1, slopes, W0), rank)

    def noisy(self, rng: Rng, share: float, mistake: Callable[[Array], Array] = lambda J: J) -> ub.Problem:
        """The samples with noise, and perhaps with Jacobians that somebody made a mistake about."""
        F = self.F + share * self.F.std(axis=0) * rng.standard_normal(self.F.shape)
        J = self.J + share * np.sqrt(np.mean(self.J**2, axis=(0, 2), keepdims=True)) * rng.standard_normal(self.J.shape)
        return ub.Problem(self.X, F, mistake(J))


def swapped(J: Array, axis: int, rng: Rng) -> Array:
    """With two inputs, or outputs, in each other's place."""
    one, other = rng.choice(J.shape[axis], 2, replace=False)
    order = np.arange(J.shape[axis])
    order[[one, other]] = other, one
    return J.take(order, axis=axis)


def in_other_units(J: Array, rng: Rng) -> Array:
    """With one input in degrees, millimetres, kilometres or feet."""
    factors = np.ones(J.shape[2])
    factors[rng.integers(J.shape[2])] = rng.choice([57.3, 1000.0, 0.001, 0.3048])
    return J * factors


@dataclass(frozen=True)
class Mistake:
    """What may happen to Jacobians, how a note names it, and of how many outputs and inputs it can happen to."""

    make: Callable[[Array, Rng], Array]
    named: str
    n: int = 1
    m: int = 1
    square: bool = False


MISTAKES = {
    "wrong sign": Mistake(lambda J, rng: -J, r"wrong sign|J is -"),
    "transposed": Mistake(lambda J, rng: J.mT, "transposed", 2, 2, square=True),
    "samples shuffled": Mistake(lambda J, rng: rng.permutation(J), "samples are in another order"),
    "inputs swapped": Mistake(lambda J, rng: swapped(J, 2, rng), "inputs of J are in another order", m=2),
    "outputs swapped": Mistake(lambda J, rng: swapped(J, 1, rng), "outputs of J are in another order", n=2),
    "units of an input": Mistake(in_other_units, "units"),
    "a factor of 2": Mistake(lambda J, rng: 2.0 * J, r"J is (between )?(2|2\.0\d|1\.9\d?)\b"),
    "a factor of 1.1": Mistake(lambda J, rng: 1.1 * J, r"J is (between )?1\.(1|1[0-3]|0[5-9])\b"),
}


def told(fit: ub.Fit) -> str:
    """What a fit says first, where that is the contradiction."""
    return fit.notes[0] if fit.notes and fit.notes[0].startswith(CONTRADICTION) else ""


def run_mistake(name: str, seed: tuple[int, int, int], starts: int) -> Array:
    """Whether one mistake was told, named, and left out by a fit that is CONVERGED: counts of a case."""
    mistake, rng, noise = MISTAKES[name], np.random.default_rng(seed), NOISES[seed[-1] % len(NOISES)]
    n, m = int(rng.integers(mistake.n, 5)), int(rng.integers(mistake.m, 6))
    system = System.draw(rng, n, n if mistake.square else m)
    wrong = mistake.make(system.J, np.random.default_rng(seed[-1]))
    problem = system.noisy(rng, noise, lambda J: mistake.make(J, np.random.default_rng(seed[-1])))
    fit = ub.decouple(problem, system.rank, starts=starts, rng=0)
    said = told(fit)
    named = re.search(mistake.named, said) is not None
    if not named:
        off = np.linalg.norm(wrong - system.J) / np.linalg.norm(system.J)
        sizes = ", ".join(map(str, (*system.J.shape, system.rank)))
        about = f"{name}, {seed}: S, n, m, r = {sizes}, noise {noise:.0%}, J off by {off:.0%}, {fit.status.name}"
        print(f"{about}: {said or 'not told'}", file=sys.stderr, flush=True)
    return np.array([1, bool(said), named, not said and fit.status is ub.Status.CONVERGED])


def run_mistakes(cases: int, first: int, starts: int) -> None:
    """One row per mistake."""
    print("| mistake | cases | told first | cause named | CONVERGED without |\n|---|---|---|---|---|", flush=True)
    total = np.zeros(4, dtype=int)
    for kind, name in enumerate(MISTAKES):
        cases_of_it = [run_mistake(name, (first, kind, case), starts) for case in range(cases // len(MISTAKES))]
        counts = np.sum(cases_of_it, axis=0)
        total += counts
        print(f"| {name} | {' | '.join(map(str, counts))} |", flush=True)
    print(f"| all | {' | '.join(map(str, total))} |", flush=True)


def run_consistent(cases: int, first: int, starts: int) -> None:
    """One row per rank."""
    print("\n| consistent, fitted with | cases | accused |\n|---|---|---|", flush=True)
    ranks: dict[str, Callable[[int], int]] = {
        "the true rank": lambda r: r,
        "one branch less": lambda r: r - 1,
        "one branch": lambda r: min(1, r - 2),  # a rank of 2 less one is one already
    }
    for name, choose in ranks.items():
        fits, accused = 0, 0
        for case in range(cases):
            rng = np.random.default_rng([first, len(MISTAKES), case])
            system = System.draw(rng, int(rng.integers(1, 5)), int(rng.integers(1, 6)))
            problem = system.noisy(rng, max(NOISES))
            if (rank := choose(system.rank)) < 1:
                continue
            fit = ub.decouple(problem, rank, starts=starts, rng=0)
            fits += 1
            if any(note.startswith(CONTRADICTION) for note in fit.notes):
                accused += 1
                print(f"case {case} with rank {rank} of {system.rank}: {fit.notes[0]}", file=sys.stderr, flush=True)
        print(f"| {name} | {fits} | {accused} |", flush=True)


def main() -> None:
    """Both tables."""
    cases, first, starts = (int(given) for given in (*sys.argv[1:], *("200", "0", "16")[len(sys.argv) - 1 :]))
    run_mistakes(cases, first, starts)
    run_consistent(cases, first, starts)


if __name__ == "__main__":
    main()
