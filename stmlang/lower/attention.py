"""Masked attention, `h[t] = sum over s of mask[s, t] (q[t] . k[s]) v[s]`: at once, and one block of targets after the other.

Masks have the source first, as gating matrices do, or `by_target` the target; axes in front are batches. Where entries of the
mask are made and met in one pass, a function of the scores takes the place of the mask: it gives the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jax
from jaxtyping import Array, Float

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.contractions import matmul, times_transposed, transposed, transposed_times

Queries = Float[Array, "*batch target key"]
Keys = Float[Array, "*batch source key"]
Values = Float[Array, "*batch source value"]
Outputs = Float[Array, "*batch target value"]
Pairs = Float[Array, "*batch source target"]


def masked_attention(query: Queries, key: Keys, value: Values, mask: Pairs, *, by_target: bool = False) -> Outputs:
    """`((K Q^T) * mask)^T V`, or by target `((Q K^T) * mask) V`."""
    if by_target:
        return matmul(times_transposed(query, key) * mask, value)
    return transposed_times(times_transposed(key, query) * mask, value)


def weighed_attention(
    query: Queries, key: Keys, value: Values, weigh: Callable[[Pairs], Pairs], *, by_target: bool = False
) -> Outputs:
    """The same by a function that makes weights of scores."""
    if by_target:
        return matmul(weigh(times_transposed(query, key)), value)
    return _gathered(weigh(times_transposed(key, query)), value)


def _sums(weights: Pairs, value: Values) -> Outputs:
    return matmul(transposed(weights), value)


def _sums_forward(weights: Pairs, value: Values) -> tuple[Outputs, tuple[()]]:
    return _sums(weights, value), ()


def _sums_backward(arguments: tuple[Pairs, Values], saved: tuple[()], cotangent: Outputs) -> tuple[Pairs, Values]:
    del saved
    weights, value = arguments
    return times_transposed(value, cotangent), matmul(weights, cotangent)


_gathered = with_adjoint(_sums, _sums_forward, _sums_backward)
"""`W^T V`. The cotangent of the weights is made source first, as what `weigh` is differentiated by reads it. Made target first,
as by default, and turned around it takes a fifth more time in training (`separable` at 64x64, two lines at a time)."""


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
        targets, held = block
        return weighed_attention(targets, key, value, lambda scores: weigh(held, scores), by_target=by_target)

    return cast(Array, jax.lax.map(jax.checkpoint(attended), (query, blocks)))
