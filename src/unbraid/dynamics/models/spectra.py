"""What signals with gaps are made of, frequency by frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unbraid.kernels.arrays import Array

LONGEST, SHORTEST = 1024, 16
"""Samples of a segment: at most, and at least where a signal has gaps."""
LEAST_SEGMENTS = 4
"""As many segments, half over one another, are averaged at least where a signal is long enough."""


class Spectrum(NamedTuple):
    """The amplitude of a signal in a band of width 1, the root of its power spectral density, by frequency."""

    frequency: Array
    amplitude: Array


def spectrum_of(signals: Sequence[Array], dt: float) -> Spectrum | None:
    """The spectrum of one quantity in several records, (T,) each, NaN in gaps; None where gaps leave too little.

    Welch's method: power is averaged over segments under a Hann window, half over one another; those with gaps in them
    are left out, and where all have some, segments are shorter.
    """
    longest = max(map(len, signals))
    n = max(SHORTEST, min(LONGEST, 2 * longest // (LEAST_SEGMENTS + 1)))
    while n >= SHORTEST:
        segments = [one for signal in signals for one in whole_segments(signal, n)]
        if segments:
            window = np.hanning(n + 1)[:-1]
            size = max(float(np.abs(segments).max()), 1e-300)  # whose square may be beyond floating point
            rows = np.array(segments) / size
            power = np.abs(np.fft.rfft((rows - rows.mean(axis=1, keepdims=True)) * window, axis=1)) ** 2
            density = 2.0 * dt * power.mean(axis=0) / np.sum(window**2)
            return Spectrum(np.arange(1.0, len(density)) / (n * dt), size * np.sqrt(density[1:]))
        n //= 2
    return None


def whole_segments(signal: Array, n: int) -> list[Array]:
    """The stretches of n samples, half over one another, in which nothing is missing."""
    stretches = (signal[begin : begin + n] for begin in range(0, len(signal) - n + 1, n // 2))
    return [one for one in stretches if np.isfinite(one).all()]
