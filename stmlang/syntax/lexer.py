"""A text as words and signs, comments set aside.

Signs of other languages are read as what was meant, with a diagnostic, so that one slip does not hide the next. What has no
meaning at all becomes a token of kind `BROKEN`, at which the parser gives the statement up without another message.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import NamedTuple

from stmlang.source.advice import Advice, Fix, fixes_of, inserted, replaced, words_of
from stmlang.source.diagnostic import Diagnostic, Label
from stmlang.source.span import SourceFile, Span
from stmlang.source.wording import quoted, shortened
from stmlang.syntax.tree import Comment

MAX_TOKENS = 100_000
"""Words, signs and comments in a text; what passes this is refused (STM0004) so that every later stage stays fast."""
MAX_ERRORS = 100
"""How many syntax errors are reported; after that many, the rest of a text tells nothing new."""

ITEM_WORDS = {"topology": "TOPOLOGY", "scan": "SCAN", "def": "DEF", "use": "USE"}
SETTING_WORDS = ("directions", "stabilize", "normalize", "read")
_SOFT_WORDS = {"on": "ON", "from": "FROM", "as": "AS"}

SIGNS = {
    "(": "LPAR",
    ")": "RPAR",
    "[": "LSQB",
    "]": "RSQB",
    "{": "LBRACE",
    "}": "RBRACE",
    "+": "PLUS",
    "-": "MINUS",
    "*": "STAR",
    "/": "SLASH",
    "^": "CARET",
    "=": "EQUAL",
    ",": "COMMA",
    ".": "DOT",
    ";": "SEMICOLON",
    "->": "ARROW",
    "<=": "ATMOST",
}

_FOREIGN = {
    "**": ("^", "a power is written `^`"),
    "==": ("=", "an equation has one `=`"),
    ":=": ("=", "an equation has one `=`"),
    "=>": ("->", "an edge is written `->`"),
    "<-": ("->", "an edge is written from its tail to its head, `tail -> head`"),
    "→": ("->", "an edge is written `->`"),
    "<": ("<=", "a bound is written `<=`"),
    "≤": ("<=", "a bound is written `<=`"),
    "−": ("-", "the minus is the one on the keyboard, `-`"),
    "–": ("-", "the minus is the one on the keyboard, `-`"),
    "—": ("-", "the minus is the one on the keyboard, `-`"),
    "×": ("*", "a product is written `*`"),
    "·": ("*", "a product is written `*`"),
    "⋅": ("*", "a product is written `*`"),
    "∗": ("*", "a product is written `*`"),
    "÷": ("/", "a quotient is written `/`"),
}

_CONDITION = "there are no conditions: `max`, `min`, `clip` and `relu` choose between values, `sigmoid` blends them"
_STRAY = {
    "'": "a name may end in two primes at most",
    ":": "sizes and values are given by `=`, and what belongs to a scan stands between `{` and `}`",
    "@": "a product along an index is `sum(a * b, over = key)`",
    "%": "there is no remainder: `sin` and `cos` are what repeats",
    "\\": "a line goes on inside brackets, and behind an operator",
    **dict.fromkeys("<>?!&|", _CONDITION),
}
"""What to do instead of what a character means in other languages."""

_TOKEN = re.compile(
    r"""
    (?P<space>   [ \t\v\f\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000\ufeff]+ )
  | (?P<newline> [\r\n] (?: [ \t]* [\r\n] )* )
  | (?P<comment> \# [^\r\n]* )
  | (?P<word>    [^\W\d]\w*'{0,2} )
  | (?P<number>  (?: [0-9] | \.[0-9] ) (?: [eE][+-](?=[0-9]) | [\w.] )* )
  | (?P<string>  " [^"\r\n]* " | " [^"\r\n]*? (?= [ \t]{0,9} (?: as [ \t]{1,9} \w{1,30} [ \t]{0,9} )? (?: [{;\r\n] | \Z ) ) )
  | (?P<slashes> // [^\r\n]* | /\* [^*]{0,2000} (?: \*(?!/) [^*]{0,200} ){0,40} \*/ | /\* [^\r\n]* )
  | (?P<quoted>  (?<![\w']) (?: ' [^'\r\n]* ' | ' [^'\r\n]*? (?= [ \t]{0,9} (?: [{;\r\n] | \Z ) ) | [“”„] [^“”"\r\n]* [“”"]
                                | [‘’‚] [^‘’'\r\n]* [‘’'] | « [^«»\r\n]* » ) )
  | (?P<foreign> \*\* | == | := | => | <-(?!-) | → | < (?!=) | [≤−–—×·⋅∗÷] )
  | (?P<sign>    -> | <= | [()\[\]{}+\-*/^=,.;] )
  | (?P<stray>   . )
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTES = "'“”„\"‘’‚«»"
_LATEX = re.compile(r"\\([A-Za-z]+)")
_LATEX_WORDS = {"sigma": "sigmoid", "cdot": "*", "times": "*", "odot": "*", "ast": "*", "div": "/", "le": "<=", "leq": "<="}
_DEF_HEAD = re.compile(r"[ \t]*(def[ \t]+\w+[ \t]*\([^()\r\n]*\))[ \t]*\Z")
_DEF_BODY = re.compile(r":\s*(?:return\b[ \t]*)?(?=\S)")
NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class Token(NamedTuple):
    """`kind` is a terminal of `stm.lark`, or NEWLINE, SEMICOLON or BROKEN; `start` and `end` are offsets into the text."""

    kind: str
    text: str
    start: int
    end: int


@dataclass
class Lexed:
    """All tokens in order, line ends included, ending in one of kind `$END` right behind the last of the others."""

    source: SourceFile
    tokens: list[Token] = field(default_factory=list[Token])
    comments: list[Comment] = field(default_factory=list[Comment])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    cut_off: Diagnostic | None = None  # where MAX_TOKENS was reached

    def report(
        self,
        code: str,
        message: str,
        start: int,
        end: int,
        *,
        help: str | Advice | None = None,
        labels: tuple[Label, ...] = (),
        fixes: tuple[Fix, ...] = (),
    ) -> None:
        """Note a fault. Faults come in the order of the text, so those past the limit are not wanted."""
        if len(self.diagnostics) < MAX_ERRORS:
            span = Span(self.source, start, end)
            self.diagnostics.append(
                Diagnostic(code, message, span, help=words_of(help), labels=labels, fixes=fixes or fixes_of(help))
            )


def lex(source: SourceFile) -> Lexed:
    """Split a text. Never fails: what is wrong is in the result's `diagnostics`."""
    result = Lexed(source)
    add = result.tokens.append
    line_is_empty, last_end, count = True, 0, 0
    for match in _TOKEN.finditer(source.text):
        kind, text, start, end = match.lastgroup, match.group(), match.start(), match.end()
        if kind == "space":
            continue
        if kind == "newline":
            add(Token("NEWLINE", text, start, end))
            line_is_empty = True
            continue
        if kind == "comment":
            result.comments.append(Comment(text.rstrip(), line_is_empty, Span(source, start, start + len(text.rstrip()))))
        elif kind == "word":
            add(_word(result, text, start))
        elif kind == "sign":
            add(Token(SIGNS[text], text, start, end))
        else:
            token = _other(result, kind or "stray", text, start)
            if token is not None:
                add(token)
        line_is_empty, last_end = False, end
        count += 1
        if count > MAX_TOKENS:
            message = f"the text has more than {MAX_TOKENS:,} words, signs and comments"
            result.cut_off = Diagnostic("STM0004", message, Span(source, start, end))
            break
    add(Token("$END", "", last_end, last_end))
    return result


def _word(result: Lexed, text: str, start: int) -> Token:
    """A name or a keyword; a name that is not ASCII is reported and taken as a name."""
    end = start + len(text)
    if not text.isascii():
        result.report("STM0105", f"{quoted(text)} is not a name", start, end, help=_ascii_help(result, text, end))
        return Token("NAME", text, start, end)
    if text.endswith("'"):
        return Token("PRIMED", text, start, end)
    return Token(ITEM_WORDS.get(text) or _SOFT_WORDS.get(text) or "NAME", text, start, end)


def _ascii_help(result: Lexed, text: str, end: int) -> str:
    """What to write for a name with letters beyond ASCII, which ends at `end`: accents dropped, Greek letters spelled out."""
    if text == "σ" and result.source.text[end : end + 1] == "(" and not re.search(r"\bdef[ \t]+σ", result.source.text):
        return "write `sigmoid`"
    characters: list[str] = []
    for character in unicodedata.normalize("NFKD", text):
        words = unicodedata.name(character, "").split()
        if character.isascii():
            characters.append(character)
        elif words[:1] == ["GREEK"] and words[2:3] == ["LETTER"]:
            characters.append(words[3].lower() if words[1] == "SMALL" else words[3].capitalize())
    spelled = "".join(characters)
    if unicodedata.normalize("NFKD", text[-1]).isdigit() and not text[-1].isascii():
        return "a power is written `^`, as in `x^2`"
    return f"write {quoted(spelled)}" if spelled.isidentifier() else "names are made of a-z, A-Z, 0-9 and `_`"


def _other(result: Lexed, kind: str, text: str, start: int) -> Token | None:
    """A number, a string, or something that does not belong."""
    end = start + len(text)
    match kind:
        case "number":
            return _number(result, text, start)
        case "string":
            if len(text) < 2 or not text.endswith('"'):
                result.report(
                    "STM0104",
                    "the string does not end on this line",
                    start,
                    end,
                    help=inserted('add the closing `"`', Span(result.source, start, end), '"'),
                )
                return Token("STRING", text + '"', start, end)
            return Token("STRING", text, start, end)
        case "quoted":
            path = f'"{text.strip(_QUOTES)}"'
            result.report(
                "STM0102", "strings stand between straight double quotes", start, end, help=_put(result, start, end, path)
            )
            return Token("STRING", path, start, end)
        case "slashes":
            result.report(
                "STM0102",
                f"a comment starts with `#`, not with `{text[:2]}`",
                start,
                start + 2,
                help=_comment(result, text, start),
            )
            return None
        case "foreign":
            meant = _FOREIGN[text][0]
            result.report(
                "STM0102",
                f"`{text}` is not a sign of the language",
                start,
                end,
                help=_meant(text, Span(result.source, start, end)),
            )
            return Token(SIGNS[meant], meant, start, end)
        case _:
            return _stray(result, text, start)


def _meant(text: str, span: Span) -> Advice:
    """A sign of another language as one of this. What would change the meaning in its place is left to the writer."""
    meant, rule = _FOREIGN[text]
    return Advice(rule) if text in ("<-", "<") else replaced(rule, span, meant)


def _put(result: Lexed, start: int, end: int, text: str) -> Advice:
    return replaced(f"write {quoted(text)}", Span(result.source, start, end), text)


def _comment(result: Lexed, text: str, start: int) -> Advice:
    """A comment of another language as one of this; of one in the middle of a line only the words."""
    lines, span = text[2:].removesuffix("*/").splitlines(), Span(result.source, start, start + len(text))
    ends = result.source.text[span.end : span.end + 1] in ("", "\r", "\n")
    comment = "\n".join(f"# {line.strip(' *')}".rstrip() for line in lines or [""])
    return replaced("write `# ...`", span, comment) if ends else Advice("write `# ...` at the end of the line")


def _stray(result: Lexed, text: str, start: int) -> Token:
    """A character without a meaning; a run of the same is reported once."""
    previous = result.tokens[-1] if result.tokens else None
    if previous is None or previous.kind != "BROKEN" or previous.end != start or previous.text != text:
        shown = f"`{text}`" if text.isprintable() else f"U+{ord(text):04X}"
        name = unicodedata.name(text, "") if not text.isascii() else ""
        described = f"{shown} ({name.lower()})" if name else shown
        extra = _latex(result, start) or _body(result, start) or _STRAY.get(text)
        result.report("STM0101", f"stray character {described}", start, start + 1, help=extra)
    return Token("BROKEN", text, start, start + 1)


def _latex(result: Lexed, start: int) -> Advice | None:
    """`\\sigma` as `sigmoid`."""
    match = _LATEX.match(result.source.text, start)
    if match is None:
        return None
    meant = _LATEX_WORDS.get(match[1], match[1])
    return replaced(f"this is no LaTeX: write `{meant}`", Span(result.source, start, match.end()), meant)


def _body(result: Lexed, start: int) -> Advice | None:
    """`def f(a): return a` as `def f(a) = a`."""
    text = result.source.text
    body = _DEF_BODY.match(text, start)
    head = _DEF_HEAD.match(text[max(text.rfind("\n", 0, start) + 1, start - 1000) : start])
    if body is None or head is None:
        return None
    blank = "" if text[start - 1].isspace() else " "
    words = f"a definition is one expression: `{shortened(head[1])} = ...`"
    return replaced(words, Span(result.source, start, body.end()), f"{blank}= ")


def _number(result: Lexed, text: str, start: int) -> Token:
    end = start + len(text)
    token = Token("NUMBER", text, start, end)
    if NUMBER.fullmatch(text):
        if float(text) == float("inf"):
            result.report(
                "STM0103", f"{quoted(text)} is too large for double precision", start, end, help="1.797e308 is the largest"
            )
            return Token("NUMBER", "0", start, end)
        return token
    result.report("STM0103", f"{quoted(text)} is not a number", start, end, help=_number_help(text))
    return Token("NUMBER", "0", start, end)


def _number_help(text: str) -> str:
    """What is wrong with a malformed number, by the most likely slip."""
    if ".." in text:
        return "there are no ranges here; a number has one point"
    if re.fullmatch(r"[0-9]+\.", text):
        return f"digits are needed after the point: write {quoted(text + '0')} or {quoted(text[:-1])}"
    if re.fullmatch(r"[0-9.]+[eE]", text):
        return "digits are needed after the `e`, as in `1e-3`"
    if re.fullmatch(r"[0-9]+(_[0-9]+)+", text):
        return f"digits are not grouped: write {quoted(text.replace('_', ''))}"
    if (glued := re.fullmatch(rf"({NUMBER.pattern})([A-Za-z_]\w*)", text)) is not None:
        return f"a product needs its sign: write {quoted(f'{glued[1]} * {glued[2]}')}; a name cannot start with a digit"
    return "numbers look like `1`, `.5` or `2.5e-3`"
