"""The LALR(1) table of `stm.lark`, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

GRAMMAR = Path(__file__).with_name("stm.lark")
START = "file"


@dataclass(frozen=True)
class Rule:
    """`origin -> size symbols`. `action` names the builder; None for the helper rules that `*` and `+` make: their values are
    lists."""

    origin: str
    size: int
    action: str | None
    passes: bool  # a single child stands for the rule
    spliced: bool  # some of the symbols are helper rules, whose lists are spliced in


@dataclass(frozen=True)
class Table:
    """`actions[state][terminal]` is the state to go to, or `-1 - r` to reduce by rule `r`; `gotos[state][origin]` a state."""

    actions: tuple[dict[str, int], ...]
    gotos: tuple[dict[str, int], ...]
    rules: tuple[Rule, ...]
    start: int
    end: int


@cache
def load() -> Table:
    """The table of the grammar."""
    return build(GRAMMAR.read_text(encoding="utf-8"))


def build(grammar: str) -> Table:
    """Have lark analyse a grammar. Raises lark's `GrammarError` if it is not LALR(1)."""
    from lark import Lark
    from lark.lexer import Lexer

    class Declared(Lexer):
        """Stands for our own lexer, which lark never calls."""

        def __init__(self, lexer_conf: object) -> None:
            pass

        def lex(self, *_: object) -> Any:
            return iter(())

    lark: Any = Lark(grammar, parser="lalr", lexer=Declared, start=START, maybe_placeholders=False, strict=False)
    parse_table = lark.parser.parser._parse_table
    rules: dict[Any, int] = {}
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    found: list[Rule] = []
    for state in range(len(parse_table.states)):
        row: dict[str, int] = {}
        go: dict[str, int] = {}
        for symbol, (_, target) in sorted(parse_table.states[state].items()):
            if not symbol.isupper():
                go[symbol] = target
            elif hasattr(target, "expansion"):
                if target not in rules:
                    rules[target] = len(found)
                    found.append(_rule(target))
                row[symbol] = -1 - rules[target]
            else:
                row[symbol] = target
        actions.append(row)
        gotos.append(go)
    return Table(tuple(actions), tuple(gotos), tuple(found), parse_table.start_states[START], parse_table.end_states[START])


def _rule(rule: Any) -> Rule:
    name = str(rule.origin.name)
    action = None if name.startswith("_") else str(rule.alias or name)
    spliced = any(symbol.name.startswith("_") for symbol in rule.expansion)
    return Rule(name, len(rule.expansion), action, bool(rule.options.expand1) and not rule.alias, spliced)
