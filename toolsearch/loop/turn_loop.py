"""The agent loop, written once: a generator that yields what it needs and holds all there is to decide.

    Emit(event)      show an event          Spawn(key, activity)   run something beside; what it posts carries the key
    Store(…)         keep facts             Receive(seconds)       the next item posted, or None after so many seconds

A driver (see `agent`) does these, with threads or with tasks, and knows nothing else. Facts are taken in and stored in
the driver's thread only; what comes in late, after a time-out or a cancellation, is dropped.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolsearch.calls import Caller, ToolResult
from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.facts import (
    Compacted,
    Event,
    JudgedCall,
    ModelCalled,
    ModelReplied,
    Reply,
    ReplyDiscarded,
    RunBegan,
    RunEnded,
    ToolReturned,
    ToolsRevealed,
    ToolStarted,
    ToolsUnloaded,
    ToolWaiting,
    Usage,
    UserSaid,
)
from toolsearch.events.requests import Call, CallModel, CallTools, Finished, Paused, Round, Run, mark_shown
from toolsearch.events.turn_view import TurnView
from toolsearch.loop.activities import Activity, FunctionActivity, ModelActivity, Outcome, ToolActivity
from toolsearch.loop.conversation import Conversation
from toolsearch.loop.effects import CANCEL, Cancelled, Drop, Emit, Item, Overdue, Receive, Spawn, Store
from toolsearch.loop.layering import Perform, layered
from toolsearch.loop.resumption import Resolution, Resumption, RunRequest, has_changed, left_over, stopped, taken
from toolsearch.protocols import Do, Record, Sleep
from toolsearch.tool_search import ToolSearch

__all__ = ["Program", "Result", "TurnLoop"]

log = logging.getLogger("toolsearch")

Result = Finished | Paused


@dataclass(frozen=True, slots=True)
class Program:
    """What an agent is made of."""

    model: Callable[[CallModel], Any]
    search: ToolSearch
    system: str
    layers: list[Any]
    observers: list[Callable[[Any], Any]]
    clock: Callable[[], float]

    @property
    def model_name(self) -> str:
        return str(getattr(self.model, "name", None) or "")


Ops = Generator[Any, Any, Any]
AGAIN = object()  # in the place of a reply


class TurnLoop:
    """One turn of a conversation."""

    def __init__(self, program: Program, wish: RunRequest, post: Callable[[Item], None]) -> None:
        self.id = wish.conversation_id
        self.program = program
        self.wish, self.caller = wish, wish.caller
        self.flag = threading.Event()  # that the turn is cancelled; tools see it
        self._post = post
        self._keys = 0
        self._shown = False  # whether pieces of the reply that is coming in were shown
        self._own: set[str] = set()  # calls whose reply came in this process
        self._started: set[str] = set()  # calls that this process has begun
        self._torn = False  # whether a store refused facts: what is kept is not what this turn knows
        self._given: Any = None  # what a model said in the last reply that has a message of the provider's own
        self._compacted = False  # whether the transcript was cut since the session was told
        self._redactors = [layer.as_stored for layer in program.layers if hasattr(layer, "as_stored")]
        self._unasked = False  # whether a reply is wanted, and the model was not asked for it yet
        self._anew = False  # whether the request was begun anew, which happens once
        self._until: float | None = None  # when the turn's own time is over
        self.conversation: Conversation

    def take(self, facts: Iterable[Event]) -> None:
        """Takes the journal so far. Raises `StateError` where there is nothing to do."""
        self.conversation = taken(self.program.search, facts, self.wish)

    def cancel(self) -> None:
        self.flag.set()
        self._post(CANCEL)

    # -- the loop ------------------------------------------------------------------------------------------------

    def steps(self) -> Ops:
        """The whole turn; returns its result."""
        try:
            yield from self._take_up()
            steps = layered(self.program.layers, "around_run")(Run(self.id, self.caller, self.wish.said, self.turn))
            result = yield from self._interpret(steps, self._rounds)
            return (yield from self._ended(result))
        except Cancelled:
            yield from self._closed("cancelled")
            return self.conversation.next()
        except GeneratorExit:
            raise
        except BaseException as error:
            try:
                yield from self._closed("failed", f"{type(error).__name__}: {error}"[:2_000])
            except Exception:
                log.exception("the end of the turn could not be stored")
            raise

    def _ended(self, result: Any) -> Ops:
        """The result of the turn, as it is in the journal."""
        if not isinstance(result, Finished | Paused):
            raise SetupError(
                f"a layer around the run gave {result!r} where what it yielded for, or a Finished, is needed"
            )
        if isinstance(result, Paused) or not self.conversation.running:
            return result
        yield from self._stopped(result.reason, result.text, result.value)
        return replace(result, conversation_id=self.id, usage=self.turn.usage)

    def _rounds(self, run: Run, seconds: float | None) -> Ops:
        del run
        self._until = None if seconds is None else time.monotonic() + seconds
        try:
            while True:
                if self._compacted and not self.conversation.open:
                    yield from self._recache()
                match command := self.conversation.next():
                    case CallModel() | CallTools() if self.flag.is_set():
                        raise Cancelled
                    case CallModel():
                        yield from self._reply(command)
                    case CallTools():
                        yield from self._round(command)
                    case _:
                        return command
        except Overdue:
            raise TimeoutError(f"the turn took longer than {seconds:g} s") from None
        finally:
            self._until = None

    def _recache(self) -> Ops:
        """After a compaction the provider's cache is lost: what has changed about the loaded tools is shown now."""
        self._compacted = False
        session = self.conversation.session
        before = [tool.id for tool in session.loaded]
        told = session.after_compaction()
        session.notices()  # the same, to be told once
        kept = {tool.id for tool in session.loaded}
        gone = tuple(i for i in before if i not in kept)
        yield from self._record(ToolsUnloaded(gone, tuple(told), session.export()))

    def _take_up(self) -> Ops:
        """Begins the turn, or goes on with one: decisions, and what another process left open."""
        conversation = self.conversation
        if told := conversation.session.notices():
            state = conversation.session.export()
            yield from self._record(ToolsUnloaded(told=tuple(told), session=state))
        if conversation.running:
            again = Resumption(conversation, self._actor, self._now)
            yield from self._settle(again.decided(self.wish.decisions))
            if self.wish.said is None:
                return
            yield from self._settle(again.superseded())
            yield from self._stopped("superseded")
        caller = self.caller or Caller()
        began = RunBegan(secrets.token_hex(8), self._now(), caller.user, caller.tenant)
        yield from self._record(began, replace(self.wish.said or UserSaid(""), at=self._now()))

    def _closed(self, reason: str, text: str = "") -> Ops:
        """As `_stopped`, to its end, even if whoever reads the events leaves meanwhile."""
        while True:
            try:
                return (yield from self._stopped(reason, text))
            except Cancelled:
                continue  # what is open still gets its answer; a driver says so once

    def _stopped(self, reason: str, text: str = "", value: Any = None) -> Ops:
        """Ends the turn where it is: every open call gets an answer, so that the conversation is whole."""
        if reason != "superseded":  # another turn follows at once
            self.flag.set()
        if self._torn or not self.conversation.running:
            return
        yield from self._settle(stopped(self.conversation, self._started, cancelled=reason == "cancelled"))
        yield from self._record(RunEnded(reason, text, value, self._now()))

    # -- the model -----------------------------------------------------------------------------------------------

    def _reply(self, command: CallModel) -> Ops:
        """One reply: through the layers, then into the journal with what is settled about its calls."""
        program, session = self.program, self.conversation.session
        system = "\n\n".join(filter(None, (program.system, session.instructions())))
        name, takes_schema = program.model_name, getattr(program.model, "takes_schema", False) is True
        request = replace(command, system=system, caller=self.caller, takes_schema=takes_schema, model=name)
        steps = layered(program.layers, "around_model")(request)
        self._unasked, self._anew = not self._anew, False
        try:
            reply = yield from self._interpret(steps, self._ask_model)
            if reply is AGAIN:
                self._anew = True
                return
            if not isinstance(reply, Reply):
                raise SetupError(f"the model, or a layer around it, gave {reply!r} where a Reply is needed")
        except Exception as error:
            yield from self._discarded(type(error).__name__)
            raise
        finally:
            self._unasked = False
        asked = self.conversation.decide_calls(reply.calls)
        self._own |= {call.id for call in asked}
        # What a layer has changed must not come back with the provider's own message.
        raw = reply.raw if _said(reply) == self._given else None
        replied = ModelReplied(
            reply.text or "", asked, reply.reasoning or "", raw, reply.wire, reply.model, reply.stop, reply.value
        )
        self._shown = False
        yield from self._record(replied)
        if revealed := tuple(dict.fromkeys(i for call in asked for i in call.reveal)):
            session.load(revealed)
            yield from self._record(ToolsRevealed(revealed, session.export()))

    def _ask_model(self, request: CallModel, seconds: float | None) -> Ops:
        """One call of the model; its cost is recorded whatever comes of it."""
        helps = request.purpose != "chat"  # its reply is nothing a user sees
        if not helps:
            yield from self._discarded("refused")
        self._unasked &= helps
        began, stop = time.monotonic(), threading.Event()
        layers = self.program.layers
        hidden = helps or any(getattr(layer, "buffers", False) for layer in layers)
        pieces = [] if hidden else [layer.pieces() for layer in reversed(layers) if hasattr(layer, "pieces")]
        try:
            activity = ModelActivity(self.program.model, request, stop)
            reply = yield from self._beside(activity, seconds, silent=hidden, pieces=pieces)
        except GeneratorExit:
            raise
        except BaseException as error:
            stop.set()
            cancelled = isinstance(error, Cancelled)
            why = "cancelled" if cancelled else f"{type(error).__name__}: {error}"[:500]
            mark_shown(error, self._shown and not helps)
            yield from self._billed(request, None, why, began)
            if not helps:
                yield from self._discarded("cancelled" if cancelled else type(error).__name__)
            raise
        yield from self._billed(request, reply, "", began)
        if isinstance(reply, Reply) and reply.raw is not None:
            self._given = _said(reply)
        return reply

    def _discarded(self, reason: str) -> Ops:
        """Says that what was shown of a reply counts for nothing, if anything was."""
        if self._shown:
            self._shown = False
            yield from self._show(ReplyDiscarded(reason))

    def _billed(self, request: CallModel, reply: Reply | None, error: str, began: float) -> Ops:
        usage = replace(reply.usage, calls=1) if isinstance(reply, Reply) else Usage(calls=1)
        model = reply.model if isinstance(reply, Reply) else self.program.model_name
        seconds = time.monotonic() - began
        yield from self._record(
            ModelCalled(request.purpose, str(model), usage, self._actor, error, seconds, self._now())
        )

    # -- calls ---------------------------------------------------------------------------------------------------

    def _round(self, command: CallTools) -> Ops:
        """Answers the open calls: what the layers settle, and what runs."""
        yield from self._settle(left_over(command))
        still = {call.id for call in self.conversation.open}
        calls = tuple(call for call in command.calls if call.id in still)
        if not calls:
            return
        catalog = self.program.search.catalog
        tools = {call.id: tool for call in calls if call.tool and (tool := catalog.get(call.tool)) is not None}
        request = Round(
            calls, self.turn, self.id, self.caller, command.approved, tools, self._now(), delegated=command.delegated
        )
        steps = layered(self.program.layers, "around_round", failed=_failed_gate)(request)
        answers = yield from self._interpret(steps, self._execute)
        still = {call.id for call in self.conversation.open}
        waits = {each.id for each in self.conversation.waiting}
        for call in calls:
            answer = answers.get(call.id) if isinstance(answers, Mapping) else None
            if call.id not in still or (call.id in waits and not isinstance(answer, ToolResult)):
                continue
            if isinstance(answer, ToolWaiting):
                yield from self._record(replace(answer, call_id=call.id, at=self._now()))
            elif isinstance(answer, ToolResult):
                yield from self._answer(call, answer)
            else:
                yield from self._answer(call, synthetic.unanswered(call))

    def _execute(self, request: Round, seconds: float | None) -> Ops:
        """Runs what the layers let through, and returns all answers."""
        results: dict[str, ToolResult | ToolWaiting] = {}
        running, request = [], replace(request, turn=self.turn)
        for call in request.calls:
            if call.kind == "answered":
                result = ToolResult(call.id, call.name, call.status, call.answer)
                yield from self._answer(call, result)
                results[call.id] = result
            elif has_changed(call, request, self._own, self.conversation):
                results[call.id] = result = synthetic.changed(call)
                yield from self._answer(call, result)
            else:
                running.append(request.call(call))
        reply = self.turn.replies[-1]
        if any(call.marks.alone for call in reply.calls):
            stages = [[[call]] for call in running]
        else:
            searches = [call for call in running if call.judged.kind == "search"]
            jobs = [[call] for call in running if call.judged.kind != "search"]
            stages = [[searches, *jobs] if searches else jobs] if running else []
        for stage in stages:
            results |= yield from self._stage(stage, seconds)
        return results

    def _stage(self, jobs: Sequence[Sequence[Call]], seconds: float | None) -> Ops:
        """Runs jobs beside each other, the calls of each in order. Searches are one job: their order counts."""
        now = self._now()
        calls = {call.judged.id: call for job in jobs for call in job}
        self._started |= calls.keys()
        yield from self._record(*(ToolStarted(call_id, now) for call_id in calls))
        keys = {}
        for job in jobs:
            keys[self._key()] = job
            activity = ToolActivity(self.program.layers, self.conversation.session, tuple(job), seconds, self.flag)
            yield Spawn(self._keys, activity)
        results: dict[str, ToolResult | ToolWaiting] = {}
        while keys:
            item = yield from self._receive()
            if item is None or item.key not in keys:
                continue
            if item.done:
                if isinstance(item.error, SetupError):  # of a layer; a tool's own is an answer
                    raise item.error
                for call in keys.pop(item.key):
                    if call.judged.id not in results:  # whoever ran it ended without an answer
                        error = item.error or RuntimeError("it ended without an answer")
                        results[call.judged.id] = failure = synthetic.failed(call.judged, error)
                        yield from self._answer(call.judged, failure)
            elif isinstance(item.posted, Outcome):
                outcome: Outcome = item.posted
                results[outcome.call.id] = outcome.result
                if outcome.found is not None:
                    yield from self._record(outcome.found)
                if isinstance(outcome.result, ToolWaiting):  # begun, and now waits
                    yield from self._record(replace(outcome.result, call_id=outcome.call.id, at=self._now()))
                else:
                    yield from self._answer(outcome.call, outcome.result, outcome.seconds)
            else:
                yield from self._record(item.posted)
        return results

    # -- helpers -------------------------------------------------------------------------------------------------

    @property
    def turn(self) -> TurnView:
        return self.conversation.turn

    @property
    def _actor(self) -> str:
        return (self.caller.user if self.caller else None) or ""

    def _now(self) -> float:
        return self.program.clock()

    def _key(self) -> int:
        self._keys += 1
        return self._keys

    def _record(self, *events: Event) -> Ops:
        """Takes facts in, stores them, and shows them; what a layer redacts is redacted before all that."""
        position = len(self.conversation.journal)
        for redact in self._redactors:
            events = tuple([redact(event) for event in events])
        kept = tuple([self.conversation.apply(self._timed(event)) for event in events])
        try:
            yield Store(position, kept)
        except Exception:
            self._torn = True
            raise
        self._compacted |= any(isinstance(event, Compacted) for event in kept)
        for event in kept:  # all are observed, even if whoever reads the stream leaves at the first
            self._observed(event)
        for event in kept:
            yield Emit(event)

    def _show_pieces(self, deltas: Iterable[Any]) -> Ops:
        for delta in deltas:
            self._shown = True
            yield from self._show(delta)

    def _show(self, event: Any) -> Ops:
        self._observed(event)
        yield Emit(event)

    def _timed(self, event: Event) -> Event:
        """A fact of a layer, which knows no time, gets it here."""
        untimed: Any = event
        return replace(untimed, at=self._now()) if getattr(event, "at", None) == 0.0 else event

    def _observed(self, event: Any) -> None:
        for observer in self.program.observers:
            try:
                observer(event)
            except Exception:
                log.exception("the observer %r failed", observer)

    def _settle(self, settled: Iterable[Resolution]) -> Ops:
        """Writes down what becomes of calls, one after the other."""
        for each in settled:
            answer = [] if each.result is None else [self._returned(each.call, each.result, by=each.by)]
            yield from self._record(*each.facts, *answer)

    def _answer(self, call: JudgedCall, result: ToolResult, seconds: float = 0.0) -> Ops:
        yield from self._record(self._returned(call, result, seconds))

    def _returned(self, call: JudgedCall, result: ToolResult, seconds: float = 0.0, by: str = "") -> ToolReturned:
        data = result.data if _is_plain(result.data) else None
        by = by or ("" if call.id in self._started else "layer")
        return ToolReturned(call.id, result.status, result.content, data, by, seconds, self._now())

    def _interpret(self, steps: Generator[Any, Any, Any], perform: Callable[[Any, float | None], Ops]) -> Ops:
        """Does what layers ask for; `perform` is the innermost step."""
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                wanted = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value
            answer = error = None
            try:
                match wanted:
                    case Sleep():
                        yield from self._pause(wanted.seconds)
                    case Do():
                        answer = yield from self._beside(FunctionActivity(wanted.function), wanted.seconds)
                    case Record():
                        answer = yield from self._record(wanted.event)
                        if self._unasked and isinstance(wanted.event, Compacted):
                            steps.close()  # the request shows what is shown no more: it is made anew
                            return AGAIN
                    case Perform():
                        answer = yield from perform(wanted.request, wanted.seconds)
                    case _:
                        pass
            except (GeneratorExit, Cancelled):
                steps.close()
                raise
            except BaseException as raised:
                error = raised

    def _receive(self, seconds: float | None = None) -> Ops:
        """The next item, or None after so many seconds. Raises where the turn is to stop, or its time is over."""
        left = None if self._until is None else max(0.0, self._until - time.monotonic())
        first = left is not None and (seconds is None or left < seconds)
        item = yield Receive(left if first else seconds)
        if item is CANCEL:
            raise Cancelled
        if item is None and first:
            raise Overdue
        return item

    def _pause(self, seconds: float) -> Ops:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            yield from self._receive(left)

    def _beside(
        self, activity: Activity, seconds: float | None = None, *, silent: bool = False, pieces: Sequence[Any] = ()
    ) -> Ops:
        """Runs one activity and waits for it; shows what it posts, as `pieces` leave it, unless `silent`."""
        key = self._key()
        until = None if seconds is None else time.monotonic() + seconds
        yield Spawn(key, activity)
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            item = yield from self._receive(left)
            if item is None and left is not None:
                yield Drop(key)
                raise TimeoutError(f"no answer within {seconds:g} s")
            if item is None or item.key != key:
                continue
            if not item.done:
                if not silent:
                    yield from self._show_pieces(_through(pieces, [item.posted]))
            elif isinstance(item.error, GeneratorExit):  # of the activity; nobody closes this generator
                raise RuntimeError("it raised GeneratorExit") from item.error
            elif item.error is not None:
                raise item.error
            else:
                yield from self._show_pieces(_through(pieces, [], ended=True))
                return item.value


def _through(pieces: Sequence[Any], deltas: list[Any], *, ended: bool = False) -> list[Any]:
    """What layers leave of deltas, the innermost first; at the end of a reply also what they held back."""
    for each in pieces:
        deltas = [left for delta in deltas for left in each.take(delta)] + (each.rest() if ended else [])
    return deltas


def _said(reply: Reply) -> tuple[Any, ...]:
    return reply.text, reply.reasoning, tuple(call.id for call in reply.calls)


def _failed_gate(layer: Any, request: Any, error: BaseException) -> Any:
    """What a gate's failure means: nothing it was to judge may run. Other failures, the program's own, end the turn."""
    if isinstance(error, SetupError) or not getattr(layer, "gate", False) or not isinstance(request, Round):
        raise error
    log.error("the gate %r failed: what it was to judge is declined", layer, exc_info=error)
    return {call.id: synthetic.gate_failed(call) for call in request.calls}


def _is_plain(value: Any) -> bool:
    """Whether a value can be stored as it is; one that is nested without end cannot."""
    try:
        return _is_json(value)
    except RecursionError:
        return False


def _is_json(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    return (
        value is None
        or isinstance(value, str | int | float)
        or (isinstance(value, list | tuple) and all(map(_is_json, value)))
    )
