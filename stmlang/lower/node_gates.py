"""Gates that a node evaluates for itself, from a few values that were evaluated for all nodes (`stmlang.cost.late_gates`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
from jaxtyping import Array, Float

Values = Mapping[str, Array]
AtPort = Float[Array, "head direction *state"] | None
"""None where a gate is zero by the equations."""


class NodeGates(NamedTuple):
    """The gates of one node of a regular topology, port by port: `transition[out][in]`. Axes of size one broadcast. Gates that
    are the same by the equations are one array."""

    source: tuple[AtPort, ...]
    transition: tuple[tuple[AtPort, ...], ...]
    mark: tuple[AtPort, ...]
    direct: AtPort


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
    """The gates of a node. Those that are one array stay one."""
    gates = at(*({name: apart(array) for name, array in arrays.items()} for arrays in (values, shared)))
    lanes: dict[int, Array] = {}

    def each(gate: AtPort) -> AtPort:
        if gate is None:
            return None
        if id(gate) not in lanes:
            lanes[id(gate)] = merged(gate, 0)
        return lanes[id(gate)]

    return NodeGates(
        tuple(map(each, gates.source)),
        tuple(tuple(map(each, row)) for row in gates.transition),
        tuple(map(each, gates.mark)),
        each(gates.direct),
    )
