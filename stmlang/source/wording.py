"""Pieces of messages that every room words alike."""

from __future__ import annotations

from collections.abc import Sequence

MAX_QUOTED = 60


def quoted(text: str) -> str:
    """A piece of the user's text in backquotes, cut short where it is long."""
    return f"`{shortened(text)}`"


def shortened(text: str) -> str:
    """A piece of the user's text, cut short where it is long."""
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"


def listing(words: Sequence[str], last: str = "or") -> str:
    """`a`, `a or b`, `a, b or c`."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" {last} {words[-1]}" if words else ""


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 error`, `2,000 errors`; `plural` where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
