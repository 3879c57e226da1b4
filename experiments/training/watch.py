"""Where numbers stop being finite: the first module of a model, and the first gate of a scan, forward or backward.

The step is traced anew, with a mark on what each module returns and on the gradient that reaches it, and is then computed one
operation after the other; scans over stacked layers turn by turn, so that the place in the stack is known too. A mark is the
identity (`checkpoint_name`), so that what is computed is the step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name  # pyright: ignore[reportUnknownVariableType]
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from stmlang.experiments.training.state import Loss, split
from stmlang.experiments.training.trees import children, named, structure
from stmlang.nn.leaves import Leaves

MARK = "watched: "
BACKWARD = "the gradient behind "


class _Reached(Exception):
    """The first mark where a number is not finite."""


def first_bad(loss: Loss, model: Any, batch: Any, key: Any) -> str:
    """In words, where the loss of a batch or its gradient is not finite at first: a parameter, an array of the batch, what a
    module returns, a gate of a scan, or the gradient that reaches one of them."""
    learned, fixed = split(model)
    for name, tree in (("parameter", learned), ("array of the batch", batch)):
        for path, leaf in named(tree):
            if not _finite(leaf):
                return f"{name} `{path or 'itself'}` holds numbers that are not"

    def of(learned: Any) -> Any:
        return loss(eqx.combine(learned, fixed), batch, key)

    flat = jax.tree.leaves(learned)

    def gradient(*flat: Any) -> Any:
        return jax.tree.leaves(jax.value_and_grad(of, has_aux=True)(jax.tree.unflatten(structure(learned), flat))[1])

    with _marked(model):
        closed = jax.make_jaxpr(gradient)(*flat)
    try:
        gradients = _evaluated(closed.jaxpr, closed.consts, flat, "")
    except _Reached as reached:
        return str(reached)
    for (path, _), value in zip(named(learned), gradients, strict=True):
        if not _finite(value):
            return f"the gradient of `{path}`, behind modules whose own are finite"
    return "the loss, behind modules whose results are finite; computed again by itself its gradient is finite"


# --- marks -----------------------------------------------------------------------------------------------------------


@contextmanager
def _marked(model: Any) -> Generator[None]:
    """Within the block, what the modules of a model return is marked with their paths when it is traced."""
    kinds = {type(module) for _, module in _modules(model) if callable(module)}
    calls: dict[Any, Any] = {kind: kind.__dict__["__call__"] for kind in kinds if "__call__" in kind.__dict__}
    inside: list[tuple[str, Any]] = [("", model)]

    def marking(kind: Any, call: Callable[..., Any]) -> Callable[..., Any]:
        def marked(module: Any, *arguments: Any, **options: Any) -> Any:
            path = _named(module, *inside[-1])
            inside.append((path, module))
            try:
                result = call(module, *arguments, **options)
            finally:
                inside.pop()
            return _with_marks(result, path or kind.__name__, gates=isinstance(module, Leaves))

        return marked

    for kind, call in calls.items():
        type.__setattr__(kind, "__call__", marking(kind, call))
    try:
        yield
    finally:
        for kind, call in calls.items():
            type.__setattr__(kind, "__call__", call)


def _with_marks(result: Any, path: str, *, gates: bool) -> Any:
    """A result whose arrays are marked; of the gates of a scan each with its name."""
    if gates and isinstance(result, Mapping):
        layer = path.removesuffix(".leaves")
        return {name: _mark(value, f"gate `{name}` of `{layer}`") for name, value in cast(Any, result).items()}

    def marked(value: Any) -> Any:
        return _mark(value, f"what `{path}` returns") if eqx.is_inexact_array(value) else value

    return jax.tree.map(marked, result)


def _mark(value: Any, words: str) -> Any:
    """The identity, with a mark on the value and one on its gradient."""

    @jax.custom_vjp
    def marked(x: Any) -> Any:
        return checkpoint_name(x, MARK + words)

    def forward(x: Any) -> tuple[Any, None]:
        return checkpoint_name(x, MARK + words), None

    def backward(_: None, gradient: Any) -> tuple[Any]:
        return (checkpoint_name(gradient, MARK + BACKWARD + words),)

    marked.defvjp(forward, backward)
    return cast(Any, marked(value)) if jnp.issubdtype(jnp.result_type(value), jnp.floating) else value


def _modules(model: Any) -> list[tuple[str, Any]]:
    """Every module within a model, itself first, and the path to each."""
    seen: list[tuple[str, Any]] = []

    def visit(path: str, node: Any) -> None:
        if isinstance(node, eqx.Module):
            seen.append((path, node))
        for step, child in children(node):
            if isinstance(child, eqx.Module | tuple | list | dict):
                visit(path + step, child)

    visit("", model)
    return seen


def _named(module: Any, path: str, around: Any) -> str:
    """The path of a module that is called by the one around it. Where a copy is called, as within a `lax.scan` over stacked
    layers, it is that of the first module of the same structure."""
    if module is around:
        return path
    inner = [(path + step, other) for step, other in _modules(around)]
    same = [name for name, other in inner if other is module]
    alike = [name for name, other in inner if type(other) is type(module) and _structure(other) == _structure(module)]
    of_kind = [name for name, other in inner if type(other) is type(module)]
    return (same or alike or of_kind or [f"{path}.{type(module).__name__}"])[0]


def _structure(module: Any) -> Any:
    return structure(split(module)[0])


# --- one operation after the other -----------------------------------------------------------------------------------


def _evaluated(jaxpr: Jaxpr, consts: Any, arguments: Any, place: str) -> list[Any]:
    """The results of a program. Raises _Reached at the first mark whose value is not finite; `place` says in which turn of
    which scans that is."""
    values: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *arguments), strict=True))

    def read(variable: Any) -> Any:
        return variable.val if isinstance(variable, Literal) else values[variable]

    for equation in jaxpr.eqns:
        results = _applied(equation, [read(variable) for variable in equation.invars], place)
        values.update(zip(equation.outvars, results, strict=True))
    return [read(variable) for variable in jaxpr.outvars]


def _applied(equation: Any, inputs: list[Any], place: str) -> list[Any]:
    kind, options = equation.primitive.name, equation.params
    if kind == "name" and options["name"].startswith(MARK) and not _finite(inputs[0]):
        raise _Reached(options["name"].removeprefix(MARK) + place)
    inner = next((options[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr") if name in options), None)
    if inner is not None and MARK in str(inner):
        if kind == "scan":
            return _turns(options, inputs, place)
        if kind != "while":
            closed = isinstance(inner, ClosedJaxpr)
            program: Any = inner.jaxpr if closed else inner
            return _evaluated(program, inner.consts if closed else (), inputs, place)
    results = equation.primitive.bind(*inputs, **options)
    return list(results) if equation.primitive.multiple_results else [results]


def _turns(options: Mapping[str, Any], inputs: list[Any], place: str) -> list[Any]:
    """A `lax.scan`, turn by turn."""
    fixed, carried, body = options["num_consts"], options["num_carry"], options["jaxpr"]
    consts, carry, stacked = inputs[:fixed], inputs[fixed : fixed + carried], inputs[fixed + carried :]
    turns = range(options["length"])
    rows: dict[int, list[Any]] = {}
    for turn in reversed(turns) if options["reverse"] else turns:
        arguments = [*consts, *carry, *(array[turn] for array in stacked)]
        results = _evaluated(body.jaxpr, body.consts, arguments, f"{place}, layer {turn + 1} of {len(turns)} in its stack")
        carry, rows[turn] = results[:carried], results[carried:]
    return [*carry, *(jnp.stack(column) for column in zip(*(rows[turn] for turn in turns), strict=True))]


def _finite(value: Any) -> bool:
    inexact = jnp.issubdtype(jnp.result_type(value), jnp.inexact)
    return not inexact or bool(np.isfinite(np.asarray(value, np.float32)).all())
