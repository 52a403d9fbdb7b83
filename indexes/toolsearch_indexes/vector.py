"""Search by meaning: the cosine between a query and each tool, exact, with any encoder.

A tool's vector is the mean of several of its texts (see `document.passages`). Everything is in memory: a matrix of
100,000 tools, 256 wide, is 100 MB.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from importlib.util import find_spec
from typing import TYPE_CHECKING

from toolsearch.catalog import Tool
from toolsearch.errors import MissingExtra, QueryError, SetupError
from toolsearch.protocols import Matched, Scored
from toolsearch.search import Fit
from toolsearch.search.confidence import PROBE, PROBED
from toolsearch.search.index import QUERY_CHARACTERS
from toolsearch.support.checks import number
from toolsearch_indexes.confidence import (
    DEPTH,
    NEIGHBOURS,
    Candidate,
    answer,
    fitted,
    placed,
    reachable,
    shared_signals,
    usual_cosine,
)
from toolsearch_indexes.document import PASSAGES, passages, texts
from toolsearch_indexes.encoders import Encoder, encoded, opened
from toolsearch_indexes.encoders.centered import NEUTRAL
from toolsearch_indexes.rows import Rows
from toolsearch_indexes.text import content_words, words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["NEAR", "TOOLS_AT_ONCE", "EncoderChanged", "ToolVectors", "VectorIndex", "alone", "check_bars", "meant"]

log = logging.getLogger("toolsearch")

NEAR = 0.1  # the cosine that counts as evidence; with .15, which keeps no more nonsense out, fitting tools are lost
# The same where the catalog knows no word of the query: what one senseless query in ten reaches among a thousand tools.
# The best of more grows with the logarithm of their number. Both measured on two catalogs with three encoders, from one
# tool to 2,000: .31 to .36, and .024 to .032.
NEAR_ALONE, GROWTH = 0.34, 0.028
TOOLS_AT_ONCE = 256  # encoded together
ENOUGH = 20  # tools tell how alike an encoder finds them
ALIKE = 0.7  # the mean cosine that is worth a warning. Of good encoders it is .1 to .4, of E5 as it is .8 and more
SHOWN = 40  # characters of a query in a match


class VectorIndex:
    """Exact search by meaning, in memory.

    `encoder` is a name from the entry points `toolsearch.encoders`, or an object. A tool is found from the cosine
    `near` on, and where the catalog knows no word of the query from `near_alone`; None is what one senseless query in
    ten reaches among so many tools, .34 for a thousand. The defaults suit encoders that give unrelated texts a cosine
    about 0; see `CenteredEncoder` for others. If an encoder fails during a search, the search has a problem instead of
    hits.
    """

    name = "vector"

    def __init__(
        self, encoder: str | Encoder = "static", *, near: float = NEAR, near_alone: float | None = None
    ) -> None:
        check_bars(near, near_alone)
        self._vectors = ToolVectors(encoder)
        self._near, self._near_alone = near, near_alone
        self._changes = threading.RLock()
        self._words: dict[str, frozenset[str]] = {}
        self._holders: Counter[str] = Counter()  # word -> tools

    def __len__(self) -> int:
        return len(self._vectors)

    def add(self, tools: Sequence[Tool]) -> None:
        with self._changes:
            self._vectors.add(tools)
            for tool in tools:
                self._know(tool.id, frozenset(word for text in texts(tool).values() for word in words(text)))

    def remove(self, ids: Sequence[str]) -> None:
        with self._changes:
            self._vectors.remove(ids)
            for tool_id in ids:
                self._know(tool_id, frozenset())

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        query = query[:QUERY_CHARACTERS]
        if not len(self._vectors) or not query.strip():
            return []
        ids, cosines = self._vectors.look([query], max(limit, NEIGHBOURS), among)
        asked = list(dict.fromkeys(content_words(query)))
        counts = {word: held for word in asked if (held := self._holders[word])}
        tools = len(self._words)
        searched = reachable(tools, among)
        near = self._near if counts else alone(self._near_alone, searched)
        close = dict(zip(ids, cosines[0].tolist(), strict=True))
        ranked = sorted((-cosine, i) for i, cosine in close.items() if cosine >= near and cosine > 0)
        usual, sense = usual_cosine(close.values()), (meant(query),)
        hits = [
            Candidate(
                i,
                -cosine,
                sense,
                {"cosine": -cosine, "height": -cosine - usual}
                | shared_signals(asked, counts, self._words.get(i, frozenset()), tools),
            )
            for cosine, i in ranked[: max(limit, DEPTH)]
        ]
        return answer(placed(hits, searched), limit, self._vectors.fit(self.name), searched)

    @property
    def encoder(self) -> Encoder:
        """What makes the vectors."""
        return self._vectors.encoder

    def _know(self, tool_id: str, new: frozenset[str]) -> None:
        for word in self._words.pop(tool_id, ()):
            self._holders[word] -= 1
            if not self._holders[word]:
                del self._holders[word]
        if new:
            self._words[tool_id] = new
            self._holders.update(new)


def meant(query: str) -> Matched:
    """That a tool is near to a query in meaning."""
    return Matched(query if len(query) <= SHOWN else query[: SHOWN - 1] + "…", ("meaning",))


def alone(given: float | None, tools: int) -> float:
    """The cosine that counts as evidence among so many tools where the catalog knows no word of the query."""
    return given if given is not None else NEAR_ALONE + GROWTH * math.log(max(tools, 1) / 1_000)


def check_bars(near: float, near_alone: float | None) -> None:
    """Raises `SetupError` where the least cosine of a hit, or that of one without a known word, can be none."""
    number("near", near, "a cosine", least=0, below=1)
    number("near_alone", near_alone, "a cosine", least=0, below=1, none="for one that suits the number of tools")


class EncoderChanged(SetupError):
    """The encoder is another one than that of the vectors there are, which no later try can mend."""


class ToolVectors:
    """The vectors of tools by id, which an encoder makes from their texts. What did not change is not encoded again."""

    def __init__(self, encoder: str | Encoder) -> None:
        if find_spec("numpy") is None:
            raise MissingExtra("search by meaning", "numpy", "vector")
        self.encoder = opened(encoder)
        self._rows: Rows | None = None
        self._made_by: tuple[str, int] | None = None  # name and width of the encoder of the rows
        self._digests: dict[str, bytes] = {}
        # By the encoder's name, which may change while there are no rows.
        self._probes: dict[str, tuple[float, ...]] = {}
        self._told: str | None = None  # of which encoder it was looked at how alike it finds tools
        self._changes = threading.RLock()

    def __len__(self) -> int:
        return len(self._digests)

    def fit(self, index: str) -> Fit | None:
        """What was fitted for an index with vectors like these. An encoder of an unknown name is probed, once."""
        name = self.encoder.name
        if (known := fitted(index, name)) is not None:
            return known
        if name not in self._probes:
            try:
                self._probes[name] = tuple(self._encoded([PROBE], query=True)[0][:PROBED].tolist())
            except Exception:  # it may answer the next time; a search goes on without
                return None
        return fitted(index, name, self._probes[name])

    def add(self, tools: Iterable[Tool]) -> None:
        """Encodes tools in batches, each searchable when it is done. Of those that fail no old vector is left."""
        with self._changes:
            new: dict[str, tuple[bytes, dict[str, str]]] = {}
            for tool in tools:
                told = passages(tool)
                new[tool.id] = hashlib.blake2b(repr(told).encode("utf-8", "replace"), digest_size=16).digest(), told
            todo = [tool_id for tool_id, (digest, _) in new.items() if self._digests.get(tool_id) != digest]
            for start in range(0, len(todo), TOOLS_AT_ONCE):
                batch = todo[start : start + TOOLS_AT_ONCE]
                try:
                    rows = self._means([new[tool_id][1] for tool_id in batch])
                except BaseException:
                    self.remove(todo[start:])
                    raise
                if self._rows is None:
                    self._rows = Rows(rows.shape[1])
                self._rows.put(batch, rows)
                self._digests.update((tool_id, new[tool_id][0]) for tool_id in batch)
                self._tell_alike(self._rows)

    def _tell_alike(self, rows: Rows) -> None:
        """Warns, once, of an encoder that finds any two texts alike. Tools may be so: then it is asked about others."""
        if len(rows) < ENOUGH or self._told == (name := self.encoder.name):
            return
        self._told = name
        mean = rows.mean()
        if float(mean @ mean) <= ALIKE:
            return
        try:
            mean = self._encoded(NEUTRAL).mean(axis=0)
        except Exception:  # the tools are encoded; what it lacks, if anything, is told with the next ones
            self._told = None
            return
        if (usual := float(mean @ mean)) > ALIKE:
            log.warning(
                "the encoder %r gives two texts about different things a cosine of %.2f on average, so meaning hardly "
                "tells tools apart: put toolsearch_indexes.encoders.centered.CenteredEncoder around it",
                name,
                usual,
            )

    def remove(self, ids: Iterable[str]) -> None:
        with self._changes:
            ids = list(ids)
            if self._rows is not None:
                self._rows.drop(ids)
            for tool_id in ids:
                self._digests.pop(tool_id, None)
            if not self._digests:
                self._rows = self._made_by = None

    def look(
        self, queries: Sequence[str], limit: int, among: AbstractSet[str] | None = None, also: Iterable[str] = ()
    ) -> tuple[list[str], NDArray[np.float64]]:
        """As `Rows.look`. `QueryError` where the encoder fails; why is in the log, as a model may read the error.

        An encoder that is another one now, or of which no tool has a vector because it is set up wrongly, is a
        `SetupError`.
        """
        rows = self._rows
        try:
            vectors = self._encoded(queries, query=True)
        except Exception as error:
            if isinstance(error, EncoderChanged) or (isinstance(error, SetupError) and self._made_by is None):
                raise
            log.warning("the encoder %r failed", self._made_by and self._made_by[0], exc_info=True)
            what = type(error).__name__
            raise QueryError(f"Search by meaning does not answer now ({what}). Try again, or name the tool.") from error
        if rows is None or rows.width != vectors.shape[1]:
            rows = Rows(vectors.shape[1])
        return rows.look(vectors, limit, among, also)

    def _means(self, told: Sequence[Mapping[str, str]]) -> NDArray[np.float32]:
        """A row of length 1 for each tool, the weighted mean of its texts; zeros where they have no direction."""
        import numpy as np

        places = {text: at for at, text in enumerate(dict.fromkeys(t for each in told for t in each.values()))}
        vectors = self._encoded(list(places))
        sums = np.zeros((len(told), vectors.shape[1]), np.float32)
        for at, each in enumerate(told):
            for kind, text in each.items():
                sums[at] += PASSAGES[kind] * vectors[places[text]]
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        unit: NDArray[np.float32] = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 1e-6)
        return unit

    def _encoded(self, of: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        name, width = self.encoder.name, self.encoder.width
        if self._made_by is not None and self._made_by != (name, width):
            before, numbers = self._made_by
            raise EncoderChanged(
                f"the index holds vectors of {numbers} numbers by {before!r}, the encoder is now {name!r} and gives "
                f"{width}: the two cannot be compared. Make a new index and add the tools again"
            )
        vectors = encoded(self.encoder, of, query=query)
        if not query:
            self._made_by = name, width
        return vectors
