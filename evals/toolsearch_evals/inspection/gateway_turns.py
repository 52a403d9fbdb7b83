"""The log of a gateway as a turn: what a client did in a session, line by line. Lines of other kinds are shown too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolsearch.layers import RecordedTurn
from toolsearch.support.redaction import redacted_value
from toolsearch.support.text import text_of
from toolsearch_evals.data.files import JsonObject
from toolsearch_evals.inspection.steps import Step, Turn, Words, filled, recorded_call, search_step, turn_of
from toolsearch_evals.recording.gateway_log import number_of
from toolsearch_evals.recording.needs import needs_of

__all__ = ["turn_of_log"]

_KNOWN = ("at", "session", "client", "kind")


def turn_of_log(log: Sequence[JsonObject], recorded: Sequence[RecordedTurn], words: Words) -> Turn:
    """The turn of a session. `recorded` is what was made of its searches and calls, if there are any."""
    searches: list[tuple[Any, Sequence[str]]] = []
    calls: list[Any] = []
    for turn in recorded:
        searches += zip(turn.searches, needs_of(turn), strict=True)
        calls += turn.calls
    steps = []
    for line in log:
        if line["kind"] == "search":
            search, led_to = searches.pop(0)
            step = search_step(search, words, led_to)
        elif line["kind"] == "call":
            step = recorded_call(calls.pop(0), words)
        else:
            step = _other(line, words)
        steps.append({**step, **_times(line, words)})
    client = next((str(line["client"]) for line in log if line.get("client")), "")
    return filled({"client": words.cut(client)}) | turn_of(1, steps)


def _times(line: JsonObject, words: Words) -> Step:
    """When it was, how long it took, and the texts that a log may have of a call."""
    texts = {key: words.cut(text_of(line[key])) for key in ("answer", "error") if line.get(key)}
    if line["kind"] == "call" and line.get("arguments") is not None:
        texts["arguments"] = words.arguments(line["arguments"])
    return filled({"at": number_of(line, "at"), "seconds": number_of(line, "seconds"), **texts})


def _other(line: JsonObject, words: Words) -> Step:
    rest = redacted_value({key: value for key, value in line.items() if key not in _KNOWN}, words.redact)
    pairs = rest.items() if isinstance(rest, Mapping) else ()
    told = ", ".join(f"{key} {text_of(value)}" for key, value in pairs if value not in (None, "", [], {}))
    return filled({"kind": "log", "word": words.cut(str(line["kind"])), "text": words.cut(told)})
