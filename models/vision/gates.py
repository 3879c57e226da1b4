"""The gates of an image's scan from the features of its nodes, each head and direction from a share of them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.lower.mesh_axes import reshaped
from stmlang.nn.leaves import parameter_shape
from stmlang.nn.start import behind, normal, spread
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.signature import call_error
from stmlang.scan.scan import Initial, Leaf, Scan

Reads = Literal["own", "all", "constant"]
"""What gates read: `dim / (heads * directions)` features each, all features, or none."""


class Gates(eqx.Module):
    """The values of a scan's leaves at the features of its nodes.

    `own`: the features are divided among heads and directions, and the gates of each read its share; a gate that all directions
    have in common is a bias alone. So the authors of pLSTM-Vis train it: linear maps for Source, Transition and Mark, none for
    Direct. `all`: every gate reads all features. `constant`: biases alone, the paper's ablation.
    """

    weight: dict[str, Float[Array, "head ... features"]]
    bias: dict[str, Float[Array, "head ..."]]
    reads: Reads = eqx.field(static=True)
    heads: int = eqx.field(static=True)
    directions: int = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    def __init__(
        self, scan: Scan, dim: int, *, reads: Reads, start: Mapping[str, float], gain: float, key: PRNGKeyArray
    ) -> None:
        """`start` has biases by leaf, where not those of the spec; `gain` is the standard deviation of weights times the root
        of the number of gates of one kind, as the authors have it. Raises SpecError (STM5208) where features cannot be divided
        among heads and directions, and for leaves that no scan of images has."""
        self.reads, self.heads, self.directions = reads, scan.heads, len(scan.directions)
        ways = self.heads * self.directions
        if reads == "own" and dim % ways:
            message = f"{dim} features cannot be divided among {self.heads} heads in {self.directions} directions"
            raise call_error("STM5208", message, help=f'`dim` is a multiple of {ways}, or `reads` is "all"')
        if unknown := sorted(set(start) - {leaf.name for leaf in scan.leaves}):
            message = f"scan `{scan.name}` has no leaf `{unknown[0]}` to start; it has {[leaf.name for leaf in scan.leaves]}"
            raise call_error("STM5208", message)
        self.weight, self.bias = {}, {}
        for number, leaf in enumerate(scan.leaves):
            shape = parameter_shape(scan, leaf)
            initial = Initial(start[leaf.name], start[leaf.name]) if leaf.name in start else leaf.bias
            self.bias[leaf.name] = spread(initial, shape, dtype=jnp.dtype(jnp.float32))
            features = dim if reads == "all" else dim // ways
            if leaf.kind == "linear" and self._has_weight(leaf):
                own = jax.random.fold_in(key, number)
                drawn = normal(own, (*shape, features), gain=gain, dtype=jnp.dtype(jnp.float32))
                self.weight[leaf.name] = drawn * (features / ways) ** 0.5

    def _has_weight(self, leaf: Leaf) -> bool:
        return self.reads == "all" or (self.reads == "own" and (leaf.directional or self.directions == 1))

    def __call__(self, x: Float[Array, "*nodes dim"], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
        """Values by leaf, of the shapes that the compiled scan takes."""
        nodes, count = x.shape[:-1], prod(x.shape[:-1])
        products = self._products(reshaped(x, (count, x.shape[-1])))
        values: dict[str, Array] = {}
        for name, bias in self.bias.items():
            if name in products:
                values[name] = reshaped(products[name] + behind(bias, bias.ndim + 1), shapes[name])
            else:
                # A `param` has no nodes, which its shape tells.
                lead = nodes if len(shapes[name]) > bias.ndim else ()
                values[name] = jnp.broadcast_to(behind(bias, bias.ndim + len(lead)), (*lead, *bias.shape)).reshape(shapes[name])
        return values

    def _products(self, x: Float[Array, "nodes dim"]) -> dict[str, Float[Array, "nodes head ..."]]:
        """`W x`, in float32: one product for all leaves."""
        if not self.weight:
            return {}
        if self.reads == "all":
            rows = [weight.reshape(prod(weight.shape[:-1]), weight.shape[-1]) for weight in self.weight.values()]
            together = jnp.concatenate(rows).astype(x.dtype)
            product = jnp.tensordot(x, together, axes=(1, 1), preferred_element_type=jnp.float32)
            cuts = [len(each) for each in rows]
            pieces = jax.lax.split(product, cuts, axis=1)
        else:
            ways = self.heads * self.directions
            blocks = [
                weight.reshape(ways, prod(weight.shape[:-1]) // ways, weight.shape[-1]) for weight in self.weight.values()
            ]
            together = jnp.concatenate(blocks, axis=1).astype(x.dtype)
            shares = x.reshape(len(x), ways, together.shape[-1])
            product = jnp.einsum("nws,wgs->nwg", shares, together, preferred_element_type=jnp.float32)
            pieces = jax.lax.split(product, [block.shape[1] for block in blocks], axis=2)
        named = zip(self.weight.items(), pieces, strict=True)
        return {name: reshaped(piece, (len(x), *weight.shape[:-1])) for (name, weight), piece in named}
