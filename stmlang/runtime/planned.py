"""Calls of a scan that are planned for the batch they are mapped over, and for whether they are differentiated.

A call without a batch says nothing of how many there will be: `jax.vmap` only tells when it maps. Nor does it say whether its
derivative will be asked for. So a call is one primitive of JAX, `scan_call`, whose batching rule notes the axes and multiplies
the batch; which program runs is decided when the primitive is lowered, evaluated or differentiated, by what is known then. One
that is lowered or evaluated was not differentiated, and runs the program for inference. Differentiated, it is replaced by what
the program for training does, so that derivatives of every mode and order are those of that program. Where `vmap` is around a
derivative, as in `vmap(grad(f))`, the arguments of the derivative's rule are tracers that know the batch. They do not where a
function that is traced by itself stands between the two, as in `vmap(jit(grad(f)))`: there the program is the one of an
unmapped call.

The index tables of a program that is chosen for a call are constants of it: only small ones may be.

Where the batch lies along an axis of an explicit mesh, each device evaluates its share by itself, in `jax.shard_map`
(`stmlang.runtime.shares`): states stay where they are, and a program meets no types with axes of meshes in them.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from stmlang.cost.problem import Mode
from stmlang.graph.shapes import Shape
from stmlang.log import CACHE, on
from stmlang.lower.adjoint import filled, is_real
from stmlang.lower.empty import flattened, solid
from stmlang.lower.mesh_axes import alike, made_of
from stmlang.program.execute import run
from stmlang.program.program import Bundle, Program
from stmlang.program.states import LOG_SCALE, State
from stmlang.runtime.compilation import Compilation
from stmlang.runtime.shares import Names, in_shares, lead_of, share_of
from stmlang.runtime.signature import call_error
from stmlang.scan.expression import InputRef, inside
from stmlang.source.diagnostic import SpecError

Axes = tuple[int | None, ...]


class Mapped(NamedTuple):
    """One `vmap`: the axis of every operand, the name of the mesh axis that a caller spreads it over, and the axes of an
    explicit mesh along which the batch lies already."""

    axes: Axes
    spread: Any
    lies: Names


@dataclass(frozen=True)
class ScanCall:
    """Everything static of a call. `tables` and `arguments` are the structures of its operands: index tables first, then
    inputs, gates, the initial state, mask and segments; arrays without a number are part of the structures. `scaled` asks for
    the final state at the scan's own scale. `maps` are those of `vmap` from the innermost outwards, `batch` how many
    evaluations there are by then on a device. `mode` is training once it is differentiated or transposed. `bound` says that
    the tables came mapped themselves, so that no other program can do with them."""

    compilation: Compilation
    tables: Any
    arguments: Any
    return_state: bool
    masked: bool
    scaled: bool = False
    maps: tuple[Mapped, ...] = ()
    batch: Any = 1
    mode: Mode = "inference"
    bound: bool = False

    @property
    def program(self) -> Program:
        """The program that is planned for the batch and the mode."""
        return self.own if self.bound else self.compilation.runs(self.batch, self.mode, self.masked)[1]

    @property
    def own(self) -> Program:
        """The program of one call, whose tables are among the operands."""
        return self.compilation.maskable if self.masked else self.compilation.program

    @property
    def results(self) -> list[tuple[Shape, Any]]:
        """Shape and data type of each result of one evaluation: of the scan, and of the states that leave it."""
        signature, program = self.compilation.signature, self.compilation.program
        leaving = signature.final if self.return_state else ()
        beside = {LOG_SCALE: signature.scale} if self.scaled and signature.scale is not None else {}
        states = jax.tree.leaves([{**ports, **beside} for ports in leaving], is_leaf=lambda node: isinstance(node, tuple))
        return [(signature.result, program.dtype), *((shape, program.accumulator) for shape in states)]

    @property
    def held(self) -> int:
        """How many operands are tables."""
        return cast(int, self.tables.num_leaves)


def call_scan(
    compilation: Compilation,
    tables: tuple[Bundle, ...],
    arguments: tuple[dict[str, Any], dict[str, Any], State | None, Any, Any],
    return_state: bool,
    scaled: bool = False,
) -> tuple[Array, State | None]:
    """`run` for inputs, gates, the initial state, mask and segments, by the program that the call asks for."""
    leaves, structure = flattened(arguments)
    held, tables_structure = flattened(tables)
    scaled = scaled and compilation.signature.scale is not None
    masked = any(argument is not None for argument in arguments[3:])
    call = ScanCall(compilation, tables_structure, structure, return_state, masked, scaled)
    operands = [*held, *leaves]
    known = evaluate_cache_size() if on(CACHE) else 0
    results = _scan_call.bind(*map(_array, operands), call=call)
    if on(CACHE) and not isinstance(results[0], Tracer):
        origin = "compiled before" if evaluate_cache_size() == known else "compiled now"
        CACHE.info("call of %r: %s", call.program, origin)
    if not return_state:
        return results[0], None
    beside = (LOG_SCALE,) if scaled else ()
    ports = jax.tree.structure(tuple(dict.fromkeys((*shapes, *beside), 0) for shapes in compilation.signature.final))
    return results[0], cast(State, jax.tree.unflatten(ports, results[1:]))


def _array(value: Any) -> Any:
    return value if isinstance(value, jax.Array) else jnp.asarray(value)


# --- the primitive ---------------------------------------------------------------------------------------------------


@partial(jax.jit, static_argnums=0)
def _evaluate(call: ScanCall, *operands: Any) -> list[Array]:
    """The results of a call, each with its batch axes in front: the outermost first."""
    program = call.program

    def single(*operands: Any) -> list[Array]:
        held = jax.tree.unflatten(call.tables, operands[: call.held])
        inputs, gates, initial, mask, segments = solid(jax.tree.unflatten(call.arguments, operands[call.held :]))
        tables = solid(held) if program is call.own else program.tables
        return jax.tree.leaves(run(program, tables, inputs, gates, initial, call.return_state, mask, segments, call.scaled))

    function: Callable[..., list[Array]] = single
    for axes, spread, _ in call.maps:
        function = jax.vmap(function, in_axes=axes, spmd_axis_name=spread)
    return in_shares(function, call.maps, operands)


def evaluate_cache_size() -> int:
    """How many programs of calls JAX keeps, by scan, shapes and types."""
    return cast(Any, _evaluate)._cache_size()


_scan_call = Primitive("scan_call")
_scan_call.multiple_results = True


def _apply(*operands: Any, call: ScanCall) -> list[Array]:
    return _evaluate(call, *operands)


def _abstract(*operands: Any, call: ScanCall) -> list[Any]:
    """The types of results, whichever program runs."""
    sizes, shapes = list[int](), [operand.shape for operand in operands]
    for axes, _, _ in reversed(call.maps):
        sizes.append(next(shape[axis] for shape, axis in zip(shapes, axes, strict=True) if axis is not None))
        shapes = [
            shape if axis is None else (*shape[:axis], *shape[axis + 1 :]) for shape, axis in zip(shapes, axes, strict=True)
        ]
    return [made_of(operands, (*sizes, *shape), dtype, lead_of(call.maps)) for shape, dtype in call.results]


def _batch(axis_data: Any, operands: Sequence[Any], axes: Sequence[Any], *, call: ScanCall) -> tuple[Any, Any]:
    mapped = any(axis is not None for axis in axes)
    if mapped:
        bound = call.bound or any(axis is not None for axis in axes[: call.held])
        lies = tuple(axis_data.explicit_mesh_axis or ())
        share = share_of(axis_data.size, lies, operands)
        maps = (*call.maps, Mapped(tuple(axes), axis_data.spmd_name, lies))
        call = replace(call, maps=maps, batch=call.batch * share, bound=bound)
    results = _scan_call.bind(*operands, call=call)
    return results, [0 if mapped else None] * len(results)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call: ScanCall) -> tuple[list[Array], list[Any]]:
    call = replace(call, batch=call.batch * _mapped_outside([*primals, *tangents]), mode="training")
    moving = [k for k, tangent in enumerate(tangents) if type(tangent) is not ad.Zero and is_real(primals[k])]
    function = partial(_of_moving, call, primals, moving)
    return jax.jvp(function, tuple(primals[k] for k in moving), tuple(tangents[k] for k in moving))


def _of_moving(call: ScanCall, operands: Sequence[Any], places: Sequence[int], *moving: Any) -> list[Array]:
    """A call as a function of some of its operands."""
    whole = list(operands)
    for place, operand in zip(places, moving, strict=True):
        whole[place] = operand
    return _evaluate(call, *whole)


def _transpose(cotangents: Sequence[Any], *operands: Any, call: ScanCall) -> list[Any]:
    """Of a call that is linear in the operands that are unknown, such as the values. There the transpose is that of its
    derivative, anywhere: strategies have one, also those whose loops JAX cannot transpose as they are."""
    unknown = [k for k, operand in enumerate(operands) if ad.is_undefined_primal(operand)]
    call = replace(call, mode="training")
    function = partial(_of_moving, call, operands, unknown)
    shapes = [jax.ShapeDtypeStruct(operands[k].aval.shape, operands[k].aval.dtype) for k in unknown]
    outs = filled(cotangents, cast(list[Any], jax.eval_shape(function, *shapes)))
    if _is_linear(call, unknown):
        zeros = alike([jnp.zeros(shape.shape, shape.dtype) for shape in shapes], outs)
        pulled = cast(Any, jax.vjp(function, *zeros))[1](outs)
    else:
        try:
            pulled = jax.linear_transpose(function, *shapes)(outs)
        except (AssertionError, NotImplementedError, TypeError, ValueError) as error:
            raise _not_linear(call, unknown) from error
    back = dict(zip(unknown, pulled, strict=True))
    return [back.get(k) for k in range(len(operands))]


def _not_linear(call: ScanCall, unknown: Sequence[int]) -> SpecError:
    """What a call that is transposed in these operands raises, whichever step of it JAX has no transpose of."""
    inputs, gates, initial, _, _ = jax.tree.unflatten(call.arguments, range(call.held, call.held + call.arguments.num_leaves))
    named = {number: f"`{name}`" for name, number in {**inputs, **gates}.items()}
    named |= dict.fromkeys(jax.tree.leaves(initial), "the initial state")
    names = ", ".join(dict.fromkeys(named[number] for number in unknown if number in named))
    return call_error(
        "STM5214",
        f"a call of scan `{call.program.scan.name}` cannot be transposed in {names}",
        help="transpose it in one of `q`, `k` and `v` that no gate reads, in `v` and the initial state, or take `jax.vjp`, "
        "which needs no linearity",
    )


def _is_linear(call: ScanCall, unknown: Sequence[int]) -> bool:
    """Whether a call is linear in these operands, whatever the program: in one of `q`, `k` and `v` that no gate reads, and
    with `v` in states too; where there is a normalizer, in `v` alone."""
    scan = call.compilation.facts.scan
    inputs, _, initial, _, _ = jax.tree.unflatten(call.arguments, range(call.held, call.held + call.arguments.num_leaves))
    names, states = {name for name, number in inputs.items() if number in unknown}, set(jax.tree.leaves(initial))
    read = {
        expr.name
        for gate in scan.gates
        for clause in gate.clauses
        for expr in inside(clause.value)
        if isinstance(expr, InputRef)
    }
    entering = states & set(unknown)
    if len(names) + len(entering) < len(unknown) or names & read:
        return False
    if entering or scan.normalize != "none":
        return names == {"v"} and (scan.normalize == "none" or not entering)
    return len(names) == 1


def _mapped_outside(values: Sequence[Any]) -> Any:
    """The product of the sizes that `vmap` maps over outside of a derivative, as far as its tracers know them."""
    sizes: dict[int, Any] = {}
    waiting = [value for value in values if isinstance(value, Tracer)]
    while waiting:
        tracer = waiting.pop()
        axis = getattr(tracer, "batch_dim", None)
        inner = getattr(tracer, "val", None) if axis is not None else None
        if isinstance(axis, int) and inner is not None:
            sizes[id(cast(Any, tracer)._trace.tag)] = inner.shape[axis]
        further = [inner, *(getattr(tracer, name, None) for name in ("primal", "tangent"))]
        waiting += [value for value in further if isinstance(value, Tracer)]
    product: Any = 1
    for size in sizes.values():
        product = product * size
    return product


_scan_call.def_impl(_apply)
_scan_call.def_abstract_eval(_abstract)
ad.primitive_jvps[_scan_call] = _jvp
ad.primitive_transposes[_scan_call] = _transpose
batching.fancy_primitive_batchers[_scan_call] = _batch
mlir.register_lowering(_scan_call, mlir.lower_fun(_apply, multiple_results=True))
