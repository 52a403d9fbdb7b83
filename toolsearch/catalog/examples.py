"""Example queries of tools, in a file that people review: what `Catalog.enrich` takes.

Whatever wrote them, a model or a person, they are data like a description: cleaned, bounded, and left out where they
look hostile. An entry belongs to one state of a definition; when that changes, the entry is stale and is not used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolsearch.catalog.sanitising import clean_text
from toolsearch.catalog.tools import Tool
from toolsearch.errors import SetupError

__all__ = ["QUERIES", "Entry", "Examples", "cleaned", "digest_of", "seal_of"]

QUERIES = 10  # kept of a tool
CHARACTERS = 200  # of a query; a longer one is none
_AROUND, _QUOTES = "*_ ,;", "\"'`“”‘’«»„"


@dataclass(frozen=True, slots=True)
class Entry:
    """The queries of one tool. `digest` is of the definition they were written for, None where that does not matter.

    `by` and `date` say who wrote them and when, as given. `seal` is of the queries as they were written, so an edit by
    hand shows.
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
    """Entries by tool id; `problems` says of each tool that a model was asked about in vain what went wrong."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict, compare=False)

    def of(self, tool: Tool) -> tuple[str, ...]:
        """The queries for a tool; none where there is no entry, or a stale one."""
        entry = self.entries.get(tool.id)
        return entry.queries if entry is not None and entry.digest in (None, digest_of(tool)) else ()

    def stale(self, tools: Iterable[Tool]) -> tuple[str, ...]:
        """The ids of those of the tools whose definition is not the one their queries were written for."""
        return tuple(
            t.id for t in tools if t.id in self.entries and self.entries[t.id].digest not in (None, digest_of(t))
        )

    def __len__(self) -> int:
        return len(self.entries)

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Examples:
        """From JSON Lines: {"tool": id, "queries": […]}, and perhaps "digest", "by", "date", "seal".

        Raises `SetupError` naming file and line. Queries that look hostile or are no queries are left out.
        """
        path = Path(file)
        try:
            text = path.read_text("utf-8-sig")
        except FileNotFoundError:
            raise SetupError(f"there is no file {str(path)!r}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(f"the file {str(path)!r} cannot be read: {error}") from None
        entries: dict[str, Entry] = {}
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    entry = _entry(json.loads(line))
                except (ValueError, RecursionError) as error:
                    raise SetupError(f"line {number} of {str(path)!r} is no entry: {error}") from None
                if entry.tool in entries:
                    raise SetupError(f"line {number} of {str(path)!r}: the tool {entry.tool!r} has an entry already")
                entries[entry.tool] = entry
        return cls(entries)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the entries in the order they have; the old file stays until the new one is whole."""
        path = Path(file)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_name(f"{path.name}.new")
            fresh.write_text("".join(map(_line, self.entries.values())), "utf-8", newline="\n")
            fresh.replace(path)
        except OSError as error:
            raise SetupError(f"the file {str(path)!r} cannot be written: {error.strerror}") from None


def cleaned(texts: Iterable[Any]) -> tuple[str, ...]:
    """The usable ones of these queries, each once: on one line; none that is flagged, too long, or without a word."""
    kept: dict[str, str] = {}
    for text in texts:
        if not isinstance(text, str) or len(text) > 4 * CHARACTERS:
            continue
        clear, flags = clean_text(text)
        query = " ".join(clear.split())
        while (inner := _bare(query)) != query:
            query = inner
        if not flags and len(query) <= CHARACTERS and sum(char.isalpha() for char in query) > 1:
            kept.setdefault(query.casefold(), query)
    return tuple(kept.values())[:QUERIES]


def _bare(query: str) -> str:
    """Without what stands around it, and then without one pair of quotes."""
    query = query.strip(_AROUND)
    if len(query) > 1 and query[0] in _QUOTES and query[-1] in _QUOTES and not set(_QUOTES) & set(query[1:-1]):
        return query[1:-1]
    return query


def _entry(line: Any) -> Entry:
    if not isinstance(line, dict):
        raise ValueError("it is no JSON object")
    tool_id, told = line.get("tool"), line.get("queries")
    if not isinstance(tool_id, str) or not tool_id:
        raise ValueError(f'its "tool" must be the id of a tool, not {tool_id!r}')
    if not isinstance(told, list) or not all(isinstance(query, str) for query in told):
        raise ValueError(f'its "queries" must be a list of texts, not {told!r}')
    for key in ("digest", "by", "date", "seal"):
        if not isinstance(line.get(key), str | None):
            raise ValueError(f'its "{key}" must be text, not {line[key]!r}')
    return Entry(
        tool_id, cleaned(told), line.get("digest"), line.get("by") or "", line.get("date") or "", line.get("seal")
    )


def _line(entry: Entry) -> str:
    told = {"tool": entry.tool, "queries": list(entry.queries), "digest": entry.digest, "by": entry.by}
    told |= {"date": entry.date, "seal": entry.seal}
    return (
        json.dumps({key: value for key, value in told.items() if value or key == "queries"}, ensure_ascii=False) + "\n"
    )


def digest_of(tool: Tool) -> str:
    """Of what a model is told of the tool; who may use it, or how it is run, does not matter."""
    told = [tool.name, tool.server, tool.title, tool.description, tool.input_schema]
    return hashlib.sha256(json.dumps(told, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[
        :16
    ]


def seal_of(queries: Sequence[str]) -> str:
    """Of queries as they were written; it tells whether somebody has changed them since."""
    return hashlib.sha256("\n".join(queries).encode("utf-8", "replace")).hexdigest()[:12]
