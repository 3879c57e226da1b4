"""An example of each error code: a spec that is wrong and one that is right, or, of what no text can cause, how it comes about.

The texts beside this file hold, behind `=== CODE`, parts that each begin with a line of their own:

    --- wrong FILE      a file of the wrong example; the spec is `spec.stm`
    --- right FILE      the same for the right one
    --- set NAME=VALUE  what is set from outside for both, `--- right set NAME=VALUE` for the right one alone
    --- how             how the error comes about
    --- instead         what to do about it

The tests check every spec in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

SPEC = "spec.stm"


@dataclass(frozen=True)
class Case:
    """Files by name, `spec.stm` among them, and what is set from outside."""

    files: Mapping[str, str] = field(default_factory=dict[str, str])
    settings: Mapping[str, int | float] = field(default_factory=dict[str, int | float])


@dataclass(frozen=True)
class Example:
    """A wrong and a right case, or two texts where no spec can cause the error."""

    wrong: Case | None
    right: Case | None
    how: str = ""
    instead: str = ""


@cache
def examples() -> Mapping[str, Example]:
    """By code."""
    found: dict[str, Example] = {}
    for place in sorted(files(__name__).iterdir(), key=lambda place: place.name):
        if place.name.endswith(".txt"):
            for part in place.read_text(encoding="utf-8").split("=== ")[1:]:
                code, _, rest = part.partition("\n")
                found[code] = _example(rest)
    return found


def _example(text: str) -> Example:
    parts: dict[str, str] = {}
    for part in f"\n{text}".split("\n--- ")[1:]:
        head, _, content = part.partition("\n")
        parts[head] = content.strip("\n") + "\n"
    if "how" in parts:
        return Example(None, None, parts["how"].strip(), parts["instead"].strip())
    return Example(_case(parts, "wrong"), _case(parts, "right"))


def _case(parts: Mapping[str, str], side: str) -> Case:
    names = [head.removeprefix(f"{side} ") for head in parts if head.startswith(f"{side} ") and " set " not in head]
    heads = [head for head in parts if head.startswith(f"{side} set ")] or [head for head in parts if head.startswith("set ")]
    settings = dict(head.rpartition("set ")[2].split("=") for head in heads)
    return Case({name: parts[f"{side} {name}"] for name in names}, {name: int(value) for name, value in settings.items()})
