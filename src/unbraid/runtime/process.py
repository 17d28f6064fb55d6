"""What this process does for speed: BLAS on one thread, and memory of freed arrays kept; and SciPy, imported whole.

One BLAS thread is faster than two on the small products of a sweep.

A sum over samples makes and frees arrays of half a megabyte thousands of times. The C library gives their memory back
to the system, at once where Dask has told the processes of its workers to (`MALLOC_TRIM_THRESHOLD_`), and when each of
them is new to the system, much of the time goes into handing out pages. So fits keep up to 64 MB of it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from unbraid.runtime.interrupts import keeping_interrupts_back


@cache
def _controllers() -> tuple[ThreadpoolController, ThreadpoolController]:
    """Of BLAS libraries whose limit is one of a thread, and of those whose limit is one of the whole process."""
    import_scipy()  # which brings a BLAS of its own
    every = ThreadpoolController()
    of_thread = every.select(internal_api="mkl", threading_layer="openmp")  # either will do
    others = {one.filepath for one in every.lib_controllers} - {one.filepath for one in of_thread.lib_controllers}
    return of_thread, every.select(filepath=sorted(others))


class ProcessLimit:
    """One BLAS thread for the whole process: the first block that asks for it sets it, and the last one lifts it."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.limit: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limit = _controllers()[1].limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limit.restore_original_limits()


PROCESS_LIMIT = ProcessLimit()


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside the `with` block; blocks of several threads may overlap in any order."""
    with _controllers()[0].limit(limits=1, user_api="blas"), PROCESS_LIMIT:
        yield


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
