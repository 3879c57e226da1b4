"""The corpus of programs in `tests/programs`, and what the checker says about each.

A program may begin with a line `# set: NAME = VALUE, ...` or `# scan: NAME`: what is given from outside.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stmlang.check import Examined, Spec, examine
from stmlang.check.search_path import place_of
from stmlang.source.diagnostic import SpecError
from stmlang.source.reading import read

PROGRAMS = Path(__file__).parents[1] / "programs"
GOOD = sorted(path.name for path in (PROGRAMS / "good").glob("*.stm"))
BAD = sorted(path.name for path in (PROGRAMS / "bad").glob("*.stm"))

_SETTING = re.compile(r"(\S+) = (\S+?)(?:,|\s|$)")


@contextmanager
def inside(folder: str) -> Iterator[None]:
    """With a folder of the corpus as the current one, so that paths in messages are short and the same everywhere."""
    before = os.getcwd()
    os.chdir(PROGRAMS / folder)
    try:
        yield
    finally:
        os.chdir(before)


def examined(folder: str, name: str) -> Examined:
    """What the checker says about a program."""
    with inside(folder):
        try:
            source = read(name)
        except SpecError as error:
            return Examined(None, error.diagnostics)
        first = source.text.split("\n", 1)[0]
        wanted = first.removeprefix("# scan: ") if first.startswith("# scan: ") else None
        settings: dict[str, int | float] = {}
        if first.startswith("# set: "):
            settings = {key: _number(value) for key, value in _SETTING.findall(first.removeprefix("# set: "))}
        spec = Spec(source, wanted, place_of(Path()), Path(name))
        return examine(spec, settings, library_file=False)


def _number(text: str) -> int | float:
    return float(text) if not text.lstrip("-").isdigit() else int(text)
