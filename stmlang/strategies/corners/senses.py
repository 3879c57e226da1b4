"""Which of the products that are made for both senses of each axis are scores."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.no_fusion import apart

Met = Float[Array, "head y0 x down x0 along y"]
"""Products at the corners `(y0, x)`, of what comes from x0 with what is behind at y, in each pair of senses."""
Scores = Float[Array, "head y0 x0 x y"]


@apart
def _plain(met: Met, below: Bool[Array, "y0 y"], ahead: Bool[Array, "x x0"]) -> Scores:
    met = jnp.where(below[:, None, None, None], met[:, :, :, 0], met[:, :, :, -1]) if met.shape[3] > 1 else met[:, :, :, 0]
    met = jnp.where(ahead[:, :, None], met[:, :, :, :, 0], met[:, :, :, :, -1]) if met.shape[4] > 1 else met[:, :, :, :, 0]
    return jnp.swapaxes(met, 2, 3)


@apart
def _pulled(met: Met, below: Array, ahead: Array, cotangent: Scores) -> Met:
    """Each to the senses that its pair is of: one pass, where the transpose of a choice fills up and adds."""
    cotangent = jnp.swapaxes(cotangent, 2, 3)[:, :, :, None, :, None, :]
    if met.shape[3] > 1:
        cotangent = jnp.where(jnp.stack([below, ~below], 1)[:, None, :, None, None, :], cotangent, 0)
    if met.shape[5] > 1:
        cotangent = jnp.where(jnp.stack([ahead, ~ahead], 2)[:, None, :, :, None], cotangent, 0)
    return cotangent


def _forward(met: Met, below: Array, ahead: Array) -> tuple[Scores, tuple[()]]:
    return _plain(met, below, ahead), ()


def _backward(arguments: tuple[Any, ...], saved: Any, cotangent: Array) -> tuple[Met, None, None]:
    del saved
    return _pulled(*arguments, cotangent), None, None


scores_of_senses = with_adjoint(_plain, _forward, _backward)
"""`(met, below, ahead) -> scores`: of the products of both senses those of the forward one where a target lies `below` its
corner (or a corner `ahead` of its source), else those of the backward one. Where there is one sense, it has zeros elsewhere."""
