"""The whoosh engine: pure Python, the words and weights of `keyword`, in memory or in a folder.

Whoosh keeps what tool holds which word, and its weight (`toolsearch_indexes.impacts`); it neither analyses, nor parses,
nor ranks. It only ever sees memory: a folder is a copy of the files with checksums (`toolsearch_indexes.folders`), so
a broken disk, another process or a file cut short can neither crash a search nor mix two states.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Any

from toolsearch.catalog import Tool
from toolsearch.errors import MissingExtra, SetupError
from toolsearch.protocols import Scored
from toolsearch_indexes.asked import read
from toolsearch_indexes.confidence import DEPTH, Candidate, WordSignals, answer, fitted, name_of, placed, reachable
from toolsearch_indexes.folders import Folder
from toolsearch_indexes.impacts import cut, impacts, recipe
from toolsearch_indexes.postings import DictPostings
from toolsearch_indexes.spelling import Vocabulary

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
RELEARNT = 1_000  # tools: after so many have come, their words are read from the index when they are needed
KEPT = 2_000_000  # times a word is in a tool that are kept in memory between searches
_NAME = "tools"


class WhooshIndex:
    """Fielded BM25 by whoosh, with evidence and the repair of spelling as `keyword` has them.

    In memory, or in a folder that holds one catalog's tools from one run to the next: a tool that has not changed is
    not written again. Processes may share the folder; a writer waits for another for at most `lock_seconds`, then
    `SetupError` is raised. A folder that is damaged, or written by another version, is made anew from what is added.
    """

    name = "whoosh"

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, lock_seconds: float = 5) -> None:
        self._folder = (
            None
            if folder is None
            else Folder(folder, "whoosh", f"{FORMAT} {recipe()} {whoosh.versionstring()}", lock_seconds=lock_seconds)
        )
        self._schema = _schema()
        self._tools: dict[str, Tool] = {}  # those added in this process, to make a lost index anew
        self._writing = threading.RLock()
        self._view = self._loaded()
        self._vocabulary = Vocabulary(self._known)

    def __len__(self) -> int:
        return len(self._current().places)

    def add(self, tools: Sequence[Tool]) -> None:
        with self._writing:
            added = {tool.id: tool for tool in tools}
            self._write(added, ())
            self._tools |= added

    def remove(self, ids: Sequence[str]) -> None:
        with self._writing:
            for tool_id in ids:
                self._tools.pop(tool_id, None)
            self._write({}, ids)

    def keep_only(self, ids: Iterable[str]) -> None:
        """Forgets all tools but these: what a folder still holds of tools that have left the catalog since."""
        with self._writing:
            self._refresh()
            self.remove(sorted(self._view.places.keys() - set(ids)))

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return self._current().search(query, limit, among, self._vocabulary)

    def _current(self) -> _View:
        if self._folder is not None and self._folder.changed():
            with self._writing:
                before = self._view
                try:
                    if self._refresh() and self._tools and not self._view.places:
                        self._write(dict(self._tools), ())  # it was lost, and this process can make it anew
                except (SetupError, OSError) as error:
                    self._view = before
                    log.warning("the index stays as it was read last: %s", error)
        return self._view

    def _refresh(self) -> bool:
        """Takes over what another process has written; says whether it has."""
        if self._folder is None or not self._folder.changed():
            return False
        self._view = self._loaded()
        self._vocabulary = Vocabulary(self._known)
        return True

    def _known(self, letter: str) -> Iterable[str]:
        return self._view.words(letter)  # of what is current when it is asked for

    def _loaded(self) -> _View:
        files = None if self._folder is None else self._folder.load()
        storage = _Memory(files or {})
        if not files:
            storage.create_index(self._schema, _NAME)
        return _View(storage, self._schema, None)

    def _write(self, added: dict[str, Tool], removed: Iterable[str]) -> None:
        if self._refresh():
            added = {**self._tools, **added}
        if not self._view.stale(added) and not any(i in self._view.places for i in removed):
            return
        with self._folder.writing() if self._folder is not None else nullcontext():
            if self._refresh():  # somebody has written while this process waited
                added = {**self._tools, **added}
            stale = self._view.stale(added)
            gone = [*(i for i in removed if i in self._view.places), *(i for i in stale if i in self._view.places)]
            if not stale and not gone:
                return
            storage = self._view.storage.copy()
            with tempfile.TemporaryDirectory(prefix="toolsearch-", ignore_cleanup_errors=True) as scratch:
                storage.scratch = scratch
                _commit(storage, self._schema, [self._view.places[i] for i in gone], stale.values())
            view = _View(storage, self._schema, self._view)
            if self._folder is not None:
                self._folder.save(storage.files)
            self._view = view
            if len(stale) > RELEARNT:
                self._vocabulary = Vocabulary(self._known)
            else:
                self._vocabulary.add(word for tool in stale.values() for word in impacts(tool)[0])


class _View:
    """One state of the index, ready to be searched.

    Whoosh's own search steps from tool to tool through all words at once, in Python: 7 ms at 10,000 tools. So the tools
    that hold a word are read when it is first asked for, and kept. Its segments never change: views share their ids.
    """

    def __init__(self, storage: _Memory, schema: Any, before: _View | None) -> None:
        self.storage = storage
        self._reader: Any = whoosh.index.FileIndex(storage, schema=schema, indexname=_NAME).reader()
        self._reading = threading.Lock()  # a reader keeps places in its files
        self._ids: list[str] = []  # by the number of the document; those of removed tools too
        self.places: dict[str, int] = {}
        self._digests: dict[str, str] = {}
        self._segments: dict[str, tuple[list[str], list[str]]] = {}
        for leaf, base in self._reader.leaf_readers():
            if not leaf.doc_count_all():
                continue
            held = leaf.segment().segment_id()
            known = before._segments.get(held) if before is not None else None
            ids, digests = known or (_column(leaf, "id"), _column(leaf, "digest"))
            self._segments[held] = ids, digests
            self._ids += ids
            for at, tool_id in enumerate(ids):
                if not leaf.is_deleted(at):
                    self.places[tool_id] = base + at
                    self._digests[tool_id] = digests[at]
        self._postings, self._kept = DictPostings(), 0

    def words(self, letter: str) -> list[str]:
        """The words that begin with a letter; those of removed tools may be among them."""
        with self._reading:
            return [word.decode() for word in self._reader.expand_prefix("words", letter)]

    def stale(self, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Those of the tools that this state does not hold as they are."""
        return {i: tool for i, tool in tools.items() if self._digests.get(i) != tool.searched_digest}

    def search(self, query: str, limit: int, among: AbstractSet[str] | None, vocabulary: Vocabulary) -> list[Scored]:
        with self._reading:
            if self._kept > KEPT:
                self._postings, self._kept = DictPostings(), 0
            postings = self._postings
        asked = read(query, partial(self._holders, postings), len(self.places), vocabulary)
        enough, weights = asked.enough, asked.all_weights
        say = WordSignals(asked, len(self.places))
        found = []
        for score, tool_id in postings.top(weights, max(limit, DEPTH), among) if weights else []:
            with self._reading:
                fields = self._reader.stored_fields(self.places[tool_id])["fields"]
            if held := asked.evidence(fields, enough):
                signals = say.of(fields, name_of(fields), score)
                found.append(Candidate(tool_id, score, asked.matched(held, fields), signals))
        searched = reachable(len(self.places), among)
        return answer(placed(found, searched), limit, fitted(WhooshIndex.name), searched)

    def _holders(self, postings: DictPostings, word: str) -> int:
        """How many tools hold a word; which they are is read when it is first asked for, and kept."""
        with self._reading:
            if word not in postings.words and ("words", word) in self._reader:
                holders: dict[str, float] = {}
                matcher = self._reader.postings("words", word)
                while matcher.is_active():
                    holders[self._ids[matcher.id()]] = matcher.weight()
                    matcher.next()
                if holders:
                    postings.put(word, holders)
                    self._kept += len(holders)
            return len(postings.words.get(word, ()))


class _Memory(whoosh.filedb.filestore.RamStorage):  # type: ignore[misc]  # untyped
    """Whoosh's storage in memory. Its own puts what it sorts into one folder for all indexes of a machine."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__()
        self.files: dict[str, bytes] = files
        self.scratch = ""

    def copy(self) -> _Memory:
        return _Memory(dict(self.files))

    def temp_storage(self, name: str | None = None) -> Any:
        return whoosh.filedb.filestore.FileStorage(self.scratch).create()


class _Impacts(whoosh.formats.Format):  # type: ignore[misc]  # untyped
    """How words are stored: a tool's words come with their weight, which is all there is to a posting."""

    posting_size = 0

    def word_values(self, value: Any, analyzer: Any, **kwargs: Any) -> Iterator[tuple[str, int, float, bytes]]:
        return ((word, 1, impact, b"") for word, impact in value)


def _schema() -> Any:
    fields = whoosh.fields
    column = whoosh.columns.VarBytesColumn()
    return fields.Schema(
        id=fields.COLUMN(column),
        digest=fields.COLUMN(column),
        fields=fields.STORED(),
        words=fields.FieldType(format=_Impacts(), analyzer=None),
    )


def _commit(storage: _Memory, schema: Any, gone: list[int], tools: Iterable[Tool]) -> None:
    """Takes documents out and puts tools in, in one step."""
    writer = whoosh.index.FileIndex(storage, schema=schema, indexname=_NAME).writer()
    try:
        for at in gone:
            writer.delete_document(at)
        for tool in tools:
            fields, of_tool = impacts(tool)
            words: dict[str, float] = {}  # two long words may be one when they are cut
            bits: dict[str, int] = {}
            for word, impact in of_tool.items():
                short = cut(word)
                words[short] = max(words.get(short, 0.0), impact)
                bits[short] = bits.get(short, 0) | fields[word]
            writer.add_document(
                id=tool.id.encode(), digest=tool.searched_digest.encode(), fields=bits, words=sorted(words.items())
            )
        writer.commit(mergetype=_tidy)
    except BaseException:
        if not writer.is_closed:
            writer.cancel()
        raise


def _tidy(writer: Any, segments: list[Any]) -> list[Any]:
    """Whoosh's own policy, which merges small segments; those that are mostly removed tools are written anew before."""
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
