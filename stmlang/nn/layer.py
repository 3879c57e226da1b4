"""A compiled scan as a layer: from node features to node features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Literal, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from stmlang.graph.shapes import head_axes, output_heads, several
from stmlang.nn.errors import (
    require_epsilon,
    require_floats,
    require_key,
    require_probability,
    require_scan,
    require_size,
)
from stmlang.nn.features import Features, multiplied
from stmlang.nn.leaves import Leaves, applied
from stmlang.nn.norm import Norm, norm_of
from stmlang.nn.projection import Projection
from stmlang.nn.show import summary
from stmlang.nn.start import SMALL, normal
from stmlang.program.states import State
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.graphs import GraphScan
from stmlang.runtime.masks import require_mask, require_segments
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.open import OpenScan
from stmlang.runtime.options import node_shape, word
from stmlang.runtime.sharded import ShardedScan
from stmlang.runtime.sharded_graphs import ShardedGraphs, ShardedGraphScan
from stmlang.runtime.signature import call_error, flag, jax_type, widest
from stmlang.runtime.steps import require_advance
from stmlang.runtime.stream import ScanStream

NONE_GIVEN: Mapping[str, Array] = {}
Activation = Literal["silu", "sigmoid", "gelu", "relu", "tanh"]
Scanned = tuple[Array, Any]
"""What a scan gives, `(*nodes, head, value)`, and the state behind it, None where it was not asked for."""
Scanning = Callable[[CompiledScan, Array, Array, Array, dict[str, Array], Array | None], Scanned]
"""A way to run a scan on query, key, value, gates and a mask."""


class ScanLayer(eqx.Module):
    """The layer of a scan: projections, the gates that its spec declares, the scan, a norm for each head, a projection back.

        q, k, v = W_q x + b_q, W_k x + b_k, W_v x + b_v           one of each for all directions, or as the spec says for each
        y       = W_out norm(scan(q / sqrt(key), k, v, gates(x, e)))

    One example a call, `x: (*nodes, dim)`; batches by `jax.vmap`. On trees, DAGs and products a spec may read edge features
    too: `layer(x, edge_features=e)`, `e: (edges, edge_dim)` in the order of `op.dag`. With `end_features=f`, `f: (nodes,
    edge_dim)`, those of an edge are `e + (f[tail] + f[head]) / 2`, open ends counting as zero. Leaves that the spec declares as
    `given` come as `given={name: array}`. Parameters are in float32 (float64 for a float64 scan); projections are computed in
    the scan's data type, and the result has that of `x`.

    *Norm.* `norm="rms"` divides each head by its root mean square, so that `y` is the same for `v` and `10 v`; `norm=None`
    leaves it, and the layer is linear in `v`, as a moving average should be. Nodes that read several times have an axis of them
    behind the heads, and each read is normalized by itself. Any function of `(*nodes, head, value)` that keeps
    the shape will do, an Equinox module among them. *Output gate.* `gate="silu"`, or another activation, multiplies what is
    normalized by `activation(W_g x + b_g)`, of the same shape. *Dropout.* `dropout=p` drops entries of `y` with probability `p`
    and needs `key=` in each call, unless `eqx.nn.inference_mode(layer)` was applied.

    *States.* `layer(x, initial=state, return_state=True)` hands a sequence on: it starts from a state, zero if none is given,
    and returns the pair of `y` and the final state, both in the layout of the scan's `signature.initial`: for each direction a
    dictionary with an array for each port.

    *Steps.* `y, state = layer.step(state, x)` is the next node of a chain, `x: (dim,)`, the next row of a grid, or the next
    node of a tree or DAG, from `state = layer.init_state()` on; `layer.prefill(state, x)` takes many at once. Both are equal to
    the whole pass to rounding. See `CompiledScan.step`.

    *Masks.* `layer(x, mask=mask)`, `mask: (*nodes)` true for the nodes that count, on chains and grids: the result is that of
    the shorter chain, or of the image in a corner of the grid, in value and gradient, and zero at the other nodes. What `x`
    holds there reaches nothing. See `CompiledScan.__call__`.

    `op` is shared, not copied, by the layers that are given it; its arrays are index tables, which no gradient reaches. Where
    its axes have no sizes yet, the layer takes grids of any size: no parameter depends on it. An `op` that was compiled for
    `Lengths` fills up what it is given to one of few sizes, so that few programs are compiled. Where its graphs come at run
    time, each call is given the scan on them: `layer(x, on=layer.op.at(batch))`, with features as `batch` lays them out. Where
    its nodes lie on several devices, so do those of `x` and `y`; there are no steps, and no masks. Where its graphs are divided
    among devices, features and `y` have an axis of devices in front.
    """

    op: CompiledScan | OpenScan | GraphScan | ShardedScan | ShardedGraphScan
    query: Projection
    key: Projection
    value: Projection
    leaves: Leaves
    norm: Norm | None
    gate: Projection | None
    out: Float[Array, "dim head *read value"]
    dropout: eqx.nn.Dropout | None
    dim: int = eqx.field(static=True)
    edge_dim: int = eqx.field(static=True)
    activation: Activation | None = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(
        self,
        op: CompiledScan | OpenScan | GraphScan | ShardedScan | ShardedGraphScan,
        dim: int,
        *,
        key: PRNGKeyArray,
        edge_dim: int = 0,
        use_bias: bool = True,
        norm: Literal["rms"] | Norm | None = "rms",
        eps: float = 1e-5,
        gate: Activation | None = None,
        dropout: float = 0.0,
    ) -> None:
        """`use_bias` is about the projections to query, key, value and gate; `eps` about the norm "rms". Raises SpecError:
        STM5010 for an unknown norm or gate, STM5202 where the spec reads edge features and `edge_dim` is not given, STM5208 for
        anything that a layer cannot be made of."""
        op, key = require_scan("op", op), require_key(key)
        dim, edge_dim, use_bias = require_size("dim", dim), require_size("edge_dim", edge_dim, 0), flag("use_bias", use_bias)
        scan, eps = op.scan, require_epsilon(eps)
        if edge_dim == 0 and any(feature.name == "e" for leaf in scan.leaves for feature in leaf.features):
            message = f"scan `{scan.name}` reads edge features, but the layer was not told how many"
            raise call_error("STM5202", message, help="say so: `ScanLayer(op, dim, edge_dim=..., key=key)`")
        dtype = widest(op.dtype)
        writes, reads = several(scan.writes), several(scan.reads)
        result = (output_heads(scan), *reads, scan.value)
        keys = jax.random.split(key, 5)
        self.op, self.dim, self.edge_dim = op, dim, edge_dim
        query, keyed, value = (head_axes(scan, name) for name in ("q", "k", "v"))
        self.query = Projection((*query, *reads, scan.key), dim, use_bias=use_bias, dtype=dtype, key=keys[0])
        self.key = Projection((*keyed, *writes, scan.key), dim, use_bias=use_bias, dtype=dtype, key=keys[1])
        self.value = Projection((*value, *writes, scan.value), dim, use_bias=use_bias, dtype=dtype, key=keys[2])
        self.leaves = Leaves(scan, dim, edge_dim, dtype=dtype, key=keys[3])
        self.norm = norm_of(norm, result, eps, dtype)
        self.activation = None if gate is None else cast(Activation, word("gate", gate, get_args(Activation)))
        own = jax.random.fold_in(key, 1)
        self.gate = None if gate is None else Projection(result, dim, use_bias=use_bias, dtype=dtype, key=own)
        probability = require_probability("dropout", dropout)
        self.dropout = eqx.nn.Dropout(probability) if probability > 0 else None
        self.out = normal(keys[4], (dim, prod(result)), gain=SMALL, dtype=dtype).reshape(dim, *result)

    def __call__(
        self,
        x: Float[Array, "*nodes dim"],
        *,
        edge_features: Float[Array, "edges edge_dim"] | None = None,
        end_features: Float[Array, "nodes edge_dim"] | None = None,
        given: Mapping[str, Array] = NONE_GIVEN,
        on: CompiledScan | ShardedGraphs | None = None,
        initial: State | None = None,
        return_state: bool = False,
        mask: Bool[Array, "*nodes"] | None = None,
        segments: Int[Array, "*nodes"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> Any:
        """`y: (*nodes, dim)`; with `return_state` the pair of it and the final state, which like `initial` is the scan's own.

        `mask` is true for the nodes that count, `segments` are numbers of packed sequences, or of images side by side, that do
        not see each other; `key` is for dropout. Raises SpecError (STM52xx) where an array is missing or
        does not fit, naming both sides.
        """
        return_state = flag("return_state", return_state)
        if isinstance(on, ShardedGraphs):
            beside = {"initial": initial, "return_state": return_state or None, "mask": mask, "segments": segments}
            return self._on_devices(on, x, (edge_features, end_features, dict(given)), key, beside)
        states = return_state or initial is not None
        if segments is not None:
            nodes = require_floats("x", x).shape[:-1]
            segments, mask = require_segments(self.op.scan, nodes, segments, mask, states=states)
            if isinstance(self.op, OpenScan) and self.op.lengths:
                segments = self.op.fill(segments)

        def scanned(op: CompiledScan, q: Array, k: Array, v: Array, gates: dict[str, Array], mask: Array | None) -> Scanned:
            result = op(q, k, v, gates, initial, return_state, mask, segments)
            return result if return_state else (result, None)

        y, state = self._filled(scanned, x, edge_features, end_features, given, on, mask, key, states=states)
        return (y, state) if return_state else y

    def _on_devices(
        self,
        on: ShardedGraphs,
        x: Array,
        features: tuple[Array | None, Array | None, dict[str, Array]],
        key: PRNGKeyArray | None,
        beside: Mapping[str, Any],
    ) -> Array:
        """`y` of graphs that are divided among devices, each of which evaluates the layer on its own."""
        for name, argument in beside.items():
            if argument is not None:
                message = f"the graphs of scan `{on.scan.name}` are divided among devices, which takes no `{name}`"
                raise call_error("STM5604", message, help="leave it out")
        keys = None if key is None else jax.random.split(require_key(key), on.along.devices)

        def single(scan: CompiledScan, x: Array, features: Any, key: PRNGKeyArray | None) -> Array:
            edges, ends, given = features
            return self(x, edge_features=edges, end_features=ends, given=given, on=scan, key=key)

        return on.each(single, require_floats("x", x), features, keys)

    def init_state(self, initial: State | None = None, *, nodes: Sequence[int] = (), on: CompiledScan | None = None) -> Any:
        """The state before the first step: zero, or what a whole pass has left. Where a grid has no sizes yet, `nodes` are
        those of its axes but the first. Raises SpecError (STM5211) for a scan that runs against its steps."""
        return self._stream(node_shape(nodes), on).init_state(initial)

    def step(
        self,
        state: Any,
        x: Float[Array, "*row dim"],
        *,
        edge_features: Float[Array, "edges edge_dim"] | None = None,
        given: Mapping[str, Array] = NONE_GIVEN,
        on: CompiledScan | None = None,
        advance: Bool[Array, ""] | bool | None = None,
        key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "*row dim"], Any]:
        """`y` of the next node, or of the next row of a grid, and the state behind it.

        `x` and leaves that are `given` are those of a call without its first axis. On trees, DAGs and products `x: (dim,)` is
        that of one node, `given` what `step_arguments` of the scan takes from arrays of the whole graph, and `edge_features`
        are those of all edges. Where `advance` is false nothing happens: `y` is zero, and the state stays.
        """
        x = require_floats("x", x)
        stream, advance = self._stream(x.shape[:-1], on), require_advance(advance)
        one = CompiledScan(stream.tables_at(state), stream.compilation)
        lifted, edges = stream.lifted(state, given), stream.edges_at(state, edge_features)

        def scanned(_: CompiledScan, q: Array, k: Array, v: Array, gates: dict[str, Array], mask: Array | None) -> Scanned:
            del mask
            h, behind = stream.stepped(state, {"q": q, "k": k, "v": v}, gates, advance=advance)
            return h[None], behind

        y, state = self._mixed(scanned, one, x[None], edges, None, lifted, None)
        y = self._dropped(y[0], key)
        return (y if advance is None else jnp.where(advance, y, jnp.zeros_like(y))), state

    def prefill(
        self,
        state: Any,
        x: Float[Array, "*nodes dim"],
        *,
        given: Mapping[str, Array] = NONE_GIVEN,
        mask: Bool[Array, "*nodes"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "*nodes dim"], Any]:
        """Many steps of a chain or grid at once, as one call, from a state of steps to another: those of a prompt, say."""

        def scanned(op: CompiledScan, q: Array, k: Array, v: Array, gates: dict[str, Array], mask: Array | None) -> Scanned:
            return op.prefill(state, q, k, v, gates, mask)

        return self._filled(scanned, x, None, None, given, None, mask, key, states=True)

    def _stream(self, row: Sequence[int], on: CompiledScan | None) -> ScanStream:
        op = self.op
        return op.stream(*row) if isinstance(op, OpenScan) else self._op((), on).stream()

    def _filled(
        self,
        scanned: Scanning,
        x: Array,
        edge_features: Array | None,
        end_features: Array | None,
        given: Mapping[str, Array],
        on: CompiledScan | None,
        mask: Array | None,
        key: PRNGKeyArray | None,
        *,
        states: bool,
    ) -> Scanned:
        """`y` and the state of a scan over the nodes, which are filled up to one of few sizes where that was asked for."""
        nodes = require_floats("x", x).shape[:-1]
        bucketed = isinstance(self.op, OpenScan) and bool(self.op.lengths)
        if isinstance(self.op, OpenScan) and bucketed:
            given = {name: self.op.pad(array)[0] for name, array in given.items()}
            x, mask = self.op.pad(x, mask)
        op = self._op(require_floats("x", x).shape[:-1], on)
        if mask is not None:
            mask = require_mask(op.scan, op.node_shape, mask, states=states)
        y, state = self._mixed(scanned, op, x, edge_features, end_features, given, mask)
        return self._dropped(y[tuple(slice(size) for size in nodes)] if bucketed else y, key), state

    def _mixed(
        self,
        scanned: Scanning,
        op: CompiledScan,
        x: Array,
        edge_features: Array | None,
        end_features: Array | None,
        given: Mapping[str, Array],
        mask: Array | None,
    ) -> Scanned:
        """`y` before dropout, and the state."""
        x = x if mask is None else _masked(x, mask)
        projections = {"query": self.query, "key": self.key, "value": self.value}
        if self.gate is not None:
            projections["gate"] = self.gate
        weights = {name: projection.weight for name, projection in projections.items()}
        products, gates = multiplied(
            self.leaves, self.dim, self.edge_dim, op, Features(x, edge_features, end_features), weights, given
        )
        projected = {name: projection.of(products[name], op.dtype) for name, projection in projections.items()}
        query = projected["query"] * op.scan.key**-0.5
        mixed, state = scanned(op, query, projected["key"], projected["value"], gates, mask)
        y = self._project(mixed, projected.get("gate"), x)
        return (y if mask is None else _masked(y, mask)), state

    def _dropped(self, y: Array, key: PRNGKeyArray | None) -> Array:
        """`y` with entries dropped, where the layer has dropout and is not in inference mode."""
        if self.dropout is None:
            return y
        if key is None and not self.dropout.inference:
            help = "give one: `layer(x, key=key)`; or use the layer as it is after training: `eqx.nn.inference_mode(layer)`"
            raise call_error("STM5202", "`key` is missing: the layer has dropout", help=help)
        return self.dropout(y, key=key)

    def gates(
        self,
        x: Float[Array, "*nodes dim"],
        edge_features: Float[Array, "edges edge_dim"] | None = None,
        given: Mapping[str, Array] = NONE_GIVEN,
        on: CompiledScan | None = None,
        *,
        end_features: Float[Array, "nodes edge_dim"] | None = None,
    ) -> dict[str, Array]:
        """The values of the spec's leaves at these features, by name: the `gates` that `op` takes."""
        op = self._op(require_floats("x", x).shape[:-1], on)
        return multiplied(self.leaves, self.dim, self.edge_dim, op, Features(x, edge_features, end_features), {}, given)[1]

    def _op(self, nodes: tuple[int, ...], on: CompiledScan | None) -> CompiledScan:
        """The scan for node arrays of this shape, or on the graphs that are given."""
        op = self.op.one if isinstance(self.op, ShardedGraphScan) else self.op
        if not isinstance(op, GraphScan):
            if on is not None:
                raise call_error("STM5202", f"scan `{op.scan.name}` has its topology already", help="leave `on` out")
            # A scan in pieces is called and asked like any other.
            return cast(CompiledScan, op.at(nodes) if isinstance(op, (OpenScan, ShardedScan)) else op)
        if on is None:
            message = f"the graphs of scan `{op.scan.name}` come at run time, and none are given"
            raise call_error("STM5202", message, help="give the scan on a batch: `layer(x, on=layer.op.at(batch))`")
        return op.require(on)

    def _project(
        self, mixed: Float[Array, "*nodes head *read value"], gate: Float[Array, "*nodes head *read value"] | None, like: Array
    ) -> Float[Array, "*nodes dim"]:
        """The scan's result, each head normalized and gated, back to `dim` features of the data type of `like`."""
        normal = mixed if self.norm is None else self.norm(mixed)
        if normal.shape != mixed.shape:
            message = f"the layer's norm must keep the shape {mixed.shape}; what it gave has {normal.shape}"
            raise call_error("STM5201", message, help="it is given all heads of all nodes at once: `(*nodes, head, value)`")
        if gate is not None:
            assert self.activation is not None
            normal = normal * ACTIVATIONS[self.activation](gate).astype(normal.dtype)
        return applied(self.out, normal, self.out.ndim - 1, normal.dtype).astype(jax_type(like))


ACTIVATIONS: Mapping[Activation, Callable[[Array], Array]] = {
    "silu": jax.nn.silu,
    "sigmoid": jax.nn.sigmoid,
    "gelu": jax.nn.gelu,
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
}


def _masked(array: Array, mask: Array) -> Array:
    """An array `(*nodes, features)`, zero at the nodes that do not count."""
    return jnp.where(mask[..., None], array, jnp.zeros((1,) * array.ndim, array.dtype))
