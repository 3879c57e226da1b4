"""From a text to its tree, reporting every syntax error of the text at once.

A plain LALR(1) automaton. After an error the statement (or arrow, or item) at hand is given up: the stack is cut back to where
it began, the token BROKEN, which the grammar allows there, takes its place, and what follows up to its end is skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.span import SourceFile
from stmlang.syntax import table, tree
from stmlang.syntax.build import BUILDERS
from stmlang.syntax.layout import Layout
from stmlang.syntax.lexer import MAX_ERRORS, Token, lex

FOREIGN, OUTSIDE = "STM0102", "STM0210"
"""The codes of a statement that is written in another language, and of one outside of all scans."""


@dataclass(frozen=True)
class Parsed:
    """A text as far as it can be read: the tree without the statements that were given up, the tokens that it was made from,
    `$END` last, and all syntax errors, in the order of the text."""

    file: tree.File
    tokens: list[Token]
    diagnostics: tuple[Diagnostic, ...]


def parse(source: SourceFile) -> tree.File:
    """The tree of a text. Raises `SpecError` with all its syntax errors, in the order of the text."""
    return parse_tokens(source)[0]


def parse_tokens(source: SourceFile) -> tuple[tree.File, list[Token]]:
    """The tree of a text, and the tokens that it was made from, `$END` last. Raises as `parse` does."""
    parsed = parse_all(source)
    if parsed.diagnostics:
        raise SpecError(parsed.diagnostics)
    return parsed.file, parsed.tokens


def parse_all(source: SourceFile) -> Parsed:
    """What there is to read in a text, right or wrong. Raises nothing."""
    lexed = lex(source)
    if lexed.cut_off is not None:
        return Parsed(tree.File(source, (), ()), [lexed.tokens[-1]], (lexed.cut_off,))
    tokens = Layout(lexed).run()
    automaton = _Automaton(source, tokens)
    items = automaton.run()
    # What a statement of another language goes on with is wrong only as a part of it.
    foreign = automaton.foreign
    lexical = [
        diagnostic
        for diagnostic in lexed.diagnostics
        if diagnostic.span is None or not any(diagnostic.span.start in region for region in foreign)
    ]
    diagnostics = _in_order(lexical + automaton.diagnostics)[:MAX_ERRORS]
    return Parsed(tree.File(source, items, tuple(lexed.comments)), tokens, tuple(diagnostics))


def _in_order(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    return sorted(
        diagnostics, key=lambda diagnostic: (diagnostic.span.start, diagnostic.span.end) if diagnostic.span else (0, 0)
    )


class _Automaton:
    """One run over the tokens of a text."""

    def __init__(self, source: SourceFile, tokens: list[Token]) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.foreign: list[range] = []  # statements of another language, from where they were given up
        self._source = source
        self._tokens = tokens
        self._table = table.load()
        self._states = [0]
        self._values: list[Any] = []
        self._outside: int | None = None  # the last token of the statement outside of all scans that was given up last
        self._marks = [1]  # for each open brace, the height of the stack where the current statement begins

    def run(self) -> tuple[tree.Item, ...]:
        at = 0
        while len(self.diagnostics) < MAX_ERRORS:
            token = self._tokens[at]
            if token.kind != "BROKEN" and self._feed(token):
                if token.kind == "$END":
                    return self._values[-1]
                self._mark(token)
                at += 1
                continue
            if token.kind != "BROKEN":
                from stmlang.syntax.blame import blame  # six files, for texts that are wrong

                diagnostic = blame(self._source, self._tokens, at, self._expected(), len(self._marks) > 1)
                if diagnostic.code != OUTSIDE or not self._goes_on(at):
                    self.diagnostics.append(diagnostic)
                if diagnostic.code in (FOREIGN, OUTSIDE):
                    self.foreign.append(range(token.start, self._tokens[self._end(at)].start))
            at = self._recover(at)
        return ()

    # --- the automaton

    def _feed(self, token: Token) -> bool:
        """Reduce as often as the token asks for, then shift it; False where it cannot come here."""
        actions, gotos, rules = self._table.actions, self._table.gotos, self._table.rules
        states, values = self._states, self._values
        while True:
            action = actions[states[-1]].get(token.kind)
            if action is None:
                return False
            if action >= 0:
                states.append(action)
                values.append(token)
                return True
            rule = rules[-1 - action]
            size = rule.size
            if size == 1 and rule.passes:
                del states[-1]
            else:
                children: list[Any] = values[-size:] if size else []
                if size:
                    del states[-size:], values[-size:]
                values.append(self._reduce(rule, children))
            states.append(gotos[states[-1]][rule.origin])
            if states[-1] == self._table.end:
                return True

    def _reduce(self, rule: table.Rule, children: list[Any]) -> Any:
        """The value of a rule. Helper rules make lists; the first is extended in place, so that long lists stay linear."""
        if rule.spliced:
            children = _splice(children)
        if rule.action is None:
            return children
        return BUILDERS[rule.action](self._source, children)

    def _expected(self) -> set[str]:
        """The terminals that could be shifted here."""
        return {kind for kind in self._table.actions[self._states[-1]] if self._shiftable(kind)}

    def _shiftable(self, kind: str) -> bool:
        states = self._states.copy()
        while True:
            action = self._table.actions[states[-1]].get(kind)
            if action is None:
                return False
            if action >= 0:
                return True
            rule = self._table.rules[-1 - action]
            if rule.size:
                del states[-rule.size :]
            states.append(self._table.gotos[states[-1]][rule.origin])
            if states[-1] == self._table.end:
                return True

    # --- statements, and how to give one up

    def _mark(self, token: Token) -> None:
        """Remember where statements begin."""
        if token.kind == "LBRACE":
            self._marks.append(len(self._states))
        elif token.kind == "RBRACE":
            self._marks.pop()
        elif token.kind == "SEPARATOR":
            self._marks[-1] = len(self._states)

    def _recover(self, at: int) -> int:
        """Give up the statement that token `at` stands in; returns where to go on."""
        mark = self._marks[-1]
        begins_scan = len(self._marks) == 1 and self._first_kind(mark, at) == "SCAN"
        del self._states[mark:], self._values[mark - 1 :]
        depth = 0
        while True:
            kind = self._tokens[at].kind
            if depth == 0 and kind == "LBRACE" and begins_scan and self._tokens[at - 1].kind != "GRAPH":
                # Its head is spoilt, but the errors in the body are worth finding.
                start = self._tokens[at].start
                for dummy in ("SCAN", "NAME", "ON", "NAME"):
                    self._feed(Token(dummy, "", start, start))
                return at
            if kind == "$END" or (depth == 0 and (kind == "SEPARATOR" or (kind == "RBRACE" and len(self._marks) > 1))):
                start = self._tokens[at].start
                self._feed(Token("BROKEN", "", start, start))
                return at
            depth += (kind == "LBRACE") - (kind == "RBRACE" and depth > 0)
            at += 1

    def _goes_on(self, at: int) -> bool:
        """Whether an equation outside of all scans follows another statement there: one finding is enough for all of them."""
        if self._tokens[at].text == "return" and self._defines(at - 2):
            return True
        follows = self._outside is not None and self._outside == at - 1
        self._outside = self._end(at)
        return follows and self._tokens[at + 1].kind in ("EQUAL", "LSQB")

    def _defines(self, at: int) -> bool:
        """Whether the statement that ends with token `at` is a definition that was given up at its end, as `def f(a):`."""
        if at < 0 or self._tokens[at].kind != "BROKEN":
            return False
        while at > 0 and self._tokens[at - 1].kind != "SEPARATOR":
            at -= 1
        return self._tokens[at].kind == "DEF"

    def _end(self, at: int) -> int:
        """The token that ends the statement that token `at` stands in."""
        while self._tokens[at].kind not in ("SEPARATOR", "RBRACE", "$END"):
            at += 1
        return at

    def _first_kind(self, mark: int, at: int) -> str:
        """The kind of the first token of the statement at hand, whose stack begins at `mark`."""
        if len(self._values) >= mark and isinstance(self._values[mark - 1], Token):
            return self._values[mark - 1].kind
        return self._tokens[at].kind


def _splice(values: list[Any]) -> list[Any]:
    """The values with the elements of lists among them in their place."""
    first: Any = values[0]
    flat = cast(list[Any], first) if type(first) is list else [first]
    for value in values[1:]:
        if type(value) is list:
            flat.extend(cast(list[Any], value))
        else:
            flat.append(value)
    return flat
