"""References to gates and inputs, and what their brackets do: rename an index within its kind, or pin it to a port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stmlang.check.problems import listed
from stmlang.check.typing.complex_values import Cartesian, Form, Polar, Typed, free_of, written_name
from stmlang.check.typing.context import Context
from stmlang.check.typing.indices import index_word, is_state, pinned_place, pinned_port
from stmlang.check.typing.lists import list_value
from stmlang.check.typing.scope import Header, Scope
from stmlang.check.typing.values import Value
from stmlang.check.vocabulary import INDEX_WORDS, KINDS, input_indices
from stmlang.scan.expression import PORT_INDICES, Bind, Eye, GateRef, Index, InputRef, Number, ordered
from stmlang.source.span import Span
from stmlang.syntax import tree


def gate_reference(context: Context, header: Header, span: Span) -> Typed:
    """A gate's name alone: it keeps its declared indices. A complex one is two real ones. The transition is looked up in the
    matrix that it becomes, `[[a, -b], [b, a]]`, since that is what stability is seen to; so is the only part of a real source
    or mark of a complex state in what that becomes."""
    if context.site is not None:
        context.site.uses.setdefault(header.name, span)
    bind = tuple(Bind(index, index) for index in header.indices)
    row = [Bind("track", None, place=place) for place in (0, 1)]
    if header.form is Form.REAL:
        return _bound(GateRef(header.name, (*bind, row[0]) if header.paired else bind, span))
    if header.name == "transition":
        column = Bind("track'", None, place=0)
        return Cartesian(*(_bound(GateRef(header.name, (*bind, entry, column), span)) for entry in row))
    first, second = (_bound(GateRef(f"{header.name}.{half}", bind, span)) for half in header.form.halves)
    return Polar(first, second) if header.form is Form.POLAR else Cartesian(first, second)


def input_reference(context: Context, name: str, span: Span) -> Value:
    """`q`, `k` or `v` as the layer gives it."""
    bind = tuple(Bind(index, index) for index in input_indices(name, context.world.numbers))
    return _bound(InputRef(name, bind, span))  # pyright: ignore[reportArgumentType]


def _bound(reference: GateRef | InputRef) -> Value:
    return Value(reference, frozenset(entry.index for entry in reference.bind if entry.index is not None))


def indexed(context: Context, expression: tree.Indexed, scope: Scope, depth: int) -> Typed | None:
    """`base[...]`. On a reference it renames and pins; on anything else it restates the indices there are."""
    base = expression.base
    if isinstance(base, tree.Reference) and base.name.text == "eye" and "eye" not in scope.parameters:
        return _eye(context, expression)
    if isinstance(base, tree.List):
        return list_value(context, base, expression.indices, scope, depth)
    value = context.type_any(base, scope, depth + 1)
    match value:
        case None:
            return None
        case Value(expr=GateRef() | InputRef() as reference):
            return _rebound(context, reference, expression)
        case Polar(radius=Value(expr=GateRef() as first), angle=Value(expr=GateRef() as second)):
            both = _both_rebound(context, first, second, expression)
            return None if both is None else Polar(*both)
        case Cartesian(real=Value(expr=GateRef() as first), imaginary=Value(expr=GateRef() as second)):
            both = _both_rebound(context, first, second, expression)
            return None if both is None else Cartesian(*both)
        case _:
            return _restated(context, value, expression)


def _both_rebound(context: Context, first: GateRef, second: GateRef, expression: tree.Indexed) -> tuple[Value, Value] | None:
    """The two halves of a complex gate, changed alike."""
    rebound = _rebound(context, first, expression)
    other = None if rebound is None else _rebound(context, second, expression)
    return None if rebound is None or other is None else (rebound, other)


def _rebound(context: Context, reference: GateRef | InputRef, expression: tree.Indexed) -> Value | None:
    """A reference with its free indices renamed and pinned, as entries say, in the order in which it was declared."""
    name = written_name(reference.gate) if isinstance(reference, GateRef) else reference.name
    declared: tuple[Index, ...] = tuple(entry.index for entry in reference.bind if entry.index is not None)
    changes = _changes(context, name, declared, expression)
    if changes is None:
        return None
    bind = tuple(
        entry if entry.index is None else replace(changes[entry.index], declared=entry.declared) for entry in reference.bind
    )
    return _bound(replace(reference, bind=bind, span=expression.span))


def _changes(context: Context, name: str, declared: Sequence[Index], expression: tree.Indexed) -> dict[Index, Bind] | None:
    """What becomes of each index: a pinned entry names the index it pins, the others stand for what is left, in order."""
    pinned = {entry.index.text: entry for entry in expression.indices if entry.port is not None}
    plain = [entry for entry in expression.indices if entry.port is None]
    left: list[Index] = [index for index in declared if index not in pinned]
    has = f"`{name}` has {_indices(declared)}"
    changes: dict[Index, Bind] = {}
    for index, entry in pinned.items():
        if index not in declared:
            context.error("STM2011", f"`{name}` has no index `{index}` to pin", entry.span, has)
            return None
        port = None if is_state(entry) else pinned_port(context, entry)
        place = pinned_place(context, entry) if is_state(entry) else None
        if port is None and place is None:
            return None
        changes[INDEX_WORDS[index]] = Bind(INDEX_WORDS[index], None, port, place)
    pins: list[Index] = [index for index in declared if index in PORT_INDICES]
    words: list[Index | None] = [index_word(context, entry.index, pins) for entry in plain]
    if None in words:
        return None
    if len(words) != len(left) and (words or not pinned):
        help = f"write `{name}[{', '.join(declared)}]`, or `{name}` alone" if declared else f"write `{name}`"
        context.error("STM2011", f"`{name}` is given {_count(len(expression.indices))}", expression.span, has, help=help)
        return None
    # A reference that only pins keeps its other indices as they are.
    for index, word, entry in zip(left, words or left, plain or [None] * len(left), strict=True):
        if word is None or (entry is not None and not _renamed(context, index, word, entry.span)):
            return None
        changes[index] = Bind(index, word)
    return changes if _distinct(context, name, changes, expression) else None


def _indices(declared: Sequence[Index]) -> str:
    return f"the {'index' if len(declared) == 1 else 'indices'} {listed(declared)}" if declared else "no indices"


def _count(entries: int) -> str:
    return "one index" if entries == 1 else f"{entries} indices"


def _renamed(context: Context, index: Index, word: Index, span: Span) -> bool:
    """Whether an index may be renamed to another."""
    if index == word:
        return True
    if KINDS[index] != KINDS[word]:
        note = (
            "an index is renamed within its kind: `out` and `in`, `key` and `key'`, `value` and `value'`, `track` and `track'`"
        )
        context.error("STM2012", f"`{word}` cannot stand for `{index}`", span, note)
        return False
    if index in PORT_INDICES and not context.world.regular:
        note = "only on a chain or grid does every incoming edge have an outgoing edge of the same port"
        context.error("STM2013", f"`{word}` cannot stand for `{index}` on this topology", span, note)
        return False
    return True


def _distinct(context: Context, name: str, changes: dict[Index, Bind], expression: tree.Indexed) -> bool:
    words = [change.index for change in changes.values() if change.index is not None]
    if len(set(words)) == len(words):
        return True
    rule = "two indices of one gate stay two: there is no diagonal; `eye` times the gate, summed over one index, is one"
    context.error("STM2014", f"`{name}` is given one index twice", expression.span, rule)
    return False


def _restated(context: Context, value: Typed, expression: tree.Indexed) -> Typed | None:
    words: list[Index | None] = [index_word(context, entry.index) for entry in expression.indices]
    if None in words:
        return None
    pins = any(entry.port is not None for entry in expression.indices)
    free = free_of([value])
    if pins or len(set(words)) != len(words) or frozenset(words) != free:
        if isinstance(value, Value) and isinstance(value.expr, Number):
            context.error("STM2015", f"`{expression.base.span.text}` is a number and has no indices", expression.span)
            return None
        has = f"brackets behind anything but a gate restate its indices, and it has {_indices(ordered(set(free)))}"
        help = "give it a name in an equation of its own to rename or pin an index"
        context.error("STM2015", "these are not the indices of what stands before them", expression.span, has, help=help)
        return None
    return value


def _eye(context: Context, expression: tree.Indexed) -> Value | None:
    words: list[Index | None] = [index_word(context, entry.index) for entry in expression.indices]
    sound: list[Index] = [word for word in words if word is not None]
    if len(sound) != len(words):
        return None
    pair = len(sound) == 2 and sound[0] != sound[1] and KINDS[sound[0]] == KINDS[sound[1]]
    if not pair or sound[0] in PORT_INDICES or any(entry.port for entry in expression.indices):
        note = "`eye` is one where two state indices of a kind agree and zero elsewhere"
        help = "write `eye[key, key']`, `eye[value, value']` or `eye[track, track']`"
        context.error("STM2018", "`eye` does not have these indices", expression.span, note, help=help)
        return None
    return Value(Eye(sound[0], sound[1], expression.span), frozenset(sound))
