"""Values of gate expressions: arrays in one layout, and the sites where they live.

Every value has the same axes in the same order, `(*sites, head, direction, out, in, write, read, key, key', value, value',
track, track')`, of size one where it does not vary, so that broadcasting by name is broadcasting by position.

On a regular topology the sites are the node axes, and `out`, `in` are dense axes of ports. On a ragged one there is a single
site axis: nodes, or edges seen from the node they leave (`out`) or enter (`in`), or line edges; the axes `out` and `in` stay of
size one. A ragged topology is evaluated for one direction at a time, since "leaves" and "enters" depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from stmlang.lower.tables import Indices
from stmlang.scan.expression import INDICES, TERM_INDICES, Index
from stmlang.scan.scan import Scan
from stmlang.scan.sizes import dense_size

Site = Literal["constant", "node", "out", "in", "line"]


class LineEdges(NamedTuple):
    """The edges that each line edge joins, and the node where."""

    into: Int[Indices, " line_edges"]
    out: Int[Indices, " line_edges"]
    node: Int[Indices, " line_edges"]


class Sites(NamedTuple):
    """The index tables of a ragged topology in one direction. Open ends hold the number of nodes; line edges are there only
    where something needs them, as there may be very many."""

    tail: Int[Indices, " edges"]
    head: Int[Indices, " edges"]
    line: LineEdges | None
    port: Int[Indices, " edges"]
    mask: Indices | None


@dataclass(frozen=True)
class Value:
    """An array in the layout above. `site` is "node" or "constant" on regular topologies, where both broadcast alike."""

    array: Array
    site: Site


@dataclass(frozen=True)
class Frame:
    """What evaluation needs besides the arrays: the scan, how many site axes there are, and the ragged tables."""

    scan: Scan
    ports: tuple[str, ...]
    site_axes: int
    nodes: int
    sites: Sites | None
    dtype: Any
    grid: tuple[int, ...] = ()
    """The axes of the nodes of a regular topology."""
    mask: Array | None = None
    """The nodes of a regular topology that count, where not all do."""
    bound: tuple[Index, ...] = ()
    """Indices that sums inside of the equation at hand run over. Their axes come last and are gone from its value."""

    def axis(self, index: Index) -> int:
        return self.site_axes + 2 + (*INDICES, *self.bound).index(index)

    @property
    def rank(self) -> int:
        return self.site_axes + 2 + len(INDICES) + len(self.bound)

    def size(self, index: Index) -> int:
        """How many values an index takes that is none of ports."""
        return dense_size(self.scan, index)

    @property
    def terms(self) -> tuple[Index, ...]:
        """The indices of writes and reads that arrays have an axis for: of one of each at a node there is none."""
        return tuple(index for index in TERM_INDICES if self.size(index) > 1)


Environment = dict[str, Value]
"""Gates by name."""


def clip(x: Array, low: Array | float, high: Array | float) -> Array:
    """`min(max(x, low), high)` with gradient one on the closed interval; outside, it is that of the bound."""
    if isinstance(low, Array) or low != float("-inf"):
        x = jnp.where(x < low, jnp.asarray(low, x.dtype), x)
    if isinstance(high, Array) or high != float("inf"):
        x = jnp.where(x > high, jnp.asarray(high, x.dtype), x)
    return x


def pick(array: Array, axis: int, position: int) -> Array:
    """One entry of an axis, kept at size one; an axis of size one is the same everywhere."""
    if array.shape[axis] == 1:
        return array
    return jax.lax.slice_in_dim(array, position, position + 1, axis=axis)


def join(arrays: list[Array], axis: int) -> Array:
    if len(arrays) == 1:
        return arrays[0]
    return join_pieces(arrays, axis)


def join_pieces(arrays: list[Array], axis: int) -> Array:
    """Pieces of any length behind each other along an axis; the others are broadcast."""
    shape = list(jnp.broadcast_shapes(*((*array.shape[:axis], 1, *array.shape[axis + 1 :]) for array in arrays)))
    wide = [jnp.broadcast_to(array, (*shape[:axis], array.shape[axis], *shape[axis + 1 :])) for array in arrays]
    return jnp.concatenate(wide, axis=axis)
