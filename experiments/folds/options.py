"""What the options may be that every study has."""

from __future__ import annotations

import argparse

LARGEST_SEED = 2**31 - 1


def refuse_wrong(parser: argparse.ArgumentParser, options: argparse.Namespace, folds: int) -> None:
    """Ends with a line and exit status 2 unless there are as many `--folds` as asked for and `--epochs` and `--seed` are in
    range."""
    if not 1 <= options.folds <= folds:
        parser.error(f"--folds must be from 1 to {folds}")
    for name, least in (("epochs", 1), ("seed", 0)):
        if getattr(options, name) < least:
            parser.error(f"--{name} must be at least {least}")
    if options.seed > LARGEST_SEED:
        parser.error(f"--seed must be at most {LARGEST_SEED}")
