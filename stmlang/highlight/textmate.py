"""The TextMate grammar that VS Code and others colour specs with: `python -m stmlang.highlight.textmate FILE` writes it.

A test compares the committed one, in docs/editors/vscode/syntaxes, with what the table of rules gives.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from stmlang.highlight.rules import RULES, Rule

SCOPE = "source.stm"


def grammar() -> str:
    """The grammar as JSON."""
    content = {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "stmlang",
        "scopeName": SCOPE,
        "fileTypes": ["stm"],
        "patterns": [_pattern(rule) for rule in RULES],
    }
    return json.dumps(content, indent=2) + "\n"


def _pattern(rule: Rule) -> dict[str, Any]:
    if len(rule.looks) == 1 and rule.looks[0] is not None:
        return {"match": rule.pattern, "name": rule.looks[0].scope}
    captures = {str(number): {"name": look.scope} for number, look in enumerate(rule.looks, 1) if look is not None}
    return {"match": rule.pattern, "captures": captures}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(grammar(), encoding="utf-8")
