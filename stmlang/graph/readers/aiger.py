"""AIGER, and-inverter graphs, as text (`aag`) or binary (`aig`): an edge from each fanin of an AND gate to the gate.

    aag 5 2 0 1 3      largest variable, inputs, latches, outputs, gates
    2                  inputs, as literals: twice the variable, and 1 more for its complement
    4
    11                 outputs, as literals
    6 2 4              gates: a literal and its two fanins
    8 3 5
    10 7 9
    i0 a               names of inputs (`i`), outputs (`o`)
    c                  a comment up to the end

Nodes are the inputs, then the gates, in the order of the file; edges come gate by gate, the first fanin first. Inverters are
not told apart. A constant fanin makes no edge, a fanin that is given twice makes two. An input bears its name, a gate that of
the first output it drives, and a node without a name the literal of its variable. A binary file lists neither inputs nor the
literals of gates, which are numbered in order, and holds two differences for each gate, seven bits a byte, low ones first.

Circuits with latches are refused: a latch holds a value from one time step to the next, and a graph without these edges, or
with a node that stands for two times, would be another circuit. What is proved about runs of a circuit (justice, fairness) is
refused with them; bad states and constraints are outputs under other names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NoReturn

import numpy as np

from stmlang.graph.readers.table import integers, line_count
from stmlang.graph.readers.text import MOST_IMPLIED, GraphFile, ParsedGraph, Place, named
from stmlang.source.span import SourceFile

if TYPE_CHECKING:
    from jaxtyping import Bool, Int64

_HEADER = re.compile(r"(?:aag|aig)((?: [0-9]{1,12}){5,9})")
_SYMBOL = re.compile(r"([iobc])([0-9]{1,12}) (.*)")
_LINE = re.compile(r"([^\r\n]*)(?:\r\n?|\n|\Z)")
_Kind = Literal["input", "mark", "gate"]
_LATER = ("justice properties", "fairness constraints")

MOST_BYTES_OF_A_NUMBER = 7
"""A difference of literals fits into 49 bits, or it is none."""


@dataclass(frozen=True)
class _Header:
    """What the first line counts; `marks` are outputs, bad states and constraints, by the letter of their names."""

    largest: int
    inputs: int
    gates: int
    marks: dict[str, int]

    @property
    def marked(self) -> int:
        return sum(self.marks.values())


@dataclass(frozen=True, eq=False)
class _Circuit:
    """Literals: of the inputs, of what is marked, of each gate and its fanins. `names` are those of the symbol table, by letter
    and number: `i0`."""

    file: GraphFile
    header: _Header
    inputs: Int64[np.ndarray, " inputs"]
    marked: Int64[np.ndarray, " marked"]
    gates: Int64[np.ndarray, "gates 3"]
    names: dict[str, str]

    def at(self, kind: _Kind, number: int) -> Place | None:
        """The line of an input, mark or gate; None where there is none, since a binary file writes only its marks in lines."""
        binary = self.file.content is not None
        match kind:
            case "input":
                line = None if binary else 2
            case "mark":
                line = 2 if binary else 2 + self.header.inputs
            case "gate":
                line = None if binary else 2 + self.header.inputs + self.header.marked
        return None if line is None else self.file.line_at(line + number)


def read(file: GraphFile) -> ParsedGraph:
    return gates(file)[0]


def gates(file: GraphFile) -> tuple[ParsedGraph, list[str], Bool[np.ndarray, " edges"]]:
    """The graph, what each node is, and which edges invert what they carry.

    Nodes are `INPUT` or `AND`, or `FALSE` where a gate has a fanin that is constantly false: the edges of all others are
    everything that their value depends on.
    """
    circuit = _text(file) if file.content is None else _binary(file, file.content)
    _refuse_wrong_literals(circuit)
    defined = np.concatenate([circuit.inputs, circuit.gates[:, 0]])
    fanins = circuit.gates[:, 1:].reshape(-1)
    connected = np.flatnonzero(fanins > 1)
    tail, head = _nodes(defined, fanins[connected]), len(circuit.inputs) + connected // 2
    undefined = np.flatnonzero(tail < 0)
    if undefined.size:
        edge = int(connected[undefined[0]])
        _refuse_undefined(circuit, int(fanins[edge]), circuit.at("gate", edge // 2))
    graph = named(_names_of_nodes(circuit, defined), tail, head, lambda edge: circuit.at("gate", int(connected[edge]) // 2))
    kinds = ["FALSE" if false else "AND" for false in (circuit.gates[:, 1:] == 0).any(axis=1)]
    return graph, ["INPUT"] * len(circuit.inputs) + kinds, fanins[connected] % 2 == 1


def _header(file: GraphFile) -> _Header:
    """The counts. Refuses latches (STM3414) and more inputs of a binary file than it may stand for (STM3413)."""
    at = file.line_at(1)
    match = _HEADER.fullmatch(file.source.line(1))
    if match is None:
        help = "an AIGER file begins with `aag M I L O A` or `aig M I L O A`, five counts"
        file.refuse("STM3403", "this is no header of an AIGER file", at, help)
    largest, inputs, latches, outputs, gates, bad, constraints, *later = (*map(int, match.group(1).split()), 0, 0, 0, 0)
    if latches:
        help = "unroll it over as many steps as are needed, or make the outputs of its latches inputs"
        file.refuse("STM3414", f"this circuit has {latches:,} latches", at, help)
    for count, what in zip(later, _LATER, strict=False):
        if count:
            file.refuse("STM3414", f"this circuit has {count:,} {what}", at, "leave them out")
    if inputs > MOST_IMPLIED + len(file.content or file.text):
        file.refuse("STM3413", f"a circuit of {inputs:,} inputs in so small a file", at, "correct the number")
    if inputs + gates > largest or (file.content is not None and inputs + gates < largest):
        message = f"{inputs:,} inputs and {gates:,} gates cannot be numbered up to {largest:,}"
        file.refuse("STM3403", message, at, "the first number is the largest variable: inputs and gates together")
    return _Header(largest, inputs, gates, {"o": outputs, "b": bad, "c": constraints})


def _text(file: GraphFile) -> _Circuit:
    """Everything that an ASCII file says."""
    header = _header(file)
    needed, present = 1 + header.inputs + header.marked + header.gates, line_count(file)
    if needed > present:
        file.refuse("STM3403", f"the header announces {needed:,} lines, and the file has {present:,}", file.line_at(1))
    inputs = integers(file, " ", 1, 2, header.inputs)[:, 0]
    marked = integers(file, " ", 1, 2 + header.inputs, header.marked)[:, 0]
    gates = integers(file, " ", 3, 2 + header.inputs + header.marked, header.gates)
    symbols_start = (*file.source.line_starts, len(file.text))[needed]
    return _Circuit(file, header, inputs, marked, gates, _symbols(file, header, file.text[symbols_start:], symbols_start))


def _binary(file: GraphFile, content: bytes) -> _Circuit:
    """Everything that a binary file says. Its header and marks, which are lines, become its text."""
    head, _, unread = content.partition(b"\n")
    header = _header(replace(file, source=SourceFile(file.source.name, head.decode("latin-1"))))
    *lines, unread = unread.split(b"\n", header.marked)
    text = b"\n".join([head, *lines]).decode("latin-1")
    file = replace(file, source=SourceFile(file.source.name, text))
    if len(lines) < header.marked:
        file.refuse("STM3403", f"the file ends within its {header.marked:,} outputs", file.line_at(1))
    marked = integers(file, " ", 1, 2, header.marked)[:, 0]
    differences, end = _numbers(file, header.gates, unread)
    literal = 2 * (header.inputs + 1 + np.arange(header.gates))
    fanins = literal[:, None] - np.cumsum(differences.reshape(-1, 2), axis=1)
    wrong = np.flatnonzero((differences[::2] == 0) | (fanins[:, 1] < 0))
    if wrong.size:
        file.refuse("STM3403", f"a fanin of the gate `{literal[wrong[0]]}` is not below it", None)
    inputs = 2 * (1 + np.arange(header.inputs))
    symbols = _symbols(file, header, _decoded(unread[end:]), None)
    return _Circuit(file, header, inputs, marked, np.column_stack([literal, fanins]), symbols)


def _decoded(content: bytes) -> str:
    """The text behind the gates of a binary file, in UTF-8 or else in Latin-1, as other texts are read."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _numbers(file: GraphFile, gates: int, content: bytes) -> tuple[Int64[np.ndarray, " numbers"], int]:
    """Two numbers for each gate, seven bits a byte, low ones first, and where they end."""
    octets = np.frombuffer(content, np.uint8)
    last = np.flatnonzero(octets < 128)[: 2 * gates] if gates else np.empty(0, np.int64)
    if len(last) < 2 * gates:
        file.refuse("STM3403", f"the file ends within its {gates:,} gates", None)
    size = np.diff(last, prepend=-1)
    if size.max(initial=0) > MOST_BYTES_OF_A_NUMBER:
        file.refuse("STM3403", f"the gate {int(size.argmax()) // 2 + 1:,} holds a number of too many bytes", None)
    end = int(last[-1]) + 1 if gates else 0
    place = np.arange(end) - np.repeat(last - size + 1, size)
    digits = (octets[:end].astype(np.int64) & 127) << (7 * place)
    return np.add.reduceat(digits, last - size + 1) if gates else last, end


def _symbols(file: GraphFile, header: _Header, text: str, start: int | None) -> dict[str, str]:
    """The names in the symbol table. `start` is where its text begins in that of the file."""
    counts = {"i": header.inputs, **header.marks}
    names: dict[str, str] = {}
    end = len(text.rstrip("\r\n"))
    for line in _LINE.finditer(text, 0, end):
        if line.group(1) == "c" or line.start() == end:
            break
        at = None if start is None else (start + line.start(1), start + line.end(1))
        symbol = _SYMBOL.fullmatch(line.group(1))
        if symbol is None:
            help = "a name is given by `i0 name` or `o0 name`; comments follow a line `c`"
            message = f"`{line.group(1)}` names no input or output" if line.group(1) else "a blank line among the names"
            file.refuse("STM3403", message, at, help)
        kind, number, name = symbol.groups()
        if int(number) >= counts[kind]:
            file.refuse("STM3408", f"`{kind}{number}` is named and is not there", at, "inputs and outputs count from 0")
        key = f"{kind}{int(number)}"
        if key in names:
            file.refuse("STM3409", f"`{key}` is named twice", at, "remove one of the two names")
        names[key] = name
    return names


def _refuse_wrong_literals(circuit: _Circuit) -> None:
    """Refuses literals beyond the largest variable and definitions of none (STM3403), and two of one variable (STM3409)."""
    largest = 2 * circuit.header.largest + 1
    literals_by_kind: tuple[tuple[_Kind, Int64[np.ndarray, "lines columns"]], ...] = (
        ("input", circuit.inputs[:, None]),
        ("mark", circuit.marked[:, None]),
        ("gate", circuit.gates),
    )
    for kind, literals in literals_by_kind:
        wrong = np.argwhere((literals < 0) | (literals > largest))
        if wrong.size:
            message = f"`{literals[tuple(wrong[0])]}` is no literal: the largest is `{largest}`"
            circuit.file.refuse("STM3403", message, circuit.at(kind, int(wrong[0, 0])))
    defined = np.concatenate([circuit.inputs, circuit.gates[:, 0]])
    odd = np.flatnonzero((defined % 2 == 1) | (defined == 0))
    if odd.size:
        _refuse_definition(circuit, "STM3403", "is not the literal of a variable, which is even", defined, int(odd[0]))
    order = np.argsort(defined, kind="stable")
    twice = order[1:][np.diff(defined[order]) == 0]
    if twice.size:
        _refuse_definition(circuit, "STM3409", "is defined twice", defined, int(twice.min()))


def _refuse_definition(circuit: _Circuit, code: str, problem: str, defined: Int64[np.ndarray, " nodes"], node: int) -> NoReturn:
    inputs = len(circuit.inputs)
    at = circuit.at("input", node) if node < inputs else circuit.at("gate", node - inputs)
    circuit.file.refuse(code, f"`{defined[node]}` {problem}", at, "give each variable a number of its own")


def _refuse_undefined(circuit: _Circuit, literal: int, at: Place | None) -> NoReturn:
    circuit.file.refuse("STM3408", f"`{literal}` is neither an input nor a gate", at, "define it, or correct the number")


def _names_of_nodes(circuit: _Circuit, defined: Int64[np.ndarray, " nodes"]) -> list[str]:
    """The names of inputs, then gates. Refuses marks of what is not defined (STM3408)."""
    marked, inputs, known = _nodes(defined, circuit.marked), len(circuit.inputs), circuit.names
    undefined = np.flatnonzero((marked < 0) & (circuit.marked > 1))
    if undefined.size:
        mark = int(undefined[0])
        _refuse_undefined(circuit, int(circuit.marked[mark]), circuit.at("mark", mark))
    names = [str(literal) for literal in defined.tolist()]
    for output in reversed(range(circuit.header.marks["o"])):
        node = int(marked[output])
        if node >= inputs:
            names[node] = known.get(f"o{output}", names[node])
    names[:inputs] = [known.get(f"i{number}", names[number]) for number in range(inputs)]
    return names


def _nodes(defined: Int64[np.ndarray, " nodes"], literals: Int64[np.ndarray, " literals"]) -> Int64[np.ndarray, " literals"]:
    """The nodes of literals, whatever their sign; -1 for those of no node."""
    variables, order = literals & ~1, np.argsort(defined)
    # One more that equals no variable, so that every place found is there.
    ranked = np.append(defined[order], -1)
    place = np.searchsorted(ranked[:-1], variables)
    return np.where(ranked[place] == variables, np.append(order, -1)[place], -1)
