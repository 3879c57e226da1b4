"""A scan whose graphs come at run time and are divided among the devices along an axis of a mesh.

No edge leads from one graph to another, so that nothing is exchanged: each device has a batch of graphs, all of one bucket, and
evaluates it by one program. Of a gradient, what belongs to all graphs, such as parameters, is summed over the devices.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import equinox as eqx
import jax
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float

from stmlang.facts import Facts
from stmlang.graph.shares import Shares, shares
from stmlang.lower.empty import hollow, solid
from stmlang.plan.plan import Plan
from stmlang.runtime.attributes import missing, only_compiled
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.cut import Along
from stmlang.runtime.graphs import Graph, GraphScan
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.signature import Signature, call_error, check_arguments
from stmlang.scan.scan import Scan
from stmlang.source.diagnostic import UnavailableError


class ShardedGraphs(eqx.Module):
    """`H = scan(q, k, v, gates)` on graphs that are divided among devices: what `ShardedGraphScan.at` returns.

    Arrays, results and errors are those of a `CompiledScan` on a batch of graphs, with an axis of devices in front of whatever
    has nodes or edges: `(devices, nodes, head, key)`. They lie along the mesh by that axis, or are put there. Results are those
    of one device to rounding. A pytree whose leaves are the graphs' tables, as a `CompiledScan` is.
    """

    scans: CompiledScan
    along: Along = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    def __repr__(self) -> str:
        return f"<ShardedGraphs {self.scan.name}: on {self.along.devices} devices, {self.scans!r} each>"

    def __call__(
        self,
        q: Float[Array, "devices nodes head *read key"],
        k: Float[Array, "devices nodes head *write key"],
        v: Float[Array, "devices nodes head *write value"],
        gates: Mapping[str, Array],
    ) -> Float[Array, "devices nodes head *read value"]:
        """As `CompiledScan.__call__`. Raises SpecError (STM52xx) where arguments do not fit."""
        inputs = {"q": q, "k": k, "v": v}
        check_arguments(self.signature, inputs, gates, None, padded=True)
        return _evaluate(self, inputs, dict(gates))

    def each(self, function: Callable[..., Any], *trees: Any) -> Any:
        """`function(scan, *shares)` on every device: `scan` is that on its graphs, the shares are its entries of trees whose
        arrays have an axis of devices in front. Results get that axis back. What the function closes over, such as parameters,
        is whole on every device. Nothing is sent, so that a model with all it reads out of its graphs can be evaluated so:

            logits = on.each(lambda scan, x, arrays: read(arrays, layer(x, on=scan)), x, shares.arrays)
        """
        spec = PartitionSpec(self.along.name)

        def on_device(*stacked: Any) -> Any:
            own = jax.tree.map(lambda array: array[0], solid(stacked))
            return jax.tree.map(lambda array: array[None], function(*own))

        mapped = jax.shard_map(on_device, mesh=self.along.mesh, in_specs=spec, out_specs=spec, axis_names={self.along.name})
        return mapped(*hollow(self.along.placed((self.scans, *trees))))

    @property
    def scan(self) -> Scan:
        """The typed scan that runs: stabilized."""
        return self.scans.scan

    @property
    def dtype(self) -> str:
        return self.scans.dtype

    @property
    def signature(self) -> Signature:
        """Shapes with the axis of devices in front."""
        one, lead = self.scans.signature, (self.along.devices,)
        whole = {leaf.name for leaf in self.scan.leaves if leaf.kind == "param"}
        inputs = {name: lead + shape for name, shape in one.inputs.items()}
        gates = {name: shape if name in whole else lead + shape for name, shape in one.gates.items()}
        return replace(one, inputs=inputs, gates=gates, result=lead + one.result)

    @property
    def node_shape(self) -> tuple[int, ...]:
        """Devices, and the nodes of the bucket of each."""
        return (self.along.devices, *self.scans.node_shape)

    @property
    def facts(self) -> Facts:
        return self.scans.facts

    @property
    def plan(self) -> Plan:
        """That of a device."""
        return self.scans.plan

    def explain(self) -> str:
        """That nothing is exchanged, and the plan of a device."""
        along = self.along
        head = f"shared by graphs: a batch of one bucket on each of {along.devices} devices of the mesh axis {along.name}"
        return "\n".join(
            [head, "  * no exchange: 0 rounds, 0 B between all devices, the least possible", "", self.scans.explain()]
        )

    def __getattr__(self, name: str) -> Any:
        if not only_compiled(self, name):
            raise missing(self, name)
        message = f"the graphs of scan `{self.scan.name}` are divided among devices, and it has no `{name}`"
        help = "ask it of the scan on a batch: compile it without `shard`"
        raise UnavailableError(call_error("STM5604", message, help=help).diagnostics)


@jax.jit
def _evaluate(on: ShardedGraphs, inputs: dict[str, Array], gates: dict[str, Array]) -> Array:
    whole = {leaf.name: gates[leaf.name] for leaf in on.scan.leaves if leaf.kind == "param"}

    def single(scan: CompiledScan, inputs: dict[str, Array], gates: dict[str, Array]) -> Array:
        return cast(Array, scan(inputs["q"], inputs["k"], inputs["v"], {**gates, **whole}))

    return cast(Array, on.each(single, inputs, {name: gate for name, gate in gates.items() if name not in whole}))


@jax.tree_util.register_static
@dataclass(frozen=True, repr=False)
class ShardedGraphScan:
    """What `stmlang.compile(spec, mesh=mesh, shard={"graphs": "x"})` returns where graphs come at run time: `at` gives it
    graphs and divides them among the devices. `one` is the scan without the devices."""

    one: GraphScan
    along: Along

    def __repr__(self) -> str:
        return f"<ShardedGraphScan {self.scan.name}: graphs come with `at`, for {self.along.devices} devices>"

    @property
    def scan(self) -> Scan:
        return self.one.scan

    @property
    def dtype(self) -> str:
        """The data type of results."""
        return self.one.dtype

    def at(self, graphs: Shares | Sequence[Graph]) -> ShardedGraphs:
        """The scan on shares, `stmlang.graph.shares(graphs, devices)`, or on graphs, which are divided so.

        Raises SpecError: STM3508 where there are not as many shares as devices, and what `GraphScan.at` raises.
        """
        devices = self.along.devices
        divided = graphs if isinstance(graphs, Shares) else shares(graphs, devices)
        if len(divided.batches) != devices:
            message = f"there are {len(divided.batches)} shares of graphs for {devices} devices"
            raise call_error("STM3508", message, help=f"make as many: `stmlang.graph.shares(graphs, {devices})`")
        scans = self.one.tables_of(divided)
        with jax.ensure_compile_time_eval():
            tables = jax.device_put(scans.tables, self.along.lies)
        return ShardedGraphs(CompiledScan(tables, scans.compilation), self.along)

    def __call__(self, *_arguments: Any, **_named: Any) -> Any:
        """A call needs graphs: raises SpecError (STM3301)."""
        raise self.one.without_graphs("be called")

    def __getattr__(self, name: str) -> Any:
        if not only_compiled(self, name):
            raise missing(self, name)
        raise UnavailableError(self.one.without_graphs(f"be asked for `{name}`").diagnostics)
