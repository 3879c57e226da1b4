"""What gates do to states, as contractions: products whose derivatives are products too, which is what runs fast.

Gates end in six state axes `key, key', value, value', track, track'`. On an axis with its primed twin a gate acts as a matrix,
on the others elementwise; where it is the same along an axis that has size one.
"""

from __future__ import annotations

from math import prod

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from stmlang.lower.contractions import contract, matmul
from stmlang.lower.operands import STATE_AXES

LETTERS = "kKvVtT"
"""One for each state axis of a gate, in their order."""


def varies(gate: Array) -> str:
    """The letters of the state axes along which a gate varies."""
    return "".join(letter for letter, size in zip(LETTERS, gate.shape[gate.ndim - STATE_AXES :], strict=True) if size > 1)


def squeezed(gate: Array) -> Array:
    """A gate without the state axes along which it is the same."""
    first = gate.ndim - STATE_AXES
    return gate.reshape(*gate.shape[:first], *(size for size in gate.shape[first:] if size > 1))


def _inner(letters: str) -> str:
    """The state axes that a gate with these letters acts on: the twins of those that it is a matrix on."""
    return "".join(letter.upper() if letter.upper() in letters else letter for letter in "tkv")


def apply_gate(
    gate: Float[Array, "*#sites *state"], state: Float[Array, "*#sites track key value"]
) -> Float[Array, "*sites track key value"]:
    """A gate applied to states: `M C`. Sites broadcast."""
    letters = varies(gate)
    sites = jnp.broadcast_shapes(gate.shape[: gate.ndim - STATE_AXES], state.shape[:-3])
    flat = (_on_sites(array, sites) for array in (squeezed(gate), state))
    return contract(f"s{letters},s{_inner(letters)}->stkv", *flat).reshape(*sites, *state.shape[-3:])


def _on_sites(array: Array, sites: tuple[int, ...]) -> Array:
    """An array with its site axes broadcast and made one."""
    rest = array.shape[len(sites) :]
    return jnp.broadcast_to(array, (*sites, *rest)).reshape(prod(sites), *rest)


def write_state(
    source: Float[Array, "site lane *write *state"],
    key: Float[Array, "site lane *write key"],
    value: Float[Array, "site lane *write value"],
    track: int,
) -> Float[Array, "site lane track key value"]:
    """What a node writes: `source * outer(k, v)`, the sum over its writes, the same on every track where the source is."""
    letters, write = varies(source), "w" if key.ndim > 3 else ""
    terms = f"sl{write}{letters},sl{write}k,sl{write}v"
    if "t" in letters:
        return contract(f"{terms}->sltkv", squeezed(source), key, value)
    written = contract(f"{terms}->slkv", squeezed(source), key, value)
    return jnp.broadcast_to(written[:, :, None], (*written.shape[:2], track, *written.shape[2:]))


def read_state(
    mark: Float[Array, "site lane *read *state"],
    query: Float[Array, "site lane *read key"],
    state: Float[Array, "site lane track key value"],
) -> Float[Array, "site lane *read value"]:
    """What a node reads: `q . (M C)`, summed over tracks, for each of its reads."""
    letters, read = varies(mark), "r" if query.ndim > 3 else ""
    if not letters:
        return squeezed(mark)[..., None] * contract(f"sl{read}k,sltkv->sl{read}v", query, state)
    return contract(f"sl{read}{letters},sl{read}k,sl{_inner(letters)}->sl{read}v", squeezed(mark), query, state)


# --- at the ports of a grid ------------------------------------------------------------------------------------------

# There sites broadcast, and elementwise gates are multiplied: a contraction would keep its operands repeated for each port, 15%
# more memory in training on a grid of 14x14, and is no faster.


def apply_at_ports(
    gate: Float[Array, "*#sites *state"], state: Float[Array, "*#sites track key value"]
) -> Float[Array, "*sites track key value"]:
    """What `apply_gate` does."""
    if any(size > 1 for size in gate.shape[gate.ndim - STATE_AXES + 1 :: 2]):
        return apply_gate(gate, state)
    return elementwise(gate) * state


def write_at_ports(
    source: Float[Array, "block port *write *state"],
    key: Float[Array, "block *write key"],
    value: Float[Array, "block *write value"],
    track: int,
) -> Float[Array, "block port track key value"]:
    """What `write_state` does."""
    if key.ndim > 2:
        letters = varies(source)
        into = "t" if "t" in letters else ""
        spread = contract(f"bow{letters},bwk,bwv->bo{into}kv", squeezed(source), key, value)
        spread = spread if into else spread[:, :, None]
    else:
        spread = elementwise(source) * (key[:, None, None, :, None] * value[:, None, None, None, :])
    return jnp.broadcast_to(spread, (*spread.shape[:-3], track, *spread.shape[-2:]))


def read_at_ports(
    mark: Float[Array, "block port *read *state"],
    query: Float[Array, "block *read key"],
    state: Float[Array, "block port track key value"],
) -> Float[Array, "block *read value"]:
    """What `read_state` does, summed over ports."""
    if query.ndim > 2:
        letters = varies(mark)
        return contract(f"bir{letters},brk,bi{_inner(letters)}->brv", squeezed(mark), query, state)
    marked = port_sum(apply_at_ports(mark, state), 1)
    return jnp.squeeze(matmul(query[..., None, :], marked.sum(-3)), -2)


def port_sum(array: Array, axis: int) -> Array:
    """The sum over an axis of ports, of which there are few."""
    terms = [jax.lax.index_in_dim(array, k, axis, keepdims=False) for k in range(array.shape[axis])]
    return sum(terms[1:], start=terms[0])


def elementwise(gate: Array) -> Array:
    """A gate that acts elementwise as `(*sites, track, key, value)`."""
    key, _, value, _, track, _ = gate.shape[gate.ndim - STATE_AXES :]
    gate = gate.reshape(*gate.shape[: gate.ndim - STATE_AXES], key, value, track)
    return jnp.moveaxis(gate, -1, -3)


# --- gates that do nothing -------------------------------------------------------------------------------------------


def straight(where: Bool[Array, " site"], gate: Float[Array, "site lane *state"]) -> Float[Array, "site lane *state"]:
    """A gate that passes states straight on at some of its sites."""
    return jnp.where(where.reshape(-1, *(1,) * (gate.ndim - 1)), passing(gate), gate)


def passing(gate: Float[Array, "*site *state"]) -> Array:
    """What passes states straight on in place of a gate, its six state axes: an identity where the gate is a matrix."""
    first, identity = gate.ndim - STATE_AXES, jnp.ones((1,) * STATE_AXES, gate.dtype)
    for axis in range(0, STATE_AXES, 2):
        size = gate.shape[first + axis]
        if gate.shape[first + axis + 1] > 1:
            shape = [size if k in (axis, axis + 1) else 1 for k in range(STATE_AXES)]
            identity = identity * jnp.eye(size, dtype=gate.dtype).reshape(shape)
    return identity


# --- gates from each of some edges to each of others -----------------------------------------------------------------


def apply_along(
    gate: Float[Array, "*batch entering leaving *state"], state: Float[Array, "*batch entering track key value"]
) -> Float[Array, "*batch leaving track key value"]:
    """The sum over edges that enter of the gates from them, applied to their states."""
    letters = varies(gate)
    return contract(f"...io{letters},...i{_inner(letters)}->...otkv", squeezed(gate), state)
