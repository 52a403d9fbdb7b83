"""The whoosh engine: pure Python, the words and weights of `keyword`, in memory or in a folder.

Whoosh stores which tool holds which word, and the word's weight (`toolsearch_indexes.bm25f`); it neither analyses, nor
parses, nor ranks. It only ever sees memory: a folder holds a copy of its files with checksums
(`toolsearch_indexes.on_disk`). So a broken disk, another process or a truncated file can neither crash a search nor mix
two states.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from importlib import import_module
from typing import Any

from toolsearch.catalog import Tool
from toolsearch.errors import MissingExtra
from toolsearch.protocols import Scored
from toolsearch_indexes.bm25f import recipe
from toolsearch_indexes.fitted_confidence import DEPTH, count_searched, name_of
from toolsearch_indexes.on_disk import Folder
from toolsearch_indexes.postings import DictPostings
from toolsearch_indexes.query import read_query
from toolsearch_indexes.word_engine import Ranked, WordEngine, stored_words

try:
    with warnings.catch_warnings():
        # Its sources hold escapes such as "\S" in plain strings. Python warns when it compiles them for the first time,
        # and where warnings are errors the import would fail. So whatever of it is used is imported here, once.
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        import whoosh.columns
        import whoosh.fields
        import whoosh.filedb.filestore
        import whoosh.formats
        import whoosh.index
        import whoosh.reading
        import whoosh.writing

        # What it imports itself, but later.
        for _late in ("codec.whoosh3", "filedb.compound"):
            import_module(f"whoosh.{_late}")
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "whoosh":
        raise
    raise MissingExtra("the index 'whoosh'", "Whoosh", "whoosh") from None

__all__ = ["WhooshIndex"]

log = logging.getLogger("toolsearch")

FORMAT = 1
KEPT = 2_000_000  # entries of postings, a word in a tool each, that stay in memory between searches
# What is stored: other names could not be read any more.
_ENGINE = "whoosh"  # in the mark of a folder
_NAME = "tools"  # of the index, which its files begin with
_ID, _DIGEST, _FIELDS, _WORDS = "id", "digest", "fields", "words"


class WhooshIndex(WordEngine["_View"]):
    """Fielded BM25 by whoosh, with evidence and the repair of spelling as `keyword` has them.

    In memory, or in a folder that holds one catalog's tools from one run to the next: a tool that has not changed is
    not written again. Processes may share the folder; a writer waits up to `lock_seconds` for another writer, then
    raises `SetupError`. A folder that is damaged, or was written by another version, is written anew from the tools
    that are added.
    """

    name = "whoosh"

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, lock_seconds: float = 5) -> None:
        self._schema = _schema()
        made_with = f"{FORMAT} {recipe()} {whoosh.versionstring()}"
        super().__init__(None if folder is None else Folder(folder, _ENGINE, made_with, lock_seconds=lock_seconds))

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        view = self._current()
        tools = len(view.places)
        postings = view.postings()
        searched = count_searched(tools, among)
        read = read_query(query, partial(view.holders, postings), tools, self._vocabulary, searched=searched)
        weights = read.finding
        top = postings.top(weights, max(limit, DEPTH), among, read.supporting) if weights else []
        return self._hits(read, (view.ranked(tool_id, score) for score, tool_id in top), tools, limit, among)

    def _load(self) -> _View:
        files = None if self._folder is None else self._folder.load()
        if not files:
            return self._empty()
        try:
            return _View(_Memory(files), self._schema, None)
        except Exception as error:  # files that are whole, but no index: whoosh raises whatever comes
            place = self._folder and str(self._folder.path)
            log.warning("the index in %r is made anew: %s: %s", place, type(error).__name__, error)
            return self._empty()

    def _empty(self) -> _View:
        storage = _Memory({})
        storage.create_index(self._schema, _NAME)
        return _View(storage, self._schema, None)

    def _commit(self, stale: Mapping[str, Tool], gone: Sequence[str]) -> _View:
        places = self._state.places
        storage = self._state.storage.copy()
        with tempfile.TemporaryDirectory(prefix="toolsearch-", ignore_cleanup_errors=True) as scratch:
            storage.scratch = scratch
            _write(storage, self._schema, [places[i] for i in (*gone, *stale) if i in places], stale.values())
        view = _View(storage, self._schema, self._state)
        if self._folder is not None:
            self._folder.save(storage.files)
        return view


class _View:
    """One state of the index, ready to be searched.

    Whoosh's own search steps from tool to tool through all words at once, in Python: 7 ms at 10,000 tools. Here the
    tools that hold a word are read when the word is first searched for, and kept. Whoosh's segments never change, so
    views share what they read of them.
    """

    def __init__(self, storage: _Memory, schema: Any, before: _View | None) -> None:
        self.storage = storage
        self._reader: Any = whoosh.index.FileIndex(storage, schema=schema, indexname=_NAME).reader()
        self._reading = threading.Lock()  # a reader keeps places in its files
        self._ids: list[str] = []  # by the number of the document; those of removed tools too
        self.places: dict[str, int] = {}
        self.digests: dict[str, str] = {}
        self._segments: dict[str, tuple[list[str], list[str]]] = {}  # segment -> the ids and the digests in it
        for leaf, base in self._reader.leaf_readers():
            if not leaf.doc_count_all():
                continue
            segment = leaf.segment().segment_id()
            known = before._segments.get(segment) if before is not None else None
            ids, digests = known or (_column(leaf, _ID), _column(leaf, _DIGEST))
            self._segments[segment] = ids, digests
            self._ids += ids
            for at, tool_id in enumerate(ids):
                if not leaf.is_deleted(at):
                    self.places[tool_id] = base + at
                    self.digests[tool_id] = digests[at]
        self._postings, self._kept = DictPostings(), 0

    def words(self, letter: str) -> list[str]:
        """The words that begin with a letter; those of removed tools may be among them."""
        with self._reading:
            return [word.decode() for word in self._reader.expand_prefix(_WORDS, letter)]

    def postings(self) -> DictPostings:
        """The postings read so far, or new ones if they have become too many; one search uses the same throughout."""
        with self._reading:
            if self._kept > KEPT:
                self._postings, self._kept = DictPostings(), 0
            return self._postings

    def holders(self, postings: DictPostings, word: str) -> int:
        """How many tools hold a word. Which ones is read when the word is first searched for, and kept."""
        with self._reading:
            if word not in postings.words and (_WORDS, word) in self._reader:
                holders: dict[str, float] = {}
                matcher = self._reader.postings(_WORDS, word)
                while matcher.is_active():
                    holders[self._ids[matcher.id()]] = matcher.weight()
                    matcher.next()
                if holders:
                    postings.put(word, holders)
                    self._kept += len(holders)
            return len(postings.words.get(word, ()))

    def ranked(self, tool_id: str, score: float) -> Ranked:
        """A tool with the words that are stored with it."""
        with self._reading:
            fields = self._reader.stored_fields(self.places[tool_id])[_FIELDS]
        return Ranked(tool_id, score, fields, name_of(fields))


class _Memory(whoosh.filedb.filestore.RamStorage):  # type: ignore[misc]  # untyped
    """Whoosh's storage in memory. Whoosh itself would sort in one folder for all indexes of a machine."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__()
        self.files: dict[str, bytes] = files
        self.scratch = ""

    def copy(self) -> _Memory:
        return _Memory(dict(self.files))

    def temp_storage(self, name: str | None = None) -> Any:
        return whoosh.filedb.filestore.FileStorage(self.scratch).create()


class _Impacts(whoosh.formats.Format):  # type: ignore[misc]  # untyped
    """How words are stored: each comes with its weight in the tool, and a posting holds nothing else."""

    posting_size = 0

    def word_values(self, value: Any, analyzer: Any, **kwargs: Any) -> Iterator[tuple[str, int, float, bytes]]:
        return ((word, 1, impact, b"") for word, impact in value)


def _schema() -> Any:
    fields = whoosh.fields
    column = whoosh.columns.VarBytesColumn()
    # Whoosh stores the schema too, with the name of our class `_Impacts`. It is never read back: every index is opened
    # with this schema.
    return fields.Schema(
        **{
            _ID: fields.COLUMN(column),
            _DIGEST: fields.COLUMN(column),
            _FIELDS: fields.STORED(),
            _WORDS: fields.FieldType(format=_Impacts(), analyzer=None),
        }
    )


def _write(storage: _Memory, schema: Any, places: list[int], tools: Iterable[Tool]) -> None:
    """Removes the documents at these places and adds the tools, in one step."""
    writer = whoosh.index.FileIndex(storage, schema=schema, indexname=_NAME).writer()
    try:
        for place in places:
            writer.delete_document(place)
        for tool in tools:
            words = stored_words(tool)
            writer.add_document(
                **{
                    _ID: tool.id.encode(),
                    _DIGEST: tool.searched_digest.encode(),
                    _FIELDS: {word: stored.fields for word, stored in words.items()},
                    _WORDS: sorted((word, stored.impact) for word, stored in words.items()),
                }
            )
        writer.commit(mergetype=_merge)
    except BaseException:
        if not writer.is_closed:
            writer.cancel()
        raise


def _merge(writer: Any, segments: list[Any]) -> list[Any]:
    """Whoosh's own policy, which merges small segments, after rewriting those with many removed tools."""
    kept = []
    for segment in segments:
        if segment.deleted_count() * 4 <= segment.doc_count_all():
            kept.append(segment)
        elif segment.deleted_count() < segment.doc_count_all():
            reader = whoosh.reading.SegmentReader(writer.storage, writer.schema, segment)
            writer.add_reader(reader)
            reader.close()
    merged: list[Any] = whoosh.writing.MERGE_SMALL(writer, kept)
    return merged


def _column(leaf: Any, name: str) -> list[str]:
    column = leaf.column_reader(name, translate=False)
    return [column[at].decode() for at in range(leaf.doc_count_all())]
