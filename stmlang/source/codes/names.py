"""STM1xxx: names, definitions and imports."""

from __future__ import annotations

NAMES: dict[str, tuple[str, str]] = {}
