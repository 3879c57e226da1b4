"""`stmlang completion`: scripts that the shells read, with every command, option and value in them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from stmlang.cli.completion import SHELLS, subcommands
from stmlang.cli.main import COMMANDS, complete_parser


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_everything(stmlang, shell):
    result = stmlang("completion", shell)
    assert (result.status, result.err) == (0, "")
    parsers = subcommands(complete_parser())
    assert set(parsers) == set(COMMANDS)
    for name, parser in parsers.items():
        assert name in result.out
        for option in parser.format_help().split():
            if option.startswith("--") and option.strip("[],").lstrip("-").replace("-", "").isalpha():
                assert option.strip("[],").lstrip("-") in result.out
    assert "stablehlo" in result.out, "values of options"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["stmlang", "ch"], {"check"}),
        (["stmlang", "explain", "--em"], {"--emit"}),
        (["stmlang", "explain", "x.stm", "--emit", "sta"], {"stablehlo"}),
        (["stmlang", "new", "n", "--kind", "vi"], {"video"}),
        (["stmlang", "check", "spe"], {"spec.stm"}),
    ],
)
def test_bash_completes(stmlang, tmp_path, words, wanted):
    script = tmp_path / "completion.sh"
    script.write_text(stmlang("completion", "bash").out)
    (tmp_path / "spec.stm").write_text("")
    line = " ".join(words)
    ask = (
        f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}; "
        f"_shtab_stmlang stmlang {words[-1]} {words[-2]}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert wanted <= {word.strip() for word in done.stdout.split()}, done.stderr
