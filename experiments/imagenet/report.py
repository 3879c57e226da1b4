"""A page for each set: what the models reached, over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any

import numpy as np

from stmlang.cost import units
from stmlang.experiments.imagenet.recipes import recipe
from stmlang.experiments.imagenet.settings import FREE, MODELS, Model, Set, Settings
from stmlang.experiments.training.figures import svg
from stmlang.experiments.training.settings import options
from stmlang.source.writing import written_whole

PAGES: dict[Set, str] = {"imagenet": "imagenet", "cifar10": "cifar10", "tiny-imagenet-10": "tiny_imagenet"}
"""How the files of a page are called."""
TITLES: dict[Set, str] = {"imagenet": "ImageNet", "cifar10": "CIFAR-10", "tiny-imagenet-10": "Ten classes of Tiny-ImageNet"}
NAMES: dict[Model, str] = {
    "plstm": "pLSTM",
    "no_position": "pLSTM, no table of positions",
    "p_mode": "pLSTM, P-mode",
    "d_mode": "pLSTM, D-mode",
    "constant": "pLSTM, constant gates",
    "vit": "ViT",
    "vil": "ViL",
}
COLOURS = ("#0b6e99", "#5b6670", "#7a8b2f", "#8c3b6d", "#c9a227", "#b3541e", "#1f2933")
WIDTH = 120
"""Letters in a line."""
ENOUGH = 20
"""Epochs below which a page says that they are few."""
FEW = "So few steps show how fast models begin to learn, not how good they become."
REMARKS: dict[Set, str] = {
    "imagenet": "The test images are those that ImageNet calls validation.",
    "cifar10": "The images are JPEGs, which differ from the pixels of the data set by 6 of 255 in the mean.",
    "tiny-imagenet-10": "The test images are the 50 of each class that Tiny-ImageNet calls validation.",
}


@dataclass(frozen=True)
class Result:
    """What came of a run with the weights after its last step: the accuracy on the test images, and by step the loss of
    training and the accuracy on the images that were held out. `images` are those that were learned from."""

    on: Set
    model: Model
    seed: int
    images: int
    side: int
    parameters: int
    multiply_adds: int
    steps: int
    seconds: float
    test_images: int
    test: float
    training: tuple[Mapping[str, float], ...]
    validation: tuple[Mapping[str, float], ...]


def write(results: Sequence[Result], settings: Settings) -> None:
    """Write the page and the curves of each set that has results to the folder of the study, and to that of pages."""
    for on in settings.sets:
        own = [result for result in results if result.on == on]
        if own:
            files = {f"{PAGES[on]}.md": page(on, own, settings), f"{PAGES[on]}.svg": curves(own)}
            for folder in filter(None, (settings.training.out, settings.page)):
                folder.mkdir(parents=True, exist_ok=True)
                for name, text in files.items():
                    with written_whole(folder / name) as stream:
                        stream.write(text.encode())


def page(on: Set, results: Sequence[Result], settings: Settings) -> str:
    """The page of a set in Markdown."""
    sections = [
        f"# {TITLES[on]}",
        f"    {command(settings)}",
        fill(_about(on, results, settings), WIDTH, break_on_hyphens=False),
        _models(results),
        "Every run:",
        _runs(results),
        f"![loss of training and accuracy of validation by step]({PAGES[on]}.svg)",
    ]
    return "\n\n".join(sections) + "\n"


def command(settings: Settings) -> str:
    """The command that makes the page, with the settings that are not the recipe's."""
    usual = recipe(settings.recipe, settings.size)
    changed = options(replace(settings, **{name: getattr(usual, name) for name in FREE}), usual)
    chosen = ["--recipe", settings.recipe, *(["--size", settings.size] if settings.recipe != "small" else [])]
    return " ".join(["python -m stmlang.experiments.imagenet", *chosen, *changed])


def _about(on: Set, results: Sequence[Result], settings: Settings) -> str:
    training, first = settings.training, results[0]
    seen = first.steps * training.batch
    held = f"{settings.validation:,} more are held out for validation, which the curves are of, " if settings.validation else ""
    rate = f"The peak of the learning rate, {training.rate:g}, was fixed before any run and is the same for all models"
    done = {seed: sum(result.seed == seed for result in results) for seed in settings.seeds}
    short = [f"{count} of seed {seed}" for seed, count in done.items() if count < len(settings.models)]
    missing = f" Not all runs are done: of {len(settings.models)} models {', '.join(short)}." if short else ""
    few = f" {FEW}" if seen < ENOUGH * first.images else ""
    patches = f"{settings.patches}x{settings.patches}"
    return (
        f"Images of {first.side}x{first.side} in {patches} patches. {REMARKS[on]} All models take {first.steps:,} steps with "
        f"batches of {training.batch}: {seen:,} images, {seen / first.images:.2g} times the {first.images:,} there are; "
        f"{held}and {first.test_images:,} are the test, which took no part in any choice. {rate}; the weights are those after "
        f"the last step. The mean over seeds, and the deviation between them; seconds are those of training, on two cores that "
        f"other work had a share in. Multiply-adds are those of one image, forward.{few}{missing}"
    )


def _models(results: Sequence[Result]) -> str:
    lines = ["| | parameters | multiply-adds | seeds | seconds | validation | test |", f"|---|{'---|' * 6}"]
    for model in MODELS:
        own = [result for result in results if result.model == model]
        if own:
            validated = [result.validation[-1]["accuracy"] for result in own if result.validation]
            seconds = f"{np.mean([result.seconds for result in own]):.0f}"
            cells = [NAMES[model], f"{own[0].parameters:,}", units.si(own[0].multiply_adds), str(len(own)), seconds]
            lines.append(f"| {' | '.join([*cells, _spread(validated), _spread([result.test for result in own])])} |")
    return "\n".join(lines)


def _runs(results: Sequence[Result]) -> str:
    lines = ["| | seed | loss of training at the end | validation | test |", f"|---|{'---|' * 4}"]
    for result in sorted(results, key=lambda result: (MODELS.index(result.model), result.seed)):
        validation = _spread([result.validation[-1]["accuracy"]] if result.validation else [])
        cells = [NAMES[result.model], str(result.seed), f"{result.training[-1]['loss']:.3f}", validation, f"{result.test:.1%}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _spread(values: Sequence[float]) -> str:
    """The mean and the deviation between runs (divided by one less than there are)."""
    if not values:
        return ""
    return f"{np.mean(values):.1%}" + (f" ± {100 * np.std(values, ddof=1):.1f}" if len(values) > 1 else "")


def curves(results: Sequence[Result]) -> str:
    """The loss of training and the accuracy of validation by step: the mean over seeds, and from the least to the largest."""

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for model, colour in zip(MODELS, COLOURS, strict=True):
            own = [result for result in results if result.model == model]
            if own:
                _draw(left, [result.training for result in own], "loss", NAMES[model], colour)
                _draw(right, [result.validation for result in own], "accuracy", NAMES[model], colour)
        left.set(xlabel="step", ylabel="loss of training")
        right.set(xlabel="step", ylabel="accuracy of validation")
        left.legend(frameon=False)

    return svg(draw, 7.2, 2.8)


def _draw(axis: Any, lines: Sequence[Sequence[Mapping[str, float]]], name: str, label: str, colour: str) -> None:
    steps = [point["step"] for point in lines[0]]
    values = np.asarray([[point[name] for point in line] for line in lines])
    axis.plot(steps, values.mean(axis=0), color=colour, label=label, linewidth=1)
    axis.fill_between(steps, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, linewidth=0)
