"""Images in a second of pLSTM-Vis-T and ViT-T in training: 224x224, the gradients of all parameters, in float32."""

from __future__ import annotations

from typing import Any

from benchmarks.gpu.settings import Options
from benchmarks.vision import MODEL, Model, Size, models
from benchmarks.vision import measure as rows_of

SHARE, TITLE = 0.15, "Models of images in training"
ENVIRONMENT: dict[str, str] = {}
HEADER = ("batch", "model", "images a second", "ratio of times", "compile s", "temporaries MB")


def cases(options: Options) -> list[str]:
    return ["2"] if options.dry else ["64"] if options.quick else ["64", "256"]


def measure(case: str, options: Options) -> dict[str, Any]:
    """Both models in turns, of a batch of so many images."""
    size = Size(32 if options.dry else 224, int(case), (1.0, 1.0))
    model = Model(dim=12, heads=1, depth=2, patch=16) if options.dry else MODEL
    rows = rows_of(models(size, model), size, "training", 1 if options.dry else 7)
    return {
        row.name: {
            "images_per_second": size.batch / row.seconds,
            "ratio": row.ratio,
            "compile_seconds": row.compile_seconds,
            "temporary_bytes": row.temporaries,
        }
        for row in rows
    }


def row(case: str, found: dict[str, Any]) -> tuple[str, ...]:
    columns = [
        (f"{entry['images_per_second']:,.0f}", f"{entry['ratio']:.2f}", f"{entry['compile_seconds']:.1f}")
        for entry in found.values()
    ]
    memory = " / ".join(f"{entry['temporary_bytes'] / 1e6:,.0f}" for entry in found.values())
    return (case, " / ".join(found), *(" / ".join(cells) for cells in zip(*columns, strict=True)), memory)
