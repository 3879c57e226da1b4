"""From a path to a graph: which reader, and what must hold of any file."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from difflib import get_close_matches
from importlib import import_module
from pathlib import PurePath

import numpy as np

from stmlang.graph.build import ragged_dag
from stmlang.graph.dag import DAG
from stmlang.graph.levels import find_cycle
from stmlang.graph.readers.text import Graph, GraphFile
from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.span import SourceFile, Span
from stmlang.source.wording import shortened

SUFFIXES: dict[str, str] = {
    ".edgelist": "edgelist",
    ".edges": "edgelist",
    ".txt": "edgelist",
    ".graphml": "graphml",
    ".gml": "gml",
    ".dot": "dot",
    ".gv": "dot",
    ".bif": "bif",
    ".bench": "bench",
    ".net": "pajek",
    ".paj": "pajek",
    ".newick": "newick",
    ".nwk": "newick",
    ".tre": "newick",
    ".tree": "newick",
}
"""The format that a suffix stands for; each format has a module of its name beside this one, with a function `read`."""

FORMATS: tuple[str, ...] = tuple(dict.fromkeys(SUFFIXES.values()))

MOST_BYTES = 1 << 28
"""The largest file that is read."""
PART_BYTES = 1 << 20

SHOWN = 12
"""A longer cycle is printed with its middle left out."""


def read_graph(path: str, format: str | None = None, tree: bool = False, span: Span | None = None) -> DAG:
    """The graph in a file: nodes and edges in the order in which the file gives them, no open edges, the one port `edge`.

    `format` is one of `FORMATS`, or None where the suffix decides; `tree` asks for at most one edge out of each node; `span` is
    where a spec names the file. Raises SpecError (STM3401 ... STM3413), with the place in the graph file.
    """
    reader = import_module(f"stmlang.graph.readers.{_format_of(path, format, span)}")
    file = GraphFile(SourceFile(path, _text_of(path, span)), span)
    graph: Graph = reader.read(file)
    if not graph.names:
        file.refuse("STM3411", "this file holds no node", None)
    tail, head = np.asarray(graph.tails, np.int64), np.asarray(graph.heads, np.int64)
    cycle = find_cycle(tail, head, len(graph.names))
    names = _distinct(graph.names)
    if cycle is not None:
        _refuse_cycle(graph, names, cycle)
    if tree:
        _require_tree(graph, names)
    return ragged_dag(len(names), tail, head, names)


def _text_of(path: str, span: Span | None) -> str:
    """The text of a file. What is not UTF-8 is taken as Latin-1, in which older files write their labels."""
    content = _content(path, span)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _content(path: str, span: Span | None) -> bytes:
    """The bytes of a file, read as far as they look like a text."""
    parts: list[bytes] = []
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Is a directory" if stat.S_ISDIR(status.st_mode) else "Not a regular file")
        if status.st_size > MOST_BYTES:
            message = f"`{path}` has {status.st_size:,} bytes, more than the {MOST_BYTES:,} that are read"
            raise _refusal("STM3413", message, span, "leave out what is neither node nor edge, or cut the graph")
        with open(path, "rb") as file:
            while part := file.read(PART_BYTES):
                if b"\0" in part:
                    help = "save it as UTF-8, or choose the file that holds the graph"
                    raise _refusal("STM3412", f"`{path}` is no text: it is binary, or saved as UTF-16", span, help)
                parts.append(part)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        help = "name a file that is there and can be read"
        raise _refusal("STM3401", f"the graph file `{path}` cannot be read: {reason}", span, help) from None
    return b"".join(parts)


def _refusal(code: str, message: str, span: Span | None, help: str | None = None) -> SpecError:
    return SpecError([Diagnostic(code, message, span, help=help)])


def _format_of(path: str, format: str | None, span: Span | None) -> str:
    """The format's name, from what was asked for or from the suffix."""
    if format is None:
        suffix = PurePath(path).suffix.lower()
        if suffix in SUFFIXES:
            return SUFFIXES[suffix]
        message = f"the suffix `{suffix}` of `{path}` names no graph format" if suffix else f"`{path}` has no suffix"
        help = "add the format, `as edgelist`, or rename the file"
    else:
        if format in FORMATS:
            return format
        message = f"`{format}` is no graph format"
        near = get_close_matches(format.lower(), FORMATS, 1)
        help = f"did you mean `{near[0]}`?" if near else None
    raise SpecError([Diagnostic("STM3402", message, span, (f"graph formats: {', '.join(FORMATS)}",), help)])


def _distinct(names: list[str]) -> tuple[str, ...]:
    """The names, those that occur more than once followed by their node's number counted from one."""
    count = Counter(names)
    return tuple(name if count[name] == 1 else f"{name} #{node}" for node, name in enumerate(names, 1))


def _refuse_cycle(graph: Graph, names: tuple[str, ...], cycle: tuple[int, ...]) -> None:
    """Prints the cycle, at the place of its first edge."""
    steps = [shortened(names[graph.tails[edge]]) for edge in cycle]
    if len(steps) > SHOWN:
        steps[SHOWN // 2 : -SHOWN // 2] = [f"... ({len(steps) - SHOWN} more) ..."]
    shown = " -> ".join([*steps, steps[0]])
    graph.file.refuse(
        "STM3405",
        f"the graph has a cycle: {shown}",
        graph.edge_at[cycle[0]],
        "remove one of these edges, or merge the nodes of the cycle into one",
        ("a scan needs an order in which every node comes after the nodes that lead to it",),
    )


def _require_tree(graph: Graph, names: tuple[str, ...]) -> None:
    """Refuses a second edge out of a node (STM3407)."""
    first: dict[int, int] = {}
    for edge, tail in enumerate(graph.tails):
        before = first.setdefault(tail, edge)
        if before != edge:
            graph.file.refuse(
                "STM3407",
                f"two edges leave `{names[tail]}`, so this is no tree",
                graph.edge_at[edge],
                'use `dag from "..."`, or turn the edges around if the file has them from the root',
                ("in a tree edges lead from the children to the root",),
                earlier=(graph.edge_at[before], "the first one is here"),
            )
