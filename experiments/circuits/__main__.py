"""The study's command line.

Exit status: 0 done, 1 the data or what lies in `--out` is wrong, 2 the command line is; `stmlang.ending` has those of a run
that was stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from stmlang.ending import require, start
from stmlang.experiments.circuits.settings import FOLDS, MODELS, Settings
from stmlang.experiments.folds.options import refuse_wrong


def parse(arguments: list[str] | None = None) -> Settings:
    """Settings from the command line."""
    default = Settings()
    parser = argparse.ArgumentParser(
        prog="python -m stmlang.experiments.circuits",
        description="How often each gate of a circuit is on: pLSTM and graph neural networks of its size on circuits that they "
        "have not seen. A run that was stopped goes on when the same command is given again.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with circuits, BENCH or AIGER, at any depth")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="which models")
    parser.add_argument("--folds", type=int, default=default.folds, help="how many of the five folds")
    parser.add_argument("--epochs", type=int, default=default.epochs, help="passes over the training circuits")
    parser.add_argument("--seed", type=int, default=default.seed, help="of the initial parameters and the order of circuits")
    parser.add_argument("--out", type=Path, default=default.out, help="folder for results and what a run goes on from")
    parser.add_argument("--page", type=Path, default=default.page, help="folder that gets the page and its figure as well")
    options = parser.parse_args(arguments)
    refuse_wrong(parser, options, FOLDS)
    return Settings(
        models=tuple(dict.fromkeys(options.models)),
        folds=options.folds,
        out=options.out,
        page=options.page,
        data=options.data,
        epochs=options.epochs,
        seed=options.seed,
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the study and print its page."""
    from rich.console import Console

    settings, console = parse(arguments), Console()
    require("optax", "matplotlib")
    from stmlang.experiments.circuits.report import PAGE
    from stmlang.experiments.circuits.study import run
    from stmlang.experiments.folds.study import command

    return command(lambda: run(settings, console), settings.out / f"{PAGE}.md", console)


if __name__ == "__main__":
    start(main, "stmlang.experiments.circuits")
