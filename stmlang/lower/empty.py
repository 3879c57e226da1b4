"""Arrays without a number as a static part of a tree, so that they are operands of nothing.

XLA of jaxlib 0.11.2 ends the process where such an array is an operand of `jax.shard_map`: its uses are folded away, and Shardy
stumbles over what nothing uses any more. A scan's tables may well have some: a graph without open edges, a chain without lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp

T = TypeVar("T")


@jax.tree_util.register_static
@dataclass(frozen=True)
class Empty:
    """An array without a number, which is no leaf of a tree."""

    shape: tuple[int, ...]
    dtype: Any


def hollow(tree: T) -> T:
    """A tree with an `Empty` in place of each array without a number."""

    def known(leaf: Any) -> Any:
        empty = isinstance(leaf, jax.Array) and any(type(size) is int and size == 0 for size in leaf.shape)
        return Empty(leaf.shape, leaf.dtype) if empty else leaf

    return cast(T, jax.tree.map(known, tree))


def solid(tree: T) -> T:
    """What `hollow` was given: arrays without a number are made."""

    def made(leaf: Any) -> Any:
        return jnp.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, Empty) else leaf

    return cast(T, jax.tree.map(made, tree, is_leaf=lambda leaf: isinstance(leaf, Empty)))
