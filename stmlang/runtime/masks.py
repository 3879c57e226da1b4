"""Masks of nodes and their segments, and whether they fit a scan."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Int

from stmlang.runtime.signature import call_error, is_array
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Regular, Runtime, kind_of


def require_mask(scan: Scan, nodes: tuple[int, ...], mask: Any, *, states: bool) -> Bool[Array, "*nodes"]:
    """The mask, if it holds truth values for nodes of this shape. Raises SpecError (STM5210) if not, for a topology that takes
    none, and for states beside the mask of a grid."""
    if not isinstance(scan.topology, Regular):
        at_run_time = isinstance(scan.topology, Runtime)
        help = "leave the nodes out of the graph"
        if at_run_time:
            help += ": what pads a batch, `op.at(batch)`, needs no mask"
        message = f"scan `{scan.name}` runs on a {kind_of(scan.topology)}, and masks are for chains and grids"
        raise call_error("STM5210", message, help=help)
    if not is_array(mask) or mask.dtype != jnp.bool_:
        mask_type = f"an array of {mask.dtype}" if is_array(mask) else type(mask).__name__
        help = "true for the nodes that count: `jnp.arange(time) < length`"
        raise call_error("STM5210", f"`mask` must be an array of truth values, not {mask_type}", help=help)
    if tuple(mask.shape) != nodes:
        batched = mask.ndim == len(nodes) + 1 and tuple(mask.shape[1:]) == nodes
        help = "map over a batch of examples and their masks with `jax.vmap`" if batched else None
        raise call_error("STM5210", f"`mask` must have the shape {nodes}, not {tuple(mask.shape)}", help=help)
    if states and len(nodes) > 1:
        message = (
            "nothing passes the nodes of a grid that a mask leaves out, so there are no initial and final states beside one"
        )
        raise call_error("STM5210", message, help="leave `initial` and `return_state` out, or compile for the smaller grid")
    return jnp.asarray(mask)


def require_segments(
    scan: Scan, nodes: tuple[int, ...], segments: Any, mask: Any, *, states: bool
) -> tuple[Int[Array, "*nodes"], Any]:
    """The numbers of the segments, one for each node, and the mask of the nodes that count: those of a negative number do not.
    Raises SpecError (STM5212) for anything but whole numbers, one for each node or for each row of the first axis, for a
    topology that takes none, and for a mask that counts a node of a negative number, as far as numbers are known."""
    if not isinstance(scan.topology, Regular):
        message = f"scan `{scan.name}` runs on a {kind_of(scan.topology)}, and segments are for chains and grids"
        raise call_error("STM5212", message, help="what no edge joins does not see each other: leave the edges out")
    if not is_array(segments) or not jnp.issubdtype(segments.dtype, jnp.integer):
        kind = f"an array of {segments.dtype}" if is_array(segments) else type(segments).__name__
        help = "a number for each node, as often as there are nodes: `jnp.asarray([0, 0, 1, 1, 1])`"
        raise call_error("STM5212", f"`segments` must be an array of whole numbers, not {kind}", help=help)
    shape = tuple(segments.shape)
    if shape not in (nodes, nodes[:1]):
        help = "map over a batch of examples and their segments with `jax.vmap`" if shape[1:] == nodes else None
        raise call_error("STM5212", f"`segments` must have the shape {nodes}, not {shape}", help=help)
    rows = (nodes[0], *(1,) * (len(nodes) - 1)) if shape != nodes else nodes
    numbers = jnp.broadcast_to(jnp.asarray(segments).reshape(rows), nodes)
    counted = numbers >= 0
    # NumPy looks at what is known: inside a function that is traced, JAX's own operations on it are traced too.
    known = None if _traced(segments) else np.broadcast_to(np.asarray(segments).reshape(rows), nodes) >= 0
    if (known is not None and known.all()) or (known is None and mask is None and states and len(nodes) > 1):
        return numbers, mask
    if mask is None:
        return numbers, counted
    mask = require_mask(scan, nodes, mask, states=states)
    if known is not None and not _traced(mask) and (np.asarray(mask) & ~known).any():
        message = "`mask` counts nodes that `segments` leave out by a negative number"
        raise call_error("STM5212", message, help="leave them out of the mask too, or give them numbers from 0 on")
    return numbers, mask & counted


def _traced(array: Any) -> bool:
    return isinstance(array, Tracer)
