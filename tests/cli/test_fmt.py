"""`stmlang fmt`."""

from __future__ import annotations

import os
import stat

import pytest

UGLY = "scan a on chain(t) {  # keep me\n  source=1\n  transition = 1 }\n"


@pytest.fixture
def pretty(stmlang) -> str:
    return stmlang("fmt", "-", stdin=UGLY.encode()).out


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.stm"
    path.write_text(UGLY)
    return path


def test_formats_in_place_and_only_once(stmlang, file, pretty):
    assert pretty != UGLY
    assert "# keep me" in pretty
    result = stmlang("fmt", file)
    assert (result.status, result.out) == (0, "")
    assert "formatted" in result.err
    assert file.read_text() == pretty
    before = file.stat()
    assert stmlang("fmt", file).err == ""
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert [entry.name for entry in file.parent.iterdir()] == ["a.stm"]


def test_check_writes_nothing(stmlang, file, pretty):
    result = stmlang("fmt", "--check", file)
    assert result.status == 1
    assert "would format" in result.err
    assert file.read_text() == UGLY
    file.write_text(pretty)
    assert stmlang("fmt", "--check", file).status == 0


def test_diff_is_a_patch(stmlang, file, pretty):
    result = stmlang("fmt", "--diff", file)
    assert result.status == 0
    assert file.read_text() == UGLY
    removed = [line[1:] for line in result.out.splitlines() if line.startswith("-") and not line.startswith("---")]
    added = [line[1:] for line in result.out.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert set(removed) <= set(UGLY.splitlines())
    assert set(added) <= set(pretty.splitlines())
    assert stmlang("fmt", "--diff", "--check", file).status == 1


def test_a_missing_last_line_end_shows_in_the_diff(stmlang, file):
    file.write_text(UGLY.rstrip("\n"))
    assert "\\ No newline at end of file" in stmlang("fmt", "--diff", file).out


def test_standard_input(stmlang, pretty):
    assert stmlang("fmt", "-", stdin=pretty.encode()).out == pretty
    assert stmlang("fmt", "--check", "-", stdin=UGLY.encode()).status == 1
    assert stmlang("fmt", "--check", "-", stdin=UGLY.encode()).out == ""


def test_permissions_and_links_stay(stmlang, file, tmp_path, pretty):
    file.chmod(0o640)
    link = tmp_path / "link.stm"
    link.symlink_to(file.name)
    assert stmlang("fmt", link).status == 0
    assert link.is_symlink()
    assert file.read_text() == pretty
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_one_bad_file_does_not_stop_the_others(stmlang, file, tmp_path, pretty):
    bad = tmp_path / "bad.stm"
    bad.write_text("scan (")
    result = stmlang("fmt", bad, tmp_path / "absent.stm", file)
    assert result.status == 1
    assert result.err.count("error[") >= 2
    assert bad.read_text() == "scan ("
    assert file.read_text() == pretty


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_file_that_cannot_be_written(stmlang, file):
    file.chmod(0o400)
    result = stmlang("fmt", file)
    assert result.status == 1
    assert "STM5101" in result.err


def test_a_failed_write_leaves_the_old_file(stmlang, file, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    result = stmlang("fmt", file)
    assert result.status == 1
    assert "no space left on device" in result.err
    assert file.read_text() == UGLY
    assert [entry.name for entry in file.parent.iterdir()] == ["a.stm"]


def test_what_is_formatted_to_standard_output_is_utf8(tmp_path):
    from tests.cli.command import run_process

    path = tmp_path / "a.stm"
    path.write_text(UGLY.replace("keep me", "é"), encoding="utf-8")
    code = "import sys; from stmlang.cli.main import main; sys.stdin = open(sys.argv[1]); sys.exit(main(['fmt', '-']))"
    result = run_process(path, code=code, env={**os.environ, "PYTHONIOENCODING": "ascii:strict"}, encoding="utf-8")
    assert result.returncode == 0, result.stderr
    assert "# é" in result.stdout
