"""The examples run: a step of each, and as their readers run them in the slow tests, with what they reach. Those that compile
for many seconds stand in the slow tests alone."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.helpers.data import data_folder

FOLDER = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
LONGEST = 100
LONG = ("images", "molecules", "video")
REACHED = {
    "tagger": lambda right: right > 0.97,
    "forecasting": lambda errors: errors[0] < 0.75 * errors[1],
    "images": lambda right: right > 0.95,
    "video": lambda right: right > 0.9,
    "river": lambda left: left < 0.02,
    "molecules": lambda right: right > 0.7,
}


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def arguments(name: str) -> tuple[Any, ...]:
    return (str(data_folder("data/tu")),) if name == "molecules" else ()


def test_all_are_short_and_listed() -> None:
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert set(NAMES) == set(REACHED)
    for name in NAMES:
        assert f"[{name}.py]({name}.py)" in table
        assert len((FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()) < LONGEST


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in NAMES])
def test_a_step(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    reached = example(name).main(*arguments(name), steps=1)
    assert np.isfinite(reached).all()
    assert capsys.readouterr().out.strip()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_reached(name: str) -> None:
    assert REACHED[name](example(name).main(*arguments(name)))
