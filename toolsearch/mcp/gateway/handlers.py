"""The handlers of the gateway's server: each finds out who asks, and passes the request to whoever answers it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

import toolsearch
from toolsearch.mcp.calls import hidden_error
from toolsearch.mcp.gateway.asking import Asker
from toolsearch.mcp.gateway.changes import Changes
from toolsearch.mcp.gateway.clients import Context, who
from toolsearch.mcp.gateway.conversations import Conversation
from toolsearch.mcp.gateway.descriptions import SEARCH, instructions
from toolsearch.mcp.gateway.parts import Parts
from toolsearch.mcp.guards import UnreadableArguments, read_arguments

__all__ = ["GatewayServer", "Handlers", "gateway_server"]

NAME = "toolsearch"


class GatewayServer(Server[Any]):
    """The SDK's server, which says in every transport that its lists may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        every = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
        return super().create_initialization_options(
            notification_options or every, experimental_capabilities, extensions
        )


def gateway_server(handlers: Handlers) -> GatewayServer:
    """A server of the SDK with these handlers."""
    server = GatewayServer(
        NAME,
        version=toolsearch.__version__,
        title="toolsearch",
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=handlers.subscribe,
        on_unsubscribe_resource=handlers.unsubscribe,
        on_subscriptions_listen=handlers.listen,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_completion=handlers.complete,
        get_tool_input_schema=handlers.parts.lists.schema,
    )
    # Not as an argument, which would warn: the older generation has it still.
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, handlers.set_level)
    server.middleware.append(handlers.around)
    return server


class Handlers:
    """The methods that a client can call."""

    def __init__(self, parts: Parts, changes: Changes) -> None:
        self.parts, self._changes = parts, changes
        self._listen = ListenHandler(changes.bus)
        self._working: set[asyncio.Task[None]] = set()

    def _conversation(self, context: Context) -> Conversation:
        sender = who(context)
        conversation = self.parts.conversations.of(sender)
        if not sender.is_modern:
            conversation.channel = context.session
        return conversation

    @contextmanager
    def _answering(self, context: Context) -> Generator[Conversation]:
        conversation = self._conversation(context)
        try:
            yield conversation
        finally:
            self.parts.answered(conversation)

    async def around(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """What the SDK has no handler for: the instructions as they are now, and arguments that came as a text.

        The error of a server passes as it is, but for the secrets of the configuration that it may repeat.
        """
        context = ctx
        if context.method == "tools/call" and context.params is not None:
            context = _with_object(context, context.params)
        try:
            result = await call_next(context)
        except MCPError as error:
            raise hidden_error(error, self.parts.servers.config.without_secrets) from error
        if context.method in ("initialize", "server/discover") and isinstance(result, Mapping):
            return {**result, "instructions": self._instructions(context, result)}
        return result

    def _instructions(self, context: Context, result: Mapping[str, Any]) -> str:
        name = ""
        with suppress(LookupError, TypeError):
            name = str((context.params or {})["clientInfo"]["name"])  # of `initialize`; no session has it yet
        mode = self.parts.lists.likely_mode(name or who(context).name)
        return instructions(mode, self.parts.instructions_of_servers())

    # -- tools ---------------------------------------------------------------------------------------------------

    async def list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        conversation = self._conversation(context)
        return types.ListToolsResult(tools=await self.parts.lists.tools(who(context), conversation))

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        conversation = self._conversation(context)
        mode = await self.parts.lists.mode(who(context), conversation)
        before = conversation.listed

        async def answer(asker: Asker) -> dict[str, Any]:
            try:
                return await self.parts.calls.answer(conversation, params, asker)
            finally:
                self.parts.answered(conversation)

        result = await self.parts.asking.run(context, params, answer)
        if mode == "live" and (params.name == SEARCH or conversation.listed != before):
            await self._changes.tell_tools(conversation)
        if isinstance(result, dict):  # as good as an object of the SDK, and nothing of a result is lost in it
            return {"resultType": "complete", **result}  # type: ignore[return-value]
        return result

    # -- all else ------------------------------------------------------------------------------------------------

    async def list_resources(self, context: Context, params: object) -> types.ListResourcesResult:
        self._conversation(context)
        return await self.parts.passing.resources()

    async def list_templates(self, context: Context, params: object) -> types.ListResourceTemplatesResult:
        self._conversation(context)
        return await self.parts.passing.templates()

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        with self._answering(context) as conversation:
            return await self.parts.passing.read(params, conversation.id)

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        conversation = self._conversation(context)
        if str(params.uri) not in conversation.subscribed:
            conversation.subscribed.add(str(params.uri))
            await self.parts.passing.subscribe(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        conversation = self._conversation(context)
        if str(params.uri) in conversation.subscribed:
            conversation.subscribed.discard(str(params.uri))
            await self.parts.passing.unsubscribe(str(params.uri))
        return types.EmptyResult()

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        wanted = [str(each) for each in params.notifications.resource_subscriptions or ()]
        for address in wanted:
            await self.parts.passing.subscribe(address)
        try:
            return await self._listen(context, params)
        finally:
            for address in wanted:
                self._spawn(self.parts.passing.unsubscribe(address))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        """Does some work though the request has ended."""
        task = asyncio.ensure_future(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def list_prompts(self, context: Context, params: object) -> types.ListPromptsResult:
        self._conversation(context)
        return await self.parts.passing.prompts()

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        with self._answering(context) as conversation:
            return await self.parts.passing.prompt(params, conversation.id)

    async def complete(self, context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        with self._answering(context) as conversation:
            return await self.parts.passing.complete(params, conversation.id)

    async def set_level(self, context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        conversation = self._conversation(context)
        conversation.level = params.level
        await self.parts.passing.set_level(params)
        return types.EmptyResult()


def _with_object(context: Context, params: Mapping[str, Any]) -> Context:
    """The request with arguments as an object: many clients send them as a JSON text."""
    if not isinstance(params.get("arguments"), str):
        return context
    try:
        return replace(context, params={**params, "arguments": read_arguments(params["arguments"])})
    except UnreadableArguments:
        return context  # the SDK refuses it
