"""Nothing answers a word with its opposite: what it suggests, if anything, is what the word may be a misspelling of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stmlang
from stmlang.graph import as_dag, convert, from_edge_index
from stmlang.graph.readers import read_graph
from stmlang.source.diagnostic import SpecError

PAIRS = [(0, 1), (1, 2)]


def spec(line: str, on: str = "grid(rows, cols)") -> Callable[[], object]:
    """Compiles a scan with a line that is wrong."""
    body = "source = 0.5\n" if not line.startswith("source") else ""
    body += "transition = 0.5\n" if not line.startswith("transition") else ""
    return lambda: stmlang.compile(f"scan s on {on} {{\n{body}{line}\n}}\n")


def call(**gates: object) -> Callable[[], object]:
    """Calls a scan with a gate leaf that it does not have."""

    def action() -> object:
        op = stmlang.compile("scan s on chain(time) { source = given(0, 1); transition = given(0, 1) }", time=3)
        q, k, v, own = op.example()
        return op(q, k, v, {**own, **gates})

    return action


HARMFUL: dict[str, tuple[Callable[[], object], str]] = {
    "listing": (lambda: convert(PAIRS, listing="undirected"), "directed"),  # type: ignore[arg-type]
    "listing, misspelt": (lambda: convert(PAIRS, listing="undirectd"), "directed"),  # type: ignore[arg-type]
    "format": (lambda: read_graph("graph.dat", "xml"), "gml"),
    "format in a spec": (spec("", 'dag from "g.dat" as xml'), "gml"),
    "strategy": (lambda: stmlang.compile("std:plstm/image_p", rows=2, cols=2, strategy="nonlinear"), "linear"),
    "strategy, negated": (lambda: stmlang.compile("std:plstm/graph_p", strategy="unpacked"), "packed"),
    "library": (lambda: stmlang.compile("std:plstm/chain_p"), "chain_d"),
    "function": (spec("source = tan(given())"), "tanh"),
    "another function": (spec("source = log2(given())"), "log"),
    "normalizing function": (spec("transition[out] = softmin(given(), over = out)"), "softmax"),
    "port": (spec("transition[out = col] = 0.5\ntransition = 0.5", "grid(row, time)"), "row"),
    "gate": (spec("source = min_rate\nmax_rate = 0.5"), "max_rate"),
    "direction": (spec("directions unboth"), "both"),
    "clamp": (spec("stabilize d"), "P"),
    "leaf": (call(unsource=np.zeros(3)), "source"),
    "size": (lambda: stmlang.compile("std:plstm/image_p", row=2, cols=2, min_key=3), "max_key"),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_no_opposite_is_suggested(name: str) -> None:
    action, opposite = HARMFUL[name]
    with pytest.raises(SpecError) as caught:
        action()
    helps = " ".join(found.help or "" for found in caught.value.diagnostics)
    assert f"did you mean `{opposite}`" not in helps
    assert f'="{opposite}"`?' not in helps


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ("undirected", "once"),
        ("symmetric", "twice"),
        ("bidirectional", "twice"),
        ("both", "twice"),
        ("single", "once"),
        ("Twice", "twice"),
        ("onec", "once"),
    ],
)
def test_what_is_advised_of_listings_works(given: str, advice: str) -> None:
    """Followed, on edges that are listed like that."""
    with pytest.raises(SpecError) as caught:
        as_dag(PAIRS, listing=given)  # type: ignore[arg-type]
    assert f'`listing="{advice}"`' in str(caught.value)
    index = np.asarray(PAIRS).T
    both = np.concatenate([index, index[::-1]], axis=1)
    followed = from_edge_index(index if advice == "once" else both, nodes=3, listing=advice)  # type: ignore[arg-type]
    assert followed.dag.edge_count == 2


def test_a_file_of_the_other_mode_is_not_suggested(tmp_path: Path) -> None:
    (tmp_path / "reader_p.stm").write_text("")
    for name, near in (("reader_d.stm", False), ("reader_p.st", True)):
        with pytest.raises(SpecError) as caught:
            stmlang.compile(tmp_path / name)
        assert ("reader_p.stm`?" in str(caught.value)) == near
