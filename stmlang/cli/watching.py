"""Files that are looked at again and again: which of them changed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from stmlang.cli.folders import expanded
from stmlang.source.diagnostic import SpecError

PAUSE = 0.3
"""Seconds between two looks."""


def changes(names: Sequence[str], search_path: Sequence[Path], pause: float = PAUSE) -> Iterator[list[str]]:
    """First an empty list, then the names of those that changed, whenever some did. What is watched is every spec below the
    folders in which the named ones stand, and below the search path, since they may import each other. It never ends."""
    before = _times(names, search_path)
    yield []
    while True:
        sys.stdout.flush()
        time.sleep(pause)
        now = _times(names, search_path)
        if changed := sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)):
            yield changed
        before = now


def _times(names: Sequence[str], search_path: Sequence[Path]) -> Mapping[str, tuple[int, int]]:
    """When each file was written, and how long it is."""
    found: dict[str, tuple[int, int]] = {}
    for name in dict.fromkeys([*map(_folder, names), *map(str, search_path)]):
        for path in _specs(name):
            try:
                status = os.stat(path)
            except OSError:  # taken away just now
                continue
            found[os.path.relpath(path)] = (status.st_mtime_ns, status.st_size)
    return found


def _folder(name: str) -> str:
    """The folder that a name is, or in which it stands."""
    path = name.rpartition(":")[0] if not os.path.exists(name) and ".stm:" in name else name
    return path if os.path.isdir(path) else os.path.dirname(path) or "."


def _specs(folder: str) -> list[str]:
    try:
        return expanded(folder)
    except SpecError:  # none, now
        return []
