"""The pages of the error codes: what each means, an example that is wrong, what the compiler says of it, one that is right."""

from __future__ import annotations

from collections.abc import Iterator

from stmlang.cli.codes import diagnosed
from stmlang.source.codes import FAMILIES
from stmlang.source.codes.examples import Case, Example, examples
from stmlang.source.diagnostic import render

WIDTH = 80
"""Columns that fit on a page."""
WORDS = {
    "STM0": "Reading a text",
    "STM1": "Names and imports",
    "STM2": "Indices, types and sizes",
    "STM3": "Topologies, graph files, graphs given at run time",
    "STM4": "Stability",
    "STM5": "Planning, lowering, calls and artifacts",
    "STM9": "The compiler itself",
}
INTRODUCTION = """\
# Error codes

A spec is refused with all that is wrong with it, each finding once: a code, a place, a reason, and a suggestion where there is
one. `stmlang explain CODE` prints these pages in a terminal. The rules: [the language](../language.md#18-errors).
"""


def error_pages() -> Iterator[tuple[str, str]]:
    """Name and text of each page, the index first."""
    lines = [INTRODUCTION]
    for family, codes in FAMILIES.items():
        lines += [f"## {WORDS[family]}", "", "| code | what is wrong |", "|---|---|"]
        lines += [f"| [`{code}`]({code}.md) | {title} |" for code, (title, _) in sorted(codes.items())] + [""]
    yield "errors/index.md", "\n".join(lines)
    for codes in FAMILIES.values():
        for code, (title, text) in codes.items():
            yield f"errors/{code}.md", _page(code, title, text, examples()[code])


def _page(code: str, title: str, text: str, example: Example) -> str:
    head = f"# {code}: {title}\n\n{text}\n\n"
    if example.wrong is None or example.right is None:
        return f"{head}## How it comes about\n\n{example.how}\n\n## What to do\n\n{example.instead}\n\n{_REST}"
    said = [diagnostic for diagnostic in diagnosed(example.wrong) if diagnostic.code == code]
    shown = "\n\n".join(render(diagnostic, width=WIDTH) for diagnostic in said)
    wrong, right = _case(example.wrong), _case(example.right)
    return f"{head}## For example\n\n{wrong}\n```text\n{shown}\n```\n\n## Write instead\n\n{right}\n{_REST}"


_REST = "[All codes](index.md)\n"


def _case(case: Case) -> str:
    """The files of a case, and what is set from outside."""
    blocks: list[str] = []
    if case.settings:
        blocks.append("With " + " ".join(f"`--set {name}={value}`" for name, value in case.settings.items()) + ":\n")
    for name, text in case.files.items():
        language = "stm" if name.endswith(".stm") else "text"
        blocks.append(f'```{language} title="{name}"\n{text.rstrip()}\n```\n')
    return "\n".join(blocks)
