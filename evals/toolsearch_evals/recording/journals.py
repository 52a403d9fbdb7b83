"""Turns read from files: journals that a store keeps or a conversation exports, and lines that `record` wrote."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from toolsearch import SetupError, StateError
from toolsearch.layers import RecordedTurn, private, record
from toolsearch_evals.data.files import read_json, read_text

__all__ = ["read_turns"]

_SQLITE = b"SQLite format 3\0"
_ENDINGS = (".jsonl", ".json", ".ndjson", ".sqlite", ".sqlite3", ".db")
Facts = Sequence[Mapping[str, Any]]


def read_turns(files: Iterable[Path], redact: Callable[[str], str] = private) -> list[RecordedTurn]:
    """The turns of these files, and of all such files in folders, each text redacted.

    A file is the database of a `SqliteStore`, which is only read; JSON with the facts of a conversation, as
    `Conversation.export` gives them, or with a list of facts for each conversation id; lines of facts of one
    conversation; or lines that `record` wrote. Raises `SetupError`, naming the file, for anything else, and if there is
    no turn in any of them.
    """
    turns = [turn for file in _unfolded(files) for turn in _turns_of(file, redact)]
    if not turns:
        raise SetupError("there is no turn in these files: name journals, or files that `record` wrote")
    return turns


def _unfolded(files: Iterable[Path]) -> Iterator[Path]:
    for file in files:
        if not file.is_dir():
            yield file
            continue
        inside = sorted(each for each in file.iterdir() if each.suffix in _ENDINGS)
        if not inside:
            raise SetupError(f"the folder {str(file)!r} has no journal: no file that ends in {', '.join(_ENDINGS)}")
        yield from inside


def _turns_of(file: Path, redact: Callable[[str], str]) -> Iterator[RecordedTurn]:
    try:
        if _is_database(file):
            for conversation, facts in _database(file):
                yield from record.of(facts, conversation=conversation, redact=redact)
            return
        lines = _objects(file)
        if any("recorded" in line for line in lines):
            yield from (RecordedTurn.from_json(line).rewritten(redact) for line in lines)
            return
        for conversation, facts in _conversations(lines, file.stem):
            yield from record.of(facts, conversation=conversation, redact=redact)
    except StateError as error:
        raise SetupError(f"{str(file)!r} cannot be read as a journal: {error}") from None


def _is_database(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False  # what is wrong with the file is said when it is read


def _database(file: Path) -> Iterator[tuple[str, Facts]]:
    """The journals of a `SqliteStore`, read without changing the file."""
    try:
        connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
        try:
            rows = connection.execute("SELECT conversation, fact FROM facts ORDER BY conversation, position")
            for conversation, facts in groupby(rows, itemgetter(0)):
                yield str(conversation), [json.loads(fact) for _, fact in facts]
        finally:
            connection.close()
    except (sqlite3.Error, ValueError) as error:
        raise SetupError(f"{str(file)!r} is not the database of a SqliteStore: {error}") from None


def _objects(file: Path) -> list[dict[str, Any]]:
    """The objects of a file: one a line, or those of a JSON list; or one object."""
    text = read_text(file).lstrip()
    is_lines = file.suffix in (".jsonl", ".ndjson") and not text.startswith("[")
    read = _lines(file, text) if is_lines else read_json(file)
    objects = read if isinstance(read, list) else [read]
    if not all(isinstance(each, dict) for each in objects):
        raise SetupError(f"{str(file)!r} must hold JSON objects: facts of a journal, or turns that `record` wrote")
    return objects


def _lines(file: Path, text: str) -> list[Any]:
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise SetupError(f"{str(file)!r}, line {number}, is not valid JSON: {error}") from None
    return found


def _conversations(lines: Sequence[dict[str, Any]], name: str) -> Iterator[tuple[str, Facts]]:
    """The journals in objects that are facts, or that have a list of facts under each conversation's id."""
    if lines and all("fact" not in line for line in lines) and all(_holds_facts(line) for line in lines):
        for line in lines:
            yield from line.items()
    else:
        yield name, lines


def _holds_facts(line: Mapping[str, Any]) -> bool:
    return bool(line) and all(isinstance(facts, list) for facts in line.values())
