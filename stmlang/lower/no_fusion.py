"""Computations that XLA's CPU backend does not fuse with what comes after them.

There a fusion loops over the shape that it ends in. Where entries of `(y0, x0, y, x)` are made and then read as a matrix
`(source, target)`, the reshape is fused to their making, every entry is found by divisions of its flat index, and nothing is
vectorized: three to ten times slower, measured. XLA removes optimization barriers before it fuses. A call that is marked not to
be inlined it keeps, and fuses inside of it alone.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import jax
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays as a computation of its own on CPUs, and as what it is elsewhere and to every transformation.

    It is for functions at the top of a module: one made anew for each call would be compiled anew for each call.
    """

    @wraps(function)
    def inside(*arguments: Any) -> Any:
        with set_xla_metadata(inlineable="true"):
            return function(*arguments)

    jitted = jax.jit(inside)

    def call(*arguments: Any) -> Any:
        with set_xla_metadata(inlineable="false"):
            return cast(Any, jitted(*arguments))

    @jax.jit
    @wraps(function)
    def chosen(*arguments: Any) -> Any:
        return cast(Any, lax.platform_dependent(*arguments, cpu=call, default=function))

    return chosen
