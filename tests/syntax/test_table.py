from __future__ import annotations

from stmlang.syntax import build, table


def test_the_stored_table_is_that_of_the_grammar() -> None:
    """Run `python -m stmlang.syntax.table` after a change of the grammar. Building it also shows that no two rules compete."""
    built = table.build(table.GRAMMAR.read_text(encoding="utf-8"))
    assert table.dump(built) == table.STORED.read_text(encoding="utf-8")
    assert table.load() == built


def test_every_rule_has_a_builder_and_every_builder_a_rule() -> None:
    actions = {rule.action for rule in table.load().rules if rule.action and not (rule.passes and rule.size == 1)}
    assert actions == set(build.BUILDERS)
