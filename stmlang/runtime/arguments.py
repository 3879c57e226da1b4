"""Whether what a loaded scan is called with is what its program takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from stmlang.graph.shapes import Shape
from stmlang.runtime.signature import call_error, is_array, jax_type


def arrays_for(
    path: str, given: Any, expected: Mapping[str, Shape], what: str, dtype: str, *, batched: bool, help: str | None = None
) -> list[Any]:
    """The arrays given by name, in the order of those that the artifact in `path` takes; `help` says what to do about another
    shape. Raises SpecError (STM5311, STM5312) for others, naming both."""
    if not isinstance(given, Mapping):
        message = f"the {what} of artifact `{path}` are a dictionary; given was {type(given).__name__}"
        raise call_error("STM5312", message, help=f"give an array for each of {_listed(expected)}")
    arrays = cast(Mapping[Any, Any], given)
    if set(arrays) != set(expected):
        message = f"artifact `{path}` has the {what} {_listed(expected)}; given were {_listed(arrays)}"
        raise call_error("STM5312", message, help="give exactly these")
    lead = 1 if batched else 0
    for name, shape in expected.items():
        array = arrays[name]
        kind = str(jax_type(array)) if is_array(array) else type(array).__name__
        if kind != dtype:
            message = f"`{name}` among the {what} of artifact `{path}` is {dtype}; given was {kind}"
            raise call_error("STM5311", message, help=f"convert it: `jnp.asarray(x, jnp.{dtype})`")
        actual = tuple(array.shape)
        if len(actual) != lead + len(shape) or actual[lead:] != tuple(shape):
            expected_shape = ", ".join([*(["batch"] * lead), *map(str, shape)])
            message = f"`{name}` among the {what} of artifact `{path}` has the shape ({expected_shape}); given was {actual}"
            raise call_error("STM5312", message, help=help or "an artifact runs at the sizes that it was compiled for")
    return [arrays[name] for name in expected]


def _listed(names: Mapping[Any, Any]) -> str:
    return "[" + ", ".join(f"`{name}`" for name in sorted(names, key=str)) + "]"
