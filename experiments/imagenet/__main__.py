"""The study's command line."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from stmlang.ending import require, start

if TYPE_CHECKING:
    from stmlang.experiments.imagenet.settings import Settings


def parse(arguments: list[str] | None = None) -> Settings:
    """Settings from the command line; `--recipe` and `--size` say from which defaults on."""
    require("typing_extensions", "tyro")
    from stmlang.experiments.imagenet.recipes import SIZES, recipe
    from stmlang.experiments.imagenet.settings import RECIPES, Settings
    from stmlang.experiments.training.command import parsed

    words = sys.argv[1:] if arguments is None else arguments
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--recipe", nargs="?")
    first.add_argument("--size", nargs="?")
    known = first.parse_known_args(words)[0]
    default = recipe(known.recipe if known.recipe in RECIPES else "small", known.size if known.size in SIZES else "T")
    description = "Train models of images by one of the paper's recipes, or by one that two cores can bear."
    return parsed(Settings, "stmlang.experiments.imagenet", description, words, default=default)


def main(arguments: list[str] | None = None) -> int:
    """Run the study; 0 when it is done."""
    from rich.console import Console

    settings, console = parse(arguments), Console()
    require("optax", "matplotlib", "orbax", "grain", "PIL", "safetensors")
    from stmlang.experiments.training.command import command

    def study() -> None:
        from stmlang.experiments.imagenet.report import PAGES
        from stmlang.experiments.imagenet.study import run

        run(settings, console)
        pages = ", ".join(str(settings.training.out / f"{PAGES[on]}.md") for on in settings.sets)
        console.print(f"pages: {pages}", soft_wrap=True)

    return command(study, console)


if __name__ == "__main__":
    start(main, "stmlang.experiments.imagenet")
