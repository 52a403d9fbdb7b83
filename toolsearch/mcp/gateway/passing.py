"""What passes a gateway besides tools: resources, prompts, completion, the level of the log."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.uri_template import UriTemplate
from pydantic import BaseModel

from toolsearch.mcp.faults import CallFailed, ServerUnavailable
from toolsearch.mcp.gateway.meta import passed_meta
from toolsearch.mcp.gateway.results import without_server
from toolsearch.mcp.gateway.served_names import served_name
from toolsearch.mcp.servers import Servers

__all__ = ["Passing"]

log = logging.getLogger("toolsearch.mcp")

R = TypeVar("R", bound=BaseModel)
MOST_PAGES = 200
LIST_SECONDS = 10.0  # for the pages of one server: others do not wait longer for one that hangs
MOST_URI = 2_000  # characters of an address that is compared with templates
NOT_FOUND = -32002


@dataclass
class _Places:
    """Which server has what, by the name or address that clients know: the server, and its own name for it."""

    resources: dict[str, tuple[str, str]] = field(default_factory=dict)
    templates: dict[str, tuple[str, str]] = field(default_factory=dict)
    prompts: dict[str, tuple[str, str]] = field(default_factory=dict)


class Passing:
    """Lists what all servers have, and passes each request to the server that it is meant for.

    The address of a resource stays as it is. If a server lists one that a server before it in the configuration has
    too, clients know it as `mcp+SERVER:ADDRESS`. A prompt has the name of its server before its own, as tools have.
    """

    def __init__(self, servers: Servers, wait_seconds: float) -> None:
        self._servers, self._wait = servers, wait_seconds
        self._places = _Places()
        self._watched: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by server: who wants to hear of what

    # -- lists ---------------------------------------------------------------------------------------------------

    async def resources(self) -> types.ListResourcesResult:
        """The resources of all servers."""
        kept: list[types.Resource] = []
        places: dict[str, tuple[str, str]] = {}
        meta: dict[str, Any] = {}
        async for server, pages in self._pages("resources", types.ListResourcesRequest, types.ListResourcesResult):
            for page in pages:
                meta = {**(without_server(page.meta) or {}), **meta}
                for each in page.resources:
                    address = self._address(server, str(each.uri), places)
                    kept.append(each.model_copy(update={"uri": address}))
        self._places.resources = places
        return _with_meta(types.ListResourcesResult(resources=kept), meta)

    async def templates(self) -> types.ListResourceTemplatesResult:
        """The templates of addresses of all servers."""
        kept: list[types.ResourceTemplate] = []
        places: dict[str, tuple[str, str]] = {}
        meta: dict[str, Any] = {}
        asked, given = types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult
        async for server, pages in self._pages("resources", asked, given):
            for page in pages:
                meta = {**(without_server(page.meta) or {}), **meta}
                for each in page.resource_templates:
                    address = self._address(server, each.uri_template, places)
                    kept.append(each.model_copy(update={"uri_template": address}))
        self._places.templates = places
        return _with_meta(types.ListResourceTemplatesResult(resource_templates=kept), meta)

    async def prompts(self) -> types.ListPromptsResult:
        """The prompts of all servers."""
        kept: list[types.Prompt] = []
        places: dict[str, tuple[str, str]] = {}
        meta: dict[str, Any] = {}
        async for server, pages in self._pages("prompts", types.ListPromptsRequest, types.ListPromptsResult):
            for page in pages:
                meta = {**(without_server(page.meta) or {}), **meta}
                for each in page.prompts:
                    name = served_name(server, each.name)
                    places[name] = server, each.name
                    kept.append(each.model_copy(update={"name": name}))
        self._places.prompts = places
        return _with_meta(types.ListPromptsResult(prompts=kept), meta)

    async def _pages(
        self, kind: str, request: type[types.PaginatedRequest[Any]], result: type[R]
    ) -> AsyncIterator[tuple[str, list[R]]]:
        """All pages of every server that offers this kind, in the order of the configuration."""
        late = [name for name, each in self._servers.health().items() if each.state == "connecting"]
        if late and self._wait > 0:
            await self._servers.ready(self._wait, late)
        names = self._offering(kind)
        listed = await asyncio.gather(*(self._all_pages(name, request, result) for name in names))
        for name, pages in zip(names, listed, strict=True):
            yield name, pages

    async def _all_pages(self, server: str, request: type[Any], result: type[R]) -> list[R]:
        """The pages of one server; as far as it gives any."""
        pages: list[R] = []
        seen: set[str] = set()
        cursor: str | None = None
        try:
            while len(pages) < MOST_PAGES:
                params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
                page: Any = await self._servers.request(
                    server, request(params=params), result, seconds=LIST_SECONDS, repeatable=True
                )
                pages.append(page)
                cursor = page.next_cursor
                if not cursor or cursor in seen:
                    break
                seen.add(cursor)
        except (ServerUnavailable, CallFailed, MCPError, ValueError) as error:
            log.warning("server %r: %s failed: %s", server, request.__name__, self._servers.config.masked(str(error)))
        return pages

    def _offering(self, kind: str) -> list[str]:
        """The servers that have this kind of thing, and can be asked now."""
        ready = [name for name, each in self._servers.health().items() if each.is_ready]
        return [name for name in ready if self._servers.offer(name).has(kind)]

    @staticmethod
    def _address(server: str, address: str, places: dict[str, tuple[str, str]]) -> str:
        # An address in our own form would be another server's.
        taken = address in places or address.startswith("mcp+")
        known = f"mcp+{server}:{address}" if taken else address
        places[known] = server, address
        return known

    # -- requests ------------------------------------------------------------------------------------------------

    async def read(self, params: types.ReadResourceRequestParams, session: str) -> types.ReadResourceResult:
        """What a resource holds. An address that nobody lists is asked of every server that has resources."""
        address = str(params.uri)
        places = await self._places_of(address)
        if not places:
            raise MCPError(NOT_FOUND, "Resource not found", {"uri": address})
        first: MCPError | None = None
        for server, own in places:
            request = types.ReadResourceRequest(
                params=params.model_copy(update={"uri": own, "meta": _meta(params.meta)})
            )
            try:
                return await self._send(server, request, types.ReadResourceResult, session)
            except MCPError as error:
                first = first or error
        raise first or MCPError(NOT_FOUND, "Resource not found", {"uri": address})

    async def _places_of(self, address: str) -> list[tuple[str, str]]:
        if place := self._place_of(address):
            return [place]
        if not self._places.resources and not self._places.templates:
            await asyncio.gather(self.resources(), self.templates())
            if place := self._place_of(address):
                return [place]
        for name in self._servers.names:
            if address.startswith(prefix := f"mcp+{name}:"):
                return [(name, address.removeprefix(prefix))]
        return [(name, address) for name in self._offering("resources")]

    def _place_of(self, address: str) -> tuple[str, str] | None:
        if (place := self._places.resources.get(address)) is not None:
            return place
        if len(address) > MOST_URI:
            return None
        matching = (place for known, place in self._places.templates.items() if _matches(known, address))
        server = next((server for server, _ in matching), None)
        return None if server is None else (server, address.removeprefix(f"mcp+{server}:"))

    async def prompt(self, params: types.GetPromptRequestParams, session: str) -> types.GetPromptResult:
        """A prompt with its arguments filled in."""
        server, own = await self._prompt_place(params.name)
        inner = params.model_copy(update={"name": own, "meta": _meta(params.meta)})
        return await self._send(server, types.GetPromptRequest(params=inner), types.GetPromptResult, session)

    async def _prompt_place(self, name: str) -> tuple[str, str]:
        if name not in self._places.prompts:
            await self.prompts()
        if (place := self._places.prompts.get(name)) is not None:
            return place
        own = [place for place in self._places.prompts.values() if place[1] == name]
        if len(own) == 1:
            return own[0]
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {name}")

    async def complete(self, params: types.CompleteRequestParams, session: str) -> types.CompleteResult:
        """Completions for an argument of a prompt, or of a template of addresses."""
        ref = params.ref
        if isinstance(ref, types.PromptReference):
            server, own = await self._prompt_place(ref.name)
            inner: Any = ref.model_copy(update={"name": own})
        else:
            if ref.uri not in self._places.templates:
                await self.templates()
            place = self._places.templates.get(ref.uri) or self._place_of(ref.uri)
            if place is None:
                raise MCPError(types.INVALID_PARAMS, f"Unknown resource template: {ref.uri}")
            server, own = place
            inner = ref.model_copy(update={"uri": own})
        asked = params.model_copy(update={"ref": inner, "meta": _meta(params.meta)})
        return await self._send(server, types.CompleteRequest(params=asked), types.CompleteResult, session)

    async def set_level(self, params: types.SetLevelRequestParams) -> None:
        """Tells every server that has a log from which level on it is wanted."""
        names = self._offering("logging")
        requests = (
            self._send(name, types.SetLevelRequest(params=params), types.EmptyResult, None) for name in names
        )  # fmt: skip
        for name, answer in zip(names, await asyncio.gather(*requests, return_exceptions=True), strict=True):
            if isinstance(answer, BaseException):
                log.debug("server %r: its level of the log was not set: %s", name, answer)

    async def subscribe(self, address: str) -> None:
        """Asks the server of a resource to tell when it changes. Counted: as often, `unsubscribe` is called."""
        for server, own in await self._places_of(address):
            self._watched[server][own] += 1
            if self._servers.offer(server).is_modern:
                await self._servers.watch(server, frozenset(self._watched[server]))
            elif self._watched[server][own] == 1:
                request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=own))
                await self._send(server, request, types.EmptyResult, None)

    async def subscribe_again(self, server: str) -> None:
        """A server that was connected again knows of no subscription; one of the newer protocol is told anyway."""
        if not self._servers.offer(server).is_modern:
            for own in [*self._watched.get(server, ())]:
                with suppress(MCPError):
                    request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=own))
                    await self._send(server, request, types.EmptyResult, None)

    async def unsubscribe(self, address: str) -> None:
        """The server need no longer tell, once nobody else wants to hear of it."""
        for server, own in await self._places_of(address):
            self._watched[server][own] -= 1
            if self._watched[server][own] > 0:
                continue
            del self._watched[server][own]
            if self._servers.offer(server).is_modern:
                await self._servers.watch(server, frozenset(self._watched[server]))
            else:
                request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=own))
                await self._send(server, request, types.EmptyResult, None)

    def known_as(self, server: str, address: str) -> str:
        """How clients know an address of a server."""
        wrapped = f"mcp+{server}:{address}"
        return wrapped if wrapped in self._places.resources else address

    async def _send(self, server: str, request: types.Request[Any, Any], result: type[R], session: str | None) -> R:
        try:
            answer: Any = await self._servers.request(server, request, result, session=session, repeatable=True)
        except (ServerUnavailable, CallFailed) as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        return cast("R", answer.model_copy(update={"meta": without_server(answer.meta)}))


def _meta(meta: Mapping[str, Any] | None) -> types.RequestParamsMeta | None:
    return cast("types.RequestParamsMeta | None", passed_meta(meta))


def _with_meta(listed: R, meta: dict[str, Any]) -> R:
    return listed.model_copy(update={"meta": meta or None})


def _matches(template: str, address: str) -> bool:
    try:
        return UriTemplate.parse(template).match(address) is not None
    except ValueError:
        return False
