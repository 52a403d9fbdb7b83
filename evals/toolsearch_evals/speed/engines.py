"""What is timed: our indexes as a session uses them, and published engines as their own manuals show.

The published engines get name, description, server and argument texts as one text, and rank by their own BM25. The
package of an engine is imported when the engine starts, which raises `ImportError` if it is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, process_time
from typing import Any, Protocol, runtime_checkable

from toolsearch import Catalog, Tool, find
from toolsearch.schemas.argument_texts import argument_texts
from toolsearch_evals.backends import open_backend

__all__ = ["LIMIT", "PUBLISHED_ENGINES", "ChangingEngine", "Engine", "IndexEngine", "milliseconds", "open_engine"]

LIMIT = 5  # tools asked for
VECTORS = ("vector", "faiss")  # whose search is one product of vectors, so that it can be compared with NumPy's


class Engine(Protocol):
    """A search engine over tools. `build` starts anew; `search` asks for the best `LIMIT`."""

    def build(self, tools: Sequence[Tool]) -> None: ...
    def search(self, query: str) -> object: ...


@runtime_checkable
class ChangingEngine(Engine, Protocol):
    """An engine that can add and remove one tool without a new build."""

    def add(self, tool: Tool) -> None: ...
    def remove(self, tool: Tool) -> None: ...


def milliseconds(work: Callable[[Any], object], given: Any) -> float:
    """Wall-clock time of one call."""
    began = perf_counter()
    work(given)
    return 1_000 * (perf_counter() - began)


class IndexEngine:
    """One of our indexes by notation, through `find`: exact names, ties, checks and limits included."""

    def __init__(self, notation: str) -> None:
        name, _, encoding = notation.partition(":")
        self._notation = f"{name}:{encoding or 'static'}" if name in VECTORS else notation
        self._compared = name in VECTORS
        self._encoder: _KnownVectors | None = None

    def prepare(self, tools: Sequence[Tool]) -> None:
        """Makes the catalog, whose time and memory do not count for the index."""
        self.catalog = Catalog(tools)

    def build(self, tools: Sequence[Tool]) -> None:
        self.index = open_backend(self._notation, self._known)
        self.index.add(tools)

    def search(self, query: str) -> object:
        return find(self.catalog, self.index, query, LIMIT)

    def add(self, tool: Tool) -> None:
        self.catalog.add(tool)
        self.index.add([tool])

    def remove(self, tool: Tool) -> None:
        self.catalog.remove(tool.id)
        self.index.remove([tool.id])

    def beside_numpy(self, texts: Sequence[str]) -> dict[str, Any] | None:
        """Processor milliseconds of a search whose vector is known, and of NumPy's product of the same shape."""
        if self._encoder is None or not self._compared:
            return None
        import numpy as np

        encoder = self._encoder
        encoder.known = dict(zip(texts, encoder.encode(texts, query=True), strict=True))
        matrix = np.random.default_rng(0).standard_normal((len(self.catalog), encoder.width), dtype=np.float32)
        took = {"search": 0.0, "product": 0.0}
        for text in texts:
            vector = encoder.known[text]
            began = process_time()
            self.index.search(text, LIMIT)
            middle = process_time()
            np.matmul(matrix, vector)
            took["search"] += middle - began
            took["product"] += process_time() - middle
        each = {key: 1_000 * seconds / len(texts) for key, seconds in took.items()}
        kind = "faiss" if getattr(self.index, "is_approximate", False) else "exact"
        return {"kind": kind, "width": encoder.width, **each}

    def _known(self, encoder: Any) -> Any:
        self._encoder = _KnownVectors(encoder)
        return self._encoder


class _KnownVectors:
    """An encoder around another that looks up the vectors in `known`."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.known: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        return str(self._inner.name)

    @property
    def width(self) -> int:
        return int(self._inner.width)

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
        if query and self.known and all(text in self.known for text in texts):
            import numpy as np

            return np.stack([self.known[text] for text in texts])
        return self._inner.encode(texts, query=query)


class _Bm25s:
    """bm25s (NumPy) with its own tokenizer and English stop words."""

    def build(self, tools: Sequence[Tool]) -> None:
        import bm25s

        self._package = bm25s
        self._index = bm25s.BM25()
        self._index.index(self._tokens([text_of(each) for each in tools]), show_progress=False)
        self._most = min(LIMIT, len(tools))

    def search(self, query: str) -> object:
        return self._index.retrieve(self._tokens([query]), k=self._most, show_progress=False)

    def _tokens(self, texts: list[str]) -> Any:
        return self._package.tokenize(texts, stopwords="en", show_progress=False)


class _RankBm25:
    """rank-bm25 (Okapi) over words in lower case."""

    def build(self, tools: Sequence[Tool]) -> None:
        import rank_bm25

        self._tools = list(tools)
        self._index = rank_bm25.BM25Okapi([text_of(each).lower().split() for each in tools])

    def search(self, query: str) -> object:
        return self._index.get_top_n(query.lower().split(), self._tools, n=LIMIT)


class _Whoosh:
    """Whoosh in memory, as its quick start does it: one TEXT field, any of the words, its own BM25F."""

    def build(self, tools: Sequence[Tool]) -> None:
        from whoosh.fields import ID, TEXT, Schema
        from whoosh.filedb.filestore import RamStorage
        from whoosh.qparser import OrGroup, QueryParser

        schema = Schema(id=ID(unique=True, stored=True), text=TEXT)
        self._index = RamStorage().create_index(schema)
        self._parser = QueryParser("text", schema, group=OrGroup)  # pyright: ignore[reportArgumentType]
        self._write(tools, [])

    def search(self, query: str) -> object:
        asked = self._parser.parse(" ".join(words_of(query)))
        return [hit["id"] for hit in self._searcher.search(asked, limit=LIMIT)]

    def add(self, tool: Tool) -> None:
        self._write([tool], [])

    def remove(self, tool: Tool) -> None:
        self._write([], [tool.id])

    def _write(self, tools: Sequence[Tool], gone: Sequence[str]) -> None:
        writer = self._index.writer()
        for each in tools:
            writer.add_document(id=each.id, text=text_of(each))
        for tool_id in gone:
            writer.delete_by_term("id", tool_id)
        writer.commit()
        self._searcher = self._index.searcher()


class _Tantivy:
    """tantivy in memory with its default tokenizer and BM25, written by one thread."""

    def build(self, tools: Sequence[Tool]) -> None:
        import tantivy

        self._document = tantivy.Document
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw")
        builder.add_text_field("text")
        self._index = tantivy.Index(builder.build())
        self._writer = self._index.writer(num_threads=1)
        for each in tools:
            self._writer.add_document(self._document(id=each.id, text=text_of(each)))
        self._commit()

    def search(self, query: str) -> object:
        asked = self._index.parse_query(" ".join(words_of(query)), ["text"])
        return [self._searcher.doc(place)["id"] for _, place in self._searcher.search(asked, LIMIT).hits]

    def add(self, tool: Tool) -> None:
        self._writer.add_document(self._document(id=tool.id, text=text_of(tool)))
        self._commit()

    def remove(self, tool: Tool) -> None:
        self._writer.delete_documents_by_term("id", tool.id)
        self._commit()

    def _commit(self) -> None:
        self._writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()


class _Sqlite:
    """SQLite's FTS5 in memory, any of the words, ranked by its BM25."""

    def build(self, tools: Sequence[Tool]) -> None:
        import sqlite3

        self._base = sqlite3.connect(":memory:")
        try:
            self._base.execute("CREATE VIRTUAL TABLE tools USING fts5(id UNINDEXED, text)")
        except sqlite3.OperationalError as error:
            raise ImportError(f"this SQLite has no FTS5: {error}") from None
        self._rows: dict[str, int] = {}
        with self._base:
            for each in tools:
                self.add(each)

    def search(self, query: str) -> object:
        asked = " OR ".join(f'"{word}"' for word in words_of(query)) or '""'
        select = "SELECT id FROM tools WHERE tools MATCH ? ORDER BY rank LIMIT ?"
        return self._base.execute(select, (asked, LIMIT)).fetchall()

    def add(self, tool: Tool) -> None:
        done = self._base.execute("INSERT INTO tools (id, text) VALUES (?, ?)", (tool.id, text_of(tool)))
        self._rows[tool.id] = done.lastrowid or 0

    def remove(self, tool: Tool) -> None:
        self._base.execute("DELETE FROM tools WHERE rowid = ?", (self._rows.pop(tool.id),))


# By name: the engine, and the name of our index that is built on the same package.
PUBLISHED_ENGINES: dict[str, tuple[Callable[[], Engine], str]] = {
    "bm25s": (_Bm25s, ""),
    "rank-bm25": (_RankBm25, ""),
    "sqlite fts5": (_Sqlite, ""),
    "whoosh itself": (_Whoosh, "whoosh"),
    "tantivy itself": (_Tantivy, "tantivy"),
}


def open_engine(name: str) -> Engine:
    """A published engine by its name in `PUBLISHED_ENGINES`, or one of our indexes by notation."""
    return PUBLISHED_ENGINES[name][0]() if name in PUBLISHED_ENGINES else IndexEngine(name)


def words_of(query: str) -> list[str]:
    """The words of a query in lower case, so that none is an operator of an engine's query language."""
    return re.findall(r"\w+", _spaced(query).lower())


def text_of(tool: Tool) -> str:
    """The whole of a tool as one text, for engines without fields."""
    names, texts = argument_texts(tool.input_schema)
    return " ".join([_spaced(tool.name), tool.description, tool.server or "", *names, *texts])


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_./-]+", " ", name)
