"""Transitions that are stable as they are written, and that a stabilizer has to leave alone; and what the user hears of it."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
import pytest

import stmlang
from stmlang.check import examine, open_spec
from stmlang.check.search_path import library_specs
from stmlang.facts import analyse
from tests.helpers.data import data_folder

MATRIX = """scan s(heads = 1, key = {key}, value = {value}) on chain(t = {length}) {{
    source = {source}
    transition[key, key'] = given(-1, 1)
    {settings}
}}
"""


def compiled(text: str, **settings: Any) -> Any:
    """Without the warning that a mode was inserted, which other tests look at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stmlang.StabilityWarning)
        return stmlang.compile(text, **settings)


def test_an_identity_keeps_the_state() -> None:
    """The mode that is inserted bounds its norm by one, which the identity has: nothing is scaled."""
    op = compiled(MATRIX.format(key=2, value=1, length=3, source=1, settings=""))
    one = np.zeros((3, 1, 2), np.float32)
    one[..., 0] = 1
    value = np.asarray([1, 0, 0], np.float32).reshape(3, 1, 1)
    identity = np.broadcast_to(np.eye(2, dtype=np.float32), (3, 1, 2, 2))
    assert op.facts.verdict.kind == "inserted P"
    np.testing.assert_array_equal(np.ravel(op(one, one, value, {"transition": identity})), [0, 1, 1])


@pytest.mark.parametrize("mode", ["", "stabilize P", "stabilize D"])
def test_a_delta_rule_with_unit_keys_is_what_it_says(mode: str) -> None:
    """Four keys, six steps, keys of length one that nothing in the spec says are."""
    text = f"""scan s(heads = 1, key = 4, value = 1) on chain(t = 6) {{
        beta = given(0, 1)
        source = beta
        transition[key, key'] = eye[key, key'] - beta * k[key] * k[key']
        {mode}
    }}"""
    op = compiled(text)
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(6, 1, size)) for size in (4, 4, 1))
    k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    beta = rng.uniform(size=(6, 1))
    state, wanted = np.zeros((4, 1)), []
    for node in range(6):
        wanted.append(q[node, 0] @ state)
        state = state - beta[node] * np.outer(k[node, 0], k[node, 0] @ state) + beta[node] * np.outer(k[node, 0], v[node, 0])
    arguments = [array.astype(np.float32) for array in (q, k, v)]
    found = op(*arguments, {"beta": beta.astype(np.float32)})
    np.testing.assert_allclose(found[:, 0], wanted, atol=1e-6)
    for declared in (False, True):
        np.testing.assert_allclose(op.reference(q, k, v, {"beta": beta}, declared=declared)[:, 0], wanted, atol=1e-12)
    large = op.reference(q, 2 * k, v, {"beta": beta}, declared=True)
    assert np.abs(large - op.reference(q, 2 * k, v, {"beta": beta})).max() > 0.1 * np.abs(large).max()


def test_the_fast_path_stays_behind_the_insertion() -> None:
    """A delta rule that cannot be proved stable is stabilized, and still runs by the strategy made for it."""
    text = """scan s(heads = 4, key = 64, value = 64) on chain(t = 2048) {
        beta = given(0, 1)
        source = beta
        transition[key, key'] = eye[key, key'] - beta * k[key] * k[key']
    }"""
    op = compiled(text, target="cpu")
    assert op.facts.verdict.kind == "inserted P"
    assert op.plan.strategy == "delta"


def test_an_orthogonal_transition_of_tracks_turns_and_shrinks_nothing() -> None:
    """Its norm is one, so the stabilized scan gives the numbers of the one that was written."""
    text = """scan s(heads = 1, key = 1, value = 2, track = 3) on chain(t = 20) {
        source[track] = given()
        transition[track, track'] = given()
    }"""
    op, written = compiled(text), compiled(text.replace("}", "stabilize none }"))
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(20, 1, size)).astype(np.float32) for size in (1, 1, 2))
    turns = np.linalg.qr(rng.normal(size=(20, 1, 3, 3)).astype(np.float32))[0]
    gates = {"source": rng.normal(size=(20, 1, 3)).astype(np.float32), "transition": turns}
    np.testing.assert_array_equal(op(q, k, v, gates), written(q, k, v, gates))


@pytest.mark.parametrize("group", ["s3", "a5"])
def test_word_problems_are_right_in_all_labels(group: str) -> None:
    """Prefix products of permutations: the state is a permutation matrix, 64 steps from the identity."""
    found = np.load(data_folder("golden/zoo") / f"state_tracking_{group}.npz")
    perms, tokens, labels = found["perms"], found["test_tokens_64"][:50], found["test_labels_64"][:50]
    size = perms.shape[1]
    op = compiled(MATRIX.format(key=size, value=size, length=64, source=0, settings="read after"), strategy="recurrent")
    matrices = np.eye(size, dtype=np.float32)[perms].transpose(0, 2, 1)  # P e_x = e_g[x]
    places = np.broadcast_to(np.arange(size, dtype=np.float32), (64, 1, size))
    nothing = np.zeros((64, 1, size), np.float32)
    (start,) = op.zero_state()
    initial = ({port: np.broadcast_to(np.eye(size), array.shape).astype(np.float32) for port, array in start.items()},)

    def word(gate: Any) -> Any:
        return op(places, nothing, nothing, {"transition": gate[:, None]}, initial)

    read = np.rint(np.asarray(jax.vmap(word)(matrices[tokens]))[:, :, 0]).astype(int)
    np.testing.assert_array_equal(read, perms[labels])


# --- what the user hears ---------------------------------------------------------------------------------------------

INSERTED = MATRIX.format(key=2, value=1, length=3, source=1, settings="")


def test_compiling_warns_once_where_a_mode_was_inserted_unasked() -> None:
    """The warning points at the caller's line, and is not repeated."""
    with pytest.warns(stmlang.StabilityWarning, match="STM4001") as found:
        stmlang.compile(INSERTED)
    assert {warning.filename for warning in found} == {__file__}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(3):
            stmlang.compile(INSERTED)
    assert len([one for one in seen if one.category is stmlang.StabilityWarning]) == 1


@pytest.mark.parametrize(
    "text", [INSERTED.replace("t = 3", "t"), INSERTED.replace("chain(t = 3)", "dag(nodes <= 4, edges <= 4)")]
)
def test_it_warns_of_what_is_compiled_later_too(text: str) -> None:
    """Also where sizes, or the graphs, come after `compile`."""
    with pytest.warns(stmlang.StabilityWarning):
        stmlang.compile(text)


@pytest.mark.parametrize("mode", ["P", "D", "none"])
def test_it_is_silent_where_a_mode_was_asked_for(mode: str) -> None:
    """Whichever it is: whoever writes one knows."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stmlang.compile(MATRIX.format(key=2, value=1, length=3, source=1, settings=f"stabilize {mode}"))


def test_no_spec_of_the_library_has_a_mode_inserted_unasked() -> None:
    """Each is proved stable or asks for its mode."""
    for name in library_specs():
        scan = examine(open_spec(f"std:{name}")).scan
        assert scan is None or not any(found.severity.value == "warning" for found in analyse(scan).notes), name


# --- leaves that are matrices by mistake -----------------------------------------------------------------------------

SLIPS = (
    "transition[key, key'] = exp(given(high = 0)) * (eye[key, key'] - b * k[key] * k[key'])",
    "transition[key, key'] = eye[key, key'] - given(0, 1) * k[key] * k[key']",
    "transition[key, key'] = eye[key, key'] * (1 - sigmoid(linear(x)))",
    "m[key, key'] = eye[key, key'] - b * k[key] * k[key']; transition[key, key'] = m[key, key'] * sigmoid(linear(x))",
)
MEANT = (
    "transition[key, key'] = given(-1, 1)",
    "transition[key, key'] = eye[key, key'] - linear(x)",
    "transition[key, key'] = eye[key, key'] - b * tanh(linear(x)) * sigmoid(linear(x))",
    "d[key] = given(0, 1); transition[key, key'] = d[key] * (eye[key, key'] - linear(x)) / 2",
    "d[key] = given(0, 1); transition[key, key'] = eye[key, key'] - d[key] * linear(x)",
    "a = exp(given(high = 0)); transition[key, key'] = a * (eye[key, key'] - b * k[key] * k[key'])",
)


def warned(body: str) -> list[str]:
    lines = "\n".join(line.strip() for line in body.split(";"))
    text = f"scan s(heads = 1, key = 2, value = 1) on chain(t = 3) {{\nb = given(0, 1)\nsource = b\n{lines}\n}}"
    found = examine(open_spec(text))
    assert not found.failed
    return [one.help or "" for one in found.diagnostics if one.code == "STM2043"]


@pytest.mark.parametrize("body", SLIPS)
def test_a_leaf_beside_an_identity_is_warned_of(body: str) -> None:
    """A leaf that multiplies a matrix has the matrix's axes; where one number was meant, the warning says how to write it."""
    (help,) = warned(body)
    leaf = next(leaf for leaf in ("given(high = 0)", "given(0, 1)", "linear(x)") if leaf in body)
    assert help == f"for one number, make it a gate of its own, `a = {leaf}`, and write `a` here"


@pytest.mark.parametrize("body", MEANT)
def test_a_leaf_that_is_a_matrix_is_not_warned_of(body: str) -> None:
    """Where the axes are the leaf's own or plainly meant."""
    assert not warned(body)
