"""Products over blocks of places that several graphs share, in which no graph reaches another.

Where `s ~ t` says that places `s` and `t` hold nodes of one graph,

    likeness(a, b)[t, s] = a[t] . b[s] where s ~ t, else 0
    gathered(w, x)[t]    = sum over s ~ t of w[t, s] x[s]

A product of matrices would multiply what is of different graphs by zero, and zero times NaN is NaN. Here what two graphs make
of each other is left out and not multiplied. Of `x` the product sees finite numbers only, and what else it holds spoils all
sums of its graph afterwards. Each of the two is the other's derivative, so that this holds of values, tangents and cotangents
alike.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.block import contract, matmul, transposed

Vectors = Float[Array, "block lane place index"]
Weights = Float[Array, "block lane target source"]


class Graphs(NamedTuple):
    """The graph at each target and each source of a block."""

    target: Int[Array, "block place"]
    source: Int[Array, "block place"]

    @property
    def same(self) -> Bool[Array, "block target source"]:
        return self.target[:, :, None] == self.source[:, None, :]

    @property
    def turned(self) -> Graphs:
        return Graphs(self.source, self.target)


def _likeness(graphs: Graphs, a: Vectors, b: Vectors) -> Weights:
    return jnp.where(graphs.same[:, None], matmul(a, transposed(b)), 0)


def _likeness_forward(graphs: Graphs, a: Vectors, b: Vectors) -> tuple[Weights, tuple[()]]:
    return _likeness(graphs, a, b), ()


def _likeness_backward(arguments: tuple[Any, ...], saved: tuple[()], cotangent: Weights) -> tuple[None, Vectors, Vectors]:
    del saved
    graphs, a, b = arguments
    return None, gathered(graphs, cotangent, b), gathered(graphs.turned, transposed(cotangent), a)


def _gathered(graphs: Graphs, w: Weights, x: Vectors) -> Vectors:
    """What spoils sums is found by a product of zeros and ones, of which there are few beside those of `w` and `x`."""
    same, finite = graphs.same, jnp.isfinite(x)
    sums = matmul(jnp.where(same[:, None], w, 0), jnp.where(finite, x, 0))
    spoiled = jnp.any(~finite, axis=-1).astype(x.dtype)
    met = contract("zts,zls->zlt", same.astype(x.dtype), spoiled) > 0
    return jnp.where(met[..., None], jnp.nan, sums)


def _gathered_forward(graphs: Graphs, w: Weights, x: Vectors) -> tuple[Vectors, tuple[()]]:
    return _gathered(graphs, w, x), ()


def _gathered_tangent(arguments: tuple[Any, ...], tangents: tuple[Any, ...]) -> Vectors:
    (graphs, w, x), (_, along_w, along_x) = arguments, tangents
    return gathered(graphs, along_w, x) + gathered(graphs, w, along_x)


def _gathered_backward(arguments: tuple[Any, ...], saved: tuple[()], cotangent: Vectors) -> tuple[None, Weights, Vectors]:
    del saved
    graphs, w, x = arguments
    return None, likeness(graphs, cotangent, x), gathered(graphs.turned, transposed(w), cotangent)


likeness = with_adjoint(_likeness, _likeness_forward, _likeness_backward)
"""`(graphs, a, b) -> weights`."""

gathered = with_adjoint(_gathered, _gathered_forward, _gathered_backward, _gathered_tangent)
"""`(graphs, w, x) -> sums`."""
