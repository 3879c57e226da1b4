"""Bracketed trees, as in the Penn Treebank: `(S (NP (DT the) (NN cat)) (VP (VB sat)))`, edges from the children to the parent.

Every bracket is a node, its first word is the node's label, and what follows are either brackets, its children, or the words of
a leaf. Nodes come in the order in which the text completes them, so children before their parent and the root last; edge `k`
leaves node `k`. A bracket around a whole tree that has no label of its own, as in the Penn Treebank, is left out. As a
topology a file holds one tree; `read_treebank` and `read_listops` read files of many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.build import ragged_dag
from stmlang.graph.dag import DAG
from stmlang.graph.readers.files import open_file
from stmlang.graph.readers.text import GraphFile, ParsedGraph, Place, named
from stmlang.source import short

if TYPE_CHECKING:
    from jaxtyping import Int64

# Other blanks, such as those that do not break a line, are parts of words.
_TOKEN = re.compile(r"[()]|[^ \t\r\n\f\v()]+")
_LINE = re.compile(r"[^\r\n]+")
OWN = "give it a bracket and a label of its own"
_EXAMPLE = re.compile(r"([+-]?[0-9]{1,18})\t(.*)")


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree whose nodes have labels, and its leaves perhaps words; what is not given is empty.

    `parent[k]` is the parent of node `k`, for all nodes but the last, the root.
    """

    parent: Int64[np.ndarray, " edges"]
    labels: tuple[str, ...] = field(repr=False)
    words: tuple[str, ...] = field(repr=False)

    __repr__ = short.fields

    def dag(self) -> DAG:
        """The tree as a graph, edges to the root: edge `k` leaves node `k`."""
        return ragged_dag(len(self.labels), np.arange(len(self.parent), dtype=np.int64), self.parent)


@dataclass(slots=True)
class _Bracket:
    """An open bracket: its place, its label, and the children and words met in it."""

    at: int
    label: str = ""
    children: list[int] = field(default_factory=list[int])
    words: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _Reader:
    """The tree so far, with open brackets outermost first. `bare` where words are nodes, and brackets have no labels."""

    file: GraphFile
    bare: bool
    brackets: list[_Bracket] = field(default_factory=list[_Bracket])
    parent: list[int] = field(default_factory=list[int])
    labels: list[str] = field(default_factory=list[str])
    words: list[str] = field(default_factory=list[str])
    places: list[int] = field(default_factory=list[int])

    def node(self, label: str, words: str, at: int) -> int:
        """A new node, without a parent as yet."""
        self.labels.append(label)
        self.words.append(words)
        self.places.append(at)
        self.parent.append(-1)
        if self.brackets:
            self.brackets[-1].children.append(len(self.parent) - 1)
        return len(self.parent) - 1

    def word(self, word: str, at: Place) -> bool:
        """Takes a word, and says whether it is a whole tree."""
        bracket = self.brackets[-1] if self.brackets else None
        if self.bare:
            self.node(word, "", at[0])
        elif bracket is None:
            self.file.refuse("STM3403", f"`{word}` outside of any bracket", at, "a tree is `(label (label word) (label word))`")
        elif bracket.children:
            self.file.refuse("STM3403", f"the word `{word}` beside brackets", at, OWN)
        elif bracket.label:
            bracket.words.append(word)
        else:
            bracket.label = word
        return bracket is None

    def close(self, at: Place) -> bool:
        """Ends a bracket, and says whether it was the outermost one."""
        if not self.brackets:
            self.file.refuse("STM3403", "this bracket was never opened", at)
        bracket = self.brackets.pop()
        if bracket.words and bracket.children:
            self.file.refuse("STM3403", f"the word `{bracket.words[0]}` beside brackets", (bracket.at, at[1]), OWN)
        if not bracket.label and not bracket.children:
            self.file.refuse("STM3403", "nothing in this bracket", (bracket.at, at[1]))
        if self.brackets or self.bare or bracket.label or len(bracket.children) > 1:
            node = self.node(bracket.label, " ".join(bracket.words), bracket.at)
            for child in bracket.children:
                self.parent[child] = node
        return not self.brackets

    def tree(self) -> Tree:
        return Tree(np.asarray(self.parent[:-1], np.int64), tuple(self.labels), tuple(self.words))


def read(file: GraphFile) -> ParsedGraph:
    """The one tree of a file."""
    trees = _trees(file, False, 0, len(file.text))
    first = next(trees, None)
    if first is None:
        file.refuse("STM3411", "this file holds no node", None)
    second = next(trees, None)
    if second is not None:
        help = "keep one tree in the file; `stmlang.graph.readers.read_treebank` reads files of many"
        at = (second.places[-1], second.places[-1] + 1)
        file.refuse("STM3403", "a second tree begins here", at, help)
    tree = first.tree()
    pairs = enumerate(zip(tree.labels, tree.words, strict=True), 1)
    names = [f"{label} {words}".strip() or f"node {node}" for node, (label, words) in pairs]
    at = [(place, place + 1) for place in first.places]
    return named(names, np.arange(len(tree.parent), dtype=np.int64), tree.parent, at.__getitem__)


def read_treebank(path: str) -> tuple[Tree, ...]:
    """The trees of a file, in its order: of the Penn Treebank, say, or of the Stanford Sentiment Treebank, whose labels are
    sentiments from `0` to `4`. Raises SpecError (STM3401, STM3403, STM3411 ... STM3413)."""
    file = open_file(path, "ptb")
    trees = tuple(reader.tree() for reader in _trees(file, False, 0, len(file.text)))
    if not trees:
        file.refuse("STM3411", "this file holds no tree", None)
    return trees


def read_listops(path: str) -> tuple[Int64[np.ndarray, " trees"], tuple[Tree, ...]]:
    """The values and the trees of a ListOps file, whose lines are `value TAB tree`, such as `( ( ( [MAX 2 ) 9 ) ] )`.

    Here every word is a leaf and its label, and brackets have none. Raises SpecError as `read_treebank` does.
    """
    file = open_file(path, "ptb")
    values, trees = list[int](), list[Tree]()
    for line in _LINE.finditer(file.text):
        example = _EXAMPLE.fullmatch(line.group())
        if example is None:
            file.refuse("STM3403", "this is no example", line.span(), "a line is a number, a tabulator and a tree in brackets")
        start = line.start() + example.start(2)
        line_trees = [reader.tree() for reader in _trees(file, True, start, line.end())]
        if len(line_trees) != 1:
            file.refuse("STM3403", f"{len(line_trees)} trees in a line of one", (start, line.end()))
        values.append(int(example.group(1)))
        trees += line_trees
    if not trees:
        file.refuse("STM3411", "this file holds no tree", None)
    return np.asarray(values, np.int64), tuple(trees)


def _trees(file: GraphFile, bare: bool, start: int, end: int) -> Iterator[_Reader]:
    """The trees in a part of the text, one after the other."""
    reader = _Reader(file, bare)
    for token in _TOKEN.finditer(file.text, start, end):
        match token.group():
            case "(":
                reader.brackets.append(_Bracket(token.start()))
                complete = False
            case ")":
                complete = reader.close(token.span())
            case word:
                complete = reader.word(word, token.span())
        if complete:
            yield reader
            reader = _Reader(file, bare)
    if reader.brackets:
        at = reader.brackets[-1].at
        file.refuse("STM3403", "this bracket is never closed", (at, at + 1))
