"""STM3xxx: topologies and graph files."""

from __future__ import annotations

TOPOLOGY: dict[str, tuple[str, str]] = {
    "STM3001": (
        "unknown kind of topology",
        "The kinds are `chain`, `grid`, `tree` and `dag`.",
    ),
    "STM3002": (
        "malformed topology",
        "A chain has one axis, a grid at least one. A tree is complete, `tree(arity = 2, depth = 4)`, written out, read "
        "from a file, or given at run time, `tree(nodes <= N)`; a DAG likewise, `dag(nodes <= N, edges <= E)`.",
    ),
    "STM3003": (
        "axis declared twice",
        "The axes of a topology, those of all factors of a product together, name its ports and sizes and so are all "
        "different.",
    ),
    "STM3004": (
        "cycle",
        "The edges of a graph lead from a node back to itself, so that no order of evaluation exists. The message prints "
        "the cycle.",
    ),
    "STM3005": (
        "self loop",
        "An edge leads from a node to itself.",
    ),
    "STM3006": (
        "edge written twice",
        "Between two nodes there is at most one edge in a graph that is written out.",
    ),
    "STM3007": (
        "two parents",
        "The edges of a tree lead from the children to the parent, so that at most one leaves each node. Several roots "
        "are fine.",
    ),
    "STM3008": (
        "nothing there",
        "A graph has at least one node, and an edge touches at least one.",
    ),
    "STM3009": (
        "too many edges written out",
        "`a, b -> c, d` stands for every pair. The graphs of a text that are written out have at most 100,000 edges, all "
        "together; larger ones come from files.",
    ),
    "STM3010": (
        "graph file not found",
        "Graph files are looked for in the folder of the spec, then along the search path: the folders of `--path` or "
        "`path=`, then those of `STMLANG_PATH`.",
    ),
    "STM3011": (
        "graph file outside of its root",
        "Graph files are read from below the folder of the spec and the search path. Absolute paths, `..` and symbolic "
        "links that lead elsewhere are refused.",
    ),
    "STM3014": (
        "too many axes or factors",
        "A grid has at most 16 axes, a product at most 8 factors, and a topology's name leads to other ones at most 100 times.",
    ),
    "STM3301": (
        "graph given at run time",
        "A topology written `dag(nodes <= N, edges <= E)` bounds the graphs that each call brings. Whatever needs the "
        "graph itself, its levels or its plan, has to wait for the call.",
    ),
    "STM3302": (
        "unbound size",
        "An axis of a chain or grid may stay without a size while a spec is checked. To plan, compile or explain it every "
        "size must be known, by a default in the spec or a setting from outside.",
    ),
    "STM3303": (
        "topology too large",
        "Nodes, edges and line edges (pairs of an incoming and an outgoing edge of one node) are numbered in 32 bits. A "
        "topology with more than 2^31 - 1 of any of them is refused before memory is asked for.",
    ),
    "STM3304": (
        "schedule too large",
        "A sweep over the levels of a graph is driven by tables with a row for each step, all rows of one width. So many rows "
        "of that width were asked for that the tables would have more than 2^31 - 1 entries.",
    ),
    "STM3305": (
        "graph too large for this machine",
        "A graph is built in the memory of the machine that compiles. One whose tables alone would not fit is refused before "
        "memory is asked for.",
    ),
    "STM3401": (
        "unreadable graph file",
        "The graph file could not be opened or read; the operating system's reason is in the message. Or gzip has packed it, "
        "and what it packed ends too early or is damaged.",
    ),
    "STM3402": (
        "unknown graph format",
        "The suffix of a graph file, the one before `.gz`, decides its format, unless `as FORMAT` says it. Known formats: "
        "edgelist, csv, tsv, graphml, gml, dot, bif, bench, pajek, newick, nexus, aiger, ptb, d8, d8_grass, d8_taudem.",
    ),
    "STM3403": (
        "malformed graph file",
        "The graph file breaks the rules of its format at the place shown.",
    ),
    "STM3404": (
        "undirected graph",
        "A scan needs the direction of every edge. The file declares an undirected graph, or one undirected edge, or marks a "
        "tree as unrooted.",
    ),
    "STM3405": (
        "cycle in a graph file",
        "The edges of a graph file lead from a node back to itself, so no order of evaluation exists. The message prints "
        "a shortest cycle through one of its nodes.",
    ),
    "STM3406": (
        "repeated edge",
        "Two lines of a graph file give the same edge, in a format where that is most likely a slip. Formats in which "
        "parallel edges have a meaning (AIGER, BENCH, DOT, GML, GraphML) keep them; Pajek files, which repeat arcs as a habit, "
        "count them once.",
    ),
    "STM3407": (
        "not a tree",
        "A topology written `tree from ...` has its edges from the children to the root, so at most one edge leaves each node.",
    ),
    "STM3408": (
        "undeclared node",
        "An edge of a graph file names a node that the file never declares, in a format that requires it.",
    ),
    "STM3409": (
        "node declared twice",
        "Two declarations of a graph file name the same node, in a format where a name stands for one node.",
    ),
    "STM3410": (
        "document type in an XML file",
        "A GraphML file may not hold a document type or entity declarations: they can grow a small file to any size and "
        "reach other files, and no graph needs them.",
    ),
    "STM3411": (
        "empty graph file",
        "The graph file holds no node.",
    ),
    "STM3412": (
        "graph file that is no text",
        "A graph file is a text, in UTF-8 or else in Latin-1, but for binary AIGER files and GeoTIFFs, which are known by how "
        "they begin. Zero bytes mean that a file is binary, or was saved as UTF-16.",
    ),
    "STM3413": (
        "graph file too large",
        "A graph file may have 256 MiB, unpacked, and may stand for 100,000 nodes and edges more than it has characters: a "
        "header can claim any number of nodes, and an arrow between groups means an edge for each pair. A raster may have "
        "2^28 cells.",
    ),
    "STM3414": (
        "circuit with latches",
        "An AIGER or BENCH file describes a sequential circuit: its latches or flip-flops hold values from one time step to "
        "the next, and properties of fairness and justice speak of its runs. A graph of gates has no time. Unroll the circuit "
        "first.",
    ),
    "STM3415": (
        "library not installed",
        "Some files are decoded by a library that comes with an extra, as Pillow, which decodes GeoTIFFs, does with "
        "`stmlang[graphs]`.",
    ),
    "STM3416": (
        "data set that contradicts itself",
        "The files of a TUDataset folder go together line by line: every node belongs to a graph, every graph has a node, an "
        "edge stays within a graph and is listed in both senses with the same labels, and each file has a line for each thing.",
    ),
}
