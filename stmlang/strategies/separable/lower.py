"""Separable grids: attention whose gating matrix is a product of two tables of decays along lines (see `walked_attention`).

The gating matrix of one direction is never formed; with `rows` less than the number of lines nothing of its size is.
"""

from __future__ import annotations

from typing import cast

from jaxtyping import Array

from stmlang.lower.line_grid import by_lines
from stmlang.lower.one_turn import Walks
from stmlang.lower.strategy import LoweringContext
from stmlang.lower.walked_attention import attend
from stmlang.strategies.separable.settings import Separable


def _attend(context: LoweringContext, query: Array, key: Array, value: Array, gates: Walks) -> Array:
    return attend(cast(Separable, context.settings).rows, query, key, value, gates)


LOWERING = by_lines(_attend)
