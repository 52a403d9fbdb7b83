"""What Anthropic puts into a conversation beside text and calls: its own client, and a provider on this machine."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from openai import BadRequestError, OpenAI

from toolsearch import Agent, ToolSearch, tool
from toolsearch.calls import ImagePart, ToolCall, ToolResult
from toolsearch.errors import SetupError
from toolsearch.events.facts import Answers, JudgedCall, ModelReplied, ToolReturned, UserSaid
from toolsearch.events.requests import CallModel
from toolsearch.stores import MemoryStore
from toolsearch.testing import LoopbackProvider
from toolsearch.wires import anthropic as wire
from toolsearch.wires import openai_chat
from toolsearch.wires._message_pieces import MessagePieces

ways = pytest.mark.parametrize("way", ["whole", "streamed", "whole async", "streamed async"])
HOSTED = [
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
]


@tool
def get_tide(port: str) -> str:
    """The tide in a port."""
    return f"high water in {port}"


def reply(*blocks: Any, stop: str = "end_turn") -> dict[str, Any]:
    usage = {"input_tokens": 9, "output_tokens": 4}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None, "usage": usage}
    return {**head, "content": [*blocks], "stop_reason": stop}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def use(call_id: str, name: str = "get_tide", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"port": "Kiel"}, **more}


def server_use(kind: str = "server_tool_use", name: str = "web_search", **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": "srvtoolu_1", "name": name, "input": {"query": "tide in Kiel"}, **more}


FOUND = {"type": "tool_search_tool_search_result", "tool_references": []}  # AN-5
FAILED = {"type": "tool_search_tool_result_error", "error_code": "too_many_requests"}  # AN-6
CITATION = {"type": "web_search_result_location", "cited_text": "high", "url": "http://kiel", "title": "Tides",
            "encrypted_index": "Eo8="}  # fmt: skip
SERVER_BLOCKS = [
    {"type": "thinking", "thinking": "Let me look it up.", "signature": "c2lnbmVk"},
    {"type": "redacted_thinking", "data": "EmwKAhgB"},
    server_use(),
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
     "content": [{"type": "web_search_result", "url": "http://kiel", "title": "Tides", "encrypted_content": "x"}]},
    text("The tide is high.", citations=[CITATION]),
]  # fmt: skip


def run(client_url: str, way: str, *tools: Any, **options: Any) -> Any:
    kind = AsyncAnthropic if "async" in way else Anthropic
    client: Any = kind(api_key="none", base_url=client_url, max_retries=0)
    agent = Agent(wire.model(client, "m", stream="streamed" in way, **options), ToolSearch(tools, mode="static"))
    if "async" in way:
        return asyncio.run(agent.arun("What is the tide?"))
    return agent.run("What is the tide?")


@ways
def test_blocks_of_the_server_and_of_thinking_go_back_untouched_and_are_not_calls(way: str) -> None:
    """A reply with a search on the web, citations, thinking, and a call of ours."""
    blocks = [*SERVER_BLOCKS, use("toolu_1")]
    with LoopbackProvider([reply(*blocks, stop="tool_use"), "High."], stream_pieces=4) as provider:
        result = run(provider.url, way, get_tide)
    assert (result.text, provider.refusals) == ("High.", [])
    assert provider.requests[1]["messages"][1] == {"role": "assistant", "content": blocks}
    assert [block["tool_use_id"] for block in provider.requests[1]["messages"][2]["content"]] == ["toolu_1"]


@ways
@pytest.mark.parametrize("content", [FOUND, FAILED], ids=["AN-5 nothing found", "AN-6 an error"])
def test_a_search_of_the_provider_passes_through(way: str, content: dict[str, Any]) -> None:
    """AN-3, AN-5, AN-6: the provider searches, finds nothing or fails, and the turn goes on."""
    name = "tool_search_tool_bm25"
    blocks = [server_use(name=name), {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1",
                                      "content": content}, text("Nothing there.")]  # fmt: skip
    with LoopbackProvider([reply(*blocks), "Bye."]) as provider:
        result = run(provider.url, way, get_tide, tools=HOSTED)
    assert (result.text, provider.refusals) == ("Nothing there.", [])


@ways
def test_the_providers_own_tools_stand_before_the_sessions(way: str) -> None:
    """AN-1, J39: entries of the program, which the provider runs, are sent as they are."""
    with LoopbackProvider([[("toolu_1", "get_tide", {"port": "Kiel"})], "High."]) as provider:
        result = run(provider.url, way, get_tide, tools=HOSTED)
    assert result.text == "High."
    for body in provider.requests:
        assert body["tools"][:2] == HOSTED
        assert [each["name"] for each in body["tools"][2:]] == ["get_tide"]


def test_a_helpers_request_has_no_tools() -> None:
    """A summary must not search the web, and the provider refuses a choice among no tools."""
    options: dict[str, Any] = {"tools": HOSTED, "tool_choice": {"type": "any"}}
    model = wire.model(Anthropic(api_key="none"), "claude", **options)
    assert options.items() <= model.request_for(CallModel((UserSaid("Hi"),))).items()
    assert not options.keys() & model.request_for(CallModel((UserSaid("Hi"),), purpose="summary")).keys()


@ways
def test_a_paused_turn_goes_on_by_itself_and_sends_the_content_back(way: str) -> None:
    first = reply(text("I look. "), server_use(), stop="pause_turn")
    with LoopbackProvider([first, "It is high."], stream_pieces=3) as provider:
        result = run(provider.url, way, get_tide, tools=HOSTED)
    assert (result.text, result.reason, provider.refusals) == ("I look. It is high.", "answered", [])
    assert provider.requests[1]["messages"][-1] == {"role": "assistant", "content": first["content"]}


def test_calls_of_a_connected_mcp_server_are_not_calls() -> None:
    used = server_use("mcp_tool_use", "search", server_name="docs")
    told = {"type": "mcp_tool_result", "tool_use_id": "srvtoolu_1", "is_error": False, "content": [text("Tides.")]}
    read = wire.reply_from(reply(used, told, text("High.")))
    assert (read.calls, read.text) == ((), "High.")
    assert read.raw == {"role": "assistant", "content": [used, told, text("High.")]}


def test_a_toolset_of_a_connected_mcp_server_is_sent_as_it_is() -> None:
    """AN-16."""
    toolset = {"type": "mcp_toolset", "mcp_server_name": "docs", "default_config": {"defer_loading": True}}
    servers = [{"type": "url", "name": "docs", "url": "http://127.0.0.1:9"}]
    used = server_use("mcp_tool_use", "search", server_name="docs")
    told = {"type": "mcp_tool_result", "tool_use_id": "srvtoolu_1", "is_error": False, "content": [text("Tides.")]}
    script = [reply(used, told, use("toolu_1"), stop="tool_use"), "High."]
    with LoopbackProvider(script) as provider:
        options = {"tools": [toolset], "mcp_servers": servers, "betas": ["mcp-client-2025-11-20"]}
        assert run(provider.url, "streamed", get_tide, **options).text == "High."
    assert provider.refusals == []
    assert [body["tools"][0] for body in provider.requests] == [toolset] * 2
    assert provider.requests[1]["messages"][1]["content"][:2] == [used, told]


# -- toolsets ------------------------------------------------------------------------------------------------------


def test_the_result_of_a_member_of_a_toolset_names_the_toolset() -> None:
    """In a loop of one's own."""
    calls = wire.calls_in(reply(use("toolu_1", "find", toolset_name="browser"), use("toolu_2"), stop="tool_use"))
    assert [call.name for call in calls] == ["find", "get_tide"]
    (message,) = wire.results_for([(call, ToolResult(call.id, call.name, "ok", "seen")) for call in calls])
    assert [block.get("toolset_name") for block in message["content"]] == ["browser", None]


def test_the_result_of_a_member_of_a_toolset_names_the_toolset_in_an_agent_too() -> None:
    block = use("toolu_1", "find", toolset_name="browser")
    with LoopbackProvider([reply(block, stop="tool_use"), "Done."]) as provider:
        run(provider.url, "whole", get_tide)
    said, answered = provider.requests[1]["messages"][1:]
    assert said["content"] == [block]
    assert answered["content"][0]["toolset_name"] == "browser"


# -- images ----------------------------------------------------------------------------------------------------------


def test_images_of_a_result_stand_in_their_places_and_not_in_an_error() -> None:
    image = ImagePart("iVBORw0KGgoAAAAN", "image/png")
    call = ToolCall("toolu_1", "get_tide")
    (message,) = wire.results_for([(call, ToolResult("toolu_1", "get_tide", "ok", "[image]", parts=(image,)))])
    kinds = [each["type"] for each in message["content"][0]["content"]]
    assert "image" in kinds
    (message,) = wire.results_for([(call, ToolResult("toolu_1", "get_tide", "failed", "no", parts=(image,)))])
    assert (message["content"][0]["content"], message["content"][0]["is_error"]) == ("no", True)


# -- the pieces of a stream --------------------------------------------------------------------------------------------


def test_citations_and_summaries_that_come_in_pieces_are_kept() -> None:
    def start(index: int, block: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": block}

    def delta(index: int, **fields: Any) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": fields}

    pieces = MessagePieces()
    for event in (
        {"type": "message_start", "message": {"role": "assistant"}},
        start(0, {"type": "compaction", "content": None}),
        delta(0, type="compaction_delta", content="So far: tides.", encrypted_content="e"),
        start(1, {"type": "text", "text": "", "citations": None}),
        delta(1, type="text_delta", text="High."),
        delta(1, type="citations_delta", citation=CITATION),
        delta(1, type="citations_delta", citation={**CITATION, "title": "More"}),
    ):
        pieces.take(event)
    assert pieces.whole()["content"] == [
        {"type": "compaction", "content": "So far: tides.", "encrypted_content": "e"},
        text("High.", citations=[CITATION, {**CITATION, "title": "More"}]),
    ]


# -- beta ------------------------------------------------------------------------------------------------------------


@ways
def test_with_betas_the_beta_client_is_asked(way: str) -> None:
    with LoopbackProvider(["High."]) as provider:
        result = run(provider.url, way, get_tide, betas=["context-management-2025-06-27"])
    assert result.text == "High."
    assert provider.headers[0]["anthropic-beta"] == "context-management-2025-06-27"


def test_the_beta_part_of_a_client_is_a_client_too() -> None:
    with LoopbackProvider(["High."]) as provider:
        client = Anthropic(api_key="none", base_url=provider.url, max_retries=0).beta
        agent = Agent(wire.model(client, "m", betas=["a", "b"]), ToolSearch([get_tide]))
        assert agent.run("Tide?").text == "High."  # type: ignore[union-attr]
    assert provider.headers[0]["anthropic-beta"] == "a,b"


# -- the cache ---------------------------------------------------------------------------------------------------------

MARK = {"type": "ephemeral"}


def marks(body: Any) -> list[str]:
    """Where the marks are, as paths."""
    found = []

    def walk(value: Any, at: str) -> None:
        if isinstance(value, dict):
            if "cache_control" in value:
                found.append(at)
            for key, inner in value.items():
                walk(inner, f"{at}/{key}")
        elif isinstance(value, list):
            for place, inner in enumerate(value):
                walk(inner, f"{at}/{place}")

    walk(body, "")
    return found


@ways
def test_a_request_is_marked_at_its_last_tool_its_system_text_and_its_last_message(way: str) -> None:
    with LoopbackProvider([[("toolu_1", "get_tide", {"port": "Kiel"})], "High."]) as provider:
        assert run(provider.url, way, get_tide, cache="1h", tools=HOSTED).text == "High."
    assert provider.refusals == []
    for body, last in zip(provider.requests, (0, 2), strict=True):
        system = ["/system/0"] if "system" in body else []
        assert sorted(marks(body)) == sorted([f"/messages/{last}/content/0", *system, "/tools/2"])
        assert body["tools"][2]["cache_control"] == {**MARK, "ttl": "1h"}


def test_no_mark_stands_on_a_deferred_tool_or_on_thinking_and_nothing_passed_is_changed() -> None:
    """AN-7: the provider refuses a deferred tool with a mark."""
    request = {
        "tools": [{"name": "a"}, {"name": "b", "defer_loading": True}],
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [text("Hm."), {"type": "thinking", "thinking": "x", "signature": "s"}]},
        ],
    }
    marked = wire.with_cache(request)
    assert marks(marked) == ["/tools/0", "/system/0", "/messages/1/content/0"]
    assert marks(request) == []
    assert marked["tools"][0]["cache_control"] == MARK
    assert wire.with_cache({"messages": [{"role": "user", "content": "Hi"}]}) == {
        "messages": [{"role": "user", "content": [text("Hi", cache_control=MARK)]}]
    }


def test_a_cache_of_another_length_is_an_error() -> None:
    with pytest.raises(SetupError, match="'2h'"):
        wire.model(Anthropic(api_key="none"), "m", cache="2h")  # type: ignore[arg-type]


# -- ids ---------------------------------------------------------------------------------------------------------------


def test_ids_that_a_session_replaces_keep_their_toolset() -> None:
    raw = {"role": "assistant", "content": [use("toolu_1", "find", toolset_name="browser")]}
    transcript = (
        UserSaid("Tide?"),
        ModelReplied(calls=(JudgedCall("toolu_1_2", "find"),), raw=raw, wire="anthropic"),
        Answers((ToolReturned("toolu_1_2", "ok", "seen"),)),
    )
    model = wire.model(Anthropic(api_key="none"), "m")
    said, answered = model.request_for(CallModel(transcript))["messages"][1:]
    assert said["content"][0]["id"] == answered["content"][0]["tool_use_id"] == "toolu_1_2"
    assert answered["content"][0]["toolset_name"] == "browser"


@pytest.mark.parametrize("form", ["anthropic", "openai_chat"])
@pytest.mark.parametrize("ids", [("a.b", "a_b"), ("functions.x:0", "functions.x:0"), ("x" * 80,) * 2], ids=repr)
def test_ids_that_the_provider_would_refuse_are_sent_changed_and_stay_different(
    form: str, ids: tuple[str, str]
) -> None:
    """C16: a call and its result have the same id, whoever wrote the call; other hosts have ids of their own."""
    use = [(call_id, "get", {}) for call_id in ids]
    journal = MemoryStore()
    with LoopbackProvider([use, "Done.", "Yes."]) as provider:
        search = ToolSearch([{"name": "get", "description": "Get it.", "run": lambda: "got"}], mode="static")
        own = Anthropic(api_key="none", base_url=provider.url, max_retries=0)
        other = OpenAI(api_key="none", base_url=provider.url, max_retries=0)
        first = wire.model(own, "m") if form == "anthropic" else openai_chat.model(other, "m")
        with suppress(BadRequestError):  # the other provider may refuse its own long ids
            Agent(first, search, store=journal).run("Get it.", conversation_id="c")
        Agent(wire.model(own, "m"), search, store=journal).run("Sure?", conversation_id="c")
    asked = [block["id"] for block in provider.requests[-1]["messages"][1]["content"]]
    assert len({*asked}) == 2
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", each) for each in asked)
    assert form == "openai_chat" or provider.refusals == []


class BreaksOff(LoopbackProvider):
    """Its first two streams end after a few events."""

    events = 0

    def stream(self, number: int, events: Iterator[str]) -> Iterator[str]:
        return islice(events, self.events if number < 3 else None)


@pytest.mark.parametrize("events", range(1, 10))
def test_a_reply_that_breaks_off_in_a_thought_or_a_tool_of_the_provider_does_not_end_the_conversation(
    events: int,
) -> None:
    """The provider refuses a thought without its signature, and a call of its own tool without the result."""
    content = [
        {"type": "thinking", "thinking": "A thought.", "signature": "s"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "High water."},
    ]
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    reply = {**head, "content": content, "usage": {"input_tokens": 1, "output_tokens": 1}}
    with BreaksOff([reply, reply, "Later."]) as provider:
        provider.events = events
        model = wire.model(Anthropic(api_key="none", base_url=provider.url, max_retries=0), "m")
        agent = Agent(model, ToolSearch([get_tide], mode="static"))
        assert agent.run("Tide?", conversation_id="c").reason == "broken off"  # type: ignore[union-attr]
        assert agent.run("Well?", conversation_id="c").text == "Later."  # type: ignore[union-attr]
    assert provider.refusals == []
