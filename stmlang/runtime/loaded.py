"""Loading an artifact and running it. Nothing in the file is executed or unpickled, and nothing that it says is believed before
it was compared with the rest of it."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, cast

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from stmlang.graph.shapes import Shape
from stmlang.lower.states import State
from stmlang.runtime.archive import damaged, manifest_text, members_of, opened
from stmlang.runtime.artifact import FORMAT, MEMBERS, PLATFORMS, arguments_of
from stmlang.runtime.options import file_path
from stmlang.runtime.signature import Signature, call_error, is_array

AGAIN = "compile the spec again: its source is in the artifact, as `source.stm`"
_TARGET = re.compile(r'(?:custom_call @|call_target_name = ")"?([^"(\s]+)')


@dataclass(frozen=True, eq=False)
class LoadedScan:
    """An artifact ready to run. `manifest`, `plan` (as JSON text) and `source` are what the file says."""

    path: str
    manifest: dict[str, Any]
    signature: Signature
    plan: str
    source: str
    stablehlo: str
    tables: list[Array]
    exported: jax.export.Exported

    def __call__(self, q: Any, k: Any, v: Any, gates: Mapping[str, Any], initial: State | None = None) -> Any:
        """The result, batched as exported: all arguments have the batch axis in front, unless the artifact has none.

        Artifacts with state take `initial` and return `(result, final state)`. Raises SpecError (STM5310-STM5313) for another
        platform, data type, shape or name than the artifact was made for, naming both.
        """
        inputs, dtype = {"q": q, "k": k, "v": v}, self.signature.dtype
        self._check_platform()
        arrays = self._check(inputs, self.signature.inputs, "arguments", dtype)
        arrays += self._check(gates, self.signature.gates, "gate leaves", dtype)
        arrays += self._check_state(initial)
        self._check_batch(arrays)
        state = () if initial is None else (tuple(dict(part) for part in initial),)
        return self.exported.call(self.tables, inputs, dict(gates), *state)

    def _check_platform(self) -> None:
        platform = jax.default_backend()
        here = "cuda" if platform == "gpu" else platform
        if here not in self.manifest["platforms"]:
            made = ", ".join(self.manifest["platforms"])
            raise call_error(
                "STM5310",
                f"artifact `{self.path}` was compiled for {made}; JAX runs on {here} here",
                help=f"compile it for this platform: `stmlang compile --target {'cpu' if here == 'cpu' else 'gpu'} ...`",
            )

    def _check_state(self, initial: Any) -> list[Any]:
        """The arrays of an initial state."""
        with_state, expected = self.manifest["with_state"], self.signature.initial
        if with_state != (initial is not None):
            wanted = "takes" if with_state else "was exported without"
            help = "give it one, of zeros if there is none" if with_state else "export it with states: `with_state=True`"
            raise call_error("STM5313", f"artifact `{self.path}` {wanted} an initial state", help=help)
        if initial is None:
            return []
        if not isinstance(initial, (tuple, list)) or len(cast(Sequence[Any], initial)) != len(expected):
            count = len(cast(Sequence[Any], initial)) if isinstance(initial, (tuple, list)) else type(initial).__name__
            message = f"`initial` of artifact `{self.path}` is a tuple of {len(expected)} dictionaries; given was {count}"
            raise call_error("STM5312", message, help="one for each direction, with an array for each port")
        accumulator = str(jnp.promote_types(jnp.dtype(self.signature.dtype), jnp.float32))
        parts = zip(cast(Sequence[Any], initial), expected, strict=True)
        return [array for part, shapes in parts for array in self._check(part, shapes, "ports of a state", accumulator)]

    def _check(self, given: Any, expected: Mapping[str, Shape], what: str, dtype: str) -> list[Any]:
        """The arrays given, in the order of the artifact's."""
        if not isinstance(given, Mapping):
            message = f"the {what} of artifact `{self.path}` are a dictionary; given was {type(given).__name__}"
            raise call_error("STM5312", message, help=f"give an array for each of {_listed(expected)}")
        arrays = cast(Mapping[Any, Any], given)
        if set(arrays) != set(expected):
            raise call_error(
                "STM5312",
                f"artifact `{self.path}` has the {what} {_listed(expected)}; given were {_listed(arrays)}",
                help="give exactly these",
            )
        lead = 0 if self.manifest["batch"] is None else 1
        for name, shape in expected.items():
            array = arrays[name]
            kind = str(array.dtype) if is_array(array) else type(array).__name__
            if kind != dtype:
                message = f"`{name}` among the {what} of artifact `{self.path}` is {dtype}; given was {kind}"
                raise call_error("STM5311", message, help=f"convert it: `jnp.asarray(x, jnp.{dtype})`")
            found = tuple(array.shape)
            if len(found) != lead + len(shape) or found[lead:] != tuple(shape):
                wanted = ", ".join([*(["batch"] * lead), *map(str, shape)])
                message = f"`{name}` among the {what} of artifact `{self.path}` has the shape ({wanted}); given was {found}"
                raise call_error("STM5312", message, help="an artifact runs at the sizes that it was compiled for")
        return [arrays[name] for name in expected]

    def _check_batch(self, arrays: Sequence[Any]) -> None:
        batch = self.manifest["batch"]
        if batch is None:
            return
        sizes = {array.shape[0] for array in arrays}
        if len(sizes) > 1:
            help = "every argument has the batch axis in front"
            raise call_error("STM5312", f"all arguments must have one batch size; given were {sorted(sizes)}", help=help)
        size = sizes.pop()
        if isinstance(batch, int) and size != batch:
            help = 'export it for any batch size: `batch="symbolic"`'
            raise call_error("STM5312", f"artifact `{self.path}` has the batch size {batch}; given was {size}", help=help)
        if size < 1:
            raise call_error(
                "STM5312", f"artifact `{self.path}` takes batches of at least 1; given was 0", help="skip the call"
            )


def load(path: str | PathLike[str]) -> LoadedScan:
    """Read an artifact. Nothing in the file is executed or unpickled.

    Raises SpecError: STM5303 where the file cannot be read or is no artifact, STM5304 where it is damaged, STM5305 where
    it was written by a version that this one cannot run.
    """
    place = file_path(path)
    with opened(place) as archive:
        manifest = _manifest(place, manifest_text(place, archive))
        members = members_of(place, archive, MEMBERS)
    for member in MEMBERS:
        if hashlib.sha256(members[member]).hexdigest() != manifest["sha256"].get(member):
            raise damaged(place, f"`{member}` is not what was written")
    try:
        exported = jax.export.deserialize(bytearray(members["program.bin"]))
        tables = _tables(members["tables.npz"])
        signature = _signature(manifest["signature"])
        _compare(exported, manifest, signature, tables)
        plan, source, text = (members[member].decode() for member in ("plan.json", "source.stm", "program.mlir"))
    except Exception as error:  # the parts come from a stranger: what reading them raises is of any kind
        raise damaged(place, (str(error) or type(error).__name__).partition("\n")[0]) from None
    return LoadedScan(str(place), manifest, signature, plan, source, text, tables, exported)


def _listed(names: Mapping[Any, Any]) -> str:
    return "[" + ", ".join(f"`{name}`" for name in sorted(names, key=str)) + "]"


# --- the manifest


def _manifest(path: Path, content: bytes) -> dict[str, Any]:
    """What the artifact says of itself. The format comes first: another one may have anything behind it."""
    try:
        manifest = json.loads(content)
        format = manifest["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(path, "its manifest cannot be read") from None
    if not _is_whole(format) or format != FORMAT:
        message = f"artifact `{path}` has format {format!r:.40}; this version of stmlang reads format {FORMAT}"
        raise call_error("STM5305", message, help=AGAIN)
    for name, holds in _FIELDS.items():
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


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "versions": _is_object,
    "calling_convention": _is_whole,
    "platforms": _is_platforms,
    "batch": _is_batch,
    "with_state": _is_flag,
    "signature": _is_object,
    "sha256": _is_object,
}
"""What a manifest must hold, and what each entry may be."""


def _check_versions(path: Path, manifest: Mapping[str, Any]) -> None:
    low = jax.export.minimum_supported_calling_convention_version
    high = jax.export.maximum_supported_calling_convention_version
    written = manifest["calling_convention"]
    if not low <= written <= high:
        raise call_error(
            "STM5305",
            f"artifact `{path}` was written by jax {manifest['versions'].get('jax')} with calling convention {written}; "
            f"jax {jax.__version__} runs {low} to {high}",
            help=AGAIN,
        )


def _signature(found: Mapping[str, Any]) -> Signature:
    def shape(entry: Sequence[Any]) -> Shape:
        if not all(_is_whole(size) and size >= 0 for size in entry):
            raise ValueError(f"{entry!r:.40} is not a shape")
        return tuple(entry)

    def shapes(entry: Mapping[str, Sequence[Any]]) -> dict[str, Shape]:
        return {name: shape(sizes) for name, sizes in entry.items()}

    return Signature(
        shapes(found["inputs"]),
        shapes(found["gates"]),
        shape(found["result"]),
        tuple(shapes(entry) for entry in found["initial"]),
        tuple(shapes(entry) for entry in found["final"]),
        str(found["dtype"]),
    )


# --- the program and its tables


def _tables(content: bytes) -> list[Array]:
    """The index tables, in the order of their names."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [_table(archive, entry) for entry in sorted(archive.infolist(), key=lambda entry: entry.filename)]


def _table(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    """One table, its header compared with what follows it. It is stored as it is, and so is no larger than what was read."""
    if entry.compress_type != zipfile.ZIP_STORED:
        raise ValueError("its tables are packed in a way that artifacts are not")
    content = archive.read(entry)
    stream = io.BytesIO(content)
    np.lib.format.read_magic(stream)
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject or prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise ValueError("its tables are not what their headers say")
    flat = np.frombuffer(content, dtype, offset=stream.tell())
    return jnp.asarray(flat.reshape(shape, order="F" if by_columns else "C"))


def _compare(exported: jax.export.Exported, manifest: Mapping[str, Any], signature: Signature, tables: Sequence[Array]) -> None:
    """Raises ValueError where the program is not the one that the manifest describes, or calls anything of the machine's."""
    batch = manifest["batch"]
    lead = () if batch is None else ("batch" if batch == "symbolic" else batch,)
    expected = arguments_of(signature, tables, tuple(jax.export.symbolic_shape("batch")) if batch == "symbolic" else lead, True)
    expected = expected if manifest["with_state"] else expected[:3]
    leaves, structure = cast(tuple[list[Any], Any], jax.tree.flatten((expected, {})))
    if structure != exported.in_tree or [_described(leaf) for leaf in leaves] != [
        _described(aval) for aval in exported.in_avals
    ]:
        raise ValueError("its program takes other arguments than its manifest says")
    result = exported.out_avals[0]
    if _described(result) != (tuple(str(size) for size in (*lead, *signature.result)), signature.dtype):
        raise ValueError("its program returns something else than its manifest says")
    if list(exported.platforms) != manifest["platforms"]:
        raise ValueError("its program is for other platforms than its manifest says")
    targets = cast(list[str], _TARGET.findall(exported.mlir_module()))
    if exported.ordered_effects or exported.unordered_effects or any("callback" in target for target in targets):
        raise ValueError("its program calls back into Python, which no compiled scan does")


def _described(array: Any) -> tuple[tuple[str, ...], str]:
    """A shape and a type as texts, so that symbolic sizes of different scopes can be compared."""
    return tuple(str(size) for size in array.shape), str(array.dtype)
