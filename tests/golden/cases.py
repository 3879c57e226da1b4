"""The authors' vectors, brought into the conventions of this project.

Their batch becomes our heads, their axis 0 is our port `a`, their axis 1 our port `b`. Their operator scales its result by
`key ** -0.5`, which we give to the query. Files with several key, value, query or output components need several sources a
node and are no cases here; `layer2dfused_P_4x4_JT2` has tracks only and is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from stmlang.scan.expression import Index
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Topology
from tests.helpers.scans import PLAIN, arrows, dag, given_scan, grid, orientations

Arrays = dict[str, np.ndarray]

CHAINS = ("1d_seq16", "1d_seq16_init")
GRIDS = (
    "2d_3x5_free",
    "2d_4x12_free",
    "2d_4x4_D_L",
    "2d_4x4_D_R",
    "2d_4x4_P_code",
    "2d_4x4_P_paper",
    "2d_4x4_free",
    "2d_8x16_D_L",
    "2d_8x8_D_L",
    "2d_8x8_D_R",
    "2d_8x8_P_code",
    "2d_8x8_P_paper",
    "2d_8x8_free",
    "2d_multi_4x4_P_code",
    "2d_multi_5x3_P_code_padded8",
    "2d_multi_8x8_D_L",
    "2d_multi_8x8_P_code",
)
LAYERS = ("layer2dfused_D_L_4x4", "layer2dfused_D_L_6x6_pad8", "layer2dfused_P_4x4", "layer2dfused_P_4x4_JT2")
GRAPHS = ("graph_D_n8", "graph_P_n8", "graphlayer_edge_D")
ALL = (*CHAINS, *GRIDS, *LAYERS, *GRAPHS)

TRACKS: dict[str, tuple[Index, ...]] = PLAIN | {
    "source": ("out", "track"),
    "transition": ("out", "in", "track", "track'"),
    "mark": ("in", "track"),
}


@dataclass(frozen=True)
class Case:
    """A scan all of whose gates are given, its arguments, and what must come out. `gating` is the expected gating matrix."""

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
    initial: tuple[Arrays, ...] | None = None
    final: tuple[Arrays, ...] | None = None
    gating: np.ndarray | None = None
    cotangent: np.ndarray | None = None
    gradients: Arrays = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, int]:
        found = {"heads": self.q.shape[-2], "key": self.q.shape[-1], "value": self.v.shape[-1]}
        return found | ({"track": self.track} if self.track > 1 else {})

    @cached_property
    def scan(self) -> Scan:
        indices = TRACKS if self.track > 1 else PLAIN
        directions = orientations(self.count.bit_length() - 1) if self.count > 1 else None
        return given_scan(self.topology, indices, zero=self.zero, directions=directions, **self.sizes)

    @cached_property
    def spec(self) -> str:
        """The same scan as a text."""
        track = "track" if self.track > 1 else ""
        lines = ["directions all"] if self.count > 1 else []
        lines += [f"source[out{', track' if track else ''}] = given()"]
        lines += [f"transition[out, in{', track, track' + chr(39) if track else ''}] = given()"]
        lines += [
            f"transition[out = {out}, in = {into}{', track, track' + chr(39) if track else ''}] = 0" for out, into in self.zero
        ]
        lines += [f"mark[in{', track' if track else ''}] = given()", "direct = given()", "stabilize none"]
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        body = "\n".join(f"    {line}" for line in lines)
        return f"scan golden({sizes}) on {self.text} {{\n{body}\n}}\n"


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


def _heads(array: np.ndarray, nodes: int) -> np.ndarray:
    """`(head, *nodes, size, 1)` as `(*nodes, head, size)`."""
    return np.moveaxis(array[..., 0], 0, nodes)


def _chain(found: Arrays) -> Case:
    state = {name: found[key][None, ..., 0][0] for name, key in (("initial", "C_initial"), ("final", "C_last")) if key in found}
    return Case(
        grid(found["Q"].shape[1]),
        f"chain(a = {found['Q'].shape[1]})",
        _heads(found["Q"], 1) * found["Q"].shape[2] ** -0.5,
        _heads(found["K"], 1),
        _heads(found["V"], 1),
        {
            "source": found["S"][..., 0, 0].swapaxes(0, 1),
            "transition": found["T"].swapaxes(0, 1),
            "mark": found["M"][..., 0, 0].swapaxes(0, 1),
            "direct": found["D"][..., 0, 0, 0, 0].T,
        },
        _heads(found["H"], 1),
        initial=({"a": state["initial"]},) if "initial" in state else None,
        final=({"a": state["final"]},),
        gating=found["G"].reshape(found["G"].shape[:3]).transpose(2, 1, 0),
    )


def _grid(found: Arrays) -> Case:
    rows, columns = found["Q"].shape[1:3]
    several, track = found["S_r"].ndim == 7, found["S_r"].shape[-3]

    def sites(array: np.ndarray) -> np.ndarray:
        """`(head, [direction], x, y, ...)` as `(x, y, head, [direction], ...)`."""
        return (
            np.moveaxis(array, (-2, -1), (0, 1))
            if array.ndim == 3 + several
            else np.moveaxis(array, (1 + several, 2 + several), (0, 1))
        )

    def plain(array: np.ndarray) -> np.ndarray:
        return array if track > 1 else array[..., 0]

    absent = np.zeros_like(found["T_rl"])
    source = np.stack([sites(plain(found[key][..., 0, 0])) for key in ("S_r", "S_d")], axis=3 + several)
    mark = np.stack([sites(plain(found[key][..., 0, 0, :])) for key in ("M_l", "M_u")], axis=3 + several)
    turns = [[found.get(f"T_{out}{into}", absent) for into in "lu"] for out in "rd"]
    rows_of = [np.stack([sites(plain(plain(turn))) for turn in row], axis=3 + several) for row in turns]
    gating = None
    if "G" in found:
        gating = found["G"].reshape(found["G"].shape[:5]).transpose(2, 4, 1, 3, 0)
    zero = tuple((out, into) for key, out, into in (("T_dl", "b", "a"), ("T_ru", "a", "b")) if key not in found)
    return Case(
        grid(rows, columns),
        f"grid(a = {rows}, b = {columns})",
        _heads(found["Q"], 2) * found["Q"].shape[3] ** -0.5,
        _heads(found["K"], 2),
        _heads(found["V"], 2),
        {
            "source": source,
            "transition": np.stack(rows_of, axis=3 + several),
            "mark": mark,
            "direct": np.moveaxis(found["D"][..., 0, 0, 0, 0], 0, 2),
        },
        _heads(found["H"], 2),
        zero=zero,
        count=4 if several else 1,
        track=track,
        gating=gating,
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
