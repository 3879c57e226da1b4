"""Chains against a plain `lax.scan` of a few lines, and elementwise decays against the scans that they are to keep up with.

    python -m benchmarks.decays                 every row
    python -m benchmarks.decays --only mamba    the rows whose names contain a word

A row is a scan as the planner runs it, and what it is compared with, in turns in one process, forward alone or with all
gradients; seconds are medians, the ratio is the median of turns. A plain scan evaluates the same gates from the same leaves,
and is asserted to give the same result. Written to build/bench/decays.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from benchmarks.compile_time import write_rows
from stmlang.ending import start

Mode = Literal["inference", "training"]
PASSES: dict[Mode, str] = {"inference": "forward", "training": "forward+backward"}
REPEATS = 9
AGREE = 1e-3
"""How far results in float32 may differ, relative to the largest."""

MAMBA = """scan mamba(heads = 1, key = 16, value = 192) on chain(time) {
    step[value] = softplus(linear(x))
    rate[key, value] = exp(param(0))
    transition[key, value] = exp(-rate[key, value] * step[value])
    source[value] = step
    read after
}
"""
MAMBA_2D = """scan mamba(heads = 1, key = 16, value = 192) on grid(rows, cols) {
    directions all
    step[value] = softplus(linear(x))
    rate[key, value] = exp(param(0))
    decay[key, value] = exp(-rate[key, value] * step[value])
    source[value] = step
    transition[out, in, key, value] = decay
    transition[out = cols, in = rows, key, value] = 0
    mark[key, value] = decay
    direct[value] = step
}
"""
TURN = """scan turn(heads = 3, key = 64, value = 64) on grid(rows, cols) {{
    directions all
    decay{index} = sigmoid(linear(x, bias = 2))
    source[out] = sigmoid(linear(x))
    transition[out, in{comma}] = decay
    transition[out = cols, in = rows{comma}] = 0
    mark[in] = sigmoid(linear(x))
    direct = sigmoid(linear(x))
}}
"""
KEY_TURN, SCALAR_TURN = TURN.format(index="[key]", comma=", key"), TURN.format(index="", comma="")
TRACKS = """scan tracks(heads = 2, key = 16, value = 16, track = 4) on chain(time) {
    source[track] = sigmoid(linear(x))
    normal[track] = l2norm(linear(x))
    transition[track, track'] = eye[track, track'] - 2 * normal[track] * normal[track']
    mark[track] = sigmoid(linear(x))
    direct = sigmoid(linear(x))
}
"""
TRACKS_2D = """scan tracks(heads = 2, key = 16, value = 16, track = 4) on grid(rows, cols) {
    directions all
    source[out, track] = sigmoid(linear(x))
    normal[track] = l2norm(linear(x))
    share[out] = softmax(linear(x), over = out)
    transition[out, in, track, track'] = share * (eye[track, track'] - 2 * normal[track] * normal[track'])
    mark[in, track] = sigmoid(linear(x))
    direct = sigmoid(linear(x))
}
"""
TURNING = """scan turning(heads = 2, key = 64, value = 64) on chain(time) {
    transition[key] = polar(sigmoid(linear(x, bias = 3)), linear(x))
    source = 1 - sigmoid(linear(x))
    mark[key] = conjugate(transition)
    direct = 1
}
"""
GLA = "std:chain/gla"
SIDE = {"rows": 14, "cols": 14}

Plain = Callable[[Any, Any, Any, Mapping[str, Any]], Any]
"""`(q, k, v, leaves) -> result`, as a compiled scan."""


@dataclass(frozen=True)
class Case:
    """A scan at a size, and what its time is over: that of a `plain` scan, or of another spec at `other_sizes`, by a strategy
    where one is named. `target` is the largest ratio."""

    name: str
    spec: str
    sizes: Mapping[str, int]
    target: float
    plain: Plain | None = None
    other: str = ""
    other_sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    strategy: str | None = None


@dataclass(frozen=True)
class Row:
    """One line of the table, in seconds."""

    name: str
    passes: str
    choice: str
    over: str
    ours: float
    theirs: float
    ratio: float
    target: float

    @property
    def met(self) -> bool:
        return self.ratio <= self.target


# --- plain scans -----------------------------------------------------------------------------------------------------


def _scanned(step: Callable[..., Any], arrays: tuple[Any, ...], dtype: Any = None) -> Any:
    """`step(state, *arrays of a node) -> (state, read)` for every node, from a state of zeros `(head, key, value)` of the
    queries' data type, or of another."""
    import jax.numpy as jnp
    from jax import lax

    q, _, v = arrays[:3]
    zeros = jnp.zeros((*q.shape[1:], v.shape[-1]), q.dtype if dtype is None else dtype)
    return lax.scan(lambda state, at: step(state, *at), zeros, arrays)[1]


def _read(q: Any, state: Any) -> Any:
    import jax.numpy as jnp

    return jnp.einsum("hk,hkv->hv", q, state)


def plain_mamba(q: Any, k: Any, v: Any, leaves: Mapping[str, Any]) -> Any:
    """Mamba-1."""
    import jax
    import jax.numpy as jnp

    rate, steps = jnp.exp(leaves["rate"]), jax.nn.softplus(leaves["step"])

    def step(state: Any, q: Any, k: Any, v: Any, size: Any) -> Any:
        state = jnp.exp(-rate * size[:, None]) * state + k[..., None] * (size * v)[:, None]
        return state, _read(q, state)

    return _scanned(step, (q, k, v, steps))


def plain_gla(q: Any, k: Any, v: Any, leaves: Mapping[str, Any]) -> Any:
    """Gated linear attention."""
    import jax

    def step(state: Any, q: Any, k: Any, v: Any, decay: Any) -> Any:
        state = decay[..., None] * state + k[..., None] * v[:, None]
        return state, _read(q, state)

    return _scanned(step, (q, k, v, jax.nn.sigmoid(leaves["transition"]) ** (1 / 16)))


def plain_plstm(q: Any, k: Any, v: Any, leaves: Mapping[str, Any]) -> Any:
    """pLSTM on sequences: one number a head."""
    import jax
    import jax.numpy as jnp

    def step(state: Any, q: Any, k: Any, v: Any, source: Any, mark: Any, direct: Any, decay: Any) -> Any:
        written = k[..., None] * v[:, None]
        read = _read(q, mark[:, None, None] * state + direct[:, None, None] * written)
        return decay[:, None, None] * state + source[:, None, None] * written, read

    gates = [jax.nn.sigmoid(leaves[name]) for name in ("source", "mark", "direct")]
    return _scanned(step, (q, k, v, *gates, jnp.tanh(5 * leaves["transition"])))


def plain_delta(q: Any, k: Any, v: Any, leaves: Mapping[str, Any]) -> Any:
    """DeltaNet."""
    import jax
    import jax.numpy as jnp

    def step(state: Any, q: Any, k: Any, v: Any, beta: Any) -> Any:
        change = beta[:, None] * (v - _read(k, state))
        state = state + k[..., None] * change[:, None]
        return state, _read(q, state)

    k = k / jnp.sqrt(jnp.sum(k * k, -1, keepdims=True) + 1e-12)
    return _scanned(step, (q, k, v, jax.nn.sigmoid(leaves["beta"])))


def plain_turning(q: Any, k: Any, v: Any, leaves: Mapping[str, Any]) -> Any:
    """Complex decays by key."""
    import jax
    import jax.numpy as jnp

    def step(state: Any, q: Any, k: Any, v: Any, source: Any, turn: Any) -> Any:
        written = k[..., None] * v[:, None]
        read = _read(q, jnp.real(jnp.conj(turn)[..., None] * state) + written)
        return turn[..., None] * state + source[:, None, None] * written, read

    radius, angle = jax.nn.sigmoid(leaves["transition"]), leaves["transition.2"]
    turns = radius * jnp.exp(1j * angle)
    return _scanned(step, (q, k, v, 1 - jax.nn.sigmoid(leaves["source"]), turns), turns.dtype)


def _lengths(name: str, spec: str, plain: Plain) -> tuple[Case, ...]:
    return tuple(Case(f"{name} {time}", spec, {"time": time}, 1.0, plain) for time in (16, 256, 4096))


CASES = (
    *_lengths("mamba", MAMBA, plain_mamba),
    *_lengths("gla", GLA, plain_gla),
    *_lengths("plstm", "std:plstm/chain", plain_plstm),
    *_lengths("deltanet", "std:chain/deltanet", plain_delta),
    *_lengths("complex keys", TURNING, plain_turning),
    Case(
        "mamba 4096 to gla",
        MAMBA,
        {"time": 4096},
        2.0,
        other=GLA,
        other_sizes={"time": 4096, "heads": 1, "key": 16, "value": 192},
    ),
    Case("key decay 14x14 to scalar", KEY_TURN, SIDE, 6.0, other=SCALAR_TURN, other_sizes=SIDE),
    Case(
        "tracks 4096 to the sweep",
        TRACKS,
        {"time": 4096},
        1 / 4,
        other=TRACKS,
        other_sizes={"time": 4096},
        strategy="recurrent",
    ),
    Case("tracks 14x14 to the sweep", TRACKS_2D, SIDE, 1 / 4, other=TRACKS_2D, other_sizes=SIDE, strategy="recurrent"),
    Case(
        "complex keys 4096 to the walk",
        TURNING,
        {"time": 4096},
        1.1,
        other=TURNING,
        other_sizes={"time": 4096},
        strategy="walk",
    ),
    Case("2DMamba 14x14 to the sweep", MAMBA_2D, SIDE, 1 / 8, other=MAMBA_2D, other_sizes=SIDE, strategy="recurrent"),
)

# --- measuring -------------------------------------------------------------------------------------------------------


def measure(case: Case, mode: Mode, repeats: int = REPEATS) -> Row:
    """A row, measured in this process. Raises AssertionError where a plain scan has another result."""
    import stmlang
    from stmlang.runtime.measure import scan_program, time_interleaved

    def compiled(spec: str, sizes: Mapping[str, int], strategy: str | None) -> Any:
        asked: dict[str, Any] = {"tuned": False} if strategy is None else {"strategy": strategy}
        return stmlang.compile(spec, target="cpu", mode=mode, **asked, **dict[str, Any](sizes))

    op = compiled(case.spec, case.sizes, None)
    ours = scan_program(op, mode)
    if case.plain is not None:
        over, theirs = "lax.scan", _plain_program(op, case.plain, mode)
    else:
        other = compiled(case.other, case.other_sizes, case.strategy)
        over, theirs = other.plan.chosen.candidate.label, scan_program(other, mode)
    times = time_interleaved({"ours": ours.run, "theirs": theirs.run}, repeats)
    return Row(
        case.name,
        PASSES[mode],
        op.plan.chosen.candidate.label,
        over,
        times["ours"].median,
        times["theirs"].median,
        times["ours"].ratio(times["theirs"]),
        case.target,
    )


def _plain_program(op: Any, plain: Plain, mode: Mode) -> Any:
    """A plain scan on the arguments of a compiled one, or with its gradients, once it was seen to agree."""
    import jax
    import jax.numpy as jnp

    from stmlang.runtime.measure import built

    arguments = op.example()
    expected, result = op(*arguments), plain(*arguments)
    difference = float(jnp.max(jnp.abs(expected - result)) / jnp.max(jnp.abs(expected)))
    assert difference <= AGREE, f"the plain scan differs by {difference:.1e}"
    if mode == "inference":
        return built(plain, *arguments)

    def training(arguments: Any, cotangent: Any) -> Any:
        h, pull = cast("tuple[Any, Callable[[Any], Any]]", jax.vjp(plain, *arguments))
        return h, pull(cotangent)

    return built(training, arguments, jnp.ones_like(result))


HEADER = ("row", "pass", "choice", "over", "ours ms", "theirs ms", "ratio", "target")


def show(rows: list[Row]) -> None:
    """The table as text, what missed its target marked."""
    lines = [HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    print(f"\n{sum(row.met for row in rows)} of {len(rows)} rows met their targets")


def _cells(row: Row) -> tuple[str, ...]:
    times = (f"{row.ours * 1e3:.2f}", f"{row.theirs * 1e3:.2f}")
    return (
        row.name,
        row.passes,
        row.choice,
        row.over,
        *times,
        f"{row.ratio:.2f}{'' if row.met else ' MISSED'}",
        f"{row.target:g}",
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decays", description="Elementwise decays and plain scans.")
    parser.add_argument("--out", type=Path, default=Path("build/bench/decays.json"), help="file to write")
    parser.add_argument("--only", default="", help="measure the rows whose names contain this")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="samples of each program")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for case in CASES:
        if options.only in case.name:
            for mode in PASSES:
                print(f"measuring {case.name}, {PASSES[mode]}", file=sys.stderr, flush=True)
                rows.append(measure(case, mode, options.repeats))
    show(rows)
    write_rows([vars(row) for row in rows], options.out)
    print(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    start(main, "benchmarks.decays")
