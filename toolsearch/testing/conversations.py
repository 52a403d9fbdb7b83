"""The short conversations that the kit for layers plays, and what it notes of them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeAlias

from toolsearch import SetupError, ToolSearch, ToolSearchError, tool
from toolsearch.events.facts import Event, Noted, ToolWaiting
from toolsearch.events.requests import Answer, Approve, Call, CallModel, Decision, Finished, Round, Run
from toolsearch.loop.agent import Agent
from toolsearch.protocols import JournalStore, Layer, RoundSteps, ToolAnswer
from toolsearch.support.json_types import JsonObject
from toolsearch.testing.doubles import FixedIndex, ScriptedModel, ScriptedReply, ScriptedStep
from toolsearch.testing.promises import BrokenPromise, require

__all__ = [
    "Asker", "Journals", "Probe", "ProviderDown", "Request", "Way", "facts_of", "long_reply", "make_agent", "notes_of",
    "play_turn", "reply_to",
]  # fmt: skip

Way: TypeAlias = Literal["run", "arun"]
Request: TypeAlias = Run | Round | CallModel | Call

LONG = 12  # rounds of a long turn


class Probe:
    """A layer that notes what passes on one side of another layer; with `twice` it asks for each call again.

    `notes` are the notes of layers as they were made, before they are stored.
    """

    def __init__(self, twice: bool = False) -> None:
        self.passed: list[tuple[str, Request, object]] = []
        self.notes: list[Noted] = []
        self._twice = twice

    def as_stored(self, fact: Event) -> Event:
        if isinstance(fact, Noted):
            self.notes.append(fact)
        return fact

    def _pass(self, seam: str, request: Request, twice: bool = False) -> Generator[Any, Any, Any]:
        if twice:
            yield request
        answer = yield request
        self.passed.append((seam, request, answer))
        return answer

    def around_run(self, run: Run) -> Generator[Any, Any, Any]:
        return (yield from self._pass("around_run", run))

    def around_round(self, calls: Round) -> Generator[Any, Any, Any]:
        return (yield from self._pass("around_round", calls))

    def around_model(self, request: CallModel) -> Generator[Any, Any, Any]:
        return (yield from self._pass("around_model", request, self._twice))

    def around_tool(self, call: Call) -> Generator[Any, Any, Any]:
        return (yield from self._pass("around_tool", call, self._twice))


class Asker:
    """A layer that makes each call of `save` wait for a person, so that a turn is continued by another run."""

    def around_round(self, calls: Round) -> RoundSteps:
        waiting: dict[str, ToolAnswer] = {
            call.id: ToolWaiting(call.id, question="May it be saved?")
            for call in calls.calls
            if call.name == "save" and call.id not in calls.approved
        }
        rest = calls.without(waiting)
        return {**waiting, **((yield rest) if rest.calls else {})}


class Journals:
    """A small store."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def append(self, conversation_id: str, position: int, facts: Sequence[JsonObject]) -> None:
        with self._lock:
            journal = self._texts.setdefault(conversation_id, [])
            require(len(journal) == position, "two writers in one conversation")
            journal += [json.dumps(fact, allow_nan=False) for fact in facts]

    def load(self, conversation_id: str) -> list[dict[str, Any]]:
        return [json.loads(text) for text in self._texts.get(conversation_id, [])]

    def delete(self, conversation_id: str) -> bool:
        return self._texts.pop(conversation_id, None) is not None

    def list(self) -> list[str]:
        return [*self._texts]


def _look_up(what: str) -> str:
    """Look something up."""
    return f"found {what}"


def _save(what: str) -> str:
    """Save something."""
    return f"saved {what}"


def _break(what: str) -> str:
    """Break something."""
    raise ValueError(f"{what} is broken")


def reply_to(request: CallModel) -> ScriptedReply:
    """A search, a round of three calls, the answer; by the turn, so that asking again gives the same."""
    if request.purpose != "chat":
        return "A short summary."
    match len(request.turn.replies):
        case 0:
            return [("find", "search_tools", {"queries": ["everything"]})]
        case 1:
            calls = (("c1", "look_up", "a"), ("c2", "save", "b"), ("c3", "break", "c"))
            return [(call_id, name, {"what": what}) for call_id, name, what in calls]
        case _:
            return f"All is done: {request.turn.said}"


def long_reply(request: CallModel) -> ScriptedReply:
    """A search, then many rounds, two of them with a call that `Asker` lets wait; then the answer."""
    round_number = len(request.turn.replies)
    if request.purpose != "chat" or not 0 < round_number <= LONG:
        return reply_to(request) if round_number == 0 else f"All is done: {request.turn.said}"
    names = ["look_up", "break"] if round_number % 5 else ["look_up", "save"]
    return [(f"r{round_number}-{name}", name, {"what": f"{name} {round_number}"}) for name in names]


def make_agent(layers: Sequence[Layer], store: JournalStore, *script: ScriptedStep, pieces: int = 0) -> Agent:
    """An agent with three tools and these layers alone, whose model plays the script and then `reply_to`."""
    tools = [tool(_look_up, name="look_up"), tool(_save, name="save", kind="action"), tool(_break, name="break")]
    index = FixedIndex({"everything": ["look_up", "save", "break"]})
    search = ToolSearch(tools, index=index, mode="append")
    model = ScriptedModel(*script, *[reply_to] * 40, pieces=pieces)
    return Agent(model, search, layers=layers, store=store, defaults=False)


def play_turn(
    agent: Agent,
    way: Way,
    said: str = "Do it all.",
    conversation_id: str = "s",
    *,
    restarted: Callable[[], Agent] | None = None,
) -> str:
    """Plays one turn to its end and says how it ended; a person who is asked agrees.

    With `restarted`, another agent goes on where a turn has waited, as after a restart of the program.
    """
    words: str | None = said
    decisions: dict[str, Decision | bool] = {}
    for _ in range(3 * LONG):  # as often as a layer may ask in a long turn
        try:
            if way == "run":
                result = agent.run(words, conversation_id=conversation_id, decisions=decisions)
            else:
                turn = agent.arun(words, conversation_id=conversation_id, decisions=decisions)
                with ThreadPoolExecutor(1) as pool:  # the caller may be in an event loop of its own
                    result = pool.submit(asyncio.run, turn).result()
        except SetupError as error:
            raise BrokenPromise(str(error), f"agent.{way}(…) with this layer") from error
        except ToolSearchError as error:  # a layer may end a turn so, as `structured` does by AnswerError
            return f"raised {type(error).__name__}"
        except ProviderDown:
            return "raised what the model raised"
        if isinstance(result, Finished):
            return f"{result.reason}: {result.text}"
        waiting = result.waiting
        decisions = {each.id: Approve() if each.kind == "approval" else Answer("yes") for each in waiting}
        words = None
        agent = restarted() if restarted is not None else agent
    raise BrokenPromise("a turn never ends: what a person decided is asked again", f"agent.{way}(…) with this layer")


class ProviderDown(Exception):
    """What the model raises in a turn that fails."""


def notes_of(store: JournalStore, conversation_id: str = "s") -> list[str]:
    """What layers have noted in a conversation, in any order."""
    facts = [fact for fact in store.load(conversation_id) if fact["fact"] == "Noted"]
    return sorted(json.dumps([fact.get("layer"), fact.get("note")], sort_keys=True) for fact in facts)


def facts_of(store: JournalStore, conversation_id: str = "s") -> list[str]:
    """The facts of a conversation without times and random names; tools that ran at once end in any order."""
    changing = ("at", "seconds", "run", "session", "data", "expires_at", "usage", "note")
    facts = [{key: item for key, item in fact.items() if key not in changing} for fact in store.load(conversation_id)]
    return sorted(json.dumps(fact, sort_keys=True) for fact in facts)
