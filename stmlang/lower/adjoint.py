"""Hand-written adjoints that leave forward mode, batching and second derivatives alone.

`jax.custom_vjp` forbids forward mode. Here a function keeps its own derivative, and only the transpose of that derivative is
replaced: reverse mode reads the tangent map `t -> J t` as one primitive, whose transpose is written by hand. In forward mode
the primitive is `jax.jvp` of the function; differentiated again, it and its transpose are differentiated as what they are.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from stmlang.lower.mesh_axes import alike, made_of

Adjoint = Callable[[tuple[Any, ...], Any, Any], tuple[Any, ...]]
"""`(arguments, saved, cotangent) -> cotangents of the arguments`, None for one that gets none."""


Along = Callable[[tuple[Any, ...], tuple[Any, ...]], Any]
"""`(arguments, tangents) -> tangent`, None for the tangent of an array of integers."""


def with_adjoint(
    plain: Callable[..., Any], forward: Callable[..., tuple[Any, Any]], backward: Adjoint, along: Along | None = None
) -> Callable[..., Any]:
    """`plain` with another reverse mode.

    `forward(*args)` returns what `plain(*args)` does and what is to be saved; `backward(args, saved, cotangent)` returns the
    cotangents of `args`. `along(args, tangents)` is the derivative, where it is not to be the one that JAX finds of `plain`.
    Arguments, results and what is saved are pytrees of arrays; integers among them have no derivative. None of the four may
    use traced arrays that are not its arguments.
    """

    @jax.custom_jvp
    def function(*args: Any) -> Any:
        flat, tree = jax.tree.flatten(alike(plain(*args), args))
        return jax.tree.unflatten(tree, _together.bind(*flat, *jax.tree.leaves(args), outs=len(flat)))

    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        out, saved = forward(*primals)
        out = alike(out, primals)
        return out, _tangent(plain, backward, along, primals, saved, tangents, out)

    function.defjvp(rule)

    def call(*args: Any) -> Any:
        return function(*alike(args))

    return call


def _tangent(
    plain: Any, backward: Adjoint, along: Along | None, args: tuple[Any, ...], saved: Any, tangents: tuple[Any, ...], out: Any
) -> Any:
    """The tangent map at `args`, as one primitive that is linear in the tangents of the real arguments."""
    flat_args, args_tree = jax.tree.flatten(args)
    flat_saved, saved_tree = jax.tree.flatten(saved)
    flat_out, out_tree = jax.tree.flatten(out)
    flat_tangents = jax.tree.leaves(tangents)
    real = tuple(k for k, array in enumerate(flat_args) if is_real(array))
    count = len(flat_args)

    def push(fixed: Sequence[Array], moving: Sequence[Array]) -> list[Array]:
        """`J t`, by forward mode of the plain function unless it is given."""
        arguments = list(fixed[:count])
        if along is not None:
            moved: list[Array | None] = [None] * count
            for k, array in zip(real, moving, strict=True):
                moved[k] = array
            tangent = along(jax.tree.unflatten(args_tree, arguments), jax.tree.unflatten(args_tree, moved))
            return jax.tree.leaves(alike(tangent, fixed, moving))

        def at(*arrays: Array) -> Any:
            whole = list(arguments)
            for k, array in zip(real, arrays, strict=True):
                whole[k] = array
            return plain(*jax.tree.unflatten(args_tree, whole))

        _, tangent = jax.jvp(at, tuple(arguments[k] for k in real), tuple(moving))
        return jax.tree.leaves(alike(tangent, fixed, moving))

    def pull(fixed: Sequence[Array], cotangents: Sequence[Array]) -> list[Array]:
        """`J^T c`, by hand."""
        whole = jax.tree.unflatten(args_tree, fixed[:count])
        back = backward(whole, jax.tree.unflatten(saved_tree, fixed[count:]), jax.tree.unflatten(out_tree, cotangents))
        return alike(_of_real(whole, back), fixed, cotangents)

    moving = [flat_tangents[k] for k in real]
    tangent = _linear.bind(
        *flat_args, *flat_saved, *moving, push=push, pull=pull, fixed=count + len(flat_saved), outs=_avals(flat_out)
    )
    return jax.tree.unflatten(out_tree, tangent)


def _of_real(args: Any, back: Sequence[Any]) -> list[Array]:
    """The cotangents of the real arrays among the arguments; zeros where `back`, or an array of its entry, is None."""
    cotangents: list[Array] = []
    for entry, argument in zip(back, args, strict=True):
        arrays = jax.tree.leaves(argument, is_leaf=_is_none)
        by_hand = [None] * len(arrays) if entry is None else jax.tree.leaves(entry, is_leaf=_is_none)
        for cotangent, array in zip(by_hand, arrays, strict=True):
            if array is not None and is_real(array):
                nothing = cotangent is None
                cotangents.append(jnp.zeros(jnp.shape(array), array.dtype) if nothing else cotangent.astype(array.dtype))
    return cotangents


def is_real(array: Any) -> bool:
    """Whether an array has numbers that derivatives are taken by."""
    return jnp.issubdtype(jnp.result_type(array), jnp.floating)


def _is_none(entry: Any) -> bool:
    return entry is None


def _avals(arrays: Sequence[Array]) -> tuple[jax.ShapeDtypeStruct, ...]:
    return tuple(jax.ShapeDtypeStruct(jnp.shape(array), jnp.result_type(array)) for array in arrays)


# --- the primitive ---------------------------------------------------------------------------------------------------

_linear = Primitive("tangent_map")
_linear.multiple_results = True


def _apply(*operands: Array, push: Any, pull: Any, fixed: int, outs: Any) -> list[Array]:
    del pull, outs
    return push(operands[:fixed], operands[fixed:])


def _abstract(*operands: Any, push: Any, pull: Any, fixed: int, outs: Any) -> list[Any]:
    del push, pull, fixed
    return [made_of(operands, out.shape, out.dtype) for out in outs]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    """Linear in the moving operands; in the fixed ones the derivative of `push` is taken as it is."""
    fixed, push = params["fixed"], params["push"]
    out = _linear.bind(*primals, **params)
    moving = [ad.instantiate_zeros(tangent) for tangent in tangents[fixed:]]
    along = _linear.bind(*primals[:fixed], *moving, **params)
    varying = [k for k, tangent in enumerate(tangents[:fixed]) if type(tangent) is not ad.Zero]
    if not varying:
        return out, along

    def at(*arrays: Array) -> list[Array]:
        whole = list(primals[:fixed])
        for k, array in zip(varying, arrays, strict=True):
            whole[k] = array
        return push(whole, primals[fixed:])

    _, across = jax.jvp(at, tuple(primals[k] for k in varying), tuple(tangents[k] for k in varying))
    return out, [jnp.add(a, b) for a, b in zip(along, across, strict=True)]


def _transpose(cotangents: Sequence[Any], *operands: Any, pull: Any, fixed: int, outs: Any, push: Any) -> list[Any]:
    del push
    if any(ad.is_undefined_primal(operand) for operand in operands[:fixed]):
        raise AssertionError("a tangent map is linear in its tangents only")
    pulled = pull(operands[:fixed], alike(filled(cotangents, outs), operands[:fixed]))
    moving = operands[fixed:]
    return [None] * fixed + [
        back if ad.is_undefined_primal(operand) else None for back, operand in zip(pulled, moving, strict=True)
    ]


def _batch(operands: Sequence[Any], axes: Sequence[Any], *, push: Any, pull: Any, fixed: int, outs: Any) -> tuple[Any, Any]:
    """The map of each member: tangents get the batch axis if they have none, so that the transpose sums over it outside."""
    size = next(operand.shape[axis] for operand, axis in zip(operands, axes, strict=True) if axis is not None)
    held = list(axes[:fixed])
    moving = [in_front(operand, axis, size) for operand, axis in zip(operands[fixed:], axes[fixed:], strict=True)]
    results = _linear.bind(
        *operands[:fixed],
        *moving,
        push=partial(_over_batch, push, held),
        pull=partial(_over_batch, pull, held),
        fixed=fixed,
        outs=tuple(jax.ShapeDtypeStruct((size, *out.shape), out.dtype) for out in outs),
    )
    return results, [0] * len(results)


def filled(cotangents: Sequence[Any], outs: Sequence[Any]) -> list[Array]:
    """Cotangents as arrays: of zeros where JAX leaves zeros out."""
    return [
        jnp.zeros(out.shape, out.dtype) if type(cotangent) is ad.Zero else cotangent
        for cotangent, out in zip(cotangents, outs, strict=True)
    ]


def in_front(array: Array, axis: int | None, size: int) -> Array:
    """An array with its batch axis, which it may lack, in front."""
    return jnp.broadcast_to(array, (size, *array.shape)) if axis is None else jnp.moveaxis(array, axis, 0)


def _over_batch(function: Any, held: list[int | None], fixed: Sequence[Array], moving: Sequence[Array]) -> list[Array]:
    return jax.vmap(function, in_axes=(held, 0))(list(fixed), list(moving))


_linear.def_impl(_apply)
_linear.def_abstract_eval(_abstract)
ad.primitive_jvps[_linear] = _jvp
ad.primitive_transposes[_linear] = _transpose
batching.primitive_batchers[_linear] = _batch
mlir.register_lowering(_linear, mlir.lower_fun(_apply, multiple_results=True))


# --- results that are mapped over together ---------------------------------------------------------------------------

_together = Primitive("together")
_together.multiple_results = True
"""Results beside the arguments that they come from, unchanged. The tangents of all results have a batch axis if any argument
has one, and so must the results, be there some that do not depend on it."""


def _first(*operands: Array, outs: int) -> list[Array]:
    return list(operands[:outs])


def _batch_together(operands: Sequence[Any], axes: Sequence[Any], *, outs: int) -> tuple[Any, Any]:
    size = next(operand.shape[axis] for operand, axis in zip(operands, axes, strict=True) if axis is not None)
    moved = [in_front(operand, axis, size) for operand, axis in zip(operands, axes, strict=True)]
    return _together.bind(*moved, outs=outs), [0] * outs


def _jvp_together(primals: Sequence[Any], tangents: Sequence[Any], *, outs: int) -> tuple[Any, Any]:
    return _together.bind(*primals, outs=outs), [ad.instantiate_zeros(tangent) for tangent in tangents[:outs]]


def _transpose_together(cotangents: Sequence[Any], *operands: Any, outs: int) -> list[Any]:
    """Nothing comes back to the arguments from here: it does by way of the results."""
    asked = [ad.is_undefined_primal(operand) for operand in operands[:outs]]
    back = [cotangent if is_linear else None for cotangent, is_linear in zip(cotangents, asked, strict=True)]
    return [*back, *[None] * (len(operands) - outs)]


_together.def_impl(_first)
_together.def_abstract_eval(_first)
ad.primitive_jvps[_together] = _jvp_together
ad.primitive_transposes[_together] = _transpose_together
batching.primitive_batchers[_together] = _batch_together
mlir.register_lowering(_together, mlir.lower_fun(_first, multiple_results=True))
