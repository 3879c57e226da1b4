"""Devices that share each batch: the parameters are on all of them, the examples divided among them. They may be those of
several processes, each of which has all parameters and every batch, and puts its own part of them on its devices."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
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
        processes = jax.process_count()
        own = [[device for device in there if device.process_index == number] for number in range(processes)]
        chosen = [device for some in own for device in some[: devices // processes]]
        if len(chosen) < devices:
            help = "start each process where as many devices are: `--devices` counts those of all processes"
            raise TrainingError(f"{devices // processes} devices of each process are asked for, and one has fewer", help)
        self.mesh = Mesh(np.asarray(chosen), ("batch",)) if devices > 1 else None

    def everywhere(self, tree: Any) -> Any:
        """A tree whose arrays are whole on every device."""
        return self._placed(tree, PartitionSpec())

    def divided(self, batch: Any) -> Any:
        """A batch, its examples divided among the devices."""
        return batch if self.mesh is None else self._placed(batch, PartitionSpec("batch"))

    def _placed(self, tree: Any, spec: PartitionSpec) -> Any:
        if self.mesh is None:
            return jax.device_put(tree)
        sharding = NamedSharding(self.mesh, spec)
        if jax.process_count() == 1:
            return jax.device_put(tree, sharding)
        return jax.tree.map(partial(_global, sharding), tree)


def _global(sharding: NamedSharding, leaf: Any) -> Any:
    """An array of several processes, all of which hold the whole of it."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return cast(Any, jax.random.wrap_key_data(_global(sharding, jax.random.key_data(leaf))))
    whole = np.asarray(leaf)
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])
