"""`# stmlang: rows=14, cols=14`: the sizes that a plan is shown for. They mean nothing to the compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stmlang.lsp.document import Document
from stmlang.syntax import tree

_COMMENT = re.compile(r"#\s*stmlang\s*:\s*(.*)\Z")
_SIZE = re.compile(r"([A-Za-z_]\w*)\s*=\s*([^\s,]+)")
_NUMBER = re.compile(r"[+-]?(?:\d{1,15}|\d{1,15}\.\d{0,15})\Z")


@dataclass(frozen=True)
class Sizes:
    """Sizes and parameters by name, and the pieces of comments that say none."""

    values: dict[str, int | float]
    unread: tuple[str, ...] = ()


def sizes_of(document: Document, item: tree.ScanItem) -> Sizes:
    """The sizes for a scan: those of all comments above its end, of which the last one counts."""
    values: dict[str, int | float] = {}
    unread: list[str] = []
    for comment in document.parsed.file.comments:
        match = _COMMENT.match(comment.text)
        if match is None or comment.span.start > item.span.end:
            continue
        for name, number in _SIZE.findall(match[1]):
            if _NUMBER.match(number):
                values[name] = float(number) if "." in number else int(number)
            else:
                unread.append(f"{name}={number}")
        unread += [word for word in re.split(r"[\s,]+", _SIZE.sub("", match[1])) if word]
    return Sizes(values, tuple(unread))
