"""Evaluated gates and inputs, laid out for the strategies, one direction like any other.

A strategy sees a DAG whose edges all point forward. On a regular topology the directions are flips of the same grid and are
stacked in a leading axis; on a ragged one each direction is a graph with tables of its own and is run by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.lower.node_gates import LocalGates
from stmlang.lower.sites import at_site
from stmlang.lower.values import Environment, Frame, Site, Value
from stmlang.scan.expression import PORT_INDICES, STATE_INDICES, TERM_INDICES, Index
from stmlang.scan.scan import Direction

STATE_AXES = len(STATE_INDICES)


class Factors(NamedTuple):
    """A rank-one transition, `transition[out, in] = out[out] * into[in]`: laid out as `source` and as `mark` are."""

    out: Float[Array, "direction head *sites out *state"]
    into: Float[Array, "direction head *sites in *state"]


class Delta(NamedTuple):
    """A gate of the delta rule's form, `scale * (eye - strength * u u^T)` on the key axis. The scale of a transition is laid
    out as the transition, that of a mark as the mark, without state axes. `scale` is None where it is one, `u` where it is the
    key itself."""

    scale: Float[Array, "direction head *sites *ports"] | None
    strength: Float[Array, "direction head *nodes"]
    u: Float[Array, "direction head *nodes key"] | None


class Shares(NamedTuple):
    """Scales and source of one dependence on outgoing edges: `scale[out, in] = out[out] * into[in]`, `source[out] = out[out] *
    written`."""

    out: Float[Array, "direction head *sites out"]
    into: Float[Array, "direction head *sites in"]
    written: Float[Array, "direction head *nodes"]


class Deltas(NamedTuple):
    """The transition in that form, the mark where it has it, and the shares where the facts name them."""

    transition: Delta
    mark: Delta | None
    shares: Shares | None = None


class Operands(NamedTuple):
    """The recurrence of one bundle of directions.

    The gates end in six state axes `key, key', value, value', track, track'`, of size one where a gate is the same along them.
    Sites are nodes (`*n`) on regular topologies; there source, mark and transition have axes for their ports. On ragged ones
    the sites of source and mark are edges, those of transition line edges. `factors`, `deltas`, `local` and `direct` are there
    for the lowerings that ask; `direct` is in declared coordinates, its directions already added where the scan adds them.
    Where gates are `local` the first three have no sites.

    Where a node writes or reads several times, source, key and value have an axis `write`, mark and query one `read`: before
    the axes of the state, or of key and value. Lowerings that know one write and one read a node never see it
    (`stmlang.program.terms`).
    """

    source: Float[Array, "direction head *sites out *write *state"]
    transition: Float[Array, "direction head *sites out in *state"]
    mark: Float[Array, "direction head *sites in *read *state"]
    query: Float[Array, "direction head *nodes *read key"]
    key: Float[Array, "direction head *nodes *write key"]
    value: Float[Array, "direction head *nodes *write value"]
    factors: Factors | None = None
    deltas: Deltas | None = None
    local: LocalGates | None = None
    direct: Float[Array, "direction head *nodes"] | None = None

    @property
    def inputs(self) -> tuple[Array, Array, Array]:
        return self.query, self.key, self.value

    @property
    def with_direct(self) -> bool:
        """Whether the direct gate is among them, so that the strategy adds it."""
        return self.direct is not None or (self.local is not None and self.local.adds_direct)


def lanes_of(array: Array) -> Array:
    """The axes of direction and head as one: strategies that loop map over lanes once."""
    return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])


class Scalars(NamedTuple):
    """The same where no gate has a state axis, or only tracks: what passes between edges are numbers then, from each track of
    one to each track of another. With several tracks `out` and `in` are edges with their tracks, those of an edge behind each
    other, and a line edge of a ragged topology is all pairs of a track that it leads to and one that it comes from.
    """

    source: Float[Array, "direction head *sites out"]
    transition: Float[Array, "direction head *sites out in"]
    mark: Float[Array, "direction head *sites in"]


def scalars(operands: Operands, tracks: int = 1, ragged: bool = False) -> Scalars:
    """The gates without their state axes, all of which but those of tracks must be of size one."""
    gates = (operands.source, operands.transition, operands.mark)
    if tracks == 1:
        return Scalars(*(gate.reshape(gate.shape[:-STATE_AXES]) for gate in gates))

    def elementwise(gate: Array) -> Array:
        numbers = gate.reshape(*gate.shape[:-STATE_AXES], gate.shape[-2])
        wide = jnp.broadcast_to(numbers, (*numbers.shape[:-1], tracks))
        return wide.reshape(*wide.shape[:-2], -1)

    transition = operands.transition
    matrix = transition.reshape(*transition.shape[:-STATE_AXES], *transition.shape[-2:])
    if matrix.shape[-1] == 1:
        matrix = matrix * jnp.eye(tracks, dtype=matrix.dtype).reshape(*(1,) * (matrix.ndim - 2), tracks, tracks)
    if ragged:
        matrix = matrix.reshape(*matrix.shape[:-3], -1)
    else:
        *lead, out, into, _, _ = matrix.shape
        matrix = jnp.swapaxes(matrix, -3, -2).reshape(*lead, out * tracks, into * tracks)
    return Scalars(elementwise(operands.source), matrix, elementwise(operands.mark))


def flip(array: Array, senses: Sequence[int], first: int) -> Array:
    """The axes `first, first + 1, ...` turned around wherever the sense is negative."""
    axes = [first + k for k, sense in enumerate(senses) if sense < 0]
    return jnp.flip(array, axes) if axes else array


def input_axes(name: str) -> tuple[Index, Index]:
    """The indices of query, key or value."""
    return ("read" if name == "q" else "write", "value" if name == "v" else "key")


def input_nodes(frame: Frame, environment: Environment, name: str, nodes: Sequence[int]) -> Array:
    """Query, key or value as the gates see it: `(*nodes, head, direction or 1, [read or write], index)`, with an entry for each
    direction of the frame where it differs between them."""
    term, index = input_axes(name)
    lead = frame.site_axes + 2
    axes: list[Index] = [term, index] if term in frame.terms else [index]
    array = jnp.moveaxis(environment[name].array, [frame.axis(entry) for entry in axes], range(lead, lead + len(axes)))
    array = array.reshape(array.shape[: lead + len(axes)])
    return jnp.broadcast_to(array, (*nodes, frame.scan.heads, array.shape[lead - 1], *map(frame.size, axes)))


def heads_first(array: Array, sites: int) -> Array:
    """`(*sites, head, direction, ...)` as `(direction, head, *sites, ...)`."""
    return jnp.moveaxis(array, (sites + 1, sites), (0, 1))


def matrix_axes(frame: Frame, name: str) -> tuple[Index, ...]:
    """The primed indices of a gate: the axes that it acts on as a matrix."""
    return tuple(index for index in frame.scan.gate(name).indices if index.endswith("'"))


def laid_out(frame: Frame, matrices: Sequence[Index], value: Value, sites: Sequence[int], axes: Sequence[Index]) -> Array:
    """A gate as `(direction or 1, head, *sites, *axes, *state)`, everything but directions and state broadcast. The axes that
    it acts on as a matrix are broadcast too: the same number everywhere is not the same as a multiple of the identity. `axes`
    are those of ports, writes and reads that it is given, in order."""
    array, lead = value.array, frame.site_axes
    for index in matrices:
        pair = (frame.axis(index), frame.axis(index) - 1)
        array = jnp.broadcast_to(array, [frame.size(index) if k in pair else n for k, n in enumerate(array.shape)])
    array = jnp.moveaxis(array, [lead + 1, lead], [0, 1])
    absent = [axis for axis, index in enumerate((*PORT_INDICES, *TERM_INDICES), lead + 2) if index not in axes]
    array = jnp.squeeze(array, absent)
    extents = [len(frame.ports) if index in PORT_INDICES else frame.size(index) for index in axes]
    shape = (array.shape[0], frame.scan.heads, *sites, *extents, *array.shape[array.ndim - STATE_AXES :])
    return jnp.broadcast_to(array, shape)


def oriented_gate(frame: Frame, matrices: Sequence[Index], value: Value, sizes: Sequence[int], axes: Sequence[Index]) -> Array:
    """A gate of a regular topology in every direction's own coordinates: `(direction, head, *sites, *axes, *state)`."""
    array = laid_out(frame, matrices, value, sizes, axes)
    return _oriented(frame.scan.directions, lambda k: array[min(k, array.shape[0] - 1)], 1)


def regular_operands(frame: Frame, environment: Environment, sizes: Sequence[int], local: LocalGates | None = None) -> Operands:
    """All directions of a regular topology, each flipped so that its edges point forward."""
    directions = frame.scan.directions

    def gate(name: str, *axes: Index) -> Array:
        if local is not None:
            return jnp.zeros((len(directions), frame.scan.heads, 0, *(1,) * STATE_AXES), frame.dtype)
        return oriented_gate(frame, matrix_axes(frame, name), environment[name], sizes, axes)

    def nodes(name: str) -> Array:
        array = heads_first(input_nodes(frame, environment, name, sizes), len(sizes))
        return _oriented(directions, lambda k: array[min(k, array.shape[0] - 1)], 1)

    return Operands(
        gate("source", "out", *_own_terms(frame, "write")),
        gate("transition", "out", "in"),
        gate("mark", "in", *_own_terms(frame, "read")),
        nodes("q"),
        nodes("k"),
        nodes("v"),
        local=local,
    )


def _own_terms(frame: Frame, term: Index) -> tuple[Index, ...]:
    """The axis of writes of a source, or of reads of a mark, where there is one."""
    return (term,) if term in frame.terms else ()


def _oriented(directions: Sequence[Direction], array_of: Callable[[int], Array], first: int) -> Array:
    return jnp.stack([flip(array_of(k), direction.senses, first) for k, direction in enumerate(directions)])


def ragged_operands(frame: Frame, environment: Environment, edges: int, line_edges: int | None) -> Operands:
    """The one direction that a ragged topology was evaluated for; without line edges the transition is left out."""

    def gate(name: str, site: Site, count: int, *axes: Index) -> Array:
        value = at_site(frame, environment[name], site)
        return laid_out(frame, matrix_axes(frame, name), value, (count,), axes)

    def nodes(name: str) -> Array:
        return heads_first(input_nodes(frame, environment, name, (frame.nodes,)), 1)

    nothing = jnp.zeros((1, frame.scan.heads, 0, *(1,) * STATE_AXES), frame.dtype)
    return Operands(
        gate("source", "out", edges, *_own_terms(frame, "write")),
        nothing if line_edges is None else gate("transition", "line", line_edges),
        gate("mark", "in", edges, *_own_terms(frame, "read")),
        nodes("q"),
        nodes("k"),
        nodes("v"),
    )


def factored(frame: Frame, out: Value, into: Value, sizes: Sequence[int]) -> Factors:
    """The factors of a rank-one transition; `sizes` are a regular topology's axes, or the number of edges of a ragged one.

    At most one of the two is a matrix on a state axis: the one that varies along it, and where neither does, all entries being
    the same, either may be.
    """
    inner, outer = list[Index](), list[Index]()
    for index in matrix_axes(frame, "transition"):
        shape = into.array.shape
        varies = shape[frame.axis(index)] > 1 or shape[frame.axis(index) - 1] > 1
        (inner if varies else outer).append(index)
    if frame.sites is None:
        return Factors(oriented_gate(frame, outer, out, sizes, ("out",)), oriented_gate(frame, inner, into, sizes, ("in",)))
    return Factors(
        laid_out(frame, outer, at_site(frame, out, "out"), sizes, ()),
        laid_out(frame, inner, at_site(frame, into, "in"), sizes, ()),
    )
