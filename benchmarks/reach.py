"""How many ordered pairs of nodes stay connected when line graphs are cut to multitrees, as D-mode does.

    python -m benchmarks.reach --sets FOLDER --circuits FOLDER

For grids given as plain edge lists, for the graphs of TUDataset folders, and for BENCH circuits: the pairs that are connected
before, and the parts of them that are after, by the reduction that the compiler uses and by the numbers of line edges
(greedy). Written to build/bench/reach.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from stmlang.ending import start
from stmlang.graph import DAG, from_edges
from stmlang.graph.build import ragged_dag
from stmlang.graph.multitree import greedy_multitree, reach
from stmlang.graph.readers.read import read_graph
from stmlang.graph.readers.tudataset import read_tudataset
from stmlang.graph.reduction import multitree
from stmlang.source.writing import written_whole

SETS = ("MUTAG", "PTC_FM", "PROTEINS", "NCI1")
CIRCUITS = ("c17", "c432", "c499", "c880", "c1355", "c1908", "c2670", "c3540")
GRIDS = ((8, 8), (16, 16), (7, 23), (30, 30))


def grid(rows: int, cols: int, seed: int | None) -> DAG:
    """A grid as any other graph: edges in any order, nodes numbered row by row, or at random."""
    number = np.arange(rows * cols).reshape(rows, cols)
    pairs = [np.stack([a.ravel(), b.ravel()], 1) for a, b in ((number[:-1], number[1:]), (number[:, :-1], number[:, 1:]))]
    edges = np.concatenate(pairs)
    if seed is not None:
        random = np.random.default_rng(seed)
        edges = random.permutation(rows * cols)[random.permutation(edges)]
    return ragged_dag(rows * cols, edges[:, 0], edges[:, 1])


def graphs(sets: Path | None, circuits: Path | None) -> Iterator[tuple[str, Iterable[DAG]]]:
    """Everything measured, by name."""
    for rows, cols in GRIDS:
        yield f"grid {rows}x{cols}", [grid(rows, cols, None)]
        yield f"grid {rows}x{cols}, shuffled", [grid(rows, cols, 0)]
    for name in SETS if sets is not None else ():
        graph_set = read_tudataset(str((sets or Path()) / name))
        yield name, [from_edges(graph.edges, nodes=graph.node_count, listing="once").dag for graph in graph_set]
    for name in CIRCUITS if circuits is not None else ():
        yield name, [read_graph(str((circuits or Path()) / f"{name}.bench"))]


def measured(name: str, dags: Iterable[DAG]) -> dict[str, Any]:
    """Pairs before, and after both reductions, of all graphs together."""
    before = kept = greedy = edges = 0
    start = time.perf_counter()
    for dag in dags:
        line = dag.line_edges
        edges += dag.edge_count
        before += reach(dag, line)
        kept += reach(dag, line[multitree(dag)])
        greedy += reach(dag, line[greedy_multitree(dag, np.arange(len(line)))])
    seconds = time.perf_counter() - start
    return {"name": name, "edges": edges, "before": before, "kept": kept, "greedy": greedy, "seconds": seconds}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="The reach that cutting line graphs to multitrees leaves.")
    parser.add_argument("--sets", type=Path, help="a folder of TUDataset folders")
    parser.add_argument("--circuits", type=Path, help="a folder of BENCH circuits")
    options = parser.parse_args()
    print(f"{'':24}{'edges':>9}{'pairs':>12}{'kept':>8}{'greedy':>8}{'seconds':>9}")
    rows: list[dict[str, Any]] = []
    for name, dags in graphs(options.sets, options.circuits):
        row = measured(name, dags)
        rows.append(row)
        shares = "".join(f"{row[kind] / max(row['before'], 1):8.1%}" for kind in ("kept", "greedy"))
        print(f"{name:24}{row['edges']:9,}{row['before']:12,}{shares}{row['seconds']:9.1f}", flush=True)
    path = Path("build/bench/reach.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(json.dumps(rows, indent=2).encode())
    print(f"wrote {path}")


if __name__ == "__main__":
    start(main, "benchmarks.reach")
