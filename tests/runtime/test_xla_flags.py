"""The flag that keeps jaxlib's faults on CPUs away is set where it is needed, and only there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stmlang import xla_flags


@pytest.mark.parametrize(
    ("needed", "before", "after"),
    [
        (True, "", xla_flags.FLAG),
        (True, "--xla_foo=1", f"--xla_foo=1 {xla_flags.FLAG}"),
        (True, f"{xla_flags.FLAG}dot", f"{xla_flags.FLAG}dot"),
        (False, "--xla_foo=1", "--xla_foo=1"),
    ],
)
def test_flags(monkeypatch: pytest.MonkeyPatch, needed: bool, before: str, after: str) -> None:
    monkeypatch.setenv("XLA_FLAGS", before)
    monkeypatch.setattr(xla_flags, "affected", lambda: needed)
    monkeypatch.setattr(xla_flags, "_reads_no_more", lambda: False)
    xla_flags.guard()
    assert os.environ["XLA_FLAGS"] == after


def test_importing_stmlang_is_enough_for_a_right_sum() -> None:
    """A matrix-vector product under vmap, squared and summed: wrong in the last row on jaxlib 0.10.2 without the flag."""
    script = """
import stmlang, jax, jax.numpy as jnp
i = jnp.arange(32769, dtype=jnp.float32)
x, m = jnp.stack((i, 0 * i, 0 * i), 1), jnp.eye(3)
f = lambda x: jax.vmap(lambda row: jnp.sum((m @ row) ** 2))(x)
assert jax.jit(f)(x)[-1] == f(x)[-1] == 32768.0**2
"""
    environment = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_ENABLE_X64")}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


BEGUN = "import jax.numpy\njax.numpy.ones(3)\n"


@pytest.mark.parametrize(
    ("before", "flags", "words"),
    [
        ("", "", ""),
        ("import jax\n", "", ""),
        (BEGUN, xla_flags.FLAG, ""),
        (BEGUN, "", "import stmlang before the first array is made"),
        (BEGUN + "from importlib import metadata\n", "--xla_cpu_enable_fast_math=false", xla_flags.FLAG),
    ],
)
def test_coming_too_late_is_told(before: str, flags: str, words: str) -> None:
    if words and not xla_flags.affected():
        pytest.skip("this jaxlib sums rightly")
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    script = f"{before}import warnings\nwith warnings.catch_warnings(record=True) as found:\n"
    script += "    warnings.simplefilter('always')\n    import stmlang, stmlang.nn\n"
    script += "print(*(f'{one.category.__name__} {one.message}' for one in found if 'jaxlib' in str(one.message)), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        env={**environment, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    lines = done.stdout.split("\n") if done.stdout.strip() else []
    assert len([line for line in lines if line]) == bool(words)
    assert words in done.stdout


def test_a_jaxlib_that_sums_rightly_needs_no_warning(monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> None:
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(xla_flags, "affected", lambda: False)
    monkeypatch.setattr(xla_flags, "_reads_no_more", lambda: True)
    xla_flags.guard()
    assert not recwarn.list


@pytest.mark.parametrize(
    ("flags", "version", "expected"),
    [
        ("", "0.10.2", "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"),
        ("--a=1", "0.10.2", "--a=1 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"),
        (
            "--xla_cpu_use_fusion_emitters=true",
            "0.10.2",
            "--xla_cpu_use_fusion_emitters=true --xla_cpu_parallel_codegen_split_count=1",
        ),
        ("--a=1", "0.9.0", "--a=1"),
    ],
)
def test_haste_keeps_what_is_there(flags: str, version: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And gives no flag to an XLA that may not know it."""
    monkeypatch.setenv("XLA_FLAGS", flags)
    monkeypatch.setattr(xla_flags, "_jaxlib", lambda: version)
    xla_flags.hasten()
    assert os.environ["XLA_FLAGS"] == expected
