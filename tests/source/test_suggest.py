from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stmlang.source.suggest import did_you_mean, edit_distance, nearest
from stmlang.source.wording import MAX_QUOTED, listing, quoted


@pytest.mark.parametrize(
    ("name", "candidates", "expected"),
    [
        ("sigmod", ["sigmoid", "softplus"], "sigmoid"),
        ("Source", ["source_", "source"], "source"),
        ("soruce", ["source"], "source"),
        ("transitoin", ["transition"], "transition"),
        ("x", ["q", "k"], None),
        ("ot", ["out", "in"], "out"),
        ("decay", ["delta"], None),
        ("same", ["same"], None),
        ("abc", [], None),
        ("rows", ["cols", "row"], "row"),
    ],
)
def test_nearest(name: str, candidates: list[str], expected: str | None) -> None:
    assert nearest(name, candidates) == expected


OPPOSITES = """
    undirected directed    undirectd directed    directed undirected    forwrd backward    unnormalized normalized
    indirect direct        nonlinear linear      unpacked packed        non_causal causal  unstable stable
    gpu cpu                cpu gpu               tpu cpu                row_gate col_gate  min_rate max_rate
    softmin softmax        argmin argmax         tan tanh               sin min            gelu relu
    log2 log               float16 float32       float16 bfloat16       int uint           layer1 layer2
    dag_p dag_d            image_p image_d       import export          include exclude    descending ascending
    xml gml                acyclic cyclic        asymmetric symmetric   enter_row enter_col  increase decrease
"""


def in_pairs(text: str) -> list[tuple[str, str]]:
    words = text.split()
    return list(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize(("name", "opposite"), in_pairs(OPPOSITES))
def test_an_opposite_is_no_suggestion(name: str, opposite: str) -> None:
    assert nearest(name, [opposite]) is None


MISSPELT = """
    undirectd undirected   directd directed      backwrd backward       backwards backward  ouput output      unput input
    indirct indirect       row rows              colums columns         mim min             tahn tanh         degre degree
    graphxml graphml       linaer linear         axis axis0             dense_node dense_nodes  float3_2 float3_2_
    min_rat min_rate       image_pp image_p      unpaked unpacked       cpuu cpu            key key'          inverse inverse_
"""


@pytest.mark.parametrize(("name", "meant"), in_pairs(MISSPELT))
def test_forms_and_misspellings_are_suggested(name: str, meant: str) -> None:
    assert nearest(name, [meant]) == meant
    assert did_you_mean(name, [meant], "say {}") == f"did you mean `say {meant}`?"


def test_between_opposites_nothing_is_guessed() -> None:
    assert nearest("mix", ["min", "max"]) is None
    assert nearest("image_q", ["image_d", "image_p"]) is None
    assert nearest("mim", ["max", "min"]) == "min"
    assert nearest("sourc", ["source", "sourcd"]) == "source"


def test_words_from_elsewhere() -> None:
    instead = {"undirected": "say which"}
    assert did_you_mean("Undirected", ["directed"], instead=instead) == "say which"
    assert did_you_mean("undirekted", ["directed"], instead=instead) == "say which"
    assert did_you_mean("directet", ["directed"], instead=instead) == "did you mean `directed`?"
    assert did_you_mean(3, ["directed"], instead=instead) is None
    assert did_you_mean("parallel", ["directed"], instead=instead) is None


@given(st.text("abc", max_size=6), st.text("abc", max_size=6), st.integers(0, 6))
def test_edit_distance_is_symmetric_and_capped(left: str, right: str, limit: int) -> None:
    distance = edit_distance(left, right, limit)
    assert distance == edit_distance(right, left, limit) <= limit + 1
    assert (distance == 0) == (left == right)


def test_words() -> None:
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "c"], "and") == "a, b and c"
    assert listing([]) == ""
    assert quoted("a") == "`a`"
    assert len(quoted("a" * 1000)) == MAX_QUOTED + 2
