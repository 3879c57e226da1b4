"""A grid as a chain of rows: rows far apart meet in the states on the few edges between two (see `stmlang.lower.row_runs`).

Runs are doubled: what two neighbours see of each other meets their scores at once and is not kept, and they become one run. So
no gating matrix is ever whole, no part of it is made twice, and none of its zeros are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import jax.numpy as jnp
from jaxtyping import Array

from stmlang.cost.runs import Cut
from stmlang.lower.attention import masked_attention
from stmlang.lower.row_runs import Inputs, Runs, attended, by_runs, doubled, neighbours
from stmlang.lower.strategy import LoweringContext
from stmlang.strategies.rows.settings import Rows


def _between(inputs: Inputs, forward: tuple[Runs, Runs] | None, backward: tuple[Runs, Runs] | None, targets: int) -> Array:
    """What the runs of every pair read of each other: the second of the first in the forward sense, the first of the second in
    the backward one. `(lane, run, node, value)`."""
    if forward is not None and backward is not None and forward[0].mark.shape != backward[0].mark.shape:
        return _between(inputs, forward, None, targets) + _between(inputs, None, backward, targets)
    marks, sources = list[Array](), list[Array]()
    if backward is not None:
        marks.append(backward[0].mark)
        sources.append(backward[1].source)
    if forward is not None:
        marks.append(forward[1].mark)
        sources.append(forward[0].source)
    first, last = (0 if backward is not None else 1), (2 if forward is not None else 1)
    query, key, value = (array.reshape(array.shape[0], -1, 2, *array.shape[2:]) for array in inputs)
    key, value = (jnp.flip(array, 2)[:, :, first:last] for array in (key, value))
    outputs = attended(query[:, :, first:last], key, value, _side_by_side(sources, -1), _side_by_side(marks, -2), targets)
    if last - first == 1:
        outputs = jnp.pad(outputs, [(0, 0), (0, 0), (first, 2 - last), (0, 0), (0, 0)])
    return outputs.reshape(inputs.value.shape)


def _side_by_side(arrays: Sequence[Array], axis: int) -> Array:
    """`(lane, sense, pair, ., .)`, one for each half that reads, as `(lane, pair, half, ., .)`, the senses behind each other
    along an axis."""
    array = jnp.stack(arrays, axis=3)
    return jnp.concatenate([jnp.squeeze(column, 1) for column in jnp.split(array, array.shape[1], axis=1)], axis=axis)


def _cut(context: LoweringContext) -> Cut:
    axes = context.axes
    assert axes is not None
    return cast(Rows, context.settings).cut(axes)


def _read(context: LoweringContext, inputs: Inputs, mask: Array, forward: Runs | None, backward: Runs | None) -> Array:
    """What all nodes read: inside of the first runs by what they see of themselves, then of neighbours, in runs twice as long
    each time. `(lane, node, value)`."""
    (query, key, value), targets = inputs, _cut(context).targets
    outputs = masked_attention(query, key, value, mask)
    outputs = outputs.reshape(outputs.shape[0], -1, outputs.shape[-1])
    while (runs := inputs.value.shape[1]) > 1:
        ahead, back = neighbours(forward), neighbours(backward)
        outputs = outputs + _between(inputs, ahead, back, targets).reshape(outputs.shape)
        if runs > 2:
            forward, backward = doubled(ahead, 1), doubled(back, -1)
        inputs = Inputs(*(array.reshape(array.shape[0], -1, 2 * array.shape[2], array.shape[3]) for array in inputs))
    return outputs


LOWERING = by_runs(_cut, _read)
