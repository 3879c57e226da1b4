"""Summaries of pieces of a graph, each thing that can be done with them against the dense form."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.lower import summary
from stmlang.lower.attention import masked_attention, streamed_attention
from stmlang.lower.summary import Passage, Summary, Wiring


def random_summary(seed: int, entering: int, nodes: int, leaving: int) -> Summary:
    rng = np.random.default_rng(seed)
    shapes = ((nodes, leaving), (entering, leaving), (entering, nodes), (nodes, nodes))
    source, transition, mark, gating = (jnp.asarray(rng.normal(size=shape)) for shape in shapes)
    return Summary(source, transition, mark, jnp.triu(gating, 1))


def random_passage(seed: int, lanes: int = 2, mixed: int = 3, free: int = 2) -> Passage:
    rng = np.random.default_rng(seed)
    return Passage(*(jnp.asarray(rng.normal(size=(lanes, mixed, size))) for size in (mixed, free)))


def equal(piece: tuple[object, ...], other: tuple[object, ...]) -> None:
    for array, twin in zip(piece, other, strict=True):
        np.testing.assert_allclose(np.asarray(array), np.asarray(twin), atol=1e-12)


def test_what_two_pieces_make_is_the_sum_over_paths_through_both() -> None:
    """One of a's three edges passes by b, and one of b's comes from elsewhere."""
    a, b = random_summary(0, 2, 3, 3), random_summary(1, 3, 2, 2)
    wiring = Wiring(*(np.asarray(places, np.int32) for places in ([1], [0, 2], [2, 0], [1])))
    merged = summary.merge(a, b, wiring)
    # All places: a's entering edges and nodes, the edges between, b's nodes and leaving edges, and those that pass by.
    of_a, of_b = np.asarray(summary.dense(a)), np.asarray(summary.dense(b))
    through = np.zeros((6, 8))  # from a's entering, fresh, a's nodes to kept, b's leaving, a's and b's reads
    through[[0, 1, 3, 4, 5]] = np.concatenate(
        [of_a[:, [1]], of_a[:, [0, 2]] @ of_b[[2, 0]][:, :2], of_a[:, 3:], of_a[:, [0, 2]] @ of_b[[2, 0]][:, 2:]], axis=1
    )
    through[2] = np.concatenate([[0], of_b[1, :2], [0, 0, 0], of_b[1, 2:]])
    np.testing.assert_allclose(summary.dense(merged)[:6], through, atol=1e-12)
    written_by_b = np.concatenate([np.zeros((2, 1)), of_b[3:, :2], np.zeros((2, 3)), of_b[3:, 2:]], axis=1)
    np.testing.assert_allclose(summary.dense(merged)[6:], written_by_b, atol=1e-12)


def test_summaries_of_a_chain_of_pieces_are_a_monoid() -> None:
    a, b, c = (random_summary(seed, 2, nodes, 2) for seed, nodes in enumerate((3, 1, 2)))
    straight = summary.straight_wiring(2)
    ab, bc = summary.merge(a, b, straight), summary.merge(b, c, straight)
    equal(summary.merge(ab, c, straight), summary.merge(a, bc, straight))
    none = summary.no_nodes(2, a.source.dtype)
    equal(summary.merge(none, a, straight), a)
    equal(summary.merge(a, none, straight), a)


def test_a_piece_turned_around_is_its_transpose() -> None:
    a, b = random_summary(0, 2, 3, 2), random_summary(1, 2, 2, 2)
    np.testing.assert_array_equal(summary.dense(summary.reversed_summary(a)), summary.dense(a).T)
    straight = summary.straight_wiring(2)
    there = summary.reversed_summary(summary.merge(a, b, straight))
    back = summary.merge(summary.reversed_summary(b), summary.reversed_summary(a), straight)
    places = np.asarray([0, 1, 4, 5, 6, 2, 3])  # b's nodes come first on the way back
    np.testing.assert_allclose(summary.dense(there), summary.dense(back)[places][:, places], atol=1e-12)


def test_a_piece_applied_is_its_dense_form_applied() -> None:
    piece, rng = random_summary(0, 2, 4, 3), np.random.default_rng(1)
    query, key, value, state = (rng.normal(size=shape) for shape in ((4, 3), (4, 3), (4, 2), (2, 3, 2)))
    outputs, leaving = summary.apply(piece, *map(jnp.asarray, (query, key, value, state)))
    sources = np.concatenate([state, key[:, :, None] * value[:, None, :]])
    targets = np.einsum("st,skv->tkv", summary.dense(piece), sources)
    np.testing.assert_allclose(leaving, targets[:3], atol=1e-12)
    np.testing.assert_allclose(outputs, np.einsum("nk,nkv->nv", query, targets[3:]), atol=1e-12)


def test_passages_are_a_monoid() -> None:
    a, b, c = (random_passage(seed) for seed in range(3))
    merge, none = summary.merge_passages, summary.no_passage(a)
    equal(merge(merge(a, b), c), merge(a, merge(b, c)))
    equal(merge(none, a), a)
    equal(merge(a, none), a)


def test_states_pass_what_two_pieces_make_as_both_one_by_one() -> None:
    a, b = random_passage(0), random_passage(1)
    state = np.random.default_rng(2).normal(size=(2, 3, 2))
    after_a = np.einsum("lij,ljf->lif", a.transition, state) + a.written
    after_b = np.einsum("lij,ljf->lif", b.transition, after_a) + b.written
    np.testing.assert_allclose(summary.pass_states(a, jnp.asarray(state)), after_a, atol=1e-12)
    np.testing.assert_allclose(summary.pass_states(summary.merge_passages(a, b), jnp.asarray(state)), after_b, atol=1e-12)


def test_a_summary_with_inputs_is_a_passage() -> None:
    """Its edges are mixed, and keys and values are columns that are alike."""
    piece, rng = random_summary(0, 3, 4, 3), np.random.default_rng(1)
    key, value, state = (jnp.asarray(rng.normal(size=shape)) for shape in ((4, 3), (4, 2), (3, 3, 2)))
    leaving = summary.leaving_states(piece.source, piece.transition, key, value, state)
    through = Passage(piece.transition.T, summary.write(piece.source, key, value).reshape(3, 6))
    np.testing.assert_allclose(summary.pass_states(through, state.reshape(3, 6)).reshape(leaving.shape), leaving, atol=1e-12)


def test_a_step_of_the_delta_rule_is_a_passage() -> None:
    """Two steps merged are the product of their matrices on keys, which no summary of numbers has."""
    rng = np.random.default_rng(0)
    steps, matrices, state = list[Passage](), [np.eye(3)], rng.normal(size=(3, 2))
    after = state
    for _ in range(2):
        u, key, value = rng.normal(size=3), rng.normal(size=3), rng.normal(size=2)
        matrix = 0.9 * (np.eye(3) - 0.5 * np.outer(u, u))
        matrices.append(matrix @ matrices[-1])
        after = matrix @ after + np.outer(key, value)
        steps.append(Passage(jnp.asarray(matrix), jnp.asarray(np.outer(key, value))))
    both = summary.merge_passages(*steps)
    np.testing.assert_allclose(both.transition, matrices[-1], atol=1e-12)
    np.testing.assert_allclose(summary.pass_states(both, jnp.asarray(state)), after, atol=1e-12)


@pytest.mark.parametrize("by_target", [False, True])
def test_attention_block_by_block_is_attention(by_target: bool) -> None:
    rng = np.random.default_rng(0)
    query, key, value, mask = (rng.normal(size=(2, 6, size)) for size in (3, 3, 2, 6))
    laid = jnp.asarray(np.swapaxes(mask, 1, 2) if by_target else mask)
    inputs = [jnp.asarray(array) for array in (query, key, value)]
    whole = masked_attention(*inputs, laid, by_target=by_target)
    scores = np.einsum("bsk,btk->bst", key, query) * mask
    np.testing.assert_allclose(whole, np.einsum("bst,bsv->btv", scores, value), atol=1e-12)
    queries, masks = (jnp.stack(jnp.split(array, 3, axis)) for array, axis in ((inputs[0], 1), (laid, 1 if by_target else 2)))
    blocks = streamed_attention(queries, *inputs[1:], masks, jnp.multiply, by_target=by_target)
    np.testing.assert_allclose(np.concatenate(list(blocks), axis=1), whole, atol=1e-12)
