"""The built site in a browser: search, menus, a narrow screen, dark colours, the playground; nothing on its console, and
nothing fetched from elsewhere. Takes Chromium and playwright, and skips without."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from docs.site import build
from docs.site.playground import bridge

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PAGES = (
    "index.html",
    "tutorial.html",
    "concepts/stability.html",
    "how-to/automation.html",
    "gallery/index.html",
    "gallery/plstm/dag_p.html",
    "errors/STM2023.html",
    "api/compile.html",
    "language.html",
    "results/index.html",
)
MINUTES = 5 * 60_000
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500), pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site with two specs in its gallery, built as strictly as the whole."""
    place = tmp_path_factory.mktemp("site")
    assert build.main(["--specs", "plstm/dag_p", "--specs", "chain/retnet", "--out", str(place)]) == 0
    return place


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@contextmanager
def opened(browser: Any, own: str, size: dict[str, int] = WIDE, scheme: str = "light") -> Iterator[Any]:
    """A page that says nothing on its console, and asks nothing of any address that does not begin with `own`."""
    complaints: list[str] = []
    page = browser.new_page(viewport=size, color_scheme=scheme)
    page.set_default_timeout(MINUTES)
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    known = (own, "data:", "blob:")
    page.on("request", lambda asked: None if asked.url.startswith(known) else complaints.append(asked.url))
    yield page
    page.close()
    assert complaints == []


def search(page: Any, words: str) -> None:
    """Type words as a person does: the search listens to keys, and a text that is put there at once it may not see."""
    page.locator("input.md-search__input").press_sequentially(words)
    page.wait_for_selector(".md-search-result__link")


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (NARROW, "dark")], ids=["wide", "narrow and dark"])
def test_pages(browser: Any, address: str, size: dict[str, int], scheme: str) -> None:
    with opened(browser, address, size, scheme) as page:
        for name in PAGES:
            page.goto(f"{address}/{name}")
            page.wait_for_selector("h1")
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], name
            assert page.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
            shown = "[...document.images].every(image => image.loading == 'lazy' || image.naturalWidth > 0)"
            assert page.evaluate(shown), name


def test_search_and_menus(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.goto(f"{address}/index.html")
        page.click(".md-tabs >> text=Concepts")
        page.wait_for_url("**/concepts/index.html")
        page.click(".md-nav--primary >> text=Stability")
        page.wait_for_url("**/concepts/stability.html")
        search(page, "bfloat16")
        assert page.locator(".md-search-result__link", has_text="Mixed precision").count() >= 1
        page.locator(".md-search-result__link").first.click()
        page.wait_for_url(lambda url: "stability" not in url)


def test_a_narrow_screen_has_its_menu_in_a_drawer(browser: Any, address: str) -> None:
    with opened(browser, address, NARROW) as page:
        page.goto(f"{address}/tutorial.html")
        page.click("label.md-header__button[for=__drawer]")
        page.wait_for_selector(".md-nav--primary .md-nav__title", state="visible")
        page.wait_for_function("document.querySelector('.md-sidebar--primary').getBoundingClientRect().left >= 0")


def test_the_colours_can_be_chosen(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.goto(f"{address}/index.html")
        page.click("form[data-md-component=palette] label:visible")
        page.wait_for_function("document.body.dataset.mdColorScheme == 'slate'")
        page.goto(f"{address}/tutorial.html")
        page.wait_for_function("document.body.dataset.mdColorScheme == 'slate'")


def test_it_works_from_a_folder(browser: Any, folder: Path) -> None:
    own = folder.as_uri()
    with opened(browser, own) as page:
        page.goto(f"{own}/index.html")
        search(page, "bfloat16")
        page.goto(f"{own}/playground.html")
        page.wait_for_function("document.getElementById('play-state').textContent.includes('http.server')")


# --- the playground --------------------------------------------------------------------------------------------------

OUTPUT = "document.getElementById('play-output')"


def has(folder: Path) -> dict[str, Any]:
    """What the playground of a built site was packed with. Skips where that is nothing."""
    have = json.loads((folder / "assets" / "playground" / "have.json").read_text(encoding="utf-8"))
    return have if have["pyodide"] else pytest.skip("npm could not fetch Pyodide")


def test_the_playground_checks(browser: Any, address: str, folder: Path) -> None:
    has(folder)
    with opened(browser, address) as page:
        page.goto(f"{address}/playground.html")
        page.wait_for_function(f"{OUTPUT}.dataset.state == 'right'")
        page.fill("#play-text", "scan s on chain(t) {\n    source[kee] = 1\n    transition  = 1\n}\n")
        page.fill("#play-sizes", "")
        page.wait_for_function(f"{OUTPUT}.dataset.state == 'wrong'")
        assert "error[STM2001]" in page.inner_text("#play-output")
        page.select_option("#play-library", "plstm/tree")
        page.wait_for_function(f"{OUTPUT}.dataset.state == 'right'")
        page.click("#play-format")
        page.wait_for_function("document.getElementById('play-text').value.includes('scan plstm_tree')")


def test_the_playground_says_what_is_said_here(
    browser: Any, address: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts and plans of every spec of the library, word for word: in the browser integers have 32 bits."""
    if not has(folder)["wheels"]:
        pytest.skip("pip could not fetch numpy for Pyodide")
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path))
    with opened(browser, address) as page:
        page.goto(f"{address}/playground.html")
        page.wait_for_function(f"{OUTPUT}.dataset.state == 'right'")
        page.select_option("#play-target", "h200")
        for name, spec in json.loads(bridge.library()).items():
            page.evaluate(f"{OUTPUT}.dataset.state = ''")
            page.select_option("#play-library", name)
            page.wait_for_function(f"{OUTPUT}.dataset.state == 'right'")
            here = json.loads(bridge.answer(spec["text"], spec["sizes"], "h200"))
            said = "\n\n".join(part for part in (here["text"], here["facts"], here["plan"]) if part)
            assert page.evaluate(f"{OUTPUT}.textContent") == said, name
