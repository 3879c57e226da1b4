"""What an artifact says of itself, for people and for programs."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from stmlang.runtime.loaded import LoadedScan
from stmlang.runtime.loading import load


def describe(path: str | PathLike[str]) -> dict[str, Any]:
    """An artifact's kind, name, platforms, batch, versions and signature, as JSON values; of a scan the file of its spec, of a
    model how many parameters it has and what graphs it is for. The file is read whole, and believed only as far as
    `stmlang.load` does. Raises SpecError as that does."""
    found = load(path)
    manifest = found.manifest
    told: dict[str, Any] = {
        "kind": manifest["kind"],
        "path": found.path,
        "bytes": Path(found.path).stat().st_size,
        "format": manifest["format"],
        "versions": manifest["versions"],
        "platforms": manifest["platforms"],
        "batch": manifest["batch"],
        "differentiable": manifest.get("differentiable"),
    }
    if isinstance(found, LoadedScan):
        arguments = {**found.signature.inputs, **found.signature.gates}
        shown = ", ".join(f"{name}={found.signature.dtype}{list(shape)}" for name, shape in arguments.items())
        told |= {"name": manifest.get("scan"), "source": manifest.get("source"), "with_state": manifest["with_state"]}
        return {**told, "signature": f"({shown}) -> {found.signature.dtype}{list(found.signature.result)}"}
    learned = [array for array in found.weights if array.dtype.kind not in "iub"]
    return {
        **told,
        "name": manifest.get("model"),
        "parameters": sum(array.size for array in learned),
        "graphs": dict(found.sizes),
        "scans": [{"scan": recipe.scan.name, "strategy": recipe.strategy} for recipe in found.recipes],
        "signature": found.signature,
    }
