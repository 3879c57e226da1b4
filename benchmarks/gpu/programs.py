"""Programs that several sections run: a scan at a size over a batch, its arguments made on the device."""

from __future__ import annotations

from typing import Any, Literal

Mode = Literal["inference", "training"]
PASSES: dict[str, Mode] = {"forward": "inference", "both": "training"}
SPECS = {"D": "std:plstm/image_d", "P": "std:plstm/image_p", "chain": "std:plstm/chain"}


def sizes_of(size: str) -> dict[str, int]:
    """`14x14` or `4096`."""
    names = ("rows", "cols") if "x" in size else ("time",)
    return dict(zip(names, map(int, size.split("x")), strict=True))


def compiled(kind: str, size: str, mode: Mode, batch: int, **options: Any) -> Any:
    """A scan of the library, as planned for this machine without what was measured before."""
    import stmlang

    more: dict[str, Any] = {**sizes_of(size), **options}
    return stmlang.compile(SPECS[kind], mode=mode, batch=batch, tuned=False, **more)


def arguments(op: Any, batch: int) -> tuple[Any, ...]:
    """As `CompiledScan.example` has them, over a batch, drawn on the device: on the host those of long chains take minutes."""
    import jax
    import jax.numpy as jnp

    def drawn(number: int, shape: Any) -> Any:
        return jax.random.normal(jax.random.key(number), (batch, *shape), jnp.float32).astype(op.dtype)

    inputs = [drawn(number, shape) for number, shape in enumerate(op.signature.inputs.values())]
    gates: dict[str, Any] = {}
    for number, (name, shape) in enumerate(op.signature.gates.items()):
        leaf = op.scan.leaf(name)
        bounded = leaf.kind == "given" and max(leaf.low, -1.0) <= min(leaf.high, 1.0)
        array = drawn(len(inputs) + number, shape)
        array = jnp.clip(array, max(leaf.low, -1.0), min(leaf.high, 1.0)) if bounded else array
        gates[name] = array[0] if leaf.kind == "param" else array
    return (*inputs, gates)


def program(op: Any, mode: Mode, batch: int) -> Any:
    """A call of a scan over a batch, or one with all its gradients."""
    import jax
    import jax.numpy as jnp

    from stmlang.runtime.measure import built, scan_function

    given = arguments(op, batch) if batch > 1 else op.example(0)
    function = scan_function(op, mode, batch)
    if mode == "inference":
        return built(function, op, given)
    shape = op.signature.result if batch == 1 else (batch, *op.signature.result)
    return built(function, op, given, jax.random.normal(jax.random.key(99), shape, jnp.float32).astype(op.dtype))
