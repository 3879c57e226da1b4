"""Pytrees, their leaves by name."""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp


def named(tree: Any) -> list[tuple[str, Any]]:
    """The leaves of a tree and the path to each, such as `.layers[0].weight`."""
    leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_leaves_with_path(tree))
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]


def children(node: Any) -> list[tuple[str, Any]]:
    """What a tree consists of, one level down, and the step to each."""

    def below(child: Any) -> bool:
        return child is not node

    inner = cast(list[tuple[Any, Any]], jax.tree_util.tree_leaves_with_path(node, is_leaf=below))
    return [(jax.tree_util.keystr(path), child) for path, child in inner if child is not node]


def structure(tree: Any) -> Any:
    return cast(Any, jax.tree.structure(tree))


def copied(tree: Any) -> Any:
    """A tree of arrays of JAX, none of them shared."""

    def copy(leaf: Any) -> Any:
        return jnp.array(leaf)

    return jax.tree.map(copy, tree)
