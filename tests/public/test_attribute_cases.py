"""What tools ask of an object before anyone calls it: attributes, copies, pickles, its members, its text."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.graph import DAG, Bucket, as_dag, batch, convert, tudataset
from stmlang.graph.build import ragged_dag

LEAKY = (
    "scan leaky(heads = 1, key = 2, value = 2) on chain(time) {\nsource = 1\nmark = 1\ntransition = 0.5\nstabilize none\n}\n"
)
GRAPHS = LEAKY.replace("chain(time)", "dag(nodes <= 9, edges <= 9)")
PAIRS = [(0, 1), (1, 2), (0, 2)]


def open_scan() -> Any:
    return stmlang.compile(LEAKY)


def graph_scan() -> Any:
    return stmlang.compile(GRAPHS)


def star() -> DAG:
    """2^32 line edges, more than can be numbered."""
    hub, many = 1 << 16, np.arange(1 << 16)
    return ragged_dag(
        2 * hub + 1, np.concatenate([many, np.full(hub, hub)]), np.concatenate([np.full(hub, hub), many + hub + 1])
    )


def loaded_scan(folder: Path, **options: Any) -> Any:
    stmlang.compile(LEAKY, time=3).export(folder / "scan.stmx", **options)
    return stmlang.load(folder / "scan.stmx")


def loaded_graphs(folder: Path) -> Any:
    graph_scan().export(folder / "graphs.stmx", {"graphs": 1, "nodes": 8, "edges": 8})
    return stmlang.load(folder / "graphs.stmx")


def loaded_model(folder: Path) -> Any:
    model = stmlang.nn.ScanLayer(stmlang.compile(LEAKY, time=3), dim=4, key=jax.random.key(0))
    stmlang.export(model, (jnp.zeros((3, 4)),), folder / "model.stmx")
    return stmlang.load(folder / "model.stmx")


def refused() -> stmlang.SpecError:
    with pytest.raises(stmlang.SpecError) as caught:
        stmlang.compile("scan s on chain(time) {")
    return caught.value


def data_set(folder: Path) -> Any:
    (folder / "DS").mkdir()
    for what, text in (("A", "1, 2\n2, 1\n"), ("graph_indicator", "1\n1\n"), ("graph_labels", "1\n")):
        (folder / "DS" / f"DS_{what}.txt").write_text(text)
    return tudataset("DS", folder)


OBJECTS: dict[str, Callable[[Path], Any]] = {
    "OpenScan": lambda _: open_scan(),
    "OpenScan with lengths": lambda _: stmlang.compile(LEAKY, time=stmlang.Lengths()),
    "GraphScan": lambda _: graph_scan(),
    "CompiledScan": lambda _: stmlang.compile(LEAKY, time=3),
    "CompiledScan on graphs": lambda _: graph_scan().at([as_dag(PAIRS)]),
    "ScanLayer": lambda _: stmlang.nn.ScanLayer(stmlang.compile(LEAKY, time=3), dim=4, key=jax.random.key(0)),
    "ScanLayer without sizes": lambda _: stmlang.nn.ScanLayer(open_scan(), dim=4, key=jax.random.key(0)),
    "RMSNorm": lambda _: stmlang.nn.RMSNorm((4,)),
    "Lengths": lambda _: stmlang.Lengths(),
    "LoadedScan": loaded_scan,
    "LoadedScans": lambda folder: loaded_scan(folder, batch=[1, None]),
    "LoadedGraphScan": loaded_graphs,
    "LoadedModel": loaded_model,
    "DAG": lambda _: as_dag(PAIRS),
    "DAG of a grid": lambda _: stmlang.compile(LEAKY.replace("chain(time)", "grid(a = 2, b = 3)")).dag,
    "DAG of too many line edges": lambda _: star(),
    "Batch": lambda _: batch([as_dag(PAIRS), as_dag([(0, 1)])]),
    "Bucket": lambda _: Bucket.of([as_dag(PAIRS)]),
    "Converted": lambda _: convert(PAIRS),
    "GraphSet": data_set,
    "SpecError": lambda _: refused(),
}

each = pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS)


@each
def test_a_missing_attribute_is_an_attribute_error(make: Callable[[Path], Any], tmp_path: Path) -> None:
    """`hasattr` answers for any name, whether it looks private, like one of Python's protocols, or like one of a class."""
    subject = make(tmp_path)
    for name in ("colour", "_colour", "__colour__", "__array__", "__cuda_array_interface__", "_repr_latex_", "mro", "шар"):
        assert not hasattr(subject, name)
        with pytest.raises(AttributeError, match=name):
            getattr(subject, name)


@each
def test_whatever_dir_names_can_be_asked_for(make: Callable[[Path], Any], tmp_path: Path) -> None:
    """Completion at a prompt and `inspect.getmembers` ask for every attribute, and take none but an AttributeError."""
    subject = make(tmp_path)
    for name in dir(subject):
        assert hasattr(subject, name) in (True, False)
    members = dict(inspect.getmembers(subject))
    assert "__class__" in members
    assert inspect.getattr_static(subject, "__class__", None) is not None
    assert inspect.unwrap(subject) is subject


@each
def test_copies_and_pickles_are_of_the_type_and_text(make: Callable[[Path], Any], tmp_path: Path) -> None:
    """Models are copied with the scans in them, and data loaders send graphs from process to process."""
    subject = make(tmp_path)
    for copied in (copy.copy(subject), copy.deepcopy(subject), pickle.loads(pickle.dumps(subject))):
        assert type(copied) is type(subject)
        assert repr(copied) == repr(subject)
    assert len(repr(subject)) < 1_000


@pytest.mark.parametrize("name", ["plan", "facts", "signature", "dag", "explain", "tables", "compilation", "export"])
def test_what_only_a_compiled_scan_has_is_missing_and_says_why(name: str) -> None:
    """`hasattr(scan, "plan")` raised SpecError before its sizes were known; `scan.plan` has to go on saying what to do. A scan
    of graphs has an `export`, for buckets of them."""
    subjects = [(open_scan(), "STM5001", "time=N"), (graph_scan(), "STM3301", "op.at(")]
    for subject, code, words in subjects[:1] if name == "export" else subjects:
        assert not hasattr(subject, name)
        assert getattr(subject, name, None) is None
        with pytest.raises(stmlang.SpecError, match=code) as refused:
            getattr(subject, name)
        assert isinstance(refused.value, AttributeError)
        assert words in str(refused.value)
        stored = pickle.loads(pickle.dumps(refused.value))
        assert str(stored) == str(refused.value)


@pytest.mark.parametrize("kind", [stmlang.OpenScan, stmlang.GraphScan])
def test_a_scan_that_is_being_made_has_no_attributes_yet(kind: type) -> None:
    """`copy` and unpickling ask an object without fields for its methods: the answer asked for a field, and so on for ever."""
    bare = object.__new__(kind)
    for name in ("scan", "dtype", "finish", "compiled", "__setstate__"):
        with pytest.raises(AttributeError, match=name):
            getattr(bare, name)


def test_the_graph_of_a_traced_scan_is_missing_and_says_why() -> None:
    """Inside of `jit` the graphs of a scan are arguments, and `hasattr(on, "dag")` raised SpecError there."""
    on = graph_scan().at([as_dag(PAIRS)])
    seen: list[bool] = []

    @jax.jit
    def ask(on: Any) -> jax.Array:
        seen.append(hasattr(on, "dag"))
        with pytest.raises(stmlang.SpecError, match="ask for it outside"):
            _ = on.dag
        return jnp.zeros(())

    ask(on)
    assert seen == [False]
    assert hasattr(on, "dag")


def test_line_edges_that_are_too_many_are_missing_and_say_why() -> None:
    """A node of many edges on both sides: `inspect.getmembers(dag)` raised SpecError."""
    assert not hasattr(star(), "line_edges")
    with pytest.raises(stmlang.SpecError, match="STM3303"):
        _ = star().line_edges
