"""The study's command line."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from stmlang.ending import require, start

if TYPE_CHECKING:
    from stmlang.experiments.arrow.settings import Settings


def parse(arguments: list[str] | None = None) -> Settings:
    """Settings from the command line; `--scale` says from which defaults on."""
    require("typing_extensions", "tyro")
    from stmlang.experiments.arrow.settings import SCALES, Settings
    from stmlang.experiments.training.command import parsed

    words = sys.argv[1:] if arguments is None else arguments
    scales = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    scales.add_argument("--scale", nargs="?")
    scale = scales.parse_known_args(words)[0].scale
    default = SCALES.get(scale, SCALES["paper"])
    description = "Train models to tell whether an arrow points at a circle, and ask them at twice the size."
    return parsed(Settings, "stmlang.experiments.arrow", description, words, default=default)


def main(arguments: list[str] | None = None) -> int:
    """Run the study; 0 when it is done."""
    from rich.console import Console

    settings, console = parse(arguments), Console()
    require("optax", "sklearn", "matplotlib", "orbax")
    from stmlang.experiments.training.command import command

    def study() -> None:
        import jax

        from stmlang.experiments.arrow.report import PAGES
        from stmlang.experiments.arrow.study import run

        # Runs of one model are one program, whatever their seed, and to compile it takes as long as hundreds of small steps.
        jax.config.update("jax_compilation_cache_dir", str(settings.training.out.absolute() / "programs"))
        run(settings, console)
        console.print(f"the page: {settings.training.out / PAGES[settings.scale]}.md")

    return command(study, console)


if __name__ == "__main__":
    start(main, "stmlang.experiments.arrow")
