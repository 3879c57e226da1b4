"""BENCH and AIGER: forty odd files of each, and random circuits in both."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.readers import read_netlist
from tests.graph.corpus import Bad, Good, accepted, refused_at

BENCH: dict[str, Good] = {
    "input only": ("INPUT(a)", 1, ""),
    "gate": ("INPUT(a)\nINPUT(b)\nOUTPUT(z)\nz = NAND(a, b)\n", 3, "a>z b>z"),
    "gate first": ("OUTPUT(z)\nz = NAND(a, b)\nINPUT(b)\nINPUT(a)\n", 3, "a>z b>z"),
    "small letters": ("input(a)\noutput(z)\nz = nand(a, a)\n", 2, "a>z a>z"),
    "letters of names matter": ("INPUT(a)\nINPUT(A)\nz = AND(a, A)", 3, "a>z A>z"),
    "blanks anywhere": (" INPUT ( a )\n\tz\t=  NOT  ( a )  ", 2, "a>z"),
    "no blanks": ("INPUT(a)\nz=NOT(a)", 2, "a>z"),
    "numbers for names": ("INPUT(1)\n2 = NOT(1)", 2, "1>2"),
    "signs in names": ("INPUT(a[0])\nz.1/x = NOT(a[0])\n", 2, "a[0]>z.1/x"),
    "comments": ("# INPUT(x)\nINPUT(a) # b\nz = NOT(a)# c", 2, "a>z"),
    "blank lines and Windows": ("\r\nINPUT(a)\r\n\r\nz = NOT(a)\r\n", 2, "a>z"),
    "several lines": ("INPUT(a)\nINPUT(b)\nz = AND(a, # first\n  b)\n", 3, "a>z b>z"),
    "several statements in a line": ("INPUT(a) INPUT(b) z = AND(a,b)", 3, "a>z b>z"),
    "every gate": (
        "INPUT(a)\nINPUT(b)\n1=AND(a,b)\n2=OR(a,b)\n3=NOR(a,b)\n4=XOR(a,b)\n5=XNOR(a,b)\n6=BUFF(a)\n7=BUF(b)\n8=INV(a)",
        10,
        "a>1 b>1 a>2 b>2 a>3 b>3 a>4 b>4 a>5 b>5 a>6 b>7 a>8",
    ),
    "gates of one and many inputs": ("INPUT(a)\nx = AND(a)\ny = OR(a, x, a, x, a)", 3, "a>x a>y x>y a>y x>y a>y"),
    "tables": ("INPUT(a)\nINPUT(b)\nz = LUT 0x8 ( a, b )\ny = LUT 0xFE(a,b,z)", 4, "a>z b>z a>y b>y z>y"),
    "constants": ("INPUT(a)\none = vdd\nzero = gnd\nz = MUX(a, one, zero)", 4, "a>z one>z zero>z"),
    "table of nothing": ("INPUT(a)\none = LUT 0x1 ( )\nz = AND(a, one)", 3, "a>z one>z"),
    "output of an input": ("INPUT(a)\nOUTPUT(a)", 1, ""),
    "output marked twice": ("INPUT(a)\nOUTPUT(a)\nOUTPUT(a)", 1, ""),
    "input that nothing reads": ("INPUT(a)\nINPUT(b)\nz = NOT(a)", 3, "a>z"),
    "names like words": (
        "INPUT(INPUT)\nOUTPUT = AND(INPUT, INPUT)\nAND = NOT(OUTPUT)",
        3,
        "INPUT>OUTPUT INPUT>OUTPUT OUTPUT>AND",
    ),
}
BROKEN_BENCH: dict[str, Bad] = {
    "empty": ("", "STM3411", ""),
    "comment only": ("# c17\n", "STM3411", ""),
    "Verilog": ("module c17(a);\n", "STM3403", "1:8"),
    "no bracket": ("INPUT a\n", "STM3403", "1:7"),
    "open": ("INPUT(a\n", "STM3403", "1:8"),
    "open gate": ("INPUT(a)\nz = AND(a,\ny = NOT(a)", "STM3403", "3:3"),
    "closed twice": ("INPUT(a))", "STM3403", "1:9"),
    "two inputs in one": ("INPUT(a, b)", "STM3403", "1:6"),
    "no input": ("INPUT()", "STM3403", "1:6"),
    "gate of nothing": ("INPUT(a)\nz = AND()", "STM3403", "2:8"),
    "comma twice": ("INPUT(a)\nz = AND(a,,a)", "STM3403", "2:11"),
    "comma at the end": ("INPUT(a)\nz = AND(a,)", "STM3403", "2:11"),
    "comma first": ("INPUT(a)\nz = AND(,a)", "STM3403", "2:9"),
    "no comma": ("INPUT(a)\nz = AND(a a)", "STM3403", "2:11"),
    "gate that is not known": ("INPUT(a)\nz = FOO(a)", "STM3403", "2:5"),
    "no gate": ("INPUT(a)\nz = (a)", "STM3403", "2:5"),
    "signal for a gate": ("INPUT(a)\nz = a", "STM3403", "2:5"),
    "no equals sign": ("INPUT(a)\nz NOT(a)", "STM3403", "2:3"),
    "two equals signs": ("INPUT(a)\nz == NOT(a)", "STM3403", "2:4"),
    "inverter of two": ("INPUT(a)\nz = NOT(a, a)", "STM3403", "2:8"),
    "multiplexer of two": ("INPUT(a)\nz = MUX(a, a)", "STM3403", "2:8"),
    "table that is none": ("INPUT(a)\nz = LUT 8 (a)", "STM3403", "2:9"),
    "no table": ("INPUT(a)\nz = LUT (a)", "STM3403", "2:9"),
    "table too large": ("INPUT(a)\nz = LUT 0x10 (a, a)", "STM3403", "2:9"),
    "constant with inputs": ("INPUT(a)\nz = vdd(a)", "STM3403", "2:8"),
    "signal that is not there": ("INPUT(a)\nz = AND(a, b)", "STM3408", "2:12"),
    "output that is not there": ("INPUT(a)\nOUTPUT(z)", "STM3408", "2:8"),
    "input twice": ("INPUT(a)\nINPUT(a)", "STM3409", "2:7"),
    "gate twice": ("INPUT(a)\nz = NOT(a)\nz = BUF(a)", "STM3409", "3:1"),
    "input and gate": ("INPUT(a)\na = NOT(a)", "STM3409", "2:1"),
    "flip-flop": ("INPUT(a)\nq = DFF(a)", "STM3414", "2:5"),
    "flip-flop in a loop": ("INPUT(a)\nd = AND(a, q)\nq = DFF(d)", "STM3414", "3:5"),
    "flip-flop with a start": ("INPUT(a)\nq = DFF0(a)", "STM3414", "2:5"),
    "loop": ("INPUT(a)\nz = AND(a, z)", "STM3405", "2:12"),
    "cycle": ("INPUT(a)\nx = AND(a, y)\ny = NOT(x)", "STM3405", "3:9"),
}

AIGER: dict[str, Good] = {
    "input": ("aag 1 1 0 0 0\n2\n", 1, ""),
    "and": ("aag 3 2 0 1 1\n2\n4\n6\n6 2 4\n", 3, "2>6 4>6"),
    "no newline at the end": ("aag 3 2 0 1 1\n2\n4\n6\n6 2 4", 3, "2>6 4>6"),
    "or": ("aag 3 2 0 1 1\n2\n4\n7\n6 3 5\n", 3, "2>6 4>6"),
    "half adder": (
        "aag 7 2 0 2 3\n2\n4\n6\n12\n6 13 15\n12 2 4\n14 3 5\ni0 x\ni1 y\no0 s\no1 c\nc\nhalf adder\n",
        5,
        "c>s 14>s x>c y>c x>14 y>14",
    ),
    "constant outputs": ("aag 1 1 0 2 0\n2\n0\n1\n", 1, ""),
    "constant fanin": ("aag 2 1 0 1 1\n2\n4\n4 2 1\n", 2, "2>4"),
    "one fanin twice": ("aag 2 1 0 1 1\n2\n4\n4 2 2\n", 2, "2>4 2>4"),
    "a fanin and its complement": ("aag 2 1 0 1 1\n2\n4\n4 3 2\n", 2, "2>4 2>4"),
    "output of an input": ("aag 1 1 0 1 0\n2\n3\n", 1, ""),
    "one output twice": ("aag 2 1 0 2 1\n2\n4\n5\n4 2 2\n", 2, "2>4 2>4"),
    "gates in another order": ("aag 4 2 0 1 2\n2\n4\n8\n8 6 2\n6 2 4\n", 4, "6>8 2>8 2>6 4>6"),
    "variables left out": ("aag 50 1 0 0 1\n20\n80 20 21\n", 2, "20>80 20>80"),
    "bad states and constraints": ("aag 2 1 0 0 1 1 1\n2\n4\n2\n4 2 3\nb0 bad\nc0 must\n", 2, "2>4 2>4"),
    "justice and fairness of none": ("aag 1 1 0 0 0 0 0 0 0\n2\n", 1, ""),
    "names with blanks": ("aag 1 1 0 0 0\n2\ni0 a name  of words\n", 1, ""),
    "names of one word twice": ("aag 3 2 0 0 1\n2\n4\n6 2 4\ni0 x\ni1 x\n", 3, "x_#1>6 x_#2>6"),
    "comment only": ("aag 1 1 0 0 0\n2\nc\n\ni0 this is no name\n", 1, ""),
    "empty comment": ("aag 1 1 0 0 0\n2\nc\n", 1, ""),
    "blank lines at the end": ("aag 1 1 0 0 0\n2\ni0 a\n\n\n", 1, ""),
    "lines of Windows": ("aag 3 2 0 1 1\r\n2\r\n4\r\n6\r\n6 2 4\r\ni0 a\r\n", 3, "a>6 4>6"),
}
BROKEN_AIGER: dict[str, Bad] = {
    "BLIF": (".model x\n", "STM3403", "1:1"),
    "two blanks": ("aag  1 1 0 0 0\n2\n", "STM3403", "1:1"),
    "capitals": ("AAG 1 1 0 0 0\n2\n", "STM3403", "1:1"),
    "latch": ("aag 2 1 1 0 0\n2\n4 2\n", "STM3414", "1:1"),
    "latch with a reset": ("aag 2 1 1 0 0\n2\n4 2 1\n", "STM3414", "1:1"),
    "justice": ("aag 1 1 0 0 0 0 0 1 0\n2\n1\n2\n", "STM3414", "1:1"),
    "comment ahead": ("c\naag 1 1 0 0 0\n2\n", "STM3403", "1:1"),
    "input missing": ("aag 2 2 0 0 0\n2\n", "STM3403", "1:1"),
    "two literals for one": ("aag 2 2 0 0 0\n2 4\n4\n", "STM3403", "2:1"),
    "decimals": ("aag 1 1 0 0 0\n2.0\n", "STM3403", "2:1"),
    "word": ("aag 3 2 0 0 1\n2\n4\n6 2 b\n", "STM3403", "4:5"),
    "odd gate": ("aag 3 2 0 0 1\n2\n4\n7 2 4\n", "STM3403", "4:1"),
    "input twice": ("aag 2 2 0 0 0\n2\n2\n", "STM3409", "3:1"),
    "gate that is an input": ("aag 2 1 0 0 1\n2\n2 2 2\n", "STM3409", "3:1"),
    "fanin that is not there": ("aag 3 1 0 0 1\n2\n4 2 6\n", "STM3408", "3:1"),
    "output that is not there": ("aag 2 1 0 1 0\n2\n4\n", "STM3408", "3:1"),
    "name of nothing": ("aag 1 1 0 0 0\n2\no0 x\n", "STM3408", "3:1"),
    "name twice": ("aag 1 1 0 0 0\n2\ni0 x\ni0 y\n", "STM3409", "4:1"),
    "one name twice": ("aag 1 1 0 0 0\n2\ni0 x\ni0 x\n", "STM3409", "4:1"),
    "name without a word": ("aag 1 1 0 0 0\n2\ni0\n", "STM3403", "3:1"),
    "name of a latch": ("aag 1 1 0 0 0\n2\nl0 q\n", "STM3403", "3:1"),
    "blank line among names": ("aag 1 1 0 0 0\n2\n\ni0 x\n", "STM3403", "3:1"),
    "comment without its mark": ("aag 1 1 0 0 0\n2\nmade by hand\n", "STM3403", "3:1"),
    "loop": ("aag 2 1 0 0 1\n2\n4 4 2\n", "STM3405", "3:1"),
}


@pytest.mark.parametrize("name", BENCH)
def test_bench(tmp_path: Path, name: str) -> None:
    accepted(tmp_path, "g.bench", *BENCH[name])


@pytest.mark.parametrize("name", BROKEN_BENCH)
def test_broken_bench(tmp_path: Path, name: str) -> None:
    refused_at(tmp_path, "g.bench", *BROKEN_BENCH[name])


@pytest.mark.parametrize("name", AIGER)
def test_aiger(tmp_path: Path, name: str) -> None:
    accepted(tmp_path, "g.aag", *AIGER[name])


@pytest.mark.parametrize("name", BROKEN_AIGER)
def test_broken_aiger(tmp_path: Path, name: str) -> None:
    refused_at(tmp_path, "g.aag", *BROKEN_AIGER[name])


def test_names_of_binary_files(tmp_path: Path) -> None:
    """In UTF-8 or Latin-1, and once each."""
    head = b"aig 1 1 0 0 0\n"
    for written in ("é".encode(), "é".encode("latin-1")):
        (tmp_path / "g.aig").write_bytes(head + b"i0 " + written + b"\n")
        assert read_netlist(str(tmp_path / "g.aig")).dag.names == ("é",)
    refused_at(tmp_path, "g.aig", head + b"i0 x\ni0 y\n", "STM3409", "")
    refused_at(tmp_path, "g.aig", head + b"i0 x\n\ni0 y\n", "STM3403", "")


def test_what_gates_are(tmp_path: Path) -> None:
    (tmp_path / "g.bench").write_text("INPUT(a)\none = vdd\nz = Lut 0x8 (a, one)\n")
    found = read_netlist(str(tmp_path / "g.bench"))
    assert found.kinds == ("INPUT", "VDD", "LUT")
    assert found.dag.names == ("a", "one", "z")


@settings(max_examples=100, deadline=None)
@given(draw=st.data())
def test_circuits_written_and_read(tmp_path_factory: pytest.TempPathFactory, draw: st.DataObject) -> None:
    """One circuit of AND gates in BENCH and in AIGER, its statements in any order in the first."""
    inputs = draw.draw(st.integers(1, 5))
    gates = [
        (draw.draw(st.integers(1, inputs + node)), draw.draw(st.integers(1, inputs + node)))
        for node in range(draw.draw(st.integers(0, 8)))
    ]
    edges = " ".join(f"{2 * fanin}>{2 * (inputs + node)}" for node, pair in enumerate(gates, 1) for fanin in pair)
    blank = st.sampled_from(["", " ", "\t", " # x)\n", "\r\n"])
    lines = [f"INPUT{draw.draw(blank)}({2 * number})" for number in range(1, inputs + 1)]
    for node, (first, second) in enumerate(gates, 1):
        literal = 2 * (inputs + node)
        lines += [
            f"OUTPUT({literal}{draw.draw(blank)})",
            f"{literal} ={draw.draw(blank)}and({2 * first},{draw.draw(blank)}{2 * second})",
        ]
    folder = tmp_path_factory.mktemp("circuit")
    accepted(folder, "g.bench", "\n".join(draw.draw(st.permutations(lines))), inputs + len(gates), edges)
    header = f"aag {inputs + len(gates)} {inputs} 0 0 {len(gates)}\n"
    text = header + "".join(f"{2 * number}\n" for number in range(1, inputs + 1))
    text += "".join(f"{2 * (inputs + node)} {2 * first} {2 * second}\n" for node, (first, second) in enumerate(gates, 1))
    accepted(folder, "g.aag", text, inputs + len(gates), edges)
