"""Anthropic Messages.

In a loop of your own:

    reply = client.messages.create(model=…, max_tokens=…, system=…, messages=messages, tools=tools_for(session))
    messages += [message_from(reply), *results_for([(call, session.handle(call)) for call in calls_in(reply)])]

For an `Agent`: `model(client, "claude-…")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolsearch.calls import ToolCall, ToolResult
from toolsearch.catalog.tools import Shown
from toolsearch.errors import SetupError
from toolsearch.events.facts import Reply, Usage
from toolsearch.events.requests import CallModel
from toolsearch.events.stops import with_cut_end
from toolsearch.protocols import AsyncReplyStream, ReplyStream, ShowsTools
from toolsearch.schemas.export import exported, shortened
from toolsearch.schemas.parallel_calls import inner_calls
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean, legal_name, plain_json
from toolsearch.wires._message_blocks import WIRE, input_of, messages_for, result_block
from toolsearch.wires._message_cache import TimeToLive, with_cache
from toolsearch.wires._message_pieces import MessagePieces
from toolsearch.wires._reading import count_in, reply_error
from toolsearch.wires.shared import answered_calls, definitions, distinct_ids, fields_of, read_answer

__all__ = [
    "MessagesClient",
    "MessagesModel",
    "calls_in",
    "definition",
    "message_from",
    "messages_for",
    "model",
    "reply_from",
    "results_for",
    "tools_for",
    "with_cache",
]


def tools_for(session: ShowsTools, *, description_characters: int | None = None) -> list[dict[str, Any]]:
    """The `tools` of the next request. Earlier entries keep their bytes and places; found tools come at the end."""
    checks.having("session", session, "a Session, as ToolSearch(…).session() gives", "tools")
    checks.whole("description_characters", description_characters, 100, none="for no limit")
    return definitions(session.tools(), lambda shown: definition(shown, description_characters))


def definition(shown: Shown, description_characters: int | None = None) -> dict[str, Any]:
    """One tool in this format; with a limit, a description that is too long is cut, and says so at its end."""
    made = exported(shown.tool.input_schema, "anthropic")
    text = " ".join(filter(None, (shown.tool.description or shown.tool.fallback_description, made.note)))
    return {
        "name": shown.name,
        "description": shortened(text, description_characters, shown.tool.id),
        "input_schema": made.schema,
    }


def message_from(reply: object) -> dict[str, Any]:
    """The assistant's message of a reply (an SDK object or its dict): its blocks unchanged, calls with valid input."""
    ids = iter(call.id for call in calls_in(reply))
    blocks: list[Any] = []
    for block in _blocks(reply):
        if block.get("type") == "tool_use":
            name, arguments = legal_name(block.get("name")), input_of(block.get("input"))
            blocks.append({**block, "id": next(ids), "name": name, "input": arguments})
        elif block.get("type") != "text" or str(block.get("text") or "").strip():
            blocks.append(block)
    # The provider refuses a history with blank text or with no block at all.
    return {"role": "assistant", "content": plain_json(blocks or [{"type": "text", "text": "(no answer)"}])}


def calls_in(reply: object) -> list[ToolCall]:
    """The calls of a reply, in the model's order; a missing or repeated id is replaced."""
    blocks = [block for block in _blocks(reply) if block.get("type") == "tool_use"]
    reply_id = reply.get("id") if isinstance(reply, Mapping) else getattr(reply, "id", None)
    ids = distinct_ids([block.get("id") for block in blocks], "toolu", [reply_id, blocks])
    calls = [_call(call_id, block) for call_id, block in zip(ids, blocks, strict=True)]
    return list(with_cut_end(calls, _stop(fields_of(reply))))


@dataclass(frozen=True, slots=True)
class _MemberCall(ToolCall):
    """A call of a member of one of the provider's toolsets, such as its browser: the result has to name the toolset."""

    toolset_name: str = ""


def _call(call_id: str, block: JsonObject) -> ToolCall:
    name, toolset = str(block.get("name") or ""), block.get("toolset_name")
    if isinstance(toolset, str) and toolset:
        return _MemberCall(call_id, name, block.get("input"), toolset_name=toolset)
    return ToolCall(call_id, name, block.get("input"))


def results_for(answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[dict[str, Any]]:
    """The one user message that carries all results back; an empty list if nothing was called."""
    blocks = [
        result_block(clean(call.id), result, call.toolset_name if isinstance(call, _MemberCall) else "")
        for call, result in answered_calls(answered)
    ]
    return [{"role": "user", "content": blocks}] if blocks else []


# -- for an agent ------------------------------------------------------------------------------------------------


def model(
    client: MessagesClient,
    name: str,
    *,
    stream: bool = True,
    max_tokens: int = 4_096,
    cache: TimeToLive | None = None,
    **options: object,
) -> MessagesModel:
    """A model for an `Agent`, asked through an `Anthropic` or `AsyncAnthropic` client.

    With `cache`, "5m" or "1h", requests are marked for the provider's cache: see `with_cache`. `options` go into every
    request; one that is None is left out. `tools` among them are tools that the provider runs itself, such as its web
    search: they stand before the session's. With `betas` the client's `beta.messages` is asked.
    """
    checks.having("client", client, "an Anthropic or AsyncAnthropic client", "messages.create")
    checks.text("name", name, empty=False)
    checks.flag("stream", stream)
    checks.whole("max_tokens", max_tokens)
    if cache is not None:
        checks.choice("cache", cache, "5m", "1h")
    return MessagesModel(client, name, stream, {"max_tokens": max_tokens, **options}, cache)


class Creates(Protocol):
    """The part of a client that sends a request."""

    @property
    def create(self) -> Callable[..., object]: ...


class MessagesClient(Protocol):
    """What is used of an `Anthropic` or `AsyncAnthropic` client, or of one that wraps it."""

    @property
    def messages(self) -> Creates: ...


class MessagesModel:
    """Asks the provider; with `stream`, its reply is shown as it comes in. An async client needs `arun`."""

    def __init__(
        self, client: MessagesClient, name: str, stream: bool, options: JsonObject, cache: TimeToLive | None = None
    ) -> None:
        self.client, self.name, self.stream, self.options, self.cache = client, name, stream, dict(options), cache

    def request_for(self, request: CallModel) -> dict[str, Any]:
        """The arguments of `messages.create`."""
        arguments: dict[str, Any] = {"model": self.name, "messages": messages_for(request.transcript)}
        if request.system:
            arguments["system"] = clean(request.system)
        if self.stream:
            arguments["stream"] = True
        options = self.options | dict(request.options)
        if tools := [*(options.pop("tools", None) or ()), *definitions(request.tools, definition)]:
            arguments["tools"] = tools
        arguments = {name: value for name, value in (arguments | options).items() if value is not None}
        return arguments if self.cache is None else with_cache(arguments, self.cache)

    def __call__(self, request: CallModel) -> ReplyStream | AsyncReplyStream:
        arguments = self.request_for(request)
        client = getattr(self.client, "beta", self.client) if "betas" in arguments else self.client
        answer = client.messages.create(**arguments)
        return read_answer(answer, reply_from, MessagePieces() if arguments.get("stream") else None)


def reply_from(reply: object) -> Reply:
    """A reply of the provider (an SDK object or its dict) as an agent reads it.

    Raises `ReplyError` for an error in place of a reply, and `SetupError` for what is no message of Anthropic.
    """
    plain = fields_of(reply)
    blocks = _blocks(plain)
    if plain.get("type") == "error" or plain.get("content") is None:
        raise reply_error(plain.get("error"), "the provider answered with nothing: there is no content in its reply")
    usage = plain.get("usage")
    read, written = (count_in(usage, f"cache_{what}_input_tokens") for what in ("read", "creation"))
    return Reply(
        text="".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text"),
        calls=tuple(calls_in(plain)),
        usage=Usage(count_in(usage, "input_tokens") + read + written, read, count_in(usage, "output_tokens")),
        reasoning="".join(str(block.get("thinking") or "") for block in blocks if block.get("type") == "thinking"),
        raw=message_from(plain),
        wire=WIRE,
        model=str(plain.get("model") or ""),
        stop=_stop(plain),
    )


# -- inside ------------------------------------------------------------------------------------------------------


def _blocks(reply: object) -> list[JsonObject]:
    plain = fields_of(reply)
    if "choices" in plain:  # read as a message it would seem to call nothing
        raise SetupError("this wire reads messages of Anthropic, but this is a chat completion: use openai_chat")
    content = plain.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list | tuple) else []
    return [
        {key: value for key, value in block.items() if value is not None} for each in blocks for block in _parts(each)
    ]


def _parts(block: JsonObject) -> list[JsonObject]:
    """A block that stands for several calls as one block for each; any other block as it is."""
    inner = inner_calls(block.get("name"), block.get("input")) if block.get("type") == "tool_use" else []
    if not inner:
        return [block]
    first, *rest = [{"type": "tool_use", "name": name, "input": given or {}} for name, given in inner]
    return [{**first, "id": block.get("id")}, *rest]


def _stop(plain: JsonObject) -> str:
    word = plain.get("stop_reason")
    return word if isinstance(word, str) else ""
