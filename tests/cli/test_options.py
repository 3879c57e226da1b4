"""How values on the command line are read."""

from __future__ import annotations

import argparse

import pytest

from stmlang.cli.options import DTYPES, MODES, TARGETS, batch_size, byte_size, duration, setting


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("rows=14", ("rows", 14)),
        ("rows = 14", ("rows", 14)),
        ("gamma=0.9", ("gamma", 0.9)),
        ("gamma=-1e-3", ("gamma", -0.001)),
        ("a_1=+7", ("a_1", 7)),
        ("n=1e3", ("n", 1000.0)),
    ],
)
def test_settings(text, value):
    found = setting(text)
    assert found == value
    assert type(found[1]) is type(value[1])


@pytest.mark.parametrize("text", ["", "rows", "rows=", "rows=0x10", "ro ws=1", "1=1", "rows=1=2", "rows=ten"])
def test_bad_settings(text):
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        setting(text)
    assert str(caught.value)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1048576", 1 << 20), ("500MB", 500_000_000), ("2GiB", 2 << 30), ("1.5 G", 1_500_000_000), ("8k", 8000), ("7 B", 7)],
)
def test_sizes(text, size):
    assert byte_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "0", "0.0001", "2 XB", "iB", "5iB", "1e9", "GB"])
def test_bad_sizes(text):
    with pytest.raises(argparse.ArgumentTypeError):
        byte_size(text)


@pytest.mark.parametrize(("text", "seconds"), [("60", 60), ("60s", 60), ("1.5 min", 90), ("2h", 7200), ("250ms", 0.25)])
def test_durations(text, seconds):
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "-1", "0", "1e9", "5 days", "min", "s", "9" * 400])
def test_bad_durations(text):
    with pytest.raises(argparse.ArgumentTypeError):
        duration(text)


def test_batches():
    assert batch_size("symbolic") == "symbolic"
    assert batch_size("none") is None
    assert batch_size("32") == 32
    for text in ("0", "-1", "1.5", "", str(2**31)):
        with pytest.raises(argparse.ArgumentTypeError):
            batch_size(text)


def test_choices_are_the_planner_s():
    """The command line lists them itself, so that `--help` need not import the planner."""
    from typing import get_args

    from stmlang.cost.lookup import target_names
    from stmlang.cost.problem import DtypeName, Mode

    assert set(DTYPES) == set(get_args(DtypeName))
    assert set(MODES) == set(get_args(Mode))
    assert set(TARGETS) <= set(target_names())
