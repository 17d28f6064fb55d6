"""Values and Jacobians of a function at sample points."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import Literal, Protocol, get_args

import numpy as np

from unbraid.data.functions.agreement import ClaimedJacobian, check_agreement
from unbraid.data.functions.complex_step import ComplexStep
from unbraid.data.functions.differences import by_differences
from unbraid.data.functions.forms import Form, deed, try_call
from unbraid.data.functions.hosts import Function, Host, imported, quiet
from unbraid.data.functions.recognition import WRONG_KIND, few, form_of
from unbraid.data.functions.scales import binary_spreads
from unbraid.errors import DataError, SettingError, check_callback, check_whole, shown
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.runtime.progress import Callback, Progress

Derivatives = Literal["auto", "torch", "jax", "differences", "complex-step"]

CHUNK, CHUNK_OF_POINTS = 1000, 10
"""Samples evaluated at once: of functions of a batch, and of functions of a point, which may be slow."""
REPORTED = 0.2
"""Seconds between two reports of progress, at least."""
EXACT_TOLERANCE, OWN_TOLERANCE = 1e-4, 1e-2
"""How far Jacobians may be from a difference quotient: those of a framework, and those of the user."""
NOT_ANALYTIC = (
    "f is not analytic: abs, real, conj, norms and casts to float lose the imaginary part. "
    'Use derivatives="differences".'
)
CUT_OFF = (
    "Something in f is cut off from it (no_grad, detach, stop_gradient, rounding, a detour through NumPy). "
    'Repair that, or use derivatives="differences".'
)


class Sampled(Protocol):
    """Values or Jacobians at some rows of X."""

    @property
    def batched(self) -> bool:
        """Whether many points are as easy as one."""

    def __call__(self, points: Array, rows: IndexArray) -> Array:
        """Values or Jacobians at points (k, m), which are the samples with these numbers: (k, ...)."""


def sample_function(
    f: Function,
    X: Array,
    jacobian: Function | None,
    derivatives: Derivatives,
    chunk: int | None,
    callback: Callback | None,
) -> tuple[Array, Array]:
    """Values (S, n) and Jacobians (S, n, m) of f at X (S, m)."""
    check_sampling(f, jacobian, derivatives, chunk, callback)

    def sample_with(framework: str | None) -> tuple[Array, Array]:
        form, host = form_of("f", f, X, framework)
        if jacobian is None and derivatives not in ("differences", "complex-step"):
            check_differentiable(host, form.batched, X)
        F = sample_in_chunks("values", form, X, form.shape, chunk, callback)
        slopes = jacobians_of(form, host, X, F, jacobian, derivatives)
        return F, sample_in_chunks("Jacobians", slopes, X, (*form.shape, X.shape[1]), chunk, callback)

    if derivatives in ("torch", "jax"):
        return sample_with(derivatives)
    try:
        return sample_with(None)
    except DataError as error:  # at some samples f may want what it does not need at those it was first tried at
        for framework in frameworks_wanted(error.__cause__):
            with suppress(DataError):
                return sample_with(framework)
        raise


def check_sampling(
    f: Function, jacobian: Function | None, derivatives: Derivatives, chunk: int | None, callback: Callback | None
) -> None:
    """Refuse what is no function, and settings that do not exist."""
    for name, given in (("f", f), ("jacobian", jacobian)):
        if isinstance(given, type):
            raise DataError(f"{name} must be a function, got the class {given.__name__}: add parentheses.")
        if not callable(given) and not (name == "jacobian" and given is None):
            raise DataError(
                f"{name} must be a function of a point (m,) or of a batch (S, m), got {type(given).__name__}: arrays "
                "go into Problem(X, F, J)."
            )
    if derivatives not in get_args(Derivatives):
        accepted = ", ".join(map(repr, get_args(Derivatives)))
        raise SettingError(f"derivatives must be one of {accepted}, got {shown(derivatives)}.")
    if jacobian is not None and derivatives != "auto":
        raise SettingError(f"Both jacobian= and derivatives={derivatives!r} were given: leave one of them out.")
    if chunk is not None:
        check_whole("chunk", chunk, 1)
    check_callback(callback)


def check_differentiable(host: Host, batched: bool, X: Array) -> None:
    """Refuse a function that its framework can differentiate nowhere: at a few samples, before any work is done."""
    exact = host.jacobians(batched)
    if exact is None:
        return
    with quiet():
        answers = [try_call(exact, x[None]) for x in few(X)]
    failures = [answer for answer in answers if isinstance(answer, Exception)]
    if len(failures) == len(answers):
        framework = host.takes.split()[0]
        raise DataError(
            f"f cannot be differentiated by {framework}: it {deed(failures[0])}. From its input to its output it must "
            f'compute with {framework} alone, not with NumPy or math: rewrite it so, or use derivatives="differences".'
        ) from failures[0]


def frameworks_wanted(cause: BaseException | None) -> list[str]:
    """Frameworks that are in use, if f failed because it was given NumPy arrays in place of theirs."""
    told = str(cause).lower()
    if not isinstance(cause, WRONG_KIND) or not any(word in told for word in ("tensor", "ndarray", "jax")):
        return []
    return [framework for framework in ("torch", "jax") if imported(framework)]


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


def jacobians_of(
    f: Form, host: Host, X: Array, F: Array, jacobian: Function | None, derivatives: Derivatives
) -> Sampled:
    """How Jacobians of f are found: as asked for, by the user's own function, by f's framework, or by differences."""
    shape = (*f.shape, X.shape[1])
    if jacobian is not None:
        own, _ = form_of("jacobian", jacobian, X, None, shape)
        advice = "If you are sure of both, evaluate them yourself and use Problem(X, F, J)."
        check_agreement(ClaimedJacobian("jacobian", own, OWN_TOLERANCE, advice), f, X, F)
        return own
    exact = host.jacobians(f.batched)
    if derivatives == "complex-step":
        if exact is not None:
            raise SettingError(f'derivatives="complex-step" is for NumPy functions, f takes {host.takes}: use "auto".')
        imaginary = ComplexStep(f, binary_spreads(X))
        check_agreement(ClaimedJacobian("The complex step", imaginary, EXACT_TOLERANCE, NOT_ANALYTIC), f, X, F)
        return imaginary
    if exact is None or derivatives == "differences":
        return by_differences(f, X, F)
    by_framework = Form("The Jacobian of f", exact, True, shape)
    name = "The Jacobian that was found by automatic differentiation"
    check_agreement(ClaimedJacobian(name, by_framework, EXACT_TOLERANCE, CUT_OFF), f, X, F)
    return by_framework
