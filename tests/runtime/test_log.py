"""`STMLANG_LOG`: what the compiler says of its steps, to whom, and that it says nothing unasked."""

from __future__ import annotations

import json
import logging
import re

import pytest

import stmlang
from stmlang import log
from tests.cli.command import Command, run_process

TEXT = "scan logged on grid(rows = 3, cols = 4) { source = sigmoid(linear(x)); mark = 1; transition = 0.4 }"


@pytest.fixture
def asked(monkeypatch, capsys):
    """Asks for topics, and gives what is on standard error since; the loggers are as they were afterwards."""
    loggers = [logging.getLogger(f"stmlang.{topic}") for topic in log.TOPICS]
    before = [(logger.level, logger.propagate, list(logger.handlers)) for logger in loggers]

    def ask(topics: str) -> None:
        monkeypatch.setenv(log.ENVIRONMENT, topics)
        log.start()

    yield ask, lambda: capsys.readouterr().err
    for logger, (level, propagate, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.propagate, logger.handlers = propagate, handlers


def test_each_topic_says_its_own(asked):
    ask, said = asked
    ask("plan, cache")
    op = stmlang.compile(TEXT, strategy="parallel")
    arguments = op.example()
    op(*arguments)
    op(*arguments)
    lines = said().splitlines()
    chosen = [line for line in lines if line.startswith("stmlang.plan: logged for cpu, training, float32, batch 1: ")]
    assert len(chosen) == 1
    assert re.search(r"\d+ candidates, \d+ strategies that cannot be used, chosen parallel, .*, [\d.]+ ms$", chosen[0])
    assert "stmlang.plan:   parallel: chosen" in lines
    assert any("recurrent: " in line and "slower" in line for line in lines)
    cache = [line for line in lines if line.startswith("stmlang.cache: ")]
    assert any("rates of this machine: none measured, /" in line for line in cache)
    assert any("what was tuned: nothing, in /" in line for line in cache)
    calls = [line.rpartition(": ")[2] for line in cache if "call of <Program logged" in line]
    assert calls == ["compiled now", "compiled before"]
    assert not any(line.startswith("stmlang.compile") for line in lines)


def test_steps_are_timed(asked):
    ask, said = asked
    ask("compile")
    op = stmlang.compile(TEXT.replace("0.4", "0.3"))
    op(*op.example())
    text = said()
    for step in ("load ", "facts of logged: ", "problem of logged: ", "graph of logged: ", "tables of "):
        assert re.search(rf"^stmlang.compile: {step}.*[\d.]+ ms$", text, re.MULTILINE), step
    for step in ("trace", "StableHLO", "XLA"):
        assert re.search(rf"^stmlang.compile: {step} of .*: [\d.]+ s$", text, re.MULTILINE), step
    assert "stmlang.plan" not in text


def test_open_scans_say_what_they_have(asked):
    ask, said = asked
    op = stmlang.compile("scan s on chain(time) { source = 1; mark = 1; transition = 0.5 }")
    ask("cache")
    op.at((5,))
    op.at((5,))
    assert re.findall(r"s for \(5,\): (.*)", said()) == ["not compiled yet", "compiled before"]


def test_nothing_is_said_unasked(asked):
    stmlang.compile(TEXT)
    assert asked[1]() == ""
    assert not any(log.on(logger) for logger in (log.PLAN, log.CACHE, log.COMPILE))


def test_a_program_may_listen_for_itself(caplog):
    with caplog.at_level(logging.INFO, "stmlang.plan"):
        stmlang.compile(TEXT)
    assert {record.name for record in caplog.records} == {"stmlang.plan"}


@pytest.mark.parametrize(
    ("text", "topics"),
    [("", ()), ("plan", ("plan",)), (" compile,plan ,", ("plan", "compile")), ("cache,all", log.TOPICS)],
)
def test_topics(text, topics):
    assert log.topics_of(text) == topics


def test_unknown_topics_are_a_wrong_command_line(capsys, monkeypatch):
    monkeypatch.setenv(log.ENVIRONMENT, "plan,cahce")
    command = Command(capsys, monkeypatch)
    result = command("explain", "-", stdin=TEXT.encode())
    message = "unknown topic 'cahce' in STMLANG_LOG; did you mean `cache`?"
    assert (result.status, result.out, result.err) == (2, "", f"stmlang explain: error: {message}\n")
    result = command("explain", "-", "--json", stdin=TEXT.encode())
    assert (result.status, json.loads(result.out)) == (2, {"ok": False, "usage": message})


def test_unknown_topics_are_a_warning_in_a_program(monkeypatch):
    monkeypatch.setenv(log.ENVIRONMENT, "everything")
    with pytest.warns(UserWarning, match=r"unknown topic 'everything' in STMLANG_LOG; choose among plan, cache, compile, all"):
        log.start()


def test_the_steps_before_programs_need_no_jax(monkeypatch):
    code = """
import sys
from stmlang.compiler import Call, Request, load, plan, prepare
print(plan(prepare(load(sys.argv[1], {}), Call()), Request("cpu")).circumstances.nodes)
sys.exit(3 if {"jax", "jaxlib", "equinox"} & set(sys.modules) else 0)
"""
    monkeypatch.setenv(log.ENVIRONMENT, "all")
    result = run_process(TEXT, code=code)
    assert (result.returncode, result.stdout) == (0, "12\n"), result.stderr
    assert "stmlang.plan: logged for cpu" in result.stderr
