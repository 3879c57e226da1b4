"""Dispatch, usage, and what becomes of failures."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from stmlang.cli import main as cli
from stmlang.cli import new
from stmlang.source.diagnostic import Diagnostic, SpecError
from tests.cli.command import run_process

COMMANDS = [
    "check",
    "compile",
    "explain",
    "draw",
    "tune",
    "bench",
    "fuzz",
    "fmt",
    "list",
    "show",
    "new",
    "inspect",
    "doctor",
    "lsp",
    "completion",
]


def test_help_lists_every_command(stmlang):
    result = stmlang("--help")
    assert result.status == 0
    assert all(command in result.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(stmlang, command):
    result = stmlang(command, "--help")
    assert result.status == 0
    assert "usage: stmlang " + command in result.out


def test_version(stmlang):
    from stmlang import __version__

    assert stmlang("--version").out == f"stmlang {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: COMMAND"),
        (["chekc"], "did you mean check?"),
        (["frobnicate"], "invalid choice"),
        (["check"], "FILE"),
        (["check", "a.stm", "--bogus"], "--bogus"),
        (["check", "a.stm", "--jsn"], "unrecognized arguments: --jsn; did you mean --json?"),
        (["explain", "a.stm", "--memory-limt=3"], "did you mean --memory-limit?"),
        (["check", "a.stm", "--set", "rows"], "NAME=VALUE"),
        (["check", "a.stm", "--set", "rows=fourteen"], "'fourteen' is not a number"),
        (["check", "a.stm", "--set", "rows=nan"], "not a finite number"),
        (["check", "a.stm", "--set", "rows=inf"], "not a finite number"),
        (["check", "a.stm", "--set", "rows=" + "9" * 40], "too many digits"),
        (["check", "a.stm", "--set", "=3"], "not a name"),
        (["check", "a.stm", "--set", "rows=3", "--set", "rows=4"], "set twice"),
        (["compile", "a.stm"], "-o"),
        (["compile", "a.stm", "-o", "b", "--batch", "many"], "not a positive number"),
        (["compile", "a.stm", "-o", "b", "--target", "tpu"], "invalid choice"),
        (["explain", "a.stm", "--memory-limit", "lots"], "not a size"),
        (["explain", "a.stm", "--memory-limit", "0"], "positive"),
        (["explain", "a.stm", "--batch", "symbolic"], "not a positive number"),
        (["explain", "a.stm", "--emit", "hlo"], "invalid choice"),
        (["tune", "a.stm", "--budget", "long"], "not a time"),
        (["tune", "a.stm", "--budget", "0s"], "positive"),
        (["tune", "a.stm", "--strategy", "dense"], "--strategy"),
        (["bench", "a.stm", "--repeats", "0"], "not a positive number"),
        (["bench", "a.stm", "--mode", "fast"], "invalid choice"),
        (["new", "3d"], "not a name"),
        (["new", "a-b"], "not a name"),
        (["new", "demo", "--kind", "cube"], "invalid choice"),
        (["new", "demo", "--kind", "imge"], "did you mean image?"),
    ],
)
def test_usage_errors(stmlang, arguments, words):
    result = stmlang(*arguments)
    assert result.status == 2
    assert words in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check"], "FILE"),
        (["chekc"], "did you mean check?"),
        (["check", "a.stm", "--path", "nowhere"], "no folder 'nowhere'"),
        (["explain", "STM2932"], "there is no code STM2932"),
        (["fuzz", "--strategies", "nonsense"], "nonsense"),
    ],
)
def test_usage_errors_as_json(stmlang, arguments, words):
    result = stmlang(*arguments, "--json")
    assert (result.status, result.err) == (2, "")
    found = json.loads(result.out)
    assert (list(found), found["ok"]) == (["ok", "usage"], False)
    assert words in found["usage"]


def failing(error: BaseException):
    def run(_: object) -> int:
        raise error

    return run


def test_spec_errors_are_rendered(stmlang, monkeypatch):
    monkeypatch.setattr(new, "run", failing(SpecError([Diagnostic("STM5102", "no", None, help="yes")])))
    result = stmlang("new", "demo")
    assert (result.status, result.out) == (1, "")
    assert "error[STM5102]: no" in result.err
    assert "help: yes" in result.err


def test_spec_errors_as_json(stmlang, monkeypatch):
    from stmlang.cli import explain

    monkeypatch.setattr(explain, "run", failing(SpecError([Diagnostic("STM5102", "no", None)])))
    result = stmlang("explain", "a.stm", "--json")
    assert (result.status, result.err) == (1, "")
    found = json.loads(result.out)
    assert found["ok"] is False
    assert found["diagnostics"][0]["code"] == "STM5102"


def test_internal_errors_are_short(stmlang, monkeypatch):
    monkeypatch.setattr(new, "run", failing(ZeroDivisionError("oh")))
    result = stmlang("new", "demo")
    assert result.status == 70
    assert "internal error in `stmlang new`: ZeroDivisionError: oh at test_main.py:" in result.err
    assert "Please report it" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("arguments", [["--debug", "new", "demo"], ["new", "demo", "--debug"]])
def test_debug_shows_the_trace(stmlang, monkeypatch, arguments):
    monkeypatch.setattr(new, "run", failing(ZeroDivisionError("oh")))
    result = stmlang(*arguments)
    assert result.status == 70
    assert "Traceback" in result.err


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (RecursionError("deep"), 70), (MemoryError(), 70)])
def test_other_ends(stmlang, monkeypatch, error, status):
    monkeypatch.setattr(new, "run", failing(error))
    assert stmlang("new", "demo").status == status


def test_a_closed_pipe_is_nobodys_business():
    # The reader is gone before anything is written.
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "stmlang", "check", "-"],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert (result.returncode, result.stderr) == (cli.BROKEN_PIPE, "")


@pytest.mark.parametrize(("columns", "widest"), [("70", 68), ("0", 78), ("wide", 78), ("", 78)])
def test_help_is_as_wide_as_there_is_room(stmlang, monkeypatch, columns, widest):
    monkeypatch.setenv("COLUMNS", columns)
    lines = stmlang("check", "--help").out.splitlines()
    assert widest - 12 < max(map(len, lines)) <= widest


LIGHT = """
import sys
from stmlang.cli.main import main
status = main(sys.argv[1:])
heavy = {"jax", "jaxlib", "numpy", "equinox", "networkx", "rich", "lark"} & set(sys.modules)
print(sorted(heavy), file=sys.stderr)
sys.exit(3 if heavy else status)
"""
COUNTED = """
import sys
from stmlang.cli.main import main
status = main(sys.argv[1:])
heavy = {"jax", "jaxlib", "jaxtyping", "equinox", "optax", "scipy", "networkx", "rich", "lark", "matplotlib"} & set(sys.modules)
print("modules", len(sys.modules), sorted(heavy), file=sys.stderr)
sys.exit(status)
"""
PLAIN, WITH_CHECKER, WITH_FACTS, WITH_PLAN = 160, 225, 352, 505
"""Modules that a command may import: one that reads texts, one that checks them, one that needs numpy, one that plans."""


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--help"], ["--version"], ["check", "--help"], ["new", "demo"], ["fmt", "demo.stm"]),
        *(["list"], ["show", "std:chain/gla"], ["explain", "STM2001"]),
    ],
)
def test_fast_commands_import_nothing_heavy(tmp_path, arguments):
    (tmp_path / "demo.stm").write_text("scan a on chain(t) { source = 1; transition = 1 }\n") if arguments[0] == "fmt" else None
    result = run_process(*arguments, code=LIGHT, cwd=tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        (["fmt", "--check", "demo.stm"], PLAIN),
        (["list"], PLAIN),
        (["show", "std:chain/gla"], PLAIN),
        (["new", "other"], PLAIN),
        (["lsp", "--help"], PLAIN),
        (["inspect", "--help"], PLAIN),
        (["--version"], WITH_CHECKER),
        (["completion", "bash"], WITH_CHECKER),
        (["new", "other", "--project"], WITH_CHECKER),
        (["explain", "demo.stm", "--emit", "scan"], WITH_CHECKER),
        (["explain", "STM2023"], WITH_CHECKER),
        (["check", "demo.stm"], WITH_FACTS),
        (["explain", "demo.stm", "--emit", "facts"], WITH_FACTS),
        (["explain", "demo.stm", "--set", "t=9", "--target", "cpu"], WITH_PLAN),
        (["explain", "std:plstm/image_p", "--set", "rows=3", "--set", "cols=3", "--target", "h200"], WITH_PLAN),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_commands_without_jax_start_with_few_modules(tmp_path, arguments, most):
    """What a command takes to start is what it imports; a count does not depend on how busy the machine is."""
    text = "scan a on chain(t) {\n    source     = 1\n    transition = 0.5\n}\n"
    (tmp_path / "demo.stm").write_text(text)
    result = run_process(*arguments, code=COUNTED, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    _, count, heavy = result.stderr.split("\n")[-2].split(" ", 2)
    assert (int(count) <= most, heavy) == (True, "[]"), result.stderr


@pytest.mark.parametrize("name", [b"caf\xc3\xa9.stm", b"\xff\xfe.stm", b"new\nline.stm", b"\x1b[31m.stm"])
@pytest.mark.parametrize("command", [["check"], ["check", "--json"], ["fmt"], ["explain", "--emit", "tree"]])
def test_strange_file_names_on_a_terminal_without_unicode(tmp_path, name, command):
    path = os.path.join(os.fsencode(tmp_path), name)
    with open(path, "wb") as file:
        file.write(b"scan a on chain(t) {\n    source     = 1\n    transition = 1  # \xc3\xa9\n}\n")
    for argument in (path, path + b".absent"):
        words = [sys.executable, "-m", "stmlang", *command, argument]
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        result = subprocess.run(words, capture_output=True, env=environment, timeout=60, check=False)
        assert result.returncode == (0 if argument == path else 1), result.stderr
        assert b"\x1b" not in result.stdout + result.stderr
        assert b"Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("closed", "status", "said"),
    [
        ("<&-", 0, ""),
        (">&-", 1, "stmlang: standard output: bad file descriptor\n"),
        ("2>&-", 0, ""),
        ("<&- >&- 2>&-", 1, ""),
    ],
)
def test_closed_streams(closed, status, said):
    """Who closes standard input has nothing to say, who closes standard error wants to hear nothing; a result is lost."""
    words = f'"{sys.executable}" -m stmlang check - {closed} </dev/null'
    if "<&-" in closed:
        words = words.removesuffix(" </dev/null")
    result = subprocess.run(["sh", "-c", words], capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (status, said)


def test_a_folder_is_no_spec(stmlang, tmp_path):
    result = stmlang("explain", tmp_path)
    assert result.status == 1
    assert "STM0002" in result.err
