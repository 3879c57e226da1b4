"""docs/artifacts.md: its code runs, and its server answers on loopback."""

from __future__ import annotations

import io
import re
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn

import stmlang

BLOCKS = re.findall(
    r"^```python\n(.*?)^```", (Path(__file__).parents[2] / "docs" / "artifacts.md").read_text(), re.MULTILINE | re.DOTALL
)
CHAIN = "scan s(heads = 1, key = 2, value = 3) on chain(t = 4) { source = linear(x); transition = sigmoid(linear(x)) }"


def run(block: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec(compile(block, "docs/artifacts.md", "exec"), found)
    return found


def test_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [array.shape for array in run(BLOCKS[0])["each"]] == [(3, 1, 4)]


def answer_to(port: int, content: bytes) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", content, timeout=60) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives what the scan gives, and answers what does not fit in words."""
    monkeypatch.chdir(tmp_path)
    op = stmlang.compile(CHAIN, strategy="recurrent", mode="inference")
    op.export("op.stmx", batch=None)
    server = uvicorn.Server(uvicorn.Config(run(BLOCKS[1])["app"], host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        for _ in range(1200):
            if server.started:
                break
            time.sleep(0.05)
        port = server.servers[0].sockets[0].getsockname()[1]
        q, k, v, gates = op.example(0)
        status, content = answer_to(port, packed(q=q, k=k, v=v, **gates))
        assert status == 200
        np.testing.assert_allclose(np.load(io.BytesIO(content)), op(q, k, v, gates), atol=1e-6)
        status, content = answer_to(port, packed(q=q[:2], k=k, v=v, **gates))
        assert (status, b"has the shape (4, 1, 2); given was (2, 1, 2)" in content) == (422, True)
        assert answer_to(port, b"")[0] == answer_to(port, packed(q=q))[0] == 400
    finally:
        server.should_exit = True
        thread.join(60)
    assert not thread.is_alive()


def packed(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.asarray(array) for name, array in arrays.items()})
    return buffer.getvalue()
