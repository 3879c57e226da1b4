"""pLSTM-Vis against a vision transformer of the same width and depth, whole and by part.

    python -m benchmarks.vision                     models at 224x224 and 448x448, then the parts of a layer, a process for each
    python -m benchmarks.vision --only 224          the sizes whose names contain a word

Models are those of 12 layers of 192 features, in float32, in training with the gradients of parameters and of what they are
given. Both are made once, without saying what for, and in inference called as any trained model is: scans that nothing
differentiates follow their plans for inference. Both run in turns in one process; a ratio is the median of turns. Parts are
the two layers of pLSTM-Vis, their scans alone, attention, and a perceptron. Written to build/bench/vision.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

from benchmarks.compile_time import write_rows
from stmlang.ending import output_of, start

Mode = Literal["inference", "training"]
MODES: tuple[Mode, ...] = ("inference", "training")
REPEATS = 7


@dataclass(frozen=True)
class Size:
    """Images of a batch, and the largest ratios of pLSTM's time to the transformer's, forward and with gradients."""

    side: int
    batch: int
    targets: tuple[float, float]

    @property
    def name(self) -> str:
        return f"{self.side}x{self.side} batch {self.batch}"


@dataclass(frozen=True)
class Model:
    """Of both models: features, heads, layers, side of a patch."""

    dim: int = 192
    heads: int = 3
    depth: int = 12
    patch: int = 16


SIZES = (Size(224, 4, (1.15, 1.25)), Size(448, 2, (1.0, 1.15)))
MODEL = Model()


@dataclass(frozen=True)
class Row:
    """A program: seconds of a call and of compiling, bytes of temporaries, and the ratio of its seconds to those of the first
    program of its table, which is the transformer, or attention."""

    size: str
    mode: Mode
    name: str
    seconds: float
    ratio: float
    compile_seconds: float
    temporaries: int


Makers = Mapping[str, Callable[[], tuple[Any, Any]]]
"""By name, a model or layer and the arguments of its calls, without those that it learns."""


def models(size: Size, model: Model) -> Makers:
    """The transformer and pLSTM-Vis, each with a batch of images."""
    import jax

    from stmlang.models.vision import plstm_vis, vit

    key, square = jax.random.key(0), (size.side, size.side)
    common: dict[str, Any] = {"heads": model.heads, "depth": model.depth, "patch": model.patch, "size": square, "key": key}

    def images() -> Any:
        return jax.random.normal(jax.random.key(1), (size.batch, *square, 3))

    return {
        "ViT": lambda: (vit(model.dim, **common), images()),
        "pLSTM-Vis": lambda: (plstm_vis(model.dim, **common), images()),
    }


def layers(size: Size, model: Model) -> Makers:
    """What a layer of either model holds, on features of all nodes."""
    import jax

    import stmlang
    from stmlang.models.parts import Perceptron
    from stmlang.models.vision import ImageScan
    from stmlang.models.vision.vit import Attention

    nodes, key, width = size.side // model.patch, jax.random.key(0), model.dim // model.heads
    grid = {"rows": nodes, "cols": nodes, "heads": model.heads, "key": width, "value": width}
    p, d = (cast(Any, stmlang.compile(f"std:plstm/image_{mode}", batch=size.batch, **cast(Any, grid))) for mode in "pd")

    def features(*shape: int) -> Any:
        return jax.random.normal(jax.random.key(1), (size.batch, *shape, model.dim))

    def alone(op: Any) -> tuple[Any, Any]:
        layer, x = ImageScan(op, model.dim, key=key), features(nodes, nodes)
        q, k, v = jax.random.normal(jax.random.key(2), (3, size.batch, nodes, nodes, model.heads, width))

        def gates(x: Any) -> Any:
            return layer.gates(x, op.signature.gates)

        def scan(arrays: Any) -> Any:
            return op(*arrays)

        return scan, (q, k, v, jax.vmap(gates)(x))

    return {
        "attention": lambda: (Attention(model.dim, heads=model.heads, key=key), features(nodes * nodes)),
        "P layer": lambda: (ImageScan(p, model.dim, key=key), features(nodes, nodes)),
        "its scan": lambda: alone(p),
        "D layer": lambda: (ImageScan(d, model.dim, key=key), features(nodes, nodes)),
        "its scan too": lambda: alone(d),
        "perceptron": lambda: (Perceptron(model.dim, 4 * model.dim, key=key), features(nodes, nodes)),
    }


def measure(makers: Makers, size: Size, mode: Mode, repeats: int = REPEATS) -> list[Row]:
    """A row for each program, measured in this process."""
    from stmlang.runtime.measure import built, time_interleaved

    programs = {name: built(*_program(*make(), mode)) for name, make in makers.items()}
    times = time_interleaved({name: program.run for name, program in programs.items()}, repeats)
    first = times[next(iter(times))]
    return [
        Row(size.name, mode, name, time.median, time.ratio(first), program.compile_seconds, program.temporary_bytes)
        for (name, time), program in zip(times.items(), programs.values(), strict=True)
    ]


def _program(module: Any, arguments: Any, mode: Mode) -> tuple[Any, ...]:
    """A function of what is learned and of the arguments, and both: results over a batch, or the gradients of their sum of
    squares."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    learned, rest = cast(tuple[Any, Any], eqx.partition(module, eqx.is_inexact_array))

    def forward(learned: Any, arguments: Any) -> Any:
        combined: Any = eqx.combine(learned, rest)
        return jax.vmap(combined)(arguments)

    def gradients(learned: Any, arguments: Any) -> Any:
        def loss(learned: Any, arguments: Any) -> Any:
            return jnp.sum(forward(learned, arguments) ** 2)

        return cast(Any, jax.grad(loss, argnums=(0, 1)))(learned, arguments)

    return (forward if mode == "inference" else gradients), learned, arguments


HEADER = ("size", "mode", "program", "ms", "ratio", "target", "compile s", "temporaries MB")


def show(rows: list[Row]) -> None:
    """The table as text, what missed its target marked."""
    lines = [HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cells(row: Row) -> tuple[str, ...]:
    targets = next((size.targets for size in SIZES if size.name == row.size), (float("inf"), float("inf")))
    target = targets[MODES.index(row.mode)] if row.name == "pLSTM-Vis" else float("inf")
    return (
        row.size,
        row.mode,
        row.name,
        f"{row.seconds * 1e3:.2f}",
        f"{row.ratio:.2f}{' MISSED' if row.ratio > target else ''}",
        f"{target:g}" if target < float("inf") else "",
        f"{row.compile_seconds:.1f}",
        f"{row.temporaries / 1e6:.1f}",
    )


TABLES: Mapping[str, Callable[[Size, Model], Makers]] = {"models": models, "layers": layers}


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vision", description="pLSTM-Vis against a vision transformer.")
    parser.add_argument("--out", type=Path, default=Path("build/bench/vision.json"), help="file to write")
    parser.add_argument("--only", default="", help="measure the sizes whose names contain this")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), help="whole models, parts, or both")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="samples of each program")
    parser.add_argument("--one", nargs=3, metavar=("TABLE", "SIZE", "MODE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        table, name, mode = options.one
        size = next(size for size in SIZES if size.name == name)
        rows = measure(TABLES[table](size, MODEL), size, cast(Mode, mode), options.repeats)
        print(json.dumps([asdict(row) for row in rows]))
        return 0
    sizes = [size.name for size in SIZES if options.only in size.name]
    rows = [
        row
        for table in options.tables
        for name in sizes
        for mode in MODES
        for row in _apart(table, name, mode, options.repeats)
    ]
    write_rows([asdict(row) for row in rows], options.out)
    show(rows)
    print(f"wrote {options.out}")
    return 0


def _apart(table: str, size: str, mode: Mode, repeats: int) -> list[Row]:
    """Rows in a fresh process on the CPU, without a compilation cache."""
    command = [sys.executable, "-m", "benchmarks.vision", "--repeats", str(repeats), "--one", table, size, mode]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    return [Row(**row) for row in json.loads(output_of(command, environment).splitlines()[-1])]


if __name__ == "__main__":
    start(main, "benchmarks.vision")
