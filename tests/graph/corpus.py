"""Odd but valid files and broken ones, written by hand: what the first mean, and where the second are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from stmlang.graph.readers import read_graph
from stmlang.source.diagnostic import Diagnostic, SpecError

Good = tuple[str, int, str]
"""The text of a file, how many nodes it has, and its edges: `a>b b>c`, or of nodes without names `0>1`."""
Bad = tuple[str, str, str]
"""The text of a file, the code of the refusal, and its place as `line:column`, empty for the file as a whole."""


def accepted(folder: Path, name: str, content: str | bytes, nodes: int, edges: str, format: str | None = None) -> None:
    """Whether a file has these nodes and edges, whatever their order."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    dag = read_graph(str(path), format)
    ends = zip(dag.tail.tolist(), dag.head.tolist(), strict=True)
    names = dag.names or tuple(map(str, range(dag.node_count)))
    found = sorted(f"{names[tail]}>{names[head]}".replace(" ", "_") for tail, head in ends)
    assert (dag.node_count, found) == (nodes, sorted(filter(None, edges.split(" "))))


def refused_at(
    folder: Path, name: str, content: str | bytes, code: str, place: str, format: str | None = None, tree: bool = False
) -> Diagnostic:
    """What is said about a file that must be refused, just once, with this code and at this place."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SpecError) as error:
        read_graph(str(path), format, tree)
    (found,) = error.value.diagnostics
    span = found.span
    at = "" if span is None else "{}:{}".format(*span.file.position(span.start))
    assert (found.code, at) == (code, place), found.message
    assert found.help
    assert span is None or span.end - span.start < max(200, len(content))
    return found
