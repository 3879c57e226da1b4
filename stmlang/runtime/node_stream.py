"""A tree, DAG or product node by node: each step the same compiled program.

The state is that of all edges that are alive between two nodes, a cut of the graph, in as many slots as the largest cut of the
walk has edges: see `stmlang.graph.walk`. It is in float32 at least, whatever the data type of the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from stmlang.cost.candidate import Choice
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings
from stmlang.graph.dag import DAG
from stmlang.graph.shapes import Shape, edge_state_shape
from stmlang.lower.sites import leaf_site
from stmlang.lower.tables import take
from stmlang.program.node_step import (
    NodeState,
    NodeTables,
    arguments_at,
    degrees_of,
    node_row,
    node_tables,
    place,
    sites_of,
    star_leaf,
)
from stmlang.program.program import Bundle, Program
from stmlang.program.states import State
from stmlang.runtime.compilation import Compilation, on_device
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.signature import Signature, call_error, check_arguments, check_state, is_array
from stmlang.runtime.steps import node_step, require_advance
from stmlang.scan.scan import Leaf, Scan
from stmlang.strategies.registry import reference_strategy

Gates = Mapping[str, Array]


class NodeStream(eqx.Module):
    """A tree, DAG or product node by node, in an order in which every edge leads forward: that of their numbers where they are
    numbered so, else always the least node that can be next. `order` lists them. `compilation` is that of the scan on the graph
    of one node.

    A node's arrays are its own: `q`, `k`, `v` as `(head, index)`; of a leaf with one value for each edge a row for each edge
    that leaves (enters) the node, in the order of their numbers, filled up to as many rows as any node has; of one with a value
    for each pair of edges, `(leaving, entering, head, ...)`. What stands in rows that a node does not have is not looked at.
    `arguments` takes all of it from arrays of the whole graph.
    """

    tables: NodeTables
    compilation: Compilation = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    @property
    def scan(self) -> Scan:
        return self.compilation.facts.scan

    @property
    def order(self) -> Array:
        """The nodes in the order of the steps."""
        return jnp.asarray(self.tables.order)

    @property
    def _star(self) -> DAG:
        return self.compilation.program.dag

    @property
    def signature(self) -> Signature:
        """What a step takes and gives: arrays of one node."""
        whole, scan, (into, out) = self.compilation.signature, self.scan, degrees_of(self._star)
        rows = {"constant": (), "node": (), "in": (into,), "out": (out,), "line": (out, into)}

        def own(leaf: Leaf) -> Shape:
            shape = whole.gates[leaf.name]
            return shape if leaf.kind == "param" else (*rows[leaf_site(leaf)], *shape[1:])

        return Signature(
            inputs={name: shape[1:] for name, shape in whole.inputs.items()},
            gates={leaf.name: own(leaf) for leaf in scan.leaves},
            result=whole.result[1:],
            initial=(self._open(self.tables.entering),),
            final=(self._open(self.tables.leaving),),
            dtype=whole.dtype,
        )

    def init_state(self, initial: State | None = None) -> NodeState:
        """The state before the first node: zero, or the initial state of a whole pass."""
        kind = self.compilation.program.accumulator
        edges = jnp.zeros((len(self.tables.held), *edge_state_shape(self.scan)), kind)
        if initial is not None:
            check_state("initial", self.signature, initial)
            rows = jnp.concatenate([jnp.asarray(initial[0][port], kind) for port in self._star.ports])
            edges = edges.at[jnp.concatenate(self.tables.entering)].set(rows)
        return NodeState(edges, jnp.zeros((), jnp.int32))

    def final_state(self, state: NodeState) -> State:
        """What a whole pass hands over, once the last node is behind."""
        self._check(state)
        return ({port: take(state.edges, slots, 0) for port, slots in zip(self._star.ports, self.tables.leaving, strict=True)},)

    def step(
        self,
        state: NodeState,
        q: Float[Array, "head key"],
        k: Float[Array, "head key"],
        v: Float[Array, "head value"],
        gates: Gates,
        *,
        advance: Bool[Array, ""] | bool | None = None,
        donate: bool = False,
    ) -> tuple[Float[Array, "head value"], NodeState]:
        """The result of the next node and the state behind it; `advance` and `donate` as on chains. Behind the last node
        nothing happens. Raises SpecError (STM52xx) for missing, unknown or misshapen arguments."""
        check_arguments(self.signature, {"q": q, "k": k, "v": v}, gates, None, what="op.step")
        self._check(state)
        inputs = {"q": q[None], "k": k[None], "v": v[None]}
        return self.stepped(state, inputs, self.lifted(state, gates), advance=advance, donate=donate)

    def stepped(
        self, state: NodeState, inputs: Gates, gates: Gates, *, advance: Any = None, donate: bool = False
    ) -> tuple[Array, NodeState]:
        """`step` with the arrays that the scan on one node takes."""
        moving = require_advance(advance)
        return node_step(donate, self.compilation, self.tables, state, dict(inputs), dict(gates), moving)

    def arguments(self, step: Any, q: Array, k: Array, v: Array, gates: Gates) -> tuple[Array, Array, Array, dict[str, Array]]:
        """Of the arrays of a whole pass those of the node of a step, counted from 0."""
        at = place(self.tables, self._star, step)
        query, key, value = (node_row(self.tables, at, jnp.asarray(array), 2) for array in (q, k, v))
        own = {
            leaf.name: arguments_at(self.tables, self._star, leaf, step, jnp.asarray(gates[leaf.name]))
            for leaf in self.scan.leaves
        }
        return query, key, value, own

    def tables_at(self, state: NodeState) -> tuple[Bundle, ...]:
        """The tables of the scan on one node, at the next one."""
        return (Bundle(sites_of(self.tables, place(self.tables, self._star, state.step)), None, None),)

    def edges_at(self, state: NodeState, features: Array | None) -> Array | None:
        """Of the features of all edges those of the next node, as the scan on one node takes them."""
        if features is None:
            return None
        at = place(self.tables, self._star, state.step)
        rows = take(jnp.asarray(features), jnp.concatenate([at.into, at.out]), 0)
        return jnp.concatenate([rows, jnp.zeros((1, *rows.shape[1:]), rows.dtype)])

    def lifted(self, state: NodeState, gates: Gates) -> dict[str, Array]:
        """Leaves of the next node as the scan on one node takes them."""
        at = place(self.tables, self._star, state.step)
        return {name: star_leaf(self.scan.leaf(name), jnp.asarray(array), at) for name, array in gates.items()}

    def _check(self, state: Any) -> None:
        shape = (len(self.tables.held), *edge_state_shape(self.scan))
        if not isinstance(state, NodeState) or not is_array(state.edges) or tuple(state.edges.shape) != shape:
            shown = tuple(state.edges.shape) if isinstance(state, NodeState) and is_array(state.edges) else type(state).__name__
            message = f"`state` must be what `init_state` or a step has returned, with edges of the shape {shape}, not {shown}"
            raise call_error("STM5204", message)

    def _open(self, slots: tuple[Any, ...]) -> dict[str, Shape]:
        """Shapes of the states of open edges by port."""
        tail = edge_state_shape(self.scan)
        return {port: (len(places), *tail) for port, places in zip(self._star.ports, slots, strict=True)}


def node_stream(compilation: Compilation, dag: DAG, mask: Any, *, rounded: bool) -> NodeStream:
    """A compiled scan on a graph, node by node; `mask` says which line edges count, None where all do. `rounded` makes sizes
    powers of two, for graphs that come at run time."""
    tables, star_graph = node_tables(dag, None if mask is None else np.asarray(mask), rounded=rounded)
    problem = compilation.program.problem
    of_node = Problem.of(problem.scan, star_graph, problem.dtype, facts=problem.facts, mode=problem.mode)
    program = Program(of_node, star_graph, Choice(reference_strategy().name, NoSettings()))
    signature = Signature.of(problem.scan, star_graph, problem.dtype)
    node = Compilation(compilation.declared, compilation.facts, compilation.plan, program, signature)
    return NodeStream(on_device(tables), node)
