"""Exported models against the models themselves: how far they differ, and how fast they are.

    python benchmarks/export.py [accuracy] [speed]

Prints tables in Markdown: of fits in every basis, the worst difference of values and Jacobians, in shares of the
largest one, at points inside and outside of the range of the samples; and the time of a call. A dash stands for what is
not installed.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat, savemat

import unbraid as ub
from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.errors import UnbraidError
from unbraid.kernels.arrays import Array
from unbraid.results.worth.fresh import beyond_training

BASES: tuple[Basis, ...] = (
    ub.BSpline(12),
    ub.PiecewiseLinear(8),
    ub.NaturalCubic(8),
    ub.SmoothingSpline(),
    ub.Polynomial(9),
)
SHAPES: tuple[Constraint | None, ...] = (None, ub.Increasing())
POINTS = 20_000
SIZES = (1, 10**3, 10**6)
SECONDS = 0.3
"""How long a call is repeated."""
DRIVER = """
#include "{name}.h"
void many(int S, const double *X, double *F)
{{
    int s;
    for (s = 0; s < S; s++)
        {name}_values(X + {m} * s, F + {n} * s);
}}
void many_jacobians(int S, const double *X, double *J)
{{
    int s;
    for (s = 0; s < S; s++)
        {name}_jacobian(X + {m} * s, (double (*)[{m}])(J + {n} * {m} * s));
}}
"""
Exported = tuple[Callable[[Array], Array], Callable[[Array], Array] | None]
"""The values of an exported model, and its Jacobians, if it has them."""


def in_c(model: ub.DecoupledModel, folder: Path, compiler: str = "gcc") -> Exported:
    """The model in C, called at many points by a loop in C."""
    if shutil.which(compiler) is None:
        raise FileNotFoundError(compiler)
    name = f"exported_{len(list(folder.iterdir()))}"
    model.export(folder / f"{name}.c")
    (folder / "driver.c").write_text(DRIVER.format(name=name, m=model.m, n=model.n))
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", f"{name}.so", "driver.c", f"{name}.c", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / f"{name}.so"))

    def called(function: str, X: Array, shape: tuple[int, ...]) -> Array:
        X, out = np.ascontiguousarray(X), np.empty((len(X), *shape))
        pointers = (ctypes.c_void_p(X.ctypes.data), ctypes.c_void_p(out.ctypes.data))
        library[function](ctypes.c_int(len(X)), *pointers)
        return out

    return (
        lambda X: called("many", X, (model.n,)),
        lambda X: called("many_jacobians", X, (model.n, model.m)),
    )


def in_python(model: ub.DecoupledModel, folder: Path) -> Exported:
    """The module that needs NumPy alone."""
    (path,) = model.export(folder / "exported.py")
    names: dict[str, Any] = {}
    exec(path.read_text(encoding="ascii"), names)
    return names["values"], names["jacobian"]


def in_octave(model: ub.DecoupledModel, folder: Path) -> Exported:
    """The function for MATLAB, in Octave."""
    octave = shutil.which("octave-cli") or shutil.which("octave")
    if octave is None:
        raise FileNotFoundError("octave")
    model.export(folder / "exported.m")

    def results(X: Array) -> Any:
        savemat(folder / "points.mat", {"X": X})
        script = "load('points.mat'); [F, J] = exported(X); save('-v6', 'results.mat', 'F', 'J');"
        subprocess.run([octave, "--quiet", "--no-init-file", "--eval", script], cwd=folder, check=True)
        return loadmat(folder / "results.mat")

    return lambda X: np.asarray(results(X)["F"]), lambda X: np.asarray(results(X)["J"])


def in_onnx(model: ub.DecoupledModel, folder: Path) -> Exported:
    """The graph, in onnxruntime."""
    import onnxruntime  # type: ignore[import-untyped, unused-ignore]

    (path,) = model.export(folder / "exported.onnx", jacobian=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    return lambda X: np.asarray(session.run(None, {given.name: X})[0]), lambda X: np.asarray(
        session.run(None, {given.name: X})[1]
    )


def in_onnx_without_jacobian(model: ub.DecoupledModel, folder: Path) -> Exported:
    """The graph of the values alone, in onnxruntime, for its speed."""
    import onnxruntime  # type: ignore[import-untyped, unused-ignore]

    (path,) = model.export(folder / "values.onnx")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    return lambda X: np.asarray(session.run(None, {given.name: X})[0]), None


def in_torch(model: ub.DecoupledModel, folder: Path) -> Exported:
    """The module of PyTorch."""
    import torch

    from unbraid import networks

    module = networks.module(model, dtype=torch.float64)  # type: ignore[attr-defined, unused-ignore]

    def values(X: Array) -> Array:
        with torch.no_grad():
            return np.asarray(module(torch.from_numpy(X)).numpy())

    return values, None


FORMATS: dict[str, Callable[[ub.DecoupledModel, Path], Exported]] = {
    "C, gcc": in_c,
    "C, clang": lambda model, folder: in_c(model, folder, "clang"),
    "Python": in_python,
    "Octave": in_octave,
    "ONNX": in_onnx,
    "PyTorch": in_torch,
}
TIMED: dict[str, Callable[[ub.DecoupledModel, Path], Exported]] = {
    "C, gcc": in_c,
    "C, clang": lambda model, folder: in_c(model, folder, "clang"),
    "Python": in_python,
    "ONNX": in_onnx_without_jacobian,
    "PyTorch": in_torch,
    "`model(X)`": lambda model, _: (model.__call__, None),
}


def fitted(basis: Basis, constraint: Constraint | None) -> ub.DecoupledModel | None:
    """A model of few branches; None where the basis carries no constraint."""
    if constraint is not None and basis.refusal() is not None:
        return None
    problem, truth = (ub.datasets.trig if constraint is None else ub.datasets.monotone)(S=300, rng=0)
    return ub.decouple(problem, truth.rank, basis=basis, constraint=constraint, starts=16, rng=0).model


def exported(name: str, model: ub.DecoupledModel, folder: Path, formats: dict[str, Any]) -> Exported | None:
    """The model in a format; None where that cannot be had."""
    try:
        return formats[name](model, folder)  # type: ignore[no-any-return]
    except (ImportError, AttributeError, FileNotFoundError, UnbraidError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return None


def worst(own: Exported, model: ub.DecoupledModel, X: Array) -> float:
    """The largest difference of values and Jacobians, in shares of the largest value or derivative."""
    values, jacobian = own
    pairs = [(values(X), model(X))]
    if jacobian is not None:
        pairs.append((jacobian(X), model.jacobian(X)))
    return max(float(np.abs(found - expected).max() / np.abs(expected).max()) for found, expected in pairs)


def accuracy() -> None:
    """The table of differences, inside / outside."""
    print("| basis | " + " | ".join(FORMATS) + " |")
    print("|---" * (1 + len(FORMATS)) + "|")
    for basis in BASES:
        for constraint in SHAPES:
            model = fitted(basis, constraint)
            if model is None:
                continue
            X = np.random.default_rng(1).uniform(-4.0, 4.0, (POINTS, model.m))
            beyond = beyond_training(model, X)
            cells = []
            with tempfile.TemporaryDirectory() as folder:
                for name in FORMATS:
                    own = exported(name, model, Path(folder), FORMATS)
                    both = [] if own is None else [f"{worst(own, model, X[part]):.0e}" for part in (~beyond, beyond)]
                    cells.append(" / ".join(both) or "–")
            shape = "" if constraint is None else ", increasing"
            print(f"| `{type(basis).__name__}`{shape} | " + " | ".join(cells) + " |", flush=True)


def seconds_of(call: Callable[[Array], Array], X: Array) -> float:
    """The shortest time of a call, of as many as there is time for."""
    best, end = np.inf, time.perf_counter() + SECONDS
    while time.perf_counter() < end or best == np.inf:
        start = time.perf_counter()
        call(X)
        best = min(best, time.perf_counter() - start)
    return best


def time_text(seconds: float) -> str:
    """A time with its unit."""
    unit, size = next(((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3)) if seconds >= size), ("µs", 1e-6))
    return f"{seconds / size:.3g} {unit}"


def speed() -> None:
    """The table of times, and the time of one evaluation in C."""
    model = fitted(ub.BSpline(12), None)
    assert model is not None
    rng = np.random.default_rng(1)
    print("| points | " + " | ".join(TIMED) + " |")
    print("|---" * (1 + len(TIMED)) + "|")
    with tempfile.TemporaryDirectory() as folder:
        every = {name: exported(name, model, Path(folder), TIMED) for name in TIMED}
        for S in SIZES:
            X = rng.uniform(-1.5, 1.5, (S, model.m))
            times = ["–" if own is None else time_text(seconds_of(own[0], X)) for own in every.values()]
            print(f"| {S:,} | " + " | ".join(times) + " |", flush=True)
        for name in ("C, gcc", "C, clang"):
            own = every[name]
            if own is not None and own[1] is not None:
                X = rng.uniform(-1.5, 1.5, (10**5, model.m))
                values, jacobian = (seconds_of(call, X) / len(X) for call in (own[0], own[1]))
                print(f"\n{name}, one evaluation: {1e9 * values:.0f} ns, its Jacobian {1e9 * jacobian:.0f} ns")


def main() -> None:
    """Print the tables that were asked for, or both."""
    asked = sys.argv[1:] or ["accuracy", "speed"]
    for name in asked:
        {"accuracy": accuracy, "speed": speed}[name]()
        print()


if __name__ == "__main__":
    main()
