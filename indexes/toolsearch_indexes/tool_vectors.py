"""The vectors of tools: made from their texts by an encoder, each text once, and found again by id.

An encoder may fail for one text and be right for all others: it raises, or gives values that are not finite. Such a
tool is refused, and the others are encoded. Whether a tool is at fault or the encoder, a text that has nothing to do
with any tool decides.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from toolsearch.catalog import Tool
from toolsearch.errors import MissingExtra, QueryError, SetupError
from toolsearch.search import Fit
from toolsearch.search.confidence import PROBE, PROBED
from toolsearch.support.bounded_cache import BoundedCache
from toolsearch.support.checks import whole
from toolsearch.support.threads import after_fork
from toolsearch_indexes.document import PASSAGES, kept, passages
from toolsearch_indexes.encoders import Encoder, EncoderError, OutputError, as_encoder, encoded, not_finite, unit_rows
from toolsearch_indexes.encoders.centered import NEUTRAL
from toolsearch_indexes.faiss_matrix import APPROXIMATE_FROM, FaissMatrix
from toolsearch_indexes.fitted_confidence import shipped_fit
from toolsearch_indexes.vectors import VectorMatrix

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["TOOLS_AT_ONCE", "EncoderChanged", "Refusals", "ToolVectors"]

log = logging.getLogger("toolsearch")

TOOLS_AT_ONCE = 256  # encoded together
QUERIES_KEPT = 256  # vectors: `find` may search for the same text again, to look behind like tools
ENOUGH = 20  # tools: from so many one can see how alike an encoder finds any two texts
ALIKE = 0.7  # the mean cosine that is worth a warning; good encoders have 0.1 to 0.4, E5 as it is has 0.8 and more

Passages = Mapping[str, str]  # the texts of one tool; see `document.passages`
Refusals = dict[str, Exception]  # tools that the encoder cannot take, by id, and why


class EncoderChanged(SetupError):
    """The encoder is not the one that made the vectors of this index; trying again cannot help."""


class ToolVectors:
    """The vectors of tools by id, which an encoder makes from their texts. An unchanged tool is not encoded again.

    From `approximate_from` tools on, faiss finds the nearest, if it is installed; None: it never does.
    """

    def __init__(self, encoder: str | Encoder, approximate_from: int | None = APPROXIMATE_FROM) -> None:
        whole("approximate_from", approximate_from, none="for exact search in any catalog")
        if find_spec("numpy") is None:
            raise MissingExtra("search by meaning", "numpy", "vector")
        self.encoder = as_encoder(encoder)
        self._approximate_from = approximate_from
        self._rows: VectorMatrix | None = None
        self._made_by: tuple[str, int] | None = None  # name and width of the encoder of the rows
        self._digests: dict[str, bytes] = {}
        # By the encoder's name, which may change while there are no rows.
        self._probes: dict[str, tuple[float, ...]] = {}
        self._queries: BoundedCache[NDArray[np.float32]] = BoundedCache(QUERIES_KEPT)  # by encoder and text
        self._looked_at: str | None = None  # the encoder that was last checked for finding any two texts alike
        self._renew_locks()
        after_fork(self, ToolVectors._renew_locks)

    def _renew_locks(self) -> None:
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

    def add(self, tools: Iterable[Tool], *, answers: bool = False) -> Refusals:
        """Encodes tools in batches, each searchable when it is done. Returns the tools that the encoder refuses.

        `answers`: the encoder is known to work, so that what it fails for is at fault. Refused tools have
        no vector any more. If the encoder fails for a neutral text too, or gives no tool an array of the right shape,
        its error is raised, and the rest of the tools keep no old vectors.
        """
        with self._changes:
            new: dict[str, tuple[bytes, Passages]] = {}
            shares: dict[str, float] = {}
            for tool in tools:
                of_tool, share = passages(tool), kept(tool, "meaning")
                told = of_tool if share == 1 else (of_tool, share)  # rows of tools without examples stay as stored
                digest = hashlib.blake2b(repr(told).encode("utf-8", "replace"), digest_size=16).digest()
                new[tool.id], shares[tool.id] = (digest, of_tool), share
            todo = [tool_id for tool_id, (digest, _) in new.items() if self._digests.get(tool_id) != digest]
            refused: Refusals = {}
            for start in range(0, len(todo), TOOLS_AT_ONCE):
                batch = todo[start : start + TOOLS_AT_ONCE]
                try:
                    rows, bad = self._means({tool_id: new[tool_id][1] for tool_id in batch}, answers)
                except BaseException:
                    self.remove(todo[start:])
                    raise
                self._put({i: row * shares[i] for i, row in rows.items()}, {i: new[i][0] for i in rows})
                if bad:
                    self.remove(bad)
                refused |= bad
            for error in refused.values():
                if not self._digests and isinstance(error, OutputError):
                    raise error
            return refused

    def _put(self, rows: Mapping[str, NDArray[np.float32]], digests: Mapping[str, bytes]) -> None:
        if not rows:
            return
        import numpy as np

        matrix = np.stack(list(rows.values()))
        if self._rows is None:
            self._rows = self._matrix(matrix.shape[1])
        self._made_by = self.encoder.name, matrix.shape[1]
        self._rows.put(list(rows), matrix)
        self._digests.update(digests)
        self._warn_if_alike(self._rows)

    def _matrix(self, width: int) -> VectorMatrix:
        """An empty matrix: one that faiss helps to search, if it is installed and wanted."""
        if self._approximate_from is None or find_spec("faiss") is None:
            return VectorMatrix(width)
        return FaissMatrix(width, self._approximate_from)

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

    @property
    def is_approximate(self) -> bool:
        """Whether the nearest tools are found by faiss now, which may miss some."""
        return self._rows is not None and self._rows.is_approximate

    def refresh(self) -> None:
        """Lets faiss take note of changes, in the background; for the end of a change, however many steps it had."""
        if (rows := self._rows) is not None:
            rows.refresh()

    def find_nearest(
        self, queries: Sequence[str], limit: int, among: AbstractSet[str] | None = None, also: Iterable[str] = ()
    ) -> tuple[list[str], NDArray[np.float64]]:
        """As `VectorMatrix.find_nearest`.

        Raises `QueryError` if the encoder fails; the reason is only logged, as a model may read the error. Raises
        `SetupError` if the encoder has changed, or no tool has a vector because it is set up wrongly.
        """
        rows = self._rows
        try:
            vectors = self._encode_queries(queries)
        except Exception as error:
            if isinstance(error, EncoderChanged):
                raise
            if isinstance(error, SetupError) and self._made_by is None and not self._answers():
                raise
            log.warning("the encoder %r failed", self.encoder.name, exc_info=True)
            what = type(error).__name__
            raise QueryError(f"Search by meaning does not answer now ({what}). Try again, or name the tool.") from error
        if rows is None or rows.width != vectors.shape[1]:
            rows = VectorMatrix(vectors.shape[1])
        return rows.find_nearest(vectors, limit, among, also)

    def prepare(self, queries: Sequence[str]) -> None:
        """Encodes queries together, which is quicker than one by one; an error shows when they are searched for."""
        with suppress(Exception):
            self._encode_queries(queries)

    def _encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """A row for each query. Those that were encoded lately are remembered."""
        import numpy as np

        self._check_encoder()
        made_by = self.encoder.name, self.encoder.width
        rows = {query: row for query in queries if (row := self._queries.get((made_by, query))) is not None}
        if new := [query for query in dict.fromkeys(queries) if query not in rows]:
            for query, row in zip(new, self._encode(new, query=True), strict=True):
                rows[query] = self._queries.put((made_by, query), row, 1)
        return np.stack([rows[query] for query in queries])

    def _means(self, tools: Mapping[str, Passages], answers: bool) -> tuple[dict[str, NDArray[np.float32]], Refusals]:
        """A row for each tool, and the tools that the encoder refuses.

        If it fails for several tools together, they are encoded in halves, so that one of them costs only itself.
        """
        try:
            return self._means_of_all(tools)
        except Exception as error:
            is_sure = answers and not isinstance(error, EncoderError | OSError)  # an endpoint may go at any time
            if isinstance(error, EncoderChanged) or not (is_sure or self._answers()):
                raise
            if len(tools) == 1:
                return {}, dict.fromkeys(tools, error)
        ids = list(tools)
        half = len(ids) // 2
        first, second = (self._means({i: tools[i] for i in some}, True) for some in (ids[:half], ids[half:]))
        return first[0] | second[0], first[1] | second[1]

    def _answers(self) -> bool:
        """Whether the encoder can encode a text that has nothing to do with the tools."""
        try:
            self._encode([PROBE])
        except Exception:
            return False
        return True

    def _means_of_all(self, tools: Mapping[str, Passages]) -> tuple[dict[str, NDArray[np.float32]], Refusals]:
        """A row of length 1 for each tool, the weighted mean of its passages; zeros if they have no direction."""
        import numpy as np

        places = {
            text: at for at, text in enumerate(dict.fromkeys(t for each in tools.values() for t in each.values()))
        }
        vectors = self._encode(list(places), strict=False)
        bad = {text for text, at in places.items() if not np.isfinite(vectors[at]).all()}
        if len(bad) == len(places) > 0 and not self._answers():
            raise not_finite(self.encoder, next(iter(places)))
        refused: Refusals = {
            tool_id: not_finite(self.encoder, text)
            for tool_id, each in tools.items()
            for text in each.values()
            if text in bad
        }
        sums = np.zeros((len(tools), vectors.shape[1]), np.float32)
        for at, each in enumerate(tools.values()):
            for kind, text in each.items():
                sums[at] += PASSAGES[kind] * vectors[places[text]]
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        unit: NDArray[np.float32] = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 1e-6)
        return {tool_id: row for tool_id, row in zip(tools, unit, strict=True) if tool_id not in refused}, refused

    def _encode(self, texts: Sequence[str], *, query: bool = False, strict: bool = True) -> NDArray[np.float32]:
        """The rows of these texts. If `strict`, values that are not finite are an error."""
        self._check_encoder()
        return (encoded if strict else unit_rows)(self.encoder, texts, query=query)

    def _check_encoder(self) -> None:
        """Raises `EncoderChanged` if the vectors there are come from another encoder."""
        name, width = self.encoder.name, self.encoder.width
        if self._made_by is not None and self._made_by != (name, width):
            before, numbers = self._made_by
            raise EncoderChanged(
                f"the index holds vectors of {numbers} numbers by {before!r}, the encoder is now {name!r} and gives "
                f"{width}: the two cannot be compared. Make a new index and add the tools again"
            )
