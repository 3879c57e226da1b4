"""What can be set about the study. Its recipes are in `recipes.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from typing_extensions import Doc

from stmlang.experiments.training.settings import Training

Recipe = Literal["deit3-pretrain", "deit3-finetune", "ablation", "small"]
Size = Literal["T", "S", "B"]
Set = Literal["imagenet", "cifar10", "tiny-imagenet-10"]
Model = Literal["plstm", "no_position", "p_mode", "d_mode", "constant", "vit", "vil"]
Loss = Literal["ce", "bce"]
Crop = Literal["resized", "padded"]
Policy = Literal["none", "three", "rand"]
MODELS: tuple[Model, ...] = get_args(Model)
RECIPES: tuple[Recipe, ...] = get_args(Recipe)
FREE = frozenset({"data", "workers", "unpacked", "page"})
"""Settings of the study that no number depends on, beside those of the loop."""


@dataclass(frozen=True)
class Split:
    """Where a split lies, in the folder of the data: a path, and the folder within where it is an archive of several splits."""

    path: str
    within: str = ""


@dataclass(frozen=True)
class Location:
    """Where images of training and of the test lie."""

    training: Split
    test: Split


SETS: dict[Set, Location] = {
    "imagenet": Location(Split("train"), Split("val")),
    "cifar10": Location(Split("cifar10/cifar10_jpeg_train50k.tar.xz"), Split("cifar10/cifar10_jpeg_test10k.tar.xz")),
    "tiny-imagenet-10": Location(
        Split("tiny-imagenet-10/tiny-imagenet-10.tar.xz", "train"), Split("tiny-imagenet-10/tiny-imagenet-10.tar.xz", "val")
    ),
}


@dataclass(frozen=True)
class Augmentation:
    """How images of training are changed."""

    crop: Annotated[Crop, Doc("crops of any size, resized; or shifted by up to an eighth")] = "resized"
    policy: Annotated[Policy, Doc("none, the three of DeiT-III, or RandAugment")] = "none"
    magnitude: Annotated[float, Doc("mean magnitude of RandAugment, from 0 to 10")] = 9.0
    deviation: Annotated[float, Doc("deviation of that magnitude")] = 0.5
    operations: Annotated[int, Doc("operations of RandAugment, each done every other time")] = 2
    jitter: Annotated[float, Doc("largest change of brightness, contrast and saturation, as a share")] = 0.0
    erasing: Annotated[float, Doc("probability that a box is erased")] = 0.0
    mixup: Annotated[float, Doc("parameter of MixUp's beta distribution, 0 for none")] = 0.0
    cutmix: Annotated[float, Doc("parameter of CutMix's beta distribution, 0 for none")] = 0.0
    smoothing: Annotated[float, Doc("share of a target that all classes have alike")] = 0.0
    repeats: Annotated[int, Doc("how often an epoch has each image that it has")] = 1

    @property
    def faults(self) -> list[str]:
        """What is wrong with these settings, in words of the command line."""
        checks = {
            "--magnitude must be from 0 to 10": 0 <= self.magnitude <= 10,
            "--deviation, --mixup and --cutmix must not be negative": min(self.deviation, self.mixup, self.cutmix) >= 0,
            "--operations must not be negative": self.operations >= 0,
            "--jitter must be from 0 to 1": 0 <= self.jitter <= 1,
            "--erasing must be from 0 to 1": 0 <= self.erasing <= 1,
            "--smoothing must be from 0 to below 1": 0 <= self.smoothing < 1,
            "--repeats must be at least 1": self.repeats >= 1,
        }
        return [fault for fault, holds in checks.items() if not holds]


@dataclass(frozen=True)
class Settings:
    """`seed` of `training` is that of each run, which `seeds` sets; runs lie in folders of `training.out`."""

    training: Training
    augmentation: Augmentation
    recipe: Annotated[Recipe, Doc("which defaults")]
    size: Annotated[Size, Doc("which sizes of models, rates and epochs, of recipes for ImageNet")]
    data: Annotated[Path, Doc("folder of the data")]
    sets: Annotated[tuple[Set, ...], Doc("what is learned")]
    models: Annotated[tuple[Model, ...], Doc("what is trained")]
    seeds: Annotated[tuple[int, ...], Doc("runs of each model, by seed of its parameters and of its images")]
    loss: Annotated[Loss, Doc("cross entropy, or binary cross entropy of the classes that a target holds")]
    dim: Annotated[int, Doc("features of a node")]
    depth: Annotated[int, Doc("layers")]
    heads: Annotated[int, Doc("heads of a layer")]
    vil_dim: Annotated[int, Doc("features of a node of ViL, whose blocks have no perceptron")]
    vil_depth: Annotated[int, Doc("blocks of ViL")]
    side: Annotated[int | None, Doc("side of the images of training; that of the images themselves where it is not said")]
    patches: Annotated[int, Doc("patches along a side")]
    start: Annotated[
        Literal["paper", "open"], Doc("biases of pLSTM's gates at the start: closed as in the paper, or half open")
    ]
    gain: Annotated[float, Doc("deviation of the weights of pLSTM's gates at the start, times the root of what they read")]
    drop_path: Annotated[float, Doc("probability that a branch is dropped")]
    vit_scale: Annotated[float | None, Doc("where the LayerScale of a ViT starts")]
    dtype: Annotated[Literal["float32", "bfloat16"], Doc("what models compute in; parameters are float32")]
    remat: Annotated[bool, Doc("compute layers again for the gradient, which takes time and saves memory")]
    validation: Annotated[int, Doc("images of training that are held out and validated on")]
    test_share: Annotated[float, Doc("side of the crop of a test by that of the image")]
    weights: Annotated[Path | None, Doc("file of parameters to begin with, such as a run's model.safetensors")]
    weights_side: Annotated[int | None, Doc("side of the images that those were trained on")]
    workers: Annotated[int, Doc("processes that make batches, 0 for none")]
    unpacked: Annotated[Path, Doc("folder that compressed archives are unpacked to")]
    page: Annotated[Path | None, Doc("folder that pages are written to as well")]

    @property
    def faults(self) -> list[str]:
        """What is wrong with these settings, in words of the command line."""
        checks = {
            "--sets, --models and --seeds must not be empty": bool(self.sets and self.models and self.seeds),
            "--seeds must be from 0 to 2147483647": all(0 <= seed < 2**31 for seed in self.seeds),
            "--heads must divide --dim": self.heads >= 1 and self.dim >= 1 and self.dim % self.heads == 0,
            "--depth and --vil-depth must be even": min(self.depth, self.vil_depth) >= 2
            and self.depth % 2 == 0
            and self.vil_depth % 2 == 0,
            "--patches must be at least 1": self.patches >= 1,
            "--drop-path must be from 0 to below 1": 0 <= self.drop_path < 1,
            "--validation and --workers must not be negative": min(self.validation, self.workers) >= 0,
            "--test-share must be above 0 and at most 1": 0 < self.test_share <= 1,
            "--weights is missing: fine-tuning begins with a model that was trained": self.recipe != "deit3-finetune"
            or self.weights is not None,
            "--weights and --weights-side go together": (self.weights is None) == (self.weights_side is None),
        }
        return [fault for fault, holds in checks.items() if not holds]
