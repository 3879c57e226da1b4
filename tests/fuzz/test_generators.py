"""What the strategies draw is well typed and well conditioned, and nothing that a scan can be made of is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random
from typing import TypeVar, get_args

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, find, settings
from hypothesis.strategies import SearchStrategy

from stmlang.check import load
from stmlang.facts.stability import Kind
from stmlang.fuzz.examples import example
from stmlang.fuzz.generators import KINDS, PROFILES, graphs, random_arguments, specs, topologies, trials
from stmlang.fuzz.generators.topologies import GRAPHS
from stmlang.fuzz.trial import Listed, Trial, ways
from stmlang.graph.dag import DAG
from stmlang.graph.shapes import leaf_shape
from stmlang.graph.topology import dag_of
from stmlang.oracle.recurrence import reference
from stmlang.runtime.compiled import CompiledScan
from stmlang.scan.expression import (
    Apply,
    Degree,
    Expr,
    Eye,
    Finite,
    Function,
    GateRef,
    InputRef,
    LeafRef,
    Neighbour,
    Normalize,
    Number,
    Power,
    Product,
    Reduce,
    Split,
    Spread,
    Stack,
    Sum,
    inside,
)
from stmlang.scan.scan import Scan
from stmlang.scan.topology import ports
from stmlang.strategies.registry import without_kernels

COUNT = 18
"""Trials of each kind of topology, with scalar gates and with others; twice as many of chains and grids."""
T = TypeVar("T")


def several(strategy: SearchStrategy[T], count: int, start: int = 1) -> list[T]:
    """So many examples: that none is missing says that nothing which was drawn was thrown away."""
    found = [example(strategy, start, number) for number in range(count)]
    assert None not in found
    return [entry for entry in found if entry is not None]


@cache
def drawn() -> tuple[tuple[Trial, CompiledScan], ...]:
    """Trials of every kind, compiled as the planner likes: that none is refused is what their making promises."""
    kinds = (*KINDS, "chain", "grid")
    found = [
        trial
        for number, kind in enumerate(kinds)
        for scalar in (True, False)
        for trial in several(trials((kind,), scalar), COUNT, number)
    ]
    return tuple((trial, trial.compiled(None, "float64")) for trial in found)


def scans() -> list[Scan]:
    """What was written, before it was stabilized."""
    return [op.compilation.declared for _, op in drawn()]


def expressions() -> Iterator[Expr]:
    """Every expression in every gate."""
    return inside(*(clause.value for scan in scans() for gate in scan.gates for clause in gate.clauses))


def test_every_kind_of_topology_is_drawn() -> None:
    assert {trial.generator for trial, _ in drawn()} == set(KINDS)
    assert {len(op.dag.regular) for _, op in drawn() if op.dag.regular is not None} == {1, 2, 3, 4}


RARE = {"tracks"}
"""It needs a tracking axis on a chain, and no gate that acts on keys or values, which so few trials seldom have together."""


def test_every_strategy_can_evaluate_some_trial() -> None:
    strategies_drawn = {way.strategy for _, op in drawn() for way in ways(op)}
    assert strategies_drawn | RARE == {strategy.name for strategy in without_kernels()}


def test_every_setting_is_drawn() -> None:
    written = scans()
    assert {scan.stabilize.value for scan in written} == {"P", "D", "auto", "none"}
    assert {scan.normalize for scan in written} == {"none", "sum", "mlstm"}
    assert {scan.combine for scan in written} == {"sum", "concat"}
    assert {(scan.normalize, len(scan.directions) > 1) for scan in written} > {("sum", True), ("mlstm", True)}
    texts = "".join(trial.text for trial, _ in drawn())
    for words in ("forward", "backward", "both", "all", "+time", "-rows", "both concat"):
        assert f"directions {words}" in texts
    assert "read after" in texts
    assert re.search(r"^topology part\d = ", texts, re.MULTILINE)


def test_nodes_write_and_read_once_and_several_times() -> None:
    assert {(scan.writes > 1, scan.reads > 1) for scan in scans()} == {(a, b) for a in (False, True) for b in (False, True)}
    assert {index for scan in scans() for gate in scan.gates for index in gate.indices} > {"write", "read"}
    assert "writes = 1" in "".join(trial.text for trial, _ in drawn())


def test_nodes_take_one_step_and_several() -> None:
    """On chains, in either sense; gates and leaves differ between steps, or do not."""
    several = [scan for scan in scans() if scan.steps > 1]
    assert {direction.senses for scan in several for direction in scan.directions} == {(1,), (-1,)}
    assert {leaf.stepped for scan in several for leaf in scan.leaves} == {True, False}


def test_inputs_of_directions() -> None:
    """Each direction has its own, some or all, or they share them; added up and side by side."""
    several = [scan for scan in scans() if len(scan.directions) > 1]
    assert {(name in scan.own, scan.combine) for scan in several for name in "qkv"} == {
        (own, combine) for own in (True, False) for combine in ("sum", "concat")
    }


def test_every_verdict_of_stability_is_reached() -> None:
    assert {op.facts.verdict.kind for _, op in drawn()} == set(get_args(Kind))


def test_transitions_act_on_every_axis_of_the_state() -> None:
    found = {frozenset(scan.gate("transition").indices) - {"out", "in"} for scan in scans()}
    wanted = ("", "key", "value", "key value", "key key'", "key key' value", "track", "track track'", "track track' value")
    turned = {frozenset(names.split()) for names in ("key track track'", "key value track track'")}
    assert found == {frozenset(names.split()) for names in wanted} | {frozenset({"track", "value"})} | turned
    ends = {frozenset(scan.gate("transition").indices) & {"out", "in"} for scan in scans()}
    assert ends == {frozenset(), frozenset({"out"}), frozenset({"in"}), frozenset({"out", "in"})}


def test_complex_gates_are_drawn_in_every_form() -> None:
    halves = {gate.name for scan in scans() for gate in scan.gates if "." in gate.name}
    assert halves >= {f"transition.{half}" for half in ("radius", "angle", "real", "imaginary")}
    assert halves >= {"source.radius", "source.real", "mark.radius", "mark.real"}


def test_every_form_of_expression_is_drawn() -> None:
    found = list(expressions())
    kinds = {Number, LeafRef, InputRef, GateRef, Apply, Sum, Product, Power, Reduce, Normalize, Split, Eye, Degree, Finite}
    kinds |= {Spread, Stack, Neighbour}
    assert {type(entry) for entry in found} == kinds
    assert {entry.function for entry in found if isinstance(entry, Apply)} == set(Function) - {Function.DIVISOR}
    assert {entry.kind for entry in found if isinstance(entry, Reduce)} == {"sum", "mean", "max"}
    assert {entry.kind for entry in found if isinstance(entry, Normalize)} == {"softmax", "l1", "l2"}
    over = {entry.over for entry in found if isinstance(entry, Normalize)}
    assert over >= {"out", "in", "key", "value", "track"}
    binds = [bind for entry in found if isinstance(entry, GateRef) for bind in entry.bind]
    assert any(bind.port is not None for bind in binds)
    assert any(bind.place is not None for bind in binds)
    assert {entry.over for entry in found if isinstance(entry, Reduce)} >= {"key''"}
    assert {entry.rest is None for entry in found if isinstance(entry, Stack)} == {True, False}
    renamed = {(bind.declared, bind.index) for bind in binds if bind.index not in (None, bind.declared)}
    assert renamed >= {("out", "in"), ("in", "out"), ("key", "key'")}


def test_every_kind_of_leaf_is_drawn() -> None:
    leaves = [(leaf, scan) for scan in scans() for leaf in scan.leaves]
    assert {leaf.kind for leaf, _ in leaves} == {"linear", "param", "given"}
    features = {tuple((feature.name, feature.index) for feature in leaf.features) for leaf, _ in leaves}
    x, leaving, entering = ("x", None), ("e", "out"), ("e", "in")
    assert features >= {(x,), (x, leaving), (x, entering), (leaving,), (entering,), (x, leaving, entering)}
    assert {np.isinf(leaf.low) for leaf, _ in leaves if leaf.kind == "given"} == {True, False}
    assert any({"out", "in"} <= set(leaf.indices) and scan.gate("source").directional for leaf, scan in leaves)


def test_ports_are_pinned_and_turns_closed() -> None:
    clauses = [(gate.name, clause) for scan in scans() for gate in scan.gates for clause in gate.clauses if clause.ports]
    names = {name for name, _ in clauses}
    assert names >= {"source", "transition", "mark"}
    closed = [clause for name, clause in clauses if name == "transition" and len(clause.ports) == 2]
    assert any(isinstance(clause.value, Number) and clause.value.value == 0 for clause in closed)


def test_inputs_are_redefined() -> None:
    redefined = {gate.name for scan in scans() for gate in scan.gates} & {"q", "k", "v"}
    assert redefined == {"q", "k", "v"}


def test_every_rule_for_values_is_drawn() -> None:
    assert {trial.values for trial, _ in drawn()} == set(PROFILES)


def test_single_precision_has_something_to_be_compared_with() -> None:
    """Rounding the arguments to float32 changes nothing by more than thirty times their last digit."""
    for trial, op in drawn()[::5]:
        arguments = trial.arguments(op)
        tree = (arguments.q, arguments.k, arguments.v, arguments.gates, arguments.initial)
        rounded = jax.tree.map(lambda array: np.asarray(array, np.float32).astype(np.float64), tree)
        exact, found = (reference(op.scan, op.dag, *numbers) for numbers in (tree, rounded))
        for wanted, array in zip(jax.tree.leaves((exact.h, exact.state)), jax.tree.leaves((found.h, found.state)), strict=True):
            largest = np.abs(wanted).max(initial=0.0)
            assert np.isfinite(wanted).all()
            assert largest < 1e6
            assert np.abs(wanted - array).max(initial=0.0) <= 4e-6 * largest, trial.text


def test_the_same_trial_has_the_same_numbers() -> None:
    trial, op = drawn()[-1]
    first, second = (jax.tree.leaves(vars(trial.arguments(other))) for other in (op, trial.compiled(None, "float32")))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


# --- values


def gates_of(values: str, equation: str) -> dict[str, np.ndarray]:
    """The leaves of `scan ... { source = EQUATION }`."""
    text = f"scan one(heads = 3) on grid(rows = 5, cols = 7) {{\n source = {equation}\n transition = 0.5\n}}\n"
    op = Trial(text, "grid", values, 0).compiled(None, "float32")
    arguments = random_arguments(op, 0, values)
    assert {name: np.shape(array) for name, array in arguments.gates.items()} == {
        leaf.name: leaf_shape(op.scan, op.dag, leaf) for leaf in op.scan.leaves
    }
    return {name: np.asarray(array) for name, array in arguments.gates.items()}


def test_exact_values_hold_both_zeros_and_ones() -> None:
    array = gates_of("exact", "linear(x)")["source"]
    assert set(np.unique(array)) == {-1.0, 0.0, 1.0}
    assert np.signbit(array[array == 0]).any()
    assert not np.signbit(array[array == 0]).all()


@pytest.mark.filterwarnings("ignore:overflow")
def test_critical_shares_are_zero_or_one() -> None:
    array = gates_of("critical", "sigmoid(linear(x))")["source"]
    share = 1 / (1 + np.exp(-array))
    assert set(np.unique(share)) == {0.0, 1.0}


@pytest.mark.filterwarnings("ignore:overflow")
def test_saturated_values_are_at_the_ends_of_sigmoid_and_tanh() -> None:
    array = gates_of("saturated", "sigmoid(linear(x))")["source"]
    assert set(np.unique(np.tanh(array))) == {-1.0, 1.0}
    assert set(np.unique(1 / (1 + np.exp(-array)))) == {0.0, 1.0}
    assert np.abs(gates_of("saturated", "given(-2, 2)")["source"]).min() > 2


def test_exponentials_stay_finite() -> None:
    for values in PROFILES:
        array = gates_of(values, "exp(linear(x))")["source"]
        assert np.exp(np.abs(array)).max() < 1e6


def test_tiny_values_are_below_what_single_precision_holds_as_products() -> None:
    array = np.abs(gates_of("tiny", "linear(x)")["source"])
    small = array[array < 1e-20]
    assert 1e-38 <= small.min() < 1e-36
    assert small.max() <= 1e-30
    assert 0.3 < len(small) / array.size < 0.7


def test_signs_alternate() -> None:
    array = gates_of("signs", "linear(x)")["source"][..., 0]
    assert (np.sign(array[1:]) == -np.sign(array[:-1])).all()
    assert (np.sign(array[:, 1:]) == -np.sign(array[:, :-1])).all()


def test_given_values_lie_on_both_sides_of_their_bounds() -> None:
    array = gates_of("random", "given(0, 1)")["source"]
    assert array.min() < 0
    assert array.max() > 1


# --- topologies


def test_layouts_say_what_their_topology_is() -> None:
    known = tuple(kind for kind in KINDS if not kind.startswith("run-time"))
    for layout in several(topologies((*known, "chain", "grid")), 40):
        scan = load(f"{layout.declarations}scan one on {layout.text} {{\n source = 1\n transition = 0.5\n}}\n", {})
        dag = dag_of(scan.topology)
        assert dag.node_count == layout.nodes
        assert tuple(port.name for port in ports(scan.topology)) == layout.ports
        assert (dag.regular is not None) == layout.regular
        assert paths(dag) <= layout.paths
        assert np.bincount(dag.tail[dag.tail >= 0], minlength=1).max() <= layout.fan


def paths(dag: DAG) -> int:
    """The largest number of paths between two nodes."""
    step = np.zeros((dag.node_count, dag.node_count))
    inner = (dag.tail >= 0) & (dag.head >= 0)
    np.add.at(step, (dag.tail[inner], dag.head[inner]), 1)
    return round(np.linalg.inv(np.eye(len(step)) - step).max(initial=0))


@pytest.mark.parametrize("kind", ["run-time dag", "run-time tree"])
def test_graphs_for_run_time_fit_their_topology(kind: str) -> None:
    """Among them none at all, the empty one, isolated nodes, and but for trees parallel edges."""
    layouts, found = several(topologies((kind,)), 60), list[Listed]()
    assert {len(layout.graphs or ()) for layout in layouts} == {0, 1, 2, 3, 4}
    for layout in layouts:
        assert layout.graphs is not None
        found += layout.graphs
        trial = Trial("", "", "", 0, layout.graphs)
        text = f"{layout.declarations}scan one on {layout.text} {{\n source = 1\n transition = 0.5\n}}\n"
        assert replace(trial, text=text).compiled(None, "float32").node_shape == (len(trial.real),)
        for dag in trial.dags:
            assert paths(dag) <= layout.paths
            assert np.bincount(dag.tail, minlength=1).max() <= layout.fan
    assert {nodes for nodes, _ in found} == set(range(9))
    assert any(nodes > 2 and len({node for edge in edges for node in edge}) < nodes for nodes, edges in found)
    assert any(len(set(edges)) < len(edges) for _, edges in found) == (kind == "run-time dag")
    assert any(tail > head for _, edges in found for tail, head in edges)


@pytest.mark.parametrize("kind", GRAPHS)
def test_graphs_have_open_edges_isolated_nodes_and_names_in_any_order(kind: str) -> None:
    found = several(graphs((kind,)), 60)
    arrows = [arrow for graph in found for arrow in graph.arrows]
    assert any(tail is None for tail, _ in arrows)
    assert any(head is None for _, head in arrows)
    assert any(list(graph.names) != sorted(graph.names) for graph in found)
    assert {len(graph.names) for graph in found} >= {1, 2, 3, 5, 7}
    ends = [{node for arrow in graph.arrows for node in arrow if node is not None} for graph in found]
    assert any(0 < len(touched) < len(graph.names) for graph, touched in zip(found, ends, strict=True))


# --- shrinking, and many more


@pytest.mark.parametrize(
    ("kind", "word", "lines"),
    [
        ("chain", "key']", 5),
        pytest.param("star dag", "normalize sum", 9, marks=pytest.mark.slow),
        pytest.param("grid", "softmax", 6, marks=pytest.mark.slow),
    ],
)
def test_what_is_found_shrinks_to_little(kind: str, word: str, lines: int) -> None:
    """From one seed: where shrinking gets stuck at a delta rule, as from others, up to three lines more are left of a chain."""
    options = settings(database=None, deadline=None, max_examples=1000, suppress_health_check=tuple(HealthCheck))
    text = find(specs((kind,)), lambda text: word in text, settings=options, random=Random(3))
    assert len(text.splitlines()) <= lines, text
    assert "heads = 1, key = 1, value = 1" in text


@pytest.mark.parametrize("scalar", [True, False])
def test_filters_hold(scalar: bool) -> None:
    for text in several(specs(("grid", "star dag"), scalar), 30, start=2):
        scan = load(text, {})
        core = [scan.gate(name).indices for name in ("source", "transition", "mark", "direct")]
        states = {index for indices in core for index in indices} - {"out", "in"}
        assert (not states) == scalar
        assert " on grid(" in text or " on dag {" in text


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10))
def test_specs_are_well_typed_over_many_seeds(start: int) -> None:
    for trial in several(trials(), 500, start):
        assert ways(trial.compiled(None, "float64"))
