"""The study's command line."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stmlang.ending import require, start

if TYPE_CHECKING:
    from rich.console import Console

    from stmlang.experiments.digits.settings import Settings


def parse(arguments: list[str] | None = None) -> Settings:
    """Settings from the command line."""
    require("typing_extensions", "tyro")
    from stmlang.experiments.digits.settings import Settings
    from stmlang.experiments.training.command import parsed

    description = "Compile two specs, train a small classifier on handwritten digits, write a report."
    return parsed(Settings, "stmlang.experiments.digits", description, arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the study; 0 if the accuracy was reached, else 1."""
    from rich.console import Console

    settings, begin, console = parse(arguments), time.perf_counter(), Console()
    require("optax", "sklearn", "matplotlib", "orbax")
    from stmlang.experiments.training.command import command

    return command(lambda: study(settings, console, begin), console)


def study(settings: Settings, console: Console, begin: float) -> int:
    """Run the study and say how it went."""
    from stmlang.experiments.digits.study import run

    outcome = run(settings, console)
    seconds = time.perf_counter() - begin
    console.print(
        f"test accuracy {outcome.accuracy:.2%} ({outcome.right} of {outcome.images}) after {seconds:.0f} s; "
        f"report: {settings.training.out / 'report.html'}"
    )
    if outcome.accuracy >= settings.target:
        return 0
    console.print(f"below the target of {settings.target:.0%}")
    return 1


if __name__ == "__main__":
    start(main, "stmlang.experiments.digits")
