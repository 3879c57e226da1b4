"""SPEC.md, README.md and docs: their specs check, and what they repeat of the code is what the code says.

`--update-golden` writes the tables of codes and of the library and the grammar of SPEC.md anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stmlang.check import examine, open_spec
from stmlang.source.codes import CODES
from stmlang.source.diagnostic import Severity, render
from tests.helpers.architectures import architectures_section

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "SPEC.md", ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(r"^```(stm|stm-error)(?: (STM\d{4}))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""Those that are files, with a title, need what stands beside them: `tests/docs/test_site.py` checks them."""


def blocks(kind: str) -> list[tuple[str, str, str]]:
    """`(where, text, code)` of the blocks of a kind."""
    found: list[tuple[str, str, str]] = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for block in _BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 1
            if block.group(1) == kind:
                found.append((f"{document.name}:{line}", block.group(3), block.group(2) or ""))
    return found


@pytest.mark.parametrize(("where", "text", "code"), blocks("stm"), ids=[where for where, _, _ in blocks("stm")])
def test_spec_in_a_document(where: str, text: str, code: str) -> None:
    found = examine(open_spec(f"{text}\n"))
    assert [render(one) for one in found.diagnostics] == [], where
    assert code == "", "a block that is meant to fail is marked `stm-error`"


@pytest.mark.parametrize(("where", "text", "code"), blocks("stm-error"), ids=[where for where, _, _ in blocks("stm-error")])
def test_wrong_spec_in_a_document(where: str, text: str, code: str) -> None:
    found = examine(open_spec(f"{text}\n"))
    assert found.failed, where
    assert code in {one.code for one in found.diagnostics if one.severity is Severity.ERROR}


def test_every_fence_is_understood() -> None:
    """A misspelt fence would leave its block unchecked."""
    for document in DOCUMENTS:
        for fence in re.findall(r"^```(stm.*)$", document.read_text(encoding="utf-8"), re.MULTILINE):
            assert re.fullmatch(r"stm( title=\"\w+\.stm\")?|stm-error STM\d{4}", fence), (document.name, fence)


def codes_section() -> str:
    rows = [f"| `{code}` | {title} | {text.replace('|', chr(92) + '|')} |" for code, (title, text) in sorted(CODES.items())]
    return "\n".join(["| code | title | explanation |", "|---|---|---|", *rows])


def grammar_section() -> str:
    return f"```lark\n{(ROOT / 'stmlang/syntax/stm.lark').read_text(encoding='utf-8').strip()}\n```"


@pytest.mark.parametrize(
    ("name", "section"), [("codes", codes_section), ("grammar", grammar_section), ("architectures", architectures_section)]
)
def test_spec_repeats_the_code(name: str, section, update_golden: bool) -> None:
    path = ROOT / "SPEC.md"
    text = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    before, rest = text.split(begin)
    _, after = rest.split(end) if end in rest else ("", rest.removeprefix(end.lstrip("\n")))
    expected = f"{before}{begin}{section()}{end}{after}"
    if update_golden:
        path.write_text(expected, encoding="utf-8")
        text = expected
    assert text == expected, "run this test with --update-golden"
