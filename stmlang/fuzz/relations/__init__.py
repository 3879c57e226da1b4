"""Relations that hold between one compiled scan and another, or between two calls of one: checks that need no oracle.

Each rewrites the typed scan, its graph or its arguments, evaluates both in float64 by the same strategy, and compares. See
`stmlang.fuzz.trial.Check`.
"""

from __future__ import annotations

from collections.abc import Mapping

from stmlang.fuzz.relations.batch_relations import each_graph_by_itself
from stmlang.fuzz.relations.graph_relations import disjoint_union, permuted_edges, relabelled_nodes, reversed_twice
from stmlang.fuzz.relations.grid_relations import embedded_grid, transposed_grid
from stmlang.fuzz.relations.scan_relations import (
    batch_order,
    causality,
    cut_and_resumed,
    linearity,
    other_settings,
    padding,
    prefix_property,
    same_bits,
    sum_of_directions,
)
from stmlang.fuzz.trial import Check

RELATIONS: Mapping[str, Check] = {
    "relabel nodes": relabelled_nodes,
    "permute edge order": permuted_edges,
    "reverse twice": reversed_twice,
    "transpose": transposed_grid,
    "embed in a larger grid": embedded_grid,
    "cut and carry the state over": cut_and_resumed,
    "disjoint union": disjoint_union,
    "each graph by itself": each_graph_by_itself,
    "chunk size and depth": other_settings,
    "linearity in v": linearity,
    "sum of directions": sum_of_directions,
    "prefix": prefix_property,
    "causality": causality,
    "padding of NaN": padding,
    "batch order": batch_order,
    "same bits": same_bits,
}
"""By name, as findings name them."""
