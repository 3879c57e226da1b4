"""`(I - T)^-1` of a strictly triangular matrix, with an adjoint that keeps the inverse and nothing else.

XLA's own triangular solve is not used: on the CPU two batched ones that run at a time wait for each other's threads for ever
(jaxlib 0.10).
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.contractions import matmul, transposed

SMALL = 8
"""Triangles up to this size are inverted entry by entry, all of a batch at once."""
MANY = 16
"""And up to this where systems are many and small: by entries they have a shorter program, and their adjoint a faster one."""

Matrices = Float[Array, "*batch row column"]


def propagation(passed: Matrices, factors: int | None, small: int = SMALL) -> Matrices:
    """The inverse for `passed` strictly upper triangular, by halves, blocks of `small` rows entry by entry; or for one whose
    paths have fewer than `2^factors` edges, in whatever order, by so many factors `(I + T)(I + T^2)(I + T^4)...`."""

    def plain(passed: Matrices) -> Matrices:
        return _halves(passed, small) if factors is None else _doubled(passed, factors)

    return with_adjoint(plain, _kept(plain), _adjoint)(passed)


def _kept(plain: Callable[[Matrices], Matrices]) -> Callable[[Matrices], tuple[Matrices, Matrices]]:
    def forward(passed: Matrices) -> tuple[Matrices, Matrices]:
        inverse = plain(passed)
        return inverse, inverse

    return forward


def _adjoint(arguments: tuple[Matrices], inverse: Matrices, cotangent: Matrices) -> tuple[Matrices]:
    """`d (I - T)^-1 = R dT R`."""
    del arguments
    flipped = transposed(inverse)
    return (matmul(matmul(flipped, cotangent), flipped),)


def _doubled(passed: Matrices, factors: int) -> Matrices:
    power, inverse = passed, passed + jnp.eye(passed.shape[-1], dtype=passed.dtype)
    for _ in range(factors - 1):
        power = matmul(power, power)
        inverse = inverse + matmul(inverse, power)
    return inverse


def _halves(passed: Matrices, small: int) -> Matrices:
    """With A and C the inverses of the two diagonal blocks,

    [I - T1   -X  ]^-1     [A  A X C]
    [  0    I - T2]     =  [0    C  ]
    """
    size, *batch = passed.shape[-1], *passed.shape[:-2]
    side = 1 << max(size - 1, 0).bit_length()
    small = min(side, small)
    padded = jnp.pad(passed.reshape(-1, size, size), [(0, 0), (0, side - size), (0, side - size)])
    blocks, corners = padded, list[Array]()
    while blocks.shape[-1] > small:
        half = blocks.shape[-1] // 2
        corners.append(blocks[:, :half, half:])
        halves = jnp.stack([blocks[:, :half, :half], blocks[:, half:, half:]], axis=1)
        blocks = halves.reshape(2 * len(blocks), half, half)
    inverse = jnp.moveaxis(_by_entries(jnp.moveaxis(blocks, 0, -1)), -1, 0)
    for corner in reversed(corners):
        first, second = inverse[::2], inverse[1::2]
        top = jnp.concatenate([first, matmul(matmul(first, corner), second)], axis=-1)
        bottom = jnp.concatenate([jnp.zeros_like(corner), second], axis=-1)
        inverse = jnp.concatenate([top, bottom], axis=-2)
    return inverse[:, :size, :size].reshape(*batch, size, size)


def _by_entries(passed: Float[Array, "row column batch"]) -> Float[Array, "row column batch"]:
    """The same with the batch innermost and sums in place of calls of a matrix kernel, which would cost more."""
    size = len(passed)
    if size == 1:
        return jnp.ones_like(passed)
    half = size // 2
    first, second = _by_entries(passed[:half, :half]), _by_entries(passed[half:, half:])
    corner = _product(_product(first, passed[:half, half:]), second)
    top = jnp.concatenate([first, corner], axis=1)
    return jnp.concatenate([top, jnp.concatenate([jnp.zeros_like(corner), second], axis=1)])


def _product(a: Float[Array, "row inner batch"], b: Float[Array, "inner column batch"]) -> Float[Array, "row column batch"]:
    return sum((a[:, k, None] * b[None, k] for k in range(1, len(b))), start=a[:, 0, None] * b[None, 0])
