"""Calls of a stored program, under `jax.vmap` and `jax.grad` too.

`jax.export` gives a program and, where it was stored, that of its derivative, neither of which can be mapped. A program for any
batch size is mapped by making the mapped axis a part of the batch; another one is called once for each entry, in a loop. Every
derivative that is not stored is refused where it is used.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import jax
import jax.export
import numpy as np
from jaxtyping import Array

from stmlang.runtime.primitives import Flat, Program, Stored, is_float
from stmlang.runtime.signature import call_error
from stmlang.source.diagnostic import SpecError


def program_call(exported: jax.export.Exported, fixed: Flat, *, symbolic: bool, path: str, source: str) -> Program:
    """The program as a function of its arguments, a flat list of arrays behind those that are `fixed`, to a flat list of
    results. If `symbolic` all of them have a batch axis of any size in front.

    It can be differentiated once, in reverse mode, if the derivative was stored. Any other derivative raises SpecError
    (STM5314), which names the `path` of the artifact and says how to store the first derivative: `source`.
    """
    plain = partial(_called, exported, list(fixed))
    if not exported.has_vjp():
        return Stored(plain, symbolic, None, partial(_no_derivative, path, source))
    derivative = exported.vjp()
    floats = [is_float(aval) for aval in exported.in_avals[len(fixed) :]]
    real_results = [is_float(aval) for aval in exported.out_avals]

    def pulled(operands: Flat) -> list[Array]:
        """Cotangents of the arguments that are floating point numbers, from arguments and those of such results."""
        arguments, cotangents = list(operands[: len(floats)]), iter(operands[len(floats) :])
        results = jax.eval_shape(plain, arguments)
        full = [next(cotangents) if real else _no_tangent(aval) for real, aval in zip(real_results, results, strict=True)]
        back = _called(derivative, list(fixed), [*arguments, *full])[len(fixed) :]
        return [cotangent for cotangent, real in zip(back, floats, strict=True) if real]

    error = partial(_one_derivative, path)
    return Stored(plain, symbolic, Stored(pulled, symbolic, None, error), error)


def _no_derivative(path: str, source: str) -> SpecError:
    message = f"artifact `{path}` holds no derivative, and cannot be differentiated"
    return call_error("STM5314", message, help=source)


def _one_derivative(path: str) -> SpecError:
    message = f"artifact `{path}` holds its first derivative in reverse mode only, neither forward mode nor a second derivative"
    help = "differentiate it once, by `jax.grad`, `jax.vjp` or `jax.jacrev`; for anything else differentiate what was exported"
    return call_error("STM5314", message, help=help)


def _called(exported: jax.export.Exported, fixed: list[Any], arguments: Flat) -> list[Array]:
    """An exported program on flat arguments."""
    positional, named = cast(tuple[Any, Any], jax.tree.unflatten(cast(Any, exported).in_tree, [*fixed, *arguments]))
    return jax.tree.leaves(cast(Any, exported.call(*positional, **named)))


def _no_tangent(array: Any) -> np.ndarray:
    return cast(np.ndarray, np.zeros(array.shape, cast(Any, jax.dtypes).float0))
