"""Graph files: what each format means, what is refused and where, and the published counts of real files."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.levels import node_levels
from stmlang.graph.readers import pajek, read_graph
from stmlang.graph.readers.files import open_file
from stmlang.graph.readers.finish import checked
from stmlang.graph.readers.read import FORMATS, SUFFIXES
from stmlang.graph.readers.text import Graph, GraphFile
from stmlang.graph.topology import dag_of
from stmlang.scan.topology import FromFile
from stmlang.source.codes import CODES
from stmlang.source.diagnostic import SpecError
from stmlang.source.span import SourceFile, Span
from tests.graph.files import arrows, data, measured, read, refused

SAMPLES = {
    "g.edgelist": "# a comment\r\nb c {}\na   b\n\nlonely % another\na\tc",
    "g.dot": """#!preprocessed
        /* block */ digraph "name" { rankdir = LR; node [shape = box, label = "a -> b"]; // tail
        b -> c [w = <<b>x</b>>]; "a" -> b:port:nw; "lo" + "nely"; a -> c; }""",
    "g.gml": """Creator "me" graph [ comment "]" directed 1 node [ id 5 label "b" graphics [ x 1 ] ] node [ id 7 label "c" ]
        node [ id 2 label "a" ] node [ id 9 label "lonely" ]
        edge [ source 5 target 7 value 0.5 ] edge [ source 2 target 5 ] edge [ source 2 target 7 ] ]""",
    "g.graphml": """<?xml version="1.0" encoding="UTF-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
        <key id="d0" for="edge"/><graph edgedefault="directed"><node id="b"/><node id="c"/><edge source="b" target="c"><data
        key="d0">1</data></edge><edge source="a" target="b"/><node id="a"/><node id="lonely"/>
        <edge source="a" target="c"/></graph></graphml>""",
    "g.bif": """network "n" { property author = "x { y"; } // c
        variable b { type discrete [ 2 ] { y, n }; } variable c { type discrete[2] { y, n }; }
        variable "a" { property position = (1, 2); type discrete [ 2 ] { y, n }; } variable lonely { }
        probability ( c | b, a ) { (y, n) 0.1, 0.9; } probability(b|a) { default 1; } probability (a) { table 1; }""",
    "g.bench": "# circuit\nINPUT(a)\noutput( c )\nc = NAND(b, a)\n\nb = not ( a ) # inverter\nINPUT(lonely)\n",
    "g.net": '*Network x\n*Vertices 4\n% note\n1 "b"\n2 c 0.1 0.2\n003 "a"\n4 "lonely"\n*Arcs :1 "cites"\n1 2 1.0\n3 1\n'
    "*Arcslist\n3 2 1 2\n*Partition p\n*Vertices 4\n1\n1\n1\n1\n",
}
TEXTS = {
    "g.nwk": "((a:1,b)'c':2,d)e;",
    "g.csv": '# x\nid,source,target\n1,"a ""x"", y",b\n2,b,c d\n',
    "g.tsv": 'a\t"b\tc"\n"b\nd"\te f\n',
}


@pytest.mark.parametrize("name", SAMPLES)
def test_one_graph_in_every_format(tmp_path: Path, name: str) -> None:
    dag = read(tmp_path, name, SAMPLES[name])
    assert sorted(arrows(dag)) == ["a>b", "a>c", "b>c"]
    assert sorted(dag.names or ()) == ["a", "b", "c", "lonely"]
    assert dag.ports == ("edge",)
    assert dag.node_shape == (4,)


def test_order_is_that_of_the_file(tmp_path: Path) -> None:
    assert arrows(read(tmp_path, "g.edgelist", "b c\na b\na c\n")) == ["b>c", "a>b", "a>c"]
    assert arrows(read(tmp_path, "g.bench", SAMPLES["g.bench"])) == ["b>c", "a>c", "a>b"]
    assert read(tmp_path, "g.bench", SAMPLES["g.bench"]).names == ("a", "c", "b", "lonely")


def test_byte_order_mark_and_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "g.edgelist"
    path.write_bytes("\ufeffa b".encode())
    assert read_graph(str(path)).names == ("a", "b")
    path.write_bytes("Erdős b".encode())
    assert read_graph(str(path)).names == ("Erdős", "b")
    path.write_bytes("Gödel b".encode("latin-1"))
    assert read_graph(str(path)).names == ("Gödel", "b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("digraph{a->b->c}", ["a>b", "b>c"]),
        ("strict digraph { a -> b; a -> b }", ["a>b"]),
        ("digraph { a -> b; a -> b }", ["a>b", "a>b"]),
        ("digraph { a -> { b c } -> d }", ["a>b", "a>c", "b>d", "c>d"]),
        ("digraph { {a b} -> subgraph s { c; d [x=1] } }", ["a>c", "a>d", "b>c", "b>d"]),
        ("digraph { subgraph cluster_1 { label = x; a -> b } b -> c }", ["a>b", "b>c"]),
        ("digraph { { a; { b } } -> c }", ["a>c", "b>c"]),
        ("digraph { { a -> b } -> c }", ["a>b", "a>c", "b>c"]),
        ("digraph { x -> {} -> y; a -> b }", ["a>b"]),
        ('digraph { "a \\"q\\"" -> "semi;->colon" [label="]"] }', ['a "q">semi;->colon']),
        ("digraph { -1.5 -> .5 -> 7 }", ["-1.5>.5", ".5>7"]),
        ("digraph { a -> b [x = 1][y = 2]; c -> d }", ["a>b", "c>d"]),
        ("DiGraph { EDGE [x=1] a -> Node1 }", ["a>Node1"]),
        ('digraph { <b<i>x</i>> -> "two\\\nlines" }', ["b<i>x</i>>twolines"]),
    ],
)
def test_dot(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert arrows(read(tmp_path, "g.dot", text)) == expected


@pytest.mark.parametrize(
    ("text", "expected", "names"),
    [
        ("(a,b)c;", ["a>c", "b>c"], ("a", "b", "c")),
        ("[&R] ((a:1,b:2.5e-3)x:1,'it''s (c)')[note]root;", ["a>x", "b>x", "x>root", "it's (c)>root"], None),
        ("(,(,));", ["node 1>node 5", "node 2>node 4", "node 3>node 4", "node 4>node 5"], None),
        ("(a,a);", ["a #1>node 3", "a #2>node 3"], None),
        ("a;", [], ("a",)),
    ],
)
def test_newick(tmp_path: Path, text: str, expected: list[str], names: tuple[str, ...] | None) -> None:
    dag = read(tmp_path, "g.nwk", text, tree=True)
    assert arrows(dag) == expected
    assert dag.tail.tolist() == list(range(dag.edge_count))
    assert names is None or dag.names == names


def test_deep_trees_and_groups(tmp_path: Path) -> None:
    """Nothing recurses: depth is bounded by memory."""
    depth = 20_000
    dag = read(tmp_path, "g.nwk", "(" * depth + "a" + ")" * depth + ";")
    assert node_levels(dag).max() == depth
    assert arrows(read(tmp_path, "g.dot", "digraph {" + "{" * depth + "a" + "}" * depth + "-> b }")) == ["a>b"]
    assert read(tmp_path, "g.gml", "graph [ directed 1 node [ id 1 " + "x [ " * depth + "] " * depth + "] ]").node_count == 1


def test_repeated_pajek_labels_show_the_vertex(tmp_path: Path) -> None:
    text = '*Vertices 3\n1 "SMALL H"\n3 "SMALL H"\n*Arcs\n1 2\n2 3\n1 2\n'
    dag = read(tmp_path, "g.net", text)
    assert dag.names == ("SMALL H #1", "2", "SMALL H #3")
    assert dag.edge_count == 2


BOMB = """<?xml version="1.0"?>
<!DOCTYPE lolz [ <!ENTITY a "ha"> <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"> ]>
<graphml><graph edgedefault="directed"><node id="&b;"/></graph></graphml>"""
FOREIGN = '<!DOCTYPE graphml SYSTEM "file:///etc/passwd"><graphml/>'

BAD = [
    ("g.edgelist", "a b\nb c\na b\n", "STM3406", 3),
    ("g.edgelist", "a b\nb c\nc d\nd b\n", "STM3405", 2),
    ("g.edgelist", "a b\nb b\n", "STM3405", 2),
    ("g.edgelist", "# nothing\n", "STM3411", None),
    ("g.edgelist", "", "STM3411", None),
    ("g.dot", "graph { a -- b }", "STM3404", 1),
    ("g.dot", "digraph {\n a -- b }", "STM3404", 2),
    ("g.dot", "digraph {\n a -> ; }", "STM3403", 2),
    ("g.dot", "digraph {\n a -> b", "STM3403", 1),
    ("g.dot", "digraph { a\n [x = 1 }", "STM3403", 2),
    ("g.dot", "digraph { a -> \n <b }", "STM3403", 2),
    ("g.dot", 'digraph { a -> \n"b }', "STM3403", 2),
    ("g.dot", "digraph { a\n + }", "STM3403", 2),
    ("g.dot", "digraph { a = }", "STM3403", 1),
    ("g.dot", "digraph { /* a }", "STM3403", 1),
    ("g.dot", "a -> b", "STM3403", 1),
    ("g.dot", "", "STM3403", 1),
    ("g.dot", "digraph { a -> b\n b -> c -> a }", "STM3405", 1),
    ("g.gml", "graph [ node [ id 1 ] ]", "STM3404", 1),
    ("g.gml", "graph [ directed 1\n node [ label 1 ] ]", "STM3403", 2),
    ("g.gml", "graph [ directed 1\n node [ id 1 ]\n node [ id 1 ] ]", "STM3409", 3),
    ("g.gml", "graph [ directed 1 node [ id 1 ]\n edge [ source 1 target 2 ] ]", "STM3408", 2),
    ("g.gml", "graph [ directed 1 node [ id 1 ]\n edge [ source 1 ] ]", "STM3403", 2),
    ("g.gml", "graph [ directed 1\n node [ id 1 ", "STM3403", 2),
    ("g.gml", "graph [ directed ] ]", "STM3403", 1),
    ("g.gml", 'graph [ directed 1 node [ id 1 label\n "a ] ]', "STM3403", 2),
    ("g.gml", "nothing 1", "STM3403", 1),
    ("g.graphml", BOMB, "STM3410", 2),
    ("g.graphml", FOREIGN, "STM3410", 1),
    ("g.graphml", "<graphml>\n<graph></graphml>", "STM3403", 2),
    ("g.graphml", "<graphml>\n<graph edgedefault='directed'>\n<node/></graph></graphml>", "STM3403", 3),
    (
        "g.graphml",
        "<graphml><graph edgedefault='undirected'><node id='a'/>\n<edge source='a' target='a'/></graph></graphml>",
        "STM3404",
        2,
    ),
    (
        "g.graphml",
        "<graphml><graph edgedefault='directed'><node id='a'/>\n<edge source='a' target='b'/></graph></graphml>",
        "STM3408",
        2,
    ),
    ("g.graphml", "<graphml><graph edgedefault='directed'><node id='a'/>\n<node id='a'/></graph></graphml>", "STM3409", 2),
    ("g.graphml", "<graphml><graph edgedefault='directed'>\n<hyperedge/></graph></graphml>", "STM3403", 2),
    ("g.graphml", "<svg/>", "STM3403", 1),
    ("g.graphml", "", "STM3403", 1),
    ("g.bif", "variable a { }\nprobability ( b | a ) { }", "STM3408", 2),
    ("g.bif", "variable a { }\nprobability ( a | b ) { }", "STM3408", 2),
    ("g.bif", "variable a { }\nvariable a { }", "STM3409", 2),
    ("g.bif", "variable a { } variable b { }\nprobability ( a | b, b ) { }", "STM3406", 2),
    ("g.bif", "variable a { }\nprobability ( a ) { }\nprobability ( a ) { }", "STM3409", 3),
    ("g.bif", "variable a { }\nprobability a { }", "STM3403", 2),
    ("g.bif", "variable a { }\nprobability ( ) { }", "STM3403", 2),
    ("g.bif", "variable a { type", "STM3403", 1),
    ("g.bif", "variable", "STM3403", 1),
    ("g.bif", "network { }\nnode a { }", "STM3403", 2),
    ("g.bench", "INPUT(a)\nb = NOT(c)\n", "STM3408", 2),
    ("g.bench", "INPUT(a)\nOUTPUT(z)\n", "STM3408", 2),
    ("g.bench", "INPUT(a)\na = NOT(a)\n", "STM3409", 2),
    ("g.bench", "INPUT(a)\nb := NOT(a)\n", "STM3403", 2),
    ("g.bench", "INPUT(a)\nq = DFF(d)\nd = AND(a, q)\n", "STM3414", 2),
    ("g.net", "*Vertices 2\n*Arcs\n1 3\n", "STM3408", 3),
    ("g.net", "*Vertices 2\n*Arcs\n1\n", "STM3403", 3),
    ("g.net", "*Vertices 2\n*Edges\n1 2\n", "STM3404", 3),
    ("g.net", "*Vertices 2\n*Matrix\n0 1\n0 0\n", "STM3403", 3),
    ("g.net", "*Vertices many\n", "STM3403", 1),
    ("g.net", "*Vertices 99999999999999999999\n", "STM3413", 1),
    ("g.net", "1 2\n", "STM3403", 1),
    ("g.nwk", "((a,b);", "STM3403", 1),
    ("g.nwk", "(a,b));", "STM3403", 1),
    ("g.nwk", "(a,b)\n(c,d);", "STM3403", 2),
    ("g.nwk", "(a,\n[b);", "STM3403", 2),
    ("g.nwk", "(a,\n'b);", "STM3403", 2),
    ("g.nwk", "", "STM3411", None),
    ("g.nwk", " ;", "STM3411", 1),
]


@pytest.mark.parametrize(("name", "text", "code", "line"), BAD)
def test_refusals_say_where(tmp_path: Path, name: str, text: str, code: str, line: int | None) -> None:
    refused(tmp_path, name, text, code, line)


def test_cycles_are_printed(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as error:
        read(tmp_path, "g.dot", "digraph { a -> b -> c -> d -> b; c -> e }")
    assert error.value.diagnostics[0].message == "the graph has a cycle: b -> c -> d -> b"
    with pytest.raises(SpecError) as error:
        read(tmp_path, "g.edgelist", "\n".join(f"{node} {(node + 1) % 100}" for node in range(100)))
    assert "... (88 more) ..." in error.value.diagnostics[0].message


def test_trees_are_checked(tmp_path: Path) -> None:
    assert read(tmp_path, "g.edgelist", "a c\nb c\nd e\n", tree=True).edge_count == 3
    with pytest.raises(SpecError) as error:
        read(tmp_path, "g.edgelist", "a b\na c\n", tree=True)
    found = error.value.diagnostics[0]
    assert found.code == "STM3407"
    assert found.labels[0].span.text == "a b"


def test_which_file_and_which_format(tmp_path: Path) -> None:
    span = Span(SourceFile("s.stm", 'dag from "g"'), 4, 12)
    cases = [
        ("missing.dot", None, "STM3401"),
        ("g.xyz", None, "STM3402"),
        ("g", None, "STM3402"),
        ("g.xyz", "grapml", "STM3402"),
    ]
    (tmp_path / "g.xyz").write_text("a b")
    (tmp_path / "g").write_text("a b")
    for name, format, code in cases:
        with pytest.raises(SpecError) as error:
            read_graph(str(tmp_path / name), format, span=span)
        assert (error.value.diagnostics[0].code, error.value.diagnostics[0].span) == (code, span)
    assert error.value.diagnostics[0].help == "did you mean `graphml`?"
    with pytest.raises(SpecError) as error:
        read_graph(str(tmp_path), "dot")
    assert error.value.diagnostics[0].code == "STM3401"
    assert dag_of(FromFile(str(tmp_path / "g.xyz"), "edgelist", True, span)).names == ("a", "b")
    assert {*SUFFIXES.values(), "d8_grass", "d8_taudem"} == set(FORMATS)


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from([*SAMPLES, *TEXTS]),
    cuts=st.lists(
        st.tuples(st.integers(0, 400), st.integers(0, 12), st.text("{}[]()<>\"'&;:,=->|+#*/\\ \n1ab", max_size=4)), max_size=4
    ),
)
def test_mutated_files_raise_nothing_else(name: str, cuts: list[tuple[int, int, str]]) -> None:
    text = {**SAMPLES, **TEXTS}[name]
    for start, length, put in cuts:
        text = text[:start] + put + text[start + length :]
    reader = import_module(f"stmlang.graph.readers.{SUFFIXES[Path(name).suffix]}")
    try:
        graph: Graph = reader.read(GraphFile(SourceFile(name, text), None))
    except SpecError as refused:
        codes = {diagnostic.code for diagnostic in refused.diagnostics}
    else:
        codes = set[str]()
        assert len(graph.tails) == len(graph.heads) == len(graph.edge_at)
        assert all(0 <= end < len(graph.names) for end in (*graph.tails, *graph.heads))
    assert codes <= set(CODES)


BIF = {
    "alarm": (37, 46), "asia": (8, 8), "child": (20, 25), "sachs": (11, 17), "insurance": (27, 52), "water": (32, 66),
    "hailfinder": (56, 66), "hepar2": (70, 123), "win95pts": (76, 112), "andes": (223, 338), "pigs": (441, 592),
    "link": (724, 1125), "cancer": (5, 4), "earthquake": (5, 4), "survey": (6, 6),
}  # fmt: skip
DEPTHS = {"alarm": 10, "hailfinder": 13, "andes": 40}


@pytest.mark.parametrize("name", BIF)
def test_bayesian_networks(name: str) -> None:
    nodes, edges, depth = measured(f"bif/{name}.bif")
    assert (nodes, edges) == BIF[name]
    assert DEPTHS.get(name, depth) == depth


GATES = {
    "c17": (5, 6), "c432": (36, 160), "c499": (41, 202), "c880": (60, 383), "c1355": (41, 546), "c1908": (33, 880),
    "c2670": (233, 1193), "c3540": (50, 1669), "c5315": (178, 2307), "c6288": (32, 2416), "c7552": (207, 3512),
}  # fmt: skip


@pytest.mark.parametrize("name", GATES)
def test_circuits(name: str) -> None:
    nodes, _, depth = measured(f"bench_iscas85/{name}.bench")
    assert nodes == sum(GATES[name])
    assert 3 <= depth <= 124


def test_both_spellings_of_gates_give_one_circuit() -> None:
    lower, upper = read_graph(data("bench_iscas85/c17.bench")), read_graph(data("bench_iscas85/c17_uppercase.bench"))
    assert measured("bench_iscas85/c6288.bench")[2] == 124
    assert sorted(node_levels(lower).tolist()) == sorted(node_levels(upper).tolist())
    assert lower.edge_count == upper.edge_count == 12


def test_data_flow_graphs() -> None:
    files = sorted(Path(data("dot_dfg")).glob("*.dot"))
    assert len(files) == 16
    found = [measured(f"dot_dfg/{file.name}") for file in files]
    assert (min(nodes for nodes, _, _ in found), max(nodes for nodes, _, _ in found)) == (18, 333)
    assert (min(depth for _, _, depth in found), max(depth for _, _, depth in found)) == (5, 15)


def test_citation_networks() -> None:
    assert measured("citation_pajek/SmallW.net") == (396, 994, 15)
    assert measured("citation_pajek/PhD.paj") == (1025, 1043, 10)


# The files repeat 3, 3 and 20 arcs, so that 4922, 10416 and 54253 are written.
CYCLIC = {"SmaGri": (1059, 4919), "SciMet": (3084, 10413), "Zewail": (6752, 54233)}


@pytest.mark.parametrize("name", CYCLIC)
def test_cyclic_citation_networks(name: str) -> None:
    """Refused with a loop or a cycle of up to four arcs, all of which the file has."""
    file = open_file(data(f"citation_pajek/{name}.net"), "pajek")
    graph = pajek.read(file)
    assert (len(graph.names), len(graph.tails)) == CYCLIC[name]
    with pytest.raises(SpecError) as error:
        checked(file, graph.parsed())
    refusal = error.value.diagnostics[0]
    assert refusal.code == "STM3405"
    names = graph.parsed().names
    assert names is not None
    steps = refusal.message.removeprefix("the graph has a cycle: ").split(" -> ")
    assert 2 <= len(steps) <= 5
    assert steps[0] == steps[-1]
    arcs = {(names[tail], names[head]) for tail, head in zip(graph.tails, graph.heads, strict=True)}
    assert all(step in arcs for step in pairwise(steps))
    assert refusal.span is not None


@pytest.mark.parametrize(("name", "source"), [("alarm", "bif/alarm.bif"), ("win95pts", "bif/win95pts.bif"), ("SmallW", None)])
def test_one_real_graph_in_several_formats(name: str, source: str | None) -> None:
    """The same edges by name, and the same as networkx reads."""
    expected = sorted(arrows(read_graph(data(f"derived/{name}.graphml"))))
    by_networkx = nx.read_graphml(data(f"derived/{name}.graphml"))
    assert expected == sorted(f"{tail}>{head}" for tail, head in by_networkx.edges())
    for path in (f"derived/{name}.edgelist", f"derived/{name}.gml", source):
        if path is not None and Path(data(path)).exists():
            assert sorted(arrows(read_graph(data(path)))) == expected


def test_phylogenies() -> None:
    mammals = read_graph(data("newick/Bininda-emonds_2007_mammals.newick"), tree=True)
    degree = np.bincount(mammals.head, minlength=mammals.node_count)
    assert (mammals.node_count, int((degree == 0).sum()), int(degree.max())) == (6618, 4510, 151)
    assert int(node_levels(mammals).max()) == 39
    plants = read_graph(data("newick/Smith_2011_angiosperms.newick"), tree=True)
    degree = np.bincount(plants.head, minlength=plants.node_count)
    assert (plants.node_count, int((degree == 0).sum()), int(node_levels(plants).max())) == (110811, 55473, 90)
