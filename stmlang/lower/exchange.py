"""How states pass pieces that lie on the devices along one or several axes of a mesh, inside of `jax.shard_map`.

States are laid out as `(lane, mixed, free)`: see `stmlang.cost.exchange`. Devices are counted in the sense of a direction, from
the one that holds its first nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
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


def by_wavefront(piece: Passage, lines: Sequence[Devices], edges: Sequence[int]) -> Float[Array, "lane mixed free"]:
    """The same where pieces stand side by side along several axes of a mesh, in its order. `lines` are the devices along each
    of them, `edges` those across which states enter a piece there: of these `mixed` are the numbers, axis after axis.

    In a round those pieces hand states on that all states have entered by then, as far from the first one as there were
    rounds. So every state is sent once.
    """
    ends = np.cumsum(edges) * (piece.written.shape[1] // sum(edges))
    entering, leaving = jnp.zeros_like(piece.written), piece.written
    for turn in range(sum(line.count - 1 for line in lines)):
        parts = jnp.split(leaving, ends[:-1].tolist(), axis=1)
        handed = [_handed(part, lines, axis, turn) for axis, part in enumerate(parts)]
        entering = entering + jnp.concatenate(handed, axis=1)
        leaving = pass_states(piece, entering)
    return entering


def _handed(array: Array, lines: Sequence[Devices], axis: int, turn: int) -> Array:
    """What the device before this one along an axis holds, where that is one that a round has reached; else zero."""
    ranks = np.asarray([rank for rank in product(*(range(line.count) for line in lines)) if sum(rank) == turn])
    ranks = ranks[ranks[:, axis] < lines[axis].count - 1]
    pairs = zip(_numbers(ranks, lines), _numbers(ranks + np.eye(len(lines), dtype=int)[axis], lines), strict=True)
    return cast(Array, jax.lax.ppermute(array, tuple(line.axis for line in lines), list(pairs)))


def _numbers(ranks: np.ndarray, lines: Sequence[Devices]) -> list[int]:
    """The devices of these ranks as a collective along all of the axes counts them: in the order of the mesh."""
    places = [rank if line.sense > 0 else line.count - 1 - rank for rank, line in zip(ranks.T, lines, strict=True)]
    return cast("list[int]", np.ravel_multi_index(places, [line.count for line in lines]).tolist())


def _where(condition: Bool[Array, ""], a: Passage, b: Passage) -> Passage:
    return Passage(*(jnp.where(condition, x, y.astype(x.dtype)) for x, y in zip(a, b, strict=True)))
