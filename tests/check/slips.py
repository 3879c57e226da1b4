"""The corpus of slips in `tests/programs/slips.md`: specs as newcomers write them, each with what it is answered."""

from __future__ import annotations

import re

from stmlang.check import Examined, examine, open_spec
from stmlang.source.diagnostic import Diagnostic
from tests.check.programs import PROGRAMS, inside

DOCUMENT = PROGRAMS / "slips.md"
BLOCK = re.compile(r"^```spec\n(.*?)^```\n\n```answer\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def slips() -> list[tuple[str, str]]:
    """Pairs of a spec and its answer, in order."""
    return [(block[1], block[2]) for block in BLOCK.finditer(DOCUMENT.read_text(encoding="utf-8"))]


def answered(text: str) -> Examined:
    """What the checker says of a text, in the folder of the bad programs."""
    with inside("bad"):
        return examine(open_spec(text))


def answer(text: str) -> str:
    """The place, the first line and the suggestion of each finding."""
    return "".join(map(_lines, answered(text).diagnostics))


def _lines(found: Diagnostic) -> str:
    place = "" if found.span is None else ":".join(map(str, found.span.file.position(found.span.start))) + " "
    help = "" if found.help is None else f"     help: {found.help}\n"
    return f"{place}{found.severity.value}[{found.code}]: {found.message}\n{help}"
