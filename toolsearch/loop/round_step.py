"""One round: the open calls of a reply go through the layers, and the rest of them run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolsearch.calls import ToolResult
from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.facts import JudgedCall, ToolStarted, ToolWaiting
from toolsearch.events.requests import Call, CallTools, Round
from toolsearch.loop.activities import CallOutcome, ToolActivity
from toolsearch.loop.effects import Effects, InboxItem
from toolsearch.loop.layering import layered, name_of
from toolsearch.loop.resumption import answer_left_over
from toolsearch.loop.turn_io import TurnIO
from toolsearch.protocols import GateLayer, Layer
from toolsearch.support.checks import offers

__all__ = ["RoundStep"]

log = logging.getLogger("toolsearch")

Answers = dict[str, ToolResult | ToolWaiting]


@dataclass(slots=True)
class RoundStep:
    """Answers the open calls of one reply. `own_calls` has the ids of calls whose reply came in this process."""

    io: TurnIO
    own_calls: set[str]
    answered_by: dict[str, str] = field(default_factory=dict)  # call id -> the layer that answered it

    def run(self, command: CallTools) -> Effects[None]:
        io = self.io
        yield from io.resolve(answer_left_over(command))
        still_open = {call.id for call in io.conversation.open}
        calls = tuple(call for call in command.calls if call.id in still_open)
        if not calls:
            return
        catalog = io.parts.search.catalog
        tools = {call.id: tool for call in calls if call.tool and (tool := catalog.get(call.tool)) is not None}
        request = Round(
            calls, io.turn, io.conversation.id, io.caller, command.approved, tools, io.now(),
            delegated=command.delegated,
        )  # fmt: skip
        steps = layered(io.parts.layers, "around_round", failed=_decline, answered=self._note_answers)(request)
        answers = yield from io.interpret(steps, self._execute)
        yield from self._record_rest(calls, answers if isinstance(answers, Mapping) else {})

    def _note_answers(self, layer: Layer, request: Round, passed: Round | None) -> None:
        """Remembers which calls a layer answered: those it did not pass on inside."""
        inside = {call.id for call in passed.calls} if passed is not None else set[str]()
        self.answered_by |= {call.id: name_of(layer) for call in request.calls if call.id not in inside}

    def _record_rest(self, calls: Sequence[JudgedCall], answers: Mapping[str, object]) -> Effects[None]:
        """Records the answers of the layers; those of the calls that ran are recorded already."""
        conversation = self.io.conversation
        still_open = {call.id for call in conversation.open}
        waiting = {each.id for each in conversation.waiting}
        for call in calls:
            answer = answers.get(call.id)
            if call.id not in still_open or (call.id in waiting and not isinstance(answer, ToolResult)):
                continue
            if isinstance(answer, ToolWaiting):
                yield from self.io.record(replace(answer, call_id=call.id, at=self.io.now()))
            elif isinstance(answer, ToolResult):
                yield from self.io.answer(call, answer, self.answered_by.get(call.id, "loop"))
            else:
                yield from self.io.answer(call, synthetic.unanswered(call), "loop")

    # -- what runs -----------------------------------------------------------------------------------------------

    def _execute(self, request: Round, seconds: float | None) -> Effects[Answers]:
        """Runs the calls that the layers let through, and returns all answers."""
        results: Answers = {}
        running: list[Call] = []
        request = replace(request, turn=self.io.turn)
        for call in request.calls:
            if call.kind == "answered":
                answer = ToolResult(call.id, call.name, call.status, call.answer)
                results[call.id] = result = self.io.conversation.session.with_found(answer, call.reveal)
                yield from self.io.answer(call, result, "session")
            elif self._has_changed(call, request):
                results[call.id] = result = synthetic.changed(call)
                yield from self.io.answer(call, result, "loop")
            else:
                running.append(request.call(call))
        for jobs in self._stages(running):
            results |= yield from self._run_stage(jobs, request, seconds)
        return results

    def _must_be_as_judged(self, call: JudgedCall, request: Round) -> bool:
        """Whether a call may only run with the definition that was judged: by a person, or before a restart."""
        return call.id not in self.own_calls or call.id in request.approved

    def _has_changed(self, call: JudgedCall, request: Round) -> bool:
        """Whether a tool has another definition than when its call was judged, and that matters."""
        if call.kind != "tool" or not self._must_be_as_judged(call, request):
            return False
        tool = self.io.conversation.session.live(call.tool)
        return tool is not None and tool.digest != call.digest

    def _stages(self, running: list[Call]) -> list[list[list[Call]]]:
        """Stages run one after the other. The jobs of a stage run together, and the calls of a job in order.

        Searches are one job, because their order counts. If a call of the reply is `alone`, each call is a stage.
        """
        if any(call.marks.alone for call in self.io.turn.replies[-1].calls):
            return [[[call]] for call in running]
        searches = [call for call in running if call.judged.kind == "search"]
        jobs = [[call] for call in running if call.judged.kind != "search"]
        stage = [searches, *jobs] if searches else jobs
        return [stage] if stage else []

    def _run_stage(self, jobs: list[list[Call]], request: Round, seconds: float | None) -> Effects[Answers]:
        io, now = self.io, self.io.now()
        calls = {call.judged.id: call.judged for job in jobs for call in job}
        fixed = frozenset(call.id for call in calls.values() if self._must_be_as_judged(call, request))
        io.started |= calls.keys() - io.conversation.begun
        yield from io.record(*(ToolStarted(call_id, now) for call_id in calls))
        decided = {call.id: call for call in io.conversation.open}
        running: dict[int, list[Call]] = {}
        for job in jobs:
            session, layers = io.conversation.session, io.parts.layers
            activity = ToolActivity(layers, session, tuple(job), decided, fixed, seconds, io.cancelled, io.performed)
            running[(yield from io.spawn(activity))] = job
        results: Answers = {}
        while running:
            item = yield from io.receive()
            if item is None or item.key not in running:
                continue
            if item.done:
                yield from self._end_job(item, running.pop(item.key), results)
            elif isinstance(item.posted, CallOutcome):
                yield from self._take(item.posted, results)
            else:
                yield from io.record(item.posted)
        return results

    def _take(self, outcome: CallOutcome, results: Answers) -> Effects[None]:
        results[outcome.call.id] = outcome.result
        if outcome.found is not None:
            yield from self.io.record(outcome.found)
        if isinstance(outcome.result, ToolWaiting):  # begun, and now waits
            yield from self.io.record(replace(outcome.result, call_id=outcome.call.id, at=self.io.now()))
        else:
            yield from self.io.answer(outcome.call, outcome.result, outcome.by, outcome.seconds)

    def _end_job(self, item: InboxItem, job: list[Call], results: Answers) -> Effects[None]:
        """Answers as failed the calls that a job ended without answering."""
        if isinstance(item.error, SetupError):  # from a layer; what a tool raises is an answer already
            raise item.error
        for call in job:
            if call.judged.id not in results:
                error = item.error or RuntimeError("it ended without an answer")
                results[call.judged.id] = failure = synthetic.failed(call.judged, error)
                yield from self.io.answer(call.judged, failure, "loop")


def _decline(layer: Layer, request: Round, error: BaseException) -> dict[str, ToolResult]:
    """After a gate fails, none of the calls it was to judge may run. Errors of other layers end the turn."""
    if isinstance(error, SetupError) or not (offers(layer, GateLayer) and layer.gate):
        raise error
    log.error("the gate %r failed: the calls it was to judge are declined", layer, exc_info=error)
    return {call.id: synthetic.gate_failed(call) for call in request.calls}
