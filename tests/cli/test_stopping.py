"""Commands that are told to stop, at every stage: one line, the right status, nothing left behind."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.stopping import STATUS, hung_up, stopped

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")

SIGNALS = list(STATUS)


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for everything that a command may write, and as users have it: no line of Python's own in haste."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path / "cache"))


def leftovers(folder: Path) -> list[str]:
    """Files that are not finished."""
    return [str(path) for path in folder.rglob("*") if ".tmp" in path.name or path.parent.name == "temporary"]


def program(body: str, before: str = "") -> list[str]:
    """A process whose command is `body`."""
    lines = "".join(f"    {line}\n" for line in body.strip().split("\n"))
    head = "import hashlib, os, sys, time\nfrom stmlang import ending\nfrom stmlang.source.writing import written_whole\n"
    return ["-c", f"{head}{before}\ndef command():\n{lines}\nending.start(command, 'demo')\n"]


SAY = "print('ready', flush=True)\n"
IN_C = "hashlib.pbkdf2_hmac('sha256', b'', b'', 1_000_000_000)"
"""Minutes in C, in which no handler of Python's can run."""


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("work", ["time.sleep(60)", IN_C, "while True: pass"], ids=["asleep", "in C", "busy"])
def test_one_line_and_the_status(tmp_path: Path, number: signal.Signals, work: str) -> None:
    found = stopped(program(SAY + work), number, 0.1, tmp_path, ready=True)
    status, words = STATUS[number]
    assert (found.status, found.err) == (status, f"demo: {words}\n")


@pytest.mark.parametrize("work", ["time.sleep(60)", IN_C], ids=["asleep", "in C"])
def test_what_was_found_is_printed_once(tmp_path: Path, work: str) -> None:
    body = f"with ending.rescuing(lambda: print('outer')), ending.rescuing(lambda: print('inner')):\n    {SAY}    {work}"
    found = stopped(program(body), signal.SIGINT, 0.1, tmp_path, ready=True)
    assert (found.status, found.out, found.err) == (130, "ready\ninner\nouter\n", "demo: interrupted\n")


def test_a_fault_in_a_rescue_and_in_what_swallows_exceptions(tmp_path: Path) -> None:
    """Nothing that the command does with exceptions keeps it from ending."""
    body = f"try:\n    with ending.rescuing(lambda: 1 / 0):\n        {SAY}        time.sleep(60)\n"
    body += f"except BaseException:\n    {IN_C}"
    found = stopped(program(body), signal.SIGINT, 0.1, tmp_path, ready=True)
    assert (found.status, found.err) == (130, "demo: interrupted\n")


@pytest.mark.parametrize("work", ["time.sleep(60)", IN_C], ids=["asleep", "in C"])
def test_files_are_old_or_new(tmp_path: Path, work: str) -> None:
    (tmp_path / "kept").write_text("old")
    body = f"with written_whole(__import__('pathlib').Path('kept')) as file:\n    file.write(b'half')\n    {SAY}    {work}"
    assert stopped(program(body), signal.SIGTERM, 0.1, tmp_path, ready=True).status == 143
    assert (tmp_path / "kept").read_text() == "old"
    assert not leftovers(tmp_path)


def test_steps_that_belong_together(tmp_path: Path) -> None:
    body = f"with ending.held():\n    {SAY}    time.sleep(0.5)\n    open('both', 'w').write('done')\ntime.sleep(60)"
    assert stopped(program(body), signal.SIGINT, 0.1, tmp_path, ready=True).status == 130
    assert (tmp_path / "both").read_text() == "done"


def test_told_twice(tmp_path: Path) -> None:
    """Who does not want to wait for what is being saved says so again."""
    body = f"with ending.rescuing(lambda: (os.kill(os.getpid(), 2), time.sleep(60))):\n    {SAY}    time.sleep(60)"
    found = stopped(program(body), signal.SIGINT, 0.1, tmp_path, ready=True)
    assert found.status == 130


def test_what_takes_too_long_to_save_is_left(tmp_path: Path) -> None:
    body = f"with ending.rescuing(lambda: {IN_C}):\n    {SAY}    time.sleep(60)"
    found = stopped(program(body, "ending.LAST = 1.0"), signal.SIGINT, 0.1, tmp_path, ready=True)
    assert found.status == 130


def test_children_end(tmp_path: Path) -> None:
    child = "[sys.executable, '-c', 'import time; time.sleep(60)']"
    found = stopped(program(f"{SAY}ending.output_of({child}, os.environ)"), signal.SIGTERM, 0.5, tmp_path, ready=True)
    assert (found.status, found.err) == (143, "demo: terminated\n")


def test_signals_that_are_ignored_stay_ignored(tmp_path: Path) -> None:
    """As `nohup` and a shell's `&` ask for."""
    ignoring = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)"
    found = stopped(program(f"{SAY}time.sleep(0.5)\nprint('done')", ignoring), signal.SIGHUP, 0.1, tmp_path, ready=True)
    assert (found.status, found.out, found.err) == (0, "ready\ndone\n", "")


def test_a_terminal_that_was_closed(tmp_path: Path) -> None:
    assert hung_up(program("time.sleep(60)"), 1.0, tmp_path) == 129


# --- the commands themselves -----------------------------------------------------------------------------------------

SPEC = "std:plstm/image_p"
SIZE = ["--set", "rows=6", "--set", "cols=6", "--set", "key=8", "--set", "value=8"]
COMMANDS = {
    "bench": (["bench", SPEC, *SIZE, "--all"], 30.0),
    "tune": (["tune", SPEC, *SIZE], 30.0),
    "doctor": (["doctor", "--calibrate"], 20.0),
    "compile": (["compile", SPEC, *SIZE, "-o", "op.stmx"], 8.0),
    "fuzz": (["fuzz", "--workers", "2", "--minutes", "1"], 30.0),
    "watch": (["check", SPEC, "--watch"], 5.0),
}
"""Commands, and how many seconds they take at most, more or less."""


def run(command: str, number: signal.Signals, delay: float, folder: Path) -> None:
    words, _ = COMMANDS[command]
    found = stopped(["-m", "stmlang", *words], number, delay, folder)
    if found.status != 0:  # else it was faster
        status, said = STATUS[number]
        remarks = [line for line in found.err.split("\n") if line and not line.startswith(("note", " ", "error"))]
        assert found.status == status, found
        assert remarks[-1] == f"stmlang: {said}", found
        assert all("not tried after" in line for line in remarks[:-1]), found
        assert found.seconds < 15, found
    assert "Traceback" not in found.err
    assert not leftovers(folder)
    for path in (folder / "cache").glob("*.json"):
        json.loads(path.read_text())
    if (folder / "op.stmx").exists():
        assert subprocess.run([sys.executable, "-m", "stmlang", "inspect", "op.stmx"], cwd=folder, check=False).returncode == 0
        (folder / "op.stmx").unlink()


@pytest.mark.parametrize(
    ("command", "number", "delay"),
    [
        ("bench", signal.SIGINT, 0.5),
        ("tune", signal.SIGTERM, 1.0),
        ("compile", signal.SIGHUP, 2.0),
        ("fuzz", signal.SIGINT, 3.0),
        ("watch", signal.SIGINT, 1.0),
    ],
)
def test_a_command(command: str, number: signal.Signals, delay: float, tmp_path: Path) -> None:
    """While modules are imported, while a scan is planned and compiled, while processes are started."""
    run(command, number, delay, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_at_any_time(command: str, tmp_path: Path) -> None:
    """Nine tries with Ctrl-C, five with SIGTERM, four with a terminal that is closed."""
    chosen = random.Random(command)
    for number in [signal.SIGINT] * 9 + [signal.SIGTERM] * 5:
        run(command, number, chosen.uniform(0.2, COMMANDS[command][1]), tmp_path)
    for _ in range(4):
        delay = chosen.uniform(0.3, COMMANDS[command][1])
        assert hung_up(["-m", "stmlang", *COMMANDS[command][0]], delay, tmp_path) in (0, 129)
        assert not leftovers(tmp_path)
        (tmp_path / "op.stmx").unlink(missing_ok=True)


@pytest.mark.parametrize("name", ["digits", "statetracking", "tudataset", "circuits", "arrow", "imagenet", "charlm"])
def test_studies(name: str, tmp_path: Path) -> None:
    words = ["-m", f"stmlang.experiments.{name}", "--out", str(tmp_path / "out")]
    words += ["--data", str(tmp_path)] * (name in ("circuits", "imagenet"))
    (tmp_path / "a.bench").write_text("INPUT(a)\nOUTPUT(b)\nb = NOT(a)\n")
    found = stopped(words, signal.SIGINT, 0.7, tmp_path)
    assert found.status in (130, 1)  # 1: there was not enough to do
    assert found.status == 1 or found.err == f"stmlang.experiments.{name}: interrupted\n", found
    assert not leftovers(tmp_path)
