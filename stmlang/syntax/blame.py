"""What to say about a token that cannot stand where it stands."""

from __future__ import annotations

import re

from stmlang.source.advice import Advice, fixes_of, replaced, words_of
from stmlang.source.diagnostic import Diagnostic
from stmlang.source.span import SourceFile, Span
from stmlang.source.suggest import nearest
from stmlang.source.wording import listing
from stmlang.syntax.fault import Fault
from stmlang.syntax.foreign import FORMS, ITEMS, as_use
from stmlang.syntax.layout import NAME_KINDS, OPERATORS
from stmlang.syntax.lexer import ITEM_WORDS, SIGNS, Token
from stmlang.syntax.wrong_statements import equal_sign, foreign, misspelt, reserved, setting
from stmlang.syntax.wrong_values import comma, two_signs, value

_WORDS = {
    "NAME": "a name",
    "PRIMED": "an index",
    "NUMBER": "a number",
    "STRING": 'a path in double quotes, as in `"graph.bif"`',
    "GRAPH": "`dag { ... }`",
    "ON": "`on`",
    "FROM": "`from`",
    "AS": "`as`",
    "SETTING": "a setting",
    "SEPARATOR": "the end of the line",
    "$END": "the end of the text",
    **{kind: f"`{word}`" for word, kind in ITEM_WORDS.items()},
    **{kind: f"`{sign}`" for sign, kind in SIGNS.items()},
}
_ORDER = sorted(_WORDS, key=lambda kind: kind in ("RPAR", "RSQB", "RBRACE", "SEPARATOR", "$END"))
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def blame(source: SourceFile, tokens: list[Token], at: int, expected: set[str], braced: bool) -> Diagnostic:
    """The diagnostic for `tokens[at]`, where one of the kinds `expected` was; `braced` inside the braces of an item."""
    fault = Fault(source, tokens, at, expected, braced)
    for case in (reserved, setting, foreign, misspelt, equal_sign, value, comma, _outside, two_signs):  # most telling first
        special = case(fault)
        if special is not None:
            return special
    return _general(fault)


def _outside(fault: Fault) -> Diagnostic | None:
    """Something at the top of a text that is no item."""
    if fault.braced or "TOPOLOGY" not in fault.expected:
        return None
    help = _item_meant(fault)
    return Diagnostic(
        "STM0210",
        f"an item is expected, found {fault.token_in_words()}",
        fault.span_of(fault.token),
        notes=("equations and settings stand between the braces of a scan",) if fault.token.kind in NAME_KINDS else (),
        help=words_of(help),
        fixes=fixes_of(help),
    )


def _item_meant(fault: Fault) -> str | Advice:
    """What to write for a word with which no item begins."""
    word, at = fault.token.text, fault.span_of(fault.token)
    item = ITEMS.get(word.lower())
    if item == "use":
        return Advice(FORMS["use"], as_use(fault.source, fault.token.start))
    if item is not None:
        return FORMS[item]
    near = nearest(word, ITEM_WORDS)
    return replaced(f"did you mean `{near}`?", at, near) if near else "an item begins with `topology`, `def`, `use` or `scan`"


def _general(fault: Fault) -> Diagnostic:
    expected = _could_follow(fault)
    message = (
        f"{expected} expected{fault.after_previous()}, found {fault.token_in_words()}"
        if expected
        else f"unexpected {fault.token_in_words()}"
    )
    help = _form(fault)
    return (
        Diagnostic("STM0201", message, fault.place(), help=help.text, fixes=help.fixes)
        if help
        else Diagnostic("STM0201", message, fault.place())
    )


def _form(fault: Fault) -> Advice | None:
    """How the item at hand is written."""
    first = fault.statement_start()
    kind = None if first is None or fault.braced else fault.tokens[first].kind
    if kind == "SCAN" and fault.expected & {"ON", "LBRACE"}:
        return Advice("a scan is written `scan name on chain(time) { ... }`")
    if kind == "USE" and first is not None:
        end = fault.tokens[fault.statement_end()].start
        span = Span(fault.source, fault.tokens[first + 1].start, end)
        path = span.text.strip().strip('"').removesuffix(".stm").replace("/", ".")
        words = f"a path has dots: `use {path}`"
        return replaced(words, span, path) if _PATH.fullmatch(path) else Advice("a path has dots: `use std.gates (gate)`")
    return None


def _could_follow(fault: Fault) -> str:
    """What could have come, in words; operators only where nothing else could."""
    kinds = fault.expected - {"BROKEN"}
    if kinds & NAME_KINDS and "NAME" in kinds:
        kinds = (kinds - NAME_KINDS) | {"NAME"}
    if kinds >= OPERATORS:
        kinds = kinds - OPERATORS - {"LSQB"}
    if "SEPARATOR" in kinds:
        kinds = kinds - {"$END"}
    return listing([_WORDS[kind] for kind in sorted(kinds, key=_ORDER.index)])
