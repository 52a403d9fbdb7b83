"""The models of the wires: the real SDKs against a provider on this machine, streamed and whole, sync and async."""

import asyncio
import gc
import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest

from toolsearch import ToolSearch, tool
from toolsearch.calls import ToolCall
from toolsearch.events.facts import (
    Answers,
    JudgedCall,
    Message,
    ModelReplied,
    Note,
    Reply,
    TextDelta,
    ToolReturned,
    Usage,
    UserSaid,
)
from toolsearch.events.requests import CallModel
from toolsearch.loop.agent import Agent
from toolsearch.testing import check_wire
from toolsearch.wires import anthropic as anthropic_wire
from toolsearch.wires import openai_chat, openai_responses
from toolsearch.wires._chat_pieces import ChatPieces

Wire = tuple[Any, Callable[..., Any]]
ways = pytest.mark.parametrize("way", ["whole", "streamed", "whole async", "streamed async"])


@tool
def room_of(meeting: str) -> str:
    """The room a meeting is in."""
    return f"{meeting} is in room 7"


@tool
def move(meeting: str, day: str) -> str:
    """Move a meeting to another day."""
    return f"{meeting} is on {day} now"


def openai_reply(text: str | None = None, calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "reasoning_content": "Let me think."}
    if calls:
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for i, name, given in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {
        "prompt_tokens": 50,
        "completion_tokens": 5,
        "total_tokens": 55,
        "prompt_tokens_details": {"cached_tokens": 30},
    }
    return {
        "id": "r", "object": "chat.completion", "created": 1, "model": "gpt-test", "choices": [choice], "usage": usage,
    }  # fmt: skip


def anthropic_reply(text: str | None = None, calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": "Let me think.", "signature": "c2ln"}]
    blocks += [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "tool_use", "id": i, "name": name, "input": given} for i, name, given in calls]
    usage = {"input_tokens": 15, "output_tokens": 5, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 5}
    return {
        "id": "r", "type": "message", "role": "assistant", "model": "claude-test", "content": blocks, "usage": usage,
        "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
    }  # fmt: skip


def responses_reply(text: str | None = None, calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()) -> dict[str, Any]:
    thought = {"type": "summary_text", "text": "Let me think."}
    items: list[dict[str, Any]] = [{"type": "reasoning", "id": "", "summary": [thought], "encrypted_content": "c2ln"}]
    said = {"type": "output_text", "text": text, "annotations": []}
    items += [{"type": "message", "role": "assistant", "content": [said]}] if text else []
    items += [
        {"type": "function_call", "call_id": i, "name": name, "arguments": json.dumps(given)}
        for i, name, given in calls
    ]
    details = {"input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 0}}
    usage = {"input_tokens": 50, "output_tokens": 5, "total_tokens": 55, **details}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}}
    head = {"id": "r", "object": "response", "created_at": 1, "model": "gpt-test", "status": "completed"}
    return {**head, "tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "output": items, "usage": usage}


REPLIES = {"openai": openai_reply, "anthropic": anthropic_reply, "responses": responses_reply}


@pytest.fixture(params=REPLIES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.getfixturevalue(f"{request.param}_server"), REPLIES[request.param]


def wire_of(server: Any) -> Any:
    paths = {"chat": openai_chat, "responses": openai_responses, "messages": anthropic_wire}
    return next(wire for part, wire in paths.items() if part in server.path)


def model_for(server: Any, way: str) -> Any:
    stream, is_async = way.startswith("streamed"), way.endswith("async")
    if (of_server := wire_of(server)) is not anthropic_wire:
        make: Any = openai.AsyncOpenAI if is_async else openai.OpenAI
        client = make(base_url=f"{server.url}/v1", api_key="k", max_retries=0)
        return of_server.model(client, "gpt-test", stream=stream)
    make = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    return anthropic_wire.model(make(base_url=server.url, api_key="k", max_retries=0), "claude-test", stream=stream)


def events_of(agent: Agent, said: str, way: str) -> list[Any]:
    if not way.endswith("async"):
        return list(agent.stream(said, conversation_id="s"))

    async def all_of() -> list[Any]:
        return [event async for event in agent.astream(said, conversation_id="s")]

    return asyncio.run(all_of())


@ways
def test_an_agent_searches_calls_and_answers(wire: Wire, way: str) -> None:
    """SA-21, SA-47, BK-6: the same facts whether a reply comes whole or in pieces."""
    server, reply = wire
    server.replies = [
        reply(calls=(("call_0", "search_tools", {"queries": ["room of a meeting", "move a meeting"]}),)),
        reply(
            "Both at once.",
            (("call_0", "room_of", {"meeting": "stand-up"}), ("c2", "move", {"meeting": "x", "day": "Mo"})),
        ),
        reply("It is in room 7."),
    ]
    agent = Agent(model_for(server, way), ToolSearch([room_of, move]), system="You help.")
    events = events_of(agent, "Where is the stand-up?", way)
    assert server.refused == []
    assert (events[-1].text, events[-1].reason) == ("It is in room 7.", "answered")
    assert events[-1].usage == Usage(150, 90, 15, 3)
    results = [e.content for e in events if isinstance(e, ToolReturned)]
    assert "stand-up is in room 7" in results
    assert "x is on Mo now" in results
    said = "".join(e.text for e in events if isinstance(e, TextDelta) and e.kind == "text")
    assert said == ("Both at once.It is in room 7." if way.startswith("streamed") else "")
    replies = [e for e in events if isinstance(e, ModelReplied)]
    assert {r.reasoning for r in replies} == {"Let me think."}
    assert all(r.raw is not None for r in replies)


def test_the_wires_and_their_models_keep_the_promises(wire: Wire) -> None:
    server, reply = wire
    of_server = wire_of(server)

    def with_calls(calls: Any) -> dict[str, Any]:
        return reply(calls=tuple((call.id, call.name, call.arguments) for call in calls))

    for way in ("whole", "streamed", "whole async", "streamed async"):

        def model(replies: Any, way: str = way) -> Any:
            server.replies = list(replies)
            return model_for(server, way)

        check_wire(
            of_server,
            reply_with_calls=with_calls,
            reply_with_text=reply,
            model=model,
            requests=lambda: server.requests,
        )
    assert server.refused == []


@ways
def test_C16_ids_that_come_again_are_told_apart_in_the_history(wire: Wire, way: str) -> None:
    server, reply = wire
    same = (("call_0", "room_of", {"meeting": "a"}),)
    server.replies = [reply(calls=same), reply(calls=same), reply("Done.")]
    agent = Agent(model_for(server, way), ToolSearch([room_of], mode="static"))
    events = events_of(agent, "x", way)
    assert server.refused == []
    ids = [call.id for e in events if isinstance(e, ModelReplied) for call in e.calls]
    assert ids[0] == "call_0"
    assert len(set(ids)) == 2
    last = json.dumps(server.requests[-1])
    assert all(f'"{i}"' in last for i in ids)


@ways
def test_a_second_turn_goes_on_with_the_history_and_the_found_tools(wire: Wire, way: str) -> None:
    server, reply = wire
    server.replies = [
        reply(calls=(("a", "search_tools", {"queries": ["room of a meeting"]}),)),
        reply("Which meeting?"),
        reply(calls=(("b", "room_of", {"meeting": "stand-up"}),)),
        reply("Room 7."),
    ]
    agent = Agent(model_for(server, way), ToolSearch([room_of, move], mode="append"))
    events_of(agent, "Where is it?", way)
    assert events_of(agent, "the stand-up", way)[-1].text == "Room 7."
    assert server.refused == []
    assert [str(t) for t in server.requests[-1]["tools"]] == [str(t) for t in server.requests[1]["tools"]]
    assert len(server.requests[1]["tools"]) > len(server.requests[0]["tools"])


def test_a_reply_is_sent_back_as_it_came_to_its_own_provider_and_translated_to_another() -> None:
    """Its own provider gets the very message, thinking and signature included; another one a translation."""
    asked = (JudgedCall("x1", "room_of", '{"meeting": "a"}', given={"meeting": "a"}),)
    raw = anthropic_wire.message_from(anthropic_reply("Hm.", (("x0", "room_of", {"meeting": "a"}),)))
    replied = ModelReplied("Hm.", asked, raw=raw, wire="anthropic")
    transcript: list[Message] = [
        UserSaid("hi"),
        replied,
        Answers((ToolReturned("x1", "ok", "room 7"),)),
        Note("Tools have changed"),
    ]
    own = anthropic_wire.messages_for(transcript)
    assert own[1]["content"][0] == {"type": "thinking", "thinking": "Let me think.", "signature": "c2ln"}
    assert own[1]["content"][2]["id"] == "x1"
    assert [m["role"] for m in own] == ["user", "assistant", "user"]
    other = openai_chat.messages_for(transcript, "Be kind.")
    assert other[2] == {
        "role": "assistant",
        "content": "Hm.",
        "tool_calls": [
            {"id": "x1", "type": "function", "function": {"name": "room_of", "arguments": '{"meeting": "a"}'}}
        ],
    }
    assert other[3] == {"role": "tool", "tool_call_id": "x1", "content": "room 7"}


def test_C47_a_helper_call_carries_no_tools_and_a_schema_goes_to_the_provider(openai_server: Any) -> None:
    made = model_for(openai_server, "whole")
    request = made.request_for(CallModel((UserSaid("hi"),), purpose="summary", schema={"type": "object"}))
    assert "tools" not in request
    assert request["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_a_provider_that_fails_leaves_the_conversation_whole(wire: Wire) -> None:
    server, reply = wire
    agent = Agent(model_for(server, "streamed"), ToolSearch([room_of]))
    with pytest.raises(Exception, match="400"):
        agent.run("hi", conversation_id="s")
    server.replies = [reply("Hello.")]
    assert agent.run("again", conversation_id="s").text == "Hello."  # type: ignore[union-attr]


def test_closing_a_stream_closes_the_connection(wire: Wire) -> None:
    """PG-18: what is not read any more is not paid for either."""
    server, reply = wire
    server.replies = [reply("A long answer in many pieces. " * 200)]
    agent = Agent(model_for(server, "streamed"), ToolSearch([room_of]))
    stream = agent.stream("hi", conversation_id="s")
    next(e for e in stream if isinstance(e, TextDelta))
    assert isinstance(stream, Iterator)
    stream.close()  # type: ignore[attr-defined]
    assert agent.conversation("s").next().reason == "cancelled"  # type: ignore[union-attr]


def test_a_sync_run_with_an_async_client_names_the_way_out(openai_server: Any) -> None:
    agent = Agent(model_for(openai_server, "whole async"), ToolSearch([room_of]))
    with pytest.raises(ValueError, match="arun"):
        agent.run("hi")


class Wrapped:
    """A client inside another object, as tools for tracing make one: neither its class nor its methods are async."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def create(self, **arguments: Any) -> Any:
        if "input" in arguments:
            return self.client.responses.create(**arguments)
        inner = self.client.chat.completions if hasattr(self.client, "chat") else self.client.messages
        return inner.create(**arguments)

    @property
    def chat(self) -> Any:
        return self

    completions = messages = responses = chat


@ways
def test_a_wrapped_client_is_asked_like_the_one_inside(wire: Wire, way: str) -> None:
    """Whether it is async is seen by what its call gives, never by its name."""
    server, reply = wire
    server.replies = [reply(calls=(("a", "room_of", {"meeting": "x"}),)), reply("Room 7.")]
    model = model_for(server, way)
    model.client = Wrapped(model.client)
    agent = Agent(model, ToolSearch([room_of], mode="static"))
    assert events_of(agent, "Where?", way)[-1].text == "Room 7."
    assert server.refused == []


@pytest.mark.parametrize("way", ["whole async", "streamed async"])
def test_a_sync_run_with_a_wrapped_async_client_sends_nothing_and_leaves_nothing_behind(wire: Wire, way: str) -> None:
    server, _ = wire
    model = model_for(server, way)
    model.client = Wrapped(model.client)
    with pytest.raises(ValueError, match="arun"):
        Agent(model, ToolSearch([room_of])).run("hi")
    gc.collect()  # a coroutine that is never awaited would be a warning, and so an error, here
    assert server.bodies == []


def test_malformed_arguments_in_pieces_are_kept_as_they_were_written() -> None:
    parts = ChatPieces()
    calls = [{"index": 0, "id": "a", "function": {"name": "t", "arguments": '{"x": '}}]
    parts.take({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]})
    reply: Reply = openai_chat.reply_from(parts.whole())
    assert reply.calls == (ToolCall("a", "t", '{"x": '),)
