"""Complex numbers of modulus at most one, whatever the leaves are: polar, by their parts, and made of others."""

from __future__ import annotations

from stmlang.fuzz.generators.expressions import Site, Writer


def turning(writer: Writer, site: Site) -> str:
    """A complex number in polar form: what is known of its modulus is not lost."""
    match writer.pick(("polar", "exponential", "conjugate", "product")):
        case "exponential":
            return f"exp(complex(-{writer.bounded(site, 1, True)}, {writer.raw(site)}))"
        case "conjugate":
            return f"conjugate({_polar(writer, site)})"
        case "product":
            return f"{_polar(writer, site)} * polar({writer.bounded(site, 0, False)}, pi / 2)"
        case _:
            return _polar(writer, site)


def number(writer: Writer, site: Site) -> str:
    """A number in any form, real ones among them."""
    match writer.pick(("polar", "parts", "real", "difference", "quotient", "modulus")):
        case "polar":
            return turning(writer, site)
        case "parts":
            return f"complex({writer.bounded(site, 1, False)}, {writer.bounded(site, 1, False)}) / 2"
        case "difference":
            return f"({turning(writer, site)} - {writer.bounded(site, 1, False)}) / 2"
        case "quotient":
            return f"{turning(writer, site)} / complex(1, {writer.bounded(site, 0, False)})"
        case "modulus":
            part = writer.pick(("abs", "real", "imaginary"))
            return f"{part}(complex(1, {writer.bounded(site, 0, False)})) / 2"
        case _:
            return writer.bounded(site, 2, False)


def _polar(writer: Writer, site: Site) -> str:
    return f"polar({writer.bounded(site, 1, False)}, {writer.raw(site)})"
