"""Choosing how to evaluate a scan: candidates, their costs on a target, a memory limit, one choice. Without jax."""

from __future__ import annotations

from stmlang.plan.choose import make_plan
from stmlang.plan.plan import Plan
from stmlang.plan.show import explain_json, explain_text
from stmlang.plan.store import plan_from_json, plan_json

__all__ = ["Plan", "explain_json", "explain_text", "make_plan", "plan_from_json", "plan_json"]
