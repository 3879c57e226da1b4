"""`make gpu ARGS=--dry`: every section runs on a CPU, what was interrupted goes on, what fails is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import running
from benchmarks.gpu.__main__ import measure_all
from benchmarks.gpu.report import gathered, page
from benchmarks.gpu.settings import SECTIONS, Options, section


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_of_a_dry_run(name: str, tmp_path: Path) -> None:
    options, module = Options(tmp_path, dry=True), section(name)
    running.work(options, name)
    found = running.found(options, name)
    assert list(found) == module.cases(options)
    for case, entry in found.items():
        assert "failed" not in entry, entry
        assert entry.get("ok", True), entry
        assert len(module.row(case, entry)) == len(module.HEADER)
    assert running.left(options, name) == []
    assert f"## {module.TITLE}" in page(gathered(options, {}))
    assert set(module.cases(Options(tmp_path, quick=True))) <= set(module.cases(Options(tmp_path)))


class Made:
    """A section of three cases, the second of which ends its process and the third of which is wrong."""

    SHARE, ENVIRONMENT, TITLE, HEADER = 1.0, {}, "Made up", ("case", "value")

    def __init__(self) -> None:
        self.measured: list[str] = []

    def cases(self, options: Options) -> list[str]:
        del options
        return ["a", "b", "c"]

    def measure(self, case: str, options: Options) -> dict[str, Any]:
        del options
        self.measured.append(case)
        if case == "b" and self.measured.count("b") < 2:
            raise SystemExit(3)
        if case == "c":
            raise ValueError("no such device")
        return {"value": 1}

    def row(self, case: str, found: dict[str, Any]) -> tuple[str, ...]:
        return case, str(found["value"])


def test_what_ends_a_process_or_fails_is_said_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, options = Made(), Options(tmp_path)

    def process(options: Options, name: str, lost: list[str], seconds: float) -> int | None:
        try:
            running.work(options, name, tuple(lost))
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else 1
        return 0 if seconds > 0 else None

    for module in ("benchmarks.gpu.running", "benchmarks.gpu.report", "benchmarks.gpu.__main__"):
        monkeypatch.setattr(f"{module}.section", lambda _: made)
    monkeypatch.setattr("benchmarks.gpu.report.SECTIONS", ("made",))
    monkeypatch.setattr(running, "_process", process)
    assert running.begin(options, anew=False) is None
    assert measure_all(options, ("made",)) == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["bad"] == ["made: b", "made: c"]
    assert report["sections"]["made"]["c"]["failed"] == "ValueError: no such device"
    assert "b failed: its process ended with status 3" in (tmp_path / "gpu.md").read_text()
    assert running.begin(options, anew=False) is None  # the same run goes on
    assert measure_all(options, ("made",)) == 1
    assert (made.measured.count("a"), made.measured.count("b")) == (1, 2)
    assert json.loads((tmp_path / "report.json").read_text())["bad"] == ["made: c"]
    assert running.begin(Options(tmp_path, quick=True), anew=False) is not None  # another one begins anew
    assert running.found(options, "made") == {}
