"""OpenAI Responses.

In a loop of your own, where a reply is several items:

    reply = client.responses.create(model=…, instructions=…, input=items, tools=tools_for(session))
    items += [*message_from(reply), *results_for([(call, session.handle(call)) for call in calls_in(reply)])]

For an `Agent`: `model(client, "gpt-…")`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from toolsearch.calls import NativeDelivery, ToolCall, ToolResult
from toolsearch.catalog.tools import Shown
from toolsearch.events.facts import Answers, Message, ModelReplied, Reply, Usage, UserSaid
from toolsearch.events.requests import CallModel
from toolsearch.events.stops import with_cut_end
from toolsearch.protocols import AsyncReplyStream, ReplyStream, ShowsTools
from toolsearch.schemas.export import exported, shortened
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean
from toolsearch.wires._arguments import valid_json
from toolsearch.wires._native import asked, plain_instead
from toolsearch.wires._reading import count_in, mapping
from toolsearch.wires._response_input import Input, refitted
from toolsearch.wires._response_items import (
    TOOL_SEARCH,
    input_of,
    is_call,
    items_of,
    refuse_errors,
    sent_back,
    stop_of,
    texts_in,
)
from toolsearch.wires._response_pieces import ResponsePieces
from toolsearch.wires._response_reasoning import ENCRYPTED, without_reasoning
from toolsearch.wires.shared import answered_calls, definitions, fields_of, own_tools

__all__ = [
    "ResponsesClient",
    "ResponsesModel",
    "calls_in",
    "definition",
    "message_from",
    "messages_for",
    "model",
    "native",
    "reply_from",
    "results_for",
    "shortened_history",
    "tools_for",
]

WIRE = "openai_responses"

DESCRIPTION_CHARACTERS = 1_024  # the provider refuses a request with a longer one

BY_VALUE = NativeDelivery(with_messages=True)
native = BY_VALUE
"""How found tools are delivered: by value, as items of the input."""

# What a server names that does not know native delivery, or an older model.
_NATIVE_WORDS = re.compile(r"additional_tools|tool_search|namespace|defer_loading", re.IGNORECASE)


def tools_for(session: ShowsTools, *, description_characters: int = DESCRIPTION_CHARACTERS) -> list[dict[str, Any]]:
    """The `tools` of the next request. Earlier entries keep their bytes and places; found tools come at the end."""
    checks.having("session", session, "a Session, as ToolSearch(…).session() gives", "tools")
    checks.whole("description_characters", description_characters, 100, none="for no limit")
    listed = [shown for shown in session.tools() if not shown.delivered]
    return definitions(listed, lambda shown: definition(shown, description_characters))


def definition(shown: Shown, description_characters: int = DESCRIPTION_CHARACTERS) -> dict[str, Any]:
    """One tool in this format. A description that is too long is cut, and says so at its end.

    It is never strict: the provider would then make optional arguments required. A search tool that is named
    `tool_search` is the provider's own tool of that name, which the program carries out.
    """
    made = _function(shown, description_characters)
    if not _is_search(shown):
        return made
    kept = {key: made[key] for key in ("description", "parameters")}
    return {"type": TOOL_SEARCH, "execution": "client", **kept}


def _function(shown: Shown, description_characters: int = DESCRIPTION_CHARACTERS) -> dict[str, Any]:
    made = exported(shown.tool.input_schema, "openai")
    text = " ".join(filter(None, (shown.tool.description or shown.tool.fallback_description, made.note)))
    description = shortened(text, description_characters, shown.tool.id)
    return {
        "type": "function", "name": shown.name, "description": description, "parameters": made.schema, "strict": False,
    }  # fmt: skip


def message_from(reply: object) -> list[dict[str, Any]]:
    """The items of a reply (an SDK object or its dict), ready to be sent back: unchanged, calls with valid JSON.

    Reasoning, namespaces, ids and the items of the provider's own tools are among them.
    """
    return sent_back(items_of(reply))


def calls_in(reply: object) -> list[ToolCall]:
    """The calls of a reply, in the model's order; a missing or repeated id is replaced.

    Calls of custom tools are not among them: the program declared these, and answers them.
    """
    plain = fields_of(reply)
    items = items_of(plain)
    return _calls(items, stop_of(plain, items))


def _calls(items: list[dict[str, Any]], stop: str) -> list[ToolCall]:
    calls = [
        ToolCall(item["call_id"], str(item.get("name") or ""), _written(item.get("arguments")))
        if item["type"] == "function_call"
        else ToolCall(item["call_id"], TOOL_SEARCH, input_of(item.get("arguments")))
        for item in items
        if is_call(item)
    ]
    return list(with_cut_end(calls, stop))


def _written(arguments: object) -> str | None:
    """The arguments of a function as text, also where a server sends an object."""
    return arguments if isinstance(arguments, str) or arguments is None else valid_json(arguments)


def results_for(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[dict[str, Any]]:
    """The items that carry results back, one for each call; behind it, in the mode "native", the tools it brings."""
    made = Input(definition)
    pairs = answered_calls(answered)
    for call, _ in pairs:
        if call.name == TOOL_SEARCH and isinstance(call.arguments, Mapping):
            made.searched(clean(call.id))
    made.answer((clean(call.id), clean(result.content), result.parts, result.loaded) for call, result in pairs)
    return made.items()


def shortened_history(items: Iterable[JsonObject], tools: Iterable[JsonObject]) -> list[dict[str, Any]]:
    """Items that are left of a history, as a request with these `tools` takes them; an agent needs no such thing.

    Call `session.after_compaction()` first: found tools then stand in `tools`. So no item brings them any more, and
    their calls lose the namespace. A result whose call is gone is left out.
    """
    return refitted(items, tools)


# -- for an agent ------------------------------------------------------------------------------------------------


def model(
    client: ResponsesClient, name: str, *, stream: bool = True, native: bool = True, **options: object
) -> ResponsesModel:
    """A model for an `Agent`, asked through an `OpenAI` or `AsyncOpenAI` client; `options` go into every request.

    Nothing is stored at the provider: the journal holds all of a conversation, the model's encrypted reasoning too. So
    `store` is False, and `include` is `["reasoning.encrypted_content"]`; for a model that does not reason pass
    `include=None`, or its first request is sent twice. An option that is None is left out.

    The `tools` among the options, such as `[{"type": "web_search"}]`, come before those of the session. Without
    `native` found tools are listed in `tools`, for a server that does not know native delivery.
    """
    checks.having("client", client, "an OpenAI or AsyncOpenAI client", "responses.create")
    checks.text("name", name, empty=False)
    checks.flag("stream", stream)
    checks.flag("native", native)
    return ResponsesModel(client, name, stream, options, native=BY_VALUE if native else None)


class Creates(Protocol):
    """The part of a client that sends a request."""

    @property
    def create(self) -> Callable[..., object]: ...


class ResponsesClient(Protocol):
    """What is used of an `OpenAI` or `AsyncOpenAI` client, or of one that wraps it."""

    @property
    def responses(self) -> Creates: ...


class ResponsesModel:
    """Asks the provider; with `stream`, its reply is shown as it comes in. An async client needs `arun`.

    `native` is how found tools are delivered. If the server refuses that, it is None from then on, `not_native` says
    why, and the request is sent again with all found tools in its `tools`.
    """

    takes_schema = True

    def __init__(
        self,
        client: ResponsesClient,
        name: str,
        stream: bool,
        options: JsonObject,
        *,
        native: NativeDelivery | None = BY_VALUE,
    ) -> None:
        self.client, self.name, self.stream = client, name, stream
        self.options = {"store": False, "include": [ENCRYPTED], **options}
        self.native, self.not_native = native, ""

    def request_for(self, request: CallModel) -> dict[str, Any]:
        """The arguments of `responses.create`."""
        own, options = own_tools(self.options | dict(request.options), request)
        delivers = self.native is not None
        listed = _listed(request, options.get("tool_choice")) if delivers else list(request.tools)
        messages = messages_for(request.transcript, listed, native=delivers)
        arguments: dict[str, Any] = {"model": self.name, "input": messages}
        if request.system:
            arguments["instructions"] = clean(request.system)
        if self.stream:
            arguments["stream"] = True
        arguments |= options
        tools = [*own, *definitions(listed, definition if delivers else _function)]
        arguments["tools"] = tools or None
        if not tools:  # the provider refuses a choice among none
            arguments |= {"tool_choice": None, "parallel_tool_calls": None}
        if request.schema is not None:
            form = {"type": "json_schema", "name": "answer", "schema": dict(request.schema)}
            arguments["text"] = {"format": form, **mapping(options.get("text"))}
        return {name: value for name, value in arguments.items() if value is not None}

    def __call__(self, request: CallModel) -> ReplyStream | AsyncReplyStream:
        arguments = self.request_for(request)

        def instead(error: Exception) -> JsonObject:
            return self._instead(request, arguments, error)

        pieces = ResponsePieces() if arguments.get("stream") else None
        return asked(self.client.responses.create, arguments, instead, reply_from, pieces)

    def _instead(self, request: CallModel, arguments: JsonObject, error: Exception) -> dict[str, Any]:
        """The same request without what was refused; raises the error if nothing can be left out."""
        if (instead := without_reasoning(arguments, error)) is None:
            return plain_instead(self, request, arguments, error, _NATIVE_WORDS)
        if "include" not in instead:
            self.options.pop("include", None)
        return instead


def reply_from(reply: object) -> Reply:
    """A reply of the provider (an SDK object or its dict) as an agent reads it.

    Raises `ReplyError` for an error in place of a reply, and `SetupError` for what is no reply of this format.
    """
    plain = fields_of(reply)
    items = items_of(plain)
    refuse_errors(plain)
    text, refusal, reasoning = texts_in(items)
    stop, usage = stop_of(plain, items), plain.get("usage")
    cached = count_in(usage, "input_tokens_details", "cached_tokens")
    return Reply(
        text=text or refusal,
        calls=tuple(_calls(items, stop)),
        usage=Usage(count_in(usage, "input_tokens"), cached, count_in(usage, "output_tokens")),
        reasoning=reasoning,
        raw=sent_back(items),
        wire=WIRE,
        model=str(plain.get("model") or ""),
        stop=stop,
    )


def messages_for(
    transcript: Iterable[Message], tools: Iterable[Shown] = (), *, native: bool = True
) -> list[dict[str, Any]]:
    """A transcript as the `input` of a request that lists these tools. A reply of this provider is sent as it came.

    Without `native` nothing is in it that other servers do not know: tools that come with an answer, namespaces.
    """
    listed = list(tools)
    searches = native and any(map(_is_search, listed))
    made = Input(definition, [shown.name for shown in listed], searches=searches, brings=native)
    for message in transcript:
        match message:
            case UserSaid():
                made.say(message.text, message.parts, message.loaded)
            case ModelReplied() if message.wire == WIRE and isinstance(message.raw, list | tuple):
                made.reply(message.raw, (call.id for call in message.calls))
            case ModelReplied():
                made.translate(message.text, message.calls)
            case Answers():
                made.answer((each.call_id, each.content, each.parts, each.loaded) for each in message.results)
            case _:
                made.say(f"[{message.text}]")
    return made.items()


# -- inside ------------------------------------------------------------------------------------------------------


def _is_search(shown: Shown) -> bool:
    """Whether a tool is the search tool, in the provider's own form."""
    return shown.built_in and shown.name == TOOL_SEARCH


def _listed(request: CallModel, choice: object) -> list[Shown]:
    """The tools in `tools`: those that no message brings, and those that `tool_choice` names.

    Older models look for a name that is chosen in `tools` only.
    """
    chosen = [mapping(choice), *_mappings(mapping(choice).get("tools"))]
    names = {each.get("name") for each in chosen} | {shown.name for shown in request.listed()}
    return [shown for shown in request.tools if shown.name in names]


def _mappings(value: object) -> list[JsonObject]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []
