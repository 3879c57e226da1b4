"""What an artifact says of itself, compared with what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any

from stmlang.plan.store import plan_from_json
from stmlang.runtime.archive import opened
from stmlang.runtime.loaded import LoadedScan
from stmlang.runtime.loaded_graphs import LoadedGraphScan
from stmlang.runtime.loaded_model import LoadedModel
from stmlang.runtime.loaded_scans import LoadedScans
from stmlang.runtime.loading import load
from stmlang.runtime.options import file_path
from stmlang.runtime.reading import running_platform


def described(path: str | PathLike[str]) -> dict[str, Any]:
    """An artifact in plain values: its kind, platforms, batch, versions, the bytes of its members unpacked, whether it runs on
    this machine; of a scan its source, data type, shapes and plan, for each of its `parts` where it has several programs, of a
    model what it takes and returns, how many parameters it has, and the scans and graphs that it is made of.

    Raises SpecError as `stmlang.load` does: nothing is reported that was not found to be as it was written.
    """
    place = file_path(path)
    loaded = load(place)
    manifest = loaded.manifest
    with opened(place) as archive:
        members = {entry.filename: entry.file_size for entry in archive.infolist()}
    platform = running_platform()
    runs = platform in manifest["platforms"]
    return {
        "kind": manifest["kind"],
        "file": str(place),
        "bytes": place.stat().st_size,
        "format": manifest["format"],
        "platforms": manifest["platforms"],
        "versions": {str(name): str(version) for name, version in manifest["versions"].items()},
        "members": members,
        "runs_here": runs,
        "why_not": None if runs else f"JAX runs on {platform} on this machine",
        **_own(loaded),
    }


def _own(loaded: LoadedScan | LoadedScans | LoadedGraphScan | LoadedModel) -> dict[str, Any]:
    match loaded:
        case LoadedScan():
            return {**_program(loaded.manifest), **_scan(loaded.manifest, loaded.plan)}
        case LoadedModel():
            return {**_program(loaded.manifest), **_model(loaded)}
        case _:
            parts = [{**_program(part.manifest), **_scan(part.manifest, part.plan)} for part in loaded.parts]
            return {"scan": parts[0]["scan"], "source": parts[0]["source"], "parts": parts}


def _program(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "platforms": manifest["platforms"],
        "batch": manifest["batch"],
        "differentiable": bool(manifest.get("differentiable")),
    }


def _scan(manifest: Mapping[str, Any], stored: str) -> dict[str, Any]:
    plan = plan_from_json(stored)
    return {
        "scan": str(manifest.get("scan")),
        "source": str(manifest.get("source")),
        "bucket": manifest.get("bucket"),
        "with_state": manifest["with_state"],
        "step": manifest.get("step") is not None,
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
