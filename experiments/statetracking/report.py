"""The page and the numbers of the study."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from stmlang.experiments.statetracking.groups import ALL, EARLY, NEAR, SHORTEST, Form, Name, group
from stmlang.experiments.statetracking.models import SPECS, TRANSITIONS
from stmlang.experiments.statetracking.settings import ABLE, MODELS, Model, Problem, Settings, form, group_of
from stmlang.experiments.statetracking.study import Result
from stmlang.experiments.training.settings import as_json, options
from stmlang.source.writing import written_whole

PAGE = "statetracking"
GROUPS: dict[Name, str] = {
    "z2": "Z2, parity",
    "s3": "S3, the permutations of three points",
    "a5": "A5, the even permutations of five points",
}
FORMS: dict[Form, str] = {"chain": "along chains", "grid": "on grids"}
WIDTH = 128
GROWING = """The number doubles in equal times. Words are no longer than that asks for, rounded up to a power of two, and the
shorter they are the more stand in a batch: as many nodes as at the end."""
TOLD: dict[Name, str] = {
    "s3": """An earlier form of `rotation`, whose sources were sigmoids and never zero, was tested on the words of S3 along
    chains from seeds 10 to 12: 58%, 99% and 33% of all products at 512 were right. Therefore sources may be zero now, which was
    tried from seeds 1 and 2 at the length of training before anything else.""",
    "a5": """A5 has 3,600 products of two elements, and a model has to know them before longer ones teach it anything: hence
    many short words first (`--growing`). With one write a node `rotation` was right on 59% of the products of up to
    fourteen at step 1,050 of 1,600: a head then reads one number, a coordinate of a vector that it has turned, and
    five dozen rotations have to be told apart by a few such. With three (`--writes 3`) it reads a row of the
    rotation itself, and the logits of all elements are linear in those. That, 8 heads and 64 features were settled
    from other seeds.""",
}
"""What was tried before the numbers of a page, by group."""


def write(results: Sequence[Result], settings: Settings) -> list[Path]:
    """Write `statetracking.json` and `statetracking.md` to the folder of the runs, and the page to `settings.report` as well,
    each whole or not at all."""
    stored = {"settings": as_json(settings), "results": [asdict(result) for result in results]}
    text, out = page(results, settings), settings.training.out
    files = {out / f"{PAGE}.json": json.dumps(stored, indent=1) + "\n", out / f"{PAGE}.md": text}
    if settings.report is not None:
        files[settings.report] = text
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as stream:
            stream.write(content.encode())
    return list(files)


def page(results: Sequence[Result], settings: Settings) -> str:
    """The page's text: what was asked, and for each problem a table of its models and one of its runs."""
    sections = [
        "# Word problems: which transitions follow a group",
        f"    {command(settings)}",
        *map(_wrapped, _about(settings)),
    ]
    for problem in dict.fromkeys(settings.problems):
        rows = [result for result in results if result.problem == problem]
        sections += [f"## {GROUPS[group_of(problem)]}, {FORMS[form(problem)]}", *_tables(rows, problem, settings)]
    return "\n\n".join(sections) + "\n"


def command(settings: Settings) -> str:
    """The command that makes the page, with the settings that are not the defaults."""
    return " ".join(["python -m stmlang.experiments.statetracking", *options(replace(settings, report=None), Settings())])


def _about(settings: Settings) -> list[str]:
    """What is asked, of what models, and what the numbers are."""
    training, depth = settings.training, settings.depth
    return [
        f"""A word is a row of elements of a group, drawn uniformly; at each of them the model says which element the product
        of all so far is. On a grid that is the product along a path: from the first node along the first row, then down a
        column. The first node holds a token that is no element: states start at zero, and a transition leads nowhere from
        there. Trained on chains of {settings.length} elements and grids of {settings.side}x{settings.side} nodes,
        {settings.steps:,} batches of {training.batch} words that nobody has seen, tested on {settings.count} words of each
        size. Over the first {EARLY if settings.growing else NEAR:.0%} of the steps only products of up to {SHORTEST} elements
        are asked for, then of more and more, and over the last {1 - ALL:.0%} all of them, of every model alike.
        {GROWING if settings.growing else ""}""",
        f"""Models are an embedding, {"one layer" if depth == 1 else f"{depth} layers"} of a scan and a perceptron, and a
        head, {settings.dim} features wide, with {settings.heads} heads of {settings.width}x{settings.width} numbers, or three
        tracks of them{"" if settings.writes == 1 else f", to which a node of `rotation` writes {settings.writes} times"}.
        They differ in the transition, and in what its paper has around it: the convolution and the norm of
        Gated DeltaNet, the gate of GLA. The specs of `deltaproduct` and `rotation` are in
        `experiments/statetracking/models.py`.""",
        f"""The share of products that are right, of all in a word and of the last alone, which is the longest: the mean over
        seeds, in brackets the worst where there are several. Models that could follow every group ({", ".join(ABLE)}) are
        trained from {_count(settings.seeds, "seed")}, the others from
        {_count(settings.others, "seed")}. The first seed is {training.seed}. Seconds are those of training, on two cores that
        other work had a share in.""",
        *(told for name, told in TOLD.items() if name in {group_of(problem) for problem in settings.problems}),
    ]


def _tables(results: Sequence[Result], problem: Problem, settings: Settings) -> list[str]:
    sizes = [str(nodes.size) if nodes.form == "chain" else f"{nodes.size}x{nodes.size}" for nodes in settings.tested(problem)]
    guessed = f"Who guesses is right once in {group(group_of(problem)).order}."
    columns = [f"{which} of {size}" for which in ("all", "last") for size in sizes]
    of_runs = ["model", "seed", "parameters", "loss at the end", "seconds", *columns[: len(sizes)]]
    models = _table(["model", "transition of a head", *columns], _model_rows(results, form(problem)))
    return [guessed, models, "Every run:", _table(of_runs, map(_run_row, results))]


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH)


def _count(count: int, what: str) -> str:
    return f"one {what}" if count == 1 else f"{count} {what}s"


def _model_rows(results: Sequence[Result], on: Form) -> list[list[str]]:
    """A row for each model, over its seeds."""
    rows: list[list[str]] = []
    models: list[Model] = [model for model in MODELS if any(result.model == model for result in results)]
    for model in models:
        runs = [result.tests for result in results if result.model == model]
        shares = [[judged.nodes for judged in tests] + [judged.last for judged in tests] for tests in runs]
        cells = [_share(column) for column in zip(*shares, strict=True)]
        rows.append([_name(model, on), TRANSITIONS[model], *cells])
    return rows


def _share(column: Sequence[float]) -> str:
    return f"{np.mean(column):.1%}" + (f" ({min(column):.1%})" if len(column) > 1 else "")


def _name(model: Model, on: Form) -> str:
    """The spec's name where it is one of the library."""
    spec = SPECS[model, on]
    return f"`{spec}`" if spec.startswith("std:") else f"`{model}`"


def _run_row(result: Result) -> list[str]:
    shares = [f"{judged.nodes:.1%}" for judged in result.tests]
    return [result.model, str(result.seed), f"{result.parameters:,}", f"{result.loss:.2g}", f"{result.seconds:.0f}", *shares]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows))
