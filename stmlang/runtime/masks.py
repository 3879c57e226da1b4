"""Masks of nodes, and whether one fits a scan."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool

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
