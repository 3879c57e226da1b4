"""The words of settings, and which of them is meant by a word that is none."""

from __future__ import annotations

from stmlang.source.suggest import nearest
from stmlang.syntax.lexer import SETTING_WORDS

SETTING_EXAMPLES = {
    "directions": "write `directions both`, `directions all` or `directions +rows -cols`",
    "stabilize": "write `stabilize P`, `D`, `auto` or `none`",
    "normalize": "write `normalize none`, `sum` or `mlstm`",
    "read": "write `read after`",
}
SETTING_CHOICES: dict[str, tuple[str, ...]] = {
    "directions": ("forward", "backward", "both", "all", "+", "-"),
    "stabilize": ("P", "D", "auto", "none"),
    "normalize": ("none", "sum", "mlstm"),
    "read": ("after",),
}
_OTHER_SETTINGS = {
    "bidirectional": "directions",
    "direction": "directions",
    "stability": "stabilize",
    "normalization": "normalize",
}


def setting_near(word: str) -> str | None:
    """The setting that a word may be meant for."""
    return _OTHER_SETTINGS.get(word.lower()) or nearest(word, SETTING_WORDS)
