"""What the page on checks before a commit shows, done: hooks by pre-commit, the steps of a workflow one after the other."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from stmlang.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "site" / "pages" / "how-to" / "automation.md").read_text(encoding="utf-8")
BLOCKS: list[dict[Any, Any]] = [
    yaml.safe_load(block) for block in re.findall(r"^```yaml[^\n]*\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
]
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
GOOD = "scan model on chain(time) {\n    source     = 1\n    transition = 0.5\n    mark       = 1\n}\n"
WRONG = GOOD.replace("0.5", "0.5 +")
UNTIDY = GOOD.replace("    source     = 1", "  source = 1")


def block(key: Any) -> dict[Any, Any]:
    """The first that has a key."""
    return next(found for found in BLOCKS if key in found)


def specs(place: Path, text: str) -> None:
    (place / "specs").mkdir()
    (place / "specs" / "model.stm").write_text(text, encoding="utf-8")


# --- hooks -----------------------------------------------------------------------------------------------------------


def hooks(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """pre-commit in a folder, where `stmlang` is the one of this environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**kept, "PATH": path, "PRE_COMMIT_HOME": str(place / "home")}
    command = [sys.executable, "-m", "pre_commit", *words]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_hooks_are_defined_and_named_as_the_page_names_them(tmp_path: Path) -> None:
    pytest.importorskip("pre_commit")
    assert hooks(tmp_path, "validate-manifest", str(MANIFEST)).returncode == 0
    defined = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    assert {hook["id"] for hook in defined} == {hook["id"] for hook in block("repos")["repos"][0]["hooks"]}
    assert {hook["entry"].split()[1] for hook in defined} <= set(COMMANDS)
    for number, found in enumerate(found for found in BLOCKS if "repos" in found):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(found), encoding="utf-8")
        assert hooks(tmp_path, "validate-config", f"{number}.yaml").returncode == 0


@pytest.mark.parametrize(
    ("text", "status", "said"), [(GOOD, 0, "Passed"), (WRONG, 1, "STM0"), (UNTIDY, 1, "files were modified")]
)
def test_hooks_stop_what_is_wrong(tmp_path: Path, text: str, status: int, said: str) -> None:
    """The hooks of the manifest, as those of a package that is installed already."""
    pytest.importorskip("pre_commit")
    defined = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    local = {"repo": "local", "hooks": [{**hook, "language": "system"} for hook in defined]}
    (tmp_path / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [local]}), encoding="utf-8")
    specs(tmp_path, text)
    for words in (["init", "-q"], ["add", "specs"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, timeout=60)
    done = hooks(tmp_path, "run", "--all-files")
    assert (done.returncode, said in done.stdout) == (status, True), done.stdout + done.stderr
    if text == UNTIDY:
        assert (tmp_path / "specs" / "model.stm").read_text(encoding="utf-8") == GOOD


# --- a workflow ------------------------------------------------------------------------------------------------------

ON = True
"""What YAML makes of the key `on`, and GitHub does not."""


def test_the_workflow_is_one() -> None:
    workflow = block("jobs")
    assert set(workflow) == {"name", ON, "jobs"}
    assert set(workflow[ON]) <= {"push", "pull_request"}
    for job in workflow["jobs"].values():
        assert set(job) == {"runs-on", "steps"}
        for step in job["steps"]:
            assert len({"uses", "run"} & set(step)) == 1
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "actions/checkout@v4"))


@pytest.mark.parametrize(("text", "failed"), [(GOOD, set()), (WRONG, {"check", "fmt", "explain"}), (UNTIDY, {"fmt"})])
def test_the_steps_of_the_workflow(
    text: str, failed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each as the shell would run it: 0 for specs that are right, 1 for others."""
    monkeypatch.chdir(tmp_path)
    specs(tmp_path, text)
    (job,) = block("jobs")["jobs"].values()
    lines = [step["run"] for step in job["steps"] if step.get("run", "").startswith("stmlang ")]
    assert len(lines) == 3
    for line in lines:
        command = shlex.split(line.partition(" > ")[0])[1:]
        assert main(command) == (1 if command[0] in failed else 0), line
        printed = capsys.readouterr().out
        if line.endswith(".json"):
            assert json.loads(printed)["ok"] is not bool(failed & {"check"})
