"""The corpus: good programs check and are sound, bad ones say what their golden files hold."""

from __future__ import annotations

import pytest

from stmlang.check.invariants import verify
from stmlang.scan.show import show_scan
from stmlang.source.codes import CODES
from stmlang.source.diagnostic import Severity, render
from tests.check.programs import BAD, GOOD, PROGRAMS, examined

EXEMPT: dict[str, str] = {
    **dict.fromkeys(("STM0001", "STM0002", "STM0003"), "files that cannot be read: tests/source/test_reading.py"),
    "STM0004": "a text of a mebibyte: tests/source/test_reading.py",
    "STM0007": "a file that is no text: tests/cli/test_library.py",
    "STM1021": "a symbolic link: tests/check/test_modules.py",
    "STM1024": "a hundred files: tests/check/test_modules.py",
    "STM1036": "a name of the library, not a text: tests/check/test_api.py",
    "STM2041": "binding the axes of a checked scan: tests/scan/test_sizes.py",
    **dict.fromkeys(("STM3301", "STM3302", "STM3304"), "graphs as numbers: tests/graph/test_build.py"),
    "STM3305": "a graph larger than the memory: tests/api/test_compile.py",
    **dict.fromkeys(("STM3401", *(f"STM34{number:02}" for number in range(3, 16))), "graph files: tests/graph/test_readers*"),
    "STM3416": "data sets: tests/graph/test_dataset_tu.py",
    **dict.fromkeys(
        (f"STM35{number:02}" for number in range(1, 11)), "graphs at run time: tests/graph/test_batch.py, test_convert*"
    ),
}
"""Codes of the families 0 to 3 that no program of the corpus raises, and why."""


@pytest.mark.parametrize("name", GOOD)
def test_good_program(name: str) -> None:
    found = examined("good", name)
    assert not [render(one) for one in found.diagnostics if one.severity is Severity.ERROR]
    assert found.scan is not None
    verify(found.scan)
    assert show_scan(found.scan) == show_scan(found.scan)


@pytest.mark.parametrize("name", BAD)
def test_bad_program(name: str, update_golden: bool) -> None:
    found = examined("bad", name)
    shown = "\n\n".join(render(one) for one in found.diagnostics) + "\n"
    golden = (PROGRAMS / "bad" / name).with_suffix(".expected")
    if update_golden:
        golden.write_text(shown, encoding="utf-8")
    assert found.failed
    assert found.scan is None
    assert shown == golden.read_text(encoding="utf-8")


def test_warnings() -> None:
    codes = {one.code for name in ("unused_gate.stm", "equation_never_holds.stm") for one in examined("good", name).diagnostics}
    assert codes == {"STM1034", "STM1035", "STM2042"}


def test_the_corpus_is_large() -> None:
    assert len(GOOD) >= 40
    assert len(BAD) >= 100


def test_every_code_is_covered() -> None:
    """Every code that a spec alone can raise is raised by a program; the others are listed with the reason."""
    raised = {
        one.code
        for folder, names in (("bad", BAD), ("good", GOOD))
        for name in names
        for one in examined(folder, name).diagnostics
    }
    families = {code for code in CODES if code[3] in "0123"}
    assert families - raised == set(EXEMPT)
