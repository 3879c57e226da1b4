"""A compiled scan: a function of arrays, and everything that is known about it."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from stmlang.compiler import Call, Prepared, Request, prepare
from stmlang.compiler import plan as plan_of
from stmlang.cost import units
from stmlang.cost.problem import Mode
from stmlang.draw.all import pictures_of
from stmlang.draw.names import WHAT, What
from stmlang.draw.picture import Pictures
from stmlang.facts import Facts
from stmlang.facts.show import show_facts
from stmlang.graph.batch import Batch
from stmlang.graph.dag import DAG
from stmlang.log import COMPILE, on, timed
from stmlang.plan.plan import Plan
from stmlang.plan.show import explain_text
from stmlang.program.program import Bundle
from stmlang.program.states import State
from stmlang.runtime.artifact import Part, export, platforms_of, scan_part
from stmlang.runtime.compilation import Compilation, compilation_of, on_device
from stmlang.runtime.gating import gating_matrix
from stmlang.runtime.listen import listen
from stmlang.runtime.masks import require_mask, require_segments
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.options import export_batch, node_shape, positive, whole_number, word
from stmlang.runtime.planned import call_scan
from stmlang.runtime.program_text import lower_text
from stmlang.runtime.row_stream import RowStream
from stmlang.runtime.signature import Signature, call_error, check_arguments, flag, mapped
from stmlang.runtime.stream import ScanStream, stream_of
from stmlang.scan.scan import Scan
from stmlang.scan.topology import kind_of
from stmlang.source import short
from stmlang.source.diagnostic import UnavailableError

if TYPE_CHECKING:
    from stmlang.oracle.recurrence import ReferenceResult


MAPPED = "Under `jax.vmap` the batch that is mapped is planned for on its own: `op.plan_for(batch)`."
ALONE = 'This plan is that of calls that are differentiated. Any other runs `{}`: `op.plan_for({}, "inference")`.'


class CompiledScan(eqx.Module):
    """`H = scan(q, k, v, gates)`, unbatched; map it over a batch with `jax.vmap`.

    A pytree whose leaves are index tables (integers, never trained). Given to a compiled function as an argument, by itself or
    in a layer, they are arguments of its program; a function that closes over a scan has them as constants, which on graphs of
    many thousand edges makes the program large. Shapes: SPEC.md, and `signature`.

    Scans are compared by value: those that were compiled from equal specs to equal programs, on the same graph, are equal.
    """

    tables: tuple[Bundle, ...]
    compilation: Compilation = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = short.text

    def __repr__(self) -> str:
        nodes, dtype = self.compilation.program.dag.node_count, self.signature.dtype
        return f"<CompiledScan {self.scan.name}: {nodes} nodes, {self.plan.chosen.candidate.label}, {dtype}>"

    def __call__(
        self,
        q: Float[Array, "*nodes head *read key"],
        k: Float[Array, "*nodes head *write key"],
        v: Float[Array, "*nodes head *write value"],
        gates: Mapping[str, Array],
        initial: State | None = None,
        return_state: bool = False,
        mask: Bool[Array, "*nodes"] | None = None,
        segments: Int[Array, "*nodes"] | None = None,
    ) -> Any:
        """The result, `(*nodes, head, value)`; with `return_state` the pair of it and the final state. Nodes that write or read
        several times have an axis of `write` in `k` and `v`, of `read` in `q` and the result.

        `gates` holds the value of each leaf of the spec, by name. `initial` is the state on the edges that enter from outside
        (zero if None), in the layout of `signature.initial`. Inputs may be of any floating type; the result has the scan's.

        `mask`, on chains and grids, is true for the nodes that count; the result is zero at the others, and what arrays hold
        there, NaN included, reaches nothing. On a chain they are skipped, wherever they stand, and both states are those of the
        shorter chain. On a grid nothing passes them, so that an image in a corner of a larger one gives what it gives alone;
        states are not taken and not returned there.

        `segments`, on chains and grids, are whole numbers by which packed sequences, or images side by side, do not see each
        other: nothing passes between neighbours whose numbers differ. On a grid they may be given for the first axis alone. A
        negative number leaves a node out, as a mask does.

        Raises SpecError (STM52xx) for missing, unknown or misshapen arguments.
        """
        h, state = self._call(q, k, v, gates, initial, flag("return_state", return_state), mask, segments)
        return (h, state) if return_state else h

    def _call(
        self,
        q: Array,
        k: Array,
        v: Array,
        gates: Mapping[str, Array],
        initial: State | None,
        return_state: bool,
        mask: Array | None,
        segments: Array | None = None,
        *,
        scaled: bool = False,
    ) -> tuple[Array, State | None]:
        inputs = {"q": q, "k": k, "v": v}
        check_arguments(self.signature, inputs, gates, initial, padded=self.compilation.at_run_time)
        start = None if initial is None else tuple(dict(state) for state in initial)
        compilation, tables = self.compilation, self.tables
        states = return_state or initial is not None
        if segments is not None:
            segments, mask = require_segments(self.scan, self.node_shape, segments, mask, states=states)
        if mask is not None:
            mask = require_mask(self.scan, self.node_shape, mask, states=states)
        whole = mask is None and segments is None
        if not whole and compilation.maskable is not compilation.program:
            tables = on_device(compilation.maskable.tables)
        return call_scan(compilation, tables, (inputs, dict(gates), start, mask, segments), return_state, scaled)

    def gating_matrix(
        self, gates: Mapping[str, Array], q: Array | None = None, k: Array | None = None, v: Array | None = None
    ) -> Float[Array, "*nodes *nodes head *write *read"]:
        """`G` of shape `(*source nodes, *target nodes, head)`: `H = ((Q K^T) o G^T) V`, all directions summed; for each write
        of a source and each read of a target, `(..., head, [write], [read])`, where there are several.

        q, k, v are needed only where gates depend on them. Raises SpecError (STM5206) where gates act on keys or values: such
        a scan has no gating matrix of numbers. One with tracks has: they are summed.
        """
        if self.compilation.at_run_time:
            program, tables = self.compilation.formed(self.dag), None
        else:
            program = self.compilation.whole
            tables = self.tables if program is self.compilation.program else None
        return gating_matrix(self.compilation, program, tables, {"q": q, "k": k, "v": v}, gates)

    def reference(
        self, q: Any, k: Any, v: Any, gates: Mapping[str, Any], initial: State | None = None, declared: bool = False
    ) -> Float[np.ndarray, "*nodes head value"]:
        """The same, node by node in numpy float64: slow, and as close to the paper's equation as code can be.

        `declared` evaluates the scan as the spec declares it, without what a stability mode inserted: where both differ, the
        transition was larger than the mode allows.
        """
        return self.reference_result(q, k, v, gates, initial, declared).h

    def reference_result(
        self, q: Any, k: Any, v: Any, gates: Mapping[str, Any], initial: State | None = None, declared: bool = False
    ) -> ReferenceResult:
        """`reference` with the final state."""
        from stmlang.oracle.recurrence import reference

        check_arguments(self.signature, {"q": q, "k": k, "v": v}, gates, initial, padded=self.compilation.at_run_time)
        query, key, value = (np.asarray(array, np.float64) for array in (q, k, v))
        leaves = {name: np.asarray(array, np.float64) for name, array in gates.items()}
        state = None
        if initial is not None:
            state = [{port: np.asarray(array, np.float64) for port, array in ports.items()} for ports in initial]
        scan = self.compilation.declared if flag("declared", declared) else self.scan
        return reference(scan, self.dag, query, key, value, leaves, state)

    def stream(self) -> ScanStream:
        """This scan step by step: a grid row by row along its first axis, any other topology node by node.

        `init_state`, `step`, `final_state` and `step_arguments` are its methods, and can be called on the scan just as well. It
        is a pytree of index tables: given to a compiled function as an argument, they are arguments of its program. Raises
        SpecError (STM5211) for a scan that runs against its steps.
        """
        if not self.compilation.at_run_time:
            return stream_of(self.compilation)
        return self._stream

    @cached_property
    def _stream(self) -> ScanStream:
        sites = self.tables[0].sites
        return stream_of(self.compilation, self.dag, None if sites is None else sites.mask)

    def init_state(self, initial: State | None = None) -> Any:
        """The state before the first step: see `RowStream.init_state` and, on trees, DAGs and products, `NodeStream`'s."""
        return self.stream().init_state(initial)

    def step(self, state: Any, q: Array, k: Array, v: Array, gates: Mapping[str, Array], **options: Any) -> tuple[Array, Any]:
        """The result of the next node, or the next row of a grid, and the state behind it.

        Equal to a whole pass to rounding, in memory of one state, and compiled once. Arrays are those of a call without its
        first axis: on a chain `q: (head, key)`, on a grid `(*other axes, head, key)`; on trees, DAGs and products those of one
        node, which `step_arguments` takes from those of all. Options and errors: `RowStream.step` and `NodeStream.step`.
        """
        return self.stream().step(state, q, k, v, gates, **options)

    def final_state(self, state: Any) -> State:
        """What a whole pass over all steps so far hands over, on a grid for its first axis."""
        return self.stream().final_state(state)

    def step_arguments(self, step: Any, q: Array, k: Array, v: Array, gates: Mapping[str, Array]) -> tuple[Any, ...]:
        """Of the arrays of a call what the step of a number, which may be traced, takes: `q, k, v, gates`."""
        return self.stream().arguments(step, q, k, v, gates)

    def prefill(
        self, state: Any, q: Array, k: Array, v: Array, gates: Mapping[str, Array], mask: Bool[Array, "*nodes"] | None = None
    ) -> tuple[Array, Any]:
        """All steps at once, as a whole pass: the result, and the state behind the last of them. On chains `mask` says which
        nodes count. Raises SpecError (STM5211) for a tree, DAG or product, whose steps have one beginning and one end."""
        stream = self._rows()
        initial = stream.whole_state(state, self.signature)
        h, final = self._call(q, k, v, gates, initial, True, mask, scaled=True)
        assert final is not None
        return h, stream.of_whole(final)

    def _rows(self) -> RowStream:
        """The scan row by row. Raises SpecError (STM5211) for a tree, DAG or product."""
        stream = self.stream()
        if isinstance(stream, RowStream):
            return stream
        message = f"scan `{self.scan.name}` runs on a {kind_of(self.scan.topology)}, whose steps are not all alike"
        raise call_error("STM5211", message, help="go node by node, `op.step(state, ...)`, or call it as a whole")

    def zero_state(self) -> State:
        """An initial state of zeros."""
        accumulator = self.compilation.program.accumulator
        return tuple(
            {port: jnp.zeros(shape, accumulator) for port, shape in shapes.items()} for shapes in self.signature.initial
        )

    def example(self, seed: int = 0) -> tuple[Array, Array, Array, dict[str, Array]]:
        """Random `q, k, v, gates` that fit, standard normal (given leaves uniform within their bounds). Raises SpecError
        (STM5010) for a `seed` that is no whole number from 0 on."""
        number = whole_number(seed)
        if number is None or number < 0:
            raise call_error("STM5010", f"`seed` must be a whole number from 0 on, not {seed!r:.80}")
        generator, dtype = np.random.default_rng(number), self.compilation.program.dtype

        def normal(shape: Sequence[int]) -> Array:
            return jnp.asarray(generator.standard_normal(shape), dtype)

        q, k, v = (normal(shape) for shape in self.signature.inputs.values())
        gates: dict[str, Array] = {}
        for name, shape in self.signature.gates.items():
            leaf = self.scan.leaf(name)
            low, high = max(leaf.low, -1.0), min(leaf.high, 1.0)
            bounded = leaf.kind == "given" and low <= high
            gates[name] = jnp.asarray(generator.uniform(low, high, shape), dtype) if bounded else normal(shape)
        return q, k, v, gates

    def draw(self, what: What = "all", *, node: int | None = None, gates: Mapping[str, Any] | None = None) -> Pictures:
        """Pictures, shown by a notebook and written by `save`: `topology`, `gates`, `receptive` (of a node, by its number, with
        the values of leaves in `gates`, else those at which a layer starts), `plan`, `memory`, or all of them. Needs
        matplotlib.

        Raises SpecError: STM5213 for what cannot be drawn, STM52xx for gates that do not fit."""
        if word("what", what, WHAT) and gates is not None:
            inputs = {name: np.broadcast_to(np.float32(0), shape) for name, shape in self.signature.inputs.items()}
            check_arguments(self.signature, inputs, gates, None, padded=self.compilation.at_run_time)
        leaves = None if gates is None else {name: np.asarray(array, np.float64) for name, array in gates.items()}
        return pictures_of(what, self.compilation.facts, self.dag, self.plan, node=node, leaves=leaves)

    def _repr_html_(self) -> str | None:
        """Topology and plan, for notebooks; None, and so text, where matplotlib is not installed."""
        if importlib.util.find_spec("matplotlib") is None:
            return None
        return "".join(self.draw(what).html() for what in ("topology", "plan"))

    def at(self, nodes: Sequence[int]) -> CompiledScan:
        """This scan, if node arrays have this shape. Raises SpecError (STM5201) if not. (`OpenScan` compiles for it.)"""
        shape, expected = node_shape(nodes), self.node_shape
        if shape != expected:
            lead = len(shape) - len(expected)
            help = mapped("op") if lead > 0 and shape[lead:] == expected else None
            raise call_error("STM5201", f"node arrays of scan `{self.scan.name}` begin with {expected}, not {shape}", help=help)
        return self

    @property
    def scan(self) -> Scan:
        """The typed scan that runs: stabilized."""
        return self.compilation.facts.scan

    @property
    def dtype(self) -> str:
        """The data type of results."""
        return self.signature.dtype

    @property
    def dag(self) -> DAG:
        """The graph. Of a scan whose graphs come at run time, the batch's as its tables have it, which while a call is traced
        are not known: raises SpecError (STM3301) then."""
        program = self.compilation.program
        if not self.compilation.at_run_time:
            return program.dag
        sites = self.tables[0].sites
        assert sites is not None
        if isinstance(sites.tail, Tracer):
            unknown = call_error(
                "STM3301",
                f"the graph of scan `{self.scan.name}` is an argument of the function that is being compiled, so not known",
                help="ask for it outside, or for its shape: `node_shape`, `edge_count`",
            )
            raise UnavailableError(unknown.diagnostics)
        ends = tuple(np.asarray(end, np.int64) for end in (sites.tail, sites.head))
        tail, head = ends[:: self.scan.directions[0].senses[0]]
        dag = DAG(program.dag.node_shape, tail, head, program.dag.port, program.dag.ports)
        return replace(dag, spare_line_edges=program.dag.line_rows - len(dag.line_edges))

    @property
    def node_shape(self) -> tuple[int, ...]:
        """The shape that node arrays begin with."""
        return self.compilation.program.dag.node_shape

    @property
    def edge_count(self) -> int:
        """How many edges there are, and rows of edge arrays."""
        return self.compilation.program.dag.edge_count

    @property
    def facts(self) -> Facts:
        return self.compilation.facts

    @property
    def plan(self) -> Plan:
        return self.compilation.plan

    @property
    def signature(self) -> Signature:
        return self.compilation.signature

    def explain(self) -> str:
        """Facts, the stability verdict with its reason, and every candidate with its costs and why it lost."""
        text, request = explain_text(self.plan, show_facts(self.facts)), self.compilation.request
        batch = self.plan.circumstances.batch
        _, alone = self.compilation.runs(batch, "inference", masked=False)
        said = [] if alone == self.compilation.program else [ALONE.format(alone.choice.label, batch)]
        said += [] if request is None or request.one_batch else [MAPPED]
        return "\n".join([text, *said, ""]) if said else text

    def plan_for(self, batch: int, mode: Literal["training", "inference"] | None = None) -> Plan:
        """The plan that a call follows when `jax.vmap` maps it over `batch` examples and it is differentiated (`training`) or
        not (`inference`); without a mode, that which the scan was compiled for. It is `plan` where a strategy with its settings
        was given to `compile`, whatever the batch where that was given, and never one for training where the scan was compiled
        for inference. Raises SpecError: STM5005 where nothing fits, STM5010 for no such number or mode."""
        own = self.compilation.program.problem.mode
        asked = own if mode is None else cast(Mode, word("mode", mode, get_args(Mode)))
        return self.compilation.plan_for(positive("batch", batch), asked)

    def lower_text(self, kind: Literal["jaxpr", "stablehlo"]) -> str:
        """The program of one unbatched call. Raises SpecError (STM5010) for another kind of text."""
        chosen = cast(Any, word("program text", kind, ("jaxpr", "stablehlo")))
        return lower_text(self.compilation.program, self.tables, self.signature, chosen)

    def export(
        self,
        path: str | PathLike[str],
        platforms: Sequence[str] | None = None,
        batch: int | Literal["symbolic"] | Sequence[int | Literal["symbolic"] | None] | None = "symbolic",
        with_state: bool = False,
        step: bool = False,
    ) -> None:
        """Write an artifact: see `stmlang.runtime.artifact.export`. With `step` it holds the step of a chain or grid too.
        Raises SpecError (STM5211) for the steps of anything else. Of a scan on graphs that came at run time it holds the tables
        of these graphs alone; `GraphScan.export` writes one for any.
        """
        stream = self._rows() if flag("step", step) else None
        export(self.compilation, self.tables, path, platforms, batch, with_state, stream)

    def part(
        self, platforms: Sequence[str], batch: int | Literal["symbolic"] | None, with_state: bool = False, step: bool = False
    ) -> Part:
        """What `export` would write, to be written with others: `stmlang.runtime.artifact.write_scans`. Raises SpecError as
        `export` does."""
        stream = self._rows() if step else None
        return scan_part(self.compilation, self.tables, platforms_of(platforms), export_batch(batch), with_state, stream)


def compiled(prepared: Prepared, plan: Plan, request: Request | None = None) -> CompiledScan:
    """The last step of the compiler: a scan as planned, and, with a request, planned anew for calls of another kind."""
    if on(COMPILE):
        listen()
    compilation = compilation_of(prepared, plan, request)
    with timed(COMPILE, f"tables of {compilation.program.choice.label}") as remarks:
        tables = on_device(compilation.program.tables)
        remarks.append(units.size(sum(table.nbytes for table in jax.tree.leaves(tables))))
    return CompiledScan(tables, compilation)


def compile_scan(scan: Scan, call: Call, request: Request, batch: Batch | None = None) -> CompiledScan:
    """All steps for a checked scan whose sizes are known, or, where its graphs come at run time, for the room of a batch of
    them. Raises SpecError where no strategy can evaluate it."""
    prepared = prepare(scan, call) if batch is None else prepare(scan, call, graph=batch.dag, room=batch.room)
    further = None if request.settled or batch is not None else request
    return compiled(prepared, plan_of(prepared, request), further)
