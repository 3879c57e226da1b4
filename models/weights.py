"""Parameters of models in safetensors files: by name, shape and data type, with the scans that they were learned for. Takes the
extra `safetensors`.

save(model, "model.safetensors")
model = load(plstm_vis_t(key=key), "model.safetensors")        # then `.at(384, 384)` for another resolution
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from stmlang.plan.tuned import fingerprint
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.graphs import GraphScan
from stmlang.runtime.open import OpenScan
from stmlang.runtime.options import file_path
from stmlang.runtime.signature import call_error
from stmlang.source.writing import written_whole

Model = TypeVar("Model")
SCANS = (CompiledScan, OpenScan, GraphScan)
SHOWN = 8
"""Differences that an error lists."""


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write the parameters of a model, atomically: each under its name, such as `stacked.0.layer.into.weight`, and in the
    metadata, under `scans`, the hash of each scan's text without its sizes.

    Raises SpecError (STM5302) where the file cannot be written.
    """
    from safetensors.numpy import save as packed  # an extra

    target = file_path(path)
    arrays = {name: np.ascontiguousarray(array) for name, array in _parameters(model).items()}
    content = packed(arrays, {"scans": json.dumps(_scans(model), sort_keys=True)})
    try:
        with written_whole(target) as stream:
            stream.write(content)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise call_error("STM5302", f"cannot write `{target}`: {reason}", help="check its folder and its permissions") from None


def load(model: Model, path: str | PathLike[str]) -> Model:
    """The model with the parameters in a file that `save` wrote, or any other safetensors file with the same names.

    Names, shapes, data types and scans have to be those of the model, whatever their order; a file without metadata is not
    asked for its scans. Raises SpecError: STM5303 for what is no such file, STM5315 where anything differs, with both sides.
    """
    source, wanted = file_path(path), _parameters(model)
    arrays, metadata = _read(source)
    theirs = {name: _kind(array) for name, array in arrays.items()}
    differences = _differences({name: _kind(array) for name, array in wanted.items()}, theirs)
    if "scans" in metadata:
        differences += _differences(_scans(model), json.loads(metadata["scans"]))
    if differences:
        listed = "; ".join(differences[:SHOWN]) + (f"; and {len(differences) - SHOWN} more" if len(differences) > SHOWN else "")
        help = "make the model as it was made when the file was written; a model of images has `.at(height, width)` then"
        raise call_error("STM5315", f"`{source}` holds the parameters of another model: {listed}", help=help)

    def replaced(place: Any, leaf: Any) -> Any:
        return jnp.asarray(arrays[_name(place)]) if _is_parameter(leaf) else leaf

    return cast(Model, jax.tree_util.tree_map_with_path(replaced, model))


def _differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """What differs, name by name."""
    names = [*ours, *(name for name in theirs if name not in ours)]
    return [
        f"`{name}` is {theirs.get(name, 'missing')} in the file and {ours.get(name, 'missing')} in the model"
        for name in names
        if ours.get(name) != theirs.get(name)
    ]


def _read(path: Path) -> tuple[dict[str, np.ndarray], Mapping[str, str]]:
    from safetensors import safe_open  # an extra

    try:
        with cast(Any, safe_open)(path, framework="np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise call_error("STM5303", f"cannot read `{path}`: {reason}", help="check its name and its permissions") from None
    except Exception as error:  # what the library raises of a damaged file has no common base
        help = "`stmlang.models.weights.save(model, path)` writes one"
        raise call_error("STM5303", f"`{path}` is no safetensors file: {error!s:.200}", help=help) from None


def _parameters(model: Any) -> dict[str, Any]:
    leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_leaves_with_path(model))
    return {_name(path): leaf for path, leaf in leaves if _is_parameter(leaf)}


def _is_parameter(leaf: Any) -> bool:
    return eqx.is_inexact_array(leaf) or (isinstance(leaf, jax.ShapeDtypeStruct) and jnp.issubdtype(leaf.dtype, jnp.inexact))


def _scans(model: Any) -> dict[str, str]:
    """The hash of each scan's text, by its name in the model."""

    def is_scan(node: Any) -> bool:
        return isinstance(node, SCANS)

    leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_leaves_with_path(model, is_leaf=is_scan))
    return {_name(path): f"scan {fingerprint(node.scan)}" for path, node in leaves if isinstance(node, SCANS)}


def _name(path: Sequence[Any]) -> str:
    """The fields, keys and numbers on the way to a leaf, with dots between."""
    return jax.tree_util.keystr(tuple(path), simple=True, separator=".")


def _kind(array: Any) -> str:
    return f"{array.dtype}{list(array.shape)}"
