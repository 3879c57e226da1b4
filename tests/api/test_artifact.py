"""Artifacts: files that are none, archives made to hurt, manifests that lie, and arguments that a program does not take."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import random
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.runtime import archive
from stmlang.runtime.artifact import MEMBERS
from stmlang.runtime.compiled import CompiledScan
from tests.api.refusals import Refusal, nothing_written, refused, refused_cheaply

CHAIN = "scan s(heads = 2, key = 3, value = 4) on chain(t = 6) { source = linear(x); transition = sigmoid(linear(x)) }\n"
Members = dict[str, bytes]
ANEW = "write it anew: `stmlang compile SPEC -o FILE.stmx`"


@pytest.fixture(scope="module")
def op() -> CompiledScan:
    return stmlang.compile(CHAIN, strategy="recurrent", mode="inference")


@pytest.fixture(scope="module")
def path(op: CompiledScan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact with states: it has all that one can have."""
    path = tmp_path_factory.mktemp("artifacts") / "good.stmx"
    op.export(path, with_state=True)
    return path


def members(path: Path) -> Members:
    with zipfile.ZipFile(path) as found:
        return {name: found.read(name) for name in found.namelist()}


def packed(members: Mapping[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return buffer.getvalue()


def sealed(members: Members) -> Members:
    """With the hashes that belong to the members, as one writes it who knows how."""
    manifest = json.loads(members["manifest.json"])
    manifest["sha256"] = {name: hashlib.sha256(members[name]).hexdigest() for name in MEMBERS if name in members}
    return {**members, "manifest.json": json.dumps(manifest).encode()}


def manifest(**changes: Any) -> Callable[[Path], bytes]:
    def spoilt(path: Path) -> bytes:
        found = members(path)
        return packed({**found, "manifest.json": json.dumps({**json.loads(found["manifest.json"]), **changes}).encode()})

    return spoilt


def signature(**changes: Any) -> Callable[[Path], bytes]:
    def spoilt(path: Path) -> bytes:
        found = json.loads(members(path)["manifest.json"])["signature"]
        return manifest(signature={**found, **changes})(path)

    return spoilt


def member(**changes: bytes) -> Callable[[Path], bytes]:
    """Members exchanged and sealed again; `program_bin` stands for `program.bin`."""
    return lambda path: packed(sealed({**members(path), **{name.replace("_", "."): new for name, new in changes.items()}}))


def numpy_archive(compressed: bool = False, **arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


class Bomb:
    """Makes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("unpickled"),)


def lying(path: Path) -> bytes:
    """A header that claims an array of 8 TB."""
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    return member(tables_npz=packed({"0000.npy": content.getvalue()}, zipfile.ZIP_STORED))(path)


def twice(path: Path) -> bytes:
    """An archive may hold two members of one name, of which one is read and another one shown."""
    buffer = io.BytesIO(path.read_bytes())
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "a") as made:
        warnings.simplefilter("ignore")
        made.writestr("plan.json", b"{}")
    return buffer.getvalue()


def calls_back(path: Path) -> bytes:
    """A program that asks the machine to call a function at an address."""

    def call(_: Any, inputs: dict[str, jax.Array], *others: Any) -> Any:
        v = inputs["v"]
        target = "xla_ffi_python_cpu_callback"
        return jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(v.shape, v.dtype))(v, address=np.int64(1)), others[1]

    good = jax.export.deserialize(bytearray(members(path)["program.bin"]))
    arguments = jax.tree.unflatten(good.in_tree, [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in good.in_avals])[0]
    allowed = [jax.export.DisabledSafetyCheck.custom_call("xla_ffi_python_cpu_callback")]
    made = jax.export.export(jax.jit(call), platforms=["cpu"], disabled_checks=allowed)(*arguments)
    return member(program_bin=bytes(made.serialize()))(path)


def damaged(why: str) -> Refusal:
    return Refusal("STM5304", why, ANEW)


def none(why: str) -> Refusal:
    return Refusal("STM5303", why, ANEW)


AGAIN = "compile the spec again"
FILES: dict[str, tuple[Callable[[Path], bytes], Refusal]] = {
    # no archive, or no artifact in it
    "pickle": (lambda _: pickle.dumps(Bomb()), none("is no stmlang artifact")),
    "numpy": (lambda _: numpy_archive(a=np.zeros(3)), none("it has no `manifest.json`")),
    "numpy of objects": (lambda _: numpy_archive(a=np.array([Bomb()])), none("it has no `manifest.json`")),
    "names that lead out": (
        lambda _: packed({"../manifest.json": b"{}", "/etc/passwd": b""}),
        none("it has no `manifest.json`"),
    ),
    "empty archive": (lambda _: packed({}), none("it has no `manifest.json`")),
    "ELF": (lambda _: b"\x7fELF" + bytes(200), none("is no stmlang artifact")),
    # archives made to hurt
    "one more name that leads out": (
        lambda path: packed({**members(path), "../out": b"x"}),
        damaged("a member `../out` too many"),
    ),
    "bomb in the manifest": (
        lambda path: packed({**members(path), "manifest.json": b" " * (1 << 25)}),
        damaged("its manifest claims to have 33,554,432 bytes"),
    ),
    "bomb in the tables": (
        member(tables_npz=numpy_archive(True, **{"0000": np.zeros(1 << 22)})),
        damaged("packed in a way that artifacts are not"),
    ),
    "tables larger than memory": (lying, damaged("its arrays are not what their headers say")),
    "packed otherwise": (
        lambda path: packed(members(path), zipfile.ZIP_BZIP2),
        damaged("packed in a way that artifacts are not"),
    ),
    "twice the same member": (twice, damaged("a member `plan.json` too many")),
    "pickle as tables": (member(tables_npz=pickle.dumps(Bomb())), damaged("File is not a zip file")),
    "objects as tables": (
        member(tables_npz=numpy_archive(**{"0000": np.array([Bomb()])})),
        damaged("its arrays are not what their headers say"),
    ),
    "other tables": (
        member(tables_npz=numpy_archive(**{"0000": np.zeros(3)})),
        damaged("its program takes other arguments than its manifest says"),
    ),
    "no program": (member(program_bin=b""), damaged("artifact")),
    "another program": (member(program_bin=random.Random(0).randbytes(5000)), damaged("artifact")),
    "a program that calls back": (calls_back, damaged("its program calls back into Python")),
    "source that is no text": (member(source_stm=b"\xff"), damaged("can't decode byte 0xff")),
    # other versions
    "a later format": (
        manifest(format=4),
        Refusal("STM5305", "has format 4; this version of stmlang reads formats 2 to 3", AGAIN),
    ),
    "a later format with other members": (
        lambda _: packed({"manifest.json": b'{"format": 4}', "program.xla": b""}),
        Refusal("STM5305", "has format 4", AGAIN),
    ),
    "a format in words": (manifest(format="one"), Refusal("STM5305", "has format 'one'", AGAIN)),
    "a format of truth": (manifest(format=True), Refusal("STM5305", "has format True", AGAIN)),
    "a calling convention of later": (
        manifest(calling_convention=10**6),
        Refusal("STM5305", "calling convention 1000000", AGAIN),
    ),
    # manifests that lie
    "deep": (lambda path: packed({**members(path), "manifest.json": b"[" * 100_000}), damaged("its manifest cannot be read")),
    "UTF-16": (
        lambda path: packed({**members(path), "manifest.json": "{}".encode("utf-16")}),
        damaged("its manifest cannot be read"),
    ),
    "a number of many digits": (
        lambda path: packed({**members(path), "manifest.json": b'{"format": ' + b"1" * 5000 + b"}"}),
        damaged("its manifest cannot be read"),
    ),
    "hashes": (manifest(sha256=[]), damaged("`sha256` in its manifest cannot be []")),
    "versions": (manifest(versions=None), damaged("`versions` in its manifest cannot be None")),
    "platforms": (manifest(platforms="cpu"), damaged("`platforms` in its manifest cannot be 'cpu'")),
    "no platform": (manifest(platforms=[]), damaged("`platforms` in its manifest cannot be []")),
    "another platform": (manifest(platforms=["cuda"]), damaged("its program is for other platforms")),
    "batch": (manifest(batch="many"), damaged("`batch` in its manifest cannot be 'many'")),
    "negative batch": (manifest(batch=-1), damaged("`batch` in its manifest cannot be -1")),
    "another batch": (manifest(batch=3), damaged("its program takes other arguments")),
    "no batch": (manifest(batch=None), damaged("its program takes other arguments")),
    "states": (manifest(with_state="yes"), damaged("`with_state` in its manifest cannot be 'yes'")),
    "no states": (manifest(with_state=False), damaged("its program takes other arguments")),
    "convention": (manifest(calling_convention="9"), damaged("`calling_convention` in its manifest cannot be '9'")),
    "signature": (manifest(signature=[]), damaged("`signature` in its manifest cannot be []")),
    "another type": (signature(dtype="float64"), damaged("its program takes other arguments")),
    "no type": (signature(dtype="int3"), damaged("artifact")),
    "another leaf": (signature(gates={"source": [6, 2]}), damaged("its program takes other arguments")),
    "negative sizes": (signature(result=[-6, 2, 4]), damaged("[-6, 2, 4] is not a shape")),
    "another result": (signature(result=[6, 2, 5]), damaged("its program returns something else")),
    "sizes in words": (signature(result="six"), damaged("'six' is not a shape")),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_artifacts(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    spoil, wanted = FILES[name]
    monkeypatch.chdir(tmp_path)
    bad = tmp_path / "bad.stmx"
    bad.write_bytes(spoil(path))
    with nothing_written(tmp_path):
        refused_cheaply(lambda: stmlang.load(bad), wanted, 300_000_000)


def test_what_unpacks_to_fill_memory(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With lower limits, so that the test need not make what it is about."""
    bad = tmp_path / "bad.stmx"
    bad.write_bytes(packed({**members(path), "program.mlir": bytes(30 << 20)}))
    with monkeypatch.context() as patch:
        patch.setattr(archive, "UNSUSPICIOUS", 1 << 20)
        refused_cheaply(lambda: stmlang.load(bad), damaged("it claims to unpack to 31,"), 10_000_000)
    with monkeypatch.context() as patch:
        patch.setattr(archive, "LARGEST", 1 << 20)
        refused_cheaply(lambda: stmlang.load(bad), damaged("it claims to unpack to 31,"), 10_000_000)
    assert archive.LARGEST < 2**31


PLACES: dict[str, Refusal] = {
    "missing": Refusal("STM5303", "no such file or directory", "check its name"),
    "folder": Refusal("STM5303", "is a folder", "name the file that `stmlang compile` wrote"),
    "pipe": Refusal("STM5303", "is no regular file", "name the file that `stmlang compile` wrote"),
    "loop": Refusal("STM5303", "too many levels of symbolic links", "check its name"),
    "empty": none("or was cut short"),
    "large": none("or was cut short"),
    "/dev/zero": Refusal("STM5303", "`/dev/zero` is no regular file", "name the file that `stmlang compile` wrote"),
    "": Refusal("STM5010", "not ''", '"scan.stmx"'),
    "zero\0byte": Refusal("STM5010", "not 'zero", '"scan.stmx"'),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_without_an_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "large", "wb") as file:
        file.truncate(100 << 20)
    refused_cheaply(lambda: stmlang.load(name), PLACES[name])


@pytest.mark.parametrize("given", [5, None, [], io.BytesIO(b"PK")], ids=["number", "none", "list", "buffer"])
def test_what_names_no_file(given: Any) -> None:
    refused(lambda: stmlang.load(given), Refusal("STM5010", "`path` must name a file", '"scan.stmx"'))


def test_changed_bytes_and_cut_files_are_refused_or_change_nothing(path: Path, tmp_path: Path) -> None:
    """What an archive does not guard, such as its time stamps, may be anything; nothing else that is read may."""
    chance, content, good = random.Random(1), path.read_bytes(), members(path)
    bad = tmp_path / "bad.stmx"
    loaded, codes = 0, set[str]()
    for number in range(150):
        spoilt = bytearray(content)
        if number % 3 == 0:
            spoilt = spoilt[: chance.randrange(len(content))]
        elif number % 3 == 1:
            spoilt[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        else:
            spoilt[chance.randrange(len(content) - 600, len(content))] = chance.randrange(256)  # the archive's own directory
        bad.write_bytes(spoilt)
        try:
            found = stmlang.load(bad)
        except stmlang.SpecError as error:
            codes |= {one.code for one in error.diagnostics}
        else:
            loaded += 1
            assert found.source.encode() == good["source.stm"]
            assert found.stablehlo.encode() == good["program.mlir"]
    assert codes == {"STM5303", "STM5304"}
    assert loaded < 75


# --- calls


def arguments(op: CompiledScan) -> dict[str, Any]:
    q, k, v, gates = op.example()
    return jax.tree.map(lambda array: array[None], {"q": q, "k": k, "v": v, "gates": gates, "initial": op.zero_state()})


Given = dict[str, Any]
CONVERT = "jnp.asarray(x, jnp.float32)"
CALLS: dict[str, tuple[Callable[[Given], Given], Refusal]] = {
    "none": (lambda _: {"q": None}, Refusal("STM5311", "given was NoneType", CONVERT)),
    "shape only": (
        lambda good: {"q": jax.ShapeDtypeStruct(good["q"].shape, good["q"].dtype)},
        Refusal("STM5311", "given was ShapeDtypeStruct", CONVERT),
    ),
    "masked": (lambda good: {"q": np.ma.masked_array(good["q"])}, Refusal("STM5311", "given was MaskedArray", CONVERT)),
    "foreign": (lambda good: {"q": np.asarray(good["q"]).astype(">f4")}, Refusal("STM5311", "given was >f4", CONVERT)),
    "no batch": (
        lambda good: jax.tree.map(lambda array: array[:0], good),
        Refusal("STM5312", "batches of at least 1", "skip the call"),
    ),
    "no gates": (lambda _: {"gates": None}, Refusal("STM5312", "given was NoneType", "`source`, `transition`")),
    "list of gates": (lambda _: {"gates": [1]}, Refusal("STM5312", "given was list", "`source`, `transition`")),
    "one more gate": (
        lambda good: {"gates": {**good["gates"], 5: good["q"]}},
        Refusal("STM5312", "[`5`, `source`", "give exactly these"),
    ),
    "no state": (lambda _: {"initial": None}, Refusal("STM5313", "takes an initial state", "of zeros")),
    "number as state": (lambda _: {"initial": 5}, Refusal("STM5312", "given was int", "one for each direction")),
    "empty state": (lambda _: {"initial": ()}, Refusal("STM5312", "given was 0", "one for each direction")),
    "two states": (lambda good: {"initial": good["initial"] * 2}, Refusal("STM5312", "given was 2", "one for each direction")),
    "none in a state": (lambda _: {"initial": (None,)}, Refusal("STM5312", "given was NoneType", "[`t`]")),
    "another port": (
        lambda good: {"initial": ({"rows": good["initial"][0]["t"]},)},
        Refusal("STM5312", "given were [`rows`]", "give exactly these"),
    ),
    "state of another shape": (
        lambda good: {"initial": ({"t": good["initial"][0]["t"][:, :1]},)},
        Refusal("STM5312", "given was (1, 1, 3, 4)", "the sizes that it was compiled for"),
    ),
    "state of another type": (
        lambda good: {"initial": ({"t": good["initial"][0]["t"].astype(jnp.bfloat16)},)},
        Refusal("STM5311", "given was bfloat16", CONVERT),
    ),
    "state of another batch": (
        lambda good: {"initial": ({"t": jnp.repeat(good["initial"][0]["t"], 2, 0)},)},
        Refusal("STM5312", "given were [1, 2]", "every argument has the batch axis in front"),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_that_a_program_does_not_take(op: CompiledScan, path: Path, name: str) -> None:
    spoil, wanted = CALLS[name]
    good = arguments(op)
    refused(lambda: stmlang.load(path)(**{**good, **spoil(good)}), wanted)


# --- writing


def test_a_write_that_fails_leaves_the_old_artifact(
    op: CompiledScan, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "op.stmx"
    target.write_bytes(path.read_bytes())
    target.chmod(0o600)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, nothing_written(tmp_path):
        patch.setattr(os, "replace", fail)
        wanted = Refusal("STM5302", f"cannot write `{target}`: no space left on device", "can be written to")
        refused(lambda: op.export(target), wanted)
    link = tmp_path / "link.stmx"
    link.symlink_to(target.name)
    op.export(link, with_state=True)
    assert link.is_symlink()
    assert target.read_bytes() == path.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link.stmx", "op.stmx"]
