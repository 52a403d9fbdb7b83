"""Search by meaning: the cosine between a query and each tool, with any encoder.

A tool's vector is the mean of several of its texts (see `document.passages`). Everything is in memory: a matrix of
100,000 tools, 256 wide, is 100 MB. In a large catalog faiss finds the nearest tools, if it is installed.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from toolsearch.catalog import Tool
from toolsearch.protocols import Matched, Scored
from toolsearch.search.index import QUERY_CHARACTERS
from toolsearch.support.checks import number
from toolsearch_indexes.document import texts
from toolsearch_indexes.encoders import Encoder
from toolsearch_indexes.faiss_matrix import APPROXIMATE_FROM
from toolsearch_indexes.fitted_confidence import (
    DEPTH,
    NEIGHBOURS,
    Candidate,
    add_rank_signals,
    count_searched,
    shared_signals,
    usual_cosine,
    with_confidence,
)
from toolsearch_indexes.query import SMALL
from toolsearch_indexes.readable_scripts import can_read
from toolsearch_indexes.text import ACTIONS, content_words, words
from toolsearch_indexes.tool_vectors import ToolVectors

__all__ = ["NEAR", "NEVER", "VectorIndex", "check_bars", "least_cosine_alone", "meaning_match"]

log = logging.getLogger("toolsearch")

NEAR = 0.1  # the cosine that counts as evidence; 0.15 keeps no more nonsense out, and loses tools that fit
# The same where the catalog knows no word of the query: what one senseless query in ten reaches among a thousand tools.
# The best cosine grows with the logarithm of the number of tools. Both were measured on two catalogs with three
# encoders, from one tool to 2,000: 0.31 to 0.36, and 0.024 to 0.032.
NEVER = 2.0  # no cosine is evidence
NEAR_ALONE, GROWTH = 0.34, 0.028
SHOWN = 40  # characters of a query in a match


class VectorIndex:
    """Search by meaning, in memory.

    `encoder` is a name from the entry points `toolsearch.encoders`, or an object. A tool is found if its cosine is at
    least `near`, or at least `near_alone` where the catalog knows no word of the query. None for `near_alone` is what
    one senseless query in ten reaches among as many tools as are searched: 0.34 for a thousand. The defaults suit
    encoders that give unrelated texts a cosine about 0; see `CenteredEncoder` for others. If an encoder fails during a
    search, the search has a problem instead of hits.

    From `approximate_from` tools on, faiss finds the nearest ones, if it is installed, as soon as it has read them in
    the background: quicker, and next to nothing is missed. None means that the search is always exact.
    """

    name = "vector"

    def __init__(
        self,
        encoder: str | Encoder = "static",
        *,
        near: float = NEAR,
        near_alone: float | None = None,
        approximate_from: int | None = APPROXIMATE_FROM,
    ) -> None:
        check_bars(near, near_alone)
        self._vectors = ToolVectors(encoder, approximate_from)
        self._near, self._near_alone = near, near_alone
        self._changes = threading.RLock()
        self._words: dict[str, frozenset[str]] = {}
        self._holders: Counter[str] = Counter()  # word -> tools

    def __repr__(self) -> str:
        return f"{type(self).__name__}(tools={len(self._vectors)}, encoder={self.encoder!r})"

    def __len__(self) -> int:
        return len(self._vectors)

    def add(self, tools: Sequence[Tool]) -> None:
        with self._changes:
            refused = self._vectors.add(tools)
            for tool_id, error in refused.items():
                log.error("index %r cannot take %r: it is found by its name only", self.name, tool_id, exc_info=error)
            for tool in tools:
                self._set_words(tool.id, frozenset(word for text in texts(tool).values() for word in words(text)))
            self._vectors.refresh()

    def remove(self, ids: Sequence[str]) -> None:
        with self._changes:
            self._vectors.remove(ids)
            for tool_id in ids:
                self._set_words(tool_id, frozenset())
            self._vectors.refresh()

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        query = query[:QUERY_CHARACTERS]
        if not len(self._vectors) or not query.strip():
            return []
        ids, cosines = self._vectors.find_nearest([query], max(limit, NEIGHBOURS), among)
        query_words = list(dict.fromkeys(content_words(query)))
        counts = {word: holders for word in query_words if (holders := self._holders[word])}
        if not counts and not can_read(self.encoder, query, well=False):
            return []
        tools = len(self._words)
        searched = count_searched(tools, among)
        near, alone = self._near, least_cosine_alone(self._near_alone, searched)
        # One known word lowers the bar only where some tool is near without it, or in a small catalog.
        if 3 * len(counts) <= len(query_words):
            only_actions = counts and all(word in ACTIONS for word in counts)  # what does the same is near by its verb
            is_lower = counts and (searched <= SMALL or cosines.max(initial=0.0) >= alone)
            near = NEVER if only_actions else near if is_lower else alone
        close = dict(zip(ids, cosines[0].tolist(), strict=True))
        ranked = sorted((-cosine, i) for i, cosine in close.items() if cosine > 0)
        usual, sense = usual_cosine(close.values()), (meaning_match(query),)
        hits = [
            Candidate(
                i,
                -cosine,
                sense,
                {"cosine": -cosine, "height": -cosine - usual}
                | shared_signals(query_words, counts, self._words.get(i, frozenset()), tools),
            )
            for cosine, i in ranked[: max(limit, DEPTH)]
            if -cosine >= near
        ]
        fit, nearest = self._vectors.fit(self.name), [i for _, i in ranked]
        return with_confidence(add_rank_signals(hits, searched), limit, fit, searched, near=nearest)

    @property
    def encoder(self) -> Encoder:
        """What makes the vectors."""
        return self._vectors.encoder

    @property
    def is_approximate(self) -> bool:
        """Whether faiss finds the nearest tools now."""
        return self._vectors.is_approximate

    def _set_words(self, tool_id: str, new: frozenset[str]) -> None:
        for word in self._words.pop(tool_id, ()):
            self._holders[word] -= 1
            if not self._holders[word]:
                del self._holders[word]
        if new:
            self._words[tool_id] = new
            self._holders.update(new)


def meaning_match(query: str) -> Matched:
    """The entry in `Hit.matched` that says that a tool is near the query in meaning."""
    return Matched(query if len(query) <= SHOWN else query[: SHOWN - 1] + "…", ("meaning",))


def least_cosine_alone(near_alone: float | None, tools: int) -> float:
    """The cosine that counts as evidence among so many tools where the catalog knows no word of the query."""
    return near_alone if near_alone is not None else NEAR_ALONE + GROWTH * math.log(max(tools, 1) / 1_000)


def check_bars(near: float, near_alone: float | None) -> None:
    """Raises `SetupError` if `near` or `near_alone` cannot be the least cosine of a hit."""
    number("near", near, "a cosine", least=0, below=1)
    number("near_alone", near_alone, "a cosine", least=0, below=1, none="for one that suits the number of tools")
