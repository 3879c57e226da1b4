"""What is to be planned: everything static about a scan that strategies and costs need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from stmlang.cost.counts import Counts, Cut, interval_cut, ragged_counts, regular_counts, room_counts
from stmlang.cost.errors import plan_error
from stmlang.facts import Facts
from stmlang.graph.capacity import Capacity
from stmlang.graph.dag import DAG
from stmlang.graph.levels import topological_order
from stmlang.graph.limits import LARGEST, refuse_above_largest
from stmlang.graph.topology import dag_of
from stmlang.scan.expression import PORT_INDICES, STATE_INDICES, Index
from stmlang.scan.scan import Direction, Leaf, Scan, own_inputs
from stmlang.scan.sizes import dense_size, unbound
from stmlang.scan.steps import unrolled
from stmlang.scan.topology import Regular
from stmlang.source import short
from stmlang.source.diagnostic import SpecError
from stmlang.source.span import Span

if TYPE_CHECKING:
    from jaxtyping import Int64

DtypeName = Literal["float32", "float64", "bfloat16"]
Mode = Literal["inference", "training"]
ITEM_BYTES: dict[str, int] = {"float32": 4, "float64": 8, "bfloat16": 2}
CORE_GATES = ("source", "transition", "mark", "direct")


@dataclass(frozen=True, eq=False)
class Problem:
    """A stabilized scan on a topology of known size, and how it will be called.

    `facts` is the result of `stmlang.facts.analyse`. `axes` are the sizes of a regular topology's axes, else None, and then
    `dag` is there, or, for graphs given at run time, the `room` that there is for them. `memory_limit` is in bytes, None for
    what the target has. `batch` is how many scans a call evaluates at once (`vmap`); all costs grow with it, sequential steps
    do not.
    """

    scan: Scan
    facts: Facts | None
    dag: DAG | None
    counts: Counts
    axes: tuple[int, ...] | None
    dtype: DtypeName
    mode: Mode
    memory_limit: int | None
    batch: int
    room: Capacity | None = None

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<Problem {self.scan.name}: {self.counts.nodes} nodes, {self.dtype}, {self.mode}, batch {self.batch}>"

    @classmethod
    def of(
        cls,
        scan: Scan,
        dag: DAG | None,
        dtype: DtypeName = "float32",
        *,
        facts: Facts | None = None,
        mode: Mode = "training",
        memory_limit: int | None = None,
        batch: int = 1,
        room: Capacity | None = None,
    ) -> Problem:
        """Count the topology and check the call.

        Without `dag` the counts of a regular topology are computed in closed form, and other graphs are built. Raises SpecError
        where a size is unbound (STM5001), the graph comes at run time (STM3301), a count passes 2^31 (STM3303) or an option
        is out of range (STM5010).
        """
        _check_options(dtype, mode, memory_limit, batch)
        _check_normalized(scan)
        axes = regular_axes(scan) if dag is None or dag.regular is None else dag.regular
        if axes is None and dag is None and room is None:
            dag = dag_of(scan.topology)
        if room is not None:
            counts = room_counts(room)
        else:
            counts = ragged_counts(dag) if axes is None and dag is not None else regular_counts(axes or ())
        for what, count in (("nodes", counts.nodes * scan.steps), ("edges", counts.edges * scan.steps)):
            refuse_above_largest(what, count, scan.topology.span)
        # On a ragged topology there may be a way to do without them.
        if axes is not None or any(set(PORT_INDICES) <= set(leaf.indices) for leaf in scan.leaves):
            refuse_above_largest("line edges", counts.line_edges, scan.topology.span)
        return cls(scan, facts, dag, counts, axes, dtype, mode, memory_limit, batch, room)

    def called(self, batch: int, mode: Mode) -> Problem:
        """The same for calls of a mode that are mapped over a batch. What was found out of the graph is kept."""
        return self._on_the_same_graph(replace(self, batch=batch, mode=mode))

    @cached_property
    def one_each(self) -> Problem:
        """The same with one write and one read a node, each pair of them being a head: what a strategy is given that knows one
        of each (`stmlang.program.terms`)."""
        if self.writes == self.reads == 1:
            return self
        scan = replace(self.scan, heads=self.heads * self.writes * self.reads, writes=1, reads=1)
        return self._on_the_same_graph(replace(self, scan=scan))

    @cached_property
    def unrolled(self) -> Problem:
        """The same with a node for each step: what every strategy is given (`stmlang.scan.steps`)."""
        if self.scan.steps == 1:
            return self
        assert self.axes is not None
        axes = tuple(size * self.scan.steps for size in self.axes)
        return replace(self, scan=unrolled(self.scan), dag=None, counts=regular_counts(axes), axes=axes)

    @cached_property
    def apart(self) -> Problem:
        """The same for a strategy whose directions share their inputs, where these do not: on a chain or grid each direction is
        a head, since it is a flip of the nodes; elsewhere it is evaluated by itself (`stmlang.program.own_inputs`)."""
        scan = self.scan
        if not own_inputs(scan):
            return self
        if self.axes is None:
            return self._on_the_same_graph(replace(self, scan=replace(scan, combine="concat")))
        forward = Direction((1,) * len(self.axes))
        heads = scan.heads * len(scan.directions)
        return replace(self, scan=replace(scan, heads=heads, directions=(forward,), combine="sum"))

    def _on_the_same_graph(self, other: Problem) -> Problem:
        if self.dag is not None and self.axes is None:
            other.__dict__.update(_cuts=self._cuts, _order=self._order)
        return other

    def state_of(self, gate: str) -> set[Index]:
        """The state indices of a gate."""
        return {index for index in self.scan.gate(gate).indices if index in STATE_INDICES}

    @property
    def heads(self) -> int:
        return self.scan.heads

    @property
    def key(self) -> int:
        return self.scan.key

    @property
    def value(self) -> int:
        """Columns of the state: one more than the spec's `value` where a normalizer is carried along."""
        return self.scan.value + (self.scan.normalize != "none")

    @property
    def track(self) -> int:
        return self.scan.track

    @property
    def writes(self) -> int:
        return self.scan.writes

    @property
    def reads(self) -> int:
        return self.scan.reads

    @property
    def directions(self) -> int:
        return len(self.scan.directions)

    @property
    def training(self) -> bool:
        return self.mode == "training"

    @property
    def lanes(self) -> int:
        """How many independent scans there are: batch, heads, directions."""
        return self.batch * self.heads * self.directions

    @property
    def state(self) -> int:
        """Numbers in the state of one edge."""
        return self.key * self.value * self.track

    @property
    def item(self) -> int:
        """Bytes of a number of the data type."""
        return ITEM_BYTES[self.dtype]

    @property
    def accumulator(self) -> int:
        """Bytes of a number in states and gating matrices: bfloat16 accumulates in float32."""
        return max(4, self.item)

    @cached_property
    def state_indices(self) -> frozenset[Index]:
        """The state indices that source, transition, mark or direct carry: empty if every gate is a scalar per head."""
        return frozenset[Index]().union(*(self.state_of(name) for name in CORE_GATES))

    @cached_property
    def io_bytes(self) -> int:
        """Bytes of q, k, v, the result and the gates' leaves, for the whole batch."""
        terms = {"q": self.key * self.reads, "k": self.key * self.writes, "v": self.scan.value * self.writes}
        own = own_inputs(self.scan)
        columns = sum(size * (self.directions if name in own else 1) for name, size in terms.items())
        outputs = self.reads * self.scan.value * (self.directions if self.scan.combine == "concat" else 1)
        arrays = self.counts.nodes * self.heads * (columns + outputs)
        return self.batch * self.item * (arrays + sum(self._leaf_numbers(leaf) for leaf in self.scan.leaves))

    def _leaf_numbers(self, leaf: Leaf) -> int:
        """Numbers in a leaf's array, by the rule of `stmlang.scan.Leaf`."""
        ports = [index for index in leaf.indices if index in PORT_INDICES]
        state = prod(dense_size(self.scan, index) for index in leaf.indices if index not in PORT_INDICES)
        if leaf.kind == "param":
            base = 1
        elif self.axes is not None:
            base = self.counts.nodes * len(self.axes) ** len(ports)
        else:
            base = (self.counts.nodes, self.counts.edges, self.counts.line_edges)[len(ports)]
        return base * self.heads * (self.directions if leaf.directional else 1) * state

    def cut(self, size: int) -> Cut:
        """The cut of a ragged topology's level order into intervals of `size` nodes. Strategies ask for the same ones."""
        if size not in self._cuts:
            if self.dag is None:
                raise ValueError("only ragged topologies are cut into intervals")
            self._cuts[size] = interval_cut(self.dag, self._order, size)
        return self._cuts[size]

    @cached_property
    def _cuts(self) -> dict[int, Cut]:
        return {}

    @cached_property
    def _order(self) -> Int64[np.ndarray, " nodes"]:
        return topological_order(self.dag) if self.dag is not None else np.zeros(0, np.int64)


def regular_axes(scan: Scan) -> tuple[int, ...] | None:
    """Axis sizes of a regular topology, None for others. Raises SpecError (STM5001) where a size is unbound."""
    names = unbound(scan)
    if names:
        raise unbound_error(names, scan.topology.span)
    if not isinstance(scan.topology, Regular):
        return None
    return tuple(axis.size for axis in scan.topology.axes if axis.size is not None)


def unbound_error(names: Sequence[str], span: Span | None) -> SpecError:
    """The error for axes whose size nobody gave."""
    plural = "s" if len(names) > 1 else ""
    return plan_error(
        "STM5001",
        f"the size{plural} {', '.join(f'`{name}`' for name in names)} must be known to plan this scan",
        span=span,
        help=f"give {'them' if plural else 'it'} at compile time, `{', '.join(f'{name}=N' for name in names)}` in Python or "
        f"`{' '.join(f'--set {name}=N' for name in names)}` on the command line, or a default in the topology",
    )


def _check_normalized(scan: Scan) -> None:
    """Raises SpecError (STM5011) where a normalized scan acts on the value axis: its column of ones has no such entry."""
    for gate in (scan.gate(name) for name in CORE_GATES) if scan.normalize != "none" else ():
        if {"value", "value'"} & set(gate.indices):
            raise plan_error(
                "STM5011",
                f"`{gate.name}` acts on the value axis of a normalized scan",
                span=gate.span,
                notes=(
                    f"`normalize {scan.normalize}` carries a column of ones beside the values, which no gate may tell apart",
                ),
                help="take the index away, or write `normalize none`",
            )


def _check_options(dtype: str, mode: str, memory_limit: int | None, batch: int) -> None:
    for what, value, known in (("data type", dtype, get_args(DtypeName)), ("mode", mode, get_args(Mode))):
        if value not in known:
            raise plan_error("STM5010", f"unknown {what} `{value}`", help=f"choose one of {', '.join(known)}")
    if memory_limit is not None and memory_limit <= 0:
        raise plan_error("STM5010", f"the memory limit must be a positive number of bytes, not {memory_limit}")
    if not 0 < batch <= LARGEST:
        raise plan_error("STM5010", f"the batch must be a positive number below 2^31, not {batch}")
