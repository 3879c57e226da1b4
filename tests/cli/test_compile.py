"""`stmlang compile`."""

from __future__ import annotations

import json

import pytest

from stmlang.cli.starters import starter


@pytest.fixture
def chain(tmp_path):
    path = tmp_path / "chain.stm"
    path.write_text(starter("chain", "chain"))
    return path


@pytest.mark.parametrize(("target", "platform"), [("cpu", "cpu"), ("gpu", "cuda")])
def test_an_artifact_for_any_platform(stmlang, chain, tmp_path, target, platform):
    output = tmp_path / "op.stmx"
    sizes = ["--set", "time=6", "--set", "key=4", "--set", "value=4"]
    result = stmlang("compile", chain, "--target", target, *sizes, "-o", output)
    assert result.status == 0, result.err
    assert f"wrote {output}" in result.out
    assert platform in result.out

    import stmlang as package

    assert package.load(output).manifest["platforms"] == [platform]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["chain.stm", "op.stmx"]


def test_json(stmlang, chain, tmp_path):
    output = tmp_path / "op.stmx"
    options = ["--batch", "3", "--mode", "inference", "--strategy", "recurrent", "--json"]
    result = stmlang("compile", chain, "--target", "cpu", "--set", "time=6", "-o", output, *options)
    assert result.status == 0, result.err
    found = json.loads(result.out)
    assert found["ok"] is True
    assert found["strategy"] == "recurrent"
    assert found["batch"] == 3
    assert found["bytes"] == output.stat().st_size


def test_nothing_is_written_where_something_is_wrong(stmlang, chain, tmp_path):
    output = tmp_path / "op.stmx"
    result = stmlang("compile", chain, "-o", output)
    assert result.status == 1
    assert "--set time=N" in result.err
    assert not output.exists()
    result = stmlang("compile", chain, "--set", "time=6", "-o", tmp_path / "no" / "op.stmx", "--json")
    assert result.status == 1
    assert json.loads(result.out)["ok"] is False
    folder = stmlang("compile", chain, "--set", "time=6", "-o", tmp_path)
    assert folder.status == 1, folder.err


def test_float64_is_switched_on(stmlang, chain, tmp_path):
    import jax

    before = jax.config.jax_enable_x64
    try:
        output = tmp_path / "op.stmx"
        result = stmlang("compile", chain, "--target", "cpu", "--dtype", "float64", "--set", "time=6", "-o", output)
        assert result.status == 0, result.err
    finally:
        jax.config.update("jax_enable_x64", before)


def test_an_artifact_with_states(stmlang, chain, tmp_path):
    output = tmp_path / "op.stmx"
    sizes = ["--set", "time=6", "--set", "key=4", "--set", "value=4"]
    result = stmlang("compile", chain, "--with-state", "--target", "cpu", *sizes, "-o", output)
    assert result.status == 0, result.err

    import stmlang as package

    assert package.load(output).manifest["with_state"] is True


def test_an_artifact_with_the_step(stmlang, chain, tmp_path):
    output = tmp_path / "op.stmx"
    sizes = ["--set", "time=6", "--set", "key=4", "--set", "value=4"]
    result = stmlang("compile", chain, "--target", "cpu", *sizes, "-o", output, "--step")
    assert result.status == 0, result.err
    assert "goes step by step too" in stmlang("inspect", output).out

    import stmlang as package

    (states,) = package.load(output).init_state(batch=2)
    assert {port: array.shape[0] for port, array in states.items()} == {"time": 2}
