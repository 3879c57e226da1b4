"""Few lengths for many: sequences filled up to one of few sizes, and masks that say what of them counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stmlang.graph.capacity import RATIO, RATIOS, size_above
from stmlang.graph.limits import LARGEST
from stmlang.runtime.options import plain, positive
from stmlang.runtime.signature import array_problem, call_error, is_array
from stmlang.scan.scan import Scan
from stmlang.scan.sizes import unbound
from stmlang.scan.topology import Regular
from stmlang.source.diagnostic import SpecError


@dataclass(frozen=True)
class Lengths:
    """The sizes that an axis may have: 16, 32, 48, 80, 128, ..., each the least multiple of 16 that is at least `ratio` times
    the one before. What is shorter is filled up, and a mask says what counts:

        op = stmlang.compile("std:chain/gla", time=stmlang.Lengths(up_to=4096))

    `up_to` is the longest that is taken; None for any. Raises SpecError (STM5010) for numbers that cannot be either.
    """

    up_to: int | None = None
    ratio: float = RATIO

    def __post_init__(self) -> None:
        if self.up_to is not None:
            object.__setattr__(self, "up_to", positive("up_to", self.up_to))
        ratio, (least, most) = plain(self.ratio), RATIOS
        if not isinstance(ratio, float | int) or isinstance(ratio, bool) or not least <= ratio <= most:
            raise call_error("STM5010", f"`ratio` must be a number from {least} to {most:g}, not {self.ratio!r:.80}")
        object.__setattr__(self, "ratio", float(ratio))

    def above(self, length: int) -> int:
        """The size that a length is filled up to. Raises SpecError (STM5201) for one beyond `up_to`."""
        if length > (LARGEST if self.up_to is None else self.up_to):
            help = f"compile for longer ones: `stmlang.Lengths(up_to={length})`"
            raise call_error(
                "STM5201", f"a length of {length:,} was given, and lengths up to {self.up_to:,} are taken", help=help
            )
        return size_above(length, self.ratio)


def require_open(scan: Scan, lengths: Mapping[str, Lengths]) -> None:
    """Raises SpecError (STM5010) for lengths of anything but axes of a chain or grid that have no size."""
    known = unbound(scan) if isinstance(scan.topology, Regular) else ()
    for name in lengths:
        if name not in known:
            message = f"`{name}` cannot have several lengths: it is no axis without a size of a chain or grid"
            listed = ", ".join(f"`{axis}`" for axis in known) or "none"
            raise call_error(
                "STM5010", message, (f"such axes of scan `{scan.name}`: {listed}",), help=f"give a size: `{name}=N`"
            )


def padded(
    array: Any, sizes: Sequence[int], mask: Any = None, *, nodes: tuple[int, ...] | None = None, name: str = "`x`"
) -> tuple[Any, Any]:
    """An array `(*nodes, ...)` filled up with zeros at the ends of its node axes, and the mask of what counts of it: of the
    nodes that were there, those that its own mask names. Numpy's arrays stay numpy's, and nothing is compiled for them.

    Raises SpecError (STM5201, STM5203, STM5205, STM5210) for what is no array of numbers, for one that does not begin with
    `nodes`, and for a mask of another shape.
    """
    problem = array_problem(name, array)
    if problem is not None:
        raise SpecError([problem])
    shape = tuple(array.shape[: len(sizes)])
    nodes = shape if nodes is None else nodes
    if shape != nodes:
        raise call_error("STM5201", f"{name} must begin with the axes {nodes}, not {shape}")
    if mask is not None and (not is_array(mask) or mask.dtype != jnp.bool_ or tuple(mask.shape) != nodes):
        actual = f"{mask.dtype}{list(mask.shape)}" if is_array(mask) else type(mask).__name__
        raise call_error("STM5210", f"`mask` must be an array of truth values of shape {nodes}, not {actual}")
    if mask is None:
        mask = np.ones(nodes, np.bool_)
    return filled_up(array, sizes), filled_up(mask, sizes)


def filled_up(array: Any, sizes: Sequence[int]) -> Any:
    """An array filled up with zeros at the ends of its first axes."""
    library = jnp if isinstance(array, jax.Array) else np
    more = [(0, size - length) for size, length in zip(sizes, array.shape, strict=False)]
    return library.pad(array, [*more, *((0, 0) for _ in array.shape[len(sizes) :])])
