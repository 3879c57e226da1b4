"""The user's cache: a folder of small JSON files, each written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from stmlang.source.writing import written_whole

LARGEST = 1 << 24
"""Bytes of the largest file that is read."""


def cache_folder() -> Path:
    """`$STMLANG_CACHE`, else `$XDG_CACHE_HOME/stmlang`, else `~/.cache/stmlang`."""
    if own := os.environ.get("STMLANG_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "stmlang"


def write_json(place: Path, value: Any) -> None:
    """Write a file of the cache: other processes read either the old file or the new one."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(place) as file:
        file.write(json.dumps(value, indent=1, sort_keys=True).encode())


def read_json(place: Path) -> Any:
    """A file of the cache. Raises OSError or ValueError for what is none: a folder, a pipe, anything that is far too large or
    is not JSON."""
    if not place.is_file() or place.stat().st_size > LARGEST:
        raise ValueError(f"{place} is no file of the cache")
    try:
        return json.loads(place.read_bytes())
    except RecursionError:
        raise ValueError(f"{place} is nested too deeply") from None


@contextmanager
def locked(place: Path) -> Generator[None]:
    """Alone with a file of the cache among the processes that ask for it, where the system has locks: what is read inside is
    still there when it is written back. The system frees the lock of a process that ends."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place.with_suffix(".lock"), "wb") as file:
        try:
            fcntl: Any = import_module("fcntl")
            fcntl.flock(file, fcntl.LOCK_EX)
        except (ImportError, OSError):  # not this system, or not this file system: the last writer wins
            pass
        yield


def installed(name: str) -> str:
    """The version of an installed distribution, `none` if it is missing."""
    from importlib.metadata import PackageNotFoundError, version  # with the mail reader that it takes, for planning alone

    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
