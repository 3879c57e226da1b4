"""What to say where a statement does not begin as one does: a reserved word, one of another language, no `=`."""

from __future__ import annotations

from stmlang.source.advice import Advice, Edit, Rewrite, fixes_of, replaced, words_of
from stmlang.source.diagnostic import Diagnostic
from stmlang.source.span import Span
from stmlang.source.wording import listing, quoted, shortened
from stmlang.syntax.fault import Fault
from stmlang.syntax.foreign import FORMS, STATEMENTS
from stmlang.syntax.layout import ITEM_KINDS, NAME_KINDS, OPERATORS
from stmlang.syntax.lexer import SETTING_WORDS, Token
from stmlang.syntax.settings import SETTING_CHOICES, SETTING_EXAMPLES, setting_near


def reserved(fault: Fault) -> Diagnostic | None:
    """An item's keyword where a name should stand, or a setting's where an equation begins."""
    previous = fault.previous
    if fault.token.kind in ITEM_KINDS and "NAME" in fault.expected:
        return _reserved_word(fault, fault.token)
    if previous is None or fault.token.kind not in ("EQUAL", "LSQB", "LPAR"):
        return None
    if previous.kind in ITEM_KINDS or previous.kind == "SETTING":
        return _reserved_word(fault, previous)
    return None


def _reserved_word(fault: Fault, word: Token) -> Diagnostic:
    without_sign = _setting_meant(fault, word) if word.kind == "SETTING" and fault.token.kind == "EQUAL" else None
    if without_sign is not None:
        words = f"a setting has no `=`: write `{without_sign.text}`"
        message = f"`=` cannot follow the setting `{word.text}`"
        return Diagnostic("STM0206", message, fault.span_of(fault.token), help=words, fixes=without_sign.fixes)
    help = f"choose another name, such as `{word.text}_`"
    if word.kind == "SETTING" and fault.token.kind == "EQUAL":
        help = f"a setting has no `=`: {SETTING_EXAMPLES[word.text]}; a gate has another name"
    what = "a setting" if word.kind == "SETTING" else "an item"
    return Diagnostic(
        "STM0206",
        f"{quoted(word.text)} cannot be a name here: the word begins {what}",
        fault.span_of(word),
        help=help,
    )


def _setting_meant(fault: Fault, word: Token) -> Advice | None:
    """`stabilize = P` as `stabilize P`, where a word or a sense follows the sign, and the statement's end soon."""
    following = fault.tokens[fault.at + 1]
    if following.kind not in NAME_KINDS | {"PLUS", "MINUS"} or following.text not in SETTING_CHOICES.get(word.text, ()):
        return None
    behind = Span(fault.source, word.end, following.start)
    return replaced(f"{word.text} {following.text}", behind, " ")


def setting(fault: Fault) -> Diagnostic | None:
    """A setting without a word behind it, or with something else."""
    if fault.previous is None or fault.previous.kind != "SETTING":
        return None
    word = fault.previous.text
    message = (
        f"`{word}` needs a word behind it" if fault.ends_statement() else f"{fault.token_in_words()} cannot follow `{word}`"
    )
    return Diagnostic("STM0201", message, fault.place(), help=SETTING_EXAMPLES[word])


def foreign(fault: Fault) -> Diagnostic | None:
    """A word of another language at the beginning of a statement, or behind a value that is complete."""
    first, word = fault.statement_start(), fault.token.text
    begins = first is not None and fault.tokens[first].text in STATEMENTS and fault.at <= first + 2
    if fault.braced and begins and first is not None and (fault.at > first or fault.token.kind == "FROM"):
        return _no_word(fault, fault.tokens[first], STATEMENTS[fault.tokens[first].text])
    if fault.braced and fault.token.kind == "NAME" and word in STATEMENTS and "SEPARATOR" in fault.expected:
        return _no_word(fault, fault.token, STATEMENTS[word])
    previous = fault.previous
    if previous is not None and previous.kind == "NAME" and previous.text == "lambda" and "STAR" in fault.expected:
        return _no_word(fault, previous, f"{FORMS['def']}, outside of the scan")
    return None


def _no_word(fault: Fault, word: Token, help: str) -> Diagnostic:
    return Diagnostic("STM0102", f"{quoted(word.text)} is not a word of the language", fault.span_of(word), help=help)


def misspelt(fault: Fault) -> Diagnostic | None:
    """`stabilise P`, `let a = 1`: two words where an equation begins. The first is a setting misspelt, or too much."""
    previous = fault.previous
    if not fault.braced or previous is None or previous.kind != "NAME" or fault.statement_start() != fault.at - 1:
        return None
    if "EQUAL" not in fault.expected or fault.token.kind not in NAME_KINDS | {"PLUS", "MINUS"}:
        return None
    following = fault.tokens[fault.at + 1].kind if fault.at + 1 < len(fault.tokens) else "$END"
    near = setting_near(previous.text)
    if near is not None and following not in ("EQUAL", "LSQB"):
        help = replaced(f"did you mean `{near}`?", fault.span_of(previous), near)
        message = f"there is no setting {quoted(previous.text)}"
        note = f"the settings are {listing([f'`{word}`' for word in SETTING_WORDS], 'and')}"
        return Diagnostic("STM2033", message, fault.span_of(previous), (note,), help.text, fixes=help.fixes)
    if fault.token.kind not in NAME_KINDS or following not in ("EQUAL", "LSQB"):
        return None
    message = f"an equation begins with the name of its gate, and {quoted(previous.text)} stands before it"
    help = Advice(
        f"leave `{shortened(previous.text)}` away: `{shortened(fault.token.text)} = ...`",
        (Rewrite((Edit(Span(fault.source, previous.start, fault.token.start), ""),)),),
    )
    return Diagnostic("STM0205", message, fault.span_of(previous), help=help.text, fixes=help.fixes)


def equal_sign(fault: Fault) -> Diagnostic | None:
    """An equation or a definition without its `=`."""
    if "EQUAL" not in fault.expected or not fault.expected <= {"EQUAL", "LSQB"}:
        return None
    if fault.token.kind in OPERATORS and fault.token.kind != "CARET" and fault.braced and "LSQB" in fault.expected:
        return Diagnostic(
            "STM0205",
            f"an equation is `name = value`: `=` expected, found {fault.token_in_words()}",
            fault.place(),
            notes=("a statement begins with the name that it gives a value to",),
            help="a gate is said once: write all of it behind one `=`" if _augmented(fault) else None,
        )
    help = _definition(fault)
    message = f"`=` expected{fault.after_previous()}, found {fault.token_in_words()}"
    return Diagnostic("STM0205", message, fault.behind(), help=words_of(help), fixes=fixes_of(help))


def _augmented(fault: Fault) -> bool:
    """Whether this is `+=` or one of its kin."""
    return fault.at + 1 < len(fault.tokens) and fault.tokens[fault.at + 1].kind == "EQUAL"


def _definition(fault: Fault) -> Advice | None:
    """`def f(a) { return a }` and `def f(a) -> a` as `def f(a) = a`."""
    first = fault.statement_start()
    if first is None or fault.previous is None or fault.tokens[first].kind != "DEF":
        return None
    head = Span(fault.source, fault.tokens[first].start, fault.previous.end).text
    words = f"a definition is one expression: `{shortened(head)} = ...`"
    if fault.token.kind == "ARROW":
        return replaced(words, fault.span_of(fault.token), "=")
    if fault.token.kind != "LBRACE":
        return Advice(words)
    following = fault.tokens[fault.at + 1]
    value = fault.tokens[fault.at + 2] if following.text == "return" else following
    last = fault.tokens[fault.statement_end() - 1]
    if last.kind != "RBRACE" or value.start >= last.start:
        return Advice(words)
    before = fault.tokens[fault.statement_end() - 2].end
    edits = (Edit(Span(fault.source, fault.token.start, value.start), "= "), Edit(Span(fault.source, before, last.end), ""))
    return Advice(words, (Rewrite(edits),))
