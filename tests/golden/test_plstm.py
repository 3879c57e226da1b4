"""The operator of the pLSTM authors: outputs, final states, gating matrices and gradients."""

from __future__ import annotations

import numpy as np
import pytest

from stmlang.graph.topology import dag_of
from stmlang.oracle.dense import gating_matrix
from stmlang.oracle.derivative import Arguments, derivative
from stmlang.oracle.recurrence import reference
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
    close(case.summed(found.h), case.h)
    if case.final is not None:
        for port, expected in case.final[0].items():
            close(found.state[0][port], expected)
    if case.gating is not None and graph.edge_count < 100:
        close(gating_matrix(case.scan, graph, case.q, case.k, case.v, case.gates), case.gating)


@pytest.mark.parametrize("name", [name for name in GRAPHS if name.startswith("graph_")])
def test_derivative_of_the_reference(name: str) -> None:
    """The gradients in the file, each along a random change of that argument alone."""
    case = case_of(name)
    graph, rng = dag_of(case.topology), np.random.default_rng(0)
    at = Arguments(case.q, case.k, case.v, case.gates)
    nothing = np.zeros_like
    for argument in ("q", "k", "v", *case.gates):
        change = rng.normal(size=case.gradients[argument].shape)
        if argument == "transition":
            change = np.where(case.gates["transition"] == 0, 0, change)
        inputs = {key: change if key == argument else nothing(getattr(case, key)) for key in "qkv"}
        along = Arguments(**inputs, gates={argument: change} if argument in case.gates else {})
        slope = np.sum(case.cotangent * derivative(case.scan, graph, at, along).h)
        close(slope, np.sum(case.gradients[argument] * change))
