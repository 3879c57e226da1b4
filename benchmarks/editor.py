"""How long an editor waits for the language server, on a text of 500 lines made of the library's specs.

    python -m benchmarks.editor

After each edit every question is asked of a new version of the text, of which nothing is known yet: parsing it and finding its
names are part of each figure, checking it where the answer rests on that. What is proved of a scan is known from before the
edit unless the edit is in that scan, as it is while somebody types. Figures are of one core.
"""

from __future__ import annotations

import argparse
import gc
import re
import time
from collections.abc import Callable
from statistics import median

from stmlang.check import library, library_specs
from stmlang.lsp.colours import painted
from stmlang.lsp.completion import completion
from stmlang.lsp.desk import settle
from stmlang.lsp.document import Document, Text
from stmlang.lsp.findings import findings, quick_fixes
from stmlang.lsp.hints import hints
from stmlang.lsp.hover import hover
from stmlang.lsp.navigation import Refused, definition, references, rename
from stmlang.lsp.signature import signature_help
from stmlang.lsp.structure import folds, formatting, outline
from stmlang.source.columns import columns

LINES = 500
LIMIT = 0.050
"""Seconds an answer may take."""

Question = Callable[[Document, int], object]

QUESTIONS: dict[str, Question] = {
    "completion": completion,
    "help for a call": signature_help,
    "hover": hover,
    "definition": definition,
    "references": lambda text, offset: references(text, offset, ()),
    "rename": lambda text, offset: _renamed(text, offset),
    "colours": lambda text, _: painted(text),
    "outline": lambda text, _: outline(text),
    "folds": lambda text, _: folds(text),
    "formatting": lambda text, _: formatting(text),
    "findings": lambda text, _: findings(text),
    "quick fixes": lambda text, offset: quick_fixes(text, offset, offset),
    "hints": lambda text, _: hints(text, 0, len(text.source.text)),
}


def _renamed(text: Document, offset: int) -> object:
    answer = rename(text, offset, "another_name", ())
    assert not isinstance(answer, Refused), answer
    return answer


def text_of(lines: int) -> str:
    """So many lines of specs of the library, under names of their own."""
    pieces = ["# stmlang: rows=14, cols=14, time=1024"]
    taken = 0
    while sum(piece.count("\n") + 1 for piece in pieces) < lines:
        for name in library_specs():
            spec = (library() / f"{name}.stm").read_text(encoding="utf-8")
            if "use std" in spec or "from" in spec or not re.search(r"^scan ", spec, re.MULTILINE):
                continue
            taken += 1
            own = re.findall(r"^(?:topology|def|scan) (\w+)", spec, re.MULTILINE)
            pieces.append(re.sub(rf"\b({'|'.join(own)})\b", rf"\1_{taken}", spec))
            if sum(piece.count("\n") + 1 for piece in pieces) >= lines:
                break
    return "\n".join(pieces)


def measure(lines: int, turns: int) -> dict[str, list[float]]:
    """Seconds of each question, one for each edit: a bias becomes another number in the scan at hand."""
    text = text_of(lines)
    places = [
        match.start(1)
        for match in re.finditer(r"\n    (?!source|transition|mark|direct)(\w+)[^=\n]*=[^\n]*sigmoid\(linear\(x", text)
    ]
    document = Document(Text("a.stm", text))
    findings(document)
    hints(document, 0, len(text))
    seconds: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    for turn in range(turns):
        gc.collect()
        place = places[turn * 7 % len(places)]
        edit = text.index("linear(x", place)
        for number, (name, question) in enumerate(QUESTIONS.items()):
            changed = f"{text[:edit]}{turn + number / 10 + 2} * {text[edit:]}"
            offset = edit + changed[edit:].index("linear(") + 7 if name in ("completion", "help for a call") else place + 1
            version = Document(Text("a.stm", changed), kept=dict(document.kept))
            start = time.perf_counter()
            question(version, offset)
            seconds[name].append(time.perf_counter() - start)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--turns", type=int, default=20)
    arguments = parser.parse_args()
    settle()
    seconds = measure(arguments.lines, arguments.turns)
    rows = [("question", "median ms", "longest ms", "")]
    for name, times in seconds.items():
        late = "" if max(times) <= LIMIT else f"longer than {1e3 * LIMIT:g} ms"
        rows.append((name, f"{1e3 * median(times):.1f}", f"{1e3 * max(times):.1f}", late))
    print("\n".join(columns(rows, {0, 3})))


if __name__ == "__main__":
    main()
