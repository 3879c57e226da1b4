"""A scan whose graphs come at run time: one program for each shape of batch, the graphs themselves among its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np

from stmlang.compiler import Call, Request
from stmlang.graph.batch import SIZES, Batch, Bucket, batch
from stmlang.graph.batchable import refuse_above_bounds, refuse_branching
from stmlang.graph.capacity import Capacity
from stmlang.graph.convert.finish import Converted
from stmlang.graph.dag import DAG
from stmlang.graph.rooms import bucket_by_rule
from stmlang.graph.shares import Shares
from stmlang.log import CACHE
from stmlang.runtime.artifact import Part, graph_part, platforms_of, require_apart, require_writable, write_parts
from stmlang.runtime.attributes import missing, only_compiled
from stmlang.runtime.compilation import Compilation, on_device
from stmlang.runtime.compiled import CompiledScan, compile_scan
from stmlang.runtime.options import file_path
from stmlang.runtime.recipes import Recipe, probe_of
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

    def at(self, graphs: Graphs | Shares) -> CompiledScan:
        """The scan on a batch, or on what makes one. Node and edge arrays are those of the batch, padding included; what a
        result holds where there is padding may be anything finite.

        Of shares (`stmlang.graph.shares`) it is the scans on all of them: one scan, whose tables have an axis of shares in
        front, for `jax.vmap` to map over.

        Raises SpecError: STM3507 where a graph is larger than the topology allows or is no tree, and what `batch` raises.
        """
        if isinstance(graphs, Shares):
            scans = self.tables_of(graphs)
            return CompiledScan(on_device(scans.tables), scans.compilation)
        return self._at(graphs if isinstance(graphs, Batch) else batch([graphs] if isinstance(graphs, Graph) else graphs))

    def tables_of(self, shares: Shares) -> CompiledScan:
        """The scans on all shares, with tables of numpy."""
        for each in shares.batches:
            self._refuse(each)
        compilation = self._compiled(shares.batches[0]).compilation
        tables = [tables_on(compilation, each) for each in shares.batches]
        return CompiledScan(jax.tree.map(lambda *each: np.stack(each), *tables), compilation)

    def _refuse(self, graphs: Batch) -> None:
        topology = self.scan.topology
        assert isinstance(topology, Runtime)
        if topology.tree:
            refuse_branching(graphs.dags)
        refuse_above_bounds(graphs.dags, topology.nodes, topology.edges)

    def _at(self, graph_batch: Batch) -> CompiledScan:
        self._refuse(graph_batch)
        known, scan = graph_batch.room in self.compiled, self._compiled(graph_batch)
        if not known:
            return scan
        return CompiledScan(on_device(tables_on(scan.compilation, graph_batch)), scan.compilation)

    def _compiled(self, graph_batch: Batch) -> CompiledScan:
        """The scan on the first batch of this shape, which may be another one."""
        known = self.compiled.get(graph_batch.room)
        CACHE.info(
            "%s for %r: %s", self.scan.name, graph_batch.room, "not compiled yet" if known is None else "compiled before"
        )
        if known is None:
            return self.compiled.setdefault(graph_batch.room, compile_scan(self.scan, self.call, self.request, graph_batch))
        return known

    def export(
        self,
        path: str | PathLike[str],
        buckets: Bucket | Batch | Mapping[str, int] | Sequence[Bucket | Batch | Mapping[str, int]],
        platforms: Sequence[str] | None = None,
    ) -> None:
        """Write an artifact with a program for each of some buckets, atomically. What is loaded takes any graphs that one of
        them has room for, and makes their tables itself.

        `Bucket.covering(batches)` is the bucket of a data set, with the room that its graphs take; of a batch it is its own.
        Sizes alone, `{"graphs": 64, "nodes": 2048, "edges": 4096}` or a bucket without a room, get one by rule
        (`stmlang.graph.rooms`). `platforms` defaults to the target's. A scan compiled for training can be differentiated once.

        Raises SpecError: STM3508 for what is no bucket, STM5301 for an unknown platform and two buckets that are the same,
        STM5302 where the file cannot be written, and what `stmlang.compile` raises.
        """
        target = file_path(path)
        one = isinstance(buckets, Bucket | Batch | Mapping)
        listed: Sequence[Any] = [buckets] if one else cast(Any, buckets)
        if not isinstance(cast(Any, listed), (list, tuple)) or not listed:
            help = "such as `[Bucket.covering(batches)]`"
            raise call_error("STM3508", f"`buckets` must be a list of buckets, not {buckets!r:.80}", help=help)
        require_writable(target)
        write_graphs(target, [self.part(bucket, platforms) for bucket in listed])

    def part(self, bucket: Bucket | Batch | Mapping[str, int], platforms: Sequence[str] | None = None) -> Part:
        """The part of an artifact that is for a bucket. Raises SpecError as `export` does."""
        topology = self.scan.topology
        assert isinstance(topology, Runtime)
        roomy = _roomy(bucket, topology.nodes)
        assert roomy.room is not None
        on = self.at(probe_of(topology, roomy.room))
        names = platforms_of((on.plan.target.platform,) if platforms is None else platforms)
        sizes = {name: getattr(roomy, name) for name in SIZES}
        return graph_part(on.compilation, on.tables, Recipe.of(on.compilation).stored(), sizes, names)

    def __call__(self, *_arguments: Any, **_named: Any) -> Any:
        """A call needs graphs: raises SpecError (STM3301)."""
        raise self.without_graphs("be called")

    def __getattr__(self, name: str) -> Any:
        if not only_compiled(self, name):
            raise missing(self, name)
        raise UnavailableError(self.without_graphs(f"be asked for `{name}`").diagnostics)

    def without_graphs(self, what: str) -> SpecError:
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


def tables_on(compilation: Compilation, graph_batch: Batch) -> Any:
    """The tables of a compiled program for another batch of the shape that it was compiled for, as arrays of numpy."""
    return replace(compilation.program, dag=graph_batch.dag).tables


def write_graphs(path: Path, parts: Sequence[Part]) -> None:
    """Write the programs of one scan for several buckets. Raises SpecError: STM5301 where two are for the same, STM5302 where
    the file cannot be written."""
    uses = [
        (part.described["platforms"], part.members["recipe.json"] + repr(part.described["bucket"]).encode()) for part in parts
    ]
    require_apart(uses, "bucket")
    write_parts(path, "graphs", parts)


def _roomy(bucket: Any, most: int) -> Bucket:
    """A bucket with a room. Raises SpecError (STM3508) for what is none."""
    if isinstance(bucket, Batch):
        return replace(bucket.bucket, room=bucket.room)
    if isinstance(bucket, Bucket):
        return bucket if bucket.room is not None else bucket_by_rule({name: getattr(bucket, name) for name in SIZES}, most)
    if isinstance(bucket, Mapping):
        return bucket_by_rule(cast(Mapping[str, int], bucket), most)
    help = "give a `Bucket`, a batch, or sizes by name"
    raise call_error("STM3508", f"{bucket!r:.80} is no bucket", help=help)
