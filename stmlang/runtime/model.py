"""Models in artifacts: any Equinox model with its parameters, in a file that runs without Equinox and without its source.

Parameters and index tables are arguments of the stored program, not constants in it: they are stored once, however many
platforms it is for, and arrays that are equal are stored once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, cast

import equinox as eqx
import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from stmlang.graph.batch import Arrays
from stmlang.runtime.artifact import (
    npz,
    plain_type,
    platforms_of,
    program_members,
    require_writable,
    without_locations,
    write_artifact,
)
from stmlang.runtime.compiled import Compilation, CompiledScan
from stmlang.runtime.options import export_batch, file_path
from stmlang.runtime.reading import refuse_effects
from stmlang.runtime.recipes import Recipe
from stmlang.runtime.signature import call_error, flag, is_array
from stmlang.runtime.structure import ArrayNode, DictNode, GraphNode, Node, SequenceNode, leaves_of, stored

PLATFORMS = ("cpu", "cuda")


def export(
    model: Callable[..., Any],
    example: Any,
    path: str | PathLike[str],
    *,
    keywords: Mapping[str, Any] | None = None,
    platforms: Sequence[str] = PLATFORMS,
    batch: int | Literal["symbolic"] | None = "symbolic",
    inference: bool = True,
    differentiable: bool = True,
) -> None:
    """Write a model with its parameters as an artifact, atomically.

        stmlang.export(model, jax.ShapeDtypeStruct((28, 28, 1), "float32"), "model.stmx")
        loaded = stmlang.load("model.stmx")          # needs neither Equinox nor the model's source
        logits = loaded(images)                      # (batch, 28, 28, 1), or one image

    `model` is called with one `example`: an argument, or a tuple of them, and `keywords` by name. They are arrays, or
    `jax.ShapeDtypeStruct` in their place, in dictionaries, lists and tuples; what the model returns is likewise. What is loaded
    takes the same arguments: one example, or, with `batch` as a size or "symbolic" for any, many of them along a first axis of
    every array. None exports the call as it is.

    A model of graphs takes a batch of them already, and is exported as it is called. Where the example holds a scan on graphs,
    `op.at(batch)`, or `batch.arrays`, what is loaded takes the batch itself, or a list of graphs, of the example's bucket.

    The program runs on all `platforms`; none of them has to be there. `inference` switches dropout and the like off, as
    `eqx.nn.inference_mode` does. A `differentiable` one can be differentiated once after loading, by its arguments.

    Raises SpecError: STM5010 for options that are none, STM5203 for examples of anything but arrays, STM5301 for an unknown
    platform, STM5302 where the file cannot be written, STM5306 for a model that has no program of its own.
    """
    target, size = file_path(path), export_batch(batch)
    inference, differentiable = flag("inference", inference), flag("differentiable", differentiable)
    names = platforms_of(list(platforms) if isinstance(cast(Any, platforms), tuple) else platforms)
    if not callable(model):
        raise call_error("STM5010", f"`model` must be a function or a module that is called, not {type(model).__name__}")
    require_writable(target)
    if inference:
        model = cast(Callable[..., Any], eqx.nn.inference_mode(model))
    graphs = _Graphs()
    arguments = cast(tuple[Any, ...], example) if isinstance(example, tuple) else (example,)
    named = dict(keywords or {})
    nodes = [graphs.node(argument, f"number {number} of the example") for number, argument in enumerate(arguments)]
    by_name = {name: graphs.node(named[name], f'`keywords["{name}"]`') for name in sorted(named)}
    if graphs.found:
        if isinstance(size, int):
            message = "a model of graphs takes a batch of them already, and can have no other batch axis"
            raise call_error("STM5010", message, help="leave `batch` out")
        size = None
    weights = _Weights.of(model)
    call = _Call(weights, jax.tree.structure((arguments, named)))
    leaves = [leaf for node in (*nodes, *by_name.values()) for leaf in leaves_of(node)]
    exported, members = _exported(call, leaves, names, size, differentiable)
    manifest = {
        "kind": "model",
        "model": type(model).__name__,
        "platforms": list(names),
        "batch": size,
        "differentiable": differentiable,
        "weights": [[list(array.shape), str(array.dtype)] for array in weights.arrays],
        "signature": {
            "arguments": [stored(node) for node in nodes],
            "keywords": {name: stored(node) for name, node in by_name.items()},
            "result": stored(call.result),
        },
    }
    members["weights.npz"] = npz([plain_type(array) for array in weights.arrays])
    members["graphs.json"] = json.dumps(graphs.stored(), indent=1, sort_keys=True).encode()
    write_artifact(target, manifest, exported, members)


def _exported(
    call: _Call,
    leaves: Sequence[ArrayNode],
    platforms: Sequence[str],
    batch: int | Literal["symbolic"] | None,
    derivative: bool,
) -> tuple[jax.export.Exported, dict[str, bytes]]:
    """The program and the members that hold it. What a model itself raises, it raises here as it would in a call."""
    fixed = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in call.weights.arrays]
    jax.eval_shape(call.leaves, fixed, [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves])

    def run(weights: list[Any], arrays: list[Any]) -> list[Any]:
        return call.leaves(weights, arrays) if batch is None else jax.vmap(call.leaves, (None, 0))(weights, arrays)

    lead: tuple[Any, ...] = ()
    if batch is not None:
        lead = tuple(jax.export.symbolic_shape("batch")) if batch == "symbolic" else (batch,)
    structs = [jax.ShapeDtypeStruct((*lead, *leaf.shape), leaf.dtype) for leaf in leaves]
    if not structs:
        raise call_error("STM5203", "the example holds no array", help="give one of what the model is called with")
    try:
        with without_locations():
            exported = jax.export.export(jax.jit(run), platforms=list(platforms))(fixed, structs)
        members = program_members(exported, 1 if derivative else 0)
        refuse_effects(exported)
    except Exception as error:  # what a model does that no program can hold is of many kinds
        help = "a program has no calls back into Python, such as `jax.debug.print` and `jax.pure_callback`"
        if batch == "symbolic":
            help = f"give a size, `batch=8`, or `batch=None`, if it is the batch; {help}"
        reason = (str(error) or type(error).__name__).partition("\n")[0]
        raise call_error("STM5306", f"the model cannot be exported: {reason:.300}", help=help) from error
    return exported, members


class _Weights:
    """The arrays of a model, equal ones once, and the model made of them again."""

    def __init__(self, arrays: list[Any], places: list[int], structure: Any, rest: Any) -> None:
        self.arrays, self.places, self.structure, self.rest = arrays, places, structure, rest

    @classmethod
    def of(cls, model: Any) -> _Weights:
        learned, rest = cast(tuple[Any, Any], eqx.partition(model, _is_weight))
        leaves, structure = cast(tuple[list[Any], Any], jax.tree.flatten(learned))
        arrays, places, known = list[Any](), list[int](), dict[tuple[Any, ...], int]()
        for leaf in leaves:
            content = np.asarray(leaf)
            key = (content.shape, str(content.dtype), hashlib.sha256(plain_type(content).tobytes()).digest())
            if key not in known:
                known[key] = len(arrays)
                arrays.append(content)
            places.append(known[key])
        return cls(arrays, places, structure, rest)

    def model(self, arrays: Sequence[Any]) -> Any:
        learned = jax.tree.unflatten(self.structure, [arrays[place] for place in self.places])
        return eqx.combine(learned, self.rest)


def _is_weight(leaf: Any) -> bool:
    return eqx.is_array(leaf) and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


@dataclass
class _Call:
    """One call of a model as a function of its arrays; `result` is what the last one returned."""

    weights: _Weights
    structure: Any
    result: Node = None

    def leaves(self, weights: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        arguments, named = jax.tree.unflatten(self.structure, arrays)
        result = jax.tree.map(_array, self.weights.model(weights)(*arguments, **named))
        self.result = _Graphs().node(result, "the result")
        return jax.tree.leaves(result)


def _array(leaf: Any) -> Any:
    return jnp.asarray(leaf) if isinstance(leaf, (bool, int, float, complex, np.ndarray, np.generic)) else leaf


@dataclass
class _Graphs:
    """The graphs of an example: the recipes of its scans, and the sizes of the one batch that all of it is about."""

    recipes: dict[Compilation, int] = field(default_factory=dict[Compilation, int])
    sizes: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def found(self) -> bool:
        return bool(self.sizes)

    def stored(self) -> dict[str, Any]:
        return {"sizes": self.sizes, "recipes": [Recipe.of(compilation).stored() for compilation in self.recipes]}

    def node(self, example: Any, place: str) -> Node:
        """What stands in a place of an example. Raises SpecError (STM5203) for anything that holds more than arrays, and
        STM5010 for graphs of several batches."""
        kind = type(example).__name__
        fields: tuple[str, ...] = getattr(example, "_fields", ())
        if example is None:
            return None
        if isinstance(example, CompiledScan) and example.compilation.at_run_time:
            self._one_batch(place, nodes=example.node_shape[0], edges=example.edge_count)
            number = self.recipes.setdefault(example.compilation, len(self.recipes))
            return GraphNode(number, tuple(_leaf(table) for table in jax.tree.leaves(example)))
        if isinstance(example, Arrays):
            self._one_batch(place, nodes=len(example.graph), edges=len(example.tail), graphs=len(example.graph_mask))
            return GraphNode(None, tuple(_leaf(array) for array in example))
        if is_array(example) or isinstance(example, jax.ShapeDtypeStruct):
            if jnp.issubdtype(example.dtype, jax.dtypes.prng_key):
                help = "use its data, `jax.random.key_data(key)`, and `jax.random.wrap_key_data(data)` in the model"
                raise call_error("STM5203", f"{place} is a typed key of random numbers, and no plain array", help=help)
            return _leaf(example)
        if type(example) is dict and all(isinstance(key, str) for key in cast(dict[Any, Any], example)):
            dictionary = cast(dict[str, Any], example)
            return DictNode(
                tuple(sorted(dictionary)), tuple(self.node(dictionary[key], f'{place}["{key}"]') for key in sorted(dictionary))
            )
        if isinstance(example, (list, tuple)) and (kind in ("list", "tuple") or fields):
            inside = cast(Sequence[Any], example)
            children = tuple(self.node(value, f"{place}[{number}]") for number, value in enumerate(inside))
            return SequenceNode(kind, fields, children)
        help = "give arrays, or `jax.ShapeDtypeStruct(shape, dtype)`, in dictionaries with texts as keys, lists and tuples"
        raise call_error("STM5203", f"{place} must be an array or made of arrays, not {kind}", help=help)

    def _one_batch(self, place: str, **sizes: int) -> None:
        for name, size in sizes.items():
            if self.sizes.setdefault(name, size) != size:
                message = (
                    f"{place} is of a batch with {size} {name}, and another part of the example of one with {self.sizes[name]}"
                )
                raise call_error("STM5010", message, help="make all of the example from one batch")


def _leaf(array: Any) -> ArrayNode:
    return ArrayNode(tuple(array.shape), str(jax.dtypes.canonicalize_dtype(array.dtype)))
