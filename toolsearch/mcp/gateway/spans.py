"""Spans of OpenTelemetry for searches and calls, where the program or the environment has set it up."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from opentelemetry import trace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

__all__ = ["Spans", "exporting"]

log = logging.getLogger("toolsearch.mcp")

_ADDRESSES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_OTLP = ("otlp_proto_http", "otlp_proto_grpc", "otlp")
_INSTALL = "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"


class Spans:
    """Spans by the conventions for generative AI. The server of the SDK makes the span of the request around them."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("toolsearch.mcp")

    @contextmanager
    def of(self, operation: str, name: str, server: str = "") -> Generator[trace.Span]:
        """A span around a search, or around the call of a server's tool. It has no arguments and no results."""
        attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.tool.name": name,
            **({"toolsearch.mcp.server": server} if server else {}),
        }
        with self._tracer.start_as_current_span(f"{operation} {name}", attributes=attributes) as span:
            yield span


def exporting(environ: Mapping[str, str]) -> TracerProvider | None:
    """Where spans go by the variables that OpenTelemetry gives a meaning; None where these ask for no exporter.

    If one is asked for that is not installed, or the SDK is not, the log says what to install.
    """
    wanted = environ.get("OTEL_TRACES_EXPORTER", "otlp" if any(map(environ.get, _ADDRESSES)) else "none")
    names = _OTLP if wanted == "otlp" else (wanted,)
    if wanted == "none":
        return None
    exporters = {entry.name: entry for entry in entry_points(group="opentelemetry_traces_exporter")}
    found = next((exporters[name] for name in names if name in exporters), None)
    try:
        if found is None:
            raise ImportError(f"there is no exporter {wanted!r}")
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        name = environ.get("OTEL_SERVICE_NAME", "toolsearch-gateway")
        provider = TracerProvider(resource=Resource.create({"service.name": name}))
        provider.add_span_processor(BatchSpanProcessor(found.load()()))
    except ImportError as error:
        log.warning("spans are not exported, though the environment asks for it: %s; %s", error, _INSTALL)
        return None
    return provider
