"""Graph files: what is no text, what claims more than it holds, what is made to take for ever, what would read other files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from stmlang.graph.readers import read_graph
from stmlang.graph.readers.files import MOST_BYTES
from stmlang.graph.readers.read import FORMATS
from stmlang.graph.readers.text import MOST_IMPLIED
from stmlang.source.diagnostic import SpecError
from tests.api.refusals import Refusal, nothing_written, refused, refused_cheaply
from tests.helpers.work import calls


def group(letter: str, count: int) -> str:
    return "{" + " ".join(f"{letter}{number}" for number in range(count)) + "}"


HEAD = '<graphml><graph edgedefault="directed">'
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BAD: dict[str, tuple[str, str, Refusal]] = {
    # cycles, loops, repetitions, ends that are not there
    "loop": ("edgelist", "a b\nb b\n", Refusal("STM3405", "a cycle: b -> b", "remove one of these edges")),
    "loop in DOT": ("dot", "digraph { a -> a }", Refusal("STM3405", "a cycle: a -> a", "remove one of these edges")),
    "loop in a strict graph": ("dot", "strict digraph { a -> a }", Refusal("STM3405", "a -> a", "remove one of these edges")),
    "loop in GML": (
        "gml",
        'graph [ directed 1 node [ id "a" ] edge [ source "a" target "a" ] ]',
        Refusal("STM3405", "a cycle: a -> a", "remove one of these edges"),
    ),
    "loop in GraphML": (
        "graphml",
        f'{HEAD}<node id="a"/><edge source="a" target="a"/></graph></graphml>',
        Refusal("STM3405", "a cycle: a -> a", "remove one of these edges"),
    ),
    "loop in Pajek": ("pajek", "*Vertices 2\n*Arcs\n1 1\n", Refusal("STM3405", "a cycle: 1 -> 1", "remove one")),
    "loop in BIF": (
        "bif",
        "variable a { } probability ( a | a ) { }",
        Refusal("STM3405", "a cycle: a -> a", "remove one of these edges"),
    ),
    "cycle by parallel edges": ("dot", "digraph { a -> b -> a -> b }", Refusal("STM3405", "a -> b -> a", "merge the nodes")),
    "names for numbers": ("pajek", "*Vertices 2\n1 a\n2 b\n*Arcs\na b\n", Refusal("STM3408", "`a`", "declare it")),
    "vertex zero": ("pajek", "*Vertices 2\n*Arcs\n0 1\n", Refusal("STM3408", "`0`", "declare it")),
    "node of another list": (
        "gml",
        "graph [ directed 1 node [ id 1 ] edge [ source 1 target x ] ]",
        Refusal("STM3408", "`x`", "declare it"),
    ),
    # counts
    "many vertices": (
        "pajek",
        "*Vertices 2000000\n",
        Refusal("STM3413", "2,000,000 vertices in a file of 18", "correct the number"),
    ),
    "vertices of many digits": (
        "pajek",
        "*Vertices " + "9" * 5000,
        Refusal("STM3413", "999999999999...", "correct the number"),
    ),
    "negative vertices": ("pajek", "*Vertices -3\n", Refusal("STM3403", "how many vertices?", "write `*Vertices 3`")),
    "half a vertex": ("pajek", "*Vertices 2.5\n", Refusal("STM3403", "how many vertices?", "write `*Vertices 3`")),
    "no vertices": ("pajek", "*Vertices 0\n", Refusal("STM3411", "no node", "put nodes into it")),
    "two groups": (
        "dot",
        f"digraph {{ {group('a', 400)} -> {group('b', 400)} }}",
        Refusal("STM3413", "160,000 edges in a file of", "write them out"),
    ),
    "many groups": (
        "dot",
        "digraph { " + " -> ".join(group(letter, 150) for letter in "abcdefgh") + " }",
        Refusal("STM3413", "edges in a file of", "write them out"),
    ),
    # entities and other files
    "laughs": (
        "graphml",
        f"<!DOCTYPE l [ <!ENTITY l0 'ha'>{LAUGHS} ]><graphml>&l9;</graphml>",
        Refusal("STM3410", "document type", "remove the declaration"),
    ),
    "quadratic": (
        "graphml",
        f'<!DOCTYPE l [ <!ENTITY a "{"x" * 10_000}"> ]><graphml/>',
        Refusal("STM3410", "document type", "remove"),
    ),
    "foreign entity": (
        "graphml",
        '<!DOCTYPE g [ <!ENTITY x SYSTEM "file:///etc/passwd"> ]><graphml>&x;</graphml>',
        Refusal("STM3410", "document type", "remove the declaration"),
    ),
    "parameter entity": (
        "graphml",
        '<!DOCTYPE g [ <!ENTITY % x SYSTEM "http://localhost/x"> %x; ]><graphml/>',
        Refusal("STM3410", "document type", "remove the declaration"),
    ),
    "unknown entity": (
        "graphml",
        f'{HEAD}<node id="&x;"/></graph></graphml>',
        Refusal("STM3403", "undefined entity", "correct"),
    ),
    "zero by reference": (
        "graphml",
        f'{HEAD}<node id="&#0;"/></graph></graphml>',
        Refusal("STM3403", "invalid character", "correct"),
    ),
    "web page": ("graphml", "<html><body/></html>", Refusal("STM3403", "`html`, not `graphml`", "correct the file here")),
    # depth and length
    "deep DOT": ("dot", "digraph {" + "{" * 20_000, Refusal("STM3403", "this brace is never closed", "correct the file here")),
    "deep HTML": (
        "dot",
        "digraph { a [l = " + "<" * 20_000,
        Refusal("STM3403", "this `<` is never closed", "correct the file here"),
    ),
    "deep GML": ("gml", "graph [ " + "x [ " * 20_000, Refusal("STM3403", "this list is never closed", "correct the file here")),
    "deep Newick": ("newick", "(" * 20_000, Refusal("STM3403", "this bracket is never closed", "correct the file here")),
    "deep GraphML": (
        "graphml",
        "<graphml><data>" + "<graph>" * 20_000,
        Refusal("STM3403", "not well-formed XML", "correct the file here"),
    ),
    "deep BIF": (
        "bif",
        "network " + "{ " * 20_000,
        Refusal("STM3403", "`{` where `property` or `}` is expected", "correct the file here"),
    ),
    "open comments": ("bif", "/* " * 20_000, Refusal("STM3403", "this `/*` is never closed", "correct the file here")),
    "open properties": (
        "bif",
        "property x " * 20_000,
        Refusal("STM3403", "this `property` is never closed", "end its text with `;`"),
    ),
    "long word": ("dot", "x" * 100_000, Refusal("STM3403", "`xxxx", "`digraph` is expected")),
    "long name": (
        "edgelist",
        f"{'a' * 50_000} b\nb {'a' * 50_000}\n",
        Refusal("STM3405", "a cycle: aaaa", "remove one of these edges"),
    ),
    "long sum of names": (
        "dot",
        "digraph { " + '"a" + ' * 20_000 + "}",
        Refusal("STM3403", "a name is expected after `+`", "joins two quoted strings"),
    ),
}
STEPS = 60
"""Function calls for each character: what a reader may spend, whatever it reads."""


@pytest.fixture(scope="module", autouse=True)
def imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is imported when a graph is first refused is not counted as reading it."""
    path = tmp_path_factory.mktemp("first") / "g.edgelist"
    path.write_text("a b\nb a\n")
    with pytest.raises(SpecError):
        read_graph(str(path))


@pytest.mark.parametrize("name", BAD)
def test_bad_graphs(tmp_path: Path, name: str) -> None:
    format, text, wanted = BAD[name]
    path = tmp_path / "graph"
    path.write_text(text)
    with nothing_written(tmp_path):
        spent = calls(lambda: refused(lambda: read_graph(str(path), format), wanted))
    implied = 4 * MOST_IMPLIED if wanted.code == "STM3413" else 0
    assert spent < 20_000 + STEPS * len(text) + implied


def test_joined_names(tmp_path: Path) -> None:
    path = tmp_path / "g.dot"
    path.write_text("digraph { " + " + ".join(['"abcdefgh"'] * 2_000) + ' -> "a" + "b"; c }')
    assert read_graph(str(path)).names == ("abcdefgh" * 2_000, "ab", "c")


BYTES: dict[str, tuple[bytes, Refusal]] = {
    "binary": (bytes(range(256)), Refusal("STM3412", "is no text", "choose the file that holds the graph")),
    "UTF-16": ("a b\n".encode("utf-16"), Refusal("STM3412", "saved as UTF-16", "save it as UTF-8")),
    "UTF-16 without a mark": ("a b\n".encode("utf-16-le"), Refusal("STM3412", "saved as UTF-16", "save it as UTF-8")),
    "UTF-32": ("a b\n".encode("utf-32"), Refusal("STM3412", "is no text", "save it as UTF-8")),
    "a zero far inside": (b"a b\n" * 500_000 + b"\0", Refusal("STM3412", "is no text", "save it as UTF-8")),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", BYTES)
def test_files_that_are_no_texts(tmp_path: Path, name: str, format: str) -> None:
    content, wanted = BYTES[name]
    path = tmp_path / "graph"
    path.write_bytes(content)
    refused(lambda: read_graph(str(path), format), wanted)


@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        (100 << 20, Refusal("STM3412", "is no text", "save it as UTF-8")),
        (MOST_BYTES + 1, Refusal("STM3413", "268,435,457 bytes", "leave out what is neither node nor edge")),
        (1 << 40, Refusal("STM3413", "1,099,511,627,776 bytes", "leave out what is neither node nor edge")),
    ],
)
def test_large_files(tmp_path: Path, size: int, wanted: Refusal) -> None:
    """Refused without reading them all."""
    path = tmp_path / "g.edges"
    with open(path, "wb") as file:
        file.write(b"a b\n")
        file.truncate(size)
    refused_cheaply(lambda: read_graph(str(path)), wanted)


PLACES: dict[str, Refusal] = {
    "missing": Refusal("STM3401", "no such file or directory", "name a file that is there"),
    "folder": Refusal("STM3401", "is a directory", "name a file that is there"),
    "pipe": Refusal("STM3401", "not a regular file", "name a file that is there"),
    "loop": Refusal("STM3401", "too many levels of symbolic links", "name a file that is there"),
    "x" * 300: Refusal("STM3401", "file name too long", "name a file that is there"),
    "zero\0byte": Refusal("STM3401", "null byte", "name a file that is there"),
    "/dev/zero": Refusal("STM3401", "not a regular file", "name a file that is there"),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_without_a_graph(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    refused(lambda: read_graph(str(tmp_path / name), "edgelist"), PLACES[name])


def test_the_format_is_known_before_a_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> str:
        pytest.fail("it was read")

    monkeypatch.setattr("stmlang.graph.readers.read.open_file", never)
    refused(lambda: read_graph(str(tmp_path / "g.xyz")), Refusal("STM3402", "`.xyz`", "as csv"))
    refused(lambda: read_graph(str(tmp_path / "g"), "grpahml"), Refusal("STM3402", "`grpahml`", "did you mean `graphml`?"))


def test_edges_that_are_written_may_be_many(tmp_path: Path) -> None:
    path = tmp_path / "g.net"
    path.write_text("*Vertices 100000\n*Arcs\n" + "".join(f"{node} {node + 1}\n" for node in range(1, 1000)))
    assert read_graph(str(path)).node_count == 100_000
