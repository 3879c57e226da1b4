"""The library's specs: the fact that each is written for, and the path that it is meant to take."""

from __future__ import annotations

from typing import Any

import pytest

from stmlang.check import library_specs, load
from stmlang.cost.problem import Problem
from stmlang.cost.target import CPU
from stmlang.facts import Facts, analyse, show_facts
from stmlang.graph import batch
from stmlang.graph.topology import dag_of
from stmlang.plan import make_plan
from stmlang.scan.sizes import unbound
from stmlang.scan.topology import Runtime
from stmlang.strategies.registry import strategies
from tests.graph.graphs import banded

RANK_ONE = "rank one"
CLOSED = "zero at [out = cols, in = rows]"
TRACKING = "on the axis track, with u = normal[track], strength = bend"
CONSTANT = "one impulse response tells everything"
SIZES = {"rows": 14, "cols": 14, "planes": 6, "depth": 6, "time": 1024, "patches": 196}

PATHS: dict[str, tuple[str, str]] = {
    "plstm/chain": ("proved P", "linear"),
    "plstm/chain_tracking": (TRACKING, "tracks"),
    "plstm/image_p": (RANK_ONE, "rows"),
    "plstm/image_tracking": (TRACKING, "rows"),
    "plstm/volume_tracking": (TRACKING, "rows"),
    "plstm/dag_tracking": (TRACKING, "dense"),
    "plstm/tree_tracking": (TRACKING, "parallel"),
    "plstm/image_p_reference": (RANK_ONE, "rows"),
    "plstm/image_d": (CLOSED, "separable"),
    "plstm/image_delta": (CLOSED, "delta_separable"),
    "plstm/image_constant": (CONSTANT, "impulse"),
    "plstm/volume_p": (RANK_ONE, "rows"),
    "plstm/volume_d": (CLOSED, "rows"),
    "plstm/dag_p": (RANK_ONE, "dense"),
    "plstm/dag_d": ("proved D", "dense"),
    "plstm/graph_p": (RANK_ONE, "nodes"),
    "plstm/graph_d": ("inserted D", "recurrent"),
    "chain/mlstm": ("|transition| <= 1 because sigmoid lies in [0, 1]", "linear"),
    "chain/gla": ("transition  [0, 1]  varies along key", "linear"),
    "chain/deltanet": ("identity - u u^T * strength", "delta"),
    "chain/gated_deltanet": ("identity - u u^T * strength", "delta"),
    "chain/deltaproduct": ("identity - u u^T * strength", "delta"),
    "chain/hgrn": ("varies along value", "walk"),
    "chain/rwkv6": ("varies along key", "linear"),
    "chain/vim": ("transition  [0, 1] or undefined  varies along key, value", "walk"),
}
"""The fact, as `explain` words it, and the strategy, with gradients and mostly forward."""
FORWARD = {
    "plstm/chain": "chunkwise",
    "plstm/volume_p": "raster",
    "chain/mlstm": "chunkwise",
    "chain/gla": "walk",
    "chain/rwkv6": "walk",
    "chain/deltanet": "walk",
    "chain/gated_deltanet": "walk",
    "chain/deltaproduct": "walk",
    "plstm/volume_tracking": "recurrent",
    "plstm/dag_tracking": "parallel",
    "plstm/dag_p": "parallel",
    "plstm/dag_d": "parallel",
}
"""What may be chosen instead where only the result is asked for: the two take about as long, or the loop over nodes takes less
where there are few heads (GLA of 1,024 nodes, 3 heads of 64: 3.1 ms, in chunks 6.8; DeltaNet: 3.4 and 5.4)."""


def prepared(name: str, **more: int) -> tuple[Facts, Any]:
    sizes = {axis: SIZES.get(axis, 6) for axis in unbound(load(f"std:{name}"))}
    scan = load(f"std:{name}", {**sizes, **more})
    several = batch([banded(20, 60, 4, seed) for seed in range(32)])
    dag = several.dag if isinstance(scan.topology, Runtime) else dag_of(scan.topology)
    return analyse(scan, dag), dag


def strategy_of(name: str, mode: Any, **more: int) -> str:
    facts, dag = prepared(name, **more)
    return make_plan(Problem.of(facts.scan, dag, "float32", facts=facts, mode=mode), CPU).strategy


@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize("name", PATHS)
def test_library(name: str, mode: str) -> None:
    fact, strategy = PATHS[name]
    facts, _ = prepared(name)
    assert fact in show_facts(facts)
    assert strategy_of(name, mode) in ({strategy} if mode == "training" else {strategy, FORWARD.get(name, strategy)})


def test_large_grids_are_swept() -> None:
    """Where the square of the number of nodes is too much, states go from tile to tile."""
    for name in ("plstm/image_p", "plstm/image_d"):
        assert strategy_of(name, "inference", rows=256, cols=256, heads=1) == "raster"
        assert strategy_of(name, "training", rows=256, cols=256, heads=1) == "raster"


def test_trees_and_large_graphs_are_swept_by_levels() -> None:
    assert strategy_of("plstm/tree", "training", depth=12) in ("nodes", "recurrent")


def test_every_strategy_is_explained() -> None:
    """docs/strategies.md has a row for each."""
    from tests.test_documents import ROOT

    text = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    assert [strategy.name for strategy in strategies() if f"| `{strategy.name}` |" not in text] == []


def test_every_scan_of_the_library_is_listed() -> None:
    """Here, or in the table of SPEC.md alone: specs that several ways are as good for, or that take the general one."""
    alike = {"plstm/tree", *(f"chain/{name}" for name in ("linear_attention", "retnet", "mamba2", "vil"))}
    general = {f"chain/{name}" for name in ("lru", "mamba", "mamba_complex", "mamba_nd", "s4d", "v2m")}
    general |= {f"grid/{name}" for name in ("2dmamba", "gridlstm", "mamba2d", "mdlstm", "ssm2d", "ssm2d_complex")}
    general |= {"graph/daglstm", "graph/treelstm"}
    scans = {name for name in library_specs() if name != "gates"}
    assert scans - set(PATHS) == alike | general
