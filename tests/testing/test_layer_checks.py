"""The kit for layers: every layer that ships passes it, and it names the promise that another one breaks."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from toolsearch import SetupError, layers
from toolsearch.events import CallModel, Noted, Reply, TextDelta
from toolsearch.protocols import Do, Record
from toolsearch.stores import MemoryStore
from toolsearch.testing import BrokenPromise, check_layer

OURS: dict[str, Callable[[], Any]] = {
    "after": lambda: layers.after("model", lambda reply: None),
    "approval": layers.approval,
    "approval of some": lambda: layers.approval(lambda waiting: {each.id: True for each in waiting}, when=["save"]),
    "before": lambda: layers.before("tool", lambda call: None),
    "eligibility": lambda: layers.eligibility(lambda calls: True),
    "follow_ups": layers.follow_ups,
    "history": lambda: layers.history(messages=6),
    "history with a summary": lambda: layers.history(messages=4, summarize=True),
    "interaction": lambda: layers.interaction({"look_up": "Which one?"}),
    "limits": layers.limits,
    "limits that end": lambda: layers.limits(soft=1, hard=1, excess="end"),
    "logs": layers.logs,
    "memory": lambda: layers.memory(MemoryStore(), keep="answers"),
    "otel": layers.otel,
    "preflight": lambda: layers.preflight(lambda call, phase: None),
    "processors": lambda: layers.processors(*[[layers.redact(r"\d{16}")]] * 3),
    "retry": layers.retry,
    "rules": lambda: layers.rules(deny=["save"]),
    "structured": lambda: layers.structured({"type": "object", "properties": {}}),
    "thought": lambda: layers.thought({"why": "why it is called"}, lambda name, value, call: None),
    "timeout": lambda: layers.timeout(tool=5, model=5, turn=30),
    "tool_questions": layers.tool_questions,
    "truncate": lambda: layers.truncate(200),
    "usage": lambda: layers.usage(layers.Quota()),
}


@pytest.mark.parametrize("name", OURS)
def test_every_layer_that_ships_keeps_the_promises(name: str) -> None:
    check_layer(OURS[name])


class Uncalled:
    def around_tool(self, call: Any) -> Any:
        return call


class Losing:
    def around_round(self, calls: Any) -> Any:
        answers = yield calls
        return {call_id: answer for call_id, answer in answers.items() if call_id != "c2"}


class Inventing:
    def around_round(self, calls: Any) -> Any:
        answers = yield calls
        return {**answers, "nobody": next(iter(answers.values()))}


class Misplacing:
    def around_round(self, calls: Any) -> Any:
        answers = yield calls
        return dict(zip(answers, reversed(answers.values()), strict=True))


class Listing:
    def around_round(self, calls: Any) -> Any:
        answers = yield calls
        return list(answers.values())


class Talking:
    def around_model(self, request: Any) -> Any:
        reply = yield request
        return reply.text


class Counting:
    def around_tool(self, call: Any) -> Any:
        yield call
        return 3


class Ending:
    def around_run(self, run: Any) -> Any:
        yield run
        return "the end"


class Swapping:
    def around_tool(self, call: Any) -> Any:
        result = yield call
        return replace(result, call_id="c0")


class Misyielding:
    def around_tool(self, call: Any) -> Any:
        return (yield call.arguments)


class Clinging:
    def around_tool(self, call: Any) -> Any:
        try:
            return (yield call)
        finally:
            yield call


class Translating:
    def around_model(self, request: Any) -> Any:
        try:
            return (yield request)
        except Exception:
            raise KeyError("oops") from None


class Failing:
    def around_round(self, calls: Any) -> Any:
        raise KeyError("oops")
        yield calls


class Remembering:
    """Lets so many rounds through, and counts them in itself."""

    rounds = 0

    def around_round(self, calls: Any) -> Any:
        self.rounds += 1
        if self.rounds > 3:
            return {call.id: calls.call(call).answer("limit", "too many") for call in calls.calls}
        return (yield calls)


class Patient(Remembering):
    """Counts in itself too, but lets more rounds through than a short turn has."""

    def around_round(self, calls: Any) -> Any:
        self.rounds += 1
        if self.rounds > 9:
            return {call.id: calls.call(call).answer("limit", "too many") for call in calls.calls}
        return (yield calls)


class Numbering:
    """Changes nothing but its own notes, and numbers them in itself."""

    numbers = 0

    def around_round(self, calls: Any) -> Any:
        self.numbers += 1
        yield Record(Noted("numbering", self.numbers))
        return (yield calls)


class Setting:
    def around_round(self, calls: Any) -> Any:
        yield Record(Noted("setting", {1, 2}))
        return (yield calls)


class Keeping:
    def around_model(self, request: Any) -> Any:
        yield Record(Noted("keeping", {"what": object()}))
        return (yield request)


class OnceOnly:
    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def around_model(self, request: CallModel) -> Any:
        place = (request.conversation_id, len(request.turn.journal))
        reply = yield request
        again = place in self.seen
        self.seen.add(place)
        return replace(reply, text="Again?") if again else reply


class Mixing:
    """Keeps what belongs to one conversation where another one finds it."""

    request: Any = None

    def around_model(self, request: Any) -> Any:
        self.request = request
        yield Do(lambda: time.sleep(0.02))
        return (yield self.request)


class Moody:
    """Another answer in an event loop."""

    def around_model(self, request: Any) -> Any:
        reply = yield request
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return reply
        return replace(reply, text=f"{reply.text}!")


class Forging:
    def as_stored(self, fact: Any) -> Any:
        return Noted("forging", "x") if type(fact).__name__ == "ToolReturned" else fact

    def around_run(self, run: Any) -> Any:
        return (yield run)


class OneFilter:
    def around_run(self, run: Any) -> Any:
        return (yield run)

    def pieces(self) -> Any:
        return self

    def take(self, delta: TextDelta) -> list[TextDelta]:
        return [delta]

    def rest(self) -> list[TextDelta]:
        return []


class TextFilter(OneFilter):
    def pieces(self) -> Any:
        return TextFilter()

    def take(self, delta: TextDelta) -> Any:
        return [delta.text]


class Storing:
    store = "a database"


class Hiding:
    """Swallows the failure of the model, and leaves a conversation that cannot go on."""

    def around_model(self, request: Any) -> Any:
        try:
            return (yield request)
        except Exception:
            return None


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (Uncalled, "around_tool of .* must be a generator"),
        (lambda: Uncalled, "Uncalled is a class, not a layer"),
        (lambda: 42, "42 in layers is not a layer"),
        (Losing, r"around_round gives no answer to the calls \['c2'\]"),
        (Inventing, r"around_round answers the calls \['nobody'\], which nobody made"),
        (Misplacing, "around_round answers '.*' with .*: a ToolResult or ToolWaiting is due"),
        (Listing, "return the answers by call id"),
        (Talking, "instead of a Reply"),
        (Counting, "around_tool does not return what is due: ToolResult | ToolWaiting"),
        (Ending, "returned 'the end': return the result it was sent, or a Finished"),
        (Swapping, "around_tool answers another call than it was given"),
        (Misyielding, "yield the Call it received, a changed copy"),
        (Clinging, "around_tool yields, or raises, while it is closed"),
        (Translating, r"around_model turns an error of the inner step into KeyError\('oops'\)"),
        (Failing, "an ordinary call raises KeyError"),
        (Remembering, "it keeps state of its own"),
        (Patient, "it keeps state of its own"),
        (Numbering, "it keeps state of its own"),
        (Setting, "a note is not a JSON value"),
        (Keeping, "a note is not a JSON value"),
        (OnceOnly, "cannot be asked a second time with the same request"),
        (Mixing, "one conversation disturbs another one"),
        (Moody, "run and arun, or whole and streamed replies, give different conversations"),
        (Forging, "as_stored"),
        (OneFilter, "the same filter twice"),
        (TextFilter, "something other than TextDelta"),
        (Storing, "its store has no append, load, delete, list"),
        (Hiding, "around_model does not return what is due: Reply"),
    ],
)
def test_a_broken_promise_is_named(broken: Callable[[], Any], promise: str) -> None:
    with pytest.raises(BrokenPromise, match=promise):
        check_layer(broken)


class Awaiting:
    """A layer whose work is async, as a call of an async client is."""

    def around_model(self, request: Any) -> Any:
        yield Do(self.work)
        reply: Reply = yield request
        return reply

    async def work(self) -> None:
        await asyncio.sleep(0)


def test_a_layer_with_async_work_is_proved_for_arun_alone() -> None:
    with pytest.raises(BrokenPromise, match="work is async: use `await agent"):
        check_layer(Awaiting)
    check_layer(Awaiting, ways=["arun"])


def test_the_kit_works_inside_a_running_event_loop() -> None:
    async def checked() -> None:
        check_layer(layers.limits)

    asyncio.run(checked())


def test_what_makes_no_layer_is_refused() -> None:
    with pytest.raises(SetupError, match="check_layer takes what makes a layer, such as its class or a lambda, not 3"):
        check_layer(3)  # type: ignore[arg-type]
