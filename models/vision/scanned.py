"""The layer of pLSTM-Vis: a scan of a grid with one map to queries, keys and values, narrow gates, and a norm of each head."""

from __future__ import annotations

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.parts import by_head, joined
from stmlang.models.blocks.passes import ChainScan, whole
from stmlang.models.parts import Linear
from stmlang.models.vision.gates import Gates, Reads
from stmlang.nn import RMSNorm
from stmlang.nn.errors import require_key, require_scan, require_size
from stmlang.nn.show import summary
from stmlang.nn.start import SMALL
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.modules import equal, hash_of

AS_WRITTEN: Mapping[str, float] = {}


class ImageScan(eqx.Module):
    """What replaces attention in pLSTM-Vis (the paper, appendix "pLSTM for Vision"):

        q, k, v = W x + b                                    the same for all directions
        y       = W_out norm(scan(q / sqrt(key), k, v, gates(x)))        without a bias

    One image a call, `x: (rows, cols, dim)`, in the data type of `x`; the scan computes in its own, on parameters in float32.
    """

    op: ChainScan
    into: Linear
    gates: Gates
    norm: RMSNorm
    out: Linear
    dim: int = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(
        self,
        op: ChainScan,
        dim: int,
        *,
        reads: Reads = "own",
        start: Mapping[str, float] = AS_WRITTEN,
        gain: float = SMALL,
        key: PRNGKeyArray,
    ) -> None:
        """`reads`, `start` and `gain` are about the gates (`Gates`). Raises SpecError (STM5208) for what is no scan or no
        size."""
        scan = require_scan("op", op).scan
        into, gates, out = jax.random.split(require_key(key), 3)
        self.op, self.dim = op, require_size("dim", dim)
        self.into = Linear(dim, scan.heads * (2 * scan.key + scan.value), key=into)
        self.gates = Gates(scan, dim, reads=reads, start=start, gain=gain, key=gates)
        self.norm = RMSNorm((scan.heads, scan.value), dtype=jnp.float32)
        self.out = Linear(scan.heads * scan.value, dim, use_bias=False, key=out)

    def __call__(self, x: Float[Array, "rows cols dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "rows cols dim"]:
        del key
        op = self.op if isinstance(self.op, CompiledScan) else self.op.at(x.shape[:-1])
        scan, inside = op.scan, x.astype(op.dtype)
        width = scan.heads * scan.key
        q, k, v = (by_head(array, scan.heads) for array in jnp.split(self.into(inside), [width, 2 * width], axis=-1))
        h, _ = whole(op, None, q * scan.key**-0.5, k, v, self.gates(inside, op.signature.gates))
        return self.out(joined(self.norm(h)).astype(x.dtype))
