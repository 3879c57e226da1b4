"""Newick, extended Newick and NEXUS: forty odd files of each kind or more, and trees that other programs write."""

from __future__ import annotations

from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
from Bio.Phylo.BaseTree import Clade, Tree
from Bio.Phylo.NewickIO import Writer as NewickWriter
from Bio.Phylo.NexusIO import write as write_nexus
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.readers import newick, read_graph
from stmlang.graph.readers.text import GraphFile
from stmlang.source.codes import CODES
from stmlang.source.diagnostic import SpecError
from stmlang.source.span import SourceFile
from tests.graph.corpus import Bad, Good, accepted, refused_at
from tests.helpers.work import calls

NEWICK: dict[str, Good] = {
    "leaf": ("a;", 1, ""),
    "no names": ("(,,(,));", 6, "node_1>node_6 node_2>node_6 node_3>node_5 node_4>node_5 node_5>node_6"),
    "one child": ("((a)b)c;", 3, "a>b b>c"),
    "polytomy": ("(a,b,c,d)r;", 5, "a>r b>r c>r d>r"),
    "lengths": ("(a:0.1,b:.2)r:0;", 3, "a>r b>r"),
    "exponents": ("(a:1e-3,b:2.5E+2,c:-1.e1)r;", 4, "a>r b>r c>r"),
    "length that is no number in R": ("(a:NaN,b:1)r;", 3, "a>r b>r"),
    "blanks and lines": (" ( a : 1 ,\r\n\tb )\n r \n;\n", 3, "a>r b>r"),
    "quoted": ("('a,b':1,'(c)' )'it''s';", 3, "a,b>it's (c)>it's"),
    "empty quotes": ("('',b)r;", 3, "node_1>r b>r"),
    "two apostrophes": ("('''')r;", 2, "'>r"),
    "underscores stay": ("(Homo_sapiens,Pan)r;", 3, "Homo_sapiens>r Pan>r"),
    "quoted blanks": ("('Homo sapiens',Pan)r;", 3, "Homo_sapiens>r Pan>r"),
    "comments": ("[x](a[;],[,]b[)]:[1]2)r[end];[behind]", 3, "a>r b>r"),
    "comments in comments": ("(a[x[y]z],b)r;", 3, "a>r b>r"),
    "annotations": ("(a[&rate=1.0,x={1,2}]:0.1,b[&&NHX:S=x:D=Y])r;", 3, "a>r b>r"),
    "rooted": ("[&R] (a,b)r;", 3, "a>r b>r"),
    "rooted with a weight": ("[&W 1/3][&r](a,b)r;", 3, "a>r b>r"),
    "a mark inside is a comment": ("(a,[&U]b)r;", 3, "a>r b>r"),
    "supports for labels": ("((a,b)95:0.1,c)100;", 5, "a>95 b>95 95>100 c>100"),
    "names twice": ("(a,a)r;", 3, "a_#1>r a_#2>r"),
    "signs in names": ("(a|b,c/d,e=f,-1,*,{0},\\x)r;", 8, "a|b>r c/d>r e=f>r -1>r *>r {0}>r \\x>r"),
    "letters of many scripts": ("(α,大,é)r;", 4, "α>r 大>r é>r"),
    "numbers after a sign": ("(a#1,b#2)r;", 3, "a#1>r b#2>r"),
    "words after a sign": ("(a#x,#)r;", 3, "a#x>r #>r"),
    "one tree thrice": ("(a:1,b:2)r;\n(a:2,b:1)r;[x](a,b)r;", 3, "a>r b>r"),
    "empty bracket": ("()r;", 2, "node_1>r"),
}
BROKEN_NEWICK: dict[str, Bad] = {
    "empty": ("", "STM3411", ""),
    "comment only": ("[nothing]\n", "STM3411", ""),
    "no node": ("\n ;", "STM3411", "2:2"),
    "no end": ("(a,\nb)r", "STM3403", "2:3"),
    "open bracket": ("(a,\n(b,c);", "STM3403", "1:1"),
    "closed twice": ("(a,b)\n);", "STM3403", "2:1"),
    "comma outside": ("a,b;", "STM3403", "1:2"),
    "two labels": ("(Homo sapiens,Pan);", "STM3403", "1:7"),
    "two labels, one quoted": ("('a' 'b');", "STM3403", "1:6"),
    "label after quotes": ("('a'b);", "STM3403", "1:5"),
    "bracket after a label": ("(a(b));", "STM3403", "1:3"),
    "bracket after a bracket": ("((a)(b));", "STM3403", "1:5"),
    "bracket after a length": ("(a:1(b));", "STM3403", "1:5"),
    "label after a length": ("(a:1 b);", "STM3403", "1:6"),
    "no length": ("(a:,b);", "STM3403", "1:4"),
    "no length at the end": ("(a,b):;", "STM3403", "1:7"),
    "word for a length": ("(a:x,b);", "STM3403", "1:4"),
    "decimal comma": ("(a:0,5,b:x);", "STM3403", "1:10"),
    "braces at a length": ("(a:1{0},b);", "STM3403", "1:4"),
    "four numbers": ("(a:1:2:3:4,b);", "STM3403", "1:9"),
    "apostrophe": ("(it's,b);", "STM3403", "1:4"),
    "quotes over two lines": ("('a\nb',c);", "STM3403", "1:2"),
    "quotation marks": ('("a,b",c);', "STM3403", "1:2"),
    "open comment": ("(a,\n [b);", "STM3403", "2:2"),
    "open comment in a comment": ("(a[x[y],b);", "STM3403", "1:3"),
    "comment closed twice": ("(a[x]],b);", "STM3403", "1:6"),
    "another tree": ("(a,b)r;\n(a,c)r;", "STM3403", "2:1"),
    "a tree in another order": ("(a,b)r;\n\n(b,a)r;", "STM3403", "3:1"),
    "empty tree behind": ("(a,b)r;;", "STM3411", "1:8"),
    "rubbish behind": ("(a,b)r; the end", "STM3403", "1:13"),
    "unrooted": ("\n[&U] (a,b,c);", "STM3404", "2:1"),
    "unrooted in small letters": ("[x] [ &u ](a,b,c);", "STM3404", "1:5"),
    "two parents, no type": ("((a,b)#1,(#1,c));", "STM3407", "1:11"),
}
EXTENDED: dict[str, Good] = {
    "of the paper": ("((A,(B)x#H1)c,(x#H1,C)d)e;", 7, "A>c B>x x>c x>d C>d c>e d>e"),
    "children at the second": ("((A,#H1)c,((B)x#H1,C)d)e;", 7, "A>c B>x x>c x>d C>d c>e d>e"),
    "label at one": ("((A,(B)#H1)c,(x#H1,C)d)e;", 7, "A>c B>x x>c x>d C>d c>e d>e"),
    "no label": ("((A,(B)#H1)c,(#H1,C)d)e;", 7, "A>c B>#H1 #H1>c #H1>d C>d c>e d>e"),
    "lateral transfer": ("((A,(B)#LGT2)c,(#LGT2,C)d)e;", 7, "A>c B>#LGT2 #LGT2>c #LGT2>d C>d c>e d>e"),
    "recombination": ("((A,#R3)c,(#R3,C)d)e;", 6, "A>c #R3>c #R3>d C>d c>e d>e"),
    "no type": ("((A,(B)#1)c,(#1,C)d)e;", 7, "A>c B>#1 #1>c #1>d C>d c>e d>e"),
    "three parents": ("(((B)h#H1)c,(#H1)d,(h#H1)f)e;", 6, "B>h h>c h>d h>f c>e d>e f>e"),
    "two hybrids": ("((a#H1,b#H2)c,(#H1,#H2)d)e;", 5, "a>c a>d b>c b>d c>e d>e"),
    "hybrid below a hybrid": ("(((a#H1)b#H2)c,(#H2,#H1)d)e;", 5, "a>b b>c b>d a>d c>e d>e"),
    "lengths": ("((A:1,(B:1)x#H1:0.5)c:1,(x#H1:1e-2,C:1)d)e;", 7, "A>c B>x x>c x>d C>d c>e d>e"),
    "supports and probabilities": ("((A,(B)#H1:1:2:0.3)c,(#H1:::0.7,C)d)e;", 7, "A>c B>#H1 #H1>c #H1>d C>d c>e d>e"),
    "support without a length": ("((A,B)c::95,C)e;", 5, "A>c B>c c>e C>e"),
    "quoted label with a tag": ("((A,(B)'x y'#H1)c,(#H1,C)d)e;", 7, "A>c B>x_y x_y>c x_y>d C>d c>e d>e"),
    "quoted, and so no hybrid": ("('a#H1','b#H1')e;", 3, "a#H1>e b#H1>e"),
    "two signs, as SplitsTree writes": ("((A,(B)##H1)c,(#H1,C)d)e;", 7, "A>c B>#H1 #H1>c #H1>d C>d c>e d>e"),
    "small letters": ("((A,#h1)c,(#H1,C)d)e;", 6, "A>c #H1>c #H1>d C>d c>e d>e"),
    "leading zeros": ("((A,#H01)c,(#H1,C)d)e;", 6, "A>c #H1>c #H1>d C>d c>e d>e"),
    "a leaf with two parents": ("((A,h#H1)c,h#H1)e;", 4, "A>c h>c h>e c>e"),
    "rooted, with comments": ("[&R]((A,#H1[x])c,([y]#H1,C)d)e;", 6, "A>c #H1>c #H1>d C>d c>e d>e"),
    "other types by their second": ("((A,#X1)c,(#X1,C)d)e;", 6, "A>c #X1>c #X1>d C>d c>e d>e"),
}
BROKEN_EXTENDED: dict[str, Bad] = {
    "once": ("((A,#H1)c,B)e;", "STM3403", "1:5"),
    "once with a label": ("((A,x#LGT7)c,B)e;", "STM3403", "1:5"),
    "two types": ("((A,#H1)c,(#LGT1,#H1)d,#LGT1)e;", "STM3403", "1:12"),
    "two labels": ("((A,x#H1)c,(y#H1,C)d)e;", "STM3403", "1:13"),
    "children twice": ("((A,(B)#H1)c,((D)#H1,C)d)e;", "STM3409", "1:18"),
    "below itself": ("(((#H1)a)#H1,b)c;", "STM3405", "1:4"),
    "below itself at once": ("((#H1)#H1,b)c;", "STM3405", "1:3"),
    "below one another": ("((#H2)#H1,(#H1)#H2)c;", "STM3405", "1:3"),
    "twice below one parent": ("(a#H1,\n#H1)c;", "STM3406", "2:1"),
    "tag behind a tag": ("((A,'x'#H1#H2)c,#H1)e;", "STM3403", "1:8"),
    "tag apart from its label": ("((A,x #H1)c,#H1)e;", "STM3403", "1:7"),
    "tag apart from its quotes": ("((A,'x' #H1)c,#H1)e;", "STM3403", "1:9"),
    "tag behind a length": ("((A,x:1#H1)c,#H1)e;", "STM3403", "1:7"),
    "word for a probability": ("((A,#H1:::x)c,#H1)e;", "STM3403", "1:11"),
    "no probability": ("((A,#H1:1::)c,#H1)e;", "STM3403", "1:12"),
    "two trees": ("((A,#H1)c,#H1)e;\n((A,#H1)c,B)e;", "STM3403", "2:5"),
    "a network, then a tree": ("((A,#H1)c,#H1)e;\n(A,B);", "STM3403", "2:1"),
    "open": ("((A,#H1)c,#H1;", "STM3403", "1:1"),
    "cut": ("((A,#H1)c,#H1)e", "STM3403", "1:15"),
    "unrooted": ("[&U]((A,#H1)c,#H1)e;", "STM3404", "1:1"),
}


def nexus(trees: str, taxa: str = "") -> str:
    return f"#NEXUS\n{taxa}begin trees;\n{trees}\nend;\n"


TAXA = "begin taxa; dimensions ntax=3; taxlabels a 'b c' d_e; end;\n"
NEXUS: dict[str, Good] = {
    "plain": (nexus("tree t = (a,b)r;"), 3, "a>r b>r"),
    "capitals": ("#nexus BEGIN TREES; TREE T=(a,b)r; ENDBLOCK;", 3, "a>r b>r"),
    "comments everywhere": ("#NEXUS[x]\n[y]begin[z]trees[;];tree[a]t[b]=[c](a,b)r[d];[e]end[f];[g]", 3, "a>r b>r"),
    "rooted": (nexus("tree t = [&R] (a,b)r;"), 3, "a>r b>r"),
    "weight and likelihood": (nexus("tree t [&lnP=-1.0] = [&W 1/3] [&R] (a,b)r;"), 3, "a>r b>r"),
    "the tree that is shown first": (nexus("tree * t = (a,b)r;"), 3, "a>r b>r"),
    "quoted name": (nexus("tree 'my; tree' = (a,b)r;"), 3, "a>r b>r"),
    "name that is a number": (nexus("tree 1=(a,b)r;"), 3, "a>r b>r"),
    "translated": (nexus("translate 1 a, 2 'b c',\n 3 d;\ntree t = (1,(2,3)x)r;"), 5, "a>r b_c>x d>x x>r"),
    "translation of words": (nexus("translate one a, two b; tree t = (ONE,two)r;"), 3, "a>r b>r"),
    "supports are not translated": (nexus("translate 1 a, 2 b, 3 c; tree t = ((1,2)3,3)1;"), 5, "a>3 b>3 3>1 c>1"),
    "full names beside keys": (nexus("translate 1 a, 2 b; tree t = (1,B)r;"), 3, "a>r B>r"),
    "taxa": (nexus("tree t = (a,(b_c,'d e')x)r;", TAXA), 5, "a>r b_c>x d_e>x x>r"),
    "taxa in capitals": (nexus("tree t = (A,B_C)r;", TAXA), 3, "a>r b_c>r"),
    "taxa by number": (nexus("tree t = (1,(3,2)x)r;", TAXA), 5, "a>r d_e>x b_c>x x>r"),
    "taxa and a translation": (nexus("translate x 'a', y b_c; tree t = (x,y)r;", TAXA), 3, "a>r b_c>r"),
    "some taxa": (nexus("tree t = (a,d_e)r;", TAXA), 3, "a>r d_e>r"),
    "titles and links": (nexus("title 'my trees'; link taxa = x; tree t = (a,b)r;", TAXA.replace("b c", "b")), 3, "a>r b>r"),
    "data beside": (nexus("tree t=(a,b)r;", "begin data; dimensions nchar=2; matrix a AC\nb GT; end;\n"),
                    3, "a>r b>r"),
    "settings of programs": (nexus("tree t=(a,b)r;") + "begin paup; set x=yes; end;\nbegin mrbayes; mcmc; end;", 3, "a>r b>r"),
    "the trees of two dates": (nexus("tree t=(a:1,b:2)r; tree u=(a:2,b:3)r;"), 3, "a>r b>r"),
    "two translations": (
        nexus("translate 1 a, 2 b; tree t=(1,2)r;", nexus("translate x a, y b; tree u=(x,y)r;")[7:]), 3, "a>r b>r",
    ),
    "network": ("#NEXUS\nbegin networks; network n = ((a,(b)h#H1)c,(#H1,d)e)r; end;", 7, "a>c b>h h>c h>e d>e c>r e>r"),
    "hybrid leaf of a taxon": (nexus("tree t = ((1,a#H1)c,#H1)r;".replace("1,", "2,"), TAXA), 4, "b_c>c a>c a>r c>r"),
}  # fmt: skip
BROKEN_NEXUS: dict[str, Bad] = {
    "mark only": ("#NEXUS\n", "STM3411", ""),
    "no trees": ("#NEXUS\n" + TAXA, "STM3411", ""),
    "no block": ("#NEXUS\ntree t = (a,b);", "STM3403", "2:1"),
    "no name of a block": ("#NEXUS\nbegin ;", "STM3403", "2:7"),
    "block that is not known": ("#NEXUS\nbegin splits; end;", "STM3403", "2:7"),
    "block without an end": ("#NEXUS\nbegin trees;\ntree t = (a,b);", "STM3403", "2:7"),
    "end of nothing": (nexus("tree t=(a,b);") + "end;", "STM3403", "5:1"),
    "command that is not known": (nexus("plant t = (a,b);"), "STM3403", "3:1"),
    "command of taxa": ("#NEXUS\nbegin taxa; matrix 1; end;", "STM3403", "2:13"),
    "two trees": (nexus("tree t=(a,b);\ntree u=(a,c);"), "STM3403", "4:6"),
    "two trees in two blocks": (nexus("tree t=(a,b);") + nexus("tree u=(b,a);")[7:], "STM3403", "6:6"),
    "unrooted": (nexus("tree t = [&U] (a,b);"), "STM3404", "3:10"),
    "unrooted by its command": (nexus("utree t = (a,b);"), "STM3404", "3:1"),
    "no equals sign": (nexus("tree t (a,b);"), "STM3403", "3:8"),
    "no name": (nexus("tree = (a,b);"), "STM3403", "3:6"),
    "no tree": (nexus("tree t = ;"), "STM3411", "3:10"),
    "wrong tree": (nexus("tree t = (a,b;"), "STM3403", "3:10"),
    "key twice": (nexus("translate 1 a, 1 b; tree t=(1,1);"), "STM3409", "3:16"),
    "key without a name": (nexus("translate 1, 2 b; tree t=(1,2);"), "STM3403", "3:12"),
    "no comma": (nexus("translate 1 a 2 b; tree t=(1,2);"), "STM3403", "3:15"),
    "translation behind": (nexus("tree t=(1,2);\ntranslate 1 a, 2 b;"), "STM3403", "4:1"),
    "leaf that is not translated": (nexus("translate 1 a, 2 b;\ntree t=(1,3);"), "STM3408", "4:11"),
    "leaf of no taxon": (nexus("tree t=(a,x);", TAXA), "STM3408", "4:11"),
    "number of no taxon": (nexus("tree t=(1,4);", TAXA), "STM3408", "4:11"),
    "translation to no taxon": (nexus("translate 1 a, 2 x; tree t=(1,2);", TAXA), "STM3408", "4:18"),
    "taxon twice": ("#NEXUS\nbegin taxa; taxlabels a B_c 'b C'; end;", "STM3409", "2:29"),
    "another count of taxa": ("#NEXUS\nbegin taxa; dimensions ntax=4; taxlabels a b; end;", "STM3403", "2:29"),
    "count of taxa in words": ("#NEXUS\nbegin taxa; dimensions ntax=two; end;", "STM3403", "2:29"),
    "open comment": ("#NEXUS\nbegin trees; [tree t=(a,b); end;", "STM3403", "2:14"),
    "open quotes": ("#NEXUS\nbegin notes; text 'x; end;", "STM3403", "2:19"),
}  # fmt: skip


@pytest.mark.parametrize("name", NEWICK)
def test_newick(tmp_path: Path, name: str) -> None:
    accepted(tmp_path, "g.nwk", *NEWICK[name])


@pytest.mark.parametrize("name", BROKEN_NEWICK)
def test_broken_newick(tmp_path: Path, name: str) -> None:
    refused_at(tmp_path, "g.tre", *BROKEN_NEWICK[name], tree=True)


@pytest.mark.parametrize("name", EXTENDED)
def test_extended_newick(tmp_path: Path, name: str) -> None:
    accepted(tmp_path, "g.nwk", *EXTENDED[name])


@pytest.mark.parametrize("name", BROKEN_EXTENDED)
def test_broken_extended_newick(tmp_path: Path, name: str) -> None:
    refused_at(tmp_path, "g.nwk", *BROKEN_EXTENDED[name])


@pytest.mark.parametrize("name", NEXUS)
@pytest.mark.parametrize("suffix", ["nex", "tre"])
def test_nexus(tmp_path: Path, name: str, suffix: str) -> None:
    """By its suffix, and by its first word under a suffix of Newick."""
    accepted(tmp_path, f"g.{suffix}", *NEXUS[name])


@pytest.mark.parametrize("name", BROKEN_NEXUS)
def test_broken_nexus(tmp_path: Path, name: str) -> None:
    refused_at(tmp_path, "g.nex", *BROKEN_NEXUS[name])


def test_what_to_do_about_trees(tmp_path: Path) -> None:
    many = refused_at(tmp_path, "g.nex", nexus("tree t=(a,b);\ntree 'u v'=(a,c);"), "STM3403", "4:6")
    assert many.message == "this file holds 2 trees, `t`, `u v`: which one?"
    network = refused_at(tmp_path, "g.nwk", EXTENDED["of the paper"][0], "STM3407", "1:16", tree=True)
    assert "dag from" in (network.help or "")
    plain = refused_at(tmp_path, "g.nex", "(a,b);", "STM3403", "1:1")
    assert "as newick" in (plain.help or "")


@st.composite
def trees(draw: st.DrawFn, labels: st.SearchStrategy[str]) -> Clade:
    """A tree of up to 12 nodes, each below an earlier one, with names and lengths or without."""
    parents = [draw(st.integers(0, node)) for node in range(draw(st.integers(1, 11)))]
    length = st.none() | st.floats(0, 1e6, allow_nan=False)
    clades = [Clade(branch_length=draw(length), name=f"{draw(labels)}{node}") for node in range(len(parents) + 1)]
    for node, parent in enumerate(parents, 1):
        clades[parent].clades.append(clades[node])
    return clades[0]


def edges_of(root: Clade) -> list[str]:
    found, open_clades = [], [root]
    while open_clades:
        clade = open_clades.pop()
        found += [f"{child.name}>{clade.name}" for child in clade.clades]
        open_clades += clade.clades
    return sorted(found)


# Biopython escapes apostrophes by backslashes, which no other program reads.
LABELS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"), exclude_characters="'\\\""), max_size=6)


@settings(max_examples=150, deadline=None)
@given(root=trees(LABELS.map(lambda text: f"x{text}".replace("#", "+"))), rooted=st.booleans())
def test_newick_of_biopython(tmp_path_factory: pytest.TempPathFactory, root: Clade, rooted: bool) -> None:
    (text,) = NewickWriter([Tree(root, rooted=rooted)]).to_strings(plain=False)
    path = tmp_path_factory.mktemp("newick") / "g.nwk"
    path.write_text(text, encoding="utf-8")
    dag = read_graph(str(path), tree=True)
    assert dag.names is not None
    found = [f"{dag.names[tail]}>{dag.names[head]}" for tail, head in zip(dag.tail.tolist(), dag.head.tolist(), strict=True)]
    assert sorted(found) == edges_of(root)


@settings(max_examples=50, deadline=None)
@given(root=trees(st.text("abcXYZ_.-", min_size=1, max_size=5)))
def test_nexus_of_biopython(tmp_path_factory: pytest.TempPathFactory, root: Clade) -> None:
    text = StringIO()
    write_nexus([Tree(root, rooted=True)], text)
    path = tmp_path_factory.mktemp("nexus") / "g.nex"
    path.write_text(text.getvalue(), encoding="utf-8")
    dag = read_graph(str(path), tree=True)
    assert dag.names is not None
    found = [f"{dag.names[tail]}>{dag.names[head]}" for tail, head in zip(dag.tail.tolist(), dag.head.tolist(), strict=True)]
    assert sorted(found) == edges_of(root)


@settings(max_examples=150, deadline=None)
@given(draw=st.data())
def test_networks_written_and_read(tmp_path_factory: pytest.TempPathFactory, draw: st.DataObject) -> None:
    """A DAG with one root, whose nodes of several parents are written below each of them, their children at any one."""
    count = draw.draw(st.integers(2, 9))
    parents = {
        node: draw.draw(st.lists(st.integers(0, node - 1), min_size=1, max_size=3, unique=True)) for node in range(1, count)
    }
    bearers = {node: draw.draw(st.sampled_from(above)) for node, above in parents.items()}

    def written(node: int, parent: int) -> str:
        tag = f"#H{node}" if len(parents.get(node, ())) > 1 else ""
        below = [child for child, above in parents.items() if node in above] if bearers.get(node, parent) == parent else []
        inside = f"({','.join(written(child, node) for child in below)})" if below else ""
        return f"{inside}n{node}{tag}:{node}.5"

    path = tmp_path_factory.mktemp("network") / "g.nwk"
    path.write_text(f"{written(0, -1)};")
    edges = " ".join(f"n{node}>n{parent}" for node, above in parents.items() for parent in above)
    accepted(path.parent, "g.nwk", path.read_text(), count, edges)


@settings(max_examples=150, deadline=None)
@given(
    text=st.sampled_from(
        [EXTENDED["quoted label with a tag"][0], NEXUS["translated"][0], NEXUS["taxa by number"][0], NEXUS["network"][0]]
    ),
    cuts=st.lists(
        st.tuples(st.integers(0, 120), st.integers(0, 6), st.text("()[],:;='\"#H1R* \nabe-_&U", max_size=3)), max_size=4
    ),
)
def test_mutated_trees_raise_nothing_else(text: str, cuts: list[tuple[int, int, str]]) -> None:
    for start, length, put in cuts:
        text = text[:start] + put + text[start + length :]
    codes = set[str]()
    try:
        graph = newick.read(GraphFile(SourceFile("g", text), None))
    except SpecError as refusal:
        codes = {diagnostic.code for diagnostic in refusal.diagnostics}
    else:
        assert all(0 <= end < len(graph.names) for end in (*graph.tails, *graph.heads))
    assert codes <= set(CODES)


def test_trees_are_read_in_time_that_grows_with_them(tmp_path: Path) -> None:
    """Open comments, hybrids, translations and trees by the thousand, and depth that nothing recurses into."""
    deep = "(" * 5_000 + "a" + ")" * 5_000
    wide = ",".join(f"(x#H{node})" for node in range(3_000))
    taxa = " ".join(f"t{node}" for node in range(3_000))
    table = ",".join(f"{node} t{node}" for node in range(3_000))
    leaves = ",".join(f"t{node}" for node in range(3_000))
    trees = "".join(f"tree t{node} = (a:{node},b);\n" for node in range(3_000))
    texts = (f"{deep};", "[" * 20_000, "(a[" * 10_000, f"({wide},{wide});", f"({deep}#H1,#H1);", nexus(trees), "'" * 20_001)
    texts += (
        nexus(f"translate {table}; tree t = ({leaves});"),
        nexus(f"tree t=({leaves});", f"begin taxa; taxlabels {taxa}; end;\n"),
    )
    for text in texts:
        path = tmp_path / "g.nwk"
        path.write_text(text)

        def attempt() -> None:
            with suppress(SpecError):
                read_graph(str(path))  # noqa: B023

        assert calls(attempt) < 20_000 + 60 * len(text)
