"""Say what is installed, which devices there are, how precise they compute, and whether it all fits together."""

from __future__ import annotations

import argparse
import platform
import re
import sys
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any

from stmlang.cli.options import add_json
from stmlang.cli.output import print_json, room, write_result
from stmlang.source.columns import wrapped
from stmlang.xla_flags import FLAG, affected

NAME = "doctor"
SUMMARY = "print versions, devices and settings, and whether they fit"
PACKAGES = (
    "jax",
    "jaxlib",
    "equinox",
    "numpy",
    "scipy",
    "jaxtyping",
    "networkx",
    "lark",
    "rich",
    "optax",
    "jax-cuda12-plugin",
    "jax-cuda13-plugin",
)
EXTRAS = {
    "draw": "pictures: `stmlang draw`, `stmlang explain --html`, `op.draw()`",
    "lsp": "the language server: `stmlang lsp`",
    "graphs": "flow rasters that come as GeoTIFF",
    "demo": "the studies, and training as they do",
    "images": "the study of images: `python -m stmlang.experiments.imagenet`",
    "safetensors": "parameters by name in safetensors files",
    "tensorboard": "logs of the studies for TensorBoard",
    "docs": "the documentation site: `make docs`",
    "test": "the tests",
    "dev": "formatting, types and layers: `make lint`",
}
"""What each extra of the package is for."""
NEEDED = ("jax", "jaxlib", "equinox", "numpy", "jaxtyping", "scipy", "lark")
OLDEST_PYTHON = (3, 11)
_BOUND = re.compile(r"(>=|<=|==|!=|<|>|~=)\s*([0-9][0-9.]*)")


@dataclass
class Report:
    """What was found. `missing` are the distributions of each extra that are not there; `problems` keep stmlang from working,
    `advice` is worth knowing."""

    stmlang: str
    python: str
    platform: str
    packages: dict[str, str | None]
    supported: dict[str, str]
    jax: dict[str, Any] | None = None
    calibration: dict[str, Any] = field(default_factory=dict[str, Any])
    missing: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    problems: list[str] = field(default_factory=list[str])
    advice: list[str] = field(default_factory=list[str])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--calibrate", action="store_true", help="measure this machine's CPU for the cost model, and keep the record"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0 if everything fits together, else 1."""
    if arguments.calibrate:
        calibrate()
    report = examine()
    if arguments.json:
        print_json(asdict(report), ok=not report.problems)
    else:
        write_result("\n".join(wrapped(render(report), room())))
    return 1 if report.problems else 0


def calibrate() -> None:
    """Measure the CPU, with a progress bar on standard error, and write the record that plans for `cpu` use from then on.

    Raises SpecError (STM5401) where the record cannot be kept, before anything is measured if that is certain.
    """
    from stmlang.cli.progress import progress_bar
    from stmlang.cost import calibration
    from stmlang.runtime.calibrate import MEASUREMENTS, measure, record
    from stmlang.runtime.tune import cannot_keep, require_cache

    require_cache()
    results: dict[str, Any] = {}
    with progress_bar("measuring this machine", MEASUREMENTS) as show:
        for done, (name, fields) in enumerate(measure(), 1):
            results |= fields
            show(done, f"measured {name}")
    try:
        calibration.save(record(results))
    except OSError as error:
        raise cannot_keep(error) from None


def examine() -> Report:
    """Look at everything."""
    from stmlang import __version__

    report = Report(
        stmlang=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        packages={name: installed(name) for name in PACKAGES},
        supported=supported_ranges(),
        missing=missing_of_extras(),
    )
    if sys.version_info[:2] < OLDEST_PYTHON:
        report.problems.append(f"Python {report.python} is older than {'.'.join(map(str, OLDEST_PYTHON))}")
    _compare(report)
    _look_at_jax(report)
    _look_at_calibration(report)
    return report


def installed(name: str) -> str | None:
    """The version of an installed distribution, without importing it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def supported_ranges() -> dict[str, str]:
    """What this version of stmlang asks for, from its own metadata: `{"jax": ">=0.10.2,<0.12"}`."""
    matches = (re.match(r"([A-Za-z0-9_.-]+)\s*([^;]*)\Z", line) for line in _requirements() if ";" not in line)
    return {match.group(1): match.group(2).strip() for match in matches if match}


def missing_of_extras() -> dict[str, list[str]]:
    """By extra, what of it is not installed; extras that are whole are left out."""
    matches = (re.match(r"([A-Za-z0-9_.-]+).*;\s*extra == ['\"]([a-z]+)['\"]", line) for line in _requirements())
    entries = [(match.group(2), match.group(1)) for match in matches if match]
    absent = [(extra, name) for extra, name in entries if installed(name) is None]
    return {extra: [name for of, name in absent if of == extra] for extra in EXTRAS if extra in dict(absent)}


def _requirements() -> list[str]:
    """What the installed package requires, a line each."""
    from importlib.metadata import distributions

    # A build leaves metadata in the source folder, which may be older than what is installed: only the latter has METADATA.
    installs = sorted(distributions(name="stmlang"), key=lambda entry: entry.read_text("METADATA") is None)
    return (installs[0].requires or []) if installs else []


def within(version: str, ranges: str) -> bool:
    """Whether a version lies in a range such as `>=0.10.2,<0.12`. Suffixes (`rc1`, `.dev0`) are not looked at."""
    have = _numbers(version)
    for operator, bound in _BOUND.findall(ranges):
        want = _numbers(bound)
        length = max(len(have), len(want))
        a, b = have + (0,) * (length - len(have)), want + (0,) * (length - len(want))
        holds = {">=": a >= b, "<=": a <= b, "==": a == b, "!=": a != b, "<": a < b, ">": a > b, "~=": a >= b and a[0] == b[0]}
        if not holds[operator]:
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    match = re.match(r"[0-9]+(\.[0-9]+)*", text)
    return tuple(int(digits) for digits in match.group().split(".")) if match else (0,)


def _compare(report: Report) -> None:
    """Installed versions against supported ones, and jax against its jaxlib."""
    for name in NEEDED:
        if report.packages[name] is None:
            report.problems.append(f"{name} is not installed: run `pip install stmlang`")
    for name, ranges in report.supported.items():
        version = report.packages.get(name)
        if version is not None and not within(version, ranges):
            report.problems.append(
                f"{name} {version} is outside of the supported range {ranges}: run `pip install '{name}{ranges}'`"
            )
    jax, jaxlib = report.packages["jax"], report.packages["jaxlib"]
    if jax is not None and jaxlib is not None and _numbers(jaxlib) > _numbers(jax):
        report.problems.append(f"jaxlib {jaxlib} is newer than jax {jax}: install the same version of both")


def _look_at_jax(report: Report) -> None:
    """Import jax and ask it; whatever it raises is a finding, not a crash."""
    if report.packages["jax"] is None or report.packages["jaxlib"] is None:
        return
    try:
        jax: Any = import_module("jax")
        devices = [{"platform": device.platform, "kind": device.device_kind, "id": device.id} for device in jax.devices()]
        report.jax = {
            "backend": jax.default_backend(),
            "devices": devices,
            "enable_x64": bool(jax.config.jax_enable_x64),
            "default_matmul_precision": jax.config.jax_default_matmul_precision,
        }
    except Exception as error:
        report.problems.append(
            f"jax does not start: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        )
        return
    _advise(report, report.jax)


def _advise(report: Report, jax: dict[str, Any]) -> None:
    plugins = [name for name in PACKAGES if name.endswith("-plugin") and report.packages[name]]
    if plugins and jax["backend"] == "cpu":
        report.advice.append(f"{plugins[0]} is installed, but jax runs on the CPU: is a GPU visible, and is its driver recent?")
    for plugin in plugins:
        if _numbers(report.packages[plugin] or "")[:2] != _numbers(report.packages["jaxlib"] or "")[:2]:
            report.problems.append(f"{plugin} {report.packages[plugin]} does not belong to jaxlib {report.packages['jaxlib']}")
    if jax["backend"] == "cpu" and affected():
        report.advice.append(
            f"jaxlib {report.packages['jaxlib']} computes some sums wrongly on CPUs; `import stmlang` switches that off, "
            f"but only if it comes before the first array: else set XLA_FLAGS={FLAG}"
        )
    if not jax["enable_x64"]:
        report.advice.append("float64 is off; set JAX_ENABLE_X64=1 to compile scans in float64")
    if jax["backend"] == "gpu" and jax["default_matmul_precision"] is None:
        report.advice.append(
            "the GPU multiplies float32 matrices in TF32 by default; stmlang's own products ask for full precision"
        )


def _look_at_calibration(report: Report) -> None:
    """Whether planning for the CPU uses this machine's own figures."""
    from stmlang.cost import calibration

    stored = calibration.load()
    report.calibration = {
        "file": str(calibration.path()),
        "measured": stored is not None,
        "cores": calibration.usable_cores(),
    }
    if stored is not None:
        report.calibration |= {"matmul": dict(stored.matmul), "vector": stored.vector, "bandwidth": stored.bandwidth}
        report.calibration |= {"step_overhead": stored.step_overhead, "op_overhead": stored.op_overhead}


def render(report: Report) -> str:
    """The report for people."""
    lines = [
        f"stmlang {report.stmlang}, Python {report.python}, {report.platform}, {report.calibration['cores']} cores",
        "",
        "packages",
    ]
    for name, version in report.packages.items():
        if version is None and name not in NEEDED:
            continue
        ranges = report.supported.get(name, "")
        lines.append(f"  {name:<18} {version or 'missing':<12}" + (f" supported {ranges}" if ranges else ""))
    if report.jax is not None:
        lines += ["", "jax", f"  backend            {report.jax['backend']}"]
        lines += [f"  device {device['id']:<11} {device['kind']} ({device['platform']})" for device in report.jax["devices"]]
        lines.append(f"  float64            {'on' if report.jax['enable_x64'] else 'off'}")
        lines.append(f"  matmul precision   {report.jax['default_matmul_precision'] or 'default'}")
    if report.missing:
        lines += ["", "not installed"]
        lines += [
            f"  {EXTRAS[extra]}: needs {', '.join(names)}; run `pip install 'stmlang[{extra}]'`"
            for extra, names in report.missing.items()
        ]
    measured = "measured on this machine" if report.calibration["measured"] else "not measured, default figures are used"
    lines += ["", "cpu calibration", f"  {measured}", f"  {report.calibration['file']}", ""]
    lines += [f"problem: {text}" for text in report.problems] + [f"advice: {text}" for text in report.advice]
    lines.append("everything fits together" if not report.problems else "this installation does not fit together")
    return "\n".join(line.rstrip() for line in lines) + "\n"
