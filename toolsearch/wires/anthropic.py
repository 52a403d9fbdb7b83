"""Anthropic Messages.

In a loop of your own:

    reply = client.messages.create(model=…, max_tokens=…, system=…, messages=messages, tools=tools_for(session))
    messages += [message_from(reply), *results_for([(call, session.handle(call)) for call in calls_in(reply)])]

For an `Agent`: `model(client, "claude-…")`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from toolsearch.calls import NativeDelivery, ToolCall, ToolResult
from toolsearch.catalog.tools import Shown
from toolsearch.events.requests import CallModel
from toolsearch.protocols import AsyncReplyStream, ReplyStream, ShowsTools
from toolsearch.support import checks
from toolsearch.support.bounded_cache import BoundedCache
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean
from toolsearch.wires._message_blocks import (
    additions_for,
    definition,
    messages_for,
    references,
    result_blocks,
)
from toolsearch.wires._message_cache import TimeToLive, with_cache
from toolsearch.wires._message_pieces import MessagePieces
from toolsearch.wires._message_replies import MemberCall, calls_in, message_from, reply_from
from toolsearch.wires._native import asked, plain_instead
from toolsearch.wires.shared import answered_calls, definitions, own_tools

__all__ = [
    "BETAS",
    "MessagesClient",
    "MessagesModel",
    "calls_in",
    "definition",
    "message_from",
    "messages_for",
    "model",
    "native",
    "reply_from",
    "results_for",
    "tools_for",
    "with_cache",
]

REFERENCES = NativeDelivery(declares=True, most_declared=10_000)
native = REFERENCES
"""How found tools are delivered: by a reference to a tool that each request declares, deferred."""

BETAS = ("mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15")
"""The beta features that a request with additions needs."""

ADDITIONS = NativeDelivery(with_messages=True)

# What a provider names that does not know native delivery: an older model, or another host of them. An error about a
# schema is about one tool.
_NATIVE_WORDS = re.compile(
    r"\A(?!.*(?:input_schema|JSON schema)).*"
    r"(?:defer_loading|deferred tools?\b|tool_reference|tool_addition|tool_definition|anthropic-beta)",
    re.IGNORECASE | re.DOTALL,
)


def tools_for(session: ShowsTools, *, description_characters: int | None = None) -> list[dict[str, Any]]:
    """The `tools` of the next request. Earlier entries keep their bytes and places; found tools come at the end."""
    checks.having("session", session, "a Session, as ToolSearch(…).session() gives", "tools")
    checks.whole("description_characters", description_characters, 100, none="for no limit")
    shown = session.tools()
    deferred = session.deferred() if checks.offers(session, DefersTools) else []
    brought = {each.name for each in shown if each.delivered}
    return _tools(shown, deferred, brought, description_characters)


class DefersTools(Protocol):
    """What is used of a `Session` beside `tools`."""

    def deferred(self) -> list[Shown]: ...


def _tools(
    shown: Iterable[Shown], deferred: Iterable[Shown], brought: AbstractSet[str], characters: int | None = None
) -> list[dict[str, Any]]:
    """The tools to list, and behind them those that are declared, deferred.

    What the conversation has brought by name is not listed, and what is listed is not deferred. Where nothing is
    listed, nothing is deferred either: the provider refuses a request with deferred tools only.
    """
    declared = {each.name: each for each in deferred}
    stands = brought & declared.keys() if declared else brought
    listed = definitions([each for each in shown if each.name not in stands], lambda each: definition(each, characters))
    names = {each["name"] for each in listed}
    later = [each for name, each in declared.items() if name not in names] if listed else []
    return [*listed, *definitions(later, lambda each: _deferred(each, characters))]


_DEFERRED: BoundedCache[dict[str, Any]] = BoundedCache(50_000_000)  # characters


def _deferred(shown: Shown, characters: int | None) -> dict[str, Any]:
    """A declaration. It is kept, because every request has all of them."""
    key = (shown.name, shown.tool.digest, characters)
    if (made := _DEFERRED.get(key)) is None:
        made = {**definition(shown, characters), "defer_loading": True}
        _DEFERRED.put(key, made, len(str(made)))
    return dict(made)


def results_for(answered: Iterable[tuple[ToolCall, ToolResult]], *, additions: bool = False) -> list[dict[str, Any]]:
    """The one user message that carries all results back; an empty list if nothing was called.

    In the mode "native" the result of a search refers to the tools that it found, which `tools_for` declares. With
    `additions` a second message, of the system, has their definitions; the request needs the `BETAS` then.
    """
    pairs = answered_calls(answered)
    blocks = result_blocks(
        (
            clean(call.id),
            result,
            call.toolset_name if isinstance(call, MemberCall) else "",
            [] if additions else references(result.loaded),
        )
        for call, result in pairs
    )
    messages = [{"role": "user", "content": blocks}] if blocks else []
    added = additions_for(loaded for _, result in pairs for loaded in result.loaded) if additions else []
    return [*messages, {"role": "system", "content": added}] if added else messages


# -- for an agent ------------------------------------------------------------------------------------------------


def model(
    client: MessagesClient,
    name: str,
    *,
    stream: bool = True,
    max_tokens: int = 4_096,
    cache: TimeToLive | None = None,
    native: bool = True,
    additions: bool = False,
    **options: object,
) -> MessagesModel:
    """A model for an `Agent`, asked through an `Anthropic` or `AsyncAnthropic` client.

    With `cache`, "5m" or "1h", requests are marked for the provider's cache: see `with_cache`. With `additions` found
    tools come by value, as the `BETAS` allow, and not by reference to a declaration of all tools; with `native=False`
    neither way is used. `options` go into every request; one that is None is left out. `tools` among them are tools
    that the provider runs itself, such as its web search: they stand before the session's. With `betas` the client's
    `beta.messages` is asked.
    """
    checks.having("client", client, "an Anthropic or AsyncAnthropic client", "messages.create")
    checks.text("name", name, empty=False)
    checks.flag("stream", stream)
    checks.whole("max_tokens", max_tokens)
    if cache is not None:
        checks.choice("cache", cache, "5m", "1h")
    checks.flag("native", native)
    checks.flag("additions", additions)
    how = (ADDITIONS if additions else REFERENCES) if native else None
    return MessagesModel(client, name, stream, {"max_tokens": max_tokens, **options}, cache=cache, native=how)


class Creates(Protocol):
    """The part of a client that sends a request."""

    @property
    def create(self) -> Callable[..., object]: ...


class MessagesClient(Protocol):
    """What is used of an `Anthropic` or `AsyncAnthropic` client, or of one that wraps it."""

    @property
    def messages(self) -> Creates: ...


class MessagesModel:
    """Asks the provider; with `stream`, its reply is shown as it comes in. An async client needs `arun`.

    `native` is how found tools are delivered. If the provider refuses that, it is None from then on, `not_native` says
    why, and the request is sent again with all found tools in its `tools`.
    """

    def __init__(
        self,
        client: MessagesClient,
        name: str,
        stream: bool,
        options: JsonObject,
        *,
        cache: TimeToLive | None = None,
        native: NativeDelivery | None = REFERENCES,
    ) -> None:
        self.client, self.name, self.stream, self.options = client, name, stream, dict(options)
        self.cache: TimeToLive | None = cache
        self.native, self.not_native = native, ""

    def request_for(self, request: CallModel) -> dict[str, Any]:
        """The arguments of `messages.create`."""
        own, options = own_tools(self.options | dict(request.options), request)
        arguments: dict[str, Any] = {"model": self.name, **self._messages_and_tools(request, own)}
        if request.system:
            arguments["system"] = clean(request.system)
        if self.stream:
            arguments["stream"] = True
        if self.native is not None and not self.native.declares:
            options["betas"] = [*dict.fromkeys([*(options.get("betas") or ()), *BETAS])]
        if not arguments["tools"]:  # the provider refuses a choice among none
            options["tool_choice"] = None
        arguments = {name: value for name, value in (arguments | options).items() if value is not None}
        return arguments if self.cache is None else with_cache(arguments, self.cache)

    def _messages_and_tools(self, request: CallModel, own: list[Any]) -> dict[str, Any]:
        how: dict[str, Collection[str]] = {}
        if self.native is None:
            tools = definitions(request.tools, definition)
        else:
            brought = {shown.name for shown in request.tools} - {shown.name for shown in request.listed()}
            deferred = request.deferred if self.native.declares else ()
            tools = _tools(request.tools, deferred, brought)
            declared = {tool["name"] for tool in tools if "defer_loading" in tool}
            listed = {str(tool.get("name")) for tool in [*own, *tools]}
            how = {"declared": declared} if self.native.declares else {"listed": listed}
        messages = messages_for(request.transcript, **how)
        return {"messages": messages, "tools": [*own, *tools] or None}

    def __call__(self, request: CallModel) -> ReplyStream | AsyncReplyStream:
        arguments = self.request_for(request)

        def instead(error: Exception) -> JsonObject:
            return plain_instead(self, request, arguments, error, _NATIVE_WORDS)

        return asked(self._create, arguments, instead, reply_from, MessagePieces() if arguments.get("stream") else None)

    def _create(self, **arguments: object) -> object:
        client = getattr(self.client, "beta", self.client) if "betas" in arguments else self.client
        return client.messages.create(**arguments)
