"""Memory of arrays that come and go: kept by the process, instead of given back to the system each time.

Dask tells the processes of its workers to give memory back at once (`MALLOC_TRIM_THRESHOLD_`), which is right for
chunks and wrong for blocks: a sum makes and frees arrays of half a megabyte thousands of times, and when each of them
is new to the system, most of the time goes into handing out pages.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""What glibc calls these settings."""
KEPT = 1 << 25
"""Bytes that are kept at most, and the size of an array from which on it is given back nevertheless."""


@cache
def keep_freed_arrays() -> None:
    """From now on, for this process; where its C library is not glibc, nothing changes."""
    with suppress(OSError, AttributeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(TRIM_THRESHOLD, 2 * KEPT)
        set_option(MMAP_THRESHOLD, KEPT)
