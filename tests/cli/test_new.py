"""`stmlang new`."""

from __future__ import annotations

import pytest

from stmlang.cli.new import KINDS
from stmlang.cli.starters import SIZES, WHAT, starter


def test_every_kind_has_a_starter():
    assert set(KINDS) == set(WHAT) == set(SIZES)


@pytest.mark.parametrize("kind", KINDS)
def test_starters_are_formatted_and_right(stmlang, tmp_path, kind):
    path = tmp_path / "demo.stm"
    result = stmlang("new", tmp_path / "demo", "--kind", kind)
    assert result.status == 0
    assert str(path) in result.out
    assert path.read_text() == starter(kind, "demo")
    assert stmlang("fmt", "--check", path).status == 0
    checked = stmlang("check", path)
    assert checked.status == 0, checked.err
    assert checked.err == ""


def test_nothing_is_overwritten(stmlang, tmp_path):
    path = tmp_path / "demo.stm"
    path.write_text("mine")
    result = stmlang("new", path)
    assert result.status == 1
    assert "STM5102" in result.err
    assert path.read_text() == "mine"


def test_a_folder_that_is_not_there(stmlang, tmp_path):
    result = stmlang("new", tmp_path / "no" / "demo")
    assert result.status == 1
    assert "STM5101" in result.err


@pytest.mark.parametrize("origin", ["mamba", "chain/gla", "std:grid/mamba2d", "treelstm", "vil"])
def test_a_spec_of_the_library_is_copied(stmlang, tmp_path, origin):
    result = stmlang("new", tmp_path / "mine", "--from", origin)
    assert result.status == 0, result.err
    text = (tmp_path / "mine.stm").read_text()
    assert "scan mine(" in text
    assert stmlang("fmt", "--check", tmp_path / "mine.stm").status == 0
    assert stmlang("check", tmp_path / "mine.stm").status == 0
    command = next(line for line in result.out.splitlines() if "explain" in line).split()[1:]
    assert stmlang(*command).status == 0


@pytest.mark.parametrize(
    "made", [*(("--kind", kind) for kind in KINDS), ("--from", "plstm/image_tracking"), ("--from", "mamba")]
)
def test_a_long_name_breaks_lines_as_the_formatter_does(stmlang, tmp_path, made):
    path = tmp_path / f"{'long' * 30}.stm"
    assert stmlang("new", path, *made).status == 0
    assert stmlang("fmt", "--check", path).status == 0
    assert stmlang("check", path).status == 0


def test_what_cannot_be_copied(stmlang, tmp_path):
    assert "STM1036" in stmlang("new", tmp_path / "mine", "--from", "mambo").err
    assert "STM1012" in stmlang("new", tmp_path / "mine", "--from", "gates").err
    assert "STM1004" in stmlang("new", tmp_path / "vil_backward", "--from", "vil").err
    assert not list(tmp_path.iterdir())
