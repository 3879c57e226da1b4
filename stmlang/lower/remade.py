"""Functions of which reverse mode keeps nothing but the arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jax

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.no_fusion import apart


def remade(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays whose backward pass makes again whatever it needs, in one computation of its own.

    `jax.checkpoint` asks for the same. But the CPU backend of jaxlib 0.10.2 drops the barriers that keep it apart, sees that
    most of it was computed before, and holds on to that until the backward pass instead.
    """

    @apart
    def pulled(arguments: tuple[Any, ...], cotangent: Any) -> tuple[Any, ...]:
        _, pull = cast("tuple[Any, Callable[[Any], tuple[Any, ...]]]", jax.vjp(function, *arguments))
        return pull(cotangent)

    def forward(*arguments: Any) -> tuple[Any, tuple[()]]:
        return function(*arguments), ()

    def backward(arguments: tuple[Any, ...], saved: tuple[()], cotangent: Any) -> tuple[Any, ...]:
        del saved
        return pulled(arguments, cotangent)

    return with_adjoint(function, forward, backward)
