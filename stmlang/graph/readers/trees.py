"""Trees and networks in brackets, as Newick writes them: the grammar that Newick files and the trees of NEXUS files share.

    tree    = node ";"
    node    = ["(" node {"," node} ")"] [label] ["#" [type] number] [":" length]
    label   = 'it''s a b' | a_b
    length  = number [":" [number] [":" number]]

Blanks separate tokens, `[comments]` do too and may hold others. A length may be followed by a support and a probability, as in
extended Newick, and be left out before them: `a:::0.3`.

In extended Newick (Cardona, Rossello and Valiente 2008) a node below several parents is written below each of them, with the
same `#`, type and number: `H` for a hybrid, `LGT` for a lateral transfer, `R` for a recombination. What follows `#` in any
other way is part of the label, unless it occurs a second time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from stmlang.graph.readers.numerals import NUMBER
from stmlang.graph.readers.text import Graph, GraphFile, Place

_TOKEN = re.compile(r"'(?:[^'\r\n]|'')*'|[(),:;\[\]']|[^\s()\[\],:;']+")
_BRACKET = re.compile(r"[\[\]]")
_UNROOTED = re.compile(r"\[\s*&U\s*\]", re.IGNORECASE)
_TAG = re.compile(r"(.*?)##?([A-Za-z]*)([0-9]{1,18})")
_TYPES = ("H", "LGT", "R")
MOST_LENGTHS = 3
"""Length, support and probability."""

Token = tuple[str, Place]
Tag = tuple[str, int]
"""The type and the number of a hybrid node."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the text where a node stands: its label as written, and the numbers of the spots below it. `tag` where the
    label ends like that of a hybrid node, which has one node and several spots."""

    label: str
    quoted: bool
    tag: Tag | None
    at: Place
    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A tree: its spots, children before their parent and the root last, where it begins and the `;` that ends it."""

    spots: list[Spot]
    begin: Place
    end: Place


Name = Callable[[str, Spot, bool], str]
"""What is shown for a node that has a label, given without its tag, the spot that bears it, and whether nothing is below it."""


@dataclass(slots=True)
class _Node:
    """The node being read."""

    children: list[int] | None = None
    label: str = ""
    quoted: bool = False
    tag: Tag | None = None
    at: Place | None = None
    lengths: int = 0
    number: bool = True


@dataclass(slots=True)
class _Bracket:
    """An open bracket and the children completed in it."""

    at: Place
    children: list[int] = field(default_factory=list[int])


@dataclass(slots=True)
class _Parser:
    """The tree so far: brackets outermost first, the node being read, and what has been completed."""

    file: GraphFile
    spots: list[Spot] = field(default_factory=list[Spot])
    brackets: list[_Bracket] = field(default_factory=list[_Bracket])
    node: _Node = field(default_factory=_Node)

    def take(self, word: str, at: Place) -> None:
        """One token that does not end the tree."""
        match word:
            case "(":
                if self.node.children is not None or self.node.at is not None or self.node.lengths:
                    self.file.refuse("STM3403", "a bracket after a node", at, "separate children by commas")
                self.brackets.append(_Bracket(at))
            case "," | ")":
                if not self.brackets:
                    self.file.refuse("STM3403", f"`{word}` outside of any bracket", at, "a tree is `(a, b)name;`")
                self.brackets[-1].children.append(self.complete(at))
                if word == ")":
                    self.node.children = self.brackets.pop().children
            case ":":
                if self.node.lengths and not self.node.number and self.node.lengths == MOST_LENGTHS:
                    self.file.refuse("STM3403", "a length is expected after `:`", at)
                if self.node.lengths == MOST_LENGTHS:
                    self.file.refuse(
                        "STM3403", "a fourth number of one node", at, "a node has a length, a support, a probability"
                    )
                self.node.lengths, self.node.number = self.node.lengths + 1, False
            case "]" | "'":
                help = (
                    "write `'it''s'`: a label with an apostrophe is quoted, and its apostrophe doubled" if word == "'" else None
                )
                self.file.refuse("STM3403", f"`{word}` without its partner in this line", at, help)
            case _ if self.node.lengths:
                self.length(word, at)
            case _:
                self.label(word, at)

    def length(self, word: str, at: Place) -> None:
        """A number after a colon."""
        if self.node.number:
            self.file.refuse("STM3403", f"`{word}` after the length of a node", at, "separate children by commas")
        if NUMBER.fullmatch(word) is None:
            self.file.refuse("STM3403", f"`{word}` where a length is expected", at, "write a number, such as `0.5` or `1e-3`")
        self.node.number = True

    def label(self, word: str, at: Place) -> None:
        """The label of a node, or the tag right behind a quoted one."""
        node = self.node
        if node.at is not None:
            tag = _TAG.fullmatch(word) if node.quoted and node.tag is None and node.at[1] == at[0] else None
            if tag is None or tag[1]:
                self.second_label(word, at)
            node.tag, node.at = (tag[2].upper(), int(tag[3])), (node.at[0], at[1])
            return
        node.at = at
        if word.startswith("'"):
            node.label, node.quoted = word[1:-1].replace("''", "'"), True
        elif word.startswith('"'):
            help = "write `'a b'`: labels are quoted by apostrophes"
            self.file.refuse("STM3403", f"`{word}` begins with a quotation mark that means nothing here", at, help)
        else:
            tag = _TAG.fullmatch(word)
            node.label, node.tag = word, None if tag is None else (tag[2].upper(), int(tag[3]))

    def second_label(self, word: str, at: Place) -> NoReturn:
        assert self.node.at is not None
        first = self.file.text[slice(*self.node.at)]
        help = f"write `{first}_{word}`, quote the whole, or put a comma between" if word[0] not in "'#" else "leave one out"
        self.file.refuse("STM3403", f"`{word}` is a second label of one node", at, help, (), (self.node.at, "the first one"))

    def complete(self, at: Place) -> int:
        """Ends the node being read, at a token that does so."""
        node = self.node
        if not node.number:
            self.file.refuse("STM3403", "a length is expected after `:`", at, "write a number, such as `0.5` or `1e-3`")
        self.spots.append(Spot(node.label, node.quoted, node.tag, node.at or at, tuple(node.children or ())))
        self.node = _Node()
        return len(self.spots) - 1


def tree(file: GraphFile, start: int) -> Parsed | None:
    """The tree that begins at an offset, None where nothing but comments follow."""
    parser, begin, last = _Parser(file), None, None
    for word, at in _tokens(file, start):
        if word == ";":
            if parser.brackets:
                break
            if begin is None:
                file.refuse("STM3411", "a tree without a node", at, "remove this `;`, or write `(a, b)name;`")
            parser.complete(at)
            return Parsed(parser.spots, begin, at)
        parser.take(word, at)
        begin, last = begin or at, at
    if parser.brackets:
        file.refuse("STM3403", "this bracket is never closed", parser.brackets[-1].at)
    if last is not None:
        file.refuse("STM3403", "no `;` ends this tree", last, "write `;` behind it, if the file has not been cut short")
    return None


def _tokens(file: GraphFile, start: int) -> Iterator[Token]:
    """The tokens from an offset on, without comments. Refuses the mark of an unrooted tree ahead of them (STM3404)."""
    begun = False
    while (match := _TOKEN.search(file.text, start)) is not None:
        start = match.end()
        if match.group() == "[":
            start = comment_end(file, match.start())
            if not begun and _UNROOTED.fullmatch(file.text, match.start(), start):
                unrooted(file, (match.start(), start))
            continue
        begun = True
        yield match.group(), match.span()


def comment_end(file: GraphFile, start: int) -> int:
    """Where the comment that begins at an offset ends; comments may hold others."""
    depth = 0
    for bracket in _BRACKET.finditer(file.text, start):
        depth += 1 if bracket.group() == "[" else -1
        if not depth:
            return bracket.end()
    return file.refuse("STM3403", "this comment is never closed", (start, start + 1))


def unrooted(file: GraphFile, at: Place) -> NoReturn:
    """Refuses a tree that is said to have no root."""
    help = "root it; or write `[&R]` here, if its outermost bracket is meant as the root"
    file.refuse("STM3404", "this tree is marked as unrooted, so its edges have no direction", at, help)


def graph_of(file: GraphFile, spots: list[Spot], name: Name) -> Graph:
    """The graph of a tree or network, edges from the children to their parents in the order of the children, and those of
    one child in the order in which the text has it below them.

    Nodes come in the order of the first spots; one without a name is shown as `node 7`. Refuses hybrid nodes that contradict
    themselves.
    """
    hybrids = _hybrids(file, spots)
    graph, node = Graph(file), list[int]()
    for spot in spots:
        group = hybrids.get(spot.tag) if spot.tag is not None else None
        if group is None:
            bearer, label, leaf = spot, spot.label, not spot.children
        else:
            bearer, label = _bearer(file, spots, group)
            leaf = not any(spots[number].children for number in group)
        shown = name(label, bearer, leaf) if label else _tag_text(spot) if group else f"node {len(graph.names) + 1}"
        node.append(graph.node(str(group[0] if group else len(node)), spot.at, shown))
    for tail, child, head in sorted((node[child], child, node[at]) for at, spot in enumerate(spots) for child in spot.children):
        graph.edge_once(tail, head, spots[child].at)
    return graph


def _hybrids(file: GraphFile, spots: list[Spot]) -> dict[Tag, list[int]]:
    """The spots of each hybrid node."""
    spots_by_tag: dict[Tag, list[int]] = {}
    for number, spot in enumerate(spots):
        if spot.tag is not None:
            spots_by_tag.setdefault(spot.tag, []).append(number)
    numbers: dict[int, Tag] = {}
    for (kind, number), group in spots_by_tag.items():
        first = spots[group[0]]
        if kind not in _TYPES:
            continue
        before = numbers.setdefault(number, (kind, number))
        if before != (kind, number):
            message = f"`#{kind}{number}` and `#{before[0]}{number}` have one number and two types"
            earlier = (spots[spots_by_tag[before][0]].at, "the other one")
            file.refuse("STM3403", message, first.at, "give them two numbers, or one type", (), earlier)
        if len(group) == 1:
            help = "write it below each of its parents; a label that only looks like one is quoted, `'a#H1'`"
            file.refuse("STM3403", f"the hybrid node `#{kind}{number}` occurs once", first.at, help)
    return {tag: group for tag, group in spots_by_tag.items() if len(group) > 1}


def _bearer(file: GraphFile, spots: list[Spot], group: list[int]) -> tuple[Spot, str]:
    """Of the spots of a hybrid node the first one that has a label, and that label without the tag. Refuses two different
    labels (STM3403), and children in two places (STM3409)."""
    parents = [spots[number] for number in group if spots[number].children]
    if len(parents) > 1:
        tag, earlier = _tag_text(parents[1]), (parents[0].at, "given here first")
        help = "write its children below it once, and `#` with its number elsewhere"
        file.refuse("STM3409", f"the children of `{tag}` are given twice", parents[1].at, help, (), earlier)
    labelled = [(spots[number], label) for number in group if (label := _plain(spots[number]))]
    if not labelled:
        return spots[group[0]], ""
    for spot, label in labelled[1:]:
        if label != labelled[0][1]:
            message = f"the hybrid node `{_tag_text(spot)}` is called `{labelled[0][1]}` and `{label}`"
            earlier = (labelled[0][0].at, "the other label")
            file.refuse("STM3403", message, spot.at, "give it one label, or two nodes two numbers", (), earlier)
    return labelled[0]


def _plain(spot: Spot) -> str:
    """The label of a spot of a hybrid node, without the tag."""
    match = None if spot.quoted else _TAG.fullmatch(spot.label)
    return spot.label if match is None else match[1]


def _tag_text(spot: Spot) -> str:
    assert spot.tag is not None
    return f"#{spot.tag[0]}{spot.tag[1]}"


def same(first: Graph, second: Graph) -> bool:
    """Whether two graphs have the same nodes and edges in the same order."""
    return (first.names, first.tails, first.heads) == (second.names, second.tails, second.heads)
