"""What an artifact says of itself, compared with what is in it."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

import jax

from stmlang.plan.store import plan_from_json
from stmlang.runtime.archive import opened
from stmlang.runtime.loaded import LoadedScan
from stmlang.runtime.loaded_model import LoadedModel
from stmlang.runtime.loading import load
from stmlang.runtime.options import file_path


def described(path: str | PathLike[str]) -> dict[str, Any]:
    """An artifact in plain values: its kind, `scan` or `model`, platforms, batch, versions, the bytes of its members unpacked,
    whether it runs on this machine; of a scan its source, data type, shapes and plan, of a model what it takes and returns, how
    many parameters it has, and the scans and graphs that it is made of.

    Raises SpecError as `stmlang.load` does: nothing is reported that was not found to be as it was written.
    """
    place = file_path(path)
    loaded = load(place)
    manifest = loaded.manifest
    with opened(place) as archive:
        members = {entry.filename: entry.file_size for entry in archive.infolist()}
    backend = jax.default_backend()
    platform = {"gpu": "cuda"}.get(backend, backend)
    runs = platform in manifest["platforms"]
    return {
        "kind": manifest["kind"],
        "file": str(place),
        "bytes": place.stat().st_size,
        "format": manifest["format"],
        "platforms": manifest["platforms"],
        "batch": manifest["batch"],
        "differentiable": bool(manifest.get("differentiable")),
        "versions": {str(name): str(version) for name, version in manifest["versions"].items()},
        "members": members,
        "runs_here": runs,
        "why_not": None if runs else f"JAX runs on {platform} on this machine",
        **(_scan(loaded) if isinstance(loaded, LoadedScan) else _model(loaded)),
    }


def _scan(loaded: LoadedScan) -> dict[str, Any]:
    manifest, plan = loaded.manifest, plan_from_json(loaded.plan)
    return {
        "scan": str(manifest.get("scan")),
        "source": str(manifest.get("source")),
        "with_state": manifest["with_state"],
        "step": loaded.steps is not None,
        "signature": json.loads(json.dumps(manifest["signature"])),
        "target": plan.target.name,
        "strategy": plan.strategy,
        "config": plan.config,
        "predicted_seconds": plan.chosen.seconds,
    }


def _model(loaded: LoadedModel) -> dict[str, Any]:
    learned = [array for array in loaded.weights if array.dtype.kind not in "iub"]
    return {
        "model": str(loaded.manifest.get("model")),
        "parameters": sum(array.size for array in learned),
        "graphs": dict(loaded.sizes),
        "scans": [{"scan": recipe.scan.name, "strategy": recipe.choice.strategy} for recipe in loaded.recipes],
        "signature": loaded.signature,
    }
