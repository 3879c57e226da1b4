"""Refusals of graphs that a program brings, where there is no text to point at."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.wording import shortened


def refusal(code: str, message: str, help: str, *notes: str) -> SpecError:
    """The error to raise: what is wrong, what to do about it, and the rules behind."""
    return SpecError([Diagnostic(code, message, None, notes, help)])


def kind_of(argument: object) -> str:
    """What a wrong argument is, in a word: its type."""
    return type(argument).__name__


def shown(argument: object) -> str:
    """What somebody gave, as Python writes it, cut short."""
    try:
        return shortened(repr(argument))
    except Exception:  # such as an integer of more digits than Python writes, or an object that cannot be written
        return kind_of(argument)


def named(name: object) -> str:
    """The same for what is a name: a text as it is, in full."""
    try:
        return str(name)
    except Exception:  # as above
        return kind_of(name)


def whole(number: object) -> int | None:
    """A whole number, Python's or another library's, as Python's; None for anything else, truth values included."""
    if isinstance(number, bool) or not isinstance(number, SupportsIndex):
        return None
    try:
        return index(number)
    except TypeError:  # an array of several numbers has the method, too
        return None
