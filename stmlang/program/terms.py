"""Writes and reads of a node as heads, for strategies that know one of each.

A scan is linear in what its nodes write, and what they read changes no state. One with W writes and R reads a node is therefore
`R W` scans with one of each, which share the transition: the outputs of those with the same read are added up, and so are the
states that leave those with the same read, which are the same for all reads. States that enter go with the first write.

Lanes are `(head, read, write)`, the writes running fastest.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.lower.node_gates import LocalGates, in_lanes
from stmlang.lower.operands import STATE_AXES, Operands
from stmlang.lower.strategy import Call, EdgeStates, Result
from stmlang.scan.scan import Scan


def as_heads(scan: Scan, call: Call) -> Call:
    """The call in which every read of every write is a head."""
    entering = None if call.entering is None else [_entering(scan, states) for states in call.entering]
    return call._replace(operands=[_operands(scan, operands) for operands in call.operands], entering=entering)


def of_heads(scan: Scan, result: Result) -> Result:
    """What such a call returned as the result of the scan."""
    outputs = _apart(scan, result.outputs).sum(3)
    outputs = jnp.moveaxis(outputs, 2, -2) if scan.reads > 1 else jnp.squeeze(outputs, 2)
    return Result(outputs, [_apart(scan, states)[:, :, 0].sum(2) for states in result.leaving])


def gating_of_heads(
    scan: Scan, matrix: Float[Array, "direction lane source target"]
) -> Float[Array, "direction head write read source target"]:
    """The gating matrices of such heads by write and read."""
    return jnp.swapaxes(_apart(scan, matrix), 2, 3)


def _apart(scan: Scan, array: Float[Array, "direction lane *rest"]) -> Float[Array, "direction head read write *rest"]:
    return array.reshape(array.shape[0], scan.heads, scan.reads, scan.writes, *array.shape[2:])


def _entering(scan: Scan, states: EdgeStates) -> EdgeStates:
    others = jnp.zeros((*states.shape[:2], scan.writes - 1, *states.shape[2:]), states.dtype)
    return _lanes(scan, jnp.concatenate([states[:, :, None], others], axis=2)[:, :, None])


def _operands(scan: Scan, operands: Operands) -> Operands:
    write, read = scan.writes > 1, scan.reads > 1

    def shared(array: Array) -> Array:
        return _lanes(scan, array[:, :, None, None])

    def of_term(array: Array, tail: int, write: bool, read: bool) -> Array:
        """An array with axes of writes and reads, where it has them, before its last `tail` axes."""
        lead = array.shape[: array.ndim - tail - write - read]
        sizes = (scan.writes if write else 1, scan.reads if read else 1)
        whole = array.reshape(*lead, *sizes, *array.shape[array.ndim - tail :])
        return _lanes(scan, jnp.moveaxis(whole, (len(lead), len(lead) + 1), (3, 2)))

    direct, local = operands.direct, operands.local
    return Operands(
        source=of_term(operands.source, STATE_AXES, write and local is None, False),
        transition=shared(operands.transition),
        mark=of_term(operands.mark, STATE_AXES, False, read and local is None),
        query=of_term(operands.query, 1, False, read),
        key=of_term(operands.key, 1, write, False),
        value=of_term(operands.value, 1, write, False),
        factors=jax.tree.map(shared, operands.factors),
        deltas=jax.tree.map(shared, operands.deltas),
        local=None if local is None else _repeated(scan, operands.value.ndim - 3 - write, local),
        direct=None if direct is None else of_term(direct, 0, True, True),
    )


def _repeated(scan: Scan, rank: int, local: LocalGates) -> LocalGates:
    """Gates that nodes evaluate, which are the same for all reads and writes."""
    terms = scan.reads * scan.writes

    def merged(array: Array, sites: int) -> Array:
        return jnp.repeat(jnp.broadcast_to(array, (*array.shape[:sites], scan.heads, *array.shape[sites + 1 :])), terms, sites)

    def apart(array: Array) -> Array:
        return array[::terms]

    return in_lanes(local, rank, merged, apart)


def _lanes(scan: Scan, array: Float[Array, "direction head #read #write *rest"]) -> Float[Array, "direction lane *rest"]:
    directions, _, _, _, *rest = array.shape
    whole = jnp.broadcast_to(array, (directions, scan.heads, scan.reads, scan.writes, *rest))
    return whole.reshape(directions, scan.heads * scan.reads * scan.writes, *rest)
