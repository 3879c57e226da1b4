"""BIF, the interchange format of Bayesian networks: an edge from each parent to its child, in the order written.

    network name { ... }
    variable A { type discrete [ 2 ] { yes, no }; }
    probability ( A | B, C ) { ... }

Nodes are the variables in order of declaration. Tables and properties are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stmlang.graph.readers.text import Graph, GraphFile

_TOKEN = re.compile(
    r"""(?P<skip>//[^\r\n]*|/\*.*?\*/|property\b[^;]*;)
      | (?P<open>/\*|property\b)
      | "(?P<quoted>[^"]*)"
      | (?P<word>[(){}|;,=\[\]]|[^\s(){}|;,=\[\]"]+|")""",
    re.DOTALL | re.VERBOSE,
)

Token = tuple[str, tuple[int, int]]


def read(file: GraphFile) -> Graph:
    graph, families = Graph(file), list[list[Token]]()
    tokens = _tokens(file)
    for word, at in tokens:
        match word:
            case "network":
                _skip_block(file, tokens, at)
            case "variable":
                name, place = _next(file, tokens, at)
                graph.declare(name, place)
                _skip_block(file, tokens, place)
            case "probability":
                families.append(_family(file, tokens, at))
                _skip_block(file, tokens, at)
            case _:
                file.refuse("STM3403", f"`{word}` where `network`, `variable` or `probability` is expected", at)
    given: dict[int, tuple[int, int]] = {}
    for (child, at), *parents in families:
        head = graph.known(child, at)
        if head in given:
            earlier = (given[head], "given here first")
            file.refuse("STM3409", f"the distribution of `{child}` is given twice", at, "remove one", earlier=earlier)
        given[head] = at
        for parent, place in parents:
            graph.edge_once(graph.known(parent, place), head, place)
    return graph


def _tokens(file: GraphFile) -> Iterator[Token]:
    for found in _TOKEN.finditer(file.text):
        if found.lastgroup == "open":
            file.refuse("STM3403", f"this `{found.group()}` is never closed", found.span())
        if found.lastgroup != "skip":
            yield found.group(found.lastgroup or 0), found.span()


def _next(file: GraphFile, tokens: Iterator[Token], at: tuple[int, int]) -> Token:
    """The next token, refusing the end of the file."""
    token = next(tokens, None)
    if token is None:
        file.refuse("STM3403", "the file ends in the middle of this block", at)
    return token


def _family(file: GraphFile, tokens: Iterator[Token], at: tuple[int, int]) -> list[Token]:
    """The child and its parents, from `( child | parent, ... )`."""
    word, place = _next(file, tokens, at)
    if word != "(":
        file.refuse("STM3403", f"`{word}` where `(` is expected", place)
    names: list[Token] = []
    while (token := _next(file, tokens, at))[0] != ")":
        if token[0] not in ("|", ","):
            names.append(token)
    if not names:
        file.refuse("STM3403", "a probability of nothing", at, "write `probability ( child | parent, ... )`")
    return names


def _skip_block(file: GraphFile, tokens: Iterator[Token], at: tuple[int, int]) -> None:
    """Passes over the tokens up to the end of the next `{ ... }`."""
    depth = 0
    while True:
        word, _ = _next(file, tokens, at)
        depth += (word == "{") - (word == "}")
        if depth <= 0 and word == "}":
            return
