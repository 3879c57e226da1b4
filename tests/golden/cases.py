"""The authors' vectors, brought into the conventions of this project.

Their batch becomes our heads, their axis 0 is our port `a`, their axis 1 our port `b`. Their operator scales its result by
`key ** -0.5`, which we give to the query. Their sources and direct terms write every key under every value, `(JK, JV)`, and
their marks and direct terms read with every query for every output, `(JO, JQ)`: these pairs are our writes and reads, and an
output is the sum of those of our reads that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from stmlang.scan.expression import Index
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Topology
from tests.helpers.scans import arrows, dag, given_scan, grid, orientations

Arrays = dict[str, np.ndarray]

CHAINS = ("1d_seq16", "1d_seq16_init", "1d_seq16_statetrack")
GRIDS = (
    "2d_3x5_free",
    "2d_4x12_free",
    "2d_4x4_D_L",
    "2d_4x4_D_R",
    "2d_4x4_P_code",
    "2d_4x4_P_paper",
    "2d_4x4_free",
    "2d_4x4_statetrack_free",
    "2d_8x16_D_L",
    "2d_8x8_D_L",
    "2d_8x8_D_R",
    "2d_8x8_P_code",
    "2d_8x8_P_paper",
    "2d_8x8_free",
    "2d_8x8_statetrack_free",
    "2d_multi_4x4_P_code",
    "2d_multi_5x3_P_code_padded8",
    "2d_multi_8x8_D_L",
    "2d_multi_8x8_P_code",
)
LAYERS = ("layer2dfused_D_L_4x4", "layer2dfused_D_L_6x6_pad8", "layer2dfused_P_4x4", "layer2dfused_P_4x4_JT2")
GRAPHS = ("graph_D_n8", "graph_P_n8", "graphlayer_edge_D")
ALL = (*CHAINS, *GRIDS, *LAYERS, *GRAPHS)

TRACKING = ("1d_seq16_statetrack", "2d_4x4_statetrack_free", "2d_8x8_statetrack_free", "layer2dfused_P_4x4_JT2")
"""Those with tracks, and most of them with several writes or reads."""


@dataclass(frozen=True)
class Case:
    """A scan all of whose gates are given, its arguments, and what must come out. `gating` is the expected gating matrix, and
    `h` has what reads give for each of some `outputs`."""

    topology: Topology
    text: str
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    gates: Arrays
    h: np.ndarray
    zero: tuple[tuple[str, str], ...] = ()
    count: int = 1
    track: int = 1
    writes: int = 1
    reads: int = 1
    outputs: int = 1
    initial: tuple[Arrays, ...] | None = None
    final: tuple[Arrays, ...] | None = None
    gating: np.ndarray | None = None
    cotangent: np.ndarray | None = None
    gradients: Arrays = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, int]:
        found = {"heads": self.q.shape[-2 - (self.reads > 1)], "key": self.q.shape[-1], "value": self.v.shape[-1]}
        several = {"track": self.track, "writes": self.writes, "reads": self.reads}
        return found | {name: size for name, size in several.items() if size > 1}

    @property
    def indices(self) -> dict[str, tuple[Index, ...]]:
        """Those of the gates, in the order of their arrays."""
        track: tuple[Index, ...] = ("track",) if self.track > 1 else ()
        write: tuple[Index, ...] = ("write",) if self.writes > 1 else ()
        read: tuple[Index, ...] = ("read",) if self.reads > 1 else ()
        return {
            "source": ("out", *track, *write),
            "transition": ("out", "in", *track, *(("track'",) if track else ())),
            "mark": ("in", *read, *track),
            "direct": (*read, *write),
        }

    @cached_property
    def scan(self) -> Scan:
        directions = orientations(self.count.bit_length() - 1) if self.count > 1 else None
        return given_scan(self.topology, self.indices, zero=self.zero, directions=directions, **self.sizes)

    @cached_property
    def spec(self) -> str:
        """The same scan as a text."""
        lines = ["directions all"] if self.count > 1 else []
        lines += [f"{name}{_bracket(indices)} = given()" for name, indices in self.indices.items()]
        ends = "".join(f", {index}" for index in self.indices["transition"][2:])
        lines += [f"transition[out = {out}, in = {into}{ends}] = 0" for out, into in self.zero]
        lines += ["stabilize none"]
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        body = "\n".join(f"    {line}" for line in lines)
        return f"scan golden({sizes}) on {self.text} {{\n{body}\n}}\n"

    def summed(self, h: np.ndarray) -> np.ndarray:
        """What came out, the reads of each output added up: `(*nodes, head, [output], value)`."""
        if self.reads == 1:
            return h
        by_output = h.reshape(*h.shape[:-2], self.outputs, self.reads // self.outputs, h.shape[-1]).sum(-2)
        return by_output if self.outputs > 1 else by_output[..., 0, :]


def _bracket(indices: Sequence[Index]) -> str:
    return f"[{', '.join(indices)}]" if indices else ""


def load(folder: Path, name: str) -> Case:
    """The case of a file."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    if name in CHAINS:
        return _chain(arrays)
    if name in GRAPHS:
        return _graph(arrays)
    if name in LAYERS:
        arrays = {key.removeprefix("cap_"): array for key, array in arrays.items() if key.startswith("cap_")} | {
            "H": arrays["op_H"],
            "G": arrays["op_G"],
        }
    return _grid(arrays)


@dataclass(frozen=True)
class Components:
    """How many components a file has: of the state's tracks, of keys, values, queries and outputs."""

    track: int
    key: int
    value: int
    query: int
    output: int

    @classmethod
    def of(cls, source: np.ndarray, mark: np.ndarray) -> Components:
        return cls(*source.shape[-3:], mark.shape[-2], mark.shape[-3])

    @property
    def writes(self) -> int:
        return self.key * self.value

    @property
    def reads(self) -> int:
        return self.output * self.query

    @property
    def sizes(self) -> dict[str, int]:
        """As fields of a case."""
        return {"track": self.track, "writes": self.writes, "reads": self.reads, "outputs": self.output}

    def inputs(self, found: Arrays, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Queries, keys and values of every read and write; theirs are `(head, *nodes, size, component)`."""
        query = np.tile(found["Q"], self.output) * found["Q"].shape[-2] ** -0.5
        return (
            _heads(query, nodes),
            _heads(np.repeat(found["K"], self.value, axis=-1), nodes),
            _heads(np.tile(found["V"], self.key), nodes),
        )

    def source(self, array: np.ndarray) -> np.ndarray:
        return _several(array, 3, self.track, self.writes)

    def transition(self, array: np.ndarray) -> np.ndarray:
        return _several(array, 2, *([self.track, self.track] if self.track > 1 else []))

    def mark(self, array: np.ndarray) -> np.ndarray:
        return _several(array, 3, self.reads, self.track)

    def direct(self, array: np.ndarray) -> np.ndarray:
        return _several(array, 4, self.reads, self.writes)

    def gating(self, array: np.ndarray) -> np.ndarray:
        """`(*nodes, *nodes, head, [write], [read])` of one whose last axes are those of a direct term."""
        flat = array.reshape(*array.shape[:-4], self.reads, self.writes)
        return _several(np.swapaxes(flat, -1, -2), 2, self.writes, self.reads)

    def state(self, array: np.ndarray) -> np.ndarray:
        """`(head, [track], key, value)` of `(head, key, value, track)`."""
        return np.moveaxis(array, -1, 1) if self.track > 1 else array[..., 0]


def _several(array: np.ndarray, axes: int, *sizes: int) -> np.ndarray:
    """An array whose last axes are made those of the sizes, without those of size one."""
    return array.reshape(*array.shape[: array.ndim - axes], *(size for size in sizes if size > 1))


def _heads(array: np.ndarray, nodes: int) -> np.ndarray:
    """`(head, *nodes, size, component)` as `(*nodes, head, [component], size)`."""
    moved = np.swapaxes(np.moveaxis(array, 0, nodes), -1, -2)
    return moved if array.shape[-1] > 1 else moved[..., 0, :]


def _chain(found: Arrays) -> Case:
    own = Components.of(found["S"], found["M"])
    state = {name: own.state(found[key]) for name, key in (("initial", "C_initial"), ("final", "C_last")) if key in found}
    return Case(
        grid(found["Q"].shape[1]),
        f"chain(a = {found['Q'].shape[1]})",
        *own.inputs(found, 1),
        {
            "source": own.source(found["S"]).swapaxes(0, 1)[:, :, None],
            "transition": own.transition(found["T"]).swapaxes(0, 1)[:, :, None, None],
            "mark": own.mark(found["M"]).swapaxes(0, 1)[:, :, None],
            "direct": own.direct(found["D"]).swapaxes(0, 1),
        },
        _heads(found["H"], 1),
        initial=({"a": state["initial"]},) if "initial" in state else None,
        final=({"a": state["final"]},),
        gating=own.gating(np.moveaxis(found["G"], (2, 1, 0), (0, 1, 2))),
        **own.sizes,
    )


def _grid(found: Arrays) -> Case:
    rows, columns = found["Q"].shape[1:3]
    own, several = Components.of(found["S_r"], found["M_l"]), found["S_r"].ndim == 7

    def sites(array: np.ndarray) -> np.ndarray:
        """`(head, [direction], x, y, ...)` as `(x, y, head, [direction], ...)`."""
        return np.moveaxis(array, (1 + several, 2 + several), (0, 1))

    absent = np.zeros_like(found["T_rl"])
    source = np.stack([sites(own.source(found[key])) for key in ("S_r", "S_d")], axis=3 + several)
    mark = np.stack([sites(own.mark(found[key])) for key in ("M_l", "M_u")], axis=3 + several)
    turns = [[found.get(f"T_{out}{into}", absent) for into in "lu"] for out in "rd"]
    rows_of = [np.stack([sites(own.transition(turn)) for turn in row], axis=3 + several) for row in turns]
    gating = own.gating(np.moveaxis(found["G"], (2, 4, 1, 3, 0), (0, 1, 2, 3, 4))) if "G" in found else None
    zero = tuple((out, into) for key, out, into in (("T_dl", "b", "a"), ("T_ru", "a", "b")) if key not in found)
    return Case(
        grid(rows, columns),
        f"grid(a = {rows}, b = {columns})",
        *own.inputs(found, 2),
        {
            "source": source,
            "transition": np.stack(rows_of, axis=3 + several),
            "mark": mark,
            "direct": np.moveaxis(own.direct(found["D"]), 0, 2),
        },
        _heads(found["H"], 2),
        zero=zero,
        count=4 if several else 1,
        gating=gating,
        **own.sizes,
    )


def _graph(found: Arrays) -> Case:
    """Given edge by edge; pairs of edges without a transition in the file were pruned there and are zero."""
    prefix = "gate_" if "gate_S" in found else ""
    edges = [(int(tail), int(head)) for tail, head in found["edges_topo"]]
    nodes = found[f"{prefix}Q"].shape[1]
    pairs = sorted(
        ((tail, out, into) for into, (_, head) in enumerate(edges) for out, (tail, _) in enumerate(edges) if head == tail)
    )
    column = {(int(into), int(out)): number for number, (into, out) in enumerate(found["line_edges"])}

    def by_pair(array: np.ndarray) -> np.ndarray:
        zero = np.zeros(len(array))
        return np.stack([array[:, column[into, out]] if (into, out) in column else zero for _, out, into in pairs])

    gradients = {key.removeprefix("grad_"): array for key, array in found.items() if key.startswith("grad_")}
    names = {"S": "source", "T": "transition", "M": "mark", "D": "direct"}
    moved = {names.get(key, key.lower()): np.swapaxes(array, 0, 1) for key, array in gradients.items()}
    if "T" in gradients:
        moved["transition"] = by_pair(gradients["T"])
    return Case(
        dag(nodes, edges),
        arrows(nodes, edges),
        *(found[f"{prefix}{key}"].swapaxes(0, 1) for key in "QKV"),
        {
            "source": found[f"{prefix}S"].T,
            "transition": by_pair(found[f"{prefix}T"]),
            "mark": found[f"{prefix}M"].T,
            "direct": found[f"{prefix}D"].T,
        },
        found["H" if "H" in found else "op_H"].swapaxes(0, 1),
        cotangent=found["cotangent"].swapaxes(0, 1) if "cotangent" in found else None,
        gradients=moved,
    )
