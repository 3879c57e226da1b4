"""Numbers as people read them."""

from __future__ import annotations

import pytest

from stmlang.cost import units


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (7, "7 B"), (999, "999 B"), (1000, "1 kB"), (1234, "1.23 kB"), (999_950, "1.00 MB"), (2.5e9, "2.50 GB")],
)
def test_sizes(number, text):
    assert units.size(number) == text


@pytest.mark.parametrize(
    ("time", "text"),
    [(0.0, "0 ns"), (2e-9, "2 ns"), (1.5e-6, "1.50 us"), (0.0123, "12.3 ms"), (0.9999, "1.00 s"), (75.0, "75 s")],
)
def test_seconds(time, text):
    assert units.seconds(time) == text
