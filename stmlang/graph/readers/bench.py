"""BENCH netlists (ISCAS-85, ISCAS-89), in either spelling of the gates: an edge from each signal to each gate that reads it.

    INPUT(a)
    OUTPUT(z)
    z = NAND(a, b)
    b = LUT 0x1 (a)
    one = vdd

Nodes are the inputs and gates in the order they are defined; edges come gate by gate, in the order of a gate's inputs. A gate
that reads a signal twice has two edges from it. `OUTPUT` lines mark nodes and make none. A comment follows `#`. A statement may
run over several lines.

Gates are those of `GATES`, in either case. A flip-flop (`DFF`) holds a value from one time step to the next, and a graph has no
time, so circuits with one are refused, as AIGER's are with latches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from stmlang.graph.readers.text import Graph, GraphFile, Place

GATES: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("AND", "NAND", "OR", "NOR", "XOR", "XNOR", "NXOR"), (1, None)),
    **dict.fromkeys(("NOT", "INV", "BUF", "BUFF"), (1, 1)),
    "MUX": (3, 3),
    "LUT": (0, 16),
    **dict.fromkeys(("VDD", "GND"), (0, 0)),
}
"""The least and the most inputs of each gate. A look-up table has its truth table ahead of them, as a hexadecimal number."""
CONSTANTS = ("VDD", "GND")

_TOKEN = re.compile(r"(?P<skip>#[^\r\n]*)|(?P<sign>[()=,])|(?P<word>[^\s()=,#]+)")
_TABLE = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)
_FLIP_FLOP = re.compile(r"DFF\w*|LATCH\w*", re.IGNORECASE)
HELP = "a statement is `INPUT(a)`, `OUTPUT(z)` or `z = NAND(a, b)`; a comment follows `#`"

Token = tuple[str, str, Place]
"""The kind (`sign`, `word` or `end`), the text and its place."""


def read(file: GraphFile) -> Graph:
    return gates(file)[0]


def gates(file: GraphFile) -> tuple[Graph, list[str]]:
    """The graph, and what each node is: `INPUT`, or the name of its gate in upper case."""
    graph, kinds = Graph(file), list[str]()
    reads: list[tuple[int, list[Token]]] = []
    marked: list[Token] = []
    tokens = _tokens(file)
    while (token := next(tokens))[0] != "end":
        name = _word(file, token, "a statement")
        sign = next(tokens)
        if sign[1] == "(" and name.upper() in ("INPUT", "OUTPUT"):
            (port,) = _signals(file, tokens, sign, name.upper(), 1, 1)
            if name.upper() == "OUTPUT":
                marked.append(port)
                continue
            graph.declare(port[1], port[2])
            kinds.append("INPUT")
        elif sign[1] == "=":
            node = graph.declare(name, token[2])
            kind, signals = _gate(file, tokens)
            kinds.append(kind)
            reads.append((node, signals))
        else:
            _wrong(file, sign, "`=`" if name.upper() not in ("INPUT", "OUTPUT") else "`(`")
    for node, signals in reads:
        for _, signal, at in signals:
            graph.edge(graph.known(signal, at), node, at)
    for _, signal, at in marked:
        graph.known(signal, at)
    return graph, kinds


def _gate(file: GraphFile, tokens: Iterator[Token]) -> tuple[str, list[Token]]:
    """What follows `=`: the name of the gate in upper case, and its inputs."""
    token = next(tokens)
    kind = _word(file, token, "a gate").upper()
    if _FLIP_FLOP.fullmatch(kind):
        help = "unroll it over as many steps as are needed, or make the outputs of its flip-flops inputs"
        file.refuse("STM3414", f"this circuit has a flip-flop, `{token[1]}`", token[2], help)
    if kind not in GATES:
        file.refuse("STM3403", f"`{token[1]}` is no gate that is known", token[2], f"gates are {', '.join(GATES)}")
    if kind in CONSTANTS:
        return kind, []
    sign = next(tokens)
    if kind == "LUT":
        if _TABLE.fullmatch(sign[1]) is None:
            _wrong(file, sign, "a truth table, `0x8`,")
        table, sign = sign, next(tokens)
    else:
        table = None
    if sign[1] != "(":
        _wrong(file, sign, "`(`")
    signals = _signals(file, tokens, sign, kind, *GATES[kind])
    if table is not None and int(table[1], 16) >> (1 << len(signals)):
        message = f"`{table[1]}` has more than the {1 << len(signals):,} bits of a table of {len(signals)} inputs"
        file.refuse("STM3403", message, table[2])
    return kind, signals


def _signals(file: GraphFile, tokens: Iterator[Token], bracket: Token, kind: str, least: int, most: int | None) -> list[Token]:
    """The signals up to the bracket that closes, with commas between them. Refuses too few and too many."""
    signals: list[Token] = []
    token = next(tokens)
    while token[1] != ")":
        if signals:
            if token[1] != ",":
                _wrong(file, token, "`,` or `)`")
            token = next(tokens)
        _word(file, token, "a signal")
        signals.append(token)
        token = next(tokens)
    if len(signals) < least or (most is not None and len(signals) > most):
        count = f"{least}" if least == most else f"at least {least}" if most is None else f"at most {most}"
        at = (bracket[2][0], token[2][1])
        file.refuse("STM3403", f"`{kind}` of {len(signals)} signals: it takes {count}", at)
    return signals


def _word(file: GraphFile, token: Token, what: str) -> str:
    if token[0] != "word":
        _wrong(file, token, what)
    return token[1]


def _wrong(file: GraphFile, token: Token, expected: str) -> NoReturn:
    shown = "the end of the file" if token[0] == "end" else f"`{token[1]}`"
    file.refuse("STM3403", f"{shown} where {expected} is expected", token[2], HELP)


def _tokens(file: GraphFile) -> Iterator[Token]:
    """The tokens of the text, without comments, and as often as it is asked for behind them the end of the file."""
    for match in _TOKEN.finditer(file.text):
        if match.lastgroup != "skip":
            yield match.lastgroup or "", match.group(), match.span()
    end = len(file.text.rstrip())
    while True:
        yield "end", "", (end, end)
