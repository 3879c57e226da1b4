"""An artifact of a model, ready to run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast
from weakref import WeakKeyDictionary

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from stmlang.graph.batch import Arrays, Batch, Bucket, batch
from stmlang.graph.dag import DAG
from stmlang.runtime.artifact import npz, plain_type
from stmlang.runtime.calling import program_call
from stmlang.runtime.primitives import Program
from stmlang.runtime.reading import arrays_of, check_platform, compare_program
from stmlang.runtime.recipes import Recipe, recipe_from
from stmlang.runtime.signature import call_error
from stmlang.runtime.structure import (
    ArrayNode,
    Given,
    GivenGraphs,
    GraphNode,
    Node,
    flattened,
    leaves_of,
    node_from,
    rebuilt,
    text,
)
from stmlang.source import short
from stmlang.source.wording import count

WEIGHTS = "weights.npz"


@dataclass(frozen=True, eq=False, repr=False)
class LoadedModel:
    """A model ready to run, with its parameters. `manifest` is what the file says, `stablehlo` the program for reading.

    `arguments`, `keywords` and `result` say what it takes and gives, of one example. `members` are the parts of the file, but
    for the weights. Two are equal whose manifests are, which hold the hashes of everything else.
    """

    path: str
    manifest: dict[str, Any]
    arguments: tuple[Node, ...]
    keywords: dict[str, Node]
    result: Node
    stablehlo: str
    weights: list[Array]
    exported: jax.export.Exported
    recipes: tuple[Recipe, ...]
    sizes: Mapping[str, int]
    members: Mapping[str, bytes]
    _tables: WeakKeyDictionary[Batch, dict[int | None, list[Any]]] = field(
        default_factory=WeakKeyDictionary[Batch, dict[int | None, list[Any]]]
    )

    __pdoc__ = short.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoadedModel) and self.manifest == other.manifest

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.manifest["sha256"].items())))

    def __deepcopy__(self, memo: dict[int, Any]) -> LoadedModel:
        del memo
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        weights = npz([plain_type(np.asarray(array)) for array in self.weights])
        return model_from, (self.path, self.manifest, {**self.members, WEIGHTS: weights})

    def __repr__(self) -> str:
        shown = f"<LoadedModel {self.manifest.get('model', '')}{self.signature}"
        return f"{shown if len(shown) <= 400 else shown[:397] + '...'}: {', '.join(self.manifest['platforms'])}>"

    @property
    def signature(self) -> str:
        """What it takes and gives, on one line."""
        named = [f"{name}={text(node)}" for name, node in self.keywords.items()]
        lead = {None: "", "symbolic": ", any batch"}.get(self.manifest["batch"], f", batch {self.manifest['batch']}")
        return f"({', '.join([*map(text, self.arguments), *named])}) -> {text(self.result)}{lead}"

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The model's result: for one example, or for many along a first axis of every array, if it was exported with a batch.
        `jax.vmap` maps it in any case, and `jax.grad` differentiates it once.

        Raises SpecError (STM5310 to STM5312) for another platform, data type, shape or structure than it was made for, naming
        both; STM5314 for a derivative that it does not hold.
        """
        check_platform(self.path, self.manifest)
        entries = self._given(arguments, keywords)
        single = self._single([entry for entry in entries if isinstance(entry, Given)])
        graphs = self._one_batch([entry for entry in entries if isinstance(entry, GivenGraphs)])
        leaves: list[Any] = []
        for entry in entries:
            if isinstance(entry, Given):
                leaves.append(jnp.asarray(entry.array)[None] if single else entry.array)
            else:
                leaves += self._tables_of(entry, graphs)
        outputs = self._call(leaves)
        return rebuilt(self.result, iter([array[0] for array in outputs] if single else outputs))

    def batch(self, graphs: Sequence[DAG]) -> Batch:
        """Graphs in the bucket that the artifact is for, whose `nodes` and `edges` lay out features. Raises SpecError (STM5312)
        for a model that takes none, STM3508 for more than there is room for, and what `stmlang.graph.batch` raises."""
        if not self.sizes:
            raise call_error("STM5312", f"artifact `{self.path}` takes no graphs", help=f"it takes {self.signature:.300}")
        listed = [graphs] if isinstance(graphs, DAG) else list(graphs)
        room = self.recipes[0].room if self.recipes else None
        most = self.sizes.get("graphs", max(len(listed), 1))
        return batch(listed, bucket=Bucket(self.sizes["nodes"], self.sizes["edges"], most, room))

    @cached_property
    def _call(self) -> Program:
        symbolic, source = self.manifest["batch"] == "symbolic", "export it with its derivative: `differentiable=True`"
        return program_call(self.exported, self.weights, symbolic=symbolic, path=self.path, source=source)

    def _given(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[Given | GivenGraphs]:
        if len(arguments) != len(self.arguments) or set(keywords) != set(self.keywords):
            expected = [
                count(len(self.arguments), "argument"),
                *(f"`{name}`" for name in self.keywords),
            ]
            shown = [str(len(arguments)), *(f"`{name}`" for name in keywords)]
            message = f"artifact `{self.path}` takes {', '.join(expected)}; given were {', '.join(shown)}"
            raise call_error("STM5312", message, help=f"it takes {self.signature:.300}")
        places = [
            (f"argument {number}", node, value)
            for number, (node, value) in enumerate(zip(self.arguments, arguments, strict=True))
        ]
        places += [(f"`{name}`", node, keywords[name]) for name, node in self.keywords.items()]
        return [leaf for place, node, value in places for leaf in flattened(node, value, place, self.path)]

    def _single(self, entries: Sequence[Given]) -> bool:
        """Whether one example was given to a program for many. Raises SpecError (STM5312) for other shapes than it takes."""
        size = self.manifest["batch"]
        alone = all(len(entry.array.shape) == len(entry.node.shape) for entry in entries)
        lead = 0 if size is None or (size == "symbolic" and alone) else 1
        for entry in entries:
            shape, actual = entry.node.shape, tuple(entry.array.shape)
            if len(actual) != lead + len(shape) or actual[lead:] != shape:
                expected_shape = ", ".join([*(["batch"] * lead), *map(str, shape)])
                message = f"{entry.place} of artifact `{self.path}` has the shape ({expected_shape}); given was {actual}"
                help = "an artifact runs at the sizes that it was exported for"
                if size is None and actual[1:] == shape:
                    help = 'map it, `jax.vmap(loaded)`, or export it for any batch: `batch="symbolic"`'
                raise call_error("STM5312", message, help=help)
        sizes = {entry.array.shape[0] for entry in entries} if lead else set[int]()
        if len(sizes) > 1:
            help = "every array has the batch axis in front"
            raise call_error("STM5312", f"all arguments must have one batch size; given were {sorted(sizes)}", help=help)
        for length in sizes:
            if length < 1 or (isinstance(size, int) and length != size):
                requirement = f"has the batch size {size}" if isinstance(size, int) else "takes batches of at least 1"
                help = 'export it for any batch size: `batch="symbolic"`' if length else "skip the call"
                raise call_error("STM5312", f"artifact `{self.path}` {requirement}; given was {length}", help=help)
        return size == "symbolic" and alone

    def _one_batch(self, entries: Sequence[GivenGraphs]) -> tuple[str, Batch] | None:
        """The batch that was given for graphs, and the first place that it was given in; None if all places hold tables that
        are made already. Raises SpecError (STM5312) for two batches."""
        first: tuple[GivenGraphs, Batch] | None = None
        for entry in entries:
            if is_tables(entry.graphs) or (first is not None and entry.graphs is first[0].graphs):
                continue
            graph_batch = self._batch_of(entry)
            if first is None:
                first = entry, graph_batch
            elif graph_batch is not first[1] and not all(map(np.array_equal, graph_batch.arrays, first[1].arrays)):
                raise self._two_batches(first[0].place, entry.place)
        return None if first is None else (first[0].place, first[1])

    def _batch_of(self, entry: GivenGraphs) -> Batch:
        graphs = entry.graphs
        if not isinstance(graphs, Batch):
            if not isinstance(graphs, (DAG, list, tuple)):
                help = "make them with `loaded.batch(graphs)`, which also lays out features"
                message = f"{entry.place} of artifact `{self.path}` takes graphs where {type(graphs).__name__} was given"
                raise call_error("STM5312", message, help=help)
            graphs = self.batch(cast(Any, graphs))
        bucket, room = graphs.bucket, self.recipes[0].room if self.recipes else None
        sizes = {"nodes": bucket.nodes, "edges": bucket.edges, "graphs": bucket.graphs}
        if any(sizes[name] != size for name, size in self.sizes.items()) or (room is not None and graphs.room != room):
            raise self._other_bucket()
        return graphs

    def _tables_of(self, entry: GivenGraphs, graphs: tuple[str, Batch] | None) -> list[Any]:
        """The tables of graphs, made once for each batch, or those that were given."""
        if not is_tables(entry.graphs):
            assert graphs is not None
            return self._made(entry.node.recipe, graphs[1])
        tables, number = [jnp.asarray(table) for table in jax.tree.leaves(entry.graphs)], entry.node.recipe
        compilation: Any = getattr(entry.graphs, "compilation", None)
        if (compilation is None) != (number is None) or (number is not None and not self.recipes[number].same(compilation)):
            expected = "`batch.arrays`" if number is None else "the scan on graphs that it was exported with"
            message = f"{entry.place} of artifact `{self.path}` is {expected}; given were the tables of something else"
            raise call_error("STM5312", message, help="give the batch itself, `loaded.batch(graphs)`, and all tables are made")
        if tuple(ArrayNode(tuple(table.shape), str(table.dtype)) for table in tables) != entry.node.tables:
            raise self._other_bucket()
        if graphs is not None and not any(isinstance(table, Tracer) for table in tables):
            place, graph_batch = graphs
            if not all(map(np.array_equal, tables, self._made(number, graph_batch))):
                raise self._two_batches(place, entry.place)
        return tables

    def _made(self, recipe: int | None, graphs: Batch) -> list[Any]:
        made = self._tables.setdefault(graphs, {})
        if recipe not in made:
            tables = graphs.arrays if recipe is None else self.recipes[recipe].tables(graphs)
            with jax.ensure_compile_time_eval():  # they outlive a trace
                made[recipe] = [jax.device_put(table) for table in tables]
        return made[recipe]

    def _other_bucket(self) -> Exception:
        message = f"artifact `{self.path}` is for batches of another bucket than this one"
        return call_error("STM5312", message, help="fill the batch up to it: `loaded.batch(graphs)`")

    def _two_batches(self, first: str, second: str) -> Exception:
        message = f"one call of artifact `{self.path}` is about one batch; {first} and {second} are of two different ones"
        return call_error("STM5312", message, help="make it once, `b = loaded.batch(graphs)`, and give it in all places")


def is_tables(value: Any) -> bool:
    """Whether something holds tables of graphs that are made already: `batch.arrays`, or a scan on a batch, `op.at(batch)`."""
    return isinstance(value, Arrays) or hasattr(value, "compilation")


def model_from(path: str, manifest: dict[str, Any], members: Mapping[str, bytes]) -> LoadedModel:
    """The model in the members of an artifact. What reading them raises is of any kind."""
    exported = jax.export.deserialize(bytearray(members["program.bin"]))
    stored: Sequence[Any] = manifest["weights"]
    arrays = arrays_of(members[WEIGHTS])
    weights = [_typed(array, dtype) for array, (_, dtype) in zip(arrays, stored, strict=True)]
    signature = manifest["signature"]
    arguments = tuple(node_from(value) for value in signature["arguments"])
    keywords = {str(name): node_from(value) for name, value in sorted(signature["keywords"].items())}
    result = node_from(signature["result"])
    graphs = json.loads(members["graphs.json"])
    recipes = tuple(recipe_from(recipe) for recipe in graphs["recipes"])
    nodes = (*arguments, *keywords.values())
    _compare(exported, manifest, weights, nodes, result)
    _compare_recipes(path, recipes, graphs["recipes"], nodes)
    sizes = {name: int(graphs["sizes"][name]) for name in ("nodes", "edges", "graphs") if name in graphs["sizes"]}
    text = members["program.mlir"].decode()
    placed = [jnp.asarray(array) for array in weights]
    rest = {name: content for name, content in members.items() if name != WEIGHTS}
    return LoadedModel(path, manifest, arguments, keywords, result, text, placed, exported, recipes, sizes, rest)


def _typed(array: np.ndarray, dtype: str) -> np.ndarray:
    """An array of the type that it had in the model."""
    if str(array.dtype) == dtype:
        return array
    kind = jnp.dtype(dtype)
    if array.dtype.kind != "u" or array.dtype.itemsize != kind.itemsize:
        raise ValueError("its weights are of other types than its manifest says")
    return array.view(kind)


def _compare(
    exported: jax.export.Exported,
    manifest: Mapping[str, Any],
    weights: Sequence[np.ndarray],
    nodes: Sequence[Node],
    result: Node,
) -> None:
    batch = manifest["batch"]
    lead: tuple[Any, ...] = ()
    if batch is not None:
        lead = tuple(jax.export.symbolic_shape("batch")) if batch == "symbolic" else (batch,)

    def struct(leaf: ArrayNode) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((*lead, *leaf.shape), jnp.dtype(leaf.dtype))

    fixed = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in weights]
    structs = [struct(leaf) for node in nodes for leaf in leaves_of(node)]
    results = [(tuple(map(str, (*lead, *leaf.shape))), leaf.dtype) for leaf in leaves_of(result)]
    if len(results) != len(exported.out_avals):
        raise ValueError("its program returns something else than its manifest says")
    compare_program(exported, manifest, (fixed, structs), results)


def _compare_recipes(path: str, recipes: Sequence[Recipe], stored: Sequence[Mapping[str, Any]], nodes: Sequence[Node]) -> None:
    """Raises SpecError (STM5305) where tables would not be those that the program was made for."""
    known = {leaf for node in nodes for leaf in _graph_nodes(node)}
    for number, (recipe, told) in enumerate(zip(recipes, stored, strict=True)):
        tables = tuple(ArrayNode(table.shape, str(table.dtype)) for table in recipe.tables(recipe.probe))
        expected = {leaf.tables for leaf in known if leaf.recipe == number}
        if recipe.digest() != told["digest"] or expected != {tables}:
            message = f"artifact `{path}` was written by another version of stmlang, whose tables of graphs are others"
            raise call_error("STM5305", message, help="export the model again")


def _graph_nodes(node: Node) -> list[GraphNode]:
    match node:
        case GraphNode():
            return [node]
        case None | ArrayNode():
            return []
        case _:
            return [leaf for child in node.parts for leaf in _graph_nodes(child)]
