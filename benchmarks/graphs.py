"""One scan over a batch of molecules, against a layer of a graph network on the same batch, and what a new batch costs.

    python -m benchmarks.graphs --sets FOLDER                   a folder of TUDataset folders, NCI1 among them
    python -m benchmarks.graphs --sets FOLDER --flow RASTER     and a river, from its flow directions
    python -m benchmarks.graphs --sets FOLDER --epoch           instead, an epoch of training on NCI1

64 molecules of NCI1, 4 heads of 24, both directions, in P-mode and in D-mode, forward and backward; every strategy that takes
them, and a GIN layer of width 128 in plain JAX. The candidates and the GIN layer run in turns in one process; milliseconds are
medians, ratios medians of turns. Written to build/bench/graphs.json.

The epoch is the second one of the first fold of the study of small graphs, judging included: nothing is compiled in it, and
nothing left out. pLSTM and a GIN of four rounds follow each other in one process. Written to build/bench/epoch.json.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import stmlang
from benchmarks.compile_time import machine
from stmlang.ending import start
from stmlang.experiments.folds.memory import keep_freed_memory
from stmlang.experiments.training.optimizers import optimizer
from stmlang.experiments.training.state import beginning, split, stepper
from stmlang.experiments.tudataset.data import folds, load
from stmlang.experiments.tudataset.settings import Entry, Model, Settings
from stmlang.experiments.tudataset.study import folder, learner
from stmlang.graph import Batch, batch, from_edges
from stmlang.graph.levels import node_levels
from stmlang.graph.readers.d8 import read_flow
from stmlang.graph.readers.tudataset import read_tudataset
from stmlang.source.writing import written_whole

GRAPHS, WIDTH, REPEATS = 64, 128, 15
TARGET_MILLISECONDS, TARGET_RATIO = 25.0, 3.0
STRATEGIES = ("packed", "packed_nodes", "nodes", "recurrent")
HEAD = """topology molecule = dag(nodes <= 1024, edges <= 4096)
scan s(heads = 4, key = 24, value = 24) on molecule {
    directions both
    source[out] = sigmoid(linear(x, bias = -4))
    mark[in]    = sigmoid(linear(x, bias = -4))
    direct      = sigmoid(linear(x, bias = -6))
"""
FLOW = """topology basin = tree(nodes <= 100000000)
scan river(heads = 1, key = 8, value = 8) on basin {
    source[out]    = sigmoid(linear(x, bias = -4))
    mark[in]       = sigmoid(linear(x, bias = -4))
    direct         = sigmoid(linear(x, bias = -6))
    transition[in] = sigmoid(linear(x, bias = 4))
    stabilize D
}"""
MODES = {
    "P": """
    decay[in]           = tanh(5 * linear(x, bias = 1))
    share[out]          = softmax(linear(x), over = out)
    transition[out, in] = decay * share
    stabilize P
}""",
    "D": """
    transition[out, in] = tanh(5 * linear(x, bias = 1))
    stabilize D
}""",
}


def molecules(folder: Path, seed: int = 0) -> Batch:
    """A batch drawn at random, edges from the lesser to the greater node."""
    graph_set = read_tudataset(str(folder / "NCI1"))
    chosen = np.random.default_rng(seed).permutation(len(graph_set))[:GRAPHS].tolist()
    graphs = [graph_set[number] for number in chosen]
    return batch([from_edges(graph.edges, nodes=graph.node_count, listing="once").dag for graph in graphs])


def gin(graph_batch: Batch) -> Callable[[], Any]:
    """Forward and backward of one GIN layer: sums over neighbours, two matrices."""
    nodes, arrays = graph_batch.bucket.nodes, graph_batch.arrays
    random = np.random.default_rng(0)
    x = jnp.asarray(random.standard_normal((nodes, WIDTH)), jnp.float32)
    weights = [jnp.asarray(random.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5, jnp.float32) for _ in range(2)]

    def layer(weights: list[Any], x: Any, arrays: Any) -> Any:
        sent = [(x[arrays.tail], arrays.head), (x[arrays.head], arrays.tail)]
        heard = sum(jax.ops.segment_sum(values, places, nodes) for values, places in sent)
        return jax.nn.relu(jax.nn.relu((x + heard) @ weights[0]) @ weights[1])

    def loss(weights: list[Any], x: Any, arrays: Any) -> Any:
        return jnp.sum(layer(weights, x, arrays) ** 2)

    step = jax.jit(jax.grad(loss, (0, 1)))
    return lambda: step(weights, x, arrays)


def placed(text: str, graph_batch: Batch, strategy: str | None = None) -> stmlang.CompiledScan:
    """The scan on the batch, by a strategy or as planned."""
    op = stmlang.compile(text, strategy=strategy, tuned=False)
    assert isinstance(op, stmlang.GraphScan)
    return op.at(graph_batch)


def passes(on: stmlang.CompiledScan) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Forward, and forward with backward."""
    arguments = on.example()
    forward = jax.jit(lambda on, arrays: on(*arrays))
    both = jax.jit(lambda on, arrays: jax.grad(lambda arrays: jnp.sum(on(*arrays) ** 2))(arrays))
    return lambda: forward(on, arguments), lambda: both(on, arguments)


def interleaved(calls: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Milliseconds of each call, one turn after the other."""
    for call in calls.values():
        jax.block_until_ready(call())
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            times[name].append(1e3 * (time.perf_counter() - start))
    return times


def rows_of(mode: str, graph_batch: Batch) -> list[dict[str, Any]]:
    """A row for each strategy that takes the mode, the planner's own choice told."""
    calls: dict[str, Callable[[], Any]] = {"GIN": gin(graph_batch)}
    text = HEAD + MODES[mode]
    chosen = placed(text, graph_batch).plan.strategy
    for strategy in STRATEGIES:
        try:
            calls[f"{strategy} forward"], calls[f"{strategy} both"] = passes(placed(text, graph_batch, strategy))
        except stmlang.SpecError:
            continue
    times = interleaved(calls)
    rows: list[dict[str, Any]] = []
    for strategy in STRATEGIES:
        if f"{strategy} both" not in times:
            continue
        both = times[f"{strategy} both"]
        rows.append(
            {
                "mode": mode,
                "strategy": strategy,
                "chosen": strategy == chosen,
                "forward": median(times[f"{strategy} forward"]),
                "both": median(both),
                "gin": median(times["GIN"]),
                "ratio": median(a / b for a, b in zip(both, times["GIN"], strict=True)),
            }
        )
    return rows


def flow(path: Path) -> dict[str, Any]:
    """Forward and backward over a raster of flow directions, one head with a state of 8x8: seconds and bytes."""
    graph_batch = batch([read_flow(str(path)).dag])
    on = placed(FLOW, graph_batch)
    arguments = on.example()
    step = jax.jit(lambda on, arrays: jax.grad(lambda arrays: jnp.sum(on(*arrays) ** 2))(arrays))
    memory = step.lower(on, arguments).compile().memory_analysis()
    (milliseconds,) = interleaved({"flow": lambda: step(on, arguments)}).values()
    return {
        "nodes": graph_batch.dags[0].node_count,
        "levels": int(node_levels(graph_batch.dags[0]).max()) + 1,
        "strategy": on.plan.strategy,
        "seconds": median(milliseconds) / 1e3,
        "temporary_bytes": None if memory is None else memory.temp_size_in_bytes,
    }


def epoch(name: str, settings: Settings, model: Model) -> dict[str, Any]:
    """Seconds by the clock and of the processors in the second epoch of a model's training on the first fold, judging included,
    and in the first one, which compiles."""
    graphs = load(folder(name, settings), name)
    fold, *_ = splits = folds(graphs, settings)
    entry, training = Entry(model, None if model == "plstm" else 4), settings.training
    learning, spent = learner(entry, graphs, splits, settings), list[tuple[float, float]]()
    task = learning.task(fold, training)
    assert task.validation is not None
    learned, fixed = split(learning.start(fold, training))
    steps = task.source.steps_an_epoch
    chosen = optimizer(training, 2 * steps, learned, task.decays)
    step, state = stepper(task.loss, fixed, chosen, training), beginning(learned, chosen, training, best=False)
    for number in range(2):
        start = time.perf_counter(), time.process_time()
        for place in range(steps):
            state, _ = step(state, task.source.batch(number * steps + place), jax.random.key(0))
        task.validation.measure(eqx.combine(state.learned, fixed))
        spent.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    (first, _), (seconds, processor_seconds) = spent
    counts = {"graphs": len(fold.train), "judged": len(fold.validation) + len(fold.test)}
    return {"model": str(entry), **counts, "first": first, "seconds": seconds, "processor_seconds": processor_seconds}


def epochs(sets: Path, name: str) -> list[dict[str, Any]]:
    """A row for pLSTM, and one for the graph isomorphism network. Prints them and how they compare."""
    keep_freed_memory()
    models: tuple[Model, ...] = ("gin", "plstm")
    rows = [epoch(name, Settings(data=sets), model) for model in models]
    for row in rows:
        print(
            "{model:8}{graphs:,} graphs, {judged} judged: {seconds:.2f} s, {processor_seconds:.2f} s of processors; "
            "first epoch {first:.1f} s".format(**row)
        )
    gin, plstm = rows
    ratios = (plstm[what] / gin[what] for what in ("seconds", "processor_seconds"))
    print("ratio {:.1f} by the clock, {:.1f} of processors".format(*ratios))
    return rows


def write(path: Path, results: dict[str, Any]) -> None:
    """What was measured, with the machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(json.dumps({"machine": machine(), **results}, indent=2).encode())
    print(f"wrote {path}")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="A scan over molecules against a GIN layer.")
    parser.add_argument("--sets", type=Path, required=True, help="a folder of TUDataset folders, NCI1 among them")
    parser.add_argument("--flow", type=Path, help="a raster of flow directions, such as that of a river")
    parser.add_argument("--epoch", action="store_true", help="measure an epoch of training, and nothing else")
    options = parser.parse_args()
    if options.epoch:
        write(Path("build/bench/epoch.json"), {"rows": epochs(options.sets, "NCI1")})
        return
    graph_batch = molecules(options.sets)
    print(f"{GRAPHS} molecules of NCI1: {int(graph_batch.node_mask.sum())} nodes in {graph_batch.bucket}")
    rows = [row for mode in MODES for row in rows_of(mode, graph_batch)]
    print(f"{'mode':4}  {'strategy':14}{'forward ms':>11}{'both ms':>9}{'GIN ms':>8}{'ratio':>7}")
    for row in rows:
        mark = "<" if row["chosen"] else ""
        numbers = f"{row['forward']:11.1f}{row['both']:9.1f}{row['gin']:8.1f}{row['ratio']:7.2f}"
        print(f"{row['mode']:4}  {row['strategy']:14}{numbers} {mark}")
    for row in (row for row in rows if row["chosen"]):
        met = row["both"] <= TARGET_MILLISECONDS and row["ratio"] <= TARGET_RATIO
        print(
            f"{row['mode']}: {'met' if met else 'MISSED'} {TARGET_MILLISECONDS:g} ms and {TARGET_RATIO:g} times the GIN layer"
        )
    written: dict[str, Any] = {"bucket": vars(graph_batch.bucket), "rows": rows}
    if options.flow is not None:
        written["flow"] = flow(options.flow)
        print(
            "{nodes:,} nodes, {levels:,} levels: {seconds:.2f} s, {temporary_bytes} bytes of temporaries".format(
                **written["flow"]
            )
        )
    write(Path("build/bench/graphs.json"), written)


if __name__ == "__main__":
    start(main, "benchmarks.graphs")
