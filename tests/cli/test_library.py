"""`stmlang list`, `stmlang show`, `stmlang inspect`, and files that are given to the wrong command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stmlang as package
from stmlang.check import examine, library, library_specs, open_spec
from stmlang.scan.topology import kind_of

TEXT = "scan s(heads = 1, key = 2, value = 2) on chain(t) {\n    source     = sigmoid(linear(x))\n    transition = 0.5\n}\n"


def test_list(stmlang):
    result = stmlang("list")
    assert result.status == 0
    assert [line.split()[0] for line in result.out.splitlines()[1:-2]] == [f"std:{name}" for name in library_specs()]
    found = json.loads(stmlang("list", "--json").out)
    assert found["ok"] is True
    assert [entry["spec"] for entry in found["specs"]] == [f"std:{name}" for name in library_specs()]
    assert all(entry["what"] for entry in found["specs"])
    assert {entry["topology"] for entry in found["specs"]} == {None, "chain", "grid", "tree", "dag"}


def test_the_list_says_what_the_checker_would(stmlang):
    """Specs are listed without being checked."""
    for entry in json.loads(stmlang("list", "--json").out)["specs"]:
        scan = examine(open_spec(entry["spec"])).scan
        assert entry["scan"] == (scan and scan.name)
        assert entry["topology"] == (scan and kind_of(scan.topology))


def test_show(stmlang):
    text = (library() / "plstm" / "image_p.stm").read_text()
    assert stmlang("show", "std:plstm/image_p").out == text
    assert json.loads(stmlang("show", "std:plstm/image_p", "--json").out) == {
        "ok": True,
        "spec": "std:plstm/image_p",
        "text": text,
    }
    assert "STM1036" in stmlang("show", "std:plstm/image").err


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("artifact") / "op.stmx"
    package.compile(TEXT, t=3).export(path)
    return path


def test_inspect(stmlang, artifact):
    result = stmlang("inspect", artifact)
    assert result.status == 0, result.err
    for words in ("scan        s, of", "platforms   cpu", "float32", "any size", "q (3, 1, 2)", "source (3, 1)", "it runs"):
        assert words in result.out
    found = json.loads(stmlang("inspect", artifact, "--json").out)
    assert (found["ok"], found["scan"], found["platforms"], found["batch"]) == (True, "s", ["cpu"], "symbolic")
    assert found["bytes"] == artifact.stat().st_size
    assert set(found["versions"]) == {"stmlang", "jax", "jaxlib"}
    assert found["runs_here"] is True
    assert found["strategy"]


def test_an_artifact_for_elsewhere_is_inspected(stmlang, tmp_path):
    path = tmp_path / "op.stmx"
    package.compile(TEXT, t=3).export(path, platforms=["cuda"])
    result = stmlang("inspect", path)
    assert result.status == 0
    assert "it does not run: JAX runs on cpu on this machine" in result.out


WRONG = {
    ("explain", "op.stmx"): ("STM0007", "is an artifact, not a spec", "`stmlang inspect op.stmx`"),
    ("check", "op.stmx"): ("STM0007", "is an artifact, not a spec", "`stmlang inspect op.stmx`"),
    ("fmt", "op.stmx"): ("STM0007", "is an artifact, not a spec", "`stmlang inspect op.stmx`"),
    ("show", "op.stmx"): ("STM0007", "is an artifact, not a spec", "`stmlang inspect op.stmx`"),
    ("explain", "found.npz"): ("STM0007", "is an archive of arrays", "`stmlang fuzz --replay found.npz`"),
    ("explain", "graph.gml"): ("STM0007", "is a graph file", 'dag from "graph.gml"'),
    ("explain", "model.py"): ("STM0007", "is Python", "`stmlang.compile`"),
    ("explain", "spec.stm.gz"): ("STM0007", "is a gzip archive", "unpack it first"),
    ("inspect", "s.stm"): ("STM5303", "is a spec, not an artifact", "`stmlang explain s.stm`"),
    ("inspect", "graph.gml"): ("STM5303", "no stmlang artifact", "stmlang compile"),
    ("inspect", "none.stmx"): ("STM5303", "no such file", "check its name"),
}


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_files_of_another_kind(stmlang, words, artifact, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "op.stmx").write_bytes(artifact.read_bytes())
    (tmp_path / "found.npz").write_bytes(b"PK\x03\x04" + bytes(200))
    (tmp_path / "graph.gml").write_text("graph [ directed 1 ]\n")
    (tmp_path / "model.py").write_text("import jax\n")
    (tmp_path / "spec.stm.gz").write_bytes(b"\x1f\x8b" + bytes(20))
    (tmp_path / "s.stm").write_text(TEXT)
    result = stmlang(*words)
    assert result.status == 1
    for phrase in WRONG[words]:
        assert phrase in result.err


def test_suffixes_of_graph_files_are_those_that_are_read():
    from stmlang.graph.readers.read import SUFFIXES
    from stmlang.source.reading import GRAPHS

    assert set(SUFFIXES) - set(GRAPHS) == {".txt", ".tree", ".trees", ".asc"}, "what others call their texts too"
    assert set(GRAPHS) <= set(SUFFIXES)
