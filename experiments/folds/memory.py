"""Memory that stays with the process, so that every step of training need not have it cleared anew.

A step takes a few hundred megabytes of temporaries at once and gives them back. The C library returns blocks of that size to
the system, which then clears every page of the next ones: a third of a step's processor time.
"""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, TOP_PAD, MMAP_MAX, ARENA_MAX = -1, -2, -4, -8
"""Parameters of glibc's `mallopt`."""
LARGEST = 2**31 - 1
AT_ONCE = 2**26
"""Bytes by which the heap grows at least."""


def keep_freed_memory() -> bool:
    """Have the C library keep all memory that is freed, for the rest of this process. False where it is not glibc.

    For that there is one heap for all threads, since those of other threads cannot hold large blocks; so this is to be called
    before JAX makes its first array, and with it its threads.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    options = ((ARENA_MAX, 1), (MMAP_MAX, 0), (TRIM_THRESHOLD, LARGEST), (TOP_PAD, AT_ONCE))
    return all(mallopt(parameter, value) == 1 for parameter, value in options)
