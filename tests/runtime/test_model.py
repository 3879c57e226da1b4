"""Models in artifacts: what is loaded gives what the model gives, without Equinox and without its source."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.graph import Bucket, batch
from stmlang.graph.build import ragged_dag
from stmlang.models.graph.plstm import PLSTM
from stmlang.nn import ScanLayer

SIZES: dict[str, Any] = {"heads": 1, "key": 2, "value": 2, "tuned": False}
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("equinox", "optax"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
"""


class Model(eqx.Module):
    """Two layers of one scan, dropout, weights in bfloat16; dictionaries, lists and tuples in and out."""

    first: ScanLayer
    second: ScanLayer
    head: jax.Array
    dropout: eqx.nn.Dropout

    def __init__(self, key: jax.Array) -> None:
        op = stmlang.compile("std:plstm/chain", time=5, strategy="recurrent", **SIZES)
        self.first, self.second = ScanLayer(op, 3, key=key, gate="silu"), ScanLayer(op, 3, key=key)
        self.head = jnp.full(3, 2.0, jnp.bfloat16)
        self.dropout = eqx.nn.Dropout(0.5)

    def __call__(self, inputs: dict[str, Any], *, scale: Any) -> Any:
        y = self.dropout(self.second(self.first(inputs["x"], mask=inputs["mask"])))
        return {"y": y * scale, "best": (jnp.argmax(y @ self.head.astype(y.dtype)), [])}


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(jax.random.key(0))


@pytest.fixture(scope="module")
def path(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model.stmx"
    struct = jax.ShapeDtypeStruct
    example = {"x": struct((5, 3), "float32"), "mask": struct((5,), "bool")}
    stmlang.export(model, example, path, keywords={"scale": struct((), "float32")})
    return path


@pytest.fixture(scope="module")
def loaded(path: Path) -> stmlang.LoadedModel:
    found = stmlang.load(path)
    assert isinstance(found, stmlang.LoadedModel)
    return found


def inputs_of(count: int) -> tuple[dict[str, Any], Any]:
    generator = np.random.default_rng(0)
    mask = np.arange(5) < generator.integers(1, 6, (count, 1))
    x = generator.standard_normal((count, 5, 3)).astype(np.float32)
    return {"x": x, "mask": mask}, np.arange(1, 1 + count).astype(np.float32)


def test_any_batch_and_one_example(model: Model, loaded: stmlang.LoadedModel) -> None:
    inputs, scale = inputs_of(3)
    plain = eqx.nn.inference_mode(model)
    expected = jax.vmap(lambda inputs, scale: plain(inputs, scale=scale))(inputs, scale)
    found = loaded(inputs, scale=scale)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected)
    one = loaded(jax.tree.map(lambda array: array[1], inputs), scale=scale[1])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b[1], atol=1e-5), one, expected)


def test_it_is_mapped_and_differentiated(model: Model, loaded: stmlang.LoadedModel) -> None:
    inputs, scale = inputs_of(3)
    plain = eqx.nn.inference_mode(model)

    def slope(function: Any) -> Any:
        return jax.grad(lambda x, scale, mask: (function({"x": x, "mask": mask}, scale=scale)["y"] ** 2).sum(), (0, 1))

    arguments = inputs["x"], scale, inputs["mask"]
    expected = jax.vmap(slope(plain))(*arguments)
    together = slope(loaded)(*arguments)
    mapped = jax.vmap(slope(loaded))(*arguments)
    twice = jax.jit(jax.vmap(jax.vmap(slope(loaded), (0, None, 0)), (0, None, 0)))
    nested = twice(*(array[None] if array.ndim > 1 else array[0] for array in arguments))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), together, expected)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), mapped, expected)
    same = jax.vmap(slope(plain), (0, None, 0))(inputs["x"], scale[0], inputs["mask"])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b, atol=1e-4), nested, same)


def test_it_runs_without_equinox(path: Path, loaded: stmlang.LoadedModel, tmp_path: Path) -> None:
    inputs, scale = inputs_of(2)
    np.savez(tmp_path / "in.npz", scale=scale, **inputs)
    code = f"""{BLOCKED}
import numpy as np
import stmlang
given = np.load({str(tmp_path / "in.npz")!r})
loaded = stmlang.load({str(path)!r})
y = loaded({{"x": given["x"], "mask": given["mask"]}}, scale=given["scale"])["y"]
np.save({str(tmp_path / "out.npy")!r}, y)
assert "equinox" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), loaded(inputs, scale=scale)["y"], atol=1e-5)


def test_one_file_is_for_both_platforms_and_holds_weights_once(model: Model, path: Path, loaded: stmlang.LoadedModel) -> None:
    assert loaded.exported.platforms == ("cpu", "cuda")
    different = {np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array))}
    assert len(loaded.weights) <= len(different) + 3  # of one content and several shapes
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["manifest.json", "program.bin", "program.mlir", "weights.npz", "graphs.json"]
    assert repr(loaded).startswith("<LoadedModel Model({")
    assert len(repr(loaded)) < 500


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    weight = jnp.arange(6.0).reshape(2, 3)
    for name in ("a", "b"):
        module = eqx.nn.Linear(3, 2, use_bias=False, key=jax.random.key(0))
        module = eqx.tree_at(lambda module: module.weight, module, weight)
        stmlang.export(module, jnp.zeros(3), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("size", [None, "symbolic"])
def test_derivatives_that_are_not_stored_are_refused_where_they_are_used(tmp_path: Path, size: Any) -> None:
    def model(x: Any) -> Any:
        return (jnp.tanh(x) ** 2).sum()

    def looped(function: Any) -> Any:
        return lambda x: jax.lax.scan(lambda c, _: (c * function(c), None), x, None, length=2)[0].sum()

    x = jnp.full((2, 3), 0.3)
    for name, with_derivative in (("one", True), ("none", False)):
        stmlang.export(model, x, tmp_path / name, batch=size, differentiable=with_derivative)
    one, none = stmlang.load(tmp_path / "one"), stmlang.load(tmp_path / "none")
    reverse = jax.grad(one)
    for function in (reverse, jax.jit(reverse), jax.grad(jax.checkpoint(one)), jax.grad(lambda x: jax.vmap(one)(x[None])[0])):
        np.testing.assert_allclose(function(x), jax.grad(model)(x), rtol=1e-5)
    np.testing.assert_allclose(jax.grad(looped(one))(x), jax.grad(looped(model))(x), rtol=1e-5)
    for constant in (none(x), reverse(x)):
        function = none if constant.ndim == 0 else reverse
        held = jax.grad(lambda x, function=function: (x * jax.lax.stop_gradient(function(x))).sum())(x)
        np.testing.assert_allclose(held, jnp.broadcast_to(constant, x.shape), rtol=1e-6)
    refused: list[tuple[Any, str]] = [(transform(none), "holds no derivative") for transform in (jax.grad, jax.jacfwd)]
    refused += [(jax.vmap(jax.grad(none)), "holds no derivative"), (jax.jit(jax.grad(none)), "holds no derivative")]
    second = [
        jax.hessian(one),
        jax.vmap(jax.hessian(one)),
        jax.jit(jax.hessian(one)),
        jax.jacrev(reverse),
        jax.hessian(looped(one)),
    ]
    second += [jax.jacfwd(one), jax.jit(jax.jacfwd(one)), jax.jacrev(jax.jacfwd(one)), jax.grad(lambda x: reverse(x).sum())]
    for number, (function, text) in enumerate([*refused, *((function, "reverse mode only") for function in second)]):
        with pytest.raises(stmlang.SpecError, match=text) as error:
            function(x[None] if number in (2, len(refused) + 1) else x)
        assert error.value.diagnostics[0].code == "STM5314"


@pytest.mark.parametrize("size", [None, 2])
def test_a_fixed_call_is_mapped_in_a_loop(tmp_path: Path, size: int | None) -> None:
    linear = eqx.nn.Linear(3, 2, key=jax.random.key(0))
    stmlang.export(linear, jnp.zeros(3), tmp_path / "m.stmx", batch=size)
    loaded = stmlang.load(tmp_path / "m.stmx")
    x = jax.random.normal(jax.random.key(1), (4, 2, 3))
    given, expected = (x, jax.vmap(jax.vmap(linear))(x)) if size else (x[:, 0], jax.vmap(linear)(x[:, 0]))
    np.testing.assert_allclose(jax.vmap(loaded)(given), expected, atol=1e-6)
    pulled = jax.vmap(jax.grad(lambda x: loaded(x).sum()))(given)
    np.testing.assert_allclose(pulled, jnp.broadcast_to(linear.weight.sum(0), given.shape), atol=1e-6)
    with pytest.raises(stmlang.SpecError) as error:
        loaded(jnp.zeros((3, 3)))
    assert error.value.diagnostics[0].code == "STM5312"


def test_scans_are_mapped_too(tmp_path: Path) -> None:
    op = stmlang.compile("std:plstm/chain", time=3, strategy="recurrent", **SIZES)
    examples = jax.tree.map(lambda *arrays: jnp.stack(arrays), *(op.example(seed) for seed in range(2)))
    for size in ("symbolic", None):
        op.export(tmp_path / "op.stmx", batch=size)
        loaded = stmlang.load(tmp_path / "op.stmx")
        given = examples if size is None else jax.tree.map(lambda array: array[None], examples)
        found = jax.vmap(loaded)(*given)
        expected = jax.vmap(op)(*examples)
        np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-6)


def test_graph_models_take_the_batches_of_a_bucket(tmp_path: Path) -> None:
    p, d = (stmlang.compile(f"std:plstm/graph_{mode}", **SIZES) for mode in "pd")
    model = PLSTM(p, d, classes=2, node_features=3, edge_features=2, dim=4, pairs=1, key=jax.random.key(0))

    def features(given: Any) -> Any:
        generator = np.random.default_rng(5)
        nodes = [generator.standard_normal((dag.node_count, 3)).astype(np.float32) for dag in given.dags]
        return nodes, [generator.standard_normal((dag.edge_count, 2)).astype(np.float32) for dag in given.dags]

    path3 = ragged_dag(3, np.array([0, 1]), np.array([1, 2]))
    diamond = ragged_dag(4, np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]))
    bucket = Bucket.covering([batch([path3]), batch([diamond, path3])])
    example = model.prepare(batch([path3], bucket=bucket), *features(batch([path3])))
    stmlang.export(model, (example,), tmp_path / "graphs.stmx", differentiable=False)
    loaded = stmlang.load(tmp_path / "graphs.stmx")
    given = loaded.batch([diamond, path3])
    nodes, edges = features(given)
    expected = model(model.prepare(given, nodes, edges))
    parts = {"batch": given, "nodes": given.nodes(nodes), "edges": given.edges(edges), "scans": given}
    np.testing.assert_allclose(loaded(parts), expected, atol=1e-5)
    np.testing.assert_allclose(loaded((given, parts["nodes"], parts["edges"], (given, given))), expected, atol=1e-5)
    for wrong, text in (({**parts, "scans": batch([diamond] * 9)}, "another bucket"), ({**parts, "batch": 3}, "takes graphs")):
        with pytest.raises(stmlang.SpecError, match=text) as error:
            loaded(wrong)
        assert error.value.diagnostics[0].code == "STM5312"
    others = loaded.batch([path3, diamond])
    prepared = model.prepare(given, nodes, edges)
    for call in (loaded, jax.jit(loaded)):  # what it was exported from: the tables of one batch
        np.testing.assert_allclose(call(prepared), expected, atol=1e-5)
    np.testing.assert_allclose(loaded({**parts, "scans": prepared.scans}), expected, atol=1e-5)
    np.testing.assert_allclose(loaded({**parts, "scans": loaded.batch([diamond, path3])}), expected, atol=1e-5)
    mixed = [{**parts, "scans": others}, {**parts, "scans": prepared.scans, "batch": others}, {**parts, "batch": others.arrays}]
    swapped = {**parts, "scans": prepared.scans[::-1]}
    both = r"argument 0.*argument 0\.\w+(\[\d\])? are of two different"
    for wrong, text in [*((wrong, both) for wrong in mixed), (swapped, "something else")]:
        with pytest.raises(stmlang.SpecError, match=text) as error:
            loaded(wrong)
        assert error.value.diagnostics[0].code == "STM5312"
    with pytest.raises(stmlang.SpecError, match="STM5010"):
        stmlang.export(model, (example,), tmp_path / "graphs.stmx", batch=4)


def rewritten(path: Path, member: str, old: bytes, new: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as found, zipfile.ZipFile(buffer, "w") as made:
        for name in found.namelist():
            content = found.read(name)
            made.writestr(name, content.replace(old, new) if name == member else content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("example", "options", "code"),
    [
        (3.0, {}, "STM5203"),
        ({1: jnp.zeros(3)}, {}, "STM5203"),
        ((), {}, "STM5203"),
        (jnp.zeros(3), {"batch": 0}, "STM5010"),
        (jnp.zeros(3), {"platforms": ["abacus"]}, "STM5301"),
        (jnp.zeros(3), {"inference": 1}, "STM5010"),
    ],
)
def test_what_cannot_be_exported_is_refused(tmp_path: Path, example: Any, options: dict[str, Any], code: str) -> None:
    with pytest.raises(stmlang.SpecError) as error:
        stmlang.export(lambda *_: 1.0, example, tmp_path / "m.stmx", **options)
    assert error.value.diagnostics[0].code == code
    assert not list(tmp_path.iterdir())


def test_a_model_that_calls_back_or_asks_for_the_batch_is_refused(tmp_path: Path) -> None:
    def shows(x: Any) -> Any:
        jax.debug.print("{}", x)
        return x

    with pytest.raises(stmlang.SpecError, match="cannot be exported") as error:
        stmlang.export(shows, jnp.zeros(3), tmp_path / "m.stmx")
    assert error.value.diagnostics[0].code == "STM5306"
    with pytest.raises(ZeroDivisionError):  # the model's own
        stmlang.export(lambda x: x * (1 // 0), jnp.zeros(3), tmp_path / "m.stmx")
    with pytest.raises(stmlang.SpecError, match="STM5302"):
        stmlang.export(lambda x: x, jnp.zeros(3), tmp_path / "none" / "m.stmx")


def test_keys_of_random_numbers_are_taken_as_their_data(tmp_path: Path) -> None:
    key, path = jax.random.key(0), tmp_path / "noise.stmx"
    with pytest.raises(stmlang.SpecError, match="wrap_key_data") as error:
        stmlang.export(lambda key: jax.random.normal(key, (3,)), key, path)
    assert error.value.diagnostics[0].code == "STM5203"
    data = jax.random.key_data(key)
    stmlang.export(lambda data: jax.random.normal(jax.random.wrap_key_data(data), (3,)), data, path)
    loaded = stmlang.load(path)
    np.testing.assert_allclose(loaded(data), jax.random.normal(key, (3,)), rtol=1e-6)
    with pytest.raises(stmlang.SpecError, match="key_data") as error:
        loaded(key)
    assert error.value.diagnostics[0].code == "STM5311"


def test_arguments_that_do_not_fit_are_refused(loaded: stmlang.LoadedModel) -> None:
    inputs, scale = inputs_of(2)
    for given, named, code, text in [
        ((inputs,), {}, "STM5312", "takes 1 argument, `scale`; given were 1"),
        ((inputs, 1), {"scale": scale}, "STM5312", "given were 2"),
        (({"x": inputs["x"]},), {"scale": scale}, "STM5312", "given was a dictionary of"),
        ((inputs["x"],), {"scale": scale}, "STM5312", "argument 0 of artifact"),
        (({**inputs, "x": [1.0]},), {"scale": scale}, "STM5312", r'argument 0\["x"\] of artifact .* given was a list of 1'),
        (({**inputs, "x": np.float64(inputs["x"])},), {"scale": scale}, "STM5311", "is float32; given was float64"),
        (({**inputs, "x": inputs["x"][:, :3]},), {"scale": scale}, "STM5312", r"has the shape \(batch, 5, 3\)"),
        ((inputs,), {"scale": scale[0]}, "STM5312", r"`scale` of artifact .* has the shape \(batch\)"),
        ((inputs,), {"scale": scale[:1]}, "STM5312", "one batch size"),
        ((jax.tree.map(lambda array: array[:0], inputs),), {"scale": scale[:0]}, "STM5312", "at least 1"),
    ]:
        with pytest.raises(stmlang.SpecError, match=text) as error:
            loaded(*given, **named)
        assert error.value.diagnostics[0].code == code


@pytest.mark.parametrize(
    ("member", "old", "new"),
    [
        ("weights.npz", b"NUMPY", b"numpy"),
        ("graphs.json", b"{", b"{ "),
        ("manifest.json", b'"dtype": "float32"', b'"dtype": "float16"'),
        ("manifest.json", b'"kind": "model"', b'"kind": "scan"'),
        ("manifest.json", b'"is": "array"', b'"is": "Mode"'),
    ],
)
def test_damage_is_told(path: Path, tmp_path: Path, member: str, old: bytes, new: bytes) -> None:
    (tmp_path / "bad.stmx").write_bytes(rewritten(path, member, old, new))
    with pytest.raises(stmlang.SpecError) as error:
        stmlang.load(tmp_path / "bad.stmx")
    assert error.value.diagnostics[0].code in ("STM5303", "STM5304")


def test_what_an_artifact_says_of_itself(path: Path) -> None:
    from stmlang.runtime.describe import described

    found = described(path)
    assert found["kind"] == "model"
    assert found["platforms"] == ["cpu", "cuda"]
    assert found["signature"].startswith('({"mask": bool[5], "x": float32[5, 3]}, scale=float32[]) -> ')
    json.dumps(found)


def test_tables_that_another_version_would_make_are_refused(tmp_path: Path) -> None:
    """The program was made for other tables than this recipe gives."""
    op = stmlang.compile("std:plstm/graph_p", strategy="recurrent", **SIZES)
    given = batch([ragged_dag(3, np.array([0, 1]), np.array([1, 2]))])
    layer = ScanLayer(op, 3, edge_dim=2, key=jax.random.key(0))
    struct = jax.ShapeDtypeStruct
    example = (struct((given.bucket.nodes, 3), "float32"), struct((given.bucket.edges, 2), "float32"), op.at(given))
    path = tmp_path / "layer.stmx"
    stmlang.export(lambda x, e, on: layer(x, edge_features=e, on=on), example, path, differentiable=False)
    loaded = stmlang.load(path)
    assert isinstance(loaded, stmlang.LoadedModel)
    x, e = (np.ones(part.shape, np.float32) for part in example[:2])
    np.testing.assert_allclose(loaded(x, e, given), layer(x, edge_features=e, on=op.at(given)), atol=1e-5)
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    graphs, manifest = json.loads(found["graphs.json"]), json.loads(found["manifest.json"])
    graphs["recipes"][0]["digest"] = "0" * 64
    found["graphs.json"] = json.dumps(graphs).encode()
    manifest["sha256"]["graphs.json"] = hashlib.sha256(found["graphs.json"]).hexdigest()
    found["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in found.items():
            archive.writestr(name, content)
    with pytest.raises(stmlang.SpecError, match="written by another version of stmlang") as error:
        stmlang.load(path)
    assert error.value.diagnostics[0].code == "STM5305"
