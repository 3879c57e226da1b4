"""A newcomer's path, from an installed package to a model that is served, in an empty folder.

    python newcomer.py

`stmlang new`, a slip that the language server mends, `check`, `draw`, `explain`, training that is stopped and goes on, a file
with the model, and that file read where nothing else of it is known. Every step is a process of its own, as a person takes it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TRAIN = """
import sys
from pathlib import Path
import equinox as eqx, jax, jax.numpy as jnp, numpy as np, optax
import stmlang

UNTIL, PLACE = int(sys.argv[1]), Path(sys.argv[2])
op = stmlang.compile("mine.stm", time=16, heads=2, key=4, value=4)
layer = stmlang.nn.ScanLayer(op, dim=8, norm=None, key=jax.random.key(0))
optimizer = optax.adam(3e-2)
kept = (layer, optimizer.init(eqx.filter(layer, eqx.is_inexact_array)), jnp.asarray(0), jnp.asarray(0.0))
if PLACE.exists():
    kept = eqx.tree_deserialise_leaves(PLACE, kept)


@eqx.filter_jit
def step(kept):
    layer, state, number, _ = kept
    x = jax.random.normal(jax.random.fold_in(jax.random.key(1), number % 2), (8, 16, 8))
    loss = lambda layer: jnp.mean((jax.vmap(layer)(x) - jnp.cumsum(x, axis=1) / 4) ** 2)
    value, slope = eqx.filter_value_and_grad(loss)(layer)
    updates, state = optimizer.update(slope, state)
    return eqx.apply_updates(layer, updates), state, number + 1, value


losses = []
while kept[2] < UNTIL:
    kept = step(kept)
    losses.append(float(kept[3]))
eqx.tree_serialise_leaves(f"{PLACE}.new", kept)
Path(f"{PLACE}.new").replace(PLACE)
print(*losses)
if len(sys.argv) > 3:
    stmlang.export(kept[0], jax.ShapeDtypeStruct((16, 8), "float32"), sys.argv[3])
    x = np.random.default_rng(0).standard_normal((3, 16, 8)).astype("float32")
    np.savez("served.npz", x=x, y=jax.vmap(kept[0])(x))
"""
SERVE = """
import sys
import numpy as np
import stmlang

loaded, kept = stmlang.load("mine.stmx"), np.load("served.npz")
assert "equinox" not in sys.modules
print(abs(np.asarray(loaded(kept["x"])) - kept["y"]).max())
"""


def run(*words: str) -> str:
    """What a process prints; its complaints, where it fails."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=900)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def stmlang(*words: str) -> str:
    return run("-m", "stmlang", *words)


async def mended(path: Path) -> str:
    """The text of a file behind the first fix that the language server has for its first finding."""
    from lsprotocol import types
    from pygls.lsp.client import LanguageClient

    text, uri = path.read_text(encoding="utf-8"), path.resolve().as_uri()
    client, told = LanguageClient("newcomer", "1"), asyncio.get_running_loop().create_future()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def tell(said: types.PublishDiagnosticsParams) -> None:
        if not told.done():
            told.set_result(said.diagnostics)

    await client.start_io(sys.executable, "-m", "stmlang", "lsp")
    await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
    client.initialized(types.InitializedParams())
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "stm", 1, text)))
    found = await asyncio.wait_for(told, 120)
    asked = types.CodeActionParams(types.TextDocumentIdentifier(uri), found[0].range, types.CodeActionContext(found))
    actions: Any = await client.text_document_code_action_async(asked)
    (edit,) = actions[0].edit.changes[uri]
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    lines = text.split("\n")
    start, end = edit.range.start, edit.range.end
    lines[start.line : end.line + 1] = [lines[start.line][: start.character] + edit.new_text + lines[end.line][end.character :]]
    return "\n".join(lines)


def main() -> None:
    """Every step, in the order in which a newcomer takes them."""
    path = Path("mine.stm")
    print(stmlang("new", "mine", "--kind", "chain").split("\n")[0])
    right = path.read_text(encoding="utf-8")
    path.write_text(right.replace("sigmoid(", "sigmod(", 1), encoding="utf-8")
    assert subprocess.run([sys.executable, "-m", "stmlang", "check", "mine.stm"], capture_output=True).returncode == 1
    path.write_text(asyncio.run(mended(path)), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == right
    print("mended", stmlang("check", "mine.stm").strip())
    print(stmlang("draw", "mine.stm", "--set", "time=16", "--target", "cpu", "-o", "mine.html").strip())
    assert "proved P" in stmlang("explain", "mine.stm", "--set", "time=16", "--target", "cpu")
    for name, text in (("train.py", TRAIN), ("serve.py", SERVE)):
        Path(name).write_text(text, encoding="utf-8")
    whole = run("train.py", "60", "whole.eqx").split()
    parts = [*run("train.py", "40", "run.eqx").split(), *run("train.py", "60", "run.eqx", "mine.stmx").split()]
    assert whole == parts, "a run that goes on ends as one that was not stopped"
    before, behind = (sum(map(float, losses)) / 5 for losses in (whole[:5], whole[-5:]))
    assert behind < 0.9 * before, (before, behind)
    print(f"trained from {before:.3f} to {behind:.3f}")
    print(stmlang("inspect", "mine.stmx").split("\n")[0])
    off = float(run("serve.py"))
    assert off < 1e-5, off
    print(f"served, off by {off:.1e}")


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main()
