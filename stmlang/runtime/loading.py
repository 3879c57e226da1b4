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
from stmlang.runtime.artifact import FORMATS, GRAPH_MEMBERS, MEMBERS, MODEL_MEMBERS, PLATFORMS, STEP_MEMBERS
from stmlang.runtime.loaded import LoadedScan, scan_from
from stmlang.runtime.loaded_graphs import LoadedGraphScan, graphs_from
from stmlang.runtime.loaded_model import LoadedModel, model_from
from stmlang.runtime.loaded_scans import LoadedScans, scans_from
from stmlang.runtime.options import file_path
from stmlang.runtime.signature import call_error
from stmlang.source.diagnostic import SpecError

AGAIN = {
    "scan": "compile the spec again: its source is in the artifact, as `source.stm`",
    "model": "export the model again",
}


def load(path: str | PathLike[str]) -> LoadedScan | LoadedScans | LoadedGraphScan | LoadedModel:
    """Read an artifact of a scan or of a model. Nothing in the file is executed or unpickled.

    A scan in one program is a `LoadedScan`, one in several, for several batch sizes or platforms, `LoadedScans`, one whose
    graphs come at run time a `LoadedGraphScan`. Raises SpecError: STM5303 where the file cannot be read or is no artifact,
    STM5304 where it is damaged, STM5305 where it was written by a version that this one cannot run.
    """
    place = file_path(path)
    with opened(place) as archive:
        manifest = _manifest(place, manifest_text(place, archive))
        names = _names(manifest)
        members = members_of(place, archive, names)
    for member in names:
        if hashlib.sha256(members[member]).hexdigest() != manifest["sha256"].get(member):
            raise damaged(place, f"`{member}` is not what was written")
    try:
        return _KINDS[manifest["kind"]](str(place), manifest, members)
    except SpecError:
        raise
    except Exception as error:  # the parts come from a stranger: what reading them raises is of any kind
        raise damaged(place, (str(error) or type(error).__name__).partition("\n")[0]) from None


_KINDS: dict[str, Callable[..., Any]] = {
    "scan": scan_from,
    "scans": scans_from,
    "graphs": graphs_from,
    "model": model_from,
}


def _names(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """The members that an artifact has beside its manifest."""
    if "parts" in _FIELDS_OF[manifest["kind"]]:
        return tuple(dict.fromkeys(place for part in manifest["parts"] for place in part["members"].values()))
    return _own_names(manifest["kind"], manifest)


def _own_names(kind: str, described: Mapping[str, Any]) -> tuple[str, ...]:
    """The members of one part."""
    names = {"model": MODEL_MEMBERS, "graphs": GRAPH_MEMBERS}.get(kind, MEMBERS)
    return (*names, *STEP_MEMBERS.values()) if described.get("step") is not None else names


def _manifest(path: Path, content: bytes) -> dict[str, Any]:
    """What the artifact says of itself. The format comes first: another one may have anything behind it."""
    try:
        manifest = json.loads(content)
        format = manifest["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(path, "its manifest cannot be read") from None
    if not _is_whole(format) or format not in FORMATS:
        read = f"formats {FORMATS[0]} to {FORMATS[-1]}"
        message = f"artifact `{path}` has format {format!r:.40}; this version of stmlang reads {read}"
        raise call_error("STM5305", message, help=AGAIN["scan"])
    kind = str(manifest.get("kind"))
    _check_fields(path, manifest, {**_FIELDS, **_FIELDS_OF.get(kind, {})}, "its manifest")
    for number, part in enumerate(cast(list[Any], manifest["parts"]) if "parts" in _FIELDS_OF[kind] else []):
        where = f"part {number} of its manifest"
        if not isinstance(part, dict):
            raise damaged(path, f"{where} is no object")
        described = cast(dict[str, Any], part)
        _check_fields(path, described, {**_PART, **({"bucket": _is_object} if kind == "graphs" else {})}, where)
        places = cast(dict[str, Any], described["members"])
        if set(places) != set(_own_names(kind, described)) or not all(isinstance(place, str) for place in places.values()):
            raise damaged(path, f"{where} has other members than such a part")
    _check_versions(path, manifest)
    return manifest


def _check_fields(path: Path, entries: Mapping[str, Any], fields: Mapping[str, Callable[[Any], bool]], where: str) -> None:
    for name, holds in fields.items():
        if name not in entries:
            raise damaged(path, f"{where} lacks `{name}`")
        if not holds(entries[name]):
            raise damaged(path, f"`{name}` in {where} cannot be {entries[name]!r:.40}")


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


def _is_parts(value: Any) -> bool:
    return isinstance(value, list) and bool(cast(list[Any], value))


def _is_kind(value: Any) -> bool:
    return isinstance(value, str) and value in _FIELDS_OF


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "kind": _is_kind,
    "versions": _is_object,
    "calling_convention": _is_whole,
    "platforms": _is_platforms,
    "sha256": _is_object,
}
"""What a manifest must hold, and what each entry may be."""
_PROGRAM: dict[str, Callable[[Any], bool]] = {"batch": _is_batch, "signature": _is_object}
_FIELDS_OF: dict[str, dict[str, Callable[[Any], bool]]] = {
    "scan": {**_PROGRAM, "with_state": _is_flag},
    "scans": {"parts": _is_parts},
    "graphs": {"parts": _is_parts},
    "model": {**_PROGRAM, "weights": _is_list},
}
_PART = {**_FIELDS_OF["scan"], "platforms": _is_platforms, "members": _is_object}


def _check_versions(path: Path, manifest: Mapping[str, Any]) -> None:
    low = jax.export.minimum_supported_calling_convention_version
    high = jax.export.maximum_supported_calling_convention_version
    written = manifest["calling_convention"]
    if not low <= written <= high:
        raise call_error(
            "STM5305",
            f"artifact `{path}` was written by jax {manifest['versions'].get('jax')} with calling convention {written}; "
            f"jax {jax.__version__} runs {low} to {high}",
            help=AGAIN["model" if manifest["kind"] == "model" else "scan"],
        )
