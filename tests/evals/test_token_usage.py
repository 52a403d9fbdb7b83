"""Counting: exact payloads, what is cached, and names for the ways of counting."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch.catalog.tools import Shown
from toolsearch.tokens import ESTIMATE, MEDIA_TOKENS, counter
from toolsearch.wires import anthropic, openai_chat
from toolsearch_evals.data.cases import load
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.token_usage import TokenMeter, TokenUsage, pieces, tokenizer

COUNTER = counter()
TOOL = {"name": "ping", "description": "Pings.", "input_schema": {"type": "object", "properties": {}}}


def compact(request: Any) -> str:
    return json.dumps(request, ensure_ascii=False, separators=(",", ":"))


texts = st.text(max_size=40) | st.sampled_from(["<|endoftext|>", "<|im_start|>system", '{"', "{{{", "}],[{"])


@given(st.lists(texts, max_size=6), st.lists(texts, max_size=4), texts)
def test_the_pieces_of_a_request_count_as_much_as_its_whole(said: list[str], told: list[str], system: str) -> None:
    """E01, E04"""
    tools = [{"name": f"tool_{at}", "description": text} for at, text in enumerate(told)]
    messages = [{"role": "user", "content": text} for text in said]
    for form in FORMATS.values():
        request = form.request(tools, system, messages)
        assert "".join(pieces(request)) == compact(request)
        assert TokenMeter(COUNTER).tokens(request) == COUNTER.of(request)


@pytest.mark.parametrize("text", ["explain <|endoftext|>", "<|im_start|>system"])
def test_text_like_a_control_token_is_counted_as_text(text: str) -> None:
    """E01"""
    assert TokenMeter(COUNTER).count(text) == COUNTER.count(text) > 3


def test_both_forms_of_a_tool_differ_by_their_wrapper_only() -> None:
    """E04"""
    differences = set()
    for tool in load("commons")[0].catalog():
        if len(tool.description) < openai_chat.DESCRIPTION_CHARACTERS:
            shown = Shown(tool.name, tool)
            differences.add(COUNTER.of(openai_chat.definition(shown)) - COUNTER.of(anthropic.definition(shown)))
    assert differences
    assert max(differences) <= 12
    assert max(differences) - min(differences) <= 4


def test_a_system_message_in_blocks_and_every_tool_are_counted() -> None:
    """E04"""
    form, meter = FORMATS["anthropic"], TokenMeter(COUNTER)
    bare = meter.tokens(form.request([], "", []))
    system = meter.tokens(form.request([], "s" * 400, []))
    tools = meter.tokens(form.request([TOOL] * 40, "s" * 400, [{"role": "user", "content": "hi"}]))
    assert system - bare >= COUNTER.count("s" * 400) - 2
    assert tools - system >= 40 * COUNTER.of(TOOL) - 40


def test_what_a_request_shares_with_the_one_before_is_cached() -> None:
    form, meter = FORMATS["openai_chat"], TokenMeter(COUNTER)
    messages = [{"role": "user", "content": "hello, can you help me with a thing"}]
    first = form.request([TOOL], "be brief", messages)
    second = form.request([TOOL], "be brief", [*messages, {"role": "assistant", "content": "yes"}])
    more_tools = form.request([TOOL, {**TOOL, "name": "pong"}], "be brief", messages)
    assert meter.request(first, None) == TokenUsage(uncached=COUNTER.of(first))
    grown = meter.request(second, first)
    assert grown.uncached + grown.cached == COUNTER.of(second)
    assert grown.cached >= COUNTER.of(first) - 4
    lost = meter.request(more_tools, first)
    assert COUNTER.of([TOOL]) - 4 <= lost.cached < COUNTER.of(first) - 8


def test_costs_weigh_what_is_cached_and_what_is_written() -> None:
    usage = TokenUsage(100, 1000, 10) + TokenUsage(0, 0, 10)
    assert usage.total == 1120
    assert usage.cost(0.1, 5) == 100 + 100 + 100


def test_an_estimate_is_called_one() -> None:
    assert tokenizer(ESTIMATE, is_public=True) == "characters / 4 (estimate)"
    assert tokenizer(ESTIMATE, is_public=False) == "characters / 4 (estimate)"
    assert tokenizer(COUNTER, is_public=True) == "o200k_base"
    assert tokenizer(COUNTER, is_public=False).startswith("estimate with o200k_base")


@pytest.mark.parametrize("name", FORMATS)
def test_E08_an_image_of_a_request_is_not_counted_as_text(name: str) -> None:
    """E08: also where two requests differ only in what comes behind it."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A/+0" * 250_000}}
    said = [{"role": "user", "content": [image, {"type": "text", "text": text}]} for text in ("What is it?", "Who?")]
    first, second = (FORMATS[name].request([TOOL], "S", [message]) for message in said)
    meter = TokenMeter(COUNTER)
    assert MEDIA_TOKENS < meter.tokens(first) < MEDIA_TOKENS + 200
    used = meter.request(second, first)
    assert MEDIA_TOKENS < used.cached < MEDIA_TOKENS + 200
    assert 0 < used.uncached < 50
