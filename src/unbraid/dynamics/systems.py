"""Dynamic systems whose truth is known, for examples, tests and benchmarks: a record of one, and its model."""

from __future__ import annotations

import numpy as np

from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.dynamics.record import Record
from unbraid.errors import as_generator, check_number, check_whole
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FunctionBranch
from unbraid.results.model import DecoupledModel

SYSTEMS = ("duffing", "wiener_hammerstein", "coupled_tanks", "two_by_two")
"""The functions of this module that make one."""


def duffing(
    T: int = 4000, noise: float = 0.01, rng: int | np.random.Generator | None = None
) -> tuple[Record, StateSpaceModel]:
    """A mass on a hardening spring, m ẍ + c ẋ + k x + k₃ x³ = u, in steps of time: two states, one cubic.

    Parameters
    ----------
    T
        How many samples.
    noise
        The standard deviation of the noise on the outputs, as a share of theirs: 0.01 is 40 dB.
    rng
        Of input and noise.

    Returns
    -------
    record, truth

    Examples
    --------
    >>> import unbraid as ub
    >>> ub.dynamics.systems.duffing(rng=0)
    (Record(T=4000 samples, 1 input, 1 output, dt=0.1),
     StateSpaceModel(order=2, 1 input, 1 output, 1 branch, 18 numbers))
    """
    h, c, k = 0.1, 0.3, 1.0
    A = np.array([[1.0 - h * h * k, h - h * h * c], [-h * k, 1.0 - h * c]])
    B = np.array([[h * h], [h]])
    spring = FunctionBranch(lambda u: u**3, lambda u: 3.0 * u**2, "u³", (-2.0, 2.0))
    W1 = np.array([[-h * h], [-h], [0.0]])
    truth = StateSpaceModel(A, B, [[1.0, 0.0]], [[0.0]], DecoupledModel([[1.0, 0.0, 0.0]], W1, [spring]), dt=h)
    generator = as_generator(rng)
    return observed(truth, low_pass(generator, T, 1, 0.15), noise, generator)


def wiener_hammerstein(
    T: int = 4000, noise: float = 0.01, rng: int | np.random.Generator | None = None
) -> tuple[Record, StateSpaceModel]:
    """A filter, a saturation tanh(2 u), and another filter: four states, one curve. Arguments as of `duffing`."""
    A1, B1, C1 = resonance(0.8, 0.35)
    A2, B2, C2 = resonance(0.7, 0.2)
    A = np.block([[A1, np.zeros((2, 2))], [np.zeros((2, 2)), A2]])
    saturation = FunctionBranch(
        lambda u: np.tanh(2.0 * u), lambda u: 2.0 / np.cosh(2.0 * u) ** 2, "tanh(2 u)", (-1.5, 1.5)
    )
    function = DecoupledModel([[*C1, 0.0, 0.0, 0.0]], np.array([0.0, 0.0, *B2, 0.0])[:, None], [saturation])
    truth = StateSpaceModel(A, [[B1[0]], [B1[1]], [0.0], [0.0]], [[0.0, 0.0, *C2]], [[0.0]], function)
    generator = as_generator(rng)
    return observed(truth, low_pass(generator, T, 1, 0.6), noise, generator)


def coupled_tanks(
    T: int = 8000, noise: float = 0.01, rng: int | np.random.Generator | None = None
) -> tuple[Record, StateSpaceModel]:
    """Two tanks, the upper one flowing into the lower: levels fall by their square roots. Arguments as of `duffing`.

    Levels move slowly, so a record has to be longer to have seen their range.
    """
    h, a1, a2 = 0.1, 1.0, 1.2

    def root(u: Array) -> Array:
        return np.sqrt(np.maximum(u, 1e-6))

    def slope(u: Array) -> Array:
        return 0.5 / root(u)

    flows = [FunctionBranch(root, slope, "√u", (0.05, 9.0)) for _ in range(2)]
    W1 = np.array([[-h * a1, 0.0], [h * a1, -h * a2], [0.0, 0.0]])
    truth = StateSpaceModel(
        np.eye(2),
        [[h], [0.0]],
        [[0.0, 1.0]],
        [[0.0]],
        DecoupledModel([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], W1, flows),
        dt=h,
        rest_input=[1.4],
        rest=[1.96, 1.96 / a2**2],
    )
    generator = as_generator(rng)
    u = 1.4 + 0.45 * low_pass(generator, T, 1, 0.06)
    return observed(truth, np.clip(u, 0.3, 2.7), noise, generator)


def two_by_two(
    T: int = 4000, noise: float = 0.01, rng: int | np.random.Generator | None = None
) -> tuple[Record, StateSpaceModel]:
    """Two inputs, two outputs, three states, two curves: a cubic and a saturation. Arguments as of `duffing`."""
    A = np.array([[0.8, 0.2, 0.0], [-0.2, 0.7, 0.1], [0.0, 0.1, 0.6]])
    B = np.array([[0.5, 0.1], [0.0, 0.4], [0.6, -0.3]])
    C = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, -0.5]])
    D = np.array([[0.0, 0.1], [0.2, 0.0]])
    cubic = FunctionBranch(lambda u: 0.3 * u**3, lambda u: 0.9 * u**2, "0.3 u³", (-2.0, 2.0))
    saturation = FunctionBranch(np.tanh, lambda u: 1.0 / np.cosh(u) ** 2, "tanh(u)", (-3.0, 3.0))
    W0 = np.array([[0.7, 0.0, 0.4, 0.2, 0.0], [0.0, 1.2, -0.5, 0.0, 1.0]])
    W1 = np.array([[-0.25, 0.2], [0.1, 0.5], [-0.1, 0.3], [0.3, 0.0], [0.0, 0.4]])
    truth = StateSpaceModel(A, B, C, D, DecoupledModel(W0, W1, [cubic, saturation]))
    generator = as_generator(rng)
    return observed(truth, low_pass(generator, T, 2, 0.8), noise, generator)


def observed(
    truth: StateSpaceModel, u: Array, noise: float, rng: np.random.Generator
) -> tuple[Record, StateSpaceModel]:
    """A record of a model under u (T, nu), with noise of that share of each output's standard deviation."""
    check_number("noise", noise, 0.0)
    y = truth.simulate(u)
    y = y + noise * y.std(axis=0) * rng.standard_normal(y.shape)
    return Record(u, y, truth.dt), truth


def low_pass(rng: np.random.Generator, T: int, count: int, band: float) -> Array:
    """Random signals (T, count) of standard deviation one, with frequencies up to a share of the highest there is."""
    check_whole("T", T, 2)
    spectrum = np.fft.rfft(rng.standard_normal((T, count)), axis=0)
    spectrum[max(int(band * len(spectrum)) + 1, 2) :] = 0.0
    signal = np.fft.irfft(spectrum, T, axis=0)
    return np.asarray(signal / signal.std(axis=0))


def resonance(radius: float, angle: float) -> tuple[Array, Array, Array]:
    """A, B, C of a filter with a pair of poles radius · e^(± i π angle) and a gain of one at frequency zero."""
    re, im = radius * np.cos(np.pi * angle), radius * np.sin(np.pi * angle)
    A, B, C = np.array([[re, im], [-im, re]]), np.array([1.0, 0.5]), np.array([1.0, 0.3])
    gain = C @ np.linalg.solve(np.eye(2) - A, B)
    return A, B, C / gain
