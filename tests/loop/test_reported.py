"""Failures that a reader of the loop found, each as the smallest program that shows it."""

import asyncio
import datetime
import itertools
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from toolsearch import Agent, Answer, Approve, Deny, SetupError, StateError, Tool, ToolResult, ToolSearch, tool
from toolsearch.events.facts import ModelReplied, RunEnded, TextDelta, ToolReturned, ToolStarted, UserSaid
from toolsearch.layers import after, approval, before, timeout
from toolsearch.loop.conversation import Conversation
from toolsearch.stores import MemoryStore, SqliteStore
from toolsearch.testing import ScriptedModel


@tool(kind="action")
def pay(who: str, amount: int) -> str:
    """Pay."""
    return f"{amount} paid to {who}"


PAY = ("c1", "pay", {"who": "x", "amount": 1})


def static(*tools: Any) -> ToolSearch:
    return ToolSearch(list(tools), "keyword", mode="static")


def journal_until(fact: type, search: ToolSearch, call: Any, *, including: bool) -> MemoryStore:
    """A store with the journal of a turn, cut where a process would have been killed."""
    store, cut = MemoryStore(), MemoryStore()
    stream = Agent(ScriptedModel([call]), search, store=store).stream("go", conversation_id="s")
    next(event for event in stream if isinstance(event, fact))
    facts = store.load("s")  # before the stream is closed
    cut.append("s", 0, facts if including else facts[:-1])
    return cut


def test_a_call_that_another_process_began_is_never_said_not_to_have_run() -> None:
    model = ScriptedModel("ok")
    agent = Agent(model, static(pay), store=journal_until(ToolReturned, static(pay), PAY, including=False))
    agent.run("What happened?", conversation_id="s")
    told = agent.conversation("s").turn.journal
    content = next(fact.content for fact in told if isinstance(fact, ToolReturned))
    assert "it was begun, and what came of it is not known" in content
    assert "did not run" not in content


def wipe(said: str, ran: list[str], kind: Any = "action") -> Tool:
    def run(path: str) -> str:
        ran.append(said)
        return path

    return tool(run, name="wipe", description=said, kind=kind)


def test_an_approval_does_not_hold_for_another_definition_of_the_tool(drive: Any) -> None:
    ran: list[str] = []
    store = MemoryStore()
    first = Agent(
        ScriptedModel([("c1", "wipe", {"path": "/x"})]),
        static(wipe("Wipe a temporary folder.", ran)),
        layers=[approval()],
        store=store,
    )
    drive(first, "go", conversation_id="s")
    second = Agent(ScriptedModel("ok"), static(wipe("Wipe a disk.", ran)), layers=[approval()], store=store)
    drive(second, conversation_id="s", decisions={"c1": True})
    assert ran == []
    (result,) = second.conversation("s").turn.results.values()
    assert (result.status, "has changed since" in result.content) == ("expired", True)


def test_a_call_made_before_a_restart_does_not_run_if_its_tool_has_changed() -> None:
    ran: list[str] = []
    read = static(wipe("Look.", ran, kind="read"))
    cut = journal_until(ModelReplied, read, ("c1", "wipe", {"path": "/x"}), including=True)
    Agent(ScriptedModel("ok"), static(wipe("Look.", ran)), layers=[approval()], store=cut).run(conversation_id="s")
    assert ran == []


class SlowToEnd(MemoryStore):
    in_memory = False

    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        if facts[-1]["fact"] == "RunEnded":
            time.sleep(0.3)
        super().append(conversation_id, position, facts)


def test_a_time_out_while_the_end_is_stored_is_a_time_out() -> None:
    agent = Agent(ScriptedModel(ValueError("no")), static(pay), store=SlowToEnd())
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(agent.arun("x", conversation_id="s"), 0.15))
    assert not agent.conversation("s").running


def test_leaving_a_stream_at_its_last_fact_is_silent() -> None:
    stream: Any = Agent(ScriptedModel(ValueError("x")), static(pay)).stream("hi", conversation_id="s")
    for event in stream:
        if isinstance(event, RunEnded):
            break
    stream.close()


def test_leaving_a_stream_that_is_being_cancelled_leaves_the_conversation_whole() -> None:
    def slow(a: int) -> str:
        """Slow."""
        time.sleep(0.3)
        return str(a)

    agent = Agent(ScriptedModel([("slow", {"a": 1}), ("slow", {"a": 2})]), static(slow))
    stream: Any = agent.stream("hi", conversation_id="s")
    for event in stream:
        if isinstance(event, ToolStarted):
            agent.cancel("s")
        if isinstance(event, ToolReturned):
            break
    stream.close()
    conversation = agent.conversation("s")
    assert (conversation.running, conversation.open) == (False, ())


@pytest.mark.parametrize("make", [MemoryStore, lambda: SqliteStore("e.db")])
@pytest.mark.parametrize("before", [datetime.date(2020, 1, 1), "2020-01-01", None, True, float("nan")])
def test_a_store_expires_by_seconds_only(
    make: Callable[[], Any], before: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = make()
    Agent(ScriptedModel(), static(pay), store=store).run("x", conversation_id="a")
    with pytest.raises(SetupError, match="seconds since the epoch"):
        store.expire(before)
    assert list(store.list()) == ["a"]


def test_a_tool_that_returns_a_circle_has_answered(drive: Any) -> None:
    @tool(kind="action")
    def act() -> dict[str, Any]:
        """Act."""
        made: dict[str, Any] = {}
        made["self"] = made
        return made

    agent = Agent(ScriptedModel([("c1", "act", {})]), static(act))
    assert drive(agent, "x", conversation_id="s").reason == "answered"
    assert agent.conversation("s").turn.results["c1"].status == "ok"


@pytest.mark.parametrize(
    "make",
    [lambda: Answer({"a": 1}), lambda: Answer("a", said="hello"), lambda: Approve("x"), lambda: Deny(5)],  # type: ignore[arg-type]
)
def test_a_decision_that_holds_nonsense_is_refused_when_it_is_made(make: Callable[[], Any]) -> None:
    with pytest.raises(SetupError, match="not"):
        make()


@pytest.mark.parametrize("decisions", [[], "", [("c1", True)]])
def test_decisions_are_given_by_call_id(decisions: Any) -> None:
    agent = Agent(ScriptedModel([PAY]), static(pay), layers=[approval()])
    agent.run("go", conversation_id="s")
    with pytest.raises(SetupError, match="by call id"):
        agent.run(conversation_id="s", decisions=decisions)


def test_what_a_layer_may_change_is_not_shown_before() -> None:
    hide = after("model", lambda reply: replace(reply, text=reply.text.replace("secret", "***")))
    agent = Agent(ScriptedModel("the secret is 5", pieces=4), static(pay), layers=[hide])
    assert not [event for event in agent.stream("x") if isinstance(event, TextDelta) and "secr" in event.text]


@pytest.mark.parametrize("seconds", [float("inf"), 1e10])
def test_a_bound_without_end_is_none(drive: Any, seconds: float) -> None:
    agent = Agent(ScriptedModel([PAY]), static(pay), layers=[timeout(tool=seconds)])
    drive(agent, "x", conversation_id="s")
    assert agent.conversation("s").turn.results["c1"].content == "1 paid to x"


def test_an_async_layer_around_a_tool_names_arun() -> None:
    async def look(call: Any) -> None:
        del call

    agent = Agent(ScriptedModel([PAY]), static(pay), layers=[before("tool", look)])
    with pytest.raises(SetupError, match="arun"):
        agent.run("x", conversation_id="s")
    assert not agent.conversation("s").running


def test_a_conversation_id_is_cleaned_everywhere_alike() -> None:
    agent = Agent(ScriptedModel(), static(pay))
    agent.run("x", conversation_id="a\ud800")
    assert agent.conversation("a\ud800").journal
    assert not agent.cancel("a\ud800")


async def listen(event: Any) -> None:
    del event


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"observe": listen}, "is async"),
        ({"observe": [5]}, "observe must be a function"),
        ({"store": "x.db"}, "store must be a store"),
        ({"system": 5}, "system must be a text"),
        ({"clock": 5}, "clock must be a function"),
    ],
)
def test_what_an_agent_cannot_use_is_refused_when_it_is_made(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        Agent(ScriptedModel(), static(pay), **options)


def test_what_the_user_said_is_text() -> None:
    with pytest.raises(SetupError, match="must be text"):
        Agent(ScriptedModel(), static(pay)).run(UserSaid(5))  # type: ignore[arg-type]


# -- what a tool returns -----------------------------------------------------------------------------------------------


def returning(run: Callable[[], Any], **marks: Any) -> Tool:
    return tool({"name": "look", "description": "Look."}, run=run, **marks)


def looked(drive: Any, run: Callable[[], Any], store: Any = None) -> ToolReturned:
    agent = Agent(ScriptedModel([("c1", "look", {})]), static(returning(run)), store=store or MemoryStore())
    drive(agent, "Look", conversation_id="s")
    return next(e for e in agent.conversation("s").journal if isinstance(e, ToolReturned))


def counted() -> Iterator[int]:
    yield 1
    yield 2


def broken() -> Iterator[int]:
    yield 1
    raise ValueError("the line was cut")


@pytest.mark.parametrize(
    ("run", "status", "content"),
    [
        (counted, "ok", "[1, 2]"),
        (lambda: map(str, [1, 2]), "ok", '["1", "2"]'),
        ({"a": 1}.keys, "ok", '["a"]'),
        (lambda: MappingProxyType({"a": deque([1])}), "ok", '{"a": [1]}'),
        (broken, "failed", "the line was cut"),
        (itertools.count, "failed", "more than 10,000 items"),
    ],
    ids=["generator", "map", "keys", "mapping", "it raises", "without end"],
)
def test_a_tool_may_give_what_it_has_one_by_one(drive: Any, run: Any, status: str, content: str) -> None:
    """A generator does its work only when it is gone through: its address is no result."""
    answer = looked(drive, run)
    assert answer.status == status
    assert content in answer.content


def test_an_async_generator_is_gone_through_in_arun_and_told_of_in_run(drive: Any) -> None:
    async def watch() -> AsyncIterator[int]:
        yield 1
        yield 2

    answer = looked(drive, watch)
    assert (answer.status, answer.data) == (("ok", [1, 2]) if drive.is_async else ("failed", None))
    assert answer.content == "[1, 2]" if drive.is_async else "it is async" in answer.content


LONG = 10**6_000


@pytest.mark.parametrize("value", [LONG, [LONG], {"a": {"b": -LONG}}], ids=["bare", "in a list", "deeper"])
def test_a_number_too_long_to_be_written_ends_no_turn(drive: Any, tmp_path: Path, value: Any) -> None:
    """C40, sibling: what a tool returns can always be stored."""
    store = SqliteStore(tmp_path / "journals.db")
    answer = looked(drive, lambda: value, store)
    assert answer.status == "ok"
    assert "Do not run it again" in answer.content
    store.close()


@pytest.mark.parametrize(
    ("result", "status", "content"),
    [
        (ToolResult("x", "y", "ok", {"a": 1}), "ok", '{"a": 1}'),  # type: ignore[arg-type]
        (ToolResult("x", "y", "ok", None), "ok", "Done; the tool returned nothing."),  # type: ignore[arg-type]
        (ToolResult("x", "y", "error", "No such file"), "failed", "No such file"),  # type: ignore[arg-type]
        (ToolResult("x", "y", ["ok"], "?"), "failed", "?"),  # type: ignore[arg-type]
    ],
)
def test_a_result_that_a_tool_makes_by_hand_becomes_a_whole_one(
    drive: Any, result: ToolResult, status: str, content: str
) -> None:
    answer = looked(drive, lambda: result)
    assert (answer.status, answer.content) == (status, content)


def test_C16_an_id_that_was_replaced_is_no_longer_than_providers_take() -> None:
    """C16, sibling: OpenAI refuses an id of more than 40 characters in every later request."""
    call = ("call_" + "x" * 35, "look", {})
    agent = Agent(ScriptedModel([call], [call], [call, call]), static(returning(str)))
    agent.run("Look", conversation_id="s")
    ids = [e.call_id for e in agent.conversation("s").journal if isinstance(e, ToolReturned)]
    assert len({*ids}) == 4
    assert max(map(len, ids)) <= 40


# -- taking a conversation up ------------------------------------------------------------------------------------------


def erase(server: str | None, ran: list[str]) -> Tool:
    return tool({"name": "erase", "description": "Erase."}, run=lambda: ran.append(server or ""), server=server)


@pytest.mark.parametrize(
    ("before", "after"), [([None], ["shop"]), (["shop"], [None]), (["shop"], ["bank"]), (["shop"], ["shop", None])]
)
def test_an_approval_does_not_hold_for_another_tool_that_took_the_name(
    drive: Any, before: list[str | None], after: list[str | None]
) -> None:
    """C37, D07: what a person approved is one server's tool; another one of that name was never judged.

    Where the approved tool is still there, it is what runs, whatever else is called so now.
    """
    ran: list[str] = []
    store, gate = MemoryStore(), approval(when=["erase"])
    script = [("c1", "erase", {})]
    drive(
        Agent(ScriptedModel(script), static(*(erase(s, ran) for s in before)), layers=[gate], store=store),
        "Go",
        conversation_id="s",
    )
    later = Agent(ScriptedModel(), static(*(erase(s, ran) for s in after)), layers=[gate], store=store)
    drive(later, conversation_id="s", decisions={"c1": True})
    (answer,) = [e for e in later.conversation("s").journal if isinstance(e, ToolReturned)]
    if set(before) <= set(after):
        assert (ran, answer.status) == (before, "ok")
    else:
        assert (ran, answer.status) in (([], "expired"), ([], "unknown"))


@pytest.mark.parametrize(
    ("fact", "key", "value"),
    [
        ("ToolStarted", "call_id", ["c1"]),
        ("ToolReturned", "call_id", {"a": 1}),
        ("ToolsFound", "session", 5),
        ("ToolsFound", "session", [5]),
        ("UserSaid", "parts", 5),
        ("ModelReplied", "calls", [5]),
    ],
)
def test_a_journal_whose_facts_hold_nonsense_is_a_clear_error(fact: str, key: str, value: Any) -> None:
    search = ToolSearch([returning(str)])
    agent = Agent(ScriptedModel([("c1", "search_tools", {"queries": ["look"]})]), search)
    agent.run("Look", conversation_id="s")
    lines = agent.conversation("s").export()
    next(line for line in lines if line["fact"] == fact)[key] = value
    with pytest.raises(StateError, match="of the journal"):
        Conversation.replay(search, lines)
