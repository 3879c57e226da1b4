"""Sizes that many graphs share."""

from __future__ import annotations

from stmlang.graph.buckets import Room, half_octave_above, power_above


def test_powers() -> None:
    assert [power_above(count, 2) for count in (0, 1, 2, 3, 4, 5, 1024, 1025)] == [1, 1, 2, 4, 4, 8, 1024, 2048]
    assert [power_above(count, 4) for count in (0, 1, 2, 4, 5, 16, 17)] == [1, 1, 4, 4, 16, 16, 64]
    assert power_above(10**30, 2) == 2**100


def test_half_octaves() -> None:
    sizes = [half_octave_above(count) for count in range(1, 100)]
    assert sorted(set(sizes)) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]
    assert all(count <= size <= 1.5 * count for count, size in enumerate(sizes, 1))


def test_room() -> None:
    assert Room.of(100, 120, 77, 9, [40, 50]) == Room(100, 120, 128, 16, 64, 2)
    assert Room.of(16, 16, 0, 1, []) == Room(16, 16, 16, 1, 16, 1)
    assert Room.of(1000, 1000, 0, 1, [300]) == Room(1000, 1000, 1024, 1, 512, 0)
