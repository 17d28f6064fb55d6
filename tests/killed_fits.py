"""Fits for the tests of checkpoints, and what tells whether two of them are the same to the last bit.

As a program: some of the fits, each in processes that are killed, one after another, until one comes to the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import unbraid as ub
from unbraid.bases.splines import PlacedSpline
from unbraid.data.fingerprint import marks_of
from unbraid.fitting.checkpoints import checkpoint
from unbraid.methods.base import Polish
from unbraid.runtime.files import replacing


@dataclass(frozen=True)
class OwnSpline(ub.BSpline):
    """A basis that is no part of the library."""

    def place(self, u: Any, evenness: float = 0.0) -> OwnPlaced:
        return OwnPlaced(super().place(u, evenness).breakpoints, self.degree)


@dataclass(frozen=True)
class OwnPlaced(PlacedSpline):
    """Its placement."""


def short(method: Any, steps: int = 8) -> Any:
    """The method with few sweeps and steps."""
    method = replace(method, stopping=replace(method.stopping, max_sweeps=8))
    return method if method.polish is None else replace(method, polish=Polish.with_budget(steps, None))


def problem(values: bool = True, jacobians: bool = True) -> ub.Problem:
    whole, _ = ub.datasets.trig(S=60, rng=0)
    return ub.Problem(whole.X, whole.F if values else None, whole.J if jacobians else None)


BOTH, VALUES = problem(), problem(jacobians=False)
FITS: dict[str, tuple[ub.Problem, dict[str, Any]]] = {
    "default": (BOTH, {"method": short(ub.methods.default())}),
    "values": (VALUES, {"method": short(ub.methods.default())}),
    "jacobians": (problem(values=False), {"method": short(ub.methods.default())}),
    "limited": (BOTH, {"method": ub.methods.default(max_sweeps=8, max_steps=8, max_seconds=3600.0)}),
    "smoothing": (BOTH, {"method": short(ub.methods.default()), "basis": ub.SmoothingSpline(df=10)}),
    "increasing": (
        BOTH,
        {"method": short(ub.methods.default()), "basis": ub.BSpline(df=6), "constraint": ub.Increasing()},
    ),
    "own basis": (BOTH, {"method": short(ub.methods.default()), "basis": OwnSpline(df=8)}),
    "dejonghe2025": (BOTH, {"method": short(ub.methods.dejonghe2025())}),
    "dreesen2015": (BOTH, {"method": short(ub.methods.dreesen2015())}),
    "hollander2017": (BOTH, {"method": short(ub.methods.hollander2017())}),
    "zniyed2021": (BOTH, {"method": short(ub.methods.zniyed2021())}),
    "decuyper2022": (BOTH, {"method": short(ub.methods.decuyper2022())}),
    "init": (BOTH, {"method": short(ub.methods.dejonghe2025()), "init": ub.datasets.trig(S=60, rng=0)[1]}),
}


def fitted(name: str, path: Path | None = None, callback: Callable[[Any], object] | None = None, **more: Any) -> ub.Fit:
    """One of the fits."""
    given, settings = FITS[name]
    return ub.decouple(given, 3, **{"starts": 3, "rng": 0, **settings, **more}, callback=callback, checkpoint=path)


def bits(fit: ub.Fit) -> dict[str, str]:
    """Everything about a fit but how long it took."""
    return dict(marks_of("fit", replace(fit, problem=None, seconds=0.0)))


def fit_and_tell(name: str, path: Path, told: Path, pause: float) -> None:
    """Fit, with a pause after each sweep, writing the checkpoint before it, and write down what came out."""
    checkpoint.EVERY, checkpoint.SHARE = 0.0, float("inf")
    fit = fitted(name, path, lambda progress: time.sleep(pause))
    with replacing(told) as file:
        file.write(json.dumps(bits(fit)).encode())


def written(path: Path) -> int:
    """When the file was written last."""
    return path.stat().st_mtime_ns if path.exists() else 0


def at_work(child: int) -> bool:
    """Whether a process has not ended."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def killed_again_and_again(name: str, path: Path, told: Path, most: int = 20) -> int:
    """Kill each process some time after it has written once; how many were killed. The last one is left in peace."""
    rng, kills = np.random.default_rng(0), 0
    fitted(name)  # which imports what there is to import
    while not told.exists():
        before, child = written(path), os.fork()
        if child == 0:
            fit_and_tell(name, path, told, 0.1 if kills < 3 else 0.005)  # however late these are killed
            os._exit(0)
        while kills < most and written(path) == before and at_work(child):
            time.sleep(0.001)
        if kills < most:
            time.sleep(rng.uniform(0.0, 0.05 if kills else 0.0))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if status not in (0, signal.SIGKILL):
            raise SystemExit("A process failed by itself.")
        kills += status == signal.SIGKILL
    return kills


if __name__ == "__main__":
    for given in sys.argv[2:]:
        at = Path(sys.argv[1], given)
        print(killed_again_and_again(given, at.with_suffix(".checkpoint"), at.with_suffix(".json")))  # noqa: T201
