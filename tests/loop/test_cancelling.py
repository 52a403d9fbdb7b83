"""After a cancellation no tool starts, whatever the layers do; and the answers tell what ran from what did not."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest

from toolsearch import ToolCall, ToolContext, ToolSearch, tool
from toolsearch.delegation import delegate
from toolsearch.events.facts import Reply, ToolReturned
from toolsearch.events.requests import Call
from toolsearch.layers import timeout
from toolsearch.loop.agent import Agent
from toolsearch.protocols import Do, Layer, Sleep
from toolsearch.testing import ScriptedModel

PATIENCE = 20.0  # seconds until a test that waits for another thread fails
Steps = Generator[Any, Any, Any]


class Car:
    """Tools of the kind "action" that note that they ran; `drive` runs until it may end."""

    def __init__(self) -> None:
        self.began, self.free = threading.Event(), threading.Event()
        self.ran: list[str] = []
        self.flag: threading.Event | None = None

    def drive(self, context: ToolContext) -> str:
        self.ran.append("drive")
        self.flag = context.cancelled
        self.began.set()
        self.free.wait(PATIENCE)
        return "there"

    def park(self) -> str:
        self.ran.append("park")
        return "parked"

    async def honk(self) -> str:
        self.ran.append("honk")
        return "beep"

    def search(self) -> ToolSearch:
        named = {"input_schema": {"type": "object"}, "description": ""}
        made = [tool({"name": f.__name__, **named}, run=f, kind="action") for f in (self.drive, self.park, self.honk)]
        return ToolSearch(made, mode="static")

    def agent(self, *calls: str, layers: list[Layer] | None = None, **options: Any) -> Agent:
        script = [(f"c{n}", name, {}) for n, name in enumerate(calls)]
        return Agent(ScriptedModel(script, "Done."), self.search(), layers=layers or [], **options)


def answers(agent: Agent, conversation_id: str = "s") -> dict[str, tuple[str, str]]:
    journal = agent.conversation(conversation_id).journal
    return {fact.call_id: (fact.status, fact.content) for fact in journal if isinstance(fact, ToolReturned)}


class Around:
    """A layer around a tool, from a generator function."""

    name = "around"

    def __init__(self, around: Callable[[Call], Steps]) -> None:
        self.around_tool = around


def test_K13_what_ran_and_what_did_not_have_different_statuses(drive: Any) -> None:
    """K13: cancelled while the first of two actions runs."""
    car = Car()
    agent = car.agent("drive", "park")
    wait = drive.beside(agent, "Go", conversation_id="s")
    assert car.began.wait(PATIENCE)
    agent.cancel("s")
    assert wait().reason == "cancelled"
    car.free.set()
    (first, why_first), (second, why_second) = answers(agent)["c0"], answers(agent)["c1"]
    assert (first, second) == ("interrupted", "cancelled")
    assert "its effect is not known" in why_first
    assert "it did not run" in why_second
    assert car.ran == ["drive"]


def test_K13_so_they_have_when_the_turn_fails_or_is_late(drive: Any) -> None:
    car = Car()
    agent = car.agent("drive", "park", layers=[timeout(turn=0.2)])
    with pytest.raises(TimeoutError):
        drive(agent, "Go", conversation_id="s")
    car.free.set()
    assert [status for status, _ in answers(agent).values()] == ["interrupted", "cancelled"]


def test_K13_a_call_that_a_layer_still_holds_did_not_run(drive: Any) -> None:
    """It was begun, by its fact, but its tool was not: that is known, so it is said."""
    holds = threading.Event()

    def around(call: Call) -> Steps:
        holds.set()
        yield Sleep(1.5 if drive.is_async else 0.2)
        return (yield call)

    car = Car()
    agent = car.agent("park", layers=[Around(around)])
    wait = drive.beside(agent, "Go", conversation_id="s")
    assert holds.wait(PATIENCE)
    agent.cancel("s")
    wait()
    assert answers(agent)["c0"][0] == "cancelled"
    assert car.ran == []


# -- K14 ---------------------------------------------------------------------------------------------------------------


async def caught(held: threading.Event, over: threading.Event) -> None:
    held.set()
    try:
        await asyncio.sleep(PATIENCE)
    except asyncio.CancelledError:
        over.set()


async def suppressed(held: threading.Event, over: threading.Event) -> None:
    held.set()
    with contextlib.suppress(BaseException):
        await asyncio.sleep(PATIENCE)
    over.set()


async def shielded(held: threading.Event, over: threading.Event) -> None:
    async def inner() -> None:
        held.set()
        while not over.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.01)

    running = asyncio.ensure_future(inner())
    while not running.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(running)


@pytest.mark.parametrize("hook", [caught, suppressed, shielded])
@pytest.mark.parametrize("name", ["park", "honk"])
@pytest.mark.parametrize("by", ["cancel", "task"])
def test_K14_no_tool_starts_after_a_cancel_though_a_hook_catches_it(hook: Any, name: str, by: str) -> None:
    """K14: the hook goes on, and so does the layer; the call behind it does not."""
    car, held, over, passed = Car(), threading.Event(), threading.Event(), threading.Event()

    def around(call: Call) -> Steps:
        yield Do(lambda: hook(held, over))
        try:
            return (yield call)
        finally:
            passed.set()

    agent = car.agent(name, layers=[Around(around)])

    async def main() -> None:
        task = asyncio.create_task(agent.arun("Go", conversation_id="s"))
        while not held.is_set():  # noqa: ASYNC110 - a hook sets it, maybe in another thread
            await asyncio.sleep(0.001)
        task.cancel() if by == "task" else agent.cancel("s")
        with contextlib.suppress(asyncio.CancelledError):
            await task
        over.set()
        for _ in range(500):
            if passed.is_set():
                break
            await asyncio.sleep(0.01)

    asyncio.run(main())
    assert passed.is_set(), "the layer did not go on, so this shows nothing"
    assert car.ran == []
    assert answers(agent)["c0"][0] == "cancelled"


def test_K14_in_a_thread_no_tool_starts_after_a_cancel(drive: Any) -> None:
    """K14: a layer's own sync function goes on, in its thread; the call behind it does not run."""
    car, held, over, passed = Car(), threading.Event(), threading.Event(), threading.Event()

    def hook() -> None:
        held.set()
        over.wait(PATIENCE)

    def around(call: Call) -> Steps:
        try:
            yield Do(hook)
            return (yield call)
        finally:
            passed.set()

    agent = car.agent("park", layers=[Around(around)])
    wait = drive.beside(agent, "Go", conversation_id="s")
    assert held.wait(PATIENCE)
    agent.cancel("s")
    assert wait().reason == "cancelled"
    over.set()
    assert passed.wait(PATIENCE)
    assert car.ran == []


def test_K14_a_search_behind_one_that_was_cancelled_meets_no_layer(drive: Any) -> None:
    """K14: the searches of a reply are one job; after a cancel, the next of them does not begin."""
    held, over, seen = threading.Event(), threading.Event(), []

    def around(call: Call) -> Steps:
        seen.append(call.judged.id)
        held.set()
        with contextlib.suppress(BaseException):
            yield Do(lambda: over.wait(PATIENCE))
        return (yield call)

    model = ScriptedModel([(f"c{n}", "search_tools", {"queries": ["car"]}) for n in range(3)], "Done.")
    agent = Agent(model, ToolSearch([Car().park]), layers=[Around(around)])
    wait = drive.beside(agent, "Go", conversation_id="s")
    assert held.wait(PATIENCE)
    agent.cancel("s")
    wait()
    over.set()
    assert [status for status, _ in answers(agent).values()] == ["cancelled"] * 3
    assert seen == ["c0"]


def test_a_tool_with_a_time_limit_of_its_own_is_told_of_the_cancel(drive: Any) -> None:
    """Its event is another one, because it is set when the call is late too."""
    car = Car()
    agent = car.agent("drive", layers=[timeout(tool=PATIENCE)])
    wait = drive.beside(agent, "Go", conversation_id="s")
    assert car.began.wait(PATIENCE)
    assert car.flag is not None
    assert not car.flag.is_set()
    agent.cancel("s")
    wait()
    assert car.flag.is_set()
    car.free.set()


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", ["park", "honk"])
def test_K14_in_a_loop_of_ones_own_no_tool_starts_after_its_flag_is_set(is_async: bool, name: str) -> None:
    car, flag = Car(), threading.Event()
    session = car.search().session()
    session.tools()
    flag.set()
    call = ToolCall("c", name, {})
    result = asyncio.run(session.ahandle(call, cancelled=flag)) if is_async else session.handle(call, cancelled=flag)
    assert (result.status, car.ran) == ("cancelled", [])
    assert "it did not run" in result.content


def test_K14_a_child_starts_no_tool_after_its_parent_was_cancelled(drive: Any) -> None:
    """K14: the parent is cancelled while the child's model answers; the tool that it calls does not run."""
    car, asked, free = Car(), threading.Event(), threading.Event()

    def thinking(request: object) -> Reply:
        asked.set()
        free.wait(PATIENCE)
        return Reply("", (ToolCall("p", "park", {}),))

    child = Agent(thinking, car.search())
    parent = Agent(
        ScriptedModel([("h", "helper", {"task": "Park."})]),
        ToolSearch([delegate(child, "helper", "Helps.")], mode="static"),
    )
    wait = drive.beside(parent, "Go", conversation_id="s")
    assert asked.wait(PATIENCE)
    parent.cancel("s")
    free.set()
    assert wait().reason == "cancelled"
    for _ in range(500):
        if not child.conversation("s/h").running:
            break
        threading.Event().wait(0.01)
    assert car.ran == []
    assert answers(parent)["h"][0] == "interrupted"


@pytest.mark.parametrize("shown", range(1, 9))
@pytest.mark.parametrize("way", ["throw", "athrow"])
def test_an_exception_thrown_into_a_stream_cancels_the_turn_and_is_raised(way: str, shown: int) -> None:
    """It is the consumer that stops, as if it had closed the stream; the conversation goes on."""
    look = tool(lambda: "seen", name="look", description="Look")
    agent = Agent(ScriptedModel([("look", {})], "Done.", "Next."), ToolSearch([look], mode="static"))

    async def throw_async() -> None:
        stream: Any = agent.astream("Go", conversation_id="s")
        for _ in range(shown):
            await anext(stream)
        await stream.athrow(ValueError("mine"))

    def throw() -> None:
        stream: Any = agent.stream("Go", conversation_id="s")
        for _ in range(shown):
            next(stream)
        stream.throw(ValueError("mine"))

    with pytest.raises(ValueError, match="mine"):
        throw() if way == "throw" else asyncio.run(throw_async())
    conversation = agent.conversation("s")
    assert conversation.journal[-1].reason == "cancelled"  # type: ignore[union-attr]
    assert not conversation.open
    assert agent.run("Next", conversation_id="s").reason == "answered"  # type: ignore[union-attr]
