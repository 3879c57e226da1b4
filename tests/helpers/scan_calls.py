"""What calls of scans in a function run, and what a function costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import jax
import jax.numpy as jnp


def equations(jaxpr: Any) -> Iterator[Any]:
    """All equations of a program, those of loops, branches and calls within it too."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(inner, "jaxpr") or hasattr(inner, "eqns"):
                    yield from equations(getattr(inner, "jaxpr", inner))


def largest(op: Any) -> int:
    """The numbers of the largest array that the gradient of a scan's sum of squares makes. What of it is in memory at once
    depends on XLA and its flags."""
    program = jax.make_jaxpr(jax.grad(lambda arguments: jnp.sum(op(*arguments) ** 2)))(op.example())
    return max(prod(made.aval.shape) for equation in equations(program) for made in equation.outvars)


def programs(function: Callable[..., Any], *arguments: Any) -> set[tuple[str, Any]]:
    """The strategies whose calls a function is made of, each with its batch."""
    every = equations(jax.make_jaxpr(function)(*arguments))
    calls = [equation.params["call"] for equation in every if equation.primitive.name == "scan_call"]
    return {(call.program.choice.strategy, call.batch) for call in calls}


def work(function: Callable[..., Any], *arguments: Any) -> tuple[float, float]:
    """The operations and bytes of a compiled function."""
    analysis = jax.jit(function).lower(*arguments).compile().cost_analysis()
    return analysis["flops"], analysis["bytes accessed"]
