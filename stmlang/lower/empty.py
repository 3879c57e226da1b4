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
        return Empty(leaf.shape, leaf.dtype) if _is_empty(leaf) else leaf

    return cast(T, jax.tree.map(known, tree))


def flattened(tree: Any) -> tuple[list[Any], Any]:
    """The arrays that have numbers, and the structure of the hollow tree. Each call of a scan asks for it, and most have none
    that is empty."""
    whole = cast("tuple[list[Any], Any]", jax.tree.flatten(tree))
    return cast("tuple[list[Any], Any]", jax.tree.flatten(hollow(tree))) if any(map(_is_empty, whole[0])) else whole


def solid(tree: T) -> T:
    """What `hollow` was given: arrays without a number are made."""

    def made(leaf: Any) -> Any:
        return jnp.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, Empty) else leaf

    return cast(T, jax.tree.map(made, tree, is_leaf=lambda leaf: isinstance(leaf, Empty)))


def _is_empty(leaf: Any) -> bool:
    """Of what may be a number without a shape; sizes may be symbols, which stand for one at least."""
    return 0 in getattr(leaf, "shape", ())
