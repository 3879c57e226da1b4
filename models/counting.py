"""How large a model is: its parameters, and the multiply-adds of a call."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, cast

import equinox as eqx
import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from stmlang.runtime.compilation import Compilation
from stmlang.scan.topology import Regular

OfScan = Callable[[Compilation], int]
"""The multiply-adds of one call of a compiled scan."""


def parameters(model: Any) -> int:
    """How many numbers a model learns. It may be a structure of shapes: `eqx.filter_eval_shape(make)` allocates nothing."""
    return sum(prod(leaf.shape) for leaf in jax.tree.leaves(eqx.filter(model, _is_number)))


def _is_number(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype") and jax.numpy.issubdtype(leaf.dtype, jax.numpy.inexact)


def planned(compilation: Compilation) -> int:
    """What the planner counts of the strategy that it chose: half of the operations of all forward stages, gates and
    elementwise work included."""
    plan = compilation.plan
    return sum(stage.flops for stage in plan.chosen.candidate.forward) // (2 * plan.circumstances.batch)


def padded_attention(compilation: Compilation) -> int:
    """Scores and values between all pairs of nodes of a grid whose sides are filled up to powers of two, and nothing else: what
    the authors' code does of images, and what the numbers of the paper hold."""
    scan = compilation.facts.scan
    assert isinstance(scan.topology, Regular), "images are grids"
    nodes = prod(1 << (size - 1).bit_length() for axis in scan.topology.axes if (size := axis.size) is not None)
    return nodes * nodes * scan.heads * (scan.key + scan.value)


def multiply_adds(function: Callable[..., Any], *arguments: Any, of_scan: OfScan = planned) -> int:
    """The multiply-adds of `function(*arguments)`: of every matrix product and convolution of its program, turns of loops
    included, and of its scans by `of_scan`. Elementwise work is not counted, as in the paper. A model and arguments may be made
    of `jax.ShapeDtypeStruct`; nothing is computed.

        multiply_adds(model, jax.ShapeDtypeStruct((224, 224, 3), "float32"))

    Raises ValueError for a product within a loop whose turns depend on numbers.
    """
    # Equinox's `filter_make_jaxpr` takes shapes for arrays, those of the model among them.
    program = cast(Any, eqx.filter_make_jaxpr(_called))(function, *arguments)[0]
    return _of_program(program.jaxpr, of_scan)


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _of_program(program: Jaxpr, of_scan: OfScan) -> int:
    return sum(_of_equation(equation, of_scan) for equation in program.eqns)


def _of_equation(equation: JaxprEqn, of_scan: OfScan) -> int:
    inside = [_of_program(program, of_scan) for program in _programs(equation)]
    match equation.primitive.name:
        case "dot_general":
            contracted: tuple[int, ...] = equation.params["dimension_numbers"][0][0]
            return _size(equation.outvars[0]) * prod(_shape(equation.invars[0])[axis] for axis in contracted)
        case "conv_general_dilated":
            kernel, layout = _shape(equation.invars[1]), equation.params["dimension_numbers"]
            return _size(equation.outvars[0]) * prod(kernel) // kernel[int(layout.rhs_spec[0])]
        case "scan_call":
            call = equation.params["call"]
            return of_scan(call.compilation) * int(call.batch)
        case "scan":
            return cast(int, equation.params["length"]) * sum(inside)
        case "cond" if equation.params.get("branches_platforms"):
            return inside[-1]  # what is done where no platform has a way of its own
        case "cond":
            return max(inside)
        case "while" if any(inside):
            raise ValueError("a product stands in a loop whose turns depend on numbers, and cannot be counted")
        case _:
            return sum(inside)


def _programs(equation: JaxprEqn) -> list[Jaxpr]:
    """The programs that an equation holds: of loops, branches and functions compiled by themselves."""
    held: list[Jaxpr] = []
    for value in equation.params.values():
        for item in cast(Any, value) if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr):
                held.append(item.jaxpr)
            elif isinstance(item, Jaxpr):
                held.append(item)
    return held


def _shape(variable: Any) -> tuple[int, ...]:
    return tuple(variable.aval.shape)


def _size(variable: Any) -> int:
    return prod(_shape(variable))
