"""An explanation as one page of HTML, for people: what is proved, the plan, pictures, and the text."""

from __future__ import annotations

from html import escape
from pathlib import Path

from stmlang.cli.files import cannot_write
from stmlang.draw.picture import PAGE, Pictures
from stmlang.source.writing import written_whole

STYLE = """<style>
pre { overflow-x: auto; padding: .75rem; background: #f3f5f7; color: #1f2933; border-radius: 4px; font-size: .8rem; }
</style>"""


def explanation(title: str, parts: list[tuple[str, str]], pictures: Pictures) -> str:
    """A page with texts, each under its title, and pictures between the first of them and the others."""
    texts = [f"<h2>{escape(head)}</h2>\n<pre>{escape(text.rstrip())}</pre>" for head, text in parts]
    figures = "\n".join([STYLE, texts[0], pictures.html(), *texts[1:]])
    return PAGE.format(title=escape(title), figures=figures)


def save(path: Path, page: str) -> None:
    """Write the page, whole or not at all. Raises SpecError (STM5101)."""
    try:
        with written_whole(path) as stream:
            stream.write(page.encode())
    except OSError as error:
        raise cannot_write(path, error) from None
