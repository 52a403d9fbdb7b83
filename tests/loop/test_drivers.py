"""The loop, under both drivers: what runs when, what becomes of failures, and that a conversation is always whole."""

import asyncio
import contextvars
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolsearch
from toolsearch import Caller, SetupError, StateError, ToolContext, ToolSearch, tool
from toolsearch.events.facts import (
    Answers,
    Compacted,
    Ending,
    ModelCalled,
    ModelReplied,
    Note,
    Noted,
    Reply,
    ReplyDiscarded,
    RunBegan,
    RunEnded,
    TextDelta,
    ToolDenied,
    ToolReturned,
    ToolsFound,
    ToolStarted,
    ToolsUnloaded,
    ToolWaiting,
    Usage,
    UserSaid,
)
from toolsearch.events.requests import Answer, Approve, Call, CallModel, Deny, Finished, Paused, Round, Run
from toolsearch.layers import after, before
from toolsearch.loop.agent import Agent
from toolsearch.protocols import Do, Record, Sleep, Within
from toolsearch.testing import FixedIndex, ScriptedModel

PATIENCE = 20.0  # seconds until a test that waits for another thread fails
ROOT = Path(toolsearch.__file__).resolve().parent
Steps = Generator[Any, Any, Any]


def agent(*script: Any, tools: Any = (), **options: Any) -> Agent:
    """An agent whose model says what the script says, and whose tools are all listed."""
    catalog = ToolSearch(list(tools), mode="static") if not isinstance(tools, ToolSearch) else tools
    model = script[0] if len(script) == 1 and callable(script[0]) else ScriptedModel(*script)
    return Agent(model, catalog, **options)


def defined(name: str, run: Callable[..., Any], **more: Any) -> Any:
    return tool({"name": name, "description": f"The {name} tool", "input_schema": {"type": "object"}}, run=run, **more)


def answers(of: Agent, session: str = "s") -> list[ToolReturned]:
    """All answers to calls as the model reads them."""
    shown = of.conversation(session).transcript
    return [result for message in shown if isinstance(message, Answers) for result in message.results]


def statuses(of: Agent, session: str = "s") -> dict[str, str]:
    return {result.call_id: result.status for result in answers(of, session)}


def kinds(of: Agent, session: str = "s") -> list[str]:
    return [type(fact).__name__ for fact in of.conversation(session).journal]


def is_whole(of: Agent, session: str = "s") -> None:
    """No call without an answer, no turn without an end; and the next message is answered."""
    conversation = of.conversation(session)
    assert not conversation.running
    assert conversation.open == ()
    result = Agent(ScriptedModel("hello"), of.parts.search, store=of.store).run("hello", conversation_id=session)
    assert result == Finished("hello", "answered", None, session, Usage(100, 0, 10, 1))


class Seam:
    """A layer from a generator function for one seam."""

    def __init__(self, seam: str, around: Callable[[Any], Steps], **marks: Any) -> None:
        self.name = "test layer"
        setattr(self, f"around_{seam}", around)
        self.__dict__.update(marks)


class Gate:
    """Asks a person about the calls of some tools, across processes."""

    name, gate = "gate", True

    def __init__(self, *names: str, **waiting: Any) -> None:
        self.names, self.waiting = names, waiting

    def around_round(self, given: Round) -> Steps:
        gated = [call for call in given.calls if call.name in self.names and call.id not in given.approved]
        asked = {call.id: ToolWaiting(call.id, **self.waiting) for call in gated}
        done = yield given.without(asked)
        return {**done, **asked}


async def until(event: threading.Event) -> None:
    while not event.is_set():  # noqa: ASYNC110 - another thread sets it
        await asyncio.sleep(0.001)


def echo(**given: Any) -> Any:
    return given


ECHO = defined("echo", echo)


# -- a turn ------------------------------------------------------------------------------------------------------------


def test_a_turn_from_the_question_to_the_answer(drive: Any) -> None:
    """SA-38, PG-2, NA-2: what happens, in order; SA-45: no arguments are an empty object; SA-47: usage is summed."""
    made = agent([("echo", {"a": 1}), ("echo", None)], "Done.", tools=[ECHO], system="Be brief.")
    result = drive(made, "Go", conversation_id="s")
    assert result == Finished("Done.", "answered", None, "s", Usage(200, 0, 20, 2))
    assert kinds(made) == [
        "RunBegan", "UserSaid", "ModelCalled", "ModelReplied", "ToolStarted", "ToolStarted", "ToolReturned",
        "ToolReturned", "ModelCalled", "ModelReplied", "RunEnded",
    ]  # fmt: skip
    assert [each.content for each in answers(made)] == ['{"a": 1}', "{}"]
    first = made.parts.model.requests[0]  # type: ignore[attr-defined]
    assert (first.system, first.transcript[0].text, first.conversation_id) == ("Be brief.", "Go", "s")


def test_a_conversation_goes_on_and_another_one_knows_nothing_of_it(drive: Any) -> None:
    model = ScriptedModel("One.", "Two.", "Three.")
    made = agent(model)
    drive(made, "1", conversation_id="a")
    drive(made, "2", conversation_id="a")
    result = drive(made, "3")
    assert [len(request.transcript) for request in model.requests] == [1, 3, 1]
    assert isinstance(result, Finished)
    assert result.conversation_id not in ("", "a")
    assert drive(made, "4", conversation_id=result.conversation_id).text == "Done."


def test_found_tools_are_there_in_the_next_round_and_the_next_turn(drive: Any) -> None:
    model = ScriptedModel([("search_tools", {"queries": ["select:echo"]})], [("echo", {"a": 1})], "Done.", "Again.")
    made = agent(model, tools=ToolSearch([ECHO], mode="append"))
    shown = drive.shown(made, "Go", conversation_id="s")
    drive(made, "Go on", conversation_id="s")
    assert [[each.name for each in request.tools] for request in model.requests] == [
        ["search_tools"], ["search_tools", "echo"], ["search_tools", "echo"], ["search_tools", "echo"],
    ]  # fmt: skip
    (found,) = [each for each in shown if isinstance(each, ToolsFound)]
    assert found.loaded == ("echo",)
    assert [result.content for result in answers(made)][1:] == ['{"a": 1}']
    assert "search_tools" in model.requests[0].system


def test_the_stream_shows_every_fact_as_it_is_kept_and_the_result_last(drive: Any) -> None:
    made = agent(ScriptedModel([("echo", {})], "All done.", pieces=4), tools=[ECHO])
    shown = drive.shown(made, "Go", conversation_id="s")
    assert [each for each in shown if not isinstance(each, TextDelta)] == [
        *made.conversation("s").journal, Finished("All done.", "answered", None, "s", Usage(200, 0, 20, 2)),
    ]  # fmt: skip
    assert [each.text for each in shown if isinstance(each, TextDelta)] == ["All ", "done", "."]


# -- what runs beside what ---------------------------------------------------------------------------------------------


def test_calls_of_a_round_run_beside_each_other(drive: Any) -> None:
    meet = threading.Barrier(3)
    tools = [defined(name, lambda: meet.wait(PATIENCE)) for name in ("a", "b", "c")]
    made = agent([("a", {}), ("b", {}), ("c", {})], tools=tools)
    drive(made, "Go", conversation_id="s")
    assert statuses(made) == {"c0_0": "ok", "c0_1": "ok", "c0_2": "ok"}


def test_async_tools_run_beside_each_other_and_beside_others() -> None:
    async def main() -> Agent:
        first, second, third = asyncio.Event(), asyncio.Event(), threading.Event()

        async def one() -> str:
            first.set()
            await second.wait()
            third.set()
            return "one"

        async def two() -> str:
            await first.wait()
            second.set()
            return "two"

        def three() -> str:
            assert third.wait(PATIENCE)
            return "three"

        made = agent([("one", {}), ("two", {}), ("three", {})], tools=[one, two, three])
        await made.arun("Go", conversation_id="s")
        return made

    assert [each.content for each in answers(asyncio.run(main()))] == ["one", "two", "three"]


def test_NA5_a_call_that_is_alone_makes_its_round_go_one_by_one_in_order(drive: Any) -> None:
    """Every action tool is, by default."""
    order: list[str] = []
    running = threading.Semaphore(1)

    def doing(name: str) -> Callable[[], None]:
        def run() -> None:
            assert running.acquire(blocking=False), "two run at once"
            order.append(name)
            time.sleep(0.002)
            running.release()

        return run

    tools = [defined("a", doing("a")), defined("b", doing("b"), kind="action"), defined("c", doing("c"))]
    made = agent([("c", {}), ("a", {}), ("b", {}), ("c", {}), ("a", {})], tools=tools)
    drive(made, "Go", conversation_id="s")
    assert order == ["c", "a", "b", "c", "a"]
    assert set(statuses(made).values()) == {"ok"}
    started = [type(fact).__name__ for fact in made.conversation("s").journal if hasattr(fact, "call_id")]
    assert started == ["ToolStarted", "ToolReturned"] * 5


class Meeting(FixedIndex):
    """An index whose searches wait until others have come, too."""

    def __init__(self, meet: threading.Barrier) -> None:
        super().__init__({"x": ["late"]})
        self.meet = meet

    def search(self, *args: Any) -> Any:
        self.meet.wait(PATIENCE)
        return super().search(*args)


def test_C33_a_search_and_calls_of_one_round_run_together(drive: Any) -> None:
    meet = threading.Barrier(3)
    tools = [defined(name, lambda: meet.wait(PATIENCE)) for name in ("t1", "t2")]
    catalog = ToolSearch([*tools, defined("late", echo)], Meeting(meet), mode="append", pinned=["t1", "t2"])
    made = agent([("search_tools", {"queries": ["x"]}), ("t1", {}), ("t2", {})], tools=catalog)
    drive(made, "Go", conversation_id="s")
    assert set(statuses(made).values()) == {"ok"}


def test_C33_a_tool_that_is_only_being_loaded_answers_not_loaded(drive: Any) -> None:
    calls = [("search_tools", {"queries": ["select:echo"]}), ("echo", {"a": 1})]
    made = agent(calls, [("echo", {"a": 2})], tools=ToolSearch([ECHO], mode="append"))
    drive(made, "Go", conversation_id="s")
    assert [each.status for each in answers(made)] == ["ok", "not_loaded", "ok"]
    assert "It is loaded now: call 'echo' in your next step" in answers(made)[1].content


def test_searches_of_one_round_are_answered_in_the_order_asked(drive: Any) -> None:
    tools = [defined(f"box_{n}", echo) for n in range(8)]
    queries = [f"select:box_{n}" for n in (5, 2, 7, 0)]
    made = agent([("search_tools", {"queries": [query]}) for query in queries], tools=ToolSearch(tools, mode="append"))
    drive(made, "Go", conversation_id="s")
    assert [each.id for each in made.conversation("s").session.loaded] == ["box_5", "box_2", "box_7", "box_0"]


def test_tools_see_the_context_of_whoever_runs_the_agent(drive: Any) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")
    tools: list[Any] = [defined("ask", who.get)]

    async def ask_async() -> str:
        return who.get()

    if drive.is_async:
        tools.append(ask_async)
    who.set("ana")
    made = agent([(each.__name__ if callable(each) and not hasattr(each, "id") else each.id, {}) for each in tools],
                 tools=tools)  # fmt: skip
    contextvars.copy_context().run(drive, made, "Go", conversation_id="s")
    assert {each.content for each in answers(made)} == {"ana"}


def test_a_tool_is_told_who_calls_and_in_which_call(drive: Any) -> None:
    def whoami(context: ToolContext) -> list[str]:
        assert context.caller is not None
        return [
            context.conversation_id,
            context.call_id,
            str(context.caller.user),
            context.idempotency_key.split(":")[0],
        ]

    made = agent([("whoami", {})], tools=[whoami])
    drive(made, "Go", conversation_id="s", caller=Caller("ana"))
    assert json.loads(answers(made)[0].content) == ["s", "c0_0", "ana", "s"]


def test_200_conversations_on_one_index_leak_nothing_into_each_other(drive: Any) -> None:
    """Each has its own results, its own found set, its own usage, its own transcript."""
    many = 200
    tools = [defined(f"box_{n}", lambda context, n=n, **given: [n, context.conversation_id]) for n in range(10)]
    for each in tools:
        each.run.__annotations__["context"] = ToolContext
    catalog = ToolSearch(tools, mode="append")

    def reply(request: CallModel) -> Any:
        number = int(request.conversation_id) % 10
        replies = sum(1 for message in request.transcript if isinstance(message, ModelReplied))
        return [
            [("c", "search_tools", {"queries": [f"select:box_{number}"]})],
            [("c", f"box_{number}", {"of": request.conversation_id}), ("d", "no_such", {})],
            f"This was {request.conversation_id}.",
        ][replies]

    made = Agent(ScriptedModel(*[reply] * many * 3), catalog)

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*[made.arun(f"I am {n}", conversation_id=str(n)) for n in range(many)])

    if drive.is_async:
        results = asyncio.run(all_at_once())
    else:
        waits = [drive.beside(made, f"I am {n}", conversation_id=str(n)) for n in range(many)]
        results = [wait() for wait in waits]
    for n, result in enumerate(results):
        assert result == Finished(f"This was {n}.", "answered", None, str(n), Usage(300, 0, 30, 3))
        conversation = made.conversation(str(n))
        assert [each.id for each in conversation.session.loaded] == [f"box_{n % 10}"]
        assert [each.text for each in conversation.transcript if isinstance(each, UserSaid)] == [f"I am {n}"]
        assert json.loads(answers(made, str(n))[1].content) == [n % 10, str(n)]
    assert made._live == {}


# -- failures ----------------------------------------------------------------------------------------------------------


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Deep(BaseException):
    pass


FAILURES = [
    ValueError("boom"), KeyError("x"), SystemExit(1), asyncio.CancelledError(), Mute(), StopIteration(3), Deep("deep"),
    TimeoutError("of its own"), KeyboardInterrupt(), GeneratorExit(), RecursionError(), StopAsyncIteration(),
]  # fmt: skip


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_C28_one_failing_call_is_an_answer_and_loses_no_other(drive: Any, error: BaseException) -> None:
    """SA-46, NA-11: whatever is raised, the model reads it, and the turn goes on."""

    def fail() -> None:
        raise error

    async def fail_async() -> None:
        raise error

    broken: list[Any] = [fail, fail_async] if drive.is_async else [fail]
    names = [each.__name__ for each in broken]
    made = agent([("echo", {"n": 1}), *((name, {}) for name in names), ("echo", {"n": 2})], tools=[ECHO, *broken])
    result = drive(made, "Go", conversation_id="s")
    assert (result.text, result.reason) == ("Done.", "answered")
    assert [each.status for each in answers(made)] == ["ok", *["failed"] * len(names), "ok"]
    for each in answers(made)[1:-1]:
        assert type(error).__name__ in each.content or "StopIteration" in each.content
    is_whole(made)


def test_PG3_PG4_names_that_are_unknown_or_not_loaded_are_answered(drive: Any) -> None:
    """SA-44's opposite: a name that is none ends nothing. PG-3, PG-4: near names, and what to do next."""
    calls = [("echoo", {}), ("ECHO", {}), ("hidden", {}), ("", {}), ("functions.echo", {"a": 1})]
    tools = ToolSearch([ECHO, defined("hidden", echo)], mode="append", pinned=["echo"])
    made = agent(calls, tools=tools)
    assert drive(made, "Go", conversation_id="s").text == "Done."
    assert [each.status for each in answers(made)] == ["unknown", "ok", "not_loaded", "unknown", "ok"]
    assert "Similar names: 'echo'" in answers(made)[0].content
    assert "call 'hidden' in your next step" in answers(made)[2].content


def test_arguments_that_do_not_fit_are_answered_with_what_is_wrong(drive: Any) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    made = agent([("add", '{"a": 1'), ("add", {"a": "x", "b": 2}), ("add", {"a": "1", "b": 2})], tools=[add])
    drive(made, "Go", conversation_id="s")
    assert [each.status for each in answers(made)] == ["invalid_arguments", "invalid_arguments", "ok"]


def test_a_model_that_raises_leaves_a_whole_conversation(drive: Any) -> None:
    model = ScriptedModel([("echo", {})], ConnectionError("no line"), "Hello again.")
    made = agent(model, tools=[ECHO])
    with pytest.raises(ConnectionError, match="no line"):
        drive(made, "Go", conversation_id="s")
    ended = made.conversation("s").journal[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.reason, ended.text) == ("failed", "ConnectionError: no line")
    called = [each for each in made.conversation("s").journal if isinstance(each, ModelCalled)]
    assert [(each.error, each.usage.calls) for each in called] == [("", 1), ("ConnectionError: no line", 1)]
    assert drive(made, "Again", conversation_id="s").text == "Hello again."
    is_whole(made)


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_whatever_a_model_raises_the_conversation_is_whole(drive: Any, error: BaseException) -> None:
    made = agent(ScriptedModel(error))
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - that it is this one is checked below
        drive(made, "Go", conversation_id="s")
    assert type(caught.value) is type(error) or isinstance(caught.value, RuntimeError)
    is_whole(made)


@pytest.mark.parametrize("given", [None, "text", {"content": "x"}, TextDelta("only a piece"), iter([TextDelta("x")])])
def test_a_model_that_gives_no_reply_is_a_clear_error(drive: Any, given: Any) -> None:
    made = agent(lambda request: given)
    with pytest.raises(SetupError, match=r"returned .* instead of a Reply"):
        drive(made, "Go", conversation_id="s")
    is_whole(made)


def test_a_reply_with_nothing_in_it_ends_the_turn(drive: Any) -> None:
    made = agent(Reply(None), Reply())  # type: ignore[arg-type]
    result = drive(made, "Go", conversation_id="s")
    assert (result.text, result.reason) == ("", "empty")


# -- time-outs ---------------------------------------------------------------------------------------------------------


def bounded(seconds: float, seam: str = "tool") -> Seam:
    def around(given: Any) -> Steps:
        return (yield Within(seconds, given))

    return Seam(seam, around)


@pytest.mark.parametrize("seam", ["tool", "round"])
def test_C27_a_tool_that_never_returns_is_answered_and_the_run_goes_on(drive: Any, seam: str) -> None:
    free = threading.Event()
    flags: list[threading.Event] = []

    def never(context: ToolContext) -> None:
        flags.append(context.cancelled)
        free.wait(PATIENCE)

    async def never_async() -> None:
        await asyncio.sleep(3600)

    hung: list[Any] = [never, never_async] if drive.is_async else [never]
    made = agent(
        [("echo", {"a": 1}), *((each.__name__, {}) for each in hung)], "Done.",
        tools=[ECHO, *hung], layers=[bounded(0.05, seam)],
    )  # fmt: skip
    try:
        assert drive(made, "Go", conversation_id="s").text == "Done."
    finally:
        free.set()
    assert [each.status for each in answers(made)] == ["ok", *["timed_out"] * len(hung)]
    assert "no answer within 0.05 s. It may still be running" in answers(made)[1].content
    assert flags[0].is_set()  # the tool is told


def test_C27_a_model_that_never_answers_is_an_error_in_time(drive: Any) -> None:
    free = threading.Event()
    stopped: list[str] = []

    def never(request: CallModel) -> Reply:
        free.wait(PATIENCE)
        return Reply("too late")

    async def never_async(request: CallModel) -> Reply:
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.append("model")
        return Reply("too late")

    for model in (never, never_async) if drive.is_async else (never,):
        made = agent(model, layers=[bounded(0.05, "model")])
        try:
            with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
                drive(made, "Go", conversation_id="s")
        finally:
            free.set()
        is_whole(made)
    assert stopped == (["model"] if drive.is_async else [])


def test_an_async_call_of_the_model_that_is_late_is_stopped_before_another_is_made() -> None:
    seen: list[str] = []

    async def slow(request: CallModel) -> Reply:
        seen.append("asked")
        try:
            await asyncio.sleep(3600)
        finally:
            seen.append("stopped")
        return Reply()

    def retry(request: CallModel) -> Steps:
        for _ in range(2):
            try:
                yield Within(0.02, request)
            except TimeoutError:
                yield Sleep(0.02)
        return Reply("given up")

    assert asyncio.run(agent(slow, layers=[Seam("model", retry)]).arun("Go")).text == "given up"  # type: ignore[union-attr]
    assert seen == ["asked", "stopped"] * 2


def test_a_stream_of_the_model_that_is_late_is_closed(drive: Any) -> None:
    """Tokens that nobody reads cost money."""
    closed = threading.Event()

    def endless(request: CallModel) -> Iterator[TextDelta]:
        try:
            while True:
                time.sleep(0.005)
                yield TextDelta("and ")
        finally:
            closed.set()

    async def endless_async(request: CallModel) -> AsyncIterator[TextDelta]:
        try:
            while True:
                await asyncio.sleep(0.005)
                yield TextDelta("and ")
        finally:
            closed.set()

    models: list[Any] = [endless, endless_async] if drive.is_async else [endless]
    for model in models:
        closed.clear()
        made = agent(model, layers=[bounded(0.05, "model")])
        with pytest.raises(TimeoutError):
            drive(made, "Go", conversation_id="s")
        assert closed.wait(PATIENCE)


def test_a_bound_around_a_whole_run_ends_it_whole(drive: Any) -> None:
    free = threading.Event()

    def enough(run: Run) -> Steps:
        try:
            return (yield Within(0.05, run))
        except TimeoutError as error:
            return Finished(f"Sorry: {error}.", "timed out")

    def stubborn(request: Any) -> Steps:
        while True:
            try:
                return (yield request)
            except Exception:
                yield Sleep(0)

    layers = [Seam("run", enough), Seam("model", stubborn), Seam("round", stubborn)]
    made = agent([("wait", {})], tools=[defined("wait", lambda: free.wait(PATIENCE))], layers=layers)
    try:
        result = drive(made, "Go", conversation_id="s")
    finally:
        free.set()
    assert (result.text, result.reason) == ("Sorry: the turn took longer than 0.05 s.", "timed out")
    assert statuses(made) == {"c0_0": "interrupted"}
    is_whole(made)


HANGS = """
import asyncio, sys, threading, time
from toolsearch import ToolSearch
from toolsearch.loop.agent import Agent
from toolsearch.protocols import Within
from toolsearch.testing import ScriptedModel

class Bounded:
    name = "bounded"
    def around_tool(self, call):
        return (yield Within(0.05, call))

def hang() -> None:
    "Hangs."
    time.sleep(600)

def model(request):
    if sys.argv[2] == "model":
        time.sleep(600)
    return scripted(request)

scripted = ScriptedModel([("hang", {})], "Done.")
agent = Agent(model, ToolSearch([hang], mode="static"), layers=[Bounded()])
threading.Timer(0.2, agent.cancel, ["s"]).start()
if sys.argv[1] == "run":
    result = agent.run("Go", conversation_id="s")
else:
    result = asyncio.run(agent.arun("Go", conversation_id="s"))
print(result.text or result.reason)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("hanging", "said"), [("tool", "Done."), ("model", "cancelled")])
def test_C27_what_hangs_does_not_keep_the_interpreter_from_ending(drive: Any, hanging: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HANGS, drive.name, hanging],
        check=False, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT.parent)},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (f"{said}\n", "")


# -- cancelling --------------------------------------------------------------------------------------------------------


class Slow:
    """A tool that waits until the test lets it go."""

    def __init__(self) -> None:
        self.began, self.free, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.flag: threading.Event | None = None

    def slow(self, context: ToolContext) -> str:
        self.flag = context.cancelled
        self.began.set()
        self.free.wait(PATIENCE)
        self.ended.set()
        return "late"

    async def slow_async(self, context: ToolContext) -> str:
        self.began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            self.ended.set()
        return "late"

    def tools(self) -> list[Any]:
        given = {"input_schema": {"type": "object"}, "description": ""}
        return [
            tool({"name": "slow", **given}, run=self.slow),
            tool({"name": "slow_async", **given}, run=self.slow_async),
            ECHO,
        ]


def test_C24_a_cancelled_call_has_its_answer_and_the_user_can_go_on(drive: Any) -> None:
    """PG-9, PG-10: from another thread; the late answer is dropped. An async tool runs in `arun` only."""
    for which in ("slow", "slow_async") if drive.is_async else ("slow",):
        check_a_cancelled_call(drive, which)


def check_a_cancelled_call(drive: Any, which: str) -> None:
    slow = Slow()
    model = ScriptedModel([("echo", {}), (which, {})], "Hello.")
    answered = threading.Event()
    made = agent(model, tools=slow.tools(), observe=lambda e: answered.set() if isinstance(e, ToolReturned) else None)
    wait = drive.beside(made, "Go", conversation_id="s")
    assert slow.began.wait(PATIENCE)
    assert answered.wait(PATIENCE)
    assert made.cancel("s")
    result = wait()
    assert (result.text, result.reason) == ("", "cancelled")
    assert statuses(made) == {"c0_0": "ok", "c0_1": "interrupted"}
    assert (
        "the user stopped the turn, and it may still be running, so its effect is not known" in answers(made)[1].content
    )
    if which == "slow":
        assert slow.flag is not None
        assert slow.flag.is_set()  # a tool that looks can stop
        assert not slow.ended.is_set()
    journal = made.conversation("s").journal
    slow.free.set()
    assert slow.ended.wait(PATIENCE)
    assert made.conversation("s").journal == journal
    assert drive(made, "hello", conversation_id="s").text == "Hello."
    assert [type(message).__name__ for message in model.requests[-1].transcript] == [
        "UserSaid", "ModelReplied", "Answers", "UserSaid",
    ]  # fmt: skip
    assert made.cancel("s") is False  # nothing is going on


def test_C24_calls_that_had_not_begun_say_so(drive: Any) -> None:
    slow = Slow()
    tools = [tool({"name": "slow", "description": "", "input_schema": {"type": "object"}}, run=slow.slow, alone=True)]
    made = agent([("slow", {}), ("echo", {})], tools=[*tools, ECHO])
    wait = drive.beside(made, "Go", conversation_id="s")
    assert slow.began.wait(PATIENCE)
    made.cancel("s")
    assert wait().reason == "cancelled"
    slow.free.set()
    assert statuses(made) == {"c0_0": "interrupted", "c0_1": "cancelled"}
    assert "it did not run" in answers(made)[1].content


def test_cancelling_while_the_model_answers(drive: Any) -> None:
    """What was shown of the reply counts for nothing, and says so; what it cost is recorded."""
    free, asked = threading.Event(), threading.Event()

    def model(request: CallModel) -> Iterator[Any]:
        yield TextDelta("Let me")
        asked.set()
        free.wait(PATIENCE)
        yield Reply("Let me see.")

    seen: list[Any] = []
    made = agent(model, observe=seen.append)
    wait = drive.beside(made, "Go", conversation_id="s")
    assert asked.wait(PATIENCE)
    made.cancel("s")
    assert wait() == Finished("", "cancelled", None, "s", Usage(calls=1))
    free.set()
    assert seen[2:] == [TextDelta("Let me"), seen[3], ReplyDiscarded("cancelled"), seen[5]]
    assert seen[3].error == "cancelled"
    is_whole(made)


def test_cancelling_while_a_layer_works_or_waits(drive: Any) -> None:
    begun, free = threading.Event(), threading.Event()

    def sleeping(request: CallModel) -> Steps:
        begun.set()
        yield Sleep(3600)

    def working(request: CallModel) -> Steps:
        begun.set()
        yield Do(lambda: free.wait(PATIENCE))

    for around in (sleeping, working):
        begun.clear()
        made = agent("never", layers=[Seam("model", around)])
        wait = drive.beside(made, "Go", conversation_id="s")
        assert begun.wait(PATIENCE)
        assert made.cancel("s")
        assert wait().reason == "cancelled"
        is_whole(made)
    free.set()


def test_a_layer_that_tries_again_after_a_cancellation_runs_nothing(drive: Any) -> None:
    slow, runs = Slow(), []

    def twice(call: Call) -> Steps:
        yield call
        runs.append("again")
        result = yield call
        runs.append(result.status)
        return result

    made = agent([("slow", {})], tools=slow.tools()[:1], layers=[Seam("tool", twice)])
    wait = drive.beside(made, "Go", conversation_id="s")
    assert slow.began.wait(PATIENCE)
    slow.began.clear()
    made.cancel("s")
    wait()
    slow.free.set()
    if not drive.is_async:  # a task ends at once; a thread goes on, and finds that nobody waits for it
        deadline = time.monotonic() + PATIENCE
        while len(runs) < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert runs == ["again", "cancelled"]
    assert not slow.began.is_set()


def test_PG18_closing_the_stream_early_cancels_the_turn(drive: Any) -> None:
    slow = Slow()
    made = agent([("slow", {})], tools=slow.tools())

    async def leave() -> None:
        stream = made.astream("Go", conversation_id="s")
        async for each in stream:
            if isinstance(each, ToolStarted):
                break
        await stream.aclose()  # type: ignore[attr-defined]

    if drive.is_async:
        asyncio.run(leave())
    else:
        stream = made.stream("Go", conversation_id="s")
        for each in stream:
            if isinstance(each, ToolStarted):
                break
        stream.close()  # type: ignore[attr-defined]
    slow.free.set()
    assert made._live == {}
    assert statuses(made) == {"c0_0": "cancelled"}
    is_whole(made)


@pytest.mark.parametrize("at", range(9))
def test_PG18_wherever_the_stream_is_closed_the_conversation_is_whole(drive: Any, at: int) -> None:
    """Facts of one step are observed together, even if whoever reads the stream leaves at the first."""
    seen: list[Any] = []
    made = agent([("echo", {}), ("echo", {})], tools=[ECHO], observe=seen.append)

    async def leave() -> None:
        stream = made.astream("Go", conversation_id="s")
        for _ in range(at + 1):
            await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]

    if drive.is_async:
        asyncio.run(leave())
    else:
        stream = made.stream("Go", conversation_id="s")
        for _ in range(at + 1):
            next(stream)
        stream.close()  # type: ignore[attr-defined]
    assert tuple(seen) == made.conversation("s").journal
    is_whole(made)


def test_a_cancelled_task_leaves_a_whole_conversation() -> None:
    async def main(made: Agent, slow: Slow) -> None:
        task = asyncio.create_task(made.arun("Go", conversation_id="s"))
        await until(slow.began)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # again, while the turn is being ended
        await task

    slow = Slow()
    made = agent([("slow_async", {}), ("slow", {})], tools=slow.tools())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main(made, slow))
    slow.free.set()
    assert statuses(made) == {"c0_0": "interrupted", "c0_1": "interrupted"}
    is_whole(made)


def test_a_run_with_a_time_of_its_own_is_whole_after_it() -> None:
    async def main(made: Agent) -> None:
        async with asyncio.timeout(0.05):
            await made.arun("Go", conversation_id="s")

    slow = Slow()
    made = agent([("slow_async", {})], tools=slow.tools())
    with pytest.raises(TimeoutError):
        asyncio.run(main(made))
    is_whole(made)


class Sluggish:
    """A store that takes its time, as a disk does."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.journals: dict[str, list[Any]] = {}
        self.writing = threading.Event()

    def append(self, conversation_id: str, position: int, facts: Any) -> None:
        self.writing.set()
        time.sleep(self.seconds)
        journal = self.journals.setdefault(conversation_id, [])
        assert len(journal) == position
        journal.extend(json.loads(json.dumps(facts)))

    def load(self, conversation_id: str) -> list[Any]:
        return list(self.journals.get(conversation_id, ()))

    def delete(self, conversation_id: str) -> bool:
        return self.journals.pop(conversation_id, None) is not None

    def list(self) -> list[str]:
        return list(self.journals)


@pytest.mark.parametrize("times", [1, 3])
def test_a_write_goes_on_to_its_end_when_the_task_is_cancelled(times: int) -> None:
    async def main(made: Agent, store: Sluggish) -> None:
        task = asyncio.create_task(made.arun("Go", conversation_id="s"))
        await until(store.writing)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0.002)
        await task

    store = Sluggish(0.03)
    made = agent("never", store=store)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main(made, store))
    assert kinds(made) == ["RunBegan", "UserSaid", "RunEnded"]
    is_whole(made)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs a signal for one thread")
def test_an_interrupt_from_the_keyboard_leaves_a_whole_conversation() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs behind it without one
    slow, main = Slow(), threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        slow.began.wait(PATIENCE)
        signal.pthread_kill(main, signal.SIGINT)

    made = agent([("slow", {})], tools=slow.tools())
    threading.Thread(target=interrupt).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            made.run("Go", conversation_id="s")
    finally:
        signal.signal(signal.SIGINT, before)
    slow.free.set()
    assert statuses(made) == {"c0_0": "interrupted"}
    assert made._live == {}
    is_whole(made)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_during_a_write_is_no_torn_journal(when: str) -> None:
    class Interrupted(Sluggish):
        at = 3

        def append(self, *args: Any) -> None:
            self.at -= 1
            if self.at == 0 and when == "before":
                raise KeyboardInterrupt
            super().append(*args)
            if self.at == 0:
                raise KeyboardInterrupt

    made = agent([("echo", {})], tools=[ECHO], store=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        made.run("Go", conversation_id="s")
    assert kinds(made)[-2:] == ["ToolReturned", "RunEnded"]
    is_whole(made)


# -- one at a time -----------------------------------------------------------------------------------------------------


def test_a_second_run_on_a_live_conversation_is_refused(drive: Any) -> None:
    slow = Slow()
    made = agent([("slow", {})], "Done.", tools=slow.tools())
    wait = drive.beside(made, "Go", conversation_id="s")
    assert slow.began.wait(PATIENCE)
    with pytest.raises(StateError, match="'s' is being worked on: wait for it, or cancel it first"):
        drive(made, "And this", conversation_id="s")
    assert drive(made, "Hello", conversation_id="another").text == "Done."
    slow.free.set()
    wait()
    assert drive(made, "And this", conversation_id="s").text == "Done."


def test_of_two_processes_that_write_one_is_refused_and_leaves_no_trace(drive: Any) -> None:
    slow, store = Slow(), Sluggish()
    one = agent([("slow", {})], "Done.", tools=slow.tools(), store=store)
    wait = drive.beside(one, "Go", conversation_id="s")
    assert slow.began.wait(PATIENCE)
    other = agent("Mine.", tools=slow.tools(), store=store)
    assert drive(other, "And this", conversation_id="s").text == "Mine."  # it takes the conversation over
    written = store.load("s")
    slow.free.set()
    with pytest.raises(AssertionError):  # what this store raises
        wait()
    assert store.load("s") == written
    assert statuses(other) == {"c0_0": "interrupted"}


def test_a_conversation_belongs_to_the_caller_it_was_begun_for(drive: Any) -> None:
    """In another process, too: the journal says whose it is."""
    made = agent("One.", "Two.", "Three.")
    drive(made, "Go", conversation_id="s", caller=Caller("ana", ["sales"], "acme"))
    for other in (None, Caller("bob", tenant="acme"), Caller("ana", tenant="evil"), Caller(tenant="acme")):
        with pytest.raises(StateError, match="'s' belongs to another caller"):
            drive(
                Agent(ScriptedModel(), made.parts.search, store=made.store),
                "And me",
                conversation_id="s",
                caller=other,
            )
    assert drive(made, "Go", conversation_id="s", caller=Caller("ana", ["admin"], "acme")).text == "Two."
    drive(made, "Go", conversation_id="nobody's")
    assert (
        drive(made, "Go", conversation_id="nobody's", caller=Caller("ana")).reason == "answered"
    )  # who has signed in since


def test_journals_in_memory_are_bounded_and_those_being_worked_on_stay(drive: Any) -> None:
    slow = Slow()
    made = agent([("slow", {})], tools=ToolSearch(slow.tools(), mode="static", max_sessions=2))
    wait = drive.beside(made, "Go", conversation_id="0")
    assert slow.began.wait(PATIENCE)
    for n in range(1, 5):
        drive(made, "Go", conversation_id=str(n))
    assert list(made.store.list()) == ["0", "4"]
    slow.free.set()
    assert wait().text == "Done."
    assert made.store.delete("4")
    assert not made.store.delete("4")


# -- a person decides --------------------------------------------------------------------------------------------------


def restarted(made: Agent, *script: Any, **options: Any) -> Agent:
    """The same agent in another process: what it knows is what the journal says."""
    store = Sluggish()
    for name in made.store.list():
        store.journals[name] = json.loads(json.dumps(made.store.load(name)))
    given = {"layers": made.parts.layers, "clock": made.parts.clock, **options}
    return Agent(ScriptedModel(*script), made.parts.search, store=store, **given)


def test_C37_some_are_declined_some_run_once_and_second_and_stale_decisions_are_refused(drive: Any) -> None:
    runs: list[str] = []
    tools = [defined(name, lambda name=name: runs.append(name)) for name in ("p1", "p2", "p3", "free")]
    model = ScriptedModel([("p1", {}), ("free", {}), ("p2", {}), ("p3", {})], "Done.")
    made = agent(model, tools=tools, layers=[Gate("p1", "p2", "p3", question="May it?")])
    paused = drive(made, "Go", conversation_id="s")
    assert isinstance(paused, Paused)
    assert [(each.id, each.name, each.question) for each in paused.waiting] == [
        ("c0_0", "p1", "May it?"), ("c0_2", "p2", "May it?"), ("c0_3", "p3", "May it?"),
    ]  # fmt: skip
    assert paused.usage == Usage(100, 0, 10, 1)
    assert runs == ["free"]  # siblings finish
    journal = made.conversation("s").journal
    for stale in ({"old_id": True}, {"c0_1": True}, {"c0_0": False, "old_id": True}):
        with pytest.raises(StateError, match="is not waiting for a decision; waiting calls: 'c0_0', 'c0_2', 'c0_3'"):
            drive(made, conversation_id="s", decisions=stale)
    with pytest.raises(SetupError, match="a decision must be Approve, Deny, Answer, True or False, not 'yes'"):
        drive(made, conversation_id="s", decisions={"c0_0": "yes"})
    assert made.conversation("s").journal == journal  # and nothing was done
    still = drive(made, conversation_id="s", decisions={"c0_0": Deny("not today"), "c0_2": Approve()})
    assert isinstance(still, Paused)
    assert [each.id for each in still.waiting] == ["c0_3"]
    assert runs == ["free", "p2"]
    assert len(model.requests) == 1  # the model is asked only when all is settled
    for second in ({"c0_2": Approve()}, {"c0_0": True}):
        with pytest.raises(StateError, match="is not waiting for a decision; waiting calls: 'c0_3'"):
            drive(made, conversation_id="s", decisions=second)
    result = drive(made, conversation_id="s", decisions={"c0_3": True})
    assert (result.text, result.usage) == ("Done.", Usage(200, 0, 20, 2))
    assert runs == ["free", "p2", "p3"]
    assert [each.status for each in answers(made)] == ["denied", "ok", "ok", "ok"]
    assert "it was declined (not today). That is a decision" in answers(made)[0].content  # NA-8
    with pytest.raises(StateError, match="'c0_3' is not waiting for a decision; waiting calls: none"):
        drive(made, conversation_id="s", decisions={"c0_3": True})


def test_C37_an_approval_survives_a_restart_and_the_tool_runs_once(drive: Any) -> None:
    """Of a tool that was found by a search, with a batch beside it that was finished before."""
    runs: list[str] = []
    tools = [defined("p", lambda: runs.append("p"), kind="action"), ECHO]
    search = [("search_tools", {"queries": ["select:p,echo"]})]
    made = agent(search, [("echo", {}), ("p", {})], tools=ToolSearch(tools, mode="append"), layers=[Gate("p")])
    assert isinstance(drive(made, "Go", conversation_id="s"), Paused)
    other = restarted(made, "Done.")
    assert [each.name for each in other.conversation("s").waiting] == ["p"]
    assert drive(other, conversation_id="s", decisions={"c1_1": True}).text == "Done."
    assert runs == ["p"]
    assert [each.status for each in answers(other)] == ["ok", "ok", "ok"]


def test_what_is_said_while_calls_wait_declines_them(drive: Any) -> None:
    """Design, seams 11. The turn that follows is a whole one: its model may stream, its tools are not cancelled."""
    flags: list[bool] = []

    def look(context: ToolContext) -> None:
        flags.append(context.cancelled.is_set())

    model = ScriptedModel([("p", {})], [("look", {})], "Instead, then.", pieces=3)
    made = agent(model, tools=[defined("p", echo), look], layers=[Gate("p")])
    assert isinstance(drive(made, "Go", conversation_id="s"), Paused)
    assert drive(made, "Do something else instead", conversation_id="s").text == "Instead, then."
    assert flags == [False]
    assert statuses(made) == {"c0_0": "denied", "c1_0": "ok"}
    assert "the user said something else instead" in answers(made)[0].content
    assert [e.reason for e in made.conversation("s").journal if isinstance(e, RunEnded)] == ["superseded", "answered"]
    assert [e.reason for e in made.conversation("s").journal if isinstance(e, ToolDenied)] == [
        "the user said something else instead"
    ]


def test_what_nobody_decides_in_time_expires(drive: Any) -> None:
    now = [1_000.0]
    gate = Gate("p", expires_at=1_060.0)
    made = agent([("p", {})], "Too late, then.", tools=[defined("p", echo)], layers=[gate], clock=lambda: now[0])
    assert isinstance(drive(made, "Go", conversation_id="s"), Paused)
    now[0] = 1_059.0
    assert isinstance(drive(restarted(made), conversation_id="s"), Paused)
    now[0] = 1_060.0
    result = drive(made, conversation_id="s", decisions={"c0_0": True})
    assert result.text == "Too late, then."
    assert statuses(made) == {"c0_0": "expired"}
    assert "nobody approved it in time" in answers(made)[0].content


@pytest.mark.parametrize(
    ("given", "status", "content"),
    [({"a": 5}, "ok", '{"a": 5}'), (None, "ok", '{"a": 1}'), ({"a": "x"}, "invalid_arguments", "did not run")],
)
def test_an_approval_may_change_the_arguments_and_they_are_checked(
    drive: Any, given: Any, status: str, content: str
) -> None:
    def add(a: int) -> dict[str, int]:
        return {"a": a}

    made = agent([("add", {"a": 1})], tools=[add], layers=[Gate("add")])
    drive(made, "Go", conversation_id="s")
    drive(made, conversation_id="s", decisions={"c0_0": Approve(given)})
    assert answers(made)[0].status == status
    assert content in answers(made)[0].content


def test_a_person_may_be_asked_for_the_answer_itself(drive: Any) -> None:
    made = agent([("ask", {"what": "a number"})], tools=[defined("ask", echo)], layers=[Gate("ask", kind="question")])
    paused = drive(made, "Go", conversation_id="s")
    assert [(each.kind, each.arguments) for each in paused.waiting] == [("question", {"what": "a number"})]
    other = restarted(made)
    assert other.conversation("s").waiting[0].kind == "question"
    assert drive(other, conversation_id="s", decisions={"c0_0": Answer("42", {"n": 42})}).text == "Done."
    (result,) = answers(other)
    assert (result.status, result.content, result.data, result.by) == ("ok", "42", {"n": 42}, "person")


def test_a_decision_without_its_answer_is_no_reason_to_run(drive: Any) -> None:
    """C37: a process that ended right between the two."""
    made = agent([("p", {})], tools=[defined("p", lambda: pytest.fail("it ran"))], layers=[Gate("p")])
    drive(made, "Go", conversation_id="s")
    other = restarted(made, "Done.", layers=[])
    journal = other.store.load("s")
    other.store.append("s", len(journal), [{"v": 1, "fact": "ToolDenied", "call_id": "c0_0", "reason": "no"}])
    assert drive(other, conversation_id="s").text == "Done."
    assert statuses(other) == {"c0_0": "denied"}


# -- after a crash -----------------------------------------------------------------------------------------------------


def test_after_a_crash_repeatable_calls_run_again_and_others_are_interrupted(drive: Any) -> None:
    runs: list[str] = []
    tools = [
        defined("read", lambda: runs.append("read")),
        defined("pay", lambda: runs.append("pay"), kind="action", alone=False),
        defined("fresh", lambda: runs.append("fresh")),
    ]
    made = agent([("read", {}), ("pay", {}), ("fresh", {})], "Done.", tools=tools)
    drive(made, "Go", conversation_id="s")
    runs.clear()
    other = restarted(made, "Done.")
    lines = other.store.load("s")
    started = [at for at, line in enumerate(lines) if line["fact"] == "ToolStarted"]
    assert len(started) == 3
    other.store.journals["s"] = lines[: started[2]]  # type: ignore[attr-defined]  # it ended before the third began
    result = drive(other, conversation_id="s")
    assert result.text == "Done."
    assert sorted(runs) == ["fresh", "read"]
    assert [each.status for each in answers(other)] == ["ok", "interrupted", "ok"]
    assert "it was begun, and its outcome is not known" in answers(other)[1].content


@pytest.mark.parametrize("said", [None, "Are you there?"])
def test_wherever_a_process_ends_another_one_goes_on(drive: Any, said: str | None) -> None:
    """At every place of the journal, with and without a new message."""
    search = [("search_tools", {"queries": ["select:echo,pay"]})]
    tools = ToolSearch([ECHO, defined("pay", echo, kind="action")], mode="append")
    made = agent(search, [("echo", {}), ("pay", {})], "Done.", tools=tools)
    drive(made, "Go", conversation_id="s")
    lines = made.store.load("s")
    for length in range(2, len(lines) + (said is not None)):
        other = restarted(made, "Done.")
        other.store.journals["s"] = lines[:length]  # type: ignore[attr-defined]
        result = drive(other, said, conversation_id="s")
        assert isinstance(result, Finished), length
        assert result.text in ("Done.", ""), length
        is_whole(other)


def test_there_must_be_something_to_do(drive: Any) -> None:
    made = agent("Done.")
    with pytest.raises(StateError, match="'s' has no turn to continue: pass a user message"):
        drive(made, conversation_id="s")
    drive(made, "Go", conversation_id="s")
    with pytest.raises(StateError, match="'s' has no turn to continue: pass a user message"):
        drive(made, conversation_id="s")
    assert made._live == {}


# -- streaming ---------------------------------------------------------------------------------------------------------


def test_pieces_are_shown_as_they_come_and_no_store_holds_them(drive: Any) -> None:
    def model(request: CallModel) -> Iterator[Any]:
        yield TextDelta("hm", "reasoning")
        yield TextDelta("Hel")
        yield TextDelta("lo")
        yield Reply("Hello", reasoning="hm")

    async def model_async(request: CallModel) -> AsyncIterator[Any]:
        for each in model(request):
            yield each

    for each in (model, model_async) if drive.is_async else (model,):
        seen: list[Any] = []
        made = agent(each, observe=seen.append)
        shown = drive.shown(made, "Go", conversation_id="s")
        assert shown[2:5] == [TextDelta("hm", "reasoning"), TextDelta("Hel"), TextDelta("lo")]
        assert seen == shown[:-1]
        assert not any(isinstance(fact, TextDelta) for fact in made.conversation("s").journal)


def test_a_reply_that_breaks_off_or_is_asked_for_again_is_discarded(drive: Any) -> None:
    """Whoever shows pieces knows which of them count."""

    def breaks(request: CallModel) -> Iterator[Any]:
        yield TextDelta("Hel")
        raise ConnectionError("no line")

    def again(request: CallModel) -> Steps:
        try:
            yield request
        except ConnectionError:
            yield Sleep(0)
        first = yield request
        second = yield request
        return second if first.text == "bad" else first

    script = iter([breaks, ScriptedModel("bad", pieces=9), ScriptedModel("good", pieces=9)])

    def model(request: CallModel) -> Any:
        return next(script)(request)

    made = agent(model, layers=[Seam("model", again)])
    shown = [each for each in drive.shown(made, "Go") if isinstance(each, TextDelta | ReplyDiscarded | ModelReplied)]
    assert shown[:-1] == [
        TextDelta("Hel"), ReplyDiscarded("ConnectionError"), TextDelta("bad"), ReplyDiscarded("refused"),
        TextDelta("good"),
    ]  # fmt: skip
    assert shown[-1].text == "good"


def test_a_reply_that_a_layer_refuses_by_raising_is_discarded(drive: Any) -> None:
    def refuse(request: CallModel) -> Steps:
        yield request
        raise PermissionError("not this")

    seen: list[Any] = []
    made = agent(ScriptedModel("bad", pieces=9), layers=[Seam("model", refuse)], observe=seen.append)
    with pytest.raises(PermissionError):
        drive(made, "Go", conversation_id="s")
    assert [type(each).__name__ for each in seen] == [
        "RunBegan", "UserSaid", "TextDelta", "ModelCalled", "ReplyDiscarded", "RunEnded",
    ]  # fmt: skip
    is_whole(made)


def test_where_a_layer_buffers_nothing_is_shown_before_it_has_judged(drive: Any) -> None:
    def rewrite(request: CallModel) -> Steps:
        reply = yield request
        return Reply(reply.text.replace("secret", "…"))

    made = agent(ScriptedModel("a secret", pieces=2), layers=[Seam("model", rewrite, buffers=True)])
    shown = drive.shown(made, "Go", conversation_id="s")
    assert not any(isinstance(each, TextDelta) for each in shown)
    assert shown[-1].text == "a …"
    assert "secret" not in json.dumps(made.store.load("s"))


def test_a_helpers_call_of_the_model_is_not_shown_and_is_billed(drive: Any) -> None:
    def helped(request: CallModel) -> Steps:
        yield CallModel((UserSaid("sum up"),), purpose="summary")
        return (yield request)

    made = agent(ScriptedModel("in short", "Hi.", pieces=9), layers=[Seam("model", helped)])
    shown = drive.shown(made, "Go", conversation_id="s", caller=Caller("ana"))
    assert [each.text for each in shown if isinstance(each, TextDelta)] == ["Hi."]
    billed = [each for each in made.conversation("s").journal if isinstance(each, ModelCalled)]
    assert [(each.purpose, each.actor, each.usage.tokens) for each in billed] == [
        ("summary", "ana", 110), ("chat", "ana", 110),
    ]  # fmt: skip
    assert shown[-1].usage == Usage(200, 0, 20, 2)


# -- async things in `run` ---------------------------------------------------------------------------------------------


def test_an_async_model_is_awaited_by_arun_and_a_clear_error_in_run(drive: Any) -> None:
    async def plain(request: CallModel) -> Reply:
        await asyncio.sleep(0)
        return Reply("Hello.")

    async def pieces(request: CallModel) -> AsyncIterator[Any]:
        yield TextDelta("Hello.")
        yield Reply("Hello.")

    class Called:
        async def __call__(self, request: CallModel) -> Reply:
            return Reply("Hello.")

    def gives_plain(request: CallModel) -> Any:
        return plain(request)

    def gives_pieces(request: CallModel) -> Any:
        return pieces(request)

    for model in (plain, pieces, Called(), gives_plain, gives_pieces):
        made = agent(model)
        if drive.is_async:
            assert drive(made, "Go", conversation_id="s").text == "Hello."
        else:
            with pytest.raises(SetupError, match=r"async: use `await agent\.arun"):
                drive(made, "Go", conversation_id="s")
            is_whole(made)


def test_an_async_tool_is_awaited_by_arun_and_answered_in_run_with_what_to_do(drive: Any) -> None:
    async def later() -> str:
        return "now"

    made = agent([("later", {}), ("echo", {})], tools=[later, ECHO])
    assert drive(made, "Go", conversation_id="s").text == "Done."
    first = answers(made)[0]
    if drive.is_async:
        assert (first.status, first.content) == ("ok", "now")
    else:
        assert first.status == "failed"
        assert "'later' did not run: it is async" in first.content
        assert "`arun`" in first.content
    assert answers(made)[1].status == "ok"


def test_run_works_inside_a_running_event_loop() -> None:
    """As in a notebook."""

    async def cell() -> Any:
        return agent([("echo", {"a": 1})], "Done.", tools=[ECHO]).run("Go")

    assert asyncio.run(cell()).text == "Done."


def test_an_async_function_of_a_layer_is_awaited_by_arun_and_refused_by_run(drive: Any) -> None:
    async def note(given: Any) -> None:
        await asyncio.sleep(0)

    for seam in ("run", "round", "model", "tool"):
        made = agent([("echo", {})], "Done.", tools=[ECHO], layers=[before(seam, note)])
        if drive.is_async:
            assert drive(made, "Go", conversation_id="s").text == "Done."
        else:
            with pytest.raises(SetupError, match=r"note is async: use `await agent\.arun"):
                drive(made, "Go", conversation_id="s")
            is_whole(made)


# -- layers and observers ----------------------------------------------------------------------------------------------


def test_layers_have_their_say_at_each_of_the_four_seams(drive: Any) -> None:
    """SA-39: outside the loop once, inside it every round; the first in the list is outermost."""
    seen: list[str] = []

    def marking(seam: str, word: str) -> Seam:
        def around(given: Any) -> Steps:
            seen.append(f"{seam} {word}")
            yield Record(Noted(word, seam))
            assert (yield Do(lambda: 7)) == 7
            result = yield given
            seen.append(f"/{seam} {word}")
            return result

        return Seam(seam, around)

    layers = [marking(seam, word) for word in "ab" for seam in ("tool", "model", "round", "run")]
    made = agent([("echo", {})], "Done.", tools=[ECHO], layers=layers)
    assert drive(made, "Go", conversation_id="s").text == "Done."
    step = "{0} a,{0} b,/{0} b,/{0} a"
    assert ",".join(seen) == ",".join(
        ["run a,run b", step.format("model"), "round a,round b", step.format("tool"), "/round b,/round a",
         step.format("model"), "/run b,/run a"]
    )  # fmt: skip
    assert len(made.conversation("s").turn.notes("a")) == 5
    assert all(fact.at > 0 for fact in made.conversation("s").journal if isinstance(fact, Noted))


def test_PG5_a_layer_answers_some_calls_of_a_round_and_the_rest_runs(drive: Any) -> None:
    """Answers are merged in the order the model asked; who is asked last sees only what is left."""
    left: list[list[str]] = []

    def claim(given: Round) -> Steps:
        first = given.calls[0]
        done = yield given.without([first.id])
        return {**done, first.id: given.call(first).answer("limit", "Not this one.")}

    def watch(given: Round) -> Steps:
        left.append([call.id for call in given.calls])
        return (yield given)

    made = agent(
        [("echo", {"a": 1}), ("echo", {"a": 2})], tools=[ECHO], layers=[Seam("round", claim), Seam("round", watch)]
    )
    drive(made, "Go", conversation_id="s")
    assert left == [["c0_1"]]
    assert [(each.status, each.content, each.by) for each in answers(made)] == [
        ("limit", "Not this one.", "test layer"), ("ok", '{"a": 2}', ""),
    ]  # fmt: skip


def test_a_layer_changes_what_goes_in_and_what_comes_out(drive: Any) -> None:
    made = agent(
        [("echo", {"a": 1})], "done.", tools=[ECHO],
        layers=[
            after("model", lambda reply: Reply(reply.text.upper(), reply.calls, reply.usage)),
            after("tool", lambda result: f"<{result.content}>"),
            after("run", lambda result: Finished(result.text + "!", result.reason)),
        ],
    )  # fmt: skip
    assert drive(made, "Go", conversation_id="s").text == "DONE.!"
    assert answers(made)[0].content == '<{"a": 1}>'
    assert made.conversation("s").journal[-1].text == "DONE.!"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, True),
        ({"usage": Usage(1, 1, 1)}, True),
        ({"text": "a …"}, False),
        ({"reasoning": ""}, False),
        ({"calls": ()}, False),
    ],
)
def test_what_a_layer_took_out_does_not_come_back_with_the_providers_own_message(
    drive: Any, change: Any, kept: bool
) -> None:
    raw = {"content": "a secret", "tool_calls": [{"id": "c"}]}
    calls = ScriptedModel([("c", "echo", {})])(CallModel(())).calls
    given = Reply("a secret", calls, reasoning="hm", raw=raw, wire="test")
    rewrite = after("model", lambda reply: replace(reply, **change) if reply.raw else reply)
    made = agent(given, "Done.", tools=[ECHO], layers=[rewrite])
    drive(made, "Go", conversation_id="s")
    first = next(m for m in made.conversation("s").transcript if isinstance(m, ModelReplied))
    assert (first.raw == raw) == kept
    assert (first.raw is None) != kept


def test_a_layer_ends_the_run_by_a_fact(drive: Any) -> None:
    def stop(given: Round) -> Steps:
        done = yield given
        yield Record(Ending("limit", "Enough.", "test"))
        return done

    made = agent([("echo", {})], "never", tools=[ECHO], layers=[Seam("round", stop)])
    result = drive(made, "Go", conversation_id="s")
    assert (result.text, result.reason) == ("Enough.", "limit")
    is_whole(made)


def raising(seam: str, when: str, **marks: Any) -> Seam:
    def around(given: Any) -> Steps:
        if when == "before":
            raise LookupError("a layer's bug")
        if when == "own work":
            yield Do(lambda: {}["a layer's bug"])
        result = yield given
        if when == "after":
            raise LookupError("a layer's bug")
        return result

    return Seam(seam, around, **marks)


@pytest.mark.parametrize("when", ["before", "own work", "after"])
@pytest.mark.parametrize("seam", ["run", "round", "model"])
def test_a_layer_that_raises_ends_the_run_whole(drive: Any, seam: str, when: str) -> None:
    """Design, seams 12; PG-5: nobody knows whether it protects something, so nothing is done in its place."""
    made = agent([("echo", {})], "Done.", tools=[ECHO], layers=[raising(seam, when)])
    with pytest.raises(LookupError, match="a layer's bug"):
        drive(made, "Go", conversation_id="s")
    is_whole(made)


@pytest.mark.parametrize("when", ["before", "own work", "after"])
@pytest.mark.parametrize("seam", ["run", "round", "model", "tool"])
def test_a_layer_on_which_nothing_depends_is_skipped_if_it_raises(
    drive: Any, seam: str, when: str, caplog: pytest.LogCaptureFixture
) -> None:
    """PG-5: it says so with `gate = False`; the step is done without it, once, and the failure is logged."""
    ran: list[str] = []
    tools = [defined("p", lambda: ran.append("p"))]
    inner: list[Any] = []

    def watch(given: Any) -> Steps:
        inner.append((yield given))
        return inner[-1]

    layers = [raising(seam, when, gate=False), Seam(seam, watch)]
    made = agent([("p", {})], "Done.", tools=tools, layers=layers)
    assert drive(made, "Go", conversation_id="s").text == "Done."
    assert ran == ["p"]
    assert set(statuses(made).values()) == {"ok"}
    assert len(inner) == (2 if seam == "model" else 1)
    assert f"around_{seam} of" in caplog.text
    assert "the step is done without it" in caplog.text
    assert "a layer's bug" in caplog.text
    is_whole(made)


def test_a_skipped_layer_hides_no_error_of_the_step(drive: Any) -> None:
    """PG-5: what the model raised is raised, even if the layer fails while it handles that."""

    def clumsy(given: Any) -> Steps:
        try:
            return (yield given)
        except Exception:
            raise LookupError("a layer's bug") from None

    made = agent(PermissionError("no key"), tools=[ECHO], layers=[Seam("model", clumsy, gate=False)])
    with pytest.raises(PermissionError, match="no key"):
        drive(made, "Go", conversation_id="s")
    is_whole(made)


@pytest.mark.parametrize("name", ["logs", "otel", "log_model"])
def test_the_layers_that_only_watch_say_that_nothing_depends_on_them(name: str) -> None:
    """PG-5."""
    from toolsearch import layers

    assert getattr(layers, name)().gate is False


@pytest.mark.parametrize("when", ["before", "own work", "after"])
def test_a_layer_around_a_tool_that_raises_fails_its_call(drive: Any, when: str) -> None:
    def only(given: Call) -> Steps:
        return (yield from broken(given)) if given.judged.arguments else (yield given)

    broken = raising("tool", when).around_tool  # type: ignore[attr-defined]
    made = agent([("echo", {"a": 1}), ("echo", {})], tools=[ECHO], layers=[Seam("tool", only)])
    assert drive(made, "Go", conversation_id="s").text == "Done."
    assert [each.status for each in answers(made)] == ["failed", "ok"]
    assert "a layer's bug" in answers(made)[0].content


@pytest.mark.parametrize("when", ["before", "own work"])
def test_PG16_a_gate_that_raises_declines_all_it_was_to_judge(
    drive: Any, when: str, caplog: pytest.LogCaptureFixture
) -> None:
    """PG-5: whether it would have asked about them or not."""
    ran: list[str] = []
    tools = [defined("p", lambda: ran.append("p"))]
    made = agent([("p", {}), ("nothing", {})], tools=tools, layers=[raising("round", when, gate=True)])
    assert drive(made, "Go", conversation_id="s").text == "Done."
    assert ran == []
    assert set(statuses(made).values()) == {"denied"}
    assert "asking for it failed" in answers(made)[0].content
    assert "the gate" in caplog.text


def test_a_gate_that_raises_after_the_calls_have_run_takes_no_answer_back(drive: Any) -> None:
    made = agent([("echo", {})], tools=[ECHO], layers=[raising("round", "after", gate=True)])
    assert drive(made, "Go", conversation_id="s").text == "Done."
    assert statuses(made) == {"c0_0": "ok"}


@pytest.mark.parametrize("given", [{}, {"c0_0": None}, {"c0_0": "text"}, {"another": 5}])
def test_a_layer_that_loses_an_answer_is_told_of(drive: Any, given: Any) -> None:
    """Every call has exactly one answer."""

    def lose(request: Round) -> Steps:
        return given
        yield

    def forget(call: Call) -> Steps:
        yield call

    made = agent([("echo", {})], tools=[ECHO], layers=[Seam("round", lose)])
    assert drive(made, "Go", conversation_id="s").text == "Done."
    assert statuses(made) == {"c0_0": "failed"}
    assert "a layer of the program gave none" in answers(made)[0].content
    made = agent([("echo", {})], tools=[ECHO], layers=[Seam("tool", forget)])
    drive(made, "Go", conversation_id="s")
    assert statuses(made) == {"c0_0": "failed"}


@pytest.mark.parametrize("given", [None, 5, "text"])
def test_a_layer_around_a_round_that_gives_no_answers_is_a_clear_error(drive: Any, given: Any) -> None:
    def lose(request: Round) -> Steps:
        yield request
        return given

    made = agent([("echo", {})], tools=[ECHO], layers=[Seam("round", lose)])
    with pytest.raises(SetupError, match=r"around_round of .* returned .*: return the answers by call id"):
        drive(made, "Go", conversation_id="s")
    is_whole(made)


def test_a_layer_around_the_run_that_gives_nothing_is_a_clear_error(drive: Any) -> None:
    def forget(run: Run) -> Steps:
        yield run

    made = agent("Done.", layers=[Seam("run", forget)])
    with pytest.raises(
        SetupError, match="around_run of a layer returned None: return the result it was sent, or a Finished"
    ):
        drive(made, "Go", conversation_id="s")
    is_whole(made)


@pytest.mark.parametrize("fact", [ToolReturned("never", "ok", ""), RunBegan("again"), 5])
def test_a_layer_that_records_what_cannot_be_ends_the_run_whole(drive: Any, fact: Any) -> None:
    for seam in ("model", "round", "tool"):

        def record(given: Any) -> Steps:
            yield Record(fact)
            return (yield given)

        made = agent([("echo", {})], tools=[ECHO], layers=[Seam(seam, record)])
        with pytest.raises(StateError):
            drive(made, "Go", conversation_id="s")
        is_whole(made)


def test_a_layer_that_yields_while_it_is_closed_does_not_keep_the_turn_from_ending(
    drive: Any, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Slow()

    def stubborn(given: Any) -> Steps:
        try:
            return (yield given)
        finally:
            yield Sleep(0)

    layers = [Seam(seam, stubborn) for seam in ("run", "round")]
    made = agent([("slow", {})], tools=slow.tools(), layers=layers)
    wait = drive.beside(made, "Go", conversation_id="s")
    assert slow.began.wait(PATIENCE)
    made.cancel("s")
    assert wait().reason == "cancelled"
    slow.free.set()
    assert caplog.text.count("it must not yield then") == 2
    is_whole(made)


def test_an_observer_that_raises_is_logged_and_dropped(drive: Any, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []

    def broken(event: Any) -> None:
        raise RuntimeError("an observer's bug")

    made = agent([("echo", {})], "Done.", tools=[ECHO], observe=[broken, seen.append])
    with caplog.at_level(logging.ERROR, "toolsearch"):
        assert drive(made, "Go", conversation_id="s").text == "Done."
    assert tuple(seen) == made.conversation("s").journal
    assert "an observer's bug" in caplog.text


def test_tools_that_changed_at_their_source_are_told_once(drive: Any) -> None:
    """Between a question and its answers nothing is said: the note comes after them."""
    catalog = ToolSearch([ECHO, defined("p", echo)], mode="append")
    search = [("search_tools", {"queries": ["select:echo,p"]})]
    made = agent(search, [("p", {})], "Done.", "Again.", tools=catalog, layers=[Gate("p")])
    drive(made, "Go", conversation_id="s")
    catalog.catalog.remove("echo")
    drive(made, conversation_id="s", decisions={"c1_0": True})
    drive(made, "Go on", conversation_id="s")
    shown = made.conversation("s").transcript
    assert [type(message).__name__ for message in shown[:6]] == [
        "UserSaid", "ModelReplied", "Answers", "ModelReplied", "Answers", "Note",
    ]  # fmt: skip
    assert [message.text for message in shown if isinstance(message, Note)] == [
        "Tools have changed: echo is no longer available and was unloaded"
    ]


def test_after_a_compaction_pending_changes_of_tools_take_effect(drive: Any) -> None:
    """Invariants 9 and 10: the cache is lost then anyway, and nothing that was found is unloaded."""
    catalog = ToolSearch([ECHO, defined("p", echo)], mode="append")

    def cut(given: Round) -> Steps:
        done = yield given
        if given.turn.rounds == 2:
            catalog.catalog.remove("p")
            place = next(at for at, fact in enumerate(given.turn.journal) if isinstance(fact, UserSaid))
            yield Record(Compacted(place))
        return done

    search = [("search_tools", {"queries": ["select:echo,p"]})]
    model = ScriptedModel(search, [("echo", {})], [("echo", {"a": 2})], "Done.")
    made = agent(model, tools=catalog, layers=[Seam("round", cut)])
    assert drive(made, "Go", conversation_id="s").text == "Done."
    assert [each.name for each in model.requests[1].tools] == ["search_tools", "echo", "p"]
    assert [each.name for each in model.requests[2].tools] == ["search_tools", "echo"]
    assert [each.status for each in answers(made)] == ["ok", "ok", "ok"]
    (told,) = [fact for fact in made.conversation("s").journal if isinstance(fact, ToolsUnloaded)]
    assert told.unloaded == ("p",)


# -- what the loop does not do -----------------------------------------------------------------------------------------


def test_C16_C42_ids_and_texts_a_model_makes_up_can_be_sent_back(drive: Any) -> None:
    calls = [("c", "echo", {"a": "\ud800"}), ("c", "echo", '{"a": "\\udcff"}'), ("", "no\udcffne", {})]
    raw = {"content": "its own ids"}

    def reply(request: CallModel) -> Reply:
        made = ScriptedModel(calls)(request)
        return Reply("\ud83d ok", made.calls, raw=raw, wire="test")

    made = agent(reply, "Done.", [("c", "echo", {})], tools=[defined("echo", lambda **given: {**given, "b": "\ud800"})])
    drive(made, "I said \udcff", conversation_id="s")
    drive(made, "Go on", conversation_id="s")
    assert len({each.call_id for each in answers(made)}) == 4
    assert [each.status for each in answers(made)] == ["ok", "ok", "unknown", "ok"]
    for request in made.parts.model.requests:  # type: ignore[attr-defined]
        repr(request.transcript).encode()
        assert "\\ud" not in repr(request.transcript).replace("\\\\ud", "")
    first = next(m for m in made.conversation("s").transcript if isinstance(m, ModelReplied))
    assert first.raw == raw  # a wire puts the new ids into it


def test_every_time_is_the_drivers(drive: Any) -> None:
    made = agent([("echo", {})], "Done.", tools=[ECHO], clock=lambda: 1_234.5)
    drive(made, "Go", conversation_id="s")
    times = {fact.at for fact in made.conversation("s").journal if hasattr(fact, "at")}
    assert times == {1_234.5}


def test_nothing_in_the_loop_reads_a_clock_by_itself() -> None:
    """But for `Agent`, whose clock is an option."""
    modules = [*(ROOT / "events").glob("*.py"), *(ROOT / "loop").glob("*.py")]
    assert len(modules) > 9
    for module in modules:
        source = module.read_text("utf-8")
        assert "time.time" not in source or module.name == "agent.py", module
        assert "datetime" not in source, module


SDKS = ("openai", "anthropic", "mcp", "httpx", "numpy", "opentelemetry", "langchain_core", "torch")


@pytest.mark.parametrize("module", ["toolsearch", "toolsearch.loop", "toolsearch.testing"])
def test_importing_the_loop_imports_no_sdk_and_the_package_no_loop(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(m for m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT.parent)},
    )  # fmt: skip
    loaded = set(done.stdout.split())
    assert not loaded & set(SDKS)
    if module == "toolsearch":
        assert not loaded & {"toolsearch.loop", "toolsearch.events", "asyncio"}


def test_the_names_of_the_loop_are_those_of_the_package() -> None:
    for name in ("Agent", "Finished", "Paused", "Approve", "Deny", "Answer"):
        assert name in toolsearch.__all__
        assert name in dir(toolsearch)
    assert toolsearch.Agent is Agent
    assert (toolsearch.Finished, toolsearch.Paused) == (Finished, Paused)
    assert (toolsearch.Approve, toolsearch.Deny, toolsearch.Answer) == (Approve, Deny, Answer)
    with pytest.raises(AttributeError, match="no attribute 'Agents'"):
        _ = toolsearch.Agents  # type: ignore[attr-defined]


# -- what is refused at once -------------------------------------------------------------------------------------------


def test_what_cannot_be_an_agent_is_refused() -> None:
    with pytest.raises(SetupError, match="model must be a function that takes a CallModel"):
        Agent("gpt", [])  # type: ignore[arg-type]
    with pytest.raises(SetupError, match="is not a layer"):
        Agent(ScriptedModel(), [], layers=["limits"])
    assert repr(Agent(ScriptedModel(), [ECHO])).startswith("Agent(ToolSearch(Catalog(1 tool")


@pytest.mark.parametrize(
    ("said", "options", "why"),
    [
        (5, {}, "the user message must be a text or a UserSaid, not 5"),
        ("Go", {"conversation_id": 5}, "conversation_id must be a text that is not empty, not 5"),
        ("Go", {"conversation_id": ""}, "conversation_id must be a text that is not empty, not ''"),
        ("Go", {"caller": "ana"}, "caller must be a Caller, as in Caller"),
        ("Go", {"conversation_id": "s", "decisions": {"c": True}}, "pass a user message or decisions, not both"),
        (None, {"conversation_id": "s", "decisions": ["c"]}, "decisions must be given by call id"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_done(drive: Any, said: Any, options: Any, why: str) -> None:
    made = agent("Done.")
    with pytest.raises(SetupError, match=why):
        drive(made, said, **options)
    assert made._live == {}
    assert list(made.store.list()) == []


def test_a_message_may_hold_more_than_text(drive: Any) -> None:
    model = ScriptedModel("A cat.")
    said = UserSaid("What is this?", ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},))
    drive(agent(model), said)
    (message,) = model.requests[0].transcript
    assert isinstance(message, UserSaid)
    assert message.parts == said.parts


def test_a_turn_that_has_ended_waits_for_no_garbage_collector() -> None:
    def count() -> int:
        """Count."""
        return 3

    ending = agent([("count", {})], "Three.", tools=[count])
    turns: list[weakref.ref[Any]] = []
    contexts: list[weakref.ref[Any]] = []

    class Value:
        """Something of the program, in the context that a turn copies."""

    held = contextvars.ContextVar[Value]("held")

    def work() -> None:
        held.set(value := Value())
        contexts.append(weakref.ref(value))
        for event in ending.stream("Count", conversation_id="s"):
            turns[:] = turns or [weakref.ref(ending._live["s"])]
            del event

    gc.collect()
    gc.disable()
    try:
        contextvars.copy_context().run(work)
        until = time.monotonic() + PATIENCE
        while any(each() is not None for each in (*turns, *contexts)) and time.monotonic() < until:
            time.sleep(0.01)  # the threads of its calls end
        assert [each() for each in (*turns, *contexts)] == [None, None]
    finally:
        gc.enable()
