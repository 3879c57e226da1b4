"""STM5xxx: planning, lowering, calls and artifacts."""

from __future__ import annotations

LOWERING: dict[str, tuple[str, str]] = {}
