"""The bytes that devices are sent, counted in the text of programs."""

from __future__ import annotations

import pytest

from benchmarks.exchange import STUDIES, rows, sent

TEXT = """HloModule example

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%turn (state: (s32[], f32[2,3])) -> (s32[], f32[2,3]) {
  %state = (s32[], f32[2,3]) parameter(0)
  %here = f32[2,3]{1,0} get-tuple-element(%state), index=1
  %handed = f32[2,3]{1,0} collective-permute(%here), channel_id=1, source_target_pairs={{0,1},{1,2}}
  ROOT %next = (s32[], f32[2,3]) tuple(%count, %handed)
}

%more (state: (s32[], f32[2,3])) -> pred[] {
  ROOT %less = pred[] compare(%count, %end), direction=LT
}

ENTRY %main (x: f32[2,3]) -> f32[6,3] {
  %x = f32[2,3]{1,0} parameter(0)
  %looped = (s32[], f32[2,3]{1,0}) while(%start), condition=%more, body=%turn, backend_config={"known_trip_count":{"n":"5"}}
  %pairs = (f32[6,3]{1,0}, bf16[6]{0}) all-gather(%x, %y), channel_id=2, replica_groups={{0,1,2}}, dimensions={0}
  %total = f64[4]{0} all-reduce(%z), channel_id=3, replica_groups={{0,1,2}}, to_apply=%add
  ROOT %out = f32[6,3]{1,0} get-tuple-element(%pairs), index=0
}
"""


def test_bytes_of_a_program_counted_by_hand() -> None:
    """Five turns of a state of 24 bytes to two devices, twice all but a third of what is gathered, two passes of a sum."""
    assert sent(TEXT, 3) == 5 * 24 * 2 + (6 * 3 * 4 + 6 * 2) * 2 + 2 * 2 * 4 * 8


def test_a_loop_of_unknown_length_is_no_number() -> None:
    with pytest.raises(ValueError, match="how often it turns"):
        sent(TEXT.replace(', backend_config={"known_trip_count":{"n":"5"}}', ""), 3)


def test_what_is_predicted_is_what_is_sent() -> None:
    """By every way, of a small chain and of an image on a mesh of two axes; and nothing of graphs."""
    chain, *_, image, _, graphs = STUDIES
    for row in rows(chain, (3,)):
        assert row.forward == row.predicted >= row.fewest > 0
        assert row.both >= row.fewest_both
    (row,) = (row for row in rows(image, (4,)) if row.way == "wavefront")
    assert row.devices == (2, 2)
    assert row.forward == row.predicted == row.fewest > 0
    assert row.both == row.fewest_both
    (row,) = rows(graphs, (2,))
    assert (row.forward, row.both) == (0, 0)
