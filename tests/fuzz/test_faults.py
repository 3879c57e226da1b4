"""Every seeded fault is caught, by the checks that docs/verification.md says, and no check objects without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.faults import EVERYTHING, FAULTS, HEAD, Fault, catchers, objection, planted, row
from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]

DOCUMENT = Path(__file__).parents[2] / "docs" / "verification.md"


def table() -> dict[str, str]:
    """The lines of the documented table by the fault that they begin with."""
    _, found, rest = DOCUMENT.read_text().partition(HEAD)
    assert found, f"{DOCUMENT} has no table of faults"
    lines = rest.strip().split("\n\n")[0].splitlines()
    return {line.split("|")[1].strip(): line for line in lines}


def documented(fault: Fault) -> list[str]:
    """The checks that are said to catch a fault."""
    return [name.strip() for name in table()[fault.name].split("|")[3].split(", ")]


def test_the_table_lists_every_fault_once() -> None:
    assert list(table()) == [fault.name for fault in FAULTS]
    # `oracles` compares the oracles with each other, and meets no compiler.
    assert {name for fault in FAULTS for name in documented(fault)} == set(EVERYTHING) - {"oracles"}
    assert len({fault.strategy for fault in FAULTS}) >= 10


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=lambda number: FAULTS[number].name.replace(" ", "-"))
def test_caught(number: int) -> None:
    """By one of its checks, another one for each fault where several catch it; not by the slowest."""
    fault = FAULTS[number]
    names = [name for name in documented(fault) if name != "hvp"]
    check = names[number % len(names)]
    assert objection(check, fault) is None
    with planted(fault):
        assert objection(check, fault) is not None


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_the_table_is_what_is_found(fault: Fault) -> None:
    assert row(fault, catchers(fault)) == table()[fault.name]
