"""What is looked at at a prompt fits a screen, as it is and inside of other modules."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import stmlang
from stmlang.graph import batch, from_edges
from stmlang.models.vision.plstm import plstm
from stmlang.nn import ScanLayer

LINES, COLUMNS = 24, 120
EDGES = [(k, k + 1) for k in range(3000)]
GRAPHS = """topology g = dag(nodes <= 10000, edges <= 10000)
scan s(heads = 1, key = 2, value = 2) on g { source = sigmoid(linear(x)); transition = 0.5; mark = 1; direct = 0 }"""


@cache
def values() -> dict[str, Any]:
    p, d = (stmlang.compile(f"std:plstm/image_{mode}", rows=14, cols=14) for mode in "pd")
    layer = ScanLayer(p, 32, key=jax.random.key(0))
    graphs, converted = stmlang.compile(GRAPHS), from_edges(EDGES, nodes=3001)
    together = batch([converted.dag] * 3)
    return {
        "compiled scan": p,
        "open scan": stmlang.compile("std:plstm/image_p"),
        "graph scan": graphs,
        "scan on graphs": graphs.at(together),
        "plan": p.plan,
        "estimate": p.plan.chosen,
        "candidate": p.plan.chosen.candidate,
        "circumstances": p.plan.circumstances,
        "target": p.plan.target,
        "facts": p.facts,
        "verdict": p.facts.verdict,
        "bounds": p.facts.bounds,
        "scan": p.scan,
        "leaf": p.scan.leaves[0],
        "signature": p.signature,
        "compilation": p.compilation,
        "program": p.compilation.program,
        "problem": p.compilation.program.problem,
        "grid": p.dag,
        "graph": converted.dag,
        "converted": converted,
        "batch": together,
        "bucket": together.bucket,
        "layer": layer,
        "leaves": layer.leaves,
        "projection": layer.query,
        "model": plstm(p, d, classes=10, dim=32, pairs=2, key=jax.random.key(0)),
        "layers": eqx.nn.Sequential([layer, layer]),
    }


def fits(text: str) -> bool:
    return sum(max(1, -(-len(line) // COLUMNS)) for line in text.splitlines()) <= LINES


@pytest.mark.parametrize("name", values())
def test_fits(name: str) -> None:
    """As `repr`, as `str`, and as Equinox prints it, alone and inside of a dictionary."""
    value = values()[name]
    for text in (repr(value), str(value), eqx.tree_pformat(value), eqx.tree_pformat({"inside": value})):
        assert fits(text), text


def test_artifacts_fit(tmp_path: Path) -> None:
    """And say which file they came from."""
    op = stmlang.compile("scan s(heads = 1, key = 2, value = 2) on chain(t = 5) { source = 1; transition = 0.5 }")
    op.export(tmp_path / "op.stmx", platforms=["cpu"], batch=None)
    loaded = stmlang.load(tmp_path / "op.stmx")
    assert all(fits(text) for text in (repr(loaded), str(loaded), eqx.tree_pformat(loaded)))
    assert "op.stmx" in repr(loaded)


def test_structures_of_trees_are_short() -> None:
    """They are what JAX prints where two trees differ."""
    assert len(str(jax.tree.structure(values()["layer"]))) < 3000


def test_arrays_are_shown_by_shape() -> None:
    """A graph's arrays are there, and are not printed."""
    assert f"i64[{len(EDGES)}]" in repr(values()["graph"])
    assert np.asarray(values()["graph"].tail).size == len(EDGES)
