"""The table of error codes: what each code means, in a title and a paragraph.

One module a family, named after what went wrong: `STM0xxx` reading a text, `STM1xxx` names and imports, `STM2xxx` indices,
types and sizes, `STM3xxx` topologies, graph files and graphs given at run time, `STM4xxx` stability, `STM5xxx` planning,
lowering, calls and artifacts, `STM9xxx` the compiler itself.
"""

from __future__ import annotations

from stmlang.source.codes.given import GIVEN
from stmlang.source.codes.indices import INDICES
from stmlang.source.codes.internal import INTERNAL
from stmlang.source.codes.lowering import LOWERING
from stmlang.source.codes.names import NAMES
from stmlang.source.codes.stability import STABILITY
from stmlang.source.codes.syntax import SYNTAX
from stmlang.source.codes.topology import TOPOLOGY

FAMILIES: dict[str, dict[str, tuple[str, str]]] = {
    "STM0": SYNTAX,
    "STM1": NAMES,
    "STM2": INDICES,
    "STM3": {**TOPOLOGY, **GIVEN},
    "STM4": STABILITY,
    "STM5": LOWERING,
    "STM9": INTERNAL,
}

CODES: dict[str, tuple[str, str]] = {code: entry for family in FAMILIES.values() for code, entry in family.items()}
"""`code -> (title, explanation)`."""
