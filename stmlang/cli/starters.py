"""The texts that `stmlang new` writes."""

from __future__ import annotations

import re

HEAD = """\
# {name}: {what}
#
#   stmlang check {name}.stm            is it right?
#   stmlang explain {name}.stm{sizes}
#                                       what is known of it, and how it would be evaluated
#
# A state of shape (key, value) lives on every edge. At each node
#   the state that leaves  =  transition * states that enter  +  source * outer(k, v)
#   the output             =  q . (mark * states that enter   +  direct * outer(k, v))
# Gates are equations. `linear(x)` is a learned linear map of the node's features; `bias` is where its bias starts.
"""

CHAIN = """\

topology sequence = chain(time)

scan {name}(heads = 4, key = 64, value = 64) on sequence {{
    directions forward  # or: backward, both

    # How much of each token is written into the state; a sigmoid far to the left starts almost closed.
    source = sigmoid(linear(x, bias = -4))

    # What is kept from one token to the next. It stays below one, so the state cannot explode (P-mode is proved).
    transition = sigmoid(linear(x, bias = spread(3, 6)))

    # How much of the state is read, and how much of the token's own input.
    mark   = sigmoid(linear(x, bias = -2))
    direct = sigmoid(linear(x, bias = -6))

    stabilize P
}}
"""

IMAGE = """\

topology image = grid(rows, cols)

scan {name}(heads = 3, key = 64, value = 64) on image {{
    directions all  # the four corners an image can be read from; their outputs are added

    # `split(angle)` shares one out over the outgoing edges, so much to `rows` and the rest to `cols`: where the signal goes.
    angle = sigmoid(linear(x, bias = spread(-2, 2)))
    decay = tanh(5 * linear(x, bias = 1))

    # `out` ranges over the edges that leave a node, `in` over those that enter it.
    source[out]         = sigmoid(linear(x, bias = -4)) * split(angle)[out]
    transition[out, in] = decay * split(angle)[out]
    mark                = sigmoid(linear(x, bias = -4))
    direct              = sigmoid(linear(x, bias = -6))

    stabilize P  # each column of the transition sums to at most one: proved from the equations
}}
"""

VOLUME = """\

topology volume = grid(depth, rows, cols)

scan {name}(heads = 3, key = 32, value = 32) on volume {{
    directions both  # `all` reads from the eight corners

    # Three ports need two break points: `first` goes along depth, `second` of the rest along rows, what is left along cols.
    first  = sigmoid(linear(x, bias = spread(-2, 2)))
    second = sigmoid(linear(x, bias = spread(-2, 2)))
    decay  = tanh(5 * linear(x, bias = 1))

    source[out]         = sigmoid(linear(x, bias = -4)) * split(first, second)[out]
    transition[out, in] = decay * split(first, second)[out]
    mark                = sigmoid(linear(x, bias = -4))
    direct              = sigmoid(linear(x, bias = -6))

    stabilize P
}}
"""

VIDEO = """\

# A product: each pixel has edges to its neighbours, and to itself a frame later.
topology video = chain(time) * grid(rows, cols)

scan {name}(heads = 2, key = 16, value = 16) on video {{
    directions both  # `all` reads from the eight corners

    # A softmax over the outgoing edges shares a state out among them: whatever enters, no more than all of it leaves.
    share[out] = softmax(linear(x), over = out)

    source[out]         = sigmoid(linear(x, bias = -4))
    transition[out, in] = tanh(linear(x, bias = 1)) * share[out]
    mark[in]            = sigmoid(linear(x, bias = -4))
    direct              = sigmoid(linear(x, bias = -6))

    stabilize P
}}
"""

TREE = """\

# Arrows go from the children to the root. A complete tree is short: tree(arity = 2, depth = 4).
topology syntax = tree {{
    the, cat -> subject
    a, mouse -> object
    chased, object -> predicate
    subject, predicate -> sentence
}}

scan {name}(heads = 4, key = 32, value = 32) on syntax {{
    directions both  # up to the root, and back down

    source     = sigmoid(linear(x, bias = -4))
    transition = tanh(linear(x, bias = 1))
    mark[in]   = sigmoid(linear(x, bias = -4))
    direct     = sigmoid(linear(x, bias = -6))

    stabilize auto  # going down, a node has several outgoing edges: the compiler adds what is needed
}}
"""

DAG = """\

# Any directed acyclic graph; `dag from "graph.gml"` reads a file.
topology clinic = dag {{
    asia -> tub
    smoke -> lung, bronc
    tub, lung -> either
    either -> xray
    either, bronc -> dysp
}}

scan {name}(heads = 4, key = 32, value = 32) on clinic {{
    directions both

    # `e[out]` and `e[in]` are the features of an edge, seen from the node that it leaves and the one that it enters.
    source[out] = sigmoid(linear(x, e[out], bias = -4))
    mark[in]    = sigmoid(linear(x, e[in], bias = -4))
    direct      = sigmoid(linear(x, bias = -6))

    # A softmax over the outgoing edges shares a state out among them: whatever enters, no more than all of it leaves.
    transition[out, in] = tanh(linear(x)) * softmax(linear(x, e[out], e[in]), over = out)

    stabilize P
}}
"""

GRAPHS = """\

# Graphs that every call brings, each of them no larger than this.
topology molecule = dag(nodes <= 64, edges <= 160)

# In Python:
#
#   here  = stmlang.graph.batch(graphs)      # DAGs side by side; `stmlang.graph.as_dag` makes one of whatever has edges
#   op    = stmlang.compile("{name}.stm")    # a scan without a graph
#   layer = stmlang.nn.ScanLayer(op, dim=16, edge_dim=3, key=jax.random.key(0))
#   y     = layer(x, edge_features=e, on=op.at(here))    # rows of x are the nodes of all graphs, rows of e their edges
scan {name}(heads = 4, key = 16, value = 16) on molecule {{
    directions both  # an undirected graph is read in both senses of its orientation

    # `e[out]` and `e[in]` are the features of an edge, seen from the node that it leaves and the one that it enters.
    source[out] = sigmoid(linear(x, e[out], bias = -4))
    mark[in]    = sigmoid(linear(x, e[in], bias = -4))
    direct      = sigmoid(linear(x, bias = -6))

    # A softmax over the outgoing edges shares a state out among them: whatever enters, no more than all of it leaves.
    transition[out, in] = tanh(linear(x)) * softmax(linear(x, e[out], e[in]), over = out)

    stabilize P
}}
"""

WHAT: dict[str, tuple[str, str]] = {
    "chain": ("a scan over sequences", CHAIN),
    "image": ("a scan over images, propagation mode", IMAGE),
    "volume": ("a scan over volumes, propagation mode", VOLUME),
    "video": ("a scan over videos, a product of time and image", VIDEO),
    "tree": ("a scan over a tree", TREE),
    "dag": ("a scan over a directed acyclic graph", DAG),
    "graphs": ("a scan over graphs that come at run time", GRAPHS),
}

SIZES: dict[str, dict[str, int]] = {
    "chain": {"time": 256},
    "image": {"rows": 14, "cols": 14},
    "volume": {"depth": 4, "rows": 8, "cols": 8},
    "video": {"time": 4, "rows": 6, "cols": 6},
    "tree": {},
    "dag": {},
    "graphs": {},
}
"""Sizes that the starters leave open, with values to try."""


def starter(kind: str, name: str) -> str:
    """The spec of a kind, its scan called `name`."""
    what, body = WHAT[kind]
    sizes = "".join(f" --set {axis}={size}" for axis, size in SIZES[kind].items())
    return HEAD.format(name=name, what=what, sizes=sizes) + body.format(name=name)


TRIED = 16
"""A size to try for an axis that a spec of the library leaves open."""


def library_name(origin: str) -> str:
    """The whole name of a spec of the library, of which the last part is enough where one spec only has it."""
    from stmlang.check import library_specs

    relative = origin.removeprefix("std:").removesuffix(".stm")
    ending = [known for known in library_specs() if known.rpartition("/")[2] == relative]
    return ending[0] if len(ending) == 1 else relative


def copied(relative: str, name: str) -> tuple[str, dict[str, int]]:
    """The text of a spec of the library, its scan called `name`, and sizes to try for what it leaves open.

    Raises SpecError for a name that is not in the library (STM1036) or belongs to another scan of the file (STM1004).
    """
    from stmlang.check import examine, open_spec
    from stmlang.scan.sizes import unbound
    from stmlang.source.diagnostic import Diagnostic, SpecError

    source = open_spec(f"std:{relative}").source
    heads = list(re.finditer(r"^scan (\w+)", source.text, re.MULTILINE))
    if not heads:
        raise SpecError([Diagnostic("STM1012", f"`std:{relative}` holds definitions and no scan", None)])
    if any(head[1] == name for head in heads[:-1]):
        raise SpecError([Diagnostic("STM1004", f"the scan `{name}` is declared there already: choose another name", None)])
    start, end = heads[-1].span(1)
    text = source.text[:start] + name + source.text[end:]
    scan = examine(open_spec(text), {}).scan
    return text, {} if scan is None else dict.fromkeys(unbound(scan), TRIED)
