"""How large the models of images are, beside the paper's numbers: docs/results/vision_sizes.md.

    python -m benchmarks.vision_sizes

Nothing is allocated and nothing computed: parameters are those of a model of shapes, multiply-adds those of its program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import equinox as eqx
import jax

from stmlang.models import vision
from stmlang.models.counting import multiply_adds, padded_attention, parameters
from stmlang.source.writing import written_whole

OUT = Path("docs/results/vision_sizes.md")
IMAGE = jax.ShapeDtypeStruct((224, 224, 3), "float32")
NONE = "-"


@dataclass(frozen=True)
class Entry:
    """A model and what the paper's table 2 says of it: parameters in millions, multiply-adds in billions. `None` where it has
    no number, or one of another form of the model."""

    name: str
    make: Callable[..., Any]
    parameters: float | None = None
    multiply_adds: float | None = None
    remark: str = ""


STAGES = "the paper's has stages"
ENTRIES = (
    Entry("pLSTM-Vis-T", vision.plstm_vis_t, 6, 1.4),
    Entry("pLSTM-Vis-S", vision.plstm_vis_s, 23, 4.9),
    Entry("pLSTM-Vis-B", vision.plstm_vis_b, 89, 18.2),
    Entry("ViT-T", vision.vit_t, 6, 1.3, "DeiT-T; DeiT-III-T, 1.1 G"),
    Entry("ViT-S", vision.vit_s, 22, 4.6),
    Entry("ViT-B", vision.vit_b, 86, 17.6, "DeiT-B; DeiT-III-B, 87 M, 16.8 G"),
    Entry("EfficientNet-B0", vision.EfficientNet, 5, 0.39, "norms of groups of channels"),
    Entry("ConvNeXt-S (iso.)", vision.convnext_s, 22, 4.3),
    Entry("ConvNeXt-B (iso.)", vision.convnext_b, 87, 16.9),
    Entry("ViL-T", vision.vil_t, 6, 1.3),
    Entry("ViL-S", vision.vil_s, 23, 4.7),
    Entry("ViL-B", vision.vil_b, 89, 17.9),
    Entry("Vim-T", vision.vim_t, 7, 1.5),
    Entry("Vim-S", vision.vim_s, 26, 5.3),
    Entry("Mamba-ND, 24 x 192", partial(vision.mamba_nd, 192)),
    Entry("V2M, 24 x 192", partial(vision.v2m, 192)),
    Entry("2DMamba, 24 x 192", partial(vision.two_d_mamba, 192), remark=f"{STAGES}: T has 30 M and 4.9 G"),
    Entry("Mamba2D, 24 x 192", partial(vision.mamba2d, 192), remark=f"{STAGES}, and attention in two: T has 27 M"),
)
TEXT = """# Sizes of the models of images

Written by `python -m benchmarks.vision_sizes`. Images of 224x224 in 1,000 classes. *Multiply-adds* are those of every matrix
product and convolution in the program of a call, and of each scan half of the operations that the planner counts of the
strategy that it chose, gates and elementwise work included. *All pairs* counts a scan of a grid as the scores and values
between all pairs of its nodes, its sides filled up to powers of two, as the authors' code of pLSTM does. Paper: table 2.

The scans of ViL are counted in the form that is fastest here for 196 nodes, which compares all pairs; chunks count less.

"""
HEADER = ("", "parameters", "paper", "multiply-adds", "all pairs", "paper", "")


def row(entry: Entry) -> tuple[str, ...]:
    """A line of the table."""
    shapes = cast(Any, eqx.filter_eval_shape)(partial(entry.make, key=jax.random.key(0)))
    model = cast(Any, eqx.nn.inference_mode)(shapes)
    padded = f"{multiply_adds(model, IMAGE, of_scan=padded_attention) / 1e9:.2f} G" if "pLSTM" in entry.name else NONE
    return (
        entry.name,
        f"{parameters(model) / 1e6:.2f} M",
        NONE if entry.parameters is None else f"{entry.parameters:g} M",
        f"{multiply_adds(model, IMAGE) / 1e9:.2f} G",
        padded,
        NONE if entry.multiply_adds is None else f"{entry.multiply_adds:g} G",
        entry.remark,
    )


def main() -> None:
    rows = [HEADER, tuple("---" for _ in HEADER), *map(row, ENTRIES)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    with written_whole(OUT) as stream:
        stream.write(f"{TEXT}{table}\n".encode())
    print(f"{table}\n\nwrote {OUT}")


if __name__ == "__main__":
    main()
