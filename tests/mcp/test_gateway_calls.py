"""What clients send and get: arguments in every form, long results, names without a search, slow servers, spans."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import Implementation
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.mcp.gateways import GENERATIONS, Person, client_of, opened, text_of, through
from tests.mcp.servers import entry, over_http
from toolsearch.mcp.gateway.asking import AskingCalls
from toolsearch.mcp.gateway.spans import exporting

every_generation = pytest.mark.parametrize("generation", GENERATIONS)
Entry = dict[str, Any]


@pytest.fixture(scope="module")
def everything() -> Iterator[Entry]:
    with over_http("everything") as entry:
        yield entry


@pytest.fixture(scope="module")
def plain() -> Iterator[Entry]:
    with over_http("plain", tools=30) as entry:
        yield entry


@every_generation
def test_arguments_may_come_as_a_text(generation: str, everything: Entry, tmp_path: Path) -> None:
    """Group P: every call with parameters failed where a client sends them as a JSON text."""

    async def play() -> None:
        async with (
            opened({"every": everything}, tmp_path, mode="bridge") as gateway,
            client_of(gateway, generation) as client,
        ):
            inner = json.dumps({"text": "hi"})
            assert text_of(await client.call_tool("call_tool", {"name": "every__echo", "arguments": inner})) == "hi"
            twice = {"name": "every__echo", "arguments": json.dumps(inner)}
            assert text_of(await client.call_tool("call_tool", twice)) == "hi"
            whole: Any = json.dumps({"name": "every__echo", "arguments": {"text": "hi"}})
            sent: dict[str, Any] = {"name": "call_tool", "arguments": whole}
            if generation == "legacy":
                result = await client.session._dispatcher.send_raw_request("tools/call", sent)  # type: ignore[attr-defined]
                assert result["content"][0]["text"] == "hi"
            broken = await client.call_tool("call_tool", {"name": "every__echo", "arguments": "{text"})
            assert broken.is_error
            assert text_of(broken).startswith("Nothing ran. The arguments are a text that is not valid JSON")
            flat = await client.call_tool("call_tool", {"name": "every__echo", "text": "hi"})
            assert 'call_tool needs "name", the tool to call, and "arguments"' in text_of(flat)
            missing = await through(client, "call_tool", "every__echo", text={"deep": 7})
            assert missing.is_error
            assert '"type": "string"' in text_of(missing)  # the schema, for the next attempt

    asyncio.run(play())


@every_generation
def test_a_long_result_comes_in_pages_and_nothing_is_lost(generation: str, everything: Entry, tmp_path: Path) -> None:
    """Group N."""

    async def play() -> None:
        async with (
            opened({"every": everything}, tmp_path, mode="bridge", result_tokens=2_000) as gateway,
            client_of(gateway, generation) as client,
        ):
            result = await through(client, "call_tool", "every__big", count=30_000)
            pages = [text_of(result)]
            while call := re.findall(r"call fetch_result with (\{.*?\})", pages[-1]):
                pages.append(text_of(await client.call_tool("fetch_result", json.loads(call[-1]))))
            assert all(len(page) < 8_000 for page in pages)
            numbers = [int(each) for page in pages for each in re.findall(r"line (\d+): x+", page)]
            assert numbers == list(range(len(numbers)))
            assert len(numbers) > 300
            rows = await through(client, "call_tool", "every__big_structured", count=500)
            assert rows.structured_content is None
            assert "fetch_result" in text_of(rows)

    asyncio.run(play())


@every_generation
def test_a_tool_is_called_by_its_own_name_without_a_search(generation: str, everything: Entry, tmp_path: Path) -> None:
    """Group F: a known name runs; an unknown one gets near names, and an unreachable server is named."""

    async def play() -> None:
        servers = {"every": everything, "dead": {"command": "no-such-command"}}
        async with (
            opened(servers, tmp_path, mode="bridge") as gateway,
            client_of(gateway, generation) as client,
        ):
            for name in ("every__echo", "every/echo", "echo", "mcp__toolsearch__every__echo"):
                assert text_of(await through(client, "call_tool", name, text=name)) == name
            unknown = text_of(await through(client, "call_tool", "every__ecko"))
            assert "there is no such tool. Similar names: 'every__echo'" in unknown
            assert "'dead' (there is no command 'no-such-command'" in unknown

    asyncio.run(play())


@every_generation
def test_the_mode_is_chosen_by_the_client_and_the_number_of_tools(
    generation: str, everything: Entry, plain: Entry, tmp_path: Path
) -> None:
    async def listed(servers: dict[str, Entry], name: str, **settings: Any) -> int:
        info = Implementation(name=name, version="1")
        async with (
            opened(servers, tmp_path, **settings) as gateway,
            Client(gateway.server, mode=generation, client_info=info) as client,
        ):
            return len((await client.list_tools()).tools)

    async def play() -> list[int]:
        both = {"every": everything, "plain": plain}
        return [
            await listed(both, "some-client"),
            await listed(both, "claude-code"),
            await listed({"every": everything}, "some-client"),
            await listed(both, "claude-code", mode="bridge"),
        ]

    assert asyncio.run(play()) == [4, 50, 20, 4]


def test_a_search_waits_for_a_server_that_is_connecting(tmp_path: Path) -> None:
    """J43: else a model is told that there is no such tool. A search that waits no longer says so."""

    async def play() -> tuple[str, str]:
        told = []
        for seconds in (20.0, 0.0):
            servers = {"slow": entry("plain", tools=2, slow_start=1)}
            async with (
                opened(servers, tmp_path, wait=False, mode="bridge", search_seconds=seconds) as gateway,
                client_of(gateway, "legacy") as client,
            ):
                told.append(text_of(await client.call_tool("search_tools", {"queries": ["read an invoice"]})))
        return told[0], told[1]

    waited, not_waited = asyncio.run(play())
    assert "slow__read_0" in waited
    assert re.search(r"'slow' cannot be reached now, .*it is still connecting", not_waited)


def test_an_answer_counts_once_and_for_its_own_call(everything: Entry, tmp_path: Path) -> None:
    """10b in the newer protocol, where the answer comes with a second request: what was agreed to is what runs."""

    async def play() -> None:
        person = Person()
        async with (
            opened({"every": everything}, tmp_path, mode="bridge") as gateway,
            client_of(gateway, "auto", person) as client,
        ):

            async def send(text: str, **more: Any) -> Any:
                call = {"name": "every__remember", "arguments": {"text": text}}
                return await client.session.call_tool("call_action", call, allow_input_required=True, **more)

            asked = await send("one")
            answers = {key: {"action": "accept", "content": {}} for key in asked.input_requests}
            other = await send("two", request_state=asked.request_state, input_responses=answers)
            assert "another call than the one that was asked about" in text_of(other)
            again = await send("one", request_state=asked.request_state, input_responses=answers)
            assert "answered already, or too long ago" in text_of(again)
            forged = await send("one", input_responses=answers)
            assert forged.result_type == "input_required"
            done = await send("one", request_state=forged.request_state, input_responses=answers)
            assert text_of(done) == "kept"
            assert text_of(await through(client, "call_tool", "every__recall")) == "one"

    asyncio.run(play())
    assert len(AskingCalls()) == 0


def test_searches_and_calls_are_spans_without_their_arguments(
    everything: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)

    async def play() -> None:
        async with (
            opened({"every": everything}, tmp_path, mode="bridge") as gateway,
            client_of(gateway, "legacy") as client,
        ):
            await client.call_tool("search_tools", {"queries": ["a secret word"]})
            await through(client, "call_tool", "every__echo", text="a secret word")
            await through(client, "call_tool", "every__fail")

    asyncio.run(play())
    spans = {span.name: dict(span.attributes or {}) for span in exporter.get_finished_spans()}
    assert spans["execute_tool every__echo"] == {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "every__echo", "toolsearch.mcp.server": "every",
    }  # fmt: skip
    assert "search search_tools" in spans
    assert spans["execute_tool every__fail"]["error.type"] == "tool_error"
    assert "a secret word" not in json.dumps(list(spans.values()), default=str)


def test_spans_are_exported_where_the_environment_says_so(caplog: pytest.LogCaptureFixture) -> None:
    assert exporting({}) is None
    assert exporting({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}) is None
    assert caplog.records == []
    assert exporting({"OTEL_TRACES_EXPORTER": "no-such-exporter"}) is None
    assert "there is no exporter 'no-such-exporter'; pip install opentelemetry-sdk" in caplog.text
    provider = exporting({"OTEL_TRACES_EXPORTER": "console", "OTEL_SERVICE_NAME": "mine"})
    assert provider is not None
    assert provider.resource.attributes["service.name"] == "mine"
    provider.shutdown()
