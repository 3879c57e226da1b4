"""What a layer says of sizes that it cannot have and of arrays that do not fit it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from math import prod
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from stmlang.graph.limits import LARGEST
from stmlang.runtime.compile import require_dtype
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.graphs import GraphScan
from stmlang.runtime.open import OpenScan
from stmlang.runtime.options import plain, whole_number
from stmlang.runtime.sharded import ShardedScan
from stmlang.runtime.sharded_graphs import ShardedGraphScan
from stmlang.runtime.signature import array_problem, call_error, is_array, shape_help
from stmlang.source.diagnostic import SpecError

Scanned = TypeVar("Scanned", bound=CompiledScan | OpenScan | GraphScan | ShardedScan | ShardedGraphScan)


# --- arrays


def require_array(name: str, array: Any, shape: tuple[int, ...], op: CompiledScan | None = None) -> Array:
    """The array, if it has the shape and holds floating point numbers. `op` is the scan that the shape belongs to.

    Raises SpecError (STM5201, STM5203, STM5205) if not.
    """
    floating = require_floats(name, array)
    if floating.shape == shape:
        return floating
    help = shape_help(name, shape, floating.shape, "layer", op is not None and op.compilation.at_run_time)
    raise call_error("STM5201", f"`{name}` must have the shape {shape}, not {floating.shape}", help=help)


def require_floats(name: str, array: Any) -> Array:
    """The array, if it holds floating point numbers. Raises SpecError (STM5203, STM5205) if not."""
    problem = array_problem(f"`{name}`", array)
    if problem is not None:
        raise SpecError([problem])
    return array if isinstance(array, jax.Array) else jnp.asarray(array)


def require_names(what: str, value: Any, expected: list[str]) -> Mapping[str, Any]:
    """The dictionary, if its names are those wanted. Raises SpecError (STM5202, STM5203) with both if not."""
    if not isinstance(value, Mapping):
        raise call_error("STM5203", f"`{what}` must be a dictionary of arrays by name, not {type(value).__name__}")
    arrays = cast(Mapping[Any, Any], value)
    if set(arrays) != set(expected):
        raise call_error("STM5202", f"`{what}` must hold {sorted(expected)}, not {sorted(arrays, key=str)}")
    return arrays


# --- what a layer is made of


def require_size(name: str, value: Any, least: int = 1) -> int:
    """A size: a whole number. Raises SpecError (STM5208) for anything else."""
    number = whole_number(value)
    if number is None or not least <= number <= LARGEST:
        raise call_error("STM5208", f"`{name}` must be a whole number from {least} to 2^31 - 1, not {value!r:.80}")
    return number


def require_type(name: str, value: Any) -> Any:
    """A data type of floating point numbers that JAX has. Raises SpecError: STM5207 for float64 while it is switched off,
    STM5208 for anything else."""
    try:
        dtype = jnp.dtype(value)
    except TypeError:
        dtype = None
    if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        message = f"`{name}` must be of floating point numbers, not {value!r:.80}"
        raise call_error("STM5208", message, help="such as `jnp.float32`")
    require_dtype(dtype.name)
    return dtype


def require_epsilon(value: Any) -> float:
    """What is added before a root is taken: a finite number, not negative. Raises SpecError (STM5208) for anything else."""
    number = plain(value)
    if isinstance(number, (int, float)) and not isinstance(number, bool) and 0 <= number < math.inf:
        return float(number)
    raise call_error("STM5208", f"`eps` must be a finite number that is not negative, not {value!r:.80}", help="such as 1e-5")


def require_probability(name: str, value: Any) -> float:
    """A probability below one. Raises SpecError (STM5208) for anything else."""
    number = plain(value)
    if isinstance(number, (int, float)) and not isinstance(number, bool) and 0 <= number < 1:
        return float(number)
    raise call_error("STM5208", f"`{name}` must be a probability, from 0 to below 1, not {value!r:.80}", help="such as 0.1")


def require_key(value: Any) -> PRNGKeyArray:
    """A key for random numbers, of either kind that JAX has. Raises SpecError (STM5208) for anything else."""
    if is_array(value):
        typed = jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
        if (typed and value.ndim == 0) or (value.dtype == jnp.uint32 and value.ndim == 1):
            return value
    shown = f"an array {value.dtype}{list(value.shape)}" if is_array(value) else f"{value!r:.80}"
    help = "make one with `jax.random.key(0)`; for several layers split it, and map with `jax.vmap`"
    raise call_error("STM5208", f"`key` must be one key of `jax.random`, not {shown}", help=help)


def require_scan(name: str, value: Scanned) -> Scanned:
    """A compiled scan. Raises SpecError (STM5208) for anything else, such as a spec or an artifact."""
    if isinstance(cast(Any, value), (CompiledScan, OpenScan, GraphScan, ShardedScan, ShardedGraphScan)):
        return value
    help = "compile the spec: `stmlang.compile(...)`; an artifact holds one program and cannot be a layer"
    raise call_error("STM5208", f"`{name}` must be a compiled scan, not {type(value).__name__}", help=help)


def require_countable(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a parameter. Raises SpecError (STM5208), before anything is allocated, for too many numbers."""
    count = prod(shape)
    if count > LARGEST:
        message = f"a parameter of shape {shape} would have {count:,} numbers, more than 2^31 - 1"
        raise call_error("STM5208", message, help="lower the layer's width, its heads, or the state's size")
    return shape
