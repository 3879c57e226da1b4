"""BIF and the bracketed trees of the Penn Treebank: forty odd files of each, and graphs that are written and read again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.readers import read_graph
from tests.graph.corpus import Bad, Good, accepted, refused_at

AB = "variable A { type discrete [ 2 ] { y, n }; }\nvariable B { type discrete [ 2 ] { y, n }; }\n"
BIF: dict[str, Good] = {
    "variables only": (AB, 2, ""),
    "one parent": (
        AB + "probability ( A | B ) { (y) 0.1, 0.9; (n) 0.2, 0.8; }\nprobability ( B ) { table 0.5, 0.5; }",
        2,
        "B>A",
    ),
    "probabilities first": ("probability(A|B){table 1 0 0 1;}" + AB, 2, "B>A"),
    "no bar, as JavaBayes writes": ('probability ( "A" "B" ) { table 1 0 0 1; }' + AB, 2, "B>A"),
    "commas for the bar": ("probability ( A, B ) { }" + AB, 2, "B>A"),
    "bar without parents": ("probability ( A | ) { table 0.1 0.9; }" + AB, 2, ""),
    "default": (AB + "probability ( A | B ) { default 0.5, 0.5; (y) 1.0, 0.0; }", 2, "B>A"),
    "numbers of every kind": (AB + "probability ( A | B ) { table 1, .5 1e-3,5.E+2 NaN -0.0; }", 2, "B>A"),
    "comments": ("// variable X { }\n/* variable\nY { } */" + AB + "// end", 2, ""),
    "comments inside": (AB + "probability /* a */ ( A // b\n | B ) /* } */ { table /* 7 */ 1; }", 2, "B>A"),
    "no network": (AB, 2, ""),
    "network without a name": ("network { }" + AB, 2, ""),
    "network with a quoted name": ('network "a { b" { }' + AB, 2, ""),
    "properties of the network": ("network n { property version 1; property author = Cozman, F.; }" + AB, 2, ""),
    "properties of variables": ("variable A { property position = (1, 2) ; type discrete[1] { y }; property x; }", 1, ""),
    "properties of states": ("variable A { type discrete [ 2 ] { y property label yes; , n property x; }; }", 1, ""),
    "properties of probabilities": (AB + "probability ( A | B ) { property p = 0.5 } 1; table 1; property q; }", 2, "B>A"),
    "properties between blocks": ("property a; " + AB + "property b { ;", 2, ""),
    "semicolon in quotes": ('network n { property "a; b" ; }' + AB, 2, ""),
    "braces in quotes": ('variable A { property note "} variable B { \\ ;"; property s "//"; }', 1, ""),
    "inches": ('variable A { property width 5" or more; property height 6"; }', 1, ""),
    "address": ("variable A { property source http://example.org/a; }", 1, ""),
    "comment behind a property": ("variable A { property a; // property b\n}", 1, ""),
    "name like a property": ("variable property-tax { } variable property_b { }", 2, ""),
    "words of the language as names": (
        "variable property { } variable table { } variable network { } probability ( table | property, network ) { }",
        3,
        "property>table network>table",
    ),
    "states like words of the language": ("variable A { type discrete [ 3 ] { property, table, type }; }", 1, ""),
    "quoted names": ('variable "my A;" { } variable "B, C" { } probability ( "my A;" | "B, C" ) { }', 2, "B,_C>my_A;"),
    "states of signs": ("variable A { type discrete [ 4 ] { <7.5, >=7.5, 20-30%, a/b:c }; }", 1, ""),
    "quoted states": (
        'variable A { type discrete [ 2 ] { "a, b", "c }" }; } probability ( A ) { ("a, b") 1; }',
        1,
        "",
    ),
    "no commas": ("variable A { type discrete [ 3 ] { a b c }; }", 1, ""),
    "lines of Windows": (AB.replace("\n", "\r\n") + "probability (\r\nA\r\n|\r\nB)\r\n{ }", 2, "B>A"),
}
BROKEN_BIF: dict[str, Bad] = {
    "empty": ("", "STM3411", ""),
    "XML": ('<?xml version="1.0"?>\n<BIF/>', "STM3403", "1:1"),
    "another word": (AB + "node C { }", "STM3403", "3:1"),
    "word in the network": ("network n { author x; }", "STM3403", "1:13"),
    "two networks": ("network a { }\nnetwork b { }", "STM3403", "2:1"),
    "brace too many": (AB + "}", "STM3403", "3:1"),
    "brace too few": ("variable A {\n type discrete [ 1 ] { y };\nvariable B { }", "STM3403", "3:1"),
    "open at the end": ("network n { }\nvariable A {", "STM3403", "2:10"),
    "no name": ("variable { }", "STM3403", "1:10"),
    "two types": ("variable A { type discrete [ 1 ] { y };\n type discrete [ 1 ] { y }; }", "STM3403", "2:2"),
    "continuous": ("variable A { type continuous; }", "STM3403", "1:19"),
    "no count": ("variable A { type discrete { y }; }", "STM3403", "1:28"),
    "count in words": ("variable A { type discrete [ two ] { y, n }; }", "STM3403", "1:30"),
    "another count": ("variable A { type discrete [ 3 ] { y, n }; }", "STM3403", "1:30"),
    "comma twice": ("variable A { type discrete [ 2 ] { y,, n }; }", "STM3403", "1:38"),
    "comma at the end": ("variable A { type discrete [ 2 ] { y, n, }; }", "STM3403", "1:42"),
    "no semicolon": ("variable A { type discrete [ 1 ] { y } }", "STM3403", "1:40"),
    "open quotes": ('variable "A { }', "STM3403", "1:10"),
    "open comment": ("variable A { }\n/* variable B { }", "STM3403", "2:1"),
    "open property": ("variable A {\n property x }", "STM3403", "2:2"),
    "variable twice": ("variable A { }\nvariable A { }", "STM3409", "2:10"),
    "child that is not there": (AB + "probability ( C ) { }", "STM3408", "3:15"),
    "parent that is not there": (AB + "probability ( A | B, C ) { }", "STM3408", "3:22"),
    "other letters": (AB + "probability ( A | b ) { }", "STM3408", "3:19"),
    "parent twice": (AB + "probability ( A | B, B ) { }", "STM3406", "3:22"),
    "child twice": (AB + "probability ( A | B ) { }\nprobability ( A ) { }", "STM3409", "4:15"),
    "of two": (AB + "probability ( A, B | C ) { }", "STM3403", "3:20"),
    "two bars": (AB + "probability ( A | B | C ) { }", "STM3403", "3:21"),
    "bar first": (AB + "probability ( | A ) { }", "STM3403", "3:15"),
    "no parent behind a comma": (AB + "probability ( A | B, ) { }", "STM3403", "3:22"),
    "no brackets": (AB + "probability A | B { }", "STM3403", "3:13"),
    "word for a number": (AB + "probability ( A ) { table 0.5, half; }", "STM3403", "3:32"),
    "decimal comma": (AB + "probability ( A ) { table 0,5 ,, 1; }", "STM3403", "3:32"),
    "entry without a word": (AB + "probability ( A ) { 0.5, 0.5; }", "STM3403", "3:21"),
    "no states": (AB + "probability ( A ) { () 0.5; }", "STM3403", "3:21"),
    "cycle": (AB + "probability ( A | B ) { }\nprobability ( B | A ) { }", "STM3405", "4:19"),
}

PTB: dict[str, Good] = {
    "leaf": ("(S)", 1, ""),
    "word": ("(NN cat)", 1, ""),
    "two children": ("(NP (DT the) (NN cat))", 3, "DT_the>NP NN_cat>NP"),
    "no blanks": ("(NP(DT the)(NN cat))", 3, "DT_the>NP NN_cat>NP"),
    "lines and tabulators": ("\n(NP\n\t(DT\tthe)\r\n  (NN cat)\n)\n\n", 3, "DT_the>NP NN_cat>NP"),
    "bracket around": ("( (S (A a) (B b)) )", 3, "A_a>S B_b>S"),
    "bracket around, split": ("(\n(S\n(A a)))", 2, "A_a>S"),
    "bracket around two": ("( (A a) (B b) )", 3, "A_a>node_3 B_b>node_3"),
    "empty brackets inside": ("(S ((A a)) )", 3, "A_a>node_2 node_2>S"),
    "words of several": ("(NP New York City)", 1, ""),
    "escaped brackets": ("(S (-LRB- -LRB-) (X x) (-RRB- -RRB-))", 4, "-LRB-_-LRB->S X_x>S -RRB-_-RRB->S"),
    "escaped slash": ("(S (CD 1\\/2))", 2, "CD_1\\/2>S"),
    "other brackets": ("(S (-LCB- {) (SYM [) (Y <))", 4, "-LCB-_{>S SYM_[>S Y_<>S"),
    "traces": ("(S (NP-SBJ-1 (-NONE- *T*-1)) (. .))", 4, "-NONE-_*T*-1>NP-SBJ-1 NP-SBJ-1>S ._.>S"),
    "quotes": ("(S (`` ``) ('' '') (NN \"x\"))", 4, "``_``>S ''_''>S NN_\"x\">S"),
    "colon and comma": ("(S (, ,) (: ;))", 3, ",_,>S :_;>S"),
    "currency": ("(S ($ $) (# #))", 3, "$_$>S #_#>S"),
    "labels of numbers": ("(3 (2 It) (4 works))", 3, "2_It>3 4_works>3"),
    "one child": ("(A (B (C c)))", 3, "C_c>B B>A"),
    "names twice": ("(S (A a) (A a))", 3, "A_a_#1>S A_a_#2>S"),
    "letters of many scripts": ("(S (名詞 猫) (É é))", 3, "名詞_猫>S É_é>S"),
    "blank that does not break": ("(S (CD 4\xa01\\/2))", 2, "CD_4\xa01\\/2>S"),
    "children of no word": ("(S (A) (B))", 3, "A>S B>S"),
}
BROKEN_PTB: dict[str, Bad] = {
    "empty": ("", "STM3411", ""),
    "blanks": (" \n\n", "STM3411", ""),
    "word": ("S", "STM3403", "1:1"),
    "word ahead": ("tree (S a)", "STM3403", "1:1"),
    "word behind": ("(S a)\n b", "STM3403", "2:2"),
    "comment": ("# a tree\n(S a)", "STM3403", "1:1"),
    "header of a corpus": ("*x*x*x\n(S a)", "STM3403", "1:1"),
    "open": ("(S (A a)\n (B b)", "STM3403", "1:1"),
    "open inside": ("(S (A a) (B b\n", "STM3403", "1:10"),
    "closed twice": ("(S (A a)))", "STM3403", "1:10"),
    "closed first": (")\n(S a)", "STM3403", "1:1"),
    "two trees": ("(S a)\n(T b)", "STM3403", "2:1"),
    "two trees in a line": ("(S a) ((T b))", "STM3403", "1:8"),
    "three trees": ("(S a)\n\n(T b)(U c)", "STM3403", "3:1"),
    "nothing": ("()", "STM3403", "1:1"),
    "nothing inside": ("(S (A a) ())", "STM3403", "1:10"),
    "nothing twice": ("(())", "STM3403", "1:2"),
    "word beside brackets": ("(S (A a) b)", "STM3403", "1:10"),
    "word ahead of brackets": ("(S\n (A b (B c)))", "STM3403", "2:2"),
    "word behind the bracket around": ("( (S a) b )", "STM3403", "1:9"),
    "square brackets": ("[S [A a]]", "STM3403", "1:1"),
    "Newick": ("(a,b)c;", "STM3403", "1:6"),
}


@pytest.mark.parametrize("name", BIF)
def test_bif(tmp_path: Path, name: str) -> None:
    accepted(tmp_path, "g.bif", *BIF[name])


@pytest.mark.parametrize("name", BROKEN_BIF)
def test_broken_bif(tmp_path: Path, name: str) -> None:
    refused_at(tmp_path, "g.bif", *BROKEN_BIF[name])


@pytest.mark.parametrize("name", PTB)
def test_treebanks(tmp_path: Path, name: str) -> None:
    accepted(tmp_path, "g.ptb", *PTB[name])


@pytest.mark.parametrize("name", BROKEN_PTB)
def test_broken_treebanks(tmp_path: Path, name: str) -> None:
    refused_at(tmp_path, "g.mrg", *BROKEN_PTB[name])


BLANKS = st.sampled_from([" ", "\n", "\t", " // ; }\n", " /* { */ "])
PROPERTIES = st.sampled_from(["", 'property "a; }" ;', "property x = (1, 2);", "property // ;"])


@settings(max_examples=100, deadline=None)
@given(draw=st.data())
def test_bif_written_and_read(tmp_path_factory: pytest.TempPathFactory, draw: st.DataObject) -> None:
    """A random DAG, its variables and families in any order, with blanks, comments and properties wherever they may stand."""
    count = draw.draw(st.integers(1, 7))
    parents = [draw.draw(st.lists(st.integers(0, node - 1), unique=True, max_size=3)) if node else [] for node in range(count)]
    names = [draw.draw(st.sampled_from([f"v{node}", f'"v {node};"', f'"{node}"', f"{node}-x"])) for node in range(count)]
    blank, property = lambda: draw.draw(BLANKS), lambda: draw.draw(PROPERTIES)
    blocks = [
        f"variable{blank()}{name}{blank()}{{{property()} type discrete [ 2 ] {{ a,{blank()}b }}; {property()}}}"
        for name in names
    ]
    for node, above in enumerate(parents):
        given = f"|{blank()}{', '.join(names[parent] for parent in above)}" if above else ""
        blocks.append(f"probability ({blank()}{names[node]} {given} ) {{ {property()} table 0.5,{blank()}1e-3; }}")
    path = tmp_path_factory.mktemp("bif") / "g.bif"
    path.write_text(blank().join(draw.draw(st.permutations(blocks))))
    dag = read_graph(str(path))
    shown = [name.strip('"') for name in names]
    edges = {(shown[parent], shown[node]) for node, above in enumerate(parents) for parent in above}
    assert dag.names is not None
    assert sorted(dag.names) == sorted(shown)
    found = [(dag.names[tail], dag.names[head]) for tail, head in zip(dag.tail.tolist(), dag.head.tolist(), strict=True)]
    assert len(found) == len(edges)
    assert set(found) == edges


@settings(max_examples=100, deadline=None)
@given(draw=st.data())
def test_treebanks_written_and_read(tmp_path_factory: pytest.TempPathFactory, draw: st.DataObject) -> None:
    parents = [draw.draw(st.integers(0, node)) for node in range(draw.draw(st.integers(1, 9)))]
    words = [draw.draw(st.sampled_from(["", " w", "\n-LRB-", " *T*-1"])) for _ in range(len(parents) + 1)]
    label = [f"L{node}" for node in range(len(parents) + 1)]

    def written(node: int) -> str:
        below = [child for child, parent in enumerate(parents, 1) if parent == node]
        return f"({label[node]}{' '.join(['', *map(written, below)]) if below else words[node]})"

    shown = [f"{name}{'' if node in parents else words[node]}" for node, name in enumerate(label)]
    edges = " ".join(f"{shown[node].replace(' ', '_')}>{shown[parent]}" for node, parent in enumerate(parents, 1))
    folder = tmp_path_factory.mktemp("ptb")
    accepted(folder, "g.ptb", f"( {written(0)} )", len(label), edges.replace("\n", "_"))
