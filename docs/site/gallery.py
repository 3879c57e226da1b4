"""The gallery: each spec of the library with its text, its pictures, what is proved of it, and its plans."""

from __future__ import annotations

from collections.abc import Iterator

from stmlang.check import library_specs, load, open_spec
from stmlang.cli.listing import headline
from stmlang.compiler import Call, Request, plan, prepare, previews
from stmlang.draw.all import pictures_of
from stmlang.draw.picture import Picture, Pictures, rendered
from stmlang.facts import Facts, analyse, show_facts
from stmlang.graph.dag import DAG
from stmlang.plan.plan import Plan
from stmlang.plan.preview import outlook_text
from stmlang.plan.show import explain_text
from stmlang.scan.scan import Scan
from stmlang.scan.sizes import bind, regular_part, unbound
from stmlang.scan.topology import Runtime, kind_of

LENGTHS = {1: 256, 2: 14, 3: 6}
"""Nodes along each axis that a spec leaves open, by the number of axes."""
TARGETS = ("cpu", "h200")
MEMORY = 2**34
INTRODUCTION = """\
# Gallery

Every spec of the library: its text, what it runs on, what its gates depend on, how far a node sees, what is proved of it, and
how it would be evaluated on two machines. Pictures and plans are made when the site is built, by `stmlang draw` and `stmlang
explain`. `stmlang new NAME --from SPEC` copies one. Where axes are open, sequences have 256 nodes here, images 14 x 14, volumes
6 x 6 x 6.
"""


def gallery_pages(names: list[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """Name and content of each page and picture; `names` are specs of the library, all of them unless given."""
    rows: dict[str, list[str]] = {}
    for name in names or [name for name in library_specs() if name != "gates"]:
        scan, sizes = _sized(load(f"std:{name}"))
        page, pictures = _page(name, scan, sizes)
        what = headline(open_spec(f"std:{name}").source.text)
        thumb = f"[![{name}]({name}-topology.svg){{ .thumb loading=lazy }}]({name}.md)"
        rows.setdefault(kind_of(scan.topology), []).append(f"| {thumb} | [`{name}`]({name}.md)<br>{what} |")
        yield f"gallery/{name}.md", page.encode()
        for picture in pictures:
            yield f"gallery/{name}-{_file(picture)}.svg", rendered(Pictures(scan.name, (picture,)), ".svg")
    lines = [INTRODUCTION]
    for kind, entries in rows.items():
        lines += [f"## On a {kind}", "", "| topology | spec |", "|---|---|", *entries, ""]
    yield "gallery/index.md", "\n".join(lines).encode()


def _sized(scan: Scan) -> tuple[Scan, dict[str, int]]:
    regular = None if isinstance(scan.topology, Runtime) else regular_part(scan)
    sizes = {} if regular is None else dict.fromkeys(unbound(scan), LENGTHS[len(regular.axes)])
    return bind(scan, sizes), sizes


def _page(name: str, scan: Scan, sizes: dict[str, int]) -> tuple[str, tuple[Picture, ...]]:
    facts, dag, shown, plans = _known(scan)
    pictures = pictures_of("all", facts, dag, shown).pictures
    settings = "".join(f" --set {axis}={size}" for axis, size in sizes.items())
    text = open_spec(f"std:{name}").source.text.rstrip()
    lines = [f"# {name}", "", "```stm", text, "```", ""]
    for picture in pictures:
        file = f"{name.rpartition('/')[2]}-{_file(picture)}.svg"
        lines += [
            f"## {picture.title.capitalize()}",
            "",
            f"![{picture.title} of {name}]({file}){{ .picture loading=lazy }}",
            "",
        ]
        lines += [picture.caption, ""]
    lines += ["## What is proved", "", "```text", show_facts(facts).rstrip(), "```", ""]
    for target, said in plans.items():
        command = f"stmlang explain std:{name}{settings} --target {target} --emit plan"
        lines += [f"## Plan for {target}", "", f"`{command}`", "", "```text", said.rstrip(), "```", ""]
    return "\n".join([*lines, "[All specs](../index.md)", ""]), pictures


def _known(scan: Scan) -> tuple[Facts, DAG | None, Plan | None, dict[str, str]]:
    """What is known of a scan, its graph, its plan for the first target, and the plans as text."""
    call = Call("float32", memory_limit=MEMORY)
    requests = {target: Request(target, tuned=False) for target in TARGETS}
    if isinstance(scan.topology, Runtime):
        shown = {
            target: outlook_text(previews(scan, call, request, lambda _: None)[1], None) for target, request in requests.items()
        }
        return analyse(scan), None, None, shown
    prepared = prepare(scan, call)
    plans = {target: plan(prepared, request) for target, request in requests.items()}
    return prepared.facts, prepared.dag, plans[TARGETS[0]], {target: explain_text(each) for target, each in plans.items()}


def _file(picture: Picture) -> str:
    return picture.title.partition(",")[0].replace(" ", "-")
