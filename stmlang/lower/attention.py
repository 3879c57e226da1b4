"""Masked attention, `h[t] = sum over s of mask[s, t] (q[t] . k[s]) v[s]`: at once, and one block of targets after the other.

Masks have the source first, as gating matrices do, or `by_target` the target; axes in front are batches. Where entries of the
mask are made and met in one pass, a function of the scores takes the place of the mask: it gives the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jax
from jaxtyping import Array, Float

from stmlang.lower.contractions import matmul, times_transposed, transposed_times

Queries = Float[Array, "*batch target key"]
Keys = Float[Array, "*batch source key"]
Values = Float[Array, "*batch source value"]
Outputs = Float[Array, "*batch target value"]
Pairs = Float[Array, "*batch source target"]


def masked_attention(query: Queries, key: Keys, value: Values, mask: Pairs, *, by_target: bool = False) -> Outputs:
    """`((K Q^T) * mask)^T V`, or by target `((Q K^T) * mask) V`."""
    return weighed_attention(query, key, value, lambda scores: scores * mask, by_target=by_target)


def weighed_attention(
    query: Queries, key: Keys, value: Values, weigh: Callable[[Pairs], Pairs], *, by_target: bool = False
) -> Outputs:
    """The same by a function that makes weights of scores."""
    if by_target:
        return matmul(weigh(times_transposed(query, key)), value)
    return transposed_times(weigh(times_transposed(key, query)), value)


def streamed_attention(
    query: Float[Array, "block *batch target key"],
    key: Keys,
    value: Values,
    blocks: Any,
    weigh: Callable[[Any, Pairs], Pairs],
    *,
    by_target: bool = False,
) -> Float[Array, "block *batch target value"]:
    """The same block by block: nothing that has a number for each pair of nodes outlives its block.

    `blocks` is a pytree of arrays with a leading axis of blocks; `weigh` makes weights of what it holds of a block and of that
    block's scores. A backward pass makes scores and weights of every block once more.
    """

    def attended(block: tuple[Array, Any]) -> Array:
        targets, data = block
        return weighed_attention(targets, key, value, lambda scores: weigh(data, scores), by_target=by_target)

    return cast(Array, jax.lax.map(jax.checkpoint(attended), (query, blocks)))
