"""What each piece of a text is by its looks alone, in one table, from the words and signs of the lexer and the checker.

A rule is a regular expression that Python and Oniguruma understand alike. At each place of a text the first rule that matches
counts; between the pieces are blanks. `tests/highlight` compares the pieces with the lexer's tokens on the whole corpus.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from stmlang.check.vocabulary import BUILT_IN, CORE, FEATURES, INDEX_WORDS, INPUTS, KINDS_OF_TOPOLOGY, SIZES
from stmlang.syntax.lexer import ITEM_WORDS, NUMBER, SIGNS
from stmlang.syntax.settings import SETTING_CHOICES


class Look(Enum):
    """What a piece is: its scope in TextMate grammars, and its token type in Pygments."""

    COMMENT = "comment.line.number-sign", "Comment.Single"
    STRING = "string.quoted.double", "Literal.String.Double"
    NUMBER = "constant.numeric", "Literal.Number"
    ITEM = "keyword.declaration", "Keyword.Declaration"
    KEYWORD = "keyword.control", "Keyword"
    CHOICE = "constant.language.choice", "Keyword.Constant"
    SCAN = "entity.name.type.scan", "Name.Class"
    TOPOLOGY = "entity.name.type.topology", "Name.Class"
    DEFINITION = "entity.name.function", "Name.Function"
    KIND = "support.type", "Keyword.Type"
    BUILT_IN = "support.function", "Name.Builtin"
    CALL = "entity.name.function.call", "Name.Function"
    GATE = "variable.language.gate", "Name.Variable.Magic"
    INPUT = "variable.language.input", "Name.Builtin.Pseudo"
    INDEX = "variable.parameter.index", "Name.Attribute"
    CONSTANT = "constant.language", "Name.Constant"
    SIZE = "variable.other.constant", "Name.Constant"
    NAME = "variable.other", "Name"
    OPERATOR = "keyword.operator", "Operator"
    BRACKET = "punctuation.section", "Punctuation"
    PUNCTUATION = "punctuation.separator", "Punctuation"

    @property
    def scope(self) -> str:
        return f"{self.value[0]}.stm"


@dataclass(frozen=True)
class Rule:
    """A regular expression, and what its groups are, or the whole of what it matches where it has one look and no group."""

    pattern: str
    looks: tuple[Look | None, ...]


_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_END = r"(?![A-Za-z0-9_'])"
_BLANKS = r"[ \t]+"
_CALLED = r"(?=[ \t]*\()"
_OPERATORS = frozenset({"+", "-", "*", "/", "^", "=", "->", "<="})
_BRACKETS = frozenset("()[]{}")


def _any(words: Iterable[str]) -> str:
    """One of some words, the longest first."""
    return "|".join(re.escape(word) for word in sorted(dict.fromkeys(words), key=lambda word: (-len(word), word)))


def _setting(keyword: str, choices: Iterable[str]) -> Rule:
    """A setting with the word behind it, which is a plain name elsewhere."""
    words = [choice for choice in choices if choice.isalpha()]
    signs = r"|(?=[+-])" if "+" in choices else ""
    return Rule(rf"({keyword})({_BLANKS})((?:{_any(words)}){_END}{signs})", (Look.KEYWORD, None, Look.CHOICE))


RULES: tuple[Rule, ...] = (
    Rule(r"#[^\r\n]*", (Look.COMMENT,)),
    Rule(r'"[^"\r\n]*"', (Look.STRING,)),
    *(
        Rule(rf"({word})({_BLANKS})({_NAME}){_END}", (Look.ITEM, None, look))
        for word, look in (("topology", Look.TOPOLOGY), ("scan", Look.SCAN), ("def", Look.DEFINITION))
    ),
    Rule(rf"(?:{_any(ITEM_WORDS)}){_END}", (Look.ITEM,)),
    *(_setting(keyword, choices) for keyword, choices in SETTING_CHOICES.items()),
    Rule(rf"own(?={_BLANKS}[qkv]{_END})|concat{_END}(?=[ \t]*(?:[;}}#\r\n]|$))", (Look.CHOICE,)),
    Rule(rf'(?:on|as){_END}(?={_BLANKS}{_NAME})|from{_END}(?=[ \t]*")', (Look.KEYWORD,)),
    Rule(rf'(?:{_any(KINDS_OF_TOPOLOGY)}){_END}(?=\s*[({{]|{_BLANKS}from[ \t]*")', (Look.KIND,)),
    Rule(rf"(?:{_any(BUILT_IN)}){_END}{_CALLED}", (Look.BUILT_IN,)),
    Rule(rf"{_NAME}{_END}{_CALLED}", (Look.CALL,)),
    Rule(rf"(?:{_any(CORE)}){_END}", (Look.GATE,)),
    Rule(rf"(?:{_any((*INPUTS, *FEATURES))}){_END}", (Look.INPUT,)),
    Rule(rf"(?:{_any(INDEX_WORDS)}){_END}", (Look.INDEX,)),
    Rule(rf"(?:{_any(name for name in SIZES if name not in INDEX_WORDS)}){_END}", (Look.SIZE,)),
    Rule(rf"(?:eye|pi){_END}", (Look.CONSTANT,)),
    Rule(rf"{_NAME}'{{0,2}}", (Look.NAME,)),
    Rule(NUMBER.pattern, (Look.NUMBER,)),
    Rule(_any(_OPERATORS), (Look.OPERATOR,)),
    Rule(_any(_BRACKETS), (Look.BRACKET,)),
    Rule(_any(sign for sign in SIGNS if sign not in _OPERATORS | _BRACKETS), (Look.PUNCTUATION,)),
)
