"""Serve editors over standard input and output by the Language Server Protocol: findings while typing with their fixes, hovers
with what was proved and planned, completion, navigation, renaming, formatting. An editor starts it: see docs/editors.md."""

from __future__ import annotations

import argparse

from stmlang.cli.options import add_path

NAME = "lsp"
SUMMARY = "serve editors by the Language Server Protocol"
TARGETS = ("cpu", "gpu", "h200", "h100", "a100")
"""Machines that are known without asking JAX."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    parser.add_argument("--target", choices=TARGETS, default="cpu", help="the machine that plans are shown for (default: cpu)")
    parser.add_argument("--stdio", action="store_true", help="accepted for editors that say it: there is nothing else")


def run(arguments: argparse.Namespace) -> int:
    """Serve until the editor leaves."""
    from stmlang import __version__
    from stmlang.ending import require

    require("pygls", "lsprotocol")
    from stmlang.lsp.server import serve

    serve(arguments.search_path, arguments.target, __version__, arguments.debug)
    return 0
