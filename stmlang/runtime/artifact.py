"""Artifacts: a compiled scan, or a model, in a file that runs without its source, on the platforms it was compiled for.

A `.stmx` file is a zip archive of plain members, no pickle among them: `docs/artifacts.md` specifies it. A *part* is a program
with all that it takes and with what the manifest says of it; a scan may be in several, for several batch sizes, platforms and
buckets of graphs. `stmlang.runtime.loading` reads what is written here.

The same scan gives the same bytes: members have a fixed order and no time stamps.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from stmlang.graph.shapes import Shape
from stmlang.plan.store import plan_json
from stmlang.program.states import LOG_SCALE, State
from stmlang.runtime.archive import LARGEST
from stmlang.runtime.compilation import Compilation
from stmlang.runtime.options import export_batches, file_path
from stmlang.runtime.planned import call_scan
from stmlang.runtime.signature import Signature, call_error, flag, widest
from stmlang.source.diagnostic import SpecError
from stmlang.source.writing import require_place, written_whole

FORMATS = (2, 3)
"""Formats that are read, the last of which is written: the third added artifacts of several parts to the second."""
MEMBERS = ("program.bin", "program.mlir", "tables.npz", "plan.json", "source.stm")
GRAPH_MEMBERS = ("program.bin", "program.mlir", "recipe.json", "plan.json", "source.stm")
STEP_MEMBERS = {"program.bin": "step.bin", "program.mlir": "step.mlir", "tables.npz": "step.npz"}
"""Where the step of a scan is, by what it is called where it is the scan."""
MODEL_MEMBERS = ("program.bin", "program.mlir", "weights.npz", "graphs.json")
STORED = ("weights.npz",)
"""Members that are numbers, which would take time to pack and not become much smaller."""
PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda", "rocm": "rocm", "tpu": "tpu"}
EPOCH = (1980, 1, 1, 0, 0, 0)


class RowSteps(Protocol):
    """A chain or grid step by step, a pytree of index tables: `stmlang.runtime.row_stream.RowStream`."""

    @property
    def signature(self) -> Signature: ...

    def step(self, state: State, q: Array, k: Array, v: Array, gates: Mapping[str, Array]) -> tuple[Array, State]: ...


@dataclass(frozen=True, eq=False)
class Part:
    """One program of an artifact, as JAX exported it: what the manifest says of it, and the members that hold it."""

    described: Mapping[str, Any]
    members: Mapping[str, bytes]
    exported: jax.export.Exported


def export(
    compilation: Compilation,
    tables: Any,
    path: str | PathLike[str],
    platforms: Sequence[str] | None = None,
    batch: int | Literal["symbolic"] | Sequence[int | Literal["symbolic"] | None] | None = "symbolic",
    with_state: bool = False,
    stream: RowSteps | None = None,
) -> None:
    """Write a scan with its index tables as an artifact, atomically.

    `platforms` defaults to the target's; a machine without a GPU can export for one. `batch` is a size, "symbolic" for any, or
    None for an unbatched program; a list of these gives a program for each. With `with_state` the program takes an initial
    state and returns the final one. With `stream`, the scan step by step, the artifact holds its step too. It runs the plan for
    inference. A scan compiled for training can be differentiated once after loading, by the plan for training.

    Raises SpecError: STM5010 for options that are none, STM5301 for an unknown platform, STM5302 where the file cannot be
    written.
    """
    target, batches, with_state = file_path(path), export_batches(batch), flag("with_state", with_state)
    names = platforms_of((compilation.plan.target.platform,) if platforms is None else platforms)
    require_writable(target)
    write_scans(target, [scan_part(compilation, tables, names, size, with_state, stream) for size in batches])


def write_scans(path: Path, parts: Sequence[Part]) -> None:
    """Write the programs of one scan. Raises SpecError: STM5301 where two are for the same, STM5302 where the file cannot be
    written."""
    require_apart([(part.described["platforms"], part.described["batch"]) for part in parts], "batch size")
    if len(parts) > 1:
        return write_parts(path, "scans", parts)
    return write_artifact(path, {"kind": "scan", **parts[0].described}, parts[0].exported, parts[0].members)


def write_parts(path: Path, kind: str, parts: Sequence[Part]) -> None:
    """Write several programs in one artifact, in which members that are equal are there once. Raises SpecError (STM5302) where
    that cannot be done."""
    members, places, described = dict[str, bytes](), dict[bytes, str](), list[dict[str, Any]]()
    for number, part in enumerate(parts):
        names = dict[str, str]()
        for name, content in part.members.items():
            names[name] = places.setdefault(hashlib.sha256(content).digest(), f"{number}/{name}")
            members[names[name]] = content
        described.append({**part.described, "members": names})
    about = {name: parts[0].described[name] for name in ("scan", "source")}
    platforms = list(dict.fromkeys(name for part in parts for name in part.described["platforms"]))
    write_artifact(path, {"kind": kind, **about, "platforms": platforms, "parts": described}, parts[0].exported, members)


def require_apart(uses: Sequence[tuple[Sequence[str], Any]], what: str) -> None:
    """Raises SpecError (STM5301) where two programs of an artifact are for one platform and the same besides."""
    known = set[tuple[str, Any]]()
    for platforms, other in uses:
        for name in platforms:
            if (name, other) in known:
                message = f"two programs are for {name} and the same: an artifact holds one for each platform and {what}"
                raise call_error("STM5301", message, help="name each of them once, and one target for each platform")
            known.add((name, other))


def scan_part(
    compilation: Compilation,
    tables: Any,
    platforms: Sequence[str],
    batch: int | Literal["symbolic"] | None,
    with_state: bool = False,
    stream: RowSteps | None = None,
) -> Part:
    """The program of a scan with its index tables, for these platforms and this batch."""
    exported = _exported(compilation, tables, platforms, batch, with_state)
    own = {"tables.npz": _stored_tables(tables)}
    part = _part(compilation, exported, own, platforms, batch=batch, with_state=with_state)
    if stream is None:
        return part
    step = program_members(_exported_step(stream, platforms, batch), _order(compilation))
    step["tables.npz"] = _stored_tables(stream)
    members = {**part.members, **{STEP_MEMBERS[name]: content for name, content in step.items()}}
    return replace(part, members=members, described={**part.described, "step": _signature_dict(_with_scale(stream.signature))})


def graph_part(
    compilation: Compilation, tables: Any, recipe: Mapping[str, Any], sizes: Mapping[str, int], platforms: Any
) -> Part:
    """The program of a scan whose graphs come at run time, in a bucket of these sizes: the tables are some that it takes, and
    the recipe says how they are made."""
    exported = _exported(compilation, tables, platforms, None, False)
    own = {"recipe.json": json.dumps(recipe, indent=1, sort_keys=True).encode()}
    return _part(compilation, exported, own, platforms, batch=None, with_state=False, bucket=dict(sizes))


def _part(
    compilation: Compilation, exported: Any, own: Mapping[str, bytes], platforms: Sequence[str], batch: Any, **more: Any
) -> Part:
    plan, scan, order = compilation.runs(batch, "inference", masked=False)[0], compilation.declared, _order(compilation)
    members = {
        **program_members(exported, order),
        **own,
        "plan.json": plan_json(plan, indent=1).encode(),
        "source.stm": scan.span.file.text.encode(),
    }
    described = {
        "scan": scan.name,
        "source": scan.span.file.name,
        "platforms": list(platforms),
        "differentiable": order > 0,
        "signature": _signature_dict(compilation.signature),
        "step": None,
        "batch": batch,
        **more,
    }
    return Part(described, members, exported)


def _order(compilation: Compilation) -> int:
    """How many derivatives are stored."""
    return 1 if compilation.plan.circumstances.mode == "training" else 0


def require_writable(path: Path) -> None:
    """Raises SpecError (STM5302) where a file certainly cannot be written, before much work is put into its content."""
    try:
        require_place(path)
    except OSError as error:
        raise _cannot_write(path, error) from None


def program_members(exported: jax.export.Exported, order: int) -> dict[str, bytes]:
    """The members that hold a program, with its derivatives up to an order."""
    with without_locations():
        program = bytes(exported.serialize(vjp_order=order))
    return {"program.bin": program, "program.mlir": exported.mlir_module().encode()}


def write_artifact(
    path: Path, manifest: Mapping[str, Any], exported: jax.export.Exported, members: Mapping[str, bytes]
) -> None:
    """Write members and a manifest that says what they are. Raises SpecError (STM5302) where that cannot be done."""
    size = sum(len(content) for content in members.values())
    if size > LARGEST:
        message = f"cannot write `{path}`: the artifact would have {size:,} bytes, and artifacts have at most 2^31 - 1"
        raise call_error("STM5302", message, help="store parameters in a narrower data type")
    described = {
        "format": FORMATS[-1],
        "versions": _versions(),
        "calling_convention": exported.calling_convention_version,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in members.items()},
        **manifest,
    }
    _write(path, {"manifest.json": json.dumps(described, indent=1, sort_keys=True).encode(), **members})


def platforms_of(names: object) -> tuple[str, ...]:
    """The platforms of these names, as artifacts call them. Raises SpecError (STM5301) for unknown ones."""
    help = f"choose among {', '.join(PLATFORMS)}"
    if not isinstance(names, (list, tuple)) or not names:
        message = f"`platforms` must be a list with the name of at least one platform, not {names!r:.80}"
        raise call_error("STM5301", message, help=help)
    names = cast(Sequence[Any], names)
    unknown = [name for name in names if not isinstance(name, str) or name not in PLATFORMS]
    if unknown:
        raise call_error("STM5301", f"unknown platform `{unknown[0]}`", help=help)
    return tuple(dict.fromkeys(PLATFORMS[name] for name in names))


def _exported(
    compilation: Compilation,
    tables: Any,
    platforms: Sequence[str],
    batch: int | Literal["symbolic"] | None,
    with_state: bool,
) -> jax.export.Exported:
    def single_call(bundles: Any, inputs: dict[str, Array], gates: dict[str, Array], *state: State) -> Any:
        arguments = (inputs, gates, state[0] if state else None, None, None)
        h, final = call_scan(compilation, bundles, arguments, with_state)
        return (h, final) if with_state else h

    return _exported_call(single_call, tables, compilation.signature, platforms, batch, with_state)


def _exported_step(stream: RowSteps, platforms: Sequence[str], batch: int | Literal["symbolic"] | None) -> jax.export.Exported:
    def single_call(stream: RowSteps, inputs: dict[str, Array], gates: dict[str, Array], state: State) -> Any:
        return stream.step(state, inputs["q"], inputs["k"], inputs["v"], gates)

    return _exported_call(single_call, stream, _with_scale(stream.signature), platforms, batch, True)


def _exported_call(
    single_call: Callable[..., Any],
    tables: Any,
    signature: Signature,
    platforms: Sequence[str],
    batch: int | Literal["symbolic"] | None,
    with_state: bool,
) -> jax.export.Exported:
    """A function of tables, inputs, gates and, with states, one of them, over a batch."""
    structure = cast(Any, jax.tree.structure(tables))

    def call(leaves: list[Array], *arguments: Any) -> Any:
        known = partial(single_call, jax.tree.unflatten(structure, leaves))
        return known(*arguments) if batch is None else jax.vmap(known)(*arguments)

    lead: tuple[Any, ...] = ()
    if batch is not None:
        lead = tuple(jax.export.symbolic_shape("batch")) if batch == "symbolic" else (batch,)
    with without_locations():
        exporter = jax.export.export(jax.jit(call), platforms=list(platforms))
        return exporter(*arguments_of(signature, jax.tree.leaves(tables), lead, with_state))


def _with_scale(signature: Signature) -> Signature:
    """The signature of a step with the logarithm of a scale among the ports, where states are held at one."""
    if signature.scale is None:
        return signature
    held = tuple({**ports, LOG_SCALE: signature.scale} for ports in signature.initial)
    return replace(signature, initial=held, final=held, scale=None)


def arguments_of(signature: Signature, tables: Sequence[Any], lead: tuple[Any, ...], with_state: bool) -> tuple[Any, ...]:
    """The shapes and types of a program's arguments: tables, inputs, gates and, with states, the initial one; `lead` is the
    batch axis, if there is one."""
    dtype = jnp.dtype(signature.dtype)
    accumulator = widest(dtype)

    def structs(shapes: Mapping[str, Shape], dtype: Any) -> dict[str, jax.ShapeDtypeStruct]:
        return {name: jax.ShapeDtypeStruct((*lead, *shape), dtype) for name, shape in shapes.items()}

    known = [jax.ShapeDtypeStruct(table.shape, table.dtype) for table in tables]
    initial = (tuple(structs(shapes, accumulator) for shapes in signature.initial),) if with_state else ()
    return (known, structs(signature.inputs, dtype), structs(signature.gates, dtype), *initial)


@contextmanager
def without_locations() -> Generator[None]:
    """Programs without the places in Python that they came from: the same scan gives the same bytes, and no path leaks."""
    name = "jax_traceback_in_locations_limit"
    before: int = getattr(jax.config, name)
    jax.config.update(name, 0)
    try:
        yield
    finally:
        jax.config.update(name, before)


def plain_type(array: np.ndarray) -> np.ndarray:
    """An array of a type that numpy itself has: of bfloat16 and narrower types their bits."""
    return array if array.dtype.kind in "biufc" else array.view(f"u{array.dtype.itemsize}")


def npz(tables: Sequence[np.ndarray]) -> bytes:
    """Arrays one after the other, numbered."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for number, table in enumerate(tables):
            content = io.BytesIO()
            np.lib.format.write_array(content, table, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{number:06d}.npy", EPOCH), content.getvalue())
    return buffer.getvalue()


def _stored_tables(tables: Any) -> bytes:
    return npz([np.asarray(table) for table in jax.tree.leaves(tables)])


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
    """All or nothing."""
    try:
        with written_whole(path) as stream, zipfile.ZipFile(stream, "w") as archive:
            for member, content in members.items():
                info = zipfile.ZipInfo(member, EPOCH)
                info.compress_type = zipfile.ZIP_STORED if member in STORED else zipfile.ZIP_DEFLATED
                archive.writestr(info, content)
    except OSError as error:
        raise _cannot_write(path, error) from None


def _cannot_write(path: Path, error: OSError) -> SpecError:
    reason = (error.strerror or "unknown error").lower()
    help = "name a file in a folder that is there and can be written to"
    return call_error("STM5302", f"cannot write `{path}`: {reason}", help=help)
