"""Linear models f_t = L φ_t whose outputs come back as inputs: poles and frequency responses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unbraid.dynamics.models.feedback import Feedback
from unbraid.kernels.arrays import Array

ComplexArray = npt.NDArray[np.complex128]


def poles_of(L: Array, feedback: Feedback) -> ComplexArray:
    """The poles (..., longest q) of L (..., n, mφ): the eigenvalues of z_t as a function of z_{t-1}, z_{t-2}, …."""
    q, longest = feedback.fed, feedback.longest
    companion = np.zeros((*L.shape[:-2], longest * q, longest * q))
    companion[..., q:, :-q] = np.eye((longest - 1) * q)
    for k, lag in enumerate(feedback.lags):
        companion[..., :q, (lag - 1) * q : lag * q] = L[..., :q, k * q : (k + 1) * q]
    return np.linalg.eigvals(companion).astype(complex)


def response_of(L: Array, feedback: Feedback, input_lags: Sequence[int], cycles: Array) -> ComplexArray:
    """The frequency response (F, ny, nu) of L (n, mφ) at frequencies (F,) in cycles a sample."""
    q, ny, width = feedback.fed, feedback.observed, feedback.width
    nu = (L.shape[1] - width) // len(input_lags)
    delay = np.exp(-2j * np.pi * (cycles % 1.0))[:, None, None]
    back = sum(L[:, k * q : (k + 1) * q] * delay**lag for k, lag in enumerate(feedback.lags))
    into = sum(L[:, width + k * nu : width + (k + 1) * nu] * delay**lag for k, lag in enumerate(input_lags))
    resolvent = np.eye(q) - back[:, :q]
    at_pole = np.linalg.cond(resolvent) > 1.0 / np.finfo(np.float64).eps
    resolvent[at_pole] = np.eye(q)
    response = back[:, -ny:] @ np.linalg.solve(resolvent, into[:, :q]) + into[:, -ny:]
    return np.where(at_pole[:, None, None], np.inf, response)
