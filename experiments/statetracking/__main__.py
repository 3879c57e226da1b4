"""The study's command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stmlang.ending import require, start

if TYPE_CHECKING:
    from rich.console import Console

    from stmlang.experiments.statetracking.settings import Settings


def parse(arguments: list[str] | None = None) -> Settings:
    """Settings from the command line."""
    require("typing_extensions", "tyro")
    from stmlang.experiments.statetracking.settings import Settings
    from stmlang.experiments.training.command import parsed

    description = "Train models on the word problem of a group, test them on longer words, write a table."
    return parsed(Settings, "stmlang.experiments.statetracking", description, arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the study and print its page."""
    from rich.console import Console

    settings, console = parse(arguments), Console()
    require("optax", "orbax")
    from stmlang.experiments.training.command import command

    return command(lambda: study(settings, console), console)


def study(settings: Settings, console: Console) -> None:
    """Run the study and say where its page is."""
    from stmlang.experiments.statetracking.report import page, write
    from stmlang.experiments.statetracking.study import run

    results = run(settings, console)
    files = write(results, settings)
    console.print(page(results, settings), markup=False, highlight=False, soft_wrap=True)
    console.print(f"wrote {', '.join(map(str, files))}", soft_wrap=True)


if __name__ == "__main__":
    start(main, "stmlang.experiments.statetracking")
