"""OpenAI Chat Completions, and the many servers that speak it.

In a loop of your own:

    reply = client.chat.completions.create(model=…, messages=messages, tools=tools_for(session))
    messages += [message_from(reply), *results_for([(call, session.handle(call)) for call in calls_in(reply)])]

For an `Agent`: `model(client, "gpt-…")`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from toolsearch.calls import ToolCall, ToolResult
from toolsearch.catalog.tools import Shown
from toolsearch.errors import SetupError
from toolsearch.events.facts import Answers, Message, ModelReplied, Reply, TextDelta, Usage, UserSaid
from toolsearch.events.requests import CallModel
from toolsearch.protocols import AsyncReplyStream, ReplyStream, ShowsTools
from toolsearch.schemas.export import exported, shortened
from toolsearch.schemas.json_values import read_json
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean, clean_json, legal_name
from toolsearch.wires.shared import answered_calls, distinct_ids, fields_of, read_answer

__all__ = [
    "ChatClient",
    "ChatModel",
    "calls_in",
    "definition",
    "message_from",
    "messages_for",
    "model",
    "reply_from",
    "results_for",
    "tools_for",
]

WIRE = "openai_chat"

# Replies of other formats, by their `object` or `type`. Read as Chat Completions, they would seem to call nothing.
OTHERS = {"response": "OpenAI Responses", "message": "Anthropic Messages: use toolsearch.wires.anthropic"}

DESCRIPTION_CHARACTERS = 1_024  # the provider refuses a request with a longer one


def tools_for(session: ShowsTools, *, description_characters: int = DESCRIPTION_CHARACTERS) -> list[dict[str, Any]]:
    """The `tools` of the next request. Earlier entries keep their bytes and places; found tools come at the end."""
    checks.having("session", session, "a Session, as ToolSearch(…).session() gives", "tools")
    checks.whole("description_characters", description_characters, 100, none="for no limit")
    return [definition(shown, description_characters) for shown in session.tools()]


def definition(shown: Shown, description_characters: int = DESCRIPTION_CHARACTERS) -> dict[str, Any]:
    """One tool in this format. A description that is too long is cut, and says so at its end."""
    schema, note = exported(shown.tool.input_schema)
    text = " ".join(filter(None, (shown.tool.description or shown.tool.fallback_description, note)))
    description = shortened(text, description_characters, shown.tool.id)
    return {"type": "function", "function": {"name": shown.name, "description": description, "parameters": schema}}


def message_from(reply: object) -> dict[str, Any]:
    """The assistant's message of a reply (an SDK object or its dict), ready to be sent back with the history."""
    message = _message(reply)
    kept: dict[str, Any] = {"role": "assistant", "content": message.get("content")}
    if message.get("refusal") is not None:
        kept["refusal"] = message["refusal"]
    if isinstance(audio := message.get("audio"), Mapping):
        kept["audio"] = {"id": audio.get("id")}
    if calls := _functions(reply):
        kept["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": legal_name(f.get("name")), "arguments": _valid_json(f.get("arguments"))},
            }
            for call_id, f in calls
        ]
        if isinstance(parts := kept["content"], list):  # some gateways leave Anthropic's block of a call there too
            rest = [part for part in parts if not (isinstance(part, Mapping) and part.get("type") == "tool_use")]
            kept["content"] = rest or None
    elif kept.keys() == {"role", "content"} and kept["content"] is None:
        kept["content"] = ""
    cleaned: dict[str, Any] = clean_json(kept)
    return cleaned


def calls_in(reply: object) -> list[ToolCall]:
    """The calls of a reply, in the model's order; a missing or repeated id is replaced."""
    return [ToolCall(call_id, str(f.get("name") or ""), f.get("arguments")) for call_id, f in _functions(reply)]


def results_for(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[dict[str, Any]]:
    """The messages that carry results back, one for each call."""
    return [
        {"role": "tool", "tool_call_id": clean(call.id), "content": clean(result.content)}
        for call, result in answered_calls(answered)
    ]


# -- for an agent ------------------------------------------------------------------------------------------------


def model(client: ChatClient, name: str, *, stream: bool = True, **options: object) -> ChatModel:
    """A model for an `Agent`, asked through an `OpenAI` or `AsyncOpenAI` client; `options` go into every request."""
    checks.having("client", client, "an OpenAI or AsyncOpenAI client", "chat.completions.create")
    checks.text("name", name, empty=False)
    checks.flag("stream", stream)
    return ChatModel(client, name, stream, options)


class Creates(Protocol):
    """The part of a client that sends a request."""

    @property
    def create(self) -> Callable[..., object]: ...


class HasCompletions(Protocol):
    """The `chat` of a client."""

    @property
    def completions(self) -> Creates: ...


class ChatClient(Protocol):
    """What is used of an `OpenAI` or `AsyncOpenAI` client, or of one that wraps it."""

    @property
    def chat(self) -> HasCompletions: ...


class ChatModel:
    """Asks the provider; with `stream`, its reply is shown as it comes in. An async client needs `arun`."""

    takes_schema = True

    def __init__(self, client: ChatClient, name: str, stream: bool, options: JsonObject) -> None:
        self.client, self.name, self.stream, self.options = client, name, stream, dict(options)

    def request_for(self, request: CallModel) -> dict[str, Any]:
        """The arguments of `chat.completions.create`."""
        messages = messages_for(request.transcript, request.system)
        arguments: dict[str, Any] = {"model": self.name, "messages": messages}
        if request.tools:
            arguments["tools"] = [definition(shown) for shown in request.tools]
        if request.schema is not None:
            arguments["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": dict(request.schema)},
            }
        if self.stream:
            arguments |= {"stream": True, "stream_options": {"include_usage": True}}
        return arguments | self.options | dict(request.options)

    def __call__(self, request: CallModel) -> ReplyStream | AsyncReplyStream:
        arguments = self.request_for(request)
        answer = self.client.chat.completions.create(**arguments)
        return read_answer(answer, reply_from, _Pieces() if arguments.get("stream") else None)


def reply_from(reply: object) -> Reply:
    """A reply of the provider (an SDK object or its dict) as an agent reads it."""
    plain = fields_of(reply)
    message, choices = _message(plain), _mappings(plain.get("choices")) or [{}]
    usage = plain.get("usage") or {}
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Reply(
        text=_text(message.get("content") or message.get("refusal")),
        calls=tuple(calls_in(plain)),
        usage=Usage(int(usage.get("prompt_tokens") or 0), int(cached), int(usage.get("completion_tokens") or 0)),
        reasoning=_text(message.get("reasoning_content") or message.get("reasoning")),
        raw=message_from(plain),
        wire=WIRE,
        model=str(plain.get("model") or ""),
        stop=str(choices[0].get("finish_reason") or ""),
    )


def messages_for(transcript: Iterable[Message], system: str = "") -> list[dict[str, Any]]:
    """A transcript as the `messages` of a request. A reply of this provider is sent back as it came."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": clean(system)}] if system else []
    for message in transcript:
        match message:
            case UserSaid():
                content = [{"type": "text", "text": message.text}, *message.parts] if message.parts else message.text
                messages.append({"role": "user", "content": content})
            case ModelReplied():
                messages.append(_assistant(message))
            case Answers():
                messages += [
                    {"role": "tool", "tool_call_id": result.call_id, "content": result.content}
                    for result in message.results
                ]
            case _:
                messages.append({"role": "user", "content": f"[{message.text}]"})
    return messages


def _assistant(reply: ModelReplied) -> dict[str, Any]:
    if reply.wire == WIRE and isinstance(reply.raw, Mapping):
        kept = dict(reply.raw)
        if calls := kept.get("tool_calls"):
            # The session replaces an id that an earlier call of the conversation has.
            kept["tool_calls"] = [{**call, "id": judged.id} for call, judged in zip(calls, reply.calls, strict=False)]
        return kept
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": legal_name(call.name), "arguments": _valid_json(call.arguments)},
            }
            for call in reply.calls
        ]
    return message


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in _mappings(content))


class _Pieces:
    """A reply that comes in pieces."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant"}
        self._calls: list[tuple[int, dict[str, Any]]] = []  # each with the index it came under
        self._stop: str | None = None

    def take(self, chunk: object) -> list[TextDelta]:
        """Takes in a chunk; returns the deltas to show for it."""
        plain = fields_of(chunk)
        self._head |= {key: plain[key] for key in ("id", "model", "usage") if plain.get(key)}
        shown = []
        for choice in _mappings(plain.get("choices")):
            self._stop = choice.get("finish_reason") or self._stop
            delta = choice.get("delta") or {}
            for key in ("content", "refusal", "reasoning_content", "reasoning"):
                if isinstance(piece := delta.get(key), str) and piece:
                    self._message[key] = self._message.get(key, "") + piece
                    shown.append(TextDelta(piece, "reasoning" if key.startswith("reasoning") else "text"))
            for place, call in enumerate(_mappings(delta.get("tool_calls"))):
                self._take_call(call, place)
        return shown

    def _take_call(self, call: JsonObject, place: int) -> None:
        function = call.get("function")
        piece: JsonObject = function if isinstance(function, Mapping) else {}
        index, call_id = call.get("index"), str(call.get("id") or "")
        index = index if isinstance(index, int) else place
        name, arguments = str(piece.get("name") or ""), piece.get("arguments") or ""
        whole = self._call_of(index, call_id, name)
        if whole is None:
            begun: dict[str, Any] = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            self._calls.append((index, whole := begun))
        whole["id"] = whole["id"] or call_id
        written: dict[str, str] = whole["function"]
        written["name"] += name if name != written["name"] else ""  # some servers send it with every piece
        written["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments)

    def _call_of(self, index: int, call_id: str, name: str) -> dict[str, Any] | None:
        """The call that a piece continues, or None. Some servers give several calls the same index, or no index."""
        for _, call in self._calls:
            if call_id and call["id"] == call_id:
                return call
        at_index = [call for at, call in self._calls if at == index]
        if not at_index or not name:
            return at_index[-1] if at_index else None
        call = at_index[-1]
        if call_id and call["id"]:
            return None
        written = call["function"]["arguments"]
        return None if written and (name != call["function"]["name"] or _is_json(written)) else call

    def whole(self) -> dict[str, Any]:
        """The reply, as if it had come at once."""
        if self._calls:
            self._message["tool_calls"] = [call for _, call in sorted(self._calls, key=lambda each: each[0])]
        return {**self._head, "choices": [{"message": self._message, "finish_reason": self._stop}]}


# -- inside ------------------------------------------------------------------------------------------------------


def _message(reply: object) -> JsonObject:
    plain = fields_of(reply)
    if plain.get("choices") is None and (of := OTHERS.get(str(plain.get("object") or plain.get("type")))):
        raise SetupError(f"this wire reads replies of Chat Completions, but this is a reply of {of}")
    choices = _mappings(plain.get("choices"))
    message = choices[0].get("message") if choices else plain.get("message", plain)
    return message if isinstance(message, Mapping) else {}


def _mappings(value: object) -> list[JsonObject]:
    """The objects in a list. Some servers put other things there, which are left out."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _functions(reply: object) -> list[tuple[str, JsonObject]]:
    """Id and function of each call, the same for everything that reads the reply."""
    calls = _mappings(_message(reply).get("tool_calls"))
    reply_id = reply.get("id") if isinstance(reply, Mapping) else getattr(reply, "id", None)
    ids = distinct_ids([call.get("id") for call in calls], "call", [reply_id, calls])
    return [(i, _function(call)) for i, call in zip(ids, calls, strict=True)]


def _function(call: JsonObject) -> JsonObject:
    """The name and arguments of a call; for a custom tool, which does not take an object, only the name."""
    function, custom = call.get("function"), call.get("custom")
    if isinstance(function, Mapping) and function:
        return function
    return {"name": custom.get("name") if isinstance(custom, Mapping) else None, "arguments": None}


def _valid_json(arguments: object) -> str:
    """Arguments as the JSON object that a provider requires in a history; malformed text is kept inside one."""
    if isinstance(arguments, Mapping):
        return json.dumps(clean_json(arguments), ensure_ascii=False)
    text = clean(arguments) if isinstance(arguments, str) else ""
    if not text.strip() or text.strip() == "null":
        return "{}"
    try:
        value = read_json(text)
        cleaned = clean_json(value)
    except (ValueError, RecursionError):
        value = cleaned = None
    if not isinstance(value, dict):
        return json.dumps({"unparsed": text}, ensure_ascii=False)
    return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
