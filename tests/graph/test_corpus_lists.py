"""Edge lists: odd files and broken ones, tables that other programs write, and what gzip packs."""

from __future__ import annotations

import csv
import gzip
import re
from io import StringIO
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.check import examine, open_spec
from stmlang.graph.readers import read_graph, read_netlist
from stmlang.graph.readers.columns import HEADS, TAILS
from stmlang.graph.readers.read import SUFFIXES
from stmlang.source.diagnostic import SpecError
from tests.graph.corpus import Bad, Good, accepted, refused_at

LISTS: dict[str, Good] = {
    "blanks": ("a b\nb   c\n", 3, "a>b b>c"),
    "tabulators": ("a\tb\nb\t c", 3, "a>b b>c"),
    "blanks around": ("  a b  \n\tb c\t\n", 3, "a>b b>c"),
    "commas": ("a,b\nb,c\n", 3, "a>b b>c"),
    "commas and blanks": ("a, b\nb , c\n", 3, "a>b b>c"),
    "semicolons": ("a;b\nb; c", 3, "a>b b>c"),
    "arrows": ("a -> b\nb->c\nd\n", 4, "a>b b>c"),
    "lone nodes": ("x\na b\ny\n", 4, "a>b"),
    "nothing but nodes": ("n1\nn2\n", 2, ""),
    "musical keys": ("F# G%\nG% A#\n", 3, "F#>G% G%>A#"),
    "addresses": ("http://a/b#c http://d?e=f%20g\n", 2, "http://a/b#c>http://d?e=f%20g"),
    "comments": ("# x\n% y\n// z\n  # w\n#a b\n//a b\na b # a c\nc % d\n", 3, "a>b"),
    "hash of hashes": ("### x ###\na b ## y\n", 2, "a>b"),
    "quotes": ('"a b" "c ""d"""\n"#x" "a,b"\n', 4, 'a_b>c_"d" #x>a,b'),
    "quotes of apostrophes": ("'a' 'b'\n", 2, "'a'>'b'"),
    "quoted signs": ('"--" "->"\n"x|y"\n', 3, "-->->"),
    "what networkx knows": ("b c {}\nc d {'weight': 3, 'x': \"y z\"}\n", 3, "b>c c>d"),
    "what networkx knows, with commas": ("b,c,{'a': 1, 'b': 2}\nc,d,{}\n", 3, "b>c c>d"),
    "named columns": ("source target\na b\nb c\n", 3, "a>b b>c"),
    "other columns": ("source target weight\na b 3\nb c -1e-3\n", 3, "a>b b>c"),
    "columns turned around": ("dst src\na b\n", 2, "b>a"),
    "columns of SNAP": ("# Nodes: 2\nFromNodeId\tToNodeId\n1\t2\n", 2, "1>2"),
    "named columns and lone nodes": ("tail head\na b\nc\n", 3, "a>b"),
    "nodes called as columns are": ("tail head\nsource target\ntarget x\n", 3, "source>target target>x"),
    "a node called as a column is": ("source b\nb c\n", 3, "source>b b>c"),
    "words and numbers": ("in 1\n1 2\n2 out\n", 4, "in>1 1>2 2>out"),
    "other line ends": ("\ufeffa b\r\n\r\nb c\rc d", 4, "a>b b>c c>d"),
    "columns of musae": ("node_1 node_2\na b\n", 2, "a>b"),
    "numbered nodes": ("node1 node2\nnode2 node3\n", 3, "node1>node2 node2>node3"),
    "letters that return": ("u v\nv w\n", 3, "u>v v>w"),
    "letters alone": ("x y\n", 2, "x>y"),
    "a word of tables that returns": ("name b\nb c\n", 3, "name>b b>c"),
    "words of tables below others": ("a b\nid label\n", 4, "a>b id>label"),
    "brackets in names": ("(a) (b)\nf[0] f[1]\n", 4, "(a)>(b) f[0]>f[1]"),
    "quoted beginnings": ('"digraph" G\n"*x" "(a"\n"end"\n"\x01" "b)"\n', 7, "digraph>G *x>(a \x01>b)"),
    "numbers, one alone below": ("1 2\n2 3\n7\n", 4, "1>2 2>3"),
    "numbers alone": ("3\n1\n2\n", 3, ""),
    "many scripts": ("α 大\n大 é\n", 3, "α>大 大>é"),
}
BROKEN_LISTS: dict[str, Bad] = {
    "empty": ("", "STM3411", ""),
    "comments only": ("# a b\n", "STM3411", ""),
    "three names": ("a b\nb c d e\n", "STM3403", "2:5"),
    "a weight": ("a b 0.5\n", "STM3403", "1:5"),
    "a weight behind a comma": ("a,b,1\n", "STM3403", "1:5"),
    "data that are cut": ("a b {'w': 1\n", "STM3403", "1:5"),
    "names of columns, one cell more": ("tail head\na b c\n", "STM3403", "2:1"),
    "another separator": ("a b\nc,d\n", "STM3403", "2:2"),
    "another separator alone": ("a,b\nc d\n", "STM3403", "2:1"),
    "an arrow between": ("a b\nb c\nc->d\n", "STM3403", "3:2"),
    "commas of calls": ("f(a,b) c\n", "STM3403", "1:7"),
    "blanks in a name": ("New York,Boston\n", "STM3403", "1:4"),
    "a blank of another kind": ("a\u00a0b c\n", "STM3403", "1:2"),
    "two separators": ("a,b;c\n", "STM3403", "1:4"),
    "DOT": ("a -> b, c\n", "STM3403", "1:7"),
    "a chain": ("a -> b -> c\n", "STM3403", "1:11"),
    "no direction": ("a b\na -- b\n", "STM3404", "2:3"),
    "another arrow": ("a => b\n", "STM3403", "1:3"),
    "an arrow to the left": ("a <- b\n", "STM3403", "1:3"),
    "bars": ("a|b\nb|c\n", "STM3403", "1:1"),
    "a bar": ("a b\nb|c\n", "STM3403", "2:1"),
    "colons": ("a:b\nb:c\n", "STM3403", "1:1"),
    "a list of heads": ("a: b\n", "STM3403", "1:1"),
    "a comment or a name": ("a #b\n", "STM3403", "1:3"),
    "a quote inside": ('a b"c\n', "STM3403", "1:4"),
    "an open quote": ('a "b\nc d\n', "STM3403", "1:3"),
    "a closed quote": ('"a"b c\n', "STM3403", "1:4"),
    "an empty name": ('a ""\n', "STM3403", "1:3"),
    "an end that lacks": ("a,b\nb,\n", "STM3403", "2:3"),
    "an edge twice": ("a b\nb c\na b\n", "STM3406", "3:1"),
    "a node or a column": ("source target\nsource a\n", "STM3403", "1:1"),
    "columns without edges": ("# x\nfrom to\n", "STM3403", "2:1"),
    "unknown names of columns": ("u v\n1 2\n2 3\n", "STM3403", "1:1"),
    "parents and children": ("parent child\na b\n", "STM3403", "1:1"),
    "a loop": ("a b\nb b\n", "STM3405", "2:1"),
    "letters above words": ("u v\na b\nb c\n", "STM3403", "1:1"),
    "indices above words": ("i j\na b\n", "STM3403", "1:1"),
    "columns of R": ("V1 V2\na b\n", "STM3403", "1:1"),
    "numbered nodes or columns": ("node1 node2\nnode3 node4\n", "STM3403", "1:1"),
    "numbered columns without edges": ("node1 node2\n", "STM3403", "1:1"),
    "tuples": ("(a, b)\n(b, c)\n", "STM3403", "1:1"),
    "pairs": ("0,1\n[1, 2]\n", "STM3403", "2:1"),
    "sets": ("{a b}\n", "STM3403", "1:1"),
    "Pajek": ("% x\n*Vertices 3\n1 a\n", "STM3403", "2:1"),
    "a section of Pajek": ("a b\n*Arcs\n", "STM3403", "2:1"),
    "DOT with braces": ("digraph G {\na -> b\n}\n", "STM3403", "1:1"),
    "DOT, its brace below": ("digraph G\n{\na -> b\n}\n", "STM3403", "1:1"),
    "GML": ("graph [\ndirected 1\n]\n", "STM3403", "1:1"),
    "GML with its maker": ("Creator x\ngraph\n[\ndirected 1\n]\n", "STM3403", "1:1"),
    "XML": ('<?xml version="1.0"?>\n<graphml>\n', "STM3403", "1:1"),
    "NEXUS": ("#NEXUS\nBEGIN TREES\nEND\n", "STM3403", "1:1"),
    "AIGER": ("aag 1 1 0 0 0\n2\n", "STM3403", "1:1"),
    "a netlist": ("# c17\nINPUT(a)\nINPUT(b)\n", "STM3403", "2:1"),
    "a raster": ("ncols 2\nnrows 1\n1 1\n", "STM3403", "1:1"),
    "JSON": ('{"nodes": []}\n', "STM3403", "1:1"),
    "sections": ("BEGIN\na b\nEND\n", "STM3403", "1:1"),
    "a section's end": ("a b\nb c\nEND\n", "STM3403", "3:1"),
    "a column of nodes": ("id\na\nb\n", "STM3403", "1:1"),
    "an end of DOS": ("a b\n\x1a", "STM3403", "2:1"),
    "a control character": ("a b\nb c\x07d\n", "STM3403", "2:4"),
    "a count": ("3\n0 1\n1 2\n", "STM3403", "1:1"),
}
TABLES: dict[str, Good] = {
    "plain": ("from,to\na,b\nb,c", 3, "a>b b>c"),
    "without names of columns": ("a,b\nb,c\n", 3, "a>b b>c"),
    "of a spreadsheet": ("from;to\r\na;b\r\n", 2, "a>b"),
    "with tabulators": ("a\tb\nNew York\tb\n", 3, "a>b New_York>b"),
    "names with blanks": ('New York,"Boston, MA"\n', 2, "New_York>Boston,_MA"),
    "quotes twice": ('"the ""a""",b\n', 2, 'the_"a">b'),
    "a line end in a name": ('"a\nb",c\n', 2, "a\nb>c"),
    "blanks around": (' a , "b" \nx,  y\n', 4, "a>b x>y"),
    "of R": ('"","from","to"\n"1","a","b"\n"2","b","c"\n', 3, "a>b b>c"),
    "of pandas": (",source,target\n0,a,b\n", 2, "a>b"),
    "of Gephi": ("Source,Target,Type,Id,Label,Weight\na,b,Directed,0,,1.0\n", 2, "a>b"),
    "of Neo4j": (":START_ID,:END_ID,:TYPE\na,b,KNOWS\n", 2, "a>b"),
    "labels beside": ("source,source_label,target,target_label\n1,a,2,b\n", 2, "1>2"),
    "comments": ("# made by hand\n#source,target\na,b\n# c\nb,c\n", 3, "a>b b>c"),
    "signs in names": ("a,#b\nb|c,->\n", 4, "a>#b b|c>->"),
    "semicolons in names": ("tail,head\na;b,c\n", 2, "a;b>c"),
    "commas in names": ("tail;head\na,b;c\n", 2, "a,b>c"),
    "weights": ("tail,head,weight\na,b,0.5\nb,c,\n", 3, "a>b b>c"),
    "numbers": ("1,2\n2,3\n", 3, "1>2 2>3"),
    "columns turned around": ("weight,target,source\n1,a,b\n", 2, "b>a"),
    "no line end": ('a,"b"', 2, "a>b"),
    "columns of more": ("sources,targets\na,b\n", 2, "a>b"),
    "numbered columns": ("node1,node2\na,b\nb,c\n", 3, "a>b b>c"),
    "numbered columns above names like them": ("id1,id2\nIdaho,Iowa\n", 2, "Idaho>Iowa"),
    "numbered columns and others": ("id,vertex1,vertex2,weight\n0,a,b,3\n", 2, "a>b"),
    "lettered columns turned around": ("nodeB,nodeA\na,b\n", 2, "b>a"),
    "of igraph": ("from,to,directed\na,b,TRUE\n", 2, "a>b"),
}
BROKEN_TABLES: dict[str, Bad] = {
    "empty": ("\n\n", "STM3411", ""),
    "one column": ("a\nb\n", "STM3403", "1:1"),
    "blanks": ("a b\nb c\n", "STM3403", "1:1"),
    "a title": ("Roads\na,b\n", "STM3403", "1:1"),
    "a lone node": ("a,b\nc\n", "STM3403", "2:1"),
    "three cells": ("a,b,0.5\n", "STM3403", "1:5"),
    "an empty third cell": ("a,b,\n", "STM3403", "1:5"),
    "a cell more": ("source,target\na,b\na,c,d\n", "STM3403", "3:1"),
    "a cell less": ("source,target,weight\na,b\n", "STM3403", "2:1"),
    "an empty tail": ("a,b\n,c\n", "STM3403", "2:1"),
    "an empty head": ("source,target\na,\n", "STM3403", "2:3"),
    "two separators": ("a,b;c\n", "STM3403", "1:4"),
    "undirected": ("Source,Target,Type\na,b,Directed\nb,c,Undirected\n", "STM3404", "3:5"),
    "an open quote": ('a,b\nb,"c\nd,e\n', "STM3403", "2:3"),
    "a closed quote": ('a,"b"c\n', "STM3403", "1:6"),
    "a quote inside": ('a,b"c\n', "STM3403", "1:4"),
    "a backslash": ('a,"b\\"c"\n', "STM3403", "1:7"),
    "a comment or a name": ("#rain,#storm\n#storm,#flood\n", "STM3403", "1:1"),
    "a comment behind": ("a,b # x\n", "STM3403", "1:5"),
    "columns twice": ("source,target\na,b\nsource,target\n", "STM3403", "1:1"),
    "two sources": ("from,source,to\na,b,c\n", "STM3403", "1:1"),
    "parents and children": ("child,parent\na,b\n", "STM3403", "1:1"),
    "unknown names of columns": ("name,next\n1,2\n2,3\n", "STM3403", "1:1"),
    "one end named": ("source,weight\na,3\n", "STM3403", "1:1"),
    "one end named above words": ("source,y\na,b\n", "STM3403", "1:1"),
    "one end named without edges": ("weight,target\n", "STM3403", "1:1"),
    "a table of nodes": ("id,label\n1,a\n", "STM3403", "1:1"),
    "nodes and weights": ("node,weight\na,b\n", "STM3403", "1:1"),
    "nodes and names": ("Node ID,colour\na,red\n", "STM3403", "1:1"),
    "people": ("name,age\nann,3\nbob,4\n", "STM3403", "1:1"),
    "places": ("x,y\na,b\n", "STM3403", "1:1"),
    "one parent": ("a0,parent\na,b\n", "STM3403", "1:1"),
    "tuples": ("(a,b)\n(b,c)\n", "STM3403", "1:1"),
    "not directed": ("Source,Target,Directed\na,b,true\nb,c,False\n", "STM3404", "3:5"),
    "undirected by a column": ("from,to,undirected\na,b,1\n", "STM3404", "2:5"),
    "an edge twice": ("a,b\na,b\n", "STM3406", "2:1"),
    "a cycle": ("a,b\nb,a\n", "STM3405", "1:1"),
}
TABULATED: dict[str, Good] = {
    "names with blanks": ("New York\tBoston, MA\n", 2, "New_York>Boston,_MA"),
    "named columns": ("from\tto\tmode\na\tb\tby air\n", 2, "a>b"),
    "quotes": ('"a\tb"\tc\n', 2, "a\tb>c"),
}
BROKEN_TABULATED: dict[str, Bad] = {
    "commas": ("a,b\nb,c\n", "STM3403", "1:1"),
    "three cells": ("a\tb\tc\n", "STM3403", "1:5"),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists(tmp_path: Path, name: str) -> None:
    accepted(tmp_path, "g.edges", *LISTS[name])


@pytest.mark.parametrize("name", BROKEN_LISTS)
def test_broken_lists(tmp_path: Path, name: str) -> None:
    refused_at(tmp_path, "g.txt", *BROKEN_LISTS[name])


@pytest.mark.parametrize("name", TABLES)
def test_tables(tmp_path: Path, name: str) -> None:
    accepted(tmp_path, "g.csv", *TABLES[name])


@pytest.mark.parametrize("name", BROKEN_TABLES)
def test_broken_tables(tmp_path: Path, name: str) -> None:
    refused_at(tmp_path, "g.csv", *BROKEN_TABLES[name])


@pytest.mark.parametrize("name", TABULATED)
def test_tables_with_tabulators(tmp_path: Path, name: str) -> None:
    accepted(tmp_path, "g.tsv", *TABULATED[name])


@pytest.mark.parametrize("name", BROKEN_TABULATED)
def test_broken_tables_with_tabulators(tmp_path: Path, name: str) -> None:
    refused_at(tmp_path, "g.tsv", *BROKEN_TABULATED[name])


def test_words_for_columns_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "graph-files.md").read_text(encoding="utf-8")
    tails, heads = text.split("Words for the tail are")[1].split("for the head")
    found = [re.findall(r"`(\w+)`", part.split(".")[0]) for part in (tails, heads)]
    assert found == [list(TAILS), list(HEADS)]


SETTLED = [
    ("a b 0.5\nb c 0.25\n", "edgelist", "tail head weight\na b 0.5\nb c 0.25\n", "edgelist"),
    ("New York,Boston\nBoston,Lima\n", "edgelist", "New York,Boston\nBoston,Lima\n", "csv"),
    ("source,target\nsource,c\n", "csv", "tail,head\nsource,target\nsource,c\n", "csv"),
    ("a #b\na c\n", "edgelist", 'a "#b"\na c\n', "edgelist"),
    ("a -> b, c\n", "edgelist", "digraph {\na -> b, c\n}\n", "dot"),
    ("a,b\nb c\n", "edgelist", "a b\nb c\n", "edgelist"),
    ("a b\na c\n", "csv", "a b\na c\n", "edgelist"),
    ("u v\n1 2\n", "edgelist", "tail head\nu v\n1 2\n", "edgelist"),
    ("source,y\na,b\n", "csv", "tail,head\nsource,y\na,b\n", "csv"),
    ("3\n0 1\n1 2\n", "edgelist", '"3"\n0 1\n1 2\n', "edgelist"),
    ("digraph G {\na -> b\nb -> c\n}\n", "edgelist", "digraph G {\na -> b\nb -> c\n}\n", "dot"),
]


@pytest.mark.parametrize(("text", "format", "better", "then"), SETTLED)
def test_advice_leads_further(tmp_path: Path, text: str, format: str, better: str, then: str) -> None:
    """What a refusal says to write is read, with two edges."""
    path = tmp_path / "graph"
    path.write_text(text)
    with pytest.raises(Exception, match=f"as {then}|tail.head|into quotes|alike"):
        read_graph(str(path), format)
    path.write_text(better)
    assert read_graph(str(path), then).edge_count == 2


UNSEEN = ["a\tb\tc\n", "from\tto\n", "source\tb\nsource\ta\nfrom\tto\n", "u\tv\n1\t2\n", "name\tage\na\t3\n", "#rain\tstorm\n"]


@pytest.mark.parametrize("format", ["tsv", "csv", "edgelist"])
@pytest.mark.parametrize("text", UNSEEN)
def test_nothing_unseen_in_what_is_said(tmp_path: Path, text: str, format: str) -> None:
    """A tabulator would print as U+FFFD in a message or an advice."""
    path = tmp_path / "g.txt"
    path.write_text(text)
    try:
        read_graph(str(path), format)
    except SpecError as error:
        (found,) = error.diagnostics
        assert not re.search(r"[\t\x00-\x1f]", f"{found.message} {found.help}")


def test_a_lone_beginning_names_its_format(tmp_path: Path) -> None:
    for suffix, word in (
        ("dot", "dot"),
        ("gml", "gml"),
        ("net", "pajek"),
        ("bench", "bench"),
        ("nex", "nexus"),
        ("aag", "aiger"),
    ):
        found = refused_at(tmp_path, "g.txt", TEXTS[suffix], "STM3403", "1:1")
        assert f"as {word}`" in str(found.help)


# Names that may be anything but empty; a list of networkx separates by blanks and quotes nothing.
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\ufeff"), min_size=1, max_size=6)
PLAIN = st.text("abcABC012_.äλ大", min_size=1, max_size=4).filter(lambda name: name.lower() not in ("a", "b"))


def graphs(names: st.SearchStrategy[str]) -> st.SearchStrategy[nx.DiGraph]:
    """A DAG of named nodes, each of which has an edge."""

    @st.composite
    def draw(get: st.DrawFn) -> nx.DiGraph:
        nodes = get(st.lists(names, min_size=2, max_size=6, unique=True))
        pairs = [(tail, head) for at, tail in enumerate(nodes) for head in nodes[at + 1 :]]
        graph = nx.DiGraph()
        graph.add_edges_from(get(st.lists(st.sampled_from(pairs), min_size=1, max_size=8, unique=True)))
        return graph

    return draw()


def named_edges(path: Path, format: str | None = None) -> tuple[int, list[tuple[str, str]]]:
    dag = read_graph(str(path), format)
    assert dag.names is not None
    pairs = zip(dag.tail.tolist(), dag.head.tolist(), strict=True)
    return dag.node_count, sorted((dag.names[tail], dag.names[head]) for tail, head in pairs)


@settings(max_examples=60, deadline=None)
@given(graph=graphs(NAMES), dialect=st.sampled_from(["excel", "unix", "tab", ";"]), index=st.booleans())
def test_tables_of_the_csv_module(
    tmp_path_factory: pytest.TempPathFactory, graph: nx.DiGraph, dialect: str, index: bool
) -> None:
    """Names of any characters; the names of the columns keep apart what they are and what is an edge."""
    out = StringIO()
    style = "excel" if dialect == ";" else dialect.replace("tab", "excel-tab")
    writer = csv.writer(out, style, quoting=csv.QUOTE_ALL, delimiter={"tab": "\t", ";": ";"}.get(dialect, ","))
    writer.writerow(["", "source of it", "tail column", "tail", "head"][0 if index else 3 :])
    for row, edge in enumerate(graph.edges):
        writer.writerow([row, "x", "y", *edge][0 if index else 3 :])
    path = tmp_path_factory.mktemp("table") / ("g.tsv" if dialect == "tab" else "g.csv")
    path.write_text(out.getvalue(), encoding="utf-8", newline="")
    if {"tail", "head"} & set(graph.nodes):
        return
    assert named_edges(path) == (len(graph), sorted(graph.edges))


@settings(max_examples=60, deadline=None)
@given(graph=graphs(PLAIN), separator=st.sampled_from([" ", ",", "\t", ", "]), data=st.booleans())
def test_lists_of_networkx(tmp_path_factory: pytest.TempPathFactory, graph: nx.DiGraph, separator: str, data: bool) -> None:
    nx.set_edge_attributes(graph, {edge: {"w": 0.5, "x y": "z"} for edge in list(graph.edges)[:1]})
    path = tmp_path_factory.mktemp("list") / "g.edgelist"
    with gzip.open(path, "wb") as file:
        file.write(b"# a first line\n# tail head\n")
        nx.write_edgelist(graph, file, delimiter=separator, data=data)
    first = next(iter(graph.edges))
    numbers = [name.isdecimal() for name in graph.nodes if name not in first]
    if numbers and all(numbers) and not any(name.isdecimal() for name in first):
        return  # as names of columns above numbers
    assert named_edges(path) == (len(graph), sorted(graph.edges))


TEXTS = {
    "edgelist": "a b\n", "csv": "a,b\n", "tsv": "a\tb\n", "dot": "digraph { a -> b }", "gv": "digraph { a -> b }",
    "graphml": '<graphml><graph edgedefault="directed"><node id="a"/><node id="b"/><edge source="a" target="b"/></graph>'
    "</graphml>",
    "gml": 'graph [ directed 1 node [ id 1 label "a" ] node [ id 2 label "b" ] edge [ source 1 target 2 ] ]',
    "net": "*Vertices 2\n1 a\n2 b\n*Arcs\n1 2\n", "bench": "INPUT(a)\nb = NOT(a)\n", "nwk": "(a)b;", "ptb": "(b a)",
    "aag": "aag 1 1 0 0 0\n2\n", "nex": "#NEXUS\nbegin trees;\ntree t = (a)b;\nend;\n",
    "bif": "variable a { type discrete [ 2 ] { x, y }; } variable b { type discrete [ 2 ] { x, y }; } "
    "probability ( a ) { table 0.5, 0.5; } probability ( b | a ) { default 0.5, 0.5; }",
}  # fmt: skip


@pytest.mark.parametrize("suffix", TEXTS)
def test_packed_files_of_every_format(tmp_path: Path, suffix: str) -> None:
    """The suffix before `.gz` tells the format, the content whether there is something to unpack."""
    plain, packed = tmp_path / f"g.{suffix}", gzip.compress(TEXTS[suffix].encode())
    plain.write_text(TEXTS[suffix])
    wanted = read_graph(str(plain))
    for name, content in ((f"p.{suffix}.gz", packed), (f"q.{suffix}", packed), (f"r.{suffix}.GZ", TEXTS[suffix].encode())):
        (tmp_path / name).write_bytes(content)
        found = read_graph(str(tmp_path / name))
        assert (found.names, found.tail.tolist(), found.head.tolist()) == (
            wanted.names,
            wanted.tail.tolist(),
            wanted.head.tolist(),
        )
    (tmp_path / "x.gz").write_bytes(packed)
    assert read_graph(str(tmp_path / "x.gz"), SUFFIXES[f".{suffix}"]).node_count == wanted.node_count


def test_packed_binary_files_and_netlists(tmp_path: Path) -> None:
    for name, content in (("g.aig.gz", b"aig 2 1 0 1 1\n4\n\x02\x00"), ("g.bench.gz", b"INPUT(a)\nb = NOT(a)\n")):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content))
        assert read_netlist(str(path)).dag.node_count >= 2


def test_packed_files_in_parts_are_one(tmp_path: Path) -> None:
    accepted(tmp_path, "g.txt.gz", gzip.compress(b"a b\n") + gzip.compress(b"b c\n") + b"\0" * 8, 3, "a>b b>c")


def test_places_in_packed_files(tmp_path: Path) -> None:
    refused_at(tmp_path, "g.txt.gz", gzip.compress(b"a b\nb c d\n"), "STM3403", "2:5")


PACKED = gzip.compress(b"a b\n" * 100)


@pytest.mark.parametrize(
    "content",
    [
        PACKED[:-1],
        PACKED[:-9],
        PACKED[:5],
        PACKED[:2],
        PACKED[:-8] + bytes(8),
        PACKED + b"a b\n",
        PACKED[:12] + b"\xff" + PACKED[13:],
    ],
    ids=["a byte less", "cut in the data", "cut in the head", "magic alone", "another sum", "text behind", "a byte changed"],
)
def test_damaged_packed_files(tmp_path: Path, content: bytes) -> None:
    found = refused_at(tmp_path, "g.txt.gz", content, "STM3401", "")
    assert found.help is not None
    assert "gzip -t" in found.help


def test_packed_files_that_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file does not unpack to more than a plain one may have, and a binary one is left at its first part."""
    monkeypatch.setattr("stmlang.graph.readers.files.MOST_BYTES", 3 << 20)
    accepted(tmp_path, "g.txt.gz", gzip.compress(b"a b\n" + b" " * ((3 << 20) - 4)), 2, "a>b")
    found = refused_at(tmp_path, "g.txt.gz", gzip.compress(b" " * (4 << 20)), "STM3413", "")
    assert "once it is unpacked" in found.message
    refused_at(tmp_path, "z.txt.gz", gzip.compress(bytes(16 << 20)), "STM3412", "")


def test_packed_files_without_a_format(tmp_path: Path) -> None:
    for name in ("g.gz", "g.xyz.gz", ".gz"):
        refused_at(tmp_path, name, PACKED, "STM3402", "")


def test_a_spec_reads_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` takes every format by its word."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tails.csv").write_text("from,to\na,b\nb,c\n")
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress(b"a\tb\n"))
    for named in ('"tails.csv"', '"tails.csv" as csv', '"t.tsv.gz"', '"tails.csv" as edgelist'):
        text = f"scan s on dag from {named} {{\n    source = 1\n    transition = 0.5\n}}\n"
        assert not examine(open_spec(text)).failed
