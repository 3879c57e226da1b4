"""`stmlang check` and `stmlang fmt` on folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

GOOD = "scan s on chain(t) {\n    source     = 1\n    transition = 0.5\n}\n"
UGLY = "scan s on chain(t) { source = 1; transition = 0.5 }\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("b.stm", "a.stm", "inner/deep/c.stm", ".hidden/d.stm", ".venv/e.stm", "build/f.stm", "inner/.g.stm"):
        (tmp_path / "specs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "specs" / name).write_text(UGLY if name == "inner/deep/c.stm" else GOOD)
    (tmp_path / "specs" / "notes.txt").write_text("no spec")
    (tmp_path / "specs" / "loop").symlink_to(tmp_path / "specs")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "specs"


@pytest.mark.usefixtures("folder")
def test_every_spec_in_a_folder_in_order(stmlang):
    result = stmlang("check", "specs")
    assert result.status == 0, result.err
    assert [line.partition(":")[0] for line in result.out.splitlines()] == [
        "specs/a.stm",
        "specs/b.stm",
        "specs/inner/deep/c.stm",
    ]


def test_a_wrong_one_among_them(stmlang, folder):
    (folder / "b.stm").write_text("scan s on chain(t) { source = 1 }\n")
    result = stmlang("check", "specs", "--json")
    found = json.loads(result.out)
    assert (result.status, found["ok"]) == (1, False)
    assert [(Path(entry["file"]).name, entry["ok"]) for entry in found["files"]] == [
        ("a.stm", True),
        ("b.stm", False),
        ("c.stm", True),
    ]


def test_what_would_be_formatted_and_is(stmlang, folder):
    looked = stmlang("fmt", "--check", "specs")
    assert (looked.status, looked.err) == (1, "would format specs/inner/deep/c.stm\n")
    assert stmlang("fmt", "specs").status == 0
    assert (folder / "inner/deep/c.stm").read_text() == GOOD
    assert (folder / "inner/.g.stm").read_text() == GOOD
    assert stmlang("fmt", "--check", "specs").status == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["check", "fmt"])
def test_a_folder_without_a_spec_hides_no_other(stmlang, command):
    result = stmlang(command, "empty", "specs/inner", "specs/a.stm")
    assert result.status == 1
    assert "error[STM5103]: there is no spec in `empty`" in result.err
    assert "c.stm" in result.out + result.err
