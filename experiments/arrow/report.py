"""The page: what the data are, how far one gets without the circle, and what models reach beside the paper's numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from textwrap import fill
from typing import Any

import numpy as np

from stmlang.draw.picture import svg
from stmlang.experiments.arrow.control import Control
from stmlang.experiments.arrow.drawing import pixels, png, sheet
from stmlang.experiments.arrow.generation import FORMS, Form, Geometry, scenes
from stmlang.experiments.arrow.models import VARIANTS, blocks
from stmlang.experiments.arrow.settings import BASELINES, BLOCKS, SCALES, Model, Scale, Settings
from stmlang.experiments.training.settings import as_json, options
from stmlang.source.writing import written_whole

PAGES: dict[Scale, str] = {"paper": "arrow", "small": "arrow_small"}
"""How the files of a page are called, by scale."""
WIDTH = 120
"""Letters in a line."""
MATCHED = 0.02
"""Two models learned equally well where their validation accuracies are as near as this."""
ACROSS = 6
"""Images in a row of the gallery."""
NAMES: dict[Model, str] = {
    "plstm": "pLSTM",
    "paper_start": "pLSTM, gates closed at the start",
    "no_position": "pLSTM, no table of positions",
    "p_mode": "pLSTM, P-mode",
    "d_mode": "pLSTM, D-mode",
    "constant": "pLSTM, constant gates",
    "vit": "ViT",
    "efficientnet": "EfficientNet-B0",
    "convnext": "ConvNeXt",
    "vil": "ViL",
    "vim": "Vim",
    "mamba_nd": "Mamba-ND",
    "v2m": "V2M",
    "two_d_mamba": "2DMamba",
    "mamba2d": "Mamba2D",
}
PAPER: dict[Model, tuple[str, str]] = {
    "paper_start": (".972 ± .003", ".778 ± .031"),
    "no_position": (".975 ± .003", ".769 ± .018"),
    "p_mode": (".978 ± .005", ".746 ± .027"),
    "d_mode": (".957 ± .002", ".828 ± .028"),
    "constant": (".975 ± .003", ".784 ± .020"),
    "vit": (".915 ± .019", ".707 ± .014"),
}
"""Test accuracies of the paper, on images of its own form: mean and 90 % confidence interval of five seeds, at the rate that is
best on the test scenes, chosen for each column by itself. Its gates are closed at the start, in ablations too."""
CURVES: tuple[Model, ...] = ("efficientnet", "vil", "two_d_mamba", "mamba2d")
"""Models of which the paper has curves and no numbers."""
INK = ("#b3541e", "#7a8b2f", "#8c3b6d", "#c9a227", "#5b6670", "#1f2933")
LINES = ("-", "--", "-.")
PANELS: tuple[tuple[Model, ...], ...] = (
    ("plstm", "paper_start", "no_position", "p_mode", "d_mode", "constant", "vit"),
    ("plstm", *BASELINES),
)
"""Models whose curves stand on the same axes."""


@dataclass(frozen=True)
class Result:
    """What came of a run with the weights after its last step: accuracies in training, on validation and on test scenes, of the
    size of training and of twice the size (`larger`), those of validation also on the way; `chosen` is whether the rate is the
    model's best."""

    form: Form
    model: Model
    rate: float
    seed: int
    parameters: int
    steps: int
    seconds: float
    training: float
    validation: float
    larger_validation: float
    test: float
    larger_test: float
    curve: tuple[Mapping[str, float], ...]
    chosen: bool = True


@dataclass(frozen=True)
class Outcome:
    """What is reported: the control by form, and the results so far."""

    settings: Settings
    controls: Mapping[Form, Control]
    results: Sequence[Result]

    def of(self, form: Form, model: Model) -> list[Result]:
        """The results of a model at its rate, a seed each."""
        return [result for result in self.results if (result.form, result.model, result.chosen) == (form, model, True)]


def write(outcome: Outcome) -> None:
    """Write the page, its pictures and its numbers to the folder of the study, and all but the last to that of pages."""
    settings, name = outcome.settings, PAGES[outcome.settings.scale]
    files = {f"{name}.md": page(outcome).encode(), f"{name}.png": gallery()}
    if outcome.results:
        files[f"{name}.svg"] = curves(outcome).encode()
    numbers = {f"{name}.json": (json.dumps(as_numbers(outcome), indent=1) + "\n").encode()}
    for folder, content in ((settings.training.out, {**files, **numbers}), (settings.page, files)):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            for file, what in content.items():
                with written_whole(folder / file) as stream:
                    stream.write(what)


def as_numbers(outcome: Outcome) -> dict[str, Any]:
    """All that the page was made of."""
    return {
        "settings": as_json(outcome.settings),
        "controls": {form: asdict(control) for form, control in outcome.controls.items()},
        "results": [asdict(result) for result in outcome.results],
    }


def gallery() -> bytes:
    """A PNG of images of the paper's size: the debiased form and the paper's, of each a row of pointing arrows and one of
    others."""
    rows: list[Any] = []
    for form in FORMS:
        drawn = scenes(form, Geometry(), 0, 20 * ACROSS)
        for label in (True, False):
            rows.append(pixels(drawn.take(np.flatnonzero(drawn.pointing == label)[:ACROSS]), Geometry().size))
    return png(sheet(rows))


def page(outcome: Outcome) -> str:
    """The page in Markdown."""
    name = PAGES[outcome.settings.scale]
    sections = [
        "# Pointing arrows",
        f"    {_command(outcome.settings)}",
        _about(outcome.settings),
        f"![scenes]({name}.png)",
        GALLERY,
        _control(outcome),
    ]
    if outcome.results:
        sections += [_recipe(outcome)]
        sections += [section for form in outcome.settings.forms for section in _of_form(form, outcome)]
        sections += [f"![accuracy by step]({name}.svg)"]
    return "\n\n".join(sections) + "\n"


def _command(settings: Settings) -> str:
    """What was typed, where it is not as usual."""
    scale = settings.scale
    usual = SCALES[scale]
    chosen = [] if scale == "paper" else ["--scale", scale]
    changed = options(replace(settings, page=usual.page), usual)
    return " ".join(["python -m stmlang.experiments.arrow", *chosen, *changed])


GALLERY = (
    "Rows: the debiased form, pointing and not; the paper's form, pointing and not. In the last two the circle lies nearly\n"
    "opposite the arrow, so that an arrow that points out of the image's middle rarely points at the circle."
)


def _about(settings: Settings) -> str:
    small, large = settings.geometry.size, settings.larger.size
    shown = f"as grids of squares of {settings.cell} pixels" if settings.cell else f"as images in patches of {settings.patch}"
    return (
        "Does the arrow point at the circle? Models learn it at one size and are asked again at twice the size, with objects\n"
        f"as large as before: the paper's task of extrapolation. Here scenes of {small}x{small} pixels are learned from and\n"
        f"{large}x{large} is the larger size, {shown}. Scenes are drawn from a seed, scene by scene.\n\n"
        "In the form `paper` the geometry is that of the paper's data: the circle lies at an offset that wraps around. In\n"
        "the form `debiased` centres are uniform, and a scene whose arrow does not point has the arrow of one pointing scene\n"
        "and the circle of another. Neither tells anything by itself."
    )


def _control(outcome: Outcome) -> str:
    settings = outcome.settings
    small, large = settings.geometry.size, settings.larger.size
    lines = [
        f"| form | {small}x{small} | {large}x{large}, learned at {small} | {large}x{large}, learned there "
        "| without the arrow |",
        "|---|---|---|---|---|",
    ]
    for form, control in outcome.controls.items():
        cells = (control.same, control.larger, control.larger_learned, control.no_arrow)
        lines.append(f"| `{form}` | {' | '.join(_share(cell) for cell in cells)} |")
    text = (
        "## Without the circle\n\n"
        "Gradient-boosted trees that are told where the arrow is and where it points, and nothing of the circle, learn\n"
        f"from {settings.control:,} scenes and are tested on as many. Those of the last column are told of the circle and\n"
        f"nothing of the arrow, at {small}x{small}. What a model reaches says something about pointing only beyond these.\n\n"
    )
    return text + "\n".join(lines)


def _recipe(outcome: Outcome) -> str:
    settings, training = outcome.settings, outcome.settings.training
    length = f"{training.steps:,} steps" if training.steps else f"{training.epochs} epochs"
    vit = f", a ViT {settings.vit_steps} times as many" if settings.vit_steps > 1 else ""
    first, *others = settings.seeds
    chosen = f"is {settings.rates[0]:g}, and no other was tried;"
    if len(settings.rates) > 1:
        rates = ", ".join(f"{rate:g}" for rate in settings.rates)
        chosen = f"is that of {rates} which is best with seed {first} on the validation scenes of the size of training;"
    alone = ""
    if others and settings.ablations:
        alone = f" Rows without a deviation are of seed {first} alone, at the rate of pLSTM"
        alone += "." if set(settings.ablations) <= set(VARIANTS) else ": one of its own may suit another model better."
    seeds = f"Seeds: {', '.join(map(str, settings.seeds))}; mean and deviation over them." if others else f"One seed, {first}."
    read = "all features" if settings.reads == "all" else "a share of the features of their own"
    text = (
        f"{length} with batches of {training.batch} out of {settings.images:,} scenes{vit}; pLSTM and ViT have "
        f"{settings.depth} layers of {settings.dim} features and {settings.heads} heads.{_blocks(settings)} The rate of a "
        f"model {chosen} test scenes, {settings.test:,} of each size, took no part, and there are {settings.validation:,} "
        f"validation scenes of each. Weights are those after the last step. {seeds}{alone} Gates of pLSTM read {read}, and "
        "start half open (biases of sources and marks 0, of direct terms -2), but for the row that says otherwise (-4 and -6, "
        "the paper's). The paper's numbers are of images of 192x192 and 384x384 and twelve layers of 192 features. All runs "
        f"here together trained for {sum(result.seconds for result in outcome.results) / 60:.0f} minutes."
    )
    return "## Models\n\n" + fill(text, WIDTH, break_on_hyphens=False)


def _blocks(settings: Settings) -> str:
    """How deep baselines are."""
    deep: list[Model] = [model for model in (*settings.models, *settings.ablations) if model in BLOCKS]
    if not deep:
        return ""
    counts = ", ".join(f"{NAMES[model]} {blocks(model, settings)}" for model in deep)
    several = [f"{NAMES[model]} makes {BLOCKS[model]} at once" for model in deep if BLOCKS[model] > 1]
    made = f" ({', '.join(several)})" if several else ""
    return (
        " The others have blocks of as many features, as many blocks as bring their parameters nearest to those of pLSTM, "
        f"since most have no perceptrons: {counts}{made}."
    )


def _of_form(form: Form, outcome: Outcome) -> list[str]:
    """The table of a form, and what follows from it."""
    small, large = outcome.settings.geometry.size, outcome.settings.larger.size
    lines = [
        f"| | parameters | rate | steps | training | validation {small} | validation {large} | test {small} | test {large} |"
        " the paper's |",
        f"|---|{'---|' * 9}",
    ]
    control = outcome.controls[form]
    cells = ("", "", "", "", "", "", _share(control.same), _share(control.larger), "")
    lines.append(f"| without the circle | {' | '.join(cells)} |")
    for model in (*outcome.settings.models, *outcome.settings.ablations):
        results = outcome.of(form, model)
        if results:
            lines.append(_row(model, results, paper=form == "paper"))
    return [f"### Form `{form}`", "\n".join(lines), *_tried(form, outcome), *_compared(form, outcome)]


def _tried(form: Form, outcome: Outcome) -> list[str]:
    """What models reached at each rate that was tried."""
    first, said = outcome.settings.seeds[0], list[str]()
    for model in outcome.settings.models:
        results = [each for each in outcome.results if (each.form, each.model, each.seed) == (form, model, first)]
        if len(results) > 1:
            said.append(f"{NAMES[model]} {', '.join(f'{each.validation:.3f} at {each.rate:g}' for each in results)}")
    return [f"Validation accuracy by rate, seed {first}: {'; '.join(said)}."] if said else []


def _compared(form: Form, outcome: Outcome) -> list[str]:
    """Which models are no better than without the circle; and whether pLSTM extrapolates better than another: a question only
    where both learned the size of training as well."""
    said, plstm = [_blind(form, outcome)], outcome.of(form, "plstm")
    others: dict[Model, list[Result]] = {
        model: outcome.of(form, model)
        for model in outcome.settings.models
        if model not in VARIANTS and plstm and outcome.of(form, model)
    }
    own = _mean(plstm)
    equal: list[tuple[Model, list[Result]]] = [
        (model, results) for model, results in others.items() if abs(_mean(results) - own) <= MATCHED
    ]
    if equal:
        reached = ", ".join(f"{NAMES[model]} {_mean(results):.3f}" for model, results in equal)
        found = "; ".join(_further(model, plstm, results) for model, results in equal)
        said.append(
            f"As well as pLSTM ({own:.3f} on validation scenes, within {MATCHED}) these learn the size of training: {reached}. "
            f"So the columns of the larger size compare how they extrapolate: {found}."
        )
    apart: list[tuple[Model, list[Result]]] = [each for each in others.items() if each not in equal]
    if apart:
        reached = ", ".join(
            f"{NAMES[model]} {_mean(results):.3f} ({'behind' if _mean(results) < own else 'ahead'})" for model, results in apart
        )
        said.append(
            f"More than {MATCHED} off pLSTM ({own:.3f}) at the best rate that was tried: {reached}. The columns of the "
            "larger size do not compare how these and pLSTM extrapolate, and no claim about it is made from them."
        )
    if form == "paper" and any(outcome.of(form, model) for model in CURVES):
        said.append(SHOWN)
    return [fill(text, WIDTH, break_on_hyphens=False) for text in said if text]


SHOWN = (
    "Of EfficientNet, ViL, 2DMamba and Mamba2D the paper shows curves and no numbers: by its text EfficientNet is best of all "
    "at the size of training and fails at the larger one, and ViL and Mamba2D do not extrapolate beyond chance."
)


def _blind(form: Form, outcome: Outcome) -> str:
    """Models that the control is as good as: not above it by three deviations of a share of so many scenes."""
    settings, control = outcome.settings, outcome.controls[form]
    beyond, said = 3 * (0.25 / settings.test) ** 0.5, list[str]()
    for size, name, without in (
        (settings.geometry.size, "test", control.same),
        (settings.larger.size, "larger_test", control.larger),
    ):
        means: dict[Model, Any] = {
            model: np.mean([getattr(result, name) for result in outcome.of(form, model)])
            for model in (*settings.models, *settings.ablations)
            if outcome.of(form, model)
        }
        behind = [NAMES[model] for model, mean in means.items() if mean <= without + beyond]
        said.append(f"at {size} {', '.join(behind) or 'none'}")
    return f"No better than without the circle, or by less than {beyond:.3f}, are {' and '.join(said)}."


def _further(model: Model, plstm: Sequence[Result], results: Sequence[Result]) -> str:
    far, near = ([result.larger_test for result in each] for each in (plstm, results))
    if min(far) > max(near):
        return f"every seed of pLSTM is ahead of all of {NAMES[model]}"
    if min(near) > max(far):
        return f"every seed of {NAMES[model]} is ahead of all of pLSTM"
    return f"seeds of pLSTM and {NAMES[model]} overlap, and no difference is shown"


def _mean(results: Sequence[Result]) -> float:
    """The accuracy on validation scenes of the size of training, over seeds."""
    return float(np.mean([result.validation for result in results])) if results else 0.0


def _row(model: Model, results: Sequence[Result], *, paper: bool) -> str:
    first = results[0]
    names = ("training", "validation", "larger_validation", "test", "larger_test")
    columns = [_spread([getattr(result, name) for result in results]) for name in names]
    numbers = " and ".join(PAPER[model]) if paper and model in PAPER else ""
    cells = [NAMES[model], f"{first.parameters:,}", f"{first.rate:g}", f"{first.steps:,}", *columns, numbers]
    return f"| {' | '.join(cells)} |"


def curves(outcome: Outcome) -> str:
    """Validation accuracy by step, mean over seeds and from the least to the largest: a row of two axes for each form and each
    panel that has results."""
    settings = outcome.settings
    asked = {*settings.models, *settings.ablations}
    panels = [panel for panel in PANELS if panel is PANELS[0] or asked.intersection(panel[1:])]
    rows: list[tuple[Form, tuple[Model, ...]]] = [(form, panel) for form in settings.forms for panel in panels]

    def draw(figure: Any) -> None:
        axes = figure.subplots(len(rows), 2, squeeze=False, sharey="row")
        for pair, (form, panel) in zip(axes, rows, strict=True):
            control = outcome.controls[form]
            for axis, name, size, without in (
                (pair[0], "accuracy", settings.geometry.size, control.same),
                (pair[1], "larger", settings.larger.size, control.larger),
            ):
                _draw_curves(axis, outcome, form, panel, lambda point, name=name: point[name])
                axis.axhline(without, color="#66737f", linestyle=":", linewidth=1, label="without the circle")
                axis.set(xlabel="step", ylabel="accuracy", title=f"{form}, {size}x{size}")
            pair[1].legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))

    return svg(draw, 9.2, 2.8 * len(rows))


def _draw_curves(
    axis: Any, outcome: Outcome, form: Form, panel: Sequence[Model], value: Callable[[Mapping[str, float]], float]
) -> None:
    """pLSTM stands out on every panel; of the others no two have the same colour and line."""
    for number, model in enumerate(panel):
        results = outcome.of(form, model)
        if results:
            colour, line = ("#0b6e99", "-") if number == 0 else (INK[number % len(INK)], LINES[number % len(LINES)])
            steps = [point["step"] for point in results[0].curve]
            values = np.asarray([[value(point) for point in result.curve] for result in results])
            axis.plot(steps, values.mean(axis=0), line, color=colour, label=NAMES[model], linewidth=1 if number else 1.6)
            axis.fill_between(steps, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.1, linewidth=0)


def _share(value: float) -> str:
    return f"{value:.3f}"


def _spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}" if len(values) > 1 else f"{values[0]:.3f}"
