"""Delegation: an agent as a tool of another, and the layer that adds up its usage and passes its questions on.

    helper = delegate(agent, "research", "Look something up and sum it up.")
    parent = Agent(model, ToolSearch([helper, …]), layers=[delegation()])

The child's conversation is the parent's id, a slash, and the id of the call; its journal is in the child's
store. What it has done by a restart is not done again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from toolsearch.calls import ToolContext, ToolResult
from toolsearch.catalog.tools import Tool, tool
from toolsearch.events import synthetic
from toolsearch.events.facts import (
    JudgedCall,
    ModelCalled,
    ToolApproved,
    ToolDenied,
    ToolStarted,
    ToolWaiting,
    Usage,
    UserSaid,
)
from toolsearch.events.requests import Answer, Approve, Call, Decision, Deny, Finished, Paused, Waiting
from toolsearch.protocols import Record, ToolSteps
from toolsearch.support import checks
from toolsearch.support.threads import in_thread, start

if TYPE_CHECKING:
    from toolsearch.loop.agent import Agent
    from toolsearch.loop.conversation import Conversation

__all__ = ["delegate", "delegation"]

Task = Annotated[str, "What to do, with all it takes to do it."]
PURPOSE = "delegated"  # of the rows that say what a child cost
LOOK_SECONDS = 0.1  # how often a child in a thread is asked whether it is to stop
_AGAIN = ("cancelled", "failed", "superseded")  # the ends of a turn that has to be made anew


@dataclass(slots=True)
class _Handed:
    """What the layer hands to the tool function, and gets back from it, for one call.

    It is found in the context, which also what the tool itself starts has: `of` says whose it is.
    """

    of: str
    decided: ToolApproved | ToolDenied | None = None
    about: frozenset[str] = frozenset()  # the child's calls that the decision is about
    resumed: bool = False  # whether the call was begun before: what there is of the child is this call's
    rows: list[ModelCalled] = field(default_factory=list)


_HANDED: ContextVar[_Handed | None] = ContextVar("toolsearch_handed", default=None)
_DEPTH: ContextVar[int] = ContextVar("toolsearch_depth", default=0)


# -- the tool ----------------------------------------------------------------------------------------------------


def delegate(agent: Agent, name: str, description: str, *, depth: int = 5) -> Tool:
    """An agent as a tool, which takes a `task` in words and gives its answer; `data` is its `Finished`.

    The child acts for the same caller, so that it sees no tool the caller may not see, and it stops when the call is
    cancelled. Below `depth` agents that call each other the call is refused. The tool is of the kind "read", for the
    child's own actions are its own to gate, and `alone`; `tool(delegate(…), alone=False)` may run beside others. Where
    the child pauses, `delegation()` has to be among the layers of the agent that calls it.
    """
    checks.having("agent", agent, "an Agent", "stream", "astream", "conversation", "cancel")
    checks.text("name", name, empty=False)
    checks.text("description", description)
    checks.whole("depth", depth)
    run = _Delegate(agent, name, depth)
    return tool(run, name=name, description=description, kind="read", repeatable=True, alone=True)


class _Delegate:
    """An agent as a function: sync in a thread, or async, as whoever calls it is."""

    def __init__(self, agent: Agent, name: str, depth: int) -> None:
        self.agent, self.name, self.depth = agent, name, depth

    def __call__(self, task: Task, context: ToolContext) -> ToolResult:
        if _DEPTH.get() >= self.depth:
            return synthetic.too_deep(self._asked(context), self.depth)
        child = _child(context)
        found = self.agent.conversation(child, caller=context.caller)
        handed = _handed(child)
        result: Any = _settled(found, handed)
        if result is None:
            ended = threading.Event()
            start(partial(self._watch, child, context.cancelled, ended))
            given = _given(found, handed, task, context)
            deeper = _DEPTH.set(_DEPTH.get() + 1)
            try:
                for result in self.agent.stream(**given):
                    _count(result, handed)
            finally:
                _DEPTH.reset(deeper)
                ended.set()
        assert result is not None  # a stream ends with its result
        return self._answer(context, result)

    async def call_async(self, task: str, context: ToolContext) -> ToolResult:
        """As the call, for async code: a cancelled task cancels the child."""
        if _DEPTH.get() >= self.depth:
            return synthetic.too_deep(self._asked(context), self.depth)
        child = _child(context)
        found = await in_thread(partial(self.agent.conversation, child, caller=context.caller))
        handed = _handed(child)
        result: Any = _settled(found, handed)
        if result is None:
            given = _given(found, handed, task, context)
            deeper = _DEPTH.set(_DEPTH.get() + 1)
            try:
                async for result in self.agent.astream(**given):
                    _count(result, handed)
            finally:
                _DEPTH.reset(deeper)
        assert result is not None  # a stream ends with its result
        return self._answer(context, result)

    def _watch(self, child: str, cancelled: threading.Event, ended: threading.Event) -> None:
        """Stops the child when the call is cancelled; the child may not have begun by then."""
        while not ended.wait(LOOK_SECONDS):
            if cancelled.is_set() and self.agent.cancel(child):
                return

    def _answer(self, context: ToolContext, result: Finished | Paused) -> ToolResult:
        call = self._asked(context)
        if isinstance(result, Paused):
            return replace(synthetic.not_passed_on(call), data=result)
        if result.reason == "cancelled":
            return replace(synthetic.stopped(call, cancelled=True, begun=True), data=result)
        if not result.text:
            return replace(synthetic.said_nothing(call, result.reason), data=result)
        return ToolResult(call.id, call.name, "ok", result.text, result)

    def _asked(self, context: ToolContext) -> JudgedCall:
        return JudgedCall(context.call_id, self.name)

    def __repr__(self) -> str:
        return f"delegate({self.agent!r}, {self.name!r})"


def _child(context: ToolContext) -> str:
    return f"{context.conversation_id}/{context.call_id}"


def _handed(child: str) -> _Handed:
    """What the layer hands on; without it, what there is of the child counts as this call's."""
    handed = _HANDED.get()
    return handed if handed is not None and handed.of == child else _Handed(child, resumed=True)


def _count(shown: Any, handed: _Handed) -> None:
    if isinstance(shown, ModelCalled):
        handed.rows.append(shown)


def _settled(found: Conversation, handed: _Handed) -> Finished | None:
    """The child's answer, where it was given before whoever had asked for it could write it down."""
    if not handed.resumed or found.running or not found.journal:
        return None
    ended = found.next()
    return ended if isinstance(ended, Finished) and ended.reason not in _AGAIN else None


def _given(found: Conversation, handed: _Handed, task: str, context: ToolContext) -> dict[str, Any]:
    """What the child is asked: to work on the task, or to go on where it stopped."""
    given: dict[str, Any] = {"conversation_id": found.id, "caller": context.caller}
    if not (handed.resumed and found.running):
        return {**given, "said": task}
    about = [each for each in found.waiting if each.id in handed.about]
    return {**given, "decisions": _decisions(about, handed.decided) if about else {}}


def _decisions(waiting: list[Waiting], decided: ToolApproved | ToolDenied | None) -> dict[str, Decision]:
    """What the one decision about the parent's call means for each of the child's.

    An approval is for all that wait for one, a refusal for all; an answer goes to the first that asks something.
    """
    match decided:
        case ToolDenied() if not decided.expired:  # an expired one the child finds out by itself
            return {each.id: Deny(decided.reason) for each in waiting}
        case ToolApproved() if decided.answer is not None:
            first = next((each for each in waiting if each.kind != "approval"), waiting[0])
            return {first.id: _answer_of(decided.answer)}
        case ToolApproved():
            gated = [each for each in waiting if each.kind in ("approval", "delegated")] or waiting
            if decided.arguments is not None and len(gated) > 1:
                return {each.id: Deny("changed arguments were given for several calls at once") for each in gated}
            return {each.id: Approve(decided.arguments, decided.remember) for each in gated}
        case _:
            return {}


def _answer_of(told: Mapping[str, Any]) -> Answer:
    said = told.get("said")
    message = None if said is None else UserSaid(str(said.get("text", "")), tuple(said.get("parts", ())))
    return Answer(str(told.get("content", "")), told.get("data"), message)


# -- the layer ---------------------------------------------------------------------------------------------------


def delegation() -> Any:
    """A layer that makes a child's work part of the parent's turn.

    What its model calls cost is written down as "delegated", one row a model, so that `Finished.usage`, limits and
    quotas count it. Where the child pauses, the parent's call waits, with the kind "delegated" and a question that
    names what the child's calls ask; `waiting.fact.data` has these one by one. `Approve` approves all of them, `Deny`
    declines them, `Answer` is the answer to a question; with changed arguments one call can be approved, not several.
    """
    return _Delegation()


@dataclass(frozen=True)
class _Delegation:
    name: str = "delegation"

    def around_tool(self, call: Call) -> ToolSteps:
        asked, decided = call.judged, call.delegated
        if asked.kind != "tool":
            return (yield call)
        before = [e for e in call.turn.facts if isinstance(e, ToolStarted | ToolWaiting) and e.call_id == asked.id]
        asks = [e for e in before if isinstance(e, ToolWaiting) and e.kind == "delegated"]
        about = frozenset(each["id"] for each in asks[-1].data["waiting"]) if asks and decided else frozenset[str]()
        child = f"{call.conversation_id}/{asked.id}"
        handed = _Handed(child, decided, about, any(isinstance(e, ToolStarted) for e in before))
        _HANDED.set(handed)
        try:
            result = yield call
        except Exception:  # a layer around the tool ended it: what it cost, it cost
            for row in _rows(call, handed):
                yield Record(row)
            raise
        finally:
            _HANDED.set(None)
        for row in _rows(call, handed):
            yield Record(row)
        if isinstance(result, ToolResult) and isinstance(result.data, Paused):
            return self._waiting(asked, result.data)
        return result

    def _waiting(self, asked: JudgedCall, paused: Paused) -> ToolWaiting:
        each = [
            {"id": w.id, "name": w.name, "kind": w.kind, "question": w.question, "arguments": w.arguments}
            for w in paused.waiting
        ]
        question = f"{asked.name} asks: " + " ".join(f"({w.name}) {w.question}" for w in paused.waiting)
        ends = [w.fact.expires_at for w in paused.waiting if w.fact.expires_at is not None]
        data = {"session": paused.conversation_id, "waiting": each}
        return ToolWaiting(asked.id, "delegated", question, self.name, min(ends, default=None), data)


def _rows(call: Call, handed: _Handed) -> Iterable[ModelCalled]:
    """What the child's model calls cost, one row a model: a price is one of a model."""
    actor = (call.caller.user if call.caller else None) or ""
    models = dict.fromkeys(row.model for row in handed.rows)
    for model in models:
        mine = [row for row in handed.rows if row.model == model]
        spent = sum((row.usage for row in mine), Usage())
        yield ModelCalled(PURPOSE, model, spent, actor, seconds=sum(row.seconds for row in mine))
    handed.rows.clear()
