"""Which gates are complex numbers, and in which form, by their equations alone: known before any of them is typed.

An equation is typed with references in it to gates that come later, whose form it has to know. So forms are found first, by the
text: what a sum makes of complex numbers has a real and an imaginary part, products, quotients, conjugates and exponentials
keep a modulus and an angle. What is wrong with an expression is said when it is typed; here it is real.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from stmlang.check.definitions import subexpressions
from stmlang.check.modules import Definition, Module
from stmlang.check.typing.complex_values import Form
from stmlang.check.typing.values import DEEPEST
from stmlang.check.vocabulary import BUILT_IN
from stmlang.syntax import tree

Parameters = Mapping[str, Form]


def forms_of(equations: Sequence[tree.Equation], module: Module) -> dict[str, Form]:
    """The form of each gate that equations define: the largest one of its equations."""
    forms = {equation.target.text: Form.REAL for equation in equations}
    if not _speaks_of_complex([equation.value for equation in equations], module):
        return forms
    known: dict[tuple[int, tuple[Form, ...]], Form] = {}
    changed = True
    while changed:
        changed = False
        for equation in equations:
            name = equation.target.text
            form = _Reader(module, _seen(forms), known).form(equation.value, 0)
            if name != "direct" and form > forms[name]:
                forms[name] = form
                changed = True
    return forms


def _seen(forms: Mapping[str, Form]) -> dict[str, Form]:
    """What a reference to a gate is: of a complex transition an entry of the matrix that it becomes."""
    turned = forms.get("transition", Form.REAL)
    return {**forms, "transition": Form.CARTESIAN if turned > Form.REAL else turned}


def _speaks_of_complex(expressions: Sequence[tree.Expression], module: Module) -> bool:
    """Whether expressions make a complex number of real ones, themselves or through definitions."""
    waiting, followed = [(expression, module) for expression in expressions], set[int]()
    while waiting:
        expression, where = waiting.pop()
        for inner in subexpressions(expression):
            if not isinstance(inner, tree.Call):
                continue
            if inner.function.text in ("polar", "complex"):
                return True
            definition = where.names.get(inner.function.text)
            if isinstance(definition, Definition) and id(definition) not in followed:
                followed.add(id(definition))
                waiting.append((definition.item.value, definition.module))
    return False


@dataclass(frozen=True)
class _Reader:
    """Reads an expression of one file. `names` has the forms of gates, or in a definition's body those of its parameters;
    `known` those of definitions for the forms of their arguments."""

    module: Module
    names: Parameters
    known: dict[tuple[int, tuple[Form, ...]], Form] = field(repr=False)

    def form(self, expression: tree.Expression, depth: int) -> Form:
        """The form of an expression that stands `depth` operations deep."""
        if depth > DEEPEST:
            return Form.REAL
        each = partial(self.form, depth=depth + 1)
        match expression:
            case tree.Reference(name=name):
                return self.names.get(name.text, Form.REAL)
            case tree.Indexed(base=base) | tree.Negate(operand=base):
                return each(base)
            case tree.List(entries=entries):
                return _added(list(map(each, entries)))
            case tree.Sum(terms=terms):
                return _added(list(map(each, (term for _, term in terms))))
            case tree.Product(factors=factors):
                return max(map(each, (factor for _, factor in factors)))
            case tree.Call():
                return self.called(expression, depth + 1)
            case tree.Number() | tree.Power():
                return Form.REAL

    def called(self, call: tree.Call, depth: int) -> Form:
        """The form of what a function gives."""
        name = call.function.text
        inside = list(map(partial(self.form, depth=depth), (argument.value for argument in call.arguments)))
        match name:
            case "polar":
                return Form.POLAR
            case "complex":
                return Form.CARTESIAN
            case "exp":
                return Form.POLAR if max(inside, default=Form.REAL) > Form.REAL else Form.REAL
            case "conjugate":
                return max(inside, default=Form.REAL)
            case "sum" | "mean":
                return _added(inside)
            case _ if name in BUILT_IN:
                return Form.REAL
            case _:
                definition = self.module.names.get(name)
                return self.expanded(definition, call, depth) if isinstance(definition, Definition) else Form.REAL

    def expanded(self, definition: Definition, call: tree.Call, depth: int) -> Form:
        """The form of a definition's body for a call's arguments. One that leads back to itself is real: it is refused."""
        names = definition.parameters
        bound = dict.fromkeys(names, Form.REAL)
        for place, argument in enumerate(call.arguments):
            name = argument.name.text if argument.name is not None else names[place] if place < len(names) else None
            if name in bound:
                bound[name] = self.form(argument.value, depth)
        key = (id(definition), tuple(bound.values()))
        if key not in self.known:
            self.known[key] = Form.REAL
            self.known[key] = _Reader(definition.module, bound, self.known).form(definition.item.value, depth)
        return self.known[key]


def _added(forms: Sequence[Form]) -> Form:
    """A sum: with a complex term it has a real and an imaginary part."""
    return Form.CARTESIAN if max(forms, default=Form.REAL) > Form.REAL else Form.REAL
