"""Kernels for GPUs, written in Pallas for Mosaic GPU: how they come into a program, and what they are made of.

A kernel stands beside a function of XLA's operations that computes the same. Where a program is lowered for `cuda` it has the
kernel, elsewhere the function, and derivatives of the kernel are those of the function unless an adjoint of kernels is given
(`stmlang.lower.adjoint`). Tests run kernels in Pallas' interpreter (`interpreted`).

Products of tiles are Hopper's: one warpgroup takes bfloat16 from shared memory or registers and adds up in float32. A number of
float32 is the sum of three of bfloat16, 8 bits each, and a product of two is six of the nine products of their parts: what is
left out is below 2^-24 of it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jaxtyping import Array

ROWS = 64
"""Of a tile of a product: a warpgroup has no other."""
STAGES = 2
"""Tiles are fetched while the one before is worked on."""

_interpreter: ContextVar[Any] = ContextVar("interpreter", default=None)


@contextmanager
def interpreted(parameters: Any) -> Generator[None]:
    """Whatever is traced in this context runs its kernels in Pallas' interpreter, on any platform. It is slow: for tests."""
    token = _interpreter.set(parameters)
    try:
        yield
    finally:
        _interpreter.reset(token)


def kernel_or(kernel: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """What a kernel computes where there is one, and the function of the same elsewhere: on other platforms, and where it is
    mapped over a batch of no known size, as a kernel's grid has one. Its derivative is the function's."""

    @custom_vmap
    def chosen(*args: Any) -> Any:
        if _interpreter.get() is not None:
            return kernel(*args)
        return cast(Any, lax.platform_dependent(*args, cuda=kernel, default=function))

    def over_batch(size: Any, batched: Sequence[Any], *args: Any) -> tuple[Any, Any]:
        axes = jax.tree.map(_axis, tuple(batched))
        mapped_kernel, mapped = (jax.vmap(one, in_axes=axes, axis_size=size) for one in (kernel, function))
        out = kernel_or(mapped_kernel, mapped)(*args) if isinstance(size, int) else mapped(*args)
        return out, jax.tree.map(_is_batched, out)

    chosen.def_vmap(over_batch)

    @jax.custom_jvp
    def call(*args: Any) -> Any:
        return chosen(*args)

    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        return call(*primals), jax.jvp(function, primals, tangents)[1]

    call.defjvp(rule)
    return call


def _axis(batched: bool) -> int | None:
    return 0 if batched else None


def _is_batched(array: Array) -> bool:
    del array
    return True


def launch(
    body: Callable[..., None], name: str, grid: dict[str, int], out: Any, scratch: Sequence[Any], *operands: Array
) -> Any:
    """Run a kernel once for every point of a grid. Its body takes references to operands, results and scratch."""
    body.__name__ = name
    kernel = plgpu.kernel(
        body,
        out_type=out,
        scratch_types=list(scratch),
        grid=tuple(grid.values()),
        grid_names=tuple(grid),
        interpret=_interpreter.get(),
    )
    return kernel(*operands)


# --- numbers as parts ------------------------------------------------------------------------------------------------


def parts_of(dtype: str) -> int:
    """How many numbers of bfloat16 make one of a program's data type. Programs hand over what they are given in float32."""
    return 1 if dtype == "bfloat16" else 3


def stacked(array: Array, count: int) -> Array:
    """An array as a sum of so many of bfloat16, along a new leading axis, the largest first."""
    return jnp.stack(_parts(array, count, _rounded))


def parts(tile: Array, count: int) -> list[Array]:
    """The same of a tile in a kernel."""
    in_kernel = _interpreter.get() is None
    return _parts(tile, count, (lambda x: x.astype(jnp.bfloat16).astype(jnp.float32)) if in_kernel else _rounded)


def _parts(array: Array, count: int, rounded: Callable[[Array], Array]) -> list[Array]:
    rest, found = array.astype(jnp.float32), list[Array]()
    for number in range(count):
        found.append(rest.astype(jnp.bfloat16))
        if number + 1 < count:
            rest = rest - rounded(rest)
    return found


def _rounded(array: Array) -> Array:
    """To bfloat16 and back, which XLA may take for nothing where it is written as two conversions."""
    return lax.reduce_precision(array, exponent_bits=8, mantissa_bits=7)


def pairs(count: int) -> list[tuple[int, int]]:
    """Which parts of two factors are multiplied, the smallest products first."""
    return sorted(((a, b) for a in range(count) for b in range(count - a)), key=lambda pair: -sum(pair))


# --- inside of kernels -----------------------------------------------------------------------------------------------


def product(factors: Sequence[tuple[Any, Any]], *, first_turned: bool = False, second_turned: bool = False) -> Array:
    """The sum of products of tiles, `(64 m, k)` by `(k, n)`, in float32. A first factor is a tile in shared memory or one in
    registers, a second in shared memory; each may be stored `turned`, as its transpose.

    Pallas' interpreter knows no turned tiles: there the product is an ordinary one."""
    if _interpreter.get() is not None:
        products = [_dot(a[...], b[...], first_turned, second_turned) for a, b in factors]
        return sum(products[1:], start=products[0])

    def turned(tile: Any, is_turned: bool) -> Any:
        return plgpu.transpose_ref(tile, (1, 0)) if is_turned else tile

    def run(accumulator: Any) -> Array:
        for a, b in factors:
            plgpu.wgmma(accumulator, turned(a, first_turned), turned(b, second_turned))
        return accumulator[...]

    (a, b), *_ = factors
    shape = a.shape[1 if first_turned else 0], b.shape[0 if second_turned else 1]
    return cast(Array, pl.run_scoped(run, plgpu.WGMMAAccumulatorRef(shape, jnp.float32)))


def _dot(a: Array, b: Array, a_turned: bool, b_turned: bool) -> Array:
    a, b = (array.astype(jnp.float32) for array in (a.T if a_turned else a, b.T if b_turned else b))
    return jnp.dot(a, b, precision=lax.Precision.HIGHEST)


def part_of(held: Any, count: int, number: int) -> Any:
    """One of the parts of a tile in shared memory, which lie below each other."""
    rows = held.shape[0] // count
    return held.at[pl.ds(number * rows, rows)]


def times(count: int, first: Any, second: Any, *, first_turned: bool = False) -> Array:
    """The product of two tiles in shared memory, in so many parts."""
    factors = [(part_of(first, count, a), part_of(second, count, b)) for a, b in pairs(count)]
    return product(factors, first_turned=first_turned)


def times_transposed(count: int, rows: Any, columns: Any) -> Array:
    """`rows columns^T`, likewise."""
    factors = [(part_of(rows, count, a), part_of(columns, count, b)) for a, b in pairs(count)]
    return product(factors, second_turned=True)


def weighted(count: int, weights: Array, rows: Any) -> Array:
    """`weights rows`, of weights in registers and a tile in so many parts."""
    split = parts(weights, count)
    return product([(split[a], part_of(rows, count, b)) for a, b in pairs(count)])


def as_tile(array: Array) -> Array:
    """An array `(64 m, n)` laid out as the results of products are."""
    return _laid(array, plgpu.Layout.WGMMA)


def as_column(array: Array, width: int) -> Array:
    """An array `(64 m,)` as a tile of equal columns."""
    column = _laid(array, plgpu.Layout.WGMMA.reduce(1))
    return lax.broadcast_in_dim(column, (array.shape[0], width), (0,))


def _laid(array: Array, layout: Any) -> Array:
    """The interpreter knows no layouts."""
    return array if _interpreter.get() is not None else cast(Array, plgpu.layout_cast(array, layout))


def empty_tile(rows: int, width: int) -> Array:
    return as_tile(jnp.zeros((rows, width), jnp.float32))


def tiles(*shape: int, dtype: Any, swizzle: int) -> Any:
    """Shared memory for arrays of tiles `(.., rows, width)`, in the order that copies and products read without conflicts:
    `swizzle` bytes of a row stay together."""
    item = jnp.dtype(dtype).itemsize
    transforms = plgpu.TilingTransform((8, swizzle // item)), plgpu.SwizzleTransform(swizzle)
    return plgpu.SMEM(shape, dtype, transforms=transforms)


def fetch_all(copies: Sequence[tuple[Any, Any]], arrived: Any) -> None:
    """Copy from memory, `(reference, held)`, and wait until all have arrived."""
    for ref, held in copies:
        plgpu.copy_gmem_to_smem(ref, held, arrived)
    plgpu.barrier_wait(arrived)


def send(held: Any, tile: Array, ref: Any) -> None:
    """A tile in registers to memory, by way of `held`."""
    held[...] = tile
    copied(held, ref)


def copied(held: Any, ref: Any) -> None:
    """What is held to memory."""
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(held, ref)
    plgpu.wait_smem_to_gmem(0)


def streamed(
    count: Any,
    barriers: Any,
    fetch: Callable[[Any, Any], None],
    step: Callable[[Any, Any, Any], Any],
    start: Any,
    stages: int = STAGES,
) -> Any:
    """`step(number, slot, carry)` for so many numbers in turn, after the copies that `fetch(number, slot)` starts have arrived
    at the barrier of their slot. There are so many slots and barriers as `stages`, and copies run that far ahead."""

    def first(number: Any, carry: None) -> None:
        fetch(number, number)
        return carry

    ahead = min(stages, count) if isinstance(count, int) else jnp.minimum(count, stages)
    lax.fori_loop(jnp.int32(0), jnp.int32(ahead), first, None)

    def turn(number: Any, carry: Any) -> Any:
        slot = lax.rem(number, jnp.int32(stages))
        plgpu.barrier_wait(barriers.at[slot])
        carry = step(number, slot, carry)

        @pl.when(number + stages < count)
        def _ahead() -> None:
            fetch(number + stages, slot)

        return carry

    return cast(Any, lax.fori_loop(jnp.int32(0), jnp.int32(count), turn, start))
