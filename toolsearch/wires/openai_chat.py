"""OpenAI Chat Completions, and the many servers that speak it.

In a loop of your own:

    reply = client.chat.completions.create(model=…, messages=messages, tools=tools_for(session))
    messages += [message_from(reply), *results_for([(call, session.handle(call)) for call in calls_in(reply)])]

For an `Agent`: `model(client, "gpt-…")`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from toolsearch.calls import NativeDelivery, ToolCall, ToolResult
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
from toolsearch.support.text import clean
from toolsearch.wires._chat_extras import (
    KEPT_FOR,
    extras_of_call,
    names_to_keep,
    text_of_parts,
    thinking_in,
    without_kept,
)
from toolsearch.wires._chat_message import Function, kept_message, sent_id, translated_message
from toolsearch.wires._chat_pieces import ChatPieces
from toolsearch.wires._reading import count_in, mapping, reply_error
from toolsearch.wires._user_parts import parts_for
from toolsearch.wires.shared import (
    answered_calls,
    definitions,
    distinct_ids,
    fields_of,
    own_tools,
    read_answer,
    strict_schemas,
)

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
OTHERS = {
    "response": "OpenAI Responses: use toolsearch.wires.openai_responses",
    "message": "Anthropic Messages: use toolsearch.wires.anthropic",
}

DESCRIPTION_CHARACTERS = 1_024  # the provider refuses a request with a longer one


def tools_for(
    session: ShowsTools, *, description_characters: int = DESCRIPTION_CHARACTERS, strict_tools: int = 0
) -> list[dict[str, Any]]:
    """The `tools` of the next request. Earlier entries keep their bytes and places; found tools come at the end.

    So many of the first tools are `strict` that lose nothing by it; the provider limits how many a request may have.
    """
    checks.having("session", session, "a Session, as ToolSearch(…).session() gives", "tools")
    checks.whole("description_characters", description_characters, 100, none="for no limit")
    checks.whole("strict_tools", strict_tools, 0)
    return _tools(session.tools(), description_characters, strict_tools)


def _tools(tools: Sequence[Shown], description_characters: int, strict_tools: int) -> list[dict[str, Any]]:
    made = definitions(tools, lambda shown: definition(shown, description_characters))
    strict = strict_schemas(tools, strict_tools) if strict_tools else {}
    for function in (each["function"] for each in made):
        if function["name"] in strict:
            function |= {"parameters": strict[function["name"]], "strict": True}
    return made


def definition(shown: Shown, description_characters: int = DESCRIPTION_CHARACTERS) -> dict[str, Any]:
    """One tool in this format. A description that is too long is cut, and says so at its end."""
    made = exported(shown.tool.input_schema, "openai")
    text = " ".join(filter(None, (shown.tool.description or shown.tool.fallback_description, made.note)))
    description = shortened(text, description_characters, shown.tool.id)
    return {"type": "function", "function": {"name": shown.name, "description": description, "parameters": made.schema}}


def message_from(reply: object, *, keep: str | Sequence[str] = ()) -> dict[str, Any]:
    """The assistant's message of a reply (an SDK object or its dict), ready to be sent back with the history.

    What servers want back with a call or a message goes back as it came: `extra_content`, `reasoning_details`,
    `thinking_blocks`, `provider_specific_fields`. `keep` names what else does: DeepSeek wants `reasoning_content`.
    Leave it out where the next request goes to another model; Cerebras, Groq and Mistral refuse it.
    """
    return kept_message(_message(reply), _functions(reply), names_to_keep(keep))


def calls_in(reply: object) -> list[ToolCall]:
    """The calls of a reply, in the model's order; a missing or repeated id is replaced."""
    return _calls(_functions(reply), _stop(fields_of(reply)))


def _calls(functions: list[Function], stop: str) -> list[ToolCall]:
    calls = [ToolCall(f.id, str(f.function.get("name") or ""), f.function.get("arguments")) for f in functions]
    return list(with_cut_end(calls, stop))


def results_for(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[dict[str, Any]]:
    """The messages that carry results back, one for each call."""
    return [
        {"role": "tool", "tool_call_id": clean(call.id), "content": clean(result.content)}
        for call, result in answered_calls(answered)
    ]


# -- for an agent ------------------------------------------------------------------------------------------------


def model(
    client: ChatClient | Callable[..., object],
    name: str,
    *,
    stream: bool = True,
    keep: str | Sequence[str] = (),
    strict_tools: int = 0,
    **options: object,
) -> ChatModel:
    """A model for an `Agent`, asked through an `OpenAI` or `AsyncOpenAI` client; `options` go into every request.

    A function that takes the arguments of `chat.completions.create` does as well, as `litellm.completion` is.
    An option that is None is left out of the request, also one of the wire's own: some servers refuse `stream_options`.
    The `tools` among the options come before those of the session.
    `keep` is that of `message_from`; a conversation that moves to another model leaves behind what was kept by it.
    `strict_tools` is that of `tools_for`.
    """
    if not _is_function(client):
        wanted = "an OpenAI or AsyncOpenAI client, or a function such as litellm.completion"
        checks.having("client", client, wanted, "chat.completions.create")
    checks.text("name", name, empty=False)
    checks.flag("stream", stream)
    checks.whole("strict_tools", strict_tools, 0)
    return ChatModel(client, name, stream, options, names_to_keep(keep), strict_tools=strict_tools)


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


def _is_function(client: object) -> bool:
    return inspect.isroutine(client) or isinstance(client, functools.partial)


def _create(client: Any) -> Callable[..., object]:
    create: Callable[..., object] = client if _is_function(client) else client.chat.completions.create
    return create


class ChatModel:
    """Asks the provider; with `stream`, its reply is shown as it comes in. An async client needs `arun`."""

    takes_schema = True
    native: NativeDelivery | None = None  # it has no way

    def __init__(
        self,
        client: ChatClient | Callable[..., object],
        name: str,
        stream: bool,
        options: JsonObject,
        keep: Sequence[str] = (),
        *,
        strict_tools: int = 0,
    ) -> None:
        self.strict_tools = strict_tools
        self.client, self.name, self.stream, self.options, self.keep = client, name, stream, dict(options), keep

    def request_for(self, request: CallModel) -> dict[str, Any]:
        """The arguments of `chat.completions.create`."""
        messages = messages_for(request.transcript, request.system, self.name)
        arguments: dict[str, Any] = {"model": self.name, "messages": messages}
        if request.schema is not None:
            arguments["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": dict(request.schema)},
            }
        if self.stream:
            arguments |= {"stream": True, "stream_options": {"include_usage": True}}
        own, options = own_tools(self.options | dict(request.options), request)
        tools = [*own, *_tools(request.tools, DESCRIPTION_CHARACTERS, self.strict_tools)]
        arguments |= options | {"tools": tools or None}
        if not tools:  # the provider refuses a choice among none
            arguments |= {"tool_choice": None, "parallel_tool_calls": None}
        return {name: value for name, value in arguments.items() if value is not None}

    def __call__(self, request: CallModel) -> ReplyStream | AsyncReplyStream:
        arguments = self.request_for(request)
        answer = _create(self.client)(**arguments)
        return read_answer(answer, self._reply, ChatPieces(self.keep) if arguments.get("stream") else None)

    def _reply(self, reply: object) -> Reply:
        read = reply_from(reply, keep=self.keep)
        if not isinstance(read.raw, Mapping) or not any(name in read.raw for name in self.keep):
            return read
        return replace(read, raw={**read.raw, KEPT_FOR: [self.name, *self.keep]})


def reply_from(reply: object, *, keep: str | Sequence[str] = ()) -> Reply:
    """A reply of the provider (an SDK object or its dict) as an agent reads it; `keep` is that of `message_from`.

    Raises `ReplyError` for an error in place of a reply, and `SetupError` for what is no chat completion.
    """
    plain = fields_of(reply)
    message = _message(plain)
    _refuse_errors(plain)
    functions, stop, usage = _functions(plain), _stop(plain), plain.get("usage")
    cached = count_in(usage, "prompt_tokens_details", "cached_tokens")
    content, spoken = message.get("content"), mapping(message.get("audio")).get("transcript")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return Reply(
        text=text_of_parts(content) or text_of_parts(message.get("refusal")) or text_of_parts(spoken),
        calls=tuple(_calls(functions, stop)),
        usage=Usage(count_in(usage, "prompt_tokens"), cached, count_in(usage, "completion_tokens")),
        reasoning=text_of_parts(reasoning) or thinking_in(content),
        raw=kept_message(message, functions, names_to_keep(keep)),
        wire=WIRE,
        model=str(plain.get("model") or ""),
        stop=stop,
    )


def messages_for(transcript: Iterable[Message], system: str = "", model: str = "") -> list[dict[str, Any]]:
    """A transcript as the `messages` of a request. A reply of this provider is sent back as it came.

    What a reply keeps for its own model, see `keep` of `model`, is left out for any other `model`.
    """
    messages: list[dict[str, Any]] = [{"role": "system", "content": clean(system)}] if system else []
    for message in transcript:
        match message:
            case UserSaid():
                parts = parts_for(WIRE, message.parts)
                content = [{"type": "text", "text": message.text}, *parts] if parts else message.text
                messages.append({"role": "user", "content": content})
            case ModelReplied():
                messages.append(_assistant(message, model))
            case Answers():
                calls = [call["id"] for call in (messages[-1].get("tool_calls") or ())] if messages else []
                messages += [
                    {"role": "tool", "tool_call_id": sent_id(result.call_id, calls), "content": result.content}
                    for result in message.results
                ]
            case _:
                messages.append({"role": "user", "content": f"[{message.text}]"})
    return messages


def _assistant(reply: ModelReplied, model: str) -> dict[str, Any]:
    if reply.wire == WIRE and isinstance(reply.raw, Mapping):
        kept = without_kept(reply.raw, model)
        if calls := kept.get("tool_calls"):
            # The session replaces an id that an earlier call of the conversation has.
            kept["tool_calls"] = [{**call, "id": judged.id} for call, judged in zip(calls, reply.calls, strict=False)]
        return kept
    return translated_message(reply)


# -- inside ------------------------------------------------------------------------------------------------------


def _message(reply: object) -> JsonObject:
    plain = fields_of(reply)
    if plain.get("choices") is None and (of := OTHERS.get(str(plain.get("object") or plain.get("type")))):
        raise SetupError(f"this wire reads replies of Chat Completions, but this is a reply of {of}")
    choices = _mappings(plain.get("choices"))
    message = choices[0].get("message") if choices else plain.get("message", plain)
    return message if isinstance(message, Mapping) else {}


def _refuse_errors(plain: JsonObject) -> None:
    """Raises `ReplyError` for a body that is none: some servers report a failure with status 200."""
    choices, error = _mappings(plain.get("choices")), plain.get("error")
    if choices:
        own = choices[0].get("error")
        if own or str(choices[0].get("finish_reason")).lower() == "error":
            raise reply_error(own or error, "the provider ended its reply with an error, and names none")
    elif error or "choices" in plain or not (plain.keys() & {"message", "role", "content", "tool_calls"}):
        raise reply_error(error, "the provider answered with nothing: there are no choices in its reply")


def _stop(plain: JsonObject) -> str:
    """The provider's word for why the reply ended; it has none for a refusal, which it marks in another way."""
    choice = next(iter(_mappings(plain.get("choices"))), {})
    word = choice.get("finish_reason")
    stop = word if isinstance(word, str) else ""
    return "refusal" if stop in ("", "stop") and mapping(choice.get("message")).get("refusal") else stop


def _mappings(value: object) -> list[JsonObject]:
    """The objects in a list. Some servers put other things there, which are left out."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _functions(reply: object) -> list[Function]:
    """Id and function of each call, the same for everything that reads the reply."""
    calls = _mappings(_message(reply).get("tool_calls"))
    reply_id = reply.get("id") if isinstance(reply, Mapping) else getattr(reply, "id", None)
    functions: list[tuple[object, JsonObject, dict[str, Any]]] = []
    for call in calls:
        function = _function(call)
        inner = inner_calls(function.get("name"), function.get("arguments"))
        each: list[JsonObject] = [{"name": name, "arguments": given} for name, given in inner] or [function]
        functions.append((call.get("id"), each[0], extras_of_call(call)))
        functions += [(None, further, {}) for further in each[1:]]
    ids = distinct_ids([call_id for call_id, _, _ in functions], "call", [reply_id, calls])
    return [Function(i, function, extras) for i, (_, function, extras) in zip(ids, functions, strict=True)]


def _function(call: JsonObject) -> JsonObject:
    """The name and arguments of a call; for a custom tool, which does not take an object, only the name."""
    function, custom = call.get("function"), call.get("custom")
    if isinstance(function, Mapping) and function:
        return function
    return {"name": custom.get("name") if isinstance(custom, Mapping) else None, "arguments": None}
