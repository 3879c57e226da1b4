"""Settings: printed and read by one function each way, and what is said of wrong ones."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stmlang
from stmlang.cost.chains import Chunk
from stmlang.cost.settings import NoSettings, Settings, label, parse_settings, settings_dict
from stmlang.strategies.chunkwise.settings import Chunkwise
from stmlang.strategies.delta_separable.settings import LineBlocks
from stmlang.strategies.impulse.settings import Impulse
from stmlang.strategies.lowering import lowering_of
from stmlang.strategies.raster.settings import Raster
from stmlang.strategies.registry import STRATEGIES, registered, stored_settings, strategies, strategy_named
from stmlang.strategies.rows.settings import Rows
from stmlang.strategies.separable.settings import Separable

NAMES = [strategy.name for strategy in STRATEGIES]
NUMBERS = st.integers(-(2**40), 2**40)


def drawn(kind: type[Settings]) -> st.SearchStrategy[Any]:
    """Settings of any value that fits their fields."""
    hints = get_type_hints(kind)

    def of(name: str) -> st.SearchStrategy[Any]:
        types = get_args(hints[name]) if type(None) in get_args(hints[name]) else (hints[name],)
        listed = [
            st.none() if hint is type(None) else NUMBERS if hint is int else st.lists(NUMBERS).map(tuple) for hint in types
        ]
        return st.one_of(listed)

    return st.builds(kind, **{field.name: of(field.name) for field in fields(kind)})


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_what_is_printed_is_read(name: str, data: st.DataObject) -> None:
    """By name, as JSON, and as plans and artifacts hold it."""
    kind = strategy_named(name).settings
    settings = data.draw(drawn(kind))
    values = settings_dict(settings)
    assert list(values) == sorted(values)
    assert parse_settings(kind, values) == settings
    stored = json.loads(json.dumps(values))
    assert parse_settings(kind, stored) == settings == stored_settings(name, stored)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_anything_else_is_not_read(name: str, data: st.DataObject) -> None:
    """A name more or less, and values of another type."""
    kind = strategy_named(name).settings
    values = settings_dict(data.draw(drawn(kind)))
    assert parse_settings(kind, {**values, "other": 1}) is None
    for wrong in (True, 1.0, "1", None, (1.0,), [True], {"a": 1}):
        for key in values:
            assert parse_settings(kind, {**values, key: wrong}) is None
    with pytest.raises(ValueError, match=name):
        stored_settings(name, {"other": 1})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (NoSettings(), "s"),
        (Chunk(32), "s chunk=32"),
        (Chunkwise(tile=(7, 7)), "s tile=7x7"),
        (Chunkwise(block=16), "s block=16"),
        (Impulse((3,)), "s tile=3"),
        (Raster((4, 8), 2), "s segments=2 tile=4x8"),
        (Rows(1, 2, 256), "s axis=1 rows=2 targets=256"),
        (Separable(2), "s rows=2"),
    ],
)
def test_words(settings: Settings, words: str) -> None:
    """As plans, tables of `explain` and records of `tune` have them; a record of one spelling is lost in another."""
    assert label("s", settings_dict(settings)) == words


@pytest.mark.parametrize(
    ("settings", "rank", "other"),
    [
        (NoSettings(), 2, NoSettings()),
        (Chunkwise(tile=(2, 3, 4)), 3, Chunkwise(tile=(2, 4, 3))),
        (Chunkwise(block=2), 2, Chunkwise(block=2)),
        (Impulse((2, 3)), 2, Impulse((3, 2))),
        (Raster((2, 3), 4), 2, Raster((3, 2), 4)),
        (Rows(0, 2, 5), 3, Rows(0, 2, 5)),
        (Rows(1, 2, 5), 3, Rows(2, 2, 5)),
        (Rows(2, 2, 5), 3, Rows(1, 2, 5)),
        (Separable(2), 2, Separable(2)),
        (LineBlocks(2), 2, LineBlocks(2)),
    ],
)
def test_the_last_two_axes_change_places(settings: Settings, rank: int, other: Settings) -> None:
    assert settings.transposed(rank) == other
    assert other.transposed(rank) == settings


def test_a_smaller_grid_has_fewer_segments() -> None:
    assert Raster((2, 2), 7).resized((3, 9)) == Raster((2, 2), 3)
    assert Raster((2, 2), 7).resized(None) == Raster((2, 2), 7)


CHAIN = "std:chain/mlstm", {"time": 6}
GRID = "std:plstm/image_d", {"rows": 6, "cols": 4}
ERASING = "std:plstm/image_delta", {"rows": 6, "cols": 4}
TREE = "std:plstm/tree", {"depth": 3}
SAME = "std:plstm/image_constant", {"rows": 6, "cols": 4}

WRONG = [
    (CHAIN, "recurrent", {"tile": (2,)}, "it has no setting `tile`"),
    (CHAIN, "linear", {}, "its setting is `chunk`, the number of nodes in a chunk"),
    (CHAIN, "linear", {"chunk": (2,)}, "its setting is `chunk`, the number of nodes in a chunk"),
    (CHAIN, "linear", {"chunk": 0}, "the nodes in a chunk are a positive number, not 0"),
    (CHAIN, "chunkwise", {"tile": (2, 2)}, "on this topology its setting is `tile`, with 1 side"),
    (CHAIN, "chunkwise", {"tile": (-1,)}, "the sides of a tile are positive, not -1"),
    (GRID, "chunkwise", {"block": 2}, "on this topology its setting is `tile`, with 2 sides"),
    (TREE, "chunkwise", {"tile": (2,)}, "on this topology its setting is `block`, the number of nodes in a block"),
    (TREE, "chunkwise", {"block": 6}, "the nodes in a block are a power of two, not 6"),
    (SAME, "impulse", {"tile": 2}, "its setting is `tile`, with 2 sides"),
    (SAME, "impulse", {"tile": (0, 2)}, "the sides of a tile are positive, not 0x2"),
    (GRID, "raster", {}, "its settings are `tile`, with 2 sides, and `segments`"),
    (GRID, "raster", {"tile": (2, 2), "rows": 1}, "its settings are `tile`, with 2 sides, and `segments`"),
    (GRID, "raster", {"tile": (2, 2), "segments": (1,)}, "at most 6, one for each place on the first axis"),
    (GRID, "raster", {"tile": (2, 2), "segments": 7}, "at most 6, one for each place on the first axis"),
    (GRID, "rows", {"axis": 0, "rows": 2}, "its settings are the numbers `axis`, `rows` and `targets`"),
    (GRID, "rows", {"axis": 2, "rows": 2, "targets": 2}, "the axis is one of 0 to 1, not 2"),
    (GRID, "rows", {"axis": 0, "rows": 0, "targets": 2}, "`rows` and `targets` are positive, not 0 and 2"),
    (ERASING, "delta_separable", {"tile": 2}, "its setting is `rows`, the lines of targets in a block"),
    (ERASING, "delta_separable", {"rows": 0}, "a block has a positive number of lines, not 0"),
    (GRID, "separable", {"tile": 2}, "its setting is `rows`, the lines of targets in a block"),
    (GRID, "separable", {"rows": 0}, "a block has a positive number of lines, not 0"),
]


@pytest.mark.parametrize(("spec", "strategy", "config", "words"), WRONG)
def test_wrong_settings_are_refused_in_words(spec: Any, strategy: str, config: Any, words: str) -> None:
    text, sizes = spec
    with pytest.raises(stmlang.SpecError) as error:
        stmlang.compile(text, strategy=strategy, config=config, heads=1, key=2, value=2, **sizes)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "STM5003"
    assert diagnostic.message.startswith(f"strategy `{strategy}` cannot take these settings: ")
    assert words in diagnostic.message


def test_settings_of_another_strategy() -> None:
    """They are read by their names like any others."""
    text, sizes = GRID
    with pytest.raises(stmlang.SpecError, match="its setting is `rows`"):
        stmlang.compile(text, strategy="separable", config=Raster((2, 2)), **sizes)
    op: Any = stmlang.compile(text, strategy="chunkwise", config=Impulse((2, 9)), **sizes)
    assert op.plan.settings == Chunkwise(tile=(2, 4))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_offered_is_there(name: str) -> None:
    """What is loaded late holds functions, one for exactly each offer that takes one, and declares nothing again."""
    strategy = strategy_named(name)
    lowering = lowering_of(strategy)
    functions = {entry.name: getattr(lowering, entry.name) for entry in fields(lowering)}
    assert callable(functions.pop("tables"))
    assert callable(functions.pop("run"))
    assert set(functions) == {"gating"}
    for offer, function in functions.items():
        assert callable(function) == getattr(strategy.offers, offer), offer
        assert function is None or callable(function)


def test_one_strategy_in_the_place_of_another() -> None:
    """The list stays in order, and is as before afterwards, whatever happens inside."""
    changed = replace(strategy_named("parallel"), summary="changed")

    def fails() -> None:
        with registered(changed):
            assert [strategy.name for strategy in strategies()] == NAMES
            assert strategy_named("parallel").summary == "changed"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert strategies() == STRATEGIES
