"""The agent loop, written once: a generator that makes all decisions, and yields what it needs to have done.

    Emit(event)        show an event          Spawn(key, activity)   start something in the background
    Append(…)          store facts            Receive(seconds)       the next item posted, or None after so many seconds
    Abandon(key)       nobody waits for an activity any more

A driver (see `drivers`) does these things, with threads or with tasks, and nothing else.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from toolsearch.calls import Caller
from toolsearch.errors import SetupError
from toolsearch.events.facts import Event, RunBegan, RunEnded, ToolsRevealed, ToolsUnloaded, UserSaid
from toolsearch.events.requests import CallModel, CallTools, Finished, Paused, Run
from toolsearch.loop.activities import FunctionActivity
from toolsearch.loop.effects import Cancelled, Effects, InboxItem, Overdue
from toolsearch.loop.layering import Inner, layered
from toolsearch.loop.model_step import ModelStep
from toolsearch.loop.resumption import Resumption, RunRequest, stop_open_calls, take_up
from toolsearch.loop.round_step import RoundStep
from toolsearch.loop.turn_io import AgentParts, TurnIO
from toolsearch.support.text import reason_of

__all__ = ["Result", "TurnLoop"]

log = logging.getLogger("toolsearch")

Result = Finished | Paused
MOST_REFUSALS = 10  # requests of one turn that a provider may refuse because of a tool; then its error is raised


class TurnLoop:
    """One turn of a conversation."""

    def __init__(self, parts: AgentParts, request: RunRequest, post: Callable[[InboxItem], None]) -> None:
        self.id = request.conversation_id
        self._request = request
        self._io = TurnIO(parts, request.caller, post)
        self._own_calls: set[str] = set()  # ids of the calls whose reply came in this process

    def take(self, facts: Iterable[Event]) -> None:
        """Loads the journal so far. Raises `StateError` if the request does not fit it."""
        self._io.conversation = take_up(self._io.parts.search, facts, self._request, self._io.parts.model)

    def cancel(self) -> None:
        self._io.cancel()

    @property
    def caller(self) -> Caller | None:
        """Whom the turn is for."""
        return self._request.caller

    def steps(self) -> Effects[Result]:
        """The whole turn; returns its result."""
        io = self._io
        try:
            yield from self._begin()
            run = Run(self.id, io.caller, self._request.said, io.turn)
            around: Inner[Run] = layered(io.parts.layers, "around_run")
            result = yield from io.interpret(around(run), self._rounds)
            return (yield from self._end(result))
        except Cancelled:
            yield from self._close("cancelled")
            return _result(io.conversation.next())
        except GeneratorExit:
            raise
        except BaseException as error:
            try:
                yield from self._close("failed", reason_of(error))
            except Exception:
                log.exception("the end of the turn could not be stored")
            raise
        finally:
            io.cancelled.set()  # however the turn ended, nothing of it starts any more

    # -- the beginning and the end -------------------------------------------------------------------------------

    def _begin(self) -> Effects[None]:
        """Begins a turn, or continues one: applies decisions, or ends it for a new message."""
        io, conversation, said = self._io, self._io.conversation, self._request.said
        if notices := conversation.session.notices():
            yield from io.record(ToolsUnloaded(notices=tuple(notices), session=conversation.session.export()))
        if conversation.running:
            resumption = Resumption(conversation, io.actor, io.now)
            yield from io.resolve(resumption.apply_decisions(self._request.decisions))
            if said is None:
                return
            yield from io.resolve(resumption.decline_waiting())
            yield from self._stop("superseded")
        caller = io.caller or Caller()
        began = RunBegan(secrets.token_hex(8), io.now(), caller.user, caller.tenant)
        yield from io.record(began, replace(said or UserSaid(""), at=io.now()))
        if said is not None:
            yield from self._preselect()
        if conversation.session.has_directory and not conversation.has_session:  # so that its bytes outlive a restart
            yield from io.record(ToolsRevealed((), conversation.session.export()))

    def _preselect(self) -> Effects[None]:
        """Searches with the user's own words, as they are stored, and loads what fits, before the model is asked."""
        io, session, limit = self._io, self._io.conversation.session, self._io.parts.preselect
        words = _words_of(next(fact for fact in reversed(io.turn.facts) if isinstance(fact, UserSaid)))
        if not words or not session.preselects(limit):
            return
        before = {tool.id for tool in session.loaded}
        added: Any = yield from io.run_activity(FunctionActivity(partial(session.preselect, words, limit)))
        if added:
            new = tuple(tool.id for tool in session.loaded if tool.id not in before)
            brought = session.brought_with_message(new)
            yield from io.record(ToolsRevealed(new, session.export(), said=added, definitions=brought))

    def _end(self, result: object) -> Effects[Result]:
        """The result of the turn, after it is recorded in the journal."""
        if not isinstance(result, Finished | Paused):
            raise SetupError(f"around_run of a layer returned {result!r}: return the result it was sent, or a Finished")
        if isinstance(result, Paused) or not self._io.conversation.running:
            return result
        yield from self._stop(result.reason, result.text, result.value)
        return replace(result, conversation_id=self.id, usage=self._io.turn.usage)

    def _close(self, reason: str, text: str = "") -> Effects[None]:
        """As `_stop`, until everything is recorded, even if the consumer of the events stops meanwhile."""
        while True:
            try:
                return (yield from self._stop(reason, text))
            except Cancelled:
                continue  # open calls still get their answers; a driver raises this only once

    def _stop(self, reason: str, text: str = "", value: object = None) -> Effects[None]:
        """Ends the turn where it is. Every open call gets an answer, so that the conversation stays valid."""
        io = self._io
        if reason != "superseded":  # another turn follows at once
            io.cancelled.set()
        if io.is_torn or not io.conversation.running:
            return
        is_cancelled = reason == "cancelled"
        yield from io.resolve(stop_open_calls(io.conversation, io.started, io.performed, cancelled=is_cancelled))
        yield from io.record(RunEnded(reason, text, value, io.now()))

    # -- the rounds ----------------------------------------------------------------------------------------------

    def _rounds(self, _run: Run, seconds: float | None) -> Effects[Result]:
        io = self._io
        io.until = None if seconds is None else time.monotonic() + seconds
        begun_anew, refusals = False, 0
        try:
            while True:
                if io.was_compacted and not io.conversation.open:
                    yield from self._after_compaction()
                match command := io.conversation.next():
                    case CallModel() | CallTools() if io.cancelled.is_set():
                        raise Cancelled
                    case CallModel():
                        step = ModelStep(io, self._own_calls, not begun_anew, refusals < MOST_REFUSALS)
                        begun_anew = not (yield from step.run(command))
                        refusals += step.has_set_aside
                    case CallTools():
                        yield from RoundStep(io, self._own_calls).run(command)
                    case Finished() | Paused():
                        return command
        except Overdue:
            raise TimeoutError(f"the turn took longer than {seconds:g} s") from None
        finally:
            io.until = None

    def _after_compaction(self) -> Effects[None]:
        """Updates the loaded tools now: the provider's cache is lost anyway, so changes cost nothing."""
        self._io.was_compacted = False
        session = self._io.conversation.session
        before = [tool.id for tool in session.loaded]
        changes = session.after_compaction()
        session.notices()  # drop them: they say the same, and are reported once
        remaining = {tool.id for tool in session.loaded}
        gone = tuple(i for i in before if i not in remaining)
        yield from self._io.record(ToolsUnloaded(gone, tuple(changes), session.export()))


def _words_of(said: UserSaid) -> str:
    """What the user wrote, in the text and in further parts that are text."""
    parts = [part for part in said.parts if part.get("type") in ("text", "input_text")]
    return "\n".join([said.text, *(str(part.get("text") or "") for part in parts)]).strip()


def _result(command: object) -> Result:
    """The result of a turn that has ended."""
    if not isinstance(command, Finished | Paused):
        raise RuntimeError(f"the turn has ended, but the conversation asks for {command!r}")
    return command
