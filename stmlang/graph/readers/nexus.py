"""Trees and networks of NEXUS files (Maddison, Swofford and Maddison 1997): those that `newick` reads, in a block `TREES`.

    #NEXUS
    begin taxa; dimensions ntax = 2; taxlabels 'Homo sapiens' Pan; end;
    begin trees;
        translate 1 Homo_sapiens, 2 Pan;
        tree best = [&R] (1:6, 2:6)root;
    end;

A leaf is called by its key in `TRANSLATE`, by its taxon or by the number of that, and shown by what it stands for. Letters of
either case and blanks for underscores make one name, as NEXUS has it. A block `NETWORKS`, as PhyloNet writes it, is read in the
same way. Blocks of `OTHERS` say nothing of trees and are passed over; any other block, and any other command in those that are
read, is refused. Of several trees all must be the same but for their lengths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from stmlang.graph.readers.text import Graph, GraphFile, Place
from stmlang.graph.readers.trees import Spot, Token, comment_end, graph_of, same, tree, unrooted
from stmlang.source.wording import listing, quoted, shortened

OTHERS = (
    *("characters", "data", "unaligned", "distances", "sets", "assumptions", "codons", "notes"),
    *("paup", "mrbayes", "mesquite", "mesquitecharmodels", "figtree", "phylonet"),
)
"""Blocks without trees: public ones, and those in which a program keeps its settings."""
READ = ("taxa", "trees", "networks")
_MARK = re.compile(r"\s*#nexus(?=[\s\[;]|\Z)", re.IGNORECASE)
_TOKEN = re.compile(r"'(?:[^']|'')*'|[;=,*\[\]']|[^\s;=,*\[\]']+")
_COUNT = re.compile(r"[0-9]{1,9}")
MOST_NAMED = 6
"""Trees that a refusal names."""


@dataclass
class _Words:
    """The words of a file from a place on, without comments; the next one is looked at before it is taken."""

    file: GraphFile
    place: int
    next: Token | None = None

    def __post_init__(self) -> None:
        self.move(self.place)

    def move(self, place: int) -> None:
        """Goes on at an offset."""
        text = self.file.text
        while (match := _TOKEN.search(text, place)) is not None and match.group() == "[":
            place = comment_end(self.file, match.start())
        if match is not None and match.group() in ("]", "'"):
            self.file.refuse("STM3403", f"`{match.group()}` without its partner", match.span())
        self.next = None if match is None else (match.group(), match.span())
        self.place = len(text) if match is None else match.end()

    def take(self, at: Place) -> Token:
        """The next word. Refuses the end of the file, at the place of what it leaves open."""
        if self.next is None:
            self.file.refuse(
                "STM3403", "the file ends in the middle of this", at, "end a command with `;`, a block with `end;`"
            )
        token = self.next
        self.move(self.place)
        return token

    def expect(self, expected: str, at: Place) -> Place:
        word, place = self.take(at)
        if word != expected:
            self.file.refuse("STM3403", f"`{word}` where `{expected}` is expected", place)
        return place

    def name(self, what: str, at: Place) -> Token:
        word, place = self.take(at)
        if word in (";", "=", ",", "*"):
            self.file.refuse("STM3403", f"`{word}` where {what} is expected", place)
        return word, place

    def up_to_semicolon(self, at: Place) -> list[Token]:
        """The words up to the next `;`, which is taken too."""
        words: list[Token] = []
        while (token := self.take(at))[0] != ";":
            words.append(token)
        return words


@dataclass
class _Nexus:
    """What has been read so far: taxa and translations by their keys, each with its place, and the
    names of all trees. `has_tree` once the block has one, `other` is the first tree that is another than the first."""

    file: GraphFile
    words: _Words
    taxa: dict[str, Token] = field(default_factory=dict[str, Token])
    ordered: list[str] = field(default_factory=list[str])
    announced: tuple[int, Place] | None = None
    translation: dict[str, Token] = field(default_factory=dict[str, Token])
    translated: set[str] = field(default_factory=set[str])
    trees: list[Token] = field(default_factory=list[Token])
    has_tree: bool = False
    graph: Graph | None = None
    other: int | None = None

    def block(self, at: Place) -> None:
        """A block, behind its `begin`."""
        name, place = self.words.name("the name of a block", at)
        self.words.expect(";", place)
        kind = name.lower()
        if kind not in (*READ, *OTHERS):
            notes = (f"blocks are {listing([quoted(known_kind) for known_kind in (*READ, *OTHERS)])}",)
            self.file.refuse("STM3403", f"`{name}` is no block that is known", place, "remove it from the file", notes)
        if kind != "taxa":
            self.translation, self.translated, self.has_tree = {}, set(), False
        while (token := self.words.take(place))[0].lower() not in ("end", "endblock"):
            if kind in OTHERS:
                while token[0] != ";":
                    token = self.words.take(token[1])
            elif kind == "taxa":
                self.taxon_command(*token)
            else:
                self.tree_command(*token)
        self.words.expect(";", token[1])

    def unknown(self, word: str, at: Place, block: str, known: str) -> NoReturn:
        self.file.refuse("STM3403", f"`{word}` is no command of {block} that is known", at, f"there are {known}")

    def taxon_command(self, word: str, at: Place) -> None:
        match word.lower():
            case "title" | "link" | "blockid":
                self.words.up_to_semicolon(at)
            case "dimensions":
                key, place = self.words.name("`ntax`", at)
                if key.lower() != "ntax":
                    self.file.refuse("STM3403", f"`{key}` where `ntax` is expected", place)
                self.words.expect("=", place)
                count, place = self.words.name("a count", place)
                if _COUNT.fullmatch(count) is None:
                    self.file.refuse("STM3403", f"`{count}` where a count is expected", place)
                self.announced = int(count), place
                self.words.expect(";", place)
            case "taxlabels":
                for label, place in self.words.up_to_semicolon(at):
                    self.taxon(label, place)
                if self.announced is not None and self.announced[0] != len(self.ordered):
                    message = f"{self.announced[0]:,} taxa are announced, and {len(self.ordered):,} are listed"
                    self.file.refuse("STM3403", message, self.announced[1], "correct the number or the list")
            case _:
                self.unknown(word, at, "the block of taxa", "`dimensions`, `taxlabels`, `title` and `link`")

    def taxon(self, label: str, at: Place) -> None:
        if label in ("=", ",", "*"):
            self.file.refuse("STM3403", f"`{label}` where a taxon is expected", at, "taxa are separated by blanks")
        before = self.taxa.setdefault(_key(label), (label, at))
        if before[1] != at:
            earlier = (before[1], "listed here first")
            self.file.refuse("STM3409", f"the taxon `{label}` is listed twice", at, "rename or remove one", earlier=earlier)
        self.ordered.append(label)

    def tree_command(self, word: str, at: Place) -> None:
        match word.lower():
            case "title" | "link" | "blockid":
                self.words.up_to_semicolon(at)
            case "translate":
                self.translate(at)
            case "tree" | "network":
                self.tree(at)
            case "utree":
                unrooted(self.file, at)
            case _:
                self.unknown(word, at, "the block of trees", "`tree`, `network`, `translate`, `title` and `link`")

    def translate(self, at: Place) -> None:
        if self.translation or self.has_tree:
            help = "write one `translate` ahead of all trees"
            self.file.refuse("STM3403", "a translation behind what it might be meant for", at, help)
        end = ","
        while end == ",":
            key, place = self.words.name("a key", at)
            label, place_of_label = self.words.name("what the key stands for", place)
            self.translated.add(_key(label))
            before = self.translation.setdefault(_key(key), (label, place))
            if before[1] != place:
                earlier = (before[1], "given here first")
                self.file.refuse("STM3409", f"the key `{key}` is given twice", place, "remove one", earlier=earlier)
            if self.taxa and _key(label) not in self.taxa:
                help = "list it among the taxa, or correct its spelling"
                self.file.refuse("STM3408", f"`{label}` is no taxon of this file", place_of_label, help)
            end, place = self.words.take(place)
            if end not in (",", ";"):
                self.file.refuse("STM3403", f"`{end}` where `,` or `;` is expected", place)

    def tree(self, at: Place) -> None:
        name, place = self.words.take(at)
        if name == "*":  # the mark of the tree that a program shows first
            name, place = self.words.take(place)
        if name in (";", "=", ",", "*"):
            self.file.refuse("STM3403", f"`{name}` where the name of a tree is expected", place, "a tree is `tree t = (a, b);`")
        if self.words.next is None or self.words.next[0] != "=":
            self.words.expect("=", place)
        parsed = tree(self.file, self.words.place)
        if parsed is None:
            self.file.refuse("STM3403", f"the file ends before the tree `{name}`", place)
        self.words.move(parsed.end[1])
        graph = graph_of(self.file, parsed.spots, self.shown)
        self.trees.append((_plain(name), place))
        self.has_tree = True
        if self.graph is None:
            self.graph = graph
        elif self.other is None and not same(self.graph, graph):
            self.other = len(self.trees) - 1

    def shown(self, label: str, spot: Spot, leaf: bool) -> str:
        """What a node is called: of a leaf what its label stands for. Refuses leaves of no taxon (STM3408)."""
        if not leaf:
            return label
        key = label.lower() if spot.quoted else _key(label)
        if key in self.translation:
            return _plain(self.translation[key][0])
        if key in self.taxa:
            return _plain(self.taxa[key][0])
        if _COUNT.fullmatch(label) and 0 < int(label) <= len(self.ordered):
            return _plain(self.ordered[int(label) - 1])
        if self.taxa or (self.translation and key not in self.translated):
            help = "list it among the taxa or in `translate`, or correct its spelling"
            self.file.refuse("STM3408", f"`{label}` is no taxon of this file", spot.at, help)
        return label


def begins(file: GraphFile) -> bool:
    """Whether a file says that it is NEXUS."""
    return _MARK.match(file.text) is not None


def read(file: GraphFile) -> Graph:
    mark = _MARK.match(file.text)
    if mark is None:
        help = "trees without blocks are read `as newick`"
        file.refuse("STM3403", "this is no NEXUS file: it does not begin with `#NEXUS`", file.line_at(1), help)
    words = _Words(file, mark.end())
    reader = _Nexus(file, words)
    while words.next is not None:
        word, at = words.take((0, 0))
        if word.lower() != "begin":
            file.refuse(
                "STM3403", f"`{word}` where `begin` is expected", at, "everything stands in a block: `begin trees; ... end;`"
            )
        reader.block(at)
    if reader.graph is None:
        file.refuse("STM3411", "this file holds no tree", None, "write one in a block: `begin trees; tree t = (a, b); end;`")
    if reader.other is not None:
        _refuse_other(file, reader.trees, reader.other)
    return reader.graph


def _refuse_other(file: GraphFile, trees: list[Token], other: int) -> NoReturn:
    """Refuses trees that are not all the same, by their names."""
    names = [quoted(name) for name, _ in trees]
    more = "" if len(names) <= MOST_NAMED else f" and {len(names) - MOST_NAMED} more"
    message = f"this file holds {len(trees)} trees, {', '.join(names[:MOST_NAMED])}{more}: which one?"
    earlier = (trees[0][1], "the first one; several are read where they differ in nothing but their lengths")
    name, at = trees[other]
    help = f"keep one of them; `{shortened(name)}` here is another tree than the first"
    file.refuse("STM3403", message, at, help, (), earlier)


def _plain(word: str) -> str:
    """A word as it is shown: without quotes."""
    return word[1:-1].replace("''", "'") if word.startswith("'") else word


def _key(word: str) -> str:
    """What NEXUS compares: no letter's case, and of what is not quoted blanks for underscores."""
    return _plain(word).lower() if word.startswith("'") else word.replace("_", " ").lower()
