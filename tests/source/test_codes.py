from __future__ import annotations

import re
from pathlib import Path

import stmlang
from stmlang.source.codes import CODES, FAMILIES
from stmlang.source.codes.examples import examples


def test_codes_belong_to_their_family_and_to_no_other() -> None:
    assert sum(len(family) for family in FAMILIES.values()) == len(CODES)
    for prefix, family in FAMILIES.items():
        assert all(re.fullmatch(prefix + r"\d{3}", code) for code in family)


def test_every_code_is_explained() -> None:
    for title, explanation in CODES.values():
        assert title
        assert not title.endswith(".")
        assert explanation.endswith(".")
        assert "\n" not in explanation
        assert "  " not in explanation


def test_every_code_that_is_reported_is_in_the_table() -> None:
    package = Path(stmlang.__file__).parent
    used: set[str] = set()
    for path in package.rglob("*.py"):
        if path.parent.name != "codes":
            used |= set(re.findall(r"\"(STM\d{4})\"", path.read_text(encoding="utf-8")))
    assert used <= set(CODES)


def test_every_code_of_a_text_is_reported_somewhere() -> None:
    package = Path(stmlang.__file__).parent
    texts = "".join(path.read_text(encoding="utf-8") for room in ("source", "syntax") for path in (package / room).glob("*.py"))
    assert all(f'"{code}"' in texts for code in FAMILIES["STM0"])


def test_every_code_is_caused_by_a_test() -> None:
    """By the example of a wrong text that ships for it, which is run; what takes a file, a call or a machine, by a test that
    names it."""
    shown = {code for code, example in examples().items() if example.wrong is not None}
    listings = {Path(__file__), Path(__file__).parents[1] / "cli" / "test_codes.py"}  # name codes that they do not cause
    tests = [path for path in Path(__file__).parents[1].rglob("test_*.py") if path not in listings]
    named = {code for path in tests for code in re.findall(r"STM\d{4}", path.read_text(encoding="utf-8"))}
    assert set(CODES) - shown - named == set()
