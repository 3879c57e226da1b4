"""The colours of Pygments and of the TextMate grammar: the same pieces, which are the lexer's tokens on the whole corpus."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pygments.token import Error, Whitespace

from stmlang.cli import lsp
from stmlang.highlight.pygments import StmLexer
from stmlang.highlight.rules import RULES, Look
from stmlang.highlight.textmate import grammar
from stmlang.source.diagnostic import SpecError
from stmlang.source.span import SourceFile
from stmlang.syntax.layout import NAME_KINDS, OPERATORS
from stmlang.syntax.parser import parse_tokens
from tests.lsp.helpers import CORPUS
from tests.test_documents import blocks

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "docs/editors/vscode/syntaxes/stm.tmLanguage.json"
_NAMES = frozenset(look for look in Look if look.scope.startswith(("variable", "entity", "support", "constant.language")))


def texts() -> Iterator[tuple[str, str]]:
    """All specs that parse: of the library, of the tests, of the documents."""
    files = ((path.stem, path.read_bytes().decode("utf-8", "replace")) for path in CORPUS)
    for name, text in chain(files, ((where, text) for where, text, _ in blocks("stm"))):
        yield name, text.removeprefix("\ufeff")


def pieces(text: str) -> Iterator[tuple[int, str, str]]:
    """Where pieces begin, what they are and their scopes, as TextMate finds them: line by line, and at each place by the first
    of the patterns that match earliest."""
    patterns: list[tuple[re.Pattern[str], Any]] = [
        (re.compile(entry["match"]), entry) for entry in json.loads(grammar())["patterns"]
    ]
    offset = 0
    for line in re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text):
        at = 0
        while at < len(line):
            matches: list[tuple[re.Match[str], Any]] = [
                (match, entry) for pattern, entry in patterns if (match := pattern.search(line, at)) is not None
            ]
            if not matches:
                break
            match, entry = min(matches, key=lambda pair: pair[0].start())
            captures = entry.get("captures") or {"0": {"name": entry["name"]}}
            for group, capture in captures.items():
                if match[int(group)]:
                    yield offset + match.start(int(group)), match[int(group)], capture["name"]
            assert match.end() > match.start()
            at = match.end()
        offset += len(line)


def expected(kind: str) -> frozenset[Look]:
    """The looks that a token may have."""
    if kind in NAME_KINDS | {"PRIMED", "SETTING", "GRAPH"}:
        return _NAMES | {Look.KEYWORD, Look.CHOICE, Look.KIND}
    return frozenset(
        {
            "NUMBER": {Look.NUMBER},
            "STRING": {Look.STRING},
            **{key: {Look.OPERATOR} for key in (*OPERATORS, "EQUAL", "ARROW", "ATMOST")},
            **{key: {Look.BRACKET} for key in ("LPAR", "RPAR", "LSQB", "RSQB", "LBRACE", "RBRACE")},
            **{key: {Look.PUNCTUATION} for key in ("COMMA", "DOT")},
            **{key: {Look.ITEM} for key in ("TOPOLOGY", "SCAN", "DEF", "USE")},
        }[kind]
    )


@pytest.mark.parametrize("part", range(4))
def test_pieces_are_the_tokens_of_the_lexer(part: int) -> None:
    scopes = {look.scope: look for look in Look}
    seen = 0
    for name, text in list(texts())[part::4]:
        try:
            file, tokens = parse_tokens(SourceFile("a", text))
        except SpecError:
            continue
        found = {start: (piece, scope) for start, piece, scope in pieces(text)}
        for token in tokens:
            if token.kind in ("SEPARATOR", "$END"):
                continue
            piece, scope = found.pop(token.start)
            assert piece == token.text, (name, token)
            assert any(look.scope == scope for look in expected(token.kind)), (name, token, scope)
        for comment in file.comments:
            piece, scope = found.pop(comment.span.start)
            assert (piece.rstrip(), scopes[scope]) == (comment.text, Look.COMMENT)
        assert {piece for piece, _ in found.values()} <= {";"}, name
        seen += 1
    assert seen > 30


def test_pygments_has_no_errors_and_the_same_pieces() -> None:
    scopes = {look.scope: look.value[1] for look in Look}
    for name, text in list(texts())[::3]:
        try:
            parse_tokens(SourceFile("a", text))
        except SpecError:
            continue
        shown = [(at, piece, kind) for at, kind, piece in StmLexer().get_tokens_unprocessed(text)]
        assert not [piece for _, piece, kind in shown if kind is Error], name
        words = [(at, piece, str(kind).removeprefix("Token.")) for at, piece, kind in shown if kind is not Whitespace]
        assert words == [(at, piece, scopes[scope]) for at, piece, scope in pieces(text)], name


@pytest.mark.parametrize(
    ("text", "piece", "look"),
    [
        ("scan s on chain(time) {", "s", Look.SCAN),
        ("scan s on chain(time) {", "on", Look.KEYWORD),
        ("scan s on chain(time) {", "chain", Look.KIND),
        ("def f(a) = g(a)", "f", Look.DEFINITION),
        ("def f(a) = g(a)", "g", Look.CALL),
        ("source = sigmoid(linear(x))", "sigmoid", Look.BUILT_IN),
        ("source = sigmoid(linear(x))", "x", Look.INPUT),
        ("transition[out, key'] = 1", "key'", Look.INDEX),
        ("transition[out, key'] = 1", "transition", Look.GATE),
        ("stabilize P", "P", Look.CHOICE),
        ("P = 2 * on", "P", Look.NAME),
        ("P = 2 * on", "on", Look.NAME),
        ("directions +rows -cols concat", "directions", Look.KEYWORD),
        ("directions +rows -cols concat", "concat", Look.CHOICE),
        ("directions both own q k", "own", Look.CHOICE),
        ("read = 1", "read", Look.INDEX),
        ('topology t = dag from "a.gml" as gml', "from", Look.KEYWORD),
        ('topology t = dag from "a.gml" as gml', "as", Look.KEYWORD),
        ("scanner = 1", "scanner", Look.NAME),
    ],
)
def test_looks(text: str, piece: str, look: Look) -> None:
    assert (piece, look.scope) in [(found, scope) for _, found, scope in pieces(text)]


def test_the_committed_grammar_is_up_to_date() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == grammar(), (
        f"run `python -m stmlang.highlight.textmate {COMMITTED.relative_to(ROOT)}`"
    )


def test_the_extension_names_what_there_is() -> None:
    folder = COMMITTED.parents[1]
    manifest = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    contributes = manifest["contributes"]
    assert (folder / contributes["grammars"][0]["path"]).resolve() == COMMITTED
    assert contributes["grammars"][0]["scopeName"] == json.loads(grammar())["scopeName"]
    configuration = json.loads((folder / contributes["languages"][0]["configuration"]).read_text(encoding="utf-8"))
    assert configuration["comments"]["lineComment"] == "#"
    assert re.fullmatch(configuration["wordPattern"], "key''")
    program, command = contributes["configuration"]["properties"]["stmlang.command"]["default"]
    assert (program, command) == ("stmlang", lsp.NAME)
    assert (
        f"extension.js --bundle --platform=node --external:vscode --minify --outfile={manifest['main'][2:]}"
        in (manifest["scripts"]["bundle"])
    )
    assert (folder / "extension.js").is_file()


def test_the_entry_point_is_the_lexer() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["entry-points"]["pygments.lexers"]["stmlang"].partition(":")
    assert getattr(import_module(module), name) is StmLexer


def test_rules_have_a_look_for_each_group() -> None:
    for rule in RULES:
        groups = re.compile(rule.pattern).groups
        assert len(rule.looks) == max(groups, 1), rule
