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


def test_an_artifact_of_several_programs(stmlang, chain, tmp_path):
    """A program for each target and batch size, of which `inspect` says each."""
    output = tmp_path / "op.stmx"
    options = ["--set", "time=4", "--strategy", "recurrent", "--mode", "inference", "-o", output]
    result = stmlang("compile", chain, "--target", "cpu", "--target", "gpu", "--batch", "2", "--batch", "none", *options)
    assert result.status == 0, result.err
    assert result.out.count("and for") == 3
    shown = stmlang("inspect", output)
    assert shown.status == 0, shown.err
    for words in ("a scan in several programs", "program 4 of 4", "platforms   cuda", "no batch axis", "planned for h100"):
        assert words in shown.out
    twice = stmlang("compile", chain, "--target", "gpu", "--target", "h100", *options)
    assert "STM5301" in twice.err
    assert "STM5010" in stmlang("compile", chain, "--bucket", "graphs=1,nodes=8,edges=8", *options).err


GRAPHS = """topology g = dag(nodes <= 16, edges <= 32)
scan s(heads = 1, key = 2, value = 2) on g { source = linear(x); transition = 0.5 * sigmoid(linear(x)); stabilize none }
"""


def test_an_artifact_for_graphs_that_come_at_run_time(stmlang, tmp_path):
    spec, output = tmp_path / "graphs.stm", tmp_path / "op.stmx"
    spec.write_text(GRAPHS)
    options = ["--target", "cpu", "--strategy", "recurrent", "--mode", "inference", "-o", output, "--json"]
    buckets = ["--bucket", "graphs=2,nodes=16,edges=24,levels=8", "--bucket", "graphs=4,nodes=48,edges=64"]
    found = json.loads(stmlang("compile", spec, *options, *buckets).out)
    assert [part["bucket"]["nodes"] for part in found["parts"]] == [16, 48]
    shown = json.loads(stmlang("inspect", output, "--json").out)
    assert [part["bucket"] for part in shown["parts"]] == [part["bucket"] for part in found["parts"]]
    refused = [([], "STM3301"), ([*buckets, "--batch", "3"], "STM5010"), (["--bucket", "graph=2,nodes=8,edges=8"], "STM3508")]
    for given, code in refused:
        assert json.loads(stmlang("compile", spec, *options, *given).out)["diagnostics"][0]["code"] == code
    assert stmlang("compile", spec, *options, "--bucket", "nodes").status == 2
