"""The page, its figure and the numbers of the study."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from stmlang.experiments.charlm.data import Corpus
from stmlang.experiments.charlm.models import SPECS
from stmlang.experiments.charlm.settings import MODELS, Model, Settings
from stmlang.experiments.charlm.speed import PIECE, REPEATS, Speed
from stmlang.experiments.training.figures import svg
from stmlang.experiments.training.settings import as_json, options
from stmlang.source.writing import written_whole

PAGE = "charlm"
WIDTH = 128
NAMES: dict[Model, str] = {
    "transformer": "softmax transformer",
    "gla": "GLA",
    "mlstm": "mLSTM",
    "mamba2": "Mamba-2",
    "deltanet": "DeltaNet",
    "plstm": "pLSTM",
}
COLOURS: dict[Model, str] = dict(zip(MODELS, ("#1f2933", "#0b6e99", "#b3541e", "#7a8b2f", "#8c3b6d", "#c9a227"), strict=True))


@dataclass(frozen=True)
class Trial:
    """A training at one rate: the bits of a character on validation by step, the last those of the parameters that are kept."""

    rate: float
    steps: int
    seconds: float
    curve: tuple[tuple[int, float], ...]

    @property
    def validation(self) -> float:
        return self.curve[-1][1]


@dataclass(frozen=True)
class Result:
    """What a model came to: `test` bits of a character at the rate that is `chosen` of all `trials`, and how fast it writes.
    `state` is how many numbers it keeps between steps, 0 where that depends on the text."""

    model: Model
    parameters: int
    state: int
    test: float
    chosen: Trial
    trials: tuple[Trial, ...]
    speeds: tuple[Speed, ...]


def best(results: Sequence[Result]) -> Result:
    """The one that is best on validation, the first of several."""
    return min(results, key=lambda result: result.chosen.validation)


def write(results: Sequence[Result], sample: str, settings: Settings, corpus: Corpus) -> None:
    """Write the page, its figure and its numbers to the folder of the runs, and all but the last to that of pages."""
    numbers = {"settings": as_json(settings), "results": [asdict(result) for result in results], "sample": sample}
    files = {f"{PAGE}.md": page(results, sample, settings, corpus), f"{PAGE}.svg": curves(results)}
    stored = {**files, f"{PAGE}.json": json.dumps(numbers, indent=1) + "\n"}
    for folder, contents in ((settings.training.out, stored), (settings.page, files)):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in contents.items():
                with written_whole(folder / name) as stream:
                    stream.write(content.encode())


def page(results: Sequence[Result], sample: str, settings: Settings, corpus: Corpus) -> str:
    """The page in Markdown: what was trained on what, and what it came to; the sample is that of the best model."""
    sections = [
        "# Language models over characters",
        f"    {command(settings)}",
        *map(_wrapped, _about(results, settings, corpus)),
        _table(["model", "scan", "parameters", "rate", "validation", "test", "seconds"], map(_row, results)),
        f"![bits of a character on validation, by step]({PAGE}.svg)",
        *_by_rate(results, settings),
        "## Writing",
        *map(_wrapped, _about_speeds(settings)),
        _table(["model", "state", *(f"behind {context:,}" for context in settings.contexts)], map(_speeds, results)),
        "## A sample",
        _wrapped(
            f"""{NAMES[best(results).model]}, the best on validation, behind the first characters of the test part, at a
            temperature of 0.8:"""
        ),
        textwrap.indent(sample, "    ", lambda _: True).replace("    \n", "\n").rstrip(),
    ]
    return "\n\n".join(sections) + "\n"


def command(settings: Settings) -> str:
    """The command that makes the page, with the settings that are not the defaults."""
    usual = Settings()
    said = replace(settings, text=Path(settings.text.name), page=None, machine=usual.machine)
    return " ".join(["python -m stmlang.experiments.charlm", *options(said, usual)])


def curves(results: Sequence[Result]) -> str:
    """Validation by step, of every model at its rate."""

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for result in results:
            steps, values = zip(*result.chosen.curve, strict=True)
            axis.plot(steps, values, color=COLOURS[result.model], label=NAMES[result.model], linewidth=1.4)
        axis.set(xlabel="step", ylabel="bits of a character, validation")
        axis.legend(frameon=False)

    return svg(draw, 6.4, 3.8)


def _about(results: Sequence[Result], settings: Settings, corpus: Corpus) -> list[str]:
    """What the models are, what they learn from, and what the numbers are."""
    training, parts = settings.training, (corpus.train, corpus.validation, corpus.test)
    steps = max(result.chosen.steps for result in results)
    rates = list(dict.fromkeys(f"{rate:g}" for rate in settings.rates))
    chosen = f"""Rates of {" and ".join(rates)} were tried, and each model has the one that is best on {settings.windows}
    windows of the validation part after the last step; the test part was read once, by that model."""
    if len(rates) == 1:
        chosen = f"""The rate is {rates[0]} for all, which may suit one better than another. Validation is on {settings.windows}
        windows of its part, the test on all of its own."""
    sizes = [result.parameters for result in results]
    missing = [NAMES[model] for model in settings.models if model not in {result.model for result in results}]
    return [
        f"""How well scans of the library predict the next character of a text, beside softmax attention of the same size and on
        the same budget. The text is cut by position: {len(parts[0]):,} characters to learn from, then {len(parts[1]):,} for
        validation, then {len(parts[2]):,} for the test; {len(corpus.alphabet)} different ones.""",
        f"""All models are an embedding, which is the head as well, and {settings.depth} residual layers of a mixer and a
        perceptron, {settings.dim} features wide, with {settings.heads} heads. Mixers are the blocks of `stmlang.models.blocks`
        as wide as their papers have them, a `ScanLayer` for pLSTM, and attention with rotary positions for the transformer.
        Perceptrons of the transformer are four times as wide as a character; those of the others are what makes the models
        equal in size: {min(sizes):,} to {max(sizes):,} parameters.""",
        f"""Each is trained with {steps:,} steps of {training.batch} examples of {settings.context} characters,
        {training.optimizer}, the same examples in the same order, from one seed, {training.seed}. {chosen}
        A budget this small says which model learns fast, not which is the best in the end.""",
        f"""Bits of a character are over windows of {settings.context}, each from nothing on, so that a character is predicted
        from {settings.context / 2:.0f} before it on average, by attention as well as by a scan. Seconds are those of training
        at the chosen rate, compilation among them, on {settings.machine}.""",
        *([f"Not on the page yet: {', '.join(missing)}."] if missing else []),
    ]


def _about_speeds(settings: Settings) -> list[str]:
    return [
        f"""Characters a second with the streaming step, one sequence at a time, the likeliest character each time: a
        context is read first, {PIECE} characters at once, then {settings.timed} more are written in one compiled loop. The time
        is that of the loop, the best of {REPEATS}, on {settings.machine}. A scan keeps the same numbers behind any context
        (`state`, those of all layers); the transformer keeps keys and values, {2 * settings.depth * settings.dim} numbers a
        character, in a cache with room for the context and what is written, which a step reads where it lies, as far as there
        are characters, and writes its own behind: the compiled loop has no copy of it."""
    ]


def _row(result: Result) -> list[str]:
    chosen = result.chosen
    spec = f"`{SPECS[result.model]}`" if result.model in SPECS else "softmax attention"
    numbers = [f"{result.parameters:,}", f"{chosen.rate:g}", f"{chosen.validation:.3f}", f"{result.test:.3f}"]
    return [NAMES[result.model], spec, *numbers, f"{chosen.seconds:,.0f}"]


def _by_rate(results: Sequence[Result], settings: Settings) -> list[str]:
    """What each rate came to, where there are several."""
    rates = list(dict.fromkeys(f"{rate:g}" for rate in settings.rates))
    said = "Bits of a character on validation after the last step, by rate:"
    return [said, _table(["model", *rates], map(_rates, results))] if len(rates) > 1 else []


def _rates(result: Result) -> list[str]:
    return [NAMES[result.model], *(f"{trial.validation:.3f}" for trial in result.trials)]


def _speeds(result: Result) -> list[str]:
    state = f"{result.state:,}" if result.state else "grows"
    return [NAMES[result.model], state, *(f"{speed.rate:,.0f}" for speed in result.speeds)]


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows))
