"""The printed formulas of the paper's appendix that are wrong, each beside the corrected one: the recurrence decides.

Equation names are those of the paper's source. Gates are indexed as there: `T[a]` of node `a`, and on the grid a turn from an
edge along one axis to one along the other.
"""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

import stmlang
from stmlang.check import load
from stmlang.facts import analyse
from stmlang.graph.topology import dag_of
from stmlang.oracle.dense import gating_by_paths, gating_matrix, solved
from stmlang.oracle.recurrence import reference
from stmlang.scan.scan import Scan
from tests.helpers.scans import given_scan, grid, random_inputs

Array = np.ndarray
ONES = (
    "scan ones(key = 1, value = 1) on grid(rows = {0}, cols = {0}) {{ source = 1; transition[out, in] = 1; stabilize {1} }}\n"
)


def oracle(scan: Scan, inputs: dict) -> Array:
    """The gating matrix of a scan with one head, `(source node, target node)`."""
    inputs = {name: array for name, array in inputs.items() if name != "initial"}
    found = gating_matrix(scan, dag_of(scan.topology), **inputs)
    nodes = found.shape[: len(found.shape) // 2]
    return found.reshape(int(np.prod(nodes)), -1)


# --- the recursion on chains


def halved(S: Array, T: Array, M: Array, D: Array, printed: bool) -> Array:
    """The gating matrix by the appendix's recursion in 1-D, which merges neighbours pair by pair. As it is printed, the first
    half of a merged mark is that of the second block, `M_(2a+1)`; it must be that of the first, `M_(2a)`. The right side of
    `G^l`, printed with the levels `l` and `l-1`, is read as `l-1` throughout."""
    sources, transitions, marks = [s.reshape(1) for s in S], list(T), [m.reshape(1) for m in M]
    gatings = [d.reshape(1, 1) for d in D]
    while len(gatings) > 1:
        pairs = range(len(gatings) // 2)
        size = len(gatings[0])
        zero = np.zeros((size, size))
        gatings = [
            np.block([[gatings[2 * a], np.outer(sources[2 * a], marks[2 * a + 1])], [zero, gatings[2 * a + 1]]]) for a in pairs
        ]
        marks = [np.concatenate([marks[2 * a + 1 if printed else 2 * a], transitions[2 * a] * marks[2 * a + 1]]) for a in pairs]
        sources = [np.concatenate([sources[2 * a] * transitions[2 * a + 1], sources[2 * a + 1]]) for a in pairs]
        transitions = [transitions[2 * a] * transitions[2 * a + 1] for a in pairs]
    return gatings[0]


def chain(nodes: int, seed: int) -> tuple[Array, tuple[Array, ...]]:
    """The gating matrix of a random chain, and its gates in the order S, T, M, D."""
    scan = given_scan(grid(nodes))
    inputs = random_inputs(scan, dag_of(scan.topology), seed, scale=1.5)
    gates = tuple(inputs["gates"][name].reshape(nodes) for name in ("source", "transition", "mark", "direct"))
    return oracle(scan, inputs), gates


@pytest.mark.parametrize("nodes", [2, 4, 8, 16])
@pytest.mark.parametrize("seed", range(3))
def test_paper_merged_mark_keeps_the_first_block(nodes: int, seed: int) -> None:
    """App. 1-D, `M^l_{an}`: printed `M_(2a+1)`, right `M_(2a)`."""
    expected, gates = chain(nodes, seed)
    np.testing.assert_allclose(halved(*gates, printed=False), expected, atol=1e-14 * np.abs(expected).max())
    if nodes > 2:  # a mark is first merged twice among four
        assert np.abs(halved(*gates, printed=True) - expected).max() > 1e-2 * np.abs(expected).max()


def test_paper_gating_recursion_rests_on_the_level_below() -> None:
    """App. 1-D, `G^l`: with `G^l` on the right side too, as printed, a block would be made of two of its own size."""
    expected, gates = chain(8, 0)
    right = halved(*gates, printed=False)
    assert right.shape == expected.shape == (8, 8)
    as_printed = np.block([[right, np.zeros_like(right)], [np.zeros_like(right), right]])
    assert as_printed.shape != right.shape


@pytest.mark.parametrize("nodes", [3, 5, 6, 7, 9, 12])
def test_paper_recursion_loses_nodes_at_other_sizes(nodes: int) -> None:
    """It pairs blocks and so assumes a power of two: of 7 nodes 4 are left, silently. Compiled scans take any size (C07)."""
    expected, gates = chain(nodes, nodes)
    assert expected.shape == (nodes, nodes)
    assert halved(*gates, printed=False).shape == (1 << nodes.bit_length() - 1,) * 2


@pytest.mark.parametrize("strategy", ["parallel", "chunkwise", "linear"])
def test_paper_other_sizes_are_compiled_whole(strategy: str) -> None:
    """Seven nodes: every strategy gives what the recurrence gives."""
    text = "scan s(key = 2, value = 2) on chain(time = 7) { source = given(); transition = given(); mark = given() }"
    op = stmlang.compile(text, dtype="float64", strategy=strategy)
    arguments = op.example(1)
    np.testing.assert_allclose(op(*arguments), op.reference(*arguments), atol=1e-12)


# --- the recursion on grids


@pytest.mark.parametrize("seed", range(4))
def test_paper_what_comes_along_a_row_turns_first(seed: int) -> None:
    """App. 2-D, `T^{l,right}` off its diagonal: what enters a 2 x 2 block along the upper row and leaves along the lower one.

    On the way down the left side the first factor is printed as `T^down_(2x)(2y)`, which is for what comes from above. It has
    to be the turn from the row into the column. In stmlang `a` is the axis along which one goes down, `b` the one along a row.
    """
    scan = given_scan(grid(2, 2), key=1, value=1)
    graph = dag_of(scan.topology)
    inputs = random_inputs(scan, graph, seed)
    inputs["k"] = np.zeros_like(inputs["k"])  # nothing but what enters
    entering = {port: np.zeros_like(array) for port, array in inputs["initial"][0].items()}
    entering["b"][0] = 1.0
    inputs["initial"] = (entering,)
    down, right = 0, 1
    T = inputs["gates"]["transition"].reshape(2, 2, 2, 2)  # row, column, out, in

    def through(row: int, column: int, out: int, into: int) -> float:
        return T[row, column, out, into]

    over_the_right = through(0, 0, right, right) * through(0, 1, down, right) * through(1, 1, right, down)
    below = through(1, 0, right, down) * through(1, 1, right, right)
    corrected = through(0, 0, down, right) * below + over_the_right
    printed = through(0, 0, down, down) * below + over_the_right
    for method in (reference, solved):
        leaving = method(scan, graph, **inputs).state[0]["b"].reshape(2)[1]
        assert leaving == pytest.approx(corrected, abs=1e-15)
        assert abs(leaving - printed) > 1e-4


# --- the direct term


@pytest.mark.parametrize(("key", "value"), [(2, 3), (3, 3), (4, 2)])
def test_paper_direct_term_is_of_the_value(key: int, value: int) -> None:
    """Eq. `linear_dag_stm` and `linear_dag_stm_paths` print `D Q_k K_k V_k`: a sum over all three, with no index of the output
    left, and none at all where keys and values have different widths. It is `D (Q . K) V_v`."""
    scan = given_scan(grid(1), key=key, value=value)
    graph = dag_of(scan.topology)
    inputs = random_inputs(scan, graph, seed=key)
    inputs["initial"] = None
    q, k, v = (inputs[name].reshape(-1) for name in "qkv")
    direct = inputs["gates"]["direct"].item()
    h = reference(scan, graph, **inputs).h.reshape(value)
    np.testing.assert_allclose(h, direct * (q @ k) * v, atol=1e-14)
    if key == value:
        assert not np.allclose(h, direct * np.sum(q * k * v))
    else:
        with pytest.raises(ValueError, match="could not be broadcast"):
            np.einsum("k,k,k->", q, k, v)


# --- how many paths there are


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (1, 5), (2, 2), (3, 2), (3, 4), (4, 4)])
def test_paper_number_of_paths(rows: int, cols: int) -> None:
    """With all gates at one the gating matrix counts paths, `binomial(dx + dy, dx)`: by hand, by solving, along each path."""
    scan = given_scan(grid(rows, cols))
    graph = dag_of(scan.topology)
    inputs = random_inputs(scan, graph, seed=0)
    inputs["gates"] = {name: np.ones_like(array) for name, array in inputs["gates"].items()}
    del inputs["initial"]
    for method in ({}, {"method": gating_by_paths}):
        counts = gating_matrix(scan, graph, **inputs, **method)[..., 0]
        for row in range(rows):
            for col in range(cols):
                assert counts[0, 0, row, col] == comb(row + col, row)


def test_paper_square_grids_overflow_from_these_sides_on() -> None:
    """`binomial(2n - 2, n - 1)` paths lead from corner to corner: beyond float32 from side 67 on, float16 from side 11 on."""

    def first(largest: float) -> int:
        return next(side for side in range(1, 100) if comb(2 * side - 2, side - 1) > largest)

    assert first(float(np.finfo(np.float32).max)) == 67
    assert first(float(np.finfo(np.float16).max)) == 11


@pytest.mark.parametrize(
    ("mode", "code", "note"),
    [
        ("none", "STM4003", "binomial(rows + cols - 2, rows - 1) = 6"),
        ("P", "STM4001", "a column of transition may sum to 2"),
        ("auto", "STM4001", "a column of transition may sum to 2"),
        ("D", "STM4002", "several paths join two edges"),
    ],
)
def test_paper_growth_is_noted_or_stopped(mode: str, code: str, note: str) -> None:
    """SPEC.md, section 15: `stabilize none` runs a scan as it is written, and says so; any other mode bounds it."""
    (found,) = analyse(load(ONES.format(3, mode))).notes
    assert found.code == code
    assert any(note in line for line in found.notes)


@pytest.mark.parametrize("side", [66, 67])
def test_paper_overflow_is_what_the_recurrence_says(side: int) -> None:
    """By request unbounded: the number of paths where float32 holds it, infinity beyond. Bounded otherwise: at most one."""
    op = stmlang.compile(ONES.format(side, "none"))
    one = np.zeros((side, side, 1, 1), np.float32)
    one[0, 0] = 1
    last = float(op(np.ones_like(one), one, np.ones_like(one), {})[-1, -1, 0, 0])
    if side == 66:
        assert last == pytest.approx(comb(130, 65), rel=1e-5)
    else:
        assert last == np.inf
    bounded = stmlang.compile(ONES.format(side, "auto"))(np.ones_like(one), one, np.ones_like(one), {})
    assert 0 < float(bounded[-1, -1, 0, 0]) <= 1
    assert np.isfinite(bounded).all()
