"""Arrays inside of `jax.shard_map`, whose types say along which axes of the mesh the numbers differ.

There a scan must carry out what it carries in, and a cotangent must be of the type of what it belongs to; constants differ
along no axis. So all arguments of a program are made to differ along the same axes where they come in, and constants that a
loop or an adjoint starts from are made like them. Outside of `shard_map` nothing happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import jax
import jax.core
from jax.sharding import PartitionSpec

T = TypeVar("T")


def axes_of(*trees: Any) -> frozenset[str]:
    """The axes of the mesh along which any of the arrays differs."""
    axes: frozenset[str] = frozenset()
    for leaf in jax.tree.leaves(trees):
        axes |= _varying(leaf)
    return axes


def alike(tree: T, *others: Any) -> T:
    """The arrays of a tree, differing along every axis along which any of them, or of the others, does."""
    axes = axes_of(tree, others)

    def cast_to_all(leaf: Any) -> Any:
        return _cast(leaf, axes)

    return jax.tree.map(cast_to_all, tree) if axes else tree


def made_of(operands: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> jax.core.ShapedArray:
    """The type of an array that is made of operands of given types."""
    axes = frozenset[str]().union(*(operand.mat.varying for operand in operands))
    if not axes:
        return jax.core.ShapedArray(shape, dtype)
    varied = next(operand for operand in operands if operand.mat.varying)
    sharding = varied.sharding.update(spec=PartitionSpec(*(None,) * len(shape)))
    return jax.core.ShapedArray(shape, dtype, sharding=sharding, manual_axis_type=varied.mat.update(varying=axes))


def _varying(array: Any) -> frozenset[str]:
    return frozenset(jax.typeof(array).mat.varying)


def _cast(array: Any, axes: frozenset[str]) -> Any:
    missing = tuple(sorted(axes - _varying(array)))
    return cast(Any, jax.lax.pcast(array, missing, to="varying")) if missing else array
