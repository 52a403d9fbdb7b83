"""A request as OpenAI is publicly known to render it for its models: definitions as TypeScript, messages between marks.

OpenAI does not document this form. It was reported by many people who asked models to repeat what they are given, and
counts made with it come close to what is billed; it may differ by model. No such form is known of other providers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from toolsearch_evals.token_usage import TokenMeter, TokenUsage, compact

__all__ = ["RenderedMeter", "openai_pieces"]

JsonObject = Mapping[str, Any]
Write = Callable[[Any], str]
MARK = "\ue000"  # stands for a control token, which counts as one; a private character that no text may hold
_HEAD = f"{MARK}system{MARK}# Tools\n\n## functions\n\nnamespace functions {{\n\n"
_END = f"}} // namespace functions{MARK}"
_TYPES = {"integer": "number", "array": "any[]", "object": "object"}


class RenderedMeter(TokenMeter):
    """Counts requests as they are rendered, not as the JSON that is sent."""

    def __init__(self, meter: TokenMeter) -> None:
        super().__init__(meter.counter)
        self._rendered: dict[str, str] = {}

    def count(self, text: str) -> int:
        if text not in self._counted:
            self._counted[text] = text.count(MARK) + sum(map(self.counter.of_json, filter(None, text.split(MARK))))
        return self._counted[text]

    def pieces(self, request: JsonObject, write: Write = compact) -> list[str]:
        return openai_pieces(request, lambda item, render: self._render(item, render, write))

    def reply(self, message: JsonObject) -> TokenUsage:
        return TokenUsage(output=self.count(_message(message)))

    def _render(self, item: JsonObject, render: Callable[[JsonObject], str], write: Write) -> str:
        """A tool or a message; each is rendered once, as most stand in many requests."""
        key = write(item)
        if key not in self._rendered:
            self._rendered[key] = render(item)
        return self._rendered[key]


def openai_pieces(
    request: JsonObject,
    rendered: Callable[[JsonObject, Callable[[JsonObject], str]], str] = lambda item, render: render(item),
) -> list[str]:
    """A request of Chat Completions in pieces: its tools, its messages, and the beginning of the reply.

    A piece of a tool ends where the words of the next begin, so that their tokens add up.
    """
    pieces = []
    if tools := request.get("tools"):
        text = _HEAD
        for tool in tools:
            written = rendered(tool, _function)
            pieces.append(text + written[:2])
            text = written[2:]
        pieces.append(text + _END)
    pieces += [rendered(message, _message) for message in request["messages"]]
    return [*pieces, f"{MARK}assistant{MARK}"]


def _function(tool: JsonObject) -> str:
    """A definition: its description as a comment, then a type of its name and its parameters."""
    function = tool["function"]
    parameters = function.get("parameters") or {}
    takes = f"(_: {_members(parameters)})" if parameters.get("properties") else "()"
    return _text(f"{_comment(function.get('description'))}type {function['name']} = {takes} => any;\n\n")


def _comment(description: object) -> str:
    lines = str(description).strip().splitlines() if description else []
    return "".join(f"// {line}\n" for line in lines)


def _members(schema: JsonObject) -> str:
    needed = schema.get("required") or ()
    text = "{\n"
    for name, each in schema["properties"].items():
        member: JsonObject = each if isinstance(each, Mapping) else {}
        default = f" // default: {member['default']}" if "default" in member else ""
        optional = "" if name in needed else "?"
        text += f"{_comment(member.get('description'))}{name}{optional}: {_type(member)},{default}\n"
    return text + "}"


def _type(schema: JsonObject) -> str:
    if choices := schema.get("enum"):
        return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    for key in ("anyOf", "oneOf"):
        if options := schema.get(key):
            return " | ".join(_type(option) for option in options if isinstance(option, Mapping))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " | ".join(_type({**schema, "type": each}) for each in kind)
    if kind == "object" and schema.get("properties"):
        return _members(schema)
    if kind == "array" and isinstance(items := schema.get("items"), Mapping):
        return f"{_type(items)}[]"
    return _TYPES.get(kind, str(kind))


def _message(message: JsonObject) -> str:
    """A message: who wrote it, then its text or its calls."""
    if calls := message.get("tool_calls"):
        told = [(f"assistant to=functions.{c['function']['name']}", c["function"]["arguments"]) for c in calls]
    else:
        told = [(message["role"], message.get("content") or "")]
    return "".join(f"{MARK}{_text(who)}{MARK}{_text(_plain(text))}{MARK}" for who, text in told)


def _plain(content: object) -> str:
    """The text of a content; of parts, the texts of all of them."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "".join(str(part.get("text", "")) if isinstance(part, Mapping) else str(part) for part in parts)


def _text(text: str) -> str:
    return text.replace(MARK, "?")
