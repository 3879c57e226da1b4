"""The relation about graphs that come at run time: none knows of those beside it."""

from __future__ import annotations

import numpy as np

from stmlang.fuzz.checks.evaluation import evaluated
from stmlang.fuzz.checks.judgement import Comparison, judge
from stmlang.fuzz.checks.point import point
from stmlang.fuzz.checks.programs import as_dtype, execute
from stmlang.fuzz.relations.instance import Floats, Given, given, port_indices
from stmlang.fuzz.trial import Finding, NotApplicable, Trial, Way
from stmlang.graph.line import line_count
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.graphs import GraphScan

Counts = tuple[list[int], list[int], list[int]]
"""For each graph its nodes, edges and line edges."""


def each_graph_by_itself(trial: Trial, way: Way) -> Finding | None:
    """Each graph of a batch gives what it gives alone, by one scan that was compiled for all."""
    scan, dags = trial.scan(way, "float64"), trial.dags
    if not isinstance(scan, GraphScan) or len(dags) < 2:
        raise NotApplicable("there are no graphs beside each other")
    bound, together = point(trial, "float64", False).allowed.h, scan.at(dags)
    arguments = given(trial.arguments(together))
    whole = _result(together, arguments)
    counts = [dag.node_count for dag in dags], [dag.edge_count for dag in dags], [line_count(dag) for dag in dags]
    comparisons: list[Comparison] = []
    for number, dag in enumerate(dags):
        on, nodes = scan.at([dag]), _rows(counts[0], number)
        alone = _result(on, _alone(on, arguments, counts, number))[: dag.node_count]
        comparisons.append(Comparison(f"result of graph {number}", alone, whole[nodes], 2 * bound[nodes]))
    return judge("each graph by itself", way, comparisons)


def _rows(counts: list[int], number: int) -> slice:
    return slice(sum(counts[:number]), sum(counts[: number + 1]))


def _result(op: CompiledScan, arguments: Given) -> Floats:
    q, k, v, gates, _ = arguments.tree
    return np.asarray(execute(evaluated, op, as_dtype((q, k, v, gates, None), op))[0])


def _alone(on: CompiledScan, whole: Given, counts: Counts, number: int) -> Given:
    """The arguments of one graph, zero for what fills up its batch."""

    def cut(array: Floats, ports: int, rows: int) -> Floats:
        block = array[_rows(counts[ports], number)]
        return np.concatenate([block, np.zeros((rows - len(block), *array.shape[1:]))])

    inputs = {name: cut(array, 0, on.signature.inputs[name][0]) for name, array in whole.inputs.items()}
    leaves = {
        leaf.name: whole.leaves[leaf.name]
        if leaf.kind == "param"
        else cut(whole.leaves[leaf.name], len(port_indices(leaf)), on.signature.gates[leaf.name][0])
        for leaf in on.scan.leaves
    }
    return Given(inputs, leaves, ())
