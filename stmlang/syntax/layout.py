"""Brackets and line ends: where a statement stops, where a line goes on, and which brackets have no partner.

Input is the lexer's tokens. Output are those of the grammar: line ends become SEPARATOR or nothing, `dag` and `tree` before a
brace GRAPH, the words that begin a setting SETTING. Where a bracket is wrong, a BROKEN token makes the parser give up the
statement, whose fault is reported here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stmlang.source.advice import Advice, Edit, Rewrite, inserted, replaced
from stmlang.source.diagnostic import Label
from stmlang.source.span import Span
from stmlang.source.wording import quoted
from stmlang.syntax.lexer import ITEM_WORDS, SETTING_WORDS, Lexed, Token

MAX_NESTING = 100
"""Open brackets, leading minus signs and powers inside each other; bounds the depth of every tree."""

ITEM_KINDS = frozenset(ITEM_WORDS.values())
NAME_KINDS = frozenset({"NAME", "ON", "FROM", "AS"})
OPERATORS = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "CARET"})
_OPENING = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
_CLOSING = {closing: opening for opening, closing in _OPENING.items()}
_OPERAND_ENDS = NAME_KINDS | {"PRIMED", "NUMBER", "RPAR", "RSQB"}
_GOES_ON_AFTER = OPERATORS | {"EQUAL", "COMMA", "ATMOST", "DOT"}
_GOES_ON_BEFORE = OPERATORS | {"EQUAL", "COMMA", "ATMOST", "LBRACE", "RPAR", "RSQB"}

_NEVER_IN_LISTS = frozenset({"LBRACE", "RBRACE", "$END"})


@dataclass
class _Open:
    """A bracket that is open, and what has been seen in it."""

    token: Token
    graph: bool
    nested: int = 0  # minus signs and powers since the last operator that does not nest
    supplied: bool = False  # whether it is missing in the text, which has been reported


class Layout:
    """One pass over the tokens of a text; `run` returns the tokens for the parser, `$END` last."""

    def __init__(self, lexed: Lexed) -> None:
        self._lexed = lexed
        self._tokens = lexed.tokens
        self._out: list[Token] = []
        self._stack: list[_Open] = []
        self._ground = _Open(Token("$END", "", 0, 0), False)
        self._nesting = 0
        self._separator: Token | None = None
        self._first = True  # whether the next token is the first of its line
        self._line_start = 0
        self._indent = 0  # of the line on which the current statement begins
        self._too_deep = False
        self._head: int | None = None  # where in `_out` the scan begins whose brace has not come yet
        self._placed = False  # whether that head has its `on`
        self._closed: _Open | None = None  # the brace of the scan that ended last
        self._surplus = sum((token.kind == "RBRACE") - (token.kind == "LBRACE") for token in self._tokens)

    def run(self) -> list[Token]:
        for at, token in enumerate(self._tokens):
            if token.kind == "NEWLINE":
                if not self._in_list():
                    self._separator = self._separator or token
                self._first, self._line_start = True, token.end
            elif token.kind == "SEMICOLON" and not self._in_list():
                self._separator = token
            else:
                self._place(at, token)
                self._first = False
        return self._out

    # --- where are we

    def _in_list(self) -> bool:
        return bool(self._stack) and self._stack[-1].token.kind != "LBRACE"

    def _in_graph(self) -> bool:
        return bool(self._stack) and self._stack[-1].graph

    def _previous(self) -> Token | None:
        return self._out[-1] if self._out else None

    def _next_kind(self, at: int) -> str:
        return self._tokens[at + 1].kind if at + 1 < len(self._tokens) else "$END"

    def _brace_follows(self, at: int) -> bool:
        """Whether the next token but line ends is `{`."""
        ahead = at + 1
        while ahead < len(self._tokens) and self._tokens[ahead].kind == "NEWLINE":
            ahead += 1
        return ahead < len(self._tokens) and self._tokens[ahead].kind == "LBRACE"

    def _graph_follows(self, at: int, kind: str) -> bool:
        """Whether the brace behind a word holds a graph: what stands behind `dag` and `tree` does, unless it is a scan's body,
        and what begins with an arrow does behind any word."""
        ahead = at + 1
        while self._tokens[ahead].kind in ("NEWLINE", "LBRACE"):
            ahead += 1
        if kind in ("dag", "tree"):
            return self._tokens[ahead].kind in ITEM_KINDS or not self._begins_statement(ahead)
        return self._tokens[ahead].kind in NAME_KINDS and self._next_kind(ahead) == "ARROW"

    def _begins_item(self, at: int) -> bool:
        """`scan name`, `def name`, ... where a line or a statement begins."""
        return self._tokens[at].kind in ITEM_KINDS and self._next_kind(at) in NAME_KINDS | ITEM_KINDS

    def _begins_statement(self, at: int) -> bool:
        """Whether an item, `name =`, `name[...] =` or a setting begins here, as no expression that goes on can."""
        token, following = self._tokens[at], self._next_kind(at)
        if self._begins_item(at):
            return True
        if token.kind not in NAME_KINDS:
            return False
        if following == "EQUAL" or (token.text in SETTING_WORDS and following in NAME_KINDS):
            return True
        if following != "LSQB":
            return False
        for ahead in range(at + 2, len(self._tokens)):
            kind = self._tokens[ahead].kind
            if kind == "RSQB":
                return self._next_kind(ahead) == "EQUAL"
            if kind in ("NEWLINE", "SEMICOLON", "LSQB", "LPAR", "LBRACE", "RBRACE"):
                return False
        return False

    # --- one token

    def _place(self, at: int, token: Token) -> None:
        fresh = self._first or self._separator is not None
        if self._in_list() and (token.kind in _NEVER_IN_LISTS or (self._first and self._line_breaks_off(at, token))):
            self._unclosed_list()
            if token.kind != "LBRACE":
                self._separator = self._separator or token
        if fresh and self._stack and not self._in_list() and self._begins_item(at):
            if self._surplus >= 0 and token.kind != "SCAN" and not self._in_graph():
                self._item_inside(at, token)
                return
            self._unclosed_brace()
        if token.kind == "LBRACE" and self._in_graph():
            self._unclosed_graph()
        if token.kind == "$END":
            if self._stack:
                self._unclosed_brace()
            self._out.append(token)
            return
        if not self._stack and self._ends_too_soon(at):
            self._reopen()
        if not self._stack and self._lacks_brace(at, fresh):
            self._open_body()
            if token.text == ":":
                return
        self._separate(at, token)
        self._emit(self._contextual(at, token))

    # --- braces that are missing, and ones too many

    def _lacks_brace(self, at: int, fresh: bool) -> bool:
        """Behind the head of a scan: whether its body begins here without a brace."""
        token = self._tokens[at]
        if self._head is None or token.kind == "LBRACE":
            return False
        if token.kind == "RBRACE" or (token.text == ":" and self._next_kind(at) in ("NEWLINE", "$END")):
            return True
        return (fresh or self._placed) and self._begins_statement(at) and not self._begins_item(at)

    def _open_body(self) -> None:
        """Supply the brace of a body. A colon in its place has been reported already."""
        assert self._head is not None
        last = self._out[-1]
        behind = Token("LBRACE", "{", last.end, last.end)
        if not self._colon_follows(last):
            span = Span(self._lexed.source, last.start, last.end)
            write = (
                inserted("write `{` there", span, " {") if self._placed else "a scan begins with `scan name on chain(time) {`"
            )
            self._report(
                "STM0201", f"`{{` expected after {quoted(last.text)}: the body of a scan begins with it", behind, help=write
            )
        self._out.append(Token("BROKEN", "", last.end, last.end))
        self._out.append(behind)
        self._stack.append(_Open(behind, False, supplied=True))
        self._nesting += 1
        self._separator = self._head = None

    def _colon_follows(self, token: Token) -> bool:
        return self._lexed.source.text[token.end :].lstrip(" \t")[:1] == ":"

    def _ends_too_soon(self, at: int) -> bool:
        """Whether a scan's equations go on behind the brace that ends it, in a text with a closing brace too many."""
        previous = self._previous()
        behind = self._closed is not None and previous is not None and previous.kind == "RBRACE"
        return behind and self._surplus > 0 and self._begins_statement(at) and not self._begins_item(at)

    def _reopen(self) -> None:
        """Take the last brace as not written."""
        brace, opened = self._out.pop(), self._closed
        assert opened is not None
        help = replaced("take it away", Span(self._lexed.source, brace.start, brace.end), "")
        self._report(
            "STM0203", "this `}` ends the scan, whose equations go on behind it", brace, (self._label(opened.token),), help
        )
        self._stack.append(opened)
        self._nesting += 1
        self._surplus -= 1
        self._separator = self._separator or Token("SEMICOLON", "", brace.end, brace.end)

    def _item_inside(self, at: int, item: Token) -> None:
        """An item stands in a scan whose brace is closed further on."""
        message = f"{quoted(item.text)} begins an item, and items stand outside of scans"
        self._report("STM0201", message, item, help="move it before the scan")
        self._separate(at, item)
        self._emit(item._replace(kind="BROKEN"))

    def _line_breaks_off(self, at: int, token: Token) -> bool:
        """Inside ( or [ a line begins that cannot belong there: the bracket before it was left open."""
        if self._begins_item(at):
            return True
        previous = self._previous()
        outdented = token.start - self._line_start <= self._indent
        return previous is not None and previous.kind in _OPERAND_ENDS and outdented and self._begins_statement(at)

    def _separate(self, at: int, token: Token) -> None:
        """Put the separator that stands before a token, unless the line goes on or nothing is there to be separated."""
        separator, self._separator = self._separator, None
        previous = self._previous()
        begins = previous is None or previous.kind == "LBRACE"
        if separator is not None and not begins and previous is not None and token.kind != "RBRACE":
            soft = separator.kind == "NEWLINE"
            goes_on = token.kind in _GOES_ON_BEFORE or (previous.kind in _GOES_ON_AFTER and not self._begins_statement(at))
            if not (soft and goes_on):
                self._out.append(Token("SEPARATOR", separator.text, separator.start, separator.end))
                begins = True
        if begins:
            if not self._stack:
                self._head = len(self._out) if token.kind == "SCAN" else None
                self._placed = False
            self._indent = token.start - self._line_start
            self._too_deep = False
            self._reset_nesting()

    def _contextual(self, at: int, token: Token) -> Token:
        """Give words the kind that their place asks for."""
        previous = self._previous()
        if self._in_graph() and token.kind in ITEM_KINDS:
            return token._replace(kind="NAME")
        if token.kind == "NAME":
            if self._brace_follows(at) and self._graph_follows(at, token.text):
                return token._replace(kind="GRAPH")
            begins = previous is not None and previous.kind in ("LBRACE", "SEPARATOR")
            if begins and token.text in SETTING_WORDS and self._stack and not self._in_graph() and not self._in_list():
                return token._replace(kind="SETTING")
        return token

    def _emit(self, token: Token) -> None:
        kind, previous = token.kind, self._previous()
        self._placed |= kind == "ON" and not self._stack
        if kind in _CLOSING:
            self._close(token)
            return
        if kind in _OPENING:
            graph = kind == "LBRACE" and previous is not None and previous.kind == "GRAPH"
            if kind == "LBRACE" and not self._stack and not graph:
                self._head = None
            self._stack.append(_Open(token, graph))
            self._nesting += 1
        elif kind == "CARET" or (kind == "MINUS" and (previous is None or previous.kind not in _OPERAND_ENDS)):
            self._top().nested += 1
            self._nesting += 1
        elif kind in OPERATORS or kind in ("COMMA", "EQUAL"):
            self._reset_nesting()
        if self._nesting > MAX_NESTING and not self._too_deep:
            self._too_deep = True
            self._report("STM0204", f"brackets, minus signs and powers are nested more than {MAX_NESTING} deep", token)
            token = token._replace(kind="BROKEN")
        self._out.append(token)

    def _top(self) -> _Open:
        return self._stack[-1] if self._stack else self._ground

    def _reset_nesting(self) -> None:
        top = self._top()
        self._nesting -= top.nested
        top.nested = 0

    def _pop(self) -> _Open:
        self._reset_nesting()
        self._nesting -= 1
        return self._stack.pop()

    # --- brackets without a partner

    def _close(self, token: Token) -> None:
        if not self._stack or (self._stack[-1].token.kind == "LBRACE" and token.kind != "RBRACE"):
            self._report("STM0203", f"this `{token.text}` closes nothing", token)
            self._out.append(token._replace(kind="BROKEN"))
            return
        last = self._pop()
        opened = last.token
        self._closed = last if not self._stack and opened.kind == "LBRACE" and not last.graph else None
        if opened.kind != _CLOSING[token.kind]:
            right = {"LPAR": ")", "LSQB": "]"}[opened.kind]
            self._report(
                "STM0203",
                f"this `{token.text}` cannot close `{opened.text}`",
                token,
                labels=(self._label(opened),),
                help=replaced(f"write `{right}`", Span(self._lexed.source, token.start, token.end), right),
            )
            token = token._replace(kind="BROKEN")
        self._out.append(token)

    def _unclosed_list(self) -> None:
        """Report the innermost open ( or [ and take all of them as closed."""
        opened = self._stack[-1].token
        while self._in_list():
            self._pop()
        if not self._too_deep:
            self._report_unclosed(opened)
        end = self._out[-1].end
        self._out.append(Token("BROKEN", "", end, end))

    def _unclosed_graph(self) -> None:
        """A brace stands inside the braces of a graph, which end before it."""
        self._report_unclosed(self._pop().token)
        end = self._out[-1].end
        self._out.append(Token("RBRACE", "", end, end))

    def _unclosed_brace(self) -> None:
        """Report the innermost open brace and close all of them for the parser."""
        if self._stack[-1].supplied:
            self._close_supplied(self._stack[-1].token.start)
        else:
            self._report_unclosed(self._stack[-1].token)
        end = self._out[-1].end
        while self._stack:
            self._pop()
            self._out.append(Token("RBRACE", "", end, end))
        self._separator = Token("SEMICOLON", "", end, end)

    def _close_supplied(self, at: int) -> None:
        """Have the edit that writes a missing brace write the closing one too, which is missing as well."""
        end, diagnostics = self._out[-1].end, self._lexed.diagnostics
        edit = Edit(Span(self._lexed.source, end, end), "\n}")
        for place, diagnostic in enumerate(diagnostics):
            match diagnostic.fixes:
                case (Rewrite(edits=edits),) if (
                    diagnostic.span is not None and diagnostic.span.start == at and diagnostic.code == "STM0201"
                ):
                    diagnostics[place] = replace(diagnostic, fixes=(Rewrite((*edits, edit)),))
                case _:
                    pass

    def _report_unclosed(self, opened: Token) -> None:
        end = self._out[-1].end
        closing = {"(": ")", "[": "]", "{": "}"}[opened.text]
        span = Span(self._lexed.source, end, end)
        piece = "\n}" if closing == "}" else closing
        self._lexed.report(
            "STM0202",
            f"`{opened.text}` is never closed: `{closing}` expected",
            end,
            end,
            labels=(self._label(opened),),
            fixes=(Rewrite((Edit(span, piece),)),),
        )

    def _label(self, opened: Token) -> Label:
        return Label(Span(self._lexed.source, opened.start, opened.end), "opened here")

    def _report(
        self, code: str, message: str, token: Token, labels: tuple[Label, ...] = (), help: str | Advice | None = None
    ) -> None:
        self._lexed.report(code, message, token.start, token.end, help=help, labels=labels)
