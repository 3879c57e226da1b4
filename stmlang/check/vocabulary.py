"""The words the language has taken: indices, inputs, features, sizes and built-in functions."""

from __future__ import annotations

from collections.abc import Container, Mapping

from stmlang.scan.expression import (
    BOUND_INDICES,
    DENSE_INDICES,
    INDICES,
    STEP,
    TERM_INDICES,
    WRITTEN_INDICES,
    Function,
    Index,
    InputName,
)

INPUTS: tuple[InputName, ...] = ("q", "k", "v")
INPUT_INDEX: dict[str, Index] = {"q": "key", "k": "key", "v": "value"}
INPUT_TERM: dict[str, Index] = {"q": "read", "k": "write", "v": "write"}
FEATURES = ("x", "e")
SIZES = ("heads", "key", "value", "track", "writes", "reads", "steps")
TERM_SIZES: dict[Index, str] = {"write": "writes", "read": "reads", STEP: "steps"}
"""What the head of a scan says of an index that it need not have."""
CORE = ("source", "transition", "mark", "direct")
INDEX_WORDS: dict[str, Index] = {index: index for index in (*WRITTEN_INDICES, *BOUND_INDICES)}

ALLOWED: dict[str, tuple[Index, ...]] = {
    "source": ("out", "key", "value", "track", "write", "step"),
    "transition": ("out", "in", "key", "key'", "value", "track", "track'", "step"),
    "mark": ("in", "key", "key'", "value", "track", "read", "step"),
    "direct": ("key", "value", "read", "write", "step"),
    "q": ("read", "key"),
    "k": ("step", "write", "key"),
    "v": ("step", "write", "value"),
}
"""The indices that a gate can have; a helper gate can have any."""


def known_indices(indices: tuple[Index, ...], numbers: Container[str]) -> tuple[Index, ...]:
    """Those of some indices that a scan with these sizes has: `write`, `read` and `step` only where its head speaks of them."""
    return tuple(index for index in indices if index not in TERM_SIZES or TERM_SIZES[index] in numbers)


def input_indices(name: str, numbers: Container[str]) -> tuple[Index, ...]:
    """The indices of `q`, `k` or `v` in a scan with these sizes."""
    steps: tuple[Index, ...] = () if name == "q" else (STEP,)
    return known_indices((*steps, INPUT_TERM[name], INPUT_INDEX[name]), numbers)


ELEMENTWISE: dict[str, Function] = {function.value: function for function in Function if function is not Function.DIVISOR}
REDUCTIONS = {"sum": "sum", "mean": "mean", "largest": "max"}
NORMALIZATIONS = {"softmax": "softmax", "l1norm": "l1", "l2norm": "l2"}
LEAVES = ("linear", "param", "given")
COMPLEX = ("polar", "complex", "conjugate", "real", "imaginary")
BUILT_IN = (*ELEMENTWISE, *REDUCTIONS, *NORMALIZATIONS, *LEAVES, *COMPLEX, "split", "spread", "degree", "neighbour")

RESERVED: Mapping[str, str] = {
    **dict.fromkeys((*BUILT_IN, "eye"), "is a built-in function"),
    **dict.fromkeys((*(index for index in INDICES if index not in TERM_INDICES), *BOUND_INDICES), "is an index"),
    "x": "stands for the node features",
    "e": "stands for the edge features",
    "heads": "is the number of heads",
    "pi": "is the number pi",
}
"""Names that a gate, a definition or its parameters cannot have, and what they are. `write`, `read` and `step` are indices in
their places and plain names elsewhere."""

MEANT = "has a meaning of its own"
"""Of other names that cannot be taken in some places."""

KINDS_OF_TOPOLOGY: Mapping[str, str] = dict.fromkeys(("chain", "grid", "tree", "dag"), "is a kind of topology")

KINDS = {"out": "port", "in": "port"} | {index: index.rstrip("'") for index in (STEP, *DENSE_INDICES, *BOUND_INDICES)}
"""An index may be renamed to another one of its kind."""
