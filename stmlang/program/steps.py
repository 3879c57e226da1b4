"""Arrays of a chain whose nodes take several steps as those of the chain of all steps (`stmlang.scan.steps`), and back.

Whatever the sense of the scan, it takes the steps of a node in their order: against the edges they lie the other way around.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.scan.scan import Scan


def all_steps(scan: Scan, inputs: Mapping[str, Array], gates: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs and leaves with a node for each step."""
    nodes = inputs["q"].shape[0]

    def leaf(name: str) -> Array:
        declared, array = scan.leaf(name), gates[name]
        if declared.kind != "param":
            return _own(scan, array, 2) if declared.stepped else each_step(scan, array)
        if not declared.stepped:
            return array
        return _own(scan, jnp.broadcast_to(array, (nodes, *array.shape)), 2)

    own = {name: each_step(scan, array) if name == "q" else _own(scan, array, 2) for name, array in inputs.items()}
    return own, {name: leaf(name) for name in gates}


def each_step(scan: Scan, array: Float[Array, "nodes *rest"]) -> Float[Array, "all *rest"]:
    """What is the same for all steps of a node."""
    return jnp.repeat(array, scan.steps, axis=0)


def last_steps(scan: Scan, h: Float[Array, "all *rest"]) -> Float[Array, "nodes *rest"]:
    """What the last step of each node has."""
    return h.reshape(h.shape[0] // scan.steps, scan.steps, *h.shape[1:])[:, -1 if _along(scan) else 0]


def written_steps(scan: Scan, matrix: Float[Array, "all target head *terms"]) -> Float[Array, "nodes target head step *terms"]:
    """The rows of a gating matrix, the steps of each node behind the heads."""
    split = matrix.reshape(matrix.shape[0] // scan.steps, scan.steps, *matrix.shape[1:])
    return jnp.moveaxis(split if _along(scan) else jnp.flip(split, 1), 1, 3)


def _own(scan: Scan, array: Array, axis: int) -> Array:
    """`(nodes, ..., step, ...)` as `(all, ...)`."""
    array = jnp.moveaxis(array, axis, 1)
    array = array if _along(scan) else jnp.flip(array, 1)
    return array.reshape(array.shape[0] * scan.steps, *array.shape[2:])


def _along(scan: Scan) -> bool:
    (direction,) = scan.directions
    return direction.senses[0] > 0
