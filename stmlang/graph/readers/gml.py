"""GML: nested lists of keys and values; nodes have an integer `id` and perhaps a `label`, edges a `source` and a `target`.

    graph [
      directed 1
      node [ id 0 label "a" ]
      node [ id 1 label "b" ]
      edge [ source 0 target 1 ]
    ]

Other keys say nothing of the graph, as the format has it, and so may hold anything but nodes and edges. Parallel edges are
kept. `directed` must be 1: by default a GML graph has no directions. Lines that begin with `#` are comments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.entities import name2codepoint

from stmlang.graph.readers.text import Graph, GraphFile, Place

_TOKEN = re.compile(r'(?P<comment>(?<![^\r\n])[ \t]*#[^\r\n]*)|"[^"]*"|\[|\]|[^\s\[\]"]+|"')
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INTEGER = re.compile(r"([+-]?)0*([0-9]+)")
_CHARACTER = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6})|([0-9A-Za-z]+));")
_PLACES: dict[str, tuple[str, ...]] = {"graph": (), "node": ("graph",), "edge": ("graph",)}
"""Where the lists stand that make the graph."""
_ONCE = {"graph": ("directed",), "node": ("id", "label"), "edge": ("source", "target")}


@dataclass
class _List:
    """A list being read: its key, its place and the plain values in it that are read."""

    key: str
    at: Place
    values: dict[str, tuple[str, Place]] = field(default_factory=dict[str, tuple[str, Place]])


def read(file: GraphFile) -> Graph:
    lists = _lists(file)
    graphs = [item for item in lists if item.key == "graph"]
    if not graphs:
        file.refuse("STM3403", "no list `graph [ ... ]` in this file", (0, 0))
    if len(graphs) > 1:
        help = "a topology is one graph: put each into a file of its own"
        file.refuse("STM3403", "a second graph", graphs[1].at, help)
    directed, at = graphs[0].values.get("directed", ("0", graphs[0].at))
    if directed != "1":
        file.refuse("STM3404", "this graph has no directions", at, "write `directed 1` where source and target are meant")
    graph = Graph(file)
    for item in lists:
        if item.key == "node":
            key, at = _value(file, item, "id")
            label, _ = item.values.get("label", (key, at))
            graph.declare(key, at, label)
    for item in lists:
        if item.key == "edge":
            tail, head = (graph.known(*_value(file, item, end)) for end in ("source", "target"))
            graph.edge(tail, head, item.at)
    return graph


def _value(file: GraphFile, item: _List, key: str) -> tuple[str, Place]:
    """A value that a list must have."""
    value = item.values.get(key)
    if value is None:
        file.refuse("STM3403", f"this `{item.key}` has no `{key}`", item.at)
    return value


def _lists(file: GraphFile) -> list[_List]:
    """The lists that are graphs, nodes and edges, in the order in which they begin.

    Lists below a node or an edge hold drawings and the like; of them only how deep they are is followed.
    """
    lists: list[_List] = []
    path: list[_List] = []
    key: tuple[str, Place] | None = None
    for token in _TOKEN.finditer(file.text):
        word, at = token.group(), token.span()
        if token.group("comment") is not None:
            continue
        if word == "[":
            if key is None:
                file.refuse("STM3403", "this list has no key", at)
            path.append(_List(*key))
            if _is_read(file, path):
                lists.append(path[-1])
        elif word == "]":
            if not path or key is not None:
                file.refuse("STM3403", "`]` where a key or a value is expected", at)
            path.pop()
        elif word == '"':
            file.refuse("STM3403", "this string is never closed", at)
        elif key is None:
            if _KEY.fullmatch(word) is None:
                file.refuse("STM3403", f"`{word}` where a key is expected", at, "a list is written `[ key value key value ]`")
            key = (word, at)
            continue
        elif path and key[0] in _ONCE.get(path[-1].key, ()):
            _add(file, path[-1], key, word, at)
        key = None
    if key is not None:
        file.refuse("STM3403", f"`{key[0]}` without a value", key[1])
    if path:
        file.refuse("STM3403", "this list is never closed", path[-1].at)
    return lists


def _is_read(file: GraphFile, path: list[_List]) -> bool:
    """Whether the innermost list is the graph, a node or an edge of it. Refuses one that stands elsewhere (STM3403)."""
    key, at = path[-1].key, path[-1].at
    if key.lower() not in _PLACES:
        return False
    if key != key.lower():
        file.refuse("STM3403", f"`{key}` is no key of a graph", at, f"write `{key.lower()}`")
    around = _PLACES[key]
    if len(path) != len(around) + 1 or any(outer.key != name for outer, name in zip(path, around, strict=False)):
        where = f"in `{path[-2].key}`" if len(path) > 1 else "outside of `graph`"
        file.refuse("STM3403", f"`{key}` {where}", at, "a file is `graph [ node [ ... ] edge [ ... ] ]`; graphs are not nested")
    return True


def _add(file: GraphFile, item: _List, key: tuple[str, Place], value: str, at: Place) -> None:
    """A value that is read. Refuses a second one (STM3403)."""
    if key[0] in item.values:
        earlier = (item.values[key[0]][1], "given here first")
        file.refuse("STM3403", f"`{key[0]}` is given twice", key[1], "remove one of the two", earlier=earlier)
    integer = _INTEGER.fullmatch(value)
    if value.startswith('"'):
        value = _CHARACTER.sub(_character, value[1:-1])
    elif integer is not None and key[0] != "label":
        value = integer.group(1).replace("+", "") + integer.group(2)
    item.values[key[0]] = (value, at)


def _character(entity: re.Match[str]) -> str:
    """The character that an entity stands for, the entity itself if it stands for none."""
    decimal, hexadecimal, name = entity.groups()
    code = name2codepoint.get(name) if name else int(decimal) if decimal else int(hexadecimal, 16)
    if code is None or not 0 < code < 0x110000 or 0xD800 <= code < 0xE000:
        return entity.group()
    return chr(code)
