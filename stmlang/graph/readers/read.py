"""From a path to a graph: which format it has, and which reader that means."""

from __future__ import annotations

from importlib import import_module

from stmlang.graph.dag import DAG
from stmlang.graph.readers.files import open_file, path_text
from stmlang.graph.readers.finish import checked
from stmlang.graph.readers.text import Graph, ParsedGraph
from stmlang.scan.graph_files import FORMATS, SUFFIXES, suffix_of
from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.span import Span
from stmlang.source.suggest import did_you_mean


def read_graph(path: str, format: str | None = None, tree: bool = False, span: Span | None = None) -> DAG:
    """The graph in a file: nodes and edges in the order in which the file gives them, no open edges, the one port `edge`.

    `format` is one of `FORMATS`, or None where the suffix decides; `tree` asks for at most one edge out of each node; `span` is
    where a spec names the file. Raises SpecError (STM3401 ... STM3415, STM3305), with the place in the graph file.
    """
    path = path_text(path, span)
    name = _format_of(path, format, span)
    file = open_file(path, name, span)
    reader = import_module(f"stmlang.graph.readers.{name}")
    read: Graph | ParsedGraph = reader.read(file)
    return checked(file, read.parsed() if isinstance(read, Graph) else read, tree)


def _format_of(path: str, format: str | None, span: Span | None) -> str:
    """The format's name, from what was asked for or from the suffix."""
    if format is None:
        suffix = suffix_of(path)
        if suffix in SUFFIXES:
            return SUFFIXES[suffix]
        message = f"the suffix `{suffix}` of `{path}` names no graph format" if suffix else f"`{path}` has no suffix"
        help = "say which of these formats it has, `as csv`, or convert it to one of them"
    else:
        if format in FORMATS:
            return format
        message = f"`{format}` is no graph format"
        help = did_you_mean(format, FORMATS)
    raise SpecError([Diagnostic("STM3402", message, span, (f"graph formats: {', '.join(FORMATS)}",), help)])
