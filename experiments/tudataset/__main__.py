"""The study's command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stmlang.ending import require, start

if TYPE_CHECKING:
    from stmlang.experiments.tudataset.settings import Settings


def parse(arguments: list[str] | None = None) -> Settings:
    """Settings from the command line."""
    require("typing_extensions", "tyro")
    from stmlang.experiments.training.command import parsed
    from stmlang.experiments.tudataset.settings import Settings

    description = "Ten-fold cross-validation of pLSTM and five graph neural networks on small graphs."
    return parsed(Settings, "stmlang.experiments.tudataset", description, arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the study and print its table."""
    from rich.console import Console

    settings, console = parse(arguments), Console()
    require("optax", "sklearn", "matplotlib", "orbax")
    from stmlang.experiments.folds.memory import keep_freed_memory
    from stmlang.experiments.training.command import command

    keep_freed_memory()

    def study() -> None:
        from stmlang.experiments.tudataset import study

        study.run(settings, console)
        page = settings.training.out / "results.md"
        console.print(page.read_text(encoding="utf-8"), markup=False, highlight=False, soft_wrap=True)

    return command(study, console)


if __name__ == "__main__":
    start(main, "stmlang.experiments.tudataset")
