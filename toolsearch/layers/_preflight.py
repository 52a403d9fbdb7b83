"""Preflight: the program's own check of a call, before anybody is asked and again right before it runs.

The first phase, "prepare", may word the question of an approval, refuse, or give the output without running anything;
what it said is a fact, so that it is asked once a call. The second, "execute", looks again at the last moment, whether
somebody approved the call now or an earlier approval stands for it: the world may have changed meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from toolsearch.calls import ToolResult
from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.facts import JudgedCall, Noted
from toolsearch.events.requests import Call, Round
from toolsearch.events.turn_view import TurnView, is_one_of
from toolsearch.protocols import Do, Record, RoundSteps, ToolSteps
from toolsearch.support import checks
from toolsearch.support.text import text_of

__all__ = ["Completed", "Denied", "Phase", "Ready", "preflight"]

log = logging.getLogger("toolsearch")

Phase = Literal["prepare", "execute"]


@dataclass(frozen=True, slots=True)
class Ready:
    """The call may go on; `question` is what a person is asked, where one is."""

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

    output: Any


Verdict = Ready | Denied | Completed


def preflight(check: Callable[[Call, Phase], Any], *, tools: Iterable[str] | None = None) -> Any:
    """A layer that asks `check(call, phase)` about each call of a tool, or of those in `tools` (ids or names).

    It returns `Ready`, `Denied`, `Completed`, or None for ready, and may be async. Where it raises, the call does not
    run. Put it before `approval` in the list, so that its question is the one asked.
    """
    checks.function("check", check, "of a Call and a phase")
    return _Preflight(check, None if tools is None else frozenset(checks.names("tools", tools)))


@dataclass(frozen=True)
class _Preflight:
    check: Callable[[Call, Phase], Any]
    tools: frozenset[str] | None
    name: str = "preflight"
    gate: bool = True

    def around_round(self, request: Round) -> RoundSteps:
        answers: dict[str, Any] = {}
        questions = dict(request.questions)
        for asked in request.calls:
            if not self._checks(asked):
                continue
            verdict: Verdict | ToolResult | None = _noted(request.turn, asked.id)
            if verdict is None:
                verdict = yield from self._verdict(request.call(asked), "prepare")
            if isinstance(verdict, ToolResult):
                answers[asked.id] = verdict
            elif isinstance(verdict, Ready):
                questions |= {asked.id: verdict.question} if verdict.question else {}
            else:
                answers[asked.id] = _answer(asked, verdict)
        rest = request.without(answers)
        if questions:
            rest = replace(rest, questions=questions)
        if rest.calls:
            answers |= yield rest
        return answers

    def around_tool(self, call: Call) -> ToolSteps:
        if not self._checks(call.judged):
            return (yield call)
        verdict = yield from self._verdict(call, "execute")
        if isinstance(verdict, ToolResult):
            return verdict
        return (yield call) if isinstance(verdict, Ready) else _answer(call.judged, verdict)

    def _checks(self, asked: JudgedCall) -> bool:
        return asked.kind == "tool" and (self.tools is None or is_one_of(asked, self.tools))

    def _verdict(self, call: Call, phase: Phase) -> Generator[Do | Record, Any, Verdict | ToolResult]:
        """What the check says, written down; the answer to the call where the check fails."""
        try:
            told = yield Do(partial(self.check, call, phase))
            told = Ready() if told is None else told
            if not isinstance(told, Verdict):
                raise TypeError(f"it gave {told!r} where Ready, Denied, Completed or None is needed")
        except SetupError:
            raise
        except Exception as error:
            log.error("the preflight of %r failed: it does not run", call.judged.name, exc_info=error)
            return synthetic.check_failed(call.judged)
        yield Record(Noted(self.name, {"call": call.judged.id, "phase": phase, **_note_of(told)}))
        return told


def _note_of(verdict: Verdict) -> dict[str, Any]:
    """A verdict as the journal keeps it; `_noted` reads it back."""
    match verdict:
        case Ready():
            return {"outcome": "ready"} | ({"question": verdict.question} if verdict.question else {})
        case Denied():
            return {"outcome": "denied", "reason": verdict.reason}
        case Completed():
            return {"outcome": "completed", "output": text_of(verdict.output)}


def _noted(turn: TurnView, call_id: str) -> Verdict | None:
    """What was said of a call when it was prepared, by a process that did not go on."""
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


def _answer(asked: JudgedCall, verdict: Denied | Completed) -> ToolResult:
    if isinstance(verdict, Denied):
        return synthetic.refused(asked, verdict.reason)
    return ToolResult(asked.id, asked.name, "ok", text_of(verdict.output), verdict.output)
