"""Texts that are read as lists of edges, but begin as a file of another format does."""

from __future__ import annotations

import re

from stmlang.graph.readers.text import GraphFile

_BEGINNINGS: tuple[tuple[str, str, str | None], ...] = (
    (r"#NEXUS\b", "NEXUS", "nexus"),
    (r"\*(?:vertices|network|arcs|arcslist|edges|edgeslist|matrix)\b", "Pajek", "pajek"),
    (r"(?:strict\s+)?digraph\b[^\r\n{]*(?:[\r\n]\s*)?\{", "DOT", "dot"),
    (r"(?:strict\s+)?graph\b[^\r\n{\[]*(?:[\r\n]\s*)?\{", "DOT", "dot"),
    (r"(?:strict\s+)?digraph[ \t]+\w+[ \t]*(?:[\r\n]|\Z)", "DOT", "dot"),
    (r"(?:Creator\b[^\r\n]*\s+|Version\b[^\r\n]*\s+)*graph\s*\[", "GML", "gml"),
    (r"<(?:\?xml\b|!DOCTYPE\b|!--|graphml\b)", "XML", "graphml"),
    (r"<gexf\b", "GEXF", None),
    (r"a[ai]g(?:[ \t]+[0-9]+){5,}", "AIGER", "aiger"),
    (r"(?:INPUT|OUTPUT)\s*\(", "BENCH", "bench"),
    (r"(?:network|variable|probability)\b[^\r\n{]*\{[ \t]*[\r\n]", "BIF", "bif"),
    (r"ncols[ \t]+[0-9]+[ \t]*[\r\n]\s*nrows\b", "an ASCII grid", "d8"),
    (r"[{\[]\s*(?:\"|\{|\[[^\r\n\]]*\][ \t]*[,\]])", "JSON", None),
)
_COMMENTS = re.compile(r"(?:[ \t]*(?:(?:#(?!NEXUS\b)|%|//)[^\r\n]*)?[\r\n])*+[ \t]*", re.IGNORECASE)
_FORMATS = [(re.compile(pattern, re.IGNORECASE), name, word) for pattern, name, word in _BEGINNINGS]


def refuse_other_formats(file: GraphFile) -> None:
    """Refuses a text whose first line that is no comment is one of another format (STM3403)."""
    comments = _COMMENTS.match(file.text)
    start = 0 if comments is None else comments.end()
    for pattern, name, word in _FORMATS:
        match = pattern.match(file.text, start)
        if match is not None:
            shown = len(match.group().splitlines()[0])
            quotes = "put the first name into quotes if it is a name"
            help = f"convert it to a format that is read; {quotes}" if word is None else f"read it `as {word}`; {quotes}"
            file.refuse("STM3403", f"this begins as {name} does, not as a list of edges", (start, start + shown), help)
