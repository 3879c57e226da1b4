"""The states that enter and leave a piece across cuts: those of all ports that are cut side by side, `(edge, *state)`, and
these as lanes, numbers that are mixed and columns that are alike (`stmlang.cost.exchange`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from stmlang.cost.exchange import Border, Side
from stmlang.graph.shapes import Shape, edge_state_shape
from stmlang.runtime.cut import Cut
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Regular


def _axes(scan: Scan, rank: int) -> tuple[list[int], list[int], list[int]]:
    """The axes of states that cross cuts, `(edge, head, [track], key, value)`: those along which `T` is diagonal, those that
    it mixes and those along which it is the same."""
    names = ("track", "key", "value") if scan.track > 1 else ("key", "value")
    first = rank - len(names)
    indices = cast(tuple[str, ...], scan.gate("transition").indices)
    lanes, mixed, free = [1], [0], list[int]()
    for axis, name in enumerate(names, first):
        group = mixed if f"{name}'" in indices else lanes if name in indices else free
        group.append(axis)
    return lanes, mixed, free


def border_of(scan: Scan, cuts: Sequence[Cut], bytes: int) -> Border:
    """Of a scan that is cut so, in numbers of so many bytes."""
    assert isinstance(scan.topology, Regular)
    whole = [cast(int, axis.size) for axis in scan.topology.axes]
    longest = {cut.axis: cut.longest for cut in cuts}
    sides = tuple(
        Side(
            cut.devices,
            prod(longest.get(axis, size) for axis, size in enumerate(whole) if axis != cut.axis),
            prod(size for axis, size in enumerate(whole) if axis != cut.axis),
        )
        for cut in cuts
    )
    shape = (sum(side.edges for side in sides), *edge_state_shape(scan))
    lanes, mixed, free = (prod(shape[axis] for axis in axes) for axes in _axes(scan, len(shape)))
    return Border(lanes, mixed, free, bytes, sides)


def joined(scan: Scan, states: Mapping[str, Array], ports: Sequence[str]) -> Float[Array, "edge *state"]:
    """The states of all edges of these ports, one port after the other."""
    tail = edge_state_shape(scan)
    return jnp.concatenate([states[port].reshape(-1, *tail) for port in ports])


def parted(scan: Scan, edges: Float[Array, "edge *state"], shapes: Mapping[str, Shape]) -> dict[str, Array]:
    """The states of ports, of these shapes, that are joined so."""
    lead = {port: shape[: len(shape) - len(edge_state_shape(scan))] for port, shape in shapes.items()}
    ends = np.cumsum([prod(sizes) for sizes in lead.values()]).tolist()
    parts = jnp.split(edges, ends[:-1])
    return {port: part.reshape(shapes[port]) for port, part in zip(lead, parts, strict=True)}


def laid(scan: Scan, state: Array) -> Float[Array, "lane mixed free"]:
    """A state so laid out."""
    order = _axes(scan, state.ndim)
    sizes = [prod(state.shape[axis] for axis in axes) for axes in order]
    return jnp.transpose(state, [axis for axes in order for axis in axes]).reshape(sizes)


def unlaid(scan: Scan, lanes: Array, shape: tuple[int, ...]) -> Array:
    """The state of a shape that is laid out so."""
    order = [axis for axes in _axes(scan, len(shape)) for axis in axes]
    return jnp.transpose(lanes.reshape([shape[axis] for axis in order]), np.argsort(order).tolist())


def unit_states(scan: Scan, shape: tuple[int, ...], turn: Array | int) -> Array:
    """States whose columns that are alike are unit vectors, one after the other, from the first of a turn on."""
    _, mixed, free = _axes(scan, len(shape))

    def number(axes: list[int]) -> Array:
        total = jnp.zeros(shape, jnp.int32)
        for axis in axes:
            total = total * shape[axis] + jax.lax.broadcasted_iota(jnp.int32, shape, axis)
        return total

    return number(mixed) == number(free) + turn * prod(shape[axis] for axis in free)
