"""What is worked out once for several examples, and can be forgotten again: compiled scans and programs, what oracles said."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_forgetting: list[Callable[[], None]] = []


def remembered(last: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function that remembers what it returned for the last few arguments, until `forget`."""

    def remember(function: Callable[P, T]) -> Callable[P, T]:
        remembering = lru_cache(last)(function)
        forgotten_by(remembering.cache_clear)

        def recall(*arguments: P.args, **options: P.kwargs) -> T:
            return remembering(*arguments, **options)

        return recall

    return remember


def forgotten_by(clear: Callable[[], None]) -> None:
    """`clear` is to be called where everything is to be forgotten."""
    _forgetting.append(clear)


def forget() -> None:
    """Forget everything: what is compiled or asked of an oracle from now on is anew."""
    for clear in _forgetting:
        clear()
