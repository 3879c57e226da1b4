from __future__ import annotations

from collections.abc import Iterable

import pytest

from stmlang.source.diagnostic import SpecError
from stmlang.source.span import SourceFile
from stmlang.syntax import formatter
from stmlang.syntax.formatter import format_source
from stmlang.syntax.parser import parse
from stmlang.syntax.walk import tree_equal
from stmlang.syntax.wrapping import WIDTH
from tests.syntax import samples


def formatted(text: str) -> str:
    """The canonical form, having checked what must hold of any."""
    source = SourceFile("spec.stm", text)
    result = format_source(source)
    again = SourceFile("spec.stm", result)
    assert format_source(again) == result
    before, after = parse(source), parse(again)
    assert tree_equal(before, after)
    assert [comment.text for comment in before.comments] == [comment.text for comment in after.comments]
    return result


def in_scan(*lines: str) -> str:
    return "scan s on chain(t) {\n" + "".join(f"    {line}\n" if line else "\n" for line in lines) + "}\n"


@pytest.mark.parametrize("text", samples.ALL)
def test_samples(text: str) -> None:
    formatted(text)


def test_a_canonical_text_stays_as_it_is() -> None:
    assert formatted(samples.IMAGE) == samples.IMAGE


def test_spacing() -> None:
    text = "use a . b(c,d)\nscan s(heads=2)on dag{a->b;c}{a[out,in=x]=-  -f( x,y=-2)[ out ]^-2*( b-c )/.5;directions+a-b,  -a}"
    assert formatted(text) == (
        "use a.b (c, d)\n\n"
        "scan s(heads = 2) on dag { a -> b; c } {\n"
        "    a[out, in = x] = --f(x, y = -2)[out] ^ -2 * (b - c) / .5\n"
        "    directions +a -b, -a\n"
        "}\n"
    )


def test_equal_signs_of_neighbours_stand_under_each_other_but_for_pinned_lines() -> None:
    text = in_scan("a = 1", "long_name[out] = 2", "long_name[out = rows] = 3", "bb = 4", "", "c = 5", "# why", "dd = 6")
    assert formatted(text) == in_scan(
        "a              = 1",
        "long_name[out] = 2",
        "long_name[out = rows] = 3",
        "bb             = 4",
        "",
        "c = 5",
        "# why",
        "dd = 6",
    )


def test_blank_lines() -> None:
    text = (
        "\n\ntopology a = grid(x)\ntopology bb = grid(y)\n\n\n# about s\nscan s on a {\n\n\nq = 1\n\n\n\nk = 2\n\n}\n# end\n\n"
    )
    assert formatted(text) == (
        "topology a  = grid(x)\ntopology bb = grid(y)\n\n# about s\nscan s on a {\n    q = 1\n\n    k = 2\n}\n\n# end\n"
    )


def test_comments_stay_in_their_places() -> None:
    text = (
        "# top\nscan s on t { # opens\n# first\na = 1 # one\nbbb = 22 # two\n\n"
        "c = f(x, # x\n# between\ny) # f\n# last\n} # closes\n# end"
    )
    assert formatted(text) == (
        "# top\n"
        "scan s on t {  # opens\n"
        "    # first\n"
        "    a   = 1   # one\n"
        "    bbb = 22  # two\n"
        "\n"
        "    c = f(x,  # x\n"
        "        # between\n"
        "        y)  # f\n"
        "    # last\n"
        "}  # closes\n"
        "\n"
        "# end\n"
    )


def test_a_graph_keeps_to_one_line_only_where_it_was_written_so_and_fits() -> None:
    short = "topology t = dag { a -> b; b -> c }\n"
    assert formatted(short) == short
    assert formatted("topology t = dag { a -> b\nb -> c }") == "topology t = dag {\n    a -> b\n    b -> c\n}\n"
    wide = formatted("topology t = dag { " + "; ".join(f"node{k} -> node{k + 1}" for k in range(9)) + " } * chain(x)")
    assert wide.splitlines()[1] == "    node0 -> node1"
    assert wide.splitlines()[-1] == "} * chain(x)"


@pytest.mark.parametrize(
    "value",
    [
        " + ".join(f"term{k} * other" for k in range(20)),
        " * ".join(f"factor{k}" for k in range(30)),
        "f(" + ", ".join(f"argument{k}" for k in range(20)) + ")",
        "f(" + " + ".join(f"term{k}" for k in range(30)) + ", over = out)[key] ^ 2",
        "sigmoid(linear(x, bias = spread(-2, 2)) * some_long_name + other_long_name * linear(x, e[out], bias = 4)) * foo",
        "f(g(h(" + ", ".join(f"argument{k}" for k in range(20)) + "), 2))",
    ],
)
def test_wide_lines_are_broken(value: str) -> None:
    result = formatted(in_scan(f"a = {value}", "b = 2"))
    assert max(map(len, result.splitlines())) <= WIDTH
    assert len(result.splitlines()) > 4


def test_wide_heads_settings_and_arrows_are_broken() -> None:
    names = [f"some_name_{k}" for k in range(12)]
    text = f"scan s({' = 1, '.join(names)} = 1) on dag {{\n{', '.join(names)} -> z }} {{\ndirections {', '.join(names)}\n}}"
    assert max(map(len, formatted(text).splitlines())) <= WIDTH


def test_a_setting_ends_with_a_word() -> None:
    """A sign at its end would go on with the next line once a `;` is one: `directions +; directions -a`."""
    for end in ("+", "-", ",", "+a,"):
        with pytest.raises(SpecError) as caught:
            format_source(SourceFile("spec.stm", f"scan s on t {{ directions {end}; directions -a }}"))
        assert [found.code for found in caught.value.diagnostics] == ["STM0201"]


def test_many_equal_signs_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def counting(values: Iterable[int], **options: int) -> int:
        found = list(values)
        seen.append(len(found))
        return max(found, **options)

    monkeypatch.setattr(formatter, "max", counting, raising=False)
    formatter.format_source(SourceFile("spec.stm", in_scan(*["a = 1  # one"] * 500)))
    assert 500 <= sum(seen) < 2_500


def test_deep_nesting_does_not_overflow() -> None:
    formatted(in_scan("a = " + "f(a + b * " * 98 + "1" + ")" * 98))


def test_a_bad_text_is_refused() -> None:
    with pytest.raises(SpecError):
        format_source(SourceFile("spec.stm", "scan"))
