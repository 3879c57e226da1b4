"""Spectral norms by matrix products alone, so that they lower for every platform, to every derivative and over any batch.

With `G = A^T A` squared `m = SQUARINGS` times, the trace divided out at each, `B = G^p / tr G^p` with `p = 2^m`, and

    N  =  (tr G^q)^(1 / (2 q)),   q = p + 1,   tr G^q = tr(G B) tr G^p,

is what `Spectral` says. Its derivative is `dN = N <A B, dA> / tr(G B)`: the largest singular values' own, weighted.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.scan.expression import SQUARINGS

Matrices = Float[Array, "matrices rows rows"]
Numbers = Float[Array, " matrices"]


@jax.custom_jvp
def spectral_norm(matrices: Matrices) -> Numbers:
    """The norm of each matrix as `Spectral` defines it; zero, with a slope of zero, for a matrix of zeros."""
    return _norm_and_slope(matrices)[0]


@spectral_norm.defjvp
def _tangent(primals: tuple[Matrices], tangents: tuple[Matrices]) -> tuple[Numbers, Numbers]:
    norm, slope = _norm_and_slope(primals[0])
    return norm, jnp.sum(slope * tangents[0], (-2, -1))


def _norm_and_slope(matrices: Matrices) -> tuple[Numbers, Matrices]:
    """The norms and their derivatives by the matrices' entries."""
    size = jax.lax.stop_gradient(jnp.max(jnp.abs(matrices), (-2, -1), initial=0.0))  # the norm scales with it, so it is exact
    unit = jnp.where(size == 0, 1, size)
    scaled = matrices / unit[:, None, None]
    square = _product(jnp.swapaxes(scaled, -2, -1), scaled)
    total = _trace(square)
    first = jnp.where(total == 0, 1, total)

    def squared(step: Array, carry: tuple[Matrices, Numbers]) -> tuple[Matrices, Numbers]:
        power, logarithm = carry
        wider = _product(power, power)
        trace = _trace(wider)
        trace = jnp.where(trace == 0, 1, trace)
        share = jnp.exp2(-1.0 - step.astype(trace.dtype))
        return wider / trace[:, None, None], logarithm + share * jnp.log(trace)

    start = (square / first[:, None, None], jnp.zeros_like(first))
    power, logarithm = cast("tuple[Matrices, Numbers]", jax.lax.fori_loop(0, SQUARINGS, squared, start))
    turned = _product(scaled, power)
    rest = jnp.sum(turned * scaled, (-2, -1))
    rest = jnp.where(rest == 0, 1, rest)
    last = 1 / (2.0**SQUARINGS + 1)
    estimate = unit * jnp.sqrt(first) * jnp.exp(((1 - last) * logarithm + last * jnp.log(rest / first)) / 2)
    norm = jnp.where(size == 0, 0, estimate)
    return norm, turned * (norm / (rest * unit))[:, None, None]


def _product(left: Matrices, right: Matrices) -> Matrices:
    return jnp.matmul(left, right, precision=jax.lax.Precision.HIGHEST)


def _trace(matrices: Matrices) -> Numbers:
    return jnp.trace(matrices, axis1=-2, axis2=-1)
