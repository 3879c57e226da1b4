"""Artifacts: written for any platform, read anywhere, run only where they fit, never trusted."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.plan.store import plan_from_json
from stmlang.runtime.compiled import CompiledScan

Arguments = tuple[Any, Any, Any, Any]


@pytest.fixture(scope="module")
def op() -> CompiledScan:
    return stmlang.compile("std:plstm/image_p", rows=3, cols=2, heads=2, key=4, value=3)


@pytest.fixture(scope="module")
def path(op: CompiledScan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("artifacts") / "op.stmx"
    op.export(path)
    return path


def batch(op: CompiledScan, size: int) -> Arguments:
    return jax.tree.map(lambda *arrays: jnp.stack(arrays), *(op.example(seed) for seed in range(size)))


def code(error: pytest.ExceptionInfo[stmlang.SpecError]) -> str:
    (diagnostic,) = error.value.diagnostics
    return diagnostic.code


@pytest.mark.parametrize("size", [1, 2, 5])
def test_any_batch_size_gives_what_the_scan_gives(op: CompiledScan, path: Path, size: int) -> None:
    loaded, arguments = stmlang.load(path), batch(op, size)
    np.testing.assert_allclose(loaded(*arguments), jax.vmap(op)(*arguments), atol=1e-6)


def test_it_can_be_differentiated_once(op: CompiledScan, path: Path) -> None:
    loaded, (q, k, v, gates) = stmlang.load(path), batch(op, 2)
    ours = jax.grad(lambda q, gates: loaded(q, k, v, gates).sum(), argnums=(0, 1))(q, gates)
    theirs = jax.grad(lambda q, gates: jax.vmap(op)(q, k, v, gates).sum(), argnums=(0, 1))(q, gates)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), ours, theirs)


@pytest.mark.parametrize("size", [None, 3])
def test_unbatched_and_fixed(op: CompiledScan, tmp_path: Path, size: int | None) -> None:
    op.export(tmp_path / "op.stmx", batch=size)
    loaded = stmlang.load(tmp_path / "op.stmx")
    arguments = op.example() if size is None else batch(op, 3)
    expected = op(*arguments) if size is None else jax.vmap(op)(*arguments)
    np.testing.assert_allclose(loaded(*arguments), expected, atol=1e-6)
    with pytest.raises(stmlang.SpecError) as error:
        loaded(*batch(op, 4))
    assert code(error) == "STM5312"


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_types_are_never_promoted(tmp_path: Path, dtype: str) -> None:
    """Where JAX is asked to refuse every promotion, artifacts of other types are written, stepped and called still."""
    with jax.numpy_dtype_promotion("strict"), jax.enable_x64(dtype == "float64"):
        op = stmlang.compile("std:plstm/chain", time=3, heads=1, key=2, value=2, dtype=dtype)
        op.export(tmp_path / "op.stmx", batch=None, step=True)
        loaded, (q, k, v, gates) = stmlang.load(tmp_path / "op.stmx"), op.example(0)
        np.testing.assert_array_equal(loaded(q, k, v, gates), op(q, k, v, gates))
        assert {array.dtype.itemsize for array in jax.tree.leaves(loaded.init_state())} == {8 if dtype == "float64" else 4}


def test_several_writes_and_reads_go_in_and_out(tmp_path: Path) -> None:
    op = stmlang.compile("std:plstm/image_tracking", rows=2, cols=3, heads=1, key=3, value=2, track=2, writes=3)
    op.export(tmp_path / "op.stmx")
    loaded, arguments = stmlang.load(tmp_path / "op.stmx"), batch(op, 2)
    h = loaded(*arguments)
    assert h.shape == (2, 2, 3, 1, 2, 2)
    np.testing.assert_allclose(h, jax.vmap(op)(*arguments), atol=1e-6)


def test_states_go_in_and_out(tmp_path: Path) -> None:
    op = stmlang.compile("std:plstm/chain", time=5, key=3, value=2)
    op.export(tmp_path / "op.stmx", with_state=True)
    loaded, arguments = stmlang.load(tmp_path / "op.stmx"), batch(op, 2)
    state = jax.tree.map(lambda array: jnp.ones((2, *array.shape), array.dtype), op.zero_state())
    h, final = loaded(*arguments, initial=state)
    expected, after = jax.vmap(lambda *given: op(*given, return_state=True))(*arguments, state)
    np.testing.assert_allclose(h, expected, atol=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), final, after)
    with pytest.raises(stmlang.SpecError) as error:
        loaded(*arguments)
    assert code(error) == "STM5313"


def test_ragged_topologies_bring_their_tables(tmp_path: Path) -> None:
    for strategy in ("recurrent", "parallel"):
        op = stmlang.compile("std:plstm/dag_p", strategy=strategy, key=3, value=2)
        op.export(tmp_path / "op.stmx")
        arguments = batch(op, 2)
        np.testing.assert_allclose(stmlang.load(tmp_path / "op.stmx")(*arguments), jax.vmap(op)(*arguments), atol=1e-6)


def test_a_gpu_program_is_made_without_a_gpu(op: CompiledScan, tmp_path: Path) -> None:
    op.export(tmp_path / "op.stmx", platforms=["gpu"])
    loaded = stmlang.load(tmp_path / "op.stmx")
    assert loaded.manifest["platforms"] == ["cuda"]
    assert "stablehlo" in loaded.stablehlo
    if jax.default_backend() == "cpu":
        with pytest.raises(stmlang.SpecError, match="compiled for cuda; JAX runs on cpu") as error:
            loaded(*batch(op, 1))
        assert code(error) == "STM5310"


def test_it_says_what_it_is(op: CompiledScan, path: Path) -> None:
    loaded = stmlang.load(path)
    assert loaded.source == op.scan.span.file.text
    assert loaded.signature == op.signature
    assert plan_from_json(loaded.plan) == op.plan_for(1, "inference")
    assert loaded.manifest["versions"]["jax"] == jax.__version__
    assert loaded.manifest["differentiable"]


def test_the_same_scan_gives_the_same_bytes(op: CompiledScan, path: Path, tmp_path: Path) -> None:
    op.export(tmp_path / "again.stmx")
    assert (tmp_path / "again.stmx").read_bytes() == path.read_bytes()


def wrong_arguments() -> dict[str, tuple[str, Any]]:
    return {
        "shape": ("STM5312", lambda q, k, v, g: (q[:, :2], k, v, g)),
        "unbatched": ("STM5312", lambda q, k, v, g: (q[0], k[0], v[0], jax.tree.map(lambda a: a[0], g))),
        "two batch sizes": ("STM5312", lambda q, k, v, g: (q, k[:1], v, g)),
        "data type": ("STM5311", lambda q, k, v, g: (q.astype(jnp.bfloat16), k, v, g)),
        "numbers": ("STM5311", lambda _, k, v, g: (1.0, k, v, g)),
        "missing leaf": ("STM5312", lambda q, k, v, g: (q, k, v, {"mark": g["mark"]})),
    }


@pytest.mark.parametrize("name", wrong_arguments())
def test_other_arguments_are_refused(op: CompiledScan, path: Path, name: str) -> None:
    expected, spoil = wrong_arguments()[name]
    with pytest.raises(stmlang.SpecError) as error:
        stmlang.load(path)(*spoil(*batch(op, 2)))
    assert code(error) == expected


def rewritten(path: Path, change: Any) -> bytes:
    """The archive with its members changed: `change` maps names to contents, in place."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def manifest_with(**changes: Any) -> Any:
    def change(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        members["manifest.json"] = json.dumps(manifest | changes).encode()

    return change


def spoiled() -> dict[str, tuple[str, Any]]:
    def flip(members: dict[str, bytes]) -> None:
        content = bytearray(members["program.bin"])
        content[len(content) // 2] ^= 1
        members["program.bin"] = bytes(content)

    return {
        "tampered program": ("STM5304", lambda path: rewritten(path, flip)),
        "tampered source": ("STM5304", lambda path: rewritten(path, lambda m: m.update({"source.stm": b"x"}))),
        "missing member": ("STM5303", lambda path: rewritten(path, lambda m: m.pop("tables.npz"))),
        "no json": ("STM5304", lambda path: rewritten(path, lambda m: m.update({"manifest.json": b"{"}))),
        "json of another kind": ("STM5304", lambda path: rewritten(path, lambda m: m.update({"manifest.json": b"[]"}))),
        "empty manifest": ("STM5304", lambda path: rewritten(path, lambda m: m.update({"manifest.json": b'{"format": 2}'}))),
        "another format": ("STM5305", lambda path: rewritten(path, manifest_with(format=99))),
        "another calling convention": ("STM5305", lambda path: rewritten(path, manifest_with(calling_convention=1))),
        "truncated": ("STM5303", lambda path: path.read_bytes()[:-100]),
        "cut in the middle": ("STM5303", lambda path: path.read_bytes()[:2000]),
        "empty": ("STM5303", lambda _: b""),
        "text": ("STM5303", lambda _: b"scan s on chain(t) {}"),
        "pickle": ("STM5303", lambda _: b"\x80\x04N."),
    }


@pytest.mark.parametrize("name", spoiled())
def test_what_is_damaged_is_refused(path: Path, tmp_path: Path, name: str) -> None:
    expected, spoil = spoiled()[name]
    damaged = tmp_path / "damaged.stmx"
    damaged.write_bytes(spoil(path))
    with pytest.raises(stmlang.SpecError) as error:
        stmlang.load(damaged)
    assert code(error) == expected


def test_missing_files_and_folders(op: CompiledScan, tmp_path: Path) -> None:
    for target in (tmp_path / "none.stmx", tmp_path):
        with pytest.raises(stmlang.SpecError) as error:
            stmlang.load(target)
        assert code(error) == "STM5303"
    folder = tmp_path / "folder"
    folder.mkdir()
    for target in (tmp_path / "no" / "such" / "folder.stmx", folder):
        with pytest.raises(stmlang.SpecError) as error:
            op.export(target)
        assert code(error) == "STM5302"
    with pytest.raises(stmlang.SpecError) as error:
        op.export(tmp_path / "op.stmx", platforms=["abacus"])
    assert code(error) == "STM5301"
    assert list(tmp_path.iterdir()) == [folder]
