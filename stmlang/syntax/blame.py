"""What to say about a token that cannot stand where it stands."""

from __future__ import annotations

import re

from stmlang.source.advice import Advice, Edit, Fix, Rewrite, fixes_of, replaced, words_of
from stmlang.source.diagnostic import Diagnostic
from stmlang.source.span import SourceFile, Span
from stmlang.source.suggest import nearest
from stmlang.source.wording import listing, quoted, shortened
from stmlang.syntax.foreign import FORMS, ITEMS, STATEMENTS, as_use
from stmlang.syntax.layout import ITEM_KINDS, NAME_KINDS, OPERATORS
from stmlang.syntax.lexer import ITEM_WORDS, SETTING_WORDS, SIGNS, Token
from stmlang.syntax.settings import SETTING_CHOICES, SETTING_EXAMPLES, setting_near

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
_STARTS_VALUE = NAME_KINDS | {"NUMBER", "LPAR", "PRIMED"}
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def blame(source: SourceFile, tokens: list[Token], at: int, expected: set[str], braced: bool) -> Diagnostic:
    """The diagnostic for `tokens[at]`, where one of the kinds `expected` was; `braced` inside the braces of an item."""
    return _Blame(source, tokens, at, expected, braced).diagnostic()


class _Blame:
    def __init__(self, source: SourceFile, tokens: list[Token], at: int, expected: set[str], braced: bool) -> None:
        self.source, self.expected, self.braced = source, expected, braced
        self.tokens, self.at = tokens, at
        self.token = tokens[at]
        self.previous = tokens[at - 1] if at else None

    # --- places

    def _at(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    def _behind(self) -> Span:
        """Just behind the last token before the fault."""
        end = self.previous.end if self.previous else self.token.start
        return Span(self.source, end, end)

    def _here(self) -> Span:
        """The token, or the end of what came before where the statement ended too soon."""
        return self._behind() if self._ends() else self._at(self.token)

    def _ends(self) -> bool:
        return self.token.kind in ("SEPARATOR", "$END") or (self.token.kind == "RBRACE" and self.braced)

    def _without(self, token: Token) -> tuple[Fix, ...]:
        return (Rewrite((Edit(self._at(token), ""),)),)

    def _found(self) -> str:
        if self.token.kind == "$END":
            return "the end of the text"
        if self.token.kind == "SEPARATOR":
            return "`;`" if self.token.text == ";" else "the end of the line"
        return quoted(self.token.text or "}")

    def _last(self) -> str:
        """The token before, as far as there is one to be seen."""
        if self.previous is None or not self.previous.text.strip():
            return "what stands before it"
        return quoted(self.previous.text)

    def _after(self) -> str:
        visible = self.previous is not None and self.previous.text.strip()
        return f" after {self._last()}" if visible else ""

    # --- cases, the most telling first

    def diagnostic(self) -> Diagnostic:
        for case in (
            self._reserved,
            self._setting,
            self._foreign,
            self._misspelt,
            self._equal_sign,
            self._value,
            self._comma,
            self._outside,
            self._two_signs,
        ):
            special = case()
            if special is not None:
                return special
        return self._general()

    def _reserved(self) -> Diagnostic | None:
        """An item's keyword where a name should stand, or a setting's where an equation begins."""
        previous = self.previous
        if self.token.kind in ITEM_KINDS and "NAME" in self.expected:
            return self._reserved_word(self.token)
        if previous is None or self.token.kind not in ("EQUAL", "LSQB", "LPAR"):
            return None
        if previous.kind in ITEM_KINDS or previous.kind == "SETTING":
            return self._reserved_word(previous)
        return None

    def _reserved_word(self, word: Token) -> Diagnostic:
        setting = self._setting_meant(word) if word.kind == "SETTING" and self.token.kind == "EQUAL" else None
        if setting is not None:
            words = f"a setting has no `=`: write `{setting.text}`"
            message = f"`=` cannot follow the setting `{word.text}`"
            return Diagnostic("STM0206", message, self._at(self.token), help=words, fixes=setting.fixes)
        help = f"choose another name, such as `{word.text}_`"
        if word.kind == "SETTING" and self.token.kind == "EQUAL":
            help = f"a setting has no `=`: {SETTING_EXAMPLES[word.text]}; a gate has another name"
        what = "a setting" if word.kind == "SETTING" else "an item"
        return Diagnostic(
            "STM0206",
            f"{quoted(word.text)} cannot be a name here: the word begins {what}",
            self._at(word),
            help=help,
        )

    def _setting_meant(self, word: Token) -> Advice | None:
        """`stabilize = P` as `stabilize P`, where a word or a sense follows the sign, and the statement's end soon."""
        following = self.tokens[self.at + 1]
        if following.kind not in NAME_KINDS | {"PLUS", "MINUS"} or following.text not in SETTING_CHOICES.get(word.text, ()):
            return None
        behind = Span(self.source, word.end, following.start)
        return replaced(f"{word.text} {following.text}", behind, " ")

    def _setting(self) -> Diagnostic | None:
        if self.previous is None or self.previous.kind != "SETTING":
            return None
        word = self.previous.text
        message = f"`{word}` needs a word behind it" if self._ends() else f"{self._found()} cannot follow `{word}`"
        return Diagnostic("STM0201", message, self._here(), help=SETTING_EXAMPLES[word])

    def _equal_sign(self) -> Diagnostic | None:
        if "EQUAL" not in self.expected or not self.expected <= {"EQUAL", "LSQB"}:
            return None
        if self.token.kind in OPERATORS and self.token.kind != "CARET" and self.braced and "LSQB" in self.expected:
            return Diagnostic(
                "STM0205",
                f"an equation is `name = value`: `=` expected, found {self._found()}",
                self._here(),
                notes=("a statement begins with the name that it gives a value to",),
                help="a gate is said once: write all of it behind one `=`" if self._augmented() else None,
            )
        help = self._definition()
        message = f"`=` expected{self._after()}, found {self._found()}"
        return Diagnostic("STM0205", message, self._behind(), help=words_of(help), fixes=fixes_of(help))

    def _definition(self) -> Advice | None:
        """`def f(a) { return a }` and `def f(a) -> a` as `def f(a) = a`."""
        first = self._first()
        if first is None or self.previous is None or self.tokens[first].kind != "DEF":
            return None
        head = Span(self.source, self.tokens[first].start, self.previous.end).text
        words = f"a definition is one expression: `{shortened(head)} = ...`"
        if self.token.kind == "ARROW":
            return replaced(words, self._at(self.token), "=")
        if self.token.kind != "LBRACE":
            return Advice(words)
        following = self.tokens[self.at + 1]
        value = self.tokens[self.at + 2] if following.text == "return" else following
        last = self.tokens[self._statement_end() - 1]
        if last.kind != "RBRACE" or value.start >= last.start:
            return Advice(words)
        before = self.tokens[self._statement_end() - 2].end
        edits = (Edit(Span(self.source, self.token.start, value.start), "= "), Edit(Span(self.source, before, last.end), ""))
        return Advice(words, (Rewrite(edits),))

    def _foreign(self) -> Diagnostic | None:
        """A word of another language at the beginning of a statement, or behind a value that is complete."""
        first, word = self._first(), self.token.text
        begins = first is not None and self.tokens[first].text in STATEMENTS and self.at <= first + 2
        if self.braced and begins and first is not None and (self.at > first or self.token.kind == "FROM"):
            return self._no_word(self.tokens[first], STATEMENTS[self.tokens[first].text])
        if self.braced and self.token.kind == "NAME" and word in STATEMENTS and "SEPARATOR" in self.expected:
            return self._no_word(self.token, STATEMENTS[word])
        previous = self.previous
        if previous is not None and previous.kind == "NAME" and previous.text == "lambda" and "STAR" in self.expected:
            return self._no_word(previous, f"{FORMS['def']}, outside of the scan")
        return None

    def _no_word(self, word: Token, help: str) -> Diagnostic:
        return Diagnostic("STM0102", f"{quoted(word.text)} is not a word of the language", self._at(word), help=help)

    def _first(self) -> int | None:
        """Where the statement at hand begins."""
        for back in range(self.at, -1, -1):
            if back == 0 or self.tokens[back - 1].kind in ("SEPARATOR", "LBRACE", "BROKEN"):
                return back
        return None

    def _misspelt(self) -> Diagnostic | None:
        """`stabilise P`, `let a = 1`: two words where an equation begins. The first is a setting misspelt, or too much."""
        previous = self.previous
        if not self.braced or previous is None or previous.kind != "NAME" or self._first() != self.at - 1:
            return None
        if "EQUAL" not in self.expected or self.token.kind not in NAME_KINDS | {"PLUS", "MINUS"}:
            return None
        following = self.tokens[self.at + 1].kind if self.at + 1 < len(self.tokens) else "$END"
        near = setting_near(previous.text)
        if near is not None and following not in ("EQUAL", "LSQB"):
            help = replaced(f"did you mean `{near}`?", self._at(previous), near)
            message = f"there is no setting {quoted(previous.text)}"
            note = f"the settings are {listing([f'`{word}`' for word in SETTING_WORDS], 'and')}"
            return Diagnostic("STM2033", message, self._at(previous), (note,), help.text, fixes=help.fixes)
        if self.token.kind not in NAME_KINDS or following not in ("EQUAL", "LSQB"):
            return None
        message = f"an equation begins with the name of its gate, and {quoted(previous.text)} stands before it"
        help = Advice(
            f"leave `{shortened(previous.text)}` away: `{shortened(self.token.text)} = ...`",
            (Rewrite((Edit(Span(self.source, previous.start, self.token.start), ""),)),),
        )
        return Diagnostic("STM0205", message, self._at(previous), help=help.text, fixes=help.fixes)

    def _augmented(self) -> bool:
        """Whether this is `+=` or one of its kin."""
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].kind == "EQUAL"

    def _value(self) -> Diagnostic | None:
        if "NUMBER" not in self.expected:
            return None
        if self.token.kind == "PLUS":
            return Diagnostic(
                "STM0208",
                "a value has no leading `+`",
                self._at(self.token),
                help="leave the `+` away",
                fixes=self._without(self.token),
            )
        closing = self.token.kind in ("RPAR", "RSQB")
        if closing and self.previous is not None and self.previous.kind == "COMMA":
            return Diagnostic(
                "STM0208",
                "a list does not end with a comma",
                self._at(self.previous),
                help="remove the comma",
                fixes=self._without(self.previous),
            )
        if self.token.kind == "STRING":
            return Diagnostic("STM0208", "a value is expected, and a string is none", self._at(self.token))
        if self.token.kind == "LSQB":
            help = "square brackets stand behind a name and hold its indices; a value that varies is a gate with an index"
            return Diagnostic("STM0208", "a list is no value", self._at(self.token), help=help)
        if self.token.kind == "PRIMED":
            return Diagnostic(
                "STM0208",
                f"{quoted(self.token.text)} is an index and no value",
                self._at(self.token),
                help="a prime is for an index in square brackets or behind `over =`",
            )
        return Diagnostic("STM0208", f"a value is missing{self._after()}: found {self._found()}", self._here())

    def _comma(self) -> Diagnostic | None:
        """Two entries of a list side by side."""
        if "COMMA" not in self.expected or not self.expected & {"RPAR", "RSQB"} or self.token.kind not in _STARTS_VALUE:
            return None
        help = "write `*` for a product" if "STAR" in self.expected else None
        return Diagnostic("STM0207", f"`,` or `{self._closing()}` expected before {self._found()}", self._behind(), help=help)

    def _closing(self) -> str:
        return ")" if "RPAR" in self.expected else "]"

    def _outside(self) -> Diagnostic | None:
        """Something at the top of a text that is no item."""
        if self.braced or "TOPOLOGY" not in self.expected:
            return None
        help = self._item_meant()
        return Diagnostic(
            "STM0210",
            f"an item is expected, found {self._found()}",
            self._at(self.token),
            notes=("equations and settings stand between the braces of a scan",) if self.token.kind in NAME_KINDS else (),
            help=words_of(help),
            fixes=fixes_of(help),
        )

    def _item_meant(self) -> str | Advice:
        """What to write for a word with which no item begins."""
        word, at = self.token.text, self._at(self.token)
        item = ITEMS.get(word.lower())
        if item == "use":
            return Advice(FORMS["use"], as_use(self.source, self.token.start))
        if item is not None:
            return FORMS[item]
        near = nearest(word, ITEM_WORDS)
        return (
            replaced(f"did you mean `{near}`?", at, near) if near else "an item begins with `topology`, `def`, `use` or `scan`"
        )

    def _two_signs(self) -> Diagnostic | None:
        """Signs that make sense alone but not here: a second `=`, a second bracket, a second arrow, a number for a node."""
        kind, previous = self.token.kind, self.previous
        here = self._at(self.token)
        if kind == "DOT" and previous is not None and "SEPARATOR" in self.expected:
            help = self._parts()
            return Diagnostic("STM0201", "nothing has parts behind a `.`", here, help=help.text, fixes=help.fixes)
        if kind == "COMMA" and "SEPARATOR" in self.expected:
            return Diagnostic(
                "STM0201", "a statement has one value", here, help="leave the comma away", fixes=self._without(self.token)
            )
        if kind == "MINUS" and "ARROW" in self.expected:
            return self._undirected()
        if kind in ("PLUS", "MINUS") and "RSQB" in self.expected and "EQUAL" in self.expected:
            help = "what came before a node is reached by the scan itself: `transition` carries it on, `mark` reads it"
            return Diagnostic("STM0201", "there is no arithmetic of indices", here, help=help)
        if kind == "ARROW" and "SEPARATOR" in self.expected:
            return Diagnostic("STM0201", "only one `->` to an arrow", here, help="write `a -> b; b -> c`")
        if kind == "LSQB" and previous is not None and previous.kind == "RSQB":
            return Diagnostic("STM0201", "all indices stand in one bracket", here, help="write `name[out, in]`")
        if kind == "EQUAL" and "SEPARATOR" in self.expected:
            return Diagnostic("STM0201", "an equation has one `=`", here)
        if kind == "NUMBER" and "NAME" in self.expected:
            if not self.braced and self.previous is not None and self.previous.kind in ("LPAR", "COMMA"):
                help = "an axis has a name, and its size if that is known: `grid(rows = 14, cols)`"
                return Diagnostic("STM0201", f"a name is expected, found the number {self._found()}", here, help=help)
            if self.expected & {"ARROW"} or (previous is not None and previous.kind in ("ARROW", "LBRACE", "SEPARATOR")):
                help = "nodes have names: `n1 -> n2`"
                return Diagnostic("STM0201", f"a name is expected, found the number {self._found()}", here, help=help)
            inside = self.braced and "RSQB" not in self.expected and previous is not None and previous.kind in ("LSQB", "COMMA")
            help = "indices have names, `out`, `in`, `key`; no entry is reached by its number" if inside else None
            return Diagnostic("STM0201", f"a name is expected, found the number {self._found()}", here, help=help)
        if "SEPARATOR" in self.expected and (kind in _STARTS_VALUE or kind in ITEM_KINDS or kind in ("SETTING", "GRAPH")):
            return Diagnostic(
                "STM0209",
                f"{self._found()} cannot follow {self._last()} on this line",
                here,
                help="begin a new line, put a `;` between two statements, or write the operator or bracket that is missing",
            )
        return None

    def _undirected(self) -> Diagnostic:
        """`a -- b`, or `a - b`: every edge has a sense."""
        following = self.tokens[self.at + 1]
        last = following if following.kind == "MINUS" else self.token
        span = Span(self.source, self.token.start, last.end)
        help = replaced("an edge has a sense: `a -> b`", span, "->")
        return Diagnostic("STM0201", f"{quoted(span.text)} is no edge", span, help=help.text, fixes=help.fixes)

    def _parts(self) -> Advice:
        """`torch.nn.sigmoid` as `sigmoid`; what stands behind a value is called instead."""
        assert self.previous is not None
        last = self.at
        while self.tokens[last].kind == "DOT" and self.tokens[last + 1].kind == "NAME":
            last += 2
        if self.previous.kind != "NAME" or last == self.at:
            return Advice("functions stand before what they take: `f(a)`")
        if self.tokens[last].kind != "LPAR":
            return Advice("a product is written `*`, and along an index `sum(a * b, over = key)`")
        name = self.tokens[last - 1]
        span = Span(self.source, self.previous.start, name.start)
        return replaced(f"functions are called by their names alone: `{shortened(name.text)}`", span, "")

    def _general(self) -> Diagnostic:
        expected = self._wanted()
        message = f"{expected} expected{self._after()}, found {self._found()}" if expected else f"unexpected {self._found()}"
        help = self._form()
        return (
            Diagnostic("STM0201", message, self._here(), help=help.text, fixes=help.fixes)
            if help
            else Diagnostic("STM0201", message, self._here())
        )

    def _form(self) -> Advice | None:
        """How the item at hand is written."""
        first = self._first()
        kind = None if first is None or self.braced else self.tokens[first].kind
        if kind == "SCAN" and self.expected & {"ON", "LBRACE"}:
            return Advice("a scan is written `scan name on chain(time) { ... }`")
        if kind == "USE" and first is not None:
            end = self.tokens[self._statement_end()].start
            span = Span(self.source, self.tokens[first + 1].start, end)
            path = span.text.strip().strip('"').removesuffix(".stm").replace("/", ".")
            words = f"a path has dots: `use {path}`"
            return replaced(words, span, path) if _PATH.fullmatch(path) else Advice("a path has dots: `use std.gates (gate)`")
        return None

    def _statement_end(self) -> int:
        end = self.at
        while self.tokens[end].kind not in ("SEPARATOR", "$END"):
            end += 1
        return end

    def _wanted(self) -> str:
        """What could have come, in words; operators only where nothing else could."""
        kinds = self.expected - {"BROKEN"}
        if kinds & NAME_KINDS and "NAME" in kinds:
            kinds = (kinds - NAME_KINDS) | {"NAME"}
        if kinds >= OPERATORS:
            kinds = kinds - OPERATORS - {"LSQB"}
        if "SEPARATOR" in kinds:
            kinds = kinds - {"$END"}
        return listing([_WORDS[kind] for kind in sorted(kinds, key=_ORDER.index)])
