"""What a model takes and gives: arrays in dictionaries, lists, tuples and named tuples; and graphs, where it takes them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never, cast

from stmlang.graph.dag import DAG
from stmlang.graph.shapes import Shape
from stmlang.runtime.signature import call_error, is_array


@dataclass(frozen=True)
class ArrayNode:
    """An array of one example."""

    shape: Shape
    dtype: str


@dataclass(frozen=True)
class GraphNode:
    """The tables of a scan on a batch of graphs, made by the recipe of this number; None for those of the batch itself."""

    recipe: int | None
    tables: tuple[ArrayNode, ...]


@dataclass(frozen=True)
class DictNode:
    keys: tuple[str, ...]
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class SequenceNode:
    """A list or a tuple; a named one if it has `fields`."""

    name: str
    fields: tuple[str, ...]
    parts: tuple[Node, ...]


Node = ArrayNode | GraphNode | DictNode | SequenceNode | None
"""None is nothing, in the place of an argument that is left out."""


@dataclass(frozen=True)
class Given:
    """An array that was given for a node, and where."""

    place: str
    node: ArrayNode
    array: Any


@dataclass(frozen=True, eq=False)
class GivenGraphs:
    """What was given for graphs, and where."""

    place: str
    node: GraphNode
    graphs: Any


def leaves_of(node: Node) -> list[ArrayNode]:
    """The arrays, in the order in which JAX flattens what they stand in."""
    match node:
        case None:
            return []
        case ArrayNode():
            return [node]
        case GraphNode(tables=tables):
            return list(tables)
        case DictNode(parts=children) | SequenceNode(parts=children):
            return [leaf for child in children for leaf in leaves_of(child)]
        case _:
            assert_never(node)


def rebuilt(node: Node, leaves: Iterator[Any]) -> Any:
    """Arrays in the structure of a node. A named tuple is one of the same name and fields."""
    match node:
        case None:
            return None
        case ArrayNode():
            return next(leaves)
        case GraphNode(tables=tables):
            return [next(leaves) for _ in tables]
        case DictNode(keys=keys, parts=children):
            return {key: rebuilt(child, leaves) for key, child in zip(keys, children, strict=True)}
        case SequenceNode(name=name, fields=fields, parts=children):
            items = [rebuilt(child, leaves) for child in children]
            if fields:
                return _named(name, fields)(*items)
            return items if name == "list" else tuple(items)
        case _:
            assert_never(node)


def _named(name: str, fields: tuple[str, ...]) -> Any:
    made: Any = namedtuple  # its types are known at run time only
    return made(name, fields)


def text(node: Node) -> str:
    """A node on one line: `{"image": float32[28, 28]}`."""
    match node:
        case None:
            return "None"
        case ArrayNode(shape=shape, dtype=dtype):
            return f"{dtype}{list(shape)}"
        case GraphNode():
            return "graphs"
        case DictNode(keys=keys, parts=children):
            inside = (f'"{key}": {text(child)}' for key, child in zip(keys, children, strict=True))
            return "{" + ", ".join(inside) + "}"
        case SequenceNode(name=name, fields=fields, parts=children):
            if fields:
                return f"{name}({', '.join(f'{key}={text(child)}' for key, child in zip(fields, children, strict=True))})"
            inside = ", ".join(map(text, children))
            return f"[{inside}]" if name == "list" else f"({inside}{',' * (len(children) == 1)})"
        case _:
            assert_never(node)


# --- what is given -----------------------------------------------------------------------------------------------------


def only_graphs(node: Node) -> bool:
    """Whether nothing but graphs stands in a place, so that a batch may be given for all of it."""
    match node:
        case GraphNode():
            return True
        case DictNode(parts=children) | SequenceNode(parts=children):
            return bool(children) and all(map(only_graphs, children))
        case _:
            return False


def flattened(node: Node, argument: Any, place: str, of: str) -> list[Given | GivenGraphs]:
    """What was given for a node, leaf after leaf: arrays, and whatever stands for graphs. A dictionary may stand for a named
    tuple, a list for a tuple. Raises SpecError (STM5311, STM5312) where it has another structure or another type of numbers;
    `place` and the artifact `of` which it is given are named."""
    if only_graphs(node) and not _fits(node, argument):
        return [GivenGraphs(place, leaf, argument) for leaf in _graphs(node)]
    inside: list[tuple[str, Any, Node]] = []
    match node:
        case None:
            if argument is not None:
                raise _other(node, argument, place, of)
            return []
        case ArrayNode(dtype=dtype):
            if not is_array(argument):
                raise _other(node, argument, place, of)
            if str(argument.dtype) != dtype:
                message = f"{place} of artifact `{of}` is {dtype}; given was {argument.dtype}"
                is_key = str(argument.dtype).startswith("key<")
                help = "jax.random.key_data(key)" if is_key else f"jnp.asarray(x, jnp.{dtype})"
                raise call_error("STM5311", message, help=f"convert it: `{help}`")
            return [Given(place, node, argument)]
        case GraphNode():
            return [GivenGraphs(place, node, argument)]
        case DictNode(keys=keys, parts=children):
            if not isinstance(argument, Mapping) or set(cast(Mapping[Any, Any], argument)) != set(keys):
                raise _other(node, argument, place, of)
            inside = [(f'{place}["{key}"]', argument[key], child) for key, child in zip(keys, children, strict=True)]
        case SequenceNode(fields=fields, parts=children):
            if fields and isinstance(argument, Mapping) and set(cast(Mapping[Any, Any], argument)) == set(fields):
                argument = [argument[field] for field in fields]
            if not isinstance(argument, (list, tuple)) or len(cast(Sequence[Any], argument)) != len(children):
                raise _other(node, argument, place, of)
            names = [f".{field}" for field in fields] or [f"[{number}]" for number in range(len(children))]
            inside = list(zip([place + name for name in names], cast(Sequence[Any], argument), children, strict=True))
        case _:
            assert_never(node)
    return [leaf for name, value, child in inside for leaf in flattened(child, value, name, of)]


def _fits(node: Node, argument: Any) -> bool:
    """Whether something has the outer form of a node of graphs, so that its parts stand for those of the node."""
    match node:
        case DictNode():
            return isinstance(argument, Mapping)
        case SequenceNode(name=name, fields=fields, parts=children):
            if fields:
                return isinstance(argument, Mapping) or getattr(argument, "_fields", None) == fields
            listed = isinstance(argument, tuple) or (
                name == "list" and isinstance(argument, list) and not _are_graphs(argument)
            )
            return listed and len(cast(Sequence[Any], argument)) == len(children)
        case _:
            return False


def _are_graphs(argument: Any) -> bool:
    return all(isinstance(graph, DAG) for graph in argument)


def _graphs(node: Node) -> list[GraphNode]:
    match node:
        case GraphNode():
            return [node]
        case DictNode(parts=children) | SequenceNode(parts=children):
            return [leaf for child in children for leaf in _graphs(child)]
        case _:
            return []


def _other(node: Node, argument: Any, place: str, of: str) -> Exception:
    shown = type(argument).__name__
    if isinstance(argument, Mapping):
        shown = "a dictionary of [" + ", ".join(f"`{key}`" for key in cast(Mapping[Any, Any], argument)) + "]"
    elif isinstance(argument, (list, tuple)):
        shown = f"a {shown} of {len(cast(Sequence[Any], argument))}"
    message = f"{place} of artifact `{of}` is {text(node):.200}; given was {shown}"
    return call_error("STM5312", message, help="give arrays in the structure of the example that it was exported with")


# --- as JSON values ------------------------------------------------------------------------------------------------------


def stored(node: Node) -> Any:
    """A node as JSON values."""
    match node:
        case None:
            return None
        case ArrayNode(shape=shape, dtype=dtype):
            return {"is": "array", "shape": list(shape), "dtype": dtype}
        case GraphNode(recipe=recipe, tables=tables):
            return {"is": "graphs", "recipe": recipe, "tables": [stored(table) for table in tables]}
        case DictNode(keys=keys, parts=children):
            return {"is": "dict", "keys": list(keys), "parts": [stored(child) for child in children]}
        case SequenceNode(name=name, fields=fields, parts=children):
            return {"is": "sequence", "name": name, "fields": list(fields), "parts": [stored(child) for child in children]}
        case _:
            assert_never(node)


def node_from(value: Any) -> Node:
    """A node as it was stored. Raises ValueError for anything else."""
    match value:
        case None:
            return None
        case {"is": "array", "shape": shape, "dtype": str(dtype)}:
            return ArrayNode(tuple(_size(size) for size in _listed(shape)), dtype)
        case {"is": "graphs", "recipe": int() | None as recipe, "tables": tables}:
            nodes = [node_from(table) for table in _listed(tables)]
            return GraphNode(recipe, tuple(table for table in nodes if isinstance(table, ArrayNode)))
        case {"is": "dict", "keys": keys, "parts": children}:
            return DictNode(_names(keys), tuple(map(node_from, _listed(children))))
        case {"is": "sequence", "name": str(name), "fields": fields, "parts": children}:
            return SequenceNode(name, _names(fields), tuple(map(node_from, _listed(children))))
        case _:
            raise ValueError(f"{value!r:.40} is no part of a signature")


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r:.40} is no list")
    return cast(list[Any], value)


def _size(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r:.40} is no size")
    return value


def _names(values: Any) -> tuple[str, ...]:
    names = _listed(values)
    if not all(isinstance(value, str) for value in names):
        raise ValueError(f"{values!r:.40} are no names")
    return tuple(names)
