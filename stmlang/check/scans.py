"""One scan: from its head and body to the typed `Scan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stmlang.check.assemble import Draft, finish
from stmlang.check.clauses import Written, in_force, with_index
from stmlang.check.foreign_names import SIZES_ELSEWHERE
from stmlang.check.forms import forms_of
from stmlang.check.headers import Declared, declared
from stmlang.check.implied import implied
from stmlang.check.inline_graphs import Graphs
from stmlang.check.matrix_leaves import warn_matrices
from stmlang.check.modes import modes, without_settings
from stmlang.check.modules import Module
from stmlang.check.places import by_places
from stmlang.check.problems import Problems
from stmlang.check.search_path import Place
from stmlang.check.sizes import Settings, Sizer
from stmlang.check.topologies import Topologies
from stmlang.check.typing.complex_arithmetic import in_form, real_part
from stmlang.check.typing.complex_values import Form, Typed, free_of, reals
from stmlang.check.typing.context import Context
from stmlang.check.typing.expressions import context_for
from stmlang.check.typing.scope import Budget, Header, NoNumber, Numbers, Scope, Site, World
from stmlang.check.vocabulary import ALLOWED, CORE, INPUTS, MEANT, RESERVED, SIZES, TERM_SIZES
from stmlang.scan.expression import (
    STEP,
    WRITTEN_INDICES,
    Expr,
    Eye,
    GateRef,
    Index,
    InputRef,
    LeafRef,
    LineMask,
    Neighbour,
    Reduce,
    Split,
    Stack,
    children,
)
from stmlang.scan.scan import Clause, Scan, has_scale
from stmlang.scan.topology import ports
from stmlang.source.advice import Advice, replaced
from stmlang.source.diagnostic import Label
from stmlang.source.span import Span
from stmlang.source.suggest import nearest
from stmlang.syntax import tree

_DEFAULTS = {"heads": 1.0, "key": 64.0, "value": 64.0}


class ScanChecker:
    """Checks one scan item of a file."""

    def __init__(
        self,
        problems: Problems,
        budget: Budget,
        graphs: Graphs,
        settings: Settings,
        item: tree.ScanItem,
        module: Module,
        places: Sequence[Place],
        *,
        chosen: bool,
    ) -> None:
        self._problems = problems
        self._budget = budget
        self._graphs = graphs
        self._settings = settings
        self._item = item
        self._module = module
        self._places = places
        self._chosen = chosen
        self._numbers: Numbers = {}
        self._pending: dict[str, tree.SizeParameter] = {}
        self._used: set[str] = set()
        self._forms: dict[str, Form] = {}
        self._complex = False
        self._sizer = Sizer(problems, budget, settings, self._used)

    def run(self) -> Scan | None:
        """The scan, None after an error."""
        every = [statement for statement in self._item.body if isinstance(statement, tree.Equation)]
        equations = without_settings(self._problems, every)
        settings = [statement for statement in self._item.body if isinstance(statement, tree.Setting)]
        self._forms = forms_of(equations, self._module)
        self._complex = max(self._forms.get(name, Form.REAL) for name in ("source", "transition")) > Form.REAL
        tracks = self._tracks()
        defaults = self._parameters(tracks is not None)
        builder = Topologies(self._sizer, self._graphs, self._numbers, defaults, self._places)
        topology = builder.build(self._item.topology, self._module)
        sizes = self._sizes(tracks)
        if topology is not None:
            self._refuse_pending()
        else:
            # An axis of a broken topology may be named anywhere.
            self._numbers.update(dict.fromkeys(self._pending, NoNumber.BROKEN))
        draft = Draft(self._item, topology, sizes, modes(self._problems, settings, topology, self._epsilon))
        self._gates(draft, equations)
        scan = finish(self._problems, draft)
        if not self._problems.failed:
            self._warn_unused()
        if scan is not None and scan.epsilon and not has_scale(scan):
            note = "it is added at the scale of the largest term so far, which chains have whose gates act on no state axis"
            self._problems.error(
                "STM2033", "`eps` has no meaning here", draft.modes.places["normalize"], note, help="leave it away"
            )
            return None
        if scan is not None:
            warn_matrices(self._problems, scan)
        return scan

    def _tracks(self) -> Span | None:
        """Where an equation first has the index `track`. In a scan of complex states none has."""
        tracks = self._on_the_left("track")
        written = next((parameter.span for parameter in self._item.parameters if parameter.name.text == "track"), tracks)
        if not self._complex or written is None:
            return tracks
        note = "`source` or `transition` is complex: the two tracks of the state are its real and its imaginary part"
        self._problems.error("STM2056", "a complex state has no tracks of its own", written, note)
        return None

    def _epsilon(self, expression: tree.Expression) -> float | None:
        number = self._sizer.number(expression, self._module, self._numbers, "an epsilon")
        return None if isinstance(number, NoNumber) else number

    # --- the head

    def _parameters(self, tracks: bool) -> Numbers:
        """The numbers of the scan's head, which also are what its axes have by default."""
        written: dict[str, tree.SizeParameter] = {}
        for parameter in self._item.parameters:
            name = parameter.name.text
            taken = RESERVED.get(name) if name not in SIZES else None
            if taken is not None or name in (*INPUTS, *CORE):
                self._problems.error("STM1005", f"`{name}` {taken or MEANT} and cannot name a parameter", parameter.name.span)
            elif name in written:
                labels = [Label(written[name].span, "first declared here")]
                self._problems.error("STM1004", f"the parameter `{name}` is declared twice", parameter.name.span, labels=labels)
            else:
                written[name] = parameter
        for name in SIZES:
            if name not in written and name not in TERM_SIZES.values() and (name != "track" or tracks):
                value = self._settings.take(name)
                value = _DEFAULTS.get(name, NoNumber.BROKEN) if value is None else value
                self._numbers[name] = value
        for name, parameter in written.items():
            value = self._settings.take(name)
            if value is None and parameter.default is not None:
                value = self._sizer.number(parameter.default, self._module, self._numbers, "a parameter")
            if value is None and name in _DEFAULTS:
                value = _DEFAULTS[name]
            if value is None:
                self._pending[name] = parameter
            self._numbers[name] = NoNumber.BROKEN if value is None else value
        return {name: value for name, value in self._numbers.items() if name not in self._pending}

    def _refuse_pending(self) -> None:
        """Parameters that have no value and name no axis, of the scan that is asked for."""
        for name, parameter in self._pending.items():
            if self._numbers[name] is NoNumber.BROKEN and self._chosen and name != "track":
                help = f"give it one, `{name} = 1`, or set it from outside"
                self._problems.error("STM1015", f"the parameter `{name}` has no value", parameter.span, help=help)

    def _sizes(self, tracks: Span | None) -> dict[str, int] | None:
        """The sizes of the state and of what nodes write and read; None after an error."""
        places = {parameter.name.text: parameter.span for parameter in self._item.parameters}
        sizes: dict[str, int] = {}
        for name in ("heads", "key", "value"):
            size = self._sizer.whole(name, self._numbers[name], places.get(name), least=1)
            self._numbers[name] = NoNumber.BROKEN if size is None else float(size)
            sizes |= {} if size is None else {name: size}
        track = self._numbers.get("track")
        if self._complex:
            sizes["track"] = 2
        elif tracks is None:
            if "track" in places:
                note = "the tracks of a state are told apart by the index `track` of `source`, `transition` and `mark`"
                self._problems.error("STM2039", "no gate has the index `track`", places["track"], note)
            sizes["track"] = 1
        elif self._settings.take("track") is None and ("track" in self._pending or "track" not in places):
            help = f"write `scan {self._item.name.text}(track = 4)`"
            self._problems.error("STM2039", "the index `track` has no size", tracks, help=help)
        elif track is not None:
            size = self._sizer.whole("track", track, places.get("track"), least=1)
            sizes |= {} if size is None else {"track": size}
        sizes |= self._term_sizes(places)
        return sizes if len(sizes) == len(SIZES) else None

    def _term_sizes(self, places: Mapping[str, Span]) -> dict[str, int]:
        """`writes` and `reads`: one of each, unless the head says how many."""
        sizes: dict[str, int] = {}
        for index, name in TERM_SIZES.items():
            if name in places:
                size = self._sizer.whole(name, self._numbers[name], places[name], least=1)
                self._numbers[name] = NoNumber.BROKEN if size is None else float(size)
                sizes |= {} if size is None else {name: size}
                continue
            used = self._on_the_left(index)
            if used is None:
                sizes[name] = 1
            else:
                note = f"a node {index}s once, unless the head of the scan says how often"
                help = f"write `scan {self._item.name.text}({name} = 2)`"
                self._problems.error("STM2044", f"the index `{index}` has no size", used, note, help=help)
        return sizes

    def _on_the_left(self, index: str) -> Span | None:
        """Where an equation first has an index."""
        equations = (statement for statement in self._item.body if isinstance(statement, tree.Equation))
        return next((entry.span for equation in equations for entry in equation.indices if entry.index.text == index), None)

    # --- the body

    def _gates(self, draft: Draft, equations: Sequence[tree.Equation]) -> None:
        world = World(self._numbers, topology=draft.topology, used=self._used)
        gates = declared(context_for(self._problems, self._budget, world), equations)
        self._set_forms(gates)
        draft.declared = gates
        track = None if self._complex else 1 if draft.sizes is None else draft.sizes["track"]
        draft.implied = implied(self._problems, draft.modes, gates, draft.topology, track, self._item.name.span)
        self._refuse_missing(gates)
        world.gates.update({name: gate.header for name, gate in gates.items()})
        world.gates.update({name: gate and gate.header for name, gate in draft.implied.items()})
        for name, gate in gates.items():
            self._gate(draft, world, name, gate)

    def _set_forms(self, gates: Mapping[str, Declared]) -> None:
        """Tell headers which gates are complex, and refuse those that cannot be."""
        for name, gate in gates.items():
            form = self._forms.get(name, Form.REAL)
            if form > Form.REAL and name in INPUTS:
                note = (
                    "`q`, `k` and `v` are real: what multiplies a query belongs into `mark` and `direct`, a key's into `source`"
                )
                self._problems.error("STM2054", f"`{name}` is a complex number", gate.name.span, note)
                gate.header = None
            elif form > Form.REAL and name == "mark" and not self._complex:
                note = "neither `source` nor `transition` is complex, so that the state is real"
                help = "read it by a real number, such as `real(...)`, or write complex numbers to it"
                self._problems.error("STM2055", "`mark` is complex and the state is not", gate.name.span, note, help=help)
                gate.header = None
            elif gate.header is not None:
                paired = self._complex and (name in ("source", "mark") or (name == "transition" and form > Form.REAL))
                gate.header = replace(gate.header, form=form, paired=paired)

    def _refuse_missing(self, gates: dict[str, Declared]) -> None:
        for name in ("source", "transition"):
            if name not in gates:
                note = "every scan says what a node adds, `source`, and what becomes of what it is given, `transition`"
                help = self._instead_of(name, gates)
                message = f"`{self._item.name.text}` has no `{name}`"
                self._problems.error("STM1032", message, self._item.name.span, note, help=help)

    def _instead_of(self, name: str, gates: dict[str, Declared]) -> Advice:
        """A gate that may be the missing one under a misspelt name, or the simplest equation, before the brace at the end."""
        letter = name[0].upper()
        near = letter if letter in gates else nearest(name, [other for other in gates if other not in CORE])
        if near is not None:
            return replaced(f"if `{near}` is meant, call it `{name}`", gates[near].name.span, name)
        last = self._item.span
        brace = Span(last.file, last.end - 1, last.end)
        return replaced(f"write `{name} = 1` for the simplest one", brace, f"\n    {name} = 1\n}}")

    def _gate(self, draft: Draft, world: World, name: str, gate: Declared) -> None:
        """Type the equations of one gate."""
        draft.uses[name] = {}
        if gate.header is None:
            return
        names = [] if draft.topology is None else [port.name for port in ports(draft.topology)]
        indices = gate.header.indices
        sizes: dict[Index, int] = {
            index: int(size) for index in indices if isinstance(size := self._numbers.get(index.rstrip("'")), float | int)
        }
        halves: list[list[Clause]] = [[] for _ in (gate.header.form.halves if gate.header.form > Form.REAL else "1")]
        for group in in_force(self._problems, name, indices, gate.written, names):
            typed = [(written, self._equation(draft, world, gate.header, written)) for written in group]
            sound = [(written, value) for written, value in typed if value is not None]
            if len(sound) < len(typed):
                continue
            for number, clauses in enumerate(halves):
                each = [(written, reals(value)[number].expr) for written, value in sound]
                value = by_places(self._problems, name, indices, each, sizes, quiet=number > 0)
                clauses += [] if value is None else [Clause(group[0].pins, value)]
        if len(halves) == 2:
            draft.halves[name] = (tuple(halves[0]), tuple(halves[1]))
        else:
            draft.clauses[name] = tuple(halves[0])

    def _equation(self, draft: Draft, world: World, header: Header, written: Written) -> Typed | None:
        """The value of one equation, in the form of its gate; None after an error."""
        site = _site(header.name, header.indices, written)
        context = context_for(self._problems, self._budget, world, site)
        span = written.equation.value.span
        value = context.type_any(written.equation.value, Scope(self._module))
        if value is not None:
            value = (
                real_part(context, span, value)
                if header.form is Form.REAL and header.name == "direct"
                else in_form(context, span, value, header.form)
            )
        for used, place in site.uses.items():
            draft.uses[header.name].setdefault(used, place)
        if value is None:
            return None
        self._budget.weight -= sum(half.weight for half in reals(value))
        if self._budget.weight < 0:
            context.too_large(span)
        for index in sorted(free_of([value]) - set(site.indices)):
            half = next(half for half in reals(value) if index in half.free)
            _refuse_free(context, written, index, half.expr)
        draft.leaves[header.name] = (*draft.leaves.get(header.name, ()), *site.leaves)
        return value

    def _warn_unused(self) -> None:
        sizes = {axis for axis in self._numbers if axis not in self._used}
        for parameter in self._item.parameters:
            name = parameter.name.text
            if name in sizes and name not in SIZES and name not in self._sizer.asked:
                meant = SIZES_ELSEWHERE.get(name)
                said = meant is None or any(other.name.text == meant for other in self._item.parameters)
                help = None if meant is None or said else replaced(f"did you mean `{meant}`?", parameter.name.span, meant)
                self._problems.warn("STM1035", f"nothing uses the parameter `{name}`", parameter.span, help=help)


def _site(gate: str, indices: tuple[Index, ...], written: Written) -> Site:
    """The equation as what stands in it needs to know it. The first leaf of an equation for some ports carries their names:
    `transition[rows,in]`; that of one for some positions has all indices of its gate: `transition[0,track']`."""
    pins = {**dict(written.pins), **{index: str(place) for index, place in written.places}}
    ports_shown = [pins.get(index, index) for index in indices if index in ("out", "in") or written.places]
    label = f"{gate}[{','.join(ports_shown)}]" if pins else gate
    return Site(gate, label, tuple(index for index in indices if index not in pins), written.equation.span)


# --- free indices


def _refuse_free(context: Context, written: Written, index: Index, value: Expr) -> None:
    """Report an index that the right side has and the left side lacks, at the first thing that has it."""
    span = _origin(value, index, written.equation.value.span)
    name = written.equation.target.text
    pinned = dict(written.pins).get(index)
    if pinned is not None:
        note = f"this equation is for `{index} = {pinned}`, so that nothing on its right may range over `{index}`"
        gate = span.text.partition("[")[0]
        help = f"pin it: `{gate}[{index} = {pinned}]`" if gate.isidentifier() else "make it a gate of its own, and pin that"
        context.error("STM2008", f"`{index}` is free here", span, note, help=help)
        return
    if dict(written.places).get(index) is not None:
        note = f"this equation is for one position of `{index}`, so that nothing on its right may range over it"
        gate = span.text.partition("[")[0]
        place = dict(written.places)[index]
        help = f"pin it: `{gate}[{index} = {place}]`" if gate.isidentifier() else "make it a gate of its own, and pin that"
        context.error("STM2008", f"`{index}` is free here", span, note, help=help)
        return
    note = f"the left side, `{' '.join(written.head.text.split())}`, does not have the index `{index}`"
    summed = "" if index == STEP else f"sum over it, `sum(..., over = {index})`"
    help: str | Advice = summed
    if index in ALLOWED.get(name, WRITTEN_INDICES):
        head = with_index(written.equation.span, index)
        help = replaced(f"{summed}{', or ' if summed else ''}write `{head.text} = ...`", head.span, head.text)
    context.error("STM2008", f"`{index}` is free here", span, note, help=help)


def _origin(value: Expr, index: Index, within: Span) -> Span:
    """The place, inside the equation, of the first part that brings an index into an expression."""
    stack = [(value, within)]
    while stack:
        expr, span = stack.pop()
        if expr.span.file is within.file and within.start <= expr.span.start and expr.span.end <= within.end:
            span = expr.span
        if _brings(expr, index):
            return span
        if not (isinstance(expr, Reduce) and expr.over == index):
            stack += [(operand, span) for operand in reversed(children(expr))]
    return within


def _brings(expr: Expr, index: Index) -> bool:
    match expr:
        case LeafRef(indices=indices):
            return index in indices
        case InputRef(bind=bind) | GateRef(bind=bind):
            return any(entry.index == index for entry in bind)
        case Eye(first=first, second=second):
            return index in (first, second)
        case Stack(index=own):
            return index == own
        case Neighbour(over=over):
            return index == over
        case Split() | LineMask():
            return index == "out"
        case _:
            return False
