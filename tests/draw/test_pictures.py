"""Pictures: what stands in them, that they can be drawn at every size, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import stmlang
from stmlang.check import load
from stmlang.cli.main import main
from stmlang.compiler import Call, Request, plan, prepare
from stmlang.draw import receptive
from stmlang.draw.all import pictures_of
from stmlang.draw.picture import Picture, Pictures, rendered, svg
from stmlang.draw.places import along, grid_places, layered_places
from stmlang.draw.plan import plan_picture
from stmlang.draw.reach import reached
from stmlang.draw.receptive import middle, receptive_picture, strengths, too_many
from stmlang.draw.topology import topology_picture
from stmlang.facts import analyse
from stmlang.graph import as_dag, batch
from stmlang.graph.dag import DAG
from stmlang.graph.levels import node_levels
from stmlang.graph.topology import dag_of
from stmlang.scan.scan import Direction
from stmlang.source.diagnostic import SpecError

SPECS = {
    "chain": ("std:plstm/chain", {"time": 7}),
    "one": ("std:plstm/image_d", {"rows": 1, "cols": 1}),
    "image": ("std:plstm/image_p", {"rows": 5, "cols": 30}),
    "volume": ("std:plstm/volume_d", {"depth": 2, "rows": 3, "cols": 4}),
    "tree": ("std:plstm/tree", {"arity": 2, "depth": 3}),
    "steps": ("std:chain/deltaproduct", {"time": 5}),
    "empty": ("std:plstm/chain", {"time": 0}),
}


def drawn(name: str, what: str = "all") -> Pictures:
    spec, sizes = SPECS[name]
    prepared = prepare(load(spec, {"heads": 2, "key": 2, "value": 3, **sizes}), Call())
    return pictures_of(what, prepared.facts, prepared.dag, plan(prepared, Request("cpu")))


def words(picture: Picture) -> str:
    root = ElementTree.fromstring(svg(picture.draw, picture.width, picture.height))
    return " ".join(element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text"))


@pytest.mark.parametrize("name", SPECS)
def test_every_topology_has_pictures(name: str) -> None:
    pictures = drawn(name)
    titles = [picture.title for picture in pictures.pictures]
    expected = ["topology", "gates", "receptive field", "plan", "memory"]
    assert titles == [title for title in expected if name != "empty" or title != "receptive field"]
    page = rendered(pictures, ".html").decode()
    assert page.count("<svg") == len(titles)
    assert all(picture.caption for picture in pictures.pictures)
    assert rendered(pictures, ".png").startswith(b"\x89PNG")


def test_the_same_spec_gives_the_same_bytes() -> None:
    assert rendered(drawn("image"), ".svg") == rendered(drawn("image"), ".svg")


def test_the_last_bits_of_a_layout_do_not_change_the_bytes() -> None:
    def drawing(left: float) -> str:
        def draw(figure: Figure) -> None:
            figure.set_layout_engine("none")
            figure.add_axes((left, 0.25, 0.5, 0.5)).plot([0, 1], [0, 1])

        return svg(draw, 3, 2)

    assert drawing(0.3) == drawing(0.3 + 1e-15)
    assert drawing(0.3) != drawing(0.31)


def test_what_stands_in_them() -> None:
    by_title = {picture.title: words(picture) for picture in drawn("image").pictures}
    assert "rows + cols -" in " ".join(by_title["topology"].split())
    assert "transition[out, in]" in by_title["gates"]
    assert "[-1, 1]" in by_title["gates"].replace("\N{MINUS SIGN}", "-")
    spec, sizes = SPECS["image"]
    prepared = prepare(load(spec, {"heads": 2, "key": 2, "value": 3, **sizes}), Call())
    chosen = plan(prepared, Request("cpu"))
    assert chosen.chosen.candidate.label in by_title["plan"]
    assert "limit" in by_title["memory"]


@pytest.mark.parametrize("name", ["image", "volume", "tree", "chain"])
def test_the_field_is_a_row_of_the_gating_matrix(name: str) -> None:
    """Summed over directions, of one head and without the direct term, it is what the compiled scan says."""
    spec, sizes = SPECS[name]
    op = stmlang.compile(spec, target="cpu", heads=1, key=2, value=3, **sizes)
    _, _, _, gates = op.example(3)
    leaves = {leaf: np.asarray(array, np.float64) for leaf, array in gates.items()}
    source = middle(op.dag)
    fields = strengths(op.scan, op.dag, source, leaves)
    matrix = np.abs(np.asarray(op.gating_matrix(gates)).reshape(op.dag.node_count, op.dag.node_count)[source])
    others = np.arange(op.dag.node_count) != source
    reached = np.sum([field > 0 for field in fields], axis=0) == 1  # by one direction alone: nothing is added up
    assert reached[others].any()
    np.testing.assert_allclose(np.sum(fields, axis=0)[others & reached], matrix[others & reached], rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["one", "image", "volume", "tree", "chain", "steps"])
def test_the_field_is_that_of_the_whole_recurrence(name: str) -> None:
    """Of the first node, the last and one in the middle, it is what the recurrence over all nodes says, to the bit."""
    spec, sizes = SPECS[name]
    scan = load(spec, {"heads": 2, "key": 2, "value": 3, **sizes})
    dag = dag_of(scan.topology)
    for source in sorted({0, middle(dag), dag.node_count - 1}):
        for direction, field in zip(scan.directions, strengths(scan, dag, source), strict=True):
            nodes = reached(dag, direction, source, dag.node_count)
            assert source in nodes
            assert set(np.flatnonzero(field)) <= set(nodes)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(receptive, "reached", lambda dag, *_: np.arange(dag.node_count))
            whole = strengths(scan, dag, source)
        assert all(np.array_equal(one, other) for one, other in zip(strengths(scan, dag, source), whole, strict=True))


def test_what_a_node_reaches() -> None:
    dag = as_dag([(0, 1), (1, 2), (0, 3), (3, 2), (4, 3)])
    along, against = Direction((1,)), Direction((-1,))
    assert list(reached(dag, along, 0, 5)) == [0, 1, 2, 3]
    assert list(reached(dag, against, 3, 5)) == [0, 3, 4]
    assert list(reached(dag, along, 2, 5)) == [2]
    assert len(reached(dag, along, 0, 2)) > 2


def test_fields_in_a_large_graph() -> None:
    """Of a graph as large as a river only what a node reaches is gone through; where that is too much it is refused."""
    scan = load("std:plstm/tree", {"arity": 2, "depth": 2, "heads": 1, "key": 2, "value": 2})
    leaf, count = 349_846, 349_847
    node = np.arange(count)
    dag = DAG((count,), node[1:], (node[1:] - 1) // 2, np.zeros(count - 1, np.int64), ("edge",))
    up, down = strengths(scan, dag, leaf)
    assert list(np.flatnonzero(up)) == [(leaf + 1 >> level) - 1 for level in range(18, 0, -1)]
    assert not down.any()
    assert f"number {leaf}" in receptive_picture(scan, dag, leaf).caption
    assert "more than 20,000 nodes" in str(too_many(scan, dag, 0))
    with pytest.raises(SpecError, match="behind which fewer lie"):
        receptive_picture(scan, dag, 0)
    facts = analyse(scan)
    assert "receptive field" in {picture.title for picture in pictures_of("all", facts, dag, None).pictures}
    wide = DAG((1_000_001,), np.array([0]), np.array([1]), np.array([0]), ("edge",))
    assert "receptive field" not in {picture.title for picture in pictures_of("all", facts, wide, None).pictures}


def test_a_bar_is_as_long_as_its_candidate_takes() -> None:
    """Or as the cut, where it takes longer, though stages that cost nothing stand between."""
    spec, sizes = SPECS["one"]
    chosen = plan(prepare(load(spec, sizes), Call()), Request("cpu"))
    figure = Figure()
    plan_picture(chosen).draw(figure)
    ends = dict[int, float]()
    for bar in figure.axes[0].patches:
        assert isinstance(bar, Rectangle)
        row = round(bar.get_y() + bar.get_height() / 2)
        ends[row] = max(ends.get(row, 0.0), bar.get_x() + bar.get_width())
    limit = 4 * chosen.chosen.seconds
    free = [time.total == 0 for entry in chosen.ranked for time in entry.estimate.times]
    assert any(free)
    for row, entry in enumerate(chosen.ranked[: len(ends)]):
        assert ends[row] == pytest.approx(1e3 * min(limit, entry.estimate.seconds)), entry.estimate.candidate.label


def test_long_axes_are_shortened_and_nodes_do_not_collide() -> None:
    index, at = along(4096)
    assert (index[0], index[-1], len(index)) == (0, 4095, 15)
    assert np.diff(at).max() == 2
    for axes in ((1,), (7,), (40, 3), (9, 5, 5)):
        places = grid_places(axes)
        assert len(np.unique(places.at, axis=0)) == len(places.node) == len(np.unique(places.node))
        assert places.shortened == (len(places.node) < np.prod(axes))


def test_levels_stand_from_left_to_right() -> None:
    dag = dag_of(load("std:plstm/tree", {"arity": 3, "depth": 3}).topology)
    places = layered_places(dag)
    closed = (dag.tail >= 0) & (dag.head >= 0)
    assert (places.at[dag.tail[closed], 0] < places.at[dag.head[closed], 0]).all()
    assert len(np.unique(places.at, axis=0)) == dag.node_count


def test_a_large_graph_is_drawn_by_its_levels() -> None:
    count = 349_847
    scan = load("std:plstm/tree", {"arity": 2, "depth": 2})
    node = np.arange(count)
    dag = DAG((count,), node[1:], (node[1:] - 1) // 2, np.zeros(count - 1, np.int64), ("edge",))
    picture = topology_picture(scan, dag)
    assert f"on {node_levels(dag).max() + 1} levels" in picture.caption
    assert "349,847 nodes" in picture.caption
    assert "level" in words(picture)


def test_graphs_that_come_at_run_time() -> None:
    facts = analyse(load("std:plstm/graph_p"))
    assert [picture.title for picture in pictures_of("all", facts, None, None).pictures] == ["topology", "gates"]
    with pytest.raises(SpecError, match="come at run time: it has no plan"):
        pictures_of("plan", facts, None, None)


def test_on_a_batch_of_graphs() -> None:
    op = stmlang.compile("std:plstm/graph_p", target="cpu", heads=1, key=2, value=2)
    on = op.at(batch([as_dag([(0, 1), (1, 2), (0, 2)])]))
    assert "receptive field" in {picture.title for picture in on.draw().pictures}


def test_a_scan_draws_itself(tmp_path: Path) -> None:
    op = stmlang.compile("std:plstm/image_d", target="cpu", rows=3, cols=3, heads=1, key=2, value=2)
    html = op._repr_html_()
    assert html is not None
    assert html.count("<svg") == 2
    op.draw("gates").save(tmp_path / "a.svg")
    assert "transition" in (tmp_path / "a.svg").read_text()
    with pytest.raises(SpecError, match="STM5010"):
        op.draw("nothing")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="STM5202"):
        op.draw("receptive", gates={})
    with pytest.raises(SpecError, match="has no node 9"):
        op.draw("receptive", node=9)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = ["std:plstm/image_d", "--set", "rows=3", "--set", "cols=2", "--target", "cpu"]
    assert main(["draw", *spec]) == 0
    assert "plstm_d.html" in capsys.readouterr().out or any(tmp_path.glob("*.html"))
    assert main(["draw", *spec, "--what", "topology", "-o", "a.svg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pictures"][0]["title"] == "topology"
    assert main(["draw", *spec, "-o", "a.pdf"]) == 1
    assert "STM5213" in capsys.readouterr().err
    assert not (tmp_path / "a.pdf").exists()
    assert main(["draw", *spec, "--what", "receptive", "--node", "6", "-o", "b.svg"]) == 1
    assert "numbered from 0 to 5" in capsys.readouterr().err
