"""Ollama, by its own client; its address for OpenAI's format is read by `openai_chat`.

In a loop of your own:

    reply = client.chat(model=…, messages=messages, tools=tools_for(session))
    messages += [message_from(reply), *results_for([(call, session.handle(call)) for call in calls_in(reply)])]

For an `Agent`: `model(client, "qwen3")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from toolsearch.calls import Part, ToolCall, ToolResult
from toolsearch.calls.parts import shown_image
from toolsearch.catalog.tools import Shown
from toolsearch.errors import SetupError
from toolsearch.events.facts import Answers, Message, ModelReplied, Reply, Usage, UserSaid
from toolsearch.events.requests import CallModel
from toolsearch.events.stops import with_cut_end
from toolsearch.protocols import AsyncReplyStream, ReplyStream, ShowsTools
from toolsearch.schemas.export import exported, shortened
from toolsearch.schemas.parallel_calls import inner_calls
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean, legal_name, plain_json
from toolsearch.wires._arguments import arguments_object
from toolsearch.wires._ollama_fields import with_fields_told
from toolsearch.wires._ollama_pieces import OllamaPieces
from toolsearch.wires._reading import count_in, mapping, reply_error
from toolsearch.wires._user_parts import parts_for, with_schema
from toolsearch.wires.shared import answered_calls, definitions, distinct_ids, fields_of, own_tools, read_answer

__all__ = [
    "OllamaClient",
    "OllamaModel",
    "calls_in",
    "definition",
    "message_from",
    "messages_for",
    "model",
    "reply_from",
    "results_for",
    "tools_for",
]

WIRE = "ollama"

IMAGE_BYTES = 20_000_000  # the server sets no limit; a model looks at a smaller copy


def tools_for(session: ShowsTools, *, description_characters: int | None = None) -> list[dict[str, Any]]:
    """The `tools` of the next request. Earlier entries keep their bytes and places; found tools come at the end."""
    checks.having("session", session, "a Session, as ToolSearch(…).session() gives", "tools")
    checks.whole("description_characters", description_characters, 100, none="for no limit")
    return definitions(session.tools(), lambda shown: definition(shown, description_characters))


def definition(shown: Shown, description_characters: int | None = None) -> dict[str, Any]:
    """One tool in this format; with a limit, a description that is too long is cut, and says so at its end.

    The fields of an argument that is an object are told in its description: the client drops their schemas.
    """
    made = exported(shown.tool.input_schema, "ollama")
    text = " ".join(filter(None, (shown.tool.description or shown.tool.fallback_description, made.note)))
    description = shortened(text, description_characters, shown.tool.id)
    parameters = with_fields_told(made.schema)
    return {"type": "function", "function": {"name": shown.name, "description": description, "parameters": parameters}}


def message_from(reply: object) -> dict[str, Any]:
    """The assistant's message of a reply (an SDK object or its dict), its thinking included, with valid arguments."""
    plain = fields_of(reply)
    return _kept(_message(plain), _functions(plain))


def _kept(message: JsonObject, functions: list[tuple[str, JsonObject]]) -> dict[str, Any]:
    content = message.get("content")
    kept: dict[str, Any] = {"role": "assistant", "content": content if isinstance(content, str) else ""}
    kept |= {key: message[key] for key in ("thinking", "images") if message.get(key)}
    if functions:
        kept["tool_calls"] = [_sent(f.get("name"), f.get("arguments")) for _, f in functions]
    elif not kept["content"].strip() and "images" not in kept:
        kept["content"] = "(no answer)"
    made: dict[str, Any] = plain_json(kept)
    return made


def _sent(name: object, arguments: object) -> dict[str, Any]:
    return {"function": {"name": legal_name(name), "arguments": arguments_object(arguments)}}


def calls_in(reply: object) -> list[ToolCall]:
    """The calls of a reply, in the model's order. The format has no ids: they are made from the reply."""
    plain = fields_of(reply)
    return _calls(_functions(plain), _stop(plain))


def _calls(functions: list[tuple[str, JsonObject]], stop: str) -> list[ToolCall]:
    calls = [ToolCall(call_id, str(f.get("name") or ""), f.get("arguments")) for call_id, f in functions]
    return list(with_cut_end(calls, stop))


def results_for(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[dict[str, Any]]:
    """The messages that carry results back, one for each call, in the order of the calls: there are no ids."""
    pairs = [(legal_name(call.name), result) for call, result in answered_calls(answered)]
    return [_result(name, result.content, result.parts if result.ok else ()) for name, result in pairs]


def _result(name: str, content: str, parts: Iterable[Part]) -> dict[str, Any]:
    shown = [image[2] for part in parts if (image := shown_image(part, IMAGE_BYTES)) is not None]
    message = {"role": "tool", "tool_name": name, "content": clean(content)}
    return {**message, "images": shown} if shown else message


# -- for an agent ------------------------------------------------------------------------------------------------


def model(client: OllamaClient, name: str, *, stream: bool = True, **options: object) -> OllamaModel:
    """A model for an `Agent`, asked through an Ollama `Client` or `AsyncClient`.

    `options` go into every call of `client.chat`: `think=True`, `keep_alive="10m"`, and `options={"num_ctx": 32_000}`
    for those of the model. One that is None is left out. The `tools` among them come before those of the session.
    """
    checks.having("client", client, "an ollama.Client or ollama.AsyncClient", "chat")
    checks.text("name", name, empty=False)
    checks.flag("stream", stream)
    return OllamaModel(client, name, stream, options)


class OllamaClient(Protocol):
    """What is used of an Ollama `Client` or `AsyncClient`, or of one that wraps it."""

    @property
    def chat(self) -> Callable[..., object]: ...


class OllamaModel:
    """Asks the server; with `stream`, its reply is shown as it comes in. An async client needs `arun`."""

    takes_schema = True

    def __init__(self, client: OllamaClient, name: str, stream: bool, options: JsonObject) -> None:
        self.client, self.name, self.stream, self.options = client, name, stream, dict(options)

    def request_for(self, request: CallModel) -> dict[str, Any]:
        """The arguments of `chat`. With tools, a schema is asked for in words: a `format` would rule out every call."""
        arguments: dict[str, Any] = {"model": self.name, "stream": self.stream or None}
        system = request.system
        own, options = own_tools(self.options | dict(request.options), request)
        if tools := [*own, *definitions(request.tools, definition)]:
            arguments["tools"] = tools
            system = with_schema(system, request.schema)
        elif request.schema is not None:
            arguments["format"] = dict(request.schema)
        arguments["messages"] = messages_for(request.transcript, system)
        arguments |= options
        return {name: value for name, value in arguments.items() if value is not None}

    def __call__(self, request: CallModel) -> ReplyStream | AsyncReplyStream:
        arguments = self.request_for(request)
        answer = self.client.chat(**arguments)
        return read_answer(answer, reply_from, OllamaPieces() if arguments.get("stream") else None)


def reply_from(reply: object) -> Reply:
    """A reply of the server (an SDK object or its dict) as an agent reads it.

    Raises `ReplyError` for an error in place of a reply, and `SetupError` for what is no reply of Ollama.
    """
    plain = fields_of(reply)
    message = _message(plain)
    if plain.get("error") or not isinstance(plain.get("message"), Mapping):
        raise reply_error(plain.get("error"), "the server answered with nothing: there is no message in its reply")
    functions, stop = _functions(plain), _stop(plain)
    content, thinking = message.get("content"), message.get("thinking")
    return Reply(
        text=content if isinstance(content, str) else "",
        calls=tuple(_calls(functions, stop)),
        usage=Usage(count_in(plain, "prompt_eval_count"), 0, count_in(plain, "eval_count")),
        reasoning=thinking if isinstance(thinking, str) else "",
        raw=_kept(message, functions),
        wire=WIRE,
        model=str(plain.get("model") or ""),
        stop=stop,
    )


def messages_for(transcript: Iterable[Message], system: str = "") -> list[dict[str, Any]]:
    """A transcript as the `messages` of a request. A reply of this server is sent back as it came."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": clean(system)}] if system else []
    names: dict[str, str] = {}
    for message in transcript:
        match message:
            case UserSaid():
                messages.append(_said(message))
            case ModelReplied():
                messages.append(_assistant(message))
                names = _names(messages[-1], message)
            case Answers():
                messages += [
                    _result(names.get(r.call_id, "unnamed"), r.content, r.parts if r.status == "ok" else ())
                    for r in message.results
                ]
            case _:
                messages.append({"role": "user", "content": f"[{message.text}]"})
    return messages


def _names(sent: JsonObject, reply: ModelReplied) -> dict[str, str]:
    """The name under which each call of a reply was sent, by its id."""
    names = [mapping(call.get("function")).get("name") for call in sent.get("tool_calls") or ()]
    return {call.id: str(name) for call, name in zip(reply.calls, names, strict=False)}


def _assistant(reply: ModelReplied) -> dict[str, Any]:
    if reply.wire == WIRE and isinstance(reply.raw, Mapping):
        return dict(reply.raw)
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or ("" if reply.calls else "(no answer)")}
    if reply.calls:
        message["tool_calls"] = [_sent(call.name, call.arguments) for call in reply.calls]
    return message


def _said(message: UserSaid) -> dict[str, Any]:
    """A user's message. The format has no parts: images stand beside the text, as in `{"images": [data in Base64]}`."""
    parts = parts_for(WIRE, message.parts)
    texts = [message.text, *(str(part.get("text") or "") for part in parts)]
    images = [image for part in parts if isinstance(part.get("images"), list | tuple) for image in part["images"]]
    said = {"role": "user", "content": "\n".join(text for text in texts if text.strip()) or "(nothing)"}
    return {**said, "images": images} if images else said


# -- inside ------------------------------------------------------------------------------------------------------


def _message(plain: JsonObject) -> JsonObject:
    if "message" not in plain and (
        "choices" in plain or "candidates" in plain
    ):  # read as a message it would seem to call nothing
        other = "openai_chat" if "choices" in plain else "gemini"
        raise SetupError(f"this wire reads replies of Ollama's own client, but this is another format: use {other}")
    return mapping(plain.get("message"))


def _functions(plain: JsonObject) -> list[tuple[str, JsonObject]]:
    """Id and function of each call, the same for everything that reads the reply."""
    calls = _message(plain).get("tool_calls")
    found: list[tuple[object, JsonObject]] = []
    for call in calls if isinstance(calls, list | tuple) else []:
        if isinstance(call, Mapping):
            function = mapping(call.get("function"))
            inner = inner_calls(function.get("name"), function.get("arguments"))
            each: list[JsonObject] = [{"name": name, "arguments": given} for name, given in inner] or [function]
            found += [(None if place else call.get("id"), one) for place, one in enumerate(each)]
    told = [plain.get("created_at"), [[f.get("name"), f.get("arguments")] for _, f in found]]
    ids = distinct_ids([call_id for call_id, _ in found], "call", told)
    return [(call_id, function) for call_id, (_, function) in zip(ids, found, strict=True)]


def _stop(plain: JsonObject) -> str:
    word = plain.get("done_reason")
    return word if isinstance(word, str) else ""
