"""Data sets from an archive: a server on this machine sends what is right and what is not."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.tudataset import download
from stmlang.experiments.tudataset.__main__ import main
from stmlang.experiments.tudataset.download import DIGESTS, digest, fetched
from tests.experiments import tiny
from tests.helpers.data import data_folder

Content = dict[str, bytes]


class Server:
    """Answers with what `content` has under a path; counts questions. `promised` more bytes are announced than are sent."""

    def __init__(self) -> None:
        self.content: Content = {}
        self.questions: list[str] = []
        self.promised = 0
        self.address = ""


@contextmanager
def serving() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.questions.append(self.path)
            found = state.content.get(self.path)
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(found or b"") + state.promised))
            self.end_headers()
            self.wfile.write(found or b"")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        state.address = f"http://127.0.0.1:{server.server_port}/sets"
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as state:
        yield state


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Content:
    """The files of the tiny set, by their names in an archive; the set is one that can be checked."""
    place = tiny.write(tmp_path / "made") / tiny.NAME
    monkeypatch.setitem(download.DIGESTS, tiny.NAME, digest(place, tiny.NAME))
    return {f"{tiny.NAME}/{path.name}": path.read_bytes() for path in sorted(place.iterdir())}


def archive(files: Content, *more: tuple[zipfile.ZipInfo, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr(f"{tiny.NAME}/", b"")
        for name, text in files.items():
            zipped.writestr(name, text)
        for entry, text in more:
            zipped.writestr(entry, text)
    return content.getvalue()


PATH = f"/sets/{tiny.NAME}.zip"


def refused(server: Server, cache: Path, words: str) -> None:
    """Nothing is kept of what was refused."""
    with pytest.raises(TrainingError, match=words):
        fetched(tiny.NAME, server.address, cache)
    assert list(cache.iterdir()) == []


def test_a_set_is_fetched_once(server: Server, files: Content, tmp_path: Path) -> None:
    server.content[PATH] = archive({**files, f"{tiny.NAME}/README.txt": b"about"})
    for _ in range(2):
        folder = fetched(tiny.NAME, f"{server.address}/", tmp_path / "cache")
    assert server.questions == [PATH]
    assert {f"{tiny.NAME}/{path.name}": path.read_bytes() for path in folder.iterdir() if path.name != "README.txt"} == files
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [tiny.NAME]


def test_what_was_damaged_in_the_cache_is_fetched_anew(server: Server, files: Content, tmp_path: Path) -> None:
    server.content[PATH] = archive(files)
    folder = fetched(tiny.NAME, server.address, tmp_path / "cache")
    (folder / f"{tiny.NAME}_A.txt").write_text("1, 2\n")
    (folder / f"{tiny.NAME}_more.txt").write_text("")
    assert digest(fetched(tiny.NAME, server.address, tmp_path / "cache"), tiny.NAME) == DIGESTS[tiny.NAME]
    assert len(server.questions) == 2


def test_other_content_is_refused(server: Server, files: Content, tmp_path: Path) -> None:
    server.content[PATH] = archive({**files, f"{tiny.NAME}/{tiny.NAME}_graph_labels.txt": b"1\n" * 30})
    refused(server, tmp_path / "cache", "not the data set")


@pytest.mark.parametrize(
    "name",
    [
        "../evil.txt",
        "/tmp/evil.txt",
        "TINY/../../evil.txt",
        "TINY/deep/TINY_A.txt",
        "TINY\\TINY_A.txt",
        "evil.py",
        "TINY/TINY_A.py",
    ],
)
def test_names_that_lead_elsewhere_are_refused(server: Server, files: Content, tmp_path: Path, name: str) -> None:
    server.content[PATH] = archive({**files, name: b"x"})
    refused(server, tmp_path / "cache", "no file of its own")
    assert not list(tmp_path.rglob("evil*"))


def test_links_are_refused(server: Server, files: Content, tmp_path: Path) -> None:
    link = zipfile.ZipInfo(f"{tiny.NAME}/{tiny.NAME}_link.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    server.content[PATH] = archive(files, (link, b"/etc/passwd"))
    refused(server, tmp_path / "cache", "no file of its own")


def test_sizes_are_bounded(server: Server, files: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = {**files, f"{tiny.NAME}/{tiny.NAME}_zeros.txt": bytes(2_000_000)}
    server.content[PATH] = archive(bomb)
    monkeypatch.setattr(download, "MOST_UNPACKED", 1_000_000)
    refused(server, tmp_path / "cache", "unpacks to more")
    server.content[PATH] = archive({f"{tiny.NAME}/{tiny.NAME}_{number}.txt": b"" for number in range(17)})
    refused(server, tmp_path / "cache", "unpacks to more")
    monkeypatch.setattr(download, "MOST_BYTES", 100)
    refused(server, tmp_path / "cache", "larger than 100 bytes")


def test_what_is_no_archive_is_refused(server: Server, files: Content, tmp_path: Path) -> None:
    refused(server, tmp_path / "cache", "cannot be fetched: Not Found")
    server.content[PATH] = b"<html>moved</html>"
    refused(server, tmp_path / "cache", "cannot be unpacked")
    server.content[PATH] = archive(files)[:200]
    refused(server, tmp_path / "cache", "cannot be unpacked")
    server.content[PATH], server.promised = archive(files), 7
    refused(server, tmp_path / "cache", "broke off|cannot be fetched")


def test_nobody_there(files: Content, tmp_path: Path) -> None:
    assert files
    with serving() as gone:
        pass
    refused(gone, tmp_path / "cache", "cannot be fetched")


@pytest.mark.parametrize("address", ["file:///etc", "ftp://127.0.0.1", "sets"])
def test_other_addresses_are_refused(files: Content, tmp_path: Path, address: str) -> None:
    assert files
    with pytest.raises(TrainingError, match="no address of an archive"):
        fetched(tiny.NAME, address, tmp_path / "cache")


def test_sets_that_cannot_be_checked_are_not_fetched(server: Server, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="ENZYMES cannot be checked"):
        fetched("ENZYMES", server.address, tmp_path)
    assert server.questions == []


def test_the_command_line_says_what_went_wrong(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path / "cache"))
    assert main(["--archive", server.address, "--sets", "MUTAG", "--out", str(tmp_path / "out")]) == 1
    assert server.questions == ["/sets/MUTAG.zip"]
    assert "help: fetch the data set by hand" in capsys.readouterr().out
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path / "file"))
    assert main(["--archive", server.address, "--sets", "MUTAG", "--out", str(tmp_path / "out")]) == 1
    assert "set STMLANG_CACHE" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in DIGESTS if name != tiny.NAME])
def test_digests_are_those_of_the_sets(name: str) -> None:
    assert digest(data_folder("data/tu") / name, name) == DIGESTS[name]
