"""What a compiled scan takes and gives, and whether what it was given fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.shapes import Shape, key_shape, leaf_shape, output_shape, query_shape, state_shapes, value_shape
from stmlang.program.states import LOG_SCALE, scale_shape
from stmlang.scan.scan import Scan
from stmlang.source import short
from stmlang.source.advice import Advice, Call, fixes_of, words_of
from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.suggest import did_you_mean


@dataclass(frozen=True)
class Signature:
    """Shapes of the arguments of one call, unbatched, and the data type of the result.

    `inputs` has q, k and v; `gates` each leaf by name; `initial` and `final` for each direction and port. `scale` is that of
    the logarithms of scales which states may be held at, None where a scan has no scale of its own.
    """

    inputs: dict[str, Shape]
    gates: dict[str, Shape]
    result: Shape
    initial: tuple[dict[str, Shape], ...]
    final: tuple[dict[str, Shape], ...]
    dtype: str
    scale: Shape | None = None

    __pdoc__ = short.text

    def __repr__(self) -> str:
        shapes = [f"{name} {shape}" for name, shape in {**self.inputs, "result": self.result}.items()]
        return f"<Signature: {', '.join(shapes)}, {self.dtype}; gates {', '.join(self.gates) or 'none'}>"

    @classmethod
    def of(cls, scan: Scan, dag: DAG, dtype: str) -> Signature:
        return cls(
            inputs={"q": query_shape(scan, dag), "k": key_shape(scan, dag), "v": value_shape(scan, dag)},
            gates={leaf.name: leaf_shape(scan, dag, leaf) for leaf in scan.leaves},
            result=output_shape(scan, dag),
            initial=state_shapes(scan, dag),
            final=state_shapes(scan, dag, final=True),
            dtype=dtype,
            scale=scale_shape(scan),
        )


def call_error(code: str, message: str, notes: tuple[str, ...] = (), help: str | Advice | None = None) -> SpecError:
    """A SpecError about the data of a call."""
    return SpecError([Diagnostic(code, message, None, notes, words_of(help), fixes=fixes_of(help))])


def mapped(what: str) -> Advice:
    """The advice to map a scan or a layer over the batch that it was given."""
    call = f"jax.vmap({what})"
    return Advice(f"scans and layers take one example: map over the batch with `jax.vmap`, `{call}`", (Call(call),))


def shape_help(name: str, shape: Shape, actual: Shape, what: str, padded: bool) -> Advice | None:
    """What to do about an array of another shape: map over a batch axis, or fill up what a batch of graphs takes.

    `what` is called with it; `padded` says that its graphs came at run time.
    """
    lead = len(actual) - len(shape)
    if lead > 0 and actual[lead:] == shape:
        return mapped(what)
    if not padded or len(actual) != len(shape) or actual[1:] != shape[1:]:
        return None
    kind = "edges" if "edge" in name else "nodes"
    words = f"a batch fills its graphs up: `batch.{kind}([{name}, ...])` lays out what each graph has, padding included"
    return Advice(words, (Call(f"batch.{kind}([{name}])"),) if name.isidentifier() else ())


def check_arguments(
    signature: Signature,
    inputs: Mapping[str, Any],
    gates: Any,
    initial: Any,
    *,
    padded: bool = False,
    what: str = "op",
) -> None:
    """Raises SpecError (STM52xx) that names every argument that does not fit, what is expected, and what was given. `padded`
    says that the graphs came at run time, so that a batch lays the arrays out; `what` is what is called."""
    diagnostics: list[Diagnostic] = []
    for name, shape in signature.inputs.items():
        _check_array(diagnostics, name, shape, inputs[name], padded, what)
    leaves = _mapping(gates)
    if leaves is None:
        raise call_error("STM5203", f"`gates` must be a dictionary of arrays by leaf name, not {type(gates).__name__}")
    _check_names(diagnostics, "gate leaf", signature.gates, leaves)
    for name, shape in signature.gates.items():
        if name in leaves:
            _check_array(diagnostics, f'gates["{name}"]', shape, leaves[name], padded, what)
    if initial is not None:
        _check_state(diagnostics, "initial", signature, initial)
    if diagnostics:
        raise SpecError(diagnostics)


def check_state(name: str, signature: Signature, state: Any) -> None:
    """Raises SpecError (STM52xx) that names everything of a state which is not as the `initial` one of a signature."""
    diagnostics: list[Diagnostic] = []
    _check_state(diagnostics, name, signature, state)
    if diagnostics:
        raise SpecError(diagnostics)


def _mapping(value: Any) -> Mapping[str, Any] | None:
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else None


def _check_state(diagnostics: list[Diagnostic], name: str, signature: Signature, initial: Any) -> None:
    expected, scale = signature.initial, signature.scale
    listed = isinstance(initial, (tuple, list))
    entries = list(cast(Sequence[Any], initial)) if listed else None
    if entries is None or len(entries) != len(expected):
        actual = type(initial).__name__ if entries is None else f"{len(entries)} of them"
        message = f"`{name}` must be a tuple with a dictionary for each of the {len(expected)} directions, not {actual}"
        diagnostics.append(Diagnostic("STM5204", message, None))
        return
    for number, (shapes, entry) in enumerate(zip(expected, entries, strict=True)):
        state = _mapping(entry)
        if state is None:
            diagnostics.append(Diagnostic("STM5204", f"`{name}[{number}]` must be a dictionary of arrays by port name", None))
            continue
        if scale is not None and LOG_SCALE in state:
            shapes = {**shapes, LOG_SCALE: scale}
        _check_names(diagnostics, "port", shapes, state)
        for port, shape in shapes.items():
            if port in state:
                _check_array(diagnostics, f'{name}[{number}]["{port}"]', shape, state[port])


def _check_names(diagnostics: list[Diagnostic], what: str, expected: Mapping[str, Shape], arrays: Mapping[str, Any]) -> None:
    for name in arrays:
        if name not in expected:
            help = did_you_mean(name, expected) or f"there are: {', '.join(expected) or 'none'}"
            diagnostics.append(Diagnostic("STM5202", f"there is no {what} `{name}`", None, help=help))
    for name in expected:
        if name not in arrays:
            message = f"the {what} `{name}` is missing; its shape is {expected[name]}"
            diagnostics.append(Diagnostic("STM5202", message, None))


def _check_array(
    diagnostics: list[Diagnostic], name: str, shape: Shape, array: Any, padded: bool = False, what: str = "op"
) -> None:
    kind = array_problem(f"`{name}`", array)
    if kind is not None:
        diagnostics.append(kind)
    actual = tuple(array.shape) if is_array(array) else tuple(shape)
    if actual != tuple(shape):
        help = shape_help(name, tuple(shape), actual, what, padded)
        message = f"`{name}` must have the shape {tuple(shape)}, not {actual}"
        diagnostics.append(Diagnostic("STM5201", message, None, help=words_of(help), fixes=fixes_of(help)))


def is_array(value: Any) -> bool:
    """Whether JAX takes something as an array: one of its own, traced ones included, or one of numpy's without a mask."""
    return isinstance(value, (jax.Array, np.ndarray, np.generic)) and not isinstance(value, np.ma.MaskedArray)


def array_problem(name: str, array: Any) -> Diagnostic | None:
    """What is wrong with an argument, whatever its shape: not an array (STM5203), or not of floating point numbers that JAX
    has (STM5205)."""
    help = "convert it: `jnp.asarray(x, jnp.float32)`"
    if isinstance(array, np.ma.MaskedArray):
        return Diagnostic("STM5203", f"{name} must be an array without a mask", None, help="fill what is masked: `x.filled(0)`")
    if not is_array(array):
        return Diagnostic("STM5203", f"{name} must be an array, not {type(array).__name__}", None, help=help)
    dtype = array.dtype
    if not jnp.issubdtype(dtype, jnp.floating) or (isinstance(array, np.ndarray) and not _has_jax_type(dtype)):
        return Diagnostic("STM5205", f"{name} must hold floating point numbers, not {dtype}", None, help=help)
    return None


def jax_type(array: Any) -> np.dtype[Any]:
    """The data type that an array has once it is JAX's: numpy's float64 is float32 there, unless JAX computes in 64 bits."""
    return jax.dtypes.canonicalize_dtype(array.dtype)


def widest(*types: Any) -> np.dtype[Any]:
    """The widest of float32 and some types of floating point numbers, whatever JAX is told about mixing them."""
    return max((jnp.dtype(kind) for kind in (jnp.float32, *types)), key=lambda kind: kind.itemsize)


def _has_jax_type(dtype: np.dtype[Any]) -> bool:
    """Whether JAX takes numpy's floating point numbers as they are: neither of extended precision nor in foreign byte order."""
    return dtype.isnative and dtype.itemsize <= 8


def flag(name: str, value: Any) -> bool:
    """A truth value. Raises SpecError (STM5010) for anything else, which Python would take for one or the other."""
    if isinstance(value, (bool, np.bool_)):
        return bool(cast(Any, value))
    raise call_error("STM5010", f"`{name}` must be True or False, not {value!r:.80}")
