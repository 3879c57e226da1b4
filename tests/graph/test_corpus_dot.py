"""DOT: odd files and broken ones, what Graphviz makes of them, and what pydot and Graphviz write."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import networkx as nx
import pydot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.readers import dot
from stmlang.graph.readers.text import GraphFile
from stmlang.source.span import SourceFile
from tests.graph.corpus import Bad, Good, accepted, refused_at
from tests.helpers.work import calls

# Counts and edges as Graphviz 2.42 has them.
GOOD: dict[str, Good] = {
    "heads in a list": ("digraph { a -> b, c }", 3, "a>b a>c"),
    "tails in a list": ("digraph { a, b -> c -> d, e }", 5, "a>c b>c c>d c>e"),
    "ports in a list": ("digraph { a:p, b:q:n -> c:r }", 3, "a>c b>c"),
    "a node twice in a list": ("digraph { a, a -> b }", 2, "a>b a>b"),
    "nodes in a list": ("digraph { a, b [x=1]; c }", 3, ""),
    "a chain of subgraphs": ("digraph { {a b} -> {c d} -> {e} }", 5, "a>c a>d b>c b>d c>e d>e"),
    "an empty subgraph": ("digraph { a -> {} -> b; {} -> c; a -> d -> {} [color=red] }", 4, "a>d"),
    "opened again, empty": ("digraph { subgraph X {a b} subgraph X {} -> c }", 3, "a>c b>c"),
    "opened again, with more": ('digraph { subgraph "X" {a} subgraph X {b} -> c }', 3, "a>c b>c"),
    "opened again elsewhere": ("digraph { subgraph X {a b} subgraph P { subgraph X {} -> c } }", 3, ""),
    "opened again around": (
        "digraph { subgraph P { subgraph X {a} } subgraph P {subgraph X {b}} subgraph P {} -> c }",
        3,
        "a>c b>c",
    ),
    "opened again at once": ("digraph { subgraph X {a} d -> subgraph X { b } -> c }", 4, "d>a d>b a>c b>c"),
    "nodes of subgraphs inside": ("digraph { subgraph X { {p q} r -> s } subgraph X {t} -> u }", 6, "r>s p>u q>u r>u s>u t>u"),
    "in a subgraph without name": (
        "digraph { {{{a} b} c} -> d; {subgraph X {e} f} -> subgraph X {g} }",
        7,
        "a>d b>d c>d e>g f>g",
    ),
    "two of one name": ("digraph { subgraph X { a } { subgraph X { b } } -> c; subgraph X {} -> d }", 4, "a>d b>c"),
    "no separators": ('digraph { rankdir=LR a -> b size="7,5" b -> c d }', 4, "a>b b>c"),
    "ranks": ("digraph { a -> b; {rank=same; a c} e -> {rank=same f} }", 5, "a>b e>f"),
    "edges of one key": ("digraph { a -> b [key=1]; a -> b [key=1]; a -> b [key=2]; a -> b; a -> b }", 2, "a>b a>b a>b a>b"),
    "strict": ("strict digraph { {a b} -> {c d}; a -> c [key=2] }", 4, "a>c a>d b>c b>d"),
    "many attributes": ('digraph { a [x=1;y=2,z=3 w=4][]; a -> b [label="x" + "y" + "z", style=dashed][k=1] }', 2, "a>b"),
    "tables": ("digraph { a [label=<<table><tr><td>x --&gt; y;</td></tr></table>>] b -> c }", 3, "b>c"),
    "html is a name": ("digraph { <a> -> b; a -> <c<i>d</i>> }", 3, "a>b a>c<i>d</i>"),
    "a sum of names": ('digraph { "a" + "b" + "" -> <c> + "d" }', 2, "ab>cd"),
    "numbers are names": ("digraph { -1.5 -> .5 -> 7. -> 007; 7 -> 8 }", 6, "-1.5>.5 .5>7. 7.>007 7>8"),
    "words in any case": ("DIGRAPH { Subgraph { a } -> B; NODE [x=1]; eDge [y=2] Graph [z=3] }", 2, "a>B"),
    "words as names": ('digraph { "node" -> "Edge" -> nodes; "graph" }', 4, "node>Edge Edge>nodes"),
    "the name of the graph is none of a node": ("digraph 5 { subgraph 5 { a } -> 5 }", 2, "a>5"),
    "letters of all kinds": ("digraph { ä→b -> c€; _1 -> 大 }", 4, "ä→b>c€ _1>大"),
    "escapes": ('digraph { "a\nb" -> "c\\\nd" -> "e\\\\\nf" -> "g\\h\\"" }', 4, 'a\nb>cd cd>e\\\\\nf e\\\\\nf>g\\h"'),
    "escaped line ends of Windows": ('digraph { "c\\\r\nd" -> e }', 2, "cd>e"),
    "a name of nothing": ('digraph { "" -> a }', 2, ">a"),
    "comments": ('# 1 "x.dot"\n/* digraph { */ digraph { a -> b # -> c\n -> d // -> e\n } // x\n/* y */ # z', 3, "a>b b>d"),
    "signs in strings": ('digraph { a [label="} digraph { x -> y /* "]; a -> "b;//#" }', 2, "a>b;//#"),
    "ports": ("digraph { a:p -> b:p:nw -> c : s }", 3, "a>b b>c"),
    "what nop writes": (
        """strict digraph "my graph" {
	graph [rankdir=LR];
	node [label="\\N\\n\\"x\\"",
		shape=box
	];
	edge [color="#ff0000"];
	subgraph cluster_0 {
		graph [label=one];
		subgraph deep {
			c:p:n -> "a b":s;
		}
		a -> b;
		"node" -> 007	[key=k,
			label=<<b>x</b>>];
	}
	b -> c	[style=dashed];
	lonely	[label=yyyyyyyyyyy];
	ünï -> -.5;
	"q\\"q" -> "back\\\\slash";
}
""",
        11,
        'c>a_b a>b node>007 b>c ünï>-.5 q"q>back\\\\slash',
    ),
}
BROKEN: dict[str, Bad] = {
    "empty": ("", "STM3403", "1:1"),
    "no graph": ("a -> b", "STM3403", "1:1"),
    "two names": ("digraph a b { c }", "STM3403", "1:11"),
    "no directions": ("graph { a -- b }", "STM3404", "1:1"),
    "an edge without direction": ("digraph {\n a -> b -- c }", "STM3404", "2:9"),
    "a second graph": ("digraph { a }\ndigraph { b }", "STM3403", "2:1"),
    "a second graph without directions": ("digraph { a }\nstrict graph { b }", "STM3403", "2:1"),
    "a node behind the graph": ("digraph { a -> b } c", "STM3403", "1:20"),
    "a brace too many": ("digraph { a -> b\n} }", "STM3403", "2:3"),
    "a brace that lacks": ("digraph { a -> {\n b }", "STM3403", "1:9"),
    "a sign behind the graph": ("digraph { a } ;", "STM3403", "1:15"),
    "empty statements": ("digraph { a;; b }", "STM3403", "1:13"),
    "a comma behind attributes": ("digraph { a -> b [x=1], c -> d }", "STM3403", "1:23"),
    "a comma behind a value": ("digraph { a=1, b=2 }", "STM3403", "1:14"),
    "a subgraph in a list": ("digraph { a, {b c} -> d }", "STM3403", "1:14"),
    "a subgraph without braces": ("digraph { subgraph X -> c }", "STM3403", "1:22"),
    "no head": ("digraph { a -> }", "STM3403", "1:16"),
    "no tail": ("digraph { -> a }", "STM3403", "1:11"),
    "attributes in the middle": ("digraph { a [x=1] -> b }", "STM3403", "1:19"),
    "an attribute without value": ("digraph { a [bold] }", "STM3403", "1:18"),
    "two values": ("digraph { a = b = c }", "STM3403", "1:17"),
    "a bracket that lacks": ('digraph { a -> b; a [x="y"', "STM3403", "1:21"),
    "a port too many": ("digraph { a:b:c:d -> e }", "STM3403", "1:16"),
    "a port that lacks": ("digraph { a -> b: }", "STM3403", "1:19"),
    "a word as a node": ("digraph { a -> node }", "STM3403", "1:16"),
    "a word as a tail": ("digraph { edge -> a }", "STM3403", "1:16"),
    "defaults with an edge": ("digraph { edge [x=1] -> b }", "STM3403", "1:22"),
    "a number and a name": ("digraph { 1a -> b }", "STM3403", "1:11"),
    "a number of three parts": ("digraph { 1.2.3 -> b }", "STM3403", "1:11"),
    "a hyphen": ("digraph { a-b }", "STM3403", "1:12"),
    "a sum of a name": ('digraph { a + "b" -> c }', "STM3403", "1:13"),
    "a sum with a name": ('digraph { "a" + b -> c }', "STM3403", "1:17"),
    "an open string": ('digraph { a -> "b }', "STM3403", "1:16"),
    "an open comment": ("digraph { a /* -> b }", "STM3403", "1:13"),
    "an open table": ("digraph { a -> <b<i> }", "STM3403", "1:16"),
    "a colour without quotes": ("digraph { a [color=#ff0000] }\n", "STM3403", "2:1"),
    "a dot": ("digraph { a.b -> c }", "STM3403", "1:12"),
    "a loop": ("strict digraph { b -> c\n a -> a }", "STM3405", "2:2"),
    "a cycle": ("digraph { a -> b\n b -> c; c -> a }", "STM3405", "1:11"),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_files(tmp_path: Path, name: str) -> None:
    accepted(tmp_path, "g.dot", *GOOD[name])


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(tmp_path: Path, name: str) -> None:
    refused_at(tmp_path, "g.gv", *BROKEN[name])


def test_edges_come_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "g.dot"
    path.write_text("digraph { z -> y; {b a} -> c, d; a -> y }")
    assert pairs(path.read_text())[1] == ["z>y", "b>c", "b>d", "a>c", "a>d", "a>y"]


def test_trees_are_refused_at_the_second_edge(tmp_path: Path) -> None:
    refused_at(tmp_path, "g.dot", "digraph { a -> c\n b -> c\n a -> d }", "STM3407", "3:2", tree=True)


@pytest.mark.parametrize("opening", ["{", "a{0}; {{", "{{a{0} {{", "subgraph s{0} {{"])
def test_deep_subgraphs_take_no_longer_than_their_text(opening: str) -> None:
    inside = "".join(opening.format(level) if "{0}" in opening else opening for level in range(1_000))
    text = f"digraph {{ {inside} x {'}' * inside.count('{')} -> y }}"
    assert calls(lambda: pairs(text)) < 60 * len(text) + 20_000


def pairs(text: str) -> tuple[list[str], list[str]]:
    graph = dot.read(GraphFile(SourceFile("g.dot", text), None))
    return graph.names, [
        f"{graph.names[tail]}>{graph.names[head]}" for tail, head in zip(graph.tails, graph.heads, strict=True)
    ]


# pydot leaves backslashes as they are, which mean something to DOT, and takes a colon for a port.
NAMES = st.one_of(
    st.sampled_from(
        ["node", "Edge", "graph", "subgraph", "strict", "digraph", "1", "-1.5", ".5", "7.", "1a", "a-b", "<b>", "ä b"]
    ),
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='\\:"\ufeff'), min_size=1, max_size=5),
).filter(lambda name: not (name.startswith("<") and name.endswith(">")) and name == name.strip())


@st.composite
def drawn(draw: st.DrawFn) -> nx.MultiDiGraph:
    nodes = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(nodes, label='"x -> y; }"')
    for tail, head in draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=8)):
        graph.add_edge(tail, head, label='"a\\"b"')
    return graph


@settings(max_examples=50, deadline=None)
@given(graph=drawn())
def test_what_pydot_writes(graph: nx.MultiDiGraph) -> None:
    written = pydot.Dot("of nodes", graph_type="digraph", rankdir="LR")
    for node, attributes in graph.nodes(data=True):
        written.add_node(pydot.Node(quoted(node), **attributes))
    for tail, head, attributes in graph.edges(data=True):
        written.add_edge(pydot.Edge(quoted(tail), quoted(head), **attributes))
    found, edges = pairs(written.to_string())
    assert found == list(graph.nodes)
    assert sorted(edges) == sorted(f"{tail}>{head}" for tail, head, _ in graph.edges)


def quoted(name: str) -> str:
    """A name that pydot writes as it is."""
    return f'"{name}"'


@pytest.mark.skipif(shutil.which("nop") is None, reason="needs Graphviz: `nop`")
def test_what_graphviz_makes_of_it() -> None:
    """Graphviz's own writer: what it writes of a file is the graph that the file is."""
    for name, (text, _, _) in GOOD.items():
        written = subprocess.run(["nop"], input=text, capture_output=True, text=True, check=True).stdout
        before, after = pairs(text), pairs(written)
        assert (sorted(before[0]), sorted(before[1])) == (sorted(after[0]), sorted(after[1])), name
    for name, (text, code, _) in BROKEN.items():
        refused = subprocess.run(["nop"], input=text, capture_output=True, text=True, check=False)
        assert refused.stderr or code in ("STM3404", "STM3405") or name.startswith(("empty", "a second graph")), name
