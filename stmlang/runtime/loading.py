"""Loading an artifact. Nothing in the file is executed or unpickled, and nothing that it says is believed before it was
compared with the rest of it. A scan and a model run without the text that they were made of, and without Equinox."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, cast

import jax
import jax.export

from stmlang.runtime.archive import damaged, manifest_text, members_of, opened
from stmlang.runtime.artifact import FORMAT, MEMBERS, MODEL_MEMBERS, PLATFORMS, STEP_MEMBERS
from stmlang.runtime.loaded import LoadedScan, scan_from
from stmlang.runtime.loaded_model import LoadedModel, model_from
from stmlang.runtime.options import file_path
from stmlang.runtime.signature import call_error
from stmlang.source.diagnostic import SpecError

AGAIN = {
    "scan": "compile the spec again: its source is in the artifact, as `source.stm`",
    "model": "export the model again",
}


def load(path: str | PathLike[str]) -> LoadedScan | LoadedModel:
    """Read an artifact of a scan or of a model. Nothing in the file is executed or unpickled.

    Raises SpecError: STM5303 where the file cannot be read or is no artifact, STM5304 where it is damaged, STM5305 where
    it was written by a version that this one cannot run.
    """
    place = file_path(path)
    with opened(place) as archive:
        manifest = _manifest(place, manifest_text(place, archive))
        names = MEMBERS if manifest["kind"] == "scan" else MODEL_MEMBERS
        names = (*names, *STEP_MEMBERS.values()) if manifest.get("step") is not None else names
        members = members_of(place, archive, names)
    for member in names:
        if hashlib.sha256(members[member]).hexdigest() != manifest["sha256"].get(member):
            raise damaged(place, f"`{member}` is not what was written")
    made = scan_from if manifest["kind"] == "scan" else model_from
    try:
        return made(str(place), manifest, members)
    except SpecError:
        raise
    except Exception as error:  # the parts come from a stranger: what reading them raises is of any kind
        raise damaged(place, (str(error) or type(error).__name__).partition("\n")[0]) from None


def _manifest(path: Path, content: bytes) -> dict[str, Any]:
    """What the artifact says of itself. The format comes first: another one may have anything behind it."""
    try:
        manifest = json.loads(content)
        format = manifest["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(path, "its manifest cannot be read") from None
    if not _is_whole(format) or format != FORMAT:
        message = f"artifact `{path}` has format {format!r:.40}; this version of stmlang reads format {FORMAT}"
        raise call_error("STM5305", message, help=AGAIN["scan"])
    for name, holds in {**_FIELDS, **_FIELDS_OF.get(str(manifest.get("kind")), {})}.items():
        if name not in manifest:
            raise damaged(path, f"its manifest lacks `{name}`")
        if not holds(manifest[name]):
            raise damaged(path, f"`{name}` in its manifest cannot be {manifest[name]!r:.40}")
    _check_versions(path, manifest)
    return manifest


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_platforms(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(name, str) and name in PLATFORMS.values() for name in cast(list[Any], value))


def _is_batch(value: Any) -> bool:
    return value is None or value == "symbolic" or (_is_whole(value) and value > 0)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_kind(value: Any) -> bool:
    return value in ("scan", "model")


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "kind": _is_kind,
    "versions": _is_object,
    "calling_convention": _is_whole,
    "platforms": _is_platforms,
    "batch": _is_batch,
    "signature": _is_object,
    "sha256": _is_object,
}
"""What a manifest must hold, and what each entry may be."""
_FIELDS_OF: dict[str, dict[str, Callable[[Any], bool]]] = {"scan": {"with_state": _is_flag}, "model": {"weights": _is_list}}


def _check_versions(path: Path, manifest: Mapping[str, Any]) -> None:
    low = jax.export.minimum_supported_calling_convention_version
    high = jax.export.maximum_supported_calling_convention_version
    written = manifest["calling_convention"]
    if not low <= written <= high:
        raise call_error(
            "STM5305",
            f"artifact `{path}` was written by jax {manifest['versions'].get('jax')} with calling convention {written}; "
            f"jax {jax.__version__} runs {low} to {high}",
            help=AGAIN[manifest["kind"]],
        )
