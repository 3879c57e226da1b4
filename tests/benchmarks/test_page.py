"""The page of what the benchmarks measured says what their files do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import decays, page, ratios, vision

MACHINE = {"python": "3.11", "jax": "0.10", "jaxlib": "0.10", "processor": "x86_64", "cores": 2}


def put(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    (folder / f"{name}.json").write_text(json.dumps({"machine": MACHINE, "rows": rows}))


def test_what_stands_on_it(tmp_path: Path) -> None:
    met = decays.Row("mamba 16", "forward", "walk every=16", "lax.scan", 1e-3, 2e-3, 0.5, 1.0)
    missed = ratios.Row("delta P-14x14", "training", "delta_dense", "rows", 3e-3, 1e-3, 3.0, 2.5, 9e-3)
    size = vision.SIZES[0]
    put(tmp_path, "decays", vars(met))
    put(tmp_path, "ratios", vars(missed))
    put(tmp_path, "vision", vars(vision.Row(size.name, "training", "pLSTM-Vis", 0.3, size.targets[1] + 1, 9.0, 5 * 10**6)))
    put(tmp_path, "streaming", {"spec": "std:chain/gla", "step_seconds": 3e-3, "product_seconds": 2e-3, "ratio": 1.5})
    text = page.page(tmp_path)
    assert "| mamba 16 | forward | `walk every=16` | 1.00 | `lax.scan` | 2.00 | 0.50 | 1 |" in text
    assert "| delta P-14x14 | forward+backward | `delta_dense` | 3.00 | `rows` | 1.00 | **3.00, missed** | 2.5 |" in text
    assert f"**{size.targets[1] + 1:.2f}, missed** | {size.targets[1]:g} | 9.0 | 5.0 |" in text
    assert "| `std:chain/gla` | 3.00 | 2.00 | **1.50, missed** | 1.2 |" in text
    assert "softmax attention" not in text
    assert "2 cores of x86_64, jax 0.10, python 3.11" in text


def test_rows_about_flatness_are_microseconds_of_a_node(tmp_path: Path) -> None:
    row = {"passes": "forward", "choice": "rows", "ours": 2e-6, "softmax": 1e-6, "ratio": 2.0, "target": 2.0}
    put(tmp_path, "strategies", {"name": "P-flat", **row}, {"name": "P-14x14", **row, "ours": 2e-3, "softmax": 1e-3})
    text = page.page(tmp_path)
    assert "| P-flat | forward | `rows` | 2.00 us | 1.00 us | 2.00 | 2 |" in text
    assert "| P-14x14 | forward | `rows` | 2.00 | 1.00 | 2.00 | 2 |" in text


def test_every_table_has_as_many_cells_as_its_header(tmp_path: Path) -> None:
    put(tmp_path, "decays", vars(decays.Row("a", "forward", "walk", "lax.scan", 1e-3, 2e-3, 0.5, 1.0)))
    rows = [line for line in page.page(tmp_path).splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1


def test_nothing_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert page.main(["--folder", str(tmp_path)]) == 1
    assert "make bench" in capsys.readouterr().err
