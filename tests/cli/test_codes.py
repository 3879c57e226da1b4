"""`stmlang explain CODE`, and the examples that ship for it."""

from __future__ import annotations

import json

import pytest

from stmlang.cli.codes import diagnosed
from stmlang.source.codes import CODES, FAMILIES
from stmlang.source.codes.examples import SPEC, examples
from stmlang.source.reading import from_text
from stmlang.syntax.formatter import format_source

EXAMPLES = examples()
SHOWN = [code for code, example in EXAMPLES.items() if example.wrong is not None]
TOLD = [code for code in EXAMPLES if code not in SHOWN]


def test_every_code_has_an_example():
    assert set(EXAMPLES) == set(CODES)
    assert all(EXAMPLES[code].how and EXAMPLES[code].instead for code in TOLD)


def test_what_a_short_text_can_cause_is_shown():
    """Told in words is what takes a file, a call, a machine, a program that writes specs, or a name from the command line."""
    beyond = {"STM0004", "STM0005", "STM0006", "STM0204", "STM1012", "STM1013", "STM1021", "STM1024", "STM1036"}
    beyond |= {"STM0001", "STM0002", "STM0003", "STM0007", "STM2026", "STM2027", "STM2032", "STM2041"}
    texts = {code for name in ("STM0", "STM1", "STM2") for code in FAMILIES[name]}
    assert {code for code in TOLD if code in texts} == beyond


@pytest.mark.parametrize("code", SHOWN)
def test_wrong_examples_are_wrong_and_right_ones_right(code):
    example = EXAMPLES[code]
    assert example.wrong is not None
    assert example.right is not None
    assert diagnosed(example.wrong)[0].code == code
    assert diagnosed(example.right) == ()
    assert set(example.wrong.files) >= {SPEC}
    assert example.wrong != example.right


@pytest.mark.parametrize("code", SHOWN)
def test_right_examples_are_plain(code):
    """Short, and as the formatter lays them out."""
    right = EXAMPLES[code].right
    assert right is not None
    text = right.files[SPEC]
    assert format_source(from_text(text)) == text
    assert text.count("\n") <= 12


def test_a_page(stmlang):
    result = stmlang("explain", "STM2023")
    assert result.status == 0
    for words in (
        "STM2023: which edge",
        "For example:",
        "error[STM2023]:",
        "--> spec.stm:3:",
        "Write instead:",
        "mark[in]   =",
    ):
        assert words in result.out
    assert stmlang("explain", "stm2023").out == result.out


def test_a_page_of_words(stmlang):
    result = stmlang("explain", "STM5102")
    assert "How it comes about: `stmlang new demo`" in result.out
    assert "What to do: " in result.out


@pytest.mark.parametrize("code", CODES)
def test_every_page_is_printed(stmlang, code):
    shown = json.loads(stmlang("explain", code, "--json").out)
    assert (shown["ok"], shown["code"], shown["title"]) == (True, code, CODES[code][0])
    assert bool(shown["diagnostics"]) == (code in SHOWN)
    assert "/tmp" not in json.dumps(shown["diagnostics"])


def test_a_code_that_is_none(stmlang):
    result = stmlang("explain", "STM2099")
    assert result.status == 2
    assert "there is no code STM2099" in result.err


def test_a_file_that_is_called_like_a_code(stmlang, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "STM2023").write_text("scan s on chain(t) { source = 1; transition = 0.5 }\n")
    assert stmlang("explain", "STM2023", "--emit", "scan").status == 0
