"""The LALR(1) table of `stm.lark`, as plain numbers.

Analysing the grammar takes longer than checking a spec, so the table lies ready beside it, in `stm.table.json`, and lark is not
imported to parse. After a change of the grammar: `python -m stmlang.syntax.table`. A test compares the two.
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

GRAMMAR = Path(__file__).with_name("stm.lark")
STORED = Path(__file__).with_name("stm.table.json")
START = "file"


@dataclass(frozen=True, slots=True)
class Rule:
    """`origin -> size symbols`. `action` names the builder; None for the helper rules that `*` and `+` make: their values are
    lists."""

    origin: str
    size: int
    action: str | None
    passes: bool  # a single child stands for the rule
    spliced: bool  # some of the symbols are helper rules, whose lists are spliced in


@dataclass(frozen=True, slots=True)
class Table:
    """`actions[state][terminal]` is the state to go to, or `-1 - r` to reduce by rule `r`; `gotos[state][origin]` a state.
    State 0 is where to begin."""

    rules: tuple[Rule, ...]
    actions: tuple[dict[str, int], ...]
    gotos: tuple[dict[str, int], ...]
    end: int


@cache
def load() -> Table:
    """The stored table."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    rules = tuple(Rule(*fields) for fields in stored["rules"])
    return Table(rules, tuple(stored["actions"]), tuple(stored["gotos"]), stored["end"])


def dump(table: Table) -> str:
    """The table as JSON, one rule or state a line."""
    tables = {
        "rules": [json.dumps(astuple(rule)) for rule in table.rules],
        "actions": [json.dumps(row) for row in table.actions],
        "gotos": [json.dumps(row) for row in table.gotos],
    }
    lines = [f'"{name}": [\n' + ",\n".join(rows) + "\n]" for name, rows in tables.items()]
    return "{\n" + ",\n".join([*lines, f'"end": {table.end}']) + "\n}\n"


def build(grammar: str) -> Table:
    """Have lark analyse a grammar, and number what it finds in the order of a walk from the start, so that the same grammar
    always gives the same table. Raises lark's `GrammarError` where two rules compete."""
    parse_table = _analyse(grammar)
    order: list[Any] = [parse_table.start_states[START]]
    numbers: dict[Any, int] = {order[0]: 0}
    rules: dict[Any, int] = {}
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    for state in order:
        row: dict[str, int] = {}
        go: dict[str, int] = {}
        for symbol, (action, target) in sorted(parse_table.states[state].items()):
            if action.name == "Reduce":
                row[symbol] = -1 - rules.setdefault(target, len(rules))
                continue
            if target not in numbers:
                numbers[target] = len(order)
                order.append(target)
            (row if symbol.isupper() else go)[symbol] = numbers[target]
        actions.append(row)
        gotos.append(go)
    return Table(tuple(map(_rule, rules)), tuple(actions), tuple(gotos), numbers[parse_table.end_states[START]])


def _analyse(grammar: str) -> Any:
    """Lark's own table."""
    from lark import Lark
    from lark.lexer import Lexer, LexerState

    class Declared(Lexer):
        """Stands for our own lexer, which lark never calls."""

        def __init__(self, lexer_conf: object) -> None:
            pass

        def lex(self, lexer_state: LexerState, parser_state: object) -> Any:
            raise NotImplementedError((lexer_state, parser_state))

    lark: Any = Lark(grammar, parser="lalr", lexer=Declared, start=START, maybe_placeholders=False, strict=True)
    return lark.parser.parser._parse_table  # private to lark, which hands it to nobody but its own pickle


def _rule(rule: Any) -> Rule:
    name = str(rule.origin.name)
    action = None if name.startswith("_") else str(rule.alias or name)
    spliced = any(symbol.name.startswith("_") for symbol in rule.expansion)
    return Rule(name, len(rule.expansion), action, bool(rule.options.expand1) and not rule.alias, spliced)


if __name__ == "__main__":
    STORED.write_text(dump(build(GRAMMAR.read_text(encoding="utf-8"))), encoding="utf-8")
