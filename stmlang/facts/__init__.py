"""What is true of a scan, read off its equations: dependence, zeros, bounds, forms, and the stability verdict."""

from stmlang.facts.analyse import Facts, analyse
from stmlang.facts.factored import Factored
from stmlang.facts.rank import RankOne
from stmlang.facts.show import facts_json, show_facts
from stmlang.facts.stability import Verdict

__all__ = ["Factored", "Facts", "RankOne", "Verdict", "analyse", "facts_json", "show_facts"]
