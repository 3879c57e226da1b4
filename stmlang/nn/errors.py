"""What a layer says of arrays that do not fit it."""

from __future__ import annotations

from collections.abc import Iterable

from jaxtyping import Array

from stmlang.runtime.signature import call_error


def require_shape(name: str, array: Array, shape: tuple[int, ...]) -> Array:
    """The array, if it has the shape. Raises SpecError (STM5201) with both shapes if not."""
    if array.shape == shape:
        return array
    lead = array.ndim - len(shape)
    batched = lead > 0 and array.shape[lead:] == shape
    help = "a layer takes one example: map it over the batch with `jax.vmap(layer)`" if batched else None
    raise call_error("STM5201", f"`{name}` must have the shape {shape}, not {array.shape}", help=help)


def require_names(what: str, given: Iterable[str], wanted: Iterable[str]) -> None:
    """Raises SpecError (STM5202) unless the names given are those wanted, with both."""
    names, asked = sorted(given), sorted(wanted)
    if names != asked:
        raise call_error("STM5202", f"`{what}` must hold {asked}, not {names}")
