"""Whether a function takes a point or a batch: found out, never guessed.

What f gives for single points (m,) is what f means, if it takes them. It is given batches (S, m) only if these give the
same numbers, a row a point, whatever their length and order; else it is called point by point. So S = m, or an axis
that f means otherwise, cannot mislead. A function for which points and batches both make sense, but not the same, is
refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unbraid.data.functions.answers import as_batch, as_point, same
from unbraid.data.functions.forms import Form, deed, try_call
from unbraid.data.functions.hosts import AnswerError, Function, Host, Numbers, hosts_for, quiet
from unbraid.data.functions.kept import Kept, Remembering
from unbraid.data.functions.scales import binary_spreads
from unbraid.errors import DataError
from unbraid.kernels.arrays import EPS, Array, Shape

PROBES, MOST_PROBES = 3, 9
"""Samples at which it is found out what a function takes; and at most, where it fails at all of these."""
PARTS = ([0, 1, 2], [2, 1], [0])
"""Batches made of these, of different lengths and orders."""
MOST_TOLD = 3
"""Ways in which a function failed that an error tells of."""
WRONG_KIND = (TypeError, AttributeError, RuntimeError)
"""What functions raise that are given NumPy arrays in place of tensors, mostly: then a user wants to know of both."""
PLAINLY = 1e-2
"""Answers that differ by this share mean something else."""


@dataclass(frozen=True)
class Probed:
    """A function asked for a point, for points one by one, or for a batch; the answers have this shape, or any (n,)."""

    host: Host
    shape: Shape | None

    def point(self, x: Numbers) -> Numbers:
        """The answer to one point (m,)."""
        return as_point(self.host(x), self.shape)

    def points(self, points: Numbers) -> Numbers:
        """The answers to points (k, m), one by one."""
        answers = [self.point(x) for x in points]
        if len({answer.shape for answer in answers}) > 1:
            lengths = " and ".join(str(length) for length in sorted({len(answer) for answer in answers}))
            raise AnswerError(f"returned {lengths} numbers at different samples")
        return np.stack(answers)

    def pair(self, x: Numbers) -> Numbers:
        """The answer to a point (m,) that is twice in a batch."""
        return self.batch(np.stack([x, x]))

    def batch(self, points: Numbers) -> Numbers:
        """The answers to points (k, m) at once."""
        return as_batch(self.host(points), len(points), self.shape)


def form_of(
    name: str,
    f: Function,
    X: Array,
    framework: str | None = None,
    shape: Shape | None = None,
    memory: Kept | None = None,
) -> tuple[Form, Host]:
    """What `f` takes, from how it answers at a few samples; its answers have this `shape`, or any (n,).

    What is in memory is not asked for again, so that it is not found out either whether f is random.
    """
    failures: dict[str, Exception] = {}
    given: dict[str, dict[str, None]] = {}  # each once, in order
    for count in (PROBES, MOST_PROBES):
        probes = few(X, count)
        for host in hosts_for(f, probes, framework, memory):
            asked = Probed(host if memory is None else Remembering(host, memory), shape)
            kept = not failures or any(isinstance(error, WRONG_KIND) for error in failures.values())
            with quiet():
                for takes_points, ask in ((True, asked.point), (False, asked.pair)):
                    answers = [try_call(ask, x) for x in probes]
                    good = [at for at, answer in enumerate(answers) if not isinstance(answer, Exception)]
                    if good:
                        samples = probes[np.resize(good, PROBES)]
                        return judged(name, asked, takes_points, samples, binary_spreads(X)), host
                    if kept and isinstance(answers[0], Exception):
                        said = deed(answers[0])
                        failures.setdefault(said, answers[0])
                        given.setdefault(said, {})[f"{'a point' if takes_points else 'a batch'} ({host.takes})"] = None
        if len(probes) == len(X):
            break
    m = X.shape[1]
    one, many = ("(n,)", "(S, n)") if shape is None else (f"(n, m) = {shape}", f"(S, n, m) = (S, {shape[0]}, {m})")
    raise DataError(
        f"{name} must map a point ({m},) to {one}, or a batch (S, {m}) to {many}. "
        + " ".join(f"Given {' or '.join(given[said])}, it {said}." for said in list(failures)[:MOST_TOLD])
    ) from next(iter(failures.values()))


def form_of_batches(name: str, host: Host, X: Array) -> Form:
    """The form of a function that is known to take batches; refused if it is no function of x."""
    probes = np.resize(few(X), (PROBES, X.shape[1]))
    with quiet():
        return judged(name, Probed(host, None), False, probes, binary_spreads(X))


def few(X: Array, count: int = PROBES) -> Array:
    """Some of the samples, spread over all of them."""
    return np.asarray(X[np.unique(np.linspace(0, len(X) - 1, count).astype(int))])


def judged(name: str, asked: Probed, takes_points: bool, samples: Array, scale: Array) -> Form:
    """The form of a function that takes points, or else batches; refused if it is no function of x.

    It is asked at samples, and a little beside them: samples may have equal rows or a pattern.
    """
    answer = asked.points if takes_points else asked.batch
    values, again = try_call(answer, samples), try_call(answer, samples)
    if isinstance(values, Exception):
        raise DataError(f"{name} {deed(values)}.") from values
    assert isinstance(values, np.ndarray)
    resolution = max(EPS, float(np.finfo(values.dtype).eps)) if values.dtype.kind == "f" else EPS
    resolution = max(resolution, getattr(asked.host, "resolution", EPS))
    tolerance = resolution**0.5
    if not isinstance(again, np.ndarray) or not same(values, again, tolerance):
        raise DataError(
            f"{name} gives different values when called again with the same point, so it is random or has a memory, "
            "and has no Jacobian to compute. Call .eval() on a network with dropout, and have dropout of your own obey "
            "it; fix the seed of a simulation; or evaluate it yourself and use Problem(X, F)."
        )
    beside = samples + 1e-3 * scale * np.cos(np.arange(1.0, samples.size + 1.0)).reshape(samples.shape)
    trials = {"samples": (samples, values)}
    further = try_call(answer, beside)
    if isinstance(further, np.ndarray):
        trials["beside"] = (beside, further)
        if takes_points and isinstance(asked.host, Remembering):  # no sample is asked for twice
            del trials["samples"]
    if takes_points:
        batched = all(batches_all_give(asked, *trial, tolerance) for trial in trials.values())
        if not batched and "beside" in trials:
            refuse_two_meanings(name, asked, *trials["beside"], tolerance)
    else:
        batched = True
        if any(batches_give(asked, *trial, tolerance) is False for trial in trials.values()):
            raise DataError(
                f"{name} takes batches, but what it gives for a point depends on the other points of the batch. Call "
                ".eval() on a network with batch norm, which needs running statistics; or pass a function of one point "
                "(m,)."
            )
    return Form(name, asked.host, batched, values.shape[1:], resolution)


def batches_all_give(asked: Probed, points: Array, values: Numbers, tolerance: float) -> bool:
    """Whether batches of these points give these values; the first that does not is the last that is asked for."""
    answers = ((values[part], try_call(asked.batch, points[part])) for part in PARTS)
    return all(isinstance(batch, np.ndarray) and same(right, batch, tolerance) for right, batch in answers)


def batches_give(asked: Probed, points: Array, values: Numbers, tolerance: float) -> bool | None:
    """Whether batches of these points give these values; None if some batch is refused, and the others do."""
    answers = [(values[part], try_call(asked.batch, points[part])) for part in PARTS]
    given = [same(right, batch, tolerance) for right, batch in answers if isinstance(batch, np.ndarray)]
    if not all(given):
        return False
    return True if len(given) == len(PARTS) else None


def refuse_two_meanings(name: str, asked: Probed, points: Array, values: Numbers, tolerance: float) -> None:
    """Refuse a function that has these values one by one, and others, no less sensible, as a function of a batch."""
    batch = try_call(asked.batch, points)
    if not isinstance(batch, np.ndarray) or batches_give(asked, points, batch, tolerance) is not True:
        return
    mixed = points * [[1.0], [1.0], [-1.0]]  # f may look at the signs of one row only, and here they are others
    answer = try_call(asked.batch, mixed)
    if isinstance(answer, np.ndarray) and batches_give(asked, mixed, answer, tolerance) is False:
        return
    if not same(values, batch, PLAINLY):
        m = points.shape[1]
        raise DataError(
            f"{name} takes a point ({m},) and a batch (S, {m}), but gives other values for a batch than for its points "
            f"one by one. Pass a function that takes one of them only: if the batch is meant, lambda x: f(x[None])[0]."
        )
