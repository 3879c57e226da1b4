"""Checkpoints and artifacts of others, and what ours must do instead.

C37 (NX-AI/xlstm#98, patrick-kidger/equinox#486 and #914). Two gates of a layer had been exchanged in the code; the fault
could not be repaired, because checkpoints already written would then have loaded into the wrong gates. Files that hold leaves
by their place shift by one where a field is added, and load two fields of one shape exchanged without a word. Here what was
saved is found again by name, shape, data type and hash, and never by its place in a list.

Checkpoints of layers and of training are files of issues to come; what they will rest on is tested here: a layer's parameters
are keyed by the names of its spec's leaves, so that the order of declarations in a spec is nowhere to be seen.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.nn import ScanLayer
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.loaded import LoadedScan
from tests.cli.command import run_process

EQUATIONS = (
    "open = sigmoid(linear(x, bias = -1))",
    "source = open * param(0.5)",
    "transition = sigmoid(linear(x, bias = 1))",
    "mark = given(-1, 1)",
)
DTYPE = "bfloat16"


def spec(*equations: str) -> str:
    body = "\n".join(equations or EQUATIONS)
    return f"scan gated(heads = 2, key = 3, value = 3) on chain(time = 4) {{\n{body}\n}}\n"


RENAMED = spec(*(line.replace("open", "unlocked") for line in EQUATIONS))
SWAPPED = spec(
    *(EQUATIONS[0].replace("open", "transition"), *EQUATIONS[1:2], EQUATIONS[2].replace("transition", "open"), EQUATIONS[3])
)


@pytest.fixture(scope="module")
def op() -> CompiledScan:
    return stmlang.compile(spec(), dtype=DTYPE, mode="training")


@pytest.fixture(scope="module")
def saved(op: CompiledScan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("artifacts") / "op.stmx"
    op.export(path, batch=None)
    return path


def message(action: Callable[[], object], code: str) -> str:
    with pytest.raises(stmlang.SpecError) as caught:
        action()
    (found,) = caught.value.diagnostics
    assert found.code == code
    return found.message


# --- order and names


@pytest.mark.parametrize("order", [(3, 1, 2, 0)])
def test_C37_the_order_of_declarations_is_nowhere_to_be_seen(op: CompiledScan, saved: Path, order: tuple[int, ...]) -> None:
    """The same leaves by the same names; a layer saved before its spec was rearranged computes the same numbers after."""
    other = stmlang.compile(spec(*(EQUATIONS[k] for k in order)), dtype=DTYPE, mode="training")
    assert other.signature == op.signature
    q, k, v, gates = op.example(3)
    backwards = dict(reversed(gates.items()))
    before = stmlang.load(saved)(q, k, v, gates)
    assert np.array_equal(stmlang.load(saved)(q, k, v, backwards), before)
    assert np.array_equal(other(q, k, v, backwards), op(q, k, v, gates))

    layers = [ScanLayer(scan, 5, key=jax.random.key(seed)) for seed, scan in enumerate((op, other))]
    paths = [
        [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(parameters(layer))] for layer in layers
    ]
    assert paths[0] == paths[1]
    assert {".leaves.weight['open']", ".leaves.constant['source']", ".leaves.weight['transition']"} <= set(paths[0])
    buffer = io.BytesIO()
    eqx.tree_serialise_leaves(buffer, parameters(layers[0]))
    buffer.seek(0)
    loaded = eqx.combine(eqx.tree_deserialise_leaves(buffer, parameters(layers[1])), layers[1])
    x = jax.random.normal(jax.random.key(2), (4, 5), DTYPE)
    given = {"mark": jnp.full(op.signature.gates["mark"], 0.5, DTYPE)}
    assert np.array_equal(loaded(x, given=given), layers[0](x, given=given))


def parameters(layer: ScanLayer) -> Any:
    return eqx.filter(layer, eqx.is_inexact_array)


def test_C37_a_renamed_gate_is_another_leaf(op: CompiledScan) -> None:
    """What was saved under the old name is refused, and both names are said."""
    other = stmlang.compile(RENAMED, dtype=DTYPE)
    assert set(other.signature.gates) == {"unlocked", "source", "transition", "mark"}
    q, k, v, gates = op.example(0)
    with pytest.raises(stmlang.SpecError) as caught:
        other(q, k, v, gates)
    assert {found.code for found in caught.value.diagnostics} == {"STM5202"}
    assert "open" in str(caught.value)
    assert "unlocked" in str(caught.value)


def test_C37_gates_that_exchange_their_names_exchange_their_values() -> None:
    """Of two leaves of one shape each keeps what was saved under its name, wherever its equation stands now."""
    names = ("transition", "open")
    ops = [stmlang.compile(text, dtype="float64") for text in (spec(), SWAPPED)]
    q, k, v, gates = ops[0].example(1)
    assert np.array_equal(ops[0](q, k, v, gates), ops[0](q, k, v, dict(sorted(gates.items(), reverse=True))))
    for name in names:
        changed = gates | {name: gates[name] + 1.0}
        assert not np.allclose(ops[0](q, k, v, changed), ops[0](q, k, v, gates))
        np.testing.assert_allclose(ops[1](q, k, v, changed), ops[1].reference(q, k, v, changed), atol=1e-12)


# --- what does not match


def without(gates: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in gates.items() if key != name}


MISMATCHES: dict[str, tuple[str, tuple[str, ...], Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "fewer leaves": ("STM5312", ("`open`", "[`mark`, `source`, `transition`]"), lambda g: without(g, "open")),
    "more leaves": ("STM5312", ("`forget`", "[`mark`, `open`, `source`, `transition`]"), lambda g: g | {"forget": g["open"]}),
    "another name": ("STM5312", ("`open`", "`forget`"), lambda g: without(g, "open") | {"forget": g["open"]}),
    "another shape": ("STM5312", ("`open`", "(4, 2)", "(4, 1)"), lambda g: g | {"open": g["open"][:, :1]}),
    "a number": ("STM5311", ("`source`", "bfloat16", "float"), lambda g: g | {"source": 0.5}),
    "another data type": (
        "STM5311",
        ("`source`", "bfloat16", "float32"),
        lambda g: g | {"source": g["source"].astype("float32")},
    ),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_C37_what_does_not_match_is_said_with_both_sides(name: str, op: CompiledScan, saved: Path) -> None:
    """Parameters too few, too many, or of another shape or type are refused: what was saved and what was given are both
    named."""
    code, both, change = MISMATCHES[name]
    q, k, v, gates = op.example(0)
    said = message(lambda: stmlang.load(saved)(q, k, v, change(gates)), code)
    assert all(part in said for part in both), said


def test_C37_the_program_of_another_spec_is_refused(saved: Path, tmp_path: Path) -> None:
    """Every part belongs to the others by its hash: none can be exchanged for that of another artifact."""
    stmlang.compile(RENAMED, dtype=DTYPE, mode="training").export(tmp_path / "other.stmx", batch=None)
    with zipfile.ZipFile(saved) as one, zipfile.ZipFile(tmp_path / "other.stmx") as two:
        mine, theirs = ({name: archive.read(name) for name in archive.namelist()} for archive in (one, two))
    differing = [name for name in mine if mine[name] != theirs[name] and name != "manifest.json"]
    assert {"program.bin", "source.stm"} <= set(differing)
    for name in differing:
        mixed = tmp_path / "mixed.stmx"
        with zipfile.ZipFile(mixed, "w") as archive:
            for member, content in (mine | {name: theirs[name]}).items():
                archive.writestr(member, content)
        assert name in message(lambda path=mixed: stmlang.load(path), "STM5304")


GRAPH = """\
use std.gates (gate)
topology small = dag { a -> b, c; b, c -> d; d -> ; alone }
scan s(heads = 2, key = 2, value = 2) on small * chain(time = 3) {
    directions both
    source[out] = gate(-1)
    transition[out, in] = softmax(linear(x), over = out) * tanh(linear(x))
    mark[in] = gate(1)
    stabilize auto
}
"""


def test_C37_the_same_spec_gives_the_same_bytes_anywhere(tmp_path: Path) -> None:
    """Under another hash seed, in another folder, through the command: nothing of the process gets into an artifact."""
    found: list[bytes] = []
    for seed, folder in (("1", "here"), ("2", "somewhere_else/deep")):
        place = tmp_path / folder
        place.mkdir(parents=True)
        (place / "spec.stm").write_text(GRAPH)
        environment = os.environ | {"PYTHONHASHSEED": seed}
        result = run_process("compile", "spec.stm", "-o", "spec.stmx", cwd=place, env=environment)
        assert result.returncode == 0, result.stderr
        found.append((place / "spec.stmx").read_bytes())
    assert found[0] == found[1]
    with zipfile.ZipFile(io.BytesIO(found[0])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert all(str(tmp_path).encode() not in content for content in members.values())
    assert all(b".py" not in members[name] for name in ("program.bin", "program.mlir"))


# --- the same numbers after


def test_C37_scalars_of_half_width_come_back(op: CompiledScan, saved: Path) -> None:
    """A learned constant is one number a head; in bfloat16 it goes in and comes out as it is."""
    arguments = op.example(5)
    assert arguments[3]["source"].shape == (2,)
    assert arguments[3]["source"].dtype == jnp.bfloat16
    loaded = stmlang.load(saved)
    assert loaded(*arguments).dtype == jnp.bfloat16
    assert np.array_equal(loaded(*arguments), jax.jit(op)(*arguments))


def test_C37_a_resumed_step_is_bit_equal(op: CompiledScan, saved: Path) -> None:
    """One step of descent on all leaves by the scan as loaded, and one by it as loaded again in the middle of a run."""
    q, k, v, gates = op.example(7)

    def step(scan: LoadedScan, gates: dict[str, Any]) -> dict[str, Any]:
        slopes = jax.grad(lambda gates: jnp.sum(scan(q, k, v, gates).astype(jnp.float32) ** 2))(gates)
        return jax.tree.map(lambda value, slope: (value - 0.1 * slope).astype(value.dtype), gates, slopes)

    run = stmlang.load(saved)
    halfway = step(run, gates)
    through, resumed = step(run, halfway), step(stmlang.load(saved), dict(halfway))
    assert all(not np.array_equal(halfway[name], gates[name]) for name in gates)
    assert all(np.array_equal(through[name], resumed[name]) for name in gates)
