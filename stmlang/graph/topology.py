"""Declared topologies as numbers."""

from __future__ import annotations

from math import prod
from typing import assert_never

import numpy as np

from stmlang.graph.build import complete_tree, product_dag, ragged_dag, refuse_large_product, regular_dag
from stmlang.graph.dag import DAG
from stmlang.scan.topology import CompleteTree, FromFile, Product, Regular, Runtime, Static, Topology, ports
from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.span import Span


def dag_of(topology: Topology) -> DAG:
    """The graph of a topology whose sizes are all bound.

    Raises SpecError: STM3301 for graphs given at run time, STM3302 for an axis without size, STM3303 beyond 2^31, and the
    readers' errors for graph files.
    """
    match topology:
        case Regular(axes=axes, span=span):
            sizes = [_bound(axis.name, axis.size, span) for axis in axes]
            return regular_dag(sizes, [axis.name for axis in axes], span)
        case Static(nodes=nodes, edges=edges):
            pairs = np.asarray(edges, np.int64).reshape(-1, 2)
            return ragged_dag(len(nodes), pairs[:, 0], pairs[:, 1], nodes)
        case CompleteTree(arity=arity, depth=depth, span=span):
            return complete_tree(_bound("arity", arity, span), _bound("depth", depth, span), span)
        case FromFile(path=path, format=format_name, tree=tree, span=span):
            from stmlang.graph.readers.read import read_graph  # a dozen files, of use to those who have such a file

            return read_graph(path, format_name, tree, span)
        case Runtime(span=span):
            raise SpecError([_given_at_run_time(span)])
        case Product(factors=factors, span=span):
            names = [port.name for port in ports(topology)]
            refuse_large_product([_known_counts(factor) for factor in factors], span)
            return product_dag([dag_of(factor) for factor in factors], names, span)
        case _:
            assert_never(topology)


def _known_counts(topology: Topology) -> tuple[int, int]:
    """Nodes and edges of a factor as far as they are known without building it: at least one node."""
    match topology:
        case Regular(axes=axes, span=span):
            sizes = [_bound(axis.name, axis.size, span) for axis in axes]
            edges = sum((size + 1) * prod(sizes[:at]) * prod(sizes[at + 1 :]) for at, size in enumerate(sizes))
            return prod(sizes), edges
        case Static(nodes=nodes, edges=edges):
            return len(nodes), len(edges)
        case CompleteTree() | FromFile() | Runtime() | Product():
            return 1, 0
        case _:
            assert_never(topology)


def _bound(name: str, size: int | None, span: Span) -> int:
    """A size that has to be known by now."""
    if size is None:
        raise SpecError(
            [
                Diagnostic(
                    "STM3302",
                    f"the size `{name}` of this topology is not known",
                    span,
                    help=f"give it a default, `{name} = 14`, or set it: `--set {name}=14`, `stmlang.compile(..., {name}=14)`",
                )
            ]
        )
    return size


def _given_at_run_time(span: Span) -> Diagnostic:
    return Diagnostic(
        "STM3301",
        "this topology is given at run time, so there is no graph to work on yet",
        span,
        notes=("`dag(nodes <= N, edges <= E)` only bounds the graphs that a call will bring",),
        help='for one graph that is known now, write it out, `dag { a -> b }`, or name its file, `dag from "graph.dot"`',
    )
