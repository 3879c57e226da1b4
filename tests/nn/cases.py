"""Layers over every kind of topology, small."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

import stmlang
from stmlang.nn import ScanLayer

DIM = 6
EDGE_DIM = 3


@dataclass(frozen=True)
class Case:
    """A spec, its sizes, and whether it reads edge features."""

    spec: str
    sizes: tuple[tuple[str, int], ...]
    edges: bool = False

    def __str__(self) -> str:
        return self.spec.rpartition("/")[2]

    def op(self, **options: Any) -> stmlang.CompiledScan:
        return _compiled(self, tuple(options.items()))

    def layer(self, seed: int = 0, **options: Any) -> ScanLayer:
        return ScanLayer(self.op(**options), DIM, key=jax.random.key(seed), edge_dim=EDGE_DIM if self.edges else 0)


@cache
def _compiled(case: Case, options: tuple[tuple[str, Any], ...]) -> stmlang.CompiledScan:
    return stmlang.compile(case.spec, **dict(case.sizes), heads=2, key=4, value=5, **dict(options))


CASES = [
    Case("std:plstm/chain", (("time", 7),)),
    Case("std:plstm/image_p", (("rows", 3), ("cols", 4))),
    Case("std:plstm/image_d", (("rows", 3), ("cols", 4))),
    Case("std:plstm/volume_d", (("depth", 2), ("rows", 1), ("cols", 3))),
    Case("std:plstm/tree", (("depth", 2),)),
    Case("std:plstm/dag_p", (), edges=True),
    Case("std:plstm/dag_d", (), edges=True),
]


def features(layer: ScanLayer, seed: int = 1, batch: tuple[int, ...] = ()) -> tuple[Array, dict[str, Array]]:
    """Random `x` for a layer, and `edge_features` if it reads them."""
    generator = np.random.default_rng(seed)
    dag = layer.op.dag
    x = generator.standard_normal((*batch, *dag.node_shape, DIM)).astype(np.float32)
    if not layer.edge_dim:
        return jax.numpy.asarray(x), {}
    e = generator.standard_normal((*batch, dag.edge_count, EDGE_DIM)).astype(np.float32)
    return jax.numpy.asarray(x), {"edge_features": jax.numpy.asarray(e)}
