"""Systems with a known decoupling: the paper's two, and random ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from unbraid.bases import Polynomial
from unbraid.data.problem import Problem
from unbraid.errors import SettingError, as_generator, check_whole, shown
from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch, FittedBranch, FunctionBranch
from unbraid.results.model import DecoupledModel

__all__ = [
    "decuyper",
    "dreesen_a",
    "dreesen_b",
    "monotone",
    "random_system",
    "scale",
    "trig",
]


def __dir__() -> list[str]:
    return __all__


Seed = int | np.random.Generator | None
Kind = Literal["cubic", "sine"]
BOX = 1.5
"""Sample points come from U(-1.5, 1.5) in every input."""


def trig(S: int = 100, rng: Seed = None) -> tuple[Problem, DecoupledModel]:
    """The paper's f_trig: 2 inputs, 2 outputs, 3 trigonometric branches, so a CPD that is not unique.

    Examples
    --------
    >>> problem, truth = trig(S=100, rng=0)
    >>> problem
    Problem(S=100 samples, m=2 inputs, n=2 outputs, values and Jacobians)
    """
    W1 = np.array([[-1.7, -2.3, 2.5], [0.5, -0.5, 0.2]])
    W0 = np.array([[2.1, -1.0], [0.4, -1.8], [-1.6, -0.2]])
    branches = (
        FunctionBranch(lambda u: np.sin(u) + 2.0, np.cos, "sin u + 2"),
        FunctionBranch(lambda u: np.cos(2.0 * u) - 1.5, lambda u: -2.0 * np.sin(2.0 * u), "cos 2u - 1.5"),
        FunctionBranch(lambda u: np.sin(2.0 * u) + 0.5 * u, lambda u: 2.0 * np.cos(2.0 * u) + 0.5, "sin 2u + u/2"),
    )
    return draw_samples(DecoupledModel(W0, W1, branches), S, as_generator(rng))


def monotone(S: int = 100, rng: Seed = None, box: float = BOX) -> tuple[Problem, DecoupledModel]:
    """The paper's monotone system: 3 inputs, 3 outputs, 3 increasing branches, random W0 and W1 in U(-2, 2).

    The paper does not say where samples come from: U(-box, box) here.

    The third branch is the logistic 1 / (1 + e^-u): the paper prints a minus sign, which has a pole at 0
    and decreases.
    """
    generator = as_generator(rng)
    W0, W1 = generator.uniform(-2.0, 2.0, (3, 3)), generator.uniform(-2.0, 2.0, (3, 3))

    def logistic(u: Array) -> Array:
        return 0.5 * (1.0 + np.tanh(0.5 * u))

    branches = (
        FunctionBranch(lambda u: u**3 / 3.0 + u, lambda u: u**2 + 1.0, "u³/3 + u"),
        FunctionBranch(np.exp, np.exp, "exp u"),
        FunctionBranch(logistic, lambda u: logistic(u) * logistic(-u), "1 / (1 + exp -u)"),
    )
    return draw_samples(DecoupledModel(W0, W1, branches), S, generator, box)


def random_system(
    n: int, m: int, r: int, S: int = 100, kind: Kind = "cubic", rng: Seed = None
) -> tuple[Problem, DecoupledModel]:
    """A random system with n outputs, m inputs and r branches: cubic polynomials or sines.

    Rows of W0 have unit length and W1 is normal. Cubic branches lie in every cubic spline space; sine
    branches, sin(ωu + φ) with ω in (1, 2.5), lie in none.

    Examples
    --------
    >>> problem, truth = random_system(n=3, m=4, r=5, S=200, kind="sine", rng=0)
    >>> truth
    DecoupledModel(m=4 inputs, r=5 branches, n=3 outputs)
    """
    for name, value in (("n", n), ("m", m), ("r", r)):
        check_whole(name, value, 1)
    makers: dict[str, Callable[[np.random.Generator, Array], Branch]] = {"cubic": random_cubic, "sine": random_sine}
    if kind not in makers:
        raise SettingError(f"kind must be one of {', '.join(map(repr, makers))}, got {shown(kind)}.")
    generator = as_generator(rng)
    W0 = generator.standard_normal((r, m))
    W0 /= np.linalg.norm(W0, axis=1, keepdims=True)
    W1 = generator.standard_normal((n, r))
    reach = BOX * np.abs(W0).sum(axis=1)
    branches = [makers[kind](generator, np.array([-one, one])) for one in reach]
    return draw_samples(DecoupledModel(W0, W1, branches), S, generator)


def random_cubic(rng: np.random.Generator, span: Array) -> Branch:
    """A cubic with normal coefficients in the powers of u, exactly, as a `Polynomial` branch on `span`."""
    return polynomial_branch(rng.standard_normal(4), span)


def polynomial_branch(powers: Array, span: Array) -> Branch:
    """Σ_p powers[p] u^p, exactly, as a `Polynomial` branch on the symmetric interval `span`."""
    degree = len(powers) - 1
    coordinates = np.polynomial.legendre.poly2leg(powers * span[1] ** np.arange(degree + 1.0))
    basis = Polynomial(degree)
    return FittedBranch(basis, basis.place(span), np.pad(coordinates, (0, degree + 1 - len(coordinates))))


def random_sine(rng: np.random.Generator, span: Array) -> Branch:
    """A branch sin(ωu + φ) with random ω and φ."""
    frequency, phase = float(rng.uniform(1.0, 2.5)), float(rng.uniform(-np.pi, np.pi))
    return FunctionBranch(
        lambda u: np.sin(frequency * u + phase),
        lambda u: frequency * np.cos(frequency * u + phase),
        f"sin({frequency:.3g} u {'-' if phase < 0 else '+'} {abs(phase):.3g})",
        (float(span[0]), float(span[1])),
    )


def draw_samples(
    model: DecoupledModel, S: int, rng: np.random.Generator, box: float = BOX
) -> tuple[Problem, DecoupledModel]:
    """A problem with S points from the box, and the model it comes from."""
    check_whole("S", S, 1)
    X = rng.uniform(-box, box, (S, model.m))
    return Problem(X, model(X), model.jacobian(X)), model


def polynomial_system(
    W0: Array, W1: Array, powers: list[list[float]], S: int, rng: Seed
) -> tuple[Problem, DecoupledModel]:
    """A system W1 g(W0 x) of polynomials, g_j(u) = Σ_p powers[j][p] u^p."""
    branches = []
    for row, coefficients in zip(W0, powers, strict=True):
        reach = BOX * float(np.abs(row).sum())
        branches.append(polynomial_branch(np.array(coefficients), np.array([-reach, reach])))
    return draw_samples(DecoupledModel(W0, W1, branches), S, as_generator(rng))


def decuyper(S: int = 100, rng: Seed = None) -> tuple[Problem, DecoupledModel]:
    """The toy of Decuyper et al. (2022): 2 inputs, 2 outputs, 3 cubic branches.

    Examples
    --------
    >>> decuyper(rng=0)[1]
    DecoupledModel(m=2 inputs, r=3 branches, n=2 outputs)
    """
    W0 = np.array([[1.0, 2.0], [3.0, 1.0], [0.5, 3.0]])
    W1 = np.array([[3.0, 0.5, -1.0], [1.0, 2.0, 3.0]])
    return polynomial_system(W0, W1, [[0, 0, 0.5, 1], [0, 0, 1, 2], [0, 0, 3, 1]], S, rng)


def dreesen_a(S: int = 500, rng: Seed = None) -> tuple[Problem, DecoupledModel]:
    """The first example of Dreesen et al. (2015): 2 inputs, 2 outputs, 2 cubic branches."""
    W0, W1 = np.array([[-3.0, 1.0], [0.0, -8.0]]), np.array([[-2.0, 3.0], [-7.0, -4.0]])
    return polynomial_system(W0, W1, [[0, -2, 1, -2], [2, 3, 7, -1]], S, rng)


def dreesen_b(S: int = 100, rng: Seed = None) -> tuple[Problem, None]:
    """The second example of Dreesen et al. (2015): 3 inputs, 3 outputs, given by its polynomials; rank 4."""
    check_whole("S", S, 1)
    X = as_generator(rng).uniform(-BOX, BOX, (S, 3))
    x, y, z = X.T
    F = [
        -4 * x**2 + 8 * x * z + 6 * x - 3 * z**2 - 8 * z - 6,
        2 * x**2 - 4 * x * z - 3 * x + y**3 + 6 * y**2 * z + 12 * y * z**2 - y + 8 * z**3 + 2 * z**2 + z + 3,
        -2 * x**2 + 4 * x * z + 4 * x - 2 * z**2 - 3 * z - y - 8,
    ]
    zero, one = np.zeros(S), np.ones(S)
    J = [
        [-8 * x + 8 * z + 6, zero, 8 * x - 6 * z - 8],
        [
            4 * x - 4 * z - 3,
            3 * y**2 + 12 * y * z + 12 * z**2 - 1,
            -4 * x + 6 * y**2 + 24 * y * z + 24 * z**2 + 4 * z + 1,
        ],
        [-4 * x + 4 * z + 4, -one, 4 * x - 4 * z - 3],
    ]
    return Problem(X, np.stack(F, axis=-1), np.moveaxis(np.array(J), -1, 0)), None


def scale(S: int = 100, rng: Seed = None, factor: float = 100.0) -> tuple[Problem, None]:
    """Two outputs, one `factor` times as large: factor (cos 4πx1 + x2²) and -sin 3πx2 + x1³ on [0, 1]²; rank 4.

    Its four directions are two, each twice.
    """
    check_whole("S", S, 1)
    X = as_generator(rng).uniform(0.0, 1.0, (S, 2))
    x, y = X.T
    F = [factor * (np.cos(4 * np.pi * x) + y**2), -np.sin(3 * np.pi * y) + x**3]
    J = [
        [-4 * np.pi * factor * np.sin(4 * np.pi * x), 2 * factor * y],
        [3 * x**2, -3 * np.pi * np.cos(3 * np.pi * y)],
    ]
    return Problem(X, np.stack(F, axis=-1), np.moveaxis(np.array(J), -1, 0)), None
