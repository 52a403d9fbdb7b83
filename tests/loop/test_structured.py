"""Structured answers: SA-49, NA-14; cases C44 and C47."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from toolsearch import AnswerError, Catalog, SetupError, ToolSearch, tool
from toolsearch.events.facts import (
    Answers,
    ModelCalled,
    ModelReplied,
    Reply,
    ReplyDiscarded,
    RunEnded,
    TextDelta,
    Usage,
)
from toolsearch.events.requests import CallModel, Finished
from toolsearch.layers import (
    Quota,
    follow_ups,
    follow_ups_of,
    history,
    processors,
    redact,
    retry,
    structured,
    thought,
    timeout,
    usage,
)
from toolsearch.layers._structured import _without_thoughts
from toolsearch.loop.agent import Agent
from toolsearch.support.text import clean_json
from toolsearch.testing import ScriptedModel
from toolsearch.wires import openai_chat

CASES = ['```json\n{"a":1}\n```', 'Here it is: {"a":1}', '{"a": "contains ``` inside"}']  # C44


class Answer(BaseModel):
    a: int


class Place(BaseModel):
    name: str
    parts: list[Place] = Field(default_factory=list)


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


@tool
def look() -> str:
    """Look at something."""
    return "seen"


def agent_for(model: Any, wanted: Any = Answer, *others: Any, **options: Any) -> Agent:
    return Agent(model, ToolSearch([look], mode="static"), layers=[*others, structured(wanted, **options)])


def purposes(agent: Agent, session: str) -> list[str]:
    return [e.purpose for e in agent.conversation(session).journal if isinstance(e, ModelCalled)]


# -- answers that fit --------------------------------------------------------------------------------------------


def test_an_answer_that_fits_becomes_a_value_of_the_type(drive: Any) -> None:
    agent = agent_for(ScriptedModel('{"a": 1}'))
    result = drive(agent, "Go", conversation_id="s")
    assert (result.value, result.text, result.reason) == (Answer(a=1), '{"a": 1}', "answered")
    assert agent.conversation("s").next().value == {"a": 1}, "the journal holds plain JSON"


def test_with_a_json_schema_the_value_is_json(drive: Any) -> None:
    assert drive(agent_for(ScriptedModel('{"a": "1"}'), SCHEMA), "Go").value == {"a": 1}, "coerced without a repair"


def test_a_fence_around_the_whole_answer_needs_no_repair(drive: Any) -> None:
    """C44, the first answer."""
    model = ScriptedModel(CASES[0])
    assert drive(agent_for(model), "Go").value == Answer(a=1)
    assert len(model.requests) == 1


def test_one_object_among_words_needs_no_repair(drive: Any) -> None:
    """C44, the second answer, by rule."""
    model = ScriptedModel(CASES[1])
    assert drive(agent_for(model), "Go").value == Answer(a=1)
    assert len(model.requests) == 1


def test_a_fence_inside_a_text_is_left_alone(drive: Any) -> None:
    """C44, the third answer."""
    model = ScriptedModel(CASES[2])
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert drive(agent_for(model, schema), "Go").value == {"a": "contains ``` inside"}
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        '  {"a": 1}\n',
        '~~~\n{"a": 1}\n~~~',
        '```\n{"a": 1}```',
        'Sure.\n```json\n{"a": 1}\n```\nAnything else?',
        'As {you} asked: {"a": 1}',
    ],
)
def test_answers_as_models_write_them_are_read(answer: str) -> None:
    model = ScriptedModel(answer)
    assert agent_for(model).run("Go").value == Answer(a=1)
    assert len(model.requests) == 1


@pytest.mark.parametrize("answer", ['{"a": 1} or {"a": 2}', '{"a": NaN}', "[" * 100_000, "{" * 100_000, "", "null"])
def test_what_could_mean_anything_is_repaired_not_guessed(answer: str) -> None:
    model = ScriptedModel(answer, '{"a": 3}')
    assert agent_for(model).run("Go").value == Answer(a=3)
    assert len(model.requests) == 2


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=30) | st.integers() | st.none(), max_size=4))
def test_whatever_an_object_holds_it_is_read_in_a_fence_and_without(value: dict[str, Any]) -> None:
    """C44: backticks and braces inside of texts mean nothing."""
    shape, plain = structured({"type": "object"}).shape, clean_json(value)
    for text in (
        json.dumps(value),
        f"```json\n{json.dumps(value, indent=1)}\n```",
        json.dumps(value, ensure_ascii=False),
    ):
        assert shape.read(Reply(text)).value == plain


@given(st.text(alphabet='`{}[]":,a1\\ \n~', max_size=60))
def test_no_text_breaks_the_reading(text: str) -> None:
    structured(Answer).shape.read(Reply(text))


@pytest.mark.parametrize(
    ("wanted", "answer", "value"),
    [
        (list[int], '{"value": [1, 2]}', [1, 2]),
        (list[int], "[1, 2]", [1, 2]),
        (Literal["yes", "no"], '{"value": "yes"}', "yes"),
        ({"type": "array", "items": {"type": "integer"}}, "[1]", [1]),
        (Answer | Place, '{"value": {"name": "x"}}', Place(name="x")),
        (Place, '{"value": {"name": "x", "parts": [{"name": "y"}]}}', Place(name="x", parts=[Place(name="y")])),
    ],
)
def test_what_is_no_object_is_asked_for_inside_one(wanted: Any, answer: str, value: Any) -> None:
    """Providers take the schema of an object only."""
    model = ScriptedModel(answer)
    assert agent_for(model, wanted).run("Go").value == value
    assert '"type": "object"' in model.requests[0].system


def test_a_dataclass_will_do(drive: Any) -> None:
    @dataclass
    class Point:
        x: int
        y: int = 0

    assert drive(agent_for(ScriptedModel('{"x": 1}'), Point), "Go").value == Point(1)


# -- repairs -----------------------------------------------------------------------------------------------------


def test_a_repair_shows_the_bad_answer_and_all_problems_so_far(drive: Any) -> None:
    """SA-49: neither was shown there; NA-14: failure carries issues, text and attempts."""
    model = ScriptedModel('{"b": 1}', '{"a": "x"}', '{"a": 2}')
    result = drive(agent_for(model, SCHEMA, repairs=2), "Go", conversation_id="s")
    assert result.value == {"a": 2}
    first, second = (request.transcript for request in model.requests[1:])
    assert [message.text for message in first[:-1]] == ["Go", '{"b": 1}']
    assert "attempt 1: the required field 'a' is missing" in first[-1].text
    assert "attempt 1: there is no field 'b'" in first[-1].text
    assert [message.text for message in second[:-1]] == ["Go", '{"a": "x"}']
    assert first[-1].text.splitlines()[1] in second[-1].text, "earlier problems are told again"
    assert "attempt 2: 'a' must be an integer" in second[-1].text


def test_an_answer_that_never_fits_raises_and_the_conversation_stays_whole(drive: Any) -> None:
    """SA-49 returned it silently; one repair by default, as NA-14."""
    agent = agent_for(ScriptedModel('{"a": "x"}', "no", '{"a": 5}'))
    with pytest.raises(AnswerError, match=r"does not fit after 2 attempts: .*'a': .*integer") as raised:
        drive(agent, "Go", conversation_id="s")
    assert (raised.value.text, raised.value.attempts, len(raised.value.problems)) == ("no", 2, 2)
    journal = agent.conversation("s").journal
    assert isinstance(journal[-1], RunEnded)
    assert journal[-1].reason == "failed"
    assert not [e for e in journal if isinstance(e, ModelReplied)], "a refused answer is no part of the conversation"
    assert drive(agent, "Again", conversation_id="s").value == Answer(a=5)


def test_without_repairs_one_answer_is_all_there_is() -> None:
    model = ScriptedModel("no")
    with pytest.raises(AnswerError, match="after 1 attempt:"):
        agent_for(model, repairs=0).run("Go")
    assert len(model.requests) == 1


def test_every_attempt_is_billed_and_summed_up(drive: Any) -> None:
    """SA-49, NA-15: usage summed, the purpose named."""
    agent = agent_for(ScriptedModel("no", '{"a": 1}'))
    assert drive(agent, "Go", conversation_id="s").usage == Usage(200, 0, 20, 2)
    assert purposes(agent, "s") == ["chat", "structured_output"]


def test_a_repair_has_no_tools_and_a_call_in_it_is_a_bad_answer(drive: Any) -> None:
    """C47."""
    model = ScriptedModel("no", [("look", {})], '{"a": 1}')
    assert drive(agent_for(model, repairs=2), "Go").value == Answer(a=1)
    assert [len(request.tools) for request in model.requests] == [1, 0, 0]
    assert "not a call" in model.requests[2].transcript[-1].text


def test_a_repair_shows_calls_and_results_as_text(drive: Any) -> None:
    """Providers refuse calls in a request that has no tools."""
    model = ScriptedModel([("look", {})], "no", '{"a": 1}')
    assert drive(agent_for(model), "Go").value == Answer(a=1)
    told = model.requests[2].transcript
    assert not [m for m in told if isinstance(m, Answers) or getattr(m, "calls", ())]
    assert "look" in told[1].text
    assert "seen" in told[2].text


def test_an_answer_that_was_cut_off_is_told_so() -> None:
    model = ScriptedModel(Reply('{"a": ', stop="length"), '{"a": 1}')
    agent_for(model).run("Go")
    assert "cut off: answer more briefly" in model.requests[1].transcript[-1].text


def test_replies_with_calls_pass_as_they_are(drive: Any) -> None:
    """SA-49."""
    model = ScriptedModel([("look", {})], '{"a": 1}')
    assert drive(agent_for(model), "Go").value == Answer(a=1)
    assert [request.purpose for request in model.requests] == ["chat", "chat"]


# -- how the schema gets there -----------------------------------------------------------------------------------


class Native(ScriptedModel):
    takes_schema = True


def test_a_model_that_sees_to_a_schema_gets_it_in_the_request_others_in_words(drive: Any) -> None:
    for make, in_request in ((Native, True), (ScriptedModel, False)):
        model = make('{"a": 1}')
        drive(agent_for(model, SCHEMA), "Go")
        (request,) = model.requests
        assert (request.schema == SCHEMA, "JSON Schema" in request.system) == (in_request, not in_request)
    model = Native('{"a": 1}')
    drive(agent_for(model, native=False), "Go")
    assert model.requests[0].schema is None


def test_openai_chat_puts_the_schema_into_the_response_format() -> None:
    model = openai_chat.ChatModel(None, "gpt-x", True, {})
    assert model.takes_schema
    asked = model.request_for(CallModel((), schema=SCHEMA))
    assert asked["response_format"]["json_schema"]["schema"] == SCHEMA


def test_a_repair_asks_with_the_schema_too() -> None:
    model = Native("no", '{"a": 1}')
    agent_for(model, SCHEMA).run("Go")
    assert [request.schema for request in model.requests] == [SCHEMA, SCHEMA]


# -- streams, and other layers -----------------------------------------------------------------------------------


def test_nothing_of_an_answer_is_shown_before_it_is_whole(drive: Any) -> None:
    """SA-49: streaming was unsupported."""
    shown = drive.shown(agent_for(ScriptedModel("no", '{"a": 1}', pieces=1)), "Go")
    assert not [e for e in shown if isinstance(e, TextDelta | ReplyDiscarded)]
    assert [e.text for e in shown if isinstance(e, ModelReplied)] == ['{"a": 1}']
    assert shown[-1].value == Answer(a=1)


def test_apart_the_model_answers_in_its_own_words_and_a_further_call_gives_the_value(drive: Any) -> None:
    """NA-14: a separate call, with the schema and no tools."""
    model = ScriptedModel([("look", {})], "It is one.", "no", '{"a": 1}', pieces=4)
    agent = agent_for(model, separate=True)
    shown = drive.shown(agent, "Go", conversation_id="s")
    result = shown[-1]
    assert (result.text, result.value) == ("It is one.", Answer(a=1))
    assert "".join(e.text for e in shown if isinstance(e, TextDelta)) == "It is one."
    assert not [e for e in shown if isinstance(e, ReplyDiscarded)], "what was shown stands"
    assert purposes(agent, "s") == ["chat", "chat", "structured_output", "structured_output"]
    assert [bool(request.tools) for request in model.requests] == [True, True, False, False]
    assert "JSON Schema" not in model.requests[1].system


def test_helpers_of_other_layers_are_not_judged(drive: Any) -> None:
    model = ScriptedModel('{"a": 1}', "And now?", "They said go.", '{"a": 2}', "And then?")
    agent = agent_for(model, Answer, follow_ups(1), history(2, summarize=True))
    drive(agent, "Go", conversation_id="s")
    assert drive(agent, "Again", conversation_id="s").value == Answer(a=2)
    assert purposes(agent, "s") == ["chat", "follow_ups", "history_summary", "chat", "follow_ups"]


def test_all_layers_around_the_model_go_together_in_the_order_of_the_docs(drive: Any) -> None:
    told: list[Any] = []
    model = ScriptedModel(
        [("look", {"why": "to see 4111"})],
        ConnectionError("gone"),
        "It is one, says 4111.",
        '{"a": "4111"}',
        "And two?",
    )
    layers = [
        history(50),
        follow_ups(),
        structured(Answer, separate=True),
        processors(into=[redact("4111")], out=[redact(r"\b4111(?=\.)")], stored=[redact("9999")]),
        thought({"why": "Why"}, lambda *each: told.append(each)),
        retry(seconds=0),
        timeout(tool=20, model=20),
        usage(Quota(calls=9)),
    ]
    agent = Agent(model, ToolSearch([look], mode="static"), layers=layers)
    result = drive(agent, "Go", conversation_id="s")
    assert (result.text, result.value) == ("It is one, says [redacted].", Answer(a=4111))
    assert purposes(agent, "s") == ["chat", "chat", "chat", "structured_output", "follow_ups"]
    assert told == [("look", {"why": "to see 4111"}, {"why": "to see 4111"})]
    assert follow_ups_of(agent.conversation("s").journal) == ["And two?"]
    assert result.usage.calls == 5


def test_a_turn_that_a_tool_ends_keeps_the_tools_value(drive: Any) -> None:
    done = tool(look.run, name="done", terminal=True)
    agent = Agent(ScriptedModel([("done", {})]), ToolSearch([done], mode="static"), layers=[structured(Answer)])
    result = drive(agent, "Go")
    assert (result.reason, result.value) == ("terminal tool", "seen")


def test_a_value_is_there_again_after_a_restart() -> None:
    agent = agent_for(ScriptedModel('{"a": 1}'))
    agent.run("Go", conversation_id="s")
    replied = [e for e in agent.conversation("s").journal if isinstance(e, ModelReplied)]
    assert replied[0].value == {"a": 1}
    assert isinstance(agent.conversation("s").next(), Finished)


# -- setting it up -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wanted": "Answer"}, "needs a type or a JSON Schema"),
        ({"wanted": Answer(a=1)}, "needs a type or a JSON Schema"),
        ({"wanted": {"type": {1}}}, "is not JSON"),
        ({"wanted": Answer, "repairs": -1}, "repairs must be"),
        ({"wanted": Answer, "repairs": True}, "repairs must be"),
    ],
)
def test_what_cannot_work_is_said_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        structured(**options)


def test_a_catalog_of_searched_tools_works_as_well(drive: Any) -> None:
    tools = [{"name": f"tool_{n}", "description": "does things " * 60} for n in range(40)]
    model = ScriptedModel('{"a": 1}')
    agent = Agent(model, ToolSearch(Catalog(tools)), system="Be brief.", layers=[structured(Answer)])
    assert drive(agent, "Go").value == Answer(a=1)
    assert model.requests[0].system.startswith("Be brief.")


class Passed(BaseModel):
    passed: bool
    score: int


FITS = '{"passed": true, "score": 3}'
BRACES = 'perhaps {"passed": false, "score": 0}'


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{BRACES}</think>{FITS}",
        f"<think>\n{BRACES}\n</think>\n\n{FITS}",
        f"<THINKING>{BRACES}</THINKING> {FITS}",
        f"<think>a</think><reasoning>{BRACES}</reasoning>{FITS}",
        f"{BRACES} so it is\n</think>\n{FITS}",
        f"[THINK]{BRACES}[/THINK]{FITS}",
        f"<think>{BRACES}</think>\n```json\n{FITS}\n```",
        f"<think>{BRACES}</think>The verdict is {FITS}.",
    ],
)
def test_J34_thoughts_before_the_answer_are_no_part_of_it(drive: Any, text: str) -> None:
    """J34: braces in the thoughts of a model made its answer fail."""
    agent = Agent(ScriptedModel(text), ToolSearch([], mode="static"), layers=[structured(Passed, repairs=0)])
    assert drive(agent, "Judge").value == Passed(passed=True, score=3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "<think>{}</think>"}', {"a": "<think>{}</think>"}),
        ('{"a": "x</think>y"}', {"a": "x</think>y"}),
        ('<think>no end {"a": 1}', {"a": 1}),
    ],
)
def test_J34_what_fits_as_it_is_stays_as_it_is(drive: Any, text: str, value: Any) -> None:
    """J34: a block of thoughts is looked for only where the text as it is does not fit."""
    layer = structured({"properties": {"a": {}}, "required": ["a"]}, repairs=0)
    agent = Agent(ScriptedModel(text), ToolSearch([], mode="static"), layers=[layer])
    assert drive(agent, "Go").value == value


def test_J34_many_openings_of_thoughts_are_read_in_linear_time() -> None:
    assert _without_thoughts("<think>" * 200_000) == "<think>" * 200_000
    assert _without_thoughts("<think></think>" * 100_000 + "{}") == "{}"
