"""GraphML, GML and Pajek: odd files and broken ones, and what networkx writes."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.readers import gml, graphml, pajek
from stmlang.graph.readers.text import Graph, GraphFile
from stmlang.source.span import SourceFile
from tests.graph.corpus import Bad, Good, accepted, refused_at

XMLNS = 'xmlns="http://graphml.graphdrawing.org/xmlns"'
OPEN, CLOSE = '<graphml><graph edgedefault="directed">', "</graph></graphml>"
AB = '<node id="a"/><node id="b"/>'
EDGE = '<edge source="a" target="b"/>'


def marked(inside: str) -> str:
    return f"{OPEN}{inside}{CLOSE}"


GRAPHML: dict[str, Good] = {
    "an edge": (marked(AB + EDGE), 2, "a>b"),
    "an edge before its ends": (marked(EDGE + AB), 2, "a>b"),
    "parallel edges": (marked(AB + EDGE + EDGE), 2, "a>b a>b"),
    "a namespace": (f'<graphml {XMLNS}><graph edgedefault="directed">{AB}{EDGE}{CLOSE}', 2, "a>b"),
    "a prefix": (
        '<g:graphml xmlns:g="x"><g:graph edgedefault="directed"><g:node id="a"/></g:graph></g:graphml>',
        1,
        "",
    ),
    "a declaration": (f'<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n<!-- x -->{marked(AB)}', 2, ""),
    "an instruction": (f"<?xml-stylesheet href='x'?>{marked(AB + EDGE)}", 2, "a>b"),
    "its own direction": (
        f'<graphml><graph edgedefault="undirected">{AB}<edge source="a" target="b" directed="true"/>{CLOSE}',
        2,
        "a>b",
    ),
    "one for true": (f'<graphml><graph>{AB}<edge source="a" target="b" directed=" 1 "/>{CLOSE}', 2, "a>b"),
    "undirected without edges": (f'<graphml><graph edgedefault="undirected">{AB}{CLOSE}', 2, ""),
    "keys and data": (
        '<graphml><key id="d" for="node"><desc>x</desc><default>1</default></key><data key="d">y</data>'
        f'<graph id="G" edgedefault="directed"><data key="d">z</data><node id="a"><data key="d">w</data></node>{CLOSE}',
        1,
        "",
    ),
    "what yEd draws": (
        f'<graphml xmlns:y="yed"><graph edgedefault="directed"><node id="a"><data key="d"><y:ShapeNode><y:node id="x"/>'
        f"<node/><graph/>text</y:ShapeNode></data></node>{CLOSE}",
        1,
        "",
    ),
    "nested graphs": (
        marked(f'<node id="g"><graph edgedefault="directed">{AB}{EDGE}</graph></node><edge source="b" target="g"/>'),
        3,
        "a>b b>g",
    ),
    "a nested graph of another direction": (
        marked(f'<node id="g"><graph edgedefault="undirected">{AB}</graph></node><edge source="a" target="b"/>'),
        3,
        "a>b",
    ),
    "ports": (
        marked(
            '<node id="a"><port name="n"><port name="m"/></port></node><node id="b"/>'
            '<edge source="a" target="b" sourceport="n"/>'
        ),
        2,
        "a>b",
    ),
    "descriptions": (marked(f"<desc>a -&gt; b</desc>{AB}<edge source='a' target='b'><desc>x</desc></edge>"), 2, "a>b"),
    "entities of XML": (marked('<node id="a&amp;&#98;&quot;"/>'), 1, ""),
    "blanks in names": (marked('<node id="a b"/><node id="c"/><edge source="a b" target="c"/>'), 2, "a_b>c"),
    "meta data for parsers": (
        f'<graphml><graph edgedefault="directed" parse.nodes="2" parse.order="free"><node id="a" parse.indegree="0"/>{CLOSE}',
        1,
        "",
    ),
    "other line ends": (marked(f"\r\n{AB}\r{EDGE}\n"), 2, "a>b"),
    "attributes in another order": (marked(AB + '<edge target="b" id="e" source="a"/>'), 2, "a>b"),
    "character data": (marked('<node id="a"><data key="d"><![CDATA[<node id="b"/>]]></data></node>'), 1, ""),
}
BROKEN_GRAPHML: dict[str, Bad] = {
    "empty": ("", "STM3403", "1:1"),
    "no node": (marked(""), "STM3411", ""),
    "a page": ("<html>\n<body/></html>", "STM3403", "1:1"),
    "not closed": (f"{OPEN}\n {AB}", "STM3403", "2:30"),
    "closed by another": (f"{OPEN}\n<node id='a'></edge>{CLOSE}", "STM3403", "2:16"),
    "no direction": (f'<graphml><graph edgedefault="undirected">{AB}\n {EDGE}{CLOSE}', "STM3404", "2:2"),
    "direction not said": (f"<graphml><graph>{AB}\n{EDGE}{CLOSE}", "STM3404", "2:1"),
    "its own direction": (marked(f'{AB}\n  <edge source="a" target="b" directed="false"/>'), "STM3404", "2:3"),
    "no truth": (marked(f'{AB}\n<edge source="a" target="b" directed="yes"/>'), "STM3403", "2:1"),
    "no default": (f'<graphml>\n <graph edgedefault="Directed">{AB}{CLOSE}', "STM3403", "2:2"),
    "a second graph": (f"<graphml><graph>{AB}</graph>\n <graph/></graphml>", "STM3403", "2:2"),
    "a graph in a graph": (marked(f"{AB}\n <graph/>"), "STM3403", "2:2"),
    "a node outside": (f"<graphml>\n {AB}</graphml>", "STM3403", "2:2"),
    "an edge in a node": (marked(f'<node id="a"/>\n<node id="b">{EDGE}</node>'), "STM3403", "2:14"),
    "an element of no meaning": (marked(f"{AB}\n<nodes/>"), "STM3403", "2:1"),
    "an element in capitals": (marked(f'{AB}\n<Node id="c"/>'), "STM3403", "2:1"),
    "an element of another kind": (
        f'<graphml xmlns:y="yed"><graph>\n<y:node id="a"/>{CLOSE}',
        "STM3403",
        "2:1",
    ),
    "a prefix without meaning": (marked('\n<y:node id="a"/>'), "STM3403", "2:1"),
    "text": (marked(f"{AB}\n a -> b {EDGE}"), "STM3403", "2:2"),
    "a hyperedge": (marked(f"{AB}\n<hyperedge/>"), "STM3403", "2:1"),
    "another file": (marked('\n<node id="a">\n <locator href="b.graphml"/></node>'), "STM3403", "3:2"),
    "no id": (marked("\n <node/>"), "STM3403", "2:2"),
    "no target": (marked(f'{AB}\n <edge source="a"/>'), "STM3403", "2:2"),
    "a node twice": (marked(f'{AB}\n  <node id="a"/>'), "STM3409", "2:3"),
    "an end that is no node": (marked(f'{AB}\n  <edge source="a" target="c"/>'), "STM3408", "2:3"),
    "a document type": (f"<?xml version='1.0'?>\n<!DOCTYPE x>{marked(AB)}", "STM3410", "2:1"),
    "another encoding": (
        '<?xml version="1.0" encoding="windows-1250"?>' + marked('<node id="ż"/>'),
        "STM3403",
        "1:1",
    ),
    "a cycle": (marked(f'{AB}{EDGE}\n<edge source="b" target="a"/>'), "STM3405", "1:68"),
}
GML: dict[str, Good] = {
    "an edge": ("graph [ directed 1 node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 ] ]", 2, "1>2"),
    "labels": ('graph [ directed 1 node [ id 1 label "a b" ] node [ id 2 label c ] edge [ source 1 target 2 ] ]', 2, "a_b>c"),
    "one label twice": ('graph [ directed 1 node [ id 1 label "a" ] node [ id 2 label "a" ] ]', 2, ""),
    "an edge before its ends": ("graph [ edge [ source 1 target 2 ] node [ id 1 ] node [ id 2 ] directed 1 ]", 2, "1>2"),
    "parallel edges": (
        "graph [ directed 1 node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 ] edge [ target 2 source 1 ] ]",
        2,
        "1>2 1>2",
    ),
    "numbers written otherwise": (
        "graph [ directed 1 node [ id +01 ] node [ id -2 ] edge [ source 1 target -02 ] ]",
        2,
        "1>-2",
    ),
    "strings for numbers": ('graph [ directed 1 node [ id "a" ] node [ id "b" ] edge [ source "a" target "b" ] ]', 2, "a>b"),
    "no blanks": ('graph[directed 1 node[id 1 label"a"]node[id 2]edge[source 1 target 2]]', 2, "a>2"),
    "comments": ("# x ]\ngraph [ directed 1\n  # node [ id 9 ]\n node [ id 1 ] ]\n#", 1, ""),
    "a colour without quotes": ("graph [ directed 1 node [ id 1 graphics [ fill #ff0000 ] ] ]", 1, ""),
    "drawings": ("graph [ directed 1 node [ id 1 graphics [ x 1.5 Line [ point [ x 1 ] point [ x 2 ] ] ] ] ]", 1, ""),
    "the maker": ('Creator "x" Version 2.14 graph [ hierarchic 1 directed 1 label "" node [ id 0 ] ]', 1, ""),
    "keys besides": ('graph [ directed 1 node [ id 1 value 3 ID 4 Label "x" gid 2 isGroup 1 ] ]', 1, ""),
    "one key often": ("graph [ directed 1 node [ id 1 x 1 x 2 x [ y 3 ] ] ]", 1, ""),
    "strings over lines": ('graph [ directed 1 comment "a [\nb ]" node [ id 1 label "c\nd" ] ]', 1, ""),
    "entities": (
        'graph [ directed 1 node [ id 1 label "&quot;&amp;&#228;&#x5927;&#128;&copy&none;&#55296;" ] node [ id 2 ]'
        " edge [ source 2 target 1 ] ]",
        2,
        '2>"&ä大\x80&copy&none;&#55296;',
    ),
    "other line ends": ("graph [\r directed 1\r\n# x\r node [ id 1 ]\r]", 1, ""),
    "letters of many scripts": ('graph [ directed 1 node [ id 1 label "大 ä" ] ]', 1, ""),
    "an empty label": ('graph [ directed 1 node [ id 1 label "" ] node [ id 2 ] edge [ source 1 target 2 ] ]', 2, ">2"),
    "a key of another place": ("id 3 graph [ id 4 directed 1 source 5 node [ id 1 source 2 ] ]", 1, ""),
    "multigraph": ("graph [ multigraph 1 directed 1 node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 key 0 ] ]", 2, "1>2"),
}
BROKEN_GML: dict[str, Bad] = {
    "empty": ("", "STM3403", "1:1"),
    "no node": ("graph [ directed 1 ]", "STM3411", ""),
    "no graph": ("node [ id 1 ]\n", "STM3403", "1:1"),
    "no directions": ("graph [ node [ id 1 ] ]", "STM3404", "1:1"),
    "directions denied": ("graph [\n directed 0 node [ id 1 ] ]", "STM3404", "2:11"),
    "directed in words": ("graph [\n directed true node [ id 1 ] ]", "STM3404", "2:11"),
    "a second graph": ("graph [ directed 1 node [ id 1 ] ]\ngraph [ ]", "STM3403", "2:1"),
    "a nested graph": ("graph [ directed 1 node [ id 1\n graph [ ] ] ]", "STM3403", "2:2"),
    "a node outside": ("graph [ directed 1 ]\nnode [ id 1 ]", "STM3403", "2:1"),
    "a node in a node": ("graph [ directed 1 node [ id 1\n node [ id 2 ] ] ]", "STM3403", "2:2"),
    "an edge in a drawing": ("graph [ directed 1 x [\n edge [ source 1 target 2 ] ] ]", "STM3403", "2:2"),
    "a node in capitals": ("graph [ directed 1\n Node [ id 1 ] ]", "STM3403", "2:2"),
    "no id": ('graph [ directed 1\n node [ label "a" ] ]', "STM3403", "2:2"),
    "an id in capitals": ("graph [ directed 1\n node [ ID 1 ] ]", "STM3403", "2:2"),
    "no target": ("graph [ directed 1 node [ id 1 ]\n edge [ source 1 ] ]", "STM3403", "2:2"),
    "an id twice": ("graph [ directed 1\n node [ id 1 id 2 ] ]", "STM3403", "2:14"),
    "directed twice": ("graph [ directed 1\n directed 0 node [ id 1 ] ]", "STM3403", "2:2"),
    "a node twice": ("graph [ directed 1 node [ id 1 ]\n node [ id 01 ] ]", "STM3409", "2:12"),
    "an end that is no node": ("graph [ directed 1 node [ id 1 ]\n edge [ source 1 target 2 ] ]", "STM3408", "2:25"),
    "a list without key": ("graph [ directed 1\n [ id 1 ] ]", "STM3403", "2:2"),
    "a number for a key": ("graph [ directed 1 node [ id 1\n 2 3 ] ]", "STM3403", "2:2"),
    "a string for a key": ('graph [ directed 1 node [ id 1\n "a" ] ]', "STM3403", "2:2"),
    "a comment behind": ("graph [ directed 1 # x\n node [ id 1 ] ]", "STM3403", "1:20"),
    "a value that lacks": ("graph [ directed 1 node [ id 1 label\n ] ]", "STM3403", "2:2"),
    "a value that lacks at the end": ("graph [ directed 1 node [ id 1 ] ]\nx", "STM3403", "2:1"),
    "a bracket too many": ("graph [ directed 1 node [ id 1 ] ]\n]", "STM3403", "2:1"),
    "a bracket that lacks": ("graph [ directed 1\n node [ id 1 ]", "STM3403", "1:1"),
    "an open string": ('graph [ directed 1 node [ id 1 label\n "a ] ]', "STM3403", "2:2"),
}
PAJEK: dict[str, Good] = {
    "an arc": ("*Vertices 2\n*Arcs\n1 2\n", 2, "1>2"),
    "labels": ('*Vertices 3\n1 "a b"\n2 c\n*Arcs\n1 2\n2 3', 3, "a_b>c c>3"),
    "lists of arcs": ("*vertices 4\n*arcslist \n1 2 3\n3 4\n", 4, "1>2 1>3 3>4"),
    "weights": ("*Vertices 3\n*Arcs\n1 2 1.0\n2 3 -.5e3\n", 3, "1>2 2>3"),
    "an arc twice": ("*Vertices 2\n*Arcs\n1 2\n1 2 3\n", 2, "1>2"),
    "relations": ('*Vertices 2\n*Arcs :1 "cites"\n1 2\n*Arcs :2 "knows"\n1 2 1\n', 2, "1>2"),
    "coordinates": ('*Vertices 2\n1 "a" 0.1 0.2 0.3\n2 "b" 0.1 0.2\n', 2, ""),
    "drawings": ('*Vertices 2\n1 "a" 0.1 0.2 0.3 box ic White fos 20\n2 b ellipse\n*Arcs\n1 2 1 c Blue l "x y"\n', 2, "a>b"),
    "drawings without a weight": ('*Vertices 2\n*Arcs\n1 2 l "x"\n', 2, "1>2"),
    "comments": ("% x\n*Vertices 2\n% *Arcs\n*Arcs\n% y\n1 2\n", 2, "1>2"),
    "numbers padded": ("*Vertices 2\n  001 a\n*Arcs\n 01   02\n", 2, "a>2"),
    "sections in any case": ("*NETWORK x\n*VERTICES 2\n*ARCS\n1 2\n", 2, "1>2"),
    "two modes": ("*Vertices 3 2\n*Arcs\n1 3\n2 3\n", 3, "1>3 2>3"),
    "empty undirected sections": ("*Vertices 2\n*Arcs\n1 2\n*Edges\n*Edgeslist\n", 2, "1>2"),
    "a partition behind": ("*Network n\n*Vertices 2\n*Arcs\n1 2\n*Partition p\n*Vertices 2\n1\n2\n", 2, "1>2"),
    "a partition before": ("*Partition p\n*Vertices 2\n1\n2\n*Network n\n*Vertices 2\n*Arcs\n1 2\n", 2, "1>2"),
    "vectors and others": (
        "*Vertices 1\n*Vector v\n*Vertices 1\n0.5\n*Permutation x\n*Vertices 1\n1\n*Cluster\n*Vertices 1\n1\n",
        1,
        "",
    ),
    "one label twice": ('*Vertices 2\n1 "a"\n2 "a"\n*Arcs\n1 2', 2, "a_#1>a_#2"),
    "quotes in a label": ('*Vertices 2\n1 5"disk\n*Arcs\n1 2\n', 2, '5"disk>2'),
    "an empty label": ('*Vertices 2\n1 ""\n*Arcs\n1 2\n', 2, "1>2"),
    "other line ends": ("*Vertices 2\r1 a\r\n\r\n*Arcs\r\n1 2\r\n", 2, "a>2"),
    "several sections of arcs": ("*Vertices 3\n*Arcs\n1 2\n*Arcslist\n2 3\n*Arcs\n1 3\n", 3, "1>2 2>3 1>3"),
}
BROKEN_PAJEK: dict[str, Bad] = {
    "empty": ("", "STM3411", ""),
    "no vertices": ("*Arcs\n1 2\n", "STM3408", "2:1"),
    "no section": ("1 2\n", "STM3403", "1:1"),
    "how many": ("*Vertices\n", "STM3403", "1:1"),
    "so many": ("*Vertices 99999999999999\n", "STM3413", "1:11"),
    "words behind the count": ("*Vertices 3 many\n", "STM3403", "1:13"),
    "a second network": ("*Network a\n*Vertices 1\n*Network b\n*Vertices 1\n", "STM3403", "3:1"),
    "vertices again": ("*Vertices 1\n*Arcs\n*Vertices 1\n", "STM3403", "3:1"),
    "an unknown section": ("*Vertices 1\n*Events\n", "STM3403", "2:1"),
    "a section misspelt": ("*Vertices 2\n*Arc\n1 2\n", "STM3403", "2:1"),
    "arcs behind a partition": ("*Vertices 2\n*Partition p\n*Vertices 2\n1\n2\n*Arcs\n1 2\n", "STM3403", "6:1"),
    "vertices behind a partition": ("*Partition p\n*Vertices 2\n1\n2\n*Vertices 2\n", "STM3403", "5:1"),
    "a matrix": ("*Vertices 2\n*Matrix\n0 1\n0 0\n", "STM3403", "3:1"),
    "edges": ("*Vertices 2\n*Edges\n 1 2\n", "STM3404", "3:2"),
    "lists of edges": ("*Vertices 2\n*Edgeslist\n1 2\n", "STM3404", "3:1"),
    "an arc with one end": ("*Vertices 2\n*Arcs\n1\n", "STM3403", "3:1"),
    "a list in arcs": ("*Vertices 4\n*Arcs\n1 2 3 4\n", "STM3403", "3:7"),
    "a word behind an arc": ("*Vertices 2\n*Arcs\n1 2 strong\n", "STM3403", "3:5"),
    "a vertex too many": ("*Vertices 2\n3 a\n", "STM3408", "2:1"),
    "an end too large": ("*Vertices 2\n*Arcs\n1 3\n", "STM3408", "3:3"),
    "labels for ends": ("*Vertices 2\n1 a\n2 b\n*Arcs\na b\n", "STM3408", "5:1"),
    "a vertex twice": ("*Vertices 2\n1 a\n1 b\n", "STM3409", "3:1"),
    "a label of two words": ("*Vertices 1\n1 first paper\n", "STM3403", "2:9"),
    "an open quote": ('*Vertices 1\n1 "a b\n', "STM3403", "2:3"),
    "times of a vertex": ('*Vertices 1\n1 "a" [5-10,12-14]\n', "STM3403", "2:7"),
    "times of an arc": ("*Vertices 2\n*Arcs\n1 2 1 [3-*]\n", "STM3403", "3:7"),
    "a cycle": ("*Vertices 2\n*Arcs\n1 2\n2 1\n", "STM3405", "3:3"),
}
GOOD = {
    **{("g.graphml", name): case for name, case in GRAPHML.items()},
    **{("g.gml", name): case for name, case in GML.items()},
    **{("g.net", name): case for name, case in PAJEK.items()},
}
BROKEN = {
    **{("g.graphml", name): case for name, case in BROKEN_GRAPHML.items()},
    **{("g.gml", name): case for name, case in BROKEN_GML.items()},
    **{("g.net", name): case for name, case in BROKEN_PAJEK.items()},
}


@pytest.mark.parametrize(("file", "name"), GOOD)
def test_good_files(tmp_path: Path, file: str, name: str) -> None:
    accepted(tmp_path, file, *GOOD[file, name])


@pytest.mark.parametrize(("file", "name"), BROKEN)
def test_broken_files(tmp_path: Path, file: str, name: str) -> None:
    refused_at(tmp_path, file, *BROKEN[file, name])


# XML has no control characters, and its attributes no line ends; Pajek writes labels without escapes.
ANY = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1, max_size=5)
LABELS = ANY.filter(lambda name: '"' not in name and not any(sign.isspace() and sign != " " for sign in name))


@st.composite
def drawn(draw: st.DrawFn, names: st.SearchStrategy[str]) -> nx.MultiDiGraph:
    nodes = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    graph = nx.MultiDiGraph(name="of nodes")
    graph.add_nodes_from(nodes, size=1.5, kind='<node id="x"> ]')
    for tail, head in draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=8)):
        graph.add_edge(tail, head, weight=0.5)
    return graph


def same(graph: nx.MultiDiGraph, found: Graph, once: bool = False) -> None:
    edges = [(found.names[tail], found.names[head]) for tail, head in zip(found.tails, found.heads, strict=True)]
    wanted = [(tail, head) for tail, head, _ in graph.edges]
    assert found.names == list(graph.nodes)
    assert sorted(edges) == sorted(set(wanted) if once else wanted)


def source(content: bytes) -> GraphFile:
    return GraphFile(SourceFile("g", content.decode()), None)


@settings(max_examples=40, deadline=None)
@given(graph=drawn(ANY))
def test_what_networkx_writes_in_markup(graph: nx.MultiDiGraph) -> None:
    out = BytesIO()
    nx.write_graphml_xml(graph, out)
    same(graph, graphml.read(source(out.getvalue())))
    same(graph, gml.read(source("\n".join(nx.generate_gml(graph)).encode())))


@settings(max_examples=40, deadline=None)
@given(graph=drawn(LABELS))
def test_what_networkx_writes_for_pajek(graph: nx.MultiDiGraph) -> None:
    for _, attributes in graph.nodes(data=True):
        attributes.clear()
    same(graph, pajek.read(source("\n".join(nx.generate_pajek(graph)).encode())), once=True)
