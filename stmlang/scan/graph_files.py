"""The formats of graph files, as far as their names tell them: what the checker and the readers have in common."""

from __future__ import annotations

from pathlib import PurePath

SUFFIXES: dict[str, str] = {
    ".edgelist": "edgelist",
    ".edges": "edgelist",
    ".txt": "edgelist",
    ".csv": "csv",
    ".tsv": "tsv",
    ".graphml": "graphml",
    ".gml": "gml",
    ".dot": "dot",
    ".gv": "dot",
    ".bif": "bif",
    ".bench": "bench",
    ".net": "pajek",
    ".paj": "pajek",
    ".newick": "newick",
    ".nwk": "newick",
    ".tre": "newick",
    ".tree": "newick",
    ".trees": "newick",
    ".treefile": "newick",
    ".nex": "nexus",
    ".nexus": "nexus",
    ".nxs": "nexus",
    ".aag": "aiger",
    ".aig": "aiger",
    ".ptb": "ptb",
    ".mrg": "ptb",
    ".tif": "d8",
    ".tiff": "d8",
    ".asc": "d8",
}
"""The format that a suffix stands for, of two if the last is `.gz`.
The module of the format's name in `stmlang.graph.readers` reads it."""

FORMATS: tuple[str, ...] = (*dict.fromkeys(SUFFIXES.values()), "d8_grass", "d8_taudem")
"""All formats: those of suffixes, and the conventions of rasters, which no suffix tells."""


def suffix_of(path: str) -> str:
    """The suffix that tells the format, in lower case: the last one but for `.gz`; empty where there is none."""
    name = PurePath(path)
    return (PurePath(name.stem) if name.suffix.lower() == ".gz" else name).suffix.lower()
