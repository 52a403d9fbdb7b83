"""A wire format that passes everything on and notes it: what was said, and what each token of a request is spent on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolsearch import ToolCall, ToolResult
from toolsearch.protocols import ShowsTools, Wire
from toolsearch_evals.reports.report import Said
from toolsearch_evals.savings.formats import WireFormat
from toolsearch_evals.token_usage import TokenMeter, pieces

__all__ = ["PARTS", "Notes", "Spent", "noting"]

JsonObject = dict[str, Any]

DEFINITIONS, SEARCH_TOOL, INSTRUCTIONS = "tool definitions", "the search tool", "instructions"
USER, ANSWERS, RESULTS, WORDS = "the user's words", "answers of searches", "results of tools", "the model's words"
PARTS: tuple[str, ...] = (DEFINITIONS, SEARCH_TOOL, INSTRUCTIONS, USER, ANSWERS, RESULTS, WORDS)
Spent = dict[str, tuple[float, float]]  # new and cached tokens of each part


@dataclass
class Notes:
    """What one conversation said, turn by turn, and its requests. `own` are the names of the search tool and, after it,
    of the tool that calls others.

    Parts are told apart by the objects that the wire made, so a format must pass tools and messages on as they are.
    """

    own: Sequence[str] = ()
    turns: list[list[Said]] = field(default_factory=list)
    found: list[list[str]] = field(default_factory=list)
    requests: list[JsonObject] = field(default_factory=list)
    written: list[JsonObject] = field(default_factory=list)
    _parts: dict[int, tuple[object, str]] = field(default_factory=dict)  # by id, with the object that has it

    def say(self, who: str, text: str) -> None:
        self.turns[-1].append(Said(who, text))

    def mark(self, objects: Iterable[JsonObject], part: str) -> None:
        self._parts |= {id(each): (each, part) for each in objects}

    def spent(self, meter: TokenMeter) -> Spent:
        """New and cached tokens of each part, in the order of `PARTS`; together, all tokens of the conversation."""
        new, cached = dict.fromkeys(PARTS, 0.0), dict.fromkeys(PARTS, 0.0)
        before: JsonObject | None = None
        for request in self.requests:
            left = meter.request(request, before).cached
            for part, tokens in self._tokens(request, meter):
                old = min(tokens, left)
                left -= old
                cached[part] += old
                new[part] += tokens - old
            before = request
        new[WORDS] += sum(meter.reply(reply).output for reply in self.written)
        return {part: (new[part], cached[part]) for part in PARTS}

    def _tokens(self, request: Mapping[str, Any], meter: TokenMeter) -> Iterable[tuple[str, int]]:
        """The pieces of a request, each with its part. The first piece, which opens the list, goes with the second."""
        listed = [item for value in request.values() if isinstance(value, list) for item in value]
        parts = [self._parts.get(id(item), (item, INSTRUCTIONS))[1] for item in listed]
        counted = [meter.count(piece) for piece in pieces(request)]
        return zip([*parts[:1], *parts], counted, strict=True)


def noting(form: WireFormat, own: Sequence[str] = ()) -> tuple[WireFormat, Notes]:
    """A format that does the same, and the notes that it takes of one conversation."""
    notes = Notes(own)

    def request(tools: Sequence[JsonObject], system: str, messages: Sequence[JsonObject]) -> JsonObject:
        made = form.request(tools, system, messages)
        if messages:
            notes.requests.append({k: list(v) if isinstance(v, list) else v for k, v in made.items()})
        return made

    def reply_with_calls(calls: Sequence[ToolCall]) -> JsonObject:
        notes.say("model", "\n".join(f"{call.name}({_compact(call.arguments)})" for call in calls))
        notes.written.append(form.reply_with_calls(calls))
        return notes.written[-1]

    def reply_with_text(text: str) -> JsonObject:
        notes.say("model", text)
        notes.written.append(form.reply_with_text(text))
        return notes.written[-1]

    def user_message(text: str) -> JsonObject:
        notes.turns.append([Said("user", text)])
        notes.found.append([])
        made = form.user_message(text)
        notes.mark([made], USER)
        return made

    made = replace(
        form,
        wire=_NotingWire(form.wire, notes),
        request=request,
        reply_with_calls=reply_with_calls,
        reply_with_text=reply_with_text,
        user_message=user_message,
    )
    return made, notes


class _NotingWire:
    """A wire that notes which part of a conversation each of its objects is."""

    def __init__(self, wire: Wire, notes: Notes) -> None:
        self._wire, self._notes = wire, notes

    def tools_for(self, session: ShowsTools, /) -> list[JsonObject]:
        sent = self._wire.tools_for(session)
        for shown, definition in zip(session.tools(), sent, strict=True):
            self._notes.mark([definition], SEARCH_TOOL if shown.name in self._notes.own else DEFINITIONS)
        return sent

    def message_from(self, reply: Any, /) -> JsonObject | list[JsonObject]:
        made = self._wire.message_from(reply)
        self._notes.mark(made if isinstance(made, list) else [made], WORDS)
        return made

    def calls_in(self, reply: Any, /) -> list[ToolCall]:
        return self._wire.calls_in(reply)

    def results_for(self, answered: Iterable[tuple[ToolCall, ToolResult]], /) -> list[JsonObject]:
        answers = list(answered)
        for call, result in answers:
            self._notes.say(call.name, result.content)
            self._notes.found[-1] += _found(result)
        made = self._wire.results_for(answers)
        is_search = all(call.name in self._notes.own[:1] for call, _ in answers)
        self._notes.mark(made, ANSWERS if is_search else RESULTS)
        return made


def _found(result: ToolResult) -> list[str]:
    """The ids of the tools that an answer loads or names."""
    data: Mapping[str, Any] = result.data if isinstance(result.data, dict) else {}
    ids = [i for key in ("loaded", "named") for i in data.get(key) or () if isinstance(i, str)]
    return list(dict.fromkeys(ids))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
