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
