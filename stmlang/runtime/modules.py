"""What equality and hashes of modules are: of their structure, and of their arrays by value. To be used as their `__eq__` and
`__hash__`.

`jax.checkpoint` and `jax.jit` remember what they made of a function by its hash. Equinox hashes a module's arrays, which cannot
be hashed; and it compares traced arrays, which cannot be compared.
"""

from __future__ import annotations

from typing import Any, cast

import equinox as eqx
import jax
from jax.core import Tracer


def equal(self: Any, other: Any, /) -> bool:
    """Whether two modules have the same structure and equal arrays. A traced array equals nothing but itself."""
    if self is other:
        return True
    if type(self) is not type(other):
        return False
    if _structure(self) != _structure(other):
        return False
    return all(_same(*pair) for pair in zip(jax.tree.leaves(self), jax.tree.leaves(other), strict=True))


def hash_of(self: Any) -> int:
    """A hash that equal modules share: of the structure, and of the arrays' shapes and types."""
    return hash((_structure(self), *(_kind(leaf) for leaf in jax.tree.leaves(self))))


def _kind(leaf: Any) -> Any:
    return (leaf.shape, leaf.dtype) if eqx.is_array(leaf) else cast(Any, type(leaf))


def _structure(module: Any) -> Any:
    return cast(Any, jax.tree.structure(module))


def _same(ours: Any, theirs: Any) -> bool:
    if ours is theirs:
        return True
    if isinstance(ours, Tracer) or isinstance(theirs, Tracer):
        return False
    return bool(eqx.tree_equal(ours, theirs))
