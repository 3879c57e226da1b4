"""What a layer normalizes heads with: root mean square normalization with a learned scale, or any function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.nn.errors import require_countable, require_epsilon, require_floats, require_size, require_type
from stmlang.nn.start import behind
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.signature import call_error, widest

Norm = Callable[[Array], Array]


class RMSNorm(eqx.Module):
    """`y = x / sqrt(mean(x^2) + eps) * scale`, the mean over the last axis only, in float32 or better.

    `scale` has the shape given, which must be that of the last axes of `x`: `(dim,)` for a stream of features, `(head, value)`
    to normalize each head by itself. The result has the dtype of `x`.
    """

    scale: Float[Array, "..."]
    eps: float = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, shape: Sequence[int], *, eps: float = 1e-5, dtype: Any = None) -> None:
        """`dtype` is that of `scale`, by name or as JAX or numpy have it. Raises SpecError (STM5207, STM5208) for what is no
        shape, `eps` or type of floating point numbers."""
        if not isinstance(cast(Any, shape), (tuple, list)) or not shape:
            raise call_error("STM5208", f"`shape` must be a tuple of sizes, not {shape!r:.80}", help="such as `(dim,)`")
        sizes = tuple(require_size("shape", size) for size in shape)
        self.scale = jnp.ones(require_countable(sizes), None if dtype is None else require_type("dtype", dtype))
        self.eps = require_epsilon(eps)

    def __call__(self, x: Float[Array, "..."], *, key: PRNGKeyArray | None = None) -> Float[Array, "..."]:
        """`key` is what `eqx.nn.Sequential` gives to each of its layers, and not used. Raises SpecError (STM5201, STM5203,
        STM5205) where `x` does not end with the axes of `scale`."""
        del key
        x = require_floats("x", x)
        if x.shape[-self.scale.ndim :] != self.scale.shape:
            raise call_error("STM5201", f"the last axes of `x` must be {self.scale.shape}; its shape is {x.shape}")
        wide = x.astype(widest(x.dtype))
        power = jnp.mean(wide * wide, axis=-1, keepdims=True)
        kind = widest(x.dtype, self.scale.dtype)
        scale = behind(self.scale, x.ndim).astype(kind)
        return ((wide * jax.lax.rsqrt(power + self.eps)).astype(kind) * scale).astype(x.dtype)


def norm_of(norm: object, shape: Sequence[int], eps: float, dtype: jnp.dtype) -> Norm | None:
    """What a layer's `norm` stands for. A function is held so that it is no leaf of the layer. Raises SpecError (STM5010) for
    anything else."""
    if norm is None:
        return None
    if isinstance(norm, eqx.Module) and callable(norm):
        return cast(Norm, norm)
    if callable(norm):
        return jax.tree_util.Partial(norm)
    if norm != "rms":
        message = f"unknown norm {norm!r:.80}"
        raise call_error("STM5010", message, help='"rms", None for none, or a function of `(*nodes, head, value)`')
    return RMSNorm(shape, eps=eps, dtype=dtype)
