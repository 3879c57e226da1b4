"""What scans on thousands of devices would take, on paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scale import STUDIES, main, river, rows
from stmlang.cost.target import TARGETS


def test_pieces_get_shorter_and_devices_are_not_all_work() -> None:
    lines = list(rows(STUDIES[0], TARGETS["h200"]))
    assert [line.devices for line in lines] == [8, 64, 512, 4096]  # the whole does not fit one
    assert [line.nodes for line in lines] == [-(-(10**8) // line.devices) for line in lines]
    seconds = [line.total for line in lines]
    assert seconds == sorted(seconds, reverse=True)
    for line in lines:
        assert line.total == pytest.approx(line.seconds + line.telling)
        assert 0 < line.share < 1
        assert line.sent >= line.fewest > 0


def test_levels_of_a_river_are_not_divided() -> None:
    levels = {seconds for _, seconds, _ in river(TARGETS["h200"])}
    assert len(levels) == 1


def test_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--target", "a100", "--out", str(tmp_path / "scale.json")]) == 0
    shown = capsys.readouterr().out
    assert all(study.title in shown for study in STUDIES)
    assert (tmp_path / "scale.json").exists()
