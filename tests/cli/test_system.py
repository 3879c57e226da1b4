"""What the system refuses: full disks, closed streams, places without permission. One line, exit status 1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
SPEC = "std:plstm/image_p"
SIZES = ["--set", "rows=3", "--set", "cols=3", "--set", "key=2", "--set", "value=2"]

COMMANDS = {
    "help": ["--help"],
    "version": ["--version"],
    "check": ["check", SPEC],
    "check --json": ["check", SPEC, "--json"],
    "explain": ["explain", SPEC, *SIZES, "--target", "cpu"],
    "explain --json": ["explain", SPEC, *SIZES, "--target", "cpu", "--json"],
    "explain CODE": ["explain", "STM2023"],
    "fmt -": ["fmt", "-"],
    "list": ["list"],
    "show": ["show", SPEC],
    "new": ["new", "demo"],
    "doctor": ["doctor"],
    "bench": ["bench", SPEC, *SIZES, "--mode", "inference", "--repeats", "1"],
    "fuzz": ["fuzz", "--examples", "1", "--strategies", "recurrent", "--checks", "value"],
}
LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
os.execv(sys.executable, [sys.executable, "-m", "stmlang", *sys.argv[2:]])
"""
SLOW = ("bench", "fuzz", "doctor")


def run(words: list[str], folder: Path, stdout: object, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    begin = ["-m", "stmlang"] if limit is None else ["-c", LIMITED, str(limit)]
    return subprocess.run(
        [sys.executable, *begin, *words],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        timeout=120,
        check=False,
    )


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in COMMANDS])
def test_a_full_disk_behind_standard_output(command: str, tmp_path: Path) -> None:
    with open(FULL, "w") as nowhere:
        result = run(COMMANDS[command], tmp_path, nowhere)
    if command == "fmt -":  # of nothing there is nothing to write
        assert result.returncode == 0
        return
    assert (result.returncode, result.stderr) == (1, "stmlang: standard output: no space left on device\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["check", "list", "new"])
def test_a_reader_that_has_left(command: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = run(COMMANDS[command], tmp_path, writing)
    finally:
        os.close(writing)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_warning_that_nobody_can_hear_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "a.stm").write_text("scan s on chain(t) { source = 1; transition = 0.5; unused = 2 }\n")
    for spec, status in (("a.stm", 1), (SPEC, 0)):
        with open(FULL, "w") as nowhere:
            words = [sys.executable, "-m", "stmlang", "check", spec]
            result = subprocess.run(words, stderr=nowhere, stdout=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
        assert (result.returncode, "ok" in result.stdout) == (status, True)


WRITING = {
    "new": (["new", "demo"], 100, "cannot write `demo.stm`: file too large"),
    "fmt": (["fmt", "a.stm"], 10, "cannot write `a.stm`: file too large"),
    "compile": (["compile", SPEC, *SIZES, "-o", "op.stmx"], 1000, "cannot write `op.stmx`: file too large"),
    "fuzz": (["fuzz", "--examples", "1", "--out", "a.stm/found"], None, "cannot write into `a.stm/found`"),
}


@pytest.mark.parametrize("command", WRITING)
def test_files_that_cannot_be_finished(command: str, tmp_path: Path) -> None:
    """A file may have so many bytes, as on a disk that is full: nothing half-written stays, and what was there does."""
    ugly = "scan s on chain(t) { source = 1; transition = 0.5 }\n"
    (tmp_path / "a.stm").write_text(ugly)
    words, limit, said = WRITING[command]
    result = run(words, tmp_path, subprocess.PIPE, limit)
    assert result.returncode == 1, result.stderr
    assert said in result.stderr
    assert "internal error" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.stm"]
    assert (tmp_path / "a.stm").read_text() == ugly


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
@pytest.mark.parametrize("command", ["new", "compile"])
def test_folders_without_permission(command: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        result = run(WRITING[command][0], tmp_path, subprocess.PIPE)
    finally:
        tmp_path.chmod(0o700)
    assert result.returncode == 1
    assert "permission denied" in result.stderr


def test_any_other_error_of_the_system_is_a_line(stmlang, monkeypatch):
    from stmlang.cli import new

    def failing(_: object) -> int:
        raise OSError(28, "No space left on device", "/somewhere/file\x1b")

    monkeypatch.setattr(new, "run", failing)
    result = stmlang("new", "demo")
    assert (result.status, result.err) == (1, "stmlang: /somewhere/file\ufffd: no space left on device\n")
    assert "Traceback" in stmlang("new", "demo", "--debug").err
