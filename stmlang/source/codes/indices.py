"""STM2xxx: indices, types and sizes."""

from __future__ import annotations

INDICES: dict[str, tuple[str, str]] = {
    "STM2001": (
        "not an index",
        "The indices are `out`, `in`, `key`, `value`, `track` and the last three primed, and `write` and `read` where the "
        "head of the scan says `writes` and `reads`. Heads, nodes and directions are never written. A port is not an index: "
        "an index is pinned to it, `out = rows`.",
    ),
    "STM2002": (
        "index repeated",
        "The left side of an equation names each index once.",
    ),
    "STM2003": (
        "index that a gate cannot have",
        "`source` ranges over `out` and the state, `transition` over `out`, `in` and what acts on the state, `mark` over "
        "`in` and what reads the state, `direct` over `key` and `value`. `q` and `k` have the index `key`, `v` has "
        "`value`. With several writes or reads, `source`, `direct`, `k` and `v` may have `write`, `mark`, `direct` and `q` may "
        "have `read`. Any other gate may have any index.",
    ),
    "STM2004": (
        "primed index alone",
        "A matrix on the state has a row index, of the result, and a primed column index, of what it acts on: "
        "`transition[key, key']`.",
    ),
    "STM2005": (
        "equations disagree",
        "All equations of a gate have the same indices, some of them pinned to ports.",
    ),
    "STM2006": (
        "unknown port",
        "The ports of a chain or grid are its axes; a tree or DAG has the one port `edge`.",
    ),
    "STM2007": (
        "cannot be pinned",
        "`out` and `in` range over ports and can be pinned to one, an index of the state to a position, "
        "`track = 0`. A reference can only be pinned to a port that has one "
        "edge at each node, which is so on chains and grids.",
    ),
    "STM2008": (
        "free index",
        "An index on the right side of an equation that its left side lacks, or pins, would leave open which value is meant.",
    ),
    "STM2009": (
        "two equations for one thing",
        "For each choice of ports one equation of a gate holds: of those that match, the one with the most pinned "
        "indices. Two that match equally well contradict each other.",
    ),
    "STM2010": (
        "gap between equations",
        "Where all equations of a gate are pinned to ports, they have to cover every choice of ports.",
    ),
    "STM2011": (
        "wrong number of indices",
        "Behind a gate's name stand as many indices as it has, in its order, or none, which keeps them as they are. "
        "Pinned ones name the index they pin; a reference may pin some and keep the others.",
    ),
    "STM2012": (
        "index of another kind",
        "A reference renames an index within its kind: `out` and `in`, `key` and `key'`, `value` and `value'`, `track` "
        "and `track'`.",
    ),
    "STM2013": (
        "edges that do not correspond",
        "On a chain or grid a node has one incoming and one outgoing edge of each port, so `out` can be renamed to `in`. "
        "At a node of a tree or DAG the two sides have nothing to do with each other.",
    ),
    "STM2014": (
        "diagonal",
        "A reference that gives two indices of a gate the same name would take its diagonal, which the language does not have.",
    ),
    "STM2015": (
        "not its indices",
        "Brackets behind a call or a parenthesis restate the indices of what stands before them, for the reader. They can "
        "neither rename nor pin.",
    ),
    "STM2016": (
        "nothing to run over",
        "A reduction or normalization over an index that its argument does not depend on would be a slip.",
    ),
    "STM2017": (
        "index not said",
        "`l2norm` runs over the only state index of its argument; where there are several, `over =` says which.",
    ),
    "STM2018": (
        "wrong indices of `eye`",
        "`eye` has two state indices of one kind: `eye[key, key']`.",
    ),
    "STM2019": (
        "`split` out of place",
        "`split` divides one between the ports of a chain or grid and so makes the index `out`. Its arguments cannot "
        "depend on `out`.",
    ),
    "STM2020": (
        "wrong number of cuts",
        "`split` takes one argument fewer than there are ports; the last port gets what is left.",
    ),
    "STM2021": (
        "wrong features",
        "`linear` reads the node features `x`, where there are edge features `e[out]` and `e[in]`, and numbers made of "
        "degrees, each at most once.",
    ),
    "STM2022": (
        "no edge features",
        "The edges of chains and grids have no features of their own.",
    ),
    "STM2023": (
        "which edge",
        "`e[out]` reads the edge that the index `out` of the equation ranges over, so that the equation has to have it.",
    ),
    "STM2024": (
        "not a constant",
        "Initial values, bounds, sizes and parameters are known when a spec is checked: they are made of numbers, "
        "parameters and sizes.",
    ),
    "STM2025": (
        "out of range",
        "`weight` is a standard deviation and not negative; the bounds of `given(low, high)` are in order.",
    ),
    "STM2026": (
        "nested too deeply",
        "Operations may nest 200 deep once definitions are expanded. Name a part in an equation of its own.",
    ),
    "STM2027": (
        "expands to too much",
        "Definitions are expanded where they are called. Ones that call each other several times can grow without bound, "
        "so the equations of a file may hold 100,000 operations in all.",
    ),
    "STM2028": (
        "constant without a value",
        "A constant expression divides by zero, takes a root or logarithm of a number that has none, or passes 1e308.",
    ),
    "STM2029": (
        "not a size",
        "Sizes are whole numbers below 2^31: of heads, state and tracks at least 1, of axes at least 0.",
    ),
    "STM2031": (
        "size not known",
        "An equation that uses the size of an axis can only be checked where that axis has a size, by a default or from "
        "outside.",
    ),
    "STM2032": (
        "not a number",
        "A setting from outside is a finite number.",
    ),
    "STM2033": (
        "wrong setting",
        "The settings of a scan are `directions`, `stabilize P | D | auto | none`, `normalize none | sum | mlstm` and "
        "`read after`, each at most once.",
    ),
    "STM2034": (
        "not a direction",
        "A direction gives every port one sense: `+rows -cols`. Several are separated by commas, and no two are the same.",
    ),
    "STM2035": (
        "direction of single ports",
        "Only the axes of chains and grids can be turned one by one. A tree, a DAG, and a product with one, is scanned "
        "`forward`, `backward` or in `both` senses.",
    ),
    "STM2036": (
        "too many directions",
        "A scan has at most 64 directions; a grid of n axes has 2^n of them.",
    ),
    "STM2037": (
        "cannot be read after",
        "`read after` reads the state that a node leaves on its outgoing edges, which must be the same on all of them.",
    ),
    "STM2038": (
        "inputs per direction",
        "Directions share `q`, `k` and `v`, but for those that `own` names, as `directions both own k` does. What the "
        "redefinition of a shared one rests on cannot have a value for each direction.",
    ),
    "STM2039": (
        "tracks",
        "A state has tracks if `source`, `transition` or `mark` has the index `track`; then `track` is a parameter of the "
        "scan, and only then.",
    ),
    "STM2040": (
        "nothing to count",
        "`degree(out)` is the number of edges that leave a node, `degree(in)` of those that enter it. Other indices range over "
        "the state, not over edges.",
    ),
    "STM2041": (
        "not an open axis",
        "Only an axis of a chain or grid that has no size yet can be bound.",
    ),
    "STM2042": (
        "equation that never holds",
        "A warning: more specific equations hold for all the ports, or positions, of this one.",
    ),
    "STM2043": (
        "leaf with the indices of a matrix",
        "A warning: a leaf has the indices of its equation, in one for a matrix both of them. One that multiplies "
        "`eye[key, key']`, or an outer product beside it, does so entry by entry, which is hardly meant. A number is a gate of "
        "its own: `a = exp(given(high = 0))`, and then `transition[key, key'] = a * (eye[key, key'] - b * k[key] * k[key'])`. "
        "A leaf that is a matrix by itself, `eye[key, key'] - linear(x)`, is not warned of.",
    ),
    "STM2044": (
        "writes and reads",
        "A node writes one key and value and reads with one query, unless the head of the scan says `writes = n` or "
        "`reads = n`. The index `write` ranges over its keys and values, `read` over its queries and outputs.",
    ),
    "STM2050": (
        "list without its indices",
        "A list holds values along indices of the state, which the bracket behind it names: `[1, 0.5][key]`, "
        "and a list of lists `[[0, 1], [1, 0]][key, key']`. Its entries do not depend on them.",
    ),
    "STM2051": (
        "list of another length",
        "A list has an entry for each value of its index: as many as the scan's head says of `key`, `value` or `track`.",
    ),
    "STM2052": (
        "position that is not there",
        "An index of the state is pinned to a position on its axis, counted from 0.",
    ),
    "STM2053": (
        "steps of a node",
        "A node of a chain may take several `steps`, each with a key, a value and gates of its own, in a scan of one "
        "direction. Gates are those of one step: nothing runs over steps or picks one.",
    ),
    "STM2054": (
        "complex number for a real one",
        "Complex are `polar(radius, angle)`, `complex(a, b)` and what `+`, `-`, `*`, `/`, `exp`, `conjugate`, `sum`, `mean`, "
        "lists and gates make of them. Everything else takes real numbers, such as `real(...)`, `imaginary(...)` and "
        "`abs(...)` of complex ones, and `q`, `k` and `v` are real.",
    ),
    "STM2055": (
        "complex mark of a real state",
        "A state is complex if `source` or `transition` is. One that is real is read by real numbers.",
    ),
    "STM2056": (
        "tracks of a complex state",
        "The tracks of a complex state are its real and its imaginary part. It has no others, and no gate the index `track`.",
    ),
}
