"""Attention in blocks of places that several graphs share, in which no graph reaches another.

Where `s ~ t` says that places `s` and `t` hold nodes of one graph,

    likeness(a, b)[t, s] = a[t] . b[s]
    weighed(a, b)[t, s]  = a[t, s] b[t, s] where s ~ t, else 0
    gathered(w, x)[t]    = sum over s of w[t, s] x[s]

A product of matrices would multiply what is of different graphs by zero, and zero times NaN is NaN. What two graphs make of
each other is therefore left out where weights are made, and not multiplied. With such weights `gathered` sums finite numbers
only; whatever else is in `x` spoils all sums of its graph afterwards. The derivatives of each of the three are made of the
other two, so that this holds of values, tangents and cotangents alike.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.contractions import contract, matmul, transposed

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


def attended(graphs: Graphs, gating: Weights, query: Vectors, key: Vectors, value: Vectors) -> Vectors:
    """`((Q K^T) o G) V` in each block, graph by graph."""
    return gathered(graphs, weighed(graphs, likeness(graphs, query, key), gating), value)


# --- likeness


def _likeness(graphs: Graphs, a: Vectors, b: Vectors) -> Weights:
    del graphs
    return matmul(a, transposed(b))


def _likeness_backward(arguments: tuple[Any, ...], saved: Any, cotangent: Weights) -> tuple[None, Vectors, Vectors]:
    """The cotangent comes from weights, and so joins no two graphs."""
    del saved
    graphs, a, b = arguments
    return None, gathered(graphs, cotangent, b), gathered(graphs.turned, transposed(cotangent), a)


# --- weights


def _weighed(graphs: Graphs, a: Weights, b: Weights) -> Weights:
    return jnp.where(graphs.same[:, None], a * b, 0)


def _weighed_along(arguments: tuple[Any, ...], tangents: tuple[Any, ...]) -> Weights:
    (graphs, a, b), (_, along_a, along_b) = arguments, tangents
    return weighed(graphs, along_a, b) + weighed(graphs, a, along_b)


def _weighed_backward(arguments: tuple[Any, ...], saved: Any, cotangent: Weights) -> tuple[None, Weights, Weights]:
    del saved
    graphs, a, b = arguments
    return None, weighed(graphs, cotangent, b), weighed(graphs, a, cotangent)


# --- sums


def _gathered(graphs: Graphs, w: Weights, x: Vectors) -> Vectors:
    """What spoils a sum is found by a product of zeros and ones, of which there are few beside the numbers of `w` and `x`."""
    finite = jnp.isfinite(x)
    spoiled = jnp.any(~finite, axis=-1).astype(x.dtype)
    met = contract("zts,zls->zlt", graphs.same.astype(x.dtype), spoiled) > 0
    return jnp.where(met[..., None], jnp.nan, matmul(w, jnp.where(finite, x, 0)))


def _gathered_along(arguments: tuple[Any, ...], tangents: tuple[Any, ...]) -> Vectors:
    (graphs, w, x), (_, along_w, along_x) = arguments, tangents
    return gathered(graphs, along_w, x) + gathered(graphs, w, along_x)


def _gathered_backward(arguments: tuple[Any, ...], saved: Any, cotangent: Vectors) -> tuple[None, Weights, Vectors]:
    del saved
    graphs, w, x = arguments
    return None, likeness(graphs, cotangent, x), gathered(graphs.turned, transposed(w), cotangent)


likeness = with_adjoint(_likeness, lambda *args: (_likeness(*args), ()), _likeness_backward)
weighed = with_adjoint(_weighed, lambda *args: (_weighed(*args), ()), _weighed_backward, _weighed_along)
gathered = with_adjoint(_gathered, lambda *args: (_gathered(*args), ()), _gathered_backward, _gathered_along)
