"""Show what the compiler knows about a spec, how it would evaluate it, and why not otherwise; or what an error code means."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from stmlang.cli.options import add_batch, add_json, add_planning, add_spec
from stmlang.cli.output import print_json, print_usage, room, tell, write_result

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "explain"
SUMMARY = "show facts, plan and intermediate forms, or an error code"
MAPPED = "Under `jax.vmap` a call is planned for the batch that is mapped: `--batch N` shows that plan."
USAGE = 2
CODE = re.compile(r"STM[0-9]{4}", re.IGNORECASE)
STAGES = ("tree", "scan", "facts", "plan", "jaxpr", "stablehlo")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_spec(parser, "a path, `std:NAME` for one of the library, `-` for standard input, or an error code, such as STM2023")
    add_planning(parser)
    add_batch(parser)
    parser.add_argument("--emit", choices=STAGES, help="show one stage of the compiler instead of facts and plan")
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="write it all as one page with pictures, instead of printing facts and plan"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Facts and plan, or one stage, or what an error code means. Only the stages behind the plan need jax."""
    if arguments.html is not None:
        return _html(arguments)
    if is_code(arguments.spec):
        from stmlang.cli.codes import explain_code

        return explain_code(arguments.spec, arguments.json)
    if arguments.emit is None:
        return _plan(arguments, with_facts=True)
    emit: dict[str, Callable[[argparse.Namespace], int]] = {
        "tree": _tree,
        "scan": _scan,
        "facts": _facts,
        "plan": lambda options: _plan(options, with_facts=False),
        "jaxpr": _program,
        "stablehlo": _program,
    }
    return emit[arguments.emit](arguments)


def is_code(word: str) -> bool:
    """Whether a word is meant for a code: it looks like one, and no file is called so."""
    return bool(CODE.fullmatch(word)) and not os.path.exists(word)


def _show(arguments: argparse.Namespace, text: str) -> int:
    """A stage as text, or as one JSON string beside its name."""
    if arguments.json:
        print_json({"stage": arguments.emit, "text": text})
    else:
        write_result(text if text.endswith("\n") else text + "\n")
    return 0


def _tree(arguments: argparse.Namespace) -> int:
    from stmlang.cli.specs import open_named
    from stmlang.syntax.parser import parse
    from stmlang.syntax.show import show_tree

    return _show(arguments, show_tree(parse(open_named(arguments.spec).source)))


def _scan(arguments: argparse.Namespace) -> int:
    from stmlang.cli.specs import load_spec
    from stmlang.scan.show import show_scan

    return _show(arguments, show_scan(load_spec(arguments)))


def _facts(arguments: argparse.Namespace) -> int:
    from stmlang.cli.specs import load_spec
    from stmlang.facts import analyse, facts_json, show_facts

    facts = analyse(load_spec(arguments))
    if arguments.json:
        print_json(facts_json(facts))
        return 0
    return _show(arguments, show_facts(facts, room()))


def _plan(arguments: argparse.Namespace, with_facts: bool) -> int:
    from stmlang.cli.specs import load_spec, outlook_spec, plan_of
    from stmlang.facts.show import facts_json, show_facts
    from stmlang.plan.preview import outlook_json, outlook_text
    from stmlang.plan.show import explain_json, explain_text
    from stmlang.scan.topology import Runtime
    from stmlang.source.columns import wrapped

    scan = load_spec(arguments)
    if isinstance(scan.topology, Runtime):
        facts, preview = outlook_spec(scan, arguments)
        if arguments.json:
            print_json(outlook_json(preview, facts_json(facts) if with_facts else None))
        else:
            write_result(outlook_text(preview, show_facts(facts, room()) if with_facts else None, room()))
        return 0
    facts, plan = plan_of(scan, arguments)
    if arguments.json:
        print_json(json.loads(explain_json(plan, facts_json(facts) if with_facts else None)))
    else:
        text = explain_text(plan, show_facts(facts, room()) if with_facts else None, room())
        write_result(text if arguments.batch > 1 else "\n".join([text, *wrapped(MAPPED, room())]) + "\n")
    return 0


def _html(arguments: argparse.Namespace) -> int:
    """The text of a spec, what is proved of it, pictures and plan, as a page."""
    if arguments.emit is not None or arguments.json or is_code(arguments.spec):
        message = "--html is a page about a spec: it goes with neither --emit nor --json nor an error code"
        print_usage("stmlang explain", message, arguments.json)
        return USAGE
    from stmlang.cli.files import require_output
    from stmlang.cli.page import explanation, save
    from stmlang.cli.specs import load_spec, outlook_spec, plan_of
    from stmlang.draw.all import pictures_of
    from stmlang.facts.show import show_facts
    from stmlang.graph.topology import dag_of
    from stmlang.plan.preview import outlook_text
    from stmlang.plan.show import explain_text
    from stmlang.scan.show import show_scan
    from stmlang.scan.topology import Runtime

    require_output(arguments.html, arguments.spec)
    scan = load_spec(arguments)
    if isinstance(scan.topology, Runtime):
        facts, preview = outlook_spec(scan, arguments)
        pictures, shown = pictures_of("all", facts, None, None), outlook_text(preview, None)
    else:
        facts, plan = plan_of(scan, arguments)
        pictures, shown = pictures_of("all", facts, dag_of(scan.topology), plan), explain_text(plan)
    parts = [("What is proved", show_facts(facts)), ("How it is evaluated", shown), ("The scan", show_scan(facts.scan))]
    save(arguments.html, explanation(scan.name, parts, pictures))
    tell(f"wrote {arguments.html}")
    return 0


def _program(arguments: argparse.Namespace) -> int:
    from stmlang.cli.specs import compile_spec, sized_spec

    compiled = compile_spec(arguments, sized_spec(arguments), arguments.target, arguments.batch)
    return _show(arguments, compiled.lower_text(arguments.emit))
