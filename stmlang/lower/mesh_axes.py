"""Arrays inside of `jax.shard_map`, whose types say along which axes of the mesh the numbers differ.

There a scan must carry out what it carries in, and a cotangent must be of the type of what it belongs to; constants differ
along no axis. So all arguments of a program are made to differ along the same axes where they come in, all operands of a
strategy where they are laid out, and constants that a loop or an adjoint starts from are made like them. Outside of
`shard_map` nothing happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import jax
import jax.core
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from jaxtyping import Array

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


def made_of(operands: Sequence[Any], shape: tuple[int, ...], dtype: Any, lead: Sequence[Any] = ()) -> jax.core.ShapedArray:
    """The type of an array that is made of operands of given types, whose first axes lie along `lead` of an explicit mesh."""
    axes = frozenset[str]().union(*(operand.mat.varying for operand in operands))
    on_mesh = [operand for operand in operands if not operand.sharding.mesh.empty]
    if not on_mesh:
        return jax.core.ShapedArray(shape, dtype)
    like = next((operand for operand in on_mesh if operand.mat.varying), on_mesh[0])
    sharding = like.sharding.update(spec=PartitionSpec(*lead, *(None,) * (len(shape) - len(lead))))
    return jax.core.ShapedArray(shape, dtype, sharding=sharding, manual_axis_type=like.mat.update(varying=axes))


def explicit_mesh(arrays: Sequence[Any]) -> AbstractMesh | None:
    """The mesh of explicit axes that any of the arrays lies on, None where there is none."""
    for array in arrays:
        mesh = jax.typeof(array).sharding.mesh
        if any(kind is AxisType.Explicit for kind in mesh.axis_types):
            return mesh
    return None


def reshaped(array: Array, shape: Sequence[int]) -> Array:
    """`array.reshape(shape)`, also where axes are merged and split at once while `jax.vmap` maps over an axis of an explicit
    mesh: there JAX asks to be told how the result lies, which is along no axis but that one."""
    sizes = tuple(shape)
    sharding = jax.typeof(array).sharding
    if explicit_mesh([array]) is None or any(axis is not None for axis in sharding.spec):
        return array.reshape(sizes)
    return jax.lax.reshape(array, sizes, out_sharding=sharding.update(spec=PartitionSpec(*(None,) * len(sizes))))


def rows_at(table: Array, indices: Array) -> Array:
    """`table[indices]`, likewise where indices are mapped over an axis of an explicit mesh."""
    mesh = explicit_mesh([indices])
    if mesh is None:
        return table[indices]
    spec = PartitionSpec(*jax.typeof(indices).sharding.spec, *(None,) * (table.ndim - 1))
    return table.at[indices].get(out_sharding=NamedSharding(mesh, spec))


def _varying(array: Any) -> frozenset[str]:
    return frozenset(jax.typeof(array).mat.varying)


def _cast(array: Any, axes: frozenset[str]) -> Any:
    missing = tuple(sorted(axes - _varying(array)))
    return cast(Any, jax.lax.pcast(array, missing, to="varying")) if missing else array
