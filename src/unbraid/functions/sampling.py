"""Values and Jacobians of a function at sample points."""

from __future__ import annotations

from typing import Literal, Protocol, get_args

import numpy as np

from unbraid.arrays import Array, IndexArray
from unbraid.errors import DataError, SettingError, check_whole
from unbraid.functions.agreement import check_agreement
from unbraid.functions.complex_step import ComplexStep
from unbraid.functions.differences import differences
from unbraid.functions.forms import Form
from unbraid.functions.hosts import Function, Host
from unbraid.functions.recognition import form_of
from unbraid.functions.scales import spreads
from unbraid.progress import Callback, Progress

Derivatives = Literal["auto", "torch", "jax", "differences", "complex-step"]

CHUNK, CHUNK_OF_POINTS = 1000, 10
"""Samples evaluated between two reports of progress: of functions of a batch, and of functions of a point."""
EXACT, OWN = 1e-4, 1e-2
"""How far Jacobians may be from a difference quotient: those of a framework, and those of the user."""


class Sampled(Protocol):
    """Values or Jacobians at some rows of X."""

    @property
    def batched(self) -> bool:
        """Whether many points are as easy as one."""

    def __call__(self, points: Array, rows: IndexArray) -> Array:
        """One entry a point."""


def sample_function(
    f: Function,
    X: Array,
    jacobian: Function | None,
    derivatives: Derivatives,
    chunk: int | None,
    callback: Callback | None,
) -> tuple[Array, Array]:
    """Values (S, n) and Jacobians (S, n, m) of f at X (S, m)."""
    check_settings(f, jacobian, derivatives, chunk)
    form, host = form_of("f", f, X, derivatives if derivatives in ("torch", "jax") else None)
    F = sampled("values", form, X, form.shape, chunk, callback)
    slopes = jacobians_of(form, host, X, F, jacobian, derivatives)
    return F, sampled("Jacobians", slopes, X, (*form.shape, X.shape[1]), chunk, callback)


def check_settings(f: Function, jacobian: Function | None, derivatives: Derivatives, chunk: int | None) -> None:
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
        raise SettingError(f"derivatives must be one of {accepted}, got {derivatives!r}.")
    if jacobian is not None and derivatives != "auto":
        raise SettingError(f"Both jacobian= and derivatives={derivatives!r} were given: leave one of them out.")
    if chunk is not None:
        check_whole("chunk", chunk, 1)


def sampled(
    phase: str, what: Sampled, X: Array, shape: tuple[int, ...], chunk: int | None, callback: Callback | None
) -> Array:
    """All values or Jacobians (S, *shape), chunk by chunk."""
    size = chunk or (CHUNK if what.batched else CHUNK_OF_POINTS)
    result = np.empty((len(X), *shape))
    for start in range(0, len(X), size):
        rows = np.arange(start, min(start + size, len(X)))
        result[rows] = what(X[rows], rows)
        if callback is not None:
            callback(Progress(phase, int(rows[-1]) + 1, len(X)))
    return result


def jacobians_of(
    f: Form, host: Host, X: Array, F: Array, jacobian: Function | None, derivatives: Derivatives
) -> Sampled:
    """How Jacobians of f are found: as asked for, by the user's own function, by f's framework, or by differences."""
    shape = (*f.shape, X.shape[1])
    if jacobian is not None:
        own, _ = form_of("jacobian", jacobian, X, None, shape)
        check_agreement(
            "jacobian", own, f, X, F, OWN, "If you are sure of both, evaluate them yourself and use Problem(X, F, J)."
        )
        return own
    exact = host.jacobians(f.batched)
    if derivatives == "complex-step":
        if exact is not None:
            raise SettingError(f'derivatives="complex-step" is for NumPy functions, f takes {host.takes}: use "auto".')
        imaginary = ComplexStep(f, spreads(X))
        check_agreement(
            "The complex step",
            imaginary,
            f,
            X,
            F,
            EXACT,
            "f is not analytic: abs, real, conj, norms and casts to float lose the imaginary part. "
            'Use derivatives="differences".',
        )
        return imaginary
    if exact is None or derivatives == "differences":
        return differences(f, X, F)
    by_framework = Form("The Jacobian of f", exact, True, shape)
    check_agreement(
        "The Jacobian that was found by automatic differentiation",
        by_framework,
        f,
        X,
        F,
        EXACT,
        "Something in f is cut off from it (no_grad, detach, stop_gradient, rounding, a detour through NumPy). "
        'Repair that, or use derivatives="differences".',
    )
    return by_framework
