"""GML: nested lists of keys and values; nodes have an integer `id` and perhaps a `label`, edges a `source` and a `target`.

    graph [
      directed 1
      node [ id 0 label "a" ]
      node [ id 1 label "b" ]
      edge [ source 0 target 1 ]
    ]

Other keys are skipped. Parallel edges are kept. `directed` must be 1: by default a GML graph has no directions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape

from stmlang.graph.readers.text import Graph, GraphFile

_TOKEN = re.compile(r'#[^\r\n]*|"[^"]*"|\[|\]|[^\s\[\]"]+|"')


@dataclass
class _List:
    """A list being read: its key, its place and the plain values in it."""

    key: str
    at: tuple[int, int]
    values: dict[str, tuple[str, tuple[int, int]]] = field(default_factory=dict[str, tuple[str, tuple[int, int]]])


def read(file: GraphFile) -> Graph:
    nodes, edges = list[_List](), list[_List]()
    graphs = list[_List]()
    for path, item in _lists(file):
        match path:
            case ("graph",):
                graphs.append(item)
            case ("graph", "node"):
                nodes.append(item)
            case ("graph", "edge"):
                edges.append(item)
            case _:
                pass
    if not graphs:
        file.refuse("STM3403", "no list `graph [ ... ]` in this file", (0, 0))
    directed, at = graphs[0].values.get("directed", ("0", graphs[0].at))
    if directed != "1":
        file.refuse("STM3404", "this graph has no directions", at, "write `directed 1` where source and target are meant")
    graph = Graph(file)
    for item in nodes:
        key, at = _value(file, item, "id")
        label, _ = item.values.get("label", (key, at))
        graph.declare(key, at, label)
    for item in edges:
        tail, head = (graph.known(*_value(file, item, end)) for end in ("source", "target"))
        graph.edge(tail, head, item.at)
    return graph


def _value(file: GraphFile, item: _List, key: str) -> tuple[str, tuple[int, int]]:
    """A value that a list must have."""
    found = item.values.get(key)
    if found is None:
        file.refuse("STM3403", f"this `{item.key}` has no `{key}`", item.at)
    return found


def _lists(file: GraphFile) -> list[tuple[tuple[str, ...], _List]]:
    """All lists of the file with the keys that lead to them, in the order in which they begin.

    Lists nested deeper than a node or an edge hold drawings and the like; only how deep they are is followed.
    """
    found: list[tuple[tuple[str, ...], _List]] = []
    path: list[_List] = []
    key: tuple[str, tuple[int, int]] | None = None
    for token in _TOKEN.finditer(file.text):
        word, at = token.group(), token.span()
        if word.startswith("#"):
            continue
        if word == "[":
            name, place = key or ("", at)
            path.append(_List(name.lower(), place))
            if len(path) <= 2:
                found.append((tuple(item.key for item in path), path[-1]))
        elif word == "]":
            if not path or key is not None:
                file.refuse("STM3403", "`]` where a key or a value is expected", at)
            path.pop()
        elif word == '"':
            file.refuse("STM3403", "this string is never closed", at)
        elif key is None:
            key = (word, at)
            continue
        elif path:
            text = unescape(word[1:-1]) if word.startswith('"') else word
            path[-1].values.setdefault(key[0].lower(), (text, at))
        key = None
    if path:
        file.refuse("STM3403", "this list is never closed", path[-1].at)
    return found
