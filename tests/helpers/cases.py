"""Scans that every way of evaluating one must agree on: topologies, gates, directions, states, in one table.

A case names the strategies that must accept it, so that none drops out unseen. `quick` cases run always, the others with
`-m slow`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Config = dict[str, Any]
Way = tuple[str, Config | None]

ANY: tuple[Way, ...] = (("recurrent", None),)
"""What takes state axes and matrices."""

NODES: tuple[Way, ...] = (("nodes", None), ("dense_nodes", None))
"""What runs rank-one transitions on node states: gates with state axes, and gates that are one number a head."""


def ways(*chunks: Config, dense: bool = True) -> tuple[Way, ...]:
    """Every strategy, for gates that are one number a head; chunkwise once for each setting."""
    fixed: list[Way] = [("recurrent", None), ("parallel", None)]
    return (*fixed, *(("chunkwise", chunk) for chunk in chunks), *([("dense", None)] if dense else []))


def linear(*chunks: int) -> tuple[Way, ...]:
    """The strategy for chains alone, once for each number of nodes in a chunk."""
    return tuple(("linear", {"chunk": chunk}) for chunk in chunks)


def delta(*chunks: int) -> tuple[Way, ...]:
    """The strategy for chains of the delta rule, once for each number of nodes in a chunk."""
    return tuple(("delta", {"chunk": chunk}) for chunk in chunks)


def tracks(*chunks: int) -> tuple[Way, ...]:
    """The strategy for chains with tracks, once for each number of nodes in a chunk."""
    return tuple(("tracks", {"chunk": chunk}) for chunk in chunks)


SYSTEM: tuple[Way, ...] = (("delta_dense", None),)
"""What runs the delta rule on any topology as one system."""


def delta_separable(*rows: int) -> tuple[Way, ...]:
    """The strategy for the delta rule on grids of two axes with one turn closed, once for each number of lines in a block."""
    return tuple(("delta_separable", {"rows": count}) for count in rows)


def walk(*stretches: int) -> tuple[Way, ...]:
    """The loop over the nodes of a chain or grid, once for each number of places between two whose states are kept."""
    return tuple(("walk", {"every": every}) for every in stretches)


def rows(*counts: int) -> tuple[Way, ...]:
    """The strategy that joins rows along the first axis, once for each number of rows in a first run."""
    return tuple(("rows", {"axis": 0, "rows": count, "targets": 3}) for count in counts)


CORNERS: tuple[Way, ...] = (("corners", None),)
"""The strategy for grids of two axes with one turn closed, and decays of the key or of the value."""


def raster(*tiles: tuple[int, ...], segments: int = 1) -> tuple[Way, ...]:
    """The sweep of grids by tiles, once for each tile."""
    return tuple(("raster", {"tile": tile, "segments": segments}) for tile in tiles)


def impulse(*tiles: tuple[int, ...]) -> tuple[Way, ...]:
    """The strategy for gates that are the same at all nodes, once for each tile of targets."""
    return (("recurrent", None), ("parallel", None), *(("impulse", {"tile": tile}) for tile in tiles))


def separable(*rows: int) -> tuple[Way, ...]:
    """The strategy for grids of two axes with one turn closed, once for each number of lines in a block."""
    return tuple(("separable", {"rows": count}) for count in rows)


GIVEN = """
    source[out] = given()
    transition[out, in] = given()
    mark[in] = given()
    direct = given()
"""
RANK_ONE = """
    angle = sigmoid(linear(x, bias = spread(-2, 2)))
    decay = tanh(5 * linear(x, bias = 1))
    source[out] = sigmoid(linear(x, bias = -1)) * split(angle)[out]
    transition[out, in] = decay * split(angle)[out]
    mark = sigmoid(linear(x))
    direct = sigmoid(linear(x, bias = -2))
"""
READ_AFTER = """
    source = sigmoid(linear(x))
    transition = sigmoid(linear(x, bias = spread(1, 3)))
    read after
"""
MULTITREE = """
    source[out] = sigmoid(linear(x))
    transition[out, in] = tanh(linear(x))
    transition[out = cols, in = rows] = 0
    mark[in] = param(0.5)
    direct = param(1)
"""
ONE_TURN = GIVEN + "    transition[out = {}, in = {}] = 0\n"
NO_TURN = ONE_TURN.format("cols", "rows") + "    transition[out = rows, in = cols] = 0\n"
CYCLIC = """
    source[out] = sigmoid(linear(x))
    transition[out, in] = tanh(linear(x)) * softmax(linear(x), over = out)
    mark[in] = sigmoid(linear(x)) + max(source[in], 0.1)
    direct = sum(source, over = out) - largest(mark, over = in)
"""
RAGGED = """
    source[out] = sigmoid(linear(x, e[out], bias = -1))
    transition[out, in] = tanh(linear(x)) * softmax(linear(x, e[out], e[in]), over = out)
    mark[in] = sigmoid(linear(x, e[in])) * param(2)
    direct = mean(source, over = out)
"""
CONSTANT = """
    source[out] = param(0.7)
    transition[out, in] = param(0.4)
    mark[in] = param(1)
    direct = sigmoid(linear(x))
    k = l2norm(k)
    v = v * sigmoid(linear(x))
"""
TURNS = """
    source[out = rows] = 1
    source[out = cols] = param(-1)
    transition[out = rows, in = rows] = -1
    transition[out = cols, in = rows] = 0
    transition[out = rows, in = cols] = tanh(param(1))
    transition[out = cols, in = cols] = 1
    mark = 1
    direct = 0
"""
EDGES = """
    alpha = {}
    source[out] = split(alpha)[out] * param(1)
    transition[out, in] = split(alpha)[out]
    mark = param(1)
    direct = sigmoid(linear(x))
"""
FACTORS = """
    f[out] = tanh(linear(x)) * softmax(linear(x, e[out]), over = out)
    g[in] = sigmoid(linear(x, e[in]))
    source[out] = sigmoid(linear(x, e[out], bias = -1))
    transition[out, in] = f[out] * g[in]
    mark[in] = tanh(linear(x, e[in])) * param(2)
    direct = mean(source, over = out)
"""
DEGREES = """
    rate = param(-0.5)
    width = 1 + softplus(linear(x))
    source[out] = sigmoid(linear(x, log(1 + degree(in)), 1 / degree(out), bias = -1)) * degree(in) ^ -0.5
    mark[in] = degree(out) ^ rate * tanh(linear(x)) / (width * degree(in)) + log(degree(out))
    direct = sigmoid(linear(log(degree(in)))) * sqrt(degree(out) - 1)
    share = tanh(linear(x)) / degree(out)
    transition = share
"""
DEGREES_OF_EDGES = DEGREES.replace("transition =", "transition[out, in] = sigmoid(linear(x, e[out], e[in])) *")
GIVEN_FACTORS = """
    f[out] = given()
    g[in] = given()
    source[out] = given()
    transition[out, in] = f[out] * g[in]
    mark[in] = given()
    direct = given()
"""
MATRIX_FACTOR = """
    f[out, key, key'] = given(-0.5, 0.5)
    g[in, value] = given(-1, 1)
    source[out, key] = given()
    transition[out, in, key, key', value] = f[out, key, key'] * g[in, value]
    mark[in, key, key'] = given()
    direct = given()
"""
TRACK_FACTOR = """
    g[in, track, track'] = l1norm(given(), over = track)
    f[out] = given(-1, 1)
    source[out, track] = given()
    transition[out, in, track, track'] = f[out] * g[in, track, track']
    mark[in, track] = given()
    direct = given()
"""
SHARES = """
    q = softplus(q)
    k = softplus(k)
    share[out] = softmax(linear(x, e[out]), over = out)
    source = 1
    transition[out, in] = share
    mark = 1
    direct = 1
    normalize sum
"""
KEY = """
    transition[key] = sigmoid(linear(x))
    source[key] = given(-1, 1)
    mark[in, value] = given()
    direct = 1
"""
MAMBA = """
    step[value] = softplus(linear(x))
    rate[key, value] = exp(param(0))
    transition[key, value] = exp(-rate[key, value] * step[value])
    source[value] = step
    read after
"""
MAMBA_2D = """
    step[value] = softplus(linear(x))
    rate[key, value] = exp(param(0))
    decay[key, value] = exp(-rate[key, value] * step[value])
    source[value] = step
    transition[out, in, key, value] = decay
    transition[out = cols, in = rows, key, value] = 0
    mark[key, value] = decay
    direct[value] = step
"""
KEY_TURN = """
    source[out, key] = given()
    transition[out, in, key] = given(-1, 1)
    transition[out = {}, in = {}, key] = 0
    mark[in] = given()
    direct = given()
"""
VALUE_TURN = """
    source[out] = given()
    transition[out, in, value] = given(-1, 1)
    transition[out = {}, in = {}, value] = 0
    mark[in, value] = given()
    direct[value] = given()
"""
KEY_EVERYWHERE = """
    source[key] = given()
    transition[out, in, key, value] = given(-0.5, 0.5) * sigmoid(given())
    mark[in, value] = given()
    direct[key, value] = given()
"""
BOTH_AXES = """
    transition[key, value] = tanh(linear(x))
    source[value] = sigmoid(linear(x))
    read after
"""
DELTA = """
    k = l2norm(k)
    beta = sigmoid(linear(x))
    source = beta
    transition[key, key'] = eye[key, key'] - beta * k[key] * k[key']
    read after
"""
ERASE = """
    u[key] = given()
    strength = given()
    scale = given()
    source[key] = given()
    transition[key, key'] = scale * (eye[key, key'] - strength * u[key] * u[key'])
    mark[key, key'] = given()
    direct = given()
"""
OVERWRITE = """
    k = l2norm(k)
    share = given(0, 1)
    decay = given(-1, 1)
    strength = given(0, 2)
    source[out] = sigmoid(linear(x)) * split(share)[out]
    transition[out, in, key, key'] = decay * split(share)[out] * (eye[key, key'] - strength * k[key] * k[key'])
    mark[in] = given()
    direct = given()
"""
OVERWRITE_EDGES = """
    decay[out, in] = given(-1, 1)
    strength = given(0, 2)
    source[out] = given()
    transition[out, in, key, key'] = decay * (eye[key, key'] - strength * k[key] * k[key'])
    mark[in] = given()
    direct = given()
"""
OVERWRITE_TURN = OVERWRITE_EDGES + "    transition[out = {}, in = {}, key, key'] = 0\n"
OVERWRITE_OTHER = """
    u[key] = given()
    decay[out] = given(-1, 1)
    strength = given(0, 2)
    source[out] = given()
    transition[out, in, key, key'] = decay[out] * (eye[key, key'] - strength * u[key] * u[key'])
    mark[in, key, key'] = strength * (eye[key, key'] - u[key] * u[key'])
    direct = given()
"""
MATRIX = """
    source[out] = given()
    transition[out, in, key, key', value] = given(-0.5, 0.5)
    mark[in, value] = given()
    direct = given()
"""
TRACKS = """
    source[out, track] = given()
    transition[out, in, track, track'] = l1norm(given(), over = track)
    mark[in, track] = given()
    direct = given()
"""
APART = """
    source[track] = given()
    transition[track] = given(-1, 1)
    mark = given()
    direct = given()
"""
LISTS = """
    decay = 1 - 2 ^ spread(-1, -3)
    own[key] = given(-1, 1)
    source[out, key, track = 0] = [1, 0.5][key] * own[key = 1]
    source[out, key, track] = given(-1, 1)
    transition[out, in, track, track'] = decay * given(-0.3, 0.3)
    transition[out, in, track = 0, track'] = [0.5, -0.25, 0][track'] * sigmoid(linear(x))
    transition[out, in, track = 2, track' = 1] = own[key = 0] / 4
    mark[in, track] = [1, own[key = 0], 0.5][track]
    direct = spread(0, 1)
"""
ROTATION = """
    radius[value] = exp(-exp(param(spread(-1, 1))))
    angle[value] = linear(x)
    source[key] = given()
    turn[key, key', value] = [[cos(angle), -sin(angle)], [sin(angle), cos(angle)]][key, key']
    transition[key, key', value] = radius * turn
    direct = 1
"""
POLAR = """
    turn[key] = polar(exp(-exp(param(spread(-1, 1)))), linear(x)) * polar(given(0, 1), pi / 2)
    source[key, value] = complex(given(), 0.5) / complex(2, linear(x))
    transition[key] = turn
    mark[key, value] = complex(given(), given()) * conjugate(turn)
    direct[value] = real(sum(turn, over = key) * complex(given(), 1))
"""
TURNED_KEY = """
    source[key] = complex(given(), linear(x))
    transition[key] = polar(given(0, 1), linear(x))
    mark[key] = complex(given(), given())
    direct = given()
"""
TURNED_VALUE = """
    source = complex(given(), given())
    transition[value] = complex(given(-0.6, 0.6), given(-0.6, 0.6))
    mark[value] = complex(given(), given())
    direct[value] = given()
"""
TRACKS_OF_KEYS = """
    source[key, track] = given()
    transition[track, track'] = given(-0.6, 0.6)
    mark[track] = given()
    direct = given()
"""
CARTESIAN = """
    source[out] = given()
    share[out, value] = complex(sigmoid(linear(x)), given(-1, 1))
    transition[out, in, value] = share[out, value] * share[in, value] * exp(complex(0, given()))
    mark[in, value] = mean([transition[out = cols, in, value], source[out = rows]][key], over = key) - abs(share[in, value])
"""
COMPLEX_TURN = """
    source[out, key] = polar(given(), given())
    transition[out, in, key, value] = polar(given(-1, 1), linear(x))
    transition[out = cols, in = rows, key, value] = 0
    mark[in, key] = given()
    direct = given()
"""
COMPLEX_EDGES = """
    source[key] = complex(linear(x), given())
    transition[in, key] = polar(tanh(linear(e[in])) / 2, linear(x))
    read after
"""
PRODUCTS = """
    u[key] = l2norm(given())
    first[key, key'] = eye[key, key'] - 2 * u[key] * u[key']
    second[key, key'] = l1norm(given(), over = key)
    both[key, key'] = sum(first[key, key''] * second[key'', key'] * sigmoid(linear(x)), over = key'')
    source[out] = given()
    transition[out, in, key, key'] = 0.5 * sum(second[key'', key] * both[key'', key'], over = key'')
    mark[in, key, key'] = sum(first[key', key''] * both[key, key''], over = key'')
    direct = given()
"""
BORDERS = """
    share[in] = neighbour(in) / max(1, sum(neighbour(in), over = in))
    source[out] = given() * (1 + neighbour(out))
    transition[out, in] = given(-1, 1) * share
    mark[in] = given() + neighbour(in)
    direct = 1 - mean(neighbour(out), over = out)
"""
SUM = (
    READ_AFTER.replace("source = sigmoid(linear(x))", "q = softplus(q)\n    k = softplus(k)\n    source = 1")
    + "    normalize sum\n"
)
MLSTM = READ_AFTER.replace("source = sigmoid", "source = exp") + "    normalize mlstm\n"
BOTH, ALL, CONCAT, BACKWARD = (f"    directions {word}\n" for word in ("both", "all", "all concat", "backward"))
NONE, PROPAGATE, DISTRIBUTE = (f"    stabilize {word}\n" for word in ("none", "P", "D"))


BOTH_WAYS = "    directions +rows -cols, -rows +cols\n"
TURN_SUM = """
    q = softplus(q)
    k = softplus(k)
    source[out] = sigmoid(linear(x))
    transition[out, in] = sigmoid(linear(x))
    transition[out = cols, in = rows] = 0
    mark[in] = sigmoid(linear(x))
    direct = 1
    normalize sum
"""


@dataclass(frozen=True, eq=False)
class Case:
    """`body` on `topology`; `exact` draws leaves from 0, 1 and -1 only. `files` are graph files of the data folder that
    the topology reads."""

    name: str
    topology: str
    body: str
    strategies: tuple[Way, ...]
    heads: int = 2
    key: int = 2
    value: int = 3
    exact: bool = False
    quick: bool = True
    declarations: str = ""
    files: tuple[str, ...] = ()
    writes: int = 1
    reads: int = 1
    steps: int = 1

    @property
    def values(self) -> str:
        """How its leaves are drawn: a name in `stmlang.fuzz.generators.PROFILES`."""
        return "exact" if self.exact else "random"

    @property
    def text(self) -> str:
        track = ", track = 3" if "track" in self.body else ""
        several = (("writes", self.writes), ("reads", self.reads), ("steps", self.steps))
        terms = "".join(f", {name} = {size}" for name, size in several if size > 1)
        sizes = f"heads = {self.heads}, key = {self.key}, value = {self.value}{track}{terms}"
        return f"{self.declarations}\nscan test({sizes}) on {self.topology} {{\n{self.body}}}\n"


def random_dag(nodes: int, edges: int, seed: int) -> str:
    """A random DAG, some of its edges open, as a text; nodes are named in a shuffled order."""
    rng = np.random.default_rng(seed)
    order, arrows = rng.permutation(nodes), [f"-> n{nodes // 2}", f"n{nodes // 3} ->", "-> n0", f"n{nodes - 1} ->"]
    pairs = {tuple(sorted(rng.choice(nodes, 2, replace=False))) for _ in range(4 * edges)}
    chosen = sorted(pairs)
    for tail, head in (chosen[number] for number in rng.permutation(len(chosen))[:edges]):
        arrows.append(f"n{order[tail]} -> n{order[head]}")
    loners = set(range(nodes)) - {
        int(number) for arrow in arrows for number in arrow.replace("->", "").replace("n", "").split()
    }
    arrows += [f"-> n{number}" for number in sorted(loners)]
    return f"dag {{ {'; '.join(arrows)} }}"


TREE = "tree { a, b -> e; c, d -> f; e, f -> root; g -> root; root ->; -> a }"
SMALL = "dag { -> s; s -> t, u; t, u -> w; u -> y; w, y -> z; z ->; y -> }"
SQUARE = "grid(rows = {}, cols = {})"

CASES: tuple[Case, ...] = (
    Case("chain 1", "chain(t = 1)", GIVEN + ALL + NONE, (*ways({"tile": (1,)}), *linear(1))),
    Case(
        "chain 2",
        "chain(t = 2)",
        RANK_ONE.replace("split(angle)[out]", "angle") + CONCAT,
        (*ways({"tile": (1,)}), *linear(1, 2)),
    ),
    Case("chain 17", "chain(t = 17)", READ_AFTER + BOTH, (*ways({"tile": (16,)}), *linear(5, 16))),
    Case("chain 64", "chain(t = 64)", GIVEN + NONE, (*ways({"tile": (16,)}), *linear(16)), heads=1, exact=True),
    Case("chain 129", "chain(t = 129)", READ_AFTER + BACKWARD, (*ways({"tile": (64,)}), *linear(64))),
    Case("chain 33 sum", "chain(t = 33)", SUM, (*ways({"tile": (8,)}), *linear(8))),
    Case("chain 12 mlstm", "chain(t = 12)", MLSTM + BOTH, (*ways({"tile": (5,)}), *linear(5))),
    Case("chain 9 key", "chain(t = 9)", KEY + CONCAT, (*ANY, *linear(4), *walk(2))),
    Case("chain 9 key value", "chain(t = 9)", BOTH_AXES, (*ANY, *walk(1, 4, 9))),
    Case("chain 1 key value", "chain(t = 1)", MAMBA + BOTH, walk(1)),
    Case("chain 2 key value", "chain(t = 2)", MAMBA + BACKWARD, walk(2)),
    Case("chain 13 mamba", "chain(t = 13)", MAMBA + CONCAT, (*ANY, *walk(5))),
    Case(
        "chain 13 walk exact",
        "chain(t = 13)",
        KEY_EVERYWHERE.replace("[in, ", "[").replace("[out, in, ", "[") + BOTH + NONE,
        walk(3),
        exact=True,
    ),
    Case("chain 9 delta", "chain(t = 9)", DELTA + BOTH, (*ANY, *delta(4, 9), *SYSTEM), key=4),
    Case("chain 13 erase", "chain(t = 13)", ERASE + CONCAT + NONE, (*ANY, *delta(5)), key=3, exact=True),
    Case("chain 9 tracks", "chain(t = 9)", TRACKS + NONE, (*ANY, *walk(2), *tracks(4, 9))),
    Case("chain 1 tracks", "chain(t = 1)", TRACKS + CONCAT + NONE, tracks(1)),
    Case("chain 2 tracks", "chain(t = 2)", TRACKS + BACKWARD + NONE, tracks(1, 2)),
    Case(
        "chain 13 tracks apart", "chain(t = 13)", APART + BOTH + NONE, (*ways({"tile": (5,)}), *walk(5), *tracks(4)), exact=True
    ),
    Case("grid 1x1", SQUARE.format(1, 1), GIVEN + ALL + NONE, (*ways({"tile": (1, 1)}), *raster((1, 1)))),
    Case("grid 1x7", SQUARE.format(1, 7), RANK_ONE + ALL + PROPAGATE, (*ways({"tile": (1, 3)}), *raster((1, 3)))),
    Case("grid 7x1", SQUARE.format(7, 1), CYCLIC + CONCAT, (*ways({"tile": (2, 2)}), *raster((2, 1), segments=2)), quick=False),
    Case(
        "grid 5x3",
        SQUARE.format(5, 3),
        CYCLIC + ALL + PROPAGATE,
        (*ways({"tile": (2, 2)}, {"tile": (4, 1)}), *raster((2, 2), (4, 1))),
    ),
    Case(
        "grid 5x3 exact",
        SQUARE.format(5, 3),
        GIVEN + ALL + NONE,
        (*ways({"tile": (2, 2)}), *raster((2, 2), segments=3)),
        exact=True,
    ),
    Case(
        "grid 8x8 P",
        SQUARE.format(8, 8),
        RANK_ONE + ALL + PROPAGATE,
        (*ways({"tile": (4, 4)}, dense=False), *raster((4, 4))),
        heads=1,
    ),
    Case(
        "grid 8x8 D",
        SQUARE.format(8, 8),
        MULTITREE + ALL + DISTRIBUTE,
        (*ways({"tile": (3, 8)}, dense=False), *raster((3, 8)), *separable(8, 3)),
        heads=1,
    ),
    Case("grid 7x5 turn", SQUARE.format(7, 5), ONE_TURN.format("cols", "rows") + ALL + NONE, separable(7, 2), exact=True),
    Case("grid 4x7 turn", SQUARE.format(4, 7), ONE_TURN.format("rows", "cols") + ALL + NONE, separable(3, 7), exact=True),
    Case("grid 3x4 turn", SQUARE.format(3, 4), ONE_TURN.format("rows", "cols") + CONCAT + NONE, separable(3, 4)),
    Case("grid 1x5 turn", SQUARE.format(1, 5), ONE_TURN.format("cols", "rows") + BACKWARD + NONE, separable(1), quick=False),
    Case("grid 6x1 turn", SQUARE.format(6, 1), ONE_TURN.format("cols", "rows") + BOTH_WAYS + NONE, separable(4), quick=False),
    Case("grid 4x3 no turn", SQUARE.format(4, 3), NO_TURN + BOTH_WAYS + NONE, separable(1, 4)),
    Case("grid 5x4 turn sum", SQUARE.format(5, 4), TURN_SUM + ALL + DISTRIBUTE, separable(2)),
    Case(
        "grid 9x13",
        SQUARE.format(9, 13),
        GIVEN + NONE,
        (*ways({"tile": (4, 4)}, {"tile": (9, 2)}), *raster((4, 4), (2, 13), segments=2)),
        heads=1,
    ),
    Case("chain 5 lists", "chain(t = 5)", LISTS + BOTH + NONE, ANY),
    Case("chain 7 complex", "chain(t = 7)", POLAR, (*ANY, *walk(2))),
    Case("chain 1 complex", "chain(t = 1)", POLAR, (*ANY, *walk(1)), quick=False),
    Case("chain 2 complex", "chain(t = 2)", POLAR + BACKWARD, (*ANY, *walk(1)), quick=False),
    Case("chain 6 complex after", "chain(t = 6)", COMPLEX_EDGES.replace("e[in]", "x"), (*ANY, *walk(4)), quick=False),
    Case("grid 3x4 complex", SQUARE.format(3, 4), CARTESIAN + ALL + PROPAGATE, (*ANY, *walk(2))),
    Case("grid 5x2 complex exact", SQUARE.format(5, 2), COMPLEX_TURN, (*ANY, *walk(3)), exact=True, quick=False),
    Case("small graph complex", SMALL, COMPLEX_EDGES + BOTH, ANY),
    Case("chain 9 turned key", "chain(t = 9)", TURNED_KEY + BOTH, (*ANY, *linear(4, 9), *walk(2))),
    Case("chain 1 turned key", "chain(t = 1)", TURNED_KEY + CONCAT, (*ANY, *linear(1)), quick=False),
    Case("chain 2 turned key", "chain(t = 2)", TURNED_KEY + BACKWARD, linear(1, 2), quick=False),
    Case("chain 13 turned value", "chain(t = 13)", TURNED_VALUE + CONCAT + NONE, (*linear(5), *walk(3)), exact=True),
    Case("chain 7 tracks of keys", "chain(t = 7)", TRACKS_OF_KEYS + BOTH + NONE, (*ANY, *linear(3)), exact=True),
    Case("chain 5 turned key, two writes", "chain(t = 5)", TURNED_KEY, linear(2), writes=2, reads=3, quick=False),
    Case("chain 7 rotation", "chain(t = 7)", ROTATION + BACKWARD, ANY),
    Case("chain 6 products", "chain(t = 6)", PRODUCTS + NONE, ANY, key=3),
    Case("grid 2x3 lists", SQUARE.format(2, 3), LISTS + ALL + NONE, ANY),
    Case("grid 3x2 products", SQUARE.format(3, 2), PRODUCTS + ALL + NONE, ANY, quick=False),
    Case("dag lists", SMALL, LISTS + BOTH + NONE, ANY, quick=False),
    Case("dag products", SMALL, PRODUCTS + BOTH + NONE, ANY),
    Case("chain 1 borders", "chain(t = 1)", BORDERS + BOTH + NONE, ways(), heads=1, quick=False),
    Case("chain 6 borders", "chain(t = 6)", BORDERS + BOTH + NONE, linear(3)),
    Case("grid 3x4 borders", SQUARE.format(3, 4), BORDERS + ALL + NONE, (*ANY, *raster((2, 2)))),
    Case("grid 1x3 borders", SQUARE.format(1, 3), BORDERS + ALL + NONE, ANY, quick=False),
    Case("dag borders", SMALL, BORDERS + BOTH + NONE, (*ANY, ("dense", None))),
    Case("tree borders", TREE, BORDERS + BACKWARD + NONE, (*ways({"block": 4}), *NODES), quick=False),
    Case(
        "grid 4x3 matrix",
        SQUARE.format(4, 3),
        MATRIX + "    directions +rows -cols, -rows +cols concat\n" + NONE,
        (*ANY, *walk(3)),
    ),
    Case("grid 3x3 tracks", SQUARE.format(3, 3), TRACKS + ALL + NONE, (*ways({"tile": (2, 2)}), *walk(1), *rows(2))),
    Case("grid 1x7 tracks", SQUARE.format(1, 7), TRACKS + CONCAT + NONE, ways({"tile": (1, 3)}), quick=False),
    Case(
        "grid 5x3 tracks exact",
        SQUARE.format(5, 3),
        TRACKS + ALL + NONE,
        (*ways({"tile": (2, 3)}), *rows(1)),
        exact=True,
        quick=False,
    ),
    Case(
        "grid 3x4 tracks, two writes",
        SQUARE.format(3, 4),
        TRACKS + BOTH_WAYS + NONE,
        (*rows(1), *ways({"tile": (2, 2)})),
        writes=2,
        reads=2,
    ),
    Case(
        "grid 2x3x2 tracks",
        "grid(a = 2, b = 3, c = 2)",
        TRACKS + "    directions +a -b +c, -a +b +c\n" + NONE,
        (*ways({"tile": (2, 2, 1)}), *rows(2)),
        heads=1,
        quick=False,
    ),
    Case("dag tracks", random_dag(9, 20, seed=13), TRACKS + CONCAT.replace("all", "both") + NONE, ways({"block": 4})),
    Case("tree tracks", TREE, TRACKS + BOTH + NONE, ways({"block": 2}), quick=False),
    Case("grid 5x3 walk", SQUARE.format(5, 3), CYCLIC + ALL + PROPAGATE, walk(2)),
    Case("grid 3x4 mamba", SQUARE.format(3, 4), MAMBA_2D + ALL, (*ANY, *walk(2))),
    Case("grid 4x3 key value", SQUARE.format(4, 3), KEY_EVERYWHERE + ALL + NONE, (*ANY, *walk(3)), exact=True),
    Case("grid 5x3 key turn", SQUARE.format(5, 3), KEY_TURN.format("cols", "rows") + ALL + NONE, (*CORNERS, *walk(2))),
    Case("grid 2x7 key turn", SQUARE.format(2, 7), KEY_TURN.format("rows", "cols") + CONCAT + NONE, CORNERS, exact=True),
    Case("grid 4x5 value turn", SQUARE.format(4, 5), VALUE_TURN.format("cols", "rows") + ALL + NONE, CORNERS, exact=True),
    Case("grid 3x2 value turn", SQUARE.format(3, 2), VALUE_TURN.format("rows", "cols") + BOTH_WAYS + NONE, (*ANY, *CORNERS)),
    Case("grid 1x5 key turn", SQUARE.format(1, 5), KEY_TURN.format("cols", "rows") + BACKWARD + NONE, CORNERS, quick=False),
    Case(
        "grid 3x4x5",
        "grid(a = 3, b = 4, c = 5)",
        GIVEN + "    directions +a -b +c, -a +b +c\n" + NONE,
        (*ways({"tile": (2, 2, 3)}), *raster((2, 2, 3))),
        heads=1,
    ),
    Case(
        "grid 3x4x5 P",
        "grid(a = 3, b = 4, c = 5)",
        CYCLIC + ALL + PROPAGATE,
        (*ways({"tile": (3, 2, 2)}), *raster((1, 2, 5), segments=3)),
        heads=1,
        quick=False,
    ),
    Case(
        "grid 2x3x2 key",
        "grid(a = 2, b = 3, c = 2)",
        KEY_EVERYWHERE + "    directions +a -b +c, -a +b +c\n" + NONE,
        walk(1),
        heads=1,
    ),
    Case("chain 1 constant", "chain(t = 1)", CONSTANT + NONE, impulse((1,)), heads=1),
    Case("chain 2 constant", "chain(t = 2)", CONSTANT + BACKWARD + NONE, impulse((2,), (1,)), heads=1),
    Case("chain 13 constant", "chain(t = 13)", CONSTANT + BOTH + NONE, impulse((13,), (5,))),
    Case("grid 4x7 constant", SQUARE.format(4, 7), CONSTANT + ALL + NONE, impulse((4, 7), (3, 2), (1, 7))),
    Case("grid 3x5 constant", SQUARE.format(3, 5), CONSTANT + CONCAT + NONE, impulse((3, 5), (1, 5))),
    Case("grid 1x6 constant", SQUARE.format(1, 6), CONSTANT + ALL + NONE, impulse((1, 6), (1, 4)), quick=False),
    Case("grid 5x2 turns", SQUARE.format(5, 2), TURNS + ALL + DISTRIBUTE, impulse((5, 2), (2, 2))),
    Case("grid 5x4 down", SQUARE.format(5, 4), EDGES.format(1) + ALL + PROPAGATE, impulse((5, 4)), heads=1),
    Case("grid 2x6 across", SQUARE.format(2, 6), EDGES.format(0) + CONCAT + PROPAGATE, impulse((1, 3)), heads=1),
    Case(
        "grid 2x4x3 constant",
        "grid(a = 2, b = 4, c = 3)",
        CONSTANT + "    directions +a -b +c, -a +b +c\n" + NONE,
        impulse((2, 4, 3), (1, 3, 3)),
        heads=1,
    ),
    Case("asia", 'dag from "asia.bif"', RAGGED + BOTH + PROPAGATE, ways({"block": 4}), files=("dags/bif/asia.bif",)),
    Case(
        "alarm",
        'dag from "alarm.bif"',
        GIVEN + BOTH + NONE,
        ways({"block": 8}),
        heads=1,
        quick=False,
        files=("dags/bif/alarm.bif",),
    ),
    Case("dag given", SMALL, GIVEN + BOTH + NONE, (*ways({"block": 2}), *NODES), exact=True),
    Case("dag D", SMALL, GIVEN + BOTH + DISTRIBUTE, ways({"block": 4})),
    Case("dag matrix", SMALL, MATRIX + BOTH + NONE, (*ANY, NODES[0])),
    Case(
        "dag delta",
        SMALL,
        DELTA + BACKWARD,
        (*ANY, NODES[0], *SYSTEM),
    ),
    Case("grid 5x3 overwrite", SQUARE.format(5, 3), OVERWRITE + ALL + PROPAGATE, SYSTEM),
    Case("grid 7x5 overwrite exact", SQUARE.format(7, 5), OVERWRITE + ALL + NONE, SYSTEM, exact=True, quick=False),
    Case("grid 2x1 overwrite", SQUARE.format(2, 1), OVERWRITE + BACKWARD + PROPAGATE, SYSTEM, quick=False),
    Case("grid 3x4 overwrite edges", SQUARE.format(3, 4), OVERWRITE_EDGES + CONCAT + NONE, SYSTEM),
    Case("grid 2x3 overwrite other", SQUARE.format(2, 3), OVERWRITE_OTHER + BOTH_WAYS + NONE, SYSTEM),
    Case(
        "grid 5x7 overwrite turn",
        SQUARE.format(5, 7),
        OVERWRITE_TURN.format("cols", "rows") + ALL + NONE,
        (*delta_separable(2, 5), *SYSTEM),
    ),
    Case(
        "grid 7x4 overwrite turn",
        SQUARE.format(7, 4),
        OVERWRITE_TURN.format("rows", "cols") + CONCAT + NONE,
        delta_separable(3),
        exact=True,
    ),
    Case(
        "grid 1x5 overwrite turn",
        SQUARE.format(1, 5),
        OVERWRITE_TURN.format("cols", "rows") + BACKWARD + NONE,
        delta_separable(1),
        quick=False,
    ),
    Case(
        "grid 6x1 overwrite turn",
        SQUARE.format(6, 1),
        OVERWRITE_TURN.format("cols", "rows") + BOTH_WAYS + NONE,
        delta_separable(4),
        quick=False,
    ),
    Case(
        "grid 2x3x2 overwrite",
        "grid(a = 2, b = 3, c = 2)",
        OVERWRITE_EDGES + "    directions +a -b +c, -a +b +c\n" + NONE,
        SYSTEM,
        heads=1,
        quick=False,
    ),
    Case("dag overwrite", random_dag(9, 18, seed=12), OVERWRITE_EDGES + BOTH + NONE, (*SYSTEM, *ANY), exact=True),
    Case("dag overwrite other", SMALL, OVERWRITE_OTHER + CONCAT.replace("all", "both") + NONE, SYSTEM, quick=False),
    Case("dag overwrite D", SMALL, OVERWRITE_EDGES + BOTH + DISTRIBUTE, SYSTEM, quick=False),
    Case("tree overwrite", TREE, DELTA + BOTH, SYSTEM, quick=False),
    Case("chain 1 overwrite", "chain(t = 1)", OVERWRITE_EDGES + BOTH + NONE, SYSTEM, quick=False),
    Case("chain 37 overwrite", "chain(t = 37)", OVERWRITE_EDGES + BOTH + NONE, SYSTEM, heads=1, quick=False),
    Case("random dag", random_dag(12, 22, seed=1), RAGGED + BOTH + PROPAGATE, ways({"block": 4}), heads=1),
    Case(
        "random dag D",
        random_dag(14, 20, seed=2),
        GIVEN + CONCAT.replace("all", "both") + DISTRIBUTE,
        ways({"block": 4}),
        heads=1,
    ),
    Case("random dag auto", random_dag(40, 70, seed=3), GIVEN + BACKWARD, ways({"block": 16}), heads=1, quick=False),
    Case("tree", TREE, RAGGED + BOTH, (*ways({"block": 4}), *NODES)),
    Case("complete tree", "tree(arity = 2, depth = 3)", READ_AFTER + BOTH, (*ways({"block": 4}), *NODES)),
    Case("one node", "dag { -> a }", FACTORS + BOTH + NONE, (*ways(), *NODES)),
    Case("loners", "dag { a; b; c }", FACTORS + BOTH + NONE, (*ways(), *NODES), heads=1),
    Case("factors", random_dag(11, 22, seed=4), FACTORS + BOTH + PROPAGATE, (*ways({"block": 4}), *NODES), heads=1),
    Case("factors given", random_dag(13, 30, seed=5), GIVEN_FACTORS + BOTH + NONE, (*ways(), *NODES), exact=True),
    Case("factors concat", random_dag(7, 12, seed=6), GIVEN_FACTORS + CONCAT.replace("all", "both") + NONE, (*ways(), *NODES)),
    Case("factors dense", random_dag(9, 30, seed=7), GIVEN_FACTORS + BACKWARD + NONE, (*ways(), *NODES), heads=1),
    Case("factors matrix", random_dag(9, 20, seed=8), MATRIX_FACTOR + BOTH + NONE, (*ANY, NODES[0])),
    Case("factors tracks", random_dag(9, 20, seed=9), TRACK_FACTOR + BOTH + NONE, (*ways({"block": 4}), NODES[0])),
    Case("factors sum", SMALL, SHARES + BOTH + NONE, (*ways({"block": 4}), *NODES), heads=1),
    Case("degrees", random_dag(9, 18, seed=10), DEGREES + BOTH + PROPAGATE, (*ways({"block": 4}), *NODES), heads=1),
    Case("degrees of edges", random_dag(9, 20, seed=11), DEGREES_OF_EDGES + CONCAT.replace("all", "both"), ways({"block": 4})),
    Case("degrees of loners", "dag { a; b -> c; d }", DEGREES + BOTH, (*ways(), *NODES), heads=1),
    Case("degrees of trees", TREE, DEGREES + BACKWARD, (*ways({"block": 4}), *NODES), heads=1, quick=False),
    Case("degrees of grids", SQUARE.format(3, 4), DEGREES + ALL + PROPAGATE, (*ways({"tile": (2, 2)}), *raster((2, 2)))),
    Case(
        "degrees of products",
        "chain(t = 3) * small",
        DEGREES + BOTH,
        (*ways({"block": 8}), *NODES),
        heads=1,
        quick=False,
        declarations=f"topology small = {SMALL}",
    ),
    Case("factors chain", "chain(t = 13)", READ_AFTER + BOTH, (("dense_nodes", None),)),
    Case("factors grid", SQUARE.format(5, 3), RANK_ONE + ALL + PROPAGATE, (("dense_nodes", None),)),
    Case(
        "factors alarm",
        'dag from "alarm.bif"',
        FACTORS + BOTH + PROPAGATE,
        (*ways({"block": 8}), *NODES),
        heads=1,
        quick=False,
        files=("dags/bif/alarm.bif",),
    ),
    Case(
        "factors product",
        "chain(t = 2) * small",
        GIVEN_FACTORS + BOTH + NONE,
        (*ways({"block": 4}), *NODES),
        heads=1,
        declarations=f"topology small = {SMALL}",
    ),
    Case(
        "product",
        "chain(t = 2) * small",
        GIVEN + BOTH + NONE,
        ways({"block": 4}),
        heads=1,
        declarations=f"topology small = {SMALL}",
    ),
)
QUICK = tuple(case for case in CASES if case.quick)
