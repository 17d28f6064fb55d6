"""Is what is called unique unique, and do seeds agree in the canonical form? Default settings throughout.

The first table is the example f1 = sin(2 x1 + x2), f2 = exp(x3) - x4, r = 3, whose third branch is a straight line: ten
seeds of the same samples, values alone and with Jacobians, without noise and with 1 %. It has the largest angle between
the directions of any two seeds, as models have them and in the canonical form (`ub.diagnose(fit).canonical`), and the
largest differences of L (in % of its size) and of the bent branches' curves (in % of their standard deviation).

The second table is about random systems, of which half have a freedom built in:

- none: one to three outputs, two or three bent branches along directions at least 25 degrees apart, mixes of outputs at
  least 20 degrees apart where there are two branches or more and two outputs or more;
- straight: one branch is a line and goes into outputs in the same mix as a bent one, so that it can turn;
- parallel: two branches with different curves and mixes look along one direction, so that their curves can be mixed;
- quadratic: one output and two or three branches that are parabolas, so that they can rotate.

Half of the systems have values alone, half have Jacobians as well. A verdict is right if `ub.diagnose(fit).unique` is
True for a system without and False for one with a freedom; the table also has how often the kind of freedom that was
named is the one that was built in. Thresholds were chosen on systems of even numbers; odd ones are reported.

Run: python benchmarks/uniqueness.py [how many systems] [even]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

import unbraid as ub
from unbraid.kernels.arrays import Array
from unbraid.metrics import angles_between, direction_angles
from unbraid.results.canonical import CanonicalModel

KINDS = ("none", "straight", "none", "parallel", "none", "quadratic")
OUTPUTS = {"none": (1, 4), "straight": (1, 3), "parallel": (2, 4), "quadratic": (1, 2)}
"""From how many outputs on and up to how many, exclusively, a kind of system has."""
SAMPLES, BOX = 300, 1.5
SEEDS = 10
CURVES: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "sine": (lambda u: np.sin(2.0 * u), lambda u: 2.0 * np.cos(2.0 * u)),
    "exp": (np.exp, np.exp),
    "tanh": (lambda u: np.tanh(2.0 * u), lambda u: 2.0 / np.cosh(2.0 * u) ** 2),
    "cubic": (lambda u: u**3 - u, lambda u: 3.0 * u**2 - 1.0),
    "bump": (lambda u: np.exp(-2.0 * u**2), lambda u: -4.0 * u * np.exp(-2.0 * u**2)),
    "wave": (lambda u: np.cos(3.0 * u) + u, lambda u: 1.0 - 3.0 * np.sin(3.0 * u)),
    "line": (lambda u: u, np.ones_like),
    "square": (lambda u: u**2 + 0.5 * u, lambda u: 2.0 * u + 0.5),
}
BENT = ("sine", "exp", "tanh", "cubic", "bump", "wave")


def apart(rng: np.random.Generator, count: int, size: int, least: float) -> Array:
    """Random unit rows (count, size) that are at least so many degrees apart."""
    while True:
        rows = rng.standard_normal((count, size))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        between = angles_between(rows, rows) + 180.0 * np.eye(count)
        if size == 1 or between.min() >= least:
            return rows


def system(number: int, noise: float) -> tuple[str, ub.Problem, int]:
    """A random system: its kind, samples and rank."""
    kind = KINDS[(number // 2) % len(KINDS)]
    rng = np.random.default_rng(1000 + number)
    r, m = int(rng.integers(2, 4)), int(rng.integers(3, 5))
    outputs = {
        "none": int(rng.integers(1, 4)),
        "straight": int(rng.integers(1, 3)),
        "parallel": int(rng.integers(2, 4)),
    }
    n = outputs.get(kind, 1)
    W0, W1 = apart(rng, r, m, 25.0), apart(rng, r, n, 20.0).T * rng.uniform(0.7, 1.5, r)
    curves = [str(one) for one in rng.choice(BENT, r, replace=False)]
    if kind == "straight":
        curves[1] = "line"
        W1[:, 1] = W1[:, 0] * rng.uniform(0.7, 1.5) / np.linalg.norm(W1[:, 0])
    elif kind == "parallel":
        W0[1] = W0[0]
    elif kind == "quadratic":
        curves = ["square"] * r
    X = rng.uniform(-BOX, BOX, (SAMPLES, m))
    u = X @ W0.T
    R = np.stack([CURVES[one][0](u[:, j]) for j, one in enumerate(curves)], axis=1)
    G = np.stack([CURVES[one][1](u[:, j]) for j, one in enumerate(curves)], axis=1)
    W1 = W1 / R.std(axis=0)
    return kind, noisy(X, R @ W1.T, (W1 * G[:, None]) @ W0, noise, rng, (number // 2) % 4 < 2), r


def noisy(X: Array, F: Array, J: Array, noise: float, rng: np.random.Generator, slopes: bool) -> ub.Problem:
    """Samples with so much noise in values and, if there are any, slopes."""
    F = F + noise * F.std(axis=0) * rng.standard_normal(F.shape)
    J = J + noise * np.sqrt(np.mean(J**2, axis=(0, 2)))[:, None] * rng.standard_normal(J.shape)
    return ub.Problem(X, F, J if slopes else None)


def example(noise: float, slopes: bool) -> ub.Problem:
    """F1 = sin(2 x1 + x2), f2 = exp(x3) - x4."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-BOX, BOX, (SAMPLES, 4))
    u = 2.0 * X[:, 0] + X[:, 1]
    F = np.stack([np.sin(u), np.exp(X[:, 2]) - X[:, 3]], axis=1)
    J = np.zeros((SAMPLES, 2, 4))
    J[:, 0, 0], J[:, 0, 1], J[:, 1, 2], J[:, 1, 3] = 2.0 * np.cos(u), np.cos(u), np.exp(X[:, 2]), -1.0
    return noisy(X, F, J, noise, rng, slopes)


def compare_seeds(noise: float, slopes: bool) -> str:
    """How much the models of ten seeds differ, as they are and in the canonical form."""
    problem = example(noise, slopes)
    fits = [ub.decouple(problem, 3, rng=seed) for seed in range(SEEDS)]
    found = [ub.diagnose(fit) for fit in fits]
    forms = [one.canonical for one in found if one.canonical is not None]
    as_found = max(float(direction_angles(a.model.W0, b.model.W0).max()) for a, b in combinations(fits, 2))
    ranks = sorted({form.rank for form in forms})
    line = f"{100 * noise:5.1f} %  {'with J' if slopes else 'alone ':6}  {as_found:12.2f}  "
    if len(ranks) > 1:
        return line + f"numbers of bent branches differ: {ranks}"
    turned = max(float(direction_angles(a.W0, b.W0).max()) for a, b in combinations(forms, 2))
    lines = max(float(np.linalg.norm(a.L - b.L) / np.linalg.norm(a.L)) for a, b in combinations(forms, 2))
    curves = max(curve_difference(a, b, problem.X) for a, b in combinations(forms, 2))
    verdicts = sum(one.unique is False and bool(one.unique_canonical) for one in found)
    return line + f"{turned:9.3f}  {100 * lines:6.3f}  {100 * curves:6.3f}  {verdicts:3} of {SEEDS}"


def curve_difference(one: CanonicalModel, other: CanonicalModel, X: Array) -> float:
    """The largest root mean square difference of branches' parts in the outputs, over that of the part."""
    parts = [
        [np.outer(g(X @ w0), w1) for g, w0, w1 in zip(form.branches, form.W0, form.W1.T, strict=True)]
        for form in (one, other)
    ]
    return max(float(np.linalg.norm(a - b) / np.linalg.norm(a)) for a, b in zip(*parts, strict=True))


NAMES = {"straight": "straight", "parallel": "parallel", "quadratic": "rotating"}


def judge_systems(count: int, even: bool, noise: float) -> None:
    """Print how many verdicts on random systems are right."""
    right: dict[str, list[bool]] = {}
    named: dict[str, list[bool]] = {}
    begun = time.perf_counter()
    for number in range(0 if even else 1, 2 * count, 2):
        kind, problem, rank = system(number, noise)
        found = ub.diagnose(ub.decouple(problem, rank, rng=0))
        correct = found.unique is (kind == "none")
        right.setdefault(kind, []).append(correct)
        if kind != "none":
            named.setdefault(kind, []).append({one.kind for one in found.freedoms} == {NAMES[kind]})
        if not correct:
            print(f"  wrong: system {number}, {kind}: {found!r}")
    total = [one for ones in right.values() for one in ones]
    each = ", ".join(f"{kind} {sum(ones)} of {len(ones)}" for kind, ones in right.items())
    names = [one for ones in named.values() for one in ones]
    took = time.perf_counter() - begun
    print(f"noise {100 * noise:g} %: right in {sum(total)} of {len(total)} ({each}); {took:.0f} s")
    print(f"  named as built in {sum(names)} of {len(names)}", flush=True)


def main() -> None:
    """Print both tables."""
    numbers = [int(one) for one in sys.argv[1:] if one.isdigit()]
    print("Ten seeds of one problem: largest angle as found, in canonical form; L and curves in %; verdicts right")
    print("noise    values      as found  canonical       L  curves  verdict")
    for noise in (0.0, 0.01):
        for slopes in (False, True):
            print(compare_seeds(noise, slopes), flush=True)
    for noise in (0.0, 0.01):
        judge_systems(numbers[0] if numbers else 50, "even" in sys.argv, noise)


if __name__ == "__main__":
    main()
