"""What commands print with `--json` is what the schemas of the site say, and their exit statuses what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

from jsonschema import Draft202012Validator

from stmlang import ending
from stmlang.cli import main as cli

PAGES = Path(__file__).parents[2] / "docs" / "site" / "pages"
PAGE = (PAGES / "command-line.md").read_text(encoding="utf-8")
SCHEMAS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (PAGES / "schemas").glob("*.json")}
SPEC = "scan s(key = 2, value = 2) on chain(time = 4) {\n    source     = sigmoid(linear(x))\n    transition = 0.5\n}\n"
WRONG = SPEC.replace("source ", "source[kee] ")
RUNS = [
    ("check", "check s.stm wrong.stm std:gates"),
    ("check", "check absent.stm"),
    ("explain", "explain s.stm --target cpu"),
    ("explain", "explain s.stm --target h200 --emit plan"),
    ("explain", "explain s.stm --emit facts"),
    ("explain", "explain std:plstm/graph_p --target cpu"),
    ("stage", "explain s.stm --emit tree"),
    ("stage", "explain s.stm --emit scan"),
    ("code", "explain STM2023"),
    ("code", "explain STM5102"),
    ("draw", "draw s.stm --what gates -o s.svg"),
    ("compile", "compile s.stm -o s.stmx"),
    ("inspect", "inspect s.stmx"),
    ("list", "list"),
    ("show", "show std:chain/gla"),
    ("doctor", "doctor"),
    ("tune", "tune s.stm --budget 1s"),
    ("bench", "bench s.stm --repeats 1"),
    ("fuzz", "fuzz s.stm --minutes 0.01"),
    ("failure", "explain wrong.stm --target cpu"),
    ("failure", "explain STM9999"),
    ("failure", "check --nonsense"),
    ("failure", "draw s.stm -o s.pdf"),
    ("failure", "inspect s.stm"),
]


def test_every_schema_is_one_and_is_listed() -> None:
    assert set(SCHEMAS) == set(re.findall(r"\(schemas/(\w+)\.json\)", PAGE)) == {name for name, _ in RUNS}
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)
        assert schema["required"][0] == "ok"


def test_what_is_printed_follows_its_schema(stmlang, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("s.stm").write_text(SPEC)
    Path("wrong.stm").write_text(WRONG)
    for name, words in RUNS:
        printed = json.loads(stmlang(*words.split(), "--json").out)
        found = [error.json_path + ": " + error.message for error in Draft202012Validator(SCHEMAS[name]).iter_errors(printed)]
        assert not found, words
        assert next(iter(printed)) == "ok"
        wrong = {name: value for name, value in printed.items() if name != "ok"}
        assert not Draft202012Validator(SCHEMAS[name]).is_valid(wrong), "`ok` is required"


def test_exit_statuses_of_the_page() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \| ", PAGE, re.MULTILINE)
    told = {int(number) for row in rows for number in row.split(",")}
    signals = {status for status, _ in ending.SIGNALS.values()}
    assert told == {0, cli.REFUSED, cli.USAGE, cli.INTERNAL, cli.BROKEN_PIPE, *signals}
