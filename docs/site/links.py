"""Links of documents that stand elsewhere in the site than in the repository."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

_FENCE = re.compile(r"^(```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[(?P<words>[^\]\[]*)\]\((?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
_WRONG_SPEC = re.compile(r"^```stm-error STM\d{4}$", re.MULTILINE)


def relinked(text: str, source: Path, page: str, pages: Mapping[Path, str]) -> str:
    """A document as it stands in the site under the name `page`. Links to what the site has lead there, links to other files of
    the repository are plain words. Blocks are coloured as specs whether they are right or wrong.

    Raises ValueError for a link that leads nowhere.
    """

    def link(match: re.Match[str]) -> str:
        words, target, anchor = match["words"], match["target"], match["anchor"] or ""
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        place = (source.parent / target).resolve()
        if place in pages:
            return f"[{words}]({posixpath.relpath(pages[place], posixpath.dirname(page) or '.')}{anchor})"
        if not place.exists():
            raise ValueError(f"{source}: the link to {target} leads nowhere")
        return words

    parts = _FENCE.split(text)
    return "".join(_WRONG_SPEC.sub("```stm", part) if part.startswith("```") else _LINK.sub(link, part) for part in parts)
