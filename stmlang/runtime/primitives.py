"""Stored programs as primitives of JAX, mapped and differentiated as far as what is stored goes.

`custom_vmap` in `custom_vjp` would answer forward mode with an error of JAX, second derivatives with an endless recursion.
Here the call of a program is one primitive, the tangents of its results are another, linear in those of its arguments, that can
be transposed and mapped. Where the transpose is not known, or the tangents themselves are asked for, the error is the program's
own. It is raised where a derivative is used, so that `jax.lax.stop_gradient` keeps it away.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from stmlang.lower.adjoint import filled, in_front
from stmlang.lower.mesh_axes import made_of

Flat = Sequence[Any]
Program = Callable[[Flat], list[Array]]


@dataclass(frozen=True, eq=False, repr=False)
class Stored:
    """A function of a flat list of arrays, called like one.

    If `symbolic` all arrays have a batch axis of any size in front. `pull` is its reverse mode: from its arguments and the
    cotangents of the results that are floating point numbers to the cotangents of the arguments that are such numbers. None
    is for one without. What `error` makes is raised where any other derivative is used.
    """

    function: Program
    symbolic: bool
    pull: Program | None
    error: Callable[[], Exception]

    def __call__(self, arguments: Flat) -> list[Array]:
        return cast(list[Array], _call.bind(*map(jnp.asarray, arguments), stored=self))


def is_float(array: Any) -> bool:
    """Whether something with a data type has derivatives."""
    return bool(jnp.issubdtype(array.dtype, jnp.inexact))


def _no_tangent(array: Any) -> Any:
    return ad.Zero(jax.typeof(array).to_tangent_aval())


def _size(operands: Sequence[Any], axes: Sequence[int | None]) -> int:
    return next(operand.shape[axis] for operand, axis in zip(operands, axes, strict=True) if axis is not None)


# --- the call --------------------------------------------------------------------------------------------------------

_call = Primitive("stored_call")
_call.multiple_results = True


def _apply(*operands: Array, stored: Stored) -> list[Array]:
    return stored.function(list(operands))


def _abstract(*operands: Any, stored: Stored) -> list[Any]:
    structs = [jax.ShapeDtypeStruct(operand.shape, operand.dtype) for operand in operands]
    return [made_of(operands, out.shape, out.dtype) for out in jax.eval_shape(stored.function, structs)]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, stored: Stored) -> tuple[list[Array], list[Any]]:
    results = stored(primals)
    moving = [ad.instantiate_zeros(tangent) for tangent, array in zip(tangents, primals, strict=True) if is_float(array)]
    outs = tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in results if is_float(array))
    made = iter(_tangents.bind(*primals, *moving, held=len(primals), outs=outs, pull=stored.pull, error=stored.error))
    return results, [next(made) if is_float(array) else _no_tangent(array) for array in results]


def _batch(operands: Sequence[Any], axes: Sequence[Any], *, stored: Stored) -> tuple[list[Array], list[int]]:
    size = _size(operands, axes)
    whole = [in_front(operand, axis, size) for operand, axis in zip(operands, axes, strict=True)]
    if stored.symbolic:
        inner = whole[0].shape[1]
        results = stored([array.reshape(size * inner, *array.shape[2:]) for array in whole])
        results = [array.reshape(size, inner, *array.shape[1:]) for array in results]
    else:
        results = cast(list[Array], jax.lax.map(stored, whole))
    return results, [0] * len(results)


_call.def_impl(_apply)
_call.def_abstract_eval(_abstract)
ad.primitive_jvps[_call] = _jvp
batching.primitive_batchers[_call] = _batch
mlir.register_lowering(_call, mlir.lower_fun(_apply, multiple_results=True))


# --- its tangents ----------------------------------------------------------------------------------------------------

_tangents = Primitive("stored_tangents")
_tangents.multiple_results = True
"""The tangents of results, `outs`, from `held` arguments and the tangents of those that are floating point numbers."""


def _asked(*_operands: Any, error: Callable[[], Exception], **_params: Any) -> list[Any]:
    raise error()


def _abstract_tangents(*operands: Any, outs: Sequence[Any], **_params: Any) -> list[Any]:
    return [made_of(operands, out.shape, out.dtype) for out in outs]


def _jvp_tangents(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    """Second derivatives, of which nothing is known."""
    moving = [tangent for tangent in tangents if type(tangent) is not ad.Zero]
    further = {**params, "held": len(primals), "pull": None}
    return _tangents.bind(*primals, **params), _tangents.bind(*primals, *moving, **further)


def _transpose(
    cotangents: Sequence[Any], *operands: Any, held: int, outs: Sequence[Any], pull: Program | None, error: Any
) -> list[Any]:
    if pull is None:
        raise error()
    pulled = pull([*operands[:held], *filled(cotangents, outs)])
    linear = map(ad.is_undefined_primal, operands[held:])
    return [None] * held + [back if asked else None for back, asked in zip(pulled, linear, strict=True)]


def _batch_tangents(
    operands: Sequence[Any], axes: Sequence[Any], *, held: int, outs: Sequence[Any], pull: Program | None, error: Any
) -> tuple[list[Array], list[int]]:
    """Tangents get the batch axis if they have none, so that the transpose sums over it outside."""
    size = _size(operands, axes)
    moving = [in_front(array, axis, size) for array, axis in zip(operands[held:], axes[held:], strict=True)]
    whole = tuple(jax.ShapeDtypeStruct((size, *out.shape), out.dtype) for out in outs)
    over = None if pull is None else partial(_over_batch, pull, [*axes[:held], *(0 for _ in outs)])
    mapped = _tangents.bind(*operands[:held], *moving, held=held, outs=whole, pull=over, error=error)
    return mapped, [0] * len(mapped)


def _over_batch(pull: Program, axes: list[int | None], operands: Flat) -> list[Array]:
    return jax.vmap(pull, (axes,))(list(operands))


_tangents.def_impl(_asked)
_tangents.def_abstract_eval(_abstract_tangents)
ad.primitive_jvps[_tangents] = _jvp_tangents
ad.primitive_transposes[_tangents] = _transpose
batching.primitive_batchers[_tangents] = _batch_tangents
mlir.register_lowering(_tangents, mlir.lower_fun(_asked, multiple_results=True))
