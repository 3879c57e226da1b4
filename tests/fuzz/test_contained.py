"""A user's spec as a text that needs no other file."""

from __future__ import annotations

from pathlib import Path

import pytest

from stmlang.check import examine, open_spec
from stmlang.check.search_path import library_specs
from stmlang.fuzz.contained import contained, trials_of
from stmlang.fuzz.examples import example
from stmlang.graph.topology import dag_of
from stmlang.scan.scan import Scan
from stmlang.scan.show import show_scan
from stmlang.source.diagnostic import SpecError

SIZES = {"heads": 2, "key": 3, "value": 2}


def scan_of(text: str, settings: dict[str, int] | None = None) -> Scan:
    found = examine(open_spec(text + "\n"), settings)
    assert found.scan is not None, found.diagnostics
    return found.scan


@pytest.mark.parametrize("name", library_specs())
def test_the_library_keeps_its_scans(name):
    spec = open_spec(f"std:{name}")
    found = examine(spec, SIZES)
    if examine(spec).scan is None:
        assert name == "gates"  # definitions alone
        return
    text = contained(spec, SIZES)
    assert "use " not in text
    assert show_scan(scan_of(text)) == show_scan(found.scan)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "far.stm").write_text("def helper(a) = 2 * a\n")
    (tmp_path / "lib.stm").write_text("use far (helper)\ndef gate(a) = sigmoid(helper(a)) * helper(0.5)\n")
    (tmp_path / "g.edgelist").write_text("a b\nb c\na c\n")
    (tmp_path / "s.stm").write_text(
        """
        use lib (gate)
        def helper(a) = tanh(a)
        scan other on chain(t) { source = 1; transition = 1 }
        scan s(gamma = 0.5, n = 2, size = n) on dag from "g.edgelist" * chain(t = size) {
            source[out] = gate(linear(x)) + helper(gamma)
            transition[out, in] = helper(param(0)) / (2 * t)
        }
        """
    )
    return tmp_path


def test_names_that_clash_and_graph_files(folder):
    text = contained(open_spec(folder / "s.stm"), {"gamma": -0.25, "n": 3, **SIZES})
    assert text.count("def helper") == 2
    assert '"' not in text
    whole = examine(open_spec(folder / "s.stm"), {"gamma": -0.25, "n": 3, **SIZES}).scan
    own = scan_of(text)
    assert whole is not None
    shown = [show_scan(scan).partition("directions")[2] for scan in (own, whole)]
    assert shown[0] == shown[1]
    assert (dag_of(own.topology).tail == dag_of(whole.topology).tail).all()
    assert own.topology != whole.topology


def test_a_scan_among_several(folder):
    assert "scan other" in contained(open_spec(f"{folder / 's.stm'}:other"), {"t": 2})


def test_sizes_are_drawn_small_unless_they_are_set(folder):
    strategy = trials_of(open_spec(folder / "s.stm"), {"heads": 3})
    scans = [scan_of(trial.text) for number in range(40) if (trial := example(strategy, 0, number)) is not None]
    assert len(scans) > 30
    assert {scan.heads for scan in scans} == {3}
    assert {scan.key for scan in scans} == {1, 2, 3}
    assert {dag_of(scan.topology).node_count for scan in scans} >= {3, 6, 9, 12}


@pytest.mark.parametrize("topology", ["dag(nodes <= 3, edges <= 2)", "tree(nodes <= 100)"])
def test_graphs_that_come_at_run_time_are_drawn(topology):
    strategy = trials_of(open_spec(f"scan s on {topology} {{ source = 1; transition = 0.5 }}\n"), {})
    trials = [trial for number in range(40) if (trial := example(strategy, 0, number)) is not None]
    sizes = [nodes for trial in trials for nodes, _ in trial.graphs or ()]
    assert max(sizes) == (3 if "dag" in topology else 8)
    assert len(trials[0].compiled(None, "float32").node_shape) == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("scan s on chain(t) { source = nothing }\n", "STM1001"),
        ("scan s on dag(nodes <= 3, edges <= 4) * chain(t = 2) { source = 1; transition = 1 }\n", "STM3301"),
        ('scan s on dag from "missing.gml" { source = 1; transition = 1 }\n', "STM3010"),
    ],
)
def test_what_cannot_be_fuzzed(text, code):
    with pytest.raises(SpecError) as caught:
        trials_of(open_spec(text), {})
    assert code in {one.code for one in caught.value.diagnostics}
