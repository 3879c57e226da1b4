"""Slips of newcomers are answered with a suggestion, and every suggestion leads further when it is followed."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import stmlang
from stmlang.check import Examined
from stmlang.cli.main import COMMANDS, main
from stmlang.source.advice import Call, Command, Rewrite, apply
from stmlang.source.diagnostic import Diagnostic, Severity, SpecError
from tests.check.programs import BAD, examined
from tests.check.slips import BLOCK, DOCUMENT, answer, answered, slips
from tests.test_documents import blocks

HIDING = {"syntax_wrong_bracket.stm": "the text lacks a second bracket, which the first one hides"}
"""Programs in which an edit uncovers what was wrong besides, and why."""
SYNTAX = re.compile(r"STM0[12]\d\d")
SOURCES = sorted(Path(stmlang.__file__).parent.rglob("*.py"))


def test_slips(update_golden: bool) -> None:
    assert len(slips()) >= 90
    if update_golden:
        text = DOCUMENT.read_text(encoding="utf-8")
        fresh = BLOCK.sub(lambda block: f"```spec\n{block[1]}```\n\n```answer\n{answer(block[1])}```", text)
        DOCUMENT.write_text(fresh, encoding="utf-8")
    assert [(text, answer(text)) for text, _ in slips()] == slips()


def _corpus() -> dict[str, Examined]:
    """Everything that is known to be wrong: the bad programs, the slips, the blocks of SPEC.md."""
    found = {name: examined("bad", name) for name in BAD}
    found |= {f"slip {number}": answered(text) for number, (text, _) in enumerate(slips())}
    return found | {where: answered(text) for where, text, _ in blocks("stm-error")}


@pytest.fixture(scope="module")
def corpus() -> dict[str, Examined]:
    return _corpus()


def _counted(found: Examined) -> Counter[tuple[str, str]]:
    return Counter((one.code, one.message) for one in found.diagnostics)


def test_every_edit_leads_further(corpus: dict[str, Examined]) -> None:
    """What it was suggested for is gone, and nothing that is no text of the language has come of it."""
    failed: list[str] = []
    for where, found in corpus.items():
        for one in found.diagnostics:
            for fix in one.fixes:
                if isinstance(fix, Rewrite) and where not in HIDING:
                    failed += [f"{where}: {why}" for why in _followed(found, one, fix)]
    assert not failed, "\n".join(failed)


def _followed(before: Examined, one: Diagnostic, fix: Rewrite) -> list[str]:
    text = apply(fix).text
    after = answered(text if "\n" in text else f"{text}\n")
    then, now = _counted(before), _counted(after)
    key = one.code, one.message
    fresh = sorted(code for code, _ in (now - then) if SYNTAX.fullmatch(code))
    kept = [f"{one.code} stays: {one.message} ({one.help})"] if now[key] >= then[key] else []
    return kept + ([f"{one.code} gives {', '.join(fresh)}: {one.message} ({one.help})"] if fresh else [])


def test_most_findings_of_newcomers_have_a_suggestion() -> None:
    findings = [one for text, _ in slips() for one in answered(text).diagnostics if one.severity is Severity.ERROR]
    helped = [one for one in findings if one.help or one.fixes]
    assert len(helped) >= 0.9 * len(findings)


def test_every_slip_is_one_finding() -> None:
    """Where a text has one fault it is told once."""
    faults = {text: len(answered(text).diagnostics) for text, _ in slips()}
    assert Counter(faults.values())[1] >= 0.8 * len(faults)


def test_calls_and_commands_of_the_corpus_can_be_made(corpus: dict[str, Examined]) -> None:
    for found in corpus.values():
        for one in found.diagnostics:
            for fix in one.fixes:
                if isinstance(fix, Command):
                    assert main(fix.words[1:]) == 0
                elif isinstance(fix, Call):
                    ast.parse(fix.code, mode="eval")


def test_commands_in_messages_exist() -> None:
    """`stmlang COMMAND` and `stmlang.NAME(` in a message are there."""
    known = set(COMMANDS)
    for source in SOURCES:
        text = source.read_text(encoding="utf-8")
        commands = set(re.findall(r"`stmlang ([a-z]+)\b", text))
        names = set(re.findall(r"`stmlang\.([a-z_]+)\(", text))
        assert commands <= known, source
        assert all(hasattr(stmlang, name) for name in names), source


def test_a_spec_of_the_library_is_not_formatted(capsys: pytest.CaptureFixture[str]) -> None:
    from stmlang.cli import fmt

    with pytest.raises(SpecError) as caught:
        fmt._format("std:plstm/image_p", False, False)
    (found,) = caught.value.diagnostics
    (command,) = found.fixes
    assert isinstance(command, Command)
    assert main(["fmt", "std:plstm/image_p"]) == 1
    assert "rewrites files" in capsys.readouterr().err
    assert main(command.words[1:]) == 0
    assert "scan" in capsys.readouterr().out
