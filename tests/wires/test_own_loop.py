"""The own-loop recipe with the real SDKs: whole conversations over HTTP, against a provider that is strict."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from toolsearch import Catalog, Session, ToolCall, ToolResult, ToolSearch
from toolsearch.wires import anthropic as anthropic_wire
from toolsearch.wires import openai_chat as openai_wire

UNKNOWN = "functions.rain radar"  # no provider takes such a name back in a history
MALFORMED = '{"city": "Oslo", "days": '


def get_weather(city: str, days: int = 1) -> str:
    """Weather forecast for a city.

    Args:
        city: The city's name.
        days: How many days ahead.
    """
    return f"{city}: sun for {days} days"


def charge_card(amount: float) -> str:
    """Charge a credit card."""
    raise ConnectionError("the bank does not answer")


def ask_user(question: str) -> str:
    """Ask the user something. Use it sparingly."""
    return "yes"


def made(**options: Any) -> ToolSearch:
    either = {
        "name": "post/note",
        "description": "Post a note to the board, as text or as a link. " * 40,
        "input_schema": {
            "type": "object",
            "anyOf": [
                {"properties": {"text": {"type": "string"}}, "required": ["text"]},
                {"properties": {"url": {"type": "string"}}, "required": ["url"]},
            ],
        },
    }
    many = [{"name": f"archive_{n}", "server": "vault", "description": f"Read box {n} of the vault"} for n in range(30)]
    return ToolSearch(Catalog([get_weather, charge_card, ask_user, either, *many]), pinned=["ask_user"], **options)


SCRIPT: list[list[tuple[str, str, str]]] = [
    [("a1", "search_tools", '{"queries": ["weather forecast", "charge a credit card", "post a note"]}')],
    [("b1", "get_weather", '{"city": "Oslo", "days": "2"}'), ("b2", "get_weather", '{"city": "Paris"}')],
    [("c1", UNKNOWN, "{}"), ("c2", "get_weather", MALFORMED)],
    [("d1", "charge_card", '{"amount": 5}'), ("d2", "archive_7", "")],
]
STATUSES = ["ok", "ok", "ok", "unknown", "invalid_arguments", "failed", "not_loaded"]


def openai_reply(calls: list[tuple[str, str, str]], text: str | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": name, "arguments": arguments}}
            for i, name, arguments in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice]}


def anthropic_reply(calls: list[tuple[str, str, str]], text: str | None = None) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text is not None else []
    for i, name, arguments in calls:
        try:
            given = json.loads(arguments or "{}")
        except ValueError:
            given = arguments  # a gateway that passes on what a model wrote
        content.append({"type": "tool_use", "id": i, "name": name, "input": given})
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": content,
        "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def openai_conversation(
    client: openai.OpenAI, session: Session, messages: list[Any]
) -> tuple[str | None, list[ToolResult]]:
    results: list[ToolResult] = []
    while True:
        reply = client.chat.completions.create(
            model="scripted",
            messages=[{"role": "system", "content": session.instructions()}, *messages],
            tools=openai_wire.tools_for(session),  # type: ignore[arg-type]
        )
        answered = [(call, session.handle(call)) for call in openai_wire.calls_in(reply)]
        messages += [openai_wire.message_from(reply), *openai_wire.results_for(answered)]
        results += [result for _, result in answered]
        if not answered:
            return reply.choices[0].message.content, results


def anthropic_conversation(
    client: anthropic.Anthropic, session: Session, messages: list[Any]
) -> tuple[str | None, list[ToolResult]]:
    results: list[ToolResult] = []
    while True:
        reply = client.messages.create(
            model="scripted",
            max_tokens=1_000,
            system=session.instructions(),
            messages=messages,
            tools=anthropic_wire.tools_for(session),  # type: ignore[arg-type]
        )
        answered = [(call, session.handle(call)) for call in anthropic_wire.calls_in(reply)]
        messages += [anthropic_wire.message_from(reply), *anthropic_wire.results_for(answered)]
        results += [result for _, result in answered]
        if not answered:
            return reply.content[0].text, results  # type: ignore[union-attr]


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def check_append_only(requests: list[dict[str, Any]], system: Callable[[dict[str, Any]], Any]) -> None:
    for before, after in pairwise(requests):
        kept = len(before["tools"])
        assert dumped(after["tools"][:kept]) == dumped(before["tools"])
        assert dumped(after["messages"][: len(before["messages"])]) == dumped(before["messages"])
        assert system(before) == system(after)


@pytest.mark.parametrize("of_its_own", [True, False])
def test_a_whole_conversation_with_the_openai_sdk(openai_server: Any, of_its_own: bool) -> None:
    """C29, C02, C12, NA-11: a search, parallel calls, an unknown name, malformed arguments, a failing tool, a text."""
    openai_server.replies = [*map(openai_reply, SCRIPT), openai_reply([], "Sunny, but the card was not charged.")]
    session = made().session()
    with (
        httpx2.Client() as http_client,
        openai.OpenAI(
            base_url=f"{openai_server.url}/v1",
            api_key="none",
            max_retries=0,
            http_client=None if of_its_own else http_client,
        ) as client,
    ):
        text, results = openai_conversation(
            client, session, [{"role": "user", "content": "Weather? Then charge me 5."}]
        )
    assert openai_server.refused == []
    assert text == "Sunny, but the card was not charged."
    assert [result.status for result in results] == STATUSES
    requests = openai_server.requests
    names = [[tool["function"]["name"] for tool in request["tools"]] for request in requests]
    assert names[0] == ["search_tools", "ask_user"]
    assert names[1][:2] == names[0]
    assert {"get_weather", "charge_card"} < {*names[1]}
    assert names[1] == names[2] == names[3]
    assert names[4] == [*names[3], "archive_7"], "what was called without being loaded is loaded for the next round"
    check_append_only(requests, lambda request: request["messages"][0])
    first = dumped(requests[0]["tools"])[:-1]
    for body in openai_server.bodies:
        assert first.replace(" ", "") in body.decode().replace(" ", ""), "the first tools open every tools array"


@pytest.mark.parametrize("of_its_own", [True, False])
def test_a_whole_conversation_with_the_anthropic_sdk(anthropic_server: Any, of_its_own: bool) -> None:
    """C29, C02, C12, NA-11: the same conversation, the same answers."""
    anthropic_server.replies = [*map(anthropic_reply, SCRIPT), anthropic_reply([], "Sunny.")]
    session = made().session()
    with (
        httpx2.Client() as http_client,
        anthropic.Anthropic(
            base_url=anthropic_server.url,
            api_key="none",
            max_retries=0,
            http_client=None if of_its_own else http_client,
        ) as client,
    ):
        text, results = anthropic_conversation(client, session, [{"role": "user", "content": "Weather?"}])
    assert anthropic_server.refused == []
    assert text == "Sunny."
    assert [result.status for result in results] == STATUSES
    requests = anthropic_server.requests
    assert [tool["name"] for tool in requests[0]["tools"]] == ["search_tools", "ask_user"]
    check_append_only(requests, lambda request: request["system"])
    errors = [block.get("is_error", False) for block in requests[-1]["messages"][-1]["content"]]
    assert errors == [True, True]


@pytest.mark.parametrize("mode", ["append", "bridge", "static"])
def test_every_mode_makes_requests_that_openai_accepts(openai_server: Any, mode: str) -> None:
    """C29: in "bridge" and "static" the tools array never changes at all."""
    search = '{"queries": ["weather forecast"]}'
    name = "call_tool" if mode == "bridge" else "get_weather"
    given = '{"name": "get_weather", "arguments": {"city": "Oslo"}}' if mode == "bridge" else '{"city": "Oslo"}'
    openai_server.replies = [
        openai_reply([("a", "search_tools", search)]), openai_reply([("b", name, given)]), openai_reply([], "Done"),
    ]  # fmt: skip
    session = made(mode=mode).session()
    with openai.OpenAI(base_url=f"{openai_server.url}/v1", api_key="none", max_retries=0) as client:
        _, results = openai_conversation(client, session, [{"role": "user", "content": "Weather?"}])
    assert openai_server.refused == []
    assert results[0].status == ("unknown" if mode == "static" else "ok")
    assert (results[1].status, results[1].content) == ("ok", "Oslo: sun for 1 days")
    tools = [dumped(request["tools"]) for request in openai_server.requests]
    assert len({*tools}) == (2 if mode == "append" else 1)


async def answered_at_once(session: Session, calls: list[ToolCall]) -> list[tuple[ToolCall, ToolResult]]:
    import asyncio

    return list(zip(calls, await asyncio.gather(*map(session.ahandle, calls)), strict=True))


def test_the_recipe_works_with_the_async_clients(openai_server: Any, anthropic_server: Any) -> None:
    import asyncio

    async def fetch_weather(city: str) -> str:
        """Weather forecast for a city."""
        await asyncio.sleep(0.01)
        return f"{city}: rain"

    calls = [("x", "fetch_weather", '{"city": "Rome"}'), ("y", "fetch_weather", '{"city": "Bern"}')]
    found = [("s", "search_tools", '{"queries": ["weather"]}')]
    openai_server.replies = [openai_reply(found), openai_reply(calls), openai_reply([], "Rain.")]
    anthropic_server.replies = [anthropic_reply(found), anthropic_reply(calls), anthropic_reply([], "Rain.")]
    search = ToolSearch([fetch_weather])

    async def with_openai() -> list[Any]:
        session, messages = search.session(), [{"role": "user", "content": "Weather?"}]
        async with openai.AsyncOpenAI(base_url=f"{openai_server.url}/v1", api_key="none", max_retries=0) as client:
            for _ in range(3):
                reply = await client.chat.completions.create(
                    model="scripted",
                    messages=messages,  # type: ignore[arg-type]
                    tools=openai_wire.tools_for(session),  # type: ignore[arg-type]
                )
                answered = await answered_at_once(session, openai_wire.calls_in(reply))
                messages += [openai_wire.message_from(reply), *openai_wire.results_for(answered)]
        return messages

    async def with_anthropic() -> list[Any]:
        session, messages = search.session(), [{"role": "user", "content": "Weather?"}]
        async with anthropic.AsyncAnthropic(base_url=anthropic_server.url, api_key="none", max_retries=0) as client:
            for _ in range(3):
                reply = await client.messages.create(
                    model="scripted",
                    max_tokens=100,
                    messages=messages,  # type: ignore[arg-type]
                    tools=anthropic_wire.tools_for(session),  # type: ignore[arg-type]
                )
                answered = await answered_at_once(session, anthropic_wire.calls_in(reply))
                messages += [anthropic_wire.message_from(reply), *anthropic_wire.results_for(answered)]
        return messages

    async def both() -> tuple[list[Any], list[Any]]:
        one, other = await asyncio.gather(with_openai(), with_anthropic())
        return one, other

    chat, messages = asyncio.run(both())
    assert openai_server.refused == anthropic_server.refused == []
    assert [m["content"] for m in chat if m["role"] == "tool"][1:] == ["Rome: rain", "Bern: rain"]
    assert [block["content"] for block in messages[4]["content"]] == ["Rome: rain", "Bern: rain"]


@pytest.mark.parametrize("junk", ["\ud800", "{", "[1]", '"text"', "null", "", "NaN", '{"a": NaN}', "x" * 5_000])
def test_a_history_with_junk_arguments_is_accepted_by_both_providers(
    openai_server: Any, anthropic_server: Any, junk: str
) -> None:
    """C11, C12, and their kind: what a model wrote never makes the next request invalid."""
    openai_server.replies = [openai_reply([("a", "get_weather", junk), ("", "\ud800", junk)]), openai_reply([], "Done")]
    use = {"type": "tool_use", "id": "a", "name": "get_weather", "input": junk}
    anthropic_server.replies = [
        anthropic_reply([], "") | {"content": [{"type": "text", "text": " "}, use, use | {"id": "a", "name": ""}]},
        anthropic_reply([], "Done"),
    ]
    with openai.OpenAI(base_url=f"{openai_server.url}/v1", api_key="none", max_retries=0) as client:
        openai_conversation(client, made().session(), [{"role": "user", "content": "Weather?"}])
    with anthropic.Anthropic(base_url=anthropic_server.url, api_key="none", max_retries=0) as messages_client:
        anthropic_conversation(messages_client, made().session(), [{"role": "user", "content": "Weather?"}])
    assert openai_server.refused == anthropic_server.refused == []


def test_the_scripted_providers_refuse_what_the_real_ones_refuse(openai_refuses: Any, anthropic_refuses: Any) -> None:
    bad = {"name": "no spaces please", "description": "d" * 1_025, "parameters": {"type": "object", "anyOf": []}}
    unanswered = json.loads(dumped(openai_reply([("a", "x", "{")])))["choices"][0]["message"]
    found = openai_refuses({"tools": [{"type": "function", "function": bad}] * 129, "messages": [unanswered]})
    for word in ("129 tools", "legal", "twice", "no object", "anyOf", "1025", "no JSON object", "no answer"):
        assert any(word in problem for problem in found), word
    reply = {"role": "assistant", "content": [{"type": "tool_use", "id": "!", "name": "?", "input": "x"}]}
    found = anthropic_refuses({"tools": [{"name": "a", "title": "A"}], "messages": [reply]})
    for word in ("no object", "unknown fields", "max_tokens", "legal and distinct", "the input", "no answer"):
        assert any(word in problem for problem in found), word
