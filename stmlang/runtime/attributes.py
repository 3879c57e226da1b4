"""What a scan that is not compiled yet answers when it is asked for an attribute that it does not have."""

from __future__ import annotations

import dataclasses
from typing import Any

from stmlang.runtime.compiled import CompiledScan


def only_compiled(scan: Any, name: str) -> bool:
    """Whether compiling the scan would give it this public attribute. Its own fields are missing only while it is being made,
    as copying and unpickling do, and then nothing can be said of it."""
    fields = {field.name for field in dataclasses.fields(scan)}
    if name.startswith("_") or name in fields or not fields <= vars(scan).keys():
        return False
    # `hasattr(CompiledScan, name)` would know those of the metaclass too, such as `mro`, and no field without a default.
    return name in CompiledScan.__dataclass_fields__ or any(name in vars(base) for base in CompiledScan.__mro__)


def missing(scan: Any, name: str) -> AttributeError:
    """What Python says of an attribute that is not there."""
    return AttributeError(f"{type(scan).__name__!r} object has no attribute {name!r}", name=name, obj=scan)
