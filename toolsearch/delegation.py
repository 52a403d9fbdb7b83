"""Delegation: an agent as a tool of another agent, and the layer that adds up its usage and passes its questions on.

    helper = delegate(agent, "research", "Look something up and sum it up.")
    parent = Agent(model, ToolSearch([helper, …]), layers=[delegation()])

The agent that calls is the parent, the one that is called is the child. The id of the child's conversation is the
parent's id, a slash, and the id of the call; its journal is in the child's store. What the child had done before a
restart is not done again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, TypedDict

from toolsearch.calls import Caller, ToolContext, ToolResult, actor_of
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
from toolsearch.events.stops import REASONS
from toolsearch.loop.agent import Agent
from toolsearch.loop.conversation import Conversation
from toolsearch.protocols import Layer, Record, ToolSteps
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.threads import in_thread, start

__all__ = ["delegate", "delegation"]

Task = Annotated[str, "What to do, with all it takes to do it."]
PURPOSE = "delegated"  # of the rows that say what a child cost
LOOK_SECONDS = 0.1  # how often it is checked whether a child in a thread has to stop
_AGAIN = ("cancelled", "failed", "superseded")  # ends of a turn after which the task is worked on anew


@dataclass(slots=True)
class _Handover:
    """What the layer hands to the tool function, and gets back from it, for one call.

    It is in a context variable, which code that the tool starts inherits: `child` says whose it is.
    """

    child: str
    decided: ToolApproved | ToolDenied | None = None
    about: frozenset[str] = frozenset()  # the child's calls that the decision is about
    resumed: bool = False  # whether the call was begun before: a conversation of the child is then this call's
    rows: list[ModelCalled] = field(default_factory=list)


class _Request(TypedDict, total=False):
    """What the child is asked: keyword arguments of `Agent.stream` and `Agent.astream`."""

    conversation_id: str
    caller: Caller | None
    said: str
    decisions: dict[str, Decision]


_HANDOVER: ContextVar[_Handover | None] = ContextVar("toolsearch_handover", default=None)
_DEPTH: ContextVar[int] = ContextVar("toolsearch_depth", default=0)


# -- the tool ----------------------------------------------------------------------------------------------------


def delegate(agent: Agent, name: str, description: str, *, depth: int = 5) -> Tool:
    """An agent as a tool, which takes a `task` in words and returns the agent's answer; `data` is its `Finished`.

    The child acts for the same caller, so it sees no tool that the caller may not see, and it stops when the call is
    cancelled. If agents call each other more than `depth` deep, the call is refused. The tool is of the kind "read",
    because the child itself asks for approval of its own actions. It is marked `alone`; `tool(delegate(…),
    alone=False)` may run together with other calls. If the child can pause, the calling agent needs the layer
    `delegation()`.
    """
    checks.having("agent", agent, "an Agent", "stream", "astream", "conversation", "cancel")
    checks.text("name", name, empty=False)
    checks.text("description", description)
    checks.whole("depth", depth)
    run = _Delegate(agent, name, depth)
    return tool(run, name=name, description=description, kind="read", repeatable=True, alone=True)


class _Delegate:
    """An agent as a function: sync in a thread, or async, like the code that calls it."""

    def __init__(self, agent: Agent, name: str, depth: int) -> None:
        self.agent, self.name, self.depth = agent, name, depth

    def __call__(self, task: Task, context: ToolContext) -> ToolResult:
        if _DEPTH.get() >= self.depth:
            return synthetic.too_deep(self._judged(context), self.depth)
        child = _child_of(context.conversation_id, context.call_id)
        conversation = self.agent.conversation(child, caller=context.caller)
        handover = _handover_for(child)
        result = _earlier_result(conversation, handover)
        if result is None:
            ended, ending = threading.Event(), threading.Lock()
            start(partial(self._watch, child, context.cancelled, ended, ending))
            request = _request(conversation, handover, task, context)
            deeper = _DEPTH.set(_DEPTH.get() + 1)
            try:
                for event in self.agent.stream(**request):
                    result = _result_or_none(event, handover)
                    if context.cancelled.is_set():
                        self.agent.cancel(child)
            finally:
                _DEPTH.reset(deeper)
                with ending:
                    ended.set()
        return self._answer(context, result)

    async def call_async(self, task: str, context: ToolContext) -> ToolResult:
        """As the call, for async code: a cancelled task cancels the child."""
        if _DEPTH.get() >= self.depth:
            return synthetic.too_deep(self._judged(context), self.depth)
        child = _child_of(context.conversation_id, context.call_id)
        conversation = await in_thread(partial(self.agent.conversation, child, caller=context.caller))
        handover = _handover_for(child)
        result = _earlier_result(conversation, handover)
        if result is None:
            request = _request(conversation, handover, task, context)
            deeper = _DEPTH.set(_DEPTH.get() + 1)
            try:
                async for event in self.agent.astream(**request):
                    result = _result_or_none(event, handover)
            finally:
                _DEPTH.reset(deeper)
        return self._answer(context, result)

    def _watch(self, child: str, cancelled: threading.Event, ended: threading.Event, ending: threading.Lock) -> None:
        """Stops the child when the call is cancelled; the child may not have begun by then.

        Once the child has ended, nothing may be cancelled: its next turn has the same id.
        """
        while not cancelled.wait(LOOK_SECONDS):
            if ended.is_set():
                return
        while True:
            with ending:
                if ended.is_set() or self.agent.cancel(child):
                    return
            ended.wait(LOOK_SECONDS)

    def _answer(self, context: ToolContext, result: Finished | Paused | None) -> ToolResult:
        call = self._judged(context)
        if result is None:
            raise RuntimeError(f"the agent {self.name!r} ended without a result")
        if isinstance(result, Paused):
            return replace(synthetic.not_passed_on(call), data=result)
        if result.reason == "cancelled":
            return replace(synthetic.stopped(call, cancelled=True, begun=True), data=result)
        if not result.text or result.text == synthetic.without_answer(result.reason):
            return replace(synthetic.said_nothing(call, result.reason), data=result)
        if result.reason in REASONS:
            return replace(synthetic.half_said(call, result.reason, result.text), data=result)
        return ToolResult(call.id, call.name, "ok", result.text, result)

    def _judged(self, context: ToolContext) -> JudgedCall:
        return JudgedCall(context.call_id, self.name)

    def __repr__(self) -> str:
        return f"delegate({self.agent!r}, {self.name!r})"


def _child_of(conversation_id: str, call_id: str) -> str:
    """The id of the conversation that a call has with the child."""
    return f"{conversation_id}/{call_id}"


def _handover_for(child: str) -> _Handover:
    """What the layer hands on. Without the layer, a conversation of the child counts as this call's."""
    handover = _HANDOVER.get()
    return handover if handover is not None and handover.child == child else _Handover(child, resumed=True)


def _result_or_none(event: object, handover: _Handover) -> Finished | Paused | None:
    """The result, which is the last event of a stream. What the other events cost is written down."""
    if isinstance(event, ModelCalled):
        handover.rows.append(event)
    return event if isinstance(event, Finished | Paused) else None


def _earlier_result(conversation: Conversation, handover: _Handover) -> Finished | Paused | None:
    """The child's answer, if it finished before the parent's process could write the answer down."""
    if not handover.resumed or conversation.running or not conversation.journal:
        return None
    result = conversation.next()
    return result if isinstance(result, Finished) and result.reason not in _AGAIN else None


def _request(conversation: Conversation, handover: _Handover, task: str, context: ToolContext) -> _Request:
    """What the child is asked: to work on the task, or to go on where it stopped."""
    request: _Request = {"conversation_id": conversation.id, "caller": context.caller}
    if not (handover.resumed and conversation.running):
        return {**request, "said": task}
    about = [each for each in conversation.waiting if each.id in handover.about]
    return {**request, "decisions": _decisions(about, handover.decided) if about else {}}


def _decisions(waiting: list[Waiting], decided: ToolApproved | ToolDenied | None) -> dict[str, Decision]:
    """What the one decision about the parent's call means for each of the child's calls.

    An approval applies to all that wait for one, and a refusal to all; an answer goes to the first that asks something.
    """
    match decided:
        case ToolDenied() if not decided.expired:  # the child notices by itself that a question has expired
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


def _answer_of(answer: JsonObject) -> Answer:
    said = answer.get("said")
    message = None if said is None else UserSaid(str(said.get("text", "")), tuple(said.get("parts", ())))
    return Answer(str(answer.get("content", "")), answer.get("data"), message)


# -- the layer ---------------------------------------------------------------------------------------------------


def delegation() -> Layer:
    """A layer that makes a child's work part of the parent's turn.

    The cost of the child's model calls is recorded as "delegated", one row per model, so that `Finished.usage`, limits
    and quotas count it. If the child pauses, the parent's call waits, with the kind "delegated" and a question that
    contains the questions of the child's calls; `waiting.fact.data` has them one by one. `Approve` approves all of
    them, `Deny` declines all of them, and `Answer` answers a question. With changed arguments only one call can be
    approved, not several.
    """
    return _Delegation()


@dataclass(frozen=True)
class _Delegation:
    name: str = "delegation"

    def around_tool(self, call: Call) -> ToolSteps:
        judged, decided = call.judged, call.delegated
        if judged.kind != "tool":
            return (yield call)
        before = [e for e in call.turn.facts if isinstance(e, ToolStarted | ToolWaiting) and e.call_id == judged.id]
        asks = [e for e in before if isinstance(e, ToolWaiting) and e.kind == "delegated"]
        about = frozenset(each["id"] for each in asks[-1].data["waiting"]) if asks and decided else frozenset[str]()
        child = _child_of(call.conversation_id, judged.id)
        handover = _Handover(child, decided, about, any(isinstance(e, ToolStarted) for e in before))
        _HANDOVER.set(handover)
        try:
            result = yield call
        except Exception:  # a layer around the tool ended it, but what it cost until then counts
            for row in _rows(call, handover):
                yield Record(row)
            raise
        finally:
            _HANDOVER.set(None)
        for row in _rows(call, handover):
            yield Record(row)
        if isinstance(result, ToolResult) and isinstance(result.data, Paused):
            return self._waiting(judged, result.data)
        return result

    def _waiting(self, call: JudgedCall, paused: Paused) -> ToolWaiting:
        each = [
            {"id": w.id, "name": w.name, "kind": w.kind, "question": w.question, "arguments": w.arguments}
            for w in paused.waiting
        ]
        question = f"{call.name} asks: " + " ".join(f"({w.name}) {w.question}" for w in paused.waiting)
        ends = [w.fact.expires_at for w in paused.waiting if w.fact.expires_at is not None]
        data = {"session": paused.conversation_id, "waiting": each}
        return ToolWaiting(call.id, "delegated", question, self.name, min(ends, default=None), data)


def _rows(call: Call, handover: _Handover) -> Iterator[ModelCalled]:
    """What the child's model calls cost, one row per model, because each model has its own price."""
    models = dict.fromkeys(row.model for row in handover.rows)
    for model in models:
        rows = [row for row in handover.rows if row.model == model]
        usage = sum((row.usage for row in rows), Usage())
        yield ModelCalled(PURPOSE, model, usage, actor_of(call.caller), seconds=sum(row.seconds for row in rows))
    handover.rows.clear()
