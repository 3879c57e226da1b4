"""Scans step by step, on any topology."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from stmlang.graph.dag import DAG
from stmlang.runtime.compilation import Compilation
from stmlang.runtime.node_stream import NodeStream, node_stream
from stmlang.runtime.row_stream import RowStream, row_stream
from stmlang.runtime.signature import call_error
from stmlang.scan.expression import Neighbour, inside
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Regular, ports

ScanStream = RowStream | NodeStream

_known: WeakKeyDictionary[Compilation, ScanStream] = WeakKeyDictionary()


def stream_of(compilation: Compilation, graph: DAG | None = None, mask: Any = None) -> ScanStream:
    """A compiled scan step by step; for one whose graphs come at run time, on a graph, with the mask of its line edges if there
    is one. Raises SpecError (STM5211) for a scan that runs against its steps."""
    _require_forward(compilation.facts.scan)
    if graph is not None:
        return node_stream(compilation, graph, mask, rounded=True)
    if compilation not in _known:
        _known[compilation] = _stream_of(compilation)
    return _known[compilation]


def _stream_of(compilation: Compilation) -> ScanStream:
    program = compilation.program
    if program.dag.regular is not None:
        return row_stream(compilation)
    sites = program.tables[0].sites
    return node_stream(compilation, program.dag, None if sites is None else sites.mask, rounded=False)


def _require_forward(scan: Scan) -> None:
    """Raises SpecError (STM5211) where what lies ahead of a step would be needed."""
    regular = isinstance(scan.topology, Regular)
    clauses = (clause.value for gate in scan.gates for clause in gate.clauses)
    if any(isinstance(expr, Neighbour) for expr in inside(*clauses)):
        message = f"gates of scan `{scan.name}` ask whether there is a neighbour: a step does not know where the border is"
        raise call_error("STM5211", message, help="call it as a whole")
    senses = [direction.senses[:1] if regular else direction.senses for direction in scan.directions]
    if all(sense > 0 for each in senses for sense in each):
        return
    first, *others = (port.name for port in ports(scan.topology))
    against = f"against the axis `{first}`" if regular else "against its edges"
    help = "stream a spec whose directions are all `forward`"
    if regular and others:
        help += f", or have `+{first}`"
    message = f"scan `{scan.name}` also runs {against}: what lies behind a step would have to know what lies ahead"
    raise call_error("STM5211", message, help=help)
