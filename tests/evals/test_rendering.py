"""Requests as a provider renders them: what is counted instead of JSON, if that is asked for."""

from dataclasses import replace
from typing import Any

import pytest

from toolsearch import ToolSearch
from toolsearch.tokens import ESTIMATE, counter
from toolsearch.wires import openai_chat
from toolsearch_evals.data.cases import Case, Dataset, load
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.rendering import MARK, RenderedMeter, openai_pieces
from toolsearch_evals.savings.scripted import answer, play
from toolsearch_evals.savings.sweep import SweepPlan, sweep
from toolsearch_evals.token_usage import TokenMeter

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather.\nFor a place.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "A town."},
                "days": {"type": "integer", "default": 3},
                "unit": {"type": "string", "enum": ["C", "F"]},
                "points": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}},
                "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "odd": True,
            },
            "required": ["place"],
        },
    },
}
NOW: dict[str, Any] = {"type": "function", "function": {"name": "now"}}
AS_TYPESCRIPT = """# Tools

## functions

namespace functions {

// Tells the weather.
// For a place.
type get_weather = (_: {
// A town.
place: string,
days?: number, // default: 3
unit?: "C" | "F",
points?: {
x?: number,
}[],
either?: string | null,
odd?: any,
}) => any;

type now = () => any;

} // namespace functions"""


@pytest.fixture(scope="module")
def commons() -> Dataset:
    return load("commons")[0]


def test_definitions_are_typescript_and_messages_stand_between_marks() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"what time{MARK}?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "noon"}]},
    ]
    whole = "".join(openai_pieces({"tools": [WEATHER, NOW], "messages": messages}))
    system, user, called, result, begun = [part for part in whole.replace(MARK * 2, "\n\n\n").split("\n\n\n") if part]
    assert system == f"{MARK}system{MARK}{AS_TYPESCRIPT}"
    assert user == f"user{MARK}what time??"
    assert called == f"assistant to=functions.now{MARK}{{}}"
    assert result == f"tool{MARK}noon"
    assert begun == f"assistant{MARK}"


def test_the_pieces_of_real_definitions_count_as_much_as_their_whole(commons: Dataset) -> None:
    meter = RenderedMeter(TokenMeter(counter()))
    session = ToolSearch(commons.catalog(), "keyword", run=answer, mode="static", max_tools=800).session()
    tools = openai_chat.tools_for(session)
    for start in range(0, len(tools), 60):
        request = {"tools": tools[start : start + 60], "messages": [{"role": "user", "content": "hello"}]}
        assert meter.tokens(request) == meter.count("".join(openai_pieces(request)))
        assert meter.tokens(request) < TokenMeter(counter()).tokens(request)


def test_a_mark_counts_as_one_token_and_the_rest_as_text() -> None:
    meter = RenderedMeter(TokenMeter(counter()))
    assert meter.count(f"{MARK}user{MARK}hello{MARK}") == 3 + 2
    assert RenderedMeter(TokenMeter(ESTIMATE)).count(f"{MARK}12345678{MARK}") == 2 + 2


def test_a_conversation_counts_less_when_rendered_and_takes_the_same_course(commons: Dataset) -> None:
    case = Case("r", "refund a payment", (("stripe/create_refund",),))
    search = ToolSearch(commons.catalog(), "keyword", run=answer)
    as_json = play(search, [case], FORMATS["openai_chat"], TokenMeter(counter()))
    rendered = play(search, [case], FORMATS["openai_chat"], RenderedMeter(TokenMeter(counter())))
    assert [len(turn.requests) for turn in rendered.turns] == [len(turn.requests) for turn in as_json.turns]
    for ours, theirs in zip(rendered.requests, as_json.requests, strict=True):
        assert ours.input < theirs.input
        assert ours.fixed < theirs.fixed
        assert ours.tools_changed == theirs.tools_changed
        assert ours.shared <= ours.input


def test_the_report_says_what_was_counted_and_where_no_form_is_known(commons: Dataset) -> None:
    """E05: each count carries how it was made."""
    plan = SweepPlan(wires=("openai_chat", "anthropic"), sizes=(30,), seeds=1, conversations=1, tokens="rendered")
    rendered, as_json = (sweep(commons, commons.cases, each) for each in (plan, replace(plan, tokens="json")))
    assert rendered.tokenizers["openai_chat"] == "o200k_base: requests as the provider is said to render them"
    assert rendered.tokenizers["anthropic"].endswith("JSON, no other form is known")
    ours, theirs = rendered.rows, as_json.rows
    assert ours[0]["static tokens"] < 0.8 * theirs[0]["static tokens"]
    assert ours[0]["saving"] < theirs[0]["saving"], "JSON leans to search"
    assert ours[1]["tokens"] == theirs[1]["tokens"]
