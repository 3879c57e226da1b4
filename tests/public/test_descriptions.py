"""What a newcomer reads of a public case: what went wrong where, and what holds here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.helpers.data import data_folder

MODULES = sorted(Path(__file__).parent.glob("test_*_cases.py"))
UNTESTED = {"C11"}
"""Those that docs/verification.md says to have no test yet."""


def functions_of(path: Path) -> list[ast.FunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def cases_of(path: Path) -> set[str]:
    return {name[1] for test in functions_of(path) if (name := re.match(r"test_(C\d\d)_", test.name))}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_says_what_went_wrong_where(path: Path) -> None:
    """A paragraph for each case that it has tests of, and for no other: its number, the reports, and what is so here."""
    paragraphs = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")
    told = {start[1]: text for text in paragraphs if (start := re.match(r"(C\d\d) \(", text))}
    assert set(told) == cases_of(path)
    for text in told.values():
        assert re.match(r"C\d\d \([\w.-]+/[\w.-]+#\d+[^)]*\)\. [A-Z]", text)
        assert "Here " in text


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_each_test_says_what_holds(path: Path) -> None:
    assert [test.name for test in functions_of(path) if not ast.get_docstring(test)] == []


def test_every_case_is_here() -> None:
    listed = set(re.findall(r"^\| (C\d\d) \|", (data_folder("cases.md")).read_text(encoding="utf-8"), re.MULTILINE))
    assert listed
    assert set().union(*map(cases_of, MODULES)) | UNTESTED == listed
    gaps = (Path(__file__).parents[2] / "docs" / "verification.md").read_text(encoding="utf-8")
    assert all(f"| {case} |" in gaps for case in UNTESTED)
