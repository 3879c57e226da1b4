"""Whether the options of a compilation or of an artifact are what they should be, before any work is done with them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, cast, get_args

import jax.numpy as jnp
import numpy as np

from stmlang.cost.lookup import target_names
from stmlang.cost.problem import DtypeName, Mode
from stmlang.cost.settings import ConfigValue, is_settings, settings_dict
from stmlang.graph.limits import LARGEST
from stmlang.runtime.signature import call_error, flag
from stmlang.strategies.registry import strategy_named


def whole_number(value: Any) -> int | None:
    """A whole number as Python's own, numpy's and 8.0 included; None for anything else, truth values and arrays among it."""
    number = plain(value)
    if isinstance(number, bool):
        return None
    if isinstance(number, float):
        return int(number) if number.is_integer() else None
    return number if isinstance(number, int) else None


def positive(name: str, value: Any, largest: int | None = LARGEST) -> int:
    """A whole number from 1 on. Raises SpecError (STM5010) for anything else."""
    number = whole_number(value)
    if number is not None and number > 0 and (largest is None or number <= largest):
        return number
    bound = "" if largest is None else " below 2^31"
    raise call_error("STM5010", f"`{name}` must be a positive whole number{bound}, not {value!r:.80}")


def word(name: str, value: Any, known: tuple[str, ...]) -> str:
    """One of a few words. Raises SpecError (STM5010) for anything else."""
    if isinstance(value, str) and value in known:
        return value
    raise call_error("STM5010", f"unknown {name} {_shown(value)}", help=f"choose one of {', '.join(known)}")


def _shown(value: Any) -> str:
    return f"`{value}`" if isinstance(value, str) else f"{value!r:.80}, a {type(value).__name__}"


def target_name(value: Any) -> str:
    """The name of a machine to plan for. Raises SpecError (STM5009) for anything else."""
    if isinstance(value, str) and value in target_names():
        return value
    raise call_error("STM5009", f"unknown target {_shown(value)}", help=f"choose one of {', '.join(target_names())}")


def plain(size: Any) -> Any:
    """A size with numpy's numbers as Python's own; whoever takes it says what is wrong with anything else."""
    return cast(Any, size).item() if isinstance(size, np.generic) else size


def node_shape(value: Any) -> tuple[Any, ...]:
    """The shape of node arrays. Raises SpecError (STM5201) for what is no sequence of numbers."""
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return tuple(plain(size) for size in cast(Sequence[Any], value))
    raise call_error(
        "STM5201", f"the shape of node arrays is a tuple of sizes, not {value!r:.80}", help="such as `x.shape[:-1]`"
    )


def spec_text(value: Any) -> str | Path:
    """What `compile` takes as a spec. Raises SpecError (STM5010) for what is neither a text nor a path."""
    if isinstance(value, str):
        return value
    if isinstance(value, PathLike):
        return Path(os.fsdecode(cast("PathLike[str]", value)))
    raise call_error(
        "STM5010",
        f"`source` must be a text or a path, not {type(value).__name__}",
        help='give the spec itself, its path, or a name of the library: `stmlang.compile("std:plstm/image_p")`',
    )


def file_path(value: Any) -> Path:
    """The path of a file to read or write. Raises SpecError (STM5010) for what is none."""
    if isinstance(value, (str, bytes, PathLike)):
        name = os.fsdecode(cast(Any, value))
        if "\0" not in name and name:
            return Path(name)
    raise call_error("STM5010", f"`path` must name a file, not {value!r:.80}", help='give its path: `"scan.stmx"`')


def search_path(value: Any) -> tuple[Path, ...]:
    """Folders to look for files in: one, or a sequence of them. Raises SpecError (STM5010) for what is no folder."""
    if isinstance(value, (str, bytes, PathLike)):
        folders = (_folder(value),)
    elif isinstance(value, Sequence):
        folders = tuple(_folder(entry) for entry in cast(Sequence[Any], value))
    else:
        raise call_error("STM5010", f"`path` must be a folder or a list of folders, not {value!r:.80}")
    missing = next((folder for folder in folders if not folder.is_dir()), None)
    if missing is not None:
        help = "check it; it is taken from the current folder"
        raise call_error("STM5010", f"`path` names `{missing}`, which is no folder", help=help)
    return folders


def _folder(value: Any) -> Path:
    if isinstance(value, (str, bytes, PathLike)):
        name = os.fsdecode(cast(Any, value))
        if "\0" not in name:
            return Path(name)
    raise call_error("STM5010", f"`path` must be a folder or a list of folders, not {value!r:.80}")


def settings(config: Any) -> dict[str, ConfigValue] | None:
    """The settings of a strategy by name, given so or as its own dataclass. Raises SpecError (STM5010) for anything but whole
    numbers and tuples of them."""
    if config is None:
        return None
    if is_settings(config):
        config = settings_dict(config)
    if not isinstance(config, Mapping):
        message = f"`config` must be a dictionary of settings, not {type(config).__name__}"
        raise call_error("STM5010", message, help='such as `config={"tile": (8, 8)}`')
    return {_setting_name(name): _setting(name, value) for name, value in cast(Mapping[Any, Any], config).items()}


def _setting_name(name: Any) -> str:
    if isinstance(name, str):
        return name
    raise call_error("STM5010", f"settings have names, and {name!r:.80} is none", help='such as `config={"tile": (8, 8)}`')


def _setting(name: Any, value: Any) -> ConfigValue:
    if isinstance(value, (tuple, list)):
        numbers = [whole_number(entry) for entry in cast(tuple[object, ...], value)]
        if all(number is not None for number in numbers):
            return tuple(number for number in numbers if number is not None)
    number = whole_number(value)
    if number is None:
        message = f"the setting `{name}` must be a whole number or a tuple of them, not {value!r:.80}"
        raise call_error("STM5010", message, help='such as `config={"tile": (8, 8)}`')
    return number


def type_name(value: Any) -> Any:
    """The name of a data type of numpy's or JAX's, however it is given: `"bfloat16"`, `jnp.bfloat16`, `numpy.float32`,
    `x.dtype`. Anything else stays as it is."""
    scalar = isinstance(value, cast(Any, type(jnp.float32))) or (
        isinstance(value, type) and issubclass(cast(Any, value), np.generic)
    )
    return jnp.dtype(cast(Any, value)).name if scalar or isinstance(value, np.dtype) else cast(Any, value)


def call_options(
    dtype: Any, mode: Any, batch: Any, memory_limit: Any, strategy: Any, tuned: Any, scan: Any
) -> tuple[DtypeName, Mode, int, int | None, str | None, bool, str | None]:
    """The options of `compile`, checked. Raises SpecError: STM5006 for an unknown strategy, STM5010 for anything else."""
    if strategy is not None:
        if not isinstance(strategy, str):
            raise call_error("STM5006", f"a strategy is named by a text, not {strategy!r:.80}", help='such as `"recurrent"`')
        strategy_named(strategy)
    if scan is not None and not isinstance(scan, str):
        raise call_error("STM5010", f"`scan` must be the name of a scan of the file, not {scan!r:.80}")
    return (
        cast(DtypeName, word("data type", type_name(dtype), get_args(DtypeName))),
        cast(Mode, word("mode", mode, get_args(Mode))),
        positive("batch", batch),
        None if memory_limit is None else positive("memory_limit", memory_limit, None),
        strategy,
        flag("tuned", tuned),
        scan,
    )


def export_batch(value: Any) -> int | Literal["symbolic"] | None:
    """The batch of an artifact. Raises SpecError (STM5010) for anything else than a size, "symbolic" or None."""
    if value is None or (isinstance(value, str) and value == "symbolic"):
        return cast(Any, value)
    number = whole_number(value)
    if number is None or not 0 < number <= LARGEST:
        raise call_error(
            "STM5010",
            f"`batch` must be a positive whole number below 2^31, not {value!r:.80}",
            help='or "symbolic" for any size, or None for a program without a batch axis',
        )
    return number


def export_batches(value: Any) -> Sequence[int | Literal["symbolic"] | None]:
    """The batches of an artifact: one, or a list of them. Raises SpecError (STM5010) for anything else."""
    if not isinstance(value, (list, tuple)):
        return [export_batch(value)]
    batches: list[int | Literal["symbolic"] | None] = [export_batch(entry) for entry in cast(Sequence[Any], value)]
    if not batches:
        raise call_error("STM5010", "`batch` names no batch size", help='give at least one, or "symbolic" for any')
    return batches
