"""Graph files made by tests: how they are read, and what is refused where."""

from __future__ import annotations

from pathlib import Path

import pytest

from stmlang.graph.dag import DAG
from stmlang.graph.levels import node_levels
from stmlang.graph.readers import read_graph
from stmlang.source.codes import CODES
from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.span import SourceFile, Span
from tests.helpers.data import data_folder


def read(folder: Path, name: str, content: str | bytes, tree: bool = False, span: Span | None = None) -> DAG:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_graph(str(path), tree=tree, span=span)


def arrows(dag: DAG) -> list[str]:
    assert dag.names is not None
    return [f"{dag.names[tail]}>{dag.names[head]}" for tail, head in zip(dag.tail.tolist(), dag.head.tolist(), strict=True)]


def refused(folder: Path, name: str, content: str | bytes, code: str, line: int | None, tree: bool = False) -> Diagnostic:
    """What is said about a file that must be refused with this code at this line, None for the file as a whole."""
    spec = Span(SourceFile("s.stm", 'dag from "g"'), 4, 12)
    with pytest.raises(SpecError) as error:
        read(folder, name, content, tree, spec)
    found = error.value.diagnostics[0]
    assert found.code == code, found.message
    assert code in CODES
    assert found.labels[-1].span == spec
    if line is None:
        assert found.span is None
        assert str(folder / name) in found.notes[-1]
    else:
        assert found.span is not None
        assert found.span.file.name == str(folder / name)
        assert found.span.file.position(found.span.start)[0] == line
        assert 0 <= found.span.start <= found.span.end <= len(found.span.file.text)
    return found


def data(path: str) -> str:
    """A file of real graphs."""
    return str(data_folder("data/dags") / path)


def measured(path: str, tree: bool = False) -> tuple[int, int, int]:
    """Nodes, edges and depth of a file of real graphs."""
    dag = read_graph(data(path), tree=tree)
    return dag.node_count, dag.edge_count, int(node_levels(dag).max())
