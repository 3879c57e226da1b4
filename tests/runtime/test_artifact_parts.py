"""Artifacts of several programs: for several batch sizes, platforms, and buckets of graphs that come at run time."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.graph import DAG, Bucket, batch
from stmlang.graph.build import ragged_dag
from tests.runtime.test_artifact import code, rewritten

PATH = ragged_dag(3, np.array([0, 1]), np.array([1, 2]))
DIAMOND = ragged_dag(4, np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]))
LONG = ragged_dag(40, np.arange(39), np.arange(1, 40))
SPEC = (
    "topology g = dag(nodes <= 64, edges <= 160)\nscan s(heads = 1, key = 2, value = 3) on g {\n"
    "source[out] = sigmoid(linear(x))\ntransition[in] = tanh(linear(x, e[in]))\nstabilize none\n}"
)
CHAIN = "scan s(heads = 1, key = 2, value = 3) on chain(t = 5) { source = linear(x); transition = sigmoid(linear(x)) }"
SMALL, LARGE = {"graphs": 3, "nodes": 17, "edges": 13}, {"graphs": 4, "nodes": 96, "edges": 96}


@pytest.fixture(scope="module")
def scan() -> stmlang.GraphScan:
    found = stmlang.compile(SPEC, strategy="recurrent")
    assert isinstance(found, stmlang.GraphScan)
    return found


@pytest.fixture(scope="module")
def graphs(scan: stmlang.GraphScan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("artifacts") / "graphs.stmx"
    scan.export(path, [LARGE, SMALL])
    return path


@pytest.fixture(scope="module")
def op() -> stmlang.CompiledScan:
    return stmlang.compile(CHAIN, strategy="recurrent")


@pytest.fixture(scope="module")
def sizes(op: stmlang.CompiledScan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("artifacts") / "sizes.stmx"
    op.export(path, batch=[None, 1, 3], step=True)
    return path


def refused(call: Any, expected: str) -> str:
    with pytest.raises(stmlang.SpecError) as error:
        call()
    assert code(error) == expected
    return str(error.value)


@pytest.mark.parametrize("dags", [[DIAMOND, PATH], [LONG, DIAMOND]], ids=["few", "many"])
def test_graphs_of_the_moment(scan: stmlang.GraphScan, graphs: Path, dags: list[DAG]) -> None:
    """Value and gradient are those of the scan itself, also where the graphs are an argument of a compiled function."""
    loaded = stmlang.load(graphs)
    on = scan.at(given := loaded.batch(dags))
    assert given.bucket.nodes == (LARGE if LONG in dags else SMALL)["nodes"]
    q, k, v, gates = on.example(1)
    real = given.node_mask
    call = jax.jit(lambda on, q, gates: on(q, k, v, gates))
    np.testing.assert_allclose(call(loaded.at(given), q, gates)[real], on(q, k, v, gates)[real], atol=1e-6)

    def slope(on: Any) -> Any:
        return jax.grad(lambda q, gates: on(q, k, v, gates)[real].sum(), argnums=(0, 1))(q, gates)

    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), slope(loaded.at(given)), slope(on))
    again = pickle.loads(pickle.dumps(loaded))
    assert again == loaded
    np.testing.assert_array_equal(again.at(dags)(q, k, v, gates), loaded.at(given)(q, k, v, gates))


def test_one_program_for_all_batches_of_a_bucket(scan: stmlang.GraphScan, graphs: Path) -> None:
    loaded = stmlang.load(graphs)
    q, k, v, gates = scan.at(loaded.batch([PATH])).example(0)
    call = jax.jit(lambda on: on(q, k, v, gates))
    for dags in ([PATH], [DIAMOND, PATH], [PATH] * 3):
        call(loaded.at(dags))
    assert call._cache_size() == 1


def test_what_fits_no_bucket_is_refused_with_both_sides(graphs: Path) -> None:
    loaded = stmlang.load(graphs)
    too_many = refused(lambda: loaded.batch([LONG] * 3), "STM5312")
    assert "buckets of 3 graphs of 17 nodes and 13 edges and 4 graphs of 96 nodes and 96 edges" in too_many
    assert "given were 3 graphs of 120 nodes and 117 edges" in too_many
    assert "the programs of the bucket room for" in refused(
        lambda: loaded.batch([ragged_dag(70, np.arange(69), np.arange(1, 70))]), "STM5312"
    )
    assert "Bucket(nodes=16" in refused(lambda: loaded.at(batch([PATH])), "STM5312")
    on = loaded.at([PATH])
    assert "b.nodes" in refused(lambda: on(*(jnp.zeros((3, 1, 2), jnp.float32),) * 3, {}), "STM5312")


def test_a_bucket_of_a_data_set_keeps_its_room(scan: stmlang.GraphScan, tmp_path: Path) -> None:
    """And the artifact runs in a process that has neither Equinox nor the text of the spec."""
    bucket = Bucket.covering([batch([PATH, DIAMOND]), batch([LONG])])
    scan.export(tmp_path / "op.stmx", bucket)
    assert stmlang.load(tmp_path / "op.stmx").buckets == (bucket,)
    script = (
        "import sys, numpy as np, stmlang\nfrom stmlang.graph import as_dag\n"
        f"loaded = stmlang.load({str(tmp_path / 'op.stmx')!r})\non = loaded.at([as_dag([(0, 1), (1, 2)])])\n"
        "zeros = lambda shapes: {name: np.ones(shape, 'float32') for name, shape in shapes.items()}\n"
        "print(on(*zeros(on.signature.inputs).values(), zeros(on.signature.gates)).shape)\n"
        "assert 'equinox' not in sys.modules and 'stmlang.check' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"({bucket.nodes}, 1, 3)"


@pytest.mark.parametrize("wrong", [[], {"graphs": 1, "nodes": 9}, {"graphs": 1, "nodes": 2, "edges": 3}, 3, [None]])
def test_what_is_no_bucket(scan: stmlang.GraphScan, tmp_path: Path, wrong: Any) -> None:
    refused(lambda: scan.export(tmp_path / "op.stmx", wrong), "STM3508")
    assert not list(tmp_path.iterdir())


def test_each_batch_size_has_its_program(op: stmlang.CompiledScan, sizes: Path, tmp_path: Path) -> None:
    loaded = stmlang.load(sizes)
    for size in (None, 1, 3):
        examples = [op.example(seed) for seed in range(size or 1)]
        given = examples[0] if size is None else jax.tree.map(lambda *arrays: jnp.stack(arrays), *examples)
        expected = op(*given) if size is None else jax.vmap(op)(*given)
        np.testing.assert_allclose(loaded(*given), expected, atol=1e-6)
        q, k, v, gates = jax.tree.map(lambda array, size=size: array[0] if size is None else array[:, 0], given)
        h, _ = loaded.step(loaded.init_state(size), q, k, v, gates)
        np.testing.assert_allclose(h, expected[0] if size is None else expected[:, 0], atol=1e-6)
    assert loaded.for_batch(3).manifest["batch"] == 3
    text = refused(lambda: loaded.for_batch(2), "STM5312")
    assert "no batch axis, batches of 1 and batches of 3 on cpu; given was a batch of 2" in text
    op.export(tmp_path / "any.stmx", batch=[1, "symbolic"])
    any_size = stmlang.load(tmp_path / "any.stmx")
    assert [any_size.for_batch(size).manifest["batch"] for size in (1, 2)] == [1, "symbolic"]
    refused(lambda: op.export(tmp_path / "twice.stmx", batch=[1, 1]), "STM5301")


def test_another_platform_is_refused(op: stmlang.CompiledScan, tmp_path: Path) -> None:
    op.export(tmp_path / "op.stmx", batch=[1, 2], platforms=["tpu"])
    text = refused(lambda: stmlang.load(tmp_path / "op.stmx")(*op.example()), "STM5310")
    assert "compiled for tpu; JAX runs on cpu" in text


def changed(part: int, **entries: Any) -> Any:
    def change(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        manifest["parts"][part].update(entries)
        members["manifest.json"] = json.dumps(manifest).encode()

    return change


def without(members: dict[str, bytes]) -> None:
    members.pop(next(name for name in members if name.endswith("recipe.json")))


def flipped(members: dict[str, bytes]) -> None:
    name = next(name for name in members if name.endswith("recipe.json"))
    members[name] = members[name].replace(b'"nodes": 17', b'"nodes": 18').replace(b'"nodes": 96', b'"nodes": 97')


SPOILED: dict[str, tuple[str, str, Any]] = {
    "a bucket of other sizes": ("STM5304", "bucket is not", changed(0, bucket={"graphs": 4, "nodes": 50, "edges": 96})),
    "a bucket of nothing": ("STM5304", "bucket", changed(0, bucket={})),
    "a bucket of less": ("STM5304", "bucket", changed(0, bucket={"graphs": -1, "nodes": 96, "edges": 96})),
    "no members": ("STM5304", "other members", changed(1, members={})),
    "members of another": ("STM5304", "other members", changed(1, members={"program.bin": "0/program.bin"})),
    "an unknown platform": ("STM5304", "cannot be", changed(0, platforms=["abacus"])),
    "another platform": ("STM5304", "other platforms", changed(0, platforms=["tpu"])),
    "no recipe": ("STM5303", "it has no", without),
    "another recipe": ("STM5304", "not what was written", flipped),
}


@pytest.mark.parametrize("name", SPOILED)
def test_parts_that_lie_are_refused(graphs: Path, tmp_path: Path, name: str) -> None:
    expected, words, change = SPOILED[name]
    (tmp_path / "bad.stmx").write_bytes(rewritten(graphs, change))
    with pytest.raises(stmlang.SpecError, match=words) as error:
        stmlang.load(tmp_path / "bad.stmx")
    assert code(error) == expected


def test_a_file_of_the_format_before_is_read(op: stmlang.CompiledScan, tmp_path: Path) -> None:
    op.export(tmp_path / "op.stmx")

    def older(members: dict[str, bytes]) -> None:
        members["manifest.json"] = json.dumps(json.loads(members["manifest.json"]) | {"format": 2}).encode()

    (tmp_path / "old.stmx").write_bytes(rewritten(tmp_path / "op.stmx", older))
    assert stmlang.load(tmp_path / "old.stmx").manifest["format"] == 2
