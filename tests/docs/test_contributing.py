"""What people are told who want to change something: CONTRIBUTING, the forms of issues, the list of changes, the Makefile."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

import stmlang
from stmlang.cli.main import COMMANDS, complete_parser, main

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TEMPLATES = ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = sorted(path for path in TEMPLATES.glob("*.yml") if path.name != "config.yml")
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))
STANDS_FOR = "NAME"
"""What a reader puts a word of their own for; the tests put that of something that is there."""

LINES = re.findall(r"^\$ (.*?)(?: +#.*)?$", CONTRIBUTING, re.MULTILINE)
PROGRAMS = [line for line in LINES if not line.startswith("make ")]


def words_of(line: str) -> list[str]:
    return shlex.split(line.replace(STANDS_FOR, "gla" if "stdlib" in line else "rows"))


def parsed(command: list[str]) -> None:
    """Raises where a command line of `stmlang` would be refused."""
    complete_parser().parse_args(command)


# --- CONTRIBUTING ----------------------------------------------------------------------------------------------------


def test_targets_of_make_are_there() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == TARGETS
    said = {word for text in (CONTRIBUTING, MAKEFILE) for word in re.findall(r"^(?:\$|#) +make ([\w-]+)", text, re.MULTILINE)}
    readme = set(
        re.findall(r"`make ([\w-]+)|^    make ([\w-]+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert said <= TARGETS
    assert {one or other for one, other in readme} <= TARGETS
    assert {"setup", "test", "lint", "docs"} <= said


@pytest.mark.parametrize("line", PROGRAMS)
def test_a_command_for_contributors(line: str, request: pytest.FixtureRequest) -> None:
    """Options are known, files and modules are there."""
    program, *words = words_of(line)
    assert program in (".venv/bin/stmlang", ".venv/bin/python"), line
    if program.endswith("stmlang"):
        parsed(words)
        return
    assert words[0] == "-m"
    assert find_spec(words[1]) is not None
    options = [word for word in words[2:] if word.startswith("-")]
    known = vars(request.config.option)
    assert all(option == "-k" or option.removeprefix("--").replace("-", "_") in known for option in options), line
    assert all((ROOT / word).exists() for word in words[2:] if word.startswith("tests")), line


def test_the_commands_that_only_look_say_nothing_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    looks = [words_of(line)[1:] for line in PROGRAMS if re.match(r"\S+stmlang (check|explain) ", line)]
    assert {words[0] for words in looks} == {"check", "explain"}
    for words in looks:
        assert main(words) == 0, words


def test_files_that_contributors_are_sent_to_are_there() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", CONTRIBUTING)
    named = [word for word in re.findall(r"`([^`\s]+)`", CONTRIBUTING) if "/" in word or re.search(r"\.(py|md)$", word)]
    assert len(links) >= 5
    assert len(named) > 15
    for path in (*links, *named):
        place = path.replace(STANDS_FOR, "rows").rstrip("/")
        assert (ROOT / place).exists() or any(ROOT.glob(f"[st]*/**/{place}")), path


@pytest.mark.parametrize("anchor", re.findall(r"\]\(([^)#]+#[^)]+)\)", CONTRIBUTING))
def test_headings_that_contributors_are_sent_to_are_there(anchor: str) -> None:
    path, _, name = anchor.partition("#")
    headings = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    assert name in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


# --- issues ----------------------------------------------------------------------------------------------------------

FIELDS = {"textarea", "input", "dropdown", "checkboxes"}
ATTRIBUTES = {"label", "description", "placeholder", "value", "render", "options", "multiple"}


def read(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_a_form_is_one(path: Path) -> None:
    """By GitHub's rules for forms, by which one with a key too many or two fields of one name is not shown at all."""
    form = read(path)
    assert set(form) <= {"name", "description", "title", "labels", "assignees", "body"}
    assert form["name"]
    assert form["description"]
    assert form["body"]
    identifiers = [field["id"] for field in form["body"]]
    assert len(set(identifiers)) == len(identifiers)
    for field in form["body"]:
        assert set(field) <= {"type", "id", "attributes", "validations"}
        assert field["type"] in FIELDS
        assert re.fullmatch(r"[A-Za-z0-9_-]+", field["id"])
        assert set(field["attributes"]) <= ATTRIBUTES
        assert field["attributes"]["label"]
        assert set(field.get("validations", {})) <= {"required"}
    labels = [field["attributes"]["label"] for field in form["body"]]
    assert len(set(labels)) == len(labels)


def test_forms_name_commands_that_are_there() -> None:
    assert len(FORMS) >= 2
    assert set(read(TEMPLATES / "config.yml")) <= {"blank_issues_enabled", "contact_links"}
    texts = [path.read_text(encoding="utf-8") for path in FORMS]
    named = {word for text in texts for word in re.findall(r"`stmlang (\w+)", text)}
    assert {"doctor", "fuzz", "explain"} <= named <= set(COMMANDS)
    assert "--debug" in "".join(texts)
    parsed(["check", "a.stm", "--debug"])


# --- the list of changes ---------------------------------------------------------------------------------------------


def test_changes_begin_with_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    versions = [re.fullmatch(r"(\d+)\.(\d+)\.(\d+), (?:not released yet|\d{4}-\d{2}-\d{2})", head) for head in heads]
    assert all(versions), heads
    numbers = [tuple(map(int, version.groups())) for version in versions if version]
    assert numbers == sorted(set(numbers), reverse=True)
    assert ".".join(map(str, numbers[0])) == stmlang.__version__
    assert sum("not released" in head for head in heads[1:]) == 0, "only the first may still be to come"
    assert all(re.search(r"^\* ", part, re.MULTILINE) for part in text.split("\n## ")[1:])
