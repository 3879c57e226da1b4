"""Parameters in safetensors files."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import stmlang
from stmlang.models.parts import Perceptron
from stmlang.models.vision import ImageModel, plstm_vis
from stmlang.models.weights import load, save


def tiny(seed: int = 0, **options: Any) -> ImageModel:
    sizes = {"heads": 2, "depth": 2, "classes": 3, "channels": 1, "patch": 2, "size": (6, 4), "expansion": 2}
    return plstm_vis(16, **{**sizes, **options}, key=jax.random.key(seed))


def shapes(**options: Any) -> ImageModel:
    return eqx.filter_eval_shape(partial(tiny, **options))


def refused(model: Any, path: Path) -> str:
    with pytest.raises(stmlang.SpecError) as error:
        load(model, path)
    assert error.value.diagnostics[0].code == "STM5315"
    return str(error.value)


def test_back_and_forth(tmp_path: Path) -> None:
    """Into a model that started elsewhere, and into one of shapes that never was in memory."""
    model = tiny()
    save(model, tmp_path / "tiny.safetensors")
    assert eqx.tree_equal(load(tiny(1), tmp_path / "tiny.safetensors"), model)
    loaded = load(shapes(), tmp_path / "tiny.safetensors")
    assert eqx.tree_equal(eqx.filter(loaded, eqx.is_array), eqx.filter(model, eqx.is_array))


def test_names_and_metadata_are_for_other_readers(tmp_path: Path) -> None:
    save(tiny(), tmp_path / "tiny.safetensors")
    arrays = load_file(tmp_path / "tiny.safetensors")
    assert arrays["stacked.0.layer.into.weight"].shape == (1, 48, 16)
    assert arrays["stacked.2.layer.gates.weight.source"].shape == (1, 2, 4, 2, 2)
    content = (tmp_path / "tiny.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert set(json.loads(header["__metadata__"]["scans"])) == {"stacked.0.layer.op", "stacked.2.layer.op"}


def test_order_does_not_count(tmp_path: Path) -> None:
    """And what another program wrote has no scans, which are not asked for then."""
    model = Perceptron(2, 3, key=jax.random.key(0))
    arrays = {
        "up.weight": model.up.weight,
        "down.bias": model.down.bias,
        "up.bias": model.up.bias,
        "down.weight": model.down.weight,
    }
    save_file({name: np.asarray(array) for name, array in reversed(arrays.items())}, tmp_path / "other.safetensors")
    assert load(Perceptron(2, 3, key=jax.random.key(1)), tmp_path / "other.safetensors") == model


def test_narrow_parameters(tmp_path: Path) -> None:
    model = jax.tree.map(lambda array: array.astype(jnp.bfloat16), Perceptron(2, 3, key=jax.random.key(0)))
    save(model, tmp_path / "narrow.safetensors")
    assert load(model, tmp_path / "narrow.safetensors") == model
    said = refused(Perceptron(2, 3, key=jax.random.key(0)), tmp_path / "narrow.safetensors")
    assert "`up.weight` is bfloat16[3, 2] in the file and float32[3, 2] in the model" in said


def test_both_sides_of_a_mismatch_are_named(tmp_path: Path) -> None:
    path = tmp_path / "tiny.safetensors"
    save(tiny(), path)
    assert "`position` is float32[3, 2, 16] in the file and missing in the model" in refused(shapes(size=None), path)
    assert "`position` is float32[3, 2, 16] in the file and float32[2, 2, 16] in the model" in refused(
        shapes(size=(4, 4)), path
    )
    assert "`stacked.0.scale` is missing in the file and float32[1, 16] in the model" in refused(shapes(layer_scale=1.0), path)
    assert "more" in refused(shapes(classes=4, expansion=3, size=None, layer_scale=1.0), path)


def test_scans_are_compared(tmp_path: Path) -> None:
    """Parameters of all the same shapes, learned for the authors' P-mode."""
    model = tiny(modes=("P",))
    save(model, tmp_path / "p.safetensors")
    authors = stmlang.compile("std:plstm/image_p_reference", heads=2, key=8, value=8)
    other = eqx.tree_at(
        lambda model: model.stacked[0].layer.op, model, authors, is_leaf=lambda node: node is model.stacked[0].layer.op
    )
    said = refused(other, tmp_path / "p.safetensors")
    assert "`stacked.0.layer.op` is scan " in said
    assert "`stacked.0.layer.into" not in said


def test_another_resolution_in_one_call(tmp_path: Path) -> None:
    save(tiny(), tmp_path / "tiny.safetensors")
    larger = load(shapes(), tmp_path / "tiny.safetensors").at(8, 12)
    assert larger.position is not None
    save(larger, tmp_path / "larger.safetensors")
    assert load(shapes(size=(8, 12)), tmp_path / "larger.safetensors").position.shape == (4, 6, 16)


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "cut.safetensors").write_bytes(b"\x20\0\0\0\0\0\0\0{}")
    for name, said in (("cut.safetensors", "no safetensors file"), ("none.safetensors", "cannot read")):
        with pytest.raises(stmlang.SpecError, match=said):
            load(shapes(), tmp_path / name)
    with pytest.raises(stmlang.SpecError, match="cannot write"):
        save(Perceptron(2, 3, key=jax.random.key(0)), tmp_path / "folder" / "model.safetensors")


def test_a_file_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails on the way leaves the old file, and nothing beside it."""
    path, model = tmp_path / "model.safetensors", Perceptron(2, 3, key=jax.random.key(0))
    save(model, path)
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(stmlang.SpecError, match="cannot write"):
        save(Perceptron(2, 3, key=jax.random.key(1)), path)
    monkeypatch.undo()
    assert load(model, path) == model
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.safetensors"]
