"""What to say where a value, an entry of a list or a sign is wrong."""

from __future__ import annotations

from stmlang.source.advice import Advice, replaced
from stmlang.source.diagnostic import Diagnostic
from stmlang.source.span import Span
from stmlang.source.wording import quoted, shortened
from stmlang.syntax.fault import Fault
from stmlang.syntax.layout import ITEM_KINDS, NAME_KINDS

_STARTS_VALUE = NAME_KINDS | {"NUMBER", "LPAR", "PRIMED"}


def value(fault: Fault) -> Diagnostic | None:
    """What stands where a value should, and is none."""
    if not {"NUMBER", "LPAR"} <= fault.expected:
        return None
    if fault.token.kind == "PLUS":
        return Diagnostic(
            "STM0208",
            "a value has no leading `+`",
            fault.span_of(fault.token),
            help="leave the `+` away",
            fixes=fault.without(fault.token),
        )
    closing = fault.token.kind in ("RPAR", "RSQB")
    if closing and fault.previous is not None and fault.previous.kind == "COMMA":
        return Diagnostic(
            "STM0208",
            "a list does not end with a comma",
            fault.span_of(fault.previous),
            help="remove the comma",
            fixes=fault.without(fault.previous),
        )
    if fault.token.kind == "STRING":
        return Diagnostic("STM0208", "a value is expected, and a string is none", fault.span_of(fault.token))
    if fault.token.kind == "PRIMED":
        return Diagnostic(
            "STM0208",
            f"{quoted(fault.token.text)} is an index and no value",
            fault.span_of(fault.token),
            help="a prime is for an index in square brackets or behind `over =`",
        )
    return Diagnostic("STM0208", f"a value is missing{fault.after_previous()}: found {fault.token_in_words()}", fault.place())


def comma(fault: Fault) -> Diagnostic | None:
    """Two entries of a list side by side."""
    if "COMMA" not in fault.expected or not fault.expected & {"RPAR", "RSQB"} or fault.token.kind not in _STARTS_VALUE:
        return None
    help = "write `*` for a product" if "STAR" in fault.expected else None
    return Diagnostic(
        "STM0207", f"`,` or `{_closing(fault)}` expected before {fault.token_in_words()}", fault.behind(), help=help
    )


def _closing(fault: Fault) -> str:
    return ")" if "RPAR" in fault.expected else "]"


def two_signs(fault: Fault) -> Diagnostic | None:
    """Signs that make sense alone but not here: a second `=`, a second bracket, a second arrow, a number for a node."""
    kind, previous = fault.token.kind, fault.previous
    span = fault.span_of(fault.token)
    if kind == "DOT" and previous is not None and "SEPARATOR" in fault.expected:
        help = _dotted(fault)
        return Diagnostic("STM0201", "nothing has parts behind a `.`", span, help=help.text, fixes=help.fixes)
    if kind == "COMMA" and "SEPARATOR" in fault.expected:
        return Diagnostic(
            "STM0201", "a statement has one value", span, help="leave the comma away", fixes=fault.without(fault.token)
        )
    if kind == "MINUS" and "ARROW" in fault.expected:
        return _undirected(fault)
    if kind in ("PLUS", "MINUS") and "RSQB" in fault.expected and "EQUAL" in fault.expected:
        help = "what came before a node is reached by the scan itself: `transition` carries it on, `mark` reads it"
        return Diagnostic("STM0201", "there is no arithmetic of indices", span, help=help)
    if kind == "ARROW" and "SEPARATOR" in fault.expected:
        return Diagnostic("STM0201", "only one `->` to an arrow", span, help="write `a -> b; b -> c`")
    if kind == "LSQB" and previous is not None and previous.kind == "RSQB":
        return Diagnostic("STM0201", "all indices stand in one bracket", span, help="write `name[out, in]`")
    if kind == "EQUAL" and "SEPARATOR" in fault.expected:
        return Diagnostic("STM0201", "an equation has one `=`", span)
    if kind == "NUMBER" and "NAME" in fault.expected:
        return _number_for_name(fault)
    if "SEPARATOR" in fault.expected and (kind in _STARTS_VALUE or kind in ITEM_KINDS or kind in ("SETTING", "GRAPH")):
        return Diagnostic(
            "STM0209",
            f"{fault.token_in_words()} cannot follow {fault.previous_in_words()} on this line",
            span,
            help="begin a new line, put a `;` between two statements, or write the operator or bracket that is missing",
        )
    return None


def _number_for_name(fault: Fault) -> Diagnostic:
    """A number where an axis, a node or an index has a name."""
    message, previous = f"a name is expected, found the number {fault.token_in_words()}", fault.previous
    behind = None if previous is None else previous.kind
    help = None
    if not fault.braced and behind in ("LPAR", "COMMA"):
        help = "an axis has a name, and its size if that is known: `grid(rows = 14, cols)`"
    elif "ARROW" in fault.expected or behind in ("ARROW", "LBRACE", "SEPARATOR"):
        help = "nodes have names: `n1 -> n2`"
    elif fault.braced and "RSQB" not in fault.expected and behind in ("LSQB", "COMMA"):
        help = "indices have names, `out`, `in`, `key`; no entry is reached by its number"
    return Diagnostic("STM0201", message, fault.span_of(fault.token), help=help)


def _undirected(fault: Fault) -> Diagnostic:
    """`a -- b`, or `a - b`: every edge has a sense."""
    following = fault.tokens[fault.at + 1]
    last = following if following.kind == "MINUS" else fault.token
    span = Span(fault.source, fault.token.start, last.end)
    help = replaced("an edge has a sense: `a -> b`", span, "->")
    return Diagnostic("STM0201", f"{quoted(span.text)} is no edge", span, help=help.text, fixes=help.fixes)


def _dotted(fault: Fault) -> Advice:
    """`torch.nn.sigmoid` as `sigmoid`; what stands behind a value is called instead."""
    assert fault.previous is not None
    last = fault.at
    while fault.tokens[last].kind == "DOT" and fault.tokens[last + 1].kind == "NAME":
        last += 2
    if fault.previous.kind != "NAME" or last == fault.at:
        return Advice("functions stand before what they take: `f(a)`")
    if fault.tokens[last].kind != "LPAR":
        return Advice("a product is written `*`, and along an index `sum(a * b, over = key)`")
    name = fault.tokens[last - 1]
    span = Span(fault.source, fault.previous.start, name.start)
    return replaced(f"functions are called by their names alone: `{shortened(name.text)}`", span, "")
