"""Chains whose nodes take several steps, written out: a node for each step, in the order in which the scan takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stmlang.graph.build import regular_dag
from stmlang.graph.dag import DAG
from stmlang.oracle.functions import Floats, floats
from stmlang.scan.scan import Scan
from stmlang.scan.steps import unrolled


class WrittenOut(NamedTuple):
    """A scan on the chain of all steps with its arguments."""

    scan: Scan
    dag: DAG
    q: Floats
    k: Floats
    v: Floats
    gates: dict[str, Floats]


def written_out(
    scan: Scan, dag: DAG, q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike, gates: Mapping[str, npt.ArrayLike]
) -> WrittenOut:
    """Row `r` is a step of node `r // steps`: the steps in order, or the other way around where the scan runs against the
    edges. Raises ValueError for a leaf that the scan does not have."""
    count, forward = scan.steps, scan.directions[0].senses[0] > 0
    node = np.asarray([row // count for row in range(dag.node_count * count)], np.int64)
    step = np.asarray([row % count if forward else count - 1 - row % count for row in range(len(node))], np.int64)
    leaves = {leaf.name: leaf for leaf in scan.leaves}
    rows: dict[str, Floats] = {}
    for name, declared in gates.items():
        array, leaf = floats(declared), leaves.get(name)
        if leaf is None:
            raise ValueError(f"scan '{scan.name}' has no leaf {name}")
        if leaf.kind == "param":
            rows[name] = np.moveaxis(array[:, step], 1, 0) if leaf.stepped else array
        else:
            rows[name] = array[node, :, step] if leaf.stepped else array[node]
    chain = regular_dag((len(node),), list(dag.ports))
    return WrittenOut(unrolled(scan), chain, floats(q)[node], floats(k)[node, :, step], floats(v)[node, :, step], rows)


def last_of(scan: Scan, rows: Floats) -> Floats:
    """Of all rows those of the steps that are taken last."""
    forward = scan.directions[0].senses[0] > 0
    return rows[scan.steps - 1 :: scan.steps] if forward else rows[:: scan.steps]
