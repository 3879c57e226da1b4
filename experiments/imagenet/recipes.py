"""The recipes. Each number is of the paper (the tables of its appendices "ImageNet-1k" and "Ablation Settings"), or, where that
is said, of the authors' code, which is what was run; what neither has is marked as ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from stmlang.experiments.imagenet.settings import Augmentation, Recipe, Settings, Size
from stmlang.experiments.training.settings import Training

OUT = Path("build/imagenet")


@dataclass(frozen=True)
class Sized:
    """What depends on the size of a model: features and heads, epochs and the peak of the rate of pre-training, stochastic
    depth."""

    dim: int
    heads: int
    epochs: int
    rate: float
    drop_path: float


SIZES: Mapping[Size, Sized] = MappingProxyType(
    {"T": Sized(192, 3, 800, 4e-3, 0.0), "S": Sized(384, 6, 400, 4e-3, 0.05), "B": Sized(768, 12, 400, 3e-3, 0.1)}
)
WARMUP = 5
"""Epochs."""

BASE = Training(
    batch=2048,
    optimizer="adamw",
    schedule="cosine",
    floor=1e-3,  # the authors' code for arrow pointing; the paper has none for images
    b1=0.9,
    b2=0.999,
    clip=1.0,
    log=100,
    checkpoint=600.0,
    out=OUT,
)


def recipe(name: Recipe, size: Size = "T") -> Settings:
    """The defaults of a recipe for models of a size."""
    match name:
        case "deit3-pretrain":
            return pretraining(size)
        case "deit3-finetune":
            return finetuning(size)
        case "ablation":
            return ablation(size)
        case "small":
            return SMALL


def pretraining(size: Size) -> Settings:
    """Table "DeiT-III style training parameters". Weight decay is .02 in the authors' code as in DeiT-III, .2 in the table."""
    of = SIZES[size]
    return Settings(
        training=replace(BASE, epochs=of.epochs, optimizer="lamb", rate=of.rate, warmup=WARMUP / of.epochs, weight_decay=0.02),
        augmentation=Augmentation(policy="three", jitter=0.3, mixup=0.8, cutmix=1.0, repeats=3),
        recipe="deit3-pretrain",
        size=size,
        data=Path("imagenet"),
        sets=("imagenet",),
        models=("plstm",),
        seeds=(0,),
        loss="bce",  # on every class that a mixed target holds: the authors' code, as DeiT-III
        dim=of.dim,
        depth=12,
        heads=of.heads,
        vil_dim=of.dim,
        vil_depth=24,
        side=192,
        patches=12,
        start="paper",
        gain=0.4**0.5,  # "a non-zero small normal init leads to significantly better results"
        drop_path=of.drop_path,
        vit_scale=1e-4,  # the authors' code
        dtype="bfloat16",  # the authors' code
        remat=True,
        validation=0,
        test_share=1.0,
        weights=None,
        weights_side=None,
        workers=16,
        unpacked=OUT / "unpacked",
        page=None,
    )


def finetuning(size: Size) -> Settings:
    """The same table, behind its arrows; the rate falls to 1e-6 and weight decay is .1 in the authors' code."""
    before = pretraining(size)
    training = replace(
        before.training, epochs=20, batch=512, optimizer="adamw", rate=1e-5, floor=0.1, warmup=WARMUP / 20, weight_decay=0.1
    )
    augmentation = Augmentation(policy="rand", mixup=0.8, cutmix=1.0, smoothing=0.1)
    return replace(
        before,
        training=training,
        augmentation=augmentation,
        recipe="deit3-finetune",
        loss="ce",
        side=224,
        patches=14,
        weights_side=192,
    )


def ablation(size: Size) -> Settings:
    """Table "DeiT style ablation training parameters", of T. Its crop of a test is 1.0, that of the authors' code .875. Weights
    of gates start at zero."""
    before = pretraining(size)
    training = replace(before.training, epochs=400, optimizer="adamw", rate=1e-3, warmup=WARMUP / 400, weight_decay=0.05)
    return replace(
        before,
        training=training,
        augmentation=Augmentation(policy="rand", mixup=0.8, cutmix=1.0, erasing=0.25, repeats=3),
        recipe="ablation",
        models=("plstm", "no_position", "p_mode", "d_mode", "constant", "vit"),
        loss="ce",
        side=224,
        patches=14,
        gain=0.0,
        drop_path=0.0,
        test_share=0.875,
    )


SMALL = replace(
    pretraining("T"),
    training=replace(
        BASE, steps=1000, batch=32, rate=2e-3, warmup=0.1, floor=0.01, weight_decay=0.05, log=25, validate=100, checkpoint=60.0
    ),
    augmentation=Augmentation(crop="padded"),
    recipe="small",
    data=Path("images"),
    sets=("cifar10", "tiny-imagenet-10"),
    models=("plstm", "vit", "vil"),
    seeds=(0, 1, 2),
    loss="ce",
    dim=64,
    depth=2,
    heads=4,
    vil_dim=84,
    vil_depth=2,
    side=None,
    patches=8,
    start="open",
    vit_scale=None,
    dtype="float32",
    remat=False,
    validation=500,
    workers=0,
)
"""What two cores can train; every number of it is ours. ViL is as wide as it takes to have the others' parameters."""
