"""Unit triangular systems with many right sides, by blocks: `(I - P^T) X = R` with P strictly upper triangular, `P[source,
target]` as gating matrices are.

The blocks on the diagonal are inverted at once (`stmlang.lower.inverse`), and the others met by products, so that the work is
`N^2` for each column. There is a bounded number of blocks, whatever the size, and so a program of one length.
XLA's own triangular solve is not used, for the reason that is given there.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.cost.sweeps import triangle_rows
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.contractions import matmul, times_transposed, transposed_times
from stmlang.lower.inverse import MANY, propagation

Matrices = Float[Array, "*batch source target"]
Rights = Float[Array, "*batch target column"]


class Solved(NamedTuple):
    """A solution, and the inverses of the blocks on the diagonal, `(*batch, block, source, target)`."""

    solution: Rights
    inverses: Float[Array, "*batch block row row"]


def _blocks(size: int) -> list[slice]:
    rows = triangle_rows(size)
    return [slice(start, min(start + rows, size)) for start in range(0, size, rows)]


def _inverses(passed: Matrices) -> Array:
    """Those of the blocks on the diagonal, the last one filled up."""
    size = passed.shape[-1]
    rows, blocks = triangle_rows(size), _blocks(size)
    filled = [(0, 0)] * (passed.ndim - 2) + [(0, len(blocks) * rows - size)] * 2
    padded = jnp.pad(passed, filled)
    diagonal = [padded[..., start : start + rows, start : start + rows] for start in range(0, len(blocks) * rows, rows)]
    return propagation(jnp.stack(diagonal, axis=-3), None, MANY)


def _solve(passed: Matrices, right: Rights) -> Solved:
    inverses, blocks = _inverses(passed), _blocks(passed.shape[-1])
    solved = list[Array]()
    for number, own in enumerate(blocks):
        rest = right[..., own, :]
        if solved:
            before = slice(0, own.start)
            rest = rest + transposed_times(passed[..., before, own], jnp.concatenate(solved, axis=-2))
        rows = own.stop - own.start
        solved.append(transposed_times(inverses[..., number, :rows, :rows], rest))
    return Solved(jnp.concatenate(solved, axis=-2), inverses)


def _back(passed: Matrices, inverses: Array, cotangent: Rights) -> Rights:
    """`(I - P)^-1` of a cotangent, from the last block to the first."""
    solved = list[Array]()
    for number, own in reversed(list(enumerate(_blocks(passed.shape[-1])))):
        rest = cotangent[..., own, :]
        if solved:
            rest = rest + matmul(passed[..., own, own.stop :], jnp.concatenate(solved[::-1], axis=-2))
        rows = own.stop - own.start
        solved.append(matmul(inverses[..., number, :rows, :rows], rest))
    return jnp.concatenate(solved[::-1], axis=-2)


def _plain(passed: Matrices, right: Rights) -> Rights:
    return _solve(passed, right).solution


def _forward(passed: Matrices, right: Rights) -> tuple[Rights, Solved]:
    solved = _solve(passed, right)
    return solved.solution, solved


def _backward(arguments: tuple[Matrices, Rights], solved: Solved, cotangent: Rights) -> tuple[Matrices, Rights]:
    """With `Y = (I - P)^-1 dX`: `dR = Y` and `dP = X Y^T`."""
    passed, _ = arguments
    pulled = _back(passed, solved.inverses, cotangent)
    return times_transposed(solved.solution, pulled), pulled


propagated = with_adjoint(_plain, _forward, _backward)
"""`(passed, right) -> X`: what is written at every place, where each adds `P[source, target]` times what an earlier one did."""
