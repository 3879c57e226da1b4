"""How much a call does, counted and not timed: the same on a busy machine as on a quiet one."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from cProfile import Profile


def calls(action: Callable[[], object]) -> int:
    """The function calls, Python's and C's, that an action makes; it may raise, and what it raises passes through."""
    profile = Profile()
    profile.enable()
    try:
        action()
    finally:
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


def peak_bytes(action: Callable[[], object]) -> int:
    """The most memory that an action holds at a time, numpy's arrays included."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
