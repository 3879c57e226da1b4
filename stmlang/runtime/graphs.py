"""A scan whose graphs come at run time: one program for each shape of batch, the graphs themselves among its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from stmlang.compiler import Call, Request
from stmlang.graph.batch import Batch, batch
from stmlang.graph.batchable import refuse_above_bounds, refuse_branching
from stmlang.graph.capacity import Capacity
from stmlang.graph.convert.finish import Converted
from stmlang.graph.dag import DAG
from stmlang.log import CACHE
from stmlang.runtime.attributes import missing, only_compiled
from stmlang.runtime.compiled import CompiledScan, compile_scan, rebuilt
from stmlang.runtime.signature import call_error
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Runtime
from stmlang.source import short
from stmlang.source.diagnostic import SpecError, UnavailableError

Graph = DAG | Converted
Graphs = Batch | Graph | Sequence[Graph]


@jax.tree_util.register_static
@dataclass(frozen=True, repr=False)
class GraphScan:
    """What `stmlang.compile` returns for `topology g = dag(nodes <= N, edges <= E)`. `at` gives it graphs; the scan that it
    returns is called like any other, and is a pytree whose leaves are the graphs' tables. So a compiled function that takes it
    as an argument is compiled once for each of few shapes and not for each batch:

        scan = stmlang.compile(spec)

        @jax.jit
        def step(on, q, k, v, gates):
            return on(q, k, v, gates)

        step(scan.at(batch), q, k, v, gates)

    `call` and `request` say what it is compiled for, once for each room that a batch takes; what was compiled is kept in
    `compiled`, and not stored. Two are equal whose specs and options are.
    """

    scan: Scan
    call: Call
    request: Request
    compiled: dict[Capacity, CompiledScan] = field(default_factory=dict[Capacity, CompiledScan], compare=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphScan:
        del memo
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphScan, (self.scan, self.call, self.request)

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<GraphScan {self.scan.name}: graphs come with `at`>"

    @property
    def dtype(self) -> str:
        """The data type of results."""
        return self.call.dtype

    def at(self, graphs: Graphs) -> CompiledScan:
        """The scan on a batch, or on what makes one. Node and edge arrays are those of the batch, padding included; what a
        result holds where there is padding may be anything finite.

        Raises SpecError: STM3507 where a graph is larger than the topology allows or is no tree, and what `batch` raises.
        """
        graph_batch = graphs if isinstance(graphs, Batch) else batch([graphs] if isinstance(graphs, Graph) else graphs)
        topology = self.scan.topology
        assert isinstance(topology, Runtime)
        if topology.tree:
            refuse_branching(graph_batch.dags)
        refuse_above_bounds(graph_batch.dags, topology.nodes, topology.edges)
        known = self.compiled.get(graph_batch.room)
        CACHE.info(
            "%s for %r: %s", self.scan.name, graph_batch.room, "not compiled yet" if known is None else "compiled before"
        )
        if known is None:
            return self.compiled.setdefault(graph_batch.room, compile_scan(self.scan, self.call, self.request, graph_batch))
        return rebuilt(known, replace(known.compilation.program, dag=graph_batch.dag).tables)

    def __call__(self, *_arguments: Any, **_named: Any) -> Any:
        """A call needs graphs: raises SpecError (STM3301)."""
        raise self._without_graphs("be called")

    def __getattr__(self, name: str) -> Any:
        if not only_compiled(self, name):
            raise missing(self, name)
        raise UnavailableError(self._without_graphs(f"be asked for `{name}`").diagnostics)

    def _without_graphs(self, what: str) -> SpecError:
        message = f"the graphs of scan `{self.scan.name}` come at run time: it cannot {what} without them"
        return call_error(
            "STM3301", message, help="give it graphs: `op.at(stmlang.graph.batch(graphs))`, and call what that returns"
        )

    def require(self, on: object) -> CompiledScan:
        """What `at` of this scan has returned, or of another of the same spec. Raises SpecError (STM5202) for anything else."""
        if isinstance(on, CompiledScan) and on.compilation.at_run_time and on.compilation.declared == self.scan:
            return on
        what = f"scan `{on.scan.name}`" if isinstance(on, CompiledScan) else type(on).__name__
        help = "give what `at` of the layer's own scan returns: `layer(x, on=layer.op.at(batch))`"
        raise call_error("STM5202", f"`on` is {what}, and no graphs for scan `{self.scan.name}`", help=help)
