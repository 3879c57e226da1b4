"""How states pass pieces that lie on the devices along one axis of a mesh, inside of `jax.shard_map`.

States are laid out as `(lane, mixed, free)`: see `stmlang.cost.exchange`. Devices are counted in the sense of a direction, from
the one that holds its first nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from stmlang.lower.mesh_axes import alike
from stmlang.lower.summary import Passage, merge_passages, no_passage, pass_states

Tree = TypeVar("Tree")


@dataclass(frozen=True)
class Devices:
    """Those along a mesh axis, in the sense of a direction."""

    axis: str
    count: int
    sense: int

    @property
    def rank(self) -> Int[Array, ""]:
        """Where this device is, from 0."""
        place = jax.lax.axis_index(self.axis)
        return place if self.sense > 0 else self.count - 1 - place

    def sent(self, tree: Tree, by: int) -> Tree:
        """What the device so many places before this one holds; zero at the first ones."""
        pairs = [(place, place + by) for place in range(self.count - by)]
        if self.sense < 0:
            pairs = [(self.count - 1 - a, self.count - 1 - b) for a, b in pairs]

        def permuted(array: Array) -> Array:
            return cast(Array, jax.lax.ppermute(array, self.axis, pairs))

        return cast(Tree, jax.tree.map(permuted, tree))

    def of_last(self, tree: Tree) -> Tree:
        """What the last device holds, on all of them."""
        last = self.rank == self.count - 1

        def everywhere(array: Array) -> Array:
            return cast(Array, jax.lax.psum(jnp.where(last, array, jnp.zeros_like(array)), self.axis))

        return cast(Tree, jax.tree.map(everywhere, tree))


def by_gathering(piece: Passage, devices: Devices) -> Float[Array, "lane mixed free"]:
    """The state that enters this device's piece, zero entering the first one: each device is sent all pieces."""
    every = cast(Passage, jax.lax.all_gather(piece, devices.axis))
    every = Passage(*(array[:: devices.sense] for array in every))

    def turn(state: Array, each: Passage) -> tuple[Array, Array]:
        return pass_states(each, state), state

    start = alike(jnp.zeros_like(piece.written), every)
    entering = jax.lax.scan(turn, start, every)[1]
    return cast(Array, jax.lax.dynamic_index_in_dim(entering, devices.rank, keepdims=False))


def by_doubling(piece: Passage, devices: Devices) -> Float[Array, "lane mixed free"]:
    """The same in a logarithm of rounds, in which a device learns of twice as many pieces before it."""
    neutral = no_passage(piece)
    before, by = _where(devices.rank >= 1, devices.sent(piece, 1), neutral), 1
    while by < devices.count - 1:
        before = merge_passages(_where(devices.rank >= by, devices.sent(before, by), neutral), before)
        by *= 2
    return before.written


def _where(condition: Bool[Array, ""], a: Passage, b: Passage) -> Passage:
    return Passage(*(jnp.where(condition, x, y.astype(x.dtype)) for x, y in zip(a, b, strict=True)))
