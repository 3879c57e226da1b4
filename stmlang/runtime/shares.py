"""A batch along the axes of an explicit mesh: each device evaluates its share by itself.

`jax.vmap` over an axis that lies along a mesh tells a primitive so. What is mapped then runs in `jax.shard_map` over that mesh:
an operand that is mapped along those axes comes in shares, every other one whole, and results lie as the batch does. Of a
gradient, JAX sums over the devices what belongs to operands that are whole: nothing else is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Protocol, cast

import jax
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Array

from stmlang.lower.mesh_axes import explicit_mesh

Names = tuple[str, ...]
"""Axes of a mesh along which one axis of an array lies, one within the other."""


class Map(Protocol):
    """A `vmap`: the axis of every operand, and where the batch lies."""

    @property
    def axes(self) -> tuple[int | None, ...]: ...

    @property
    def lies(self) -> Names: ...


def share_of(size: Any, lies: Names, operands: Sequence[Any]) -> Any:
    """How many of a batch a device has."""
    mesh = explicit_mesh(operands) if lies else None
    return size if mesh is None else size // prod(mesh.shape[name] for name in lies)


def lead_of(maps: Sequence[Map]) -> list[Names | None]:
    """How the batch axes of a result lie, which are in front of it, the outermost first."""
    return [each.lies or None for each in reversed(maps)]


def in_shares(function: Callable[..., list[Array]], maps: Sequence[Map], operands: Sequence[Array]) -> list[Array]:
    """A mapped function of operands; by shares, where a batch lies along a mesh. Whatever else lies along one is gathered."""
    mesh = explicit_mesh(operands) if any(each.lies for each in maps) else None
    if mesh is None:
        return function(*operands)
    specs = [_spec(maps, number, operand.ndim) for number, operand in enumerate(operands)]
    shared = [
        cast(Array, jax.reshard(operand, NamedSharding(mesh, spec))) for operand, spec in zip(operands, specs, strict=True)
    ]
    out = PartitionSpec(*lead_of(maps))
    return jax.shard_map(function, mesh=mesh, in_specs=tuple(specs), out_specs=out)(*shared)


def _spec(maps: Sequence[Map], number: int, rank: int) -> PartitionSpec:
    """How an operand lies: each map, from the outermost inwards, takes one of the axes that are left."""
    axes, lies = list(range(rank)), dict[int, Names]()
    for each in reversed(maps):
        axis = each.axes[number]
        if axis is not None:
            lies[axes.pop(axis)] = each.lies
    return PartitionSpec(*(lies.get(axis) or None for axis in range(rank)))
