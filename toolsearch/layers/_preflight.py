"""Preflight: the program's own check of a call, before anybody is asked and again right before it runs.

The first phase, "prepare", may word the question of an approval, refuse the call, or give its output without running
it. Its verdict is a fact, so that it is asked once per call. The second phase, "execute", looks again right before the
call runs, whether somebody approved it now or an earlier approval applies: the world may have changed in between.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

from toolsearch.calls import ToolResult
from toolsearch.calls.returned import read_result
from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.facts import JudgedCall, Noted
from toolsearch.events.requests import Call, Round
from toolsearch.events.turn_view import TurnView, is_one_of
from toolsearch.layers._shared import result_of
from toolsearch.protocols import Do, Layer, Record, RoundSteps, ToolAnswer, ToolSteps
from toolsearch.support import checks

__all__ = ["Completed", "Denied", "Phase", "Ready", "preflight"]

log = logging.getLogger("toolsearch")

Phase = Literal["prepare", "execute"]


@dataclass(frozen=True, slots=True)
class Ready:
    """The call may go on; `question` is what a person is asked, if one is asked."""

    question: str = ""

    def __post_init__(self) -> None:
        checks.text("question", self.question)


@dataclass(frozen=True, slots=True)
class Denied:
    """The call may not run."""

    reason: str

    def __post_init__(self) -> None:
        checks.text("reason", self.reason)


@dataclass(frozen=True, slots=True)
class Completed:
    """There is nothing to run: this is the result."""

    output: object


PreflightVerdict: TypeAlias = Ready | Denied | Completed
Check: TypeAlias = Callable[[Call, Phase], PreflightVerdict | Awaitable[PreflightVerdict | None] | None]


def preflight(check: Check, *, tools: Iterable[str] | None = None) -> Layer:
    """A layer that asks `check(call, phase)` about each call of a tool, or of the tools in `tools` (ids or names).

    The check returns `Ready`, `Denied`, `Completed`, or None for ready, and may be async. If it raises, the call does
    not run. Put this layer before `approval` in the list, so that its question is the one that is asked.
    """
    checks.function("check", check, "of a Call and a phase")
    return _Preflight(check, None if tools is None else frozenset(checks.names("tools", tools)))


@dataclass(frozen=True)
class _Preflight:
    check: Check
    tools: frozenset[str] | None
    name: str = "preflight"
    gate: bool = True

    def around_round(self, request: Round) -> RoundSteps:
        answers: dict[str, ToolAnswer] = {}
        questions = dict(request.questions)
        for call in request.calls:
            if not self._applies_to(call):
                continue
            verdict: PreflightVerdict | ToolResult | None = _verdict_in(request.turn, call.id)
            if verdict is None:
                verdict = yield from self._ask(request.call(call), "prepare")
            if isinstance(verdict, ToolResult):
                answers[call.id] = verdict
            elif isinstance(verdict, Ready):
                questions |= {call.id: verdict.question} if verdict.question else {}
            else:
                answers[call.id] = _answer(call, verdict)
        rest = request.without(answers)
        if questions:
            rest = replace(rest, questions=questions)
        if rest.calls:
            answers |= yield rest
        return answers

    def around_tool(self, call: Call) -> ToolSteps:
        if not self._applies_to(call.judged):
            return (yield call)
        verdict = yield from self._ask(call, "execute")
        if isinstance(verdict, ToolResult):
            return verdict
        return (yield call) if isinstance(verdict, Ready) else _answer(call.judged, verdict)

    def _applies_to(self, call: JudgedCall) -> bool:
        return call.kind == "tool" and (self.tools is None or is_one_of(call, self.tools))

    def _ask(self, call: Call, phase: Phase) -> Generator[Do | Record, object, PreflightVerdict | ToolResult]:
        """The verdict of the check, which is recorded; the answer to the call if the check fails."""
        try:
            verdict = yield from result_of(partial(self.check, call, phase))
            verdict = Ready() if verdict is None else verdict
            if not isinstance(verdict, PreflightVerdict):
                raise TypeError(f"it returned {verdict!r} where Ready, Denied, Completed or None is needed")
        except SetupError:
            raise
        except Exception as error:
            log.error("the preflight of %r failed: it does not run", call.judged.name, exc_info=error)
            return synthetic.check_failed(call.judged)
        yield Record(Noted(self.name, {"call": call.judged.id, "phase": phase, **_note_of(verdict)}))
        return verdict


def _note_of(verdict: PreflightVerdict) -> dict[str, str]:
    """A verdict as the journal keeps it; `_verdict_in` reads it back."""
    match verdict:
        case Ready():
            return {"outcome": "ready"} | ({"question": verdict.question} if verdict.question else {})
        case Denied():
            return {"outcome": "denied", "reason": verdict.reason}
        case Completed():
            return {"outcome": "completed", "output": read_result("", "", verdict.output).content}


def _verdict_in(turn: TurnView, call_id: str) -> PreflightVerdict | None:
    """The verdict from when the call was prepared, by a process that did not go on."""
    for note in turn.notes("preflight"):
        if note["call"] == call_id and note["phase"] == "prepare":
            match note["outcome"]:
                case "denied":
                    return Denied(note["reason"])
                case "completed":
                    return Completed(note["output"])
                case _:
                    return Ready(note.get("question", ""))
    return None


def _answer(call: JudgedCall, verdict: Denied | Completed) -> ToolResult:
    if isinstance(verdict, Denied):
        return synthetic.refused(call, verdict.reason)
    return read_result(call.id, call.name, verdict.output)
