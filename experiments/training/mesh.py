"""Devices that share each batch: the parameters are on all of them, the examples divided among them."""

from __future__ import annotations

from typing import Any, cast

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from stmlang.experiments.training.errors import TrainingError


class Placement:
    """Where arrays lie: on one device, or along a mesh of several. XLA sums gradients over the mesh."""

    def __init__(self, devices: int) -> None:
        """Raises TrainingError where there are not as many devices."""
        there = cast(list[Any], jax.devices())
        if devices > len(there):
            help = "ask for fewer: `--devices`; on a CPU, XLA_FLAGS=--xla_force_host_platform_device_count=N makes N of it"
            raise TrainingError(f"{devices} devices are asked for, and there are {len(there)}", help)
        self.mesh = Mesh(np.asarray(there[:devices]), ("batch",)) if devices > 1 else None

    def everywhere(self, tree: Any) -> Any:
        """A tree whose arrays are whole on every device."""
        return jax.device_put(tree, None if self.mesh is None else NamedSharding(self.mesh, PartitionSpec()))

    def divided(self, batch: Any) -> Any:
        """A batch, its examples divided among the devices."""
        return batch if self.mesh is None else jax.device_put(batch, NamedSharding(self.mesh, PartitionSpec("batch")))
