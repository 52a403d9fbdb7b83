"""The log that `toolsearch serve --log` writes, as recorded turns: a session is one turn, as nobody's words are in it.

A line is an object with `at`, `session` and `kind`. Lines of other kinds than "search" and "call" are of no turn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from toolsearch.layers import RecordedTurn
from toolsearch_evals.data.files import JsonObject

__all__ = ["call_of", "number_of", "search_of", "texts_of", "turns_of_log"]

_LARGEST = 1e15


def turns_of_log(session: str, log: Sequence[JsonObject]) -> list[RecordedTurn]:
    """The turn of a session: its searches and calls, in order; none if it has neither."""
    searches = [search_of(line) for line in log if line["kind"] == "search"]
    calls = []
    seen = 0
    for line in log:
        seen += line["kind"] == "search"
        if line["kind"] == "call":
            calls.append({**call_of(line), "after": seen})
    if not searches and not calls:
        return []
    digest = hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:12]
    began = {"conversation": digest, "turn": 1, "at": number_of(log[0], "at")}
    return [RecordedTurn.from_json({"recorded": 1, **began, "searches": searches, "calls": calls})]


def search_of(line: JsonObject) -> JsonObject:
    """A search in the form of a recorded one; what is missing or of another type is empty."""
    sure = line.get("confidence")
    pairs = sure.items() if isinstance(sure, Mapping) else ()
    return {
        "queries": texts_of(line, "queries"),
        "category": _text(line, "category"),
        "status": _text(line, "status") or "ok",
        "loaded": texts_of(line, "loaded"),
        "already": texts_of(line, "already"),
        "named": texts_of(line, "named"),
        "answer_tokens": int(number_of(line, "tokens")),
        "verdicts": texts_of(line, "verdicts"),
        "confidence": {str(tool): each for tool, each in pairs if isinstance(each, int | float)},
    }


def call_of(line: JsonObject) -> JsonObject:
    """A call in the form of a recorded one, without `after`."""
    tool = _text(line, "tool")
    return {"tool": tool, "name": tool, "status": _text(line, "status") or "ok", "by": _text(line, "by")}


def texts_of(line: JsonObject, key: str) -> list[str]:
    """The texts under a key: a list of them, or one."""
    value = line.get(key)
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def number_of(line: JsonObject, key: str) -> float:
    """The number under a key, 0 if there is none that can be a time or a count."""
    value = line.get(key)
    return value if isinstance(value, int | float) and abs(value) < _LARGEST else 0.0  # which NaN is not


def _text(line: JsonObject, key: str) -> str:
    value = line.get(key)
    return value if isinstance(value, str) else ""
