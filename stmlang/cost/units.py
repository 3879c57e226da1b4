"""Numbers as people read them."""

from __future__ import annotations


def si(number: float, unit: str = "") -> str:
    """`1.23 M`, `45.6 G`: three significant digits and a decimal prefix."""
    for scale, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= scale * 0.9995:
            return f"{_three(number / scale)} {prefix}{unit}"
    return f"{_three(number)} {unit}".rstrip()


def seconds(time: float) -> str:
    """`1.23 ms`, from nanoseconds to seconds."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if time >= scale * 0.9995:
            return f"{_three(time / scale)} {unit}"
    return f"{_three(time / 1e-9)} ns"


def size(number: float) -> str:
    """Bytes, with decimal prefixes as in data sheets."""
    return si(number, "B")


def excess(ratio: float) -> str:
    """How much a ratio above one exceeds it: `12x`, `1.3x`, `2.1 %`."""
    return f"{ratio:.0f}x" if ratio >= 9.95 else f"{ratio:.1f}x" if ratio >= 1.05 else f"{(ratio - 1) * 100:.2g} %"


def _three(number: float) -> str:
    """Three significant digits without an exponent."""
    if number == int(number) and abs(number) < 1000:
        return str(int(number))
    digits = 2 if abs(number) < 9.995 else 1 if abs(number) < 99.95 else 0
    return f"{number:.{digits}f}"
