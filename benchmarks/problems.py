"""Problems that costs are fitted on, and others that they are judged by: specs, sizes, batches, modes.

Shapes of the two lists differ, and each problem takes the next batch, number of heads and size of key of a cycle, made smaller
until a call takes about a second at most. Half of them are forward alone, half with all gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from math import prod
from typing import Literal

import numpy as np

Mode = Literal["inference", "training"]
MODES: tuple[Mode, ...] = ("inference", "training")
CALLS = (
    (4, 3, 64),
    (1, 1, 64),
    (16, 6, 32),
    (1, 12, 64),
    (64, 4, 16),
    (2, 2, 128),
    (8, 1, 32),
    (32, 2, 64),
    (1, 4, 16),
    (4, 12, 32),
    (1, 1, 128),
)
"""Batch, heads, and key: as many numbers as there are in a value."""
MOST_FLOPS = 2.5e9
"""Of attention between all pairs, or of a chain in chunks of 64: some hundredths of a second on two cores."""
GRADIENTS = 2.0
"""So much less where gradients are taken too."""


@dataclass(frozen=True)
class Shape:
    """A spec at a size: of axes by name, of a tree by its depth, or a random graph of `nodes` nodes, `graphs` of them at run
    time (0 for one that stands in the spec)."""

    family: str
    spec: str
    sizes: tuple[tuple[str, int], ...]
    nodes: int
    graphs: int = 0


@dataclass(frozen=True)
class Case:
    """A problem: a shape, and how it is called."""

    shape: Shape
    batch: int
    heads: int
    key: int
    mode: Mode

    @property
    def name(self) -> str:
        """`image_d 24x24 batch 4 heads 3 key 64 training`."""
        size = "x".join(str(size) for _, size in self.shape.sizes)
        return f"{self.shape.family} {size} batch {self.batch} heads {self.heads} key {self.key} {self.mode}"


def training_cases() -> tuple[Case, ...]:
    """What costs are fitted on."""
    usual = (Case(shape, *USUAL_CALL, mode) for shape in USUAL for mode in MODES)
    return (
        *_cases(_spread(TRAINING), 0),
        *_cases(_spread(FURTHER), 3),
        *map(_smaller, usual),
        *_cases(_spread(CLOSE), 7),
        *_cases(_spread(MISSED), 2),
        *_cases(SMALL, 10),
    )


def held_out_cases() -> tuple[Case, ...]:
    """What they are judged by."""
    return tuple(_cases(_spread(HELD_OUT), 5))


def _cases(shapes: Sequence[Shape], first: int) -> Iterator[Case]:
    calls = cycle(CALLS[first:] + CALLS[:first])
    for number, shape in enumerate(shapes):
        batch, heads, key = next(calls)
        yield _smaller(Case(shape, batch, heads, key, MODES[number % 2]))


def _smaller(case: Case) -> Case:
    """With less batch, then fewer heads, then smaller keys until a call is short enough."""
    nodes = case.shape.nodes * max(1, case.shape.graphs)
    pairs = nodes * (64 + case.key) if "chain" in case.shape.spec else nodes**2
    if case.shape.family in ("graph", "molecules"):
        pairs = 64 * nodes * case.key
    most = MOST_FLOPS / (GRADIENTS if case.mode == "training" else 1.0)
    while 4 * pairs * case.batch * case.heads * case.key > most and case.batch * case.heads * case.key > 16:
        if case.batch > 1:
            case = replace(case, batch=case.batch // 2)
        elif case.heads > 1:
            case = replace(case, heads=case.heads // 2)
        else:
            case = replace(case, key=case.key // 2)
    return case


def _spread(lists: Sequence[Sequence[Shape]]) -> tuple[Shape, ...]:
    """Shapes of all lists in turns, so that a part of them is a cross-section."""
    longest = max(len(shapes) for shapes in lists)
    order = [
        (place * longest / len(shapes), number, shape)
        for number, shapes in enumerate(lists)
        for place, shape in enumerate(shapes)
    ]
    return tuple(shape for *_, shape in sorted(order, key=lambda entry: entry[:2]))


def _axes(spec: str, names: Sequence[str], *sizes: tuple[int, ...]) -> tuple[Shape, ...]:
    family = spec.rpartition("/")[2] if spec.startswith("std:") else FAMILIES[spec]
    return tuple(Shape(family, spec, tuple(zip(names, size, strict=True)), prod(size)) for size in sizes)


def _images(letter: str, *sizes: tuple[int, int]) -> tuple[Shape, ...]:
    return _axes(f"std:plstm/image_{letter}", ("rows", "cols"), *sizes)


def _volumes(letter: str, *sizes: tuple[int, int, int]) -> tuple[Shape, ...]:
    return _axes(f"std:plstm/volume_{letter}", ("depth", "rows", "cols"), *sizes)


def _chains(name: str, *sizes: int) -> tuple[Shape, ...]:
    return _axes(f"std:{name}", ("time",), *((size,) for size in sizes))


def _trees(*depths: int) -> tuple[Shape, ...]:
    return tuple(Shape("tree", "std:plstm/tree", (("depth", depth),), 2**depth) for depth in depths)


def _graphs(letter: str, *sizes: int) -> tuple[Shape, ...]:
    return tuple(Shape("graph", static_spec(letter, size), (("nodes", size),), size) for size in sizes)


def _delta_graphs(*sizes: int) -> tuple[Shape, ...]:
    """The delta rule on a random graph that stands in the spec."""
    return tuple(Shape("graph_delta", static_graph(DELTA_GATES, size), (("nodes", size),), size) for size in sizes)


def _molecules(letter: str, *sizes: tuple[int, int]) -> tuple[Shape, ...]:
    return tuple(
        Shape("molecules", runtime_spec(letter), (("graphs", graphs), ("nodes", nodes)), nodes, graphs)
        for graphs, nodes in sizes
    )


GATES = """scan s(heads = 3, key = 64, value = 64) on graph {
    directions both
    source[out] = sigmoid(linear(x, bias = -4))
    mark[in]    = sigmoid(linear(x, bias = -4))
    direct      = sigmoid(linear(x, bias = -6))
"""
TRANSITIONS = {
    "p": """    decay[in]           = tanh(5 * linear(x, bias = 1))
    share[out]          = softmax(linear(x), over = out)
    transition[out, in] = decay * share
    stabilize P
}
""",
    "d": """    transition[out, in] = tanh(5 * linear(x, bias = 1))
    stabilize D
}
""",
}


DELTA_GATES = """scan s(heads = 3, key = 64, value = 64) on graph {
    k           = l2norm(k)
    beta        = sigmoid(linear(x))
    keep[in]    = sigmoid(linear(x, bias = 2))
    share[out]  = softmax(linear(x), over = out)
    source[out] = beta
    transition[out, in, key, key'] = keep * share * (eye[key, key'] - beta * k[key] * k[key'])
    stabilize P
}
"""
KEY_DECAYS = """topology image = grid(rows, cols)
scan s(heads = 3, key = 64, value = 64) on image {
    directions all
    decay[key]  = sigmoid(linear(x, bias = 2))
    source[out] = sigmoid(linear(x))
    transition[out, in, key] = decay
    transition[out = cols, in = rows, key] = 0
    mark[in] = sigmoid(linear(x))
    direct   = sigmoid(linear(x))
}
"""
FAMILIES = {KEY_DECAYS: "image_key"}
STATED = ("graph", "graph_delta", "molecules")
"""Families whose specs state their sizes."""


def runtime_spec(letter: str) -> str:
    """A scan over graphs that come at run time."""
    return f"topology graph = dag(nodes <= 65536, edges <= 262144)\n{GATES}{TRANSITIONS[letter]}"


def static_spec(letter: str, nodes: int) -> str:
    """A scan over one random graph that stands in the spec."""
    return static_graph(GATES + TRANSITIONS[letter], nodes)


def static_graph(scan: str, nodes: int) -> str:
    """A scan's text behind a random graph."""
    lines = [f"    n{tail} -> n{head}" for tail, head in random_edges(nodes, nodes).tolist()]
    return "topology graph = dag {\n" + "\n".join(lines) + f"\n}}\n{scan}"


def random_edges(nodes: int, seed: int) -> np.ndarray:
    """Edges of a random graph like a molecule: a tree, each node's parent one of a few before it, and some rings; `(edges,
    2)`."""
    random = np.random.default_rng(seed)
    heads = np.arange(1, nodes)
    parents = np.maximum(0, heads - random.integers(1, 4, len(heads)))
    rings = random.choice(heads, max(1, nodes // 10), replace=False)
    closing = np.maximum(0, parents[rings - 1] - random.integers(1, 5, len(rings)))
    edges = np.stack([np.concatenate([parents, closing]), np.concatenate([heads, rings])], 1)
    return np.unique(edges, axis=0)


TRAINING = (
    _images(
        "d",
        (60, 60),
        (14, 14),
        (24, 24),
        (8, 8),
        (32, 32),
        (13, 29),
        (48, 48),
        (8, 64),
        (10, 10),
        (90, 22),
        (96, 96),
        (17, 17),
        (72, 72),
        (4, 90),
        (64, 40),
        (22, 22),
        (36, 36),
        (12, 12),
        (64, 9),
        (84, 84),
    ),
    _images(
        "p",
        (14, 14),
        (24, 24),
        (60, 60),
        (8, 8),
        (48, 48),
        (13, 29),
        (32, 32),
        (96, 96),
        (8, 64),
        (10, 10),
        (72, 72),
        (90, 22),
        (17, 17),
        (4, 90),
        (36, 36),
        (64, 40),
        (22, 22),
        (12, 12),
    ),
    _images("constant", (14, 14), (48, 48), (24, 24), (96, 96), (8, 64), (32, 32), (10, 10), (64, 64)),
    _volumes("d", (6, 6, 6), (4, 16, 16), (8, 8, 8), (3, 10, 10), (12, 12, 12), (5, 7, 9)),
    _volumes("p", (8, 8, 8), (4, 4, 4), (3, 10, 10), (12, 12, 12), (4, 16, 16), (5, 7, 9)),
    _chains("plstm/chain", 1024, 4096, 256, 16384, 64, 1000, 65536, 128),
    _chains("chain/mlstm", 4096, 256, 16384, 1024, 65536),
    _chains("chain/gla", 1024, 4096, 100, 16384),
    _chains("chain/deltanet", 1024, 256, 4096, 16384),
    _trees(5, 8, 10),
    _graphs("p", 30, 200),
    _graphs("d", 60, 300),
    _molecules("p", (64, 30), (16, 100), (8, 500)),
    _molecules("d", (64, 25), (4, 400)),
)
FURTHER = (
    _images("d", (44, 44), (30, 30), (12, 15), (26, 90), (52, 52), (19, 21), (70, 24), (16, 40)),
    _images("constant", (52, 52), (26, 26), (36, 36), (16, 64), (20, 90), (64, 30)),
    (*_trees(7), *_graphs("p", 60, 100), *_images("p", (18, 18), (12, 15), (44, 44))),
)
"""Where the fastest settings change most with the size. They have a cycle of calls of their own, so that those of the shapes
above stay what they were."""
CLOSE = (
    _images("d", (12, 13), (10, 36), (15, 17), (6, 70), (18, 18), (26, 26)),
    _images("p", (6, 72), (26, 26), (10, 36), (30, 30), (14, 17), (54, 54)),
    _images("constant", (54, 54), (12, 36), (18, 18), (44, 44)),
    (*_axes(KEY_DECAYS, ("rows", "cols"), (10, 10), (14, 14), (7, 20), (24, 24)), *_trees(7, 10), *_images("delta", (10, 10))),
    (*_axes("std:plstm/chain_tracking", ("time",), (256,), (1024,)), *_delta_graphs(40, 120)),
)
"""Where strategies that came later compete with those before, again with a cycle of their own."""
MISSED = (
    _axes(KEY_DECAYS, ("rows", "cols"), (12, 12), (8, 30), (16, 16), (20, 9)),
    _images("constant", (40, 40), (60, 60), (14, 50), (22, 22)),
    _images("d", (14, 44), (17, 17), (10, 30)),
    _trees(8, 11),
    _volumes("d", (6, 7, 8)),
)
"""More of the kinds whose choices still lost most on problems that nothing was fitted to, at other sizes and calls."""
SMALL = _images("d", (8, 8), (12, 7), (10, 10), (7, 11))
"""Grids whose whole gating matrix is small enough to be made, where two ways may be predicted alike."""
USUAL_CALL = (1, 3, 64)
USUAL = (
    *_chains("plstm/chain", 256, 1024, 4096),
    *_chains("chain/mlstm", 1024),
    *_chains("chain/gla", 1024),
    *_chains("chain/deltanet", 1024),
    *_images("p", (14, 14), (24, 24), (128, 128)),
    *_images("d", (14, 14), (24, 24), (128, 128)),
    *_images("constant", (14, 14)),
    *_volumes("d", (6, 6, 6)),
    *_chains("chain/mamba", 256, 1024, 4096),
    *_axes("std:grid/2dmamba", ("rows", "cols"), (14, 14)),
    *_images("delta", (14, 14), (24, 24)),
    *_graphs("d", 10),
    *_graphs("p", 12),
    *_trees(3),
)
"""What a layer calls when it is not mapped, with the library's own sizes: timed in both modes."""
HELD_OUT = (
    _images(
        "d",
        (64, 64),
        (20, 20),
        (9, 9),
        (40, 40),
        (15, 15),
        (12, 40),
        (80, 80),
        (28, 28),
        (5, 80),
        (11, 13),
        (56, 56),
        (40, 7),
        (23, 19),
        (30, 84),
        (64, 64),
        (16, 16),
    ),
    _images(
        "p",
        (20, 20),
        (64, 64),
        (9, 9),
        (28, 28),
        (12, 40),
        (56, 56),
        (15, 15),
        (80, 80),
        (11, 13),
        (40, 40),
        (40, 7),
        (5, 80),
        (23, 19),
        (16, 16),
    ),
    _images("constant", (20, 20), (56, 56), (12, 40), (80, 80), (28, 28)),
    _volumes("d", (7, 7, 7), (2, 12, 12), (10, 10, 10), (9, 6, 4)),
    _volumes("p", (5, 5, 5), (9, 6, 4), (7, 7, 7), (4, 14, 14)),
    _chains("plstm/chain", 2048, 512, 8192, 96, 30000, 200, 65536),
    _chains("chain/mlstm", 2048, 512, 8192, 65536),
    _chains("chain/gla", 2048, 512, 8192),
    _chains("chain/deltanet", 2048, 512, 8192),
    _trees(6, 9),
    _graphs("p", 80),
    _graphs("d", 120),
    _molecules("p", (48, 40)),
    _molecules("d", (32, 60)),
)
