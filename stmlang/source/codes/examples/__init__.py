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
    by_code: dict[str, Example] = {}
    for place in sorted(files(__name__).iterdir(), key=lambda place: place.name):
        if place.name.endswith(".txt"):
            for entry in place.read_text(encoding="utf-8").split("=== ")[1:]:
                code, _, body = entry.partition("\n")
                by_code[code] = _example(body)
    return by_code


def _example(text: str) -> Example:
    sections: dict[str, str] = {}
    for section in f"\n{text}".split("\n--- ")[1:]:
        head, _, content = section.partition("\n")
        sections[head] = content.strip("\n") + "\n"
    if "how" in sections:
        return Example(None, None, sections["how"].strip(), sections["instead"].strip())
    return Example(_case(sections, "wrong"), _case(sections, "right"))


def _case(sections: Mapping[str, str], side: str) -> Case:
    names = [head.removeprefix(f"{side} ") for head in sections if head.startswith(f"{side} ") and " set " not in head]
    heads = [head for head in sections if head.startswith(f"{side} set ")] or [
        head for head in sections if head.startswith("set ")
    ]
    settings = dict(head.rpartition("set ")[2].split("=") for head in heads)
    return Case({name: sections[f"{side} {name}"] for name in names}, {name: int(value) for name, value in settings.items()})
