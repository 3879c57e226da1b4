"""Newick trees: `((a:1, b:2)ab:3, c)root;`, edges from the children to the root.

Nodes come in the order in which the text completes them, so children before their parent and the root last; edge `k` leaves
node `k`. Lengths and `[comments]` are skipped; quoted labels may hold anything. A node without a label is shown as `node 7`. Of
a file with several trees the first is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stmlang.graph.readers.text import Graph, GraphFile

_TOKEN = re.compile(r"\[[^\]]*\]|'(?:[^']|'')*'|[(),:;\[\]']|[^\s()\[\],:;']+")


@dataclass
class _Bracket:
    """An open bracket and the children completed in it."""

    at: tuple[int, int]
    children: list[int] = field(default_factory=list[int])


@dataclass
class _Tree:
    """The tree so far: brackets outermost first, and the node being read, with its label and children."""

    graph: Graph
    parent: dict[int, int] = field(default_factory=dict[int, int])
    brackets: list[_Bracket] = field(default_factory=list[_Bracket])
    label: str = ""
    children: list[int] = field(default_factory=list[int])
    length: bool = False

    def complete(self, at: tuple[int, int]) -> int:
        """Ends the node being read."""
        number = len(self.graph.names)
        node = self.graph.declare(f"#{number}", at, self.label or f"node {number + 1}")
        self.parent |= dict.fromkeys(self.children, node)
        self.label, self.children, self.length = "", [], False
        return node

    def take(self, word: str, at: tuple[int, int]) -> None:
        """One token that is neither a comment nor the end of the tree."""
        match word:
            case "(":
                if self.label or self.children:
                    self.graph.file.refuse("STM3403", "a bracket after a node", at, "separate children by commas")
                self.brackets.append(_Bracket(at))
            case "," | ")":
                if not self.brackets:
                    self.graph.file.refuse("STM3403", f"`{word}` outside of any bracket", at, "a tree is `(a, b)name;`")
                self.brackets[-1].children.append(self.complete(at))
                if word == ")":
                    self.children = self.brackets.pop().children
            case ":":
                self.length = True
            case "[" | "]" | "'":
                self.graph.file.refuse("STM3403", f"`{word}` without its partner", at)
            case _ if self.length:
                self.length = False
            case _ if word.startswith("'"):
                self.label = word[1:-1].replace("''", "'")
            case _:
                self.label = f"{self.label} {word}".strip()


def read(file: GraphFile) -> Graph:
    tree = _Tree(Graph(file))
    end = (len(file.text), len(file.text))
    for token in _TOKEN.finditer(file.text):
        if token.group() == ";":
            end = token.span()
            break
        if not token.group().startswith("[") or token.group() == "[":
            tree.take(token.group(), token.span())
    if tree.brackets:
        file.refuse("STM3403", "this bracket is never closed", tree.brackets[-1].at)
    if tree.label or tree.children:
        tree.complete(end)
    for node, parent in sorted(tree.parent.items()):
        tree.graph.edge(node, parent, tree.graph.node_at[node])
    return tree.graph
