"""STM3xxx: topologies and graph files."""

from __future__ import annotations

TOPOLOGY: dict[str, tuple[str, str]] = {}
