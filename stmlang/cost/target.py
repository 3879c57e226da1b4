"""The machines a plan can be made for, as small records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from stmlang.cost.coefficients import Coefficients, Platform, read_records

GIGA = 10**9
TERA = 10**12


@dataclass(frozen=True, slots=True)
class Target:
    """What a machine does in a second, and what a step or an operation costs however small it is.

    `matmul` and `vector` are flop/s (by data type, and in float32 for elementwise work), `bandwidth` bytes/s, `step_overhead`
    the seconds of one sequential `lax.scan` step, `op_overhead` of one dispatched operation, `product_overhead` of one matrix
    product among a batch of them, `compile_seconds` per program instruction, `memory` in bytes. `measured` is set where a
    calibration filled the record in. `link_bandwidth` is bytes/s that a device is sent by another, `link_latency` the seconds
    of a round of them: from data sheets, or assumed. `coefficients` are the platform's: what programs take, in multiples of
    these rates. `kernels` says whether it runs our own kernels, which take Hopper's products of tiles.
    """

    name: str
    platform: Platform
    matmul: Mapping[str, float] = field(hash=False)
    vector: float
    bandwidth: float
    step_overhead: float
    op_overhead: float
    product_overhead: float
    compile_seconds: float
    memory: int
    coefficients: Coefficients = field(compare=False, repr=False)
    measured: bool = False
    link_bandwidth: float = 5 * GIGA
    link_latency: float = 20e-6
    kernels: bool = False


RECORDS = read_records()

# What `stmlang doctor --calibrate` measured on the machine (two cores of x86) whose runs the coefficients were fitted to.
CPU = Target(
    name="cpu",
    platform="cpu",
    matmul={"float32": 160 * GIGA, "float64": 60 * GIGA, "bfloat16": 200 * GIGA},
    vector=34 * GIGA,
    bandwidth=7.2 * GIGA,
    step_overhead=2.6e-6,
    op_overhead=1e-6,
    product_overhead=0.5e-6,
    compile_seconds=1.1e-3,
    memory=8 * GIGA,
    coefficients=RECORDS["cpu"],
)

# Data sheet peaks (dense, without sparsity) times what long matrix products reach of them, about 0.8; bandwidth times 0.9.
# float32 products run at full precision, on the ordinary cores: TF32 loses what the goldens ask for.
A100 = Target(
    name="a100",
    platform="cuda",
    matmul={"float32": 15 * TERA, "float64": 15 * TERA, "bfloat16": 250 * TERA},
    vector=10 * TERA,
    bandwidth=1.8 * TERA,
    step_overhead=12e-6,
    op_overhead=4e-6,
    product_overhead=1e-9,
    compile_seconds=20e-3,
    memory=80 * GIGA,
    coefficients=RECORDS["cuda"],
    link_bandwidth=0.3 * TERA,  # NVLink of the third generation, one way
    link_latency=10e-6,
)
H100 = Target(
    name="h100",
    platform="cuda",
    matmul={"float32": 50 * TERA, "float64": 50 * TERA, "bfloat16": 800 * TERA},
    vector=30 * TERA,
    bandwidth=3.0 * TERA,
    step_overhead=10e-6,
    op_overhead=3e-6,
    product_overhead=1e-9,
    compile_seconds=20e-3,
    memory=80 * GIGA,
    coefficients=RECORDS["cuda"],
    link_bandwidth=0.45 * TERA,  # NVLink of the fourth
    link_latency=10e-6,
    kernels=True,
)
H200 = replace(H100, name="h200", bandwidth=4.3 * TERA, memory=141 * GIGA)

TARGETS: dict[str, Target] = {target.name: target for target in (CPU, H100, H200, A100)}
