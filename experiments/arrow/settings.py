"""What can be set about the study, and its two scales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, get_args

from typing_extensions import Doc

from stmlang.experiments.arrow.generation import FORMS, Form, Geometry
from stmlang.experiments.training.settings import Training

Scale = Literal["paper", "small"]
Model = Literal[
    "plstm",
    "paper_start",
    "no_position",
    "p_mode",
    "d_mode",
    "constant",
    "vit",
    "efficientnet",
    "convnext",
    "vil",
    "vim",
    "mamba_nd",
    "v2m",
    "two_d_mamba",
    "mamba2d",
]
MODELS: tuple[Model, ...] = get_args(Model)
BLOCKS: Mapping[Model, int] = {
    "convnext": 1,
    "vil": 2,
    "vim": 1,
    "mamba_nd": 4,
    "v2m": 1,
    "two_d_mamba": 1,
    "mamba2d": 1,
}
"""Networks of blocks of one width, other than pLSTM and ViT, and how many blocks each makes at once."""
BASELINES: tuple[Model, ...] = ("efficientnet", *BLOCKS)
Reads = Literal["own", "all"]

TRAINING = Training(
    epochs=50,
    batch=128,
    rate=3e-4,
    warmup=0.02,
    floor=1e-3,
    b2=0.999,
    weight_decay=0.05,
    log=500,
    validate=2000,
    checkpoint=300.0,
    out=Path("build/arrow"),
)
"""Of the paper, appendix "Arrow Pointing": 50 epochs, one of them of warm-up from zero, to a thousandth of the peak."""


@dataclass(frozen=True)
class Settings:
    """The defaults are the paper's recipe; those of `--scale small` are in `SCALES`. `rate` and `seed` of `training` are those
    of each run, which `rates` and `seeds` set."""

    training: Training = TRAINING
    geometry: Geometry = field(default_factory=Geometry)
    scale: Annotated[Scale, Doc("which defaults: images and the paper's recipe, or small grids of tokens")] = "paper"
    forms: Annotated[tuple[Form, ...], Doc("forms of the data")] = FORMS
    models: Annotated[tuple[Model, ...], Doc("what is trained; none for a page on the data alone")] = MODELS
    ablations: Annotated[tuple[Model, ...], Doc("trained with the first seed alone, at the rate that is best for plstm")] = ()
    seeds: Annotated[tuple[int, ...], Doc("runs of each model, by seed of its parameters and of its data")] = (43, 44, 45)
    rates: Annotated[tuple[float, ...], Doc("peaks of the learning rate, tried with the first seed")] = (1e-4, 3e-4, 1e-3)
    vit_steps: Annotated[int, Doc("a ViT takes so many times the steps of the others")] = 1
    images: Annotated[int, Doc("scenes to learn from")] = 100_000
    validation: Annotated[int, Doc("scenes of each size that the rate is chosen on, and curves are of")] = 5_120
    test: Annotated[int, Doc("scenes of each size that the table is of")] = 10_240
    control: Annotated[int, Doc("scenes that the control learns from, and is tested on")] = 100_000
    cell: Annotated[int, Doc("side of the square of pixels that becomes a token of nine numbers; 0 for images")] = 0
    patch: Annotated[int, Doc("side of the patches of images")] = 16
    dim: Annotated[int, Doc("features of a token")] = 192
    heads: Annotated[int, Doc("heads of each layer")] = 6
    depth: Annotated[int, Doc("layers of pLSTM and ViT, a perceptron behind each")] = 12
    expansion: Annotated[int, Doc("features within a perceptron, in multiples of dim")] = 4
    reads: Annotated[Reads, Doc("gates read a share of the features of their own, or all features")] = "own"
    gain: Annotated[float, Doc("deviation of the weights of gates at the start, times the root of what they read")] = 0.0
    remat: Annotated[bool, Doc("compute layers again for the gradient, which takes time and saves memory")] = True
    page: Annotated[Path | None, Doc("folder that the page is written to as well")] = None

    @property
    def faults(self) -> list[str]:
        """What is wrong with these settings, in words of the command line."""
        unit, size = self.cell or self.patch, self.geometry.size
        room = size - 2 * self.geometry.padding
        checks = {
            "--forms, --seeds and --rates must not be empty": bool(self.forms and self.seeds and self.rates),
            "--rates must be positive": all(rate > 0 for rate in self.rates),
            "--seeds must be from 0 to 99999": all(0 <= seed < 100_000 for seed in self.seeds),
            "--size must be a multiple of --cell, or of --patch where that is 0": unit >= 1 and size % unit == 0,
            "--size must leave four times the largest --radius beside --padding": room > 4 * self.geometry.radius[1],
            "--radius must rise and be positive": 0 < self.geometry.radius[0] <= self.geometry.radius[1],
            "--images, --validation, --test and --control must be at least 1": min(
                self.images, self.validation, self.test, self.control
            )
            >= 1,
            "--heads must divide --dim": self.heads >= 1 and self.dim % self.heads == 0,
            '--dim must be a multiple of four times --heads, or --reads "all"': self.reads == "all"
            or self.dim % (4 * max(1, self.heads)) == 0,
            "--gain must not be negative": self.gain >= 0,
            "--models and --ablations must not share a model": not set(self.models) & set(self.ablations),
            "efficientnet is for images: leave it out, or set --cell 0": self.cell == 0
            or "efficientnet" not in (*self.models, *self.ablations),
            "--depth must be even": self.depth >= 2 and self.depth % 2 == 0,
            "--expansion and --vit-steps must be at least 1": min(self.expansion, self.vit_steps) >= 1,
        }
        return [fault for fault, holds in checks.items() if not holds]

    @property
    def larger(self) -> Geometry:
        """What models are asked to extrapolate to: twice the size."""
        return replace(self.geometry, size=2 * self.geometry.size)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of tokens at the size of training."""
        side = self.geometry.size // (self.cell or self.patch)
        return side, side


SMALL_TRAINING = replace(
    TRAINING, steps=1000, batch=64, rate=1e-3, warmup=0.1, floor=0.01, weight_decay=0.01, log=50, validate=200, checkpoint=60.0
)
"""For a study by short runs. Sixteen squares of 24 pixels rather than 36 of 16: a step of pLSTM takes 0.06 seconds of a core in
place of 0.16, and it leaves chance after 100 steps, which it had hardly done after 600. A ViT takes 0.04, leaves chance after
800, and needs 8,000 to be right on as many scenes of the size learned. One of Mamba2D takes 0.35, so that it is left out."""
SCALES: dict[Scale, Settings] = {
    "paper": Settings(),
    "small": Settings(
        training=SMALL_TRAINING,
        geometry=Geometry(size=96, padding=12, radius=(7.0, 11.0), length=(8, 14), width=(1, 2)),
        scale="small",
        models=("plstm", "vit"),
        ablations=(
            *("paper_start", "no_position", "p_mode", "d_mode", "constant"),
            *("convnext", "vil", "vim", "mamba_nd", "v2m", "two_d_mamba"),
        ),
        seeds=(0, 1, 2),
        rates=(1e-3, 3e-3),
        vit_steps=8,
        images=50_000,
        validation=1_024,
        test=2_048,
        control=20_000,
        cell=24,
        dim=64,
        heads=4,
        depth=2,
        expansion=2,
        reads="all",
        gain=0.1,
        remat=False,
    ),
}
