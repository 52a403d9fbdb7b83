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
from toolsearch_indexes.document import PASSAGES, passages, texts
from toolsearch_indexes.encoders import Encoder, as_encoder, encoded
from toolsearch_indexes.encoders.centered import NEUTRAL
from toolsearch_indexes.fitted_confidence import (
    DEPTH,
    NEIGHBOURS,
    Candidate,
    add_rank_signals,
    count_searched,
    shared_signals,
    shipped_fit,
    usual_cosine,
    with_confidence,
)
from toolsearch_indexes.text import content_words, words
from toolsearch_indexes.vectors import VectorMatrix

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "NEAR",
    "TOOLS_AT_ONCE",
    "EncoderChanged",
    "ToolVectors",
    "VectorIndex",
    "check_bars",
    "least_cosine_alone",
    "meaning_match",
]

log = logging.getLogger("toolsearch")

NEAR = 0.1  # the cosine that counts as evidence; 0.15 keeps no more nonsense out, and loses tools that fit
# The same where the catalog knows no word of the query: what one senseless query in ten reaches among a thousand tools.
# The best cosine grows with the logarithm of the number of tools. Both were measured on two catalogs with three
# encoders, from one tool to 2,000: 0.31 to 0.36, and 0.024 to 0.032.
NEAR_ALONE, GROWTH = 0.34, 0.028
TOOLS_AT_ONCE = 256  # encoded together
ENOUGH = 20  # tools: from so many one can see how alike an encoder finds any two texts
ALIKE = 0.7  # the mean cosine that is worth a warning; good encoders have 0.1 to 0.4, E5 as it is has 0.8 and more
SHOWN = 40  # characters of a query in a match


class VectorIndex:
    """Exact search by meaning, in memory.

    `encoder` is a name from the entry points `toolsearch.encoders`, or an object. A tool is found if its cosine is at
    least `near`, or at least `near_alone` where the catalog knows no word of the query. None for `near_alone` is what
    one senseless query in ten reaches among as many tools as are searched: 0.34 for a thousand. The defaults suit
    encoders that give unrelated texts a cosine about 0; see `CenteredEncoder` for others. If an encoder fails during a
    search, the search has a problem instead of hits.
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}(tools={len(self._vectors)}, encoder={self.encoder!r})"

    def __len__(self) -> int:
        return len(self._vectors)

    def add(self, tools: Sequence[Tool]) -> None:
        with self._changes:
            self._vectors.add(tools)
            for tool in tools:
                self._set_words(tool.id, frozenset(word for text in texts(tool).values() for word in words(text)))

    def remove(self, ids: Sequence[str]) -> None:
        with self._changes:
            self._vectors.remove(ids)
            for tool_id in ids:
                self._set_words(tool_id, frozenset())

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        query = query[:QUERY_CHARACTERS]
        if not len(self._vectors) or not query.strip():
            return []
        ids, cosines = self._vectors.find_nearest([query], max(limit, NEIGHBOURS), among)
        query_words = list(dict.fromkeys(content_words(query)))
        counts = {word: holders for word in query_words if (holders := self._holders[word])}
        tools = len(self._words)
        searched = count_searched(tools, among)
        near = self._near if counts else least_cosine_alone(self._near_alone, searched)
        close = dict(zip(ids, cosines[0].tolist(), strict=True))
        ranked = sorted((-cosine, i) for i, cosine in close.items() if cosine >= near and cosine > 0)
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
        ]
        return with_confidence(add_rank_signals(hits, searched), limit, self._vectors.fit(self.name), searched)

    @property
    def encoder(self) -> Encoder:
        """What makes the vectors."""
        return self._vectors.encoder

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


class EncoderChanged(SetupError):
    """The encoder is not the one that made the vectors of this index; trying again cannot help."""


class ToolVectors:
    """The vectors of tools by id, which an encoder makes from their texts. An unchanged tool is not encoded again."""

    def __init__(self, encoder: str | Encoder) -> None:
        if find_spec("numpy") is None:
            raise MissingExtra("search by meaning", "numpy", "vector")
        self.encoder = as_encoder(encoder)
        self._rows: VectorMatrix | None = None
        self._made_by: tuple[str, int] | None = None  # name and width of the encoder of the rows
        self._digests: dict[str, bytes] = {}
        # By the encoder's name, which may change while there are no rows.
        self._probes: dict[str, tuple[float, ...]] = {}
        self._looked_at: str | None = None  # the encoder that was last checked for finding any two texts alike
        self._changes = threading.RLock()

    def __len__(self) -> int:
        return len(self._digests)

    def fit(self, index: str) -> Fit | None:
        """The fit for an index with these vectors. An encoder of an unknown name is recognised by a probe, once."""
        name = self.encoder.name
        if (known := shipped_fit(index, name)) is not None:
            return known
        if name not in self._probes:
            try:
                self._probes[name] = tuple(self._encode([PROBE], query=True)[0][:PROBED].tolist())
            except Exception:  # it may answer the next time; a search goes on without
                return None
        return shipped_fit(index, name, self._probes[name])

    def add(self, tools: Iterable[Tool]) -> None:
        """Encodes tools in batches, each searchable when it is done. If one fails, the rest keep no old vectors."""
        with self._changes:
            new: dict[str, tuple[bytes, dict[str, str]]] = {}
            for tool in tools:
                of_tool = passages(tool)
                digest = hashlib.blake2b(repr(of_tool).encode("utf-8", "replace"), digest_size=16).digest()
                new[tool.id] = digest, of_tool
            todo = [tool_id for tool_id, (digest, _) in new.items() if self._digests.get(tool_id) != digest]
            for start in range(0, len(todo), TOOLS_AT_ONCE):
                batch = todo[start : start + TOOLS_AT_ONCE]
                try:
                    rows = self._means([new[tool_id][1] for tool_id in batch])
                except BaseException:
                    self.remove(todo[start:])
                    raise
                if self._rows is None:
                    self._rows = VectorMatrix(rows.shape[1])
                self._rows.put(batch, rows)
                self._digests.update((tool_id, new[tool_id][0]) for tool_id in batch)
                self._warn_if_alike(self._rows)

    def _warn_if_alike(self, rows: VectorMatrix) -> None:
        """Warns once if the encoder finds any two texts alike. If the tools are alike, neutral texts decide."""
        if len(rows) < ENOUGH or self._looked_at == (name := self.encoder.name):
            return
        self._looked_at = name
        mean = rows.mean()
        if float(mean @ mean) <= ALIKE:
            return
        try:
            mean = self._encode(NEUTRAL).mean(axis=0)
        except Exception:  # the tools are encoded; the next ones show whether the encoder finds texts alike
            self._looked_at = None
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

    def find_nearest(
        self, queries: Sequence[str], limit: int, among: AbstractSet[str] | None = None, also: Iterable[str] = ()
    ) -> tuple[list[str], NDArray[np.float64]]:
        """As `VectorMatrix.find_nearest`.

        Raises `QueryError` if the encoder fails; the reason is only logged, as a model may read the error. Raises
        `SetupError` if the encoder has changed, or no tool has a vector because it is set up wrongly.
        """
        rows = self._rows
        try:
            vectors = self._encode(queries, query=True)
        except Exception as error:
            if isinstance(error, EncoderChanged) or (isinstance(error, SetupError) and self._made_by is None):
                raise
            log.warning("the encoder %r failed", self._made_by and self._made_by[0], exc_info=True)
            what = type(error).__name__
            raise QueryError(f"Search by meaning does not answer now ({what}). Try again, or name the tool.") from error
        if rows is None or rows.width != vectors.shape[1]:
            rows = VectorMatrix(vectors.shape[1])
        return rows.find_nearest(vectors, limit, among, also)

    def _means(self, tools: Sequence[Mapping[str, str]]) -> NDArray[np.float32]:
        """A row of length 1 for each tool, the weighted mean of its passages; zeros if they have no direction."""
        import numpy as np

        places = {text: at for at, text in enumerate(dict.fromkeys(t for each in tools for t in each.values()))}
        vectors = self._encode(list(places))
        sums = np.zeros((len(tools), vectors.shape[1]), np.float32)
        for at, each in enumerate(tools):
            for kind, text in each.items():
                sums[at] += PASSAGES[kind] * vectors[places[text]]
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        unit: NDArray[np.float32] = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 1e-6)
        return unit

    def _encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        name, width = self.encoder.name, self.encoder.width
        if self._made_by is not None and self._made_by != (name, width):
            before, numbers = self._made_by
            raise EncoderChanged(
                f"the index holds vectors of {numbers} numbers by {before!r}, the encoder is now {name!r} and gives "
                f"{width}: the two cannot be compared. Make a new index and add the tools again"
            )
        vectors = encoded(self.encoder, texts, query=query)
        if not query:
            self._made_by = name, width
        return vectors
