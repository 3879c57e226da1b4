"""What a refusal must be like."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from stmlang.source.diagnostic import SpecError
from tests.helpers.work import peak_bytes

LONGEST = 4_000
"""Characters of a message that somebody reads."""


@dataclass(frozen=True)
class Refusal:
    """The code, a phrase that names the culprit, and one that says what to do."""

    code: str
    culprit: str
    advice: str


def refused(action: Callable[[], object], wanted: Refusal) -> None:
    """Whether an action raises just this."""
    with pytest.raises(SpecError) as caught:
        action()
    text = str(caught.value)
    assert {found.code for found in caught.value.diagnostics} == {wanted.code}, text
    assert wanted.culprit in text
    assert wanted.advice in text
    assert len(text) < LONGEST


def refused_cheaply(action: Callable[[], object], wanted: Refusal, most: int = 32_000_000) -> None:
    """Whether an action raises just this before it asks for more than so many bytes."""
    assert peak_bytes(lambda: refused(action, wanted)) < most


@contextmanager
def nothing_written(folder: Path) -> Iterator[None]:
    """Whether everything below a folder is as it was."""
    before = contents(folder)
    yield
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Files below a folder with their sizes and times of change."""
    found: dict[str, tuple[int, int]] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(place, name))
            found[os.path.join(place, name)] = (status.st_size, status.st_mtime_ns)
    return found
