"""The study's command line."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from stmlang.ending import require, start
from stmlang.experiments.digits.settings import Settings, meanings


def parse(arguments: list[str] | None = None) -> Settings:
    """Settings from the command line."""
    default, says = Settings(), meanings()
    parser = argparse.ArgumentParser(
        prog="python -m stmlang.experiments.digits",
        description="Compile two specs, train a small classifier on handwritten digits, write a report.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--epochs", type=int, default=default.epochs, help=says["epochs"])
    parser.add_argument("--seed", type=int, default=default.seed, help=says["seed"])
    parser.add_argument("--out", type=Path, default=default.out, help=says["out"])
    parser.add_argument("--target", type=float, default=default.target, help=says["target"])
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")
    return Settings(epochs=options.epochs, seed=options.seed, out=options.out, target=options.target)


def main(arguments: list[str] | None = None) -> int:
    """Run the study; 0 if the accuracy was reached, else 1."""
    from rich.console import Console

    settings, begin, console = parse(arguments), time.perf_counter(), Console()
    require("optax", "sklearn", "matplotlib")
    from stmlang.experiments.digits.study import run

    outcome = run(settings, console)
    seconds = time.perf_counter() - begin
    console.print(
        f"test accuracy {outcome.accuracy:.2%} ({outcome.right} of {outcome.images}) after {seconds:.0f} s; "
        f"report: {settings.out / 'report.html'}"
    )
    if outcome.accuracy >= settings.target:
        return 0
    console.print(f"below the target of {settings.target:.0%}")
    return 1


if __name__ == "__main__":
    start(main, "stmlang.experiments.digits")
