"""The Pygments lexer `stm`: what documentation tools and notebooks colour specs with."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups  # pyright: ignore[reportUnknownVariableType]
from pygments.token import Whitespace, string_to_tokentype

from stmlang.highlight.rules import RULES, Look, Rule


def _token(look: Look | None) -> Any:
    return Whitespace if look is None else string_to_tokentype(look.value[1])


def _entry(rule: Rule) -> tuple[str, Any]:
    tokens = [_token(look) for look in rule.looks]
    by_group: Any = bygroups  # pyright: ignore[reportUnknownVariableType]
    return rule.pattern, by_group(*tokens) if len(tokens) > 1 else tokens[0]


class StmLexer(RegexLexer):
    """Specs of stmlang."""

    name = "stmlang"
    aliases: ClassVar = ["stm", "stmlang"]
    filenames: ClassVar = ["*.stm"]
    mimetypes: ClassVar = ["text/x-stmlang"]
    tokens: ClassVar = {"root": [(r"\s+", Whitespace), *map(_entry, RULES)]}
