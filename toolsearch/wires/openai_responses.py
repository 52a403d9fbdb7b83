"""OpenAI Responses.

In a loop of your own, where a reply is several items:

    reply = client.responses.create(model=…, instructions=…, input=items, tools=tools_for(session))
    items += [*message_from(reply), *results_for([(call, session.handle(call)) for call in calls_in(reply)])]

For an `Agent`: `model(client, "gpt-…")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from toolsearch.calls import Part, ToolCall, ToolResult
from toolsearch.calls.parts import shown_image
from toolsearch.catalog.tools import Shown
from toolsearch.errors import ReplyError
from toolsearch.events.facts import Answers, Message, ModelReplied, Reply, Usage, UserSaid
from toolsearch.events.requests import CallModel
from toolsearch.events.stops import with_cut_end
from toolsearch.protocols import AsyncReplyStream, ReplyStream, ShowsTools
from toolsearch.schemas.export import exported, shortened
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean, legal_name
from toolsearch.wires._arguments import valid_json
from toolsearch.wires._reading import count_in, mapping, reply_error
from toolsearch.wires._response_items import TOOL_SEARCH, input_of, is_call, items_of, sent_back, texts_in
from toolsearch.wires._response_pieces import ResponsePieces
from toolsearch.wires.shared import answered_calls, definitions, fields_of, read_answer

__all__ = [
    "ResponsesClient",
    "ResponsesModel",
    "calls_in",
    "definition",
    "message_from",
    "messages_for",
    "model",
    "reply_from",
    "results_for",
    "tools_for",
]

WIRE = "openai_responses"

DESCRIPTION_CHARACTERS = 1_024  # the provider refuses a request with a longer one
IMAGE_BYTES = 20_000_000  # and one that is larger than 50 MB in all


def tools_for(session: ShowsTools, *, description_characters: int = DESCRIPTION_CHARACTERS) -> list[dict[str, Any]]:
    """The `tools` of the next request. Earlier entries keep their bytes and places; found tools come at the end."""
    checks.having("session", session, "a Session, as ToolSearch(…).session() gives", "tools")
    checks.whole("description_characters", description_characters, 100, none="for no limit")
    return definitions(session.tools(), lambda shown: definition(shown, description_characters))


def definition(shown: Shown, description_characters: int = DESCRIPTION_CHARACTERS) -> dict[str, Any]:
    """One tool in this format. A description that is too long is cut, and says so at its end.

    It is never strict: the provider would then make optional arguments required.
    """
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
    return _calls(items, _stop(plain, items))


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
    """The items that carry results back, one for each call."""
    return [_output(clean(call.id), clean(result.content), result.parts) for call, result in answered_calls(answered)]


def _output(call_id: str, text: str, parts: Iterable[Part]) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": _content(text, parts)}


def _content(text: str, parts: Iterable[Part]) -> str | list[dict[str, Any]]:
    """The content of a result: its text, or where images are among its parts, parts with each image in its place."""
    contents: list[dict[str, Any]] = []
    behind: list[dict[str, Any]] = []  # images whose placeholder a layer has cut or changed
    for part in parts:
        if (image := shown_image(part, IMAGE_BYTES)) is None:
            continue
        mark, media_type, data = image
        picture = {"type": "input_image", "image_url": f"data:{media_type};base64,{data}"}
        before, found, after = text.partition(mark)
        if found:
            contents += [*_text_parts(before), picture]
            text = after
        else:
            behind.append(picture)
    return [*contents, *_text_parts(text), *behind] if contents or behind else text


def _text_parts(text: str) -> list[dict[str, Any]]:
    return [{"type": "input_text", "text": stripped}] if (stripped := text.strip("\n")).strip() else []


# -- for an agent ------------------------------------------------------------------------------------------------


def model(client: ResponsesClient, name: str, *, stream: bool = True, **options: object) -> ResponsesModel:
    """A model for an `Agent`, asked through an `OpenAI` or `AsyncOpenAI` client; `options` go into every request.

    Nothing is stored at the provider: the journal holds all of a conversation, the model's encrypted reasoning too. So
    `store` is False, and `include` is `["reasoning.encrypted_content"]`; a model that does not reason needs
    `include=None`. An option that is None is left out. The `tools` among the options, such as
    `[{"type": "web_search"}]`, come before those of the session.
    """
    checks.having("client", client, "an OpenAI or AsyncOpenAI client", "responses.create")
    checks.text("name", name, empty=False)
    checks.flag("stream", stream)
    return ResponsesModel(client, name, stream, options)


class Creates(Protocol):
    """The part of a client that sends a request."""

    @property
    def create(self) -> Callable[..., object]: ...


class ResponsesClient(Protocol):
    """What is used of an `OpenAI` or `AsyncOpenAI` client, or of one that wraps it."""

    @property
    def responses(self) -> Creates: ...


class ResponsesModel:
    """Asks the provider; with `stream`, its reply is shown as it comes in. An async client needs `arun`."""

    takes_schema = True

    def __init__(self, client: ResponsesClient, name: str, stream: bool, options: JsonObject) -> None:
        self.client, self.name, self.stream = client, name, stream
        self.options = {"store": False, "include": ["reasoning.encrypted_content"], **options}

    def request_for(self, request: CallModel) -> dict[str, Any]:
        """The arguments of `responses.create`."""
        options = self.options | dict(request.options)
        arguments: dict[str, Any] = {"model": self.name, "input": messages_for(request.transcript)}
        if request.system:
            arguments["instructions"] = clean(request.system)
        if self.stream:
            arguments["stream"] = True
        arguments |= options
        own = options.get("tools") or []
        tools = [*(own if request.purpose == "chat" else []), *definitions(request.tools, definition)]
        arguments["tools"] = tools or None
        if not tools:  # the provider refuses a choice among none
            arguments |= {"tool_choice": None, "parallel_tool_calls": None}
        if request.schema is not None:
            form = {"type": "json_schema", "name": "answer", "schema": dict(request.schema)}
            arguments["text"] = {"format": form, **mapping(options.get("text"))}
        return {name: value for name, value in arguments.items() if value is not None}

    def __call__(self, request: CallModel) -> ReplyStream | AsyncReplyStream:
        arguments = self.request_for(request)
        answer = self.client.responses.create(**arguments)
        return read_answer(answer, reply_from, ResponsePieces() if arguments.get("stream") else None)


def reply_from(reply: object) -> Reply:
    """A reply of the provider (an SDK object or its dict) as an agent reads it.

    Raises `ReplyError` for an error in place of a reply, and `SetupError` for what is no reply of this format.
    """
    plain = fields_of(reply)
    items = items_of(plain)
    _refuse_errors(plain)
    text, refusal, reasoning = texts_in(items)
    stop, usage = _stop(plain, items), plain.get("usage")
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


def messages_for(transcript: Iterable[Message]) -> list[dict[str, Any]]:
    """A transcript as the `input` of a request. A reply of this provider is sent back as it came."""
    items: list[dict[str, Any]] = []
    for message in transcript:
        match message:
            case UserSaid():
                parts = [{"type": "input_text", "text": message.text}, *message.parts]
                items.append({"role": "user", "content": parts if message.parts else message.text})
            case ModelReplied():
                items += _assistant(message)
            case Answers():
                items += [_output(result.call_id, result.content, result.parts) for result in message.results]
            case _:
                items.append({"role": "user", "content": f"[{message.text}]"})
    return items


def _assistant(reply: ModelReplied) -> list[dict[str, Any]]:
    if reply.wire == WIRE and isinstance(reply.raw, list | tuple):
        ids = iter(call.id for call in reply.calls)  # the session replaces an id that an earlier call has
        return [
            {**item, "call_id": next(ids, item.get("call_id"))} if is_call(item) else dict(item) for item in reply.raw
        ]
    said = [{"role": "assistant", "content": reply.text}] if reply.text.strip() else []
    calls = [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": legal_name(call.name),
            "arguments": valid_json(call.arguments),
        }
        for call in reply.calls
    ]
    return [*said, *calls]


# -- inside ------------------------------------------------------------------------------------------------------


def _refuse_errors(plain: JsonObject) -> None:
    """Raises `ReplyError` for a body that is no reply: some failures are reported with status 200."""
    status = plain.get("status")
    if plain.get("error") or status == "failed":
        raise reply_error(plain.get("error"), "the provider ended its reply with an error, and names none")
    if not isinstance(plain.get("output"), list | tuple):
        raise reply_error(None, "the provider answered with nothing: there is no output in its reply")
    if status in ("queued", "in_progress"):
        raise ReplyError(
            f"the provider has not finished its reply: its status is {status!r}. Leave out the option `background`"
        )


def _stop(plain: JsonObject, items: list[dict[str, Any]]) -> str:
    """The provider's word for why the reply ended; it has none for a refusal, which it marks in another way."""
    reason = mapping(plain.get("incomplete_details")).get("reason")
    word = reason or plain.get("status")
    stop = word if isinstance(word, str) else ""
    text, refusal, _ = texts_in(items)
    return "refusal" if stop in ("", "completed") and refusal and not text else stop
