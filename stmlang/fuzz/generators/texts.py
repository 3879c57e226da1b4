"""Texts for the front end: good specs spoilt in many ways, words of the language in no order, characters, bytes, and texts that
are long or deep.

All strategies make bytes, as a file holds them. Most texts are wrong, and some are right: a good spec of which a line was
doubled, or a number exchanged, often is one again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from stmlang.check.search_path import library, library_specs
from stmlang.check.vocabulary import BUILT_IN, CORE, INDEX_WORDS, SIZES
from stmlang.source.span import SourceFile
from stmlang.syntax.lexer import ITEM_WORDS, SETTING_WORDS, SIGNS, lex

LONGEST = 500
"""How many units a long or deep text has at most, unless a strategy is told otherwise: not so many that work in proportion
takes a busy machine longer than is allowed."""

SAMPLES = (
    """\
use std.gates (forget)
def gate(start) = sigmoid(linear(x, bias = start))
def erase(beta, a) = eye[key, key'] - beta * a[key] * a[key']
topology image = grid(rows = 3, cols = 2)   # two axes

scan first(heads = 2, key = 2 * heads, value = 3, gamma = 0.9) on chain(time = 4) {
    k = l2norm(k)
    beta = gate(0); rest = clip(gamma ^ 2, -1, 1) + -1 / pi
    source = beta * min(rest, 1)
    transition[key, key'] = erase(beta, k)
    read after
}

scan second on image * chain(frames) {
    directions +rows -cols +frames, -rows +cols -frames concat
    share[out] = softmax(linear(x, weight = 0.5), over = out)
    source[out] = share[out]
    transition[out, in] = tanh(given(-1, 1)) * split(sigmoid(param(spread(-1, 1))), 0.5)[out]
    transition[out = rows, in = cols] = 0
    mark[in] = 1 + share[in] - mean(share[out = rows] * q, over = key) ^ 2
    stabilize P
}
""",
    """\
topology small = dag { a -> b, c; b -> d
    c -> d; -> a; d ->
    alone }
scan on_a_graph(key = 4, value = 4, track = 2) on small {
    directions both
    source[out, track] = sigmoid(linear(x, e[out], bias = -4))
    transition[out, in, track, track'] = softmax(linear(e[out], e[in]), over = out) * eye[track, track']
    direct = largest(linear(x), over = key) if_nothing
    normalize none
}
""",
    """\
scan on_trees on tree(arity = 2, depth = 2) * dag(nodes <= 4, edges <= 2 ^ 3) {
    source = exp(linear(x))
    transition[out, in, key] = sum(abs(linear(x, e[out])), over = out) * sum(cap(v), over = value) / 2.5e-3
    stabilize auto
}
scan at_run_time on tree { a, b -> c } { source = 1; transition = .5; normalize sum }
scan of_a_file on dag from "small.txt" as edgelist { source = 1; transition = 1 }
""",
)
"""Texts that show every construct of the language between them; some of them hold an error."""

WORDS = (
    *SIGNS,
    *ITEM_WORDS,
    *SETTING_WORDS,
    *BUILT_IN,
    *CORE,
    *INDEX_WORDS,
    *SIZES,
    *("on", "from", "as", "over", "bias", "weight", "x", "e", "q", "k", "v", "pi", "eye", "P", "D", "auto", "none", "after"),
    *("chain", "grid", "tree", "dag", "nodes", "edges", "arity", "depth", "both", "all", "concat", "std", "gates", "a", "b"),
    *("rows", "cols", "edge", "time", "0", "1", "2", ".5", "1e-3", "1e308", "2147483648", "64", '"f.bif"', "'", '"', "#"),
    *("**", "==", ":=", "=>", "<-", "<", "//", "/*", "−", "×", "é", "λ", "1..2", "1e", "3x", "key''", "$", "\\", "@", "\0"),
    *("\n", "\n", "\r\n", "\r", "\t", " ", "\u00a0", "\u2028", " # note\n"),
)
"""Words and signs of the language, and of no language."""


@cache
def good_texts() -> tuple[str, ...]:
    """The specs of the installed library, and the samples."""
    return (*((library() / f"{name}.stm").read_text(encoding="utf-8") for name in library_specs()), *SAMPLES)


@cache
def _tokens(text: str) -> tuple[str, ...]:
    """The words and signs of a text and what stands between them: joined, they are the text again."""
    pieces: list[str] = []
    end = 0
    for token in lex(SourceFile("<text>", text)).tokens:
        pieces += [text[end : token.start], text[token.start : token.end]]
        end = max(end, token.end)
    return tuple(piece for piece in (*pieces, text[end:]) if piece)


# --- spoilt specs


@st.composite
def mutated(draw: DrawFn, base: SearchStrategy[str] | None = None, most: int = 4) -> bytes:
    """A spec with up to `most` changes: words dropped, doubled, exchanged, replaced, or put in; lines dropped, doubled or
    exchanged; the rest of the text cut off."""
    pieces = list(_tokens(draw(base if base is not None else st.sampled_from(good_texts()))))
    for _ in range(draw(st.integers(0, most))):
        if draw(st.integers(0, 3)) == 0:
            pieces = _change(draw, "".join(pieces).splitlines(keepends=True))
            pieces = list(_tokens("".join(pieces)))
        else:
            pieces = _change(draw, pieces)
    return _encoded("".join(pieces))


def _change(draw: DrawFn, pieces: list[str]) -> list[str]:
    """A few neighbouring parts changed in one way."""
    if not pieces:
        return [draw(st.sampled_from(WORDS))]
    at = draw(st.integers(0, len(pieces) - 1))
    end = min(len(pieces), at + draw(st.integers(1, 3)))
    before, run, after = pieces[:at], pieces[at:end], pieces[end:]
    match draw(st.sampled_from(("drop", "double", "exchange", "other", "word", "insert", "cut"))):
        case "drop":
            return [*before, *after]
        case "double":
            return [*before, *run, *run, *after]
        case "exchange":
            other = draw(st.integers(0, len(pieces) - 1))
            pieces[at], pieces[other] = pieces[other], pieces[at]
            return pieces
        case "other":
            return [*before, draw(st.sampled_from(pieces)), *after]
        case "word":
            return [*before, draw(st.sampled_from(WORDS)), *after]
        case "insert":
            return [*before, draw(st.sampled_from(WORDS)), *run, *after]
        case _:
            return before


@st.composite
def spliced(draw: DrawFn, base: SearchStrategy[str] | None = None) -> bytes:
    """The beginning of one spec and the end of another."""
    texts = base if base is not None else st.sampled_from(good_texts())
    first, second = _tokens(draw(texts)), _tokens(draw(texts))
    head, tail = draw(st.integers(0, len(first))), draw(st.integers(0, len(second)))
    return _encoded("".join((*first[:head], *second[tail:])))


@st.composite
def misencoded(draw: DrawFn) -> bytes:
    """A spec in another encoding, or in UTF-8 with bytes exchanged, put in or cut off."""
    text = draw(st.sampled_from(good_texts()))
    coding = draw(st.sampled_from(("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7")))
    encoded = (text + draw(st.text(max_size=4))).encode(coding, "replace")
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(encoded)))
        encoded = encoded[:at] + draw(st.binary(max_size=4)) + encoded[draw(st.integers(at, min(len(encoded), at + 4))) :]
    return encoded[: draw(st.integers(0, len(encoded)))] if draw(st.booleans()) else encoded


# --- texts out of nothing


def soups(most: int = 60) -> SearchStrategy[bytes]:
    """Words of the language in no order, with and without blanks between them."""
    words = st.lists(st.sampled_from(WORDS), max_size=most)
    return st.tuples(words, st.sampled_from((" ", "", "\n"))).map(lambda pair: _encoded(pair[1].join(pair[0])))


@st.composite
def bodies(draw: DrawFn) -> bytes:
    """A scan whose equations hold words of the language in no order, so that more of them get as far as the checker."""
    on = draw(st.sampled_from(("chain(t)", "grid(rows = 2, cols)", "dag { a -> b }", "tree(arity = 2, depth = 1)")))
    words = st.lists(st.sampled_from((*_VALUES, *_VALUES, *_OPERATORS)), min_size=1, max_size=9).map(" ".join)
    names = st.sampled_from((*CORE, "a", "b", "q", "k", "source[out]", "transition[out, in]", "mark[in]", "a[key, key']"))
    equations = [f"{name} = {value}\n" for name, value in draw(st.lists(st.tuples(names, words), max_size=6))]
    return _encoded(f"scan s(key = 2, value = 2) on {on} {{\nsource = 1\ntransition = 0.5\n{''.join(equations)}}}\n")


_OPERATORS = ("+", "-", "*", "/", "^", ",", ")", "(")
_VALUES = (
    *("a", "b", "k", "v", "1", "0.5", "heads", "key", "linear(x)", "given(0, 1)", "param(0)", "k[key']", "eye[key, key']"),
    *(
        "exp(",
        "sum(a, over = key)",
        "split(b)",
        "split(b)[out]",
        "a[out]",
        "a[in]",
        "linear(x, e[out])",
        "softmax(a, over = out)",
    ),
)


def characters() -> SearchStrategy[bytes]:
    """Any characters at all, halves of them included."""
    alphabet = st.characters() | st.sampled_from("\n\r\t #\"'(){}[]=,;-+*/^<>.0159aeEx\u2028\ufeff")
    return st.text(alphabet, max_size=120).map(lambda text: text.encode("utf-8", "surrogatepass"))


def binary() -> SearchStrategy[bytes]:
    """Any bytes at all."""
    return st.binary(max_size=200)


# --- deep and long texts


_NESTS: tuple[tuple[str, str, str], ...] = (
    ("(", "1", ")"),
    ("[", "out", "]"),
    ("{", "a", "}"),
    ("-", "1", ""),
    ("- (", "1", ")"),
    ("2 ^ ", "2", ""),
    ("exp(", "linear(x)", ")"),
    ("sum(1 + ", "k", ", over = key)"),
    ("min(1, ", "a", ")"),
    ("a[", "out", "]"),
    ("linear(x, bias = ", "0", ")"),
    ("split(", "a", ")[out]"),
    ("(1 + ", "a", ") * 2"),
    ("dag {", "a -> b", "}"),
    ("scan s on chain(t) {", "source = 1", "}"),
    ("([{", "a", "}])"),
    ("f(a = ", "1", ")"),
)
_UNITS: tuple[tuple[str, str, str], ...] = (
    ("1", " + 1", ""),
    ("linear(x)", " + linear(x)", ""),
    ("a", " * -a", ""),
    ("a", " / (a)", ""),
    ("f(1", ", a", ")"),
    ("a[out", ", in", "]"),
    ("a", "; a = b", ""),
    ("a", "\na = b", ""),
    ("", "a", ""),
    ("", "7", ""),
    ("1.", "0", ""),
    ("", " ", "1"),
    ("", "\t", "1"),
    ("1 # ", "note ", ""),
    ("1 ", "# note\n", ""),
    ('"', "text ", '"'),
    ("", "$", ""),
    ("", "é", ""),
    ("", "'", ""),
    ("", "\r", ""),
    ("", ")", ""),
    ("", "= ", ""),
    ("", "-> ", ""),
    ("1 }\n", "scan s on chain(t) { source = 1; transition = 1 }\n", "def f(a) = {"),
    ("1 }\n", "def f(a) = a;", "scan t on u {"),
    ("1 } topology t = grid(a", ", b", ")"),
    ("1 } topology t = dag { a -> b", "; b -> a", "}"),
    ("1 } topology t = dag { a", ", b", "-> c }"),
    ("1 } use a", ".b", ""),
    ("1 } topology t = a", " * a", ""),
)
_FRAMES: tuple[tuple[str, str], ...] = (
    ("scan s on chain(t) {\nsource = 1\ntransition = 0.5\na = linear(x)\nmark = ", "\n}\n"),
    ("scan s on grid(rows, cols) { source = 1; transition[out, in] = 0.5; mark = ", " }"),
    ("def f(a) = ", "\n"),
    ("topology t = ", "\n"),
    ("", ""),
)


@st.composite
def deep(draw: DrawFn, longest: int = LONGEST) -> bytes:
    """Something inside itself, many times over, closed as often as it was opened or not."""
    (head, tail), (opening, core, closing) = draw(st.sampled_from(_FRAMES)), draw(st.sampled_from(_NESTS))
    count = draw(_counts(longest))
    closed = draw(st.sampled_from((count, count, 0, count - 1, count + 1)))
    return _encoded(head + opening * count + core + closing * max(0, closed) + tail)


@st.composite
def long(draw: DrawFn, longest: int = LONGEST) -> bytes:
    """The same again and again, on one line or on many."""
    (head, tail), (first, unit, last) = draw(st.sampled_from(_FRAMES)), draw(st.sampled_from(_UNITS))
    return _encoded(head + first + unit * draw(_counts(longest)) + last + tail)


@st.composite
def chained(draw: DrawFn, longest: int = LONGEST) -> bytes:
    """Many declarations, each of which needs the next one, up to the last, or the first again."""
    head, form, tail = draw(st.sampled_from(_CHAINS))
    count = draw(_counts(longest))
    around = draw(st.booleans())
    lines = [form(k, 0 if around and k == count - 1 else k + 1) for k in range(count)]
    if draw(st.booleans()):
        lines.reverse()
    return _encoded(head + "\n".join(lines) + tail)


_CHAINS: Sequence[tuple[str, Callable[[int, int], str], str]] = (
    ("def f0(a) = a\n", lambda k, n: f"def f{n}(a) = f{k}(a) + 1", "\nscan s on chain(t) { source = f3(1); transition = 1 }"),
    (
        "def f0(a) = a\n",
        lambda k, n: f"def f{n}(a) = f{k}(a) * f{k}(a)",
        "\nscan s on chain(t) { source = f9(1); transition = 1}",
    ),
    ("scan s on chain(t) { source = g0; transition = 1\n", lambda k, n: f"g{k} = g{n}", "\n}"),
    ("scan s on chain(t) { source = g0; transition = 1\n", lambda k, n: f"g{k} = exp(g{n})", "\n}"),
    ("topology t0 = chain(a)\n", lambda k, n: f"topology t{n} = t{k}", "\nscan s on t9 { source = 1; transition = 1 }"),
    ("scan s on dag {\n", lambda k, n: f"n{k} -> n{n}", "\n} { source = 1; transition = 1 }"),
    ("scan s(\n", lambda k, n: f"p{k} = p{n},", "p = 1) on chain(t) { source = 1; transition = 1 }"),
)


def _counts(longest: int) -> SearchStrategy[int]:
    """Mostly few; sometimes about a limit of the language (100, 200); now and then many."""
    return st.integers(0, 12) | st.integers(95, 205) | st.integers(0, longest)


# --- all of them


def texts(longest: int = LONGEST) -> SearchStrategy[bytes]:
    """A text of any kind; those that come closest to good specs more often than the others."""
    near = (mutated(), mutated(), mutated(most=1), mutated(most=12), spliced(), bodies())
    far = (soups(), misencoded(), characters(), binary())
    return st.one_of(*near, *far, deep(longest), long(longest), chained(longest))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
