"""`CompiledScan`: arrays that are none, gates and states of the wrong make, options of its methods, numbers that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.runtime.compiled import CompiledScan
from tests.api.refusals import Refusal, nothing_written, refused, refused_cheaply

CHAIN = "scan s(heads = 2, key = 3, value = 4) on chain(t) { source = linear(x); transition = sigmoid(linear(x)) }\n"
SHAPE = (6, 2, 3)


@pytest.fixture(scope="module")
def op() -> CompiledScan:
    return stmlang.compile(CHAIN, t=6, strategy="recurrent")


class Duck:
    """Looks like an array."""

    shape, dtype = SHAPE, "float32"


CONVERT = "jnp.asarray(x, jnp.float32)"
ARRAYS: dict[str, tuple[Any, Refusal]] = {
    "none": (None, Refusal("STM5203", "not NoneType", CONVERT)),
    "text": ("abc", Refusal("STM5203", "not str", CONVERT)),
    "list": ([[1.0]], Refusal("STM5203", "not list", CONVERT)),
    "number": (1.0, Refusal("STM5203", "not float", CONVERT)),
    "duck": (Duck(), Refusal("STM5203", "not Duck", CONVERT)),
    "shape": (jax.ShapeDtypeStruct(SHAPE, jnp.float32), Refusal("STM5203", "not ShapeDtypeStruct", CONVERT)),
    "masked": (np.ma.masked_array(np.ones(SHAPE)), Refusal("STM5203", "without a mask", "x.filled(0)")),
    "bytes": (np.ones(SHAPE, np.uint8), Refusal("STM5205", "not uint8", CONVERT)),
    "truth": (np.ones(SHAPE, bool), Refusal("STM5205", "not bool", CONVERT)),
    "complex": (np.ones(SHAPE, complex), Refusal("STM5205", "not complex128", CONVERT)),
    "objects": (np.full(SHAPE, None, object), Refusal("STM5205", "not object", CONVERT)),
    "texts": (np.full(SHAPE, "a"), Refusal("STM5205", "not <U1", CONVERT)),
    "dates": (np.zeros(SHAPE, "M8[s]"), Refusal("STM5205", "not datetime64", CONVERT)),
    "records": (np.zeros(SHAPE, [("a", "f4")]), Refusal("STM5205", "('a', '<f4')", CONVERT)),
    "extended": (np.ones(SHAPE, np.longdouble), Refusal("STM5205", f"not {np.dtype(np.longdouble)}", CONVERT)),
    "foreign": (np.ones(SHAPE, ">f4"), Refusal("STM5205", "not >f4", CONVERT)),
    "keys": (jax.random.split(jax.random.key(0), SHAPE), Refusal("STM5205", "not key<fry>", CONVERT)),
    "empty": (np.zeros((0, 2, 3), np.float32), Refusal("STM5201", "not (0, 2, 3)", "must have the shape (6, 2, 3)")),
    "one number": (np.float32(1), Refusal("STM5201", "not ()", "must have the shape (6, 2, 3)")),
    "longer": (np.ones((7, 2, 3), np.float32), Refusal("STM5201", "not (7, 2, 3)", "must have the shape (6, 2, 3)")),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_none(op: CompiledScan, name: str) -> None:
    array, wanted = ARRAYS[name]
    q, k, v, gates = op.example()
    for action in (op, op.reference):
        refused(lambda action=action: action(array, k, v, gates), Refusal(wanted.code, "`q`", wanted.culprit))
    refused(lambda: op(q, array, v, gates), wanted)
    refused(lambda: op.gating_matrix(gates, k=array) if array is not None else op(q, None, v, gates), wanted)


@pytest.mark.parametrize("name", [name for name, (_, wanted) in ARRAYS.items() if wanted.code == "STM5203"])
def test_gates_and_states_that_are_no_arrays(op: CompiledScan, name: str) -> None:
    array, wanted = ARRAYS[name]
    q, k, v, gates = op.example()
    at = Refusal(wanted.code, '`gates["source"]`', wanted.advice)
    refused(lambda: op(q, k, v, {**gates, "source": array}), at)
    refused(lambda: op.gating_matrix({**gates, "source": array}), at)
    refused(lambda: op(q, k, v, gates, initial=({"t": array},)), Refusal(wanted.code, '`initial[0]["t"]`', wanted.advice))


GATES: dict[str, tuple[Any, Refusal]] = {
    "none": (None, Refusal("STM5203", "not NoneType", "must be a dictionary of arrays by leaf name")),
    "text": ("source", Refusal("STM5203", "not str", "must be a dictionary of arrays by leaf name")),
    "nothing": ({}, Refusal("STM5202", "`source` is missing", "its shape is (6, 2)")),
}


@pytest.mark.parametrize("name", GATES)
def test_gates_that_are_none(op: CompiledScan, name: str) -> None:
    gates, wanted = GATES[name]
    q, k, v, _ = op.example()
    refused(lambda: op(q, k, v, gates), wanted)
    refused(lambda: op.gating_matrix(gates), wanted)
    refused(lambda: op.reference(q, k, v, gates), wanted)


def test_gates_with_names_of_any_kind(op: CompiledScan) -> None:
    q, k, v, gates = op.example()
    refused(lambda: op(q, k, v, {**gates, 5: q, None: q}), Refusal("STM5202", "no gate leaf `5`", "source, transition"))
    refused(lambda: op(q, k, v, {**gates, "sorce": q}), Refusal("STM5202", "no gate leaf `sorce`", "did you mean `source`?"))


def test_states_of_the_wrong_make(op: CompiledScan) -> None:
    q, k, v, gates = op.example()
    zero = op.zero_state()[0]
    bad: dict[str, tuple[Any, Refusal]] = {
        "number": (5, Refusal("STM5204", "not int", "a dictionary for each of the 1 directions")),
        "text": ("t", Refusal("STM5204", "not str", "a dictionary for each of the 1 directions")),
        "generator": (iter([zero]), Refusal("STM5204", "not list_iterator", "a dictionary for each of the 1 directions")),
        "two": ((zero, zero), Refusal("STM5204", "not 2 of them", "a dictionary for each of the 1 directions")),
        "port": (({**zero, "rows": q},), Refusal("STM5202", "no port `rows`", "there are: t")),
    }
    for initial, wanted in bad.values():
        refused(lambda initial=initial: op(q, k, v, gates, initial=initial), wanted)


METHODS: dict[str, tuple[Any, Refusal]] = {
    "return_state": (
        lambda op, a: op(*a, return_state="yes"),
        Refusal("STM5010", "`return_state`", "True or False, not 'yes'"),
    ),
    "array of flags": (lambda op, a: op(*a, return_state=[]), Refusal("STM5010", "`return_state`", "True or False, not []")),
    "seed": (lambda op, _: op.example(-1), Refusal("STM5010", "`seed`", "from 0 on, not -1")),
    "text as seed": (lambda op, _: op.example("x"), Refusal("STM5010", "`seed`", "from 0 on, not 'x'")),
    "half a seed": (lambda op, _: op.example(0.5), Refusal("STM5010", "`seed`", "from 0 on, not 0.5")),
    "text": (lambda op, _: op.lower_text("hlo"), Refusal("STM5010", "`hlo`", "choose one of jaxpr, stablehlo")),
    "no text": (lambda op, _: op.lower_text(None), Refusal("STM5010", "None", "choose one of jaxpr, stablehlo")),
}


@pytest.mark.parametrize("name", METHODS)
def test_options_of_methods(op: CompiledScan, name: str) -> None:
    action, wanted = METHODS[name]
    refused(lambda: action(op, op.example()), wanted)


def test_gating_matrices_over_memory() -> None:
    op = stmlang.compile(CHAIN, t=200_000, strategy="recurrent")
    gates = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in op.signature.gates.items()}
    wanted = Refusal("STM5209", "the gating matrix of 200,000 nodes takes 320 GB", "look at a smaller size")
    refused_cheaply(lambda: op.gating_matrix(gates), wanted)


EXPORTS: dict[str, tuple[dict[str, Any], Refusal]] = {
    "number as path": ({"path": 5}, Refusal("STM5010", "not 5", '"scan.stmx"')),
    "no path": ({"path": None}, Refusal("STM5010", "not None", '"scan.stmx"')),
    "empty path": ({"path": ""}, Refusal("STM5010", "not ''", '"scan.stmx"')),
    "zero byte": ({"path": "a\0b"}, Refusal("STM5010", "not 'a\\x00b'", '"scan.stmx"')),
    "long": ({"path": "x" * 300}, Refusal("STM5302", "file name too long", "name a file in a folder")),
    "folder": ({"path": "."}, Refusal("STM5302", "`.`: is a directory", "name a file in a folder")),
    "device": ({"path": "/dev/null"}, Refusal("STM5302", "`/dev/null`: not a regular file", "name a file in a folder")),
    "nowhere": ({"path": "no/such/x"}, Refusal("STM5302", "no such directory", "name a file in a folder")),
    "text as platforms": ({"platforms": "cpu"}, Refusal("STM5301", "not 'cpu'", "choose among cpu, gpu")),
    "no platform": ({"platforms": []}, Refusal("STM5301", "not []", "choose among cpu, gpu")),
    "number as platform": ({"platforms": [5]}, Refusal("STM5301", "unknown platform `5`", "choose among cpu, gpu")),
    "no batch": ({"batch": 0}, Refusal("STM5010", "`batch`", '"symbolic" for any size')),
    "negative batch": ({"batch": -1}, Refusal("STM5010", "`batch`", '"symbolic" for any size')),
    "half a batch": ({"batch": 2.5}, Refusal("STM5010", "`batch`", '"symbolic" for any size')),
    "true batch": ({"batch": True}, Refusal("STM5010", "`batch`", '"symbolic" for any size')),
    "text as batch": ({"batch": "many"}, Refusal("STM5010", "`batch`", '"symbolic" for any size')),
    "large batch": ({"batch": 2**31}, Refusal("STM5010", "`batch`", '"symbolic" for any size')),
    "states": ({"with_state": "yes"}, Refusal("STM5010", "`with_state`", "True or False, not 'yes'")),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_that_cannot_be(op: CompiledScan, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known before anything is compiled."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("stmlang.runtime.artifact._exported", lambda *_: pytest.fail("it was compiled"))
    options, wanted = EXPORTS[name]
    with nothing_written(tmp_path):
        refused(lambda: op.export(**{"path": "op.stmx", **options}), wanted)


# --- numbers that are none

SCALARS = CHAIN.replace("(t)", "(t = 5)").replace(" }", "; mark = linear(x) }")


@pytest.mark.parametrize("strategy", ["recurrent", "dense"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_no_number_is_neither_hidden_nor_spread_to_other_heads(strategy: str, number: float) -> None:
    op = stmlang.compile(SCALARS, strategy=strategy)
    q, k, v, gates = op.example(1)
    call = jax.jit(op)
    clean = np.asarray(call(q, k, v, gates))
    for name in ("q", "k", "v", "source", "transition", "mark"):
        arguments = {"q": q, "k": k, "v": v, **gates}
        spoilt = np.array(arguments[name])
        spoilt[2, 0] = number
        arguments[name] = jnp.asarray(spoilt)
        leaves = {leaf: arguments[leaf] for leaf in gates}
        with np.errstate(all="ignore"):
            expected = op.reference(arguments["q"], arguments["k"], arguments["v"], leaves)
        found = np.asarray(call(arguments["q"], arguments["k"], arguments["v"], leaves))
        assert not np.isfinite(found[~np.isfinite(expected)]).any(), name
        np.testing.assert_array_equal(found[:, 1], clean[:, 1], err_msg=name)
        if name != "transition" or np.isnan(number):  # `sigmoid` of an infinity is a gate like any other
            assert not np.isfinite(expected).all(), name


def test_given_leaves_clamp_infinities_and_keep_what_is_no_number() -> None:
    text = "scan s(key = 1, value = 1) on chain(t = 2) { source = given(0, 2); transition = 1 }\n"
    op = stmlang.compile(text, strategy="recurrent")
    one = jnp.ones((2, 1, 1), jnp.float32)
    for given, wanted in ((np.inf, 2.0), (-np.inf, 0.0), (np.nan, np.nan)):
        h = op(one, one, one, {"source": jnp.full((2, 1), given, jnp.float32)})
        np.testing.assert_array_equal(h[1, 0, 0], wanted)
