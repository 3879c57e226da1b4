"""A token that cannot stand where it stands, and what a complaint about it asks."""

from __future__ import annotations

from dataclasses import dataclass

from stmlang.source.advice import Edit, Fix, Rewrite
from stmlang.source.span import SourceFile, Span
from stmlang.source.wording import quoted
from stmlang.syntax.lexer import Token


@dataclass(frozen=True)
class Fault:
    """`tokens[at]`, where one of the kinds `expected` was; `braced` inside the braces of an item."""

    source: SourceFile
    tokens: list[Token]
    at: int
    expected: set[str]
    braced: bool

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def previous(self) -> Token | None:
        return self.tokens[self.at - 1] if self.at else None

    def span_of(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    def behind(self) -> Span:
        """Just behind the last token before the fault."""
        end = self.previous.end if self.previous else self.token.start
        return Span(self.source, end, end)

    def place(self) -> Span:
        """The token, or the end of what came before where the statement ended too soon."""
        return self.behind() if self.ends_statement() else self.span_of(self.token)

    def ends_statement(self) -> bool:
        """Whether the token is none of the statement, which should have gone on."""
        return self.token.kind in ("SEPARATOR", "$END") or (self.token.kind == "RBRACE" and self.braced)

    def without(self, token: Token) -> tuple[Fix, ...]:
        """The edit that leaves a token away."""
        return (Rewrite((Edit(self.span_of(token), ""),)),)

    def token_in_words(self) -> str:
        """The token as a message calls it."""
        if self.token.kind == "$END":
            return "the end of the text"
        if self.token.kind == "SEPARATOR":
            return "`;`" if self.token.text == ";" else "the end of the line"
        return quoted(self.token.text or "}")

    def previous_in_words(self) -> str:
        """The token before, as far as there is one to be seen."""
        if self.previous is None or not self.previous.text.strip():
            return "what stands before it"
        return quoted(self.previous.text)

    def after_previous(self) -> str:
        """` after ...` in a message, nothing where no token is to be seen before."""
        visible = self.previous is not None and self.previous.text.strip()
        return f" after {self.previous_in_words()}" if visible else ""

    def statement_start(self) -> int | None:
        """Where the statement at hand begins."""
        for back in range(self.at, -1, -1):
            if back == 0 or self.tokens[back - 1].kind in ("SEPARATOR", "LBRACE", "BROKEN"):
                return back
        return None

    def statement_end(self) -> int:
        """Where the statement at hand ends: at a line's end, a `;` or the end of the text."""
        end = self.at
        while self.tokens[end].kind not in ("SEPARATOR", "$END"):
            end += 1
        return end
