"""The facts, and the form they are stored in."""

import dataclasses
import enum
import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from toolsearch.calls import AudioPart, ImagePart, JsonPart, ResourcePart, Status, TextPart
from toolsearch.catalog.marks import Kind, Marks
from toolsearch.errors import StateError
from toolsearch.events.facts import (
    Compacted,
    Ending,
    Event,
    JudgedCall,
    ModelCalled,
    ModelReplied,
    Noted,
    RunBegan,
    RunEnded,
    TextDelta,
    ToolApproved,
    ToolDenied,
    ToolReturned,
    ToolsFound,
    ToolsRevealed,
    ToolStarted,
    ToolsUnloaded,
    ToolWaiting,
    Usage,
    UserSaid,
)
from toolsearch.events.journal import cleaned, read_events, stored

FACTS: tuple[type[Any], ...] = get_args(Event)

text = st.text(st.characters(exclude_categories=()), max_size=12)  # lone surrogates too
ids = st.sampled_from(["c1", "c2", "", "call_0", "\ud800", "é"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(text, json_values, max_size=3)
times = st.floats(0, 2e9)
names = st.lists(text, max_size=3).map(tuple)
usages = st.builds(Usage, *[st.integers(0, 10**9)] * 4)
parts = st.lists(
    st.builds(TextPart, text) | st.builds(JsonPart, json_values) | st.builds(ImagePart, text, text)
    | st.builds(AudioPart, st.binary(max_size=9), text)
    | st.builds(ResourcePart, text, text, text, st.none() | text, st.none() | text, text),
    max_size=2,
).map(tuple)  # fmt: skip
asked = st.builds(
    JudgedCall, ids, text, json_values, st.sampled_from(["tool", "search", "answered"]), text, text,
    st.none() | objects,
    st.builds(Marks, st.sampled_from(get_args(Kind)), *[st.booleans()] * 5),
    st.sampled_from(get_args(Status)), text, names,
)  # fmt: skip
facts = st.one_of(
    st.builds(RunBegan, text, times, st.none() | text, st.none() | text),
    st.builds(UserSaid, text, st.lists(objects, max_size=2).map(tuple), times),
    st.builds(ModelReplied, text, st.lists(asked, max_size=2).map(tuple), text, json_values, value=json_values),
    st.builds(ModelCalled, text, text, usages, text, text, times, times),
    st.builds(ToolStarted, ids, times),
    st.builds(ToolsFound, ids, names, names, objects),
    st.builds(ToolsRevealed, names, objects, said=text),
    st.builds(ToolsUnloaded, names, names, objects),
    st.builds(ToolReturned, ids, st.sampled_from(get_args(Status)), text, json_values, text, times, times, parts),
    st.builds(ToolWaiting, ids, text, text, text, st.none() | times, json_values, times),
    st.builds(ToolApproved, ids, st.none() | objects, text, text, times),
    st.builds(ToolDenied, ids, text, text, st.booleans(), times),
    st.builds(Compacted, st.integers(0, 99), text, times),
    st.builds(Noted, text, json_values, times),
    st.builds(Ending, text, st.none() | text, text),
    st.builds(RunEnded, text, text, json_values, times),
)


def read_back(event: Event) -> Event:
    """Through the bytes of a file."""
    return read_events([json.loads(json.dumps(stored(event), ensure_ascii=False, allow_nan=False).encode().decode())])[
        0
    ]


@given(facts)
def test_every_fact_comes_back_from_its_stored_form_as_it_was_kept(event: Event) -> None:
    """C42: what holds a lone surrogate is kept with U+FFFD, so that live and stored never differ."""
    assert read_back(event) == cleaned(event)
    assert cleaned(cleaned(event)) == cleaned(event)


def test_the_strategies_above_know_every_fact() -> None:
    assert len(FACTS) == 16
    for kind in FACTS:
        assert f"builds({kind.__name__}" in str(facts), kind


def test_the_stored_form_is_this_one() -> None:
    """A change of it needs a new version, and a migration of the old one."""
    reply = ModelReplied(
        "Let me look.", (JudgedCall("c1", "add", '{"a": 1}', tool="add", given={"a": 1}),), model="m", at=5.5
    )
    assert stored(reply) == {
        "v": 1,
        "fact": "ModelReplied",
        "text": "Let me look.",
        "calls": [{"id": "c1", "name": "add", "arguments": '{"a": 1}', "tool": "add", "given": {"a": 1}}],
        "model": "m",
        "at": 5.5,
    }
    assert stored(ToolReturned("c1", "ok", "3")) == {
        "v": 1, "fact": "ToolReturned", "call_id": "c1", "status": "ok", "content": "3",
    }  # fmt: skip
    assert stored(ModelCalled(usage=Usage(10, 2, 3, 1))) == {
        "v": 1,
        "fact": "ModelCalled",
        "usage": {"input_tokens": 10, "cached_tokens": 2, "output_tokens": 3, "calls": 1},
    }
    assert read_events([stored(reply), stored(ToolStarted("c1"))]) == [reply, ToolStarted("c1")]


DEFINITION = {"id": "s/n", "name": "n", "description": "d", "schema": {"type": "object"}, "server": "s"}

# Every fact with a value in every field that is not its default: what a journal of format 1 may hold.
FORMAT_1: list[dict[str, Any]] = [
    {"v": 1, "fact": "RunBegan", "run": "r", "at": 1.5, "user": "ana", "tenant": "acme"},
    {"v": 1, "fact": "UserSaid", "text": "hi", "parts": [{"type": "image"}], "at": 1.5,
     "definitions": [DEFINITION]},
    {
        "v": 1, "fact": "ModelReplied", "text": "t", "reasoning": "r", "raw": {"role": "assistant"}, "wire": "w",
        "model": "m", "stop": "s", "value": 7, "at": 1.5,
        "calls": [
            {
                "id": "c", "name": "n", "arguments": "{}", "kind": "answered", "tool": "s/n", "digest": "d",
                "given": {"a": 1}, "alone": True, "repeatable": False, "return_direct": True, "terminal": True,
                "status": "denied", "answer": "no", "reveal": ["s/n"], "action": True, "polling": True,
            }
        ],
    },
    {
        "v": 1, "fact": "ModelCalled", "purpose": "summary", "model": "m", "actor": "ana", "error": "e", "seconds": 2.0,
        "at": 1.5, "usage": {"input_tokens": 1, "cached_tokens": 2, "output_tokens": 3, "calls": 4},
    },
    {"v": 1, "fact": "ToolStarted", "call_id": "c", "at": 1.5},
    {"v": 1, "fact": "ToolsFound", "call_id": "c", "loaded": ["a"], "unloaded": ["b"], "session": {"format": 1},
     "changes": {"after": 4}},
    {"v": 1, "fact": "ToolsRevealed", "loaded": ["a"], "session": {"format": 1}, "changes": {"after": 4}, "said": "a",
     "definitions": [DEFINITION]},
    {"v": 1, "fact": "ToolsUnloaded", "unloaded": ["a"], "told": ["a has changed"], "session": {"format": 1},
     "changes": {"after": 4}},
    {
        "v": 1, "fact": "ToolReturned", "call_id": "c", "status": "ok", "content": "3", "data": 3, "by": "layer",
        "seconds": 2.0, "at": 1.5,
        "parts": [
            {"type": "text", "text": "a"}, {"type": "image", "data": "QUJD", "media_type": "image/png"},
            {"type": "audio", "data": "QUJD", "media_type": "audio/wav"},
            {"type": "resource", "uri": "u", "media_type": "m", "name": "n", "text": "t", "data": "QUJD",
             "description": "d"},
            {"type": "json", "value": {"n": 1}},
        ],
        "definitions": [DEFINITION],
    },
    {
        "v": 1, "fact": "ToolWaiting", "call_id": "c", "kind": "question", "question": "q", "by": "layer",
        "expires_at": 9.0, "data": 1, "at": 1.5,
    },
    {
        "v": 1, "fact": "ToolApproved", "call_id": "c", "arguments": {"a": 1}, "remember": "tool", "actor": "ana",
        "at": 1.5, "answer": {"content": "yes"},
    },
    {"v": 1, "fact": "ToolDenied", "call_id": "c", "reason": "r", "actor": "ana", "expired": True, "at": 1.5},
    {"v": 1, "fact": "Compacted", "before": 3, "summary": "s", "at": 1.5, "kept": [1, 2]},
    {"v": 1, "fact": "Noted", "layer": "limits", "note": {"a": 1}, "at": 1.5},
    {"v": 1, "fact": "Ending", "reason": "r", "text": "t", "by": "limits"},
    {"v": 1, "fact": "RunEnded", "reason": "answered", "text": "t", "value": 7, "at": 1.5},
]  # fmt: skip


def test_the_keys_of_a_journal_are_these_whatever_classes_and_fields_are_called() -> None:
    """The lines stand here as they are stored: a rename that reaches them breaks this test, not a user's journal."""
    events = read_events(FORMAT_1)
    assert [stored(event) for event in events] == FORMAT_1
    assert {type(event) for event in events} == {*FACTS}
    for event in events:
        for each in dataclasses.fields(event):
            default = None if each.default is dataclasses.MISSING else each.default
            assert getattr(event, each.name) != default, f"{each.name} of {event!r} is not set above"


def test_a_journal_from_before_there_were_parts_is_read() -> None:
    line = {"v": 1, "fact": "ToolReturned", "call_id": "c", "status": "ok", "content": "3"}
    assert read_events([line]) == [ToolReturned("c", "ok", "3")]


@pytest.mark.parametrize("parts", [(1,), ("text",), (TextPart(None),), (ImagePart("QUJD", 5),), 7])  # type: ignore[arg-type]
def test_parts_that_are_none_are_refused_before_they_are_stored(parts: Any) -> None:
    with pytest.raises(StateError, match="a ToolReturned cannot be stored"):
        cleaned(ToolReturned("c", "ok", "3", parts=parts))


@pytest.mark.parametrize("part", [{"type": "hologram"}, "text", {"type": "text", "size": 3}, 7, None])
def test_a_part_that_is_none_is_refused(part: Any) -> None:
    line = {"v": 1, "fact": "ToolReturned", "call_id": "c", "status": "ok", "content": "3", "parts": [part]}
    with pytest.raises(StateError, match="fact 0 of the journal, a ToolReturned, cannot be read"):
        read_events([line])


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ({"v": 2, "kind": "UserSaid", "text": "hi"}, "the format 2; this version reads 1"),
        ({"fact": "UserSaid", "text": "hi"}, "the format None"),
        ({"v": 1, "fact": "UserShouted", "text": "hi"}, "the unknown kind 'UserShouted'"),
        ({"v": 1, "text": "hi"}, "the unknown kind None"),
        ({"v": 1, "fact": ["UserSaid"], "text": "hi"}, "the unknown kind"),
        ({"v": 1, "fact": "TextDelta", "text": "hi"}, "the unknown kind 'TextDelta'"),
        ({"v": 1, "fact": "JudgedCall", "id": "c", "name": "n"}, "the unknown kind 'JudgedCall'"),
        ({"v": 1, "fact": "UserSaid", "text": "hi", "loud": True}, "a UserSaid, cannot be read.*unknown field 'loud'"),
        ({"v": 1, "fact": "UserSaid"}, "a UserSaid, cannot be read.*'text'"),
        ({"v": 1, "fact": "ModelReplied", "calls": [{"id": "c", "name": "n", "x": 1}]}, "unknown field 'x'"),
        ({"v": 1, "fact": "ModelReplied", "calls": [{"id": "c", "name": "n", "marks": {}}]}, "unknown field 'marks'"),
        ({"v": 1, "fact": "ModelReplied", "calls": [7]}, "7 is not a JudgedCall"),
        ({"v": 1, "fact": "ModelReplied", "calls": None}, "a ModelReplied, cannot be read"),
        ({"v": 1, "fact": "ModelCalled", "usage": {"tokens": 1}}, "unknown field 'tokens'"),
        ({"v": 1, "fact": "ToolsRevealed", "loaded": 5}, "a ToolsRevealed, cannot be read"),
        ("UserSaid", "must be a JSON object, not 'UserSaid'"),
        (None, "must be a JSON object, not None"),
    ],
)
def test_what_is_no_fact_is_refused_with_its_place(line: Any, named: str) -> None:
    with pytest.raises(StateError, match=f"(?s)fact 1 of the journal.*{named}"):
        read_events([stored(UserSaid("hi")), line])


@pytest.mark.parametrize(
    "told", ["ok \ud800 end", "name-\udcff.txt", "a\x00b", {"\udcff": ["\ud800", {"deep": "\udfff"}]}]
)
def test_C42_no_fact_holds_a_lone_surrogate(told: Any) -> None:
    """In a result, in what a model wrote, in a note: the bytes of a store and of a request can always be made."""
    given = told if isinstance(told, dict) else {"text": told}
    asked = JudgedCall("c\ud800", "n\ud800", told, given=given, answer="\ud800", reveal=("\ud800",))
    for event in (
        ToolReturned("c", "ok", "".join(given), told),
        ModelReplied("\ud800", (asked,), raw=told),
        UserSaid("\ud800", ({"text": "\ud800"},)),
        Noted("layer", told),
        ToolsUnloaded(("\ud800",), ("\ud800",), {"\ud800": 1}),
    ):
        kept = cleaned(event)
        repr(kept).encode()
        assert "ud800" not in repr(kept)
        assert read_back(event) == kept
    assert cleaned(ToolReturned("c", "ok", "a\x00b")).content == "a\x00b"  # that is valid


class Colour(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int


@dataclasses.dataclass
class Size:
    width: int


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (Point(x=1), {"x": 1}),
        (Size(2), {"width": 2}),
        (Colour.RED, "red"),
        ({"deep": [Point(x=1)]}, {"deep": [{"x": 1}]}),
        ((1, (2, 3)), [1, [2, 3]]),
        ({2, 1}, [1, 2]),
        (b"abc", "<binary data, 3 bytes>"),
        ({1: float("nan")}, {"1": "nan"}),
        (1 + 2j, "(1+2j)"),
    ],
)
def test_a_value_that_JSON_does_not_know_is_kept_as_plain_JSON(value: Any, kept: Any) -> None:
    for event in (RunEnded("answered", value=value), Noted("layer", value), ModelReplied(value=value, raw=value)):
        assert read_back(event) == cleaned(event)
    assert cleaned(Noted("layer", value)).note == kept


def test_what_a_fact_holds_is_its_own() -> None:
    note = {"seen": ["a"]}
    kept = cleaned(Noted("layer", note))
    note["seen"].append("b")
    assert kept.note == {"seen": ["a"]}


@pytest.mark.parametrize("wrong", [None, "UserSaid", 5, TextDelta("hi"), JudgedCall("c", "n"), Usage(), UserSaid])
def test_what_is_no_fact_is_named(wrong: Any) -> None:
    with pytest.raises(StateError, match="is not a fact; the facts are RunBegan, UserSaid"):
        cleaned(wrong)


def test_a_value_that_no_store_can_hold_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)

    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    for value in (circle, Broken()):
        with pytest.raises(StateError, match="a Noted cannot be stored"):
            cleaned(Noted("layer", value))
    with pytest.raises(StateError, match="a ToolsRevealed cannot be stored"):
        cleaned(ToolsRevealed(None))  # type: ignore[arg-type]


def test_usage_adds_up() -> None:
    """SA-47."""
    total = Usage(100, 40, 10, 1) + Usage(50, 0, 5, 1)
    assert total == Usage(150, 40, 15, 2)
    assert total.tokens == 165
