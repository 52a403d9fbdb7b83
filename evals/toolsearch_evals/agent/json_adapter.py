"""Tools for a model whose endpoint does not read them: they stand in the text, and the model replies with JSON.

Each reply is one object: the tool to call with its arguments, or an answer. With `schema`, the endpoint is asked to
hold the reply to that form; without, the object is looked for in what the model wrote. A reply that has no such object
is an answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace

from toolsearch import CallModel, Reply, TextDelta, ToolCall, UserSaid
from toolsearch.catalog import Shown
from toolsearch.events.facts import Answers, Message, ModelReplied
from toolsearch.protocols import Model
from toolsearch.support.json_types import JsonObject
from toolsearch.wires import exported
from toolsearch_evals.agent.endpoint import whole_reply

__all__ = ["HOW", "JsonToolModel"]

ANSWER = "answer"  # in place of a tool's name
OWN_ARGUMENTS = 20  # tools, with more of which a form for each would be long
HOW = """Reply with one JSON object and nothing else.
To call a tool: {"tool": "its name", "arguments": {…}, "answer": ""}
To answer the user: {"tool": "answer", "arguments": {}, "answer": "your words"}
You get the result of a call with the next message. These are the tools:"""


class JsonToolModel:
    """Asks `inner`, a model of a wire, without tools. One call a reply."""

    takes_schema = False

    def __init__(self, inner: Model, name: str, *, schema: bool) -> None:
        self.inner, self.name, self.schema = inner, name, schema

    def __call__(self, request: CallModel) -> Iterator[TextDelta | Reply]:
        asked = replace(
            request,
            transcript=tuple(_as_text(message) for message in request.transcript),
            tools=(),
            system="\n\n".join(filter(None, (request.system, _described(request.tools)))),
            schema=_schema(request.tools) if self.schema and request.tools else request.schema,
        )
        whole = whole_reply(self.inner(asked))
        yield _with_call(whole, len(request.transcript)) if request.tools else whole


def _described(tools: tuple[Shown, ...]) -> str:
    lines = [
        json.dumps(
            {"name": shown.name, "description": shown.tool.description, "arguments": shown.tool.input_schema},
            ensure_ascii=False,
        )
        for shown in tools
    ]
    return "\n".join([HOW, *lines]) if lines else ""


def _schema(tools: tuple[Shown, ...]) -> JsonObject:
    """The form of a reply: an answer, or a call of one of the tools.

    Of few tools each has a form with its own arguments; of many, the arguments are any object: the session checks them
    anyway, and says what is wrong.
    """
    answer = _form([ANSWER], {"type": "object", "properties": {}, "additionalProperties": False})
    if len(tools) > OWN_ARGUMENTS:
        return {"type": "object", "anyOf": [answer, _form([shown.name for shown in tools], {"type": "object"})]}
    forms = [_form([shown.name], exported(shown.tool.input_schema, "openai").schema) for shown in tools]
    return {"type": "object", "anyOf": [answer, *forms]}


def _form(names: list[str], arguments: object) -> JsonObject:
    properties: JsonObject = {"tool": {"type": "string", "enum": names}, "arguments": arguments}
    properties = {**properties, "answer": {"type": "string"}}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _as_text(message: Message) -> Message:
    match message:
        case ModelReplied() if message.calls:
            written = {"tool": message.calls[0].name, "arguments": message.calls[0].shown_arguments, "answer": ""}
            return ModelReplied(json.dumps(written, ensure_ascii=False, default=str))
        case Answers():
            return UserSaid("\n".join(f"Result ({each.status}): {each.content}" for each in message.results))
        case _:
            return message


def _with_call(reply: Reply, place: int) -> Reply:
    """The reply as one with a call or a text, if its text is such an object; what the wire kept of it is left out."""
    written = _object_in(reply.text)
    if written is None or not isinstance(written.get("tool"), str):
        return replace(reply, raw=None)
    if written["tool"] == ANSWER:
        return replace(reply, text=str(written.get("answer") or ""), raw=None)
    digest = hashlib.sha256(f"{place} {reply.text}".encode("utf-8", "replace")).hexdigest()[:12]
    call = ToolCall(f"call_{digest}", written["tool"], written.get("arguments") or {})
    return replace(reply, text="", calls=(call,), raw=None, stop="tool_calls")


def _object_in(text: str) -> JsonObject | None:
    """The first JSON object in a text, which may stand between other words."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            value, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        return value if isinstance(value, dict) else None
    return None
