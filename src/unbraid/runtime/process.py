"""What this process does for speed: BLAS on one thread, and memory of freed arrays kept; and SciPy, imported whole.

One BLAS thread is faster than two on the small products of a sweep.

A sum over samples makes and frees arrays of half a megabyte thousands of times. The C library gives their memory back
to the system, at once where Dask has told the processes of its workers to (`MALLOC_TRIM_THRESHOLD_`), and when each of
them is new to the system, much of the time goes into handing out pages. So fits keep up to 64 MB of it.
"""

from __future__ import annotations

import ctypes
from contextlib import AbstractContextManager, suppress
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from unbraid.runtime.interrupts import keeping_interrupts_back


@cache
def _controller() -> ThreadpoolController:
    import_scipy()  # which brings a BLAS of its own
    return ThreadpoolController()


def single_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread inside the `with` block."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""What glibc calls these settings."""
KEPT = 1 << 25
"""Bytes that are kept at most, and the size of an array from which on it is given back nevertheless."""


@cache
def keep_freed_arrays() -> None:
    """Let this process keep the memory of freed arrays; where its C library is not glibc, nothing changes."""
    with suppress(OSError, AttributeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(TRIM_THRESHOLD, 2 * KEPT)
        set_option(MMAP_THRESHOLD, KEPT)


def import_scipy() -> None:
    """Import what fits need of SciPy, all of it: compiled modules that Ctrl-C leaves half imported stay so."""
    with keeping_interrupts_back():
        import scipy.optimize
        import scipy.spatial  # noqa: F401
