"""Everything that is claimed of random scans holds of their gates' values."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stmlang.facts import analyse
from stmlang.facts.bounds import Bounds
from stmlang.graph.topology import dag_of
from stmlang.scan.scan import Mode
from tests.facts.build import sample
from tests.facts.claims import (
    SPECIAL,
    TAME,
    check_bounds,
    check_dependence,
    check_forms,
    check_intervals,
    check_verdict,
    check_zeros,
)
from tests.facts.random_scans import TOPOLOGIES, random_scan

ORDINARY = settings(max_examples=35, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.mark.parametrize("name", TOPOLOGIES)
@ORDINARY
@given(seed=st.integers(0, 2**32), with_dag=st.booleans())
def test_facts_hold(name: str, seed: int, with_dag: bool) -> None:
    scan = random_scan(Random(seed), name)
    dag = dag_of(scan.topology)
    bounds = Bounds.of(scan, dag if with_dag else None)
    rng = np.random.default_rng(seed)
    for values in (SPECIAL, TAME, None):
        for evaluator in sample(scan, dag, rng, values):
            check_intervals(bounds.intervals, evaluator)
            check_zeros(bounds.zeros, evaluator)
            check_dependence(bounds.dependence, evaluator)
            check_bounds(bounds.simplex, evaluator)


@pytest.mark.parametrize("name", TOPOLOGIES)
@ORDINARY
@given(seed=st.integers(0, 2**32), with_dag=st.booleans())
def test_verdicts_hold(name: str, seed: int, with_dag: bool) -> None:
    scan = random_scan(Random(seed), name)
    dag = dag_of(scan.topology)
    facts = analyse(scan, dag if with_dag else None)
    rng = np.random.default_rng(seed)
    assert scan.stabilize in (Mode.NONE, Mode.AUTO) or facts.verdict.mode == scan.stabilize.value
    for values in (TAME, None, SPECIAL):
        evaluators = sample(facts.scan, dag, rng, values)
        check_verdict(facts.verdict, evaluators)
        for evaluator in evaluators:
            check_forms(facts, evaluator)
    if facts.verdict.inserted:
        again = analyse(replace(facts.scan, stabilize=Mode(facts.verdict.mode)), dag if with_dag else None)
        assert again.verdict.kind == f"proved {facts.verdict.mode}"
