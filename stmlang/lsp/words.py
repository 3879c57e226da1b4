"""What the language's own words mean, in a line each, for hovers, completion and help while a call is written."""

from __future__ import annotations

from collections.abc import Mapping

FUNCTIONS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "exp": (("a",), "The exponential; of a complex number too."),
    "log": (("a",), "The natural logarithm."),
    "sigmoid": (("a",), "`1 / (1 + exp(-a))`, in [0, 1]."),
    "tanh": (("a",), "The hyperbolic tangent, in [-1, 1]."),
    "relu": (("a",), "`max(a, 0)`; its derivative at zero is 0."),
    "softplus": (("a",), "`log(1 + exp(a))`, at least 0."),
    "abs": (("a",), "The magnitude; of a complex number its modulus."),
    "sqrt": (("a",), "The square root; flat at zero as far as derivatives go."),
    "sin": (("a",), "The sine."),
    "cos": (("a",), "The cosine."),
    "cap": (("a",), "`a / max(1, |a|)`, in [-1, 1]: what is at most 1 stays as it is."),
    "min": (("a", "b"), "The smaller of two values."),
    "max": (("a", "b"), "The larger of two values. Over an index it is `largest(a, over = i)`."),
    "clip": (("a", "low", "high"), "`a`, moved into [low, high]."),
    "sum": (("a", "over"), "The sum over an index, which is free no longer. Over no edges it is 0."),
    "mean": (("a", "over"), "The mean over an index, which is free no longer. Over no edges it is 0."),
    "largest": (("a", "over"), "The largest value over an index, which is free no longer. Over no edges it is 0."),
    "softmax": (("a", "over"), "`exp(a) / sum exp(a)` along an index, which stays free."),
    "l1norm": (("a", "over"), "`a / max(1, sum |a|)` along an index, which stays free."),
    "l2norm": (
        ("a", "over"),
        "`a / sqrt(sum a^2 + 1e-12)` along an index; `over` may be left out if the argument has one state index.",
    ),
    "linear": (
        ("features", "bias", "weight"),
        "`W f + b`, learned, of the features `x` of the node, `e[out]` or `e[in]` of an edge, or numbers made of degrees. "
        "`bias` is where b starts, `weight` the initial standard deviation of W times the square root of how many features "
        "there are.",
    ),
    "param": (("start",), "A learned constant that starts at a number, or at a `spread` over the heads."),
    "given": (("low", "high"), "Whatever the caller computes, clamped to the bounds, each of which may be left out."),
    "polar": (("radius", "angle"), "The complex number of this modulus and angle, in radians."),
    "complex": (("real", "imaginary"), "The complex number with these parts."),
    "conjugate": (("a",), "The complex conjugate."),
    "real": (("a",), "The real part of a complex number."),
    "imaginary": (("a",), "The imaginary part of a complex number."),
    "split": (
        ("a", "..."),
        "One, divided between the ports by breaking a stick, with one argument fewer than there are ports: `a`, `(1 - a) b`, "
        "and so on, the last port what is left. Has the index `out`; chains and grids only.",
    ),
    "spread": (("low", "high"), "A number for each head, evenly spaced from `low` to `high`."),
    "degree": (("index",), "How many edges leave the node, `degree(out)`, or enter it, `degree(in)`."),
    "neighbour": (("index",), "One where the edge comes from, or leads to, a node; zero where it is open."),
}
"""Each built-in function: its arguments, and what it is."""

GATES: Mapping[str, str] = {
    "source": "How strongly a node writes to its outgoing edges: `C[o] += S[n, o] K[n] V[n]^T`.",
    "transition": "What an incoming edge's state becomes on an outgoing one: `C[o] += T[n, o, i] C[i]`. `out` comes first.",
    "mark": "How strongly a node reads its incoming edges: `H[n] += Q[n] . M[n, i] C[i]`. 1 where there is no equation.",
    "direct": "How much a node reads of what it adds itself: `H[n] += Q[n] . D[n] K[n] V[n]^T`. 0 where there is no equation.",
    "q": "The query of the node. Redefined here; on the right of its own equation it is as the layer gives it.",
    "k": "The key of the node. Redefined here; on the right of its own equation it is as the layer gives it.",
    "v": "The value of the node. Redefined here; on the right of its own equation it is as the layer gives it.",
}

INPUTS: Mapping[str, str] = {
    "q": "The query of the node, `q[key]`.",
    "k": "The key of the node, `k[key]`.",
    "v": "The value of the node, `v[value]`.",
}

INDICES: Mapping[str, str] = {
    "out": "the node's outgoing edges: on chains and grids the ports, else the edges themselves",
    "in": "the node's incoming edges",
    "write": "the keys and values of a node, of which the head of the scan says how many: `writes = n`",
    "read": "the queries and outputs of a node, of which the head of the scan says how many: `reads = n`",
    "step": "the steps of a node, of which the head of the scan says how many: `steps = n`",
    "key": "the key axis of the state",
    "value": "the value axis of the state",
    "track": "the parallel copies of the state",
}
"""What each index ranges over; one with a prime is a second one of its kind, the column of a matrix."""

SIZES: Mapping[str, str] = {
    "heads": "How many heads there are; 1 unless the head of the scan says.",
    "key": "The size of the key axis of the state; 64 unless the head of the scan says.",
    "value": "The size of the value axis of the state; 64 unless the head of the scan says.",
    "track": "How many tracks the state has.",
    "writes": "How many keys and values a node has.",
    "reads": "How many queries and outputs a node has.",
    "steps": "How many steps a node of a chain takes.",
}

OTHERS: Mapping[str, str] = {
    "x": "The features of the node, read by `linear(x)`.",
    "e": "The features of an edge, read by `linear(e[out])` or `linear(e[in])` on trees and DAGs.",
    "pi": "The number pi.",
    "eye": "One where two state indices of one kind agree, `eye[key, key']`, and zero elsewhere.",
}

TOPOLOGIES: Mapping[str, tuple[str, str]] = {
    "chain": ("chain(time)", "Nodes in a line, an edge from each to the next."),
    "grid": ("grid(rows, cols)", "The product of the chains along its axes, each of which is a port."),
    "tree": ("tree(arity = 2, depth = 4)", "A complete tree, one written out, one from a file or one given at run time."),
    "dag": ("dag(nodes <= 64, edges <= 160)", "A graph written out, one from a file or one given at run time."),
}
"""Each kind of topology as it is written, and what it is."""

SETTINGS: Mapping[str, str] = {
    "directions": "In which senses the scan runs: `forward`, `backward`, `both`, `all`, or `+rows -cols`.",
    "stabilize": "Which stability mode is proved or inserted: `P`, `D`, `auto`, or `none`.",
    "normalize": "What the output is divided by: `none`, `sum` or `mlstm`.",
    "read": "`read after`: a node reads what leaves it and not what enters.",
}


def index_meaning(index: str) -> str:
    """What an index ranges over, primes included."""
    base = index.rstrip("'")
    words = INDICES.get(base, "")
    return words if base == index else f"{words}, a second time" if index.count("'") == 1 else f"{words}, summed over"
