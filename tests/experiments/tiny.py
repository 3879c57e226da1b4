"""A data set of thirty small graphs: rings in one class, stars in the other."""

from __future__ import annotations

from pathlib import Path

NAME = "TINY"


def write(folder: Path, *, labels: bool = True) -> Path:
    """Write the files of the set into `folder/TINY`; returns `folder`. Without labels only what a data set must have."""
    place = folder / NAME
    place.mkdir(parents=True)
    edges: list[tuple[int, int]] = []
    indicator: list[int] = []
    for number in range(30):
        start, count = len(indicator), 3 + number % 4
        ring = [(start + node, start + (node + 1) % count) for node in range(count)]
        star = [(start, start + node) for node in range(1, count)]
        edges += ring if number % 2 else star
        indicator += [number + 1] * count
    both = [(a, b) for pair in edges for a, b in (pair, pair[::-1])]
    files = {
        "A": [f"{a + 1}, {b + 1}" for a, b in both],
        "graph_indicator": indicator,
        "graph_labels": [2 * (number % 2) - 1 for number in range(30)],
        "node_labels": [(7, 3, 9)[node % 3] for node in range(len(indicator))] if labels else [],
        "node_attributes": [f"{node}.5, -1" for node in range(len(indicator))] if labels else [],
        "edge_labels": [number // 2 % 2 for number in range(len(both))] if labels else [],
    }
    for what, lines in files.items():
        if lines:
            (place / f"{NAME}_{what}.txt").write_text("".join(f"{line}\n" for line in lines))
    return folder
