"""The words the language has taken: indices, inputs, features, sizes and built-in functions."""

from __future__ import annotations

from collections.abc import Mapping

from stmlang.scan.expression import INDICES, Function, Index

INPUTS = ("q", "k", "v")
INPUT_INDEX: dict[str, Index] = {"q": "key", "k": "key", "v": "value"}
FEATURES = ("x", "e")
SIZES = ("heads", "key", "value", "track")
CORE = ("source", "transition", "mark", "direct")
INDEX_WORDS: dict[str, Index] = {index: index for index in INDICES}

ALLOWED: dict[str, tuple[Index, ...]] = {
    "source": ("out", "key", "value", "track"),
    "transition": ("out", "in", "key", "key'", "value", "track", "track'"),
    "mark": ("in", "key", "key'", "value", "track"),
    "direct": ("key", "value"),
    "q": ("key",),
    "k": ("key",),
    "v": ("value",),
}
"""The indices that a gate can have; a helper gate can have any."""

ELEMENTWISE: dict[str, Function] = {function.value: function for function in Function if function is not Function.DIVISOR}
REDUCTIONS = {"sum": "sum", "mean": "mean", "largest": "max"}
NORMALIZATIONS = {"softmax": "softmax", "l1norm": "l1", "l2norm": "l2"}
LEAVES = ("linear", "param", "given")
BUILT_IN = (*ELEMENTWISE, *REDUCTIONS, *NORMALIZATIONS, *LEAVES, "split", "spread", "degree")

RESERVED: Mapping[str, str] = {
    **dict.fromkeys((*BUILT_IN, "eye"), "is a built-in function"),
    **dict.fromkeys(INDICES, "is an index"),
    "x": "stands for the node features",
    "e": "stands for the edge features",
    "heads": "is the number of heads",
    "pi": "is the number pi",
}
"""Names that a gate, a definition or its parameters cannot have, and what they are."""

MEANT = "has a meaning of its own"
"""Of other names that cannot be taken in some places."""

KINDS_OF_TOPOLOGY: Mapping[str, str] = dict.fromkeys(("chain", "grid", "tree", "dag"), "is a kind of topology")

KINDS = {"out": "port", "in": "port"} | {index: index.rstrip("'") for index in INDICES[2:]}
"""An index may be renamed to another one of its kind."""
