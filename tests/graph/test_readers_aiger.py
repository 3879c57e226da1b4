"""AIGER: both spellings against the gates that they were made from, published circuits, and what is refused where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.levels import node_levels
from stmlang.graph.readers import aiger, read_graph, read_netlist
from stmlang.graph.readers.text import GraphFile
from stmlang.source.codes import CODES
from stmlang.source.diagnostic import SpecError
from stmlang.source.span import SourceFile
from tests.graph.files import arrows, data, measured, read, refused
from tests.helpers.work import peak_bytes

Gate = tuple[int, int, int]


def as_text(inputs: int, gates: list[Gate], outputs: list[int], names: str = "") -> str:
    header = f"aag {inputs + len(gates)} {inputs} 0 {len(outputs)} {len(gates)}"
    lines = [header, *(str(2 * number) for number in range(1, inputs + 1)), *map(str, outputs)]
    return "\n".join([*lines, *(" ".join(map(str, gate)) for gate in gates)]) + f"\n{names}"


def as_bytes(inputs: int, gates: list[Gate], outputs: list[int], names: str = "") -> bytes:
    """The binary spelling, for gates that are numbered after the inputs in their order, the larger fanin first."""
    header = f"aig {inputs + len(gates)} {inputs} 0 {len(outputs)} {len(gates)}\n" + "".join(f"{out}\n" for out in outputs)
    numbers = bytearray()
    for literal, first, second in gates:
        for difference in (literal - first, first - second):
            while difference >= 128:
                numbers.append(difference % 128 + 128)
                difference //= 128
            numbers.append(difference)
    return header.encode() + bytes(numbers) + names.encode()


HALF_ADDER = [(6, 4, 2), (8, 5, 3), (10, 9, 7)]
NAMES = "i0 a\ni1 b[0]\no0 sum\no1 the carry\nc\ni9 no name\n"


@pytest.mark.parametrize("spelling", [as_text, as_bytes])
def test_half_adder(tmp_path: Path, spelling) -> None:
    dag = read(tmp_path, "g.aig" if spelling is as_bytes else "g.aag", spelling(2, HALF_ADDER, [10, 6, 6, 3, 1], NAMES))
    assert dag.names == ("a", "b[0]", "the carry", "8", "sum")
    assert arrows(dag) == ["b[0]>the carry", "a>the carry", "b[0]>8", "a>8", "8>sum", "the carry>sum"]
    assert dag.ports == ("edge",)


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        ([(4, 2, 1)], ["2>4"]),
        ([(4, 2, 0)], ["2>4"]),
        ([(4, 1, 0)], []),
        ([(4, 2, 2)], ["2>4", "2>4"]),
        ([(4, 3, 2)], ["2>4", "2>4"]),
    ],
)
def test_constants_make_no_edge_and_repetitions_two(tmp_path: Path, gates: list[Gate], expected: list[str]) -> None:
    assert arrows(read(tmp_path, "g.aag", as_text(1, gates, []))) == expected
    assert arrows(read(tmp_path, "g.aig", as_bytes(1, gates, []))) == expected


def test_text_in_any_order_with_gaps_and_marks(tmp_path: Path) -> None:
    """An ASCII file may leave out variables, define gates after they are read, and mark bad states and constraints."""
    text = "aag 90 2 0 1 2 1 1\r\n40\r\n8\r\n21\r\n30\r\n9\r\n20 31 8\r\n30 40 9\r\no0 z\r\nb0 bad\r\nc0 must\r\nc\r\n"
    dag = read(tmp_path, "g.aag", text)
    assert dag.names == ("40", "8", "z", "30")
    assert arrows(dag) == ["30>z", "8>z", "40>30", "8>30"]


def test_no_input_and_no_gate(tmp_path: Path) -> None:
    assert read(tmp_path, "g.aag", "aag 1 1 0 0 0\n2\n").node_count == 1
    assert read(tmp_path, "g.aig", b"aig 1 0 0 1 1\n2\n\x02\x00").names == ("2",)
    assert read(tmp_path, "g.aig", b"aig 3 3 0 0 0\n").node_count == 3


def test_repeated_names_show_the_node(tmp_path: Path) -> None:
    assert read(tmp_path, "g.aag", "aag 2 2 0 0 0\n2\n4\ni0 x\ni1 x\n").names == ("x #1", "x #2")


@st.composite
def circuits(draw: st.DrawFn) -> tuple[int, list[Gate], list[int]]:
    inputs = draw(st.integers(0, 200))
    gates: list[Gate] = []
    for number in range(draw(st.integers(0 if inputs else 1, 30))):
        literal = 2 * (inputs + number + 1)
        pair = sorted((draw(st.integers(0, literal - 1)), draw(st.integers(0, literal - 1))), reverse=True)
        gates.append((literal, pair[0], pair[1]))
    outputs = draw(st.lists(st.integers(0, 2 * (inputs + len(gates)) + 1), max_size=4))
    return inputs, gates, outputs


@settings(max_examples=100, deadline=None)
@given(circuit=circuits())
def test_random_circuits(tmp_path_factory: pytest.TempPathFactory, circuit: tuple[int, list[Gate], list[int]]) -> None:
    """Both spellings give the edges of the gates that they were made from; in text the gates may stand in any order."""
    folder = tmp_path_factory.mktemp("aiger")
    inputs, gates, outputs = circuit
    expected = [f"{fanin & ~1}>{gate[0]}" for gate in gates for fanin in gate[1:] if fanin > 1]
    text, binary = read(folder, "g.aag", as_text(*circuit)), read(folder, "g.aig", as_bytes(*circuit))
    assert arrows(text) == arrows(binary) == expected
    assert text.names == binary.names
    turned = read(folder, "g.aag", as_text(inputs, gates[::-1], outputs))
    assert sorted(arrows(turned)) == sorted(expected)


BAD: dict[str, tuple[str, str, int | None]] = {
    "empty": ("", "STM3403", 1),
    "other format": ("digraph { a -> b }", "STM3403", 1),
    "four counts": ("aag 1 1 0 0\n2\n", "STM3403", 1),
    "ten counts": ("aag 1 1 0 0 0 0 0 0 0 0\n2\n", "STM3403", 1),
    "negative count": ("aag 1 -1 0 0 0\n", "STM3403", 1),
    "count of many digits": (f"aag {'9' * 40} 1 0 0 0\n", "STM3403", 1),
    "latches": ("aag 2 1 1 0 0\n2\n4 3\n", "STM3414", 1),
    "justice": ("aag 1 1 0 0 0 0 0 1 0\n2\n1\n2\n", "STM3414", 1),
    "fairness": ("aag 1 1 0 0 0 0 0 0 1\n2\n2\n", "STM3414", 1),
    "no node": ("aag 0 0 0 0 0\n", "STM3411", None),
    "many inputs": ("aag 999999999999 999999999999 0 0 0\n", "STM3413", 1),
    "many gates": ("aag 999999999999 0 0 0 999999999999\n", "STM3403", 1),
    "many outputs": ("aag 0 0 0 999999999999 0\n", "STM3403", 1),
    "small maximum": ("aag 1 1 0 0 1\n2\n4 2 2\n", "STM3403", 1),
    "cut": ("aag 3 2 0 0 1\n2\n4\n", "STM3403", 1),
    "blank line": ("aag 3 2 0 0 1\n2\n\n4\n6 2 4\n", "STM3403", 3),
    "words": ("aag 3 2 0 0 1\n2\nx\n6 2 4\n", "STM3403", 3),
    "two fanins missing": ("aag 3 2 0 0 1\n2\n4\n6\n", "STM3403", 4),
    "three fanins": ("aag 3 2 0 0 1\n2\n4\n6 2 4 2\n", "STM3403", 4),
    "two blanks": ("aag 3 2 0 0 1\n2\n4\n6  2 4\n", "STM3403", 4),
    "odd input": ("aag 1 1 0 0 0\n3\n", "STM3403", 2),
    "constant input": ("aag 1 1 0 0 0\n0\n", "STM3403", 2),
    "odd gate": ("aag 3 2 0 0 1\n2\n4\n7 2 4\n", "STM3403", 4),
    "beyond the maximum": ("aag 3 2 0 0 1\n2\n4\n6 2 8\n", "STM3403", 4),
    "negative": ("aag 3 2 0 0 1\n2\n4\n6 2 -4\n", "STM3403", 4),
    "output beyond": ("aag 1 1 0 1 0\n2\n4\n", "STM3403", 3),
    "input twice": ("aag 2 2 0 0 0\n2\n2\n", "STM3409", 3),
    "gate twice": ("aag 3 1 0 0 2\n2\n4 2 2\n4 2 2\n", "STM3409", 4),
    "undefined fanin": ("aag 4 1 0 0 2\n2\n4 2 2\n6 4 8\n", "STM3408", 4),
    "undefined output": ("aag 2 1 0 1 0\n2\n4\n", "STM3408", 3),
    "loop": ("aag 2 1 0 0 1\n2\n4 4 2\n", "STM3405", 3),
    "cycle": ("aag 3 1 0 0 2\n2\n4 6 2\n6 4 2\n", "STM3405", 4),
    "name of nothing": ("aag 1 1 0 0 0\n2\ni1 x\n", "STM3408", 3),
    "name of a latch": ("aag 1 1 0 0 0\n2\nl0 x\n", "STM3403", 3),
    "more lines": ("aag 1 1 0 0 0\n2\n4 2 2\n", "STM3403", 3),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals_of_texts(tmp_path: Path, name: str) -> None:
    text, code, line = BAD[name]
    assert peak_bytes(lambda: refused(tmp_path, "g.aag", text, code, line)) < 4_000_000


BAD_BYTES: dict[str, tuple[bytes, str, int | None]] = {
    "text with a zero": (b"aag 1 1 0 0 0\n2\n\0", "STM3412", 0),
    "garbage": (b"aig " + bytes(range(256)), "STM3403", 1),
    "header only": (b"aig ", "STM3403", 1),
    "latches": (b"aig 1 0 1 0 0\n2\n", "STM3414", 1),
    "no node": (b"aig 0 0 0 0 0\n", "STM3411", None),
    "many inputs": (b"aig 999999999999 999999999999 0 0 0\n", "STM3413", 1),
    "many gates": (b"aig 999999999999 0 0 0 999999999999\n", "STM3403", None),
    "many outputs": (b"aig 0 0 0 999999999999 0\n", "STM3403", 1),
    "gap in the numbers": (b"aig 3 1 0 0 1\n\x02\x00", "STM3403", 1),
    "word for an output": (b"aig 1 1 0 1 0\nx\n", "STM3403", 2),
    "output beyond": (b"aig 1 1 0 1 0\n4\n", "STM3403", 2),
    "gate below itself": (b"aig 2 1 0 0 1\n\x00\x00", "STM3403", None),
    "fanin below zero": (b"aig 2 1 0 0 1\n\x03\x02", "STM3403", None),
    "long number": (b"aig 2 1 0 0 1\n" + b"\x80" * 9 + b"\x01\x02", "STM3403", None),
    "open number": (b"aig 2 1 0 0 1\n\x02\x80", "STM3403", None),
    "name of nothing": (b"aig 2 1 0 0 1\n\x02\x00o0 x\n", "STM3408", None),
    "no name": (b"aig 2 1 0 0 1\n\x02\x00\xff\xfe\0\n", "STM3403", None),
}


@pytest.mark.parametrize("name", BAD_BYTES)
def test_refusals_of_bytes(tmp_path: Path, name: str) -> None:
    content, code, line = BAD_BYTES[name]
    if code == "STM3412":
        with pytest.raises(SpecError) as error:
            read(tmp_path, "g.aig", content)
        assert error.value.diagnostics[0].code == code
    else:
        assert peak_bytes(lambda: refused(tmp_path, "g.aig", content, code, line)) < 4_000_000


@pytest.mark.parametrize("content", [as_text(2, HALF_ADDER, [10]).encode(), as_bytes(2, HALF_ADDER, [10])])
def test_every_cut_is_refused(tmp_path: Path, content: bytes) -> None:
    last = content.rstrip(b"\n")
    for size in range(len(last)):
        with pytest.raises(SpecError):
            read(tmp_path, "g.aig", last[:size])


@settings(max_examples=100, deadline=None)
@given(
    binary=st.booleans(),
    cuts=st.lists(st.tuples(st.integers(0, 80), st.integers(0, 4), st.binary(max_size=4)), max_size=4),
)
def test_mutated_circuits_raise_nothing_else(binary: bool, cuts: list[tuple[int, int, bytes]]) -> None:
    content = as_bytes(2, HALF_ADDER, [10], NAMES) if binary else as_text(2, HALF_ADDER, [10], NAMES).encode()
    for start, length, put in cuts:
        content = content[:start] + put + content[start + length :]
    file = GraphFile(SourceFile("g", "" if binary else content.decode("latin-1")), None, content if binary else None)
    codes = set[str]()
    try:
        found = aiger.read(file)
    except SpecError as refusal:
        codes = {diagnostic.code for diagnostic in refusal.diagnostics}
    else:
        ends = np.concatenate([found.tail, found.head])
        assert ((ends >= 0) & (ends < found.node_count)).all()
    assert codes <= set(CODES)


# ANDs and depth, and the inputs that each file's header gives
EPFL = {
    "adder": (1020, 255, 256), "bar": (3336, 12, 135), "max": (2865, 287, 512), "sin": (5416, 225, 24), "cavlc": (693, 16, 10),
    "ctrl": (174, 10, 7), "dec": (304, 3, 8), "i2c": (1342, 20, 147), "int2float": (260, 16, 11), "priority": (978, 250, 128),
    "router": (257, 54, 60),
}  # fmt: skip


@pytest.mark.parametrize("name", EPFL)
def test_published_circuits(name: str) -> None:
    gates, depth, inputs = EPFL[name]
    assert measured(f"aiger_epfl/{name}.aig") == (gates + inputs, 2 * gates, depth)


def test_a_real_circuit_in_both_spellings(tmp_path: Path) -> None:
    binary = read_graph(data("aiger_epfl/ctrl.aig"))
    assert binary.names is not None
    assert binary.names[0] == "opcode[0]"
    pairs = list(zip(binary.tail.tolist(), binary.head.tolist(), strict=True))
    gates = [(2 * pairs[edge][1] + 2, 2 * pairs[edge][0] + 2, 2 * pairs[edge + 1][0] + 2) for edge in range(0, len(pairs), 2)]
    text = read(tmp_path, "g.aag", as_text(7, gates, []))
    assert (text.tail.tolist(), text.head.tolist()) == (binary.tail.tolist(), binary.head.tolist())


def test_a_long_chain_of_gates(tmp_path: Path) -> None:
    """A chain, whose depth is the number of its gates."""
    count = 200_000
    path = tmp_path / "g.aig"
    path.write_bytes(f"aig {count + 1} 1 0 0 {count}\n".encode() + b"\x02\x00" * count)
    dag = read_graph(str(path))
    assert (dag.node_count, dag.edge_count) == (count + 1, 2 * count)
    assert int(node_levels(dag)[-1]) == count


def test_netlists_say_what_nodes_are_and_which_edges_invert(tmp_path: Path) -> None:
    """In both spellings; a gate with a fanin that is constantly false is told from one whose constant is true."""
    gates = [(6, 5, 2), (8, 6, 1), (10, 7, 0)]
    for name, content in (("a.aag", as_text(2, gates, [10]).encode()), ("a.aig", as_bytes(2, gates, [10]))):
        (tmp_path / name).write_bytes(content)
        found = read_netlist(str(tmp_path / name))
        assert found.kinds == ("INPUT", "INPUT", "AND", "AND", "FALSE")
        assert found.inverted.tolist() == [True, False, False, True]
        assert found.dag.tail.tolist() == [1, 0, 2, 2]
    refusal = pytest.raises(SpecError, match="STM3402")
    with refusal:
        read_netlist(str(tmp_path / "a.blif"))
    with pytest.raises(SpecError, match="STM3401"):
        read_netlist(3)  # pyright: ignore[reportArgumentType]


def test_netlists_of_bench_name_their_gates() -> None:
    found = read_netlist(data("bench_iscas85/c432.bench"))
    assert {kind: found.kinds.count(kind) for kind in set(found.kinds)} == {
        "INPUT": 36, "AND": 4, "NAND": 79, "NOR": 19, "NOT": 40, "XOR": 18,
    }  # fmt: skip
    assert not found.inverted.any()
