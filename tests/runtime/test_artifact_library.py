"""Every spec of the library in an artifact with two programs: one planned for a CPU and one for a GPU, made without that GPU.

Lowering takes most of the time, so what is always tried is the program of a forward pass; slow tests store its derivative too,
and run what is for this machine."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import stmlang
from stmlang.check import library_specs, load
from stmlang.runtime.artifact import write_scans
from stmlang.runtime.graphs import write_graphs
from stmlang.scan.sizes import unbound
from tests.graph.graphs import banded

NAMES = [name for name in library_specs() if name != "gates"]
SIZES = {"heads": 2, "key": 3, "value": 2}
AXES = {1: (4,), 2: (4, 5), 3: (2, 3, 2)}
BUCKET = {"graphs": 2, "nodes": 20, "edges": 40}
GRAPHS = [banded(6, 9, 3, 0), banded(9, 20, 4, 1)]
TARGETS = {"cpu": "cpu", "h200": "cuda"}


def compiled(name: str, target: str, mode: Any) -> Any:
    """A small scan of a spec of the library, or one whose graphs come at run time."""
    open_sizes = unbound(load(f"std:{name}"))
    sizes = SIZES | dict(zip(open_sizes, AXES.get(len(open_sizes), ()), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stmlang.StabilityWarning)
        return stmlang.compile(f"std:{name}", target=target, mode=mode, **sizes)


def written(name: str, mode: str, path: Path) -> Any:
    """What is read of the artifact of a spec for both platforms, and the scan for this one."""
    ops = {target: compiled(name, target, mode) for target in TARGETS}
    if isinstance(ops["cpu"], stmlang.GraphScan):
        write_graphs(path, [op.part(BUCKET, (TARGETS[target],)) for target, op in ops.items()])
    else:
        write_scans(path, [op.part((TARGETS[target],), "symbolic") for target, op in ops.items()])
    return stmlang.load(path), ops["cpu"]


@pytest.mark.parametrize("mode", ["inference", pytest.param("training", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_library(name: str, mode: str, tmp_path: Path) -> None:
    loaded, op = written(name, mode, tmp_path / "op.stmx")
    assert loaded.manifest["platforms"] == ["cpu", "cuda"]
    assert [part["platforms"] for part in loaded.manifest["parts"]] == [["cpu"], ["cuda"]]
    assert all(part["differentiable"] is (mode == "training") for part in loaded.manifest["parts"])
    if mode == "training":
        run(loaded, op)


def run(loaded: Any, op: Any) -> None:
    """The program for this machine gives what the scan gives."""
    if isinstance(op, stmlang.GraphScan):
        here = loaded.batch(GRAPHS)
        q, k, v, gates = op.at(here).example(0)
        actual, expected = (here.split_nodes(each.at(here)(q, k, v, gates)) for each in (loaded, op))
    else:
        one = op.example(0)
        expected = [op(*one)]
        actual = loaded(*jax.tree.map(lambda array: array[None], one))
    for part, wanted in zip(actual, expected, strict=True):
        np.testing.assert_allclose(part, wanted, rtol=1e-5, atol=1e-5)
