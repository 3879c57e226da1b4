"""The authors' layers from the pre-activations of their gates, through the specs of the library.

Their channel c of a gate is head `c // 4`, direction `c % 4`. A spec is unpadded where their layer padded to a power of two.
"""

from __future__ import annotations

import numpy as np
import pytest

import stmlang
from stmlang.check import load
from stmlang.graph.topology import dag_of
from stmlang.oracle.recurrence import reference
from tests.golden.cases import Arrays
from tests.golden.test_plstm import close
from tests.helpers.data import data_folder
from tests.helpers.scans import arrows

HEADS = 3
P_NAMES = {"orientation": "angle", "source": "strength", "transition": "decay", "mark": "mark"}


def read(name: str) -> Arrays:
    with np.load(data_folder("golden/plstm") / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def channels(array: np.ndarray) -> np.ndarray:
    """A pre-activation of one image as `(rows, cols, head, direction)`."""
    rows, columns = array.shape[:2]
    return array.reshape(rows, columns, HEADS, 4)


def p_gates(found: Arrays, image: int) -> Arrays:
    gates = {ours: channels(found[f"{theirs}_pre"][image]) for theirs, ours in P_NAMES.items()}
    return gates | {"direct": found["direct_pre"][image].reshape(*gates["mark"].shape[:3])}


def d_gates(found: Arrays, image: int) -> Arrays:
    """Out and in, in the order rows, cols; the turn that the spec closes is never read."""
    pre = {key.removesuffix("_pre"): array[image] for key, array in found.items() if key.endswith("_pre")}
    r, d, rd = (channels(pre[f"transition_{port}"]) for port in ("r", "d", "rd"))
    return {
        "source": np.stack([channels(pre["source_r"]), channels(pre["source_d"])], -1),
        "mark": np.stack([channels(pre["mark_l"]), channels(pre["mark_u"])], -1),
        "transition": np.stack([np.stack([r, rd], -1), np.stack([np.full_like(d, np.nan), d], -1)], -2),
        "direct": pre["direct"].reshape(*r.shape[:3]),
    }


LAYERS = {
    "layer2dfused_P_4x4": ("std:plstm/image_p_reference", p_gates),
    "layer2dfused_D_L_4x4": ("std:plstm/image_d", d_gates),
    "layer2dfused_D_L_6x6_pad8": ("std:plstm/image_d", d_gates),
}


@pytest.mark.parametrize("name", LAYERS)
def test_image_layers(name: str) -> None:
    found, (spec, mapping) = read(name), LAYERS[name]
    rows, columns = found["direct_pre"].shape[1:3]
    sizes = {"heads": HEADS, "key": 8, "value": 8, "rows": rows, "cols": columns}
    scan, op = load(spec, sizes), stmlang.compile(spec, dtype="float64", **sizes)
    for image in range(len(found["x"])):
        inside = (slice(image * HEADS, (image + 1) * HEADS), slice(rows), slice(columns), slice(None), 0)
        q, k, v, h = (np.moveaxis(found[key][inside], 0, 2) for key in ("cap_Q", "cap_K", "cap_V", "op_H"))
        gates = mapping(found, image)
        close(reference(scan, dag_of(scan.topology), q * 8**-0.5, k, v, gates).h, h)
        gates = {leaf: np.nan_to_num(array, nan=9.0) for leaf, array in gates.items()}
        close(np.asarray(op(q * 8**-0.5, k, v, gates)), h)


def test_graph_layer() -> None:
    """Gates from node and edge features; the layer's own reduction of the line graph is given as a mask."""
    found = read("graphlayer_edge_D")
    weights = {
        key: (found[f"param_{key}.weight"], found[f"param_{key}.bias"]) for key in ("source", "mark", "direct", "transition")
    }
    edges = [(int(tail), int(head)) for tail, head in found["edges_topo"]]
    x, e = found["x"], found["edge_features"][found["topo_edge_idx"]]

    def linear(key: str, *features: np.ndarray) -> np.ndarray:
        weight, bias = weights[key]
        return np.concatenate(features, -1) @ weight.T + bias

    text = f"""scan layer(heads = 2, key = 6, value = 6) on {arrows(len(x), edges)} {{
    source[out] = sigmoid(linear(x, e[out]))
    mark[in] = sigmoid(linear(x, e[in]))
    direct = sigmoid(linear(x))
    kept[out, in] = given(0, 1)
    transition[out, in] = kept * tanh(linear(x, e[out], e[in]))
    stabilize none
}}
"""
    scan = load(text)
    dag = dag_of(scan.topology)
    tail, head = np.asarray(edges).T
    into, out = dag.line_edges.T
    pruned = {(int(a), int(b)) for a, b in found["line_edges"]}
    gates = {
        "source": linear("source", x[tail], e),
        "mark": linear("mark", x[head], e),
        "direct": linear("direct", x),
        # The layer reads the node that the incoming edge comes from, not the one where both edges meet.
        "transition": linear("transition", e[into], e[out], x[tail[into]]),
        "kept": np.asarray([[float((a, b) in pruned)] * 2 for a, b in dag.line_edges]),
    }
    q, k, v, h = (found[key].swapaxes(0, 1) for key in ("gate_Q", "gate_K", "gate_V", "op_H"))
    close(reference(scan, dag, q, k, v, gates).h, h)
    close(np.asarray(stmlang.compile(text, dtype="float64")(q, k, v, gates)), h)
