"""The study's command line.

Exit status: 0 done, 1 the data or what lies in `--out` is wrong, 2 the command line is; `stmlang.ending` has those of a run
that was stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from stmlang.ending import require, start
from stmlang.experiments.folds.options import refuse_wrong
from stmlang.experiments.tudataset.settings import FOLDS, MODELS, SETS, Settings

LARGEST_SEED = 2**31 - 1


def parse(arguments: list[str] | None = None) -> Settings:
    """Settings from the command line."""
    default = Settings()
    parser = argparse.ArgumentParser(
        prog="python -m stmlang.experiments.tudataset",
        description="Ten-fold cross-validation of pLSTM and five graph neural networks on small graphs. A run that was stopped "
        "goes on when the same command is given again.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    folder = "folder that holds a folder for each data set; without it they are fetched from the archive"
    parser.add_argument("--data", type=Path, default=default.data, help=folder)
    parser.add_argument("--sets", nargs="+", default=list(SETS), metavar="SET", help="data sets, such as MUTAG")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="which models")
    parser.add_argument("--depths", nargs="+", type=int, default=list(default.depths), help="rounds of messages of baselines")
    parser.add_argument("--folds", type=int, default=default.folds, help="how many of the ten folds")
    parser.add_argument("--epochs", type=int, default=default.epochs, help="passes over the training graphs")
    parser.add_argument("--seed", type=int, default=default.seed, help="of the initial parameters and the order of graphs")
    parser.add_argument("--out", type=Path, default=default.out, help="folder for results, figures and what a run goes on from")
    parser.add_argument("--archive", default=default.archive, help="where the zip files of data sets lie")
    options = parser.parse_args(arguments)
    refuse_wrong(parser, options, FOLDS)
    if min(options.depths) < 1:
        parser.error("--depths must be at least 1")
    for name in options.sets:
        if not name.replace("_", "").replace("-", "").isalnum():
            parser.error(f"--sets takes names of data sets, not `{name}`")
    return Settings(
        sets=tuple(dict.fromkeys(options.sets)),
        models=tuple(dict.fromkeys(options.models)),
        depths=tuple(sorted(set(options.depths))),
        folds=options.folds,
        out=options.out,
        data=options.data,
        archive=options.archive,
        epochs=options.epochs,
        seed=options.seed,
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the study and print its table."""
    from rich.console import Console

    settings, console = parse(arguments), Console()
    require("optax", "sklearn", "matplotlib")
    from stmlang.experiments.folds.study import command
    from stmlang.experiments.tudataset.study import run

    return command(lambda: run(settings, console), settings.out / "results.md", console)


if __name__ == "__main__":
    start(main, "stmlang.experiments.tudataset")
