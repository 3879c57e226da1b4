"""Gates that a node evaluates for itself, from a few values that were evaluated for all nodes (`stmlang.cost.late_gates`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
from jaxtyping import Array, Float

from stmlang.scan.expression import Index

Values = Mapping[str, Array]
Gate = Float[Array, "head direction *state"]


@partial(jax.tree_util.register_dataclass, data_fields=("scale", "strength", "u"), meta_fields=("index",))
@dataclass(frozen=True)
class Erasure:
    """The matrix `scale * (eye - strength * u u^T)` on the state axis `index`, by its parts, which are laid out as gates: `u`
    along that axis, `strength` one number, `scale` elementwise on the other axes. `scale` is None where it is one, `u` where it
    is the node's key."""

    index: Index
    scale: Gate | None
    strength: Gate
    u: Gate | None


Written = Gate | None
AtPort = Gate | Erasure | None
"""None where a gate is zero by the equations."""
G = TypeVar("G", bound=AtPort)


class NodeGates(NamedTuple):
    """The gates of one node of a regular topology, port by port: `transition[out][in]`. Axes of size one broadcast. Gates that
    are the same by the equations are one object."""

    source: tuple[Written, ...]
    transition: tuple[tuple[AtPort, ...], ...]
    mark: tuple[AtPort, ...]
    direct: Written


@partial(jax.tree_util.register_dataclass, data_fields=("nodes", "shared"), meta_fields=("at", "adds_direct"))
@dataclass(frozen=True)
class LocalGates:
    """`at(values of one node, shared)` are the gates of that node.

    `nodes` are those values for all nodes, in every direction's own coordinates, `shared` what is the same at all of them. `at`
    is static: it holds no arrays. If `adds_direct`, it knows the direct gate of each direction, which the strategy then adds.
    """

    nodes: Mapping[str, Float[Array, "*nodes head direction *indices"]]
    shared: Mapping[str, Float[Array, "head direction *indices"]]
    at: Callable[[Values, Values], NodeGates]
    adds_direct: bool


def in_lanes(
    local: LocalGates, rank: int, merged: Callable[[Array, int], Array], apart: Callable[[Array], Array]
) -> LocalGates:
    """The gates with other axes than those of heads and directions. `merged(array, sites)` makes them of these two, which stand
    behind so many axes of nodes, and `apart` these two of them where there are none; nodes have `rank` axes."""
    return LocalGates(
        {name: merged(array, rank) for name, array in local.nodes.items()},
        {name: merged(array, 0) for name, array in local.shared.items()},
        partial(_at_lanes, local.at, merged, apart),
        local.adds_direct,
    )


def _at_lanes(
    at: Callable[[Values, Values], NodeGates],
    merged: Callable[[Array, int], Array],
    apart: Callable[[Array], Array],
    values: Values,
    shared: Values,
) -> NodeGates:
    """The gates of a node. Those that are one object stay one."""
    gates = at(*({name: apart(array) for name, array in arrays.items()} for arrays in (values, shared)))
    lanes: dict[int, Any] = {}

    def laid(array: Array) -> Array:
        return merged(array, 0)

    def each(gate: G) -> G:
        if id(gate) not in lanes:
            lanes[id(gate)] = jax.tree.map(laid, gate)
        return lanes[id(gate)]

    return NodeGates(
        tuple(map(each, gates.source)),
        tuple(tuple(map(each, row)) for row in gates.transition),
        tuple(map(each, gates.mark)),
        each(gates.direct),
    )
