"""The specs of the library give the numbers of the authors of each architecture: outputs, states and gradients.

A case is a function from a file's inputs to its outputs, with a spec of the library inside. Outputs are compared, and the
gradient of the sum of all outputs times the file's cotangents. Where a spec normalizes keys and the authors' function takes
them as they are, the spec is taken without that line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import stmlang
from stmlang.check import open_spec
from tests.helpers.data import data_folder

Arrays = dict[str, Array]
TOLERANCE = 1e-10


def without(name: str, line: str) -> str:
    """A spec of the library without one of its lines."""
    lines = open_spec(f"std:{name}").source.text.split("\n")
    assert sum(entry.strip() == line for entry in lines) == 1
    return "\n".join(entry for entry in lines if entry.strip() != line)


def read(name: str) -> Arrays:
    with np.load(data_folder("golden/zoo") / f"{name}.npz", allow_pickle=False) as file:
        return {key: jnp.asarray(file[key]) for key in file.files}


def by_head(array: Array) -> Array:
    """`[1, head, node, ...]` as `(node, head, ...)`."""
    return jnp.moveaxis(array[0], 0, 1)


@cache
def compiled(spec: str, **sizes: int) -> stmlang.CompiledScan:
    op = stmlang.compile(spec, dtype="float64", tuned=False, **sizes)
    assert isinstance(op, stmlang.CompiledScan)
    return op


def mlstm(given: Arrays) -> Arrays:
    op = compiled("std:chain/mlstm", heads=2, key=8, value=6, time=24)
    gates = {"source": by_head(given["i"]), "transition": by_head(given["f"])}
    h = op(by_head(given["q"]) * 8**-0.5, by_head(given["k"]), by_head(given["v"]), gates)
    return {"h": jnp.moveaxis(h, 0, 1)[None]}


def mlstm_from_a_state(given: Arrays) -> Arrays:
    """The scale of the state that is given counts as a term: one of a first node that writes a key of zero."""
    op = compiled("std:chain/mlstm", heads=2, key=8, value=6, time=25)

    def behind(first: Array, rest: Array) -> Array:
        return jnp.concatenate([first, rest])

    q, k, v = (behind(jnp.zeros((1, *given[name].shape[1:2], given[name].shape[-1])), by_head(given[name])) for name in "qkv")
    m = given["m0"][0, :, 0]
    gates = {"source": behind(m[None], by_head(given["i"])), "transition": behind(jnp.full((1, 2), 40.0), by_head(given["f"]))}
    state = jnp.concatenate([given["c0"], given["n0"][..., None]], axis=-1)[0] * jnp.exp(m)[:, None, None]
    h, (final,) = op(q * 8**-0.5, k, v, gates, initial=({"time": state},), return_state=True)
    scale = jnp.exp(-largest(given))[:, None, None]
    return {
        "h": jnp.moveaxis(h[1:], 0, 1)[None],
        "c": (final["time"][..., :-1] * scale)[None],
        "n": (final["time"][..., -1] * scale[..., 0])[None],
    }


def largest(given: Arrays) -> Array:
    """The stabiliser that the authors return beside the state that they divide by it."""
    m = given["m0"][0, :, 0]
    for t in range(given["i"].shape[-1]):
        m = jnp.maximum(jax.nn.log_sigmoid(given["f"][0, :, t]) + m, given["i"][0, :, t])
    return m


# --- linear attention, RetNet ----------------------------------------------------------------------------------------


def positive_inverse(y: Array) -> Array:
    """What `elu(x) + 1` was taken of."""
    return jnp.where(y >= 1, y - 1, jnp.log(jnp.minimum(y, 1)))


def linear_attention(given: Arrays) -> Arrays:
    """The result divided and not, and the sums of both; queries and keys come behind their feature map."""
    sizes = {"heads": 2, "key": 8, "value": 6, "time": 24}
    arrays = [positive_inverse(given["q"][0]), positive_inverse(given["k"][0]), given["v"][0]]
    initial = None
    if "h0" in given:
        initial = ({"time": jnp.concatenate([given["h0"][0], given["z0"][0, 0][..., None]], axis=-1)},)
    h, (final,) = compiled("std:chain/linear_attention", **sizes)(*arrays, {}, initial=initial, return_state=True)
    plain = compiled(without("chain/linear_attention", "normalize sum"), **sizes)
    outputs = {"o_norm": h[None], "ht": final["time"][None, ..., :-1], "zt": final["time"][None, None, ..., -1]}
    return outputs if "h0" in given else outputs | {"o": plain(*arrays, {})[None] * 8**-0.5}


def retnet(given: Arrays) -> Arrays:
    op = compiled("std:chain/retnet", heads=2, key=8, value=6, time=24)
    initial = ({"time": given["h0"][0]},) if "h0" in given else None
    arrays = (by_head(given["q"]) * 8**-0.5, by_head(given["k"]), by_head(given["v"]))
    h, (final,) = op(*arrays, {}, initial=initial, return_state=True)
    return {"o": jnp.moveaxis(h, 0, 1)[None], "ht": final["time"][None]}


# --- selective state spaces ------------------------------------------------------------------------------------------


def selective(spec: str, given: Arrays, length: int, names: str = "", axis: str = "time") -> tuple[Array, Array]:
    """The scan of Mamba on arrays `[1, channel, node]`: before the skip and the gate, `(node, channel)`, and the last state."""
    op = compiled(spec, heads=1, key=8, value=6, **{axis: length})
    ones = jnp.ones((1, 8, length))
    u, B, C = (given.get(f"{name}{names}", ones)[0].T[:, None] for name in "uBC")
    dt = given[f"delta{names}"] + given.get(f"delta_bias{names}", given.get(f"dtbias{names}"))[:, None]
    gates = {"dt": dt[0].T[:, None], "rate": jnp.log(-given[f"A{names}"]).T[None]}
    h, (final,) = op(C, B, u, gates, return_state=True)
    return h[:, 0], final[axis][0]


def mamba(given: Arrays) -> Arrays:
    y, final = selective("std:chain/mamba", given, 24)
    y = (y.T + given["D"][:, None] * given["u"][0]) * jax.nn.silu(given["z"][0])
    return {"y": y[None], "last_state": final.T[None]}


def vim(given: Arrays) -> Arrays:
    """Both directions in one scan, the same gate behind each, and the mean of the two; and what either gives by itself."""
    op = compiled("std:chain/vim", heads=1, key=8, value=6, patches=24)

    def both(name: str) -> Array:
        """`[1, index, node]` of each direction as `(node, head, direction, index)`."""
        return jnp.stack([given[f"{name}_{way}"][0].T[:, None] for way in "fb"], axis=2)

    bias = jnp.stack([given[f"dtbias_{way}"] for way in "fb"])
    rate = jnp.stack([jnp.log(-given[f"A_{way}"]).T for way in "fb"])[None]
    gates = {"dt": both("delta") + bias, "rate": rate}
    u, gate = both("u"), jax.nn.silu(given["z"])
    skip = jnp.stack([given[f"D_{way}"] for way in "fb"]) * u

    def behind(h: Array, *ways: int) -> Array:
        return (h + sum(skip[:, :, way] for way in ways))[:, 0].T[None] * gate

    h = op(both("C"), both("B"), u, gates)
    single = {way: u.at[:, :, 1 - number].set(0) for number, way in enumerate("fb")}
    alone = {way: op(both("C"), both("B"), values, gates) for way, values in single.items()}
    each = {f"y_{way}": behind(h, number) for number, (way, h) in enumerate(alone.items())}
    return {"y": behind(h, 0, 1) / 2, **each}


def mamba_complex(given: Arrays) -> Arrays:
    """`B` and `C` hold real and imaginary parts in turn."""
    op = compiled("std:chain/mamba_complex", heads=1, key=8, value=6, time=24)
    gates = {"dt": given["delta"][0].T[:, None]}
    for name, leaf in (("B", "b"), ("C", "c")):
        gates |= {leaf: given[name][0, :, ::2].T[:, None], f"{leaf}.2": given[name][0, :, 1::2].T[:, None]}
    A = given["A"].T[None]
    gates |= {"a": jnp.log(-A.real), "a.2": A.imag}
    ones = jnp.ones((24, 1, 8))
    h, (final,) = op(ones, ones, given["u"][0].T[:, None], gates, return_state=True)
    state = final["time"][0]
    return {"y": (h[:, 0].T + given["D"][:, None] * given["u"][0])[None], "last_state": (state[0] + 1j * state[1]).T[None]}


def v2m(given: Arrays) -> Arrays:
    """Twenty rows, then twenty columns, each by itself."""
    text = open_spec("std:chain/v2m").source.text
    rows = text[: text.index("scan v2m(")]

    outputs: Arrays = {}
    for number, (spec, axis, own) in enumerate([(rows, "cols", "B1"), ("std:chain/v2m", "rows", "C2")], 1):
        names = [f"u{number}", f"delta{number}", f"z{number}", own]

        def each(mapped: Arrays, number: int = number, spec: str = spec, axis: str = axis) -> tuple[Array, Array]:
            fixed = {f"A{number}": given[f"A{number}"], f"dtbias{number}": given[f"dtbias{number}"]}
            wide = {name: array[None] for name, array in mapped.items()}
            y, final = selective(spec, wide | fixed, 5, str(number), axis)
            y = y.T + given[f"D{number}"][:, None] * mapped[f"u{number}"]
            return y * jax.nn.silu(mapped[f"z{number}"]), final.T

        outputs[f"y{number}"], outputs[f"last{number}"] = jax.vmap(each)({name: given[name] for name in names})
    return outputs


def mamba_2d(given: Arrays) -> Arrays:
    op = compiled("std:grid/2dmamba", heads=1, key=8, value=6, rows=5, cols=7)

    def grid(array: Array) -> Array:
        return array[0].T.reshape(5, 7, 1, -1)

    gates = {"dt": grid(given["delta"] + given["delta_bias"][:, None]), "rate": jnp.log(-given["A"]).T[None]}
    h = op(grid(given["C"]), grid(given["B"]), grid(given["u"]), gates)
    y = h.reshape(35, 6).T + given["D"][:, None] * given["u"][0]
    return {"y": (y * jax.nn.silu(given["z"][0]))[None]}


# --- the delta rule --------------------------------------------------------------------------------------------------


def logit(y: Array) -> Array:
    return jnp.log(y) - jnp.log1p(-y)


def deltanet(given: Arrays) -> Arrays:
    op = compiled(without("chain/deltanet", "k    = l2norm(k)"), heads=2, key=8, value=6, time=24)
    initial = ({"time": given["h0"][0]},) if "h0" in given else None
    arrays = (by_head(given["q"]) * 8**-0.5, by_head(given["k"]), by_head(given["v"]))
    h, (final,) = op(*arrays, {"beta": logit(by_head(given["beta"]))}, initial=initial, return_state=True)
    return {"o": jnp.moveaxis(h, 0, 1)[None], "ht": final["time"][None]}


def deltaproduct(given: Arrays) -> Arrays:
    """Two steps a token, which the files have one behind the other, `[1, 2 * token, head, ...]`."""
    op = compiled(without("chain/deltaproduct", "k          = l2norm(k)"), heads=2, key=8, value=6, time=24)
    initial = ({"time": given["h0"][0]},) if "h0" in given else None
    k, v, beta = (jnp.moveaxis(given[name].reshape(24, 2, *given[name].shape[2:]), 1, 2) for name in ("k", "v", "beta"))
    decay = given["g"][0] if "g" in given else jnp.zeros((24, 2))
    gates = {"beta": logit(beta / 2), "alpha": jnp.stack([decay, jnp.zeros_like(decay)], axis=-1)}
    h, (final,) = op(given["q"][0], k, v, gates, initial=initial, return_state=True)
    return {"o": h[None], "ht": final["time"][None]}


# --- trees and graphs ------------------------------------------------------------------------------------------------


def cells(spec: str, share: str = "1") -> Callable[[Arrays], Arrays]:
    """A linear LSTM on the edges of a file, whose gates are there as values in (0, 1)."""

    def run(given: Arrays) -> Arrays:
        edges = np.asarray(given["edges"])
        nodes = given["z"].shape[0]
        arrows = "; ".join([*(f"n{node}" for node in range(nodes)), *(f"n{tail} -> n{head}" for tail, head in edges)])
        tree = spec == "graph/treelstm"
        head, body = open_spec(f"std:{spec}").source.text.split("\nscan ")
        text = f"topology {'parse' if tree else 'asia'} = {'tree' if tree else 'dag'} {{ {arrows} }}\nscan {body}"
        assert ("topology parse" if tree else "topology asia") in head
        if share != "1":
            assert "share             = 1" in text
            text = text.replace("share             = 1", f"share = {share}")
        op = compiled(text, heads=1, value=6)
        ones = jnp.ones((nodes, 1, 1))
        gates = {"forget": logit(given["f"])[:, None], "write": logit(given["i"])[:, None], "open": logit(given["o"])[:, None]}
        return {"h": op(ones, ones, given["z"][:, None], gates)[:, 0]}

    return run


CASES: Mapping[str, Callable[[Arrays], Arrays]] = {
    "mlstm": mlstm,
    "mlstm_init": mlstm_from_a_state,
    "mlstm_extreme": mlstm,
    "linear_attention": linear_attention,
    "linear_attention_init": linear_attention,
    "retnet": retnet,
    "retnet_init": retnet,
    "mamba1": mamba,
    "vim": vim,
    "mamba1_complex": mamba_complex,
    "v2m": v2m,
    "2dmamba": mamba_2d,
    "deltanet": deltanet,
    "deltanet_init": deltanet,
    "deltaproduct": deltaproduct,
    "deltaproduct_init": deltaproduct,
    "gated_deltaproduct": deltaproduct,
    "gated_deltaproduct_init": deltaproduct,
    "tree_lstm_linear": cells("graph/treelstm"),
    "dag_lstm_linear": cells("graph/daglstm"),
    "dag_lstm_linear_mean": cells("graph/daglstm", "1 / degree(in)"),
}


@pytest.mark.parametrize("name", CASES)
def test_architecture(name: str) -> None:
    arrays, function = read(name), CASES[name]
    inputs = {key.removeprefix("in_"): array for key, array in arrays.items() if key.startswith("in_")}
    given = {key: array for key, array in inputs.items() if jnp.issubdtype(array.dtype, jnp.inexact)}
    edges = {key: array for key, array in inputs.items() if key not in given}
    cotangents = {key.removeprefix("ct_"): array for key, array in arrays.items() if key.startswith("ct_")}

    def loss(given: Arrays) -> tuple[Array, Arrays]:
        outputs = function(given | edges)
        return sum((jnp.sum(cotangents[key] * outputs[key]) for key in cotangents), jnp.zeros(())), outputs

    gradients, outputs = jax.jit(jax.grad(loss, has_aux=True))(given)
    errors = {key: distance(outputs[key], arrays[f"out_{key}"]) for key in outputs}
    # By a complex number the files have the derivative along its imaginary part as the imaginary part, jax.grad its negative.
    errors |= {f"gradient {key}": distance(gradients[key].conj(), arrays[f"grad_{key}"]) for key in given}
    assert set(cotangents) <= set(outputs)
    assert {key: error for key, error in errors.items() if not error <= TOLERANCE} == {}


@pytest.mark.parametrize("strategy", ["recurrent", "linear", "parallel", "chunkwise"])
def test_single_precision_where_one_term_outweighs_all_others(strategy: str) -> None:
    """Derivatives by gates are what the small terms leave of large ones that cancel: in float32 they are off by little of
    themselves, and not of what cancels."""
    arrays = read("mlstm_extreme")
    op = stmlang.compile("std:chain/mlstm", dtype="float32", strategy=strategy, tuned=False, heads=2, key=8, value=6, time=24)
    assert isinstance(op, stmlang.CompiledScan)
    given = {name: arrays[f"in_{name}"].astype(jnp.float32) for name in "qkvif"}
    cotangent = by_head(arrays["ct_h"]).astype(jnp.float32)

    def loss(given: Arrays) -> Array:
        gates = {"source": by_head(given["i"]), "transition": by_head(given["f"])}
        return jnp.sum(cotangent * op(by_head(given["q"]) * 8**-0.5, by_head(given["k"]), by_head(given["v"]), gates))

    gradients = jax.jit(jax.grad(loss))(given)
    sizes = {name: jnp.abs(arrays[f"grad_{name}"]).max() for name in given}
    errors = {name: float(jnp.abs(gradients[name] - arrays[f"grad_{name}"]).max() / sizes[name]) for name in given}
    assert sizes["f"] < 1e-4 * sizes["v"]
    assert {name: error for name, error in errors.items() if not error <= 3e-4} == {}
    assert max(errors["i"], errors["f"]) <= 1e-5


def distance(array: Array, expected: Array) -> float:
    """The largest difference, relative to the largest number."""
    assert array.shape == expected.shape
    return float(jnp.abs(array - expected).max() / jnp.maximum(1.0, jnp.abs(expected).max()))
