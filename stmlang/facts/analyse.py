"""Everything that is known of a scan from its equations alone, and the scan to compile from then on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from stmlang.facts.bounds import Bounds
from stmlang.facts.factored import Factored, factored_gates
from stmlang.facts.rank import RankOne, Ranks
from stmlang.facts.stability import Verdict, judge
from stmlang.graph.dag import DAG
from stmlang.graph.topology import dag_of
from stmlang.log import COMPILE, timed
from stmlang.scan.scan import Scan
from stmlang.scan.show import spoken
from stmlang.scan.topology import CompleteTree, FromFile, Product, Regular, Runtime, Static, Topology
from stmlang.source import short
from stmlang.source.diagnostic import Diagnostic


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts about `scan`, in which the stability mode of `verdict` holds; `spec` is the scan as it was written.

    `bounds` holds the analyses of gates and expressions, by port class: `bounds.intervals`, `.zeros`, `.dependence`,
    `.lengths`, `.operators` and `.simplex`. `factored` are the clauses of the transition in the delta rule's form, None each
    if they have another.
    """

    spec: Scan
    bounds: Bounds
    verdict: Verdict
    rank_one: RankOne | None
    factored: tuple[Factored | None, ...]

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<Facts about {self.scan.name}: {self.verdict.kind}>"

    @property
    def scan(self) -> Scan:
        """The scan to compile."""
        return self.bounds.scan

    @property
    def constant(self) -> bool:
        """Whether source, transition and mark are the same at all nodes: an impulse response tells everything."""
        return self.bounds.dependence.constant

    @cached_property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What the user should be told."""
        note = self.verdict.note()
        return () if note is None else (note,)

    @property
    def changes(self) -> tuple[Diagnostic, ...]:
        """Of those, what was inserted: numbers are others than the equations say."""
        return self.notes if self.verdict.inserted else ()


def analyse(scan: Scan, dag: DAG | None = None) -> Facts:
    """The facts about a checked scan.

    `dag` is the scan's graph, if it has been built: degrees and single paths are read off it. Of a graph that is written out or
    in a file it is built here where it is not given, so that the verdict is the same wherever it is asked for. Raises
    SpecError as `stmlang.graph.topology.dag_of` does.
    """
    with timed(COMPILE, f"facts of {scan.name}") as remarks:
        facts = _analysed(scan, dag)
        remarks.append(f"{len(facts.changes)} changes by stability")
        return facts


def _analysed(scan: Scan, dag: DAG | None) -> Facts:
    if dag is None and _is_written(scan.topology):
        dag = dag_of(scan.topology)
    before = Bounds.of(scan, dag)
    verdict = judge(before, dag)
    verdict = replace(verdict, reason=tuple(spoken(step, verdict.scan) for step in verdict.reason))
    after = before if verdict.scan is scan else Bounds.of(verdict.scan, dag)
    ranks = Ranks(after.scan, after.classes, after.dependence, after.operators)
    clauses = len(after.scan.gate("transition").clauses)
    factored = factored_gates(after.scan).get("transition", (None,) * clauses)
    return Facts(scan, after, verdict, ranks.gates["transition"], factored)


def _is_written(topology: Topology) -> bool:
    """Whether a topology has a graph that is not known from its kind and sizes, and can be built."""
    match topology:
        case Static() | FromFile():
            return True
        case Regular() | CompleteTree() | Runtime():
            return False
        case Product(factors=factors):
            known = all(_sized(factor) for factor in factors)
            return known and any(isinstance(factor, Static | FromFile) for factor in factors)


def _sized(topology: Topology) -> bool:
    match topology:
        case Regular(axes=axes):
            return all(axis.size is not None for axis in axes)
        case CompleteTree(arity=arity, depth=depth):
            return arity is not None and depth is not None
        case Runtime():
            return False
        case Static() | FromFile() | Product():
            return True
