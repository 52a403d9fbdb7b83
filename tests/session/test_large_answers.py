"""What the library writes itself is bounded, and what is large does not stop an event loop."""

import asyncio
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import Agent, Catalog, ToolCall, ToolSearch
from toolsearch.calls.answers import ANSWER_CHARACTERS, bounded
from toolsearch.events import ToolReturned
from toolsearch.layers import limits
from toolsearch.support.json_types import KeptDict, KeptList
from toolsearch.support.large_values import in_pieces, is_large
from toolsearch.support.text import kept, plain_json, text_of
from toolsearch.testing import ScriptedModel

LONG = "n" * 400_000
PART = "p" * 12_000
Json = dict[str, Any]

# -- one bound for what the library writes -----------------------------------------------------------------------------

HOSTILE: dict[str, tuple[Json, Json]] = {
    "enums": ({"properties": {f"e{k}": {"enum": [f"{i}{PART}" for i in range(3)]} for k in range(8)}},
              {f"e{k}": "v" for k in range(8)}),
    "a pattern": ({"properties": {"x": {"pattern": f"({'a' * 15_000})?b$"}}}, {"x": "v"}),
    "constants": ({"properties": {f"e{k}": {"const": [PART]} for k in range(30)}}, {f"e{k}": 1 for k in range(30)}),
    "names": ({"properties": {f"{PART}{k}": {"type": "integer"} for k in range(20)}},
              {f"{PART}{k}": "x" for k in range(20)}),
    "required names": ({"required": [f"{PART}{k}" for k in range(30)]}, {}),
    "forms": ({"properties": {"x": {"anyOf": [{"enum": [PART]}] * 9}}, "required": [PART]}, {"x": LONG}),
    "what the model wrote": ({"additionalProperties": False}, {f"{k}{LONG}": LONG for k in range(9)}),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("mode", ["static", "bridge", "append"])
def test_the_answer_to_arguments_that_do_not_fit_is_bounded(what: str, mode: Any) -> None:
    """D9: it had two million characters, and no layer cuts it."""
    schema, arguments = HOSTILE[what]
    definition = {"name": "big", "input_schema": {"type": "object", **schema}, "run": lambda **k: 1}
    session = ToolSearch([definition], mode=mode).session()
    session.tools()
    session.load(["big"])
    session.tools()
    result = session.handle(ToolCall("1", "big", arguments))
    assert result.status == "invalid_arguments"
    assert len(result.content) <= 12_000
    assert "Correct the arguments and call it again. They are:" in result.content


CALLS: list[ToolCall] = [
    ToolCall("1", LONG, {}), ToolCall("2", f"functions.{LONG}", {}), ToolCall("3", f"{LONG}.a", '{"x'),
    ToolCall("4", "search_tools", {"queries": [LONG], "category": LONG}),
    ToolCall("5", "search_tools", {"queries": [f"select:{LONG}"] * 9}), ToolCall("6", "search_tools", LONG),
    ToolCall("7", "search_tools", {LONG: LONG}), ToolCall("8", "call_tool", {"name": LONG, "arguments": {}}),
    ToolCall("9", "call_tool", {"name": "t", "arguments": {LONG: 1}}), ToolCall("10", "call_tool", {LONG: 1}),
    ToolCall("11", "fails", {}), ToolCall("12", f"t<|{LONG}", {}),
    ToolCall("13", "search_tools", {"queries": [LONG, "x"]}),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["static", "bridge", "append"])
@pytest.mark.parametrize("call", CALLS, ids=[call.id for call in CALLS])
def test_no_answer_of_a_session_repeats_a_long_text(call: ToolCall, mode: Any) -> None:
    """D9: names, queries, categories, reasons and errors."""

    def fails() -> None:
        raise ValueError(LONG)

    catalog = Catalog([fails, {"name": "t", "server": "s" * 500, "input_schema": {"additionalProperties": False}}])
    catalog.mark_missing("m" * 10_000, LONG)
    session = ToolSearch(catalog, mode=mode).session()
    session.tools()
    assert len(session.handle(call).content) <= ANSWER_CHARACTERS


def test_no_answer_of_the_loop_repeats_a_long_text() -> None:
    """D9: of its layers, too."""
    model = ScriptedModel([(LONG, {LONG: LONG})], [("t", {"x": LONG})], [("t", {"x": LONG})], "end")
    search = ToolSearch([{"name": "t", "run": lambda **k: "ok"}], mode="static")
    Agent(model, search, layers=[limits(calls=1)]).run("x")
    for message in model.requests[-1].transcript:
        assert all(len(result.content) <= ANSWER_CHARACTERS for result in getattr(message, "results", ()))


@given(st.text(), st.integers(60, 200))
def test_a_bounded_text_is_within_its_bound(text: str, most: int) -> None:
    for each in (text, text * 50):
        cut = bounded(each, most)
        assert cut == each if len(each) <= most else len(cut) <= most + 1


# -- off the event loop ------------------------------------------------------------------------------------------------

BIG = 40_000


def on_the_loop(work: Callable[[], Any]) -> Counter[str]:
    """How often each function of the library is entered in the thread of the event loop."""
    entered: Counter[str] = Counter()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and "toolsearch" in frame.f_code.co_filename:
            entered[frame.f_code.co_name] += 1

    async def watched() -> None:
        sys.setprofile(watch)
        try:
            await work()
        finally:
            sys.setprofile(None)

    asyncio.run(watched())
    return entered


@dataclass
class Row:
    values: list[int]


async def later() -> list[int]:
    return list(range(BIG))


RESULTS: list[tuple[str, Callable[[], Any]]] = [
    ("a list", lambda: list(range(BIG))), ("an object", lambda: {"rows": [{"n": i} for i in range(BIG)]}),
    ("a tuple", lambda: tuple(range(BIG))), ("from an async tool", later),
    ("a dataclass", lambda: Row(list(range(BIG)))),
]  # fmt: skip


@pytest.mark.parametrize(("what", "run"), RESULTS, ids=[what for what, _ in RESULTS])
def test_a_large_result_is_not_walked_through_on_the_event_loop(what: str, run: Any) -> None:
    """D5: a tool that returned a million numbers stopped the loop, and every conversation on it, for three seconds."""
    search = ToolSearch([{"name": "t", "run": run}], mode="static")
    agent = Agent(ScriptedModel([("t", {})], "end"), search)
    entered = on_the_loop(lambda: agent.arun("x", conversation_id="c"))
    assert entered["is_large"] < 100
    assert sum(entered.values()) < 20_000, entered.most_common(5)


def test_large_arguments_are_checked_elsewhere() -> None:
    """D5: in the loop, and in a session of one's own; a thread does it, and without the session's lock."""
    seen: list[bool] = []
    schema = {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "integer", "minimum": 0}}}}

    def run(x: list[int]) -> int:
        seen.append(threading.current_thread() is threading.main_thread())
        return len(x)

    search = ToolSearch([{"name": "t", "input_schema": schema, "run": run}], mode="static")
    for arguments in ({"x": list(range(BIG))}, json.dumps({"x": list(range(BIG))})):
        agent = Agent(ScriptedModel([("t", arguments)], "end"), search)
        entered = on_the_loop(lambda agent=agent: agent.arun("x"))  # type: ignore[misc]
        assert entered["validate_arguments"] == 0
        assert sum(entered.values()) < 20_000, entered.most_common(5)
        session = search.session()
        session.tools()
        call = ToolCall("1", "t", arguments)  # type: ignore[arg-type]
        assert on_the_loop(lambda s=session, c=call: s.ahandle(c))["validate_arguments"] == 0  # type: ignore[misc]
    assert seen == [False] * 4


def test_a_large_result_is_copied_as_json_once() -> None:
    """D5: the fact, what is stored and what is shown share one copy, and the tool's own object is not among them."""
    own = [[i] for i in range(20_000)]
    search = ToolSearch([{"name": "t", "run": lambda: own}], mode="static")
    agent = Agent(ScriptedModel([("t", {})], "end"), search)
    (fact,) = [event for event in agent.stream("x", conversation_id="c") if isinstance(event, ToolReturned)]
    own[0].append(1)
    assert (type(fact.data), fact.data[0], len(fact.data)) == (KeptList, [0], 20_000)
    assert plain_json(fact.data) is fact.data
    stored = agent.store.load("c")
    assert next(each["data"] for each in stored if each["fact"] == "ToolReturned") == [[i] for i in range(20_000)]


@pytest.mark.parametrize("value", [[1, 2], {"a": "b"}, "x" * 1_000, None, 5, [[]] * 1_000, Row([1])])
def test_what_is_small_stays_as_it_is(value: Any) -> None:
    assert not is_large(value)
    assert kept(value) is value


@pytest.mark.parametrize("value", [
    list(range(10_000)), {"a": {"b": list(range(10_000))}}, {str(i): i for i in range(10_000)}, "x" * 200_000,
    ["y" * 1_000] * 200, Row(list(range(10_000))), {"x" * 200_000: 1},
])  # fmt: skip
def test_what_is_large_is_told_and_copied_once(value: Any) -> None:
    assert is_large(value)
    copy = kept(value)
    assert kept(copy) is copy
    assert type(copy) in (KeptDict, KeptList, str)


values = st.recursive(st.none() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v))


@settings(deadline=None, max_examples=20)
@given(values)
def test_json_in_pieces_is_the_same_json(value: Any) -> None:
    long = [value] * 5_001
    for whole in (long, {"a": long, "b": value}, {"a": {"b": {"c": {"d": long}}}}, tuple(long)):
        assert in_pieces(whole, lambda v: json.dumps(v, ensure_ascii=False)) == json.dumps(whole, ensure_ascii=False)
    assert text_of({1: long}) == text_of(json.loads(json.dumps({1: long})))
