"""Delta: chains whose states are overwritten, a few matrix products for a chunk and one state handed over between chunks.

    C[n]  =  a[n] (I - b[n] u[n] u[n]^T) C[n-1]  +  k[n] v[n]^T                  H[n]  =  q[n] . C[n-1]

(source and mark drawn into k, v and q.) What a step takes away is of rank one, `a b u y^T` with `y = u . C[n-1]`, so that a
step adds two outer products to a state that only fades, and with the products of fading of `stmlang.lower.segment_products`

    C[n-1]  =  into[n] C  +  sum over m < n of L[n, m] (k[m] v[m]^T - u[m] z[m]^T),          z[n] = a[n] b[n] y[n]

Multiplied by `u[n]` from the left this is a triangular system for z, whose matrix does not depend on the state:

    (I + diag(a b) (L o U U^T)) Z  =  diag(a b) (into o U C  +  (L o U K^T) V)

Where u is the key itself what is written and what is taken away join, `W = V - Z`, and one system gives what is new:

    (I + diag(a b) (L o K K^T)) W  =  V - diag(a b) (into o K C)
"""

from __future__ import annotations

from typing import NamedTuple, Self, cast

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from stmlang.cost.chains import Chunk
from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.chunks import State, chunk_scan
from stmlang.lower.contractions import contract, transposed
from stmlang.lower.delta_inputs import delta_inputs
from stmlang.lower.operands import Operands
from stmlang.lower.segment_products import Paths, paths
from stmlang.lower.strategy import LoweringContext, Tables, no_tables
from stmlang.lower.triangular import propagated


class Nodes(NamedTuple):
    """Of scale one where there is none; `u` only where it is not the key."""

    scale: Float[Array, "node lane 1"] | None
    strength: Float[Array, "node lane 1"]
    u: Float[Array, "node lane key"] | None
    query: Float[Array, "node lane key"]
    key: Float[Array, "node lane key"]
    value: Float[Array, "node lane value"]

    def idle(self, own: Bool[Array, "node 1 1"]) -> Self:
        """See `stmlang.lower.chunks.Nodes`."""
        scale = None if self.scale is None else jnp.where(own, self.scale, 1)
        return self._replace(scale=scale, strength=jnp.where(own, self.strength, 0), value=jnp.where(own, self.value, 0))


def _run(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    del tables
    assert operands.deltas is not None
    directions, heads, length = operands.value.shape[:3]
    size = cast(Chunk, context.settings).chunk

    def first(array: Array) -> Array:
        """`(direction, head, node, ...)` as `(node, lane, ...)`."""
        return jnp.moveaxis(array, 2, 0).reshape(length, directions * heads, -1)

    step, inputs = operands.deltas.transition, delta_inputs(operands)
    value = inputs.value if inputs.source is None else inputs.value * inputs.source
    nodes = Nodes(
        None if step.scale is None else first(step.scale),
        first(step.strength),
        None if inputs.u is None else first(inputs.u),
        first(inputs.query if inputs.mark is None else inputs.query * inputs.mark),
        first(inputs.key),
        first(value),
    )
    state = initial.reshape(directions * heads, *initial.shape[-2:])
    outputs, final = chunk_scan(_chunk, size)(nodes, state)
    outputs = jnp.moveaxis(outputs.reshape(length, directions, heads, -1), 0, 2)
    return outputs if inputs.seen is None else outputs * inputs.seen, final.reshape(initial.shape)


def _chunk(nodes: Nodes, state: State) -> tuple[Array, State]:
    fading, erased = _fading(nodes)
    key, query, value = (jnp.swapaxes(vectors, 0, 1) for vectors in (nodes.key, nodes.query, nodes.value))
    u = key if nodes.u is None else jnp.swapaxes(nodes.u, 0, 1)
    inside, into, out = fading.inside, fading.into[..., None], fading.out[..., None]
    # Transposed, as the system wants it: sources are rows.
    passed = -contract("lmk,lnk->lmn", u, u) * transposed(inside) * erased[:, None, :]
    held = contract("lnk,lkv->lnv", u * into, state)
    if nodes.u is not None:
        held = held + contract("lnm,lmv->lnv", contract("lnk,lmk->lnm", u, key) * inside, value)
    taken = -erased[..., None] * held
    new = propagated(passed, taken if nodes.u is not None else taken + value)
    outputs = contract("lnk,lkv->lnv", query * into, state)
    outputs = outputs + contract("lnm,lmv->lnv", contract("lnk,lmk->lnm", query, u) * inside, new)
    leaving = fading.through[:, None, None] * state + contract("lmk,lmv->lkv", u * out, new)
    if nodes.u is not None:
        outputs = outputs + contract("lnm,lmv->lnv", contract("lnk,lmk->lnm", query, key) * inside, value)
        leaving = leaving + contract("lmk,lmv->lkv", key * out, value)
    return jnp.swapaxes(outputs, 0, 1), leaving


def _fading(nodes: Nodes) -> tuple[Paths, Array]:
    """Products of scales, and scale times strength as `(lane, node)`."""
    strength = jnp.swapaxes(nodes.strength[..., 0], 0, 1)
    if nodes.scale is not None:
        scale = jnp.swapaxes(nodes.scale[..., 0], 0, 1)
        return paths(scale), scale * strength
    lanes, places = strength.shape
    one = jnp.ones((), strength.dtype)
    ones = jnp.broadcast_to(one, (lanes, places))
    inside = jnp.broadcast_to(jnp.tril(jnp.broadcast_to(one, (places, places)), -1), (lanes, places, places))
    return Paths(inside, ones, ones, jnp.broadcast_to(one, (lanes,))), strength


LOWERING = direction_by_direction(no_tables, _run)
