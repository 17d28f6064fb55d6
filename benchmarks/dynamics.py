"""Dynamic systems: simulation errors on fresh inputs, curves, and time.

    python benchmarks/dynamics.py [draws] [system …]
    python benchmarks/dynamics.py silverbox FILE | pnlss FILE | tanks FILE | steps

Systems whose truth is known, at 40 dB, with their order and rank given and all else by default: the error of simulation
on fresh inputs over the noise (1 is the floor), worst output; how far the curves are off the true ones over the middle
90 % of the range, in % of their own range, once the line that is free and sizes are matched, worst curve; seconds; and
how many draws have an error within 5 % of the floor, and curves within 2 %.

`silverbox`: the record of the Silverbox benchmark, arrays u, y and sampling_rate in an .npz file, with its official
split; errors in mV on the multisine, on the arrow, and on the part of the arrow without extrapolation. `pnlss`: a
polynomial state-space model of all cubic terms is fitted to part of its training record, and decoupled. `tanks`: that
of the cascaded tanks, arrays u_train, y_train, u_test, y_test and sampling_time; errors in V. Nothing is chosen by test
sets: all is by default, from the training part.

`steps`: milliseconds of one Levenberg–Marquardt step that gains, against the length of the record, order and rank.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares

import unbraid as ub
from unbraid.runtime.process import single_blas_thread

ORDERS = {"duffing": (2, 1), "wiener_hammerstein": (4, 1), "coupled_tanks": (2, 2), "two_by_two": (3, 2)}
NOISE, MIDDLE = 0.01, 0.9


def curve_errors(fit: Any, truth: Any, record: Any) -> float:
    """How far the found curves are off the true ones over the middle of their range, in % of that of their values.

    What is free in a state-space model is matched: a true curve is compared with α ĝ(β u + γ) plus a line, by least
    squares. (Moments as well are free: a branch may see what another realisation of the same system saw a sample
    earlier, so inputs are matched as ranges, not sample by sample.) The worst curve counts.
    """
    true_run, run = truth.run(record.u), fit.model.run(record.u, record.y[:50])
    ours, theirs = (
        np.concatenate([one.states, record.u], axis=1) @ model.nonlinearity.W0.T
        for one, model in ((run, fit.model), (true_run, truth))
    )
    if not np.isfinite(ours).all():
        return np.inf
    errors: list[float] = []
    for j, branch in enumerate(truth.nonlinearity.branches):
        low, high = np.quantile(theirs[:, j], [0.5 - MIDDLE / 2, 0.5 + MIDDLE / 2])
        u = np.linspace(low, high, 200)
        true, each = branch(u), []
        for k, found in enumerate(fit.model.nonlinearity.branches):
            if abs(np.corrcoef(theirs[500:, j], ours[500:, k])[0, 1]) > 0.7 or len(errors) == 0:
                each += [match(true, u, found, theirs[:, j], sign * ours[:, k], sign) for sign in (1.0, -1.0)]
        errors.append(min(each) if each else np.inf)
    return max(errors)


def match(true: Any, u: Any, found: Any, theirs: Any, ours: Any, sign: float) -> float:
    """The largest difference of two curves, in % of the range of the true one, after the best match of their inputs."""
    line = np.column_stack([np.ones_like(u), u])

    def off(place: Any) -> Any:
        slope, shift = place
        columns = np.column_stack([line, found(sign * (slope * u + shift))])
        return true - columns @ np.linalg.lstsq(columns, true, rcond=None)[0]

    slope = ours.std() / theirs.std()
    begin = np.array([slope, ours.mean() - slope * theirs.mean()])
    place = least_squares(off, begin, x_scale=np.maximum(np.abs(begin), 0.1 * ours.std())).x
    return float(100.0 * np.abs(off(place)).max() / np.ptp(true))


def systems(draws: int, names: list[str]) -> None:
    """The table of systems whose truth is known."""
    print(
        f"{'system':20}{'error':>8}{'worst':>8}{'curve %':>9}{'worst':>8}{'s':>7}{'within 5 %':>12}{'curve in 2 %':>14}"
    )
    for name in names:
        order, rank = ORDERS[name]
        rows = []
        for seed in range(draws):
            draw = getattr(ub.dynamics.systems, name)
            (record, truth), (fresh, _) = draw(noise=NOISE, rng=seed), draw(noise=NOISE, rng=1000 + seed)
            began = time.perf_counter()
            fit = ub.dynamics.state_space(record, order=order, rank=rank, rng=seed)
            seconds = time.perf_counter() - began
            clean = truth.run(fresh.u).y
            error = float(np.max(fit.error_on(fresh).rmse / (NOISE * clean.std(axis=0))))
            rows.append((error, curve_errors(fit, truth, fresh), seconds))
            print(f"  {name} {seed}: {error:.3f} {rows[-1][1]:.2f} % {fit.basis!r} {seconds:.1f} s", flush=True)
        error, curve, seconds = np.array(rows).T
        print(
            f"{name:20}{np.median(error):8.3f}{error.max():8.3f}{np.median(curve):9.2f}{curve.max():8.2f}{np.median(seconds):7.1f}"
            f"{f'{np.sum(error <= 1.05)} of {draws}':>12}{f'{np.sum(curve <= 2.0)} of {draws}':>14}",
            flush=True,
        )


SPLIT = {"multisine": (105712, 127400), "arrow": (100, 40575), "inside": (100, 32100)}


def silverbox(path: str) -> None:
    """The Silverbox benchmark."""
    data = np.load(path)
    u, y, dt = data["u"], data["y"], 1.0 / float(data["sampling_rate"])
    train = ub.dynamics.Record(u[40650:105712], y[40650:105712], dt)
    tests = {name: ub.dynamics.Record(u[a:b], y[a:b], dt) for name, (a, b) in SPLIT.items()}
    print(f"{'model':26}{'train':>8}" + "".join(f"{name:>11}" for name in tests) + f"{'numbers':>9}{'s':>7}")

    def told(name: str, fit: Any, seconds: float) -> None:
        errors = [1e3 * fit.error_on(record).rmse[0] for record in tests.values()]
        cells = "".join(f"{error:11.4f}" for error in errors)
        print(
            f"{name:26}{1e3 * fit.simulation_error.rmse[0]:8.4f}{cells}{fit.model.numbers:9}{seconds:7.1f} ",
            fit.basis,
            flush=True,
        )

    lags: dict[str, Any] = {"input_lags": (0, 1, 2), "output_lags": (1, 2)}
    for rank in (1, 2):
        began = time.perf_counter()
        fit = ub.dynamics.state_space(train, order=2, rank=rank, rng=0)
        told(f"state space, rank {rank}", fit, time.perf_counter() - began)
        began = time.perf_counter()
        fit = ub.dynamics.narx(train, rank=rank, rng=0, **lags)
        told(f"NARX, rank {rank}", fit, time.perf_counter() - began)


def cubic_features(phi: Any) -> tuple[Any, Any]:
    """All monomials of degree 0, 2 and 3 of φ (T, m): (T, K), and their derivatives (T, K, m)."""
    from itertools import combinations_with_replacement

    T, m = phi.shape
    powers = [
        np.bincount(np.array(chosen, dtype=int), minlength=m)
        for degree in (0, 2, 3)
        for chosen in combinations_with_replacement(range(m), degree)
    ]
    values, slopes = np.empty((T, len(powers))), np.zeros((T, len(powers), m))
    for k, power in enumerate(powers):
        values[:, k] = np.prod(phi**power, axis=1)
        for i in np.flatnonzero(power):
            lower = power.copy()
            lower[i] -= 1
            slopes[:, k, i] = power[i] * np.prod(phi**lower, axis=1)
    return values, slopes


class PolynomialModel:
    """x⁺ and y as cubic polynomials of φ = [x; u]: L φ + E ζ(φ), ζ all monomials of degree 0, 2 and 3 (PNLSS)."""

    def __init__(self, L: Any, E: Any) -> None:
        self.L, self.E = L, E

    def values(self, phi: Any) -> Any:
        """The outputs [x⁺; y] at φ, and the monomials with their derivatives."""
        from unbraid.dynamics.models.function import Outputs

        zeta, slopes = cubic_features(phi)
        return Outputs(phi @ self.L.T + zeta @ self.E.T, (zeta, slopes))  # type: ignore[arg-type]

    def slopes(self, outputs: Any, width: int) -> Any:
        """The derivatives of the outputs by the first entries of φ."""
        return self.L[:, :width] + np.einsum("nk,tkm->tnm", self.E, outputs.G[1][:, :, :width])

    def f(self, phi: Any) -> Any:
        """The nonlinear part alone."""
        return cubic_features(np.atleast_2d(phi))[0] @ self.E.T


def fit_polynomial(linear: Any, record: Any, steps: int = 100) -> tuple[Any, float]:
    """A polynomial state-space model by Levenberg–Marquardt on the simulation error, from a linear one; its rmse.

    The state before the record is free as well.
    """
    from unbraid.dynamics.models.feedback import Feedback
    from unbraid.dynamics.models.recursions import recursion_band, solve_recursion
    from unbraid.dynamics.models.trajectory import follow, solve_trajectory

    nx, ny = linear.order, linear.ny
    n, feedback = nx + ny, Feedback(nx, (1,), ny, nx + ny)
    L = np.block([[linear.A, linear.B], [linear.C, linear.D]])
    model = PolynomialModel(L, np.zeros((n, cubic_features(np.zeros((1, L.shape[1])))[0].shape[1])))
    past, mu = np.zeros((1, nx)), 1e-3
    v, y = record.u, record.y
    done = follow(model, feedback, v, past, np.ones(nx))
    guess = done.f[:, :nx]
    there: Any = solve_trajectory(model, feedback, v, past, guess)
    error = float(np.sum((there.values.f[:, nx:] - y) ** 2))
    for _ in range(steps):
        M, zeta = model.slopes(there.values, nx), there.values.G[0]
        features = np.concatenate([there.phi, zeta], axis=1).T
        K = len(features)
        force = np.zeros((n * K + nx, len(v), n))
        for i in range(n):
            force[i * K : (i + 1) * K, :, i] = features
        force[n * K :, 0] = M[0].T
        x = solve_recursion(recursion_band(M[:, :nx], (1,)), np.ascontiguousarray(force[..., :nx]))
        D = force[..., nx:]
        D += np.einsum("ptx,tyx->pty", feedback.gather(x, np.zeros((n * K + nx, 1, nx))), M[:, nx:])
        rows = D.reshape(n * K + nx, -1)
        N, right = rows @ rows.T, -rows @ (there.values.f[:, nx:] - y).ravel()
        for _ in range(8):
            ridge = np.diag(mu * np.diagonal(N) + 1e-14 * np.diagonal(N).max())
            both = np.linalg.solve(N + ridge, right)
            step, before = both[: n * K].reshape(n, K), past + both[n * K :]
            trial = PolynomialModel(model.L + step[:, : L.shape[1]], model.E + step[:, L.shape[1] :])
            then: Any = solve_trajectory(trial, feedback, v, before, there.fed(feedback))
            lower = np.inf if then is None else float(np.sum((then.values.f[:, nx:] - y) ** 2))
            if lower < error:
                break
            mu *= 6.0
        else:
            break
        gained, model, past, there, error, mu = error - lower, trial, before, then, lower, max(0.1 * mu, 1e-12)
        if gained < 1e-6 * error:
            break
    return model, float(np.sqrt(error / y.size))


TRANSIENT = 1000
"""Samples after which it does not matter where a test began."""


def rms(off: Any) -> float:
    """The root of the mean square."""
    return float(np.sqrt(np.mean(np.square(off))))


def simulate_polynomial(model: PolynomialModel, record: Any) -> float:
    """The error of a polynomial model on a record, from rest and after the transient."""
    from unbraid.dynamics.models.feedback import Feedback
    from unbraid.dynamics.models.trajectory import follow

    ny = record.y.shape[1]
    nx = len(model.L) - ny
    done = follow(model, Feedback(nx, (1,), ny, nx + ny), record.u, np.zeros((1, nx)), np.ones(nx))
    return rms((done.f[:, nx:] - record.y)[TRANSIENT:])


def pnlss(path: str) -> None:
    """A polynomial model of part of the Silverbox's training record, decoupled; signals in standard deviations."""
    data = np.load(path)
    u, y = data["u"][40650:48842], data["y"][40650:48842]
    size = y.std()
    train = ub.dynamics.Record(u / u.std(), y / size, 1.0 / float(data["sampling_rate"]))
    linear = ub.dynamics.state_space(train, order=2, rank=0).model
    assert isinstance(linear, ub.dynamics.StateSpaceModel)
    full, error = fit_polynomial(linear, train)
    first, last = SPLIT["multisine"]
    test = ub.dynamics.Record(data["u"][first:last] / u.std(), data["y"][first:last] / size, train.dt)
    tested = simulate_polynomial(full, test)

    def told(name: str, errors: tuple[float, float], numbers: int, seconds: float) -> None:
        cells = "".join(
            f"{1e3 * size * one:9.4f}{one / of:11.3f}" for one, of in zip(errors, (error, tested), strict=True)
        )
        print(f"{name:20}{cells}{numbers:9}{seconds:7.1f}", flush=True)

    print(f"{'model':20}{'train':>9}{'over full':>11}{'test':>9}{'over full':>11}{'numbers':>9}{'s':>7}")
    told("all cubic terms", (error, tested), full.L.size + full.E.size, 0.0)
    nx = linear.order
    parts = full.L[:nx, :nx], full.L[:nx, nx:], full.L[nx:, :nx], full.L[nx:, nx:]
    for rank in (1, 2):
        began = time.perf_counter()
        fit = ub.dynamics.decouple(*parts, full.f, train, rank, rng=0)
        seconds = time.perf_counter() - began
        off = fit.model.run(test.u).y - test.y
        errors = fit.simulation_error.rmse[0], rms(off[TRANSIENT:])
        told(f"decoupled, rank {rank}", errors, fit.model.numbers, seconds)


def tanks(path: str) -> None:
    """The cascaded tanks benchmark: order and rank by the automatic choice."""
    data = np.load(path)
    dt = float(data["sampling_time"])
    record = ub.dynamics.Record(data["u_train"], data["y_train"], dt)
    test = ub.dynamics.Record(data["u_test"], data["y_test"], dt)
    began = time.perf_counter()
    fit = ub.dynamics.state_space(record, rng=0)
    seconds = time.perf_counter() - began
    print(fit)
    print(f"test {fit.error_on(test).rmse[0]:.3f} V, {seconds:.1f} s")


def steps() -> None:
    """Seconds of one step."""
    from unbraid.bases.projection import Projection
    from unbraid.dynamics.identifying.search import CUBIC, with_branches
    from unbraid.dynamics.models.feedback import Course, Feedback
    from unbraid.dynamics.simulating.candidate import Candidate
    from unbraid.dynamics.simulating.steps import SimulationSteps

    print(f"{'T':>8}{'order':>7}{'rank':>6}{'ms a step':>11}{'µs a sample':>13}")
    rng = np.random.default_rng(0)
    for T, order, rank in (
        *((T, 2, 1) for T in (1000, 4000, 16_000, 64_000)),
        *((8000, order, 1) for order in (2, 4, 8)),
        *((8000, 4, rank) for rank in (1, 2, 4)),
    ):
        A = 0.9 * np.linalg.qr(rng.standard_normal((order, order)))[0]
        L = np.block([[A, rng.standard_normal((order, 1))], [rng.standard_normal((1, order)), np.zeros((1, 1))]])
        u = rng.standard_normal((T, 1))
        feedback = Feedback(order, (1,), 1, order + 1)
        none = np.zeros((order + 1, 0))
        model = Candidate(
            L,
            none[:, :0].T.reshape(0, order + 1),
            none,
            np.zeros(order + 1),
            None,
            np.zeros((0, 0)),
            (np.zeros((1, order)),),
        )
        course = Course(u, np.zeros((T, 1)), np.ones((T, 1)), np.zeros((1, order)))
        straight = SimulationSteps(feedback, (course,), None, None).simulate(model)
        assert straight is not None
        y = straight[0].values.f[:, -1:]
        y = y + 0.1 * y**3 / y.var() + 0.01 * y.std() * rng.standard_normal(y.shape)  # so that there is much to gain
        solver = SimulationSteps(feedback, (replace(course, y=y),), CUBIC, Projection.onto([None] * rank), frozenset())
        point = solver.point(with_branches(model, straight, solver, rng))
        assert point is not None
        times: list[float] = []
        for _ in range(40):
            began = time.perf_counter()
            point = solver.advance(point)
            if point.moved and len(times) < 9:  # one that is taken back costs less
                times.append(time.perf_counter() - began)
        print(f"{T:8}{order:7}{rank:6}{1e3 * np.median(times):11.1f}{1e6 * np.median(times) / T:13.2f}", flush=True)


def main() -> None:
    """What was asked for."""
    words = sys.argv[1:]
    with single_blas_thread():
        if words[:1] == ["silverbox"]:
            silverbox(words[1])
        elif words[:1] == ["pnlss"]:
            pnlss(words[1])
        elif words[:1] == ["tanks"]:
            tanks(words[1])
        elif words == ["steps"]:
            steps()
        else:
            draws = int(words.pop(0)) if words and words[0].isdigit() else 10
            systems(draws, words or list(ORDERS))


if __name__ == "__main__":
    main()
