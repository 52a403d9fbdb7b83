"""Spans of OpenTelemetry for searches and calls, where the program or the environment has set it up."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from opentelemetry import trace

__all__ = ["Spans"]


class Spans:
    """Spans by the conventions for generative AI. The server of the SDK makes the span of the request around them."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("toolsearch.mcp")

    @contextmanager
    def of(self, operation: str, name: str, server: str = "") -> Generator[None]:
        """A span around a search, or around the call of a server's tool. It has no arguments and no results."""
        attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.tool.name": name,
            **({"toolsearch.mcp.server": server} if server else {}),
        }
        with self._tracer.start_as_current_span(f"{operation} {name}", attributes=attributes):
            yield
