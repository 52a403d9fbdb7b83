"""Files of what was recorded: journals in a database or as JSON, turns that `record` wrote, the log of a gateway.

What cannot be read is told, place by place, and the rest is read all the same; the caller may raise there instead.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from toolsearch import SetupError, StateError
from toolsearch.events.facts import Event
from toolsearch.events.journal import read_event
from toolsearch.layers import RecordedTurn
from toolsearch_evals.data.files import JsonObject

__all__ = ["Damaged", "Recorded", "check_turn", "read_recorded"]

_SQLITE = b"SQLite format 3\0"
_ENDINGS = (".jsonl", ".json", ".ndjson", ".log", ".sqlite", ".sqlite3", ".db")
_LINES = (".jsonl", ".ndjson", ".log")
_TURN = TypeAdapter(RecordedTurn)
Damaged: TypeAlias = Callable[[str], object]
"""Gets a sentence about what cannot be read, which names the file and the place."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one conversation left in a file. One of these is filled: the facts of its journal, turns, lines of a log."""

    file: Path
    conversation: str
    facts: Sequence[Event] = ()
    turns: Sequence[RecordedTurn] = ()
    log: Sequence[JsonObject] = ()


def read_recorded(files: Iterable[Path], damaged: Damaged) -> Iterator[Recorded]:
    """The conversations of these files, and of all such files in folders, in the order of the files.

    A file is the database of a `SqliteStore`, which is only read; JSON with the facts of a conversation, as
    `Conversation.export` gives them, or with a list of facts for each conversation id; lines of facts of one
    conversation; lines that `record` wrote; or the log of `toolsearch serve --log`. Raises `SetupError` for a file that
    is not there or cannot be read at all; in a folder, such a file is told.
    """
    for file in files:
        if not file.is_dir():
            yield from _read(file, damaged)
            continue
        inside = sorted(each for each in file.iterdir() if each.suffix in _ENDINGS)
        if not inside:
            raise SetupError(f"the folder {str(file)!r} has no journal: no file that ends in {', '.join(_ENDINGS)}")
        for each in inside:
            try:
                yield from _read(each, damaged)
            except SetupError as error:
                damaged(str(error))


def _read(file: Path, damaged: Damaged) -> Iterator[Recorded]:
    return _database(file, damaged) if _is_database(file) else _of_objects(file, damaged)


# -- databases ---------------------------------------------------------------------------------------------------------


def _is_database(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False  # what is wrong with the file is said when it is read


def _database(file: Path, damaged: Damaged) -> Iterator[Recorded]:
    """The journals of a `SqliteStore`, read without changing the file."""
    read = False
    try:
        connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            rows = connection.execute("SELECT conversation, position, fact FROM facts ORDER BY conversation, position")
            for conversation, of in groupby(rows, itemgetter(0)):
                read = True
                where = f"{str(file)!r}, conversation {str(conversation)!r}"
                yield Recorded(file, str(conversation), facts=_stored_facts(where, of, damaged))
        finally:
            connection.close()
    except sqlite3.Error as error:
        if not read:
            raise SetupError(f"{str(file)!r} is not the database of a SqliteStore: {error}") from None
        damaged(f"{str(file)!r} is damaged, so what comes after these conversations was not read: {error}")


def _stored_facts(where: str, rows: Iterable[tuple[object, int, str]], damaged: Damaged) -> list[Event]:
    facts: list[Event] = []
    next_place = 0
    for _, place, text in rows:
        if place != next_place:
            damaged(f"{where}: the facts {next_place} to {place - 1} are missing")
        next_place = place + 1
        try:
            line = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            damaged(f"{where}, fact {place}, is not valid JSON: {error}")
            continue
        facts += _facts([line], where, damaged, place)
    return facts


# -- JSON --------------------------------------------------------------------------------------------------------------


def _of_objects(file: Path, damaged: Damaged) -> Iterator[Recorded]:
    objects = _objects(file, damaged)
    where = repr(str(file))
    turns = [line for line in objects if "recorded" in line]
    if turns:
        yield from _recorded_turns(file, objects, damaged)
        return
    if any("fact" in line for line in objects):
        yield Recorded(file, file.stem, facts=_facts(objects, where, damaged))
    elif any("kind" in line and "at" in line for line in objects):
        yield from _log(file, objects, damaged)
    elif objects and all(_holds_facts(line) for line in objects):
        for line in objects:
            for conversation, facts in line.items():
                inside = f"{where}, conversation {conversation!r}"
                yield Recorded(file, conversation, facts=_facts(facts, inside, damaged))
    elif objects:
        damaged(f"{where} holds neither facts of a journal, nor turns that `record` wrote, nor the log of a gateway")


def _holds_facts(line: Mapping[str, Any]) -> bool:
    return bool(line) and all(isinstance(facts, list) for facts in line.values())


def _facts(lines: Iterable[JsonObject], where: str, damaged: Damaged, first: int = 0) -> list[Event]:
    facts: list[Event] = []
    for place, line in enumerate(lines, first):
        try:
            facts.append(read_event(line, place))
        except StateError as error:
            damaged(f"{where} cannot be read as a journal: {error}")
    return facts


def _recorded_turns(file: Path, lines: Iterable[JsonObject], damaged: Damaged) -> Iterator[Recorded]:
    """Recorded turns by conversation, in the order of the first turn of each."""
    found: dict[str, list[RecordedTurn]] = {}
    for line in lines:
        try:
            turn = RecordedTurn.from_json(line)
            check_turn(turn)
        except StateError as error:
            damaged(f"{str(file)!r} cannot be read as a record: {error}")
            continue
        found.setdefault(turn.conversation, []).append(turn)
    for conversation, turns in found.items():
        yield Recorded(file, conversation, turns=turns)


def check_turn(turn: RecordedTurn) -> None:
    """Raises `StateError` if something in a turn is of another type than it should be, as in a damaged file."""
    try:
        _TURN.validate_json(json.dumps(asdict(turn), default=str), strict=True)  # JSON has no tuples: lists will do
    except (ValidationError, TypeError, ValueError) as error:
        wrong = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
        where = ".".join(map(str, wrong["loc"])) or "turn"
        raise StateError(f"its {where!r} is not as it should be: {wrong['msg']}") from None


def _log(file: Path, lines: Iterable[JsonObject], damaged: Damaged) -> Iterator[Recorded]:
    """Lines of a gateway's log by session, in the order of the first line of each."""
    found: dict[str, list[JsonObject]] = {}
    for line in lines:
        if not isinstance(line.get("kind"), str):
            damaged(f"{str(file)!r} has a line without a kind: {json.dumps(line)[:80]}")
            continue
        session = line.get("session")
        found.setdefault("" if session is None else str(session), []).append(line)
    for session, log in found.items():
        yield Recorded(file, session, log=log)


def _objects(file: Path, damaged: Damaged) -> list[JsonObject]:
    """The objects of a file: one a line, or those of a JSON list; or one object."""
    try:
        raw = file.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except FileNotFoundError:
        raise SetupError(f"there is no file {str(file)!r}") from None
    except OSError as error:
        raise SetupError(f"{str(file)!r} cannot be read: {error.strerror}") from None
    if _is_lines(file, raw):
        return _lines(file, raw, damaged)
    try:
        read = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{str(file)!r} is not valid JSON: {error}") from None
    objects = read if isinstance(read, list) else [read]
    if not all(isinstance(each, dict) for each in objects):
        raise SetupError(f"{str(file)!r} must hold JSON objects: facts of a journal, or turns that `record` wrote")
    return objects


def _is_lines(file: Path, raw: bytes) -> bool:
    """Whether each line is an object of its own, whatever the name of the file."""
    begins = raw.lstrip()
    if begins.startswith(b"["):
        return False
    if file.suffix in _LINES:
        return True
    first, _, rest = begins.partition(b"\n")
    try:
        return bool(rest.strip()) and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _lines(file: Path, raw: bytes, damaged: Damaged) -> list[JsonObject]:
    found = []
    for number, text in enumerate(raw.split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError) as error:
            damaged(f"{str(file)!r}, line {number}, is not valid JSON: {error}")
            continue
        if isinstance(line, dict):
            found.append(line)
        else:
            damaged(f"{str(file)!r}, line {number}, is not a JSON object")
    return found
