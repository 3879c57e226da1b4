"""The operator of the pLSTM authors: outputs, final states, gating matrices and gradients."""

from __future__ import annotations

import numpy as np
import pytest

from stmlang.graph.build import dag_of
from stmlang.verify.oracles import gating_matrix
from stmlang.verify.reference import reference
from tests.golden.cases import ALL, GRAPHS, Case, load
from tests.helpers.data import data_folder

TOLERANCE = 1e-10


def case_of(name: str) -> Case:
    return load(data_folder("golden/plstm"), name)


def close(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    scale = max(float(np.abs(expected).max(initial=0.0)), 1e-300)
    assert float(np.abs(found - expected).max(initial=0.0)) <= TOLERANCE * scale


@pytest.mark.parametrize("name", ALL)
def test_reference(name: str) -> None:
    case = case_of(name)
    graph = dag_of(case.topology)
    found = reference(case.scan, graph, case.q, case.k, case.v, case.gates, case.initial)
    close(found.h, case.h)
    if case.final is not None:
        for port, expected in case.final[0].items():
            close(found.state[0][port], expected)
    if case.gating is not None and graph.edge_count < 100:
        close(gating_matrix(case.scan, graph, case.q, case.k, case.v, case.gates), case.gating)


@pytest.mark.parametrize("name", [name for name in GRAPHS if name.startswith("graph_")])
def test_reference_gradients(name: str) -> None:
    """Central differences of the reference along one random change of everything at once."""
    case = case_of(name)
    graph, rng = dag_of(case.topology), np.random.default_rng(0)
    arguments = {"q": case.q, "k": case.k, "v": case.v, **case.gates}
    change = {name: rng.normal(size=array.shape) for name, array in arguments.items()}
    if name == "graph_D_n8":
        change["transition"] = np.where(case.gates["transition"] == 0, 0, change["transition"])

    def loss(step: float) -> float:
        q, k, v, *gates = (array + step * change[name] for name, array in arguments.items())
        return float(np.sum(case.cotangent * reference(case.scan, graph, q, k, v, dict(zip(case.gates, gates, strict=True))).h))

    slope = (8 * (loss(1e-3) - loss(-1e-3)) - (loss(2e-3) - loss(-2e-3))) / 12e-3
    expected = sum(float(np.sum(case.gradients[name] * change[name])) for name in arguments)
    assert abs(slope - expected) < 1e-8 * max(1, abs(expected))
