"""Where imports and graph files are looked for: beside the file, then `path=` or `--path`, then STMLANG_PATH."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import stmlang
from stmlang.check import examine, load, open_spec
from stmlang.cli.main import main
from stmlang.source.diagnostic import SpecError

SPEC = 'use parts (rate)\nscan s on dag from "g.dot" {\n    source = rate(1)\n    transition = 0.5\n}\n'


def bias(scan: object) -> float:
    return scan.leaves[0].bias.low  # pyright: ignore[reportAttributeAccessIssue]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders `spec`, `a`, `b` and `c`; the last three hold `parts.stm`, each with a bias of its own, and `g.dot`."""
    for number, name in enumerate(("spec", "a", "b", "c")):
        (tmp_path / name).mkdir()
        if number:
            (tmp_path / name / "parts.stm").write_text(f"def rate(a) = a * linear(x, bias = {number})\n")
            (tmp_path / name / "g.dot").write_text("digraph { p -> q }\n")
    (tmp_path / "spec" / "s.stm").write_text(SPEC)
    monkeypatch.delenv("STMLANG_PATH", raising=False)
    return tmp_path


def test_the_environment_is_looked_at_last(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = folders / "spec" / "s.stm"
    with pytest.raises(SpecError):
        load(spec)
    monkeypatch.setenv("STMLANG_PATH", os.pathsep.join(["", str(folders / "missing"), str(folders / "c"), str(folders / "a")]))
    assert bias(load(spec)) == 3
    assert bias(load(spec, search_path=[folders / "b"])) == 2
    (folders / "spec" / "parts.stm").write_text("def rate(a) = a * linear(x, bias = 7)\n")
    assert bias(load(spec, search_path=[folders / "b"])) == 7


def test_compile_takes_one_folder_or_several(folders: Path) -> None:
    spec = folders / "spec" / "s.stm"
    assert bias(stmlang.compile(spec, path=folders / "a").scan) == 1
    assert bias(stmlang.compile(spec, path=[str(folders / "b"), folders / "a"]).scan) == 2
    for wrong in (folders / "missing", spec, [3], 3, "a\0b"):
        with pytest.raises(SpecError) as caught:
            stmlang.compile(spec, path=wrong)  # pyright: ignore[reportArgumentType]
        assert caught.value.diagnostics[0].code == "STM5010"


def test_every_command_takes_the_path(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = str(folders / "spec" / "s.stm")
    assert main(["check", spec]) == 1
    path = ["--path", str(folders / "a"), "--path", str(folders / "b")]
    assert main(["check", *path, spec]) == 0
    assert main(["explain", spec, *path, "--target", "cpu"]) == 0
    assert main(["compile", spec, *path, "-o", str(folders / "s.stmx"), "--target", "cpu"]) == 0
    assert main(["fuzz", spec, *path, "--examples", "1", "--out", str(folders / "fuzz")]) == 0
    assert main(["check", "--path", str(folders / "missing"), spec]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_what_is_not_found_says_where_it_was_looked_for(folders: Path) -> None:
    spec = open_spec(folders / "spec" / "s.stm")
    for folder in ("a", "b"):
        (folders / folder / "parts.stm").unlink()
        (folders / folder / "g.dot").unlink()
    found = examine(spec, search_path=[folders / "a", folders / "b"]).diagnostics
    assert [one.code for one in found] == ["STM1020", "STM3010"]
    for one in found:
        places = [one.notes[-1].index(f"`{folders / name}`") for name in ("spec", "a", "b")]
        assert places == sorted(places)
        assert "STMLANG_PATH" in one.notes[-1]


def test_an_unknown_suffix_is_refused_when_the_spec_is_checked(folders: Path) -> None:
    text = 'scan s on dag from "{}" {{\n    source = 1\n    transition = 0.5\n}}\n'
    for name, help in (("x.json", "as edgelist"), ("x", "as edgelist"), ("x.dott", 'did you mean `"x.dot"`')):
        (folders / "a" / name).write_text("a b\n")
        (found,) = examine(open_spec(text.format(name)), search_path=[folders / "a"]).diagnostics
        assert (found.code, found.span and found.span.text) == ("STM3402", f'"{name}"')
        assert help in (found.help or "")
        assert "graphml" in found.notes[-1]
    known = text.replace('"{}"', '"x.json" as edgelist').format()
    assert not examine(open_spec(known), search_path=[folders / "a"]).failed


@pytest.mark.parametrize(
    ("there", "asked", "meant"),
    [("x.csv", "X.CSV", "x.csv"), ("a.csv", "X.CSV", None), ("a.csv", "x.csv", None), ("graph.csv", "grpah.CSV", "graph.csv")],
)
def test_a_suffix_makes_no_likeness(tmp_path: Path, there: str, asked: str, meant: str | None) -> None:
    (tmp_path / there).write_text("a,b\n")
    text = f'scan s on dag from "{asked}" {{\n    source = 1\n    transition = 0.5\n}}\n'
    if (tmp_path / asked).exists():
        pytest.skip("the file system takes both names for one")
    (found,) = examine(open_spec(text), search_path=[tmp_path]).diagnostics
    assert (found.code, found.help) == ("STM3010", meant and f"did you mean `{meant}`?")
