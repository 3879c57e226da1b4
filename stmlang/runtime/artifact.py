"""Artifacts: a compiled scan in a file that runs without its source, on the platform it was compiled for.

A `.stmx` file is a zip archive of plain members, no pickle among them:

    manifest.json    format, versions, signature, platforms, batch, hashes of the other members
    program.bin      StableHLO as `jax.export` serializes it
    program.mlir     the same for reading
    tables.npz       index tables, the program's first arguments
    plan.json        the plan, with every candidate that was weighed
    source.stm       the spec as written

The same scan gives the same bytes: members have a fixed order and no time stamps.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, Literal, cast

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from stmlang.graph.shapes import Shape
from stmlang.lower.execute import run
from stmlang.lower.states import State
from stmlang.plan.store import plan_json
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.signature import Signature, call_error

FORMAT = 1
MEMBERS = ("program.bin", "program.mlir", "tables.npz", "plan.json", "source.stm")
LARGEST_MEMBER = 2**31 - 1
PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda", "rocm": "rocm", "tpu": "tpu"}
EPOCH = (1980, 1, 1, 0, 0, 0)


def export(
    scan: CompiledScan,
    path: str | PathLike[str],
    platforms: Sequence[str] | None = None,
    batch: int | Literal["symbolic"] | None = "symbolic",
    with_state: bool = False,
) -> None:
    """Write a scan as an artifact, atomically.

    `platforms` defaults to the target's; a machine without a GPU can export for one. `batch` is a size, "symbolic" for any, or
    None for an unbatched program. With `with_state` the program takes an initial state and returns the final one. A scan
    compiled for training can be differentiated once after loading.
    """
    names = _platforms(platforms if platforms is not None else (scan.plan.target.platform,))
    tables = [np.asarray(table) for table in jax.tree.leaves(scan.tables)]
    exported = _exported(scan, names, batch, with_state)
    order = 1 if scan.plan.circumstances.mode == "training" else 0
    with _without_locations():
        program = bytes(exported.serialize(vjp_order=order))
    members = {
        "program.bin": program,
        "program.mlir": exported.mlir_module().encode(),
        "tables.npz": _npz(tables),
        "plan.json": plan_json(scan.plan, indent=1).encode(),
        "source.stm": scan.scan.span.file.text.encode(),
    }
    manifest = {
        "format": FORMAT,
        "scan": scan.scan.name,
        "source": scan.scan.span.file.name,
        "versions": _versions(),
        "calling_convention": exported.calling_convention_version,
        "platforms": list(names),
        "batch": batch,
        "with_state": with_state,
        "differentiable": order > 0,
        "signature": _signature_dict(scan.signature),
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in members.items()},
    }
    _write(Path(path), {"manifest.json": json.dumps(manifest, indent=1, sort_keys=True).encode(), **members})


def _platforms(names: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in names if name not in PLATFORMS]
    if unknown:
        raise call_error("STM5301", f"unknown platform `{unknown[0]}`", help=f"choose among {', '.join(PLATFORMS)}")
    return tuple(dict.fromkeys(PLATFORMS[name] for name in names))


def _exported(
    scan: CompiledScan, platforms: Sequence[str], batch: int | Literal["symbolic"] | None, with_state: bool
) -> jax.export.Exported:
    program = scan.compilation.program
    structure = cast(Any, jax.tree.structure(scan.tables))

    def call(tables: list[Array], inputs: dict[str, Array], gates: dict[str, Array], *state: State) -> Any:
        def one(inputs: dict[str, Array], gates: dict[str, Array], *state: State) -> Any:
            bundles = jax.tree.unflatten(structure, tables)
            h, final = run(program, bundles, inputs, gates, state[0] if state else None, with_state)
            return (h, final) if with_state else h

        return one(inputs, gates, *state) if batch is None else jax.vmap(one)(inputs, gates, *state)

    lead: tuple[Any, ...] = ()
    if batch is not None:
        lead = tuple(jax.export.symbolic_shape("batch")) if batch == "symbolic" else (batch,)

    def struct(shape: Shape, dtype: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((*lead, *shape), dtype)

    signature = scan.signature
    tables = [jax.ShapeDtypeStruct(table.shape, table.dtype) for table in jax.tree.leaves(scan.tables)]
    inputs = {name: struct(shape, program.dtype) for name, shape in signature.inputs.items()}
    gates = {name: struct(shape, program.dtype) for name, shape in signature.gates.items()}
    state = tuple({port: struct(shape, program.accumulator) for port, shape in shapes.items()} for shapes in signature.initial)
    with _without_locations():
        exporter = jax.export.export(jax.jit(call), platforms=list(platforms))
        return exporter(tables, inputs, gates, *((state,) if with_state else ()))


@contextmanager
def _without_locations() -> Generator[None]:
    """Programs without the places in Python that they came from: the same scan gives the same bytes, and no path leaks."""
    name = "jax_traceback_in_locations_limit"
    before: int = getattr(jax.config, name)
    jax.config.update(name, 0)
    try:
        yield
    finally:
        jax.config.update(name, before)


def _npz(tables: Sequence[np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for number, table in enumerate(tables):
            content = io.BytesIO()
            np.lib.format.write_array(content, table, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{number:04d}.npy", EPOCH), content.getvalue())
    return buffer.getvalue()


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("stmlang", "jax", "jaxlib")}


def _signature_dict(signature: Signature) -> dict[str, Any]:
    return {
        "inputs": signature.inputs,
        "gates": signature.gates,
        "result": signature.result,
        "initial": signature.initial,
        "final": signature.final,
        "dtype": signature.dtype,
    }


def _write(path: Path, members: Mapping[str, bytes]) -> None:
    """All or nothing: a temporary file beside the target, renamed when it is whole."""
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
            for member, content in members.items():
                info = zipfile.ZipInfo(member, EPOCH)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise call_error("STM5302", f"cannot write `{path}`: {error.strerror}") from None
        raise


# --- loading ---------------------------------------------------------------------------------------------------------


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
        inputs = {"q": q, "k": k, "v": v}
        self._check_platform()
        self._check(inputs, self.signature.inputs, "argument", self.signature.dtype)
        self._check(gates, self.signature.gates, "gate leaf", self.signature.dtype)
        with_state = self.manifest["with_state"]
        if with_state != (initial is not None):
            wanted = "takes" if with_state else "was exported without"
            raise call_error("STM5313", f"artifact `{self.path}` {wanted} an initial state")
        self._check_batch([*inputs.values(), *gates.values()])
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

    def _check(self, given: Mapping[str, Any], expected: Mapping[str, Shape], what: str, dtype: str) -> None:
        if set(given) != set(expected):
            raise call_error(
                "STM5312",
                f"artifact `{self.path}` has the {what}s {sorted(expected)}; given were {sorted(given)}",
            )
        lead = 0 if self.manifest["batch"] is None else 1
        for name, shape in expected.items():
            array = given[name]
            found, kind = tuple(getattr(array, "shape", ())), str(getattr(array, "dtype", type(array).__name__))
            if kind != dtype:
                raise call_error("STM5311", f"{what} `{name}` of artifact `{self.path}` is {dtype}; given was {kind}")
            if len(found) != lead + len(shape) or found[lead:] != tuple(shape):
                wanted = ", ".join([*(["batch"] * lead), *map(str, shape)])
                raise call_error(
                    "STM5312", f"{what} `{name}` of artifact `{self.path}` has the shape ({wanted}); given was {found}"
                )

    def _check_batch(self, arrays: Sequence[Any]) -> None:
        batch = self.manifest["batch"]
        if batch is None:
            return
        sizes = {array.shape[0] for array in arrays}
        if len(sizes) > 1:
            raise call_error("STM5312", f"all arguments must have one batch size; given were {sorted(sizes)}")
        if isinstance(batch, int) and sizes != {batch}:
            raise call_error("STM5312", f"artifact `{self.path}` has the batch size {batch}; given was {sizes.pop()}")


def load(path: str | PathLike[str]) -> LoadedScan:
    """Read an artifact. Nothing in the file is executed or unpickled.

    Raises SpecError: STM5303 where the file cannot be read or is no artifact, STM5304 where it is damaged, STM5305 where
    it was written by a version that this one cannot run.
    """
    name = os.fspath(path)
    members = _read(name)
    manifest = _manifest(name, members["manifest.json"])
    for member in MEMBERS:
        if hashlib.sha256(members[member]).hexdigest() != manifest["sha256"].get(member):
            raise call_error("STM5304", f"artifact `{name}` is damaged: `{member}` is not what was written")
    _check_versions(name, manifest)
    try:
        exported = jax.export.deserialize(bytearray(members["program.bin"]))
        tables = _tables(members["tables.npz"])
        signature = _signature(manifest["signature"])
    except Exception as error:
        raise call_error("STM5304", f"artifact `{name}` is damaged: {error}") from None
    plan, source, text = (members[member].decode() for member in ("plan.json", "source.stm", "program.mlir"))
    return LoadedScan(name, manifest, signature, plan, source, text, tables, exported)


def _read(name: str) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(name) as archive:
            found = {info.filename: info for info in archive.infolist()}
            missing = [member for member in ("manifest.json", *MEMBERS) if member not in found]
            if missing:
                raise call_error("STM5303", f"`{name}` is no stmlang artifact: it has no `{missing[0]}`")
            large = [info.filename for info in found.values() if info.file_size > LARGEST_MEMBER]
            if large:
                raise call_error("STM5304", f"artifact `{name}` is damaged: `{large[0]}` claims to be over 2 GiB")
            return {member: archive.read(member) for member in ("manifest.json", *MEMBERS)}
    except OSError as error:
        raise call_error("STM5303", f"cannot read `{name}`: {error.strerror or error}") from None
    except zipfile.BadZipFile:
        raise call_error("STM5303", f"`{name}` is no stmlang artifact, or was cut short") from None
    except (RuntimeError, ValueError, NotImplementedError, EOFError) as error:
        raise call_error("STM5304", f"artifact `{name}` is damaged: {error}") from None


def _manifest(name: str, content: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(content)
        version = manifest["format"]
        required = ("versions", "platforms", "batch", "with_state", "signature", "sha256", "calling_convention")
        missing = [key for key in required if key not in manifest]
    except (ValueError, KeyError, TypeError):
        raise call_error("STM5304", f"artifact `{name}` is damaged: its manifest cannot be read") from None
    if version != FORMAT:
        raise call_error(
            "STM5305",
            f"artifact `{name}` has format {version}; this version of stmlang reads format {FORMAT}",
            help="compile the spec again: its source is in the artifact, as `source.stm`",
        )
    if missing:
        raise call_error("STM5304", f"artifact `{name}` is damaged: its manifest lacks `{missing[0]}`")
    return manifest


def _check_versions(name: str, manifest: Mapping[str, Any]) -> None:
    low = jax.export.minimum_supported_calling_convention_version
    high = jax.export.maximum_supported_calling_convention_version
    written = manifest["calling_convention"]
    if not isinstance(written, int) or not low <= written <= high:
        raise call_error(
            "STM5305",
            f"artifact `{name}` was written by jax {manifest['versions'].get('jax')} with calling convention {written}; "
            f"jax {jax.__version__} runs {low} to {high}",
            help="compile the spec again: its source is in the artifact, as `source.stm`",
        )


def _tables(content: bytes) -> list[Array]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return [jnp.asarray(archive[key]) for key in sorted(archive.files)]


def _signature(found: Mapping[str, Any]) -> Signature:
    def shapes(entry: Mapping[str, Sequence[int]]) -> dict[str, Shape]:
        return {name: tuple(int(n) for n in shape) for name, shape in entry.items()}

    return Signature(
        shapes(found["inputs"]),
        shapes(found["gates"]),
        tuple(found["result"]),
        tuple(shapes(entry) for entry in found["initial"]),
        tuple(shapes(entry) for entry in found["final"]),
        str(found["dtype"]),
    )
