"""What a spec is: a text, a path, a name of the library; and which scan of it is meant."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stmlang.check import check, examine, library_specs, load, open_spec
from stmlang.check.invariants import verify
from stmlang.scan.sizes import unbound
from stmlang.source.diagnostic import Severity, SpecError
from stmlang.source.span import SourceFile
from stmlang.syntax.formatter import format_source
from tests.helpers.work import calls

TWO = """\
scan first on chain(time) {
    source = 1
    transition = 0.5
}
scan second on chain(time) {
    source = 2
    transition = 0.5
}
"""


def codes(spec: str | Path, scan: str | None = None, **settings: float) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(spec, settings, scan=scan)
    return [one.code for one in caught.value.diagnostics]


def test_text_path_and_name(tmp_path: Path) -> None:
    path = tmp_path / "two.stm"
    path.write_text(TWO)
    assert load(TWO).name == load(path).name == load(str(path)).name == "second"
    assert load(f"{path}:first").name == load(path, scan="first").name == load(TWO, scan="first").name == "first"
    assert check(SourceFile("<text>", TWO)).name == "second"
    assert (
        load("std:plstm/image_p").name
        == load("std:plstm/image_p.stm").name
        == load("std:plstm/image_p:plstm_p").name
        == "plstm_p"
    )


def test_what_does_not_exist(tmp_path: Path) -> None:
    assert codes("nowhere.stm") == ["STM0001"]
    assert codes(tmp_path) == ["STM0002"]
    assert codes("std:plstm/image_q") == ["STM1036"]
    assert codes("std:../secret") == ["STM1036"]
    assert codes(TWO, scan="third") == ["STM1013"]
    assert codes("std:gates") == ["STM1012"]
    assert codes("{") != []
    assert codes("\n") == ["STM1012"]


def test_the_library_suggests_the_nearest_name() -> None:
    with pytest.raises(SpecError) as caught:
        load("std:plstm/imagep")
    assert caught.value.diagnostics[0].help == "did you mean `std:plstm/image_p`?"


@pytest.mark.parametrize("name", library_specs())
def test_library(name: str) -> None:
    """Every file of the library checks without a warning, is formatted, and says what it is about."""
    spec = open_spec(f"std:{name}")
    found = examine(spec)
    assert found.diagnostics == ()
    assert spec.source.text.startswith("# ")
    assert format_source(spec.source) == spec.source.text
    if found.scan is not None:
        verify(found.scan)


def test_the_library_holds_the_family() -> None:
    """The architectures that the paper places itself among, and its own on every kind of graph, with and without tracks."""
    wanted = {
        "chain": """linear_attention retnet gla mlstm mamba mamba2 deltanet gated_deltanet deltaproduct lru hgrn rwkv6 s4d vim
        vil mamba_nd v2m""",
        "grid": "2dmamba mamba2d ssm2d mdlstm gridlstm",
        "graph": "treelstm daglstm",
        "plstm": """chain image_p image_d image_p_reference volume_p volume_d tree dag_p dag_d graph_p graph_d chain_tracking
        image_tracking volume_tracking tree_tracking dag_tracking""",
    }
    named = {f"{folder}/{name}" for folder, names in wanted.items() for name in names.split()}
    assert named | {"gates"} <= set(library_specs())


def test_settings_reach_everything() -> None:
    scan = load("std:plstm/image_p", {"rows": 14, "cols": 7, "heads": 2, "key": 8.0})
    assert (scan.heads, scan.key, scan.value) == (2, 8, 64)
    assert unbound(scan) == ()
    assert unbound(load("std:plstm/image_p", {"cols": 7})) == ("rows",)
    tree = load("std:plstm/tree", {"arity": 3, "depth": 1})
    assert (tree.topology.arity, tree.topology.depth) == (3, 1)


@pytest.mark.parametrize("value", [True, "3", None, float("inf"), 10**400, 2.5, -1])
def test_settings_are_numbers(value: object) -> None:
    assert codes("std:plstm/image_p", rows=value) in (["STM2032"], ["STM2029"])


def test_a_scan_that_is_not_asked_for_needs_no_settings() -> None:
    text = "scan open(gamma) on chain(time) {\n    source = gamma\n    transition = 0.5\n}\n" + TWO
    assert load(text).name == "second"
    assert load(text, {"gamma": 1}, scan="open").name == "open"
    assert codes(text, scan="open") == ["STM1015"]


def test_warnings_do_not_stop_a_spec() -> None:
    text = TWO.replace("source = 2", "source = 2\n    unused = 3")
    assert load(text).name == "second"
    found = examine(open_spec(text))
    assert [one.severity for one in found.diagnostics] == [Severity.WARNING]
    assert not found.failed


def test_checking_is_quick() -> None:
    load("std:plstm/image_p")
    most = 20_000 if sys.version_info < (3, 12) else 30_000  # newer interpreters tell a profiler of more calls
    assert calls(lambda: load("std:plstm/image_p")) < most


def test_checking_imports_nothing_heavy() -> None:
    program = (
        "import sys, stmlang.check as c; c.load('std:plstm/image_p'); "
        "print([m for m in ('jax', 'numpy', 'networkx', 'lark', 'rich') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ.copy())
    assert result.stdout.strip() == "[]"
