"""Gateways for tests, with real clients of the SDK in both generations of the protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, ElicitResult

from toolsearch.mcp.gateway import Gateway

GENERATIONS = ("legacy", "auto")  # the handshake of 2025, and the stateless protocol of 2026


@dataclass
class Person:
    """Who answers questions at a client, in this order; `asked` are the questions."""

    answers: list[str] = field(default_factory=lambda: ["accept"])
    asked: list[str] = field(default_factory=list)
    content: Mapping[str, Any] = field(default_factory=dict)

    async def __call__(self, context: object, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        action = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return ElicitResult(action=action, content=dict(self.content) if action == "accept" else None)  # type: ignore[arg-type]


@asynccontextmanager
async def opened(
    servers: Mapping[str, Any] | Path, folder: Path, *, wait: bool = True, **settings: Any
) -> AsyncGenerator[Gateway]:
    """A running gateway, whose servers are connected; everything it keeps is in `folder`."""
    config = servers if isinstance(servers, Path) else {"mcpServers": dict(servers)}
    settings = {"index": "keyword", **settings}
    async with Gateway(config, cache_folder=folder / "cache", **settings) as gateway:
        if wait:
            await gateway.servers.ready(20)
        yield gateway


@asynccontextmanager
async def client_of(
    gateway: Gateway, generation: str, person: Person | None = None, **options: Any
) -> AsyncGenerator[Client]:
    """A client of the SDK at a gateway."""
    async with Client(
        gateway.server, mode=generation, elicitation_callback=person, raise_exceptions=False, **options
    ) as client:
        yield client


def text_of(result: CallToolResult) -> str:
    """The texts of a result."""
    return "\n".join(block.text for block in result.content if block.type == "text")


async def through(client: Client, door: str, name: str, /, **arguments: Any) -> CallToolResult:
    """The result of a tool that is called through a door."""
    return await client.call_tool(door, {"name": name, "arguments": arguments})
