"""Example queries of tools, in a file that people review: what `Catalog.enrich` takes.

A model or a person wrote them. Either way they are data, as a description is: cleaned, bounded, and left out where they
look hostile. An entry belongs to one state of a definition; when the definition changes, the entry is stale and is not
used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolsearch.catalog.sanitising import clean_text
from toolsearch.catalog.tools import Tool
from toolsearch.errors import SetupError

__all__ = ["QUERIES", "ExampleEntry", "Examples", "clean_queries", "digest_of", "seal_of"]

QUERIES = 10  # kept for each tool
CHARACTERS = 200  # of a query; a longer text is left out
_AROUND, _QUOTES = "*_ ,;", "\"'`“”‘’«»„"


@dataclass(frozen=True, slots=True)
class ExampleEntry:
    """The queries of one tool. `digest` belongs to the definition they were written for; with None, any will do.

    `by` and `date` say who wrote them and when. `seal` is a digest of the queries as they were written, so that an edit
    by hand shows.
    """

    tool: str
    queries: tuple[str, ...]
    digest: str | None = None
    by: str = ""
    date: str = ""
    seal: str | None = None

    @property
    def edited(self) -> bool:
        """Whether a person wrote the queries or changed them."""
        return self.seal is None or self.seal != seal_of(self.queries)


@dataclass(frozen=True)
class Examples:
    """Entries by tool id; `problems` has the reason for each tool that a model was asked about in vain."""

    entries: Mapping[str, ExampleEntry] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict, compare=False)

    def of(self, tool: Tool) -> tuple[str, ...]:
        """The queries for a tool; empty if it has no entry, or a stale one."""
        entry = self.entries.get(tool.id)
        return entry.queries if entry is not None and entry.digest in (None, digest_of(tool)) else ()

    def stale(self, tools: Iterable[Tool]) -> tuple[str, ...]:
        """The ids of the tools whose queries were written for another definition than theirs."""
        return tuple(
            t.id for t in tools if t.id in self.entries and self.entries[t.id].digest not in (None, digest_of(t))
        )

    def __len__(self) -> int:
        return len(self.entries)

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Examples:
        """From JSON Lines: {"tool": id, "queries": […]}, and perhaps "digest", "by", "date", "seal".

        Raises `SetupError` naming file and line. Queries that look hostile or cannot be used are left out.
        """
        path = Path(file)
        try:
            text = path.read_text("utf-8-sig")
        except FileNotFoundError:
            raise SetupError(f"there is no file {str(path)!r}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(f"the file {str(path)!r} cannot be read: {error}") from None
        entries: dict[str, ExampleEntry] = {}
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    entry = _read_entry(json.loads(line))
                except (ValueError, RecursionError) as error:
                    raise SetupError(f"line {number} of {str(path)!r} is not an entry: {error}") from None
                if entry.tool in entries:
                    raise SetupError(f"line {number} of {str(path)!r}: the tool {entry.tool!r} has an entry already")
                entries[entry.tool] = entry
        return cls(entries)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the entries in their order; the old file stays until the new one is complete."""
        path = Path(file)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_name(f"{path.name}.new")
            fresh.write_text("".join(map(_line, self.entries.values())), "utf-8", newline="\n")
            fresh.replace(path)
        except OSError as error:
            raise SetupError(f"the file {str(path)!r} cannot be written: {error.strerror}") from None


def clean_queries(texts: Iterable[object]) -> tuple[str, ...]:
    """Those queries that can be used, each once and on one line: not flagged, not too long, and with a word in them."""
    usable: dict[str, str] = {}
    for text in texts:
        if not isinstance(text, str) or len(text) > 4 * CHARACTERS:
            continue
        visible, flags = clean_text(text)
        query = " ".join(visible.split())
        while (inner := _bare(query)) != query:
            query = inner
        if not flags and len(query) <= CHARACTERS and sum(char.isalpha() for char in query) > 1:
            usable.setdefault(query.casefold(), query)
    return tuple(usable.values())[:QUERIES]


def _bare(query: str) -> str:
    """Without what stands around it, and then without one pair of quotes."""
    query = query.strip(_AROUND)
    if len(query) > 1 and query[0] in _QUOTES and query[-1] in _QUOTES and not set(_QUOTES) & set(query[1:-1]):
        return query[1:-1]
    return query


def _read_entry(line: object) -> ExampleEntry:
    if not isinstance(line, dict):
        raise ValueError("it is not a JSON object")
    tool_id, queries = line.get("tool"), line.get("queries")
    if not isinstance(tool_id, str) or not tool_id:
        raise ValueError(f'its "tool" must be the id of a tool, not {tool_id!r}')
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        raise ValueError(f'its "queries" must be a list of texts, not {queries!r}')
    for key in ("digest", "by", "date", "seal"):
        if not isinstance(line.get(key), str | None):
            raise ValueError(f'its "{key}" must be text, not {line[key]!r}')
    digest, by, date, seal = (line.get(key) for key in ("digest", "by", "date", "seal"))
    return ExampleEntry(tool_id, clean_queries(queries), digest, by or "", date or "", seal)


def _line(entry: ExampleEntry) -> str:
    fields = {"tool": entry.tool, "queries": list(entry.queries), "digest": entry.digest, "by": entry.by}
    fields |= {"date": entry.date, "seal": entry.seal}
    present = {key: value for key, value in fields.items() if value or key == "queries"}
    return json.dumps(present, ensure_ascii=False) + "\n"


def digest_of(tool: Tool) -> str:
    """A digest of what a model reads of the tool; who may use it, or how it is run, does not matter."""
    texts = [tool.name, tool.server, tool.title, tool.description, tool.input_schema]
    text = json.dumps(texts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def seal_of(queries: Sequence[str]) -> str:
    """A digest of queries as they were written; it shows whether somebody has changed them since."""
    return hashlib.sha256("\n".join(queries).encode("utf-8", "replace")).hexdigest()[:12]
