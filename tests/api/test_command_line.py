"""The command line: files that are no specs, sizes that are none, places that cannot be written to."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.refusals import contents, nothing_written
from tests.cli.command import Command, Outcome

GOOD = "scan s(heads = 1, key = 2, value = 2) on chain(t) {\n    source     = 0.5\n    transition = 0.5\n}\n"
HALF = "def half(a) = a / 2\n"
LARGE = 100 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good and bad files, side by side."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.stm").write_text(HALF)
    (outside / "secret.txt").write_text("a b\n")
    here = outside / "here"
    here.mkdir()
    texts = {
        "good.stm": GOOD,
        "nothing.stm": "",
        "itself.stm": f"use itself (half)\n{GOOD}",
        "first.stm": f"use second (half)\n{GOOD}",
        "second.stm": "use first (half)\n",
        "parent.stm": f"use ..secret (half)\n{GOOD}",
        "linked.stm": f"use away (half)\n{GOOD}",
        "graph_parent.stm": GOOD.replace("chain(t)", 'dag from "../secret.txt"'),
        "graph_linked.stm": GOOD.replace("chain(t)", 'dag from "away.txt"'),
        "graph_pipe.stm": GOOD.replace("chain(t)", 'dag from "pipe.txt"'),
        "graph_large.stm": GOOD.replace("chain(t)", 'dag from "large.txt"'),
        "large_tree.stm": GOOD.replace("chain(t)", "tree(arity = 2, depth = 30)"),
    }
    for name, text in texts.items():
        (here / name).write_text(text)
    (here / "away.stm").symlink_to(outside / "secret.stm")
    (here / "away.txt").symlink_to(outside / "secret.txt")
    (here / "loop.stm").symlink_to("loop.stm")
    (here / "dangling.stm").symlink_to("nowhere.stm")
    (here / "binary.stm").write_bytes(b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)))
    (here / "utf16.stm").write_bytes(GOOD.encode("utf-16"))
    for name in ("large.stm", "large.txt"):
        with open(here / name, "wb") as file:
            file.truncate(LARGE)
    os.mkfifo(here / "pipe.stm")
    os.mkfifo(here / "pipe.txt")
    (here / "folder.stm").mkdir()
    return here


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run beside the files, and look whether any of them changed."""
    monkeypatch.chdir(folder)
    with nothing_written(folder.parent):
        yield


@pytest.fixture
def stmlang(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)


def said(result: Outcome, status: int, *phrases: str) -> None:
    assert result.status == status, result.err
    for phrase in phrases:
        assert phrase in result.err, result.err
    assert "Traceback" not in result.out + result.err
    assert "internal error" not in result.err


COMMANDS = (["check"], ["fmt"], ["explain"], ["compile", "-o", "out.stmx"], ["tune"], ["bench"])
FILES = {
    "missing.stm": ("STM0001", "there is no file `missing.stm`", "check the path"),
    "god.stm": ("STM0001", "there is no file `god.stm`", "did you mean `good.stm`?"),
    "good.stm/x": ("STM0001", "there is no file `good.stm/x`", "check the path"),
    "dangling.stm": ("STM0001", "there is no file `dangling.stm`", "check the path"),
    ".": ("STM0002", "`.` is a folder", "name one text file"),
    "folder.stm": ("STM0002", "`folder.stm` is a folder", "name one text file"),
    "pipe.stm": ("STM0002", "`pipe.stm` is no regular file", "name one text file"),
    "/dev/zero": ("STM0002", "`/dev/zero` is no regular file", "name one text file"),
    "loop.stm": ("STM0003", "cannot read `loop.stm`", "where its links lead"),
    "large.stm": ("STM0004", "`large.stm` is larger than 1 MiB", "graph file"),
    "utf16.stm": ("STM0005", "not UTF-8", "UTF-8"),
    "binary.stm": ("STM0005", "is not UTF-8", "save the file as UTF-8"),
}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_texts(stmlang: Command, command: list[str], name: str) -> None:
    phrases = FILES[name]
    if name == "folder.stm" and command[0] in ("check", "fmt"):
        phrases = ("STM5103", "there is no spec in `folder.stm`", "files that end in `.stm`")
    elif name == "." and command[0] in ("check", "fmt"):
        pytest.skip("every spec in it is looked at: tests/cli/test_folders.py")
    said(stmlang(command[0], name, *command[1:]), 1, *phrases)


SPECS = {
    "itself.stm": ("STM1022", "`itself -> itself`", "move what both need into a third file"),
    "first.stm": ("STM1022", "`first -> second -> first`", "move what both need into a third file"),
    "parent.stm": ("STM0201", "a name expected after `use`", "found `.`"),
    "linked.stm": ("STM1021", "`away.stm` lies outside", "links may not lead out"),
    "graph_parent.stm": ("STM3011", '"../secret.txt" lies outside', "read from the folder of the spec"),
    "graph_linked.stm": ("STM3011", '"away.txt" lies outside', "read from the folder of the spec"),
    "graph_pipe.stm": ("STM3010", 'there is no file "pipe.txt"', "looked for in `.`"),
    "good.stm:other": ("STM1013", "has no scan `other`", "its scans are `s`"),
    "std:nothing": ("STM1036", "the library has no `std:nothing`", "the library holds"),
    "std:../../secret": ("STM1036", "the library has no `std:../../secret`", "the library holds"),
}


@pytest.mark.parametrize("command", [command for command in COMMANDS if command[0] != "fmt"], ids=lambda words: words[0])
@pytest.mark.parametrize("name", SPECS)
def test_specs_that_reach_where_they_may_not(stmlang: Command, command: list[str], name: str) -> None:
    said(stmlang(command[0], name, *command[1:]), 1, *SPECS[name])


PLANNING = COMMANDS[2:]
SIZES: dict[str, tuple[int, tuple[str, ...]]] = {
    "t=-1": (1, ("STM2029", "`t` cannot be -1", "a whole number from 0 to 2^31 - 1")),
    "t=2.5": (1, ("STM2029", "`t` cannot be 2.5", "a whole number from 0 to 2^31 - 1")),
    "t=2147483648": (1, ("STM2029", "`t` cannot be 2147483648", "a whole number from 0 to 2^31 - 1")),
    "t=2147483647": (1, ("STM3303", "edges, more than the 2,147,483,647", "make it smaller")),
    "t=1000000000": (1, ("STM5005", "scan `s` needs at least", "raise the memory limit")),
    "t=true": (2, ("argument --set", "'true' is not a number")),
    "heads=0": (1, ("STM2029", "`heads` cannot be 0", "a whole number from 1 to 2^31 - 1")),
    "rows=4": (1, ("STM1014", "nothing named `rows`", "it has `heads`, `key`, `value` and `t`")),
    "key=1e300": (1, ("STM2029", "`key` cannot be 1e+300", "a whole number from 1 to 2^31 - 1")),
}


@pytest.mark.parametrize("command", PLANNING, ids=lambda words: words[0])
@pytest.mark.parametrize("size", SIZES)
def test_sizes_that_are_none_or_too_large(stmlang: Command, command: list[str], size: str) -> None:
    if command[0] == "explain" and size == "t=2147483647":
        command = [*command, "--memory-limit", "1TB"]
    status, phrases = SIZES[size]
    said(stmlang(command[0], "good.stm", "--set", size, *command[1:]), status, *phrases)


@pytest.mark.parametrize("command", PLANNING, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("name", "phrases"),
    [
        ("large_tree.stm", ("STM3305", "the tables of 2,147,483,647 edges", "make the topology smaller")),
        ("graph_large.stm", ("STM3412", "large.txt` is no text", "save it as UTF-8")),
    ],
)
def test_graphs_that_are_too_large(
    stmlang: Command, command: list[str], name: str, phrases: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stmlang.graph.limits.host_memory", lambda: 8 * 10**9)
    said(stmlang(command[0], name, *command[1:]), 1, *phrases)


OPTIONS: dict[tuple[str, ...], tuple[int, tuple[str, ...]]] = {
    ("--memory-limit", "9" * 400 + "TB"): (2, ("argument --memory-limit", "that a machine can have")),
    ("--memory-limit", "-5"): (2, ("argument --memory-limit", "write 500MB")),
    ("--memory-limit", "1kB"): (1, ("STM5005", "the limit is 1 kB", "raise the memory limit")),
    ("--batch", "-1"): (2, ("argument --batch", "'-1' is not a positive number below 2^31")),
    ("--batch", "2147483647"): (1, ("STM5005", "scan `s` needs at least", "lower the batch")),
    ("--dtype", "int8"): (2, ("argument --dtype", "choose from 'float32'")),
}


@pytest.mark.parametrize("command", PLANNING, ids=lambda words: words[0])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda words: " ".join(words)[:30])
def test_options_out_of_range(stmlang: Command, command: list[str], options: tuple[str, ...]) -> None:
    status, phrases = OPTIONS[options]
    said(stmlang(command[0], "good.stm", "--set", "t=400", *options, *command[1:]), status, *phrases)


@pytest.mark.parametrize(
    ("strategy", "phrases"),
    [
        ("recurent", ("STM5006", "unknown strategy `recurent`", "did you mean `recurrent`?")),
        ("", ("STM5006", "unknown strategy ``", "choose one of")),
        ("nodes", ("STM5007", "`nodes` cannot be used here", "it is for trees and DAGs")),
    ],
)
@pytest.mark.parametrize("command", [PLANNING[0], PLANNING[1], PLANNING[3]], ids=lambda words: words[0])
def test_strategies_that_are_none(stmlang: Command, command: list[str], strategy: str, phrases: tuple[str, ...]) -> None:
    said(stmlang(command[0], "good.stm", "--set", "t=4", "--strategy", strategy, *command[1:]), 1, *phrases)


PLACES = {
    ".": "is a directory",
    "no/such/folder/out.stmx": "no such directory",
    "good.stm": "it is the spec",
    "good.stm/out.stmx": "not a directory",
    "pipe.stm": "not a regular file",
    "/dev/null": "not a regular file",
    "loop.stm": "too many levels of symbolic links",
    "x" * 300: "file name too long",
}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[:25])
def test_places_where_no_artifact_can_be_written(stmlang: Command, place: str) -> None:
    """Known before anything is compiled."""
    phrases = ("STM5101", f"cannot write `{place}`: {PLACES[place]}", "name a file in a folder")
    said(stmlang("compile", "good.stm:s", "--set", "t=4", "-o", place), 1, *phrases)


@pytest.mark.parametrize("name", ["scan", "topology", "def", "use"])
def test_words_that_name_no_scan(stmlang: Command, name: str) -> None:
    said(stmlang("new", name), 2, f"'{name}' begins an item", "choose another name")


def full(_: object, path: object, *__: object) -> None:
    """The system's answer where a disk is full, to whatever gives a written file its name."""
    raise OSError(errno.ENOSPC, "No space left on device", path)


@pytest.mark.parametrize("step", ["chmod", "link"])
def test_a_starter_that_cannot_be_finished_is_taken_away(stmlang: Command, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    monkeypatch.setattr(f"stmlang.source.writing.os.{step}", full)
    said(stmlang("new", "demo"), 1, "STM5101", "cannot write `demo.stm`: no space left on device", "can be written to")


@pytest.mark.parametrize("words", [["tune", "good.stm", "--set", "t=4"], ["doctor", "--calibrate"]], ids=lambda words: words[0])
@pytest.mark.parametrize("cache", ["good.stm", "loop.stm", "good.stm/cache"])
def test_caches_that_cannot_be_written(
    stmlang: Command, words: list[str], cache: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known before anything is measured."""
    monkeypatch.setenv("STMLANG_CACHE", str(folder / cache))
    said(stmlang(*words), 1, "STM5401", str(folder / cache), "set STMLANG_CACHE to a folder that can be written")


CACHES = {
    "nested": b"[" * 100_000,
    "list": b"[]",
    "number": b"1" * 5000,
    "utf16": "{}".encode("utf-16"),
    "infinite": b'{"schema": 1, "key": {}, "target": {"memory": 1e999}}',
}


@pytest.mark.parametrize("content", [*CACHES, "pipe", "folder", "large"])
def test_calibrations_that_are_none_are_left_aside(
    stmlang: Command, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept of this machine is never needed."""
    from stmlang.cost import calibration

    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path))
    place = calibration.path()
    if content == "pipe":
        os.mkfifo(place)
    elif content == "folder":
        place.mkdir()
    elif content == "large":
        with open(place, "wb") as file:
            file.truncate(LARGE)
    else:
        place.write_bytes(CACHES[content])
    before = contents(tmp_path)
    said(stmlang("explain", "good.stm", "--set", "t=4", "--target", "cpu"), 0)
    assert calibration.load() is None
    assert contents(tmp_path) == before
