"""The pLSTM image classifier: layers in P-mode and in D-mode by turns."""

from __future__ import annotations

from typing import get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.parts import Linear, Perceptron
from stmlang.models.vision.patches import Pooling, patches, pool, require_patch
from stmlang.nn import RMSNorm, ScanLayer
from stmlang.nn.errors import require_key, require_scan, require_size
from stmlang.nn.show import summary
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.open import OpenScan
from stmlang.runtime.options import word
from stmlang.runtime.signature import call_error, flag
from stmlang.scan.topology import Regular


class Block(eqx.Module):
    """`x + scan(norm(x))`, then `x + perceptron(norm(x))`."""

    before_scan: RMSNorm
    scan: ScanLayer
    before_perceptron: RMSNorm
    perceptron: Perceptron

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, op: CompiledScan | OpenScan, dim: int, *, expansion: int, key: PRNGKeyArray) -> None:
        scan, perceptron = jax.random.split(key)
        self.before_scan, self.before_perceptron = RMSNorm((dim,)), RMSNorm((dim,))
        self.scan = ScanLayer(op, dim, key=scan)
        self.perceptron = Perceptron(dim, expansion * dim, key=perceptron)

    def __call__(self, x: Float[Array, "rows cols dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "rows cols dim"]:
        del key
        x = x + self.scan(self.before_scan(x))
        return x + self.perceptron(self.before_perceptron(x))


class PLSTM(eqx.Module):
    """Patches, a learned position embedding, `pairs` of a P block and a D block, pooling, a linear head.

    The parameters of all pairs are stacked and the pairs run in a `lax.scan`: each compiled scan is traced and compiled once,
    however deep the model. One image a call, `(height, width, channels)`, in the dtype of the image; logits in float32. Without
    a position embedding the scans may be open, and the model takes images of any size.
    """

    embed: Linear
    position: Float[Array, "rows cols dim"] | None
    stacked: tuple[Block, Block]
    shared: tuple[Block, Block]
    norm: RMSNorm
    head: Linear
    patch: int = eqx.field(static=True)
    stride: int = eqx.field(static=True)
    pooling: Pooling = eqx.field(static=True)
    channels: int = eqx.field(static=True)
    grid: tuple[int | None, ...] = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(
        self,
        p: CompiledScan | OpenScan,
        d: CompiledScan | OpenScan,
        *,
        classes: int,
        channels: int = 3,
        patch: int = 16,
        stride: int | None = None,
        dim: int = 192,
        pairs: int = 6,
        expansion: int = 4,
        position: bool = True,
        pooling: Pooling = "corners",
        key: PRNGKeyArray,
    ) -> None:
        """Raises SpecError: STM5001 for a position embedding of an open grid, STM5010 for an unknown `pooling`, STM5208 for
        anything else that no model can be made of."""
        grids = _require_grids(p, d)
        classes, channels, dim = require_size("classes", classes), require_size("channels", channels), require_size("dim", dim)
        pairs, expansion = require_size("pairs", pairs), require_size("expansion", expansion)
        patch, stride = require_patch(patch, patch if stride is None else stride)
        word("pooling", pooling, get_args(Pooling))
        places = p.dag.node_shape if flag("position", position) else ()
        embed, place, head, *blocks = jax.random.split(require_key(key), 3 + pairs)
        self.patch, self.stride, self.pooling, self.channels, self.grid = patch, stride, pooling, channels, grids
        self.embed = Linear(patch * patch * channels, dim, gain=1.0, key=embed)
        self.position = 0.02 * jax.random.normal(place, (*places, dim)) if position else None
        made = [_pair(p, d, dim, expansion, block) for block in blocks]
        learned: list[tuple[Block, Block]] = [eqx.filter(pair, eqx.is_inexact_array) for pair in made]
        self.stacked = jax.tree.map(_stack, *learned)
        self.shared = eqx.filter(made[0], eqx.is_inexact_array, inverse=True)
        self.norm = RMSNorm((dim,))
        self.head = Linear(4 * dim if pooling == "corners" else dim, classes, gain=1.0, key=head)

    def pair(self, number: int) -> tuple[Block, Block]:
        """The P block and the D block of one pair, as modules of their own."""

        def take(array: Array) -> Array:
            return array[number]

        return eqx.combine(jax.tree.map(take, self.stacked), self.shared)

    def tokens(self, image: Float[Array, "height width channels"]) -> Float[Array, "rows cols dim"]:
        """What the first block sees. Raises SpecError (STM5201) for an image of another size or number of channels."""
        cut = patches(image, self.patch, self.stride)
        extents = [None if axis is None else axis * self.stride for axis in self.grid]
        if image.shape[-1] != self.channels or any(
            side not in (None, length) for side, length in zip(extents, image.shape, strict=False)
        ):
            sides = [name if side is None else side for name, side in zip(("height", "width"), extents, strict=True)]
            shown = f"({sides[0]}, {sides[1]}, {self.channels})"
            help = "a model without a position embedding, of scans without sizes, takes images of any size"
            raise call_error("STM5201", f"`image` must have the shape {shown}, not {image.shape}", help=help)
        x = self.embed(cut)
        return x if self.position is None else x + self.position.astype(x.dtype)

    def __call__(
        self, image: Float[Array, "height width channels"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, " classes"]:
        del key

        def step(x: Array, learned: tuple[Block, Block]) -> tuple[Array, None]:
            p, d = eqx.combine(learned, self.shared)
            return d(p(x)), None

        x, _ = jax.lax.scan(step, self.tokens(image), self.stacked)
        return self.head(pool(self.norm(x), self.pooling).astype(jnp.float32))


def _require_grids(p: CompiledScan | OpenScan, d: CompiledScan | OpenScan) -> tuple[int | None, ...]:
    """The sizes of the grid that both scans run on, None where open in both. Raises SpecError (STM5208) for anything else."""
    grids: list[tuple[int | None, ...]] = []
    for name, op in (("p", p), ("d", d)):
        topology = require_scan(name, op).scan.topology
        if not isinstance(topology, Regular) or len(topology.axes) != 2:
            message = f"`{name}`, scan `{op.scan.name}`, must run on a grid of two axes"
            raise call_error("STM5208", message, help="such as `std:plstm/image_p`")
        grids.append(tuple(axis.size for axis in topology.axes))
    if any(None not in (size, other) and size != other for size, other in zip(*grids, strict=True)):
        message = f"`p` and `d` must run on one grid, not on {grids[0]} and {grids[1]}"
        raise call_error("STM5208", message, help="compile both for the same sizes")
    return tuple(other if size is None else size for size, other in zip(*grids, strict=True))


def _stack(*arrays: Array) -> Array:
    return jnp.stack(arrays)


def _pair(
    p: CompiledScan | OpenScan, d: CompiledScan | OpenScan, dim: int, expansion: int, key: PRNGKeyArray
) -> tuple[Block, Block]:
    first, second = jax.random.split(key)
    return Block(p, dim, expansion=expansion, key=first), Block(d, dim, expansion=expansion, key=second)
