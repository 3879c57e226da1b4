"""The syntax tree: what was written, with spans, before any name is looked up.

Sums and products are flat (`a - b + c` is one `Sum` of three terms), so that the depth of a tree is bounded by the depth of
its brackets, which the parser limits, and never by the length of a line.
"""

from __future__ import annotations

from dataclasses import dataclass

from stmlang.source.span import SourceFile, Span


@dataclass(frozen=True, slots=True)
class Name:
    """A word where it stands."""

    text: str
    span: Span


# --- expressions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number:
    """A literal."""

    value: float
    span: Span


@dataclass(frozen=True, slots=True)
class Reference:
    """A name standing alone: a gate, a parameter, an input, or an index given as an argument (`over = out`)."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class IndexUse:
    """One entry of a bracket: `out`, `key'`, or pinned to a port, `out = cols`, or a position, `track = 0`. A position is a
    name made of digits."""

    index: Name
    port: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Indexed:
    """`base[...]`."""

    base: Expression
    indices: tuple[IndexUse, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class List:
    """`[a, b, c]`: values along an index that the bracket behind it names."""

    entries: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Argument:
    """A call's argument; `name` is None for a positional one."""

    name: Name | None
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """`function(arguments)`."""

    function: Name
    arguments: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Negate:
    """`-operand`."""

    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Sum:
    """`terms[k] = (negative, expression)`."""

    terms: tuple[tuple[bool, Expression], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Product:
    """`factors[k] = (inverted, expression)`: inverted where it is divided by."""

    factors: tuple[tuple[bool, Expression], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Power:
    """`base ^ exponent`, right associative, binds tighter than a leading minus."""

    base: Expression
    exponent: Expression
    span: Span


Expression = Number | Reference | Indexed | List | Call | Negate | Sum | Product | Power


# --- topologies ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SizeParameter:
    """`rows` or `rows = 14`, in `chain(...)`, `grid(...)`, `tree(...)` and a scan's head."""

    name: Name
    default: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class Limit:
    """`nodes <= 64`."""

    name: Name
    bound: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Arrow:
    """`a, b -> c, d`: every edge from a name on the left to one on the right. An empty left side (`-> a`) is an edge that
    enters from outside, an empty right side (`a ->`) one that leaves. A name alone (`a`) declares an isolated node: both are
    given and `arrow` is False."""

    tails: tuple[Name, ...]
    heads: tuple[Name, ...]
    arrow: bool
    span: Span


@dataclass(frozen=True, slots=True)
class TopologyCall:
    """`chain(time)`, `grid(rows, cols)`, `tree(arity = 2, depth = 4)`."""

    kind: Name
    parameters: tuple[SizeParameter, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TopologyRuntime:
    """`dag(nodes <= 64, edges <= 160)` and `tree(nodes <= 64)`."""

    kind: Name
    limits: tuple[Limit, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TopologyInline:
    """`dag { ... }` and `tree { ... }`."""

    kind: Name
    arrows: tuple[Arrow, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TopologyFile:
    """`dag from "file"` and `tree from "file"`, with `as bif` where the suffix does not tell the format."""

    kind: Name
    path: str
    path_span: Span
    format: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class TopologyName:
    """A topology that a `topology` item names."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class TopologyProduct:
    """`chain(time) * grid(rows, cols)`."""

    factors: tuple[TopologyExpression, ...]
    span: Span


TopologyExpression = TopologyCall | TopologyRuntime | TopologyInline | TopologyFile | TopologyName | TopologyProduct


# --- items -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Equation:
    """`target[indices] = value`."""

    target: Name
    indices: tuple[IndexUse, ...]
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Setting:
    """`directions all`, `directions +rows -cols, -rows +cols concat`, `stabilize P`, `normalize mlstm`, `read after`.

    `words` holds each token after the keyword, signs and commas included, as names, and `arguments` what stands in a bracket
    behind them: `normalize mlstm(eps = 1e-6)`.
    """

    keyword: Name
    words: tuple[Name, ...]
    arguments: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TopologyItem:
    """`topology name = value`."""

    name: Name
    value: TopologyExpression
    span: Span


@dataclass(frozen=True, slots=True)
class DefinitionItem:
    """`def name(parameters) = value`."""

    name: Name
    parameters: tuple[Name, ...]
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class UseItem:
    """`use std.gates (forget, keep)`: dotted path, then the names, empty for all."""

    path: tuple[Name, ...]
    names: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ScanItem:
    """`scan name(parameters) on topology { body }`."""

    name: Name
    parameters: tuple[SizeParameter, ...]
    topology: TopologyExpression
    body: tuple[Equation | Setting, ...]
    span: Span


Item = TopologyItem | DefinitionItem | UseItem | ScanItem


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment with its mark, `# ...`; `own_line` where nothing stands before it on its line."""

    text: str
    own_line: bool
    span: Span


@dataclass(frozen=True, slots=True)
class File:
    """A whole text."""

    source: SourceFile
    items: tuple[Item, ...]
    comments: tuple[Comment, ...]
