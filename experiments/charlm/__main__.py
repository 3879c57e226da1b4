"""The study's command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stmlang.ending import require, start

if TYPE_CHECKING:
    from stmlang.experiments.charlm.settings import Settings


def parse(arguments: list[str] | None = None) -> Settings:
    """Settings from the command line."""
    require("typing_extensions", "tyro")
    from stmlang.experiments.charlm.settings import Settings
    from stmlang.experiments.training.command import parsed

    description = "Train language models of one size on the characters of a text, compare them, write a page."
    return parsed(Settings, "stmlang.experiments.charlm", description, arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the study; 0 when it is done."""
    from rich.console import Console

    settings, console = parse(arguments), Console()
    require("optax", "matplotlib", "orbax")
    from stmlang.experiments.training.command import command

    def study() -> None:
        from stmlang.experiments.charlm.report import PAGE
        from stmlang.experiments.charlm.study import run

        run(settings, console)
        console.print(f"the page: {settings.training.out / PAGE}.md", soft_wrap=True)

    return command(study, console)


if __name__ == "__main__":
    start(main, "stmlang.experiments.charlm")
