"""What artifacts of both kinds are read by: their programs, and the arrays beside them, neither of which is believed."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

import jax
import jax.export
import numpy as np

from stmlang.runtime.signature import call_error

_TARGET = re.compile(r'(?:custom_call @|call_target_name = ")"?([^"(\s]+)')


def arrays_of(content: bytes) -> list[np.ndarray]:
    """Arrays as `stmlang.runtime.artifact.npz` wrote them, in the order of their names. Raises ValueError for anything else."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [_array(archive, entry) for entry in sorted(archive.infolist(), key=lambda entry: entry.filename)]


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """One array, its header compared with what follows it. It is stored as it is, and so is no larger than what was read."""
    if entry.compress_type != zipfile.ZIP_STORED:
        raise ValueError("its arrays are packed in a way that artifacts are not")
    content = archive.read(entry)
    stream = io.BytesIO(content)
    np.lib.format.read_magic(stream)
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject or prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise ValueError("its arrays are not what their headers say")
    flat = np.frombuffer(content, dtype, offset=stream.tell())
    return flat.reshape(shape, order="F" if by_columns else "C")


def compare_program(exported: jax.export.Exported, manifest: Mapping[str, Any], arguments: Any, results: Sequence[Any]) -> None:
    """Raises ValueError where a program takes other `arguments`, or its first results are others, than its manifest says, where
    it is for other platforms, or where it calls anything of the machine's."""
    leaves, structure = cast(tuple[list[Any], Any], jax.tree.flatten((arguments, {})))
    if structure != exported.in_tree or [described(leaf) for leaf in leaves] != [described(aval) for aval in exported.in_avals]:
        raise ValueError("its program takes other arguments than its manifest says")
    exported_results = [described(aval) for aval in exported.out_avals[: len(results)]]
    if exported_results != list(results):
        raise ValueError("its program returns something else than its manifest says")
    if list(exported.platforms) != manifest["platforms"]:
        raise ValueError("its program is for other platforms than its manifest says")
    refuse_effects(exported)


def refuse_effects(exported: jax.export.Exported) -> None:
    """Raises ValueError where a program calls anything of the machine's."""
    targets = cast(list[str], _TARGET.findall(exported.mlir_module()))
    if exported.ordered_effects or exported.unordered_effects or any("callback" in target for target in targets):
        raise ValueError("its program calls back into Python, which no artifact does")


def described(array: Any) -> tuple[tuple[str, ...], str]:
    """A shape and a type as texts, so that symbolic sizes of different scopes can be compared."""
    return tuple(str(size) for size in array.shape), str(array.dtype)


def running_platform() -> str:
    """The platform that JAX runs on, as artifacts call it."""
    platform = jax.default_backend()
    return "cuda" if platform == "gpu" else platform


def check_platform(path: str, manifest: Mapping[str, Any]) -> None:
    """Raises SpecError (STM5310) where JAX runs on another platform than an artifact was compiled for."""
    running = running_platform()
    if running not in manifest["platforms"]:
        made = ", ".join(manifest["platforms"])
        help = f"compile it for this platform: `stmlang compile --target {'cpu' if running == 'cpu' else 'gpu'} ...`"
        if manifest["kind"] == "model":
            help = f'export it for this platform too: `stmlang.export(..., platforms=[..., "{running}"])`'
        message = f"artifact `{path}` was compiled for {made}; JAX runs on {running} here"
        raise call_error("STM5310", message, help=help)
