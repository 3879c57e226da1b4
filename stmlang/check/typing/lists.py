"""Lists: `[1, 0.5, 0.25][key]`, values written out along indices of the state, and lists of lists for matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stmlang.check.problems import listed
from stmlang.check.typing.complex_arithmetic import cartesian
from stmlang.check.typing.complex_values import Cartesian, Typed, free_of
from stmlang.check.typing.context import Context
from stmlang.check.typing.indices import index_word, state_size
from stmlang.check.typing.scope import Scope
from stmlang.check.typing.values import Value, combined
from stmlang.scan.expression import PORT_INDICES, STEP, Index, Stack
from stmlang.source.span import Span
from stmlang.syntax import tree


def bare_list(context: Context, expression: tree.List) -> None:
    """Report a list whose index is not said."""
    note = "a list holds values along an index of the state, and the bracket behind it says which"
    help = f"write `{expression.span.text}[key]`, or make it gates of their own" if len(expression.span.text) < 60 else None
    context.error("STM2050", "this list has no index", expression.span, note, help=help)


def list_value(context: Context, base: tree.List, entries: Sequence[tree.IndexUse], scope: Scope, depth: int) -> Typed | None:
    """A list with its indices, one for each level of lists in it."""
    if context.site is None:
        context.error("STM1011", "a list is not a number", base.span, f"{context.world.constant} is a number")
        return None
    words: list[Index] = []
    for entry in entries:
        word = index_word(context, entry.index)
        if word is None:
            return None
        if word in (*PORT_INDICES, STEP) or word in words or entry.port is not None:
            note = "a list lies along the indices `key`, `value` or `track`, primed or not, each of them once"
            context.error("STM2050", "a list cannot lie along this index", entry.span, note)
            return None
        words.append(word)
    # An entry stands for one position: a leaf in it lacks the list's indices, as one of an equation for a position does.
    own = replace(context.site, indices=tuple(index for index in context.site.indices if index not in words))
    return _level(replace(context, site=own), base, words, scope, depth)


def _level(context: Context, base: tree.Expression, words: Sequence[Index], scope: Scope, depth: int) -> Typed | None:
    """A list along the first of the indices, of lists along the others."""
    if not words:
        return context.type_any(base, scope, depth + 1)
    if not isinstance(base, tree.List):
        note = f"it lies along {listed(words)}, and so is a list"
        context.error("STM2050", "this is not a list", base.span, note)
        return None
    if not _fits(context, len(base.entries), words[0], base.span):
        return None
    values = [_level(context, entry, words[1:], scope, depth + 1) for entry in base.entries]
    sound = [value for value in values if value is not None]
    if len(sound) < len(values):
        return None
    for value, entry in zip(sound, base.entries, strict=True):
        if words[0] in free_of([value]):
            note = f"the list itself runs along `{words[0]}`, of which an entry stands for one position"
            context.error("STM2050", f"this entry depends on `{words[0]}`", entry.span, note)
            return None
    numbers = [value for value in sound if isinstance(value, Value)]
    if len(numbers) == len(sound):
        return _stacked(context, numbers, words[0], base.span)
    pairs = [pair for value in sound if (pair := cartesian(context, base.span, value)) is not None]
    real = _stacked(context, [pair.real for pair in pairs], words[0], base.span)
    imaginary = _stacked(context, [pair.imaginary for pair in pairs], words[0], base.span)
    return None if len(pairs) < len(sound) or real is None or imaginary is None else Cartesian(real, imaginary)


def _stacked(context: Context, values: Sequence[Value], index: Index, span: Span) -> Value | None:
    stack = Stack(index, tuple(enumerate(value.expr for value in values)), None, span)
    return context.made(combined(stack, values, extra=frozenset({index})))


def _fits(context: Context, count: int, index: Index, span: Span) -> bool:
    """Whether a list has as many entries as its index has values."""
    size = state_size(context, index, span)
    if size is None or count == size:
        return size is not None
    entries = "one entry" if count == 1 else f"{count} entries"
    note = f"`{index}` takes {size} {'value' if size == 1 else 'values'} in this scan"
    context.error("STM2051", f"this list has {entries}", span, note)
    return False
