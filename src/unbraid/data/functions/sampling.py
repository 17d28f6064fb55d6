"""Values and Jacobians of a function at sample points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from math import nan
from time import monotonic
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np

from unbraid.data.checks import counted
from unbraid.data.functions.agreement import ClaimedJacobian, check_agreement
from unbraid.data.functions.complex_step import ComplexStep
from unbraid.data.functions.differences import by_differences
from unbraid.data.functions.few_calls import ORDER, FewCalls, Side, calls_a_point
from unbraid.data.functions.forms import FailureError, Failures, Form, deed, try_call
from unbraid.data.functions.hosts import Function, Host, PlainFunction, TimedFunction, imported, is_module, quiet
from unbraid.data.functions.kept import Kept, Remembering, host_within, keeping, remember_rows
from unbraid.data.functions.recognition import WRONG_KIND, few, form_of, form_of_batches
from unbraid.data.functions.scales import binary_spreads
from unbraid.errors import DataError, SettingError, check_callback, check_number, check_whole, shown
from unbraid.kernels.arrays import EPS, Array, IndexArray
from unbraid.runtime.callers import elsewhere
from unbraid.runtime.files import StrPath
from unbraid.runtime.progress import Callback, Progress
from unbraid.runtime.text import name_list

Derivatives = Literal["auto", "torch", "jax", "differences", "complex-step", "forward", "central"]

CHUNK, CHUNK_OF_POINTS = 1000, 10
"""Samples evaluated at once: of functions of a batch, and of functions of a point, which may be slow."""
CHUNK_OF_CALLS = 100
"""Points in one call of a function of a batch where calls are to be few: what is lost with it is not much."""
REPORTED = 0.2
"""Seconds between two reports of progress, at least."""
EXACT_TOLERANCE, OWN_TOLERANCE = 1e-4, 1e-2
"""How far Jacobians may be from a difference quotient: those of a framework, and those of the user."""
SHORTEST = 1e-3
"""Seconds that a call may be given at least."""
NOT_ANALYTIC = (
    "f is not analytic: abs, real, conj, norms and casts to float lose the imaginary part. "
    'Use derivatives="differences".'
)
CUT_OFF = (
    "Something in f is cut off from it (no_grad, detach, stop_gradient, rounding, a detour through NumPy). "
    'Repair that, or use Problem.from_function with derivatives="differences".'
)


class Sampled(Protocol):
    """Values or Jacobians at some rows of X."""

    @property
    def batched(self) -> bool:
        """Whether many points are as easy as one."""

    def __call__(self, points: Array, rows: IndexArray) -> Array:
        """Values or Jacobians at points (k, m), which are the samples with these numbers: (k, ...)."""


@dataclass(frozen=True)
class SamplingSettings:
    """How a function is to be sampled: the arguments of `Problem.from_function`, checked once.

    `outputs` is how many outputs have names, if they have any; `before`, how many samples came before.
    """

    jacobian: Function | None = None
    derivatives: Derivatives | None = "auto"
    step: float | None = None
    chunk: int | None = None
    jobs: int = 1
    callback: Callback | None = None
    outputs: int | None = None
    timeout: float | None = None
    before: int = 0

    def __post_init__(self) -> None:
        if self.jacobian is not None:
            check_function("jacobian", self.jacobian)
        if self.derivatives not in (None, *get_args(Derivatives)):
            accepted = ", ".join(map(repr, get_args(Derivatives)))
            raise SettingError(f"derivatives must be one of {accepted} and None, got {shown(self.derivatives)}.")
        if self.jacobian is not None and self.derivatives != "auto":
            raise SettingError(
                f"Both jacobian= and derivatives={self.derivatives!r} were given: leave one of them out."
            )
        if self.step is not None:
            if self.side is None:
                raise SettingError('step is that of derivatives="forward" and "central": leave it out elsewhere.')
            check_number("step", self.step, EPS, 1.0)
        if self.chunk is not None:
            check_whole("chunk", self.chunk, 1)
        check_whole("jobs", self.jobs, 1)
        if self.timeout is not None:
            check_number("timeout", self.timeout, SHORTEST)
        check_callback(self.callback)

    @property
    def thrifty(self) -> bool:
        """Whether all calls are known beforehand, and are as few as there can be."""
        return self.derivatives in (None, *ORDER)

    @property
    def side(self) -> Side | None:
        """The kind of differences that take few calls; None: another kind, or none."""
        return self.derivatives if self.derivatives in ("forward", "central") else None


class Answers(NamedTuple):
    """What a function answered: points X (S, m), values F (S, n), and Jacobians J (S, n, m) if they are wanted.

    `failures` has the points without an answer, which are left out, by their numbers among those that were given.
    """

    X: Array
    F: Array
    J: Array | None
    failures: Failures


def sample_function(f: Function, X: Array, settings: SamplingSettings, kept: Kept | None) -> Answers:
    """What f answers at X (S, m). What is `kept` of its answers is not asked for again."""

    def sample_with(framework: str | None) -> Answers:
        form, host = recognised(f, X, framework, kept)
        if settings.outputs not in (None, form.shape[0]):  # before the calls of samples
            raise DataError(f"output_names must be {form.shape[0]} names, one an output of f, got {settings.outputs}.")
        with callers(form, host, X, settings.jobs, kept) as calling:
            lenient = replace(calling, failures=Failures(), before=settings.before)
            if settings.thrifty:
                F, J = sample_thriftily(lenient, X, settings, kept)
            else:
                F, J = sample_thoroughly(lenient, host, X, settings)
        failures = lenient.failures or {}
        good = without(len(X), failures)
        return Answers(X[good], F[good], None if J is None else J[good], failures)

    if settings.thrifty and settings.callback is not None:  # before the first call
        settings.callback(Progress("calls", 0, len(X) * calls_a_point(settings.side, X.shape[1])))
    if settings.derivatives in ("torch", "jax"):
        return sample_with(settings.derivatives)
    found: Answers | DataError
    try:
        found = sample_with(None)
        causes = [one.__cause__ for one in found.failures.values()]
    except DataError as error:
        found, causes = error, [error.__cause__]
    for framework in frameworks_wanted(causes):  # at some samples f may want what it did not need where it was tried
        with suppress(DataError):
            other = sample_with(framework)
            if isinstance(found, DataError) or len(other.failures) < len(found.failures):
                return other
    if isinstance(found, DataError):
        raise found
    return found


def recognised(f: Function, X: Array, framework: str | None, kept: Kept | None) -> tuple[Form, Host]:
    """What f takes, as it was found out earlier, or now."""
    earlier = kept.form(f) if kept is not None and framework is None else None
    if earlier is not None:
        return earlier
    form, host = form_of("f", f, X, framework, memory=kept)
    if kept is not None:
        kept.learn_form(form, host)
    return form, host


@contextmanager
def calling(
    f: Function, settings: SamplingSettings, cache: StrPath | None, m: int
) -> Iterator[tuple[Function, SamplingSettings, Kept]]:
    """The function and its settings as they are called, in time where there is a timeout, and what is kept of calls."""
    functions = {name: one for name, one in (("f", f), ("jacobian", settings.jacobian)) if one is not None}
    with ExitStack() as stack, np.errstate(all="ignore"):
        if settings.timeout is not None:
            if settings.derivatives in ("torch", "jax") or any(map(is_module, functions.values())):
                raise SettingError(
                    "timeout= is for functions of NumPy arrays, which other processes can call: leave it out for "
                    "networks, and with a framework."
                )
            for name, one in functions.items():
                functions[name] = stack.enter_context(closing(TimedFunction(name, one, settings.timeout)))
        kept = stack.enter_context(keeping(functions["f"], cache, m))
        yield functions["f"], replace(settings, jacobian=functions.get("jacobian")), kept


@contextmanager
def callers(form: Form, host: Host, X: Array, jobs: int, kept: Kept | None) -> Iterator[Form]:
    """The form with so many calls at the same time: by threads, or by processes where f computes and can be sent.

    It may need what only this process has, a setting of a module, say: at one known point, which is no sample if there
    is such a one, other processes must give the same, to the last bit.
    Functions of a framework are called one after another: frameworks have threads of their own.
    """
    if kept is not None and kept.file is not None:
        form = remember_rows(form, kept)
    if jobs == 1 or host.takes != PlainFunction.takes:
        yield form
        return
    form = replace(form, jobs=jobs)
    sent = elsewhere(host_within(host), jobs) if kept is not None and kept.computes and not form.batched else None
    if sent is None or not isinstance(form.call, Remembering):
        yield form
        return
    with sent:
        point, known = form.call.kept.example(X)
        answer = sent.ask(point)
        same = answer.kind == "done" and np.array_equal(np.ravel(answer.value), known)
        yield replace(form, call=replace(form.call, instead=sent)) if same else form


def sample_thriftily(form: Form, X: Array, settings: SamplingSettings, kept: Kept | None) -> tuple[Array, Array | None]:
    """Values, and Jacobians by forward or central differences: calls are counted, and of each is told."""
    total = len(X) * calls_a_point(settings.side, X.shape[1])
    counting = replace(form, told=Counter(settings.callback, total, kept).count)
    chunk = settings.chunk or CHUNK_OF_CALLS
    F, J = counting.in_chunks(X, np.arange(len(X)), chunk), None
    if settings.side is not None:
        some, values = with_stand_ins(X, F, form)
        J = FewCalls.at(some, values, counting, settings.side, settings.step)(some, values, chunk)
    return F, J


def sample_thoroughly(form: Form, host: Host, X: Array, settings: SamplingSettings) -> tuple[Array, Array]:
    """Values, and Jacobians that are held against other ones, or by differences whose steps are tried out."""
    if settings.jacobian is None and settings.derivatives not in ("differences", "complex-step"):
        check_differentiable(form, host, X)
    F = sample_in_chunks("values", form, X, form.shape, settings.chunk, settings.callback)
    slopes = None
    while slopes is None:
        some, values = with_stand_ins(X, F, form)
        try:
            slopes = jacobians_of(form, host, some, values, settings)
        except FailureError as error:  # beside a sample at which steps are tried out, or Jacobians compared
            for row, said in error.failures.items():
                form.tell(dict.fromkeys(np.flatnonzero((some == some[row]).all(axis=1)).tolist(), said))
    shape = (*form.shape, X.shape[1])
    return F, sample_in_chunks("Jacobians", slopes, some, shape, settings.chunk, settings.callback)


def with_stand_ins(X: Array, F: Array, form: Form) -> tuple[Array, Array]:
    """Points and values in which others stand in for those where f failed, so that samples keep their numbers."""
    failures = form.failures or {}
    numbers = np.arange(len(X))
    numbers[sorted(failures)] = np.resize(without(len(X), failures), len(failures))
    return X[numbers], F[numbers]


def without(count: int, failures: Failures) -> IndexArray:
    """The numbers of so many samples but for those where f failed; an error where no others are left."""
    if len(failures) == count:
        first = failures[min(failures)]
        text = str(first) if count == 1 else f"f has no answer at any of the {count} samples. The first: {first}"
        raise DataError(text) from first.__cause__
    return np.setdiff1d(np.arange(count), list(failures))


def notes_on_calls(failures: Failures, count: int, kept: Kept) -> tuple[str, ...]:
    """What to say of the calls at so many samples: which are left out, and why the first is; what was not kept."""
    if not failures:
        return tuple(kept.notes)
    which = name_list(map(str, sorted(failures)), len(failures))
    verb = "is" if len(failures) == 1 else "are"
    left_out = (
        f"{len(failures)} of {counted(count, 'sample')} {verb} left out, because f has no answer there: {which} "
        f"(from 0). The first: {failures[min(failures)]}"
    )
    return left_out, *kept.notes


class Counter:
    """Counts the points that f was called with, and tells of them, at most five times a second, and of the last."""

    def __init__(self, callback: Callback | None, total: int, kept: Kept | None) -> None:
        self.callback, self.total = callback, total
        self.kept = kept.calls.points if kept is not None and kept.file is not None else None
        self.done, self.before = 0, len(self.kept or ())
        self.began = self.told = monotonic()

    def count(self, points: int) -> None:
        """So many more points have been called."""
        self.done += points
        now = monotonic()
        if self.callback is not None and (self.done == self.total or now - self.told >= REPORTED):
            fresh = self.done if self.kept is None else len(self.kept) - self.before
            left = (now - self.began) / fresh * (self.total - self.done) if fresh else nan
            self.callback(Progress("calls", self.done, self.total, left=left))
            self.told = now


def check_function(name: str, given: object) -> None:
    """Refuse what is no function."""
    if isinstance(given, type):
        raise DataError(f"{name} must be a function, got the class {given.__name__}: add parentheses.")
    if not callable(given):
        raise DataError(
            f"{name} must be a function of a point (m,) or of a batch (S, m), got {type(given).__name__}: arrays "
            "go into Problem(X, F, J)."
        )


def differentiable(name: str, host: Host, X: Array) -> tuple[Form, Form]:
    """A function of batches and its Jacobian by its framework: checked at a few samples as `from_function` does."""
    form, exact = form_of_batches(name, host, X), host.jacobians(True)
    assert exact is not None
    check_differentiable(form, host, X)
    return form, exact_slopes(form, exact, X, form(X, np.arange(len(X))))


def check_differentiable(f: Form, host: Host, X: Array) -> None:
    """Refuse a function that its framework can differentiate nowhere: at a few samples, before any work is done."""
    exact = host.jacobians(f.batched)
    if exact is None:
        return
    with quiet():
        answers = [try_call(exact, x[None]) for x in few(X)]
    failures = [answer for answer in answers if isinstance(answer, Exception)]
    if len(failures) == len(answers):
        framework = host.takes.split()[0]
        raise DataError(
            f"{f.name} cannot be differentiated by {framework}: it {deed(failures[0])}. From its input to its output "
            f"it must compute with {framework} alone, not with NumPy or math: rewrite it so, or use "
            'Problem.from_function with derivatives="differences".'
        ) from failures[0]


def frameworks_wanted(causes: Iterable[BaseException | None]) -> list[str]:
    """Frameworks that are in use, if f failed because it was given NumPy arrays in place of theirs."""
    told = " ".join(str(cause).lower() for cause in causes if isinstance(cause, WRONG_KIND))
    wanted = any(word in told for word in ("tensor", "ndarray", "jax"))
    return [framework for framework in ("torch", "jax") if wanted and imported(framework)]


def sample_in_chunks(
    phase: str, what: Sampled, X: Array, shape: tuple[int, ...], chunk: int | None, callback: Callback | None
) -> Array:
    """Evaluate values or Jacobians (S, *shape) at all points, chunk by chunk, telling of progress."""
    size = chunk or (CHUNK if what.batched else CHUNK_OF_POINTS)
    result, told = np.empty((len(X), *shape)), monotonic()
    for start in range(0, len(X), size):
        rows = np.arange(start, min(start + size, len(X)))
        result[rows] = what(X[rows], rows)
        done, now = int(rows[-1]) + 1, monotonic()
        if callback is not None and (done == len(X) or now - told >= REPORTED):
            callback(Progress(phase, done, len(X)))
            told = now
    return result


def jacobians_of(f: Form, host: Host, X: Array, F: Array, settings: SamplingSettings) -> Sampled:
    """How Jacobians of f are found: as asked for, by the user's own function, by f's framework, or by differences."""
    shape, derivatives, lenient = (*f.shape, X.shape[1]), settings.derivatives, f
    f = replace(f, failures=None)
    if settings.jacobian is not None:
        own, _ = form_of("jacobian", settings.jacobian, X, None, shape)
        advice = "If you are sure of both, evaluate them yourself and use Problem(X, F, J)."
        check_agreement(ClaimedJacobian("jacobian", own, OWN_TOLERANCE, advice), f, X, F)
        return replace(own, failures=lenient.failures)
    exact = host.jacobians(f.batched)
    if derivatives == "complex-step":
        if exact is not None:
            raise SettingError(f'derivatives="complex-step" is for NumPy functions, f takes {host.takes}: use "auto".')
        imaginary = ComplexStep(f, binary_spreads(X))
        check_agreement(ClaimedJacobian("The complex step", imaginary, EXACT_TOLERANCE, NOT_ANALYTIC), f, X, F)
        return replace(imaginary, f=lenient)
    if exact is None or derivatives == "differences":
        return replace(by_differences(f, X, F), f=lenient)
    return replace(exact_slopes(f, exact, X, F), failures=lenient.failures)


def exact_slopes(f: Form, exact: Function, X: Array, F: Array) -> Form:
    """The Jacobian of f by its framework; refused where it does not fit the values."""
    name, shape = f"The Jacobian of {f.name}", (*f.shape, X.shape[1])
    by_framework = replace(f, name=name, call=exact, batched=True, shape=shape)
    claimed = "The Jacobian that was found by automatic differentiation"
    check_agreement(ClaimedJacobian(claimed, by_framework, EXACT_TOLERANCE, CUT_OFF), f, X, F)
    return by_framework
