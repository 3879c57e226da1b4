"""Compiling: programs that do not grow, sizes and seeds that compile nothing anew, topology that is no constant.

C17 (jax-ml/jax#5354, also #18221 and #19498). Parallel scans took impractically long to compile, longer the longer the
sequence and ten times that for complex numbers. Here a program grows with the logarithm of the length at most.

C19 (fla-org/flash-linear-attention#1147, patrick-kidger/equinox#686 and #1062). Every new length, or a Python number that
changed, compiled again. Here every size is a program of its own, compiled once. Lengths and graphs share programs where
graphs are given at run time: `test_batch_cases.py`.

C21 (jax-ml/jax#14655, openxla/xla#1652). The indices of a large sparse matrix, closed over by a function, became constants,
which XLA folded for minutes. Here a graph's tables are arguments.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from math import log2, prod
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
from tests.helpers.cases import DELTA, KEY, MATRIX, MLSTM, NONE, TRACKS, Way
from tests.public.chains import PLAIN, Tree, scan_on

# --- C17: the size of a program

BODIES = {"scalar": PLAIN, "key": KEY, "matrix": MATRIX + NONE, "tracks": TRACKS + NONE, "delta": DELTA, "mlstm": MLSTM}
LENGTHS = (256, 4096, 65536)
FIXED = {"tracks": 1400, "delta": 1400}
"""Equations that may stand in a program of any length, where more than 700: blocks of a chunk's system are inverted entry by
entry, those of tracks multiplied number by number."""


def training(op: CompiledScan, arguments: Tree) -> Tree:
    """The gradient of the sum of results by all inputs and gates."""
    return jax.grad(lambda arguments: jnp.sum(op(*arguments)))(arguments)


def shapes(op: CompiledScan) -> Tree:
    """Arguments as shapes."""

    def array(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, op.dtype)

    return (*map(array, op.signature.inputs.values()), {name: array(shape) for name, shape in op.signature.gates.items()})


def equations(op: CompiledScan) -> int:
    """The equations of a forward and backward pass, inner ones included."""
    return str(jax.make_jaxpr(training)(op, shapes(op))).count(" = ")


def chain(body: str, length: int, way: Way | None = None) -> Any:
    strategy, config = way or (None, None)
    text = scan_on(f"chain(t = {length})", body, key=4, value=4, track=3 if "track" in body else 1)
    return stmlang.compile(text, strategy=strategy, config=config)


@pytest.mark.parametrize("body", [name if name == "mlstm" else pytest.param(name, marks=pytest.mark.slow) for name in BODIES])
def test_C17_planned_programs_grow_with_the_logarithm_at_most(body: str) -> None:
    """Forward and backward, whatever strategy is chosen at each length."""
    counts = [equations(chain(BODIES[body], length)) for length in LENGTHS]
    assert all(count <= FIXED.get(body, 700) + 60 * log2(length) for count, length in zip(counts, LENGTHS, strict=True)), counts


WAYS: dict[str, tuple[Way, str]] = {
    "recurrent": (("recurrent", None), "matrix"),
    "chunkwise": (("chunkwise", {"tile": (64,)}), "scalar"),
    "linear": (("linear", {"chunk": 64}), "key"),
    "delta": (("delta", {"chunk": 64}), "delta"),
}


@pytest.mark.parametrize(
    "strategy", ["recurrent", "chunkwise", *(pytest.param(name, marks=pytest.mark.slow) for name in ("linear", "delta"))]
)
def test_C17_programs_are_flat_above_the_piece(strategy: str) -> None:
    """A strategy that cuts into pieces loops over them: longer sequences have more turns of the loop and the same program."""
    way, body = WAYS[strategy]
    counts = [equations(chain(BODIES[body], length, way)) for length in LENGTHS[1:]]
    assert counts[0] == counts[1]


def test_C17_merging_grows_with_the_logarithm() -> None:
    """Four times the length, two more levels, whatever the length."""
    counts = [equations(chain(PLAIN, length, ("parallel", None))) for length in (64, 256, 1024)]
    steps = [after - before for before, after in pairwise(counts)]
    assert steps[0] == steps[1] < counts[0]


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES)
def test_C17_65536_steps_compile(body: str) -> None:
    """The longest of the case, forward and backward."""
    op = chain(BODIES[body], LENGTHS[-1])
    lowered = jax.jit(training).lower(op, shapes(op))
    assert lowered.as_text().count(" = ") < 4000
    lowered.compile()


# --- C19: what is compiled again


def layer(op: Any, seed: int) -> ScanLayer:
    return ScanLayer(op, 4, key=jax.random.key(seed))


def traced() -> tuple[Any, list[tuple[int, ...]]]:
    """A jitted call of a layer, and a list that gets an entry whenever it is traced."""
    traces: list[tuple[int, ...]] = []

    @eqx.filter_jit
    def call(layer: ScanLayer, x: jax.Array, scale: jax.Array) -> jax.Array:
        traces.append(x.shape)
        return layer(x) * scale

    return call, traces


def test_C19_a_length_is_compiled_once() -> None:
    """Thirty-two calls of three lengths: three programs, each giving what a scan of that very length gives."""
    op = stmlang.compile("std:plstm/chain", heads=1, key=2, value=2)
    mine, (call, traces) = layer(op, 0), traced()
    lengths = np.random.default_rng(0).choice([1, 8, 31], 32)
    for length in lengths:
        x = jnp.ones((int(length), 4)) * jnp.arange(4.0)
        found = call(mine, x, jnp.float32(1))
    assert len(traces) == len(op.compiled) == len(set(lengths.tolist()))
    exact = stmlang.compile("std:plstm/chain", time=len(found), heads=1, key=2, value=2)
    np.testing.assert_array_equal(found, eqx.filter_jit(layer(exact, 0))(x))


def test_C19_seeds_and_numbers_compile_nothing() -> None:
    """Layers made anew from other seeds, and a number that changes: one program."""
    op = stmlang.compile("std:plstm/image_d", rows=2, cols=3, heads=1, key=2, value=2)
    call, traces = traced()
    results = [call(layer(op, seed), jnp.ones((2, 3, 4)), jnp.float32(seed + 1)) for seed in range(4)]
    assert len(traces) == 1
    assert len({float(found.sum()) for found in results}) == 4


SECOND_PROCESS = """
import json, sys
import jax
from jax import monitoring

events = []
monitoring.register_event_listener(lambda name, **_: events.append(name))
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
import stmlang

for spec, sizes in (("std:plstm/tree", {"depth": 2}),):
    op = stmlang.compile(spec, heads=1, key=2, value=2, **sizes)
    arguments = op.example()
    start = len(events)
    jax.block_until_ready(jax.jit(jax.value_and_grad(lambda op, arguments: op(*arguments).sum(), argnums=1))(op, arguments))
    found = [name.rpartition("/")[2] for name in events[start:] if "cache_hit" in name or "cache_miss" in name]
    print(json.dumps([spec, found.count("cache_hits"), found.count("cache_misses")]))
"""


def test_C19_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    """With a persistent cache, and with another hash seed: the program is the same to the last byte."""
    runs = []
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-c", SECOND_PROCESS, str(tmp_path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
        runs.append([json.loads(line) for line in done.stdout.splitlines()])
    for (spec, _, misses), (_, hits, missed) in zip(*runs, strict=True):
        assert misses >= 1, spec
        assert (missed, hits) == (0, misses), spec


# --- C21: topology enters as arguments


@pytest.mark.parametrize("strategy", ["recurrent", "parallel", "dense", "chunkwise"])
def test_C21_tables_are_arguments(strategy: str) -> None:
    """No constant of more than a few dozen numbers, however large the graph."""
    config = {"block": 8} if strategy == "chunkwise" else None
    op = stmlang.compile("std:plstm/tree", strategy=strategy, config=config, heads=2, key=8, value=8, depth=6)
    assert large_constants(op.lower_text("stablehlo")) == []


def large_constants(text: str) -> list[str]:
    """The lines of a program that spell out more than 64 numbers."""
    found = []
    for line in text.splitlines():
        if "stablehlo.constant dense<[" in line or 'stablehlo.constant dense<"' in line:
            shape = re.search(r"tensor<([0-9x]+)x[a-z][0-9a-z]*>$", line.strip())
            assert shape is not None
            if prod(int(size) for size in shape[1].split("x")) > 64:
                found.append(line[:200])
    return found


GRAPH = """
scan s(heads = 1, key = 2, value = 2) on dag from "{file}" {{
    decay = tanh(linear(x))
    share[out] = softmax(linear(x, e[out]), over = out)
    source[out] = sigmoid(linear(x, e[out]))
    transition[out, in] = decay * share[out]
    stabilize P
}}
"""


def layer_on_random_graph(folder: Path, edges: int, strategy: str | None) -> ScanLayer:
    """A layer on a random graph of `edges` edges, half as many nodes, in a file."""
    rng, nodes = np.random.default_rng(0), edges // 2
    tail = rng.integers(0, nodes - 20, 2 * edges)
    pairs = rng.permutation(np.unique(tail * nodes + tail + rng.integers(1, 20, 2 * edges)))[:edges]
    np.savetxt(folder / f"{edges}.edgelist", np.stack([pairs // nodes, pairs % nodes], 1), fmt="n%d")
    path = folder / f"{edges}.stm"
    path.write_text(GRAPH.format(file=f"{edges}.edgelist"))
    return ScanLayer(stmlang.compile(path, strategy=strategy), 4, key=jax.random.key(0), edge_dim=2)


def lowered(layer: ScanLayer) -> Any:
    """The training step of a layer."""
    dag = layer.op.dag
    x, e = jnp.ones((dag.node_count, 4)), jnp.ones((dag.edge_count, 2))
    return eqx.filter_jit(eqx.filter_grad(lambda layer, x, e: jnp.sum(layer(x, edge_features=e)))).lower(layer, x, e)


@pytest.mark.parametrize("strategy", ["recurrent", "nodes"])
def test_C21_the_program_does_not_know_the_edges(strategy: str, tmp_path: Path) -> None:
    """A hundred times the edges: the same program but for the digits of its shapes."""
    small, large = (lowered(layer_on_random_graph(tmp_path, edges, strategy)).as_text() for edges in (200, 20_000))
    assert large.count(" = ") < 1.05 * small.count(" = ")
    assert len(large) < 1.1 * len(small)
    assert large_constants(large) == []


def test_C21_the_limit_has_teeth(tmp_path: Path) -> None:
    """A scan that a function closes over is a constant of it: to be given as an argument where the graph is large."""
    op = layer_on_random_graph(tmp_path, 1000, "recurrent").op
    arguments = op.example()
    assert large_constants(jax.jit(lambda *arguments: op(*arguments)).lower(*arguments).as_text()) != []
    assert large_constants(jax.jit(lambda op, *arguments: op(*arguments)).lower(op, *arguments).as_text()) == []


@pytest.mark.slow
def test_C21_two_million_edges(tmp_path: Path) -> None:
    """The size of the case: less than a megabyte of program, and it compiles."""
    step = lowered(layer_on_random_graph(tmp_path, 2_000_000, None))
    assert len(step.as_text()) < 1_000_000
    step.compile()
