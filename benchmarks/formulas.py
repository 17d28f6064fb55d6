"""Closed forms: how often the true one is found first, how near its parameters are, and what a model of them is worth.

    python benchmarks/formulas.py [systems] [first seed]

Systems: the paper's f_trig and monotone system, Decuyper's toy, and random ones, whose branches are drawn from the list
of forms with their bends within the samples; values and Jacobians of 300 samples, without noise and with 1 % on both.
A tanh and a logistic function are one form, as are a power and the polynomial that it is, and |u| and a rectifier,
which differ by a line. Parameters are those of the argument, b w0·x + c, or the values of a polynomial. Then random
splines, which are no form: how many are offered one as exact. Products, squares, x²y and xyz in turned inputs, whose
directions the values leave open: how many become worse. Errors on fresh points outside of the range seen are of the fit
and of `fit.with_formulas()`.
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import unbraid as ub
from unbraid.results.branches.forms import FORMS, Formula
from unbraid.results.branches.formula import FormulaBranch

Array = npt.NDArray[np.float64]
S, BOX = 300, 1.5
WITHIN = {0.0: 1.0, 0.01: 5.0}
"""Noise, and how far parameters may be off, in %."""


class System(NamedTuple):
    """A true model whose branches are formulas, and a box of inputs."""

    name: str
    model: ub.DecoupledModel
    box: float


def random_formula(rng: np.random.Generator, half: float) -> Formula:
    """A formula that bends where u lies between -half and half; a line is the others' part."""
    shapes = [
        name for name, form in FORMS.items() if not form.has_line and name not in ("constant", "line", "logistic")
    ]
    name = str(rng.choice(shapes))
    a, sign = rng.uniform(0.5, 2.0) * rng.choice([-1.0, 1.0]), float(rng.choice([-1.0, 1.0]))
    steep, centre = rng.uniform(1.5, 3.0) / half, rng.uniform(-0.3, 0.3) * half
    if FORMS[name].h is None:
        degree = FORMS[name].size - 1
        roots = rng.uniform(-1.0, 1.0, degree) * half
        powers = np.polynomial.polynomial.polyfromroots(roots) / half**degree
        return Formula.of(name, a * powers * 2.0)
    if name in ("square", "cube", "fourth power", "absolute value", "rectifier"):
        return Formula.of(name, (a, sign if name == "rectifier" else 1.0, -centre, 0.0))
    if name in ("square root", "reciprocal", "logarithm"):
        return Formula.of(name, (a, sign, half * rng.uniform(1.1, 1.5), 0.0))
    if name == "exponential":
        return Formula.of(name, (a, sign * steep, 0.0, 0.0))
    if name == "sine":
        return Formula.of(name, (a, rng.uniform(1.5, 4.0) / half, rng.uniform(-np.pi, np.pi), 0.0))
    if name == "softplus":
        return Formula.of(name, (a, sign * 2.0 * steep, -sign * 2.0 * steep * centre, 0.0))
    if name in ("saturation", "dead zone"):  # both kinks where samples are
        steep = rng.uniform(2.0, 4.0) / half
    return Formula.of(name, (a, steep, -steep * centre, 0.0))


def random_system(seed: int) -> System:
    """Two or three branches of two to four inputs, two or three outputs."""
    rng = np.random.default_rng(seed)
    m, n, r = int(rng.integers(2, 5)), int(rng.integers(2, 4)), int(rng.integers(2, 4))
    W0 = rng.standard_normal((r, m))
    W0 /= np.linalg.norm(W0, axis=1)[:, None]
    W1 = rng.standard_normal((n, r))
    W1 /= np.linalg.norm(W1, axis=0)
    u = rng.uniform(-1.0, 1.0, (2000, m)) @ W0.T
    branches = []
    for j in range(r):
        half = float(np.abs(u[:, j]).max())
        formula = random_formula(rng, half)
        size = float(np.std(formula(u[:, j])))
        scaled = [*formula.parameters]
        for k in range(len(scaled)) if formula.form.h is None else (0,):
            scaled[k] /= size
        branches.append(FormulaBranch(Formula(formula.form, tuple(scaled)), (-half, half)))
    return System(f"random {seed}", ub.DecoupledModel(W0, W1, branches), 1.0)


def known_systems() -> list[System]:
    """The paper's two systems, and Decuyper's toy, with their branches as formulas."""
    trig, monotone = (data(S=4, rng=0)[1] for data in (ub.datasets.trig, ub.datasets.monotone))
    half = 0.5 * np.pi
    own = [
        FormulaBranch(Formula.of("sine", (1.0, 1.0, 0.0, 2.0))),
        FormulaBranch(Formula.of("sine", (1.0, 2.0, half, -1.5))),
        FormulaBranch(Formula.of("sine and line", (1.0, 2.0, 0.0, 0.0, 0.5))),
    ]
    theirs = [
        FormulaBranch(Formula.of("cubic polynomial", (0.0, 1.0, 0.0, 1.0 / 3.0))),
        FormulaBranch(Formula.of("exponential", (1.0, 1.0, 0.0, 0.0))),
        FormulaBranch(Formula.of("tanh", (0.5, 0.5, 0.0, 0.5))),
    ]
    toy = ub.datasets.decuyper(S=4, rng=0)[1]
    cubics = [(0.0, 0.0, 0.5, 1.0), (0.0, 0.0, 1.0, 2.0), (0.0, 0.0, 3.0, 1.0)]
    their_own = [FormulaBranch(Formula.of("cubic polynomial", powers)) for powers in cubics]
    return [
        System("f_trig", trig.changed(branches=own), BOX),
        System("monotone", monotone.changed(branches=theirs), BOX),
        System("Decuyper's toy", toy.changed(branches=their_own), BOX),
    ]


def same_form(found: Formula, true: Formula) -> bool:
    """Whether two formulas have one form; powers are polynomials, and a line may have gone to another branch."""
    names = {"square": "quadratic", "cube": "cubic polynomial", "fourth power": "quartic polynomial"}
    one, other = (names.get(formula.form.shape, formula.form.shape) for formula in (found, true))
    kinks = {"absolute value", "rectifier"}  # one is the other and a line
    return one == other or {one, other} <= kinks


def sampled(system: System, noise: float, seed: int) -> tuple[ub.Problem, Array]:
    """Samples with noise, in shares of the spread, and the inputs of fresh ones."""
    rng = np.random.default_rng([seed, 7])
    X = rng.uniform(-system.box, system.box, (S, system.model.m))
    F, J = system.model(X), system.model.jacobian(X)
    F = F + noise * F.std(axis=0) * rng.standard_normal(F.shape)
    J = J + noise * np.sqrt((J**2).mean(axis=(0, 2)))[:, None] * rng.standard_normal(J.shape)
    return ub.Problem(X, F, J), rng.uniform(-1.3 * system.box, 1.3 * system.box, (2000, system.model.m))


def matching(found: ub.DecoupledModel, true: ub.DecoupledModel) -> list[int]:
    """Which branch of the one that was found is which of the true ones."""
    from scipy.optimize import linear_sum_assignment

    rows = [W / np.linalg.norm(W, axis=1)[:, None] for W in (true.W0, found.W0)]
    return [int(k) for k in linear_sum_assignment(-np.abs(rows[0] @ rows[1].T))[1]]


def argument(formula: Formula, w: Array) -> tuple[Array, float]:
    """The argument of a shape, v·x + c; of length one where b goes into a."""
    v, c = formula.parameters[1] * w, formula.parameters[2]
    length = 1.0 if 1 in formula.form.free else float(np.linalg.norm(v))
    return v / length, c / length


def parameter_error(found: Formula, true: Formula, X: Array, w_found: Array, w_true: Array) -> float:
    """How far parameters are from the true ones, in %: the argument b w0·x + c of a shape, the values of a polynomial.

    Of the argument, b w0 by its length, and c by half of the range of the argument; where b goes into a, both are
    divided by b. A sine may be turned by π. Values are compared up to scale and a line, which a model may move.
    """
    if true.form.h is None or found.form.h is None or found.form.shape != true.form.shape:
        values, wanted = found(X @ w_found), true(X @ w_true)
        columns = np.stack([values, X @ w_found, np.ones(len(X))], axis=1)
        rest = wanted - columns @ np.linalg.lstsq(columns, wanted, rcond=None)[0]
        return 100.0 * float(np.sqrt(np.mean(rest**2)) / np.std(wanted))
    v, c = argument(found, w_found)
    w, d = argument(true, w_true)
    sign = float(np.sign(v @ w))
    half = 0.5 * float(np.ptp(X @ w))
    shift = float(sign * c - d) if 2 in true.form.free else 0.0
    if true.form.shape == "sine":
        shift -= float(np.pi) * round(shift / np.pi)
    return 100.0 * max(float(np.linalg.norm(sign * v - w) / np.linalg.norm(w)), abs(shift) / half)


class Tally(NamedTuple):
    """What was found for the branches of a system."""

    right: list[bool]
    errors: list[float]
    seconds: float
    outside: tuple[float, float] | None
    told: list[str]


def study(system: System, noise: float, seed: int) -> Tally:
    """Fit a system and look for the forms of its branches."""
    problem, fresh = sampled(system, noise, seed)
    fit = ub.decouple(problem, system.model.rank, rng=0)
    began = time.perf_counter()
    found = ub.formulas(fit)
    seconds = time.perf_counter() - began
    right, errors, told = [], [], []
    for j, k in enumerate(matching(found.model, system.model)):
        true = system.model.branches[j]
        assert isinstance(true, FormulaBranch)
        first = found[k].candidates[0].formula if found[k].candidates else None
        right.append(first is not None and same_form(first, true.formula))
        if first is not None and right[-1]:
            errors.append(parameter_error(first, true.formula, problem.X, found.model.W0[k], system.model.W0[j]))
        if not right[-1]:
            told.append(f"{system.name}: {true.formula.form.name} taken for {first and first.form.name}")
    return Tally(right, errors, seconds, outside_errors(fit, system, fresh), told)


def outside_errors(fit: ub.Fit, system: System, fresh: Array) -> tuple[float, float] | None:
    """The error of the worst output at points outside of the range seen: of the fit, and of its model of formulas."""
    u = fresh @ fit.model.W0.T
    domains = np.array([branch.domain for branch in fit.model.branches])
    beyond = ((u < domains[:, 0]) | (u > domains[:, 1])).any(axis=1)
    F = system.model(fresh)
    beyond &= np.isfinite(F).all(axis=1)
    made = fit.with_formulas()
    if not beyond.any() or not all(isinstance(branch, FormulaBranch) for branch in made.branches):
        return None
    errors = [float(ub.metrics.output_errors(F[beyond], model(fresh[beyond])).max()) for model in (fit.model, made)]
    return errors[0], errors[1]


def random_splines(count: int, first: int) -> tuple[int, int]:
    """Branches that are no form, and how many of them are offered one as exact."""
    from scipy.interpolate import CubicSpline

    offered = branches = 0
    for seed in range(first, first + count):
        rng = np.random.default_rng([seed, 3])
        W0 = rng.standard_normal((2, 3))
        W0 /= np.linalg.norm(W0, axis=1)[:, None]
        curves = [CubicSpline(np.linspace(-1.8, 1.8, 9), rng.standard_normal(9), bc_type="natural") for _ in range(2)]
        model = ub.DecoupledModel.from_parts(W0, rng.standard_normal((2, 2)), None, curves)
        X = rng.uniform(-1.0, 1.0, (S, 3))
        found = ub.formulas(ub.decouple(ub.Problem(X, model(X), model.jacobian(X)), 2, rng=0))
        offered += sum(one.best is not None for one in found)
        branches += len(found)
    return offered, branches


def turned(rng: np.random.Generator, m: int, seed: int) -> Array:
    """Directions (m, m) at right angles to each other; those of the inputs for each third seed."""
    return np.linalg.qr(rng.standard_normal((m, m)))[0] if seed % 3 else np.eye(m)


def products(seed: int) -> list[tuple[Array, Array, int]]:
    """Four systems whose directions the values leave open, inputs, values and rank: xy, squares, x²y, xyz."""
    rng = np.random.default_rng([seed, 1])
    systems: list[tuple[Array, Array, int]] = []
    for kind in ("xy", "squares", "xxy", "xyz"):
        k = int(rng.integers(2, 4)) if kind == "squares" else 3 if kind == "xyz" else 2
        m = int(rng.integers(k, 5)) if k < 3 else k
        X = rng.uniform(-1.0, 1.0, (S, m))
        u = (X @ turned(rng, m, seed).T).T[:k]
        scale, shift = rng.uniform(0.3, 3.0), rng.uniform(-0.5, 0.5) * (seed % 2)
        if kind == "squares":
            systems.append((X, (rng.choice([-1.0, 1.0], k) @ u**2) * scale, k))
        elif kind == "xxy":
            systems.append((X, scale * u[0] ** 2 * u[1], 3))
        else:
            systems.append((X, scale * (u[0] + shift) * np.prod(u[1:], axis=0), 2 if kind == "xy" else 4))
    return systems


def of_products(count: int) -> tuple[int, int, int]:
    """How many such systems there are, in how many all curves become formulas, and how many become worse by that."""
    formulas = worse = 0
    for seed in range(count):
        for X, values, rank in products(seed):
            fit = ub.decouple(ub.Problem(X, values[:, None]), rank, rng=0)
            model = fit.with_formulas()
            before, after = (ub.metrics.output_errors(values[:, None], one(X)).max() for one in (fit.model, model))
            formulas += all(isinstance(branch, FormulaBranch) for branch in model.branches)
            worse += bool(after > max(1.1 * before, 1e-4))
    return 4 * count, formulas, worse


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    systems = [*known_systems(), *(random_system(seed) for seed in range(first, first + count))]
    for noise in (0.0, 0.01):
        tallies = [study(system, noise, i) for i, system in enumerate(systems)]
        right = [one for tally in tallies for one in tally.right]
        errors = np.array([one for tally in tallies for one in tally.errors])
        gains = np.array([a / max(b, 1e-12) for a, b in (t.outside for t in tallies if all(t.right) and t.outside)])
        print(f"noise {100 * noise:g} %: the true form is first in {sum(right)} of {len(right)} branches,")
        near = int((errors <= WITHIN[noise]).sum())
        off = f"median {np.median(errors):.2g} %, worst {errors.max():.2g} %"
        print(f"  its parameters within {WITHIN[noise]:g} % in {near} of {len(errors)} ({off}),")
        seconds = [tally.seconds for tally in tallies]
        print(f"  in {np.median(seconds):.1f} s a system (worst {max(seconds):.1f});")
        ten = f"10 times or more in {int((gains >= 10.0).sum())} of the {len(gains)} systems whose forms are right"
        print(f"  outside, errors fall {np.median(gains):.3g} times (least {gains.min():.2g}; {ten})")
        for tally in tallies:
            for line in tally.told:
                print(f"    {line}")
        sys.stdout.flush()
    offered, branches = random_splines((count + 1) // 2, first)
    print(f"random splines: {offered} of {branches} are offered a form as exact")
    many, whole, worse = of_products(count + 4)
    print(f"products: of {many} systems {whole} become formulas, and {worse} become worse by that")


if __name__ == "__main__":
    main()
