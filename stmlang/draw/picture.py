"""A picture as a function that draws on a figure, and pictures as a file: SVG, PNG, or one page of HTML.

The same content gives the same bytes. Colours are those that also people who see few of them can tell apart; nothing is said
by colour alone.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from stmlang.draw.names import SUFFIXES
from stmlang.source import short
from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.writing import written_whole

INK, ACCENT, PALE, MARK = "#1f2933", "#0b6e99", "#c9d3dc", "#d9822b"
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "stmlang",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": PALE,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
DOTS = 160
"""Pixels of a PNG to an inch."""
PLACES = 6
"""Decimals of places in a figure, which is 1 wide and high."""
GAP = 0.35
"""Inches above each of several pictures in one file, where its title stands."""
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 1.5rem auto; max-width: 64rem; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; color: #1f2933;
        background: #fff; }}
figure {{ margin: 1.5rem 0; overflow-x: auto; background: #fff; }}
figcaption {{ max-width: 48rem; }}
svg {{ max-width: 100%; height: auto; }}
h1 {{ font-size: 1.4rem; }} h2 {{ font-size: 1.1rem; margin: 0; }}
@media (prefers-color-scheme: dark) {{
  body {{ background: #14191f; color: #dde3e9; }}
  figure {{ padding: 0.75rem; border-radius: 4px; }} figure, figure h2 {{ color: #1f2933; }}
}}
</style>
<h1>{title}</h1>
{figures}
</html>
"""


@dataclass(frozen=True)
class Picture:
    """What `draw` puts on a figure, or a part of one, of so many inches; `caption` says how to read it, as plain text."""

    title: str
    caption: str
    width: float
    height: float
    draw: Callable[[Any], None]


@dataclass(frozen=True)
class Pictures:
    """Pictures of one scan. A notebook shows them; `save` writes them to a file."""

    title: str
    pictures: tuple[Picture, ...]

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<Pictures of {self.title}: {', '.join(picture.title for picture in self.pictures)}>"

    def html(self) -> str:
        """The pictures with their captions, to stand in a page."""
        return _figures(self.pictures)

    def _repr_html_(self) -> str:
        return self.html()

    def save(self, path: str | Path) -> None:
        """Write `.svg`, `.png` or `.html`, whole or not at all. Raises SpecError (STM5213) for another suffix, OSError
        where the file cannot be written."""
        content = rendered(self, Path(path).suffix)
        with written_whole(Path(path)) as stream:
            stream.write(content)


def rendered(pictures: Pictures, suffix: str) -> bytes:
    """The content of a file with this suffix. Raises SpecError (STM5213) for one that is not among `SUFFIXES`."""
    match suffix:
        case ".svg":
            return _together(pictures.pictures, "svg")
        case ".png":
            return _together(pictures.pictures, "png")
        case ".html":
            return PAGE.format(title=escape(pictures.title), figures=_figures(pictures.pictures)).encode()
        case _:
            raise cannot_draw(
                f"no picture is written as {suffix or 'a file without a suffix'}", f"name it {', '.join(SUFFIXES)}"
            )


def cannot_draw(message: str, help: str) -> SpecError:
    """What is wrong with what was asked for."""
    return SpecError([Diagnostic("STM5213", message, None, help=help)])


def svg(draw: Callable[[Any], None], width: float, height: float) -> str:
    """What `draw` puts on a figure of so many inches, as an element to stand in a page."""
    text = saved(draw, width, height, "svg").decode()
    return text[text.index("<svg") :]


def _figures(pictures: Sequence[Picture]) -> str:
    return "\n".join(
        f"<figure><h2>{escape(picture.title)}</h2>\n{svg(picture.draw, picture.width, picture.height)}"
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
        for picture in pictures
    )


def _together(pictures: Sequence[Picture], kind: str) -> bytes:
    """One below the other, each under its title."""
    heights = [picture.height + GAP for picture in pictures]

    def draw(figure: Any) -> None:
        for picture, place in zip(
            pictures, figure.subfigures(len(pictures), 1, height_ratios=heights, squeeze=False)[:, 0], strict=True
        ):
            place.suptitle(picture.title, fontsize=10, fontweight="bold", x=0.01, ha="left")
            picture.draw(place)

    return saved(draw, max(picture.width for picture in pictures), sum(heights), kind, "white")


def saved(draw: Callable[[Any], None], width: float, height: float, kind: str, ground: str = "none") -> bytes:
    """What `draw` puts on a figure of so many inches, as the content of a file of this kind (`svg`, `png`)."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor=ground)
        draw(figure)
        _settle(figure)
        buffer = io.BytesIO()
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(buffer, format=kind, dpi=DOTS, metadata=metadata, facecolor=ground)
    return buffer.getvalue()


def _settle(figure: Any) -> None:
    """Lay the figure out, once, to so many decimals. The last bits of what the solver of the layout finds differ from run to
    run, and clipping paths are named after all bits."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for part in figure.subfigs:
        part.bbox_relative.set_points(part.bbox_relative.get_points().round(PLACES))
    for axes in figure.axes:
        axes.set_position(tuple(round(place, PLACES) for place in axes.get_position(original=True).bounds))
    for text in (text for part in (figure, *figure.subfigs) for text in part.texts):
        text.set_position(tuple(round(place, PLACES) for place in text.get_position()))
