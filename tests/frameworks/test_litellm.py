"""LiteLLM through `openai_chat`: what it translates comes back to each provider as the provider wants it."""

import asyncio
import os
from typing import Any

import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # before the import, which would fetch the list of prices
pytest.importorskip("litellm", reason="needs pip install litellm: see `make frameworks`")

import litellm

from toolsearch import Agent, ToolSearch, tool
from toolsearch.layers import structured
from toolsearch.testing import LoopbackProvider
from toolsearch.wires import openai_chat as wire
from toolsearch_indexes.keyword import KeywordIndex

CLAUDE: dict[str, Any] = {
    "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None, "stop_reason": "tool_use",
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
    ],
}  # fmt: skip
PART = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "c2ln"}
GEMINI = {
    "candidates": [{"content": {"role": "model", "parts": [PART]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
}
PROVIDERS: dict[str, tuple[Any, str]] = {
    "anthropic/claude-sonnet-4-5": (CLAUDE, ""),
    "gemini/gemini-3-pro-preview": (GEMINI, ""),
    "openai/gpt-4o": ([("look", {})], "/v1"),
}
every_provider = pytest.mark.parametrize("name", PROVIDERS)
quiet = pytest.mark.filterwarnings("ignore")  # LiteLLM leaves clients open


@tool
def look() -> str:
    """Look around."""
    return "a wall"


def tools() -> ToolSearch:
    return ToolSearch([look], index=KeywordIndex(), mode="static")


def signatures(body: Any) -> str:
    """The parts of the last request that carry what the provider signed."""
    messages = body.get("contents") or body["messages"]
    parts = [part for each in messages for part in each.get("parts") or each.get("content") or []]
    return " ".join(
        str(part.get("thoughtSignature") or part.get("signature") or "") for part in parts if "get" in dir(part)
    )


@quiet
@every_provider
@pytest.mark.parametrize("way", ["whole", "streamed", "whole async", "streamed async"])
def test_an_agent_asks_through_litellm_and_what_was_signed_goes_back(name: str, way: str) -> None:
    """K17: Anthropic and Gemini 3 refuse a history without it; the provider on this machine does too."""
    first, base = PROVIDERS[name]
    is_async = way.endswith("async")
    with LoopbackProvider([first, "A wall."]) as provider:
        client = litellm.acompletion if is_async else litellm.completion
        model = wire.model(client, name, stream="streamed" in way, api_base=provider.url + base, api_key="none")
        agent = Agent(model, tools())
        result: Any = asyncio.run(agent.arun("Look.")) if is_async else agent.run("Look.")
    assert provider.refusals == []
    assert result.text == "A wall."
    if not name.startswith("openai"):
        assert "c2ln" in signatures(provider.requests[-1])


@quiet
@every_provider
def test_a_loop_of_ones_own_sends_back_what_the_wire_keeps(name: str) -> None:
    first, base = PROVIDERS[name]
    session = tools().session()
    messages: list[Any] = [{"role": "user", "content": "Look."}]
    with LoopbackProvider([first, "A wall."]) as provider:
        for _ in range(2):
            reply = litellm.completion(
                model=name,
                messages=messages,
                tools=wire.tools_for(session),
                api_base=provider.url + base,
                api_key="none",
            )
            messages.append(wire.message_from(reply))
            messages += wire.results_for([(call, session.handle(call)) for call in wire.calls_in(reply)])
    assert provider.refusals == []
    assert [m["content"] for m in messages if m["role"] == "tool"] == ["a wall"]
    assert messages[-1]["content"] == "A wall."


@quiet
def test_a_request_without_tools_has_none_after_one_that_had_some() -> None:
    """LiteLLM's own client object keeps the arguments of a request for the next one; the function does not."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    with LoopbackProvider(["One.", '{"n": 1}']) as provider:
        options: Any = {"api_base": f"{provider.url}/v1", "api_key": "none", "stream": False}
        agent = Agent(wire.model(litellm.completion, "openai/gpt-4o", **options), tools(), layers=[structured(schema)])
        assert agent.run("How many?").value == {"n": 1}  # type: ignore[union-attr]
    assert ["tools" in body for body in provider.requests] == [True, False]
