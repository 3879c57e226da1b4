"""Calls of a stored program, under `jax.vmap` and `jax.grad` too.

`jax.export` gives a program and, where it was stored, that of its derivative, neither of which can be mapped. A program for any
batch size is mapped by making the mapped axis a part of the batch; another one is called once for each entry, in a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jaxtyping import Array

Flat = Sequence[Any]
Program = Callable[[Flat], list[Array]]


def program_call(exported: jax.export.Exported, fixed: Flat, *, symbolic: bool) -> Program:
    """The program as a function of its arguments, a flat list of arrays behind those that are `fixed`, to a flat list of
    results. If `symbolic` all of them have a batch axis of any size in front."""
    plain = mapped(partial(_called, exported, list(fixed)), symbolic)
    if not exported.has_vjp():
        return plain
    derivative = exported.vjp()
    floats = [_is_float(aval) for aval in exported.in_avals[len(fixed) :]]
    seen = [_is_float(aval) for aval in exported.out_avals]

    def pulled(given: Flat) -> list[Array]:
        """Cotangents of the arguments that are floating point numbers, from arguments and those of such results."""
        arguments, cotangents = list(given[: len(floats)]), iter(given[len(floats) :])
        results = jax.eval_shape(partial(_called, exported, list(fixed)), arguments)
        full = [next(cotangents) if real else _no_tangent(aval) for real, aval in zip(seen, results, strict=True)]
        found = _called(derivative, list(fixed), [*arguments, *full])[len(fixed) :]
        return [cotangent for cotangent, real in zip(found, floats, strict=True) if real]

    back = mapped(pulled, symbolic)

    @jax.custom_vjp
    def call(arguments: list[Array]) -> list[Array]:
        return plain(arguments)

    def forward(arguments: list[Array]) -> tuple[list[Array], list[Array]]:
        return plain(arguments), arguments

    def backward(arguments: list[Array], cotangents: list[Any]) -> tuple[list[Any]]:
        wanted = [cotangent for cotangent, real in zip(cotangents, seen, strict=True) if real]
        found = iter(back([*arguments, *wanted]))
        return ([next(found) if real else _no_tangent(array) for array, real in zip(arguments, floats, strict=True)],)

    call.defvjp(forward, backward)
    return cast(Program, call)


def mapped(function: Program, symbolic: bool) -> Program:
    """A function of a flat list of arrays that `jax.vmap` maps, also several times."""

    @custom_vmap
    def call(arguments: list[Array]) -> list[Array]:
        return function(arguments)

    @call.def_vmap
    def rule(size: int, batched: list[list[bool]], arguments: list[Array]) -> tuple[list[Array], list[bool]]:
        pairs = zip(arguments, batched[0], strict=True)
        whole = [array if mapped else jnp.broadcast_to(array[None], (size, *array.shape)) for array, mapped in pairs]
        if symbolic:
            inner = whole[0].shape[1]
            found = call([array.reshape(size * inner, *array.shape[2:]) for array in whole])
            found = [array.reshape(size, inner, *array.shape[1:]) for array in found]
        else:
            found = cast(list[Array], jax.lax.map(call, whole))
        return found, [True] * len(found)

    return cast(Program, call)


def _called(exported: jax.export.Exported, fixed: list[Any], arguments: Flat) -> list[Array]:
    """An exported program on flat arguments."""
    given, named = cast(tuple[Any, Any], jax.tree.unflatten(cast(Any, exported).in_tree, [*fixed, *arguments]))
    return jax.tree.leaves(cast(Any, exported.call(*given, **named)))


def _is_float(aval: Any) -> bool:
    return bool(jnp.issubdtype(aval.dtype, jnp.inexact))


def _no_tangent(array: Any) -> np.ndarray:
    return cast(np.ndarray, np.zeros(array.shape, cast(Any, jax.dtypes).float0))
