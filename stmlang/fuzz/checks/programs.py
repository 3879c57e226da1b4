"""Compiled programs for checks. Compiling takes most of a check's time: each program is compiled once for all sets of values,
and quickly where that is wanted (`quick_compilation`).

Sets of values are put to a program one by one, and not mapped over: it is the program of a single call that is tried, which is
the one that replays a saved finding. Mapping makes another program of it, and is a check of its own (`vmap`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from stmlang.fuzz.checks.point import Point, Tree, as_tree
from stmlang.fuzz.memory import forgotten_by
from stmlang.runtime.compiled import CompiledScan

QUICK = "jax_disable_most_optimizations"
OPTIONS: dict[str, str | bool] = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": "1"}
"""What makes the CPU's compiler three times as fast again, beside leaving out expensive passes."""


@cache
def _known() -> dict[str, str | bool]:
    """`OPTIONS`, if the installed XLA knows them."""
    try:
        jax.jit(jnp.negative).lower(0.0).compile(compiler_options=OPTIONS)
    except Exception:  # XLA has no exception of its own for it
        return {}
    return OPTIONS


def options() -> dict[str, str | bool]:
    """Options for compiling, as it is wanted now."""
    config: Any = jax.config
    return _known() if config.read(QUICK) else {}


@contextmanager
def quick_compilation() -> Generator[None]:
    """All within compiles without XLA's expensive passes. The setting that was there comes back."""
    config: Any = jax.config
    before = config.read(QUICK)
    config.update(QUICK, True)
    try:
        yield
    finally:
        config.update(QUICK, before)


KEPT = 12
"""Programs that are kept: those of one trial and way, and of what relations make of them."""
_kept: OrderedDict[Any, Any] = OrderedDict()
forgotten_by(_kept.clear)


def program(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """A function compiled for arguments of these shapes; the tables of a compiled scan among them are arguments too. What a
    `partial` was given are constants. The last few programs are kept, for other values of the arguments."""
    leaves, structure = cast("tuple[list[Any], Any]", jax.tree.flatten(arguments))
    whole = (function.func, function.args) if isinstance(function, partial) else function
    shapes = tuple((np.shape(leaf), str(leaf.dtype)) for leaf in leaves)
    key = whole, structure, shapes, tuple(options())
    if key not in _kept:
        lowered: Any = jax.jit(function).lower(*arguments)
        _kept[key] = lowered.compile(compiler_options=options())
    _kept.move_to_end(key)
    while len(_kept) > KEPT:
        _kept.popitem(last=False)
    return _kept[key]


def execute(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns, compiled by `program`, as arrays of numpy."""
    return jax.device_get(program(function, *arguments)(*arguments))


def arguments_of(point: Point, op: CompiledScan) -> Tree:
    """A point's arguments, in the data type of a compiled scan."""
    return as_dtype(as_tree(point.at), op)


def as_dtype(tree: Tree, op: CompiledScan) -> Tree:
    """Arrays in the data type of a compiled scan."""

    def put(array: np.ndarray[Any, Any]) -> jax.Array:
        return jnp.asarray(array, op.dtype)

    return jax.tree.map(put, tree)


def cotangent_of(point: Point, op: CompiledScan) -> Tree:
    """The same for its cotangent: `(h, states or None)`."""
    return as_dtype(point.cotangent, op)


def evaluated(op: CompiledScan, tree: Tree) -> tuple[jax.Array, Any]:
    """The result and, if the arguments have initial states, the final ones."""
    if tree[-1] is not None:
        return op(*tree, return_state=True)
    return op(*tree), None


def product(op: CompiledScan, tree: Tree, cotangent: Tree) -> tuple[jax.Array, Tree]:
    """The cotangent times what is evaluated, in the precision of the states; and that."""
    outputs = evaluated(op, tree)
    wide = jnp.float64 if op.dtype == "float64" else jnp.float32

    def dot(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.sum(a.astype(wide) * b.astype(wide))

    terms: list[jax.Array] = jax.tree.leaves(jax.tree.map(dot, cotangent, outputs))
    return sum(terms, start=jnp.zeros((), wide)), outputs


def differentiated(op: CompiledScan, tree: Tree, cotangent: Tree) -> tuple[Tree, Tree]:
    """What is evaluated, and the gradient of its product with the cotangent by all arguments."""
    (_, outputs), gradient = jax.value_and_grad(product, argnums=1, has_aux=True)(op, tree, cotangent)
    return outputs, gradient
