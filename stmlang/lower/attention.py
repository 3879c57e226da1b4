"""Masked attention, `h[t] = sum over s of mask[s, t] (q[t] . k[s]) v[s]`: with the mask at hand, and block by block.

    H = ((K Q^T) * mask)^T V

Masks have the source first, as gating matrices do; axes in front are batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jax
from jaxtyping import Array, Float

from stmlang.lower.contractions import times_transposed, transposed_times

Queries = Float[Array, "*batch target key"]
Keys = Float[Array, "*batch source key"]
Values = Float[Array, "*batch source value"]
Mask = Float[Array, "*batch source target"]
Outputs = Float[Array, "*batch target value"]


def masked_attention(query: Queries, key: Keys, value: Values, mask: Mask) -> Outputs:
    """All targets at once."""
    return transposed_times(times_transposed(key, query) * mask, value)


def streamed_attention(
    query: Float[Array, "block *batch target key"],
    key: Keys,
    value: Values,
    blocks: Any,
    mask_of_block: Callable[[Any], Mask],
) -> Float[Array, "block *batch target value"]:
    """The same with one block of targets after the other: nothing that has a number for each pair of nodes outlives its block.

    `blocks` is a pytree of arrays with a leading axis of blocks, from which `mask_of_block` makes the mask of one. The backward
    pass makes every block's mask and scores once more.
    """

    def attended(block: tuple[Array, Any]) -> Array:
        targets, data = block
        return masked_attention(targets, key, value, mask_of_block(data))

    return cast(Array, jax.lax.map(jax.checkpoint(attended), (query, blocks)))
