"""`stmlang check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stmlang.cli.new import KINDS
from stmlang.cli.starters import starter
from stmlang.cli.watching import changes
from tests.cli.command import run_process
from tests.cli.test_main import LIGHT

GOOD = "scan a on chain(t) { source = 1; transition = 0.5 }\n"
BAD = "scan a on chain(t) { source = soruce; transition = 0.5 * nothing }\n"


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.stm"
    path.write_text(GOOD)
    return path


@pytest.fixture
def bad(tmp_path):
    path = tmp_path / "bad.stm"
    path.write_text(BAD)
    return path


def test_a_right_file(stmlang, good):
    result = stmlang("check", good)
    assert (result.status, result.err) == (0, "")
    assert result.out == f"{good}: ok (a on a chain)\n"


def test_every_error_of_every_file_is_reported(stmlang, good, bad, tmp_path):
    result = stmlang("check", bad, good, tmp_path / "absent.stm")
    assert result.status == 1
    assert result.err.count("error[") == 3
    assert "STM0001" in result.err
    assert f"{bad}: 2 errors\n{good}: ok (a on a chain)\n" in result.out
    assert f"{tmp_path / 'absent.stm'}: 1 error\n" in result.out


def test_json(stmlang, good, bad):
    result = stmlang("check", "--json", good, bad)
    assert (result.status, result.err) == (1, "")
    found = json.loads(result.out)
    assert found["ok"] is False
    first, second = found["files"]
    assert first == {"file": str(good), "ok": True, "scan": "a", "diagnostics": []}
    assert second["ok"] is False
    assert {entry["line"] for entry in second["diagnostics"]} == {1}
    assert all(entry["code"].startswith("STM") and entry["severity"] == "error" for entry in second["diagnostics"])


def test_standard_input(stmlang):
    assert stmlang("check", "-", stdin=GOOD.encode()).status == 0
    result = stmlang("check", "-", stdin=BAD.encode())
    assert result.status == 1
    assert "<stdin>:1:" in result.err
    assert "STM0005" in stmlang("check", "-", stdin=b"\xff").err


def test_an_argument_is_never_taken_for_a_text(stmlang):
    result = stmlang("check", GOOD.strip())
    assert result.status == 1
    assert "STM0001" in result.err


def test_settings(stmlang, good):
    assert stmlang("check", good, "--set", "t=5", "--set", "key=8").status == 0
    result = stmlang("check", good, "--set", "rows=5")
    assert result.status == 1
    assert "rows" in result.err


def test_files_of_definitions_are_fine(stmlang, tmp_path):
    path = tmp_path / "library.stm"
    path.write_text("def half(a) = a / 2\n")
    assert stmlang("check", path).out == f"{path}: ok\n"


def test_the_library_by_name(stmlang):
    result = stmlang("check", "std:no_such_spec")
    assert result.status == 1
    assert "no_such_spec" in result.err


@pytest.mark.parametrize("kind", KINDS)
def test_checking_imports_nothing_heavy(tmp_path, kind):
    """But numpy, with which stability is proved; not even that where none is asked for."""
    for text, code in (
        (starter(kind, "demo"), LIGHT.replace('"numpy", ', "")),
        (GOOD.replace("}", "; stabilize none }"), LIGHT),
    ):
        (tmp_path / "demo.stm").write_text(text)
        result = run_process("check", "demo.stm", code=code, cwd=tmp_path)
        assert result.returncode == 0, result.stderr


COUNTED = """
import sys
from cProfile import Profile
profile = Profile()
profile.enable()
from stmlang.cli.main import main
status = main(sys.argv[1:])
profile.disable()
print(sum(entry.callcount for entry in profile.getstats()), file=sys.stderr)
sys.exit(status)
"""


def test_checking_does_little(good):
    """Under half a second on an idle machine; calls are counted, imports included, since a busy one takes any time."""
    result = run_process("check", good, code=COUNTED)
    assert result.returncode == 0
    assert int(result.stderr.split()[-1]) < 400_000


def test_no_colour_unless_it_is_a_terminal(stmlang, bad):
    assert "\x1b" not in stmlang("check", bad).err


@pytest.mark.parametrize(("mode", "severity"), [("", "warning"), ("stabilize P", "note"), ("stabilize none", None)])
def test_what_is_inserted_for_stability_is_told(stmlang, mode, severity):
    """Numbers change by it: unasked it is a warning, asked for it is a note. Neither makes a spec wrong."""
    text = f"scan a on chain(t) {{ source = 1; transition = given(); {mode} }}\n"
    result = stmlang("check", "-", stdin=text.encode())
    assert result.status == 0
    assert result.err.startswith(f"{severity}[STM4001]: P-mode could not be proved" if severity else "")
    assert bool(result.err) == (severity is not None)
    found = json.loads(stmlang("check", "--json", "-", stdin=text.encode()).out)["files"][0]
    assert [one["severity"] for one in found["diagnostics"]] == ([severity] if severity else [])


def test_starters_need_nothing_inserted_unasked(stmlang):
    for kind in KINDS:
        result = stmlang("check", "-", stdin=starter(kind, "a").encode())
        assert "warning" not in result.err


def test_watching(tmp_path):
    """What is named is checked at once, and again when it changes, or what stands beside it."""
    path = tmp_path / "good.stm"
    path.write_text(GOOD)
    looks = changes([str(path)], [], pause=0.01)
    assert next(looks) == []
    path.write_text(BAD)
    assert [Path(name).name for name in next(looks)] == ["good.stm"]
    (tmp_path / "other.stm").write_text(GOOD)
    assert [Path(name).name for name in next(looks)] == ["other.stm"]
    (tmp_path / "other.stm").unlink()
    assert [Path(name).name for name in next(looks)] == ["other.stm"]


def test_watching_checks_each_time(stmlang, good, monkeypatch):
    monkeypatch.setattr("stmlang.cli.watching.changes", lambda *_: iter([[], [str(good)]]))
    result = stmlang("check", good, "--watch")
    assert result.out == f"{good}: ok (a on a chain)\n" * 2
    assert result.err == f"\n{good} changed\n"
    for words in (["--json"], ["-"]):
        assert stmlang("check", good, "--watch", *words).status == 2
