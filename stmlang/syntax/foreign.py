"""Words that begin statements in other languages, and what there is here in their place."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stmlang.source.advice import Edit, Fix, Rewrite
from stmlang.source.span import SourceFile, Span

ITEMS: Mapping[str, str] = {
    **dict.fromkeys(("import", "from", "include", "require", "using", "open", "load", "extern", "mod"), "use"),
    **dict.fromkeys(
        ("fn", "fun", "func", "function", "lambda", "define", "macro", "proc", "sub", "let", "var", "const", "val"), "def"
    ),
    **dict.fromkeys(("layer", "model", "module", "kernel", "recurrence", "rnn", "cell", "spec", "class", "struct"), "scan"),
    **dict.fromkeys(("graph", "dag", "tree", "chain", "grid", "type", "digraph"), "topology"),
}
"""The item that a word stands for where an item begins."""

FORMS: Mapping[str, str] = {
    "use": "names of another file are brought by `use std.gates (gate)`",
    "def": "a function is written `def gate(start) = sigmoid(linear(x, bias = start))`",
    "scan": "a scan is written `scan s on chain(time) { ... }`",
    "topology": "a topology is written `topology image = grid(rows, cols)`",
}
"""How each item is written."""

_CONDITION = "there are no conditions: `max`, `min`, `clip` and `relu` choose between values, `sigmoid` blends them"
_LOOP = "there are no loops: the scan itself runs along its topology, and `sum(..., over = key)` adds up along an index"
_RESULT = "nothing is returned: a scan's output is what `mark` reads of the states, and `direct` of a node itself"

STATEMENTS: Mapping[str, str] = {
    **dict.fromkeys(("if", "else", "elif", "elseif", "endif", "then", "match", "switch", "case", "when", "unless"), _CONDITION),
    **dict.fromkeys(("for", "while", "loop", "do", "repeat", "foreach", "until", "end"), _LOOP),
    **dict.fromkeys(("return", "yield", "output"), _RESULT),
    **dict.fromkeys(("import", "from", "include", "require", "using"), f"{FORMS['use']}, outside of the scan"),
    **dict.fromkeys(("fn", "fun", "func", "function", "lambda"), f"{FORMS['def']}, outside of the scan"),
    **dict.fromkeys(
        ("and", "or", "not"), "there are no truth values: `min(a, b)`, `max(a, b)` and `1 - a` say as much of gates"
    ),
    **dict.fromkeys(
        ("assert", "print", "pass", "break", "continue", "try", "with", "raise"), "a scan holds equations and settings"
    ),
}
"""What to say of a word where a statement or its continuation begins with it."""

_IMPORT = re.compile(
    r"(?:import|include|require|using|open|load)[ \t]+(?P<path>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)[ \t]*(?=$|[#;])"
)
_FROM_IMPORT = re.compile(
    r"from[ \t]+(?P<path>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)[ \t]+import[ \t]+"
    r"\(?(?P<names>\w+(?:[ \t]*,[ \t]*\w+)*)\)?[ \t]*(?=$|[#;])"
)


def as_use(source: SourceFile, start: int) -> tuple[Fix, ...]:
    """`import a.b` as `use a.b`, and `from a.b import c, d` as `use a.b (c, d)`, where that is what begins at a place."""
    line = source.text[start : source.bounds(source.position(start)[0])[1]]
    match = _IMPORT.match(line) or _FROM_IMPORT.match(line)
    if match is None:
        return ()
    path, names = match["path"], match.groupdict().get("names")
    text = f"use {path} ({names.strip()})" if names else f"use {path}"
    return (Rewrite((Edit(Span(source, start, start + match.end()), text),)),)
