"""Programs are compiled quickly: most run a few times."""

from __future__ import annotations

from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]
