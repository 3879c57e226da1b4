"""`stmlang.compile`: specs that are none, options of the wrong kind, sizes that no machine has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stmlang
from tests.api.refusals import Refusal, nothing_written, refused, refused_cheaply

CHAIN = "scan s(heads = 2, key = 3, value = 4) on chain(t) { source = linear(x); transition = sigmoid(linear(x)) }\n"
PRODUCT = "scan s(key = 3, value = 4) on dag { a -> b } * chain(t) { source = 0.5; transition = 0.25 }\n"

SOURCES: dict[str, tuple[Any, Refusal]] = {
    "number": (5, Refusal("STM5010", "not int", 'stmlang.compile("std:plstm/image_p")')),
    "none": (None, Refusal("STM5010", "not NoneType", "give the spec itself, its path")),
    "bytes": (b"scan s", Refusal("STM5010", "not bytes", "give the spec itself, its path")),
    "function": (len, Refusal("STM5010", "not builtin_function_or_method", "give the spec itself, its path")),
    "zero byte": ("a\0b", Refusal("STM0001", "there is no file", "check the path")),
    "folder": (Path("/"), Refusal("STM0002", "`/` is a folder", "name one text file")),
    "half a character": ("scan s {\ud800}", Refusal("STM0005", "U+D800", "not UTF-8")),
    "zeros": ("{" + "\0" * 10, Refusal("STM0006", "control character U+0000", "save it as UTF-8")),
}


@pytest.mark.parametrize("name", SOURCES)
def test_specs_that_are_none(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source, wanted = SOURCES[name]
    with nothing_written(tmp_path):
        refused(lambda: stmlang.compile(source), wanted)


OPTIONS: dict[str, tuple[dict[str, Any], Refusal]] = {
    "class as type": ({"dtype": float}, Refusal("STM5010", "unknown data type", "choose one of float32")),
    "half": ({"dtype": "float16"}, Refusal("STM5010", "`float16`", "choose one of float32")),
    "list as type": ({"dtype": []}, Refusal("STM5010", "[], a list", "choose one of float32")),
    "integers": ({"dtype": np.dtype("int32")}, Refusal("STM5010", "`int32`", "choose one of float32")),
    "mode": ({"mode": "train"}, Refusal("STM5010", "unknown mode `train`", "choose one of inference, training")),
    "no mode": ({"mode": None}, Refusal("STM5010", "None, a NoneType", "choose one of inference, training")),
    "batch as text": ({"batch": "4"}, Refusal("STM5010", "`batch`", "must be a positive whole number below 2^31, not '4'")),
    "half a batch": ({"batch": 2.5}, Refusal("STM5010", "`batch`", "must be a positive whole number below 2^31, not 2.5")),
    "true batch": ({"batch": True}, Refusal("STM5010", "`batch`", "must be a positive whole number below 2^31, not True")),
    "no batch": ({"batch": None}, Refusal("STM5010", "`batch`", "must be a positive whole number below 2^31, not None")),
    "large batch": ({"batch": 2**31}, Refusal("STM5010", "`batch`", "below 2^31")),
    "batches over memory": ({"batch": 2**31 - 1}, Refusal("STM5005", "batch 2147483647", "lower the batch")),
    "limit as text": ({"memory_limit": "2GB"}, Refusal("STM5010", "`memory_limit`", "must be a positive whole number")),
    "half a byte": ({"memory_limit": 0.5}, Refusal("STM5010", "`memory_limit`", "must be a positive whole number")),
    "true limit": ({"memory_limit": True}, Refusal("STM5010", "`memory_limit`", "must be a positive whole number")),
    "negative limit": ({"memory_limit": -1}, Refusal("STM5010", "`memory_limit`", "must be a positive whole number")),
    "low limit": ({"memory_limit": 10}, Refusal("STM5005", "the limit is 10 B", "raise the memory limit")),
    "target": ({"target": "tpu"}, Refusal("STM5009", "unknown target `tpu`", "choose one of cpu, h100")),
    "list as target": ({"target": []}, Refusal("STM5009", "[], a list", "choose one of cpu, h100")),
    "strategy": ({"strategy": "recurent"}, Refusal("STM5006", "`recurent`", "did you mean `recurrent`?")),
    "number as strategy": ({"strategy": 5}, Refusal("STM5006", "not 5", '"recurrent"')),
    "settings alone": ({"config": {"tile": (2,)}}, Refusal("STM5003", "without a strategy", "name the strategy")),
    "scan": ({"scan": "other"}, Refusal("STM1013", "no scan `other`", "its scans are `s`")),
    "number as scan": ({"scan": 5}, Refusal("STM5010", "`scan`", "must be the name of a scan")),
    "tuned": ({"tuned": "no"}, Refusal("STM5010", "`tuned`", "must be True or False, not 'no'")),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_the_wrong_kind(name: str) -> None:
    options, wanted = OPTIONS[name]
    refused(lambda: stmlang.compile(CHAIN, t=6, **options), wanted)


@pytest.mark.parametrize("name", ["half", "mode", "batch as text", "target", "strategy", "tuned"])
def test_options_are_checked_before_sizes_are_known(name: str) -> None:
    options, wanted = OPTIONS[name]
    refused(lambda: stmlang.compile(CHAIN, **options), wanted)


SETTINGS: dict[str, tuple[Any, Refusal]] = {
    "list": ([4], Refusal("STM5010", "not list", 'config={"tile": (8, 8)}')),
    "text": ({"tile": "4"}, Refusal("STM5010", "the setting `tile`", 'config={"tile": (8, 8)}')),
    "fraction": ({"tile": (2.5,)}, Refusal("STM5010", "the setting `tile`", "not (2.5,)")),
    "truth": ({"tile": (True,)}, Refusal("STM5010", "the setting `tile`", "not (True,)")),
    "nothing": ({"tile": None}, Refusal("STM5010", "the setting `tile`", "must be a whole number or a tuple of them")),
    "number as name": ({5: (4,)}, Refusal("STM5010", "5 is none", 'config={"tile": (8, 8)}')),
    "zero": ({"tile": (0,)}, Refusal("STM5003", "`chunkwise`", "the sides of a tile are positive, not 0")),
    "negative": ({"tile": (-4,)}, Refusal("STM5003", "`chunkwise`", "the sides of a tile are positive, not -4")),
    "number of sides": ({"tile": (2, 2)}, Refusal("STM5003", "`chunkwise`", "its setting is `tile`, with 1 side")),
    "name": ({"tiles": (4,)}, Refusal("STM5003", "`chunkwise`", "its setting is `tile`, with 1 side")),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_the_wrong_kind(name: str) -> None:
    config, wanted = SETTINGS[name]
    refused(lambda: stmlang.compile(CHAIN, t=6, strategy="chunkwise", config=config), wanted)


WHOLE = "a size is a whole number from 0 to 2^31 - 1"
SIZES: dict[str, tuple[dict[str, Any], Refusal]] = {
    "negative": ({"t": -1}, Refusal("STM2029", "`t` cannot be -1", WHOLE)),
    "fraction": ({"t": 2.5}, Refusal("STM2029", "`t` cannot be 2.5", WHOLE)),
    "fraction of numpy": ({"t": np.float32(2.5)}, Refusal("STM2029", "`t` cannot be 2.5", WHOLE)),
    "text": ({"t": "6"}, Refusal("STM2032", "`t` cannot be '6'", "a setting is a finite number")),
    "truth": ({"t": True}, Refusal("STM2032", "`t` cannot be True", "a setting is a finite number")),
    "truth of numpy": ({"t": np.bool_(True)}, Refusal("STM2032", "`t` cannot be True", "a setting is a finite number")),
    "nothing": ({"t": None}, Refusal("STM2032", "`t` cannot be None", "a setting is a finite number")),
    "not a number": ({"t": float("nan")}, Refusal("STM2032", "`t` cannot be nan", "a setting is a finite number")),
    "array": ({"t": np.array([6])}, Refusal("STM2032", "`t` cannot be array([6])", "a setting is a finite number")),
    "complex": ({"t": 6j}, Refusal("STM2032", "`t` cannot be 6j", "a setting is a finite number")),
    "unknown": ({"time": 6}, Refusal("STM1014", "nothing named `time`", "it has `heads`, `key`, `value` and `t`")),
    "no heads": ({"t": 6, "heads": 0}, Refusal("STM2029", "`heads` cannot be 0", "from 1 to 2^31 - 1")),
    "negative key": ({"t": 6, "key": -1}, Refusal("STM2029", "`key` cannot be -1", "from 1 to 2^31 - 1")),
    "2^31": ({"t": 2**31}, Refusal("STM2029", "`t` cannot be 2147483648", WHOLE)),
    "10^30": ({"t": 10**30}, Refusal("STM2029", "`t` cannot be 1e+30", WHOLE)),
    "too many edges": ({"t": 2**31 - 1}, Refusal("STM3303", "2,147,483,648 edges", "cut it and carry the state")),
    "nodes over memory": ({"t": 2**30}, Refusal("STM5005", "1,073,741,824 nodes", "raise the memory limit")),
    "state over memory": (
        {"t": 6, "key": 2**30, "value": 2**30},
        Refusal("STM5005", "scan `s` needs", "raise the memory limit"),
    ),
    "heads over memory": ({"t": 6, "heads": 2**31 - 1}, Refusal("STM5005", "2147483647 heads", "raise the memory limit")),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_are_none(name: str) -> None:
    """Refused before memory is asked for: the arithmetic is Python's, and a grid is planned before it is built."""
    sizes, wanted = SIZES[name]
    refused_cheaply(lambda: stmlang.compile(CHAIN, **sizes), wanted)


def test_graphs_over_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stmlang.graph.limits.host_memory", lambda: 8 * 10**9)
    tree = "scan s(key = 2, value = 2) on tree(arity = 2, depth = 28) { source = 0.5; transition = 0.5 }\n"
    wanted = Refusal("STM3305", "the tables of 536,870,911 edges take 26 GB", "make the topology smaller")
    refused_cheaply(lambda: stmlang.compile(tree), wanted)
    line = tree.replace("arity = 2, depth = 28", "arity = 1, depth = 2 ^ 29")
    refused_cheaply(lambda: stmlang.compile(line), Refusal("STM3305", "536,870,913 edges", "make the topology smaller"))
    product = tree.replace("tree(arity = 2, depth = 28)", "dag { a -> b } * chain(t = 2 ^ 28)")
    refused_cheaply(lambda: stmlang.compile(product), Refusal("STM3305", "edges take", "make the topology smaller"))


def test_numbers_of_numpy_are_sizes() -> None:
    op = stmlang.compile(CHAIN, t=np.int64(6), batch=np.int32(2), memory_limit=8e9, dtype=np.dtype("float32"))
    assert op.dag.node_shape == (6,)
    assert op.plan.circumstances.batch == 2
    assert stmlang.compile(CHAIN).bind(t=np.int64(6)).dag.node_shape == (6,)


OPEN: dict[str, tuple[Any, Refusal]] = {
    "number": (5, Refusal("STM5201", "not 5", "such as `x.shape[:-1]`")),
    "none": (None, Refusal("STM5201", "not None", "such as `x.shape[:-1]`")),
    "text": ("6", Refusal("STM5201", "not '6'", "such as `x.shape[:-1]`")),
    "two axes": ((3, 3), Refusal("STM5201", "(3, 3)", "begin with")),
}


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("name", OPEN)
def test_shapes_that_are_none(name: str, bound: bool) -> None:
    shape, wanted = OPEN[name]
    op = stmlang.compile(CHAIN, t=6) if bound else stmlang.compile(CHAIN)
    refused(lambda: op.at(shape), wanted)


BOUND: dict[str, tuple[dict[str, Any], Refusal]] = {
    "negative": ({"t": -1}, Refusal("STM2029", "`t` cannot be -1", "a whole number from 0 to 2^31 - 1")),
    "fraction": ({"t": 2.5}, Refusal("STM2029", "`t` cannot be 2.5", "a whole number from 0 to 2^31 - 1")),
    "truth": ({"t": True}, Refusal("STM2029", "`t` cannot be True", "a whole number from 0 to 2^31 - 1")),
    "text": ({"t": "3"}, Refusal("STM2029", "`t` cannot be '3'", "a whole number from 0 to 2^31 - 1")),
    "large": ({"t": 2**31}, Refusal("STM2029", "`t` cannot be 2147483648", "a whole number from 0 to 2^31 - 1")),
    "over memory": ({"t": 2**30}, Refusal("STM5005", "1,073,741,824 nodes", "raise the memory limit")),
    "unknown": ({"time": 3}, Refusal("STM2041", "`time` is no axis", "its axes: `t`")),
    "none": ({}, Refusal("STM5001", "the size `t`", "`t=N`")),
}


@pytest.mark.parametrize("name", BOUND)
def test_sizes_of_open_scans(name: str) -> None:
    sizes, wanted = BOUND[name]
    refused_cheaply(lambda: stmlang.compile(CHAIN).bind(**sizes), wanted)


def test_open_axes_beside_a_graph() -> None:
    op = stmlang.compile(PRODUCT)
    assert op.at((2, 3)) is op.bind(t=3)
    assert op.at((2, 3)).dag.node_shape == (2, 3)
    refused(lambda: op.at((3, 3)), Refusal("STM5201", "begin with the axes (2, t)", "not (3, 3)"))
    tree = stmlang.compile(PRODUCT.replace("dag { a -> b }", "tree(arity = 2, depth = 1)"))
    assert tree.at((3, 4)).dag.node_shape == (3, 4)
    refused(lambda: tree.at((4, 4)), Refusal("STM5201", "begin with (3, 4)", "not (4, 4)"))
