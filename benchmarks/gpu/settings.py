"""What a run of `make gpu` is asked for, and what its sections are."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast


@dataclass(frozen=True)
class Options:
    """`dry` takes the smallest sizes, on the platform that is there; `quick` fits ten minutes, another run forty. `sets` is a
    folder of TUDataset folders, NCI1 among them: without it molecules are drawn at random. Paths are absolute."""

    out: Path
    dry: bool = False
    quick: bool = False
    sets: Path | None = None

    @property
    def seconds(self) -> float:
        """What all sections together may take."""
        return 600.0 if self.quick else 2400.0


class Section(Protocol):
    """A module of this package: what it measures, case by case.

    `SHARE` is its part of the time, `ENVIRONMENT` what its process is given besides, `HEADER` the columns of its table.
    `cases` are names, `measure` gives the entries of one, `ok` among them where it judges. `row` has a cell for each column.
    """

    SHARE: float
    ENVIRONMENT: dict[str, str]
    TITLE: str
    HEADER: tuple[str, ...]

    def cases(self, options: Options) -> list[str]: ...

    def measure(self, case: str, options: Options) -> dict[str, Any]: ...

    def row(self, case: str, found: dict[str, Any]) -> tuple[str, ...]: ...


SECTIONS = ("device", "equivalence", "artifacts", "determinism", "attention", "training", "graphs", "calibration", "goldens")
"""In this order: what is short, and what everything else stands on, comes first."""


def section(name: str) -> Section:
    """The module of a section."""
    return cast(Section, cast(Any, import_module(f"benchmarks.gpu.{name}")))
