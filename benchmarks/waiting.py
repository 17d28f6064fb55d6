"""How long people wait: an earlier version and this one, alternating, on the same data; time and what was found.

    python benchmarks/waiting.py OTHER [seeds] [--jobs=N] [--patience=K] [case …]

OTHER is a checkout of the version to compare with (`git worktree add ../other COMMIT`), which runs in the environment
of this one. Every fit has a process of its own; what is timed is the fit alone, wall clock and CPU. A row is a case:
medians over the seeds of seconds and of their ratio; then the ratio of what was found, median and worst: of the
objective where B-splines were asked for, and otherwise of the variance that the score of a smoothed fit stands for
(`fit.smoothing.score`), less being better; last, the same of errors on fresh points (worst output). Where helper
processes are used they have begun before the clock starts, as they have in all fits of a session but the first; CPU is
that of the process that asks. `--jobs=1`: this version without them. `--patience=4`: where the other version takes
hours, it is ended (`max_seconds`) after four times what this one took; how often is in the last column, and what was
found is then compared by errors alone. `seeds` is how many, or which, as in 3-6.

Cases: f_trig; engine-like; wing weight with B-splines and with the default; sines; values alone; wide ones, after a
random network of layers 80-60-40-10; `rank="auto"`, true rank 4. Then, for this version, evaluation against NumPy's
sine.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FRESH = 1000


class Task(NamedTuple):
    """A fit: samples and fresh ones to test on, the rank, and further settings."""

    problem: Any
    fresh: Any
    rank: Any
    settings: dict[str, Any]


def split(problem: Any, S: int) -> tuple[Any, Any]:
    """The first S samples, and the others."""
    return problem.take(slice(0, S)), problem.take(slice(S, None))


def trig(seed: int) -> Task:
    """The paper's f_trig."""
    import unbraid as ub

    return Task(*split(ub.datasets.trig(S=100 + FRESH, rng=seed)[0], 100), 3, {})


def engine(seed: int) -> Task:
    """Two outputs of three inputs with saturation, as of an engine map: no decoupled function of rank 6."""
    import unbraid as ub

    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.7, 1.3, 3), rng.uniform(0.7, 1.3, 3)

    def f(x: Any) -> Any:
        speed, load, spark = x.T
        torque = (
            a[0] * np.tanh(2 * load) * (1 - (speed - 0.5 * a[1]) ** 2) - a[2] * (spark - 0.4 * speed - 0.3 * load) ** 2
        )
        heat = b[0] * np.exp(-b[1] * speed) * load + b[2] * np.log1p(np.exp(3 * (load - speed * spark)))
        return np.stack([torque, heat], axis=1)

    return Task(*split(ub.Problem.from_function(f, rng.uniform(0, 1, (700 + FRESH, 3))), 700), 6, {})


def wing(seed: int) -> Task:
    """The weight of a wing, ten inputs."""
    import unbraid as ub
    from regret_cases import ENGINEERING

    function, limits = ENGINEERING["wing weight"]
    low, high = np.array(limits, dtype=float).T
    X = np.random.default_rng(seed).uniform(low, high, (200 + FRESH, len(low)))
    return Task(*split(ub.Problem.from_function(lambda x: function(x)[:, None], X), 200), 8, {})


def wing_splines(seed: int) -> Task:
    """The same with B-splines."""
    import unbraid as ub

    return wing(seed)._replace(settings={"basis": ub.BSpline(12)})


def sines(seed: int) -> Task:
    """A random decoupled system."""
    import unbraid as ub

    return Task(*split(ub.datasets.random_system(3, 3, 5, 200 + FRESH, "sine", rng=seed)[0], 200), 5, {})


def values(seed: int) -> Task:
    """Values alone, with 1 % noise."""
    import unbraid as ub

    problem, _ = ub.datasets.random_system(2, 6, 4, 500 + FRESH, "sine", rng=seed)
    some, fresh = split(problem, 500)
    noise = 0.01 * some.F.std(axis=0) * np.random.default_rng([seed, 1]).standard_normal(some.F.shape)
    return Task(ub.Problem(some.X, some.F + noise), fresh, 4, {})


def wide(rank: int, seed: int) -> Task:
    """A random network of layers 80-60-40-10, with its Jacobians."""
    import unbraid as ub

    rng = np.random.default_rng(seed)
    layers = [rng.standard_normal((o, i)) * np.sqrt(2 / i) for i, o in ((80, 60), (60, 40), (40, 10))]
    X = np.maximum(rng.standard_normal((360 + FRESH, 80)), -0.2)
    hidden, J = X, np.broadcast_to(np.eye(80), (len(X), 80, 80))
    for W in layers[:-1]:
        z = hidden @ W.T
        hidden = np.where(z >= 0, z, 0.2 * np.expm1(np.minimum(z, 0.0)))
        J = np.where(z >= 0, 1.0, 0.2 * np.exp(np.minimum(z, 0.0)))[:, :, None] * (W @ J)
    return Task(*split(ub.Problem(X, hidden @ layers[-1].T, layers[-1] @ J), 360), rank, {})


def auto(seed: int) -> Task:
    """The rank is to be found: 4, with 1 % noise."""
    import unbraid as ub

    problem, _ = ub.datasets.random_system(3, 3, 4, 200 + FRESH, "sine", rng=seed)
    some, fresh = split(problem, 200)
    rng = np.random.default_rng([seed, 1])
    F = some.F + 0.01 * some.F.std(axis=0) * rng.standard_normal(some.F.shape)
    J = some.J + 0.01 * np.sqrt(np.mean(some.J**2)) * rng.standard_normal(some.J.shape)
    return Task(ub.Problem(some.X, F, J), fresh, "auto", {})


CASES: dict[str, Callable[[int], Task]] = {
    "f_trig": trig,
    "engine": engine,
    "wing-BSpline": wing_splines,
    "wing": wing,
    "sines": sines,
    "values": values,
    "wide-10": lambda seed: wide(10, seed),
    "wide-20": lambda seed: wide(20, seed),
    "auto": auto,
}


def measure(case: str, seed: int, jobs: int | None, limit: float | None) -> dict[str, float]:
    """One fit in this process, in so many seconds at most; versions of one process know no `jobs`."""
    import unbraid as ub

    task = CASES[case](seed)
    ub.decouple(ub.datasets.trig(S=40, rng=0)[0], 1, starts=1, rng=0)  # what is imported late is not waited for
    knows = "jobs" in inspect.signature(ub.decouple).parameters
    settings = {**task.settings, "jobs": jobs} if knows else dict(task.settings)
    if limit is not None:
        settings["method"] = ub.methods.default(max_seconds=limit)
    if knows and jobs != 1:
        begin_helpers()
    began, cpu = time.perf_counter(), time.process_time()
    fit = ub.decouple(task.problem, task.rank, rng=seed, **settings)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    cut = fit.status is ub.Status.OUT_OF_TIME
    found = fit.objective if fit.smoothing is None or task.settings else float(np.exp(fit.smoothing.score))
    error = float(ub.metrics.output_errors(task.fresh.F, fit.model(task.fresh.X)).max())
    return {"seconds": seconds, "cpu": cpu, "found": found, "error": error, "cut": cut}


def begin_helpers() -> None:
    """Have as many helper processes begin as there are cores, as after other fits, and wait for them."""
    from unbraid.runtime.helpers import DEMAND, IDLE, LONG, Helpers, cores

    DEMAND.gains(LONG)
    with Helpers(cores()):
        for helper in IDLE:
            helper.wait()


def measured_in(source: Path, case: str, seed: int, jobs: str, limit: float | None = None) -> dict[str, float]:
    """One fit of the version whose package is in a folder, in a process of its own."""
    words = [sys.executable, __file__, "--one", case, str(seed), jobs, "" if limit is None else str(limit)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def measured_pair(case: str, other: Path, seed: int, jobs: str, patience: float | None) -> list[dict[str, float]]:
    """The same fit by the other version and by this one; the other is ended where it takes more patience than given."""
    now = measured_in(Path(__file__).parent.parent / "src", case, seed, jobs)
    before = measured_in(other / "src", case, seed, jobs, None if patience is None else patience * now["seconds"])
    told = [
        f"{one['seconds']:.1f} s{' (cut)' if one['cut'] else ''}, {one['found']:.4g}, {one['error']:.4g} %"
        for one in (before, now)
    ]
    print(f"  {case}, seed {seed}: {told[0]}; now {told[1]}", file=sys.stderr, flush=True)
    return [before, now]


def compare(case: str, other: Path, seeds: range, jobs: str, patience: float | None) -> str:
    """The row of a case."""
    pairs = [measured_pair(case, other, seed, jobs, patience) for seed in seeds]
    times = np.array([[one["seconds"] for one in pair] for pair in pairs])
    cpu = np.median([[one["cpu"] for one in pair] for pair in pairs], axis=0)
    found = np.array([max(b["found"], 1e-24) / max(a["found"], 1e-24) for a, b in pairs if not a["cut"]] or [np.nan])
    error = np.array([max(b["error"], 1e-9) / max(a["error"], 1e-9) for a, b in pairs])
    before, now = np.median(times, axis=0)
    faster = np.median(times[:, 0] / times[:, 1])
    return (
        f"{case:14}{before:8.2f}{now:8.2f}{faster:7.2f}{cpu[0]:9.2f}{cpu[1]:7.2f}{np.median(found):9.3f}"
        f"{found.max():8.3f}{np.median(error):9.3f}{error.max():8.3f}{sum(bool(a['cut']) for a, _ in pairs):5d}"
    )


def evaluation() -> None:
    """One point and a million, for this version."""
    import unbraid as ub
    from unbraid.runtime.process import single_blas_thread

    problem, _ = ub.datasets.trig(S=100, rng=0)
    model = ub.decouple(problem, 3, rng=0).model
    point, X = problem.X[:1], np.random.default_rng(0).uniform(-1.5, 1.5, (1_000_000, 2))
    A, B = model.W0.T.copy(), model.W1.T.copy()

    def least(work: Callable[[], object], times: int, repeat: int) -> float:
        best = np.inf
        for _ in range(repeat):
            began = time.perf_counter()
            for _ in range(times):
                work()
            best = min(best, (time.perf_counter() - began) / times)
        return float(best)

    with single_blas_thread():
        one, both = least(lambda: model(point), 1000, 7), least(lambda: model.jacobian(point), 1000, 7)
        many, sine = least(lambda: model(X), 1, 7), least(lambda: np.sin(X @ A) @ B, 1, 7)
    print(f"\none point {1e6 * one:.0f} µs, its Jacobian {1e6 * both:.0f} µs")
    print(f"a million points {many:.3f} s, np.sin(X @ A) @ B {sine:.3f} s: {many / sine:.2f}")


def option(name: str) -> str:
    """What was given for an option, or nothing."""
    return next((word.removeprefix(f"--{name}=") for word in sys.argv if word.startswith(f"--{name}=")), "")


def main() -> None:
    """Compare, or measure one fit for the process that compares."""
    if sys.argv[1:2] == ["--one"]:
        case, seed, jobs, limit = sys.argv[2:6]
        print(json.dumps(measure(case, int(seed), int(jobs) if jobs else None, float(limit) if limit else None)))
        return
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    patience = float(option("patience")) if option("patience") else None
    other, *words = [word for word in sys.argv[1:] if not word.startswith("--")]
    first, _, last = words.pop(0).rpartition("-") if words and words[0][0].isdigit() else ("0", "", "9")
    seeds = range(int(first), int(last) + 1) if first else range(int(last))
    heads = {"case": -14, "before s": 8, "now s": 8, "faster": 7, "CPU s": 9, "now": 7, "found": 9, "worst": 8}
    heads |= {"error": 9, "worst ": 8, "cut": 5}
    print("".join(f"{name.strip():{'<' if width < 0 else '>'}{abs(width)}}" for name, width in heads.items()))
    for case in words or CASES:
        print(compare(case, Path(other), seeds, option("jobs"), patience), flush=True)
    evaluation()


if __name__ == "__main__":
    main()
