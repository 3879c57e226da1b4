"""An artifact of a scan whose graphs come at run time: programs for buckets, and tables that are made of graphs here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.export
import numpy as np
from jaxtyping import Array

from stmlang.graph.batch import SIZES, Batch, Bucket, batch
from stmlang.graph.batchable import batchable, sizes_of
from stmlang.graph.convert.finish import Converted
from stmlang.graph.dag import DAG
from stmlang.runtime.arguments import arrays_for
from stmlang.runtime.artifact import arguments_of
from stmlang.runtime.calling import program_call
from stmlang.runtime.loaded import signature_from
from stmlang.runtime.loaded_scans import parts_of
from stmlang.runtime.primitives import Program
from stmlang.runtime.reading import check_platform, compare_program, running_platform
from stmlang.runtime.recipes import Recipe, recipe_from
from stmlang.runtime.signature import Signature, call_error
from stmlang.source import short
from stmlang.source.diagnostic import SpecError
from stmlang.source.wording import listing

Graph = DAG | Converted


@dataclass(frozen=True, eq=False)
class GraphPart:
    """A program of such an artifact: for batches of `bucket`, whose tables `recipe` makes."""

    manifest: Mapping[str, Any]
    bucket: Bucket
    signature: Signature
    recipe: Recipe
    plan: str
    stablehlo: str
    exported: jax.export.Exported
    path: str
    made: WeakKeyDictionary[Batch, tuple[Array, ...]] = field(default_factory=WeakKeyDictionary[Batch, tuple[Array, ...]])

    @cached_property
    def call(self) -> Program:
        """The program as a function of tables and arrays."""
        source = 'compile it for training: `stmlang.compile(spec, mode="training")`'
        return program_call(self.exported, (), symbolic=False, path=self.path, source=source)

    def takes(self, graphs: Batch) -> bool:
        """Whether a batch has this bucket, and a room that programs for this one have."""
        same = all(getattr(graphs.bucket, name) == getattr(self.bucket, name) for name in SIZES)
        return same and graphs.room == self.bucket.room

    def tables(self, graphs: Batch) -> tuple[Array, ...]:
        """The tables of a batch, made once."""
        if graphs not in self.made:
            made = self.recipe.tables(graphs)
            with jax.ensure_compile_time_eval():  # they outlive a trace
                self.made[graphs] = tuple(jax.device_put(table) for table in made)
        return self.made[graphs]


@dataclass(frozen=True, eq=False, repr=False)
class LoadedGraphScan:
    """An artifact of a scan whose graphs come at run time, ready to be given some:

        loaded = stmlang.load("op.stmx")
        b = loaded.batch(graphs)                    # in the smallest bucket that has room for them
        h = loaded.at(b)(q, k, v, gates)            # arrays as `b.nodes` and `b.edges` lay them out

    `parts` are its programs, `manifest` what the file says, `members` what it is made of.
    """

    path: str
    manifest: dict[str, Any]
    parts: tuple[GraphPart, ...]
    source: str
    members: Mapping[str, bytes]

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<LoadedGraphScan {self.path}: {self.dtype} on {', '.join(self.manifest['platforms'])}, {_buckets(self.parts)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoadedGraphScan) and self.manifest == other.manifest

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.manifest["sha256"].items())))

    def __deepcopy__(self, memo: dict[int, Any]) -> LoadedGraphScan:
        del memo
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return graphs_from, (self.path, self.manifest, dict(self.members))

    @property
    def dtype(self) -> str:
        """The data type of arguments and results."""
        return self.parts[0].signature.dtype

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """Those that the artifact has a program for on the platform that JAX runs on, the smallest first."""
        return tuple(part.bucket for part in self._here)

    def batch(self, graphs: Graph | Sequence[Graph]) -> Batch:
        """Graphs in the smallest bucket that has room for them. Raises SpecError: STM5310 for another platform, STM5312 where
        no bucket has room, naming both, and what `stmlang.graph.batch` raises."""
        check_platform(self.path, self.manifest)
        listed = batchable([graphs] if isinstance(graphs, Graph) else graphs)
        lacking = ""
        for bucket in self.buckets:
            try:
                return batch(listed, bucket=bucket)
            except SpecError as error:
                (diagnostic,) = error.diagnostics
                if diagnostic.code != "STM3508":
                    raise
                lacking = diagnostic.message
        nodes, edges = (int(counts.sum()) for counts in sizes_of(listed))
        given = f"{len(listed):,} graphs of {nodes:,} nodes and {edges:,} edges"
        message = f"artifact `{self.path}` is for {_buckets(self._here)}; given were {given}: {lacking}"
        raise call_error(
            "STM5312", message, help="give fewer at once, or compile it for a larger bucket too: `--bucket`, `GraphScan.export`"
        )

    def at(self, graphs: Batch | Graph | Sequence[Graph]) -> LoadedOnGraphs:
        """The scan on a batch, or on what makes one. What it returns is a pytree of tables: given to a compiled function as an
        argument, that is compiled once for each bucket.

        Raises SpecError: STM5312 for a batch of a bucket that the artifact has no program for, STM3407 and STM3507 for graphs
        that the scan is not for, and what `batch` raises.
        """
        check_platform(self.path, self.manifest)
        made = graphs if isinstance(graphs, Batch) else self.batch(graphs)
        for part in self._here:
            if part.takes(made):
                return LoadedOnGraphs(part.tables(made), self, self.parts.index(part))
        message = f"artifact `{self.path}` is for {_buckets(self._here)}; given was a batch of another one, {made.bucket!r}"
        raise call_error("STM5312", message, help="fill the graphs up to one of these: `loaded.batch(graphs)`")

    @cached_property
    def _here(self) -> tuple[GraphPart, ...]:
        """The programs for the platform that JAX runs on, the smallest first."""
        here = [part for part in self.parts if running_platform() in part.manifest["platforms"]]
        return tuple(sorted(here, key=lambda part: (part.bucket.nodes, part.bucket.edges, part.bucket.graphs)))


@partial(jax.tree_util.register_dataclass, data_fields=["tables"], meta_fields=["scan", "number"])
@dataclass(frozen=True, eq=False, repr=False)
class LoadedOnGraphs:
    """A loaded scan on graphs, whose `tables` it holds: called like any other scan, with arrays that its batch lays out."""

    tables: tuple[Array, ...]
    scan: LoadedGraphScan
    number: int

    def __repr__(self) -> str:
        return f"<LoadedOnGraphs {self.scan.path}: {_buckets([self.scan.parts[self.number]])}>"

    @property
    def signature(self) -> Signature:
        """What a call takes."""
        return self.scan.parts[self.number].signature

    def __call__(self, q: Any, k: Any, v: Any, gates: Mapping[str, Any]) -> Array:
        """The result, where there is padding anything finite. `jax.vmap` maps it over arrays, and `jax.grad` differentiates it
        once if it was compiled for training. Raises SpecError (STM5311, STM5312) for another data type, shape or name than the
        artifact was made for, naming both; STM5314 for a derivative that it does not hold."""
        part, path, signature = self.scan.parts[self.number], self.scan.path, self.signature
        help = "a batch lays arrays out, padding included: `b.nodes([...])`, `b.edges([...])`"
        inputs = {"q": q, "k": k, "v": v}
        arrays_for(path, inputs, signature.inputs, "arguments", signature.dtype, batched=False, help=help)
        arrays_for(path, gates, signature.gates, "gate leaves", signature.dtype, batched=False, help=help)
        (result,) = part.call([*self.tables, *jax.tree.leaves((inputs, dict(gates)))])
        return result


def graphs_from(path: str, manifest: dict[str, Any], members: Mapping[str, bytes]) -> LoadedGraphScan:
    """The programs in the members of an artifact. What reading them raises is of any kind."""
    parts = tuple(_part(path, *part) for part in parts_of(manifest, members))
    first = next(iter(manifest["parts"]))["members"]["source.stm"]
    if any(part["members"]["source.stm"] != first for part in manifest["parts"]):
        raise ValueError("its parts are programs of different scans")
    return LoadedGraphScan(path, manifest, parts, members[first].decode(), members)


def _part(path: str, manifest: dict[str, Any], members: Mapping[str, bytes]) -> GraphPart:
    """One program, compared with its bucket and its recipe. Raises SpecError (STM5305) where this version makes other tables
    than it was made for."""
    exported = jax.export.deserialize(bytearray(members["program.bin"]))
    signature, stored = signature_from(manifest["signature"]), json.loads(members["recipe.json"])
    recipe, sizes = recipe_from(stored), manifest["bucket"]
    nodes, edges = recipe.room.nodes, recipe.room.edges
    if set(sizes) != set(SIZES) or not all(isinstance(size, int) and size >= 0 for size in sizes.values()):
        raise ValueError("its bucket has no sizes")
    if (sizes["nodes"], sizes["edges"]) != (nodes, edges) or signature.inputs["q"][:1] != (nodes,):
        raise ValueError("its bucket is not what its program takes")
    bucket = Bucket(**sizes, room=recipe.room)
    structs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in exported.in_avals]
    count = len(structs) - len(signature.inputs) - len(signature.gates)
    expected = arguments_of(signature, structs[:count], (), False)
    compare_program(exported, manifest, expected, [(tuple(map(str, signature.result)), signature.dtype)])
    tables = [(table.shape, np.dtype(table.dtype)) for table in recipe.tables(recipe.probe)]
    if recipe.digest() != stored["digest"] or tables != [(struct.shape, np.dtype(struct.dtype)) for struct in structs[:count]]:
        message = f"artifact `{path}` was written by another version of stmlang, whose tables of graphs are others"
        raise call_error("STM5305", message, help="compile the spec again: its source is in the artifact, as `source.stm`")
    plan, text = (members[name].decode() for name in ("plan.json", "program.mlir"))
    return GraphPart(manifest, bucket, signature, recipe, plan, text, exported, path)


def _buckets(parts: Sequence[GraphPart]) -> str:
    shown = [f"{part.bucket.graphs:,} graphs of {part.bucket.nodes:,} nodes and {part.bucket.edges:,} edges" for part in parts]
    return "buckets of " + listing(list(dict.fromkeys(shown)), "and")
