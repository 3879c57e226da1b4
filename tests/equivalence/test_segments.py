"""Pieces that stand in one chain or grid give what each gives by itself: in value and gradient, by every strategy."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.oracle.derivative import Arguments, derivative
from stmlang.oracle.recurrence import reference
from tests.helpers.cases import GIVEN, KEY_TURN, NONE, RANK_ONE

SMALL = {"heads": 2, "key": 3, "value": 2}
BOTH = """
scan both(heads = 2, key = 3, value = 2) on chain(time) {
    directions both
    source     = exp(3 * linear(x))
    transition = tanh(linear(x))
    mark       = 1 / linear(x)
    direct     = linear(x)
    normalize mlstm
}
"""
CONSTANT = "scan constant(heads = 2, key = 2, value = 2) on chain(time) { source = param(1); transition = tanh(param(2)) }\n"
slow = pytest.mark.slow
CHAINS = [
    ("std:chain/gla", "linear"),
    ("std:chain/mlstm", "linear"),
    ("std:chain/deltanet", "delta"),
    ("std:chain/deltanet", "delta_dense"),
    ("std:chain/mamba", "walk"),
    ("std:plstm/chain", "dense_nodes"),
    ("std:plstm/chain", "walk"),
    (BOTH, "parallel"),
    (CONSTANT, "impulse"),
    *(
        pytest.param(spec, strategy, marks=slow)
        for spec, strategies in {
            "std:chain/gla": ("recurrent",),
            "std:chain/mlstm": ("chunkwise", "dense", "dense_nodes", "parallel", "recurrent"),
            "std:chain/deltanet": ("recurrent",),
            "std:plstm/chain": ("chunkwise", "dense", "linear", "parallel", "recurrent"),
            BOTH: ("chunkwise", "dense", "linear", "recurrent"),
        }.items()
        for strategy in strategies
    ),
]
NUMBERS = np.asarray([5, 5, 5, 0, 2, 2, 2, 2, 2, 0, 0])
"""Three pieces and one of a single node; the numbers 1, 3 and 4 are pieces without nodes, and 0 comes twice."""
GRIDS = {
    "given": GIVEN + "    directions all\n" + NONE,
    "rank one": RANK_ONE + "    directions all\n",
    "key turn": KEY_TURN.format("cols", "rows") + "    directions all\n" + NONE,
}
TILES = "scan tiles(heads = 2, key = 2, value = 3) on grid(rows, cols) {{\n{}}}\n"
IMAGES = [
    *(
        pytest.param(TILES.format(GRIDS[name]), strategy, id=f"{name}-{strategy}", marks=[slow] if late else [])
        for name, strategy, late in (
            ("given", "recurrent", False),
            ("given", "parallel", False),
            ("given", "walk", False),
            ("given", "raster", True),
            ("rank one", "recurrent", False),
            ("rank one", "parallel", False),
            ("rank one", "raster", True),
            ("rank one", "rows", True),
            ("key turn", "corners", False),
            ("key turn", "walk", False),
        )
    ),
    ("std:plstm/image_delta", "delta_separable"),
    ("std:plstm/image_delta", "delta_dense"),
]


@cache
def compiled(spec: str, strategy: str | None, **sizes: int) -> stmlang.CompiledScan:
    known = {} if "{" in spec else SMALL
    return stmlang.compile(spec, dtype="float64", strategy=strategy, tuned=False, **known, **sizes)


def random_like(tree: Any) -> Any:
    generator = np.random.default_rng(3)
    return jax.tree.map(lambda array: jnp.asarray(generator.standard_normal(array.shape)), tree)


def piece(op: stmlang.CompiledScan, arguments: Any, place: Any) -> Any:
    """What the arguments hold at a place."""
    q, k, v, gates = arguments
    kinds = {leaf.name: leaf.kind for leaf in op.scan.leaves}
    own = {name: array if kinds[name] == "param" else array[place] for name, array in gates.items()}
    return q[place], k[place], v[place], own


def close(found: Any, expected: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9), found, expected)


def differentiated(function: Any, arguments: Any) -> Any:
    """A function's result, and its gradient for a cotangent at random, by one program."""

    @jax.jit
    def both(*arguments: Any) -> Any:
        result, pull = jax.vjp(function, *arguments)
        return result, pull(random_like(result))

    return both(*arguments)


def by_themselves(spec: str, whole: stmlang.CompiledScan, arguments: Any, pieces: list[tuple[Any, dict[str, int]]]) -> Any:
    """What the recurrence gives for each piece alone, put together; a change of each argument at random, and along it the
    derivative of the product with the cotangent that `differentiated` draws. A piece is a place and its sizes."""
    leaves, structure = jax.tree.flatten(arguments)
    generator = np.random.default_rng(4)
    changes = [generator.standard_normal(leaf.shape) for leaf in leaves]

    def together(along: Any = None) -> np.ndarray:
        h = np.zeros(whole.signature.result)
        for place, sizes in pieces:
            op = compiled(spec, "recurrent", **sizes)
            at = Arguments(*piece(op, arguments, place))
            if along is None:
                h[place] = reference(op.scan, op.dag, at.q, at.k, at.v, at.gates).h
            else:
                h[place] = derivative(op.scan, op.dag, at, Arguments(*piece(op, along, place))).h
        return h

    result, slopes = together(), list[float]()
    for number, change in enumerate(changes):
        along = [change if place == number else np.zeros(leaf.shape) for place, leaf in enumerate(leaves)]
        slopes.append(float(np.sum(together(jax.tree.unflatten(structure, along)) * np.asarray(random_like(result)))))
    return result, changes, slopes


def agree(found: Any, expected: Any) -> None:
    (h, gradient), (result, changes, slopes) = found, expected
    close(h, result)
    for array, change, slope in zip(jax.tree.leaves(gradient), changes, slopes, strict=True):
        moved = np.asarray(array) * change
        assert abs(float(np.sum(moved)) - slope) < 1e-9 * max(abs(slope), float(np.linalg.norm(moved)), 1e-3)


@cache
def sequences(spec: str) -> Any:
    """The arguments of all pieces of a chain in a row, and what each gives by itself."""
    whole = compiled(spec, "recurrent", time=len(NUMBERS))
    starts = [0, *(np.flatnonzero(np.diff(NUMBERS)) + 1).tolist(), len(NUMBERS)]
    pieces = [(slice(start, stop), {"time": stop - start}) for start, stop in pairwise(starts)]
    arguments = whole.example(1)
    return arguments, by_themselves(spec, whole, arguments, pieces)


@pytest.mark.parametrize(("spec", "strategy"), CHAINS)
def test_packed_sequences(spec: str, strategy: str) -> None:
    op, (arguments, expected) = compiled(spec, strategy, time=len(NUMBERS)), sequences(spec)
    agree(differentiated(lambda *arguments: op(*arguments, segments=jnp.asarray(NUMBERS)), arguments), expected)


@cache
def images(spec: str) -> Any:
    """The arguments of two images above one, 2 x 3 and 2 x 2 nodes and 1 x 5, and what each gives by itself."""
    whole = compiled(spec, "recurrent", rows=3, cols=5)
    places = [(slice(0, 2), slice(0, 3)), (slice(0, 2), slice(3, 5)), (slice(2, 3), slice(0, 5))]
    pieces = [((rows, cols), {"rows": rows.stop - rows.start, "cols": cols.stop - cols.start}) for rows, cols in places]
    arguments = whole.example(2)
    return arguments, by_themselves(spec, whole, arguments, pieces)


@pytest.mark.parametrize(("spec", "strategy"), IMAGES)
def test_images_side_by_side(spec: str, strategy: str) -> None:
    """Segments that are known, also where they are used inside a function that is traced."""
    op, (arguments, expected) = compiled(spec, strategy, rows=3, cols=5), images(spec)
    numbers = jnp.asarray([[0, 0, 0, 1, 1], [0, 0, 0, 1, 1], [2, 2, 2, 2, 2]])
    agree(differentiated(lambda *arguments: op(*arguments, segments=numbers), arguments), expected)


def test_states_enter_the_first_piece_and_leave_the_last() -> None:
    op, first, last = (compiled("std:chain/mlstm", None, time=size) for size in (7, 3, 4))
    arguments = op.example(3)
    initial = random_like(op.zero_state())
    h, final = op(*arguments, initial=initial, return_state=True, segments=jnp.asarray([0, 0, 0, 1, 1, 1, 1]))
    close(h[:3], first(*piece(op, arguments, slice(3)), initial=initial))
    close((h[3:], final), last(*piece(op, arguments, slice(3, 7)), return_state=True))


@pytest.mark.parametrize("traced", [False, True])
def test_masks_and_negative_numbers_leave_nodes_out(traced: bool) -> None:
    """Of the nodes that are left, pieces are what has equal numbers: holes do not divide a piece, nor does its first node."""
    op = compiled("std:plstm/chain", None, time=9)
    arguments = op.example(4)
    numbers = jnp.asarray([0, 0, 4, 0, 1, 1, 1, -1, -1])
    mask = jnp.asarray([1, 1, 0, 1, 0, 1, 1, 0, 0], bool)
    call = lambda numbers, mask: op(*arguments, segments=numbers, mask=mask)  # noqa: E731
    h = (jax.jit(call) if traced else call)(numbers, mask)
    for places in ([0, 1, 3], [5, 6]):
        alone = compiled("std:plstm/chain", None, time=len(places))
        close(h[jnp.asarray(places)], alone(*piece(op, arguments, jnp.asarray(places))))
    assert not np.any(h[jnp.asarray([2, 4, 7, 8])])
    without = op(*arguments, segments=jnp.where(mask, numbers, -1))
    close(without, h)


def test_a_piece_whose_scale_is_far_lower_is_not_spoiled() -> None:
    """Behind a piece written with exp(500), one that is written with exp(-5): no product of zero and infinity."""
    op = stmlang.compile(BOTH, dtype="float32", time=4, tuned=False)
    q, k, v, gates = op.example(5)
    gates = {
        **gates,
        "source": jnp.asarray([150.0, 150.0, -2.0, -2.0], jnp.float32)[:, None, None] + jnp.zeros_like(gates["source"]),
    }

    def total(arguments: Any, **options: Any) -> Any:
        return jnp.sum(op(*arguments, **options) ** 2)

    value, slope = jax.value_and_grad(total)((q, k, v, gates), segments=jnp.asarray([0, 0, 1, 1]))
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))


def test_layers_and_lengths_take_segments() -> None:
    open_scan = stmlang.compile("std:chain/gla", dtype="float64", time=stmlang.Lengths(up_to=32), **SMALL)
    layer = stmlang.nn.ScanLayer(open_scan, 4, key=jax.random.key(0))
    x, numbers = jax.random.normal(jax.random.key(1), (7, 4), jnp.float64), jnp.asarray([3, 3, 3, 3, 0, 0, -1])
    y = layer(x, segments=numbers)
    close(y[:4], layer(x[:4]))
    close(y[4:6], layer(x[4:6]))
    assert not np.any(y[6])


def test_rows_of_the_first_axis() -> None:
    spec = f"scan tiles(heads = 2, key = 2, value = 3) on grid(rows, cols) {{\n{GRIDS['given']}}}\n"
    op = compiled(spec, None, rows=3, cols=2)
    arguments = op.example(6)
    numbers = jnp.asarray([0, 1, 1])
    close(op(*arguments, segments=numbers), op(*arguments, segments=jnp.broadcast_to(numbers[:, None], (3, 2))))


CHAIN = compiled("std:chain/gla", None, time=4)
TREE = stmlang.compile("std:plstm/tree", depth=2, tuned=False, **SMALL)
REFUSED = {
    "lengths": (CHAIN, {"segments": np.asarray([2.0, 2.0])}, "must be an array of whole numbers"),
    "too many": (CHAIN, {"segments": np.zeros(5, np.int32)}, "must have the shape (4,), not (5,)"),
    "a list": (CHAIN, {"segments": [0, 0, 1, 1]}, "not list"),
    "a tree": (TREE, {"segments": np.zeros(7, np.int32)}, "segments are for chains and grids"),
    "a mask that contradicts": (
        CHAIN,
        {"segments": np.asarray([0, 0, -1, 1]), "mask": np.asarray([True, True, True, True])},
        "`mask` counts nodes that `segments` leave out",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    op, options, words = REFUSED[name]
    with pytest.raises(stmlang.SpecError) as error:
        op(*op.example(), **options)
    assert error.value.diagnostics[0].code == "STM5212"
    assert words in str(error.value)
