"""Objects of libraries that learn on graphs go in as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stmlang.graph import Converted, as_dag, batch, convert, from_edge_index, from_pyg
from stmlang.source.diagnostic import SpecError
from tests.api.refusals import Refusal, refused
from tests.graph.look_alikes import (
    AttributeDict,
    Data,
    DataBatch,
    DGLGraph,
    GraphsTuple,
    HeteroData,
    Heterograph,
    NoneDict,
    Tensor,
)

ONE_WAY = np.asarray([[0, 2, 0], [1, 1, 2]])
BOTH = np.asarray([[0, 1, 1, 2], [1, 0, 2, 1]])


def ends(made: Converted) -> list[list[int]]:
    return np.stack([made.dag.tail, made.dag.head], axis=1).tolist()


TAKEN: dict[str, Any] = {
    "data": Data(x=Tensor(np.ones((3, 2))), edge_index=Tensor(ONE_WAY), edge_attr=None),
    "data without features": Data(edge_index=Tensor(ONE_WAY), num_nodes=3),
    "positions alone": Data(edge_index=Tensor(ONE_WAY), pos=Tensor(np.zeros((3, 3)))),
    "with a gradient": Data(x=Tensor(np.ones((3, 2)), gradient=True), edge_index=Tensor(ONE_WAY)),
    "on another device": Data(x=Tensor(np.ones((3, 2)), device="cuda:0"), edge_index=Tensor(ONE_WAY, device="cuda:0")),
    "numpy's arrays": Data(x=np.ones((3, 2)), edge_index=ONE_WAY),
    "features of edges": Data(edge_index=Tensor(ONE_WAY), edge_attr=Tensor(np.ones(3)), num_nodes=3),
    "DGL": DGLGraph(ONE_WAY[0], ONE_WAY[1], 3),
    "jraph": GraphsTuple(None, None, ONE_WAY[1], ONE_WAY[0], None, np.asarray([3]), np.asarray([3])),
}


@pytest.mark.parametrize("name", TAKEN)
def test_directed_edges(name: str) -> None:
    made = convert(TAKEN[name])
    assert made.dag.node_count == 3
    assert ends(made) == ONE_WAY.T.tolist()
    assert made.edge.tolist() == [0, 1, 2]
    assert batch([as_dag(TAKEN[name])]).count == 1


@pytest.mark.parametrize(
    "graph",
    [
        Data(edge_index=Tensor(BOTH), num_nodes=4),
        DGLGraph(BOTH[0], BOTH[1], 4),
        GraphsTuple(None, None, BOTH[1], BOTH[0], None, np.asarray([4]), np.asarray([4])),
        AttributeDict(edge_index=Tensor(BOTH), num_nodes=4),
        NoneDict(edge_index=Tensor(BOTH), num_nodes=4),
    ],
    ids=lambda graph: type(graph).__name__,
)
def test_undirected_edges(graph: Any) -> None:
    """Each listed in both senses, as those libraries do; a dictionary has to say so."""
    more: dict[str, Any] = {"listing": "twice"} if isinstance(graph, dict) else {}
    made = convert(graph, order="degree", **more)
    assert made.dag.node_count == 4
    assert ends(made) == [[1, 0], [1, 2]]
    assert made.edge.tolist() == [1, 2]
    assert ends(convert(graph, listing="twice")) == [[0, 1], [1, 2]]


def test_data_is_as_its_dictionary() -> None:
    data = Data(x=Tensor(np.ones((4, 2))), edge_index=Tensor(BOTH))
    wanted = from_edge_index(BOTH, nodes=4, listing="twice")
    for given in (data, data.to_dict()):
        made = from_pyg(given, listing="twice")
        assert (ends(made), made.edge.tolist()) == (ends(wanted), wanted.edge.tolist())


def test_no_edges() -> None:
    assert convert(Data(x=Tensor(np.ones((2, 1))), edge_index=Tensor(np.zeros((2, 0), np.int64)))).dag.edge_count == 0


SEVERAL = DataBatch(edge_index=Tensor(ONE_WAY), batch=Tensor([0, 0, 0, 1]), ptr=Tensor([0, 3, 4]))
BAD: dict[str, tuple[Any, Refusal]] = {
    "half of it in both senses": (
        Data(edge_index=Tensor([[0, 1, 2], [1, 0, 1]]), num_nodes=3),
        Refusal("STM3505", "a cycle: 0 -> 1 -> 0", "`condense=True`"),
    ),
    "guessed nodes": (Data(edge_index=Tensor(BOTH)), Refusal("STM3503", "Data does not say how many", "`data.num_nodes = n`")),
    "no edges": (Data(x=Tensor(np.ones((3, 2)))), Refusal("STM3501", "Data without `edge_index`", '"edge_index": ...')),
    "nothing": (Data(), Refusal("STM3501", "Data without `edge_index`", '"edge_index": ...')),
    "floats": (Data(edge_index=Tensor(BOTH * 1.0), num_nodes=3), Refusal("STM3502", "holds float64", "astype(int)")),
    "few features": (
        Data(x=Tensor(np.ones((2, 2))), edge_index=Tensor(BOTH), num_nodes=3),
        Refusal("STM3502", "`x` has 2 rows, and there are 3 nodes", "one row for each"),
    ),
    "few features of edges": (
        Data(edge_index=Tensor(BOTH), edge_attr=Tensor(np.ones((2, 1))), num_nodes=3),
        Refusal("STM3502", "`edge_attr` has 2 rows, and there are 4 columns", "one row for each"),
    ),
    "several graphs": (SEVERAL, Refusal("STM3501", "DataBatch holds several graphs", "data.to_data_list()")),
    "several kinds": (HeteroData(), Refusal("STM3501", "HeteroData has nodes and edges of several kinds", "to_homogeneous()")),
    "several kinds of DGL": (Heterograph([0], [1], 2), Refusal("STM3501", "several kinds", "dgl.to_homogeneous(graph)")),
    "a batch of DGL": (DGLGraph([0], [1], 2, 2), Refusal("STM3501", "several graphs", "dgl.unbatch(graph)")),
    "a batch of jraph": (
        GraphsTuple(None, None, ONE_WAY[1], ONE_WAY[0], None, np.asarray([3, 1]), np.asarray([3, 0])),
        Refusal("STM3501", "holds 2 graphs", "jraph.unbatch(graph)"),
    ),
    "a dictionary with attributes": (AttributeDict(a=3), Refusal("STM3501", "a dictionary without `edge_index`", "num_nodes")),
    "one that has all of them": (NoneDict(), Refusal("STM3501", "a dictionary without `edge_index`", "num_nodes")),
    "one that does not say": (
        AttributeDict(edge_index=BOTH, num_nodes=3),
        Refusal("STM3504", "nothing in this dictionary", 'listing="twice"'),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals(name: str) -> None:
    graph, wanted = BAD[name]
    refused(lambda: convert(graph), wanted)


def test_advice_leads_further() -> None:
    assert batch([as_dag(graph) for graph in SEVERAL.to_data_list()]).count == 2
    assert as_dag(HeteroData().to_homogeneous()).edge_count == 1
    with pytest.raises(SpecError, match="says itself which nodes"):
        convert(TAKEN["data"], nodes=3)
