"""The study's command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stmlang.ending import require, start

if TYPE_CHECKING:
    from stmlang.experiments.circuits.settings import Settings


def parse(arguments: list[str] | None = None) -> Settings:
    """Settings from the command line."""
    require("typing_extensions", "tyro")
    from stmlang.experiments.circuits.settings import Settings
    from stmlang.experiments.training.command import parsed

    description = "How often each gate of a circuit is on: pLSTM and graph neural networks on circuits they have not seen."
    return parsed(Settings, "stmlang.experiments.circuits", description, arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the study and print its page."""
    from rich.console import Console

    settings, console = parse(arguments), Console()
    require("optax", "matplotlib", "orbax")
    from stmlang.experiments.folds.memory import keep_freed_memory
    from stmlang.experiments.training.command import command

    keep_freed_memory()

    def study() -> None:
        from stmlang.experiments.circuits import study
        from stmlang.experiments.circuits.report import PAGE

        study.run(settings, console)
        page = settings.training.out / f"{PAGE}.md"
        console.print(page.read_text(encoding="utf-8"), markup=False, highlight=False, soft_wrap=True)

    return command(study, console)


if __name__ == "__main__":
    start(main, "stmlang.experiments.circuits")
