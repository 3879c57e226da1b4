"""A graph as somebody gives it, numbered: what every kind of graph is turned into first, and DAGs are made from."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from stmlang.graph.refusal import named, refusal, shown
from stmlang.source.suggest import did_you_mean
from stmlang.source.wording import listing as listed
from stmlang.source.wording import shortened

if TYPE_CHECKING:
    from jaxtyping import Int64

Listing = Literal["directed", "once", "twice"]
"""What the edges of a list are: directed, or undirected and each listed in one sense, or in both."""
LISTINGS: tuple[Listing, ...] = get_args(Listing)
IN_BOTH = 'say `listing="twice"` where each undirected edge is listed in both senses'
EITHER = 'say `listing="once"` where each edge is listed in one sense, `listing="twice"` where it is in both'
INSTEAD = {
    **dict.fromkeys(("undirected", "symmetric"), EITHER),
    **dict.fromkeys(("both", "double", "bidirectional", "bidirected"), IN_BOTH),
    **dict.fromkeys(("single", "half", "one"), 'say `listing="once"` where each undirected edge is listed in one sense'),
}
"""What to say in place of other words for it."""


@dataclass(frozen=True, eq=False)
class GivenGraph:
    """Edges between numbered nodes, in the order in which they were given. `ids` are the user's names of the nodes by number,
    a range where these are the numbers themselves."""

    ends: Int64[np.ndarray, "edges 2"]
    ids: Sequence[Hashable]
    listing: Listing

    def called(self, node: int) -> str:
        """What the user calls a node, cut short."""
        return shortened(named(self.ids[node]))


def numbers_or(ids: tuple[Hashable, ...]) -> Sequence[Hashable]:
    """The ids, as a range where they are the numbers of the nodes."""
    plain = all(type(name) is int and name == place for place, name in enumerate(ids))
    return range(len(ids)) if plain else ids


def checked_listing(listing: object) -> Listing:
    """A way of listing. Raises SpecError (STM3504) for anything else."""
    for known in LISTINGS:
        if isinstance(listing, str) and listing == known:
            return known
    names = listed([f'"{name}"' for name in LISTINGS])
    help = did_you_mean(listing, LISTINGS, 'listing="{}"', INSTEAD) or f"say {names}"
    raise refusal("STM3504", f"edges cannot be listed as {shown(listing)}", help, f"`listing` is {names}")
