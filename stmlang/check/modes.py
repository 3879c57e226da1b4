"""The settings of a scan's body: `directions`, `stabilize`, `normalize` and `read after`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from stmlang.check.problems import Problems, listed
from stmlang.check.vocabulary import CORE, INPUTS
from stmlang.scan.expression import InputName
from stmlang.scan.scan import Direction, Mode
from stmlang.scan.topology import Topology, is_regular, kind_of, ports
from stmlang.source.advice import Advice, replaced, written
from stmlang.source.diagnostic import Label
from stmlang.source.span import Span
from stmlang.syntax import tree
from stmlang.syntax.settings import SETTING_CHOICES, setting_near

MOST_DIRECTIONS = 64

Constant = Callable[[tree.Expression], float | None]

Combine = Literal["sum", "concat"]
Normalization = Literal["none", "sum", "mlstm"]
NORMALIZATIONS = ("none", "sum", "mlstm")
_OTHER_WORDS = {
    **dict.fromkeys(("propagate", "propagation", "p_mode", "p-mode"), "P"),
    **dict.fromkeys(("distribute", "distribution", "d_mode"), "D"),
    **dict.fromkeys(("off", "no", "false", "never", "unbounded"), "none"),
    **dict.fromkeys(("on", "yes", "true", "default", "automatic"), "auto"),
    **dict.fromkeys(("rows", "softmax", "linear_attention"), "sum"),
    **dict.fromkeys(("xlstm", "lstm"), "mlstm"),
}
"""What else a choice may be called."""
_OTHER_DIRECTIONS = {
    **dict.fromkeys(("bidirectional", "bidirected", "two", "twoway"), "both"),
    **dict.fromkeys(("reverse", "reversed", "right_to_left", "down"), "backward"),
    **dict.fromkeys(("causal", "left_to_right", "up", "unidirectional"), "forward"),
    **dict.fromkeys(("every", "any", "four", "multidirectional"), "all"),
}
"""What else a set of directions may be called."""
_NAMED = ("forward", "backward", "both", "all")


@dataclass
class Modes:
    """What the settings say, with what holds where they say nothing."""

    directions: tuple[Direction, ...] = ()
    combine: Combine = "sum"
    own: tuple[InputName, ...] = ()
    stabilize: Mode = Mode.AUTO
    normalize: Normalization = "none"
    epsilon: float = 0.0
    read_after: Span | None = None
    places: dict[str, Span] = field(default_factory=dict[str, Span])


def modes(problems: Problems, settings: Sequence[tree.Setting], topology: Topology | None, constant: Constant) -> Modes:
    """The settings of a scan. Errors are reported and leave what holds by default. `constant` is the number that an expression
    is, None after an error."""
    chosen = Modes()
    if topology is not None:
        chosen.directions = (Direction((1,) * len(ports(topology))),)
    for setting in settings:
        keyword = setting.keyword.text
        if keyword in chosen.places:
            labels = [Label(chosen.places[keyword], "first set here")]
            problems.error("STM2033", f"`{keyword}` is set twice", setting.span, labels=labels)
            continue
        chosen.places[keyword] = setting.span
        if setting.arguments and (keyword, *(word.text for word in setting.words)) != ("normalize", "mlstm"):
            problems.error("STM2033", "this setting takes nothing in brackets", setting.span, "only `normalize mlstm` does")
        match keyword:
            case "directions":
                _directions(problems, setting, topology, chosen)
            case "stabilize":
                word = _choice(problems, setting, [mode.value for mode in Mode])
                chosen.stabilize = chosen.stabilize if word is None else Mode(word)
            case "normalize":
                word = _choice(problems, setting, NORMALIZATIONS)
                chosen.normalize = chosen.normalize if word is None else cast(Normalization, word)
                chosen.epsilon = _epsilon(problems, setting, constant) if word == "mlstm" else 0.0
            case _:
                chosen.read_after = None if _choice(problems, setting, ["after"]) is None else setting.span
    return chosen


def _epsilon(problems: Problems, setting: tree.Setting, constant: Constant) -> float:
    """The number in the bracket of `normalize mlstm`, zero where there is none."""
    match setting.arguments:
        case ():
            return 0.0
        case (tree.Argument(name=None | tree.Name(text="eps"), value=written),):
            value = constant(written)
        case _:
            help = "write `normalize mlstm(eps = 1e-6)`"
            problems.error("STM2033", "`normalize mlstm` takes one number, `eps`", setting.span, help=help)
            return 0.0
    if value is not None and value < 0:
        note = "it is added to what is divided by, so that it is never zero"
        problems.error("STM2025", f"`eps` is {value:g}, below zero", written.span, note)
    return value or 0.0


def _choice(problems: Problems, setting: tree.Setting, choices: Sequence[str]) -> str | None:
    """The one word of a setting, which must be one of the choices."""
    keyword, words = setting.keyword.text, setting.words
    usage = f"`{keyword}` is followed by {listed(choices, 'or')}"
    if len(words) != 1:
        problems.error("STM2033", f"`{keyword}` takes one word", setting.span, usage)
        return None
    if words[0].text not in choices:
        help = _meant(problems, keyword, words[0], choices)
        problems.error("STM2033", f"`{keyword}` cannot be `{words[0].text}`", words[0].span, usage, help=help)
        return None
    return words[0].text


def _meant(problems: Problems, keyword: str, word: tree.Name, choices: Sequence[str]) -> str | Advice | None:
    """The choice that a word may stand for."""
    meant = _OTHER_WORDS.get(word.text.lower())
    if meant is not None and meant in choices:
        return replaced(f"write `{keyword} {meant}`", word.span, meant)
    return problems.near(word.text, choices, f"{keyword} {{}}", at=word.span)


# --- directions


def _directions(problems: Problems, setting: tree.Setting, topology: Topology | None, chosen: Modes) -> None:
    words = list(setting.words)
    if words and words[-1].text == "concat":
        chosen.combine = "concat"
        words.pop()
    words, named = _without_own(words)
    usage = "`directions` is followed by `forward`, `backward`, `both`, `all`, or senses like `+rows -cols, -rows +cols`"
    if not words:
        problems.error("STM2033", "`directions` does not say which", setting.span, usage)
        return
    if named is not None:
        chosen.own = _own(problems, named)
    if words[0].text in "+-":
        explicit = _explicit(problems, words, topology)
        chosen.directions = explicit if explicit is not None else chosen.directions
        return
    if len(words) > 1 or words[0].text not in _NAMED:
        word = words[1] if words[0].text in _NAMED else words[0]
        wrong = f"`directions {words[0].text}` cannot go on with" if word is not words[0] else "`directions` cannot be"
        meant = _OTHER_DIRECTIONS.get(word.text.lower()) if word is words[0] else None
        help = problems.near(word.text, (*_NAMED, "own", "concat"), at=word.span)
        if meant is not None:
            help = replaced(f"write `directions {meant}`", word.span, meant)
        problems.error("STM2033", f"{wrong} `{word.text}`", word.span, usage, help=help)
        return
    if topology is not None:
        named = _named(problems, words[0], topology)
        chosen.directions = named if named is not None else chosen.directions


def _without_own(words: list[tree.Name]) -> tuple[list[tree.Name], list[tree.Name] | None]:
    """The words before `own` and those from it on, None where there is none. Behind a sign it is the name of a port."""
    for place, word in enumerate(words):
        if word.text == "own" and (place == 0 or words[place - 1].text not in "+-"):
            return words[:place], words[place:]
    return words, None


def _own(problems: Problems, words: list[tree.Name]) -> tuple[InputName, ...]:
    """`own q k v`: the inputs of which each direction has one of its own."""
    own, *names = words
    usage = "`own` is followed by those of `q`, `k` and `v` of which each direction has one of its own, and then maybe `concat`"
    if not names:
        help = written(own.span, "own q k v")
        problems.error("STM2033", "`own` does not say what", own.span, usage, help=help)
    places: dict[str, Span] = {}
    for name in names:
        if name.text not in INPUTS:
            problems.error("STM2033", f"`own` cannot go on with `{name.text}`", name.span, usage)
        elif name.text in places:
            labels = [Label(places[name.text], "first written here")]
            problems.error("STM2033", f"`own` names `{name.text}` twice", name.span, labels=labels)
        places.setdefault(name.text, name.span)
    return tuple(name for name in INPUTS if name in places)


def _named(problems: Problems, word: tree.Name, topology: Topology) -> tuple[Direction, ...] | None:
    count = len(ports(topology))
    forward, backward = Direction((1,) * count), Direction((-1,) * count)
    match word.text:
        case "forward":
            return (forward,)
        case "backward":
            return (backward,)
        case "both":
            return (forward, backward)
        case _:
            pass
    if not is_regular(topology):
        note = f"the senses of a {kind_of(topology)}'s edges are turned all together"
        problems.error(
            "STM2035",
            "`directions all` needs a chain or a grid",
            word.span,
            note,
            help=replaced("write `directions both`", word.span, "both"),
        )
        return None
    if 2**count > MOST_DIRECTIONS:
        note = f"`all` means 2^{count} of them; a scan has at most {MOST_DIRECTIONS}"
        problems.error("STM2036", "too many directions", word.span, note, help="write out the ones that are wanted")
        return None
    # Direction i turns axis a around exactly if bit a of i is set.
    return tuple(Direction(tuple(-1 if i >> axis & 1 else 1 for axis in range(count))) for i in range(2**count))


def _explicit(problems: Problems, words: list[tree.Name], topology: Topology | None) -> tuple[Direction, ...] | None:
    """`+rows -cols, -rows +cols`: each direction gives every port a sense."""
    groups: list[list[tree.Name]] = [[]]
    for word in words:
        if word.text == ",":
            groups.append([])
        else:
            groups[-1].append(word)
    if topology is None:
        return None
    if not is_regular(topology):
        note = f"the senses of a {kind_of(topology)}'s edges are turned all together"
        span = words[0].span.to(words[-1].span)
        help = replaced("write `directions forward`, `backward` or `both`", span, "both")
        problems.error("STM2035", "senses of ports need a chain or a grid", span, note, help=help)
        return None
    if len(groups) > MOST_DIRECTIONS:
        note = f"a scan has at most {MOST_DIRECTIONS}"
        problems.error("STM2036", "too many directions", words[0].span.to(words[-1].span), note)
        return None
    names = [port.name for port in ports(topology)]
    spans: dict[Direction, Span] = {}
    for group in groups:
        span = group[0].span.to(group[-1].span) if group else words[-1].span
        direction = _senses(problems, group, names, span)
        if direction is None:
            return None
        if direction in spans:
            labels = [Label(spans[direction], "first written here")]
            problems.error("STM2034", "this direction is written twice", span, labels=labels)
            return None
        spans[direction] = span
    return tuple(spans)


def _senses(problems: Problems, group: list[tree.Name], names: list[str], span: Span) -> Direction | None:
    example = " ".join(f"+{name}" for name in names)
    senses: dict[str, int] = {}
    signs, axes = group[::2], group[1::2]
    if not group or len(signs) != len(axes) or any(sign.text not in "+-" for sign in signs):
        note = "a direction gives each port a sense, `+` along its edges or `-` against them"
        problems.error("STM2034", "this is not a direction", span, note, help=written(span, example))
        return None
    for sign, axis in zip(signs, axes, strict=True):
        if axis.text not in names:
            note = f"the ports of this topology are {listed(names)}"
            problems.error(
                "STM2006",
                f"there is no port `{axis.text}`",
                axis.span,
                note,
                help=problems.near(axis.text, names, at=axis.span),
            )
            return None
        if axis.text in senses:
            problems.error("STM2034", f"this direction gives `{axis.text}` two senses", axis.span)
            return None
        senses[axis.text] = 1 if sign.text == "+" else -1
    missing = [name for name in names if name not in senses]
    if missing:
        problems.error(
            "STM2034",
            f"this direction says nothing of {listed(missing)}",
            span,
            help=written(span, " ".join([span.text, *(f"+{name}" for name in missing)])),
        )
        return None
    return Direction(tuple(senses[name] for name in names))


# --- settings that look like equations


def without_settings(problems: Problems, equations: Sequence[tree.Equation]) -> list[tree.Equation]:
    """The equations but for those that are settings, misspelt and with a `=`, as `stabilise = P`: these are refused."""
    gates = {equation.target.text for equation in equations}
    equations_of_gates: list[tree.Equation] = []
    for equation in equations:
        name, value = equation.target, equation.value
        word = value.name.text if isinstance(value, tree.Reference) and not equation.indices else None
        meant = setting_near(name.text) if word is not None and word not in gates and name.text not in CORE else None
        if word is None or meant is None or word not in SETTING_CHOICES[meant]:
            equations_of_gates.append(equation)
            continue
        help = replaced(f"a setting has no `=`: write `{meant} {word}`", name.span.to(value.span), f"{meant} {word}")
        problems.error("STM2033", f"there is no setting `{name.text}`", name.span, help=help)
    return equations_of_gates
