"""The files that docs/graph-files.md shows are read as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stmlang.graph.readers import read_graph
from stmlang.graph.readers.read import FORMATS, SUFFIXES
from stmlang.source.diagnostic import SpecError

TEXT = (Path(__file__).parents[2] / "docs" / "graph-files.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```\n([^\n]*)", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("format", "content", "said"), [block for block in BLOCKS if block[0] in FORMATS])
def test_files_of_the_document(tmp_path: Path, format: str, content: str, said: str) -> None:
    path = tmp_path / "graph"
    path.write_text(content, encoding="utf-8")
    if (counts := re.fullmatch(r"(\d+) nodes?, (\d+) edges?\.", said)) is not None:
        dag = read_graph(str(path), format)
        assert (dag.node_count, dag.edge_count) == (int(counts[1]), int(counts[2]))
        return
    refusal = re.fullmatch(r"Refused with `(STM\d{4})` at (\d+):(\d+)\.", said)
    assert refusal is not None, said
    with pytest.raises(SpecError) as error:
        read_graph(str(path), format)
    (found,) = error.value.diagnostics
    assert found.span is not None
    assert (found.code, found.span.file.position(found.span.start)) == (refusal[1], (int(refusal[2]), int(refusal[3])))


def test_every_suffix_is_named_with_its_format() -> None:
    for format, suffixes in re.findall(r"^## .*\(`(\w+)(?:`, `\w+)*`: (.*)\)$", TEXT, re.MULTILINE):
        listed = set(re.findall(r"`(\.\w+)`", suffixes))
        assert listed == {suffix for suffix, known in SUFFIXES.items() if known == format}
