"""Everything that is claimed of random scans holds of their gates' values."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stmlang.facts.classes import port_classes
from stmlang.facts.dependence import Dependence
from stmlang.facts.intervals import Intervals
from stmlang.facts.lengths import Lengths
from stmlang.facts.operators import Operators
from stmlang.facts.simplex import Simplex
from stmlang.facts.zeros import Zeros
from stmlang.graph.build import dag_of
from tests.facts.build import sample
from tests.facts.claims import SPECIAL, TAME, check_bounds, check_dependence, check_intervals, check_zeros
from tests.facts.random_scans import TOPOLOGIES, random_scan

ORDINARY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.mark.parametrize("name", TOPOLOGIES)
@ORDINARY
@given(seed=st.integers(0, 2**32), with_dag=st.booleans())
def test_facts_hold(name: str, seed: int, with_dag: bool) -> None:
    random = Random(seed)
    scan = random_scan(random, name)
    dag = dag_of(scan.topology)
    classes = port_classes(scan, dag if with_dag else None)
    intervals = Intervals(scan, classes)
    zeros = Zeros(scan, classes, intervals)
    dependence = Dependence(scan, classes, zeros)
    lengths = Lengths(scan, classes, intervals)
    simplex = Simplex(scan, classes, intervals, Operators(scan, classes, intervals, lengths))
    rng = np.random.default_rng(seed)
    for values in (SPECIAL, TAME, None):
        for evaluator in sample(scan, dag, rng, values):
            check_intervals(intervals, evaluator)
            check_zeros(zeros, evaluator)
            check_dependence(dependence, evaluator)
            check_bounds(simplex, evaluator)
